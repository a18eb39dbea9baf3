// What each PTX instruction does: its name, and a function of numbers whose type says what registers it takes.
#pragma once

#include <string>
#include <vector>

#include "ptx/machine.h"

namespace ptx {

// An instruction that computes each lane's result from the same lane's operands. Two may have one name and registers of
// different widths.
struct Meaning {
  const char* opcode;
  Operation run;
  int result;  // bits, 1 for a predicate
  std::vector<int> operands;
};

const std::vector<Meaning>& meanings();

// Loads and stores: by the type in memory, the register's bits and the state space.
enum class Space { PARAMETER, GLOBAL, SHARED };
Operation load_operation(Space space, const std::string& type, int register_bits);
Operation store_operation(Space space, const std::string& type, int register_bits);

// Whole warps: shfl.sync.MODE.b32, vote.sync.MODE, and the rest that has operands of its own.
Operation shuffle_operation(const std::string& mode);
Operation vote_operation(const std::string& mode);
void synchronize_warp(Warp&, const Instruction&, Lanes);
void copy_async(Warp&, const Instruction&, Lanes);
void commit_copies(Warp&, const Instruction&, Lanes);
void wait_for_copies(Warp&, const Instruction&, Lanes);
void unpack(Warp&, const Instruction&, Lanes);

}  // namespace ptx
