// The meaning of each PTX instruction: its name, and a function of numbers whose type determines its registers.
#pragma once

#include <string>
#include <vector>

#include "ptx/machine.h"

namespace ptx {

// An instruction that computes each lane's result from the same lane's operands. Two instructions may have the same
// name and registers of different widths.
struct Meaning {
  const char* opcode;
  Operation run;
  int result;  // width in bits; 1 for a predicate
  std::vector<int> operands;
};

const std::vector<Meaning>& meanings();

// Loads and stores, selected by type in memory, register width and state space.
enum class Space { PARAMETER, GLOBAL, SHARED };
Operation load_operation(Space space, const std::string& type, int register_bits);
Operation store_operation(Space space, const std::string& type, int register_bits);

// Warp operations: shfl.sync.MODE.b32, vote.sync.MODE, and others with special operands.
Operation shuffle_operation(const std::string& mode);
Operation vote_operation(const std::string& mode);
void synchronize_warp(Warp&, const Instruction&, Lanes);
void copy_async(Warp&, const Instruction&, Lanes);
void commit_copies(Warp&, const Instruction&, Lanes);
void wait_for_copies(Warp&, const Instruction&, Lanes);
void unpack(Warp&, const Instruction&, Lanes);

}  // namespace ptx
