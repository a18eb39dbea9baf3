// A machine that runs PTX, the output of nvcc for a kernel, instruction by instruction on the host.
//
//   text.h        PTX text → statements
//   operations.h  the table of PTX instructions: their names, and functions of numbers
//   decode.h      statements → instructions: every operand gets a place in the register file
//   memory.h      shared and global memory, which record the accesses of threads
//   machine.h     launches: blocks, warps, groups of lanes, barriers
//   launch.h      replaces the fibers of the host run: finds the PTX kernel of a launch of cuda_on_host
//
// A warp runs at a time. Each instruction runs for all lanes of the warp that have reached it. A register has 32 values
// side by side, one per lane, so that the compiler vectorizes most instructions. Lanes that branch differently become
// two groups, each with its own position in the code; groups that reach the same instruction are merged. A warp
// exchange (shfl, vote, bar.warp.sync) waits until all live lanes of its mask have arrived. A barrier waits for all
// live threads of the block. The test chooses which block, warp and group runs next: the result of a kernel must not
// depend on it.
//
// Behaviour that a GPU leaves undefined is a Fault here that names the kernel, the instruction and the lane. See
// memory.h for memory, decode.h for unwritten registers, and below for barriers and masks.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "ptx/text.h"

namespace ptx {

constexpr int LANES = 32;
using Lanes = uint32_t;  // a set of lanes, one bit each
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
  bool wide = true;     // whether a shared address has 64 bits rather than 32
  uint8_t count = 1;    // number of elements of a vector
  uint32_t guard = 0;   // place of the predicate
  uint32_t to[4] = {};  // places in the register file
  uint32_t from[5] = {};
  int64_t offset = 0;         // in an address; for cp.async: in the source address
  int64_t shared_offset = 0;  // for cp.async: in the destination address
  uint32_t mask = 0;          // place of an exchange's mask
  int target = 0;             // index of a branch's target
  int watch = -1;             // index in the program's watches, or −1
  int number = 0;             // index in the kernel
};

// A value that a register has in all lanes before the kernel begins.
struct Constant {
  uint32_t place;
  int bits;
  uint64_t value;
};

// A special register such as %tid.x, whose place holds it during the whole kernel.
struct Special {
  uint32_t place;
  int which;
};

// Marks an instruction that accesses registers which may be unwritten; only the run can tell. It holds the places of
// the masks of lanes that have written these registers.
struct Watch {
  std::vector<uint32_t> reads, writes;
};

struct Program {
  std::string name, file;
  std::vector<Instruction> code;
  std::vector<std::string> texts;  // text of each instruction
  std::vector<Constant> constants;
  std::vector<Special> specials;
  std::vector<Constant> unwritten;  // initial values of the watched registers: NaN
  std::vector<Watch> watches;
  std::vector<uint32_t> watched;  // places of all masks
  uint32_t register_bytes = 0;    // per warp
  size_t parameter_bytes = 0, shared_bytes = 0;
  unsigned most_threads = 256;
  std::vector<uint8_t> executed;  // per instruction: whether it was ever executed
};

struct Shape {
  unsigned x, y, z;
  unsigned size() const { return x * y * z; }
};

enum class Order { ASCENDING, DESCENDING, RANDOM };

struct Launch {
  Shape grid, block;
  size_t shared_bytes = 0;  // in addition to the kernel's own arrays
  std::vector<unsigned char> parameters;
  Order order = Order::ASCENDING;
  unsigned seed = 1;
  uint64_t most_branches = UINT64_MAX;  // limit for all warps together: a kernel that never ends becomes a Fault
  // Finds the global memory allocation of an address: its first byte and one past its last; both 0 if there is none.
  std::function<void(uint64_t address, uint64_t& begin, uint64_t& end)> memory_at;
};

// Runs all blocks. After a Fault, memory stays as it was at that point.
void run(Program& program, const Launch& launch);

// ---- For operations ----

// Lanes of a warp at the same instruction.
struct Group {
  int at;
  Lanes lanes;
  bool waiting;  // at an exchange, for other lanes
};

// A thread that accesses memory.
struct Thread {
  unsigned number;        // index in its block
  uint32_t synchronized;  // time of its warp's last bar.warp.sync or of the last barrier
};

struct Warp {
  unsigned char* registers = nullptr;
  Block* block = nullptr;
  int number = 0;
  Lanes living = 0;
  std::vector<Group> groups;
  Lanes at_barrier = 0;
  int barrier = 0;            // index of the barrier instruction
  uint32_t synchronized = 0;  // as in Thread, for all lanes of the warp

  template <class T>
  T* lanes_of(uint32_t place) {
    return reinterpret_cast<T*>(registers + place);
  }
  Lanes& predicate(uint32_t place) { return *reinterpret_cast<Lanes*>(registers + place); }
  Thread thread(int lane) const { return {static_cast<unsigned>(number * LANES + lane), synchronized}; }
};

// Calls f(lane) for each of these lanes. If they are all lanes, it uses a plain loop that the compiler vectorizes.
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
