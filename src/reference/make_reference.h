// The reference device for code that needs nothing of its inside.
#pragma once

#include <memory>

#include "ops/ops.h"

namespace petroglyph {

std::unique_ptr<Ops> make_reference();

}  // namespace petroglyph
