// The reference device: every operation of the catalogue as its definition. One plain loop each, with the sums in their
// declared order (sums.h), on one thread; nothing is blocked, packed or vectorized. cpu/ and gpu/ are fast and
// bit-identical to these loops.
//
// The formulas, the shapes and the orders are in ops/catalogue.h. A file here has the name of its counterparts in cpu/
// and gpu/.
#pragma once

#include <string>

#include "ops/host_ops.h"

namespace petroglyph {

class Reference final : public HostOps {
 public:
  std::string description() const override { return "reference (plain loops, one thread)"; }

#define OP(...) __VA_ARGS__ override
#include "ops/catalogue.h"
#undef OP
};

}  // namespace petroglyph
