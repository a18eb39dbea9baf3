// What a device offers to the models: memory (tensor.h) and the catalogue of operations (catalogue.h).
//
// The catalogue is declared once and included in the body of each device's class, so that the CPU (cpu/cpu.h) and the
// GPU (gpu/gpu.h) cannot drift apart: an operation that one of them lacks does not link.
#pragma once

#include <memory>
#include <string>

#include "tensor.h"

namespace petroglyph {

// What happens to an output's old contents.
enum class Into { WRITE, ADD };

enum class Activation { EXP, RELU, ELU, GELU };

// What stands between the two layers of an MLP.
enum class Pointwise {
  RELU,       // max(x, 0)
  GELU,       // x Φ(x), Φ by erf
  GELU_TANH,  // x/2 (1 + tanh(√(2/π)(x + 0.044715 x³)))
};

// The pairwise relation between queries and keys. The queries are the last of the keys' positions: all of them in
// training, only the newest ones in a stream, where earlier keys lie in a cache with room for `capacity` positions.
struct RelationShape {
  int batch;     // B
  int queries;   // Q
  int keys;      // T; query j stands at position T − Q + j
  int capacity;  // positions from one sample's keys to the next one's; T in training
  int hidden;    // H
  int heads;     // consecutive groups of H / heads channels, each with an inner norm of its own
  bool causal;   // query at position t sees keys 0 … t and divides by t + 1; otherwise all T keys
  Activation activation;

  int head_width() const { return hidden / heads; }
  int position(int query) const { return keys - queries + query; }
  int visible(int query) const { return causal ? position(query) + 1 : keys; }
};

// The relation in linear time: z_j = 1/n_j Σ_i exp(p_i + q_j). The sum over i is made of chunks of CHUNK positions, whose sums
// are added in turn: chunks can be worked on at the same time, and a stream that counts its positions makes the same ones.
struct LinearRelationShape {
  static constexpr int CHUNK =
      64;  // T = 16,384 gives 256 chunks: enough to fill a GPU, few enough to be added one by one

  int batch;      // B
  int positions;  // T; in a stream only the newest ones
  int hidden;     // H
  bool causal;    // position j sees positions 0 … j and divides by j + 1; otherwise all T
  int before;     // positions that a stream has read earlier; 0 for whole sequences

  int chunks() const { return (positions + CHUNK - 1) / CHUNK; }
  int begin(int chunk) const { return chunk * CHUNK; }
  int end(int chunk) const { return chunk + 1 < chunks() ? (chunk + 1) * CHUNK : positions; }
  int visible(int position) const { return causal ? before + position + 1 : positions; }
};

// Mamba's selective scan. The B and C of all channels at one position stand in a row of a larger matrix.
struct ScanShape {
  int batch;     // B
  int length;    // T
  int channels;  // I
  int states;    // S, of every channel
  int row;       // numbers from one position's B (or C) to the next one's

  static constexpr int GROUP = 32;    // channels whose parts of dB and dC are folded into one number
  static constexpr int SEGMENT = 64;  // positions that the backward pass recomputes from one kept state

  HOST_DEVICE int groups() const { return (channels + GROUP - 1) / GROUP; }
  HOST_DEVICE int segments() const { return (length + SEGMENT - 1) / SEGMENT; }
  HOST_DEVICE int segment_length(int s) const { return s + 1 < segments() ? SEGMENT : length - s * SEGMENT; }
  HOST_DEVICE int64_t rows() const { return static_cast<int64_t>(batch) * length; }
  int64_t kept_size() const { return static_cast<int64_t>(batch) * segments() * states * channels; }
  // Scratch of the backward pass: sums of the groups for dB and dC (B,T,groups,2S), of the samples for dA_log and dD
  // (B,S+1,I).
  int64_t group_sums_size() const { return rows() * groups() * 2 * states; }
  int64_t partial_size() const { return group_sums_size() + static_cast<int64_t>(batch) * (states + 1) * channels; }
};

// Attention between queries and keys. As above the queries are the last of the keys' positions.
struct AttentionShape {
  int batch, queries, keys, capacity;  // B, Q, T; the capacity as in RelationShape
  int heads, head_width;
  bool causal;
  int query_step, key_step;  // numbers from one position's q to the next one's, and from one k or v to the next

  int width() const { return heads * head_width; }
  int position(int query) const { return keys - queries + query; }
  int visible(int query) const { return causal ? position(query) + 1 : keys; }
  // Distances t − s of a query at t from a key at s are numbered from the smallest that is seen.
  int distances() const { return causal ? keys : 2 * keys - 1; }
  int nearest() const { return causal ? 0 : keys - 1; }  // the number of distance 0
};

// What attention reads. Heads are consecutive groups of head_width channels.
struct AttentionInput {
  const real* q;           // (B,Q,·)
  const real *k, *v;       // (B,capacity,·)
  const real* bias;        // (T,heads): added to a score, by distance; causal only; or null
  const real* q_position;  // (B,Q,·), as q
  const real* positions;   // (distances,width): q_position · positions is added to q · k, by distance; or null
};

struct AttentionGradient {
  real *dq, *dk, *dv;              // written
  real* dbias;                     // (T,heads), accumulates
  real *dq_position, *dpositions;  // written
  real* partial;                   // scratch of (B,T,heads) with a bias, of (B,distances,width) with positions
};

// AdamW (Loshchilov and Hutter 2019) with the gradient clipped by its global norm.
struct AdamwStep {
  real learning_rate, beta1, beta2, epsilon, weight_decay;
  real correction1, correction2;  // 1 − beta1^t, 1 − beta2^t for step t = 1, 2, …
  real clip;                      // largest global norm; 0: no clipping
};

class Ops : public Memory {
 public:
  virtual std::string description() const = 0;  // "CPU, 2 threads, AVX-512"
#define OP(...) virtual __VA_ARGS__ = 0
#define CPU_OP(...) \
  virtual __VA_ARGS__ { not_on_this_device(__func__); }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "catalogue.h"
#pragma GCC diagnostic pop
#undef OP
#undef CPU_OP

 private:
  // What the catalogue calls a CPU_OP the GPU does not have yet; the model that needs it says so in one line.
  [[noreturn]] static void not_on_this_device(const char* operation);
};

// threads: 0 takes all cores.
std::unique_ptr<Ops> make_cpu(int threads);

// "cpu", "cuda", or "auto": the GPU where there is one. Throws Error where "cuda" cannot be had.
std::unique_ptr<Ops> make_device(const std::string& name, int threads);

}  // namespace petroglyph
