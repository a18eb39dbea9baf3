// The shapes of the operations' arguments: sizes, distances in memory, and which positions a query sees. B samples of a
// batch, T positions, D channels, H hidden channels; in decoding Q queries, the new positions.
#pragma once

#include <cstdint>

#include "math/activation.h"
#include "math/numerics.h"
#include "math/pointwise.h"

namespace petroglyph {

// What happens to an output's old contents.
enum class Into { WRITE, ADD };

// The pairwise relation between queries and keys. The queries are the last of the keys' positions: all of them in
// training, only the newest ones in decoding, where earlier keys lie in a cache of `capacity` positions.
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

// The relation in linear time: z_j = 1/n_j Σ_i exp(p_i + q_j). The sum over i is made of chunks of CHUNK positions,
// whose sums are added in turn: chunks can be worked on at the same time, and decoding, which counts its positions,
// makes the same ones.
struct LinearRelationShape {
  // T = 16,384 gives 256 chunks: enough to fill a GPU, few enough to be added one by one.
  static constexpr int CHUNK = 64;

  int batch;      // B
  int positions;  // T; in decoding only the newest ones
  int hidden;     // H
  bool causal;    // position j sees positions 0 … j and divides by j + 1; otherwise all T
  int before;     // positions decoded earlier; 0 for whole sequences

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
  static constexpr int SEGMENT = 64;  // positions that the backward pass recomputes from one saved state

  HOST_DEVICE int groups() const { return (channels + GROUP - 1) / GROUP; }
  HOST_DEVICE int segments() const { return (length + SEGMENT - 1) / SEGMENT; }
  HOST_DEVICE int segment_length(int s) const { return s + 1 < segments() ? SEGMENT : length - s * SEGMENT; }
  HOST_DEVICE int64_t rows() const { return static_cast<int64_t>(batch) * length; }
  int64_t saved_size() const { return static_cast<int64_t>(batch) * segments() * states * channels; }
  // Scratch of the backward pass: sums of the groups for dB and dC (B,T,groups,2S), of the samples for dA_log and dD
  // (B,S+1,I).
  int64_t group_sums_size() const { return rows() * groups() * 2 * states; }
  int64_t partial_size() const { return group_sums_size() + static_cast<int64_t>(batch) * (states + 1) * channels; }
};

// Attention between queries and keys. As in RelationShape the queries are the last of the keys' positions.
struct AttentionShape {
  int batch;     // B
  int queries;   // Q
  int keys;      // T; query t stands at position T − Q + t
  int capacity;  // positions from one sample's keys to the next one's; T in training
  int heads;     // consecutive groups of head_width channels
  int head_width;
  bool causal;               // query at position t sees keys 0 … t; otherwise all T keys
  int query_step, key_step;  // numbers from one position's q to the next one's, and from one k or v to the next
  bool by_head = false;      // keys and values of a sample lie head by head, (B,2,heads,capacity,head_width)

  HOST_DEVICE int width() const { return heads * head_width; }
  // Where a sample's head begins: its k that far behind the first key, and its v that far behind the first value.
  HOST_DEVICE int64_t key_offset(int64_t sample, int64_t head) const {
    return by_head ? (2 * sample * heads + head) * capacity * head_width
                   : sample * capacity * key_step + head * head_width;
  }
  HOST_DEVICE int position(int query) const { return keys - queries + query; }
  HOST_DEVICE int visible(int query) const { return causal ? position(query) + 1 : keys; }
  // The distances t − s of a query at t from a key at s are counted from the smallest: from 0, or from 1 − T.
  HOST_DEVICE int distances() const { return causal ? keys : 2 * keys - 1; }
  HOST_DEVICE int nearest() const { return causal ? 0 : keys - 1; }  // the number of distance 0
};

// What depends on the distance of a key is a bias or a product with q_position, not both.
struct AttentionInput {
  const real* q;           // (B,Q,·)
  const real *k, *v;       // (B,capacity,·), or by head
  const real* bias;        // (T,heads), by distance; causal only; or null
  const real* q_position;  // (B,Q,·) laid out as q, and
  const real* positions;   // (distances,width), by distance; or null
};

struct AttentionGradient {
  real *dq, *dk, *dv;              // laid out as q, k, v; written
  real* dbias;                     // (T,heads), accumulates; or null where it is not needed
  real *dq_position, *dpositions;  // written
  real* partial;                   // scratch (B,T,heads) with dbias, (B,distances,width) with positions
};

// Attention of each query to a few keys that stand a fixed number of rows apart, its own and earlier ones.
struct DilatedShape {
  int batch, queries, keys;  // B, Q, T
  int capacity;              // rows from one sample's keys to the next one's
  int heads, head_width;
  int chunk;                 // C, the keys that a query sees
  int dilation;              // rows from one of them to the one before
  int first, advance;        // query j's own key is row first + j·advance
  int query_step, key_step;  // numbers from one query's q to the next one's, and from one k or v to the next

  HOST_DEVICE int width() const { return heads * head_width; }
  HOST_DEVICE int64_t queries_of_all() const { return static_cast<int64_t>(batch) * queries; }
  // Key i of query j, i = 0 … C−1; a negative row stands before the sequence.
  HOST_DEVICE int64_t key(int64_t j, int64_t i) const { return first + j * advance - i * dilation; }
  // How many keys of query j stand in the sequence; further ones do not.
  HOST_DEVICE int inside(int64_t j) const {
    const int64_t n = (first + j * advance) / dilation + 1;
    return n < chunk ? static_cast<int>(n) : chunk;
  }
  // The query whose key i is row n; −1: none.
  HOST_DEVICE int64_t query(int64_t n, int64_t i) const {
    const int64_t distance = n + i * dilation - first;
    return distance >= 0 && distance % advance == 0 && distance / advance < queries ? distance / advance : -1;
  }
};

// Heads are consecutive groups of head_width channels.
struct DilatedInput {
  const real* q;                    // (B,Q,·)
  const real *k, *v;                // (B,capacity,·)
  const real *k_before, *v_before;  // (width): of every row before the sequence; null: nothing is attended to there
  const real* relative;             // (heads,C): added to the scores
};

struct DilatedGradient {
  real *dq, *dk, *dv;           // written
  real *dk_before, *dv_before;  // written, where k_before is given
  real* dscores;  // (B,Q,heads,C), written; 0 where nothing is attended to. Its sum over B and Q is drelative
};

// The function that linear attention applies to queries and keys first.
enum class FeatureMap {
  IDENTITY,
  ELU_PLUS_ONE,  // elu(x) + 1, which is x + 1 above zero and exp(x) below
};

// Attention without a softmax, in time and memory linear in T. The sums over positions are made of chunks, as in the
// linear relation: a position attends to those of its own chunk that it sees; earlier chunks are summed up in a state.
struct LinearAttentionShape {
  // Of the order of a head's width: then the pairs of a chunk take as long as its state. And not just below a usual
  // length, where a last chunk of a few positions would cost a whole state.
  static constexpr int CHUNK = 144;

  int batch;              // B
  int positions;          // T; in decoding only the newest ones
  int heads, head_width;  // d, the channels of a head
  bool causal;            // position t sees positions 0 … t; otherwise all T
  bool normalized;        // the weights of a position are divided by their sum
  FeatureMap feature_map;
  int before;  // positions decoded earlier; 0 for whole sequences

  HOST_DEVICE int width() const { return heads * head_width; }
  HOST_DEVICE int chunks() const { return (positions + CHUNK - 1) / CHUNK; }
  HOST_DEVICE int begin(int chunk) const { return chunk * CHUNK; }
  HOST_DEVICE int end(int chunk) const { return chunk + 1 < chunks() ? (chunk + 1) * CHUNK : positions; }
  // A state of one head is S (d,d) and, where normalized, z (d).
  HOST_DEVICE int64_t state_size() const { return (head_width + (normalized ? 1 : 0)) * int64_t{1} * head_width; }
  // States that are saved of whole sequences, for every sample and head: before each chunk but the first; or of all
  // positions.
  HOST_DEVICE int states() const { return causal ? chunks() - 1 : 1; }
  int64_t states_size() const { return int64_t{1} * batch * heads * states() * state_size(); }
  // In decoding: a state, and k (CHUNK,d) and v (CHUNK,d) of the unfinished chunk.
  HOST_DEVICE int64_t decoder_state_size() const { return state_size() + 2 * CHUNK * int64_t{1} * head_width; }
};

// One head of a sliding cosine transform (dct_plan.h makes them).
struct DctHead {
  int window, frequencies;  // t, k
  int rows;                 // of its tables and of a decoder's state: t, or fewer where no sequence is that long
  int first;                // coefficients of all heads before it
  int64_t waves, state;     // where its table begins, in waves of 4 numbers, and its part of a sample's state
};

// The coefficients of head h are a matrix (B·T, k_h·d), those of all heads before it stand before it.
struct DctShape {
  int batch, positions;   // B, T; in decoding only the newest ones
  int heads, head_width;  // d, the channels of a head
  int coefficients;       // Σ k over the heads
  int most;               // largest k
  int before;             // positions decoded earlier; 0 for whole sequences
  int64_t state_size;     // of one sample's state in decoding
  const DctHead* plan;    // (heads), on the device
  const real* waves;      // on the device

  HOST_DEVICE int width() const { return heads * head_width; }
  HOST_DEVICE int64_t rows() const { return int64_t{1} * batch * positions; }
  // Of c: where head h's matrix begins, and how large all of them are.
  HOST_DEVICE int64_t begin(const DctHead& head) const { return rows() * head.first * head_width; }
  HOST_DEVICE int64_t size() const { return rows() * coefficients * head_width; }
  // Of the weights: where head h's begin.
  HOST_DEVICE int64_t weight(int h) const { return int64_t{1} * h * most * head_width * head_width; }
};

// AdamW (Loshchilov and Hutter 2019) with the gradient clipped by its global norm.
struct AdamwStep {
  real learning_rate, beta1, beta2, epsilon, weight_decay;
  real correction1, correction2;  // 1 − beta1^t, 1 − beta2^t for step t = 1, 2, …
  real clip;                      // largest global norm; 0: no clipping
};

}  // namespace petroglyph
