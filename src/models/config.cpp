#include "models/config.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

ConfigReader::ConfigReader(std::string owner, Json object) : owner_(std::move(owner)), object_(std::move(object)) {
  if (!object_.is(Json::Kind::Object))
    fail(std::string("expected an object as config, found ") + name_of(object_.kind()));
}

void ConfigReader::fail(const std::string& complaint) const { throw Error(owner_ + ": " + complaint); }

const Json* ConfigReader::ask(const std::string& key, bool required) {
  asked_.insert(key);
  const Json* value = object_.find(key);
  if (value != nullptr && !value->is(Json::Kind::Null)) return value;
  if (required) fail("config lacks \"" + key + "\"");
  return nullptr;
}

const Json& ConfigReader::expect(const std::string& key, const Json& value, Json::Kind kind) const {
  if (!value.is(kind)) fail(key + ": expected " + name_of(kind) + ", found " + name_of(value.kind()));
  return value;
}

int64_t ConfigReader::checked_integer(const std::string& key, const Json& value, int64_t low, int64_t high) const {
  const double number = expect(key, value, Json::Kind::Number).number();
  if (!(number >= double(low) && number <= double(high)))
    fail(key + " " + exact_text(number) + " out of range " + std::to_string(low) + " to " + std::to_string(high));
  const int64_t whole = static_cast<int64_t>(number);
  if (double(whole) != number) fail(key + " " + exact_text(number) + " is not a whole number");
  return whole;
}

int64_t ConfigReader::integer(const std::string& key, int64_t low, int64_t high, std::optional<int64_t> otherwise) {
  const Json* value = ask(key, !otherwise);
  return value ? checked_integer(key, *value, low, high) : *otherwise;
}

int ConfigReader::heads(const std::string& name, int of, int most) {
  const int heads = size("heads", most);
  if (of % heads != 0) fail(text("heads %d does not divide %s %d", heads, name.c_str(), of));
  return heads;
}

double ConfigReader::number(const std::string& key, double low, double high, std::optional<double> otherwise) {
  const Json* value = ask(key, !otherwise);
  if (!value) return *otherwise;
  const double number = expect(key, *value, Json::Kind::Number).number();
  if (number >= low && number <= high) return number;
  fail(key + " " + exact_text(number) + " out of range " + exact_text(low) + " to " + exact_text(high));
}

bool ConfigReader::boolean(const std::string& key, std::optional<bool> otherwise) {
  const Json* value = ask(key, !otherwise);
  return value ? expect(key, *value, Json::Kind::Boolean).boolean() : *otherwise;
}

std::string ConfigReader::string(const std::string& key, std::optional<std::string> otherwise) {
  const Json* value = ask(key, !otherwise);
  return value ? expect(key, *value, Json::Kind::String).string() : *otherwise;
}

std::string ConfigReader::choice(const std::string& key, const std::vector<std::string>& allowed,
                                 std::optional<std::string> otherwise) {
  std::string word = string(key, std::move(otherwise));
  if (std::find(allowed.begin(), allowed.end(), word) != allowed.end()) return word;
  fail(key + " \"" + word + "\" is not one of " + join(allowed, ", "));
}

std::vector<int64_t> ConfigReader::integers(const std::string& key, int64_t low, int64_t high) {
  std::vector<int64_t> list;
  for (const Json& item : expect(key, *ask(key, true), Json::Kind::Array).items())
    list.push_back(checked_integer(key + "[" + std::to_string(list.size()) + "]", item, low, high));
  return list;
}

Json ConfigReader::object(const std::string& key) { return expect(key, *ask(key, true), Json::Kind::Object); }

void ConfigReader::finish() const {
  for (const Json::Member& member : object_.members())
    if (asked_.count(member.first) == 0) fail("unknown key \"" + member.first + "\" in the config");
}

}  // namespace petroglyph
