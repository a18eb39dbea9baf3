// The machine's own limits, measured rather than looked up.
#pragma once

#include <cstdint>

namespace petroglyph {

// Floating-point operations a second of `threads` threads that do nothing but fused multiply-adds in registers, one counting
// as two. The best of several short runs.
double peak_flops(int threads);

// Lanes of vector instructions a second of which half, or nearly, are fused multiply-adds and the others additions: on a processor
// that adds in units of its own more than peak_flops / 2, of multiplications and fused multiply-adds alone.
double peak_instructions(int threads);

// Bytes a second at which `threads` threads read so many, the same ones again and again: from a cache where they fit in one, and
// else from memory. The best of several runs.
double read_bandwidth(int threads, int64_t bytes);

}  // namespace petroglyph
