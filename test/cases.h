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
  FOUND,      // whole numbers that are written
};

// Special values among the random numbers of an array.
enum class Special {
  NONE,
  SMALL,     // zeros of both signs and subnormals, a fourth of all
  UNEVEN,    // magnitudes from 2^-11 to 2^11: a few terms dominate a sum, so that no rounding is hidden by other terms
  SEAMS,     // the first numbers are where two formulas of tanh meet
  EQUAL,     // all are one number, whose variance is 0
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

struct OpCase;

// The arrays of a running case, by name.
class Arrays {
 public:
  Arrays(Ops& ops, const OpCase& row, uint64_t seed);

  Tensor& tensor(const std::string& name) { return reals_.at(same_.count(name) ? same_.at(name) : name); }
  Tokens& tokens(const std::string& name) { return ids_.at(name); }
  real* operator[](const std::string& name) { return tensor(name).data(); }
  int32_t* ids(const std::string& name) { return tokens(name).data(); }
  real* find(const std::string& name) { return reals_.count(name) ? (*this)[name] : nullptr; }  // null: has none

  std::shared_ptr<void> tables;  // that a case makes for its device when it first runs

 private:
  std::map<std::string, std::string> same_;
  std::map<std::string, Tensor> reals_;
  std::map<std::string, Tokens> ids_;
};

using Call = std::function<void(Ops&, Arrays&)>;

struct OpCase {
  std::string name;  // "linear 5×7×3 add"
  std::vector<Operand> operands;
  Call forward, backward = nullptr;              // backward may be empty
  std::map<std::string, std::string> same = {};  // arrays that are another one: a result in the place of an input
  // For the bench: operations of forward (backward counts double), or pair-channels. 0: not stated.
  double flops = 0, pairs = 0;
  // Some pairs of positions are not seen. The reference leaves their terms out; the CPU and the GPU multiply some of
  // them by zero, which depends on their tiles. With finite numbers the bits are the same; an infinity or a NaN there
  // can make a NaN of a sum.
  bool skips_pairs = false;
  bool kinked = false;  // the function has kinks (relu): the gradient check steps around them
  bool once = false;    // large: compared in one order of threads only

  // Whether a device may have a NaN where the reference has a number.
  bool nan_spreads() const { return skips_pairs && operands[0].special >= Special::INFINITE; }
};

// What operations cannot do without, forward: two a term of a product, or pair-channels.
double products_of(const AttentionShape& s);
double products_of(const LinearAttentionShape& s);
double pairs_of(const RelationShape& s);

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
std::vector<ModelCase> model_cases();  // test/models.txt
// One or a few rows of every operation, with special values in what it reads: what rounds, compares and propagates
// differently there would show. No gradient can be checked on them.
std::vector<OpCase> special_cases();
// Shapes at the boundaries of the kernels, by group: "linear", "rows", "relation" …; and the tables above, as "table" and
// "special".
std::vector<OpCase> boundary_cases(const std::string& group);
// For the bench: what so many strings of 128 letters are to the copying papers' models. Theirs are 320, which fill a
// GPU and keep a CPU busy for minutes.
std::vector<OpCase> paper_cases(int batch);

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

// The columns begin … end−1 of tokens (B,T).
Tokens some_of(Ops& ops, const std::vector<int32_t>& tokens, int B, int begin, int end);
// The logits of a forward pass.
std::vector<real> logits_of(Ops& ops, Model& model, const Input& input);

}  // namespace petroglyph
