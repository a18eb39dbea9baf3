#include "tasks/image_files.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "math/random.h"
#include "tasks/shuffle.h"

namespace petroglyph {

namespace {

constexpr size_t PIXELS = static_cast<size_t>(Picture::SIDE) * Picture::SIDE, BYTES = PIXELS * Picture::CHANNELS;

const std::vector<std::string> CIFAR10_CLASSES = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                  "dog",      "frog",       "horse", "ship", "truck"};
const std::vector<std::string> CIFAR100_CLASSES = split(
    "apple,aquarium fish,baby,bear,beaver,bed,bee,beetle,bicycle,bottle,bowl,boy,bridge,bus,butterfly,camel,can,"
    "castle,caterpillar,cattle,chair,chimpanzee,clock,cloud,cockroach,couch,crab,crocodile,cup,dinosaur,dolphin,"
    "elephant,flatfish,forest,fox,girl,hamster,house,kangaroo,keyboard,lamp,lawn mower,leopard,lion,lizard,"
    "lobster,man,maple tree,motorcycle,mountain,mouse,mushroom,oak tree,orange,orchid,otter,palm tree,pear,"
    "pickup truck,pine tree,plain,plate,poppy,porcupine,possum,rabbit,raccoon,ray,road,rocket,rose,sea,seal,"
    "shark,shrew,skunk,skyscraper,snail,snake,spider,squirrel,streetcar,sunflower,sweet pepper,table,tank,"
    "telephone,television,tiger,tractor,train,trout,tulip,turtle,wardrobe,whale,willow tree,wolf,woman,worm",
    ',');

}  // namespace

struct ImageFormat {
  const char* name;
  size_t record;  // bytes
  const std::vector<std::string>* classes;
};

namespace {

const ImageFormat FORMATS[] = {{"cifar10", 1 + BYTES, &CIFAR10_CLASSES}, {"cifar100", 2 + BYTES, &CIFAR100_CLASSES}};

const ImageFormat& image_format(const std::string& name, const MappedFile& file) {
  for (const ImageFormat& format : FORMATS)
    if (name == format.name || (name == "auto" && file.size() % format.record == 0)) return format;
  throw Error(text("%s: %s bytes are not a whole number of records, of CIFAR-10 (%zu bytes) nor of CIFAR-100 (%zu)",
                   file.path().c_str(), with_commas(static_cast<int64_t>(file.size())).c_str(), FORMATS[0].record,
                   FORMATS[1].record));
}

}  // namespace

std::vector<std::string> image_paths(const std::string& option, const std::string& list) {
  const std::vector<std::string> paths = split(list, ',');
  for (const std::string& path : paths)
    if (path.empty()) throw UsageError("--" + option + " " + list + ": an empty name, expected files between commas");
  return paths;
}

ImageFiles::ImageFiles(const std::vector<std::string>& paths, const std::string& format) {
  if (paths.empty()) throw Error("no image files");
  for (const std::string& path : paths) {
    MappedFile file(path);
    if (file.size() == 0) throw Error(path + ": this file is empty, expected images");
    if (!format_) format_ = &image_format(format, file);
    if (file.size() % format_->record != 0)
      throw Error(
          text("%s: %s bytes are not a whole number of %s's records of %zu bytes: truncated, or of another format",
               path.c_str(), with_commas(static_cast<int64_t>(file.size())).c_str(), format_->name, format_->record));
    const auto size = static_cast<int64_t>(file.size() / format_->record);
    parts_.push_back({std::move(file), size});
    check_labels(parts_.back());
    size_ += size;
  }
}

const std::vector<std::string>& ImageFiles::class_names() const { return *format_->classes; }

// The label and the pixels are the end of a record: CIFAR-100's coarse label, before them, is not read.
const unsigned char* ImageFiles::record(const Part& part, int64_t index) const {
  return part.file.data() + static_cast<size_t>(index + 1) * format_->record - FORMATS[0].record;
}

void ImageFiles::check_labels(const Part& part) const {
  const int classes = static_cast<int>(class_names().size());
  for (int64_t i = 0; i < part.size; ++i)
    if (const int label = *record(part, i); label >= classes)
      throw Error(text("%s: image %s has the label %d, expected 0 to %d: damaged, or of another format than %s",
                       part.file.path().c_str(), with_commas(i).c_str(), label, classes - 1, format_->name));
}

Picture ImageFiles::picture(int64_t index) const {
  auto part = parts_.begin();
  for (; index >= part->size; ++part) index -= part->size;
  const unsigned char *const label = record(*part, index), *const pixels = label + 1;
  Picture picture;
  picture.label = *label;
  for (size_t i = 0; i < PIXELS; ++i)
    for (size_t c = 0; c < Picture::CHANNELS; ++c) picture.rgb[i * Picture::CHANNELS + c] = pixels[c * PIXELS + i];
  return picture;
}

FileImages::FileImages(ImageFiles training, ImageFiles test, int64_t step_size, Augmentation augmentation)
    : Images(training.class_names()),
      training_(std::move(training)),
      test_(std::move(test)),
      step_size_(step_size),
      augmentation_(augmentation) {
  if (test_.class_names() != class_names())
    throw Error(
        text("the training images have %d classes, the test images %zu", classes(), test_.class_names().size()));
}

Picture FileImages::picture(uint64_t seed, uint32_t stream, uint32_t step, int index) const {
  if (stream != stream_of("train")) return test_.picture(index % test_.size());
  const uint64_t size = static_cast<uint64_t>(training_.size());
  const uint64_t seen = static_cast<uint64_t>(step) * static_cast<uint64_t>(step_size_) + static_cast<uint64_t>(index);
  const uint64_t chosen = shuffled(seen % size, size, seed, stream_of("order"), static_cast<uint32_t>(seen / size));
  return augmentation_.apply(training_.picture(static_cast<int64_t>(chosen)), seed, step, index);
}

}  // namespace petroglyph
