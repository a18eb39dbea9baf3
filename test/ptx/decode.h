// Translates PTX statements into instructions that the machine runs.
#pragma once

#include "ptx/machine.h"
#include "ptx/text.h"

namespace ptx {

// Throws a Fault that names an unknown instruction, register or symbol, or an operand of the wrong width.
//
// If some path through the kernel reads a register before writing it, the register is watched at run time: usually no
// lane takes that path.
Program decode(const Kernel& kernel);

}  // namespace ptx
