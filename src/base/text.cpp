#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <locale>
#include <memory>
#include <sstream>

#include <sys/stat.h>

#include "base/error.h"

namespace petroglyph {

std::string text(const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string out(size > 0 ? size_t(size) : 0, '\0');
  std::vsnprintf(out.data(), out.size() + 1, format, again);
  va_end(again);
  return out;
}

std::string number_text(double value, int digits) {
  if (std::isnan(value)) return "nan";  // printf has "-nan" too
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out.precision(digits);
  out << value;
  return out.str();
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

size_t digits_from(std::string_view digits, size_t at) {
  while (at < digits.size() && digits[at] >= '0' && digits[at] <= '9') ++at;
  return at;
}

// -12, .5, 5., 1e-3: what from_chars would take, which not every standard library has for doubles.
bool looks_like_number(std::string_view digits) {
  const size_t first = !digits.empty() && digits[0] == '-' ? 1 : 0;
  size_t at = digits_from(digits, first);
  size_t count = at - first;
  if (at < digits.size() && digits[at] == '.') {
    const size_t after = digits_from(digits, at + 1);
    count += after - at - 1;
    at = after;
  }
  if (count == 0) return false;
  if (at < digits.size() && (digits[at] == 'e' || digits[at] == 'E')) {
    ++at;
    if (at < digits.size() && (digits[at] == '+' || digits[at] == '-')) ++at;
    const size_t after = digits_from(digits, at);
    if (after == at) return false;
    at = after;
  }
  return at == digits.size();
}

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
  if (!looks_like_number(digits)) return {};
  std::istringstream in{std::string(digits)};
  in.imbue(std::locale::classic());
  double value = 0;
  in >> value;
  // What is too small for a double some libraries call a failure, too; what is too large all do.
  if (!std::isfinite(value) || (in.fail() && std::fabs(value) >= 1)) return {};
  return value;
}

std::optional<int64_t> parse_integer(std::string_view digits) { return parse_whole<int64_t>(digits); }
std::optional<uint64_t> parse_unsigned(std::string_view digits) { return parse_whole<uint64_t>(digits); }

size_t utf8_prefix(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const auto lead = static_cast<unsigned char>(bytes[at]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (length == 0 || at + length > bytes.size()) return at;
    for (size_t i = 1; i < length; ++i) {
      const auto byte = static_cast<unsigned char>(bytes[at + i]);
      // The second byte is where overlong forms, surrogates and what lies beyond U+10FFFF show.
      const int low = i > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
      const int high = i > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
      if (byte < low || byte > high) return at;
    }
    at += length;
  }
  return at;
}

std::string in_one_line(std::string_view bytes) {
  const bool good = is_utf8(bytes);
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += c == '\n'                                                ? "\\n"
           : byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !good) ? text("\\x%02X", byte)
                                                                    : std::string(1, c);
  }
  return out;
}

std::string markup_text(std::string_view words) {
  std::string out;
  const bool good = is_utf8(words);
  for (const char c : words) {
    const auto byte = static_cast<unsigned char>(c);
    const bool shown = c == '\n' || c == '\t' || (byte >= 0x20 && byte != 0x7F && (byte < 0x80 || good));
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += shown ? c : '?';
    }
  }
  return out;
}

namespace {

// Letters inserted, left out, replaced, or two neighbours swapped.
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
    const bool begun = word.size() >= 3 && candidate.compare(0, word.size(), word) == 0;
    const int errors = begun ? 1 : typing_errors(word, candidate);
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
  std::string bytes;
  char block[65536];
  while (const size_t count = std::fread(block, 1, sizeof block, file.get())) bytes.append(block, count);
  if (std::ferror(file.get())) throw Error(path + ": cannot read: " + std::strerror(errno));
  return bytes;
}

std::string read_regular_file(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw Error(path + ": expected a file, found something else");
  return read_file(path);
}

}  // namespace petroglyph
