// From statements to what the machine runs.
#pragma once

#include "ptx/machine.h"
#include "ptx/text.h"

namespace ptx {

// Faults name what is not known: an instruction, a register, a symbol, an operand of the wrong width.
//
// A register that some way through the kernel reads before it is written is watched when it runs: most often no lane goes
// that way.
//
// PTX has a register for every value; here those that are never needed at the same time share a place, so that a warp's
// registers stay in the host's cache.
Program decode(const Kernel& kernel);

}  // namespace ptx
