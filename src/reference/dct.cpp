// The sliding cosine transform, one frequency and channel at a time, and the weights of its frequencies.
// ops/sliding_dct.h derives the two sums of a window that lies in two blocks.

#include <algorithm>
#include <vector>

#include "ops/sliding_dct.h"
#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

using numerics::fma;

namespace {

const dct::Wave& wave(const DctShape& s, const DctHead& head, int64_t place, int64_t j) {
  return reinterpret_cast<const dct::Wave*>(s.waves)[head.waves + place * head.frequencies + j];
}
real sign_of(int64_t j) { return j % 2 == 0 ? real(1) : real(-1); }  // (−1)^j

// Where the row of head h at position i of sample b begins: k·d numbers in c, d numbers in x.
int64_t row_of_c(const DctShape& s, const DctHead& head, int64_t b, int64_t i) {
  return s.begin(head) + (b * s.positions + i) * head.frequencies * s.head_width;
}
int64_t row_of_x(const DctShape& s, int64_t h, int64_t b, int64_t i) {
  return (b * s.positions + i) * s.width() + h * s.head_width;
}

}  // namespace

// Place r of a block uses two sums for each frequency j, Σ cos θ_u x_u and Σ sin θ_u x_u, as
//   s_j (cos φ_r · the first + sin φ_r · the second)
// A whole sequence is decoding from the first position. A head's part of the state: the block's x (rows,d) so far, what
// the block before gives to this one (rows,k,d), and the sums over the block so far, of cosines (k,d) and of sines
// (k,d).
void Reference::sliding_dct(real* c, real* state, const real* x, const DctShape& s) {
  const int64_t d = s.head_width;
  std::vector<real> fresh(static_cast<size_t>(s.state_size));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h) {
      const DctHead& head = s.plan[h];
      const int64_t k = head.frequencies, t = head.window;
      real* const block = (state ? state + b * s.state_size : fresh.data()) + head.state;
      real *const given = block + head.rows * d, *const cos_sums = given + head.rows * k * d,
                  *const sin_sums = cos_sums + k * d;
      for (int64_t i = 0; i < s.positions; ++i) {
        const int64_t position = s.before + i, r = position % t;
        for (int64_t channel = 0; channel < d; ++channel) {
          const real in = block[r * d + channel] = x[row_of_x(s, h, b, i) + channel];
          for (int64_t j = 0; j < k; ++j) {
            const dct::Wave& w = wave(s, head, r, j);
            const int64_t at = j * d + channel;
            cos_sums[at] = fma(w.take_cos, in, r > 0 ? cos_sums[at] : 0);
            sin_sums[at] = fma(w.take_sin, in, r > 0 ? sin_sums[at] : 0);
            const real before = fma(sign_of(j) * w.give_cos, cos_sums[at], position >= t ? given[r * k * d + at] : 0);
            c[row_of_c(s, head, b, i) + at] = fma(sign_of(j) * w.give_sin, sin_sums[at], before);
          }
        }
        if (r + 1 < t) continue;
        for (int64_t at = 0; at < k * d; ++at) {  // what the next block takes of this whole block
          real cos_sum = 0, sin_sum = 0;
          for (int64_t u = t - 1; u >= 0; --u) {
            const dct::Wave& w = wave(s, head, u, at / d);
            given[u * k * d + at] = u + 1 < t ? fma(w.give_sin, sin_sum, w.give_cos * cos_sum) : real(0);
            cos_sum = fma(w.take_cos, block[u * d + at % d], cos_sum);
            sin_sum = fma(w.take_sin, block[u * d + at % d], sin_sum);
          }
        }
      }
    }
}

void Reference::sliding_dct_backward(real* dx, const real* dc, const DctShape& s) {
  const int64_t d = s.head_width, T = s.positions;
  for (int64_t row = 0; row < s.rows(); ++row)
    for (int64_t column = 0; column < s.width(); ++column) {
      const int64_t b = row / T, i = row % T, h = column / d;
      const DctHead& head = s.plan[h];
      const int64_t k = head.frequencies, t = head.window, u = i % t, block = i - u;
      real sum = 0, cos_sum = 0, sin_sum = 0;
      const auto take = [&](int64_t first, int64_t r, int64_t j) {
        const dct::Wave& w = wave(s, head, r, j);
        const real gradient = dc[row_of_c(s, head, b, first + r) + j * d + column % d];
        cos_sum = fma(w.give_cos, gradient, cos_sum);
        sin_sum = fma(w.give_sin, gradient, sin_sum);
      };
      const auto add_frequency = [&](real sign, int64_t j) {
        const dct::Wave& w = wave(s, head, u, j);
        sum = fma(sign * w.take_sin, sin_sum, fma(sign * w.take_cos, cos_sum, sum));
        cos_sum = sin_sum = 0;
      };
      for (int64_t j = 0; j < k; ++j) {  // the positions of its own block, from the block's end
        for (int64_t r = std::min(t, T - block) - 1; r >= u; --r) take(block, r, j);
        add_frequency(sign_of(j), j);
      }
      const int64_t next = block + t, last = std::min(u, T - next);  // places of the next block that see it
      for (int64_t j = 0; last > 0 && j < k; ++j) {
        for (int64_t r = 0; r < last; ++r) take(next, r, j);
        add_frequency(1, j);
      }
      dx[row * s.width() + column] = sum;
    }
}

// ---- Weights of the frequencies -------------------------------------------------------------------------------------
// Of head h a linear layer of k·d inputs (j, channel) and d outputs.

void Reference::mix_frequencies(real* o, const real* c, const real* weight, const DctShape& s) {
  const int64_t d = s.head_width;
  for (int64_t n = 0; n < s.rows(); ++n)
    for (int64_t column = 0; column < s.width(); ++column) {
      const int64_t h = column / d;
      const Line W{weight + s.weight(static_cast<int>(h)) + column % d, d};
      o[n * s.width() + column] = chain_dot(0, c + row_of_c(s, s.plan[h], 0, n), W, s.plan[h].frequencies * d);
    }
}

// dweight comes first, because dc may be c.
void Reference::mix_frequencies_backward(real* dc, real* dweight, const real* d_o, const real* c, const real* weight,
                                         const DctShape& s) {
  const int64_t d = s.head_width;
  for (int64_t h = 0; h < s.heads; ++h) {
    const int64_t in = s.plan[h].frequencies * d, first = s.begin(s.plan[h]), W = s.weight(static_cast<int>(h));
    for (int64_t i = 0; i < in; ++i)
      for (int64_t o = 0; o < d; ++o)
        dweight[W + i * d + o] =
            chain_dot(dweight[W + i * d + o], {c + first + i, in}, {d_o + h * d + o, s.width()}, s.rows());
    for (int64_t n = 0; n < s.rows(); ++n)
      for (int64_t i = 0; i < in; ++i)
        dc[first + n * in + i] = chain_dot(0, d_o + n * s.width() + h * d, weight + W + i * d, d);
  }
}

}  // namespace petroglyph
