#include "ptx/text.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

namespace ptx {
namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' || c == '.';
}

size_t rounded_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

// Reads the text word by word.
class Reader {
 public:
  Reader(const std::string& text, std::string file) : text_(text), file_(std::move(file)) {}

  // Skips spaces and comments. Returns false at the end.
  bool more() {
    for (; at_ < text_.size(); ++at_) {
      if (text_.compare(at_, 2, "//") == 0) {
        at_ = std::min(text_.find('\n', at_), text_.size() - 1);
      } else if (!is_space(text_[at_])) {
        return true;
      }
    }
    return false;
  }
  char next() { return more() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("expected ") + c);
  }
  std::string word() {
    more();
    const size_t begin = at_;
    while (at_ < text_.size() && in_word(text_[at_])) ++at_;
    if (begin == at_) fail("expected a word");
    return text_.substr(begin, at_ - begin);
  }
  unsigned number() {
    const std::string digits = word();
    if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }) || digits.size() > 9)
      fail("expected a number, not " + digits);
    return static_cast<unsigned>(std::stoul(digits));
  }
  // Returns the text up to `stop`, and consumes `stop`.
  std::string until(char stop) {
    more();
    const size_t end = text_.find(stop, at_);
    if (end == std::string::npos) fail(std::string("expected ") + stop);
    std::string words = text_.substr(at_, end - at_);
    at_ = end + 1;
    return words;
  }
  [[noreturn]] void fail(const std::string& why) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw Fault(file_ + ":" + std::to_string(line) + ": " + why);
  }
  const std::string& file() const { return file_; }

  // Source position of what follows: ".loc FILE LINE COLUMN …".
  unsigned source = 0, line = 0;

 private:
  const std::string& text_;
  std::string file_;
  size_t at_ = 0;
};

std::string stripped(const std::string& s) {
  size_t begin = 0, end = s.size();
  while (begin < end && is_space(s[begin])) ++begin;
  while (end > begin && is_space(s[end - 1])) --end;
  return s.substr(begin, end - begin);
}

// Parses ".align 16 .b8 name[80]" or ".u64 name", appends the variable to the others and returns its name.
std::string read_variable(Reader& in, std::map<std::string, Variable>& all, size_t& bytes) {
  size_t alignment = 0;
  std::string type = in.word();
  if (type == ".align") {
    alignment = in.number();
    type = in.word();
  }
  const auto element = static_cast<size_t>(bits_of_type(type.substr(1))) / 8;
  if (element == 0) in.fail("a variable of type " + type);
  std::string name = in.word();
  if (name == ".ptr") {  // attributes of a pointer's target that the compiler knows
    for (name = in.word(); name == ".align" || name == ".global"; name = in.word())
      if (name == ".align") in.number();
  }
  size_t count = 1;
  if (in.take('[')) {
    count = in.next() == ']' ? 0 : in.number();
    in.expect(']');
  }
  bytes = rounded_up(bytes, std::max(alignment, element));
  all[name] = {bytes, element * count};
  bytes += element * count;
  return name;
}

constexpr unsigned MOST_REGISTERS = 1 << 20;  // the largest kernels of nvcc have a few thousand

void read_registers(Reader& in, Kernel& kernel) {
  const int bits = bits_of_type(in.word().substr(1));
  do {
    const std::string name = in.word();
    if (!in.take('<')) {
      kernel.registers[name] = bits;
      continue;
    }
    const unsigned count = in.number();
    if (count > MOST_REGISTERS) in.fail("more registers than " + std::to_string(MOST_REGISTERS));
    in.expect('>');
    for (unsigned i = 0; i < count; ++i) kernel.registers[name + std::to_string(i)] = bits;
  } while (in.take(','));
  in.expect(';');
}

void read_directive(Reader& in, const std::string& name, Kernel& kernel) {
  if (name == ".loc") {
    in.source = in.number();
    in.line = in.number();
    in.until('\n');
  } else if (name == ".pragma") {
    in.until(';');
  } else if (name == ".reg") {
    read_registers(in, kernel);
  } else if (name == ".shared") {
    read_variable(in, kernel.shared, kernel.shared_bytes);
    in.expect(';');
  } else {
    in.fail("unknown directive " + name);
  }
}

void read_instruction(Reader& in, Kernel& kernel) {
  Statement s;
  if (in.take('@')) {
    s.negated = in.take('!');
    s.guard = in.word();
  }
  if (in.next() == ';') in.fail("an instruction without a name");
  const std::string words = stripped(in.until(';'));
  const size_t end = std::min(words.find_first_of(" \t\n"), words.size());
  s.opcode = words.substr(0, end);
  s.operands = split_operands(words.substr(end));
  s.text = (s.guard.empty() ? "" : (s.negated ? "@!" : "@") + s.guard + " ") + words;
  std::replace(s.text.begin(), s.text.end(), '\t', ' ');
  s.file = in.source;
  s.line = in.line;
  kernel.statements.push_back(std::move(s));
}

void read_body(Reader& in, Kernel& kernel) {
  for (int depth = 1; depth > 0;) {
    if (in.take('{')) {
      ++depth;
    } else if (in.take('}')) {
      --depth;
    } else if (in.next() == '$') {
      const std::string label = in.word();
      in.expect(':');
      kernel.labels[label] = kernel.statements.size();
    } else if (in.next() == '.') {
      const std::string directive = in.word();
      read_directive(in, directive, kernel);
    } else {
      read_instruction(in, kernel);
    }
  }
}

std::string quoted(Reader& in) {
  in.expect('"');
  return in.until('"');
}

Kernel read_kernel(Reader& in, const std::string& launch_shared) {
  Kernel kernel;
  kernel.name = demangled(in.word());
  kernel.file = in.file();
  kernel.launch_shared = launch_shared;
  in.expect('(');
  while (!in.take(')')) {
    if (in.word() != ".param") in.fail("expected .param");
    read_variable(in, kernel.parameters, kernel.parameter_bytes);
    in.take(',');
  }
  while (!in.take('{')) {
    const std::string limit = in.word();
    if (limit == ".maxntid") {
      kernel.most_threads = in.number();
      while (in.take(',')) kernel.most_threads *= in.number();
    } else if (limit == ".minnctapersm") {
      in.number();
    } else {
      in.fail("unknown directive " + limit);
    }
  }
  read_body(in, kernel);
  return kernel;
}

// A constant c for which max.f32 of x and c is x > c ? x : c for every x, NaN and zeros included.
bool is_exact_bound(const std::string& operand) {
  if (operand.compare(0, 2, "0f") != 0) return false;
  const unsigned long bits = std::strtoul(operand.c_str() + 2, nullptr, 16);
  return (bits & 0x7fffffff) <= 0x7f800000 && bits != 0x80000000;
}

}  // namespace

std::vector<Kernel> parse_kernels(const std::string& text, const std::string& file) {
  Reader in(text, file);
  std::vector<Kernel> kernels;
  std::string launch_shared;
  std::map<unsigned, std::string> sources;
  while (in.more()) {
    const std::string directive = in.word();
    if (directive == ".version" || directive == ".target" || directive == ".address_size") {
      in.until('\n');
    } else if (directive == ".file") {
      const unsigned number = in.number();
      sources[number] = quoted(in);
    } else if (directive == ".section") {
      in.until('}');
    } else if (directive == ".visible") {
      continue;
    } else if (directive == ".extern") {
      if (in.word() != ".shared") in.fail("unknown .extern");
      std::map<std::string, Variable> ignored;
      size_t bytes = 0;
      launch_shared = read_variable(in, ignored, bytes);
      in.expect(';');
    } else if (directive == ".entry") {
      kernels.push_back(read_kernel(in, launch_shared));
    } else {
      in.fail("unknown directive " + directive);
    }
  }
  for (Kernel& kernel : kernels) kernel.sources = sources;
  return kernels;
}

std::string source_of(const Kernel& kernel, const Statement& s) {
  const auto file = kernel.sources.find(s.file);
  if (file == kernel.sources.end()) return "";
  return std::filesystem::path(file->second).filename().string() + ":" + std::to_string(s.line);
}

std::string source_text(const Kernel& kernel, const Statement& s) {
  const auto file = kernel.sources.find(s.file);
  if (file == kernel.sources.end() || s.line == 0) return "";
  std::ifstream in(file->second);
  std::string words;
  for (unsigned n = 0; n < s.line && std::getline(in, words); ++n) {
  }
  return in ? stripped(words) : "";
}

void check_arithmetic(const Kernel& kernel) {
  std::map<std::pair<unsigned, unsigned>, bool> written;  // by source and line
  for (const Statement& s : kernel.statements) {
    const auto fail = [&](const std::string& why) {
      throw Fault("kernel " + kernel.name + ": " + why + ": " + s.text + " (" + source_of(kernel, s) + ")");
    };
    if (s.opcode == "fma.rn.f32") {
      const auto [at, added] = written.emplace(std::pair(s.file, s.line), false);
      if (added) {
        const std::string line = source_text(kernel, s);
        at->second = line.find("__fmaf_rn(") != std::string::npos || line.find("numerics::fma(") != std::string::npos;
      }
      if (!at->second) fail("a fused multiply-add that the source does not write");
    }
    if (s.opcode == "max.f32" && std::none_of(s.operands.begin(), s.operands.end(), is_exact_bound))
      fail("a maximum, which may differ from numerics::max");
  }
}

std::vector<Kernel> read_kernels(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Fault(path + " cannot be read");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return parse_kernels(text, std::filesystem::path(path).stem().string());
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                        std::free);
  return status == 0 ? readable.get() : name;
}

std::vector<std::string> split_operands(const std::string& words) {
  std::vector<std::string> operands;
  std::string one;
  int depth = 0;
  for (const char c : words) {
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      operands.push_back(stripped(one));
      one.clear();
    } else {
      one += c;
    }
  }
  if (!stripped(one).empty()) operands.push_back(stripped(one));
  return operands;
}

int bits_of_type(const std::string& type) {
  static const std::map<std::string, int> bits = {{"pred", 1}, {"b8", 8},   {"u8", 8},   {"s8", 8},   {"b16", 16},
                                                  {"u16", 16}, {"s16", 16}, {"b32", 32}, {"u32", 32}, {"s32", 32},
                                                  {"f32", 32}, {"b64", 64}, {"u64", 64}, {"s64", 64}};
  const auto found = bits.find(type);
  if (found == bits.end()) throw Fault("unknown type ." + type);
  return found->second;
}

}  // namespace ptx
