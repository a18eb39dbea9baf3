// Which device computes.
#pragma once

#include <memory>
#include <string>

#include "ops/ops.h"
#include "train/ranks.h"

namespace petroglyph {

// name: "cpu"; "reference", the plain loops that define the operations; "cuda" or "cuda:N", the first GPU or the one
// with this number; or "auto", the first GPU if it works, else the CPU, with a line that gives the reason if there is a
// GPU or CUDA does not start.
// threads: of the CPU, 0 for all cores. Throws Error if the GPU is not available.
std::unique_ptr<Ops> make_device(const std::string& name, int threads);
// This rank's device. The ranks of a machine take its GPUs in turn, unless N is given. 0 threads: the cores divided by
// the ranks that share them.
std::unique_ptr<Ops> make_device(const std::string& name, int threads, const Ranks& ranks);

// The device's description, determined in another process: a process that has used a GPU cannot fork, and holds memory
// there.
std::string describe_device(const std::string& name);

}  // namespace petroglyph
