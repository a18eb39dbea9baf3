#include "train/group.h"

#include <algorithm>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "train/run_folder.h"

namespace petroglyph {

namespace {

std::string file_of(const std::string& name) { return "runs/" + name + "/group.json"; }

Json as_json(const std::vector<std::string>& words) {
  Json json = Json::array();
  for (const std::string& word : words) json.push(word);
  return json;
}

}  // namespace

Group::Group(const RunSettings& settings, Options& options, const std::string& otherwise,
             const std::vector<std::string>& words, const std::vector<std::string>& fixed)
    : ranks_(settings.ranks),
      program_(settings.program),
      name_(group_folder(settings, otherwise)),
      words_(options.spelled_out(words)),
      fixed_(fixed) {
  if (settings.resume) {
    const bool found = ranks_->first_finds([&] {
      if (!is_there(folder())) return false;
      lock_.emplace(folder());
      remove_leftovers(folder());
      return true;
    });
    if (!found) throw Error(folder() + ": there is no such folder to go on with");
    go_on(options);
    return;
  }
  Json values = Json::object();
  for (const std::string& option : fixed_) values.set(option, options.value(option));
  definition_ = Json::object().set("program", program_).set("words", as_json(words_)).set("options", options.to_json());
  definition_.set("fixed", values);
}

void Group::go_on(Options& options) {
  const std::string path = file_of(name_);
  if (!ranks_->first_finds([&] { return is_there(path); }))
    throw Error(folder() +
                ": has no group.json: this folder is of no comparison, and of no runs of several seeds or tasks");
  definition_ = definition_of_group(path, ranks_->first_says([&] { return read_regular_file(path); }));
  if (definition_.at("program").string() != program_)
    throw Error(path + ": of " + definition_.at("program").string() + ", not of " + program_);
  for (const std::string& option : fixed_) {
    const Json* fixed = definition_.at("fixed").find(option);
    if (!fixed) throw Error(path + ": does not say what --" + option + " was");
    const std::string before = fixed->string();
    if (options.given(option) && options.value(option) != before)
      throw Error(options.as_written(option, options.value(option)) + ": " + folder() + " was started with " +
                  options.as_written(option, before) + "; nothing was changed");
  }
  options.restore(definition_.at("options"), path);
  std::vector<std::string> all;
  for (const Json& word : definition_.at("words").items()) all.push_back(word.string());
  const bool known = all.size() >= words_.size() && std::equal(words_.rbegin(), words_.rend(), all.rbegin());
  if (!known) all.insert(all.end(), words_.begin(), words_.end());
  words_ = all;
  definition_.set("words", as_json(words_));
  changed_ = !known;
}

void Group::begin() {
  if (!changed_ || !ranks_->first()) return;
  if (!lock_) {
    if (!claim_folder(folder())) check_new_run(folder());
    lock_.emplace(folder());
  }
  changed_ = false;
  write_file_atomically(file_of(name_), definition_.text() + "\n");
}

std::string option_of_group(Ranks& ranks, const std::string& name, const std::string& option) {
  return ranks.first_says([&]() -> std::string {
    const std::string path = file_of(name);
    if (!is_there(path)) return "";
    const Json definition = definition_of_group(path, read_regular_file(path));
    const Json* value = definition.at("fixed").find(option);
    return value ? value->string() : "";
  });
}

}  // namespace petroglyph
