// Which Petroglyph this is.
#pragma once

#include <string>

namespace petroglyph {

// "petroglyph 0.1.0, 5470f2a of 2026-11-22": the number in VERSION, and the commit it was built from, by git or by the
// archive that git made. A + after the commit: files were changed since.
std::string version();

}  // namespace petroglyph
