// The machine's limits, measured: of arithmetic. The bench compares operations with them.
#pragma once

#include <cstdint>

namespace petroglyph {

// Floating-point operations per second of `threads` threads that compute only fused multiply-adds in registers, each
// counted as two operations. The best of several short runs.
double peak_flops(int threads);

// Lanes of vector instructions per second if about half of them are fused multiply-adds and the others additions. On a
// processor with separate units for additions this is more than peak_flops / 2, the number of fused multiply-adds
// alone.
double peak_instructions(int threads);

}  // namespace petroglyph
