// Text: numbers in and out of it, and readable forms of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace petroglyph {

// What printf would print.
std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));

// %.*g; digits = 9 brings every float back, 17 every double. NaN is "nan".
std::string number_text(double value, int digits);
// Nine digits of it in a CSV file: empty where there is no number.
std::string cell_text(double value);

// The shortest of 15, 16 or 17 digits that reads back as the same double; whole numbers up to 2^53 without an exponent.
std::string exact_text(double value);

std::string with_commas(int64_t value);                     // 1,204,224
std::string csv_cell(const std::string& words);             // as they are, quoted where a table of commas needs it
std::string counted(int64_t count, const char* noun);       // 1 token, 1,204 tokens
std::string duration_text(double seconds);                  // 0:42, 12:03, 1:05:09
std::string shape_text(const std::vector<int64_t>& shape);  // 192×64; "scalar" when empty

// The whole of `digits` as a number: no space, no sign but '-', no hexadecimal, no "inf". Empty when it is something
// else or too large.
std::optional<double> parse_number(std::string_view digits);
std::optional<int64_t> parse_integer(std::string_view digits);

// The character that begins at `at`, which is moved behind it; one byte, and NO_CHARACTER, where none does.
constexpr char32_t NO_CHARACTER = 0xFFFFFFFF;
char32_t next_character(std::string_view bytes, size_t& at);

// How many bytes, from the first, are well-formed UTF-8 (no overlong forms, no surrogates).
size_t utf8_prefix(std::string_view bytes);
inline bool is_utf8(std::string_view bytes) { return utf8_prefix(bytes) == bytes.size(); }

// Text from a file or a command line, made safe for a terminal: in one line, with control characters, marks that change
// the direction of writing, and bytes that are not UTF-8 as \n, \x07 and \u202E.
std::string in_one_line(std::string_view bytes);

// printf for text that may come from files and command lines: escaped like in_one_line(), but for line ends and tabs.
void print(const char* format, ...) __attribute__((format(printf, 1, 2)));

// The same for HTML, SVG and XML, with &, <, > and quotes spelt out.
std::string markup_text(std::string_view words);

// The word that was probably meant: the one with the longest beginning in common, or "" if all are too short.
std::string nearest_word(std::string_view word, const std::vector<std::string>& words);

std::string_view trim(std::string_view line);
std::string join(const std::vector<std::string>& words, const char* between);
std::vector<std::string> split(std::string_view words, char between);  // "a,,b" gives three, one of them empty

// All bytes of a file, or an Error that names it and the reason. A pipe, which may block, or a device, which may never
// end, is an Error.
std::string read_file(const std::string& path);

}  // namespace petroglyph
