// A Causal Relation Network that learns to copy: the whole program in one file that includes only the standard library.
//
//   g++ -O3 -march=native -ffp-contract=off -fno-math-errno -fopenmp examples/causal_rn.cpp -o causal_rn && ./causal_rn
//
// The network reads a random string of 32 letters and learns to repeat it. At step 110 it copies every string without
// error. The last line, `weights ce70d65f056d5778`, is a fingerprint of its 1,355,520 weights. It is the same on every
// machine, and the same as that of ./train_copy, which trains this model with the optimized code in src/.
// `./causal_rn 20` stops after 20 steps.
//
// Read from top to bottom: 1. arithmetic; 2. random numbers; 3. operations, each one forward and backward, with its
// derivation; 4. the model, made of these; 5. AdamW; 6. the task; 7. training.
//
// A tensor is a vector of floats with its shape in a comment: element (n,c) of x (N,D) is x[n * D + c]. A name that
// begins with d is a gradient: dx is the derivative of the loss with respect to x, and has the shape of x.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

constexpr int LETTERS = 32;           // letters in a string
constexpr int B = 64;                 // batch size
constexpr int T = 2 * (LETTERS + 1);  // positions in a sample: BEGIN, the string, SEPARATOR, the string again
constexpr int V = 3 + 26;             // vocabulary: BEGIN, SEPARATOR, END, a … z
constexpr int D = 192;                // width of the residual stream
constexpr int H = 192;                // hidden width of a block
constexpr int BLOCKS = 12;
constexpr uint64_t SEED = 1;

using Tensor = std::vector<float>;
using Tokens = std::vector<int>;
using std::fma;  // fma(a,b,c) = a·b + c, rounded once

// ---- 1. Arithmetic --------------------------------------------------------------------------------------------------
//
// IEEE 754 defines the result of +, −, ×, ÷, √ and fma to the last bit. A program that uses nothing else has the same
// result on every machine, as long as nothing changes the order of its operations:
//   - The compiler must not turn a·b + c into an fma by itself (-ffp-contract=off) nor reorder sums (no -ffast-math).
//   - The exp, log and cos of system libraries differ between versions, so this file has its own.
//   - Every sum has one written order, whatever the number of threads or the width of a vector register:
//       lanes      a sum along a row, as 32 partial sums (lanes): lane l adds the elements l, l+32, l+64, …; then the
//                  lanes are folded: lane l += lane l+16, then l+8, l+4, l+2, l+1
//       long       a sum of many numbers: `lanes` over each chunk of 1024, then the same over the chunks' sums
//       chain      a matrix product: for each output one chain of fma over ascending k, cut after every 1024 terms; the
//                  chunks' sums are added in ascending order
//       ascending  one number after the other
//   - `#pragma omp parallel for` gives each thread its own outputs. No sum is divided among threads.

constexpr int LANES = 32, CHUNK = 1024;
constexpr float LOG2_E = 1.4426950408889634f;

inline uint32_t to_bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// 2^n for −126 ≤ n ≤ 127. A float is (1 + fraction) · 2^(exponent − 127), with the exponent above 23 bits of fraction;
// the shift drops all but the lowest 9 bits of n + 127.
inline float power_of_two(uint32_t n) { return from_bits((n + 127) << 23); }

// For |y| < 2^22, y + 1.5·2^23 has no bits for a fraction: the sum is rounded, and y as an integer is in its low bits.
constexpr float ROUND_TO_INTEGER = 0x1.8p23f;

// sum + 2^y for |y| ≤ 126. With y = n + f, n an integer and |f| ≤ 1/2: 2^y = 2^n · 2^f, and 2^f is a polynomial.
inline float add_exp2(float sum, float y) {
  const float shifted = y + ROUND_TO_INTEGER;
  const float f = y - (shifted - ROUND_TO_INTEGER);
  float p = fma(fma(0x1.5aaa0ap-10f, f, 0x1.3cf080p-7f), f, 0x1.c6bac4p-5f);
  p = fma(fma(p, f, 0x1.ebf9a8p-3f), f, 0x1.62e424p-1f);
  p = fma(p, f, 1.0f);
  return fma(p, power_of_two(to_bits(shifted)), sum);
}

constexpr float LN2_HIGH = 0x1.62e4p-1f, LN2_LOW = 0x1.7f7d1cp-20f;  // ln 2 in two parts; n · LN2_HIGH is exact

// e^x for x ≤ 0. With x = n ln 2 + r: e^x = 2^n · e^r and e^r = 1 + r + r²·q(r), q a polynomial.
inline float exponential(float x) {
  x = std::max(x, -104.0f);  // e^−104 rounds to 0
  const float n = fma(x, LOG2_E, ROUND_TO_INTEGER) - ROUND_TO_INTEGER;
  const float r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, x));
  float q = fma(fma(0x1.6b97a6p-10f, r, 0x1.122538p-7f), r, 0x1.5556f6p-5f);
  q = fma(fma(q, r, 0x1.5554b4p-3f), r, 0x1.fffffep-2f);
  const float sum = 1.0f + r, lost = (1.0f - sum) + r;             // lost: the rounding error of 1 + r
  const int exponent = static_cast<int>(n), half = exponent >> 1;  // two factors: 2^n may be below the smallest float
  return (sum + fma(r * r, q, lost)) * power_of_two(half) * power_of_two(exponent - half);
}

// log x for finite x ≥ 2^−126. With x = 2^k (1 + f) and √½ ≤ 1 + f < √2: log x = k ln 2 + f + f²·q(f), q a polynomial.
inline float logarithm(float x) {
  const int k = static_cast<int>(to_bits(x) - to_bits(std::sqrt(0.5f))) >> 23;
  const float f = from_bits(to_bits(x) - (static_cast<uint32_t>(k) << 23)) - 1.0f;
  float q = fma(fma(-0x1.39c1f4p-4f, f, 0x1.08ceeep-3f), f, -0x1.0f277cp-3f);
  q = fma(fma(q, f, 0x1.225a62p-3f), f, -0x1.542652p-3f);
  q = fma(fma(q, f, 0x1.99a52cp-3f), f, -0x1.000434p-2f);
  q = fma(fma(q, f, 0x1.55554ep-2f), f, -0x1.fffff8p-2f);
  const float large = k * LN2_HIGH, sum = large + f, lost = (large - sum) + f;  // lost: the rounding error of large + f
  return sum + (lost + fma(f * f, q, k * LN2_LOW));
}

// cos(2πu) for 0 ≤ u < 1: so many quarter turns, and then the angle r with |r| ≤ π/4.
inline float cosine_of_turns(float u) {
  const float shifted = 4.0f * u + ROUND_TO_INTEGER;
  const float rest = 4.0f * u - (shifted - ROUND_TO_INTEGER);
  const float r = fma(rest, 0x1.921fb6p+0f, rest * -0x1.777a5cp-25f);  // π/2 in two parts
  const float square = r * r;
  const float s = fma(fma(-0x1.9954p-13f, square, 0x1.110778p-7f), square, -0x1.555546p-3f);
  const float c = fma(fma(0x1.99e80cp-16f, square, -0x1.6c0c28p-10f), square, 0x1.55554ap-5f);
  const float sine = fma(r * square, s, r);
  const float cosine = fma(fma(c, square, -0.5f), square, 1.0f);
  const uint32_t quarter_turns = to_bits(shifted) % 4;
  return quarter_turns == 0 ? cosine : quarter_turns == 1 ? -sine : quarter_turns == 2 ? -cosine : sine;
}

inline float fold(float (&lane)[LANES]) {
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

// Σ x_i over n numbers, in the order `lanes`. The compiler turns the loop over l into vector instructions.
inline float sum_of(const float* x, int n) {
  float lane[LANES] = {};
  for (int i = 0; i < n; i += LANES)
    for (int l = 0; l < std::min(LANES, n - i); ++l) lane[l] += x[i + l];
  return fold(lane);
}

// Σ x_i y_i over n pairs, in the order `lanes`
inline float dot(const float* x, const float* y, int n) {
  float lane[LANES] = {};
  for (int i = 0; i < n; i += LANES)
    for (int l = 0; l < std::min(LANES, n - i); ++l) lane[l] = fma(x[i + l], y[i + l], lane[l]);
  return fold(lane);
}

// Σ x_i in the order `long`
float long_sum(Tensor x) {
  while (x.size() > 1) {
    Tensor sums;
    for (size_t i = 0; i < x.size(); i += CHUNK) sums.push_back(sum_of(&x[i], std::min<int>(CHUNK, x.size() - i)));
    x = sums;
  }
  return x[0];
}

// ---- 2. Random numbers ----------------------------------------------------------------------------------------------
//
// A random number is a function of the seed, its purpose (a stream), the training step and an index. There is no
// generator with a state, so each number can be computed alone and in any order.

// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): ten rounds of multiplication and
// exclusive or turn a counter and a key into four random words.
std::array<uint32_t, 4> philox(uint32_t stream, uint32_t step, uint64_t index) {
  uint32_t a = static_cast<uint32_t>(index), b = static_cast<uint32_t>(index >> 32), c = step, d = stream;
  uint32_t key0 = static_cast<uint32_t>(SEED), key1 = static_cast<uint32_t>(SEED >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xd2511f53u} * a, second = uint64_t{0xcd9e8d57u} * c;
    a = static_cast<uint32_t>(second >> 32) ^ b ^ key0;
    b = static_cast<uint32_t>(second);
    c = static_cast<uint32_t>(first >> 32) ^ d ^ key1;
    d = static_cast<uint32_t>(first);
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return {{a, b, c, d}};
}

// The number of a stream, from its name (the hash FNV-1a).
uint32_t stream_of(const std::string& name) {
  uint32_t hash = 0x811c9dc5u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u;
  return hash;
}

// Standard normal, by Box and Muller: √(−2 log u) cos(2πv) for uniform 0 < u < 1 and 0 ≤ v < 1.
float normal(uint32_t stream, uint64_t index) {
  const std::array<uint32_t, 4> words = philox(stream, 0, index);
  const float u = (static_cast<float>(words[0] >> 9) + 0.5f) * 0x1p-23f;
  const float v = static_cast<float>(words[1] >> 8) * 0x1p-24f;
  return std::sqrt(-2.0f * logarithm(u)) * cosine_of_turns(v);
}

// ---- 3. Operations --------------------------------------------------------------------------------------------------
//
// A backward pass adds to the gradients that it computes; new tensors are zeros.

// A weight matrix or table (rows,columns); a bias has one row.
struct Parameter {
  int rows, columns;
  Tensor value, gradient, m, v;  // m, v: see AdamW

  // Initial values: normal with this standard deviation, or zeros. They depend on the seed and the name alone.
  Parameter(const std::string& name, int row_count, int column_count, float deviation)
      : rows(row_count), columns(column_count), value(rows * columns), gradient(value), m(value), v(value) {
    for (size_t i = 0; deviation > 0 && i < value.size(); ++i) value[i] = deviation * normal(stream_of(name), i);
  }
};

// ---- Matrix products and linear layers ----
// c (N) += Σ_k a_k b_k, one row of a product in the order `chain`, K ≤ CHUNK. In memory the a_k are a_step numbers
// apart and the rows b_k b_step. The inner loop, which becomes vector instructions, takes most of the time.
inline void add_row_product(float* c, const float* a, int a_step, const float* b, int b_step, int K, int N) {
  float sum[std::max(D, H)];
  std::fill_n(sum, N, 0.0f);
  for (int k = 0; k < K; ++k) {
    const float factor = a[k * a_step];
    for (int n = 0; n < N; ++n) sum[n] = fma(factor, b[k * b_step + n], sum[n]);
  }
  for (int n = 0; n < N; ++n) c[n] += sum[n];
}

// c (M,N) += a (M,K) · b (K,N). Element (m,k) of a is a[m * a_row + k * a_column]: steps (K,1) for a stored by rows,
// (1,M) for the transpose of a matrix (K,M).
void add_product(float* c, const float* a, int a_row, int a_column, const float* b, int M, int K, int N) {
  for (int k = 0; k < K; k += CHUNK) {
#pragma omp parallel for
    for (int m = 0; m < M; ++m)
      add_row_product(c + m * N, a + m * a_row + k * a_column, a_column, b + k * N, N, std::min(CHUNK, K - k), N);
  }
}

// (columns,rows) from x (rows,columns)
Tensor transpose(const float* x, int rows, int columns) {
  Tensor transposed(rows * columns);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) transposed[c * rows + r] = x[r * columns + c];
  return transposed;
}

// A linear layer: weight W (out,in), bias b (out) or none
struct Linear {
  Parameter weight, bias;

  Linear(const std::string& name, int in, int out, float deviation, bool has_bias = true)
      : weight(name + ".weight", out, in, deviation), bias(name + ".bias", has_bias ? 1 : 0, out, 0) {}
};

// y += x Wᵀ + b: y_no += Σ_i x_ni W_oi + b_o;  y (N,out), x (N,in)
void linear(Tensor& y, const Tensor& x, const Linear& w) {
  const int in = w.weight.columns, out = w.weight.rows, N = x.size() / in;
  add_product(y.data(), x.data(), in, 1, transpose(w.weight.value.data(), out, in).data(), N, in, out);
  for (int n = 0; n < N && w.bias.rows == 1; ++n)
    for (int o = 0; o < out; ++o) y[n * out + o] += w.bias.value[o];
}

// dW_oi += Σ_n dy_no x_ni     db_o += Σ_n dy_no     dx_ni += Σ_o dy_no W_oi
void linear_backward(Tensor& dx, Linear& w, const Tensor& dy, const Tensor& x) {
  const int in = w.weight.columns, out = w.weight.rows, N = x.size() / in;
  const Tensor ones(N, 1);
  add_product(w.weight.gradient.data(), dy.data(), 1, out, x.data(), out, N, in);
  add_product(w.bias.gradient.data(), ones.data(), N, 1, dy.data(), w.bias.rows, N, out);
  add_product(dx.data(), dy.data(), out, 1, w.weight.value.data(), N, out, in);
}

// ---- Normalization ----
// y = (x − mean x) / σ for each row of x, σ its standard deviation
//   y, x (N,width); inv_std (N): 1/σ. A row of equal numbers becomes zeros, with inv_std 0.
void normalize(Tensor& y, Tensor& inv_std, const Tensor& x) {
  const int N = inv_std.size(), width = x.size() / N;
#pragma omp parallel for
  for (int n = 0; n < N; ++n) {
    const float* in = &x[n * width];
    float* out = &y[n * width];
    const float mean = sum_of(in, width) / width;
    for (int c = 0; c < width; ++c) out[c] = in[c] - mean;
    const float variance = dot(out, out, width) / width;
    inv_std[n] = variance > 0 ? 1 / std::sqrt(variance) : 0;
    for (int c = 0; c < width; ++c) out[c] *= inv_std[n];
  }
}

// ∂mean/∂x_c = 1/width, ∂σ/∂x_c = (x_c − mean)/(width σ) = y_c/width. With δ_ac = 1 for a = c and 0 otherwise,
//   ∂y_a/∂x_c = (δ_ac − 1/width − y_a y_c/width) / σ     and     dx += (dy − mean dy − y · mean(dy∘y)) / σ
void normalize_backward(Tensor& dx, const Tensor& dy, const Tensor& y, const Tensor& inv_std) {
  const int N = inv_std.size(), width = y.size() / N;
#pragma omp parallel for
  for (int n = 0; n < N; ++n) {
    const float *g = &dy[n * width], *out = &y[n * width];
    const float mean = sum_of(g, width) / width;
    const float along = dot(g, out, width) / width;
    for (int c = 0; c < width; ++c)
      dx[n * width + c] = fma(inv_std[n], fma(-along, out[c], g[c] - mean), dx[n * width + c]);
  }
}

// x −= mean x for each row
void center(Tensor& x, int width) {
#pragma omp parallel for
  for (size_t row = 0; row < x.size(); row += width) {
    const float mean = sum_of(&x[row], width) / width;
    for (int c = 0; c < width; ++c) x[row + c] -= mean;
  }
}

// ---- The relation: z_j = 1/j Σ_{i≤j} exp(norm(p_i + q_j)), where each position j looks at all earlier positions i
//
// Let p and q be centered, that is, without the mean over their H channels. Then p_i + q_j has mean 0, and
//   norm(p_i + q_j) = s_ij (p_i + q_j)   with s_ij = 1/σ(p_i + q_j) and
//   H/s_ij² = |p_i + q_j|² = |p_i|² + |q_j|² + 2 p_i·q_j

// s_ij from p_i·q_j and |p_i|² + |q_j|²
inline float inverse_std(const float* p, const float* q, float product, float squares) {
  float square = fma(2.0f, product, squares);
  if (square < squares / 8) {  // p_i ≈ −q_j, and most digits have cancelled: sum |p_i + q_j|² directly
    float d[H];
    for (int c = 0; c < H; ++c) d[c] = p[c] + q[c];
    square = dot(d, d, H);
  }
  const float variance = square / H;
  return variance > 0 ? 1 / std::sqrt(variance) : 0;
}

// z, p, q (samples,T,H), p and q centered; inv_std (samples,T,T): s_ij in row j and column i ≤ j
// exp(h) = 2^(h log₂e), and log₂e joins s_ij: one multiplication for a pair, not for each channel. No element of a
// normalized row is above √H, so the exponent is in the range of add_exp2.
void relation(Tensor& z, Tensor& inv_std, const Tensor& p, const Tensor& q) {
  const int samples = p.size() / (T * H);
#pragma omp parallel for
  for (int b = 0; b < samples; ++b) {
    const float* keys = &p[b * T * H];                // p_i of this sample (T,H)
    const Tensor transposed = transpose(keys, T, H);  // (H,T)
    float squares[T];                                 // |p_i|²
    for (int i = 0; i < T; ++i) squares[i] = dot(keys + i * H, keys + i * H, H);
    for (int j = 0; j < T; ++j) {
      const float* query = &q[(b * T + j) * H];
      const float query_square = dot(query, query, H), mean = 1 / static_cast<float>(j + 1);
      float products[T] = {}, sum[H] = {};
      add_row_product(products, query, 1, transposed.data(), T, H, j + 1);  // p_i·q_j for all i ≤ j
      for (int i = 0; i <= j; ++i) {
        const float s = inverse_std(keys + i * H, query, products[i], squares[i] + query_square), factor = s * LOG2_E;
        for (int c = 0; c < H; ++c) sum[c] = add_exp2(sum[c], factor * (keys[i * H + c] + query[c]));
        inv_std[(b * T + j) * T + i] = s;
      }
      for (int c = 0; c < H; ++c) z[(b * T + j) * H + c] = sum[c] * mean;
    }
  }
}

// The derivative. With d_ij = p_i + q_j (here no gradient) and h_ij = s_ij d_ij, exp passes back
//   g_ij = dz_j ∘ exp(h_ij) / j
// By the derivative of the normalization above, the gradient of d_ij is s_ij (g_ij − mean g_ij − h_ij mean(g_ij∘h_ij)):
//   G_ij = s_ij g_ij − mean(s_ij g_ij) − w_ij (p_i + q_j)   with w_ij = s_ij² mean(g_ij∘h_ij) = s_ij³ (g_ij·d_ij)/H
// and ∂d_ij/∂p_i = ∂d_ij/∂q_j = 1. With center(x) = x − mean x:
//   dp_i = Σ_{j≥i} G_ij = center(Σ_j s_ij g_ij) − p_i Σ_j w_ij − Σ_j w_ij q_j
//   dq_j = Σ_{i≤j} G_ij = center(Σ_i s_ij g_ij) − q_j Σ_i w_ij − Σ_i w_ij p_i
// Only s_ij is saved by the forward pass; the exponentials are computed again. All these sums are `ascending`.

// dx, which has Σ s g, becomes center(Σ s g) − x Σ w − Σ w other; weights is Σ w and mixed (H) is Σ w other
inline void finish_gradient(float* dx, const float* x, float weights, const float* mixed) {
  const float mean = sum_of(dx, H) / H;
  for (int c = 0; c < H; ++c) dx[c] = fma(-weights, x[c], dx[c] - mean) - mixed[c];
}

// dp, dq (zeros before), dz, p, q (samples,T,H); inv_std (samples,T,T)
void relation_backward(Tensor& dp, Tensor& dq, const Tensor& dz, const Tensor& inv_std, const Tensor& p,
                       const Tensor& q) {
  const int samples = p.size() / (T * H);
#pragma omp parallel for
  for (int b = 0; b < samples; ++b) {
    Tensor weights_p(T), mixed_p(T * H);  // Σ_j w_ij and Σ_j w_ij q_j for each i
    for (int j = 0; j < T; ++j) {
      const int row = b * T + j;
      const float *query = &q[row * H], mean = 1 / static_cast<float>(j + 1);
      float weights_q = 0, mixed_q[H] = {}, d[H], g[H], *dquery = &dq[row * H];
      for (int i = 0; i <= j; ++i) {
        const float *key = &p[(b * T + i) * H], s = inv_std[row * T + i];
        for (int c = 0; c < H; ++c) {
          d[c] = key[c] + query[c];
          g[c] = dz[row * H + c] * mean * add_exp2(0.0f, s * LOG2_E * d[c]);
        }
        const float w = s * s * s * (dot(g, d, H) / H);
        float *dkey = &dp[(b * T + i) * H], *mixed_key = &mixed_p[i * H];
        weights_p[i] += w;
        weights_q += w;
        for (int c = 0; c < H; ++c) {
          dkey[c] = fma(s, g[c], dkey[c]);
          dquery[c] = fma(s, g[c], dquery[c]);
          mixed_key[c] = fma(w, query[c], mixed_key[c]);
          mixed_q[c] = fma(w, key[c], mixed_q[c]);
        }
      }
      finish_gradient(dquery, query, weights_q, mixed_q);
    }
    for (int i = b * T; i < (b + 1) * T; ++i)
      finish_gradient(&dp[i * H], &p[i * H], weights_p[i - b * T], &mixed_p[(i - b * T) * H]);
  }
}

// ---- Embedding ----
// x_bt = token_table[token_bt] + position_table[t]
//   x (samples,T,D); tokens (samples,T); token_table (V,D); position_table (T,D)
void embedding(Tensor& x, const Parameter& token_table, const Parameter& position_table, const Tokens& tokens) {
  for (size_t n = 0; n < tokens.size(); ++n)
    for (int c = 0; c < D; ++c)
      x[n * D + c] = token_table.value[tokens[n] * D + c] + position_table.value[n % T * D + c];
}

// dtoken_table += (tokens as one-hot rows)ᵀ dx, since x = one_hot · token_table;  dposition_table[t] += Σ_b dx_bt
void embedding_backward(Parameter& token_table, Parameter& position_table, const Tensor& dx, const Tokens& tokens) {
  const int N = tokens.size();
  Tensor one_hot(N * V);  // (N,V)
  for (int n = 0; n < N; ++n) one_hot[n * V + tokens[n]] = 1;
  add_product(token_table.gradient.data(), one_hot.data(), 1, V, dx.data(), V, N, D);
  for (int n = 0; n < N; ++n)
    for (int c = 0; c < D; ++c) position_table.gradient[n % T * D + c] += dx[n * D + c];
}

// ---- Cross-entropy ----
// loss_n = −log softmax(x_n)_target = log Σ_v exp(x_nv) − x_n,target     ∂loss_n/∂x_nv = softmax(x_n)_v − [v = target]
//   losses (N); dlogits (N,V), the derivative times `scale`; logits (N,V); targets (N), −1 where a position is ignored
// The largest logit is subtracted first, which changes no loss and keeps every exponential at most 1.
void cross_entropy(Tensor& losses, Tensor& dlogits, const Tensor& logits, const Tokens& targets, float scale) {
  const int N = targets.size();
#pragma omp parallel for
  for (int n = 0; n < N; ++n) {
    const float* x = &logits[n * V];
    float *dx = &dlogits[n * V], e[V];
    losses[n] = 0;
    std::fill_n(dx, V, 0.0f);
    if (targets[n] < 0) continue;
    const float largest = *std::max_element(x, x + V);
    for (int v = 0; v < V; ++v) e[v] = exponential(x[v] - largest);
    const float total = sum_of(e, V);
    losses[n] = logarithm(total) - (x[targets[n]] - largest);
    for (int v = 0; v < V; ++v) dx[v] = scale * (e[v] / total - (v == targets[n] ? 1.0f : 0.0f));
  }
}

// ---- 4. Model -------------------------------------------------------------------------------------------------------
//
// Cui, Yan, Muhawenayo and Kerner, "An All-MLP Sequence Modeling Architecture That Excels at Copying":
//
//   x = token_embedding[token] + position_embedding[position]     (B,T,D)
//   in each block:
//     r   = norm(x)                                               (B,T,D)
//     p_i = W_left r_i                                            (B,T,H)   what position i offers
//     q_j = W_right r_j + b_right                                 (B,T,H)   what position j looks for
//     z_j = 1/j Σ_{i≤j} exp(norm(p_i + q_j))                      (B,T,H)
//     x  += W_out norm(z) + b_out                                 (B,T,D)   the residual connection
//   logits = W_head norm(x)                                       (B,T,V)
//
// Why it can recall: without the inner norm, exp(p_i + q_j) = exp(p_i)∘exp(q_j), and the sum over i would be one vector
// in which all of the past is mixed. With the norm each pair (i,j) has a result of its own, as in attention.

// The standard deviation of initial weights; that of layers which add to x is smaller, so that x stays of one size.
const float DEVIATION = 0.02f, OUT_DEVIATION = DEVIATION / std::sqrt(static_cast<float>(BLOCKS));

struct Block {
  Linear left, right, out;
};

struct Model {
  Parameter token_embedding{"token_embedding.weight", V, D, 1};
  Parameter position_embedding{"position_embedding.weight", T, D, 1};
  std::vector<Block> blocks;
  Linear head{"head", D, V, DEVIATION, false};

  Model() {
    for (int l = 0; l < BLOCKS; ++l) {
      const std::string name = "blocks." + std::to_string(l);
      blocks.push_back({{name + ".left", D, H, DEVIATION, false},
                        {name + ".right", D, H, DEVIATION},
                        {name + ".out", H, D, OUT_DEVIATION}});
    }
  }

  std::vector<Parameter*> parameters() {
    std::vector<Parameter*> all = {&token_embedding, &position_embedding};
    for (Block& b : blocks)
      for (Linear* layer : {&b.left, &b.right, &b.out}) all.insert(all.end(), {&layer->weight, &layer->bias});
    all.push_back(&head.weight);
    return all;
  }
};

// What the backward pass needs of the forward pass; N = samples · T.
struct SavedBlock {
  Tensor r, r_inv_std;  // (N,D), (N)
  Tensor p, q;          // (N,H) each, centered
  Tensor inv_std;       // (samples,T,T): s_ij
  Tensor y, y_inv_std;  // (N,H), (N): norm(z)
};

struct Saved {
  SavedBlock blocks[BLOCKS];
  Tensor y, y_inv_std;  // (N,D), (N): norm(x) after the last block
};

// x (N,D) becomes the output of the block.
void block_forward(Tensor& x, SavedBlock& a, const Block& w) {
  const int N = x.size() / D;
  Tensor z(N * H);
  a.r.assign(N * D, 0), a.r_inv_std.assign(N, 0);
  a.p.assign(N * H, 0), a.q.assign(N * H, 0), a.inv_std.assign(N * T, 0);
  a.y.assign(N * H, 0), a.y_inv_std.assign(N, 0);
  normalize(a.r, a.r_inv_std, x);  // r = norm(x)                            (N,D)
  linear(a.p, a.r, w.left);        // p = W_left r                           (N,H)
  linear(a.q, a.r, w.right);       // q = W_right r + b_right                (N,H)
  center(a.p, H);                  // which changes no norm(p_i + q_j)
  center(a.q, H);
  relation(z, a.inv_std, a.p, a.q);  // z_j = 1/j Σ_{i≤j} exp(norm(p_i + q_j)) (N,H)
  normalize(a.y, a.y_inv_std, z);    // y = norm(z)                            (N,H)
  linear(x, a.y, w.out);             // x += W_out y + b_out                   (N,D)
}

// dx is the gradient of the block's output and becomes that of its input: the residual connection leaves it as it is,
// and the rest of the block adds to it.
void block_backward(Tensor& dx, Block& w, const SavedBlock& a) {
  const int N = dx.size() / D;
  Tensor dy(N * H), dz(N * H), dp(N * H), dq(N * H), dr(N * D);
  linear_backward(dy, w.out, dx, a.y);                 // x += W_out y + b_out
  normalize_backward(dz, dy, a.y, a.y_inv_std);        // y = norm(z)
  relation_backward(dp, dq, dz, a.inv_std, a.p, a.q);  // z_j = 1/j Σ_{i≤j} exp(norm(p_i + q_j)); dp, dq are centered
  linear_backward(dr, w.left, dp, a.r);                // p = W_left r
  linear_backward(dr, w.right, dq, a.r);               // q = W_right r + b_right
  normalize_backward(dx, dr, a.r, a.r_inv_std);        // r = norm(x)
}

// The logits (N,V) of tokens (samples,T)
Tensor forward(Saved& saved, const Model& model, const Tokens& tokens) {
  const int N = tokens.size();
  Tensor x(N * D), logits(N * V);
  embedding(x, model.token_embedding, model.position_embedding, tokens);
  for (int l = 0; l < BLOCKS; ++l) block_forward(x, saved.blocks[l], model.blocks[l]);
  saved.y.assign(N * D, 0), saved.y_inv_std.assign(N, 0);
  normalize(saved.y, saved.y_inv_std, x);
  linear(logits, saved.y, model.head);
  return logits;
}

// Adds to the gradient of every parameter. dlogits (N,V): the gradient of the logits of the last forward pass
void backward(Model& model, const Saved& saved, const Tensor& dlogits, const Tokens& tokens) {
  const int N = tokens.size();
  Tensor dy(N * D), dx(N * D);
  linear_backward(dy, model.head, dlogits, saved.y);
  normalize_backward(dx, dy, saved.y, saved.y_inv_std);
  for (int l = BLOCKS - 1; l >= 0; --l) block_backward(dx, model.blocks[l], saved.blocks[l]);
  embedding_backward(model.token_embedding, model.position_embedding, dx, tokens);
}

// ---- 5. AdamW -------------------------------------------------------------------------------------------------------
// x^n by repeated squaring: only multiplications, which are exactly defined.
double power(double x, int n) {
  double result = 1;
  for (; n > 0; n /= 2, x *= x)
    if (n % 2 == 1) result *= x;
  return result;
}

// Kingma and Ba 2015; Loshchilov and Hutter 2019, without weight decay. First the gradient of all parameters together
// is scaled down to a norm of at most 1. Then, with g an element of it and t = 1, 2, … the number of the step,
//   m = β₁ m + (1−β₁) g     v = β₂ v + (1−β₂) g²     value −= rate · m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε)
void adamw(const std::vector<Parameter*>& parameters, int t, float rate) {
  const float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  const float correction1 = 1 - power(0.9, t), correction2 = 1 - power(0.999, t);
  Tensor all, squares;
  for (const Parameter* p : parameters) all.insert(all.end(), p->gradient.begin(), p->gradient.end());
  for (size_t i = 0; i < all.size(); i += CHUNK)
    squares.push_back(dot(&all[i], &all[i], std::min<int>(CHUNK, all.size() - i)));
  const float norm = std::sqrt(long_sum(squares)), shrink = norm > 1 ? 1 / norm : 1;
  for (Parameter* p : parameters) {
    float *value = p->value.data(), *gradient = p->gradient.data(), *m = p->m.data(), *v = p->v.data();
    for (size_t i = 0; i < p->value.size(); ++i) {
      const float g = shrink * gradient[i];
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * (g * g);
      value[i] -= rate * (m[i] / correction1 / (std::sqrt(v[i] / correction2) + epsilon));
      gradient[i] = 0;  // for the next step
    }
  }
}

// It rises to 5e-4 over the first 50 steps.
float learning_rate(int step) { return static_cast<float>(step < 50 ? 5e-4 * step / 50 : 5e-4); }

// ---- 6. Task --------------------------------------------------------------------------------------------------------
//
//   tokens    BEGIN  s1 … sn  SEPARATOR  s1 … sn        T = 2(n+1)
//   targets     −     − …  −     s1      s2 … sn END    the first n+1 positions do not count

enum Token { BEGIN, SEPARATOR, END, FIRST_LETTER };
struct Batch {
  Tokens tokens, targets;  // (samples,T) each; target −1: does not count
};

// The samples first … first+count−1 of a step. Training, evaluation and the strings at the end have different streams.
Batch make_batch(const std::string& stream, int step, int first, int count) {
  Batch batch{Tokens(count * T), Tokens(count * T, -1)};
  for (int b = 0; b < count; ++b) {
    int *tokens = &batch.tokens[b * T], *targets = &batch.targets[b * T];
    tokens[0] = BEGIN;
    tokens[LETTERS + 1] = SEPARATOR;
    for (int i = 0; i < LETTERS; ++i) {
      const uint64_t word = philox(stream_of(stream), step, (first + b) * (LETTERS / 4) + i / 4)[i % 4];
      const int letter = static_cast<int>(word * 26 >> 32);  // 0 … 25
      tokens[1 + i] = tokens[LETTERS + 2 + i] = targets[LETTERS + 1 + i] = FIRST_LETTER + letter;
    }
    targets[T - 1] = END;
  }
  return batch;
}

// The token with the largest logit in a row of V
int likeliest(const float* logits) { return static_cast<int>(std::max_element(logits, logits + V) - logits); }

// The mean over the samples of: the fraction of letters that are right, or 0 unless END comes exactly at the end.
double accuracy_of(const Tensor& logits, const Batch& batch) {
  const int samples = batch.tokens.size() / T;
  double sum = 0;
  for (int b = 0; b < samples; ++b) {
    int right = 0, misplaced_ends = 0;
    for (int t = LETTERS + 1; t < T; ++t) {
      const int token = likeliest(&logits[(b * T + t) * V]);
      right += t < T - 1 && token == batch.targets[b * T + t];
      misplaced_ends += (token == END) != (t == T - 1);
    }
    if (misplaced_ends == 0) sum += static_cast<double>(right) / LETTERS;
  }
  return sum / samples;
}

// ---- 7. Training ----------------------------------------------------------------------------------------------------
// The accuracy on 5 batches of new strings
double evaluate(Saved& saved, const Model& model, int step) {
  double sum = 0;
  for (int i = 0; i < 5; ++i) {
    const Batch batch = make_batch("evaluate", step, i * B, B);
    sum += accuracy_of(forward(saved, model, batch.tokens), batch);
  }
  return sum / 5;
}

// Copies four new strings, one token at a time: each predicted token becomes the next input.
void show_copying(Saved& saved, const Model& model) {
  Tokens tokens = make_batch("show", 0, 0, 4).tokens;
  for (int t = LETTERS + 1; t < T - 1; ++t) {
    for (int b = 0; b < 4; ++b) tokens[b * T + t + 1] = BEGIN;  // hides the true letter
    const Tensor logits = forward(saved, model, tokens);
    for (int b = 0; b < 4; ++b) tokens[b * T + t + 1] = likeliest(&logits[(b * T + t) * V]);
  }
  for (int n = 0; n < 4 * T; ++n)
    std::printf("%c%s", "^|$abcdefghijklmnopqrstuvwxyz"[tokens[n]], n % T == T - 1 ? "\n" : "");
}

// 64 bits of all weights in order: equal weights have equal fingerprints. The weights, as 64-bit words, go to four
// hashes in turn; the result is a hash of the four.
uint64_t fingerprint(const std::vector<Parameter*>& parameters) {
  const uint64_t K = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  const auto mix = [](uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * K;
    return hash ^ (hash >> 32);
  };
  uint64_t hashes[4] = {K, 2 * K, 3 * K, 4 * K}, bytes = 0, word;
  for (const Parameter* p : parameters)
    for (size_t i = 0; i < p->value.size(); i += 2, bytes += sizeof word) {
      std::memcpy(&word, &p->value[i], sizeof word);
      hashes[i / 2 % 4] = mix(hashes[i / 2 % 4], word);
    }
  uint64_t hash = mix(0, bytes);
  for (const uint64_t h : hashes) hash = mix(hash, h);
  return hash;
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 2000, counted = B * (LETTERS + 1);
  Model model;
  Saved saved;
  Tensor losses(B * T), dlogits(B * T * V);
  double evaluated = 0;
  for (int step = 0; step < steps && evaluated < 1;) {
    const Batch batch = make_batch("train", step, 0, B);
    const Tensor logits = forward(saved, model, batch.tokens);
    cross_entropy(losses, dlogits, logits, batch.targets, 1.0f / counted);
    backward(model, saved, dlogits, batch.tokens);
    adamw(model.parameters(), step + 1, learning_rate(step));
    ++step;
    std::printf("step %d  loss %.4f  accuracy %5.1f %%\n", step, long_sum(losses) / double(counted),
                100 * accuracy_of(logits, batch));
    std::fflush(stdout);
    if (step % 10 != 0) continue;
    evaluated = evaluate(saved, model, step);
    std::printf("step %d  evaluated: accuracy %.1f %%\n", step, 100 * evaluated);
  }
  show_copying(saved, model);
  std::printf("weights %016llx\n", static_cast<unsigned long long>(fingerprint(model.parameters())));
}
