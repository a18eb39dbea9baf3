// The CPU for those who need nothing of its inside.
#pragma once

#include <memory>

#include "ops/ops.h"

namespace petroglyph {

// threads: 0 takes all cores.
std::unique_ptr<Ops> make_cpu(int threads);

}  // namespace petroglyph
