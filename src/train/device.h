// Which device computes.
#pragma once

#include <memory>
#include <string>

#include "ops/ops.h"
#include "train/ranks.h"

namespace petroglyph {

// "cpu"; "reference", the plain loops that define the operations; "cuda" or "cuda:N", the first GPU or the one of this number; or "auto", the first GPU where there is one that works,
// and where there is one that does not, or CUDA does not start, the CPU and a line that says why. threads: of the CPU, 0 takes
// all cores. Throws Error where the GPU cannot be had.
std::unique_ptr<Ops> make_device(const std::string& name, int threads);
// This rank's. The ranks of a machine take its GPUs in turn, unless N says which. With "auto" a rank whose GPU does not work takes
// the CPU and reports why. 0 threads: the cores divided by the ranks that share them.
std::unique_ptr<Ops> make_device(const std::string& name, int threads, const Ranks& ranks);

// Its description, asked in a process of its own: one that has spoken to a GPU cannot be doubled, and holds memory there.
std::string describe_device(const std::string& name, int threads);

}  // namespace petroglyph
