// One table of cases for every operation and model: the gradient check, the bits on every device and build, the host
// run of the CUDA kernels and the bench all read it. A row has the inputs, the outputs and the calls, and
// nothing else.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/model.h"
#include "ops/ops.h"

namespace petroglyph {

// What an array of a case is.
enum class Role {
  INPUT,      // random; its gradient "dNAME" is written by the backward pass
  PARAMETER,  // random; its gradient accumulates, so "dNAME" starts random
  OUTPUT,     // written forward; its gradient "dNAME" is the random cotangent
  UPDATED,    // an output that also counts as an input: what was there is added to
  KEPT,       // written forward for the backward pass: compared as bits, not differentiated
  SCRATCH,    // written by the backward pass and then meaningless
  CONSTANT,   // random, not differentiated
  IDS,        // random whole numbers from `low` to `high`
};

// Special values among the random numbers of an array.
enum class Special {
  NONE,
  SMALL,     // zeros of both signs and subnormals, a fourth of all
  INFINITE,  // one infinity
  NOT_A_NUMBER,
};

struct Operand {
  std::string name;
  Role role;
  int64_t size;
  double low = -1, high = 1;
  Special special = Special::NONE;  // its gradient too, where that is random
};

// The arrays of a running case, by name.
class Arrays {
 public:
  Arrays(Ops& ops, const std::vector<Operand>& operands, uint64_t seed);

  real* operator[](const std::string& name) { return reals_.at(name).data(); }
  const int32_t* ids(const std::string& name) { return ids_.at(name).data(); }
  Tensor& tensor(const std::string& name) { return reals_.at(name); }

  std::shared_ptr<void> tables;  // that a case makes for its device when it first runs

 private:
  std::map<std::string, Tensor> reals_;
  std::map<std::string, Tokens> ids_;
};

using Call = std::function<void(Ops&, Arrays&)>;

// The fewest vector instructions that something takes, and how many of them are multiplications and fused
// multiply-adds: some processors do others beside these, some in their place.
struct Instructions {
  double multiply = 0, all = 0;
};
inline Instructions operator+(const Instructions& a, const Instructions& b) {
  return {a.multiply + b.multiply, a.all + b.all};
}
inline Instructions operator*(double a, const Instructions& b) { return {a * b.multiply, a * b.all}; }

// The functions of math/numerics.h as they are written there, with what they call; a division and a comparison count as
// one.
constexpr Instructions EXP = {11, 27}, SIGMOID = {12, 36}, SOFTPLUS = {24, 78}, ERF = {20, 34};

struct OpCase {
  std::string name;  // "linear 5×7×3 add"
  std::vector<Operand> operands;
  Call forward, backward;  // backward may be empty
  // For the bench: operations of forward (backward counts double), or pair-channels or numbers, and what each takes; or
  // the bytes that are read and written at the least. 0: not stated.
  double flops = 0, pairs = 0, numbers = 0, forward_bytes = 0, backward_bytes = 0;
  Instructions forward_instructions = {}, backward_instructions = {};
  // Some pairs of positions are not seen. The reference leaves their terms out; the CPU and the GPU multiply some of
  // them by zero, which depends on their tiles. With finite numbers the bits are the same; an infinity or a NaN there
  // can make a NaN of a sum.
  bool skips_pairs = false;
  bool kinked = false;  // the function has kinks (relu): the gradient check steps around them

  // Whether a device may have a NaN where the reference has a number.
  bool nan_spreads() const { return skips_pairs && operands[0].special > Special::SMALL; }
};

// What operations cannot do without, forward: two a term of a product, or pair-channels, each with add, multiply, 10 of
// add_exp2_in_range, six of which multiply, and a term of the product that the variances come from; backward add,
// multiply, 10 of exp2_in_range, times dz, three fused sums, and a term of each of the two products with the pair
// weights.
double products_of(const AttentionShape& s);
double products_of(const LinearAttentionShape& s);
double pairs_of(const RelationShape& s);
constexpr Instructions RELATION_FORWARD = {8, 13}, RELATION_BACKWARD = {13, 18};

struct ModelCase {
  std::string name;  // "causal_rn exact exp"
  std::string model;
  std::string config;   // JSON
  int batch, length;    // B, T
  bool decodes = true;  // reads token by token; a bidirectional model cannot
  bool last = false;    // one answer a sample, at its end
  int patch_size = 0;   // > 0: reads images of `length` patches of this size, not tokens
};

// An array that the operations of a check write.
struct Written {
  std::string name;
  std::vector<real> reals;
  std::vector<int32_t> ids;
};
// Everything that a case writes, forward and backward; cotangents: also the given gradients, which some operations replace.
std::vector<Written> written_by(const OpCase& row, Ops& ops, uint64_t seed, bool cotangents = false);

// Small and odd: primes, values beside powers of two, more than one chunk.
std::vector<OpCase> op_cases();
std::vector<ModelCase> model_cases();
// One or a few rows of every operation, with special values in what it reads: what rounds, compares and propagates
// differently there would show. No gradient can be checked on them.
std::vector<OpCase> special_cases();
// For the bench: what so many strings of 128 letters are to the copying papers' models. Theirs are 320, which fill a
// GPU and keep a CPU busy for minutes.
std::vector<OpCase> paper_cases(int batch);

// Rows of one operation, for more shapes.
enum class Distances { IGNORED, BIASED, POSITIONED };
OpCase attention_case(const AttentionShape& s, Distances distances);
OpCase kerple_case(int T, int heads, double most = 2);  // most: r2 is between a quarter of it and itself
// streaming: with inputs before the first, which only decoding has
OpCase causal_convolution_case(int B, int T, int C, int K, bool streaming);
// Gaps between the rows of gradients: set to zero before, or compared as they were, NaN.
enum class Gaps { CLEARED, KEPT };
OpCase selective_scan_case(const ScanShape& s, bool streaming, Gaps gaps = Gaps::CLEARED);
OpCase linear_attention_case(const LinearAttentionShape& s, bool streaming);
inline OpCase linear_attention_case(const LinearAttentionShape& s) { return linear_attention_case(s, s.before > 0); }
// before: keys and values before the sequence are attended to
OpCase dilated_attention_case(const DilatedShape& s, bool before, Gaps gaps = Gaps::CLEARED);
const char* name_of(Activation activation);
// Shapes of whole sequences.
RelationShape whole(int B, int T, int H, int heads, bool causal, Activation activation);
AttentionShape whole(int B, int T, int heads, int head_width, bool causal);

// Tokens or patches, and targets of a model case, with a few that do not count.
struct ModelBatch {
  ModelBatch(Ops& ops, const ModelCase& row, int vocab, uint64_t seed);
  Input input() const { return {tokens.data(), batch, length, patches.data()}; }
  ModelBatch sample(Ops& ops, int b) const;  // alone, without targets
  // What a decoder of this model reads, (B,T): the tokens; of a model with a window, three times in a row.
  std::vector<int32_t> to_decode(const Model& model) const;

  int batch, length;
  Tokens tokens, targets;
  Tensor patches;
  real scale;  // 1 / targets that count

 private:
  explicit ModelBatch(int length) : batch(1), length(length), scale(0) {}
};

}  // namespace petroglyph
