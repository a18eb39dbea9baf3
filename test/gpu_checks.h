// Every operation and model on a device against the reference (src/reference), bit for bit: the checks of bits, host_run, gpu_run and
// ptx_run. The rows come from the table of cases that all tests share, and from shapes on which the kernels' own seams lie.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/ops.h"

namespace petroglyph {

// An array that a check's operations write.
struct Written {
  std::string name;
  std::vector<real> reals;
  std::vector<int32_t> ids;
};

struct GpuCheck {
  std::string name;
  std::function<std::vector<Written>(Ops& device)> run;
  bool once = false;                                                       // large: in one order of threads only
  bool nan_spreads = false;                                                // see OpCase::skips_pairs
  mutable std::shared_ptr<const std::vector<Written>> expected = nullptr;  // what the reference wrote

  // What differs first on this device, with both values; empty: equal bits. The reference runs when this is first called.
  std::string difference(Ops& device) const;
};

const std::vector<std::string>& gpu_check_groups();
const std::vector<GpuCheck>& gpu_checks(const std::string& group);  // made once

}  // namespace petroglyph
