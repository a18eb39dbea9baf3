// What every C++ test is written with: named checks in named groups, one line a check.
//
//   void numbers(Test& test) {
//     test.equal("sum", 1 + 1, 2);
//     CHECK(std::sqrt(4.0) == 2);
//     test.throws("negative", "out of range", [] { root(-1); });
//   }
//   int main(int argc, char** argv) {
//     Test test(argc, argv);
//     test.run("numbers", numbers);
//     return test.finish();
//   }
//
// `program` runs all groups, `program numbers` one of them, `program --list` names them. The last line is
// "N passed, N failed"; the status is 1 when a check failed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <unistd.h>

namespace petroglyph {

// A number's bytes, the lowest first.
inline std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xFF);
  return out;
}

// A value as a failure shows it: floating-point numbers also in hexadecimal, which hides no bit.
template <class T>
std::string shown(const T& value) {
  std::ostringstream out;
  if constexpr (std::is_floating_point_v<T>) {
    out.precision(std::is_same_v<T, float> ? 9 : 17);
    out << value << " (" << std::hexfloat << value << ")";
  } else if constexpr (std::is_convertible_v<T, std::string>) {
    out << '"' << std::string(value) << '"';
  } else if constexpr (std::is_same_v<T, bool>) {
    out << (value ? "true" : "false");
  } else if constexpr (std::is_enum_v<T>) {
    out << static_cast<int64_t>(value);
  } else if constexpr (std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t>) {
    out << int(value);
  } else {
    out << value;
  }
  return out.str();
}

// Equal bits for floats (so that NaN equals itself and 0 differs from -0), == for the rest.
template <class A, class B>
bool same(const A& a, const B& b) {
  if constexpr (std::is_floating_point_v<A> && std::is_same_v<A, B>) {
    return std::memcmp(&a, &b, sizeof a) == 0;
  } else if constexpr (std::is_convertible_v<A, std::string> && std::is_convertible_v<B, std::string>) {
    return std::string(a) == std::string(b);
  } else if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    using Common = std::common_type_t<A, B>;
    return Common(a) == Common(b) && (a < A(0)) == (b < B(0));
  } else {
    return a == b;
  }
}

// A name or detail as part of one line: line ends and bytes that no terminal shows are written as escapes.
inline std::string one_line(const std::string& words) {
  std::string out;
  for (const char c : words) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F && byte < 0xF5) {
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else {
      char escape[5];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      out += escape;
    }
  }
  return out;
}

// What a function complains of; empty where it does not.
template <class Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

class Test {
 public:
  Test(int argc, char** argv) : program_(argc > 0 ? argv[0] : "test") {
    for (int i = 1; i < argc; ++i) {
      if (std::string(argv[i]) == "--list") {
        list_ = true;
      } else {
        wanted_.push_back(argv[i]);
      }
    }
  }

  // Runs a group of checks if it was chosen; a group that throws has failed.
  template <class Function>
  void run(const std::string& group, Function function) {
    groups_.push_back(group);
    if (list_) {
      std::printf("%s\n", group.c_str());
      return;
    }
    if (!wanted_.empty() && std::find(wanted_.begin(), wanted_.end(), group) == wanted_.end()) return;
    group_ = group;
    const long long before = passed_ + failed_ + skipped_;
    try {
      if constexpr (std::is_invocable_v<Function, Test&>) {
        function(*this);
      } else {
        function();
      }
    } catch (const std::exception& error) {
      check("runs to its end", false, std::string("threw ") + error.what());
    }
    if (passed_ + failed_ + skipped_ == before) check("checks something", false);
  }

  // `details` are shown on failure only. Gives `condition` back, so that a loop can stop at its first failure.
  bool check(const std::string& name, bool condition, const std::string& details = "") {
    const std::string full = group_ + ": " + one_line(name);
    if (condition) {
      ++passed_;
      std::printf("ok   %s\n", full.c_str());
      return true;
    }
    ++failed_;
    std::printf("FAIL %s%s%s\n     repeat: %s \"%s\"\n", full.c_str(), details.empty() ? "" : ": ",
                one_line(details).c_str(), program_.c_str(), group_.c_str());
    std::fflush(stdout);
    return false;
  }

  template <class A, class B>
  bool equal(const std::string& name, const A& found, const B& expected) {
    const bool good = same(found, expected);
    return check(name, good, good ? "" : "found " + shown(found) + ", expected " + shown(expected));
  }

  // Lists element by element; the first that differs is shown.
  template <class T>
  bool equal(const std::string& name, const std::vector<T>& found, const std::vector<T>& expected) {
    const size_t common = std::min(found.size(), expected.size());
    for (size_t i = 0; i < common; ++i) {
      const T a = found[i], b = expected[i];
      if (same(a, b)) continue;
      return check(name, false, "element " + std::to_string(i) + ": found " + shown(a) + ", expected " + shown(b));
    }
    return check(name, found.size() == expected.size(),
                 std::to_string(found.size()) + " elements, expected " + std::to_string(expected.size()));
  }

  // The function must throw something whose message contains `words`.
  template <class Function>
  bool throws(const std::string& name, const std::string& words, Function function) {
    try {
      function();
    } catch (const std::exception& error) {
      const std::string message = error.what();
      return check(name, message.find(words) != std::string::npos,
                   "threw \"" + message + "\", expected \"" + words + "\"");
    }
    return check(name, false, "threw nothing, expected \"" + words + "\"");
  }

  // The same; the words are the check's name.
  template <class Function>
  bool throws(const std::string& words, Function function) {
    return throws(words, words, function);
  }

  // Says what cannot be tested here and why; neither passed nor failed.
  void skip(const std::string& name, const std::string& why) {
    ++skipped_;
    std::printf("skip %s: %s: %s\n", group_.c_str(), name.c_str(), why.c_str());
  }

  // The closing line; gives the status for main to return.
  int finish() {
    if (list_) return 0;
    for (const std::string& name : wanted_) {
      if (std::find(groups_.begin(), groups_.end(), name) != groups_.end()) continue;
      std::printf("FAIL %s: no such group (%s --list names them)\n", name.c_str(), program_.c_str());
      ++failed_;
    }
    std::printf("%lld passed, %lld failed\n", passed_, failed_);
    return failed_ == 0 ? 0 : 1;
  }

  const std::string& program() const { return program_; }

 private:
  std::string program_, group_;
  std::vector<std::string> wanted_, groups_;
  bool list_ = false;
  long long passed_ = 0, failed_ = 0, skipped_ = 0;
};

// A check named by its own text; needs a `Test& test` in scope.
#define CHECK(...) test.check(#__VA_ARGS__, bool(__VA_ARGS__), std::string("line ") + std::to_string(__LINE__))

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  if (!(out << bytes).flush()) throw std::runtime_error(path + ": cannot be written");
}

// ‖found − expected‖ ≤ tolerance ‖expected‖
template <class T>
void near(Test& test, const std::string& name, const std::vector<T>& found, const std::vector<T>& expected,
          double tolerance) {
  double difference = found.size() == expected.size() ? 0 : INFINITY, norm = 0;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  const double distance = std::sqrt(difference / norm);
  test.check(name, distance <= tolerance, "relative distance " + shown(distance));
}

// A new empty folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "petroglyph.XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder: " + pattern);
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string read(const std::string& name) const { return read_bytes(file(name)); }
  void write(const std::string& name, const std::string& bytes) const { write_bytes(file(name), bytes); }
  bool exists(const std::string& name) const { return std::filesystem::exists(file(name)); }

 private:
  std::string path_;
};

}  // namespace petroglyph
