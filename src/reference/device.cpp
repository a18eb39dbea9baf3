#include "reference/make_reference.h"
#include "reference/reference.h"

namespace petroglyph {

std::unique_ptr<Ops> make_reference() { return std::make_unique<Reference>(); }

}  // namespace petroglyph
