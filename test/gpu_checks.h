// Compares every operation and model on a device with the reference (src/reference), bit for bit. Used by bits,
// host_run, gpu_run and ptx_run. The cases are those of cases.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cases.h"
#include "check.h"
#include "ops/ops.h"

namespace petroglyph {

struct GpuCheck {
  std::string name;
  std::function<std::vector<Written>(Ops& device)> run;
  bool once = false;                                                       // large: checked in one thread order only
  bool nan_spreads = false;                                                // see OpCase::skips_pairs
  mutable std::shared_ptr<const std::vector<Written>> expected = nullptr;  // output of the reference

  // The first difference on this device, with both values; empty: bit-identical. The first call runs the reference.
  std::string difference(Ops& device) const;
};

const std::vector<std::string>& gpu_check_groups();
const std::vector<GpuCheck>& gpu_checks(const std::string& group);  // created once

// The checks of a group on a device; all: those that are made once, too.
void compare(Test& test, const std::string& group, Ops& device, bool all = true);

}  // namespace petroglyph
