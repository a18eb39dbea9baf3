// The sliding cosine transform of one head's channels, for vectors of channels on the CPU and one thread for each
// channel on the GPU. The catalogue has the formulas (sliding_dct).
//
// The window of position i ends there, so that it lies in at most two blocks of t positions: all of it that is in i's
// own block is the block's beginning up to i, and the rest is an end of the block before. With r and u the places in
// their blocks and
//   θ_u = πju/t,  φ_r = πj(2r+1)/(2t)
// the cosine of x_u for position r is cos(θ_u − φ_r) where u stands in the block before and (−1)^j cos(θ_u − φ_r) in
// r's own, and cos(θ − φ) = cos θ cos φ + sin θ sin φ. So two running sums for each frequency, of cos θ_u x_u and sin
// θ_u x_u, serve all positions: taken over a block from its beginning for its own positions, from its end for those of
// the next block.
//
// That is 8 multiply-adds a frequency, whatever the window; a product with t cosines takes t. And nothing drifts: a sum
// never has more than t terms, and no term is ever taken off again, as a recurrence would that slides one sum along.
#pragma once

#include "ops/ops.h"

// Sums that the compiler leaves in memory, because it unrolls too late, cost a factor of five.
#if defined(__CUDACC__) || !defined(__OPTIMIZE__)
#define UNROLL_GROUP  // nvcc unrolls in time; without optimization nothing does, and g++ says so
#else
#define UNROLL_GROUP _Pragma("GCC unroll 4")
#endif

namespace petroglyph {
namespace dct {

using numerics::fma;

constexpr int GROUP = 4;  // frequencies at a time, an even number: their running sums stay in registers

// One channel. CPU: Lanes of several.
struct OneChannel {
  using Number = real;
  static HOST_DEVICE real load(const real* x) { return *x; }
  static HOST_DEVICE void store(real* x, real value) { *x = value; }
};

// Of a row and frequency: what x is taken in with, cos θ and sin θ, and what the sums are given out with, cos φ and sin
// φ times the transform's factor.
struct Wave {
  real take_cos, take_sin, give_cos, give_sin;
};
static_assert(sizeof(Wave) == 4 * sizeof(real), "tables are arrays of real");

// Frequencies j … of one head. From one row to the next: x_step numbers of x, k·d of c.
struct Head {
  const Wave* waves;  // (min(t, longest),k), from frequency j on
  int t, k, d;
  int x_step;
  int64_t c_step;

  HOST_DEVICE Head(const DctShape& s, const DctHead& h, int j)
      : waves(reinterpret_cast<const Wave*>(s.waves) + h.waves + j),
        t(h.window),
        k(h.frequencies),
        d(s.head_width),
        x_step(s.width()),
        c_step(int64_t{1} * h.frequencies * s.head_width) {}
  HOST_DEVICE const Wave& wave(int row, int g) const { return waves[int64_t{1} * row * k + g]; }
};

template <class Lanes, int G>
struct Sums {
  typename Lanes::Number cos[G], sin[G];
};

// ---- Forward --------------------------------------------------------------------------------------------------------

template <class Lanes, int G>
HOST_DEVICE void take(Sums<Lanes, G>& s, const typename Lanes::Number& x, const Head& h, int row) {
  UNROLL_GROUP
  for (int g = 0; g < G; ++g) {
    s.cos[g] = fma(h.wave(row, g).take_cos, x, s.cos[g]);
    s.sin[g] = fma(h.wave(row, g).take_sin, x, s.sin[g]);
  }
}

// c: what the first `count` positions of the next block take of this whole block x.
template <class Lanes, int G>
HOST_DEVICE void give_next_block(real* c, const real* x, const Head& h, int count) {
  Sums<Lanes, G> s = {};
  for (int r = h.t - 1; r > 0; --r) {
    take<Lanes, G>(s, Lanes::load(x + int64_t{1} * r * h.x_step), h, r);
    if (r > count) continue;
    real* to = c + (r - 1) * h.c_step;
    UNROLL_GROUP
    for (int g = 0; g < G; ++g) {
      const Wave& w = h.wave(r - 1, g);
      Lanes::store(to + g * h.d, fma(w.give_sin, s.sin[g], w.give_cos * s.cos[g]));
    }
  }
  if (h.t > count) return;
  UNROLL_GROUP
  for (int g = 0; g < G; ++g) Lanes::store(c + (h.t - 1) * h.c_step + g * h.d, typename Lanes::Number{});
}

// c of the places begin … end−1 of a block, from what the block before gave, or null: nothing. s: of the places before;
// x from place `begin` on, and so c, and `before`, which may be c
template <class Lanes, int G>
HOST_DEVICE void finish_block(real* c, const real* before, const real* x, const Head& h, Sums<Lanes, G>& s, int begin,
                              int end) {
  using Number = typename Lanes::Number;
  for (int r = begin; r < end; ++r) {
    take<Lanes, G>(s, Lanes::load(x + int64_t{1} * (r - begin) * h.x_step), h, r);
    const int64_t row = (r - begin) * h.c_step;
    UNROLL_GROUP
    for (int g = 0; g < G; ++g) {
      const Wave& w = h.wave(r, g);
      const real sign = g % 2 ? real(-1) : real(1);
      const Number start = before ? Lanes::load(before + row + g * h.d) : Number{};
      Lanes::store(c + row + g * h.d, fma(sign * w.give_sin, s.sin[g], fma(sign * w.give_cos, s.cos[g], start)));
    }
  }
}

// The blocks begin … end−1 of T positions. x, c: of the sequence
template <class Lanes, int G>
HOST_DEVICE void transform(real* c, const real* x, const Head& h, int T, int begin, int end) {
  for (int block = begin; block < end; ++block) {
    const int64_t first = int64_t{1} * block * h.t;
    const int count = T - first < h.t ? static_cast<int>(T - first) : h.t;
    real* const to = c + first * h.c_step;
    if (block > 0) give_next_block<Lanes, G>(to, x + (first - h.t) * h.x_step, h, count);
    Sums<Lanes, G> s = {};
    finish_block<Lanes, G>(to, block > 0 ? to : nullptr, x + first * h.x_step, h, s, 0, count);
  }
}

// ---- Backward -------------------------------------------------------------------------------------------------------
// The sums of dc, with the waves' parts exchanged: a position takes them over its own block's end and the next one's
// beginning.

template <class Lanes, int G>
HOST_DEVICE void take_gradient(Sums<Lanes, G>& s, const real* dc, const Head& h, int row) {
  UNROLL_GROUP
  for (int g = 0; g < G; ++g) {
    const typename Lanes::Number value = Lanes::load(dc + row * h.c_step + g * h.d);
    s.cos[g] = fma(h.wave(row, g).give_cos, value, s.cos[g]);
    s.sin[g] = fma(h.wave(row, g).give_sin, value, s.sin[g]);
  }
}

// SIGNED: with (−1)^j
template <class Lanes, int G, bool SIGNED>
HOST_DEVICE void give_gradient(real* dx, bool add, const Sums<Lanes, G>& s, const Head& h, int row) {
  typename Lanes::Number sum = {};
  if (add) sum = Lanes::load(dx);
  UNROLL_GROUP
  for (int g = 0; g < G; ++g) {
    const real sign = SIGNED && g % 2 ? real(-1) : real(1);
    sum = fma(sign * h.wave(row, g).take_cos, s.cos[g], sum);
    sum = fma(sign * h.wave(row, g).take_sin, s.sin[g], sum);
  }
  Lanes::store(dx, sum);
}

template <class Lanes, int G>
HOST_DEVICE void own_gradient(real* dx, const real* dc, const Head& h, bool add, int count) {
  Sums<Lanes, G> s = {};
  for (int r = count - 1; r >= 0; --r) {
    take_gradient<Lanes, G>(s, dc, h, r);
    give_gradient<Lanes, G, true>(dx + int64_t{1} * r * h.x_step, add, s, h, r);
  }
}

// dc: of the next block, which has `count` positions
template <class Lanes, int G>
HOST_DEVICE void next_gradient(real* dx, const real* dc, const Head& h, int count) {
  Sums<Lanes, G> s = {};
  const int last = count < h.t - 1 ? count : h.t - 1;
  for (int u = 1; u <= last; ++u) {
    take_gradient<Lanes, G>(s, dc, h, u - 1);
    give_gradient<Lanes, G, false>(dx + int64_t{1} * u * h.x_step, true, s, h, u);
  }
  for (int u = last + 1; u < h.t; ++u) give_gradient<Lanes, G, false>(dx + int64_t{1} * u * h.x_step, true, s, h, u);
}

// ---- Decoding -------------------------------------------------------------------------------------------------------

// One head's part of a decoder's state: the block's inputs so far, what the block before gives, and the sums.
struct HeadState {
  real *x, *given, *sums;  // (rows,d), (rows,k,d), (2,k,d)

  HOST_DEVICE HeadState(real* state, const DctHead& h, int d)
      : x(state + h.state), given(x + int64_t{1} * h.rows * d), sums(given + int64_t{1} * h.rows * h.frequencies * d) {}
};

// Positions p … p+n−1 of a sequence, all in one block. x, c: from p on. past.x: the block's inputs, d numbers a row
template <class Lanes, int G>
HOST_DEVICE void append_group(real* c, const real* x, const DctShape& shape, const DctHead& head, const HeadState& past,
                              int channel, int j, int p, int n) {
  Head h(shape, head, j);
  const int place = p % h.t, at = j * h.d + channel;
  Sums<Lanes, G> s = {};
  UNROLL_GROUP
  for (int g = 0; place > 0 && g < G; ++g) {
    s.cos[g] = Lanes::load(past.sums + at + g * h.d);
    s.sin[g] = Lanes::load(past.sums + h.c_step + at + g * h.d);
  }
  finish_block<Lanes, G>(c + at, p >= h.t ? past.given + place * h.c_step + at : nullptr, x + channel, h, s, place,
                         place + n);
  UNROLL_GROUP
  for (int g = 0; g < G; ++g) {
    Lanes::store(past.sums + at + g * h.d, s.cos[g]);
    Lanes::store(past.sums + h.c_step + at + g * h.d, s.sin[g]);
  }
  if (place + n < h.t) return;
  h.x_step = h.d;
  give_next_block<Lanes, G>(past.given + at, past.x + channel, h, h.t);
}

// `channel` and its neighbours of one head and sample: the newest positions of a sequence, at most up to the end of a
// block at a time.
template <class Lanes>
HOST_DEVICE void append(real* c, const real* x, const DctShape& shape, const DctHead& head, const HeadState& past,
                        int channel) {
  const int d = shape.head_width, t = head.window, k = head.frequencies;
  const int64_t c_step = int64_t{1} * k * d;
  for (int done = 0, n = 0; done < shape.positions; done += n) {
    const int p = shape.before + done, place = p % t, left = shape.positions - done;
    n = left < t - place ? left : t - place;
    const real* from = x + int64_t{1} * done * shape.width();
    for (int i = 0; i < n; ++i)
      Lanes::store(past.x + int64_t{1} * (place + i) * d + channel,
                   Lanes::load(from + int64_t{1} * i * shape.width() + channel));
    real* to = c + done * c_step;
    for (int j = 0; j < k; j += GROUP) switch (k - j) {
        case 1: append_group<Lanes, 1>(to, from, shape, head, past, channel, j, p, n); break;
        case 2: append_group<Lanes, 2>(to, from, shape, head, past, channel, j, p, n); break;
        case 3: append_group<Lanes, 3>(to, from, shape, head, past, channel, j, p, n); break;
        default: append_group<Lanes, GROUP>(to, from, shape, head, past, channel, j, p, n);
      }
  }
}

// ---- A run of blocks ------------------------------------------------------------------------------------------------

// A thread takes whole blocks of a head, at least so many positions together.
constexpr int LEAST_RUN = 64;

struct Run {
  int begin, end;  // blocks

  HOST_DEVICE Run(int t, int T, int number) {
    const int blocks = (T + t - 1) / t, each = t < LEAST_RUN ? (LEAST_RUN + t - 1) / t : 1;
    begin = number * each;
    end = begin + each < blocks ? begin + each : blocks;
  }
};
// The most runs that any head has of T positions.
inline int most_runs(int T) { return (T + LEAST_RUN - 1) / LEAST_RUN; }

// c of a run, the frequencies j … j+GROUP−1 that there are. x, c: of the sequence, from the channel on
template <class Lanes>
HOST_DEVICE void transform_run(real* c, const real* x, const DctShape& s, const DctHead& head, int j, const Run& run) {
  const Head h(s, head, j);
  c += int64_t{1} * j * h.d;
  switch (head.frequencies - j) {
    case 1: return transform<Lanes, 1>(c, x, h, s.positions, run.begin, run.end);
    case 2: return transform<Lanes, 2>(c, x, h, s.positions, run.begin, run.end);
    case 3: return transform<Lanes, 3>(c, x, h, s.positions, run.begin, run.end);
    default: return transform<Lanes, GROUP>(c, x, h, s.positions, run.begin, run.end);
  }
}

template <class Lanes, int G>
HOST_DEVICE void gradient_group(real* dx, const real* dc, const DctShape& s, const DctHead& head, int j, int block,
                                bool next) {
  const Head h(s, head, j);
  const int64_t first = int64_t{1} * (block + next) * h.t;
  const int count = s.positions - first < h.t ? static_cast<int>(s.positions - first) : h.t;
  real* const to = dx + int64_t{1} * block * h.t * h.x_step;
  const real* const from = dc + first * h.c_step + int64_t{1} * j * h.d;
  if (next)
    next_gradient<Lanes, G>(to, from, h, count);
  else
    own_gradient<Lanes, G>(to, from, h, j > 0, count);
}

template <class Lanes>
HOST_DEVICE void gradient_run(real* dx, const real* dc, const DctShape& s, const DctHead& head, const Run& run) {
  for (int block = run.begin; block < run.end; ++block)
    for (int next = 0; next < 2; ++next) {
      if (next && int64_t{1} * (block + 1) * head.window >= s.positions) continue;
      for (int j = 0; j < head.frequencies; j += GROUP) switch (head.frequencies - j) {
          case 1: gradient_group<Lanes, 1>(dx, dc, s, head, j, block, next); break;
          case 2: gradient_group<Lanes, 2>(dx, dc, s, head, j, block, next); break;
          case 3: gradient_group<Lanes, 3>(dx, dc, s, head, j, block, next); break;
          default: gradient_group<Lanes, GROUP>(dx, dc, s, head, j, block, next);
        }
    }
}

}  // namespace dct
}  // namespace petroglyph

#undef UNROLL_GROUP
