#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "base/error.h"
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

// std::to_chars and std::from_chars depend on no locale and allocate nothing. Where a standard library lacks them for
// floating-point numbers, as libc++ did, printf and strtod take their place, with the locale's decimal point exchanged.
std::string number_text(double value, int digits) {
  if (std::isnan(value)) return "nan";  // never "-nan"
#ifdef __cpp_lib_to_chars
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits).ptr};
#else
  std::string out = text("%.*g", digits, value);
  const size_t point = out.find(std::localeconv()->decimal_point);
  return point == std::string::npos ? out : out.replace(point, std::strlen(std::localeconv()->decimal_point), ".");
#endif
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

std::string csv_quoted(const std::string& words) {
  std::string out = "\"";
  for (const char c : words) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string csv_cell(const std::string& words) {
  return words.find_first_of(",\"\r\n") == std::string::npos ? words : csv_quoted(words);
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

namespace {

template <class Integer>
std::optional<Integer> parse_whole(std::string_view digits) {
  Integer value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, value);
  if (problem != std::errc() || stop != end) return {};
  return value;
}

}  // namespace

std::optional<double> parse_number(std::string_view digits) {
  const bool plain = digits.find_first_not_of("0123456789+-.eE") == std::string_view::npos;  // no "inf", no "0x1p3"
  if (digits.empty() || !plain || digits[0] == '+') return {};
#ifdef __cpp_lib_to_chars
  double value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, value);
  if (problem == std::errc::not_enough_memory) throw std::bad_alloc();  // g++ 11's copies long numbers
  if (problem != std::errc::result_out_of_range)
    return problem == std::errc() && stop == end ? std::optional(value) : std::nullopt;
#endif
  // What is out of range is too large, or so small that it is 0.
  std::string copy(digits);
  const size_t point = copy.find('.');
  if (point != std::string::npos) copy.replace(point, 1, std::localeconv()->decimal_point);
  char* last = nullptr;
  const double nearest = std::strtod(copy.c_str(), &last);
  return *last == 0 && std::isfinite(nearest) ? std::optional(nearest) : std::nullopt;
}

std::optional<int64_t> parse_integer(std::string_view digits) { return parse_whole<int64_t>(digits); }
std::optional<uint64_t> parse_unsigned(std::string_view digits) { return parse_whole<uint64_t>(digits); }

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

// The characters of `bytes`, with escape(code, bytes of it) in place of those that are not printable, or not UTF-8.
template <class Escape>
std::string escaped(std::string_view bytes, Escape escape) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t start = at;
    const char32_t code = next_character(bytes, at);
    const std::string_view character = bytes.substr(start, at - start);
    if (code == NO_CHARACTER || is_unprintable(code))
      out += escape(code, character);
    else
      out += character;
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

namespace {

std::string as_escape(char32_t code, std::string_view character) {
  if (code == '\n') return "\\n";
  if (character.size() == 1) return text("\\x%02X", static_cast<unsigned char>(character[0]));
  return text("\\u%04X", static_cast<unsigned>(code));
}

bool is_space(char32_t code) { return code == '\n' || code == '\t'; }

}  // namespace

std::string in_one_line(std::string_view bytes) { return escaped(bytes, as_escape); }

void print(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const std::string words = formatted(format, arguments);
  va_end(arguments);
  const std::string shown = escaped(words, [](char32_t code, std::string_view character) {
    return is_space(code) ? std::string(character) : as_escape(code, character);
  });
  std::fwrite(shown.data(), 1, shown.size(), stdout);  // a failure shows at the end (flush_output())
}

std::string markup_text(std::string_view words) {
  const std::string shown = escaped(
      words, [](char32_t code, std::string_view character) { return is_space(code) ? std::string(character) : "?"; });
  std::string out;
  for (const char c : shown) {
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

namespace {

// Letters inserted, left out, replaced, or two neighbours swapped (Damerau-Levenshtein distance).
int typing_errors(std::string_view a, std::string_view b) {
  const size_t rows = a.size() + 1, columns = b.size() + 1;
  std::vector<int> errors(rows * columns);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      int& here = errors[i * columns + j];
      if (i == 0 || j == 0) {
        here = static_cast<int>(i + j);
        continue;
      }
      here = std::min(errors[(i - 1) * columns + j], errors[i * columns + j - 1]) + 1;
      here = std::min(here, errors[(i - 1) * columns + j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        here = std::min(here, errors[(i - 2) * columns + j - 2] + 1);
      }
    }
  }
  return errors.back();
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& words) {
  if (word.size() > 64) return "";
  std::string nearest;
  int fewest = std::max(1, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string& candidate : words) {
    const bool is_prefix = word.size() >= 3 && candidate.compare(0, word.size(), word) == 0;
    const int errors = is_prefix ? 1 : typing_errors(word, candidate);
    if (errors < fewest) {
      fewest = errors;
      nearest = candidate;
    }
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

std::string read_file(const std::string& path) {
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "rb"), close);
  if (!file) throw Error(path + ": cannot read: " + std::strerror(errno));
  std::string bytes, block(65536, '\0');
  while (const size_t count = std::fread(block.data(), 1, block.size(), file.get())) bytes.append(block, 0, count);
  if (std::ferror(file.get())) throw Error(path + ": cannot read: " + std::strerror(errno));
  refuse_pointer(path, bytes);
  return bytes;
}

std::string read_regular_file(const std::string& path) { return std::string(MappedFile(path).text()); }

}  // namespace petroglyph
