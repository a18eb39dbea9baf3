// A small GPT-2 that learns to write like a text file: the whole program in one file that includes only the standard
// library. Where it does what examples/causal_rn.cpp does, it is the same, line by line.
//
//   g++ -O3 -march=native -ffp-contract=off -fno-math-errno -fopenmp examples/gpt2.cpp -o gpt2 && ./gpt2 my.txt
//
// my.txt is plain ASCII of at least 650 characters; its last tenth is for validation. The configuration is nanoGPT's
// for a CPU: 4 blocks, 4 heads, width 128, context 64, 2,000 steps (`./gpt2 my.txt 500`: 500 steps). The last line is a
// fingerprint of the weights. It is the same on every machine, and the same as that of the optimized code in src/, with
//   ./train_text --data my.txt --val-part 0.1 --layers 4 --heads 4 --width 128 --context 64 --batch 12 --steps 2000
//     --lr 1e-3 --lr-floor 1e-4 --warmup 20 --beta2 0.99 --weight-decay 0.1 --norm affine --gelu tanh
//     --embedding-deviation 0.02 --eval-every 500 --eval-samples 1700 --sample-length 200
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
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

constexpr int B = 12;   // batch size
constexpr int T = 64;   // context: positions in a sample
constexpr int V = 128;  // vocabulary: the ASCII characters
constexpr int D = 128;  // width of the residual stream
constexpr int HEADS = 4, HEAD_WIDTH = D / HEADS;
constexpr int HIDDEN = 4 * D, BLOCKS = 4;  // width inside an MLP; blocks
constexpr uint64_t SEED = 1;

using Tensor = std::vector<float>;
using Tokens = std::vector<int>;
using std::fma;  // fma(a,b,c) = a·b + c, rounded once

// ---- 1. Arithmetic --------------------------------------------------------------------------------------------------
// The same rules as in examples/causal_rn.cpp, where they are explained: only +, −, ×, ÷, √ and a written fma; this
// file's own exp, log and cos; and one written order for every sum, whatever the threads and vector registers:
//   lanes   a sum along a row, as 32 partial sums (lanes): lane l adds the elements l, l+32, l+64, …; then the lanes
//           are folded: lane l += lane l+16, then l+8, l+4, l+2, l+1
//   long    a sum of more than 1024 numbers: `lanes` over each 1024 of them, and over the sums
//   chain   a matrix product: for each output one chain of fma over ascending k, of at most 1024 terms

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

// 2^n for −126 ≤ n ≤ 127, in the exponent of a float; the shift drops all but the lowest 9 bits of n + 127
inline float power_of_two(uint32_t n) { return from_bits((n + 127) << 23); }

// For |y| < 2^22, y + 1.5·2^23 has no bits for a fraction: the sum is rounded, and y as an integer is in its low bits.
constexpr float ROUND_TO_INTEGER = 0x1.8p23f;

// 2^y for |y| ≤ 126. With y = n + f, n an integer and |f| ≤ 1/2: 2^y = 2^n · 2^f, and 2^f is a polynomial.
inline float exp2_of(float y) {
  const float shifted = y + ROUND_TO_INTEGER, f = y - (shifted - ROUND_TO_INTEGER);
  float p = fma(fma(0x1.5aaa0ap-10f, f, 0x1.3cf080p-7f), f, 0x1.c6bac4p-5f);
  p = fma(fma(p, f, 0x1.ebf9a8p-3f), f, 0x1.62e424p-1f);
  return fma(p, f, 1.0f) * power_of_two(to_bits(shifted));
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

// 1/(1 + e^−x), with e^−|x| on both sides of 0: nothing overflows.
inline float sigmoid(float x) {
  const float e = exponential(-std::fabs(x)), denominator = 1.0f + e;
  const float lost = (1.0f - denominator) + e;  // the rounding error of 1 + e
  const float quotient = (x < 0 ? e : 1.0f) / denominator;
  return fma(-lost, quotient, quotient);
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

constexpr float HALF_PI = 0x1.921fb6p+0f, HALF_PI_MIDDLE = -0x1.777a5cp-25f, HALF_PI_LOW = -0x1.ee59dap-50f;  // π/2

// The cosine of n quarter turns, 0 ≤ n ≤ 3, and the angle r, |r| ≤ π/4
inline float cosine_of(uint32_t n, float r) {
  const float square = r * r;
  const float s = fma(fma(-0x1.9954p-13f, square, 0x1.110778p-7f), square, -0x1.555546p-3f);
  const float c = fma(fma(0x1.99e80cp-16f, square, -0x1.6c0c28p-10f), square, 0x1.55554ap-5f);
  const float sine = fma(r * square, s, r);
  const float cosine = fma(fma(c, square, -0.5f), square, 1.0f);
  return n == 0 ? cosine : n == 1 ? -sine : n == 2 ? -cosine : sine;
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

// ---- 2. Random numbers ----------------------------------------------------------------------------------------------
// A random number is a function of the seed, its purpose (a stream), the training step and an index.

// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): ten rounds of multiplication and
// exclusive or turn a counter and a key into four random words.
std::array<uint32_t, 4> philox(uint64_t seed, uint32_t stream, uint32_t step, uint64_t index) {
  uint32_t a = static_cast<uint32_t>(index), b = static_cast<uint32_t>(index >> 32), c = step, d = stream;
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
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

// From 0 to 1, without 1
inline float uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

// Standard normal, by Box and Muller: √(−2 log u) cos(2πv) for uniform 0 < u < 1 and 0 ≤ v < 1.
float normal(uint32_t stream, uint64_t index) {
  const std::array<uint32_t, 4> words = philox(SEED, stream, 0, index);
  const float u = (static_cast<float>(words[0] >> 9) + 0.5f) * 0x1p-23f;
  const float quarters = 4.0f * uniform(words[1]), shifted = quarters + ROUND_TO_INTEGER;  // 4v quarter turns
  const float rest = quarters - (shifted - ROUND_TO_INTEGER);
  return std::sqrt(-2.0f * logarithm(u)) * cosine_of(to_bits(shifted) % 4, fma(rest, HALF_PI, rest * HALF_PI_MIDDLE));
}

// ---- 3. Operations --------------------------------------------------------------------------------------------------
// A backward pass adds to the gradients that it computes; new tensors are zeros.

// A weight matrix or table (rows,columns); a vector has one row.
struct Parameter {
  int rows, columns;
  Tensor value, gradient, m, v;  // m, v: see AdamW

  // Initial values: normal with this standard deviation, or zeros
  Parameter(const std::string& name, int row_count, int column_count, float deviation)
      : rows(row_count), columns(column_count), value(rows * columns), gradient(value), m(value), v(value) {
    for (size_t i = 0; deviation > 0 && i < value.size(); ++i) value[i] = deviation * normal(stream_of(name), i);
  }
};

// ---- Matrix products and linear layers ----
// c (N) += Σ_k a_k b_k, one row of a product in the order `chain`. In memory the a_k are a_step numbers
// apart and the rows b_k b_step. The inner loop, which becomes vector instructions, takes most of the time.
inline void add_row_product(float* c, const float* a, int a_step, const float* b, int b_step, int K, int N) {
  float sum[HIDDEN];
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
#pragma omp parallel for
  for (int m = 0; m < M; ++m) add_row_product(c + m * N, a + m * a_row, a_column, b, N, K, N);
}

// (columns,rows) from x (rows,columns), whose rows are x_step numbers apart
Tensor transpose(const float* x, int x_step, int rows, int columns) {
  Tensor transposed(rows * columns);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) transposed[c * rows + r] = x[r * x_step + c];
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
  add_product(y.data(), x.data(), in, 1, transpose(w.weight.value.data(), in, out, in).data(), N, in, out);
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

// ---- Layer normalization ----
// hat = (x − mean x) / σ for each row of x, with σ² = variance + 1e-5;  y = hat ∘ weight + bias
struct Norm {
  Parameter weight, bias;  // (D) each

  Norm(const std::string& name) : weight(name, 1, D, 0), bias(name, 1, D, 0) { weight.value.assign(D, 1); }
};

struct SavedNorm {
  Tensor y, hat, inv_std;  // (N,D), (N,D), (N): 1/σ
};

// Returns y; x (N,D)
const Tensor& layer_norm(SavedNorm& a, const Tensor& x, const Norm& w) {
  const int N = x.size() / D;
  a.y.assign(N * D, 0), a.hat.assign(N * D, 0), a.inv_std.assign(N, 0);
#pragma omp parallel for
  for (int n = 0; n < N; ++n) {
    const float* in = &x[n * D];
    float* hat = &a.hat[n * D];
    const float mean = sum_of(in, D) / D;
    for (int c = 0; c < D; ++c) hat[c] = in[c] - mean;
    const float variance = dot(hat, hat, D) / D;
    a.inv_std[n] = 1 / std::sqrt(variance + 1e-5f);
    for (int c = 0; c < D; ++c) hat[c] *= a.inv_std[n];
    for (int c = 0; c < D; ++c) a.y[n * D + c] = fma(hat[c], w.weight.value[c], w.bias.value[c]);
  }
  return a.y;
}

// dweight += Σ_n dy_n ∘ hat_n, dbias += Σ_n dy_n. The gradient of hat is g = dy ∘ weight. ∂mean/∂x_c = 1/D and
// ∂σ/∂x_c = (x_c − mean)/(Dσ) = hat_c/D. With δ_ac = 1 for a = c and 0 otherwise,
//   ∂hat_a/∂x_c = (δ_ac − 1/D − hat_a hat_c/D) / σ     and     dx += (g − mean g − hat · mean(g∘hat)) / σ
void layer_norm_backward(Tensor& dx, Norm& w, const Tensor& dy, const SavedNorm& a) {
  const int N = dx.size() / D;
  for (int n = 0; n < N; ++n)
    for (int c = 0; c < D; ++c) {
      w.weight.gradient[c] = fma(dy[n * D + c], a.hat[n * D + c], w.weight.gradient[c]);
      w.bias.gradient[c] += dy[n * D + c];
    }
#pragma omp parallel for
  for (int n = 0; n < N; ++n) {
    const float* hat = &a.hat[n * D];
    float g[D];
    for (int c = 0; c < D; ++c) g[c] = dy[n * D + c] * w.weight.value[c];
    const float mean = sum_of(g, D) / D, along = dot(g, hat, D) / D;
    for (int c = 0; c < D; ++c) dx[n * D + c] = fma(a.inv_std[n], fma(-along, hat[c], g[c] - mean), dx[n * D + c]);
  }
}

// ---- GELU, by tanh ----
// y = x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))) = x · sigmoid(u) with u = x (A + B x²)
constexpr float GELU_A = 1.5957691216057308f, GELU_B = 0.071354816272600414f;  // 2√(2/π), and 0.044715 of it

void gelu(Tensor& y, const Tensor& x) {
#pragma omp parallel for
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * sigmoid(x[i] * fma(GELU_B, x[i] * x[i], GELU_A));
}

// With s = sigmoid(u) and s' = s (1 − s) du/dx:  dx = dy (s + x s (1 − s) (A + 3B x²))
void gelu_backward(Tensor& dx, const Tensor& dy, const Tensor& x) {
#pragma omp parallel for
  for (size_t i = 0; i < x.size(); ++i) {
    const float s = sigmoid(x[i] * fma(GELU_B, x[i] * x[i], GELU_A));
    dx[i] = dy[i] * fma(x[i] * (s * (1 - s)), fma(3 * GELU_B, x[i] * x[i], GELU_A), s);
  }
}

// ---- Causal attention ----
// For each head, with q_t, k_s, v_s its HEAD_WIDTH channels of position t or s:
//   score_ts = q_t·k_s / √HEAD_WIDTH     a_ts = exp(score_ts) / Σ_{r≤t} exp(score_tr)     y_t = Σ_{s≤t} a_ts v_s
//   y (N,D); a (samples,HEADS,T,T), 0 for s > t; qkv (N,3D): a row is q, k, v, each made of the heads' channels
// exp(score) = 2^(score log₂e), and log₂e joins 1/√HEAD_WIDTH. The largest score is subtracted first.
void attention(Tensor& y, Tensor& a, const Tensor& qkv) {
  const int heads = a.size() / (T * T);  // of all samples
  const float scale = LOG2_E / std::sqrt(static_cast<float>(HEAD_WIDTH));
#pragma omp parallel for
  for (int head = 0; head < heads; ++head) {
    const int first = head / HEADS * T, channel = head % HEADS * HEAD_WIDTH;  // of this sample, of this head
    const float *q = &qkv[first * 3 * D + channel], *k = q + D, *v = k + D;
    const Tensor keys = transpose(k, 3 * D, T, HEAD_WIDTH);  // (HEAD_WIDTH,T)
    for (int t = 0; t < T; ++t) {
      float *e = &a[(head * T + t) * T], *out = &y[(first + t) * D + channel];
      add_row_product(e, q + t * 3 * D, 1, keys.data(), T, HEAD_WIDTH, t + 1);  // q_t·k_s for all s ≤ t
      for (int s = 0; s <= t; ++s) e[s] *= scale;
      const float largest = *std::max_element(e, e + t + 1);
      for (int s = 0; s <= t; ++s) e[s] = exp2_of(std::max(-126.0f, e[s] - largest));
      const float inv_sum = 1 / sum_of(e, t + 1);
      add_row_product(out, e, 1, v, 3 * D, t + 1, HEAD_WIDTH);  // Σ_s e_s v_s
      for (int c = 0; c < HEAD_WIDTH; ++c) out[c] *= inv_sum;
      for (int s = 0; s <= t; ++s) e[s] *= inv_sum;
    }
  }
}

// With da_ts = dy_t·v_s, the derivative of softmax, ∂a_ts/∂score_tr = a_ts (δ_sr − a_tr), gives
//   dscore_ts = a_ts (da_ts − Σ_r a_tr da_tr),   where Σ_r a_tr (dy_t·v_r) = dy_t·y_t
//   dv_s = Σ_{t≥s} a_ts dy_t   dq_t = Σ_{s≤t} dscore_ts k_s / √HEAD_WIDTH   dk_s = Σ_{t≥s} dscore_ts q_t / √HEAD_WIDTH
void attention_backward(Tensor& dqkv, const Tensor& dy, const Tensor& y, const Tensor& a, const Tensor& qkv) {
  const int heads = a.size() / (T * T);
  const float scale = 1 / std::sqrt(static_cast<float>(HEAD_WIDTH));
#pragma omp parallel for
  for (int head = 0; head < heads; ++head) {
    const int first = head / HEADS * T, channel = head % HEADS * HEAD_WIDTH;
    const float *q = &qkv[first * 3 * D + channel], *k = q + D, *v = k + D;
    float *dq = &dqkv[first * 3 * D + channel], *dk = dq + D, *dv = dk + D;
    const Tensor values = transpose(v, 3 * D, T, HEAD_WIDTH);  // (HEAD_WIDTH,T)
    for (int t = 0; t < T; ++t) {
      const int row = (first + t) * D + channel;
      const float *weights = &a[(head * T + t) * T], *query = q + t * 3 * D, along = dot(&dy[row], &y[row], HEAD_WIDTH);
      float dscore[T] = {};
      add_row_product(dscore, &dy[row], 1, values.data(), T, HEAD_WIDTH, t + 1);  // da_ts
      for (int s = 0; s <= t; ++s) dscore[s] = weights[s] * (dscore[s] - along);
      add_row_product(dq + t * 3 * D, dscore, 1, k, 3 * D, t + 1, HEAD_WIDTH);
      for (int c = 0; c < HEAD_WIDTH; ++c) dq[t * 3 * D + c] *= scale;
      for (int s = 0; s <= t; ++s)
        for (int c = 0; c < HEAD_WIDTH; ++c) {
          dk[s * 3 * D + c] = fma(dscore[s], query[c], dk[s * 3 * D + c]);
          dv[s * 3 * D + c] = fma(weights[s], dy[row + c], dv[s * 3 * D + c]);
        }
    }
    for (int s = 0; s < T; ++s)
      for (int c = 0; c < HEAD_WIDTH; ++c) dk[s * 3 * D + c] *= scale;
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
//   losses (N); dlogits (N,V), the derivative times `scale`; logits (N,V); targets (N)
// The largest logit is subtracted first, which changes no loss and keeps every exponential at most 1.
void cross_entropy(Tensor& losses, Tensor& dlogits, const Tensor& logits, const Tokens& targets, float scale) {
  const int N = targets.size();
#pragma omp parallel for
  for (int n = 0; n < N; ++n) {
    const float* x = &logits[n * V];
    float *dx = &dlogits[n * V], e[V];
    const float largest = *std::max_element(x, x + V);
    for (int v = 0; v < V; ++v) e[v] = exponential(x[v] - largest);
    const float total = sum_of(e, V);
    losses[n] = logarithm(total) - (x[targets[n]] - largest);
    for (int v = 0; v < V; ++v) dx[v] = scale * (e[v] / total - (v == targets[n] ? 1.0f : 0.0f));
  }
}

// ---- 4. Model -------------------------------------------------------------------------------------------------------
//
// Radford et al. 2019, "Language Models are Unsupervised Multitask Learners":
//   x = token_embedding[token] + position_embedding[position]     (B,T,D)
//   in each block:
//     x += W_out attention(W_qkv norm_1(x) + b_qkv) + b_out       (B,T,D)   residual connections
//     x += W_down gelu(W_up norm_2(x) + b_up) + b_down            (B,T,D)
//   logits = W_head final_norm(x)                                 (B,T,V)   the character after each position

// The standard deviation of initial weights; that of layers which add to x is smaller, so that x stays of one size.
const float DEVIATION = 0.02f, OUT_DEVIATION = DEVIATION / std::sqrt(2.0f * BLOCKS);

struct Block {
  Norm norm_1;
  Linear qkv, out;  // (3D,D), (D,D)
  Norm norm_2;
  Linear up, down;  // (HIDDEN,D), (D,HIDDEN)
};

struct Model {
  Parameter token_embedding{"token_embedding.weight", V, D, DEVIATION};
  Parameter position_embedding{"position_embedding.weight", T, D, DEVIATION};
  std::vector<Block> blocks;
  Norm final_norm{"final_norm"};
  Linear head{"head", D, V, DEVIATION, false};

  Model() {
    for (int l = 0; l < BLOCKS; ++l) {
      const std::string name = "blocks." + std::to_string(l);
      blocks.push_back({{name + ".norm_1"},
                        {name + ".attention.qkv", D, 3 * D, DEVIATION},
                        {name + ".attention.out", D, D, OUT_DEVIATION},
                        {name + ".norm_2"},
                        {name + ".mlp.up", D, HIDDEN, DEVIATION},
                        {name + ".mlp.down", HIDDEN, D, OUT_DEVIATION}});
    }
  }

  std::vector<Parameter*> parameters() {
    std::vector<Parameter*> all = {&token_embedding, &position_embedding};
    for (Block& b : blocks)
      all.insert(all.end(), {&b.norm_1.weight, &b.norm_1.bias, &b.qkv.weight, &b.qkv.bias, &b.out.weight, &b.out.bias,
                             &b.norm_2.weight, &b.norm_2.bias, &b.up.weight, &b.up.bias, &b.down.weight, &b.down.bias});
    all.insert(all.end(), {&final_norm.weight, &final_norm.bias, &head.weight});
    return all;
  }
};

// What the backward pass needs of the forward pass; N = samples · T.
struct SavedBlock {
  SavedNorm norm_1;
  Tensor qkv, a, y;  // (N,3D), (samples,HEADS,T,T), (N,D): the attention's input, weights and output
  SavedNorm norm_2;
  Tensor up, hidden;  // (N,HIDDEN) each: before and after gelu
};
struct Saved {
  SavedBlock blocks[BLOCKS];
  SavedNorm final_norm;
};

// x (N,D) becomes the output of the block.
void block_forward(Tensor& x, SavedBlock& a, const Block& w) {
  const int N = x.size() / D;
  a.qkv.assign(N * 3 * D, 0), a.a.assign(N * HEADS * T, 0), a.y.assign(N * D, 0);
  a.up.assign(N * HIDDEN, 0), a.hidden.assign(N * HIDDEN, 0);
  const Tensor& r_1 = layer_norm(a.norm_1, x, w.norm_1);  // r_1 = norm_1(x)              (N,D)
  linear(a.qkv, r_1, w.qkv);                              // qkv = W_qkv r_1 + b_qkv      (N,3D)
  attention(a.y, a.a, a.qkv);                             // y = attention(qkv)           (N,D)
  linear(x, a.y, w.out);                                  // x += W_out y + b_out         (N,D)
  const Tensor& r_2 = layer_norm(a.norm_2, x, w.norm_2);  // r_2 = norm_2(x)              (N,D)
  linear(a.up, r_2, w.up);                                // up = W_up r_2 + b_up         (N,HIDDEN)
  gelu(a.hidden, a.up);                                   // hidden = gelu(up)            (N,HIDDEN)
  linear(x, a.hidden, w.down);                            // x += W_down hidden + b_down  (N,D)
}

// dx is the gradient of the block's output and becomes that of its input: a residual connection leaves it as it is, and
// the branch beside it adds to it.
void block_backward(Tensor& dx, Block& w, const SavedBlock& a) {
  const int N = dx.size() / D;
  Tensor dhidden(N * HIDDEN), dup(N * HIDDEN), dr_2(N * D), dy(N * D), dqkv(N * 3 * D), dr_1(N * D);
  linear_backward(dhidden, w.down, dx, a.hidden);     // x += W_down hidden + b_down
  gelu_backward(dup, dhidden, a.up);                  // hidden = gelu(up)
  linear_backward(dr_2, w.up, dup, a.norm_2.y);       // up = W_up r_2 + b_up
  layer_norm_backward(dx, w.norm_2, dr_2, a.norm_2);  // r_2 = norm_2(x)
  linear_backward(dy, w.out, dx, a.y);                // x += W_out y + b_out
  attention_backward(dqkv, dy, a.y, a.a, a.qkv);      // y = attention(qkv)
  linear_backward(dr_1, w.qkv, dqkv, a.norm_1.y);     // qkv = W_qkv r_1 + b_qkv
  layer_norm_backward(dx, w.norm_1, dr_1, a.norm_1);  // r_1 = norm_1(x)
}

// The logits (N,V) of tokens (samples,T)
Tensor forward(Saved& saved, const Model& model, const Tokens& tokens) {
  const int N = tokens.size();
  Tensor x(N * D), logits(N * V);
  embedding(x, model.token_embedding, model.position_embedding, tokens);
  for (int l = 0; l < BLOCKS; ++l) block_forward(x, saved.blocks[l], model.blocks[l]);
  linear(logits, layer_norm(saved.final_norm, x, model.final_norm), model.head);
  return logits;
}

// Adds to the gradient of every parameter. dlogits (N,V): the gradient of the logits of the last forward pass
void backward(Model& model, const Saved& saved, const Tensor& dlogits, const Tokens& tokens) {
  const int N = tokens.size();
  Tensor dy(N * D), dx(N * D);
  linear_backward(dy, model.head, dlogits, saved.final_norm.y);
  layer_norm_backward(dx, model.final_norm, dy, saved.final_norm);
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

// Kingma and Ba 2015; Loshchilov and Hutter 2019. First the gradient of all parameters together is scaled down to a
// norm of at most 1. Then, with g an element of it and t = 1, 2, … the number of the step,
//   m = β₁ m + (1−β₁) g     v = β₂ v + (1−β₂) g²
//   value −= rate · (m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε) + decay · value),   decay = 0.1 for matrices and 0 for vectors
void adamw(const std::vector<Parameter*>& parameters, int t, float rate) {
  const float beta1 = 0.9f, beta2 = 0.99f, epsilon = 1e-8f;
  const float correction1 = 1 - power(0.9, t), correction2 = 1 - power(0.99, t);
  Tensor all, squares;
  for (const Parameter* p : parameters) all.insert(all.end(), p->gradient.begin(), p->gradient.end());
  for (size_t i = 0; i < all.size(); i += CHUNK)
    squares.push_back(dot(&all[i], &all[i], std::min<int>(CHUNK, all.size() - i)));
  const float norm = std::sqrt(sum_of(squares.data(), squares.size())), shrink = norm > 1 ? 1 / norm : 1;
  for (Parameter* p : parameters) {
    const float decay = p->rows > 1 ? 0.1f : 0.0f;
    float *value = p->value.data(), *gradient = p->gradient.data(), *m = p->m.data(), *v = p->v.data();
    for (size_t i = 0; i < p->value.size(); ++i) {
      const float g = shrink * gradient[i];
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * (g * g);
      const float direction = m[i] / correction1 / (std::sqrt(v[i] / correction2) + epsilon);
      value[i] -= rate * (direction + decay * value[i]);
      gradient[i] = 0;  // for the next step
    }
  }
}

// It rises to 1e-3 over the first 20 steps and falls to 1e-4 along half a cosine.
float learning_rate(int step, int steps) {
  if (step < 20) return static_cast<float>(1e-3 * step / 20);
  const float angle =
      3.14159265f * static_cast<float>(std::min(1.0, (step - 20.0) / std::max(1, steps - 20)));        // 0 … π
  const float shifted = fma(angle, 0x1.45f306p-1f, ROUND_TO_INTEGER), n = shifted - ROUND_TO_INTEGER;  // quarter turns
  const float rest = fma(n, -HALF_PI_LOW, fma(n, -HALF_PI_MIDDLE, fma(n, -HALF_PI, angle)));
  return static_cast<float>(1e-4 + (1e-3 - 1e-4) * 0.5 * (1.0 + cosine_of(to_bits(shifted) % 4, rest)));
}

// ---- 6. Task --------------------------------------------------------------------------------------------------------
// The text is cut into windows. From each character of a window the model predicts the next one:
//   tokens    c_0  c_1 … c_(T−1)
//   targets   c_1  c_2 … c_T

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be opened: expected a text file");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (text.size() < 10 * (T + 1))
    throw std::runtime_error(path + ": " + std::to_string(text.size()) + " characters: expected at least 650");
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c >= V; }))
    throw std::runtime_error(path + ": has characters beyond ASCII: expected plain ASCII text");
  return text;
}

// A random order of n things: which one comes at `place`. Six rounds of a Feistel network map the numbers below a power
// of four onto themselves, one to one (Luby and Rackoff 1988); a number that is not below n goes through it again.
uint64_t shuffled(uint64_t place, uint64_t n, uint64_t seed, uint32_t epoch) {
  int half = 1;
  while ((uint64_t{1} << 2 * half) < n) ++half;
  const uint32_t mask = (1u << half) - 1;
  do {
    uint32_t left = static_cast<uint32_t>(place >> half), right = static_cast<uint32_t>(place) & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      const uint32_t mixed = left ^ (philox(seed, stream_of("order"), epoch, right | round << 32)[0] & mask);
      left = right;
      right = mixed;
    }
    place = static_cast<uint64_t>(left) << half | right;
  } while (place >= n);
  return place;
}

struct Batch {
  Tokens tokens, targets;  // (samples,T) each
};

// The samples first … first+count−1. Every n of them, the windows of the text, are an epoch with an order of its own.
Batch make_batch(const std::string& text, int first, int count, uint64_t seed) {
  const int n = (text.size() - 1) / T;
  Batch batch;
  for (int sample = first; sample < first + count; ++sample) {
    const char* window = &text[shuffled(sample % n, n, seed, sample / n) * T];
    batch.tokens.insert(batch.tokens.end(), window, window + T);
    batch.targets.insert(batch.targets.end(), window + 1, window + T + 1);
  }
  return batch;
}

// ---- 7. Training ----------------------------------------------------------------------------------------------------
// The mean loss over the validation text: all of its windows, or 1,700 of them
double validation_loss(Saved& saved, const Model& model, const std::string& text) {
  const int samples = std::min<int>(1700, (text.size() - 1) / T);
  double sum = 0;
  for (int first = 0; first < samples; first += B) {
    const Batch batch = make_batch(text, first, std::min(B, samples - first), 0);
    Tensor losses(batch.targets.size()), unused(losses.size() * V);
    cross_entropy(losses, unused, forward(saved, model, batch.tokens), batch.targets, 1);
    sum += sum_of(losses.data(), losses.size());
  }
  return sum / (samples * T);
}

// Writes `count` characters. Each is drawn with the probabilities softmax(logits) and becomes the next input; when the
// context is full, its later half is kept.
std::string write(Saved& saved, const Model& model, int count) {
  std::string context = "\n", written;
  for (int i = 0; i < count; ++i) {
    Tokens tokens(context.begin(), context.end());
    tokens.resize(T);  // what comes after a position does not change its logits
    const Tensor logits = forward(saved, model, tokens);
    const float *x = &logits[(context.size() - 1) * V], largest = *std::max_element(x, x + V);
    double total = 0, sum = 0;
    for (int v = 0; v < V; ++v) total += exponential(x[v] - largest);
    int v = 0;
    while (v < V && sum <= uniform(philox(SEED, stream_of("generate"), 0, i)[0]) * total)
      sum += exponential(x[v++] - largest);
    written += static_cast<char>(v - 1);
    if (context.size() == T) context.erase(0, T / 2);
    context += written.back();
  }
  return written;
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

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("expected a text: ./gpt2 FILE [STEPS]");
  const int steps = argc > 2 ? std::atoi(argv[2]) : 2000;
  const std::string text = read_text(argv[1]);
  const size_t first = text.size() - static_cast<size_t>(0.1 * text.size());  // of the part for validation
  const std::string training = text.substr(0, first), validation = text.substr(first);
  Model model;
  Saved saved;
  Tensor losses(B * T), dlogits(B * T * V);
  for (int step = 0; step < steps;) {
    const Batch batch = make_batch(training, step * B, B, SEED);
    const Tensor logits = forward(saved, model, batch.tokens);
    cross_entropy(losses, dlogits, logits, batch.targets, 1.0f / (B * T));
    backward(model, saved, dlogits, batch.tokens);
    adamw(model.parameters(), step + 1, learning_rate(step, steps));
    ++step;
    if (step % 100 == 0 || step == 1) std::printf("step %d  loss %.4f\n", step, sum_of(losses.data(), B * T) / (B * T));
    std::fflush(stdout);
    if (step % 500 != 0 && step != steps) continue;
    std::printf("step %d  validation loss %.4f\n", step, validation_loss(saved, model, validation));
  }
  std::printf("%s\n", write(saved, model, 200).c_str());
  std::printf("weights %016llx\n", static_cast<unsigned long long>(fingerprint(model.parameters())));
} catch (const std::exception& error) {
  std::fprintf(stderr, "gpt2: %s\n", error.what());
  return 1;
}
