// Translates PTX statements into instructions that the machine runs.
#pragma once

#include "ptx/machine.h"
#include "ptx/text.h"

namespace ptx {

// Throws a Fault that names an unknown instruction, register or symbol, or an operand of the wrong width.
//
// If some path through the kernel reads a register before writing it, the register is watched at run time: usually no
// lane takes that path.
// that way.
//
// PTX has one register per value. Values that are never live at the same time share a place, so that a warp's registers
// stay in the host's cache.
Program decode(const Kernel& kernel);

}  // namespace ptx
