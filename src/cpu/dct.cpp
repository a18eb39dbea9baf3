// The sliding cosine transform: c (B,T,frequencies,d) of each head from x (B,T,H), and the product of c with the
// weights of its frequencies: o (B,T,H). The steps of the transform are in ops/sliding_dct.h, the formulas in the
// catalogue, the loops that define them in reference/dct.cpp.
//
// A task is a run of blocks of one head of one sample. It processes two vectors of channels at a time, if the head has
// as many: each value of a wave is then loaded once for both. Gain of the vectors: 19 % of a step of DCT-MLP.

#include <algorithm>

#include "cpu/cpu.h"
#include "cpu/loops.h"
#include "cpu/product.h"
#include "cpu/scratch.h"
#include "cpu/several.h"
#include "ops/sliding_dct.h"

namespace petroglyph {

namespace {

// A vector of channels, for the templates of ops/sliding_dct.h
struct Channels {
  using Number = Several<VECTOR_WIDTH, 1>;
  static Number load(const real* x) { return Number::load(x); }
  static void store(real* x, const Number& number) { number.store(x); }
};

// Without an fma instruction fma is emulated for one number after the other, so vectors would gain nothing. Moreover
// g++ 12 miscompiles them at -O3 in the generic build: with -fno-tree-slp-vectorize or -fno-tree-loop-vectorize,
// test/bits finds the bits of -O2 and clang++.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__aarch64__)
constexpr bool IN_VECTORS = true;
#else
constexpr bool IN_VECTORS = false;
#endif

// Calls f(lanes, channel) for all d channels of a head: one vector or one channel at a time.
template <class F>
void for_channels(int d, F f) {
  int channel = 0;
  if constexpr (IN_VECTORS)
    for (; channel + VECTOR_WIDTH <= d; channel += VECTOR_WIDTH) f(Channels(), channel);
  for (; channel < d; ++channel) f(dct::OneChannel(), channel);
}

// Calls f(head, run, x, c) for every run of blocks of every head of every sample. x, c: the offsets of the head's
// numbers
template <class F>
void for_runs(const Threads& threads, const DctShape& s, F f, const char* caller = __builtin_FUNCTION()) {
  const int64_t runs = dct::most_runs(s.positions);
  const auto one = [&](int64_t task, int64_t, int) {
    const int64_t h = task / runs % s.heads, sample = task / runs / s.heads;
    const DctHead& head = s.plan[h];
    const dct::Run run(head.window, s.positions, static_cast<int>(task % runs));
    if (run.begin >= run.end) return;
    f(head, run, sample * s.positions * s.width() + h * s.head_width,
      s.begin(head) + sample * s.positions * head.frequencies * s.head_width);
  };
  parallel(threads, int64_t{1} * s.batch * s.heads * runs, 1, s.rows() * s.width() * s.most * 4, one, caller);
}

}  // namespace

void Cpu::sliding_dct(real* c, real* state, const real* x, const DctShape& s) {
  if (!state)
    return for_runs(threads_, s, [&](const DctHead& head, const dct::Run& run, int64_t of_x, int64_t of_c) {
      for_channels(s.head_width, [&](auto lanes, int channel) {
        for (int j = 0; j < head.frequencies; j += dct::GROUP)
          dct::transform_run<decltype(lanes)>(c + of_c + channel, x + of_x + channel, s, head, j, run);
      });
    });
  parallel(
      threads_, int64_t{1} * s.batch * s.heads, 1, s.rows() * s.width() * s.most * 4, [&](int64_t task, int64_t, int) {
        const int64_t h = task % s.heads, sample = task / s.heads;
        const DctHead& head = s.plan[h];
        const dct::HeadState past(state + sample * s.state_size, head, s.head_width);
        real* to = c + s.begin(head) + sample * s.positions * head.frequencies * s.head_width;
        const real* from = x + sample * s.positions * s.width() + h * s.head_width;
        for_channels(s.head_width,
                     [&](auto lanes, int channel) { dct::append<decltype(lanes)>(to, from, s, head, past, channel); });
      });
}

void Cpu::sliding_dct_backward(real* dx, const real* dc, const DctShape& s) {
  for_runs(threads_, s, [&](const DctHead& head, const dct::Run& run, int64_t of_x, int64_t of_c) {
    for_channels(s.head_width, [&](auto lanes, int channel) {
      dct::gradient_run<decltype(lanes)>(dx + of_x + channel, dc + of_c + channel, s, head, run);
    });
  });
}

// ---- Weights of the frequencies -------------------------------------------------------------------------------------

namespace {

constexpr int64_t ROWS = 256;  // rows of c of one task

int64_t work_of_mixing(const DctShape& s) { return s.rows() * s.width() * s.most * s.head_width; }

}  // namespace

void Cpu::mix_frequencies(real* o, const real* c, const real* weight, const DctShape& s) {
  const int64_t N = s.rows(), D = s.width(), d = s.head_width, blocks = (N + ROWS - 1) / ROWS;
  reserve_scratch(PACKED_SIZE);
  parallel(threads_, s.heads * blocks, 1, work_of_mixing(s), [&](int64_t task, int64_t, int thread) {
    const int64_t h = task / blocks, row = task % blocks * ROWS, rows = std::min(ROWS, N - row);
    const DctHead& head = s.plan[h];
    const int64_t K = head.frequencies * d;
    const View a{c + s.begin(head) + row * K, K, 1}, b{weight + s.weight(static_cast<int>(h)), d, 1};
    multiply({o + row * D + h * d, D, a, b, rows, d, K, Into::WRITE}, scratch(thread));
  });
}

void Cpu::mix_frequencies_backward(real* dc, real* dweight, const real* d_o, const real* c, const real* weight,
                                   const DctShape& s) {
  const int64_t N = s.rows(), D = s.width(), d = s.head_width, blocks = (N + ROWS - 1) / ROWS;
  // A task computes some of a head's rows (j, channel) of dweight, and reads all of the head's d_o.
  const int64_t part = std::max<int64_t>(48, s.most * d * s.heads / (8 * threads_.count)),
                parts = (s.most * d + part - 1) / part;
  reserve_scratch(std::max(PACKED_SIZE, packed_size(CHUNK, d) + packed_rows_size(part, CHUNK) + 32));
  parallel(threads_, s.heads * parts, 1, work_of_mixing(s), [&](int64_t task, int64_t, int thread) {
    const int64_t h = task / parts, begin = task % parts * part;
    const DctHead& head = s.plan[h];
    const int64_t K = head.frequencies * d, rows = std::min(part, K - begin);
    if (rows <= 0) return;
    Parts buffers(scratch(thread));
    real *const b = buffers.take(packed_size(CHUNK, d)), *const a = buffers.take(packed_rows_size(part, CHUNK));
    real* const to = dweight + s.weight(static_cast<int>(h)) + begin * d;
    for (int64_t row = 0; row < N; row += CHUNK) {
      const int64_t depth = std::min(CHUNK, N - row);
      const View transposed{c + s.begin(head) + row * K + begin, 1, K};
      multiply_transposed({to, d, transposed, {}, rows, d, depth, Into::ADD},
                          pack(b, {d_o + row * D + h * d, D, 1}, depth, d), a);
    }
  });
  parallel(threads_, s.heads * blocks, 1, work_of_mixing(s), [&](int64_t task, int64_t, int thread) {
    const int64_t h = task / blocks, row = task % blocks * ROWS, rows = std::min(ROWS, N - row);
    const DctHead& head = s.plan[h];
    const int64_t K = head.frequencies * d;
    const View a{d_o + row * D + h * d, D, 1}, b{weight + s.weight(static_cast<int>(h)), 1, d};
    multiply({dc + s.begin(head) + row * K, K, a, b, rows, K, d, Into::WRITE}, scratch(thread));
  });
}

}  // namespace petroglyph
