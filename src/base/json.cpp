#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

// Recursive descent over the text; `at` is always the first byte not yet understood.
class JsonParser {
 public:
  JsonParser(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  Json document() {
    at_ = utf8_prefix(text_);
    if (at_ < text_.size()) fail("expected UTF-8");
    at_ = 0;
    Json value = parse_value(0);
    skip_space();
    if (at_ < text_.size()) fail("expected the end");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& expected, std::string found = "") const {
    if (found.empty()) found = at_ == text_.size() ? "the end" : "'" + in_one_line(text_.substr(at_, 1)) + "'";
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw Error(origin_ + ": line " + std::to_string(line) + ": " + expected + ", found " + found);
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size()); }

  bool take(char wanted) {
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Json parse_value(int depth) {
    if (++values_ > Json::MAX_VALUES) fail("expected at most " + with_commas(Json::MAX_VALUES) + " values", "one more");
    skip_space();
    if (take('{')) return parse_object(depth + 1);
    if (take('[')) return parse_array(depth + 1);
    if (take('"')) return parse_string();
    if (take_word("true")) return true;
    if (take_word("false")) return false;
    if (take_word("null")) return Json();
    if (at_ < text_.size() && (text_[at_] == '-' || (text_[at_] >= '0' && text_[at_] <= '9'))) return parse_number();
    fail("expected a value");
  }

  void expect_shallow(int depth) const {
    if (depth > Json::MAX_DEPTH) fail("expected at most " + std::to_string(Json::MAX_DEPTH) + " levels", "one more");
  }

  Json parse_object(int depth) {
    expect_shallow(depth);
    Json object = Json::object();
    skip_space();
    if (take('}')) return object;
    do {
      skip_space();
      if (!take('"')) fail("expected a key in double quotes");
      const std::string key = parse_string();
      skip_space();
      if (!take(':')) fail("expected ':' after a key");
      object.append(key, parse_value(depth));
      skip_space();
    } while (take(','));
    expect_once(object);
    if (!take('}')) fail("expected ',' or '}'");
    return object;
  }

  void expect_once(const Json& object) const {
    std::vector<std::string_view> keys;
    for (const Json::Member& member : object.members()) keys.push_back(member.first);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) fail("expected each key once", "\"" + std::string(*twice) + "\" again");
  }

  Json parse_array(int depth) {
    expect_shallow(depth);
    Json array = Json::array();
    skip_space();
    if (take(']')) return array;
    do {
      array.push(parse_value(depth));
      skip_space();
    } while (take(','));
    if (!take(']')) fail("expected ',' or ']'");
    return array;
  }

  Json parse_number() {
    const size_t start = at_;
    at_ = std::min(text_.find_first_not_of("0123456789+-.eE", at_), text_.size());
    const std::string_view number = text_.substr(start, at_ - start);
    const std::optional<double> value = petroglyph::parse_number(number);
    const auto digit = [&](size_t i) { return i < number.size() && number[i] >= '0' && number[i] <= '9'; };
    const size_t first = number[0] == '-', point = std::min(number.find('.'), number.size());
    const bool odd = !digit(first) || (number[first] == '0' && digit(first + 1)) ||  // "-.5", "01"
                     (point < number.size() && !digit(point + 1));                   // "1."
    if (!value || odd) fail("expected a number that fits a double", std::string(number.substr(0, 40)));
    return *value;
  }

  std::string parse_string() {
    std::string out;
    while (!take('"')) {
      if (at_ == text_.size()) fail("expected '\"' at the end of a string");
      if (static_cast<unsigned char>(text_[at_]) < 0x20) fail("expected no control character in a string");
      if (take('\\')) {
        parse_escape(out);
      } else {
        out += text_[at_++];
      }
    }
    return out;
  }

  void parse_escape(std::string& out) {
    constexpr std::string_view NAMES = "\"\\/bfnrt", MEANINGS = "\"\\/\b\f\n\r\t";
    const size_t which = at_ < text_.size() ? NAMES.find(text_[at_]) : std::string_view::npos;
    if (which != std::string_view::npos) {
      out += MEANINGS[which];
      ++at_;
      return;
    }
    if (!take('u')) fail("expected an escape such as \\n or \\u0041");
    unsigned code = hex4();
    if (code >= 0xDC00 && code < 0xE000) fail("expected the first half of a surrogate pair before its second");
    if (code >= 0xD800 && code < 0xDC00) {
      if (!take_word("\\u")) fail("expected the second half of a surrogate pair");
      const unsigned second = hex4();
      if (second < 0xDC00 || second >= 0xE000) fail("expected the second half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
    }
    append_utf8(out, code);
  }

  unsigned hex4() {
    unsigned code = 0;
    const char* const digits = text_.data() + at_;
    const char* const stop = std::from_chars(digits, digits + std::min<size_t>(4, text_.size() - at_), code, 16).ptr;
    at_ += static_cast<size_t>(stop - digits);
    if (stop != digits + 4) fail("expected four hexadecimal digits after \\u");
    return code;
  }

  static void append_utf8(std::string& out, unsigned code) {
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes after the first
    const unsigned lead = more == 0 ? 0 : 0xFF00u >> (more + 1) & 0xFF;
    out += static_cast<char>(lead | code >> 6 * more);
    for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> 6 * i & 0x3F));
  }

  std::string_view text_;
  const std::string& origin_;
  size_t at_ = 0;
  int values_ = 0;
};

namespace {

void append_string(std::string& out, const std::string& value) {
  out += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += text("\\u%04x", c);
    } else {
      out += c;
    }
  }
  out += '"';
}

void expect_utf8(const std::string& value) {
  if (!is_utf8(value)) throw Error("expected UTF-8 text, byte " + std::to_string(utf8_prefix(value)) + " is not");
}

}  // namespace

const char* name_of(Json::Kind kind) {
  constexpr const char* NAMES[] = {"null", "true or false", "a number", "a string", "a list", "an object"};
  return NAMES[static_cast<size_t>(kind)];
}

Json::Json(double value) : value_(value) {
  if (!std::isfinite(value)) throw Error("JSON has no number for " + number_text(value, 9));
}

Json::Json(std::string value) : value_(std::move(value)) { expect_utf8(string()); }

Json Json::array() {
  Json value;
  value.value_.emplace<std::vector<Json>>();
  return value;
}

Json Json::object() {
  Json value;
  value.value_.emplace<std::vector<Member>>();
  return value;
}

Json Json::parse(std::string_view text, const std::string& origin) { return JsonParser(text, origin).document(); }

Json& Json::set(const std::string& key, Json value) {
  expect(Kind::Object);
  for (Member& member : *std::get_if<std::vector<Member>>(&value_)) {
    if (member.first != key) continue;
    member.second = std::move(value);
    return *this;
  }
  return append(key, std::move(value));
}

Json& Json::append(const std::string& key, Json value) {
  expect(Kind::Object);
  expect_utf8(key);
  std::get_if<std::vector<Member>>(&value_)->emplace_back(key, std::move(value));
  return *this;
}

Json& Json::push(Json value) {
  expect(Kind::Array);
  std::get_if<std::vector<Json>>(&value_)->push_back(std::move(value));
  return *this;
}

void Json::expect(Kind kind) const {
  if (!is(kind)) throw Error(std::string("expected ") + name_of(kind) + ", found " + name_of(this->kind()));
}

int64_t Json::integer() const {
  const double value = number();
  if (value != std::floor(value) || std::fabs(value) > double(MAX_INTEGER))
    throw Error("expected a whole number, found " + exact_text(value));
  return static_cast<int64_t>(value);
}

const Json* Json::find(std::string_view key) const {
  for (const Member& member : members()) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) throw Error("expected a key \"" + std::string(key) + "\"");
  return *value;
}

std::string Json::text() const {
  std::string out;
  append_to(out);
  return out;
}

void Json::append_to(std::string& out) const {
  const char* between = "";
  const auto separate = [&] { out += std::exchange(between, ","); };
  switch (kind()) {
    case Kind::Null: out += "null"; break;
    case Kind::Boolean: out += boolean() ? "true" : "false"; break;
    case Kind::Number: out += exact_text(number()); break;
    case Kind::String: append_string(out, string()); break;
    case Kind::Array:
      out += '[';
      for (const Json& item : items()) separate(), item.append_to(out);
      out += ']';
      break;
    case Kind::Object:
      out += '{';
      for (const auto& [key, value] : members()) {
        separate();
        append_string(out, key);
        out += ':';
        value.append_to(out);
      }
      out += '}';
      break;
  }
}

}  // namespace petroglyph
