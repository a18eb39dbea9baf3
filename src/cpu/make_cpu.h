// Creates the CPU device, for code that uses only the interface Ops.
#pragma once

#include <memory>

#include "ops/ops.h"

namespace petroglyph {

// threads: 0 means all cores.
std::unique_ptr<Ops> make_cpu(int threads);

}  // namespace petroglyph
