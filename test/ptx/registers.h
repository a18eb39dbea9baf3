// A place for each of a kernel's values, and which of them may be read before they are written.
#pragma once

#include <string>
#include <vector>

#include "ptx/machine.h"

namespace ptx {

// The value of an operand: a PTX register, or a value that exists from the start.
struct Value {
  std::string name;
  int bits;
  bool fixed;  // never written: a constant or a special register
};

// The values that an instruction reads and writes, as indices.
struct Use {
  std::vector<int> reads, writes;
  bool always = true;  // writes in all active lanes: not guarded
};

struct Places {
  std::vector<uint32_t> of;   // offset of each value, in bytes, in a warp's register file
  uint32_t bytes = 0;         // size of the register file
  std::vector<int> doubtful;  // values that some path through the code reads before they are written
};
Places assign_places(const std::vector<Value>& values, const std::vector<Instruction>& code,
                     const std::vector<Use>& uses);

}  // namespace ptx
