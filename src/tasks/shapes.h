// Generated images that need no file: one of ten shapes, in any colour, position, size and rotation. The background
// is a colour gradient with small spots and noise. Colours do not depend on the class.
#pragma once

#include "tasks/images.h"

namespace petroglyph {

class Shapes final : public Images {
 public:
  Shapes();
  Picture picture(uint64_t seed, uint32_t stream, uint32_t step, int index) const override;
};

}  // namespace petroglyph
