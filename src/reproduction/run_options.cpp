#include "reproduction/run_options.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/program.h"
#include "base/text.h"
#include "reproduction/record.h"
#include "tasks/corpus.h"
#include "tokenizers/tokenizer.h"
#include "train/device.h"

namespace petroglyph {

namespace {

void check_text(const std::string& option, const std::string& files) {
  if (files.empty()) return;
  for (const std::string& file : files_of_corpus(files)) {
    const int problem = access(file.c_str(), R_OK) == 0 ? 0 : errno;
    if (problem != 0) throw Error(option + " " + file + ": cannot read: " + std::strerror(problem));
    if (std::filesystem::is_directory(file)) throw Error(option + " " + file + ": is a folder, expected a file");
  }
}

}  // namespace

void RunOptions::declare(Options& options) {
  options.positional("NAME", &names, "an experiment of ./reproduce list, the beginning of several, or all");
  options.section("Size");
  options.add("quick", &quick, "small models: minutes on two cores; the default");
  options.add("evening", &evening,
              "the papers' models where two cores can train them, with fewer steps or smaller batches: minutes to "
              "a night, copy-lengths two days; list says which");
  options.add("full", &full, "the papers' sizes: minutes to weeks on a GPU; list says which");
  options.add(
      "dry-run", &dry,
      "tries each command, trainings with two steps at the smallest batch and studies by a list of their runs, and "
      "leaves nothing");
  options.section("Data");
  options.add("data", &scale.text, "text to learn from; default: stories of our own").placeholder("FILE");
  options.add("val", &scale.validation, "text for evaluations; default: the end of --data").placeholder("FILE");
  options
      .add("tokenizer", &scale.tokenizer,
           "of --data: a file of ./tokenize, or a folder with GPT-2's two; default: characters")
      .placeholder("NAME");
  options.add("cifar", &scale.images, "a folder with the files of data/cifar10.sh and its like; default: drawn shapes")
      .placeholder("FOLDER");
  options.section("Run");
  declare_device(options, &device, &threads);
  options.add("quiet", &quiet, "prints results only");
}

void RunOptions::finish() {
  if (quick + evening + full > 1) throw UsageError("--quick, --evening and --full: expected one of the three");
  scale.size = full ? Scale::Size::FULL : evening ? Scale::Size::EVENING : Scale::Size::QUICK;
  for (const auto& [option, value] : {std::pair("--val ", scale.validation), {"--tokenizer ", scale.tokenizer}})
    if (scale.text.empty() && !value.empty())
      throw UsageError(option + value + " without --data: expected text to learn from too");
}

// Whether they are there shows now, and not when the last experiment wants them.
void RunOptions::check_files() const {
  check_text("--data", scale.text);
  check_text("--val", scale.validation);
  if (!scale.tokenizer.empty()) open_tokenizer(scale.tokenizer, false);
  if (!scale.images.empty() && !std::filesystem::is_directory(scale.images))
    throw Error("--cifar " + scale.images + ": there is no such folder");
}

std::string RunOptions::again() const {
  std::string words = called("reproduce") + " run " + join(names, " ") + " --" + name_of(scale.size);
  for (const auto& [option, value] : {std::pair("data", scale.text),
                                      {"val", scale.validation},
                                      {"tokenizer", scale.tokenizer},
                                      {"cifar", scale.images}})
    if (!value.empty()) words += std::string(" --") + option + " " + as_word(value);
  if (device != "auto") words += " --device " + device;
  return words + (threads > 0 ? " --threads " + std::to_string(threads) : "");
}

}  // namespace petroglyph
