// Which device computes.
#pragma once

#include <memory>
#include <string>

#include "ops/ops.h"

namespace petroglyph {

// "cpu", "cuda", or "auto": the GPU where there is one. threads: of the CPU, 0 takes all cores. Throws Error where "cuda" cannot
// be had.
std::unique_ptr<Ops> make_device(const std::string& name, int threads);

}  // namespace petroglyph
