// A machine that runs PTX: what nvcc made of a kernel, instruction by instruction, on the host.
//
//   text.h        PTX text → statements
//   operations.h  what each instruction does: a table of PTX's names and of functions of numbers
//   decode.h      statements → instructions: a place in the register file for every operand
//   memory.h      shared and global memory, which know who wrote and who read what
//   machine.h     launches: blocks, warps, groups of lanes, barriers
//   launch.h      in place of the host run's fibers: cuda_on_host's launches find their kernel here
//
// A warp is run at a time, an instruction at a time for all of its lanes that stand there. Each register has 32 values
// side by side, one a lane, so that most instructions are a short loop that the compiler makes a vector's. Lanes that
// branch differently become two groups, each with a place in the code; groups that come to one place are one again. A
// warp's exchange (shfl, vote, bar.warp.sync) waits until all living lanes of its mask have come; a barrier, for all
// living threads of the block. Which block, which warp and which group goes on first is the test's choice: the kernel's
// result may not depend on it.
//
// What a GPU leaves undefined is a Fault here that names the kernel, the instruction and the lane: see memory.h for
// memory, decode.h for registers that nobody wrote, below for barriers and masks.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "ptx/text.h"

namespace ptx {

constexpr int LANES = 32;
using Lanes = uint32_t;  // a set of them, one bit each
constexpr Lanes ALL = ~Lanes(0);

class Block;
struct Warp;
struct Instruction;
using Operation = void (*)(Warp&, const Instruction&, Lanes);

enum class Flow : uint8_t { NEXT, BRANCH, EXIT, BARRIER, EXCHANGE };

struct Instruction {
  Operation run = nullptr;
  Flow flow = Flow::NEXT;
  bool guarded = false, negated = false;
  bool wide = true;     // a shared address of 64 bits, not 32
  uint8_t count = 1;    // of a vector's elements
  uint32_t guard = 0;   // where the predicate is
  uint32_t to[4] = {};  // places in the register file
  uint32_t from[5] = {};
  int64_t offset = 0;         // of an address; of cp.async the source's
  int64_t shared_offset = 0;  // of cp.async the destination's
  uint32_t mask = 0;          // where an exchange's mask is
  int target = 0;             // of a branch
  int watch = -1;             // which of the program's watches is its own
  int number = 0;             // in the kernel
};

// A value that a register has before the kernel begins, the same in all lanes.
struct Constant {
  uint32_t place;
  int bits;
  uint64_t value;
};

// %tid.x and its like, which a place holds for the whole kernel.
struct Special {
  uint32_t place;
  int which;
};

// An instruction that writes or reads registers of which only the run can tell whether they were written before: where
// the lanes are kept in which they were.
struct Watch {
  std::vector<uint32_t> reads, writes;
};

struct Program {
  std::string name, file;
  std::vector<Instruction> code;
  std::vector<std::string> texts;  // of each instruction
  std::vector<Constant> constants;
  std::vector<Special> specials;
  std::vector<Constant> unwritten;  // what the watched registers hold before anything is written: NaN
  std::vector<Watch> watches;
  std::vector<uint32_t> watched;  // all their places
  uint32_t register_bytes = 0;    // of a warp
  size_t parameter_bytes = 0, shared_bytes = 0;
  unsigned most_threads = 256;
  std::vector<uint8_t> executed;  // of each instruction whether it ever was
};

struct Shape {
  unsigned x, y, z;
  unsigned size() const { return x * y * z; }
};

enum class Order { ASCENDING, DESCENDING, RANDOM };

struct Launch {
  Shape grid, block;
  size_t shared_bytes = 0;  // beside the kernel's own
  std::vector<unsigned char> parameters;
  Order order = Order::ASCENDING;
  unsigned seed = 1;
  uint64_t most_branches = UINT64_MAX;  // of all warps together: a kernel that never ends is a Fault
  // The global memory that an address is in: its first and one past its last byte; both 0 where there is none.
  std::function<void(uint64_t address, uint64_t& begin, uint64_t& end)> memory_at;
};

// Runs all blocks. Faults leave memory as it was then.
void run(Program& program, const Launch& launch);

// ---- For operations ----

// Lanes of a warp that stand at one place.
struct Group {
  int at;
  Lanes lanes;
  bool waiting;  // at an exchange, for others
};

// Who touches memory.
struct Thread {
  unsigned number;        // in its block
  uint32_t synchronized;  // its warp's last bar.warp.sync, or the last barrier
};

struct Warp {
  unsigned char* registers = nullptr;
  Block* block = nullptr;
  int number = 0;
  Lanes living = 0;
  std::vector<Group> groups;
  Lanes at_barrier = 0;
  int barrier = 0;            // where it stands
  uint32_t synchronized = 0;  // Thread's, of all of its lanes

  template <class T>
  T* lanes_of(uint32_t place) {
    return reinterpret_cast<T*>(registers + place);
  }
  Lanes& predicate(uint32_t place) { return *reinterpret_cast<Lanes*>(registers + place); }
  Thread thread(int lane) const { return {static_cast<unsigned>(number * LANES + lane), synchronized}; }
};

// Calls f(lane) for each of these: as a loop over all that becomes vectors, where they are all.
template <class Function>
inline void for_each_lane(Lanes lanes, Function f) {
  if (lanes == ALL) {
#pragma omp simd
    for (int l = 0; l < LANES; ++l) f(l);
    return;
  }
  for (Lanes rest = lanes; rest != 0; rest &= rest - 1) f(__builtin_ctz(rest));
}

}  // namespace ptx
