#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "base/mapped_file.h"

namespace petroglyph {

namespace {

std::string formatted(const char* format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  std::string out(size > 0 ? size_t(size) : 0, '\0');
  std::vsnprintf(out.data(), out.size() + 1, format, arguments);
  return out;
}

}  // namespace

std::string text(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string out = formatted(format, arguments);
  va_end(arguments);
  return out;
}

// Programs never call setlocale(): printf and strtod use the C locale, whatever the user's is.
std::string number_text(double value, int digits) {
  return std::isnan(value) ? "nan" : text("%.*g", digits, value);  // never "-nan"
}

std::string cell_text(double value) { return std::isfinite(value) ? number_text(value, 9) : ""; }

std::string exact_text(double value) {
  constexpr double LARGEST = 9007199254740992;  // 2^53
  const bool negative_zero = value == 0 && std::signbit(value);
  if (std::fabs(value) <= LARGEST && value == std::floor(value) && !negative_zero) {
    return std::to_string(static_cast<long long>(value));
  }
  for (int digits = 15; digits < 17; ++digits) {
    std::string shorter = number_text(value, digits);
    if (parse_number(shorter) == value) return shorter;
  }
  return number_text(value, 17);
}

std::string csv_cell(const std::string& words) {
  if (words.find_first_of(",\"\r\n") == std::string::npos) return words;
  std::string out = "\"";
  for (const char c : words) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string with_commas(int64_t value) {
  std::string digits = std::to_string(value);
  const int first = value < 0 ? 1 : 0;
  for (int i = static_cast<int>(digits.size()) - 3; i > first; i -= 3) digits.insert(size_t(i), ",");
  return digits;
}

std::string counted(int64_t count, const char* noun) {
  return with_commas(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "?";
  const long long whole = std::llround(seconds);
  const long long hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return text("%lld:%02lld:%02lld", hours, minutes, whole % 60);
  return text("%lld:%02lld", minutes, whole % 60);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  if (shape.empty()) return "scalar";
  std::string out;
  for (int64_t extent : shape) out += (out.empty() ? "" : "×") + std::to_string(extent);
  return out;
}

std::optional<double> parse_number(std::string_view digits) {
  const bool plain = digits.find_first_not_of("0123456789+-.eE") == std::string_view::npos;  // no "inf", no "0x1p3"
  if (digits.empty() || !plain || digits[0] == '+') return {};
  const std::string copy(digits);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  return *end == 0 && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<int64_t> parse_integer(std::string_view digits) {
  int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, value);
  return problem == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

char32_t next_character(std::string_view bytes, size_t& at) {
  const size_t start = at++;
  const auto lead = static_cast<unsigned char>(bytes[start]);
  if (lead < 0x80) return lead;
  const size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || start + length > bytes.size()) return NO_CHARACTER;
  char32_t code = lead & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[start + i]);
    // The second byte is where overlong forms, surrogates and what lies beyond U+10FFFF show.
    const int low = i > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const int high = i > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte < low || byte > high) return NO_CHARACTER;
    code = code << 6 | (byte & 0x3F);
  }
  at = start + length;
  return code;
}

namespace {

// Control characters (C0, DEL, C1), marks that change the direction of text, line ends that only some programs
// recognize, and what XML forbids.
bool is_unprintable(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x61C || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF || code == 0xFFFE ||
         code == 0xFFFF;
}

// The characters of `bytes`, with \n, \x07 or \u202E in place of those that are not printable, or not UTF-8. With
// `layout`, line ends and tabs stay.
std::string escaped(std::string_view bytes, bool layout) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t start = at;
    const char32_t code = next_character(bytes, at);
    const std::string_view character = bytes.substr(start, at - start);
    if ((code != NO_CHARACTER && !is_unprintable(code)) || (layout && (code == '\n' || code == '\t')))
      out += character;
    else if (code == '\n')
      out += "\\n";
    else if (character.size() == 1)
      out += text("\\x%02X", static_cast<unsigned char>(character[0]));
    else
      out += text("\\u%04X", static_cast<unsigned>(code));
  }
  return out;
}

}  // namespace

size_t utf8_prefix(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t start = at;
    if (next_character(bytes, at) == NO_CHARACTER) return start;
  }
  return bytes.size();
}

std::string in_one_line(std::string_view bytes) { return escaped(bytes, false); }

void print(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const std::string shown = escaped(formatted(format, arguments), true);
  va_end(arguments);
  std::fwrite(shown.data(), 1, shown.size(), stdout);  // a failure shows at the end (flush_output())
}

std::string markup_text(std::string_view words) {
  std::string out;
  for (const char c : escaped(words, true)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& words) {
  std::string nearest;
  size_t most = std::max<size_t>(2, (word.size() - 1) / 2);  // shared letters: at least three, and half of the word
  for (const std::string& candidate : words) {
    const auto end = std::mismatch(word.begin(), word.end(), candidate.begin(), candidate.end()).first;
    const auto shared = static_cast<size_t>(end - word.begin());
    if (shared <= most) continue;
    most = shared;
    nearest = candidate;
  }
  return nearest;
}

std::string_view trim(std::string_view line) {
  const char* const SPACE = " \t\r\n";
  const size_t first = line.find_first_not_of(SPACE);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(SPACE) - first + 1);
}

std::vector<std::string> split(std::string_view words, char between) {
  std::vector<std::string> parts;
  for (size_t at = 0;;) {
    const size_t end = words.find(between, at);
    parts.emplace_back(words.substr(at, end - at));
    if (end == std::string_view::npos) return parts;
    at = end + 1;
  }
}

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) out += (i > 0 ? between : "") + words[i];
  return out;
}

std::string read_file(const std::string& path) { return std::string(MappedFile(path).text()); }

}  // namespace petroglyph
