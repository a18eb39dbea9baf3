// Converts model files of other projects (Hugging Face's folders, llm.c's files) to Petroglyph checkpoints, and back.

#include <cstdio>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
#include "exchange/foreign.h"
#include "train/checkpoint.h"

namespace petroglyph {
namespace {

struct ConvertSettings {
  std::vector<std::string> model;
  std::string to = "petroglyph", save, tokenizer;
  bool force = false;

  void declare(Options& options) {
    options.positional(
        "MODEL", &model,
        "a Hugging Face folder (config.json, model.safetensors, tokenizer) or llm.c's .bin; with another "
        "--to a Petroglyph checkpoint. PyTorch files: data/torch_to_safetensors.py",
        1);
    options.add("to", &to, {"petroglyph", "hf", "llm.c"},
                "what is written: a checkpoint, or from one a Hugging Face folder or llm.c's .bin");
    options.add("save", &save, "PATH", "the file or the folder; default: after the model's name");
    options.add("tokenizer", &tokenizer, "NAME", "in place of the model's: ascii, bytes, a tokenizer's file or folder");
    options.add("force", &force, "replaces existing files");
    options.only_with("tokenizer", "to", {"petroglyph"});
  }
};

// "gpt2/" → "gpt2", "out/gpt2.bin" → "gpt2", the folder "run.5" → "run.5", "." → the folder's own name
std::string name_of(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path + "/.").lexically_normal().parent_path();
  return (std::filesystem::is_directory(whole) ? whole.filename() : whole.stem()).string();
}

// Reports a common mistake: the path of a Petroglyph checkpoint, or of one file in a Hugging Face folder, instead of
// a model.
void refuse_tensors(const std::string& path) {
  const std::string file = checkpoint_path(path);
  const bool tensors = is_there(file) && is_safetensors(file);
  if (!tensors || (file != path && is_there(path + "/config.json"))) return;
  if (is_checkpoint(SafetensorsFile(file)))
    throw Error(path + " is already a Petroglyph checkpoint; --to hf or --to llm.c exports it");
  if (file == path) throw Error(path + ": expected the folder that it lies in, with its config.json");
}

void say_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) print("note: %s\n", note.c_str());
}

void to_checkpoint(ConvertSettings& settings) {
  const std::string& from = settings.model[0];
  refuse_tensors(from);
  if (settings.save.empty()) settings.save = name_of(from) + ".safetensors";
  std::vector<std::string> read = files_of_foreign(from);
  for (const std::string& file : files_of_tokenizer(settings.tokenizer)) read.push_back(file);
  check_output(settings.save, settings.force, read);
  ForeignModel foreign = open_foreign(from);
  if (!settings.tokenizer.empty()) foreign.tokenizer = open_tokenizer(settings.tokenizer, false);
  check_replaced(settings.save, settings.force);  // it may have been made in the meantime
  const int64_t parameters = save_as_checkpoint(foreign, from, settings.save);
  say_notes(foreign.translation.notes);
  say_notes(notes_on_tokenizer(foreign));
  print("%s: %s, %s\n", foreign.translation.model.c_str(), counted(parameters, "parameter").c_str(),
        foreign.tokenizer                                   ? foreign.tokenizer->name().c_str()
        : foreign.translation.classes.is(Json::Kind::Array) ? "of images"
                                                            : "no tokenizer (--tokenizer gives it one)");
}

// For a folder, only the files that will be written are checked; other files in it are kept.
void check_hugging_face(const ConvertSettings& settings, const std::string& checkpoint) {
  const std::vector<std::string> files = files_of_hugging_face(settings.save);
  for (const std::string& file : files) check_not_read(file, {checkpoint});
  if (is_there(settings.save) && !std::filesystem::is_directory(settings.save))
    throw Error(settings.save + ": is a file; expected a folder, existing or new, for --to hf");
  check_replaced(settings.save, settings.force);
  for (const std::string& file : files) check_replaced(file, settings.force);
  check_writable(is_there(settings.save) ? files[0] : settings.save);
}

void from_checkpoint(ConvertSettings& settings) {
  const std::string& from = settings.model[0];
  const bool folder = settings.to == "hf";
  if (settings.save.empty()) settings.save = name_of(from) + (folder ? "-hf" : ".bin");
  while (folder && settings.save.size() > 1 && settings.save.back() == '/') settings.save.pop_back();  // "tuned/"
  const std::string checkpoint = checkpoint_path(from);
  folder ? check_hugging_face(settings, checkpoint) : check_output(settings.save, settings.force, {checkpoint});
  const auto save = folder ? save_as_hugging_face : save_as_llm_c;
  say_notes(save(checkpoint, settings.save));
}

int convert(const std::vector<std::string>& words) {
  ConvertSettings settings;
  Options options("convert", "Converts models of Hugging Face and llm.c to Petroglyph checkpoints, and back.");
  settings.declare(options);
  options.parse(words);
  options.refuse_without_effect();
  settings.to == "petroglyph" ? to_checkpoint(settings) : from_checkpoint(settings);
  print("saved %s\n", settings.save.c_str());
  return 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) { return petroglyph::run_program("convert", argc, argv, petroglyph::convert); }
