#include "base/json.h"

#include <cmath>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

// Recursive descent over the text; `at` is always the first byte not yet understood.
class JsonParser {
 public:
  JsonParser(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  Json document() {
    const size_t good = utf8_prefix(text_);
    if (good < text_.size()) {
      at_ = good;
      fail("expected UTF-8");
    }
    Json value = parse_value(0);
    skip_space();
    if (at_ < text_.size()) fail("expected the end");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const { fail(expected, what_is_here()); }

  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    size_t line = 1;
    for (size_t i = 0; i < at_; ++i) line += text_[i] == '\n';
    throw Error(origin_ + ": line " + std::to_string(line) + ": " + expected + ", found " + found);
  }

  std::string what_is_here() const {
    if (at_ == text_.size()) return "the end";
    const auto byte = static_cast<unsigned char>(text_[at_]);
    return byte > 0x20 && byte < 0x7F ? text("'%c'", byte) : text("byte 0x%02X", byte);
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

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
    std::unordered_set<std::string> seen;
    skip_space();
    if (take('}')) return object;
    do {
      skip_space();
      const size_t start = at_;
      if (!take('"')) fail("expected a key in double quotes");
      std::string key = parse_string();
      if (!seen.insert(key).second) {
        at_ = start;
        fail("expected each key once", "\"" + key + "\" again");
      }
      skip_space();
      if (!take(':')) fail("expected ':' after a key");
      Json value = parse_value(depth);
      object.append(key, std::move(value));
      skip_space();
    } while (take(','));
    if (!take('}')) fail("expected ',' or '}'");
    return object;
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
    take('-');
    if (!take('0')) digits();
    if (take('.')) digits();
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      digits();
    }
    const std::string_view number = text_.substr(start, at_ - start);
    const std::optional<double> value = petroglyph::parse_number(number);
    if (!value) fail("expected a number that fits a double", std::string(number.substr(0, 40)));
    return *value;
  }

  void digits() {
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == start) fail("expected a digit");
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
    for (int i = 0; i < 4; ++i) {
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("expected four hexadecimal digits after \\u");
      code = code * 16 + static_cast<unsigned>(digit);
      ++at_;
    }
    return code;
  }

  static void append_utf8(std::string& out, unsigned code) {
    const auto byte = [&](unsigned value) { out += static_cast<char>(value); };
    if (code < 0x80) {
      byte(code);
    } else if (code < 0x800) {
      byte(0xC0 | code >> 6);
      byte(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      byte(0xE0 | code >> 12);
      byte(0x80 | (code >> 6 & 0x3F));
      byte(0x80 | (code & 0x3F));
    } else {
      byte(0xF0 | code >> 18);
      byte(0x80 | (code >> 12 & 0x3F));
      byte(0x80 | (code >> 6 & 0x3F));
      byte(0x80 | (code & 0x3F));
    }
  }

  std::string_view text_;
  const std::string& origin_;
  size_t at_ = 0;
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
  switch (kind) {
    case Json::Kind::Null: return "null";
    case Json::Kind::Boolean: return "true or false";
    case Json::Kind::Number: return "a number";
    case Json::Kind::String: return "a string";
    case Json::Kind::Array: return "a list";
    case Json::Kind::Object: return "an object";
  }
  return "nothing";
}

Json::Json(bool value) : kind_(Kind::Boolean), boolean_(value) {}

Json::Json(double value) : kind_(Kind::Number), number_(value) {
  if (!std::isfinite(value)) throw Error("JSON has no number for " + number_text(value, 9));
}

Json::Json(std::string value) : kind_(Kind::String), string_(std::move(value)) { expect_utf8(string_); }

Json::Json(const char* value) : Json(std::string(value)) {}

Json Json::array() {
  Json value;
  value.kind_ = Kind::Array;
  return value;
}

Json Json::object() {
  Json value;
  value.kind_ = Kind::Object;
  return value;
}

Json Json::parse(std::string_view text, const std::string& origin) { return JsonParser(text, origin).document(); }

Json& Json::set(const std::string& key, Json value) {
  expect(Kind::Object);
  for (Member& member : members_) {
    if (member.first != key) continue;
    member.second = std::move(value);
    return *this;
  }
  return append(key, std::move(value));
}

Json& Json::append(const std::string& key, Json value) {
  expect(Kind::Object);
  expect_utf8(key);
  members_.emplace_back(key, std::move(value));
  return *this;
}

Json& Json::push(Json value) {
  expect(Kind::Array);
  items_.push_back(std::move(value));
  return *this;
}

void Json::refuse_integer(const std::string& digits) {
  throw Error("JSON holds whole numbers up to 2^53 exactly, not " + digits);
}

void Json::expect(Kind kind) const {
  if (kind_ != kind) throw Error(std::string("expected ") + name_of(kind) + ", found " + name_of(kind_));
}

bool Json::boolean() const {
  expect(Kind::Boolean);
  return boolean_;
}

double Json::number() const {
  expect(Kind::Number);
  return number_;
}

int64_t Json::integer() const {
  expect(Kind::Number);
  if (number_ != std::floor(number_) || std::fabs(number_) > double(MAX_INTEGER)) {
    throw Error("expected a whole number, found " + exact_text(number_));
  }
  return static_cast<int64_t>(number_);
}

const std::string& Json::string() const {
  expect(Kind::String);
  return string_;
}

const std::vector<Json>& Json::items() const {
  expect(Kind::Array);
  return items_;
}

const std::vector<Json::Member>& Json::members() const {
  expect(Kind::Object);
  return members_;
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
  switch (kind_) {
    case Kind::Null: out += "null"; break;
    case Kind::Boolean: out += boolean_ ? "true" : "false"; break;
    case Kind::Number: out += exact_text(number_); break;
    case Kind::String: append_string(out, string_); break;
    case Kind::Array:
      for (const Json& item : items_) {
        out += &item == &items_.front() ? '[' : ',';
        item.append_to(out);
      }
      out += items_.empty() ? "[]" : "]";
      break;
    case Kind::Object:
      for (const Member& member : members_) {
        out += &member == &members_.front() ? '{' : ',';
        append_string(out, member.first);
        out += ':';
        member.second.append_to(out);
      }
      out += members_.empty() ? "{}" : "}";
      break;
  }
}

bool operator==(const Json& a, const Json& b) {
  return a.kind_ == b.kind_ && a.boolean_ == b.boolean_ && a.number_ == b.number_ && a.string_ == b.string_ &&
         a.items_ == b.items_ && a.members_ == b.members_;
}

}  // namespace petroglyph
