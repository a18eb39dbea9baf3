// Every operation and model on a GPU, or on what takes its place, against the CPU, bit for bit: the checks of host_run,
// gpu_run and ptx_run. The rows come from the table of cases that all tests share, and from shapes on which the kernels'
// own seams lie.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/ops.h"

namespace petroglyph {

struct GpuCheck {
  std::string name;
  std::function<std::string(Ops& cpu, Ops& gpu)> difference;  // the first, with both values; empty: equal bits
  bool once = false;                                          // large: in one order of threads only
};

const std::vector<std::string>& gpu_check_groups();
std::vector<GpuCheck> gpu_checks(const std::string& group);

}  // namespace petroglyph
