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

// Σ cos θ_u x_u and Σ sin θ_u x_u. Place r of a block uses them as s_j (cos φ_r · first + sin φ_r · second).
struct Rotating {
  real cos, sin;
};

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

// given (t,k,d): what the next block takes of this whole block x (t,d)
void give_next(real* given, const real* x, const DctShape& s, const DctHead& head) {
  const int64_t d = s.head_width, k = head.frequencies;
  for (int64_t j = 0; j < k; ++j)
    for (int64_t channel = 0; channel < d; ++channel) {
      Rotating sum{0, 0};
      for (int64_t r = head.window - 1; r >= 0; --r) {
        const dct::Wave& w = wave(s, head, r, j);
        given[(r * k + j) * d + channel] =
            r + 1 < head.window ? fma(w.give_sin, sum.sin, w.give_cos * sum.cos) : real(0);
        sum.cos = fma(w.take_cos, x[r * d + channel], sum.cos);
        sum.sin = fma(w.take_sin, x[r * d + channel], sum.sin);
      }
    }
}

}  // namespace

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
        if (r + 1 == t) give_next(given, block, s, head);
      }
    }
}

namespace {

// dx of one position and channel. dc: its channel of position 0 of the same sample and head, positions k·d apart
real position_gradient(const real* dc, int64_t position, const DctShape& s, const DctHead& head) {
  const int64_t d = s.head_width, k = head.frequencies, t = head.window, u = position % t, block = position - u;
  const auto take = [&](Rotating& sum, int64_t first, int64_t r, int64_t j) {
    const dct::Wave& w = wave(s, head, r, j);
    sum.cos = fma(w.give_cos, dc[((first + r) * k + j) * d], sum.cos);
    sum.sin = fma(w.give_sin, dc[((first + r) * k + j) * d], sum.sin);
  };
  real dx = 0;
  for (int64_t j = 0; j < k; ++j) {  // the positions of its own block, from the block's end
    Rotating sum{0, 0};
    for (int64_t r = std::min<int64_t>(t, s.positions - block) - 1; r >= u; --r) take(sum, block, r, j);
    dx = fma(sign_of(j) * wave(s, head, u, j).take_cos, sum.cos, dx);
    dx = fma(sign_of(j) * wave(s, head, u, j).take_sin, sum.sin, dx);
  }
  const int64_t next = block + t, last = std::min(u, s.positions - next);  // places of the next block that see it
  for (int64_t j = 0; last > 0 && j < k; ++j) {
    Rotating sum{0, 0};
    for (int64_t r = 0; r < last; ++r) take(sum, next, r, j);
    dx = fma(wave(s, head, u, j).take_cos, sum.cos, dx);
    dx = fma(wave(s, head, u, j).take_sin, sum.sin, dx);
  }
  return dx;
}

}  // namespace

void Reference::sliding_dct_backward(real* dx, const real* dc, const DctShape& s) {
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.positions; ++i)
        for (int64_t channel = 0; channel < s.head_width; ++channel)
          dx[row_of_x(s, h, b, i) + channel] =
              position_gradient(dc + row_of_c(s, s.plan[h], b, 0) + channel, i, s, s.plan[h]);
}

// ---- Weights of the frequencies -------------------------------------------------------------------------------------
// Of head h a linear layer of k·d inputs (j, channel) and d outputs.

void Reference::mix_frequencies(real* o, const real* c, const real* weight, const DctShape& s) {
  const int64_t d = s.head_width;
  for (int64_t n = 0; n < s.rows(); ++n)
    for (int64_t h = 0; h < s.heads; ++h) {
      const real *in = c + row_of_c(s, s.plan[h], 0, n), *W = weight + s.weight(static_cast<int>(h));
      for (int64_t channel = 0; channel < d; ++channel)
        o[row_of_x(s, h, 0, n) + channel] = chain_sum(
            0, s.plan[h].frequencies * d, [&](real sum, int64_t i) { return fma(in[i], W[i * d + channel], sum); });
    }
}

// dweight comes first, because dc may be c.
void Reference::mix_frequencies_backward(real* dc, real* dweight, const real* d_o, const real* c, const real* weight,
                                         const DctShape& s) {
  const int64_t d = s.head_width;
  for (int64_t h = 0; h < s.heads; ++h) {
    const DctHead& head = s.plan[h];
    const real* W = weight + s.weight(static_cast<int>(h));
    real* dW = dweight + s.weight(static_cast<int>(h));
    for (int64_t i = 0; i < head.frequencies * d; ++i)
      for (int64_t channel = 0; channel < d; ++channel)
        dW[i * d + channel] = chain_dot(dW[i * d + channel], {c + row_of_c(s, head, 0, 0) + i, head.frequencies * d},
                                        {d_o + row_of_x(s, h, 0, 0) + channel, s.width()}, s.rows());
    for (int64_t n = 0; n < s.rows(); ++n)
      for (int64_t i = 0; i < head.frequencies * d; ++i)
        dc[row_of_c(s, head, 0, n) + i] = chain_dot(0, {d_o + row_of_x(s, h, 0, n)}, {W + i * d}, d);
  }
}

}  // namespace petroglyph
