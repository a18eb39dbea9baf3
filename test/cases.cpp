#include "cases.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>

#include "base/text.h"
#include "math/random.h"
#include "ops/dct_plan.h"

namespace petroglyph {

namespace {

// ---- Arrays ---------------------------------------------------------------------------------------------------------

void place(std::vector<real>& numbers, Special special, const std::string& name, uint64_t seed) {
  constexpr real SMALLEST = std::numeric_limits<real>::denorm_min(), NORMAL = std::numeric_limits<real>::min(),
                 SMALL[] = {0, real(-0.0), SMALLEST, -SMALLEST, NORMAL / 3, -NORMAL / 5};
  const auto word = [&](size_t i) { return philox(seed, stream_of(name + " special"), 0, i).word[0]; };
  const std::vector<real> seams = {0, real(-0.0), real(0.625), real(-0.625)};
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (special == Special::SMALL && word(i) % 4 == 0) numbers[i] = SMALL[word(i) / 4 % std::size(SMALL)];
    if (special == Special::UNEVEN) numbers[i] *= std::ldexp(real(1), static_cast<int>(i % 23) - 11);
    if (special == Special::SEAMS && i < seams.size()) numbers[i] = seams[i];
    if (special == Special::EQUAL) numbers[i] = 3;
  }
  if (numbers.empty() || (special != Special::INFINITE && special != Special::NOT_A_NUMBER)) return;
  const real infinity = std::numeric_limits<real>::infinity(), value = special == Special::NOT_A_NUMBER
                                                                           ? std::numeric_limits<real>::quiet_NaN()
                                                                       : word(0) % 2 == 0 ? infinity
                                                                                          : -infinity;
  numbers[below(word(1), static_cast<uint32_t>(numbers.size()))] = value;
}

}  // namespace

Arrays::Arrays(Ops& ops, const OpCase& row, uint64_t seed) : same_(row.same) {
  const auto word = [&](const std::string& name, int64_t i) {
    return philox(seed, stream_of(name), 0, static_cast<uint64_t>(i)).word[0];
  };
  const auto upload = [&](const std::string& name, const std::vector<real>& host) {
    reals_[name] = Tensor(ops, {static_cast<int64_t>(host.size())});
    if (!host.empty()) reals_[name].upload(host);
  };
  const auto fill = [&](const std::string& name, int64_t size, double low, double high, Special special) {
    std::vector<real> host;
    for (int64_t i = 0; i < size; ++i) host.push_back(static_cast<real>(low + (high - low) * uniform(word(name, i))));
    place(host, special, name, seed);
    upload(name, host);
  };
  const auto leave = [&](const std::string& name, int64_t size) {  // NaN: whoever reads it unwritten is seen
    upload(name, std::vector<real>(static_cast<size_t>(size), std::numeric_limits<real>::quiet_NaN()));
  };
  for (const Operand& o : row.operands) {
    if (o.role == Role::IDS || o.role == Role::FOUND) {
      std::vector<int32_t> host(static_cast<size_t>(o.size), -7);
      const int32_t low = static_cast<int32_t>(o.low), count = static_cast<int32_t>(o.high - o.low) + 1;
      for (int64_t i = 0; o.role == Role::IDS && i < o.size; ++i)
        host[static_cast<size_t>(i)] = low + static_cast<int32_t>(below(word(o.name, i), static_cast<uint32_t>(count)));
      ids_[o.name] = Tokens(ops, {o.size});
      ids_[o.name].upload(host);
      continue;
    }
    const bool written = o.role == Role::OUTPUT || o.role == Role::KEPT || o.role == Role::SCRATCH;
    if (written)
      leave(o.name, o.size);
    else
      fill(o.name, o.size, o.low, o.high, o.special);
    if (o.role == Role::INPUT) leave("d" + o.name, o.size);
    if (o.role == Role::PARAMETER || o.role == Role::OUTPUT || o.role == Role::UPDATED)
      fill("d" + o.name, o.size, -1, 1, o.special);
  }
}

std::vector<Written> written_by(const OpCase& row, Ops& ops, uint64_t seed, bool cotangents) {
  Arrays arrays(ops, row, seed);
  row.forward(ops, arrays);
  if (row.backward) row.backward(ops, arrays);
  std::vector<Written> written;
  for (const Operand& o : row.operands) {
    if (o.role == Role::FOUND) written.push_back({o.name, {}, arrays.tokens(o.name).download()});
    if (o.role == Role::OUTPUT || o.role == Role::UPDATED || o.role == Role::KEPT)
      written.push_back({o.name, arrays.tensor(o.name).download(), {}});
    if (row.backward && (o.role == Role::INPUT || o.role == Role::PARAMETER || (cotangents && o.role == Role::OUTPUT)))
      written.push_back({"d" + o.name, arrays.tensor("d" + o.name).download(), {}});
  }
  return written;
}

double products_of(const AttentionShape& s) {
  double visible = 0;
  for (int t = 0; t < s.queries; ++t) visible += s.visible(t);
  return 4 * visible * s.batch * s.width();
}

double products_of(const LinearAttentionShape& s) {
  double pairs = 0;  // in chunks, and rows of states
  for (int k = 0; k < s.chunks(); ++k) {
    const double length = s.end(k) - s.begin(k);
    if (s.causal) pairs += length * (length + 1) / 2;
    const int reads_and_writes = s.causal ? (k > 0) + (k + 1 < s.chunks()) : 2;
    pairs += length * s.head_width * reads_and_writes / 2;
  }
  return 4 * pairs * s.batch * s.width();
}

double pairs_of(const RelationShape& s) {
  double visible = 0;
  for (int j = 0; j < s.queries; ++j) visible += s.visible(j);
  return visible * s.batch * s.hidden;
}

namespace {

// ---- The parts of a case --------------------------------------------------------------------------------------------

Operand input(const char* name, int64_t size, double low = -1, double high = 1) {
  return {name, Role::INPUT, size, low, high};
}
Operand parameter(const char* name, int64_t size, double low = -1, double high = 1) {
  return {name, Role::PARAMETER, size, low, high};
}
Operand updated(const char* name, int64_t size, double low = -1, double high = 1) {
  return {name, Role::UPDATED, size, low, high};
}
Operand constant(const char* name, int64_t size, double low = -1, double high = 1) {
  return {name, Role::CONSTANT, size, low, high};
}
Operand output(const char* name, int64_t size) { return {name, Role::OUTPUT, size}; }
Operand kept(const char* name, int64_t size) { return {name, Role::KEPT, size}; }
Operand scratch(const char* name, int64_t size) { return {name, Role::SCRATCH, size}; }
Operand ids(const char* name, int64_t size, int low, int high) {
  return {name, Role::IDS, size, double(low), double(high)};
}
Operand found(const char* name, int64_t size) { return {name, Role::FOUND, size}; }
// An output, or of what adds to it an update; and what its gradient is written to, or added to.
Operand output(const char* name, int64_t size, Into into) {
  return into == Into::ADD ? updated(name, size) : output(name, size);
}
Operand input(const char* name, int64_t size, Into gradient) {
  return gradient == Into::ADD ? parameter(name, size) : input(name, size);
}

// "5x7"
std::string by(std::initializer_list<int64_t> sizes) {
  std::string all;
  for (const int64_t size : sizes) all += (all.empty() ? "" : "x") + std::to_string(size);
  return all;
}

std::string when(bool holds, const char* words) { return holds ? words : ""; }

size_t bytes(int64_t numbers) { return static_cast<size_t>(numbers) * sizeof(real); }

// The same case, where the output takes the place of the input, and the input's gradient that of the output's.
OpCase in_place(OpCase row, const std::string& in, const std::string& out) {
  row.name += " in place";
  row.same = {{out, in}, {"d" + in, "d" + out}};
  return row;
}

OpCase with(Special special, OpCase row) {
  for (Operand& operand : row.operands) operand.special = special;
  return row;
}

OpCase once(OpCase row) {
  row.once = true;
  return row;
}

void append(std::vector<OpCase>& rows, const std::vector<OpCase>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
}

const char* name_of(Activation activation) {
  constexpr const char* NAMES[] = {"exp", "relu", "elu", "gelu"};
  return NAMES[static_cast<int>(activation)];
}

// Shapes of whole sequences.
RelationShape whole(int B, int T, int H, int heads, bool causal, Activation activation) {
  return {B, T, T, T, H, heads, causal, activation};
}

AttentionShape whole(int B, int T, int heads, int head_width, bool causal) {
  return {B, T, T, T, heads, head_width, causal, heads * head_width, heads * head_width};
}

// ---- Embedding, products, norms -------------------------------------------------------------------------------------

// few: how many of the tokens occur, the last ones. first: the position of the first token.
OpCase embedding_case(int B, int T, int D, int V, bool positions, int few = 0, int first = 0) {
  std::vector<Operand> operands = {parameter("token_table", int64_t(V) * D),
                                   ids("tokens", int64_t(B) * T, few > 0 ? V - few : 0, V - 1),
                                   output("x", int64_t(B) * T * D)};
  if (positions) operands.push_back(parameter("position_table", int64_t(T + first) * D));
  return {"embedding " + by({B, T, D}) + text(" vocab %d", V) + when(positions, " positions") +
              (few > 0 ? text(" of %d tokens", few) : "") + (first > 0 ? text(" from %d", first) : ""),
          operands,
          [=](Ops& ops, Arrays& a) {
            ops.embedding(a["x"], a["token_table"], a.find("position_table"), a.ids("tokens"), first, B, T, D);
          },
          [=](Ops& ops, Arrays& a) {
            ops.embedding_backward(a["dtoken_table"], a.find("dposition_table"), a["dx"], a.ids("tokens"), B, T, D, V);
          }};
}

OpCase class_token_case(int B, int T, int D) {
  return {"append_class_token " + by({B, T, D}),
          {input("patches", int64_t(B) * (T - 1) * D), parameter("cls", D), parameter("position_table", int64_t(T) * D),
           output("x", int64_t(B) * T * D)},
          [=](Ops& ops, Arrays& a) {
            ops.append_class_token(a["x"], a["patches"], a["cls"], a["position_table"], B, T, D);
          },
          [=](Ops& ops, Arrays& a) {
            ops.append_class_token_backward(a["dpatches"], a["dcls"], a["dposition_table"], a["dx"], B, T, D);
          }};
}

OpCase linear_case(int64_t N, int in, int out, bool bias, Into into) {
  std::vector<Operand> operands = {input("x", N * in), parameter("weight", int64_t(out) * in),
                                   output("y", N * out, into)};
  if (bias) operands.push_back(parameter("bias", out));
  OpCase row{"linear " + by({N, in, out}) + when(bias, " bias") + when(into == Into::ADD, " add"), operands,
             [=](Ops& ops, Arrays& a) { ops.linear(a["y"], a["x"], a["weight"], a.find("bias"), N, in, out, into); },
             [=](Ops& ops, Arrays& a) {
               ops.linear_backward_input(a["dx"], a["dy"], a["weight"], N, in, out, Into::WRITE);
               ops.linear_backward_weight(a["dweight"], a.find("dbias"), a["dy"], a["x"], N, in, out);
             }};
  row.flops = 2.0 * static_cast<double>(N) * in * out;
  return row;
}

OpCase linear_input_case(int64_t N, int in, int out, Into into) {
  return {"linear_backward_input " + by({N, in, out}) + when(into == Into::ADD, " add"),
          {constant("dy", N * out), constant("weight", int64_t(out) * in), output("dx", N * in, into)},
          [=](Ops& ops, Arrays& a) { ops.linear_backward_input(a["dx"], a["dy"], a["weight"], N, in, out, into); }};
}

// last_chunk: the rows of all chunks but the last are nearly zero, so that every bit of the last chunk's sums reaches
// the result.
OpCase linear_weight_case(int64_t N, int in, int out, bool bias, bool last_chunk = false) {
  std::vector<Operand> operands = {constant("dy", N * out), constant("x", N * in),
                                   updated("dweight", int64_t(out) * in)};
  if (bias) operands.push_back(updated("dbias", out));
  return {"linear_backward_weight " + by({N, in, out}) + when(bias, " bias") + when(last_chunk, " the last chunk"),
          operands, [=](Ops& ops, Arrays& a) {
            if (last_chunk) ops.scale(a["x"], a["x"], real(0x1p-40), (N - 1) / 1024 * 1024 * in);
            ops.linear_backward_weight(a["dweight"], a.find("dbias"), a["dy"], a["x"], N, in, out);
          }};
}

OpCase linear_one_hot_case(int64_t N, int V, int out) {
  return {
      "linear_one_hot " + by({N, out}) + text(" vocab %d", V),
      {parameter("weight", int64_t(out) * V), parameter("bias", out), ids("tokens", N, 0, V - 1), output("y", N * out)},
      [=](Ops& ops, Arrays& a) { ops.linear_one_hot(a["y"], a["weight"], a["bias"], a.ids("tokens"), N, V, out); },
      [=](Ops& ops, Arrays& a) {
        ops.linear_one_hot_backward(a["dweight"], a["dbias"], a["dy"], a.ids("tokens"), N, V, out);
      }};
}

OpCase normalize_case(int64_t N, int D, Into into = Into::WRITE) {
  return {"normalize " + by({N, D}) + when(into == Into::ADD, " add"),
          {input("x", N * D, into), output("y", N * D), kept("inv_std", N)},
          [=](Ops& ops, Arrays& a) { ops.normalize(a["y"], a["inv_std"], a["x"], N, D); },
          [=](Ops& ops, Arrays& a) { ops.normalize_backward(a["dx"], a["dy"], a["y"], a["inv_std"], N, D, into); }};
}

OpCase center_case(int64_t N, int D) {
  return {"center " + by({N, D}),
          {input("x", N * D), output("y", N * D)},
          [=](Ops& ops, Arrays& a) { ops.center(a["y"], a["x"], N, D); },
          [=](Ops& ops, Arrays& a) { ops.center(a["dx"], a["dy"], N, D); }};
}

OpCase layer_norm_case(int64_t N, int D, Into into = Into::WRITE, real epsilon = real(1e-5)) {
  return {"layer_norm " + by({N, D}) + when(epsilon != real(1e-5), " large epsilon") + when(into == Into::ADD, " add"),
          {input("x", N * D, into), parameter("weight", D), parameter("bias", D), output("y", N * D),
           kept("again", N * D), kept("hat", N * D), kept("inv_std", N)},
          [=](Ops& ops, Arrays& a) {
            ops.layer_norm(a["y"], a["hat"], a["inv_std"], a["x"], a["weight"], a["bias"], epsilon, N, D);
            ops.layer_norm_output(a["again"], a["hat"], a["weight"], a["bias"], N, D);
          },
          [=](Ops& ops, Arrays& a) {
            ops.layer_norm_backward(a["dx"], a["dweight"], a["dbias"], a["dy"], a["hat"], a["inv_std"], a["weight"], N,
                                    D, into);
          }};
}

// What a gradient that is added to begins with.
enum class Start { ZERO, RANDOM };

OpCase rms_norm_case(int64_t N, int D, Into into, real epsilon = real(1e-5), Start start = Start::ZERO) {
  const bool adds = into == Into::ADD, zero = adds && start == Start::ZERO;
  return {"rms_norm " + by({N, D}) + when(adds, " add") + when(epsilon != real(1e-5), " large epsilon"),
          {input("x", N * D, start == Start::ZERO ? Into::WRITE : into), parameter("weight", D), output("y", N * D),
           kept("inv_rms", N)},
          [=](Ops& ops, Arrays& a) { ops.rms_norm(a["y"], a["inv_rms"], a["x"], a["weight"], epsilon, N, D); },
          [=](Ops& ops, Arrays& a) {
            if (zero) a.tensor("dx").zero();
            ops.rms_norm_backward(a["dx"], a["dweight"], a["dy"], a["x"], a["inv_rms"], a["weight"], N, D, into);
          }};
}

// ---- Elements -------------------------------------------------------------------------------------------------------

OpCase pointwise_case(Pointwise f, int64_t n) {
  constexpr const char* NAMES[] = {"relu", "gelu", "gelu_tanh"};
  OpCase row{"pointwise " + (NAMES[static_cast<int>(f)] + (" " + std::to_string(n))),
             {input("x", n, -4, 4), output("y", n), scratch("again", n)},
             [=](Ops& ops, Arrays& a) { ops.pointwise(a["y"], a["x"], f, n); },
             [=](Ops& ops, Arrays& a) { ops.pointwise_backward(a["dx"], a["again"], a["dy"], a["x"], f, n); }};
  row.kinked = f == Pointwise::RELU;
  return row;
}

// Positions and rows that are added to many. gap: numbers between two rows; first: the first position.
OpCase rows_case(int B, int T, int D, int gap = 0, int first = 0) {
  const int64_t N = int64_t(B) * T;
  return {"rows " + by({B, T, D}) + (gap > 0 ? text(" gaps of %d from %d", gap, first) : ""),
          {input("x", N * (D + gap)), parameter("positions", int64_t(T + first) * D), parameter("row", D),
           output("y", N * D), kept("doubled", N * (D + gap))},
          [=](Ops& ops, Arrays& a) {
            ops.add_row(a["y"], a["x"], D + gap, a["row"], N, D);
            ops.add_positions(a["y"], a["positions"], first, B, T, D);
            ops.scale(a["y"], a["y"], real(1.5), N * D);
            ops.add(a["doubled"], D + gap, a["y"], a["y"], N, D);
          },
          [=](Ops& ops, Arrays& a) {
            ops.scale(a["dx"], a["dy"], real(1.5), N * D);
            ops.add_row_backward(a["drow"], a["dx"], N, D);
            ops.add_positions_backward(a["dpositions"], a["dx"], B, T, D);
          }};
}

OpCase taken_rows_case(int B, int T, int first, int step, int count, int D, Start start = Start::ZERO) {
  return {text("take_rows %dx%d of %dx%d from %d by %d", B, count, T, D, first, step),
          {input("x", int64_t(B) * T * D, start == Start::ZERO ? Into::WRITE : Into::ADD),
           output("y", int64_t(B) * count * D)},
          [=](Ops& ops, Arrays& a) { ops.take_rows(a["y"], a["x"], B, T, first, step, count, D); },
          [=](Ops& ops, Arrays& a) {
            if (start == Start::ZERO) a.tensor("dx").zero();
            ops.add_to_rows(a["dx"], a["dy"], B, T, first, step, count, D);
          }};
}

OpCase memory_case() {
  return {"memory",
          {updated("x", 3 * 11), constant("rows", 3 * 5), updated("y", (int64_t(11) << 20) / int64_t(sizeof(real)))},
          [=](Ops& ops, Arrays& a) {
            ops.copy(a["x"] + 2, bytes(11), a["rows"], bytes(5), bytes(4), 3);
            ops.zero(a["x"] + 29, bytes(3));
            const std::vector<real> large(static_cast<size_t>(a.tensor("y").size()), real(0.5));
            ops.upload(a["y"] + 3, large.data() + 1, (large.size() - 3) * sizeof(real));  // so large that it is split
          }};
}

OpCase silu_gate_case(int64_t n) {
  return {"silu_gate " + by({n}),
          {input("y", n), input("z", n, -8, 8), output("gated", n), scratch("again", n)},
          [=](Ops& ops, Arrays& a) { ops.silu_gate(a["gated"], a["y"], a["z"], n); },
          [=](Ops& ops, Arrays& a) {
            ops.silu_gate_backward(a["dy"], a["dz"], a["again"], a["dgated"], a["y"], a["z"], n);
          }};
}

OpCase tanh_case(int64_t n) {
  return {"tanh " + by({n}),
          {input("z", n, -3, 3), output("h", n)},
          [=](Ops& ops, Arrays& a) { ops.tanh(a["h"], a["z"], n); },
          [=](Ops& ops, Arrays& a) { ops.tanh_backward(a["dz"], a["dh"], a["h"], n); }};
}

// dc_before takes the place of dc, the cotangent of c.
OpCase lstm_cell_case(int64_t N, int H) {
  const int64_t size = N * H;
  return {"lstm_cell " + by({N, H}),
          {input("z", 4 * size, -3, 3), input("c_before", size), kept("gates", 4 * size), output("c", size),
           output("h", size)},
          [=](Ops& ops, Arrays& a) {
            ops.copy(a["gates"], 0, a["z"], 0, bytes(4 * size), 1);
            ops.lstm_cell(a["h"], a["c"], a["gates"], a["c_before"], N, H);
          },
          [=](Ops& ops, Arrays& a) {
            ops.copy(a["dc_before"], 0, a["dc"], 0, bytes(size), 1);
            ops.lstm_cell_backward(a["dz"], a["dc_before"], a["dh"], a["gates"], a["c"], a["c_before"], N, H);
          }};
}

// ---- Attention ------------------------------------------------------------------------------------------------------

enum class Distances { IGNORED, BIASED, POSITIONED };

OpCase attention_case(const AttentionShape& s, Distances distances) {
  const int64_t keys = s.key_offset(s.batch, 0), queries = int64_t(s.batch) * s.queries * s.query_step;
  const int64_t out = int64_t(s.batch) * s.queries * s.width(), rows = int64_t(s.batch) * s.queries * s.heads;
  const int64_t positions = int64_t(s.distances()) * s.width(), biases = int64_t(s.keys) * s.heads;
  const bool biased = distances == Distances::BIASED, positioned = distances == Distances::POSITIONED;
  std::vector<Operand> operands = {input("q", queries, -2, 2), input("k", keys, -2, 2), input("v", keys),
                                   output("y", out),           kept("top", rows),       kept("inv_sum", rows)};
  if (biased) operands.push_back(parameter("bias", biases, -2, 2));
  if (positioned) operands.push_back(input("q_position", queries, -2, 2));
  if (positioned) operands.push_back(input("positions", positions, -2, 2));
  operands.push_back(scratch("partial", s.batch * (positioned ? positions : biases)));
  const auto in = [](Arrays& a) {
    return AttentionInput{a["q"], a["k"], a["v"], a.find("bias"), a.find("q_position"), a.find("positions")};
  };
  OpCase row{
      text("attention%s %dx%d of %d heads %dx%d%s%s",
           biased       ? " biased"
           : positioned ? " positioned"
                        : "",
           s.batch, s.queries, s.keys, s.heads, s.head_width, s.causal ? " causal" : "", s.by_head ? " by head" : ""),
      operands, [=](Ops& ops, Arrays& a) { ops.attention(a["y"], a["top"], a["inv_sum"], in(a), s); }};
  if (s.queries == s.capacity)
    row.backward = [=](Ops& ops, Arrays& a) {
      const AttentionGradient gradient{
          a["dq"], a["dk"], a["dv"], a.find("dbias"), a.find("dq_position"), a.find("dpositions"), a["partial"]};
      ops.attention_backward(gradient, a["dy"], a["y"], a["top"], a["inv_sum"], in(a), s);
    };
  row.skips_pairs = s.causal || positioned;
  row.flops = products_of(s);
  return row;
}

OpCase kerple_case(int T, int heads, double most = 2) {  // most: r2 is between a quarter of it and itself
  return {"kerple_bias " + by({T, heads}) + when(most < 2, " of small r2"),
          {parameter("r1", heads, 0.5, 2), parameter("r2", heads, most / 4, most), output("bias", int64_t(T) * heads)},
          [=](Ops& ops, Arrays& a) { ops.kerple_bias(a["bias"], a["r1"], a["r2"], T, heads); },
          [=](Ops& ops, Arrays& a) {
            ops.kerple_bias_backward(a["dr1"], a["dr2"], a["dbias"], a["r1"], a["r2"], T, heads);
          }};
}

// streaming: with a state, as in decoding
OpCase linear_attention_case(const LinearAttentionShape& s, bool streaming) {
  const int64_t rows = int64_t(s.batch) * s.positions, size = rows * s.width();
  const bool elu = s.feature_map == FeatureMap::ELU_PLUS_ONE;
  const double least = elu ? -2 : s.normalized ? 0.05 : -1;
  std::vector<Operand> operands = {input("qkv", 3 * size, least, 1), kept("mapped", 3 * size), output("y", size),
                                   kept("inv_sum", rows * s.heads)};
  if (streaming) {
    const Role role = s.before > 0 ? Role::UPDATED : Role::SCRATCH;
    operands.push_back({"state", role, int64_t(s.batch) * s.heads * s.decoder_state_size(), 0.05, 1});
  } else {
    operands.push_back(kept("states", s.states_size()));
    operands.push_back(scratch("later", s.states_size()));
  }
  const auto inv_sum = [=](Arrays& a) { return s.normalized ? a["inv_sum"] : nullptr; };
  OpCase row{text("linear_attention%s%s%s %dx%d after %d heads %dx%d%s", streaming && s.before == 0 ? " begun" : "",
                  elu ? " elu" : "", s.normalized ? " normalized" : "", s.batch, s.positions, s.before, s.heads,
                  s.head_width, s.causal ? " causal" : ""),
             operands, [=](Ops& ops, Arrays& a) {
               ops.copy(a["mapped"], 0, a["qkv"], 0, bytes(3 * size), 1);
               ops.linear_attention(a["y"], inv_sum(a), a.find("states"), a.find("state"), a["mapped"], s);
             }};
  if (!streaming)
    row.backward = [=](Ops& ops, Arrays& a) {
      ops.linear_attention_backward(a["dqkv"], a["later"], a["dy"], a["y"], inv_sum(a), a["states"], a["mapped"], s);
    };
  row.skips_pairs = s.causal;
  row.flops = products_of(s);
  return row;
}
OpCase linear_attention_case(const LinearAttentionShape& s) { return linear_attention_case(s, s.before > 0); }

// Gaps between the rows of gradients: set to zero before, or compared as they were, NaN.
enum class Gaps { CLEARED, KEPT };

// before: keys and values before the sequence are attended to
OpCase dilated_attention_case(const DilatedShape& s, bool before, Gaps gaps = Gaps::CLEARED) {
  const int64_t keys = int64_t(s.batch) * s.capacity * s.key_step, queries = s.queries_of_all() * s.query_step;
  const int64_t out = s.queries_of_all() * s.width(), scores = s.queries_of_all() * s.heads * s.chunk;
  std::vector<Operand> operands = {input("q", queries, -2, 2),
                                   input("k", keys, -2, 2),
                                   input("v", keys),
                                   parameter("relative", int64_t(s.heads) * s.chunk, -2, 2),
                                   output("y", out),
                                   kept("weights", scores),
                                   gaps == Gaps::KEPT ? kept("dscores", scores) : scratch("dscores", scores)};
  if (before) operands.push_back(input("k_before", s.width(), -2, 2));
  if (before) operands.push_back(input("v_before", s.width()));
  const auto in = [](Arrays& a) {
    return DilatedInput{a["q"], a["k"], a["v"], a.find("k_before"), a.find("v_before"), a["relative"]};
  };
  OpCase row{text("dilated_attention%s %dx%d by %d of %d(%d) chunk %d dilation %d heads %dx%d", before ? " before" : "",
                  s.batch, s.queries, s.advance, s.keys, s.capacity, s.chunk, s.dilation, s.heads, s.head_width),
             operands, [=](Ops& ops, Arrays& a) { ops.dilated_attention(a["y"], a["weights"], in(a), s); }};
  if (s.keys == s.capacity)
    row.backward = [=](Ops& ops, Arrays& a) {
      const DilatedGradient gradient{a["dq"], a["dk"], a["dv"], a.find("dk_before"), a.find("dv_before"), a["dscores"]};
      for (const char* name : {"dq", "dk", "dv"})
        if (gaps == Gaps::CLEARED) a.tensor(name).zero();
      ops.dilated_attention_backward(gradient, a["dy"], a["weights"], in(a), s);
      ops.add_row_backward(a["drelative"], a["dscores"], s.queries_of_all(), s.heads * s.chunk);
    };
  row.flops = 4.0 * static_cast<double>(out) * s.chunk;
  return row;
}

// Every position's own and earlier keys; the last of every C positions and the C up to it.
DilatedShape dilated(int B, int T, int heads, int head_width, int chunk, int dilation) {
  const int width = heads * head_width;
  return {B, T, T, T, heads, head_width, chunk, dilation, 0, 1, width, width};
}
DilatedShape chunked(int B, int T, int heads, int head_width, int chunk) {
  const int width = heads * head_width, queries = (T + chunk - 1) / chunk;
  return {B, queries, T, T, heads, head_width, chunk, 1, T - 1 - (queries - 1) * chunk, chunk, width, 2 * width};
}

// ---- Relations ------------------------------------------------------------------------------------------------------

// Behind a sum that is shifted stands a norm: only with it is a shift that depends on p and q no part of the gradient.
std::vector<Operand> with_norm(std::vector<Operand> operands, const char* shifted, int64_t rows, int64_t size) {
  for (Operand& operand : operands)
    if (operand.name == shifted) operand.role = Role::KEPT;
  for (const Operand& more : {scratch("dz", size), output("y", size), kept("y_inv_std", rows), kept("shift", rows)})
    operands.push_back(more);
  return operands;
}

// normalized: with the inner norm, so that p and q are centered first; shifted: with the guard against overflow; range:
// of p and q; opposite: some queries are the negative of a key, or nearly so, so that their variances cancel.
OpCase relation_case(const RelationShape& s, bool normalized, bool shifted, double range = 1, bool opposite = false) {
  const int64_t keys = int64_t(s.batch) * s.capacity * s.hidden, queries = int64_t(s.batch) * s.queries * s.hidden;
  const int64_t pairs = int64_t(s.batch) * s.heads * s.queries * s.keys, rows = int64_t(s.batch) * s.queries;
  std::vector<Operand> operands = {input("p", keys, -range, range), input("q", queries, -range, range),
                                   output("z", queries), kept("p0", keys), kept("q0", queries)};
  if (normalized) operands.push_back(kept("inv_std", pairs));
  if (normalized) operands.push_back(scratch("weight", pairs));
  if (shifted) operands = with_norm(operands, "z", rows, queries);
  OpCase row{
      text("relation %s %s%s %dx%d of %dx%d heads %d%s", name_of(s.activation), normalized ? "normalized" : "plain",
           shifted ? " shifted" : "", s.batch, s.queries, s.keys, s.hidden, s.heads, s.causal ? " causal" : ""),
      operands, [=](Ops& ops, Arrays& a) {
        const int width = s.head_width();
        if (normalized || opposite) {
          ops.center(a["p0"], a["p"], keys / width, width);
          ops.center(a["q0"], a["q"], queries / width, width);
        } else {
          ops.copy(a["p0"], 0, a["p"], 0, bytes(keys), 1);
          ops.copy(a["q0"], 0, a["q"], 0, bytes(queries), 1);
        }
        if (opposite && s.queries > 3) {
          for (const char* name : {"p0", "q0"}) ops.zero(a[name] + s.hidden, bytes(s.hidden));
          ops.scale(a["q0"] + 3 * s.hidden, a["p0"], real(-0.999), s.hidden);
        }
        if (normalized) ops.relation_inv_std(a["inv_std"], a["p0"], a["q0"], s);
        if (shifted) ops.relation_shift(a["shift"], a["p0"], a["q0"], s);
        ops.relation(a["z"], a.find("inv_std"), a.find("shift"), a["p0"], a["q0"], s);
        if (shifted) ops.normalize(a["y"], a["y_inv_std"], a["z"], rows, s.hidden);
      }};
  if (s.queries == s.keys && s.keys == s.capacity)
    row.backward = [=](Ops& ops, Arrays& a) {
      if (shifted) ops.normalize_backward(a["dz"], a["dy"], a["y"], a["y_inv_std"], rows, s.hidden, Into::WRITE);
      ops.relation_backward(a["dp"], a["dq"], a.find("weight"), a["dz"], a.find("inv_std"), a.find("shift"), a["p0"],
                            a["q0"], s);
    };
  row.pairs = pairs_of(s);
  row.skips_pairs = normalized && s.causal;
  row.kinked = s.activation == Activation::RELU;
  return row;
}

OpCase linear_relation_case(int B, int T, int H, bool causal, bool shifted, double range) {
  const LinearRelationShape s{B, T, H, causal, 0};
  const int64_t rows = int64_t(B) * T, size = rows * H, sums = int64_t(B) * s.chunks() * 2 * H;
  std::vector<Operand> operands = {input("p", size, -range, range), input("q", size, -range, range), output("z", size),
                                   kept("sums", sums), scratch("later", sums / 2)};
  if (shifted) operands = with_norm(operands, "z", rows, size);
  return {"linear_relation " + by({B, T, H}) + when(causal, " causal") + when(shifted, " shifted") +
              text(" within %g", range),
          operands,
          [=](Ops& ops, Arrays& a) {
            ops.linear_relation(a["z"], a.find("shift"), a["sums"], nullptr, a["p"], a["q"], s);
            if (shifted) ops.normalize(a["y"], a["y_inv_std"], a["z"], rows, H);
          },
          [=](Ops& ops, Arrays& a) {
            if (shifted) ops.normalize_backward(a["dz"], a["dy"], a["y"], a["y_inv_std"], rows, H, Into::WRITE);
            ops.linear_relation_backward(a["dp"], a["dq"], a["later"], a["dz"], a.find("shift"), a["sums"], a["p"],
                                         a["q"], s);
          }};
}

// Decoding continues after `before` positions.
OpCase linear_relation_stream_case(int B, int before, int n, int H, bool shifted = true) {
  const LinearRelationShape s{B, n, H, true, before};
  const int64_t rows = int64_t(B) * n;
  return {"linear_relation " + by({B, n, H}) + text(" after %d", before) + when(!shifted, " not shifted"),
          {input("p", rows * H), input("q", rows * H), output("z", rows * H), kept("shift", rows),
           updated("state", int64_t(B) * 6 * H, 0.5, 2)},
          [=](Ops& ops, Arrays& a) {
            ops.linear_relation(a["z"], shifted ? a["shift"] : nullptr, nullptr, a["state"], a["p"], a["q"], s);
          }};
}

// The channel that determines a shift. Channel `nan` is NaN at the second position, or all are zeros of both signs.
OpCase shift_case(int H, int nan, bool causal) {
  const LinearRelationShape s{1, 3, H, causal, 0};
  return {text("linear_relation 1x3x%d%s, %s", H, causal ? " causal" : "",
               nan < 0 ? "zeros" : text("NaN at channel %d", nan).c_str()),
          {constant("p", 3 * H), kept("z", 3 * H), kept("shift", 3), kept("sums", 2 * H), kept("decoded", 3 * H),
           kept("its shift", 3), kept("state", 6 * H)},
          [=](Ops& ops, Arrays& a) {
            std::vector<real> numbers(static_cast<size_t>(3 * H));
            for (size_t i = 0; nan < 0 && i < numbers.size(); ++i) numbers[i] = i % 3 == 0 ? real(0) : real(-0.0);
            if (nan >= 0) numbers[static_cast<size_t>(H + nan)] = std::numeric_limits<real>::quiet_NaN();
            a.tensor("p").upload(numbers);
            ops.linear_relation(a["z"], a["shift"], a["sums"], nullptr, a["p"], a["p"], s);
            if (causal) ops.linear_relation(a["decoded"], a["its shift"], nullptr, a["state"], a["p"], a["p"], s);
          }};
}

// ---- Convolution, scan, cosine transform ----------------------------------------------------------------------------

// streaming: with inputs before the first, which only decoding has
OpCase causal_convolution_case(int B, int T, int C, int K, bool streaming) {
  const int64_t size = int64_t(B) * T * C;
  std::vector<Operand> operands = {input("x", size), parameter("weight", int64_t(C) * K), parameter("bias", C),
                                   output("y", size)};
  if (streaming) operands.push_back(updated("past", int64_t(B) * (K - 1) * C));
  OpCase row{"causal_convolution " + by({B, T, C}) + text(" taps %d", K) + when(streaming, " streaming"), operands,
             [=](Ops& ops, Arrays& a) {
               ops.causal_convolution(a["y"], a.find("past"), a["x"], a["weight"], a["bias"], B, T, C, K);
             }};
  if (!streaming)
    row.backward = [=](Ops& ops, Arrays& a) {
      ops.causal_convolution_backward(a["dx"], a["dweight"], a["dbias"], a["dy"], a["x"], a["weight"], a["bias"], B, T,
                                      C, K);
    };
  return row;
}

OpCase selective_scan_case(const ScanShape& s, bool streaming, Gaps gaps = Gaps::CLEARED) {
  const int64_t size = s.rows() * s.channels, states = int64_t(s.channels) * s.states, mixed = s.rows() * s.row;
  // B and C are the last columns of "mixed", as in the model.
  // "delta", pre_step in the catalogue: its numbers, which golden.txt has, are drawn by this name.
  std::vector<Operand> operands = {
      input("u", size),      input("delta", size, -3, 3), parameter("A_log", states, -1, 2),
      input("mixed", mixed), parameter("D", s.channels),  output("y", size)};
  if (streaming)
    operands.push_back(updated("state", states * s.batch));
  else
    operands.insert(operands.end(), {kept("kept", s.saved_size()), scratch("partial", s.partial_size())});
  const int B = s.row - 2 * s.states, C = B + s.states;
  OpCase row{"selective_scan " + by({s.batch, s.length, s.channels}) + text(" states %d", s.states) +
                 when(streaming, " streaming"),
             operands, [=](Ops& ops, Arrays& a) {
               ops.selective_scan(a["y"], a.find("state"), a.find("kept"), a["u"], a["delta"], a["A_log"],
                                  a["mixed"] + B, a["mixed"] + C, a["D"], s);
             }};
  if (!streaming)
    row.backward = [=](Ops& ops, Arrays& a) {
      if (gaps == Gaps::CLEARED) a.tensor("dmixed").zero();
      ops.selective_scan_backward(a["du"], a["ddelta"], a["dA_log"], a["dmixed"] + B, a["dmixed"] + C, a["dD"],
                                  a["partial"], a["dy"], a["kept"], a["u"], a["delta"], a["A_log"], a["mixed"] + B,
                                  a["mixed"] + C, a["D"], s);
    };
  row.pairs = static_cast<double>(s.rows()) * static_cast<double>(states);
  return row;
}

// The heads of a sliding cosine transform, and how large their arrays are.
struct DctHeads {
  int head_width;
  std::vector<int64_t> windows, frequencies;

  int64_t width() const { return static_cast<int64_t>(windows.size()) * head_width; }
  int64_t coefficients() const { return std::accumulate(frequencies.begin(), frequencies.end(), int64_t(0)); }
  int64_t most() const { return *std::max_element(frequencies.begin(), frequencies.end()); }
  DctShape shape(Ops& ops, Arrays& a, int B, int T, int before) const {
    if (!a.tables) a.tables = std::make_shared<DctPlan>(ops, windows, frequencies, head_width, before + T);
    return static_cast<const DctPlan*>(a.tables.get())->shape(B, T, before);
  }
  std::string name() const {
    std::string list = text("%d: ", head_width);
    for (size_t h = 0; h < windows.size(); ++h)
      list += when(h > 0, ", ") + std::to_string(frequencies[h]) + " of " + std::to_string(windows[h]);
    return list;
  }
};

OpCase sliding_dct_case(int B, int T, const DctHeads& heads) {
  const int64_t rows = int64_t(B) * T, x = rows * heads.width(), c = rows * heads.coefficients() * heads.head_width;
  OpCase row{"sliding_dct " + by({B, T}) + " of " + heads.name(),
             {input("x", x), output("c", c)},
             [=](Ops& ops, Arrays& a) { ops.sliding_dct(a["c"], nullptr, a["x"], heads.shape(ops, a, B, T, 0)); },
             [=](Ops& ops, Arrays& a) { ops.sliding_dct_backward(a["dx"], a["dc"], heads.shape(ops, a, B, T, 0)); }};
  row.pairs = static_cast<double>(c);
  return row;
}

// Decoding continues after `before` positions.
OpCase sliding_dct_stream_case(int B, int before, int T, const DctHeads& heads) {
  const int64_t rows = int64_t(B) * T;
  int64_t state = 0;
  for (size_t h = 0; h < heads.windows.size(); ++h)
    state += heads.head_width *
             (std::min<int64_t>(heads.windows[h], before + T) * (heads.frequencies[h] + 1) + 2 * heads.frequencies[h]);
  return {"sliding_dct " + by({B, T}) + text(" after %d of ", before) + heads.name(),
          {input("x", rows * heads.width()), updated("state", B * state),
           output("c", rows * heads.coefficients() * heads.head_width)},
          [=](Ops& ops, Arrays& a) { ops.sliding_dct(a["c"], a["state"], a["x"], heads.shape(ops, a, B, T, before)); }};
}

OpCase mix_frequencies_case(int B, int T, const DctHeads& heads) {
  const int64_t rows = int64_t(B) * T, d = heads.head_width, c = rows * heads.coefficients() * d;
  OpCase row{
      "mix_frequencies " + by({B, T}) + " of " + heads.name(),
      {input("c", c), parameter("weight", static_cast<int64_t>(heads.windows.size()) * heads.most() * d * d),
       output("o", rows * heads.width())},
      [=](Ops& ops, Arrays& a) { ops.mix_frequencies(a["o"], a["c"], a["weight"], heads.shape(ops, a, B, T, 0)); },
      [=](Ops& ops, Arrays& a) {
        ops.mix_frequencies_backward(a["dc"], a["dweight"], a["do"], a["c"], a["weight"], heads.shape(ops, a, B, T, 0));
      }};
  row.flops = 2.0 * static_cast<double>(c * d);
  return row;
}

// ---- Losses, sums, AdamW --------------------------------------------------------------------------------------------

OpCase cross_entropy_case(int64_t N, int V) {
  return {"cross_entropy " + by({N, V}),
          {input("logits", N * V, -3, 3), ids("targets", N, -1, V - 1), kept("losses", N),
           scratch("partial", N / 1024 + 2), output("loss", 1)},
          [=](Ops& ops, Arrays& a) {
            ops.cross_entropy(a["losses"], nullptr, a["logits"], a.ids("targets"), 0, N, V);
            ops.sum(a["loss"], a["partial"], a["losses"], N);
          },
          [=](Ops& ops, Arrays& a) {
            const real scale = a.tensor("dloss").download()[0];
            ops.cross_entropy(a["losses"], a["dlogits"], a["logits"], a.ids("targets"), scale, N, V);
          }};
}

using SetLoss = void (Ops::*)(real*, real*, const real*, const real*, real, int64_t, int);

// lowest: of the sets; fractions serve as well, to the formula
OpCase set_loss_case(const char* name, SetLoss set_loss, real lowest, int64_t N, int V) {
  return {name + (" " + by({N, V})),
          {input("logits", N * V, -3, 3), constant("sets", N * V, lowest, 1), kept("losses", N),
           scratch("partial", N / 1024 + 2), output("loss", 1)},
          [=](Ops& ops, Arrays& a) {
            (ops.*set_loss)(a["losses"], nullptr, a["logits"], a["sets"], 0, N, V);
            ops.sum(a["loss"], a["partial"], a["losses"], N);
          },
          [=](Ops& ops, Arrays& a) {
            const real scale = a.tensor("dloss").download()[0];
            (ops.*set_loss)(a["losses"], a["dlogits"], a["logits"], a["sets"], scale, N, V);
          }};
}
OpCase binary_cross_entropy_case(int64_t N, int V) {
  return set_loss_case("binary_cross_entropy", &Ops::binary_cross_entropy, 0, N, V);
}
OpCase squared_error_case(int64_t N, int V) {
  return set_loss_case("sigmoid_squared_error", &Ops::sigmoid_squared_error, -1, N, V);
}

// most = 0: all logits are equal, of which the first counts
OpCase argmax_case(int64_t N, int V, double most = 9) {
  return {"argmax " + by({N, V}) + when(most == 0, " of equal numbers"),
          {constant("logits", N * V, -most, most), found("best", N)},
          [=](Ops& ops, Arrays& a) { ops.argmax(a.ids("best"), a["logits"], N, V); }};
}

OpCase sums_case(int64_t n) {
  OpCase row{"sum, sum_of_squares " + by({n}),
             {constant("even", n), constant("uneven", n), scratch("partial", n / 1024 + 2)},
             [=](Ops& ops, Arrays& a) {
               for (const std::string numbers : {"even", "uneven"}) {
                 ops.sum(a[numbers + " sum"], a["partial"], a[numbers], n);
                 ops.sum_of_squares(a[numbers + " squares"], a["partial"], a[numbers], n);
               }
             }};
  row.operands[1].special = Special::UNEVEN;
  for (const char* name : {"even sum", "even squares", "uneven sum", "uneven squares"})
    row.operands.push_back(kept(name, 1));
  return row;
}

OpCase optimizer_case(int64_t n, real clip = 1) {
  return {"adamw " + by({n}) + when(clip == 0, " not clipped"),
          {updated("value", n), updated("m", n), updated("v", n, 0, 1), constant("gradient", n), kept("square_sum", 1),
           scratch("partial", n / 1024 + 2)},
          [=](Ops& ops, Arrays& a) {
            ops.sum_of_squares(a["square_sum"], a["partial"], a["gradient"], n);
            const AdamwStep step{real(1e-3), real(0.9),   real(0.999),    real(1e-8),
                                 real(0.1),  real(0.271), real(0.002997), clip};
            ops.adamw(a["value"], a["m"], a["v"], a["gradient"], a["square_sum"], step, n);
          }};
}

constexpr Into WRITE = Into::WRITE, ADD = Into::ADD;
constexpr Activation EXP = Activation::EXP, ACTIVATIONS[] = {EXP, Activation::RELU, Activation::ELU, Activation::GELU};
constexpr Pointwise POINTWISE[] = {Pointwise::RELU, Pointwise::GELU, Pointwise::GELU_TANH};
constexpr FeatureMap ELU = FeatureMap::ELU_PLUS_ONE, IDENTITY = FeatureMap::IDENTITY;
constexpr Distances IGNORED = Distances::IGNORED, BIASED = Distances::BIASED, POSITIONED = Distances::POSITIONED;

}  // namespace

// ---- Rows of golden.txt ---------------------------------------------------------------------------------------------

std::vector<OpCase> op_cases() {
  std::vector<OpCase> rows = {embedding_case(3, 5, 7, 4, true),
                              embedding_case(2, 700, 33, 29, false),  // more than one chunk of rows
                              linear_case(1, 1, 1, true, WRITE),
                              linear_case(5, 7, 3, true, WRITE),
                              linear_case(17, 33, 49, false, ADD),
                              linear_case(9, 1100, 5, true, ADD),     // the chain is cut
                              linear_case(1061, 6, 11, true, WRITE),  // the weight's gradient is cut
                              normalize_case(3, 7),
                              normalize_case(37, 65),
                              center_case(5, 31)};
  for (const bool causal : {true, false}) {
    for (const Activation activation : ACTIVATIONS) {
      rows.push_back(relation_case(whole(2, 5, 7, 1, causal, activation), true, false));
      rows.push_back(relation_case(whole(2, 4, 6, 1, causal, activation), false, false));
    }
    rows.push_back(relation_case(whole(1, 6, 66, 2, causal, EXP), true, false));
    rows.push_back(relation_case(whole(3, 4, 9, 3, causal, EXP), true, false));
    rows.push_back(relation_case(whole(2, 5, 37, 1, causal, EXP), false, true));
  }
  append(rows,
         {relation_case(whole(1, 3, 191, 1, true, EXP), true, false),  // blocks of 64, twice, and of 32 … 1
          relation_case(whole(1, 3, 191, 1, true, EXP), false, true),
          relation_case(whole(1, 67, 40, 2, true, EXP), true, false),  // more than one block of queries
          relation_case({2, 1, 5, 8, 34, 2, true, EXP}, true, false),  // a decoder's newest query
          relation_case({3, 2, 4, 4, 10, 1, true, EXP}, false, true), linear_relation_case(1, 1, 1, true, false, 1)});
  for (const bool causal : {true, false})
    append(rows, {linear_relation_case(2, 5, 7, causal, false, 1),
                  linear_relation_case(3, 64, 33, causal, true, 3),   // a whole chunk
                  linear_relation_case(2, 130, 5, causal, false, 2),  // three
                  linear_relation_case(1, 197, 35, causal, true, 40)});
  append(rows, {linear_relation_stream_case(3, 0, 2, 7),
                linear_relation_stream_case(2, 126, 5, 37),  // into the next chunk
                class_token_case(3, 5, 7),
                class_token_case(1030, 2, 3),  // the sum over the batch is cut
                rms_norm_case(3, 7, WRITE),
                rms_norm_case(3, 7, WRITE, real(0.5)),
                rms_norm_case(1031, 33, ADD),  // the weight's gradient is cut
                causal_convolution_case(2, 7, 5, 4, false),
                causal_convolution_case(3, 2, 67, 3, false),  // shorter than the filter reaches
                causal_convolution_case(1, 3, 9, 1, false),
                causal_convolution_case(2, 515, 3, 5, false),  // the weight's gradient is cut
                causal_convolution_case(2, 2, 35, 4, true),
                causal_convolution_case(2, 5, 6, 3, true),
                selective_scan_case({2, 5, 3, 4, 10}, false),
                selective_scan_case({3, 7, 33, 5, 10}, false),     // more than one group of channels
                selective_scan_case({1, 131, 35, 16, 37}, false),  // more than one segment
                selective_scan_case({2, 64, 32, 1, 2}, false),
                selective_scan_case({1, 70, 5, 37, 74}, false),  // more states than a GPU holds at once
                selective_scan_case({2, 3, 37, 16, 35}, true),
                selective_scan_case({1, 9, 2, 18, 36}, true),
                silu_gate_case(37),
                linear_one_hot_case(3, 5, 7),       // fewer rows than tokens
                linear_one_hot_case(2100, 11, 67),  // more than one chunk of rows
                tanh_case(67),
                lstm_cell_case(3, 5),
                lstm_cell_case(2, 33),
                layer_norm_case(3, 7),
                layer_norm_case(1030, 33),
                layer_norm_case(3, 7, WRITE, real(0.5))});
  for (const Pointwise f : POINTWISE) rows.push_back(pointwise_case(f, 85));
  append(rows, {rows_case(3, 4, 7), kerple_case(37, 3)});
  for (const bool causal : {true, false})
    append(rows,
           {attention_case(whole(2, 5, 1, 7, causal), IGNORED), attention_case(whole(1, 2, 3, 2, causal), IGNORED),
            attention_case(whole(2, 67, 2, 17, causal), IGNORED),  // more than one tile
            attention_case(whole(2, 5, 2, 3, causal), POSITIONED),
            attention_case(whole(1, 66, 1, 33, causal), POSITIONED)});
  append(rows,
         {attention_case(whole(3, 6, 2, 5, true), BIASED), attention_case(whole(2, 65, 1, 16, true), BIASED),
          attention_case({2, 1, 6, 9, 2, 5, true, 10, 13}, BIASED),  // a decoder's newest query
          attention_case({3, 4, 7, 8, 1, 9, true, 11, 9}, POSITIONED),
          attention_case({2, 1, 90, 99, 3, 5, true, 16, 5, true}, BIASED),  // keys head by head
          attention_case({3, 20, 37, 38, 2, 9, true, 21, 9, true}, IGNORED),
          dilated_attention_case(dilated(2, 7, 2, 3, 2, 1), false),
          dilated_attention_case(dilated(2, 11, 1, 5, 3, 3), false),
          dilated_attention_case(dilated(1, 9, 3, 2, 4, 7), false),  // few reach another
          dilated_attention_case(dilated(1, 40, 1, 35, 37, 1), false),
          dilated_attention_case(chunked(3, 7, 2, 4, 2), true), dilated_attention_case(chunked(2, 10, 1, 5, 3), true),
          dilated_attention_case(chunked(2, 1, 3, 3, 5), true),
          dilated_attention_case({2, 3, 8, 11, 2, 5, 3, 2, 5, 1, 12, 23}, false),  // a decoder's newest queries
          dilated_attention_case({2, 1, 4, 9, 1, 6, 2, 4, 3, 1, 6, 13}, true), taken_rows_case(3, 7, 2, 2, 3, 5)});
  for (const bool causal : {true, false})
    append(rows, {linear_attention_case({2, 5, 1, 7, causal, true, IDENTITY, 0}),
                  linear_attention_case({2, 5, 1, 7, causal, false, ELU, 0}),
                  linear_attention_case({1, 145, 2, 3, causal, true, ELU, 0}),  // a chunk of one position
                  linear_attention_case({1, 145, 2, 3, causal, false, IDENTITY, 0}),
                  linear_attention_case({3, 299, 1, 33, causal, true, ELU, 0}),  // both ways through a state
                  linear_attention_case({1, 299, 1, 33, causal, false, IDENTITY, 0})});
  append(rows, {linear_attention_case({2, 1, 2, 5, true, true, ELU, 67}),
                linear_attention_case({1, 150, 1, 17, true, true, ELU, 280}),  // through two ends of chunks
                linear_attention_case({2, 3, 1, 6, true, false, IDENTITY, 142}),
                sliding_dct_case(2, 7, {3, {3, 5}, {2, 5}}),         // k = t; a last block that is not whole
                sliding_dct_case(1, 9, {5, {1, 9, 40}, {1, 9, 3}}),  // a window as long as the text, and one longer
                sliding_dct_case(3, 1, {2, {4}, {3}}),
                sliding_dct_case(1, 147, {33, {70, 2}, {6, 2}}),  // two runs, and two groups of frequencies
                sliding_dct_case(2, 131, {17, {13}, {13}}),
                sliding_dct_stream_case(2, 0, 5, {3, {3, 9}, {2, 5}}),
                sliding_dct_stream_case(2, 11, 8, {5, {3, 7, 30}, {3, 6, 1}}),  // through several ends of blocks
                sliding_dct_stream_case(1, 64, 1, {37, {65, 64}, {1, 4}}),
                mix_frequencies_case(2, 5, {3, {4, 4}, {2, 3}}),
                mix_frequencies_case(1, 70, {33, {9, 9, 9}, {1, 5, 3}}),
                mix_frequencies_case(2, 519, {5, {4, 4}, {4, 1}}),  // the weights' gradient is cut
                cross_entropy_case(3, 5),
                cross_entropy_case(1030, 33),
                binary_cross_entropy_case(5, 37),
                squared_error_case(7, 2),
                squared_error_case(3, 35),
                optimizer_case(5),
                optimizer_case(2500)});
  return rows;
}

std::vector<OpCase> special_cases() {
  std::vector<OpCase> rows = {embedding_case(3, 5, 7, 4, true),
                              linear_case(17, 33, 49, true, ADD),
                              normalize_case(37, 65),
                              center_case(5, 31),
                              layer_norm_case(19, 35),
                              rms_norm_case(19, 35, WRITE),
                              class_token_case(3, 5, 7),
                              causal_convolution_case(2, 7, 5, 4, false),
                              causal_convolution_case(2, 5, 6, 3, true),
                              selective_scan_case({3, 7, 33, 5, 10}, false),
                              selective_scan_case({2, 3, 37, 16, 35}, true),
                              silu_gate_case(37),
                              linear_one_hot_case(9, 5, 7),
                              tanh_case(67),
                              lstm_cell_case(7, 33)};
  for (const Pointwise f : POINTWISE) rows.push_back(pointwise_case(f, 85));
  append(rows, {rows_case(3, 4, 7), sliding_dct_case(2, 7, {3, {3, 5}, {2, 5}}),
                mix_frequencies_case(2, 5, {3, {4, 4}, {2, 3}}), cross_entropy_case(9, 37),
                binary_cross_entropy_case(9, 37), squared_error_case(9, 35), optimizer_case(2500)});
  for (const bool causal : {true, false})
    for (const Activation activation : ACTIVATIONS)
      for (const bool normalized : {true, false})
        rows.push_back(relation_case(whole(2, 5, 35, 1, causal, activation), normalized, false));
  rows.push_back(relation_case(whole(2, 5, 37, 1, true, EXP), false, true));
  for (const bool causal : {true, false}) {
    rows.push_back(linear_relation_case(2, 130, 5, causal, false, 2));
    rows.push_back(linear_relation_case(3, 66, 33, causal, true, 3));
  }
  rows.push_back(linear_relation_stream_case(2, 126, 5, 37));
  // Causal sequences are short here. Keys that a query does not see but that are in its tile are multiplied by zero,
  // which turns an infinity into a NaN. Tiles differ between devices, and so, in longer sequences, do the queries that
  // get a NaN.
  for (const bool causal : {true, false})
    append(rows, {attention_case(whole(3, causal ? 6 : 35, 2, 5, causal), IGNORED),
                  attention_case(whole(3, 6, 2, 5, causal), POSITIONED),
                  linear_attention_case({2, 5, 2, 7, causal, true, ELU, 0}),
                  linear_attention_case({2, causal ? 9 : 145, 2, 3, causal, false, IDENTITY, 0})});
  append(rows,
         {attention_case(whole(3, 6, 2, 5, true), BIASED), attention_case({2, 1, 6, 9, 2, 5, true, 10, 13}, BIASED),
          linear_attention_case({2, 3, 2, 5, true, true, ELU, 67}),
          dilated_attention_case(dilated(2, 11, 2, 5, 3, 3), false),
          dilated_attention_case(chunked(3, 7, 2, 4, 2), true), taken_rows_case(3, 7, 2, 2, 3, 5), kerple_case(37, 3)});
  std::vector<OpCase> all;
  for (const OpCase& row : rows)
    for (const auto& [special, name] : {std::pair(Special::SMALL, " with zeros and subnormals"),
                                        {Special::INFINITE, " with infinities"},
                                        {Special::NOT_A_NUMBER, " with NaN"}}) {
      all.push_back(with(special, row));
      all.back().name += name;
    }
  return all;
}

std::vector<OpCase> paper_cases(int batch) {
  constexpr int T = 258, D = 192, I = 384, STATES = 16, RANK = 12;  // I, STATES and RANK: Mamba's
  const int N = batch * T;
  const DctHeads dct = {32, {T, T, T, T, T, T}, {4, 4, 4, 4, 4, 4}};
  return {linear_case(N, D, D, true, WRITE),
          linear_case(N, D, 4 * D, true, WRITE),
          linear_case(N, 4 * D, D, true, WRITE),
          normalize_case(N, D),
          relation_case(whole(batch, T, D, 1, true, EXP), true, false),
          linear_relation_case(batch, T, D, true, true, 3),
          layer_norm_case(N, D),
          pointwise_case(Pointwise::GELU, N * 4 * D),
          attention_case(whole(batch, T, 1, D, true), IGNORED),
          linear_attention_case({batch, T, 1, D, true, true, ELU, 0}),
          rms_norm_case(N, D, WRITE),
          causal_convolution_case(batch, T, I, 4, false),
          selective_scan_case({batch, T, I, STATES, RANK + 2 * STATES}, false),
          silu_gate_case(N * I),
          sliding_dct_case(batch, T, dct),
          mix_frequencies_case(batch, T, dct),
          cross_entropy_case(N, 29),
          optimizer_case(1340000)};
}

// ---- Shapes at the boundaries of the kernels: tiles, chunks, strips, warps ------------------------------------------

namespace {

std::vector<OpCase> linear_shapes() {
  std::vector<OpCase> rows;
  for (const Into into : {WRITE, ADD}) {
    for (const bool bias : {false, true})
      append(rows, {linear_case(1, 1, 1, bias, into), linear_case(97, 17, 65, bias, into),
                    linear_case(96, 32, 64, bias, into), linear_case(3, 1025, 5, bias, into)});
    append(rows, {linear_case(193, 15, 130, true, into), linear_case(2, 2100, 67, false, into),
                  linear_case(1, 40, 3001, true, into), linear_input_case(1, 1, 1, into),
                  linear_input_case(98, 66, 19, into), linear_input_case(95, 64, 16, into),
                  linear_input_case(5, 7, 1025, into), linear_input_case(4, 128, 2048, into)});
  }
  for (const int in : {64, 66})  // full tiles, accumulated over chunks
    rows.push_back(linear_input_case(97, in, 1030, WRITE));
  for (const bool bias : {false, true})
    append(rows, {linear_weight_case(1, 1, 1, bias), linear_weight_case(2500, 33, 17, bias),
                  linear_weight_case(1024, 64, 96, bias), linear_weight_case(1025, 68, 100, bias)});
  append(rows, {
                   linear_weight_case(31, 131, 197, true), linear_weight_case(1024 + 15, 50, 70, false, true),
                   linear_weight_case(2049, 4, 1501, true),  // enough tiles: a block processes all chunks
                   linear_weight_case(1030, 1024, 1030, false), embedding_case(2, 5, 7, 11, true, 11, 2),
                   embedding_case(1, 1, 1, 1, true, 1, 2), embedding_case(5, 500, 33, 29, false),
                   embedding_case(2, 1025, 65, 50000, false), embedding_case(1, 2100, 3, 50000, false, 1),
                   embedding_case(1100, 2, 35, 1000, true, 7, 2),
                   embedding_case(35, 1000, 2, 300, false),  // more than 32 chunks
               });
  return rows;
}

std::vector<OpCase> row_shapes() {
  std::vector<OpCase> rows;
  for (const int D : {1, 2, 31, 32, 33, 64, 65, 192, 257, 1031}) {
    const int N = D < 100 ? 19 : 3;
    append(rows, {in_place(normalize_case(N, D), "x", "y"), normalize_case(N, D, ADD), center_case(N, D)});
  }
  rows.push_back(in_place(normalize_case(1, 4099), "x", "y"));
  rows.push_back(with(Special::EQUAL, normalize_case(3, 33)));
  for (const int D : {1, 31, 33, 65, 257})
    append(rows, {in_place(layer_norm_case(19, D), "x", "y"), layer_norm_case(19, D, ADD)});
  rows.push_back(in_place(layer_norm_case(2050, 3), "x", "y"));
  for (const int D : {1, 31, 33, 257, 600})
    for (const Into into : {ADD, WRITE}) rows.push_back(rms_norm_case(5, D, into, real(1e-5), Start::RANDOM));
  // The last block's last element is a thread's first, second, third or fourth.
  for (const int n : {7, 7 * 31, 7 * 50, 7 * 85, 7 * 120, 3 * 37}) {
    for (const Pointwise f : POINTWISE) append(rows, {pointwise_case(f, n), in_place(pointwise_case(f, n), "x", "y")});
    append(rows, {rows_case(1, 7, n / 7, 3, 2), with(Special::SEAMS, tanh_case(n)), silu_gate_case(n),
                  with(Special::SEAMS, lstm_cell_case(1, n)), causal_convolution_case(1, 7, n / 7, 7, false)});
  }
  append(rows, {once(pointwise_case(Pointwise::GELU, 2050 * 60)), once(pointwise_case(Pointwise::GELU_TANH, 2050 * 60)),
                once(rows_case(2050, 1, 60, 3)), once(with(Special::SEAMS, tanh_case(150000))),
                once(silu_gate_case(150000)), once(with(Special::SEAMS, lstm_cell_case(1500, 100))),
                once(causal_convolution_case(1, 1500, 100, 7, false))});
  for (const int V : {1, 2, 31, 33, 64, 130, 1025, 2048, 5003}) {
    const int N = V < 2000 ? 11 : V == 2048 ? 60 : 2;
    OpCase row = cross_entropy_case(N, V);
    if (V % 2 == 0 || V == 5003) row.same = {{"dlogits", "logits"}};
    for (OpCase& one :
         std::vector<OpCase>{row, binary_cross_entropy_case(N, V), squared_error_case(N, V), argmax_case(N, V)}) {
      one.once = V == 2048;
      rows.push_back(one);
    }
  }
  rows.push_back(argmax_case(2, 300, 0));
  for (const int64_t n :
       {0, 1, 33, 64, 65, 96, 100, 200, 333, 1023, 1024, 1025, 5000, 1024 * 33 + 5, 1024 * 1024 + 1025})
    rows.push_back(sums_case(n));
  for (const int64_t n : {1, 255, 256, 1000}) rows.push_back(optimizer_case(n, n % 2 == 0 ? real(0) : real(1)));
  rows.push_back(memory_case());
  for (const int T : {1, 33, 300, 1030}) rows.push_back(kerple_case(T, 3));
  rows.push_back(once(kerple_case(2000, 50)));
  rows.push_back(kerple_case(520, 9, 0.001));
  for (int T = 1; T <= 12; ++T)  // every length of a thread's last run
    rows.push_back(causal_convolution_case(2, T, 3, 4, false));
  for (const int K : {2, 17, 18, 19, 20})  // every reach of a group of taps
    rows.push_back(causal_convolution_case(2, 23, 3, K, false));
  for (const int channels : {1, 300}) rows.push_back(selective_scan_case({2, 70, channels, 5, 13}, false, Gaps::KEPT));
  return rows;
}

std::vector<OpCase> relation_shapes() {
  std::vector<OpCase> rows;
  const auto add = [&](const RelationShape& s, bool normalized, bool shifted = false, double range = 1) {
    rows.push_back(relation_case(s, normalized, shifted, range, true));
  };
  for (const bool causal : {true, false}) {
    for (const Activation activation : ACTIVATIONS) {
      add(whole(2, 19, 39, 1, causal, activation), true);
      add(whole(1, 11, 21, 3, causal, activation), false);
      // Several rounds of partners and several warps; all branches of the activation.
      for (const int width : {20, 150}) add(whole(1, 70, width, 1, causal, activation), true);
      add(whole(1, 37, 150, 1, causal, activation), false, false, 9);
      add(whole(1, 70, 20, 1, causal, activation), false, false, 9);
    }
    for (int T = 9; T <= 16; ++T)  // every number of rows of a sweep's last block, of one and of two channels a thread
      for (const int width : {20, 40})
        for (const Activation activation : ACTIVATIONS) {
          add(whole(1, T, width, 1, causal, activation), true);
          if (activation == EXP) add(whole(1, T, width, 1, causal, EXP), false);
        }
    for (const int width : {64, 66}) add(whole(1, 100, width, 1, causal, EXP), true);  // full tiles of its products
    for (const int width : {1, 2, 31, 32, 33, 64, 65, 96, 97, 130, 161, 192, 193, 230, 257, 300, 321, 384, 385})
      add(whole(1, 5, width, 1, causal, EXP), true);
    for (const int T : {1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 97, 130})
      add(whole(1, T, 6, 2, causal, EXP), true);
    for (const int width : {100, 200, 300}) add(whole(1, 42, width, 1, causal, EXP), true);  // fully masked rounds
    add(whole(3, 21, 99, 3, causal, EXP), true);
    add(whole(2, 10, 37, 1, causal, EXP), false, true);
    add(whole(2, 70, 66, 2, causal, EXP), false, true);
    add(whole(1, 9, 1029, 1, causal, EXP), true);
    add(whole(1, 3, 2060, 2, causal, Activation::GELU), true);
    add(whole(1, 5, 7001, 1, causal, EXP), true);
    add({2, 1, 9, 12, 34, 2, causal, EXP}, true);
    add({2, 3, 70, 70, 20, 1, causal, EXP}, true);
    add({1, 9, 13, 40, 10, 1, causal, EXP}, false, true);
    add({2, 1, 1, 5, 10, 1, causal, Activation::RELU}, false);
    const size_t before = rows.size();
    add(whole(1, causal ? 1100 : 1030, 2, 1, causal, EXP), true);  // chains over positions are cut into chunks
    add(whole(1, 100, 1030, 1, causal, EXP), true);                // full tiles, accumulated over chunks
    if (causal) add(whole(1, 1060, 64, 1, true, EXP), true);       // the same in products over positions
    for (size_t n = before; n < rows.size(); ++n) rows[n].once = true;
  }
  return rows;
}

std::vector<OpCase> linear_relation_shapes() {
  std::vector<OpCase> rows;
  for (const bool causal : {true, false}) {
    for (const int H : {1, 31, 32, 33, 63, 64, 65, 129, 512, 513, 1030}) {
      rows.push_back(linear_relation_case(1, 3, H, causal, H % 2 == 1, 5));
      if (causal) rows.push_back(linear_relation_stream_case(1, 0, 3, H, H % 2 == 1));
    }
    for (const int T : {1, 2, 63, 64, 65, 127, 128, 129, 200}) {
      append(rows, {linear_relation_case(2, T, 5, causal, true, 90), linear_relation_case(3, T, 34, causal, false, 1)});
      if (causal) append(rows, {linear_relation_stream_case(2, 0, T, 5), linear_relation_stream_case(3, 0, T, 34)});
    }
    rows.push_back(linear_relation_case(1, 20, 1030, causal, true, 5));
  }
  for (const int before : {1, 62, 63, 64, 65, 127, 128, 1000})
    rows.push_back(linear_relation_stream_case(2, before, 3, 70));
  rows.push_back(linear_relation_stream_case(2, 50, 150, 7, false));
  for (const int H : {1, 5, 40, 600, 1030})
    for (const int nan : {-1, 0, 1, 3, 4, 31, 32, 599, 1029})
      if (nan < H)
        for (const bool causal : {true, false}) rows.push_back(shift_case(H, nan, causal));
  return rows;
}

std::vector<OpCase> attention_shapes() {
  std::vector<OpCase> rows;
  const auto add = [&](const AttentionShape& s, Distances distances) { rows.push_back(attention_case(s, distances)); };
  for (const bool causal : {true, false}) {
    for (const int T : {1, 2, 31, 33, 63, 64, 65, 95, 96, 97, 129, 191, 193}) add(whole(1, T, 2, 3, causal), IGNORED);
    for (const int width : {1, 15, 16, 17, 63, 64, 65, 130}) add(whole(2, 7, 1, width, causal), POSITIONED);
    add(whole(2, 130, 2, 5, causal), POSITIONED);
    add({2, 3, 150, 160, 2, 6, causal, 13, 21}, POSITIONED);
    add({1, 100, 165, 165, 1, 4, causal, 4, 9}, IGNORED);
    add(whole(1, 3, 1, 1030, causal), IGNORED);  // chains over channels are cut
    for (const int width : {65, 68})
      for (const Distances distances : {IGNORED, POSITIONED}) add(whole(1, 100, 1, width, causal), distances);
    add({1, 100, 101, 104, 2, 64, causal, 128, 132}, IGNORED);
  }
  for (const int T : {1, 64, 130}) add(whole(3, T, 3, 2, true), BIASED);
  add(whole(1, 68, 1, 3, true), POSITIONED);  // a tile of four columns, directly followed by the next row
  add(whole(1, 100, 1, 64, true), BIASED);
  add({2, 1, 140, 140, 2, 3, true, 6, 6}, BIASED);
  add({2, 70, 70, 70, 2, 3, true, 20, 18}, BIASED);
  for (const int width : {3, 64}) {
    add({2, 1, 130, 140, 3, width, true, 3 * width, width, true}, BIASED);
    add({3, 70, 75, 78, 2, width, true, 2 * width, width, true}, POSITIONED);
  }
  const size_t before = rows.size();  // chains over positions are cut; several groups
  add(whole(4, 1100, 1, 2, true), BIASED);
  add(whole(3, 1060, 1, 1, true), POSITIONED);
  add(whole(1, 1030, 1, 2, false), POSITIONED);
  for (const int width : {64, 66})  // full tiles, accumulated over chunks
    add({1, 100, 1100, 1100, 1, width, true, width, width}, width == 64 ? POSITIONED : IGNORED);
  add(whole(1, 1060, 1, 64, true), IGNORED);
  add(whole(1, 100, 1, 1028, true), POSITIONED);
  for (size_t n = before; n < rows.size(); ++n) rows[n].once = true;
  return rows;
}

std::vector<OpCase> dilated_shapes() {
  std::vector<OpCase> rows;
  const auto add = [&](const DilatedShape& s, bool before) {
    rows.push_back(dilated_attention_case(s, before, Gaps::KEPT));
  };
  const auto sliding = [&](int B, int T, int heads, int width, int chunk, int dilation) {
    DilatedShape s = dilated(B, T, heads, width, chunk, dilation);
    s.query_step = 3 * heads * width, s.key_step = 2 * heads * width;
    add(s, false);
  };
  for (const int width : {1, 7, 31, 32, 33, 65}) {
    sliding(1, 5, 2, width, 2, 2);
    add(chunked(2, 5, 2, width, 2), true);
  }
  for (const int chunk : {2, 3, 31, 32, 33, 65, 300}) {
    sliding(2, 70, 3, 5, chunk, 1);
    add(chunked(2, 70, 3, 5, chunk), true);
  }
  for (const int dilation : {1, 4, 16, 64}) sliding(2, 19, 1, 9, 4, dilation);
  add(chunked(130, 3, 2, 6, 4), true);
  add(chunked(2, 12, 2, 6, 4), true);  // no earlier positions
  add({3, 2, 9, 12, 2, 5, 3, 2, 7, 1, 30, 20}, false);
  add({3, 2, 4, 12, 2, 5, 3, 3, 2, 1, 30, 20}, true);
  append(rows, {taken_rows_case(3, 11, 4, 3, 3, 7, Start::RANDOM), taken_rows_case(40, 9, 1, 2, 4, 33, Start::RANDOM)});
  return rows;
}

std::vector<OpCase> linear_attention_shapes() {
  std::vector<OpCase> rows;
  const auto add = [&](const LinearAttentionShape& s, bool only_once = false) {  // and, from its beginning, decoded
    for (const bool decoded : {false, true}) {
      if (decoded && (s.before > 0 || !s.causal)) continue;
      rows.push_back(linear_attention_case(s, decoded || s.before > 0));
      rows.back().once = only_once;
    }
  };
  for (const bool causal : {true, false})
    for (const bool normalized : {true, false}) {
      for (const int width : {1, 15, 16, 31, 64, 65, 97}) add({1, 147, 1, width, causal, normalized, IDENTITY, 0});
      for (const int T : {1, 2, 16, 63, 64, 65, 96, 97, 143, 144, 145, 288, 300})
        add({2, T, T % 2 + 1, 5, causal, normalized, ELU, 0});
      add({1, 40, 1, 32, causal, normalized, IDENTITY, 0});           // few, in full vectors
      add({1, 146, 1, 1027, causal, normalized, IDENTITY, 0}, true);  // chains are cut
    }
  for (const int before : {1, 140, 141, 142, 143, 144, 287, 288, 1000})
    add({2, 3, 2, 7, true, before % 2 == 0, ELU, before});
  add({1, 300, 1, 6, true, true, IDENTITY, 50});
  return rows;
}

std::vector<OpCase> dct_shapes() {
  std::vector<OpCase> rows;
  const auto add = [&](int B, int T, const DctHeads& heads, bool only_once = false) {
    for (const OpCase& row : {sliding_dct_case(B, T, heads), mix_frequencies_case(B, T, heads)}) {
      rows.push_back(row);
      rows.back().once = only_once;
    }
  };
  for (const int T : {1, 2, 63, 64, 65, 97, 128, 200}) add(2, T, {5, {64, 3, 7}, {4, 3, 1}});
  for (const int d : {1, 15, 16, 31, 33, 64, 65, 127, 130}) add(1, 9, {d, {5, 4}, {5, 2}});
  for (const int d : {97, 100}) {
    add(1, 100, {d, {8}, {2}});          // full tiles
    add(1, 100, {d, {12}, {12}}, true);  // accumulated over chunks
  }
  add(1, 100, {1027, {12}, {1}}, true);
  for (const int64_t k : {1, 2, 3, 4, 5, 8, 9, 12}) add(1, 40, {3, {12}, {k}});
  add(1, 70, {33, {32, 40}, {32, 1}});  // the chain over (j, channel) is cut
  add(1, 3, {1027, {2}, {2}});          // the chain over the channels is cut
  add(3, 700, {3, {600, 4}, {2, 4}});   // the chain over the rows is cut
  for (const int before : {0, 1, 5, 6, 7, 12, 13, 20})
    rows.push_back(sliding_dct_stream_case(2, before, 3, {4, {7, 3, 100}, {5, 2, 4}}));
  rows.push_back(sliding_dct_stream_case(1, 3, 50, {35, {8, 64}, {3, 6}}));
  return rows;
}

// Products that the CPU cuts into blocks of all kinds. Few rows are not packed.
std::vector<OpCase> strips() {
  return {
      linear_case(200, 430, 230, true, ADD),  // blocks of rows, and strips
      linear_case(9, 1200, 1100, true, ADD),  // b in two pieces, dx in two chunks
      linear_case(1, 1100, 37, true, ADD),    // one row, two chunks
      linear_case(3, 67, 64, true, ADD),     linear_case(4, 40, 5, true, ADD),
      linear_case(2100, 20, 70, true, ADD),  // three chunks of rows
      linear_case(1100, 96, 70, true, ADD),  // two of strips that stay in place
  };
}

}  // namespace

std::vector<OpCase> boundary_cases(const std::string& group) {
  const std::map<std::string, std::vector<OpCase> (*)()> groups = {{"linear", linear_shapes},
                                                                   {"rows", row_shapes},
                                                                   {"relation", relation_shapes},
                                                                   {"linear relation", linear_relation_shapes},
                                                                   {"attention", attention_shapes},
                                                                   {"dilated", dilated_shapes},
                                                                   {"linear attention", linear_attention_shapes},
                                                                   {"dct", dct_shapes},
                                                                   {"strips", strips},
                                                                   {"table", op_cases},
                                                                   {"special", special_cases}};
  const auto found = groups.find(group);
  return found == groups.end() ? std::vector<OpCase>{} : found->second();
}

}  // namespace petroglyph
