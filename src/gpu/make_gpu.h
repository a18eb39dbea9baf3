// The GPU for those who need nothing of CUDA. Only in builds with CUDA.
#pragma once

#include "ops/ops.h"

namespace petroglyph {

bool gpu_present();

// The first GPU. Throws Error where there is none, or none that is new enough.
std::unique_ptr<Ops> make_gpu();

// Floating-point operations a second of fused multiply-adds in registers, one counting as two: the best of several runs.
double gpu_peak_flops(Ops& gpu);

}  // namespace petroglyph
