// The machine's own limit, measured rather than looked up.
#pragma once

namespace petroglyph {

// Floating-point operations a second of `threads` threads that do nothing but fused multiply-adds in registers, one counting
// as two. The best of several short runs.
double peak_flops(int threads);

}  // namespace petroglyph
