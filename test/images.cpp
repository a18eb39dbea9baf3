// Images: the files they come from, good and bad, and the drawn ones.

#include <algorithm>
#include <map>
#include <set>

#include "analysis/classify.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/log.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "check.h"
#include "image_bytes.h"
#include "math/random.h"
#include "shell.h"
#include "tasks/image_files.h"
#include "tasks/shapes.h"
#include "tasks/shuffle.h"

namespace petroglyph {
namespace {

// ---- Image files --------------------------------------------------------------------------------------------------

void image_files(Test& test) {
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name, const std::string& bytes) {
    folder.write(name, bytes);
    return folder.file(name);
  };
  const std::string ten = file("ten.bin", cifar10(12)), hundred = file("hundred.bin", cifar100(104)),
                    more = file("more.bin", cifar10(3, 12));
  const ImageFiles a({ten, more}, "auto"), b({hundred}, "auto");
  CHECK(a.size() == 15 && b.size() == 104);
  CHECK(a.class_names()[9] == "truck" && b.class_names().size() == 100 && b.class_names()[99] == "worm");
  CHECK(b.picture(103).label == 3 && a.picture(13).label == 3);
  const Picture picture = a.picture(5);
  bool right = true;
  for (int row = 0; row < 32; ++row)
    for (int column = 0; column < 32; ++column)
      for (int channel = 0; channel < 3; ++channel)
        right = right && picture.at(row, column, channel) == ((5 + channel * 1024 + row * 32 + column) & 0xFF);
  CHECK(right);
  CHECK(b.picture(5).rgb == picture.rgb);
  CHECK(a.picture(14).rgb != a.picture(2).rgb);

  const auto refuse = [&](const std::string& name, const std::string& bytes, const char* format,
                          const std::string& words) {
    const std::string path = file("bad", bytes);
    test.throws(name, words, [&] { ImageFiles({path}, format); });
  };
  refuse("half a record", cifar10(2).substr(0, 4000), "auto",
         "bad: 4,000 bytes are not a whole number of records, of CIFAR-10");
  refuse("half a record, named", cifar10(2).substr(0, 4000), "cifar10",
         "bad: 4,000 bytes are not a whole number of cifar10's");
  for (const char* format : {"auto", "cifar10"})
    refuse(std::string("empty, ") + format, "", format, "bad: this file is empty");
  refuse("label", cifar10(1) + static_cast<char>(10) + planes(3), "auto",
         "bad: image 1 has the label 10, expected 0 to 9");
  test.throws("no file", "nowhere: cannot read", [&] { ImageFiles({folder.file("nowhere")}, "auto"); });
  test.throws("a folder", "expected a file, found something else", [&] { ImageFiles({folder.path()}, "auto"); });
  test.throws("two formats", "hundred.bin", [&] { ImageFiles({ten, hundred}, "auto"); });
  test.throws("other classes", "the training images have 10 classes, the test images 100", [&] {
    FileImages({ImageFiles({ten}, "auto"), ImageFiles({hundred}, "auto"), 1, {}});
  });
}

// Every n things once, for all n; another order in every epoch.
void shuffle(Test& test) {
  bool all = true;
  for (uint64_t n = 1; n <= 100; ++n) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < n; ++i) seen.insert(shuffled(i, n, 1, 2, 3));
    all = all && seen.size() == n && *seen.rbegin() == n - 1;
  }
  test.check("each once", all);
  int fixed = 0, same = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    fixed += shuffled(i, 1000, 1, 2, 3) == i;
    same += shuffled(i, 1000, 1, 2, 3) == shuffled(i, 1000, 1, 2, 4);
  }
  test.check("mixed", fixed < 8 && same < 8, text("%d fixed, %d as before", fixed, same));
  CHECK(shuffled(5000000, 5002240, 7, 1, 0) < 5002240);
}

void epochs(Test& test) {
  const TemporaryFolder folder;
  folder.write("a", cifar10(7));
  folder.write("b", cifar10(3, 50));
  const FileImages task(ImageFiles({folder.file("a")}, "auto"), ImageFiles({folder.file("b")}, "auto"), 3, {});
  const uint32_t train = stream_of("train"), other = stream_of("evaluate");
  std::map<uint8_t, int> seen;
  for (uint32_t step = 0; step < 7; ++step)
    for (int i = 0; i < 3; ++i) ++seen[task.picture(1, train, step, i).rgb[0]];
  test.check("three epochs",
             seen.size() == 7 && std::all_of(seen.begin(), seen.end(), [](auto& s) { return s.second == 3; }));
  CHECK(task.picture(1, other, 9, 1).rgb[0] == 51);
  const Batch whole = task.batch(1, train, 4, 0, 3), part = task.batch(1, train, 4, 2, 1);
  test.equal("a batch in parts", part.patches,
             std::vector<real>(whole.patches.end() - Images::PATCHES * Images::PATCH_SIZE, whole.patches.end()));
  CHECK(whole.targets.size() == 3 && whole.counted == 3 && whole.tokens.empty());
}

void patches(Test& test) {
  Picture picture;
  picture.at(6, 11, 1) = 51;  // a fifth of 255
  std::vector<real> values(Images::PATCHES * Images::PATCH_SIZE);
  write_patches(picture, values.data());
  const size_t at = (3 * 16 + 5) * 12 + (0 * 2 + 1) * 3 + 1;  // patch (3, 5), its pixel (0, 1), green
  test.check("place and value", std::abs(values[at] - real((0.2 - 0.4822) / 0.1994)) < 1e-5, shown(values[at]));
  test.check("the rest is black", std::abs(values[at - 1] + real(0.4914 / 0.2023)) < 1e-5);
}

void augmentation(Test& test) {
  Picture picture;
  picture.label = 4;
  picture.at(10, 10, 0) = 200;
  const Augmentation both{true, 4};
  std::map<std::pair<int, int>, int> places;
  for (int i = 0; i < 2000; ++i) {
    const Picture moved = both.apply(picture, 1, 2, i);
    for (int row = 0; row < 32; ++row)
      for (int column = 0; column < 32; ++column)
        if (moved.at(row, column, 0) == 200) ++places[{row, column}];
    if (moved.label != 4) test.check("the label", false);
  }
  // 9 rows, and 9 columns about 10 or about 21
  const auto [low, high] =
      std::minmax_element(places.begin(), places.end(), [](auto& a, auto& b) { return a.second < b.second; });
  test.check("81 places, twice", places.size() == 162 && low->second > 0 && high->second < 40);
  CHECK(places.begin()->first == std::make_pair(6, 6) && places.rbegin()->first == std::make_pair(14, 25));
  CHECK(both.apply(picture, 1, 2, 5).rgb == both.apply(picture, 1, 2, 5).rgb);
  CHECK(Augmentation{}.apply(picture, 1, 2, 5).rgb == picture.rgb);
}

// ---- Drawn images -------------------------------------------------------------------------------------------------

void shapes(Test& test) {
  const Shapes task;
  const uint32_t stream = stream_of("train");
  Checksum checksum;
  std::vector<int> count(10);
  for (int i = 0; i < 2000; ++i) {
    const Picture picture = task.picture(3, stream, 0, i);
    ++count[static_cast<size_t>(picture.label)];
    if (i < 64) checksum.update(picture.rgb.data(), BYTES);
  }
  test.equal("the same pixels in every build", checksum.hex(), std::string("8ad1d157bf989059"));
  const auto [fewest, most] = std::minmax_element(count.begin(), count.end());
  test.check("classes", *fewest > 150 && *most < 250, text("%d to %d of each", *fewest, *most));
  const auto first = task.picture(3, stream, 0, 0).rgb;
  CHECK(task.picture(3, stream, 1, 0).rgb != first && task.picture(4, stream, 0, 0).rgb != first);
}

// ---- Scripts ------------------------------------------------------------------------------------------------------

// What data/cifar10.sh and cifar5m.sh make of archives that lie here: no network.
void scripts(Test& test) {
  const std::string data = (std::filesystem::current_path() / "data").string();
  if (!std::filesystem::exists(data + "/cifar10.sh")) return test.skip("data/", "run this in the repository's root");
  const Shell shell(test);
  std::string five;
  std::filesystem::create_directories(shell.file("cifar-10-batches-bin"));
  for (int i = 1; i <= 5; ++i) {
    shell.write("cifar-10-batches-bin/data_batch_" + std::to_string(i) + ".bin", cifar10(2, 2 * i));
    five += cifar10(2, 2 * i);
  }
  shell.write("cifar-10-batches-bin/test_batch.bin", cifar10(3));
  if (shell.script("tar -czf a.tar.gz cifar-10-batches-bin && mkdir good bad many").status != 0)
    return test.skip("archive", "tar does not work here");
  const std::string get = "CIFAR10_URL=\"file://$PWD/a.tar.gz\" '" + data + "/cifar10.sh' ";
  const std::string sum =
      "CIFAR10_SHA256=$( (sha256sum a.tar.gz || shasum -a 256 a.tar.gz) 2> /dev/null | cut -d ' ' -f 1) ";
  shell.expect_script({
      {get + "bad", 1, "expected c4a38c50"},
      {sum + get + "good", 0, ""},
      {sum + get + "good", 0, ""},
  });
  CHECK(std::filesystem::is_empty(shell.file("bad")));
  CHECK(shell.read("good/cifar10_train.bin") == five && shell.read("good/cifar10_test.bin") == cifar10(3));

  if (shell.script("python3 -c ''").status != 0) return test.skip("data/cifar5m.py", "python3 is not installed");
  const auto archive = [&](const Arrays& arrays) {
    shell.write("X.npy", arrays.images);
    shell.write("Y.npy", arrays.labels);
    if (shell.script("python3 -m zipfile -c part2.npz X.npy Y.npy").status != 0)
      throw Error("python3 -m zipfile fails");
    return shell.read("part2.npz");
  };
  const std::string whole = archive(cifar5m(12)),
                    part = "rm -f many/* && CIFAR5M_URL=\"file://$PWD\" '" + data + "/cifar5m.sh' many 2";
  shell.expect_script(part, 0, "");
  CHECK(shell.read("many/cifar5m_part2.bin") == cifar10(12));
  for (const auto& [bytes, words] :
       {std::pair(archive(cifar5m(2, "<i8", "3, 32, 32")), "array X is (2, 3, 32, 32) of type |u1"),
        {archive(cifar5m(2, "<i4")), "array Y is (2,) of type <i4"},
        {archive(cifar5m(2, "<i8", "32, 32, 3", 9)), "image 1 has the label 10, expected 0 to 9"},
        {whole.substr(0, whole.size() / 2), "is not a zip file"}}) {
    shell.write("part2.npz", bytes);
    shell.expect_script(part, 1, words);
    test.check("and no images of it", !shell.exists("many/cifar5m_part2.bin"));
  }
}

void confusion_table(Test& test) {
  const TemporaryFolder folder;
  save_confusion({"disc", "hourglass"}, {1, 1, 1, 2}, folder.file("."), "two classes");
  test.equal("confusion.csv", folder.read("confusion.csv"), "true,disc,hourglass\ndisc,1,1\nhourglass,1,2\n");
}

// ---- train_image --------------------------------------------------------------------------------------------------

const std::string SETS =  // of models without layers
    " --width 8 --hidden 12 --batch 4 --steps 6 --eval-samples 8 --eval-every 4 --maps 3 --threads 1 ";
const std::string TINY = SETS + "--layers 2 ";

void usage(Test& test) {
  const Shell shell(test, "train_image");
  shell.write("a.bin", cifar10(3));
  shell.write("b.bin", cifar10(3).substr(1));
  shell.expect({
      {"--help", 0, "--data FILES"},
      {"--model rnn", 2, "--model rnn: expected one of"},
      {"--data a.bin", 2, "--data without --test"},
      {"--test a.bin", 2, "--test without --data"},
      {"--data a.bin,, --test a.bin", 2, "--data a.bin,,: an empty name"},
      {"--data a.bin --test b.bin", 1, "b.bin: 9,218 bytes are not a whole number"},
      {"--model transformer --position none", 1, "position \"none\" is not one of learned"},
      {"--model deep_sets --activation exp" + SETS, 1, "activation \"exp\" is not one of relu, gelu"},
      {"--flip", 2, "--flip: does nothing without --data"},
  });
  test.check("nothing was made", !shell.exists("runs"));
  const std::string one = "--data a.bin --test a.bin --steps 0 --batch 1 --maps 0 --eval-samples ";
  shell.expect({
      {one + "320", 0, "accuracy on 3 test images"},
      {one + "1 --preset tiny", 0, "1,331,712 without embeddings"},  // the papers'
      {one + "1 --preset tiny --model transformer", 0, "5,329,152 without embeddings"},
  });
  for (const auto& [number, model] :
       {std::pair("472,704", "transformer"), {"138,240", "birn_image"}, {"471,168", "birn_image --hidden 384"}}) {
    shell.expect(one + "1 --model " + model, 0, std::string(number) + " parameters");
    test.check("docs/images.md has it", read_bytes("docs/images.md").find(number) != std::string::npos);
  }
}

void run_and_resume(Test& test) {
  const Shell shell(test, "train_image");
  for (const std::string model : {"birn_image", "birn_image --pre-norm exact", "transformer --heads 2",
                                  "linear_transformer", "deep_sets", "relation_network"}) {
    const bool has_maps = model != "deep_sets" && model != "relation_network";
    const std::string settings = " --model " + model + (has_maps ? TINY : SETS);
    const Outcome whole = shell.expect(
        "--name whole" + settings, 0,
        {"accuracy on 1,000 test images",
         has_maps ? "(confusion.csv, confusion.svg, heatmaps.svg: where it looks)" : "(confusion.csv, confusion.svg)"});
    shell.run("--name parts" + settings + "--steps 3");
    test.equal("resumed", shell.run("--name parts --resume --steps 6 --threads 2").weights(), whole.weights());
    shell.leaves("runs/whole/", {"log.csv", "confusion.csv", "confusion.svg"});
    shell.same_files("runs/parts/", "runs/whole/", {"confusion.csv"});
    test.equal("heat maps", shell.exists("runs/whole/heatmaps.svg"), has_maps);
    const std::string page = shell.read("runs/whole/index.html");
    test.check("its page shows the confusion matrix and the heat maps",
               page.find("\"confusion.svg") != std::string::npos &&
                   (page.find("\"heatmaps.svg") != std::string::npos) == has_maps,
               page);
    shell.script("rm -r runs");
  }
  shell.expect("--compare birn_image,transformer:heads=2" + TINY, 0, "saved runs/compare");
}

void heat_maps(Test& test) {
  const Shell shell(test, "inspect");
  shell.write("ten.bin", cifar10(3));
  shell.script("train_image --name a" + TINY + "; train_image --name large --seed 9007199254740991" + TINY +
               "; train_image --name b --model deep_sets" + SETS);
  shell.expect({
      {"heatmap runs/large --images 1", 0, "saved runs/large (heatmaps.svg)"},
      {"heatmap runs/a --images 3 --out a", 0, "saved a (heatmaps.svg)"},
  });
  shell.same_files("a/", "runs/a/", {"heatmaps.svg"});
  shell.expect({
      {"heatmap runs/a/model.safetensors --test ten.bin --layers 2", 0, "saved runs/a (heatmaps.svg)"},
      {"heatmap runs/a --test ten.bin --out b", 0, "the model learned other classes than these images'"},
      {"heatmap runs/a --layers 3", 2, "--layers 3: the model has 2"},
      {"heatmap ten.bin", 1, "ten.bin"},
      {"heatmap runs/b", 1, "runs/b/model.safetensors: deep_sets has no maps"},
  });
  test.equal("the run's own is kept", shell.read("runs/a/heatmaps.svg.before"), shell.read("a/heatmaps.svg"));
}

void fine_tuning(Test& test) {
  const Shell shell(test, "train_image");
  shell.write("ten.bin", cifar10(12));
  shell.write("hundred.bin", cifar100(12));
  shell.write("three.bin", cifar10(3, 4));
  const std::string ten = "--data ten.bin,ten.bin --test ten.bin --flip --crop 2" + TINY,
                    shapes = "runs/shapes/model.safetensors";
  shell.expect({
      {"--name a " + ten, 0, "accuracy on 12 test images"},
      {"--name b --data hundred.bin --test hundred.bin --init runs/a/model.safetensors --steps 0" + TINY, 0,
       "runs/a/model.safetensors is for other classes: the readout is newly initialized"},
      {"--name shapes" + TINY, 0, "saved runs/shapes"},
      {"--name c --init " + shapes + " " + ten + "--steps 0", 0, "saved runs/c"},
      {"--name d --init runs/a/model.safetensors " + ten + "--width 9", 1,
       "tensor patch_embedding.weight has shape 8×12, this model wants 9×12"},
  });
  const auto head = [&](const std::string& path) {
    return SafetensorsFile(shell.file(path)).read_as_float("head.weight");
  };
  test.check("as many classes: the same head", head("runs/c/model.safetensors") == head(shapes));
  test.equal("other classes: another head", head("runs/b/model.safetensors").size(), size_t(100 * 8));
  const Outcome tested =
      shell.run("--name t --data ten.bin --test three.bin" + TINY + "--steps 1 --batch 2 --eval-samples 3");
  const CsvTable log = read_csv(shell.file("runs/t/log.csv"));
  test.check("prints what the last evaluation was, on all of them",
             tested.prints(text("accuracy on 3 test images: %.2f %%, loss %.4f\n",
                                100 * log.column("eval_accuracy").back(), log.column("eval_loss").back())),
             tested.output);
  std::string seen;
  for (const std::vector<std::string>& row : Cells(shell.read("runs/t/confusion.csv")).rows) {
    int images = 0;
    for (size_t i = 1; i < row.size(); ++i) images += std::stoi(row[i]);
    seen += std::to_string(images);
  }
  test.equal("which are those of the file alone", seen, "0000111000");
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  test.run("image files", image_files);
  test.run("shuffle", shuffle);
  test.run("epochs", epochs);
  test.run("patches", patches);
  test.run("augmentation", augmentation);
  test.run("shapes", shapes);
  test.run("confusion table", confusion_table);
  test.run("scripts", scripts);
  test.run("usage", usage);
  test.run("run and resume", run_and_resume);
  test.run("heat maps", heat_maps);
  test.run("fine-tuning", fine_tuning);
  return test.finish();
}
