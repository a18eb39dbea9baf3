// The kernels of the host program, run from their PTX: what cuda_on_host calls in place of its own fibers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cuda_on_host.h"
#include "ptx/machine.h"
#include "ptx/symbols.h"

namespace ptx {

class Programs {
 public:
  // Reads every .ptx of the folder. Faults where an entry has no kernel of its name in this program.
  explicit Programs(const std::string& folder);

  // Runs it, in the order that cuda_on_host has been given. Faults where there is no PTX of it.
  void run(const cuda_on_host::Kernel& kernel, Order order, unsigned seed);

  std::vector<Program>& all() { return programs_; }
  const std::vector<Kernel>& kernels() const { return kernels_; }  // the text of each
  uint64_t most_branches = UINT64_MAX;                             // of every launch

 private:
  Program& find(const cuda_on_host::Kernel& kernel);

  std::vector<Kernel> kernels_;
  std::vector<Program> programs_;
  std::map<uintptr_t, Symbol> functions_;
  std::map<const void*, size_t> found_;
};

}  // namespace ptx
