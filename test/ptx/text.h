// Parses PTX text: files into kernels, kernels into statements. decode.cpp interprets the statements.
//
// An unknown word is a Fault that names it. Only debug information (.section) and hints for ptxas (.pragma,
// .minnctapersm) are skipped.
#pragma once

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {

// An error that prevents reading or running a kernel. Its message contains the position.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Statement {
  std::string guard;  // "%p1" of "@%p1 bra …"; empty: unconditional
  bool negated = false;
  std::string opcode;
  std::vector<std::string> operands;  // "{%f1, %f2}" and "[%rd1+4]" count as one operand
  std::string text;
  unsigned file = 0, line = 0;  // source position, if nvcc reports it
};

// A variable in the kernel's parameters or in its shared memory.
struct Variable {
  size_t offset, bytes;
};

struct Kernel {
  std::string name;  // in C++ notation
  std::string file;  // e.g. "relation": the .cu file that contains it
  std::vector<Statement> statements;
  std::map<unsigned, std::string> sources;  // paths of the statements' source files
  std::map<std::string, size_t> labels;
  std::map<std::string, int> registers;  // width in bits; 1 for a predicate
  std::map<std::string, Variable> parameters, shared;
  size_t parameter_bytes = 0, shared_bytes = 0;
  std::string launch_shared;  // name of the launch's dynamic shared memory, which follows the kernel's own arrays
  // .maxntid, from __launch_bounds__. Without it a kernel may use 255 registers: 65,536 are enough for 256 threads.
  unsigned most_threads = 256;
};

// Reads the kernels of a file. Registers are declared in ranges: "%p<5>" has the name "%p" and the number 5.
std::vector<Kernel> read_kernels(const std::string& path);
// The same for text that is not in a file.
std::vector<Kernel> parse_kernels(const std::string& text, const std::string& file);

// "product.cuh:236", or "".
std::string source_of(const Kernel& kernel, const Statement& s);
// The line of source.
std::string source_text(const Kernel& kernel, const Statement& s);
// Throws a Fault for arithmetic that nvcc chose and the source did not write. The first is a fused multiply-add whose line
// of source does not say __fmaf_rn or numerics::fma: a contraction has the line of its addition, and CUDA's math functions
// that of their call. The second is max.f32, which differs from numerics::max for NaN and zeros, except beside most
// constants. All else that is not correctly rounded (.approx, .ftz, add without .rn, mad, atom, half precision, calls) is
// an unknown instruction to the machine.
void check_arithmetic(const Kernel& kernel);
std::string demangled(const std::string& name);
// Splits "a, {b, c}, [d]" into three operands.
std::vector<std::string> split_operands(const std::string& words);
// Width in bits of a scalar type without its dot: 32 for "f32", 1 for "pred". Throws a Fault for other types.
int bits_of_type(const std::string& type);

}  // namespace ptx
