// Python's pickle, read as data: numbers, strings, lists, dictionaries, and what PyTorch makes of tensors. A pickle is a program
// for a machine with a stack; of its instructions those that build data are followed, and those that would call a function only
// note its name and arguments: nothing is run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace petroglyph {

class Pickle {
 public:
  using Id = uint32_t;  // of a value
  enum class Kind { NONE, BOOLEAN, INTEGER, NUMBER, STRING, LIST, DICTIONARY, NAME, CALL, PERSISTENT, MARK };
  struct Value {
    Kind kind = Kind::NONE;
    int64_t integer = 0;  // BOOLEAN too
    double number = 0;
    std::string word;  // STRING; NAME: "module.name"
    std::vector<Id>
        items;  // LIST, tuples too; DICTIONARY: key, value, key, value …; CALL: function, arguments; PERSISTENT: its name
  };

  // Throws Error, which opens with `origin`, for what is no pickle, is truncated or has an instruction that is not known.
  Pickle(std::string_view bytes, const std::string& origin);

  const Value& root() const { return values_[root_]; }
  const Value& at(Id id) const { return values_[id]; }
  // The value of a key of a dictionary, or nullptr.
  const Value* find(const Value& dictionary, std::string_view key) const;

 private:
  class Machine;
  std::vector<Value> values_;
  Id root_ = 0;
};

}  // namespace petroglyph
