// JSON: what configurations, checkpoint headers and saved options are written in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace petroglyph {

// A value. Numbers are doubles, strings are UTF-8, objects keep the order in which their members were set.
class Json {
 public:
  enum class Kind { Null, Boolean, Number, String, Array, Object };
  using Member = std::pair<std::string, Json>;

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  Json(double value);
  Json(std::string value);
  Json(const char* value) : Json(std::string(value)) {}
  // Throws an Error for a number that a double does not hold.
  template <class Integer, std::enable_if_t<std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>, int> = 0>
  Json(Integer value) : Json(static_cast<double>(value)) {
    integer();
  }
  template <class T>
  Json(T* pointer) = delete;  // it would become a bool

  static Json array();
  static Json object();

  // The one value that `text` holds; `origin` (a file's name) opens the message of an Error.
  static Json parse(std::string_view text, const std::string& origin);

  // Building. set() replaces the value of a key that is already there; append(), of a key known to be new, does not
  // look for it.
  Json& set(const std::string& key, Json value);
  Json& append(const std::string& key, Json value);
  Json& push(Json value);

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool is(Kind kind) const { return kind == this->kind(); }

  // Each throws an Error when the value is of another kind; integer() also when it is not a whole number.
  bool boolean() const { return get<bool>(Kind::Boolean); }
  double number() const { return get<double>(Kind::Number); }
  int64_t integer() const;
  const std::string& string() const { return get<std::string>(Kind::String); }
  const std::vector<Json>& items() const { return get<std::vector<Json>>(Kind::Array); }
  const std::vector<Member>& members() const { return get<std::vector<Member>>(Kind::Object); }

  // A member of an object: find() gives nullptr when there is none, at() throws.
  const Json* find(std::string_view key) const;
  const Json& at(std::string_view key) const;

  // Compact, on one line. Parsing it gives an equal value; an equal value gives the same text.
  std::string text() const;

  friend bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }
  friend bool operator!=(const Json& a, const Json& b) { return !(a == b); }

  static constexpr int MAX_DEPTH = 64;          // what is nested deeper attacks the stack
  static constexpr int MAX_VALUES = 4'000'000;  // more attack the memory: one of two bytes, "0,", takes 40
  static constexpr int64_t MAX_INTEGER = (int64_t(1) << 53) - 1;  // up to here a double tells whole numbers apart

 private:
  friend class JsonParser;

  void expect(Kind kind) const;
  template <class Value>
  const Value& get(Kind kind) const {
    expect(kind);
    return *std::get_if<Value>(&value_);
  }
  void append_to(std::string& out) const;

  // In the order of the kinds.
  std::variant<std::monostate, bool, double, std::string, std::vector<Json>, std::vector<Member>> value_;
};

// "a number", "an object", …: what messages call a kind.
const char* name_of(Json::Kind kind);

}  // namespace petroglyph
