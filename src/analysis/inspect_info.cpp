// inspect info: describes a safetensors file. For a Petroglyph checkpoint it shows the model, how it was trained and
// on which data; for any file, its tensors.

#include <algorithm>
#include <cstdio>

#include "analysis/inspection.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "tokenizers/tokenizer.h"
#include "train/checkpoint.h"

namespace petroglyph {

namespace {

// At most `most` bytes, and no partial character.
std::string first_letters(const std::string& words, size_t most) {
  const std::string first = words.substr(0, most);
  return first.size() < words.size() ? first.substr(0, utf8_prefix(first)) : first;
}

bool is_moment(const std::string& name) { return name.rfind("adamw.", 0) == 0; }

// "width 64, layers 4, …"
std::string pairs(const Json& object) {
  std::vector<std::string> words;
  for (const auto& [key, value] : object.members())
    words.push_back(in_one_line(key + " " + (value.is(Json::Kind::String) ? value.string() : value.text())));
  return join(words, ", ");
}

void show_checkpoint(const SafetensorsFile& file) {
  const RunState state = read_run_state(file);
  print("model        %s, by %s, step %s\n", state.model.c_str(), state.program.c_str(),
        with_commas(state.step).c_str());
  print("sizes        %s\n", pairs(state.config).c_str());
  print("options      %s\n", state.options.members().empty() ? "none" : pairs(state.options).c_str());
  const Json* tokenizer = state.data.is(Json::Kind::Object) ? state.data.find("tokenizer") : nullptr;
  if (tokenizer) print("tokenizer    %s\n", tokenizer_from_json(*tokenizer, file.path())->name().c_str());
  const bool whole = std::any_of(file.names().begin(), file.names().end(), is_moment);
  print("optimizer    %s\n", whole ? "AdamW's moments: training can be resumed" : "none: weights alone");
  print("weights      %s\n", fingerprint_of(file).c_str());
}

void show_tensor(const std::string& name, const SafetensorsFile::Entry& entry) {
  const size_t crosses = std::max<size_t>(1, entry.shape.size()) - 1;  // "×" has two bytes
  print("  %-5s %-*s %s\n", entry.dtype.c_str(), static_cast<int>(16 + crosses), shape_text(entry.shape).c_str(),
        in_one_line(name).c_str());
}

}  // namespace

int inspect_info(const std::vector<std::string>& words) {
  std::vector<std::string> path;
  Options options("inspect info", "Describes a safetensors file: a Petroglyph checkpoint or any other.");
  options.positional("FILE", &path, "a .safetensors file, or a run's folder: its last checkpoint", 1);
  options.parse(words);
  const SafetensorsFile file(checkpoint_path(path[0]));
  if (is_checkpoint(file)) {
    show_checkpoint(file);
  } else {
    for (const auto& [key, value] : file.metadata())
      print("%-12s %s\n", in_one_line(key).c_str(), in_one_line(first_letters(value, 200)).c_str());
  }
  int64_t numbers = 0, moments = 0;
  for (const std::string& name : file.names()) (is_moment(name) ? moments : numbers) += file.entry(name).count();
  print("parameters   %s%s\n", with_commas(numbers).c_str(),
        moments > 0 ? (", and " + with_commas(moments) + " numbers of the optimizer").c_str() : "");
  for (const std::string& name : file.names())
    if (!is_moment(name)) show_tensor(name, file.entry(name));
  return 0;
}

}  // namespace petroglyph
