// The machine's own limits, measured rather than looked up.
#pragma once

#include <cstdint>

namespace petroglyph {

// Floating-point operations a second of `threads` threads that do nothing but fused multiply-adds in registers, one counting
// as two. The best of several short runs.
double peak_flops(int threads);

// The same while each multiply-add's factors come from the L1 cache, as in a product's tile. A processor that lowers its clock the
// more of its units are at work does fewer of these than of the others; no product does more. The best of several runs.
double product_flops(int threads);

// Lanes of vector instructions a second of which half, or nearly, are fused multiply-adds and the others additions: on a processor
// that adds in units of its own more than peak_flops / 2, of multiplications and fused multiply-adds alone.
double peak_instructions(int threads);

// Bytes a second at which `threads` threads read so many, the same ones again and again: from a cache where they fit in one, and
// else from memory. The best of several runs.
double read_bandwidth(int threads, int64_t bytes);

}  // namespace petroglyph
