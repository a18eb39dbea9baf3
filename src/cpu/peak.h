// The machine's own limits, measured rather than looked up.
#pragma once

#include <cstdint>

namespace petroglyph {

// Floating-point operations a second of `threads` threads that do nothing but fused multiply-adds in registers, one counting
// as two. The best of several short runs.
double peak_flops(int threads);

// Bytes a second at which `threads` threads read so many, the same ones again and again: from a cache where they fit in one, and
// else from memory. The best of several runs.
double read_bandwidth(int threads, int64_t bytes);

}  // namespace petroglyph
