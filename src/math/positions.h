// Tables for position encodings, computed once on the host and then uploaded: every device reads the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "math/numerics.h"

namespace petroglyph {

// The sinusoidal embedding (Vaswani et al. 2017) of the positions first … first+count−1: in row t, column 2i is
// sin(t / 10000^(2i/width)) and column 2i+1 the cosine. Positions may be negative.
std::vector<real> sinusoids(int first, int count, int width);

// ALiBi (Press et al. 2022): row n, column h is −n·2^(−8(h+1)/heads). published: as in the authors' code, which differs
// if heads is not a power of two: first the slopes of p heads, p the largest power of two below, then every second
// slope of 2p heads.
std::vector<real> alibi_bias(int count, int heads, bool published = false);

// T5's buckets (Raffel et al. 2020) of the distances 0 … count−1: one bucket for each distance n below 16, then 16
// buckets whose bounds grow logarithmically. The last one begins at 113.
constexpr int T5_BUCKETS = 32;
std::vector<int32_t> t5_buckets(int count);

// The factors of a sliding cosine transform (ops/sliding_dct.h) with a window of t: (rows,frequencies,4), for row u and
// frequency j cos πju/t, sin πju/t, s_j cos πj(2u+1)/(2t) and s_j sin πj(2u+1)/(2t), where s_0 = √(1/t) and otherwise
// s_j = √(2/t). rows ≤ t
std::vector<real> dct_waves(int64_t window, int64_t frequencies, int64_t rows);

}  // namespace petroglyph
