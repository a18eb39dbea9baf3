// Runs the kernels of the host program from their PTX, instead of the fibers of cuda_on_host.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cuda_on_host.h"
#include "ptx/machine.h"

namespace ptx {

// A function of this program.
struct Symbol {
  std::string name;  // in C++ notation
  std::string file;  // source, e.g. "relation", of a function with internal linkage; otherwise empty
};

class Programs {
 public:
  // Reads every .ptx file of the folder. Throws a Fault if this program has no kernel with the name of an entry.
  explicit Programs(const std::string& folder);

  // Runs the kernel in this order of threads. Throws a Fault if there is no PTX for it.
  void run(const cuda_on_host::Kernel& kernel, Order order, unsigned seed);

  std::vector<Program>& all() { return programs_; }
  const std::vector<Kernel>& kernels() const { return kernels_; }  // the PTX of each program
  uint64_t most_branches = UINT64_MAX;                             // limit for every launch

 private:
  Program& find(const cuda_on_host::Kernel& kernel);

  std::vector<Kernel> kernels_;
  std::vector<Program> programs_;
  std::map<uintptr_t, Symbol> functions_;
  std::map<const void*, size_t> found_;
};

}  // namespace ptx
