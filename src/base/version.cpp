#include "base/version.h"

namespace petroglyph {

std::string version() { return "petroglyph " PETROGLYPH_VERSION; }

}  // namespace petroglyph
