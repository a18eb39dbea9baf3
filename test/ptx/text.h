// PTX text taken apart: files into kernels, kernels into statements. What a statement means is decode.cpp's business.
//
// A word that this does not know stops with its name: nothing is skipped in the hope that it does not matter, but for
// what serves debuggers (.section) and what only advises ptxas (.pragma, .minnctapersm).
#pragma once

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {

// What keeps a kernel from being read or run: the file's fault or the kernel's, always with the place.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Statement {
  std::string guard;  // "%p1" of "@%p1 bra …"; empty: always
  bool negated = false;
  std::string opcode;
  std::vector<std::string> operands;  // "{%f1, %f2}" and "[%rd1+4]" are one each
  std::string text;
  // Of the source, where nvcc says it; and where that function is called, if it was inlined.
  unsigned file = 0, line = 0, caller_file = 0, caller_line = 0;
};

// A place in the kernel's parameters or in its shared memory.
struct Variable {
  size_t offset, bytes;
};

struct Kernel {
  std::string name;  // as C++ writes it
  std::string file;  // "relation": whose .cu it is of
  std::vector<Statement> statements;
  std::map<unsigned, std::string> sources;  // the paths of statements' files
  std::map<std::string, size_t> labels;
  std::map<std::string, int> registers;  // bits of each: 1 for a predicate
  std::map<std::string, Variable> parameters, shared;
  size_t parameter_bytes = 0, shared_bytes = 0;
  std::string launch_shared;  // the name of the launch's part, which lies behind the kernel's own arrays
  // .maxntid, of __launch_bounds__. A kernel without may have 255 registers, of which 65,536 are enough for 256 threads.
  unsigned most_threads = 256;
};

// "%p" and 5 of "%p<5>": registers are declared in ranges.
std::vector<Kernel> read_kernels(const std::string& path);
// The same of a text that is no file.
std::vector<Kernel> parse_kernels(const std::string& text, const std::string& file);

// "product.cuh:236", or nothing.
std::string source_of(const Kernel& kernel, const Statement& s);
// The source's words at that line, and at the caller's.
std::string source_text(const Kernel& kernel, const Statement& s);
std::string demangled(const std::string& name);
// "a, {b, c}, [d]" into three.
std::vector<std::string> split_operands(const std::string& words);
// Bits of a type without its dot: 32 of "f32", 1 of "pred". Faults on others than PTX's plain ones.
int bits_of_type(const std::string& type);

}  // namespace ptx
