// The images of CIFAR-10 and CIFAR-100 (Krizhevsky 2009), in their original file formats:
//
//   cifar10    records of 3,073 bytes: the label, 0 to 9, then 1,024 bytes each of red, green and blue, row by row
//   cifar100   records of 3,074 bytes: the coarse label, 0 to 19, the fine label, 0 to 99, and the same pixels
//
// data/ has scripts that download them, and scripts that convert CIFAR-5M (Nakkiran, Neyshabur and Sedghi 2021) to
// cifar10's format. Files are memory-mapped, never read completely; labels are checked first.
#pragma once

#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "tasks/images.h"

namespace petroglyph {

struct ImageFormat;

// Splits the value of an option into file names, separated by commas. Throws UsageError for an empty name.
std::vector<std::string> image_paths(const std::string& option, const std::string& list);

// The images of several files, concatenated.
class ImageFiles {
 public:
  // format: "cifar10", "cifar100", or "auto", which selects the one that fits the first file. All files must have the
  // same format. Throws Error, with the file's name, for an invalid file.
  ImageFiles(const std::vector<std::string>& paths, const std::string& format);

  int64_t size() const { return size_; }
  const std::vector<std::string>& class_names() const;
  Picture picture(int64_t index) const;

 private:
  struct Part {
    MappedFile file;
    int64_t size;  // images
  };
  // The label and the pixels of one image in a part.
  const unsigned char* record(const Part& part, int64_t index) const;
  void check_labels(const Part& part) const;

  const ImageFormat* format_ = nullptr;
  std::vector<Part> parts_;
  int64_t size_ = 0;
};

// Training uses the training images epoch by epoch, each epoch in a new random order. Any other stream uses the test
// images in the order of the files.
class FileImages final : public Images {
 public:
  // step_size: the number of images in one training step. Throws Error if the two sets have different classes.
  FileImages(ImageFiles training, ImageFiles test, int64_t step_size, Augmentation augmentation);

  Picture picture(uint64_t seed, uint32_t stream, uint32_t step, int index) const override;
  int64_t test_size() const { return test_.size(); }
  int64_t evaluation_samples() const override { return test_.size(); }

 private:
  ImageFiles training_, test_;
  int64_t step_size_;
  Augmentation augmentation_;
};

}  // namespace petroglyph
