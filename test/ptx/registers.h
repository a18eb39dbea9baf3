// Where each of a kernel's values is kept.
#pragma once

#include <string>
#include <vector>

#include "ptx/machine.h"

namespace ptx {

// What an operand names: a register of PTX's, or a value that is there from the start.
struct Value {
  std::string name;
  int bits;
  bool fixed;  // never written: a constant or a special register
};

// What an instruction reads and writes, as numbers of values.
struct Use {
  std::vector<int> reads, writes;
  bool always = true;  // writes in all lanes that come here: not guarded
};

struct Places {
  std::vector<uint32_t> of;   // each value, in bytes, in a warp's register file
  uint32_t bytes = 0;         // that are in use
  std::vector<int> doubtful;  // values that some way through the code reads before anything wrote them
};
Places assign_places(const std::vector<Value>& values, const std::vector<Instruction>& code,
                     const std::vector<Use>& uses);

}  // namespace ptx
