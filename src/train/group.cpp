#include "train/group.h"

#include <algorithm>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "train/run_folder.h"

namespace petroglyph {

namespace {

std::string file_of(const std::string& name) { return "runs/" + name + "/group.json"; }

Json read_definition(const std::string& name) {
  const std::string path = file_of(name);
  return Json::parse(read_regular_file(path), path);
}

Json as_json(const std::vector<std::string>& words) {
  Json json = Json::array();
  for (const std::string& word : words) json.push(word);
  return json;
}

}  // namespace

Group::Group(const RunSettings& settings, Options& options, const std::string& otherwise,
             std::vector<std::string> words, const std::vector<std::string>& fixed)
    : program_(settings.program), name_(group_folder(settings, otherwise)), words_(std::move(words)), fixed_(fixed) {
  if (settings.resume) {
    if (!is_there(folder())) throw Error(folder() + ": there is no such folder to go on with");
    lock_.emplace(folder());
    remove_leftovers(folder());
    go_on(options);
    return;
  }
  Json values = Json::object();
  for (const std::string& option : fixed_) values.set(option, options.value(option));
  definition_ = Json::object().set("program", program_).set("words", as_json(words_)).set("options", options.to_json());
  definition_.set("fixed", values);
}

void Group::go_on(Options& options) {
  if (!is_there(file_of(name_)))
    throw Error(folder() +
                ": has no group.json: this folder is of no comparison, and of no runs of several seeds or tasks");
  definition_ = read_definition(name_);
  const std::string path = file_of(name_);
  if (definition_.at("program").string() != program_)
    throw Error(path + ": of " + definition_.at("program").string() + ", not of " + program_);
  for (const std::string& option : fixed_) {
    const std::string before = definition_.at("fixed").at(option).string();
    if (options.given(option) && options.value(option) != before)
      throw Error("--" + option + " " + options.value(option) + ": " + folder() + " was started with --" + option +
                  " " + before + "; nothing was changed");
  }
  options.restore(definition_.at("options"), path);
  std::vector<std::string> all;
  for (const Json& word : definition_.at("words").items()) all.push_back(word.string());
  const bool known = all.size() >= words_.size() && std::equal(words_.rbegin(), words_.rend(), all.rbegin());
  if (!known) all.insert(all.end(), words_.begin(), words_.end());
  words_ = all;
  if (known) return;
  definition_.set("words", as_json(words_));
  write_file_atomically(path, definition_.text() + "\n");
}

void Group::begin() {
  if (lock_) return;
  if (!claim_folder(folder())) check_new_run(folder());
  lock_.emplace(folder());
  write_file_atomically(file_of(name_), definition_.text() + "\n");
}

std::string option_of_group(const std::string& name, const std::string& option) {
  if (!is_there(file_of(name))) return "";
  const Json definition = read_definition(name);
  const Json* value = definition.at("fixed").find(option);
  return value ? value->string() : "";
}

}  // namespace petroglyph
