// Tables of positions, computed once on the host and then uploaded: every device reads the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "math/numerics.h"

namespace petroglyph {

// The sinusoidal embedding (Vaswani et al. 2017) of the positions first … first+count−1: in row t, column 2i is
// sin(t / 10000^(2i/width)) and column 2i+1 the cosine. Position −t has the sines of the other sign.
std::vector<real> sinusoids(int first, int count, int width);

// ALiBi (Press et al. 2022): row n, column h is −n·2^(−8(h+1)/heads). Published for heads that are no power of two: the slopes
// of the largest power p below, then every second one of 2p.
std::vector<real> alibi_bias(int count, int heads, bool published = false);

// T5's buckets (Raffel et al. 2020) of the distances 0 … count−1: n below 16, then 16 more that grow as log n. The last one
// begins at 113; the next would at 128.
constexpr int T5_BUCKETS = 32;
std::vector<int32_t> t5_buckets(int count);

// What a sliding cosine transform (sliding_dct.h) multiplies by: of row u and frequency j, one after the other, cos πju/t,
// sin πju/t, s_j cos πj(2u+1)/(2t) and s_j sin of the same angle, for the first rows u < t; s_0 = √(1/t), s_j = √(2/t).
std::vector<real> dct_waves(int64_t window, int64_t frequencies, int64_t rows);

}  // namespace petroglyph
