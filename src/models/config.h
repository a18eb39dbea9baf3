// Reads the configuration of a model or task: each key with its range; an unknown key is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"

namespace petroglyph {

// Errors begin with the owner's name: "causal_rn: heads 5 out of range 1 to 4".
// Without `otherwise` a key is required; with it, an absent key (or null) has that value.
class ConfigReader {
 public:
  ConfigReader(std::string owner, Json object);

  int64_t integer(const std::string& key, int64_t low, int64_t high, std::optional<int64_t> otherwise = {});
  // From 1 to `most`.
  int size(const std::string& key, int most = 1 << 24) { return static_cast<int>(integer(key, 1, most)); }
  // The key "heads", which divides `of`, the value of the key `name`.
  int heads(const std::string& name, int of, int most = 1 << 16);
  double number(const std::string& key, double low, double high, std::optional<double> otherwise = {});
  bool boolean(const std::string& key, std::optional<bool> otherwise = {});
  std::string string(const std::string& key, std::optional<std::string> otherwise = {});
  std::string choice(const std::string& key, const std::vector<std::string>& allowed,
                     std::optional<std::string> otherwise = {});
  std::vector<int64_t> integers(const std::string& key, int64_t low, int64_t high);
  // A nested object, for a reader of its own.
  Json object(const std::string& key);

  bool has(const std::string& key) const { return object_.find(key) != nullptr; }
  const std::string& owner() const { return owner_; }

  // Throws Error if the configuration has a key that was not read: a misspelt one, or one of another model.
  void finish() const;

  // For rules between keys: reader.fail("heads 5 does not divide hidden 192").
  [[noreturn]] void fail(const std::string& complaint) const;

 private:
  const Json* ask(const std::string& key, bool required);
  const Json& expect(const std::string& key, const Json& value, Json::Kind kind) const;
  int64_t checked_integer(const std::string& key, const Json& value, int64_t low, int64_t high) const;

  std::string owner_;
  Json object_;
  std::set<std::string> asked_;
};

}  // namespace petroglyph
