#include "cases.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/text.h"
#include "math/random.h"
#include "ops/dct_plan.h"

namespace petroglyph {

namespace {

real random_between(const std::string& name, uint64_t seed, int64_t i, double low, double high) {
  const float u = uniform(philox(seed, stream_of(name), 0, static_cast<uint64_t>(i)).word[0]);
  return static_cast<real>(low + (high - low) * u);
}

void place(std::vector<real>& numbers, Special special, const std::string& name, uint64_t seed) {
  constexpr real SMALLEST = std::numeric_limits<real>::denorm_min(), NORMAL = std::numeric_limits<real>::min(),
                 SMALL[] = {0, real(-0.0), SMALLEST, -SMALLEST, NORMAL / 3, -NORMAL / 5};
  const auto word = [&](size_t i) { return philox(seed, stream_of(name + " special"), 0, i).word[0]; };
  if (special == Special::SMALL)
    for (size_t i = 0; i < numbers.size(); ++i)
      if (word(i) % 4 == 0) numbers[i] = SMALL[word(i) / 4 % std::size(SMALL)];
  if (numbers.empty() || special == Special::NONE || special == Special::SMALL) return;
  const real infinity = std::numeric_limits<real>::infinity(), value = special == Special::NOT_A_NUMBER
                                                                           ? std::numeric_limits<real>::quiet_NaN()
                                                                       : word(0) % 2 == 0 ? infinity
                                                                                          : -infinity;
  numbers[below(word(1), static_cast<uint32_t>(numbers.size()))] = value;
}

}  // namespace

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

Arrays::Arrays(Ops& ops, const std::vector<Operand>& operands, uint64_t seed) {
  const auto fill = [&](const std::string& name, int64_t size, double low, double high, Special special) {
    std::vector<real> host(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) host[static_cast<size_t>(i)] = random_between(name, seed, i, low, high);
    place(host, special, name, seed);
    reals_[name] = Tensor(ops, {size});
    reals_[name].upload(host);
  };
  const auto leave = [&](const std::string& name, int64_t size) {  // NaN: whoever reads it unwritten is seen
    reals_[name] = Tensor(ops, {size});
    reals_[name].upload(std::vector<real>(static_cast<size_t>(size), std::numeric_limits<real>::quiet_NaN()));
  };
  for (const Operand& o : operands) {
    if (o.role == Role::IDS) {
      std::vector<int32_t> host(static_cast<size_t>(o.size));
      const int32_t low = static_cast<int32_t>(o.low), count = static_cast<int32_t>(o.high - o.low) + 1;
      for (int64_t i = 0; i < o.size; ++i)
        host[static_cast<size_t>(i)] =
            low + static_cast<int32_t>(below(philox(seed, stream_of(o.name), 0, static_cast<uint64_t>(i)).word[0],
                                             static_cast<uint32_t>(count)));
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
  Arrays arrays(ops, row.operands, seed);
  row.forward(ops, arrays);
  if (row.backward) row.backward(ops, arrays);
  std::vector<Written> written;
  for (const Operand& o : row.operands) {
    if (o.role == Role::OUTPUT || o.role == Role::UPDATED || o.role == Role::KEPT)
      written.push_back({o.name, arrays.tensor(o.name).download(), {}});
    if (row.backward && (o.role == Role::INPUT || o.role == Role::PARAMETER || (cotangents && o.role == Role::OUTPUT)))
      written.push_back({"d" + o.name, arrays.tensor("d" + o.name).download(), {}});
  }
  return written;
}

ModelBatch::ModelBatch(Ops& ops, const ModelCase& row, int vocab, uint64_t seed)
    : batch(row.batch), length(row.length) {
  const bool images = row.patch_size > 0;
  const int answers = images || row.last ? batch : batch * length;
  std::vector<int32_t> ids, chosen;
  int counted = 0;
  for (int i = 0; i < batch * length; ++i) {
    const Random4 random = philox(seed, stream_of("batch"), 0, static_cast<uint64_t>(i));
    ids.push_back(static_cast<int32_t>(below(random.word[0], static_cast<uint32_t>(vocab))));
    if (i >= answers) continue;
    const bool counts = below(random.word[1], 4) != 0 || i == 0;
    chosen.push_back(counts ? static_cast<int32_t>(below(random.word[2], static_cast<uint32_t>(vocab))) : -1);
    counted += counts;
  }
  if (images) {
    std::vector<real> pixels;
    for (int i = 0; i < batch * length * row.patch_size; ++i)
      pixels.push_back(random_between("patches", seed, i, -1, 1));
    patches = Tensor(ops, {batch, length, row.patch_size});
    patches.upload(pixels);
  } else {
    tokens = Tokens(ops, {batch, length});
    tokens.upload(ids);
  }
  targets = Tokens(ops, {answers});
  targets.upload(chosen);
  scale = 1 / static_cast<real>(counted);
}

ModelBatch ModelBatch::sample(Ops& ops, int b) const {
  const auto take = [&](const auto& all) {
    auto host = all.download();
    const int64_t size = all.size() / batch;
    return decltype(host)(host.begin() + b * size, host.begin() + (b + 1) * size);
  };
  ModelBatch one(length);
  if (patches.size() > 0) {
    one.patches = Tensor(ops, {patches.size() / batch});
    one.patches.upload(take(patches));
  } else {
    one.tokens = Tokens(ops, {length});
    one.tokens.upload(take(tokens));
  }
  return one;
}

std::vector<int32_t> ModelBatch::to_decode(const Model& model) const {
  const std::vector<int32_t> once = tokens.download();
  std::vector<int32_t> all;
  for (int b = 0; b < batch; ++b)
    for (int times = model.window() > 0 ? 3 : 1; times > 0; --times)
      all.insert(all.end(), once.begin() + b * length, once.begin() + (b + 1) * length);
  return all;
}

// ---- Rows that gpu_checks.cpp has more of, too ----------------------------------------------------------------------

const char* name_of(Activation activation) {
  constexpr const char* NAMES[] = {"exp", "relu", "elu", "gelu"};
  return NAMES[static_cast<int>(activation)];
}

RelationShape whole(int B, int T, int H, int heads, bool causal, Activation activation) {
  return {B, T, T, T, H, heads, causal, activation};
}

AttentionShape whole(int B, int T, int heads, int head_width, bool causal) {
  return {B, T, T, T, heads, head_width, causal, heads * head_width, heads * head_width};
}

OpCase attention_case(const AttentionShape& s, Distances distances) {
  const int64_t keys = s.key_offset(s.batch, 0), queries = int64_t(s.batch) * s.queries * s.query_step;
  const int64_t out = int64_t(s.batch) * s.queries * s.width(), rows = int64_t(s.batch) * s.queries * s.heads;
  const bool biased = distances == Distances::BIASED, positioned = distances == Distances::POSITIONED;
  std::vector<Operand> operands = {{"q", Role::INPUT, queries, -2, 2}, {"k", Role::INPUT, keys, -2, 2},
                                   {"v", Role::INPUT, keys},           {"y", Role::OUTPUT, out},
                                   {"top", Role::KEPT, rows},          {"inv_sum", Role::KEPT, rows}};
  if (biased) operands.push_back({"bias", Role::PARAMETER, int64_t(s.keys) * s.heads, -2, 2});
  if (positioned) operands.push_back({"q_position", Role::INPUT, queries, -2, 2});
  if (positioned) operands.push_back({"positions", Role::INPUT, int64_t(s.distances()) * s.width(), -2, 2});
  const int64_t partial = positioned ? int64_t(s.distances()) * s.width() : int64_t(s.keys) * s.heads;
  operands.push_back({"partial", Role::SCRATCH, s.batch * partial});
  OpCase row{
      text("attention%s %dx%d of %d heads %dx%d%s%s",
           biased       ? " biased"
           : positioned ? " positioned"
                        : "",
           s.batch, s.queries, s.keys, s.heads, s.head_width, s.causal ? " causal" : "", s.by_head ? " by head" : ""),
      operands,
      {},
      {}};
  const auto input = [=](Arrays& a) {
    return AttentionInput{a["q"],
                          a["k"],
                          a["v"],
                          biased ? a["bias"] : nullptr,
                          positioned ? a["q_position"] : nullptr,
                          positioned ? a["positions"] : nullptr};
  };
  row.forward = [=](Ops& ops, Arrays& a) { ops.attention(a["y"], a["top"], a["inv_sum"], input(a), s); };
  row.skips_pairs = s.causal || positioned;
  if (s.queries == s.capacity)
    row.backward = [=](Ops& ops, Arrays& a) {
      const AttentionGradient gradient{a["dq"],
                                       a["dk"],
                                       a["dv"],
                                       biased ? a["dbias"] : nullptr,
                                       positioned ? a["dq_position"] : nullptr,
                                       positioned ? a["dpositions"] : nullptr,
                                       a["partial"]};
      ops.attention_backward(gradient, a["dy"], a["y"], a["top"], a["inv_sum"], input(a), s);
    };
  row.flops = products_of(s);
  return row;
}

OpCase linear_attention_case(const LinearAttentionShape& s, bool streaming) {
  const int64_t rows = int64_t(s.batch) * s.positions, size = rows * s.width();
  const bool elu = s.feature_map == FeatureMap::ELU_PLUS_ONE;
  std::vector<Operand> operands = {{"qkv", Role::INPUT, 3 * size,
                                    elu            ? -2
                                    : s.normalized ? 0.05
                                                   : -1,
                                    1},
                                   {"mapped", Role::KEPT, 3 * size},
                                   {"y", Role::OUTPUT, size},
                                   {"inv_sum", Role::KEPT, rows * s.heads}};
  if (streaming) {
    const Role role = s.before > 0 ? Role::UPDATED : Role::SCRATCH;
    operands.push_back({"state", role, int64_t(s.batch) * s.heads * s.decoder_state_size(), 0.05, 1});
  } else {
    operands.push_back({"states", Role::KEPT, s.states_size()});
    operands.push_back({"later", Role::SCRATCH, s.states_size()});
  }
  OpCase row{text("linear_attention%s%s%s %dx%d after %d heads %dx%d%s", streaming && s.before == 0 ? " begun" : "",
                  elu ? " elu" : "", s.normalized ? " normalized" : "", s.batch, s.positions, s.before, s.heads,
                  s.head_width, s.causal ? " causal" : ""),
             operands,
             {},
             {}};
  const auto inv_sum = [=](Arrays& a) { return s.normalized ? a["inv_sum"] : nullptr; };
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.copy(a["mapped"], 0, a["qkv"], 0, static_cast<size_t>(3 * size) * sizeof(real), 1);
    ops.linear_attention(a["y"], inv_sum(a), streaming ? nullptr : a["states"], streaming ? a["state"] : nullptr,
                         a["mapped"], s);
  };
  if (!streaming)
    row.backward = [=](Ops& ops, Arrays& a) {
      ops.linear_attention_backward(a["dqkv"], a["later"], a["dy"], a["y"], inv_sum(a), a["states"], a["mapped"], s);
    };
  row.skips_pairs = s.causal;
  row.flops = products_of(s);
  return row;
}

OpCase dilated_attention_case(const DilatedShape& s, bool before, Gaps gaps) {
  const int64_t keys = int64_t(s.batch) * s.capacity * s.key_step, queries = s.queries_of_all() * s.query_step;
  const int64_t out = s.queries_of_all() * s.width(), scores = s.queries_of_all() * s.heads * s.chunk;
  std::vector<Operand> operands = {{"q", Role::INPUT, queries, -2, 2},
                                   {"k", Role::INPUT, keys, -2, 2},
                                   {"v", Role::INPUT, keys},
                                   {"relative", Role::PARAMETER, int64_t(s.heads) * s.chunk, -2, 2},
                                   {"y", Role::OUTPUT, out},
                                   {"weights", Role::KEPT, scores},
                                   {"dscores", gaps == Gaps::KEPT ? Role::KEPT : Role::SCRATCH, scores}};
  if (before) operands.push_back({"k_before", Role::INPUT, s.width(), -2, 2});
  if (before) operands.push_back({"v_before", Role::INPUT, s.width()});
  OpCase row{text("dilated_attention%s %dx%d by %d of %d(%d) chunk %d dilation %d heads %dx%d", before ? " before" : "",
                  s.batch, s.queries, s.advance, s.keys, s.capacity, s.chunk, s.dilation, s.heads, s.head_width),
             operands,
             {},
             {}};
  const auto input = [=](Arrays& a) {
    return DilatedInput{
        a["q"], a["k"], a["v"], before ? a["k_before"] : nullptr, before ? a["v_before"] : nullptr, a["relative"]};
  };
  row.forward = [=](Ops& ops, Arrays& a) { ops.dilated_attention(a["y"], a["weights"], input(a), s); };
  if (s.keys == s.capacity)
    row.backward = [=](Ops& ops, Arrays& a) {
      const DilatedGradient gradient{
          a["dq"],     a["dk"], a["dv"], before ? a["dk_before"] : nullptr, before ? a["dv_before"] : nullptr,
          a["dscores"]};
      for (const char* name : {"dq", "dk", "dv"})
        if (gaps == Gaps::CLEARED) a.tensor(name).zero();
      ops.dilated_attention_backward(gradient, a["dy"], a["weights"], input(a), s);
      ops.add_row_backward(a["drelative"], a["dscores"], s.queries_of_all(), s.heads * s.chunk);
    };
  row.flops = 4.0 * static_cast<double>(out) * s.chunk;
  return row;
}

OpCase kerple_case(int T, int heads, double most) {
  OpCase row{text("kerple_bias %dx%d%s", T, heads, most < 2 ? " of small r2" : ""),
             {{"r1", Role::PARAMETER, heads, 0.5, 2},
              {"r2", Role::PARAMETER, heads, most / 4, most},
              {"bias", Role::OUTPUT, int64_t(T) * heads}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) { ops.kerple_bias(a["bias"], a["r1"], a["r2"], T, heads); };
  row.backward = [=](Ops& ops, Arrays& a) {
    ops.kerple_bias_backward(a["dr1"], a["dr2"], a["dbias"], a["r1"], a["r2"], T, heads);
  };
  return row;
}

OpCase causal_convolution_case(int B, int T, int C, int K, bool streaming) {
  const int64_t size = int64_t(B) * T * C;
  std::vector<Operand> operands = {{"x", Role::INPUT, size},
                                   {"weight", Role::PARAMETER, int64_t(C) * K},
                                   {"bias", Role::PARAMETER, C},
                                   {"y", Role::OUTPUT, size}};
  if (streaming) operands.push_back({"past", Role::UPDATED, int64_t(B) * (K - 1) * C});
  OpCase row{
      text("causal_convolution %dx%dx%d taps %d%s", B, T, C, K, streaming ? " streaming" : ""), operands, {}, {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.causal_convolution(a["y"], streaming ? a["past"] : nullptr, a["x"], a["weight"], a["bias"], B, T, C, K);
  };
  if (!streaming)
    row.backward = [=](Ops& ops, Arrays& a) {
      ops.causal_convolution_backward(a["dx"], a["dweight"], a["dbias"], a["dy"], a["x"], a["weight"], a["bias"], B, T,
                                      C, K);
    };
  row.numbers = static_cast<double>(size);
  // K fma, the sigmoid, times it; backward these again, three for its slope, K for dx and K for the weight, and the
  // bias
  const double taps = K;
  row.forward_instructions = SIGMOID + Instructions{taps + 1, taps + 1};
  row.backward_instructions = SIGMOID + Instructions{3 * taps + 3, 3 * taps + 5};
  return row;
}

OpCase selective_scan_case(const ScanShape& s, bool streaming, Gaps gaps) {
  const int64_t size = s.rows() * s.channels, states = int64_t(s.channels) * s.states, mixed = s.rows() * s.row;
  // B and C are the last columns of "mixed", as in the model.
  // "delta", pre_step in the catalogue: its numbers, which golden.txt has, are drawn by this name.
  std::vector<Operand> operands = {
      {"u", Role::INPUT, size},      {"delta", Role::INPUT, size, -3, 3}, {"A_log", Role::PARAMETER, states, -1, 2},
      {"mixed", Role::INPUT, mixed}, {"D", Role::PARAMETER, s.channels},  {"y", Role::OUTPUT, size}};
  if (streaming)
    operands.push_back({"state", Role::UPDATED, states * s.batch});
  else
    operands.insert(operands.end(),
                    {{"kept", Role::KEPT, s.saved_size()}, {"partial", Role::SCRATCH, s.partial_size()}});
  OpCase row{text("selective_scan %dx%dx%d states %d%s", s.batch, s.length, s.channels, s.states,
                  streaming ? " streaming" : ""),
             operands,
             {},
             {}};
  const int B = s.row - 2 * s.states, C = B + s.states;
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.selective_scan(a["y"], streaming ? a["state"] : nullptr, streaming ? nullptr : a["kept"], a["u"], a["delta"],
                       a["A_log"], a["mixed"] + B, a["mixed"] + C, a["D"], s);
  };
  if (!streaming)
    row.backward = [=](Ops& ops, Arrays& a) {
      if (gaps == Gaps::CLEARED) a.tensor("dmixed").zero();
      ops.selective_scan_backward(a["du"], a["ddelta"], a["dA_log"], a["dmixed"] + B, a["dmixed"] + C, a["dD"],
                                  a["partial"], a["dy"], a["kept"], a["u"], a["delta"], a["A_log"], a["mixed"] + B,
                                  a["mixed"] + C, a["D"], s);
    };
  row.pairs = static_cast<double>(s.rows()) * static_cast<double>(states);
  // Multiply, max, 10 of exp2_in_range, multiply, two fma; and for all states of a channel the softplus, times u, and D
  // u. Backward 14 of forward and eight to go back; and for all states the softplus again, its slope, and six more.
  // Folding comes on top.
  const double a_state = 1.0 / s.states;
  row.forward_instructions = Instructions{10, 15} + a_state * (SOFTPLUS + Instructions{2, 2});
  row.backward_instructions = Instructions{17, 22} + a_state * (SOFTPLUS + SIGMOID + Instructions{7, 7});
  return row;
}

namespace {

// ---- Rows -----------------------------------------------------------------------------------------------------------

OpCase embedding_case(int B, int T, int D, int V, bool positions) {
  std::vector<Operand> operands = {{"token_table", Role::PARAMETER, int64_t(V) * D},
                                   {"tokens", Role::IDS, int64_t(B) * T, 0, double(V - 1)},
                                   {"x", Role::OUTPUT, int64_t(B) * T * D}};
  if (positions) operands.push_back({"position_table", Role::PARAMETER, int64_t(T) * D});
  OpCase row{text("embedding %dx%dx%d vocab %d%s", B, T, D, V, positions ? " positions" : ""), operands, {}, {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.embedding(a["x"], a["token_table"], positions ? a["position_table"] : nullptr, a.ids("tokens"), 0, B, T, D);
  };
  row.backward = [=](Ops& ops, Arrays& a) {
    ops.embedding_backward(a["dtoken_table"], positions ? a["dposition_table"] : nullptr, a["dx"], a.ids("tokens"), B,
                           T, D, V);
  };
  return row;
}

OpCase linear_case(int64_t N, int in, int out, bool bias, Into into) {
  std::vector<Operand> operands = {{"x", Role::INPUT, N * in},
                                   {"weight", Role::PARAMETER, int64_t(out) * in},
                                   {"y", into == Into::ADD ? Role::UPDATED : Role::OUTPUT, N * out}};
  if (bias) operands.push_back({"bias", Role::PARAMETER, out});
  OpCase row{text("linear %lldx%dx%d%s%s", static_cast<long long>(N), in, out, bias ? " bias" : "",
                  into == Into::ADD ? " add" : ""),
             operands,
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.linear(a["y"], a["x"], a["weight"], bias ? a["bias"] : nullptr, N, in, out, into);
  };
  row.backward = [=](Ops& ops, Arrays& a) {
    ops.linear_backward_input(a["dx"], a["dy"], a["weight"], N, in, out, Into::WRITE);
    ops.linear_backward_weight(a["dweight"], bias ? a["dbias"] : nullptr, a["dy"], a["x"], N, in, out);
  };
  row.flops = 2.0 * static_cast<double>(N) * in * out;
  return row;
}

double bytes_of(int64_t numbers) { return static_cast<double>(numbers) * sizeof(real); }

OpCase normalize_case(int64_t N, int D) {
  OpCase row{text("normalize %lldx%d", static_cast<long long>(N), D),
             {{"x", Role::INPUT, N * D}, {"y", Role::OUTPUT, N * D}, {"inv_std", Role::KEPT, N}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) { ops.normalize(a["y"], a["inv_std"], a["x"], N, D); };
  row.backward = [=](Ops& ops, Arrays& a) {
    ops.normalize_backward(a["dx"], a["dy"], a["y"], a["inv_std"], N, D, Into::WRITE);
  };
  row.forward_bytes = bytes_of(2 * N * D);   // x, y
  row.backward_bytes = bytes_of(3 * N * D);  // dy, y, dx
  return row;
}

OpCase center_case(int64_t N, int D) {
  OpCase row{text("center %lldx%d", static_cast<long long>(N), D),
             {{"x", Role::INPUT, N * D}, {"y", Role::OUTPUT, N * D}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) { ops.center(a["y"], a["x"], N, D); };
  row.backward = [=](Ops& ops, Arrays& a) { ops.center(a["dx"], a["dy"], N, D); };
  return row;
}

OpCase layer_norm_case(int64_t N, int D, real epsilon = real(1e-5)) {
  OpCase row{text("layer_norm %lldx%d%s", static_cast<long long>(N), D, epsilon == real(1e-5) ? "" : " large epsilon"),
             {{"x", Role::INPUT, N * D},
              {"weight", Role::PARAMETER, D},
              {"bias", Role::PARAMETER, D},
              {"y", Role::OUTPUT, N * D},
              {"again", Role::KEPT, N * D},
              {"hat", Role::KEPT, N * D},
              {"inv_std", Role::KEPT, N}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.layer_norm(a["y"], a["hat"], a["inv_std"], a["x"], a["weight"], a["bias"], epsilon, N, D);
    ops.layer_norm_output(a["again"], a["hat"], a["weight"], a["bias"], N, D);
  };
  row.backward = [=](Ops& ops, Arrays& a) {
    ops.layer_norm_backward(a["dx"], a["dweight"], a["dbias"], a["dy"], a["hat"], a["inv_std"], a["weight"], N, D,
                            Into::WRITE);
  };
  row.forward_bytes = bytes_of(5 * N * D);   // x, y, hat; hat, y again
  row.backward_bytes = bytes_of(3 * N * D);  // dy, hat, dx
  return row;
}

OpCase pointwise_case(Pointwise f, int64_t n) {
  constexpr const char* NAMES[] = {"relu", "gelu", "gelu_tanh"};
  OpCase row{text("pointwise %s %lld", NAMES[static_cast<int>(f)], static_cast<long long>(n)),
             {{"x", Role::INPUT, n, -4, 4}, {"y", Role::OUTPUT, n}, {"again", Role::SCRATCH, n}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) { ops.pointwise(a["y"], a["x"], f, n); };
  row.backward = [=](Ops& ops, Arrays& a) { ops.pointwise_backward(a["dx"], a["again"], a["dy"], a["x"], f, n); };
  row.kinked = f == Pointwise::RELU;
  if (f == Pointwise::RELU) return row;
  row.numbers = static_cast<double>(n);
  // Φ(x): times √½, erf, plus 1, half; or x (A + B x²) and its sigmoid. f: times x. Backward f, f' and times dy, where
  // f' is another exponential of a product and two products more, or five instructions.
  const bool by_erf = f == Pointwise::GELU;
  const Instructions gate = by_erf ? ERF + Instructions{2, 3} : SIGMOID + Instructions{3, 3};
  const Instructions slope = by_erf ? EXP + Instructions{4, 4} : Instructions{4, 5};
  row.forward_instructions = gate + Instructions{1, 1};
  row.backward_instructions = gate + slope + Instructions{2, 2};
  return row;
}

// Positions and rows that are added to many.
OpCase rows_case(int B, int T, int D) {
  const int64_t N = int64_t(B) * T;
  OpCase row{text("rows %dx%dx%d", B, T, D),
             {{"x", Role::INPUT, N * D},
              {"positions", Role::PARAMETER, int64_t(T) * D},
              {"row", Role::PARAMETER, D},
              {"y", Role::OUTPUT, N * D},
              {"doubled", Role::KEPT, N * D}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.add_row(a["y"], a["x"], D, a["row"], N, D);
    ops.add_positions(a["y"], a["positions"], 0, B, T, D);
    ops.scale(a["y"], a["y"], real(1.5), N * D);
    ops.add(a["doubled"], D, a["y"], a["y"], N, D);
  };
  row.backward = [=](Ops& ops, Arrays& a) {
    ops.scale(a["dx"], a["dy"], real(1.5), N * D);
    ops.add_row_backward(a["drow"], a["dx"], N, D);
    ops.add_positions_backward(a["dpositions"], a["dx"], B, T, D);
  };
  return row;
}

OpCase taken_rows_case(int B, int T, int first, int step, int count, int D) {
  OpCase row{text("take_rows %dx%d of %dx%d from %d by %d", B, count, T, D, first, step),
             {{"x", Role::INPUT, int64_t(B) * T * D}, {"y", Role::OUTPUT, int64_t(B) * count * D}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) { ops.take_rows(a["y"], a["x"], B, T, first, step, count, D); };
  row.backward = [=](Ops& ops, Arrays& a) {
    a.tensor("dx").zero();
    ops.add_to_rows(a["dx"], a["dy"], B, T, first, step, count, D);
  };
  return row;
}

// normalized: with the inner norm, so that p and q are centered first; shifted: with the guard against overflow.
OpCase relation_case(const RelationShape& s, bool normalized, bool shifted) {
  const int64_t keys = int64_t(s.batch) * s.capacity * s.hidden, queries = int64_t(s.batch) * s.queries * s.hidden;
  const int64_t pairs = int64_t(s.batch) * s.heads * s.queries * s.keys;
  const bool whole = s.queries == s.keys && s.keys == s.capacity;
  std::vector<Operand> operands = {{"p", Role::INPUT, keys},
                                   {"q", Role::INPUT, queries},
                                   {"z", Role::OUTPUT, queries},
                                   {"p0", Role::KEPT, keys},
                                   {"q0", Role::KEPT, queries}};
  if (normalized) operands.push_back({"inv_std", Role::KEPT, pairs});
  if (normalized) operands.push_back({"weight", Role::SCRATCH, pairs});
  const int64_t rows = int64_t(s.batch) * s.queries;
  if (shifted) {  // a norm follows: only with it is a shift that depends on p and q no part of the gradient
    operands[2].role = Role::KEPT;
    operands.push_back({"dz", Role::SCRATCH, queries});
    operands.push_back({"y", Role::OUTPUT, queries});
    operands.push_back({"y_inv_std", Role::KEPT, rows});
    operands.push_back({"shift", Role::KEPT, rows});
  }
  OpCase row{
      text("relation %s %s%s %dx%d of %dx%d heads %d%s", name_of(s.activation), normalized ? "normalized" : "plain",
           shifted ? " shifted" : "", s.batch, s.queries, s.keys, s.hidden, s.heads, s.causal ? " causal" : ""),
      operands,
      {},
      {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    const int width = normalized ? s.head_width() : 1;
    if (normalized) {
      ops.center(a["p0"], a["p"], keys / width, width);
      ops.center(a["q0"], a["q"], queries / width, width);
      ops.relation_inv_std(a["inv_std"], a["p0"], a["q0"], s);
    } else {
      ops.copy(a["p0"], 0, a["p"], 0, static_cast<size_t>(keys) * sizeof(real), 1);
      ops.copy(a["q0"], 0, a["q"], 0, static_cast<size_t>(queries) * sizeof(real), 1);
    }
    if (shifted) ops.relation_shift(a["shift"], a["p0"], a["q0"], s);
    ops.relation(a["z"], normalized ? a["inv_std"] : nullptr, shifted ? a["shift"] : nullptr, a["p0"], a["q0"], s);
    if (shifted) ops.normalize(a["y"], a["y_inv_std"], a["z"], rows, s.hidden);
  };
  if (whole)
    row.backward = [=](Ops& ops, Arrays& a) {
      if (shifted) ops.normalize_backward(a["dz"], a["dy"], a["y"], a["y_inv_std"], rows, s.hidden, Into::WRITE);
      ops.relation_backward(a["dp"], a["dq"], normalized ? a["weight"] : nullptr, a["dz"],
                            normalized ? a["inv_std"] : nullptr, shifted ? a["shift"] : nullptr, a["p0"], a["q0"], s);
    };
  row.pairs = pairs_of(s);
  row.skips_pairs = normalized && s.causal;
  if (s.activation == Activation::EXP && normalized) {
    row.forward_instructions = RELATION_FORWARD;
    row.backward_instructions = RELATION_BACKWARD;
  }
  row.kinked = s.activation == Activation::RELU;
  return row;
}

OpCase rms_norm_case(int64_t N, int D, Into into, real epsilon = real(1e-5)) {
  OpCase row{text("rms_norm %lldx%d%s%s", static_cast<long long>(N), D, into == Into::ADD ? " add" : "",
                  epsilon == real(1e-5) ? "" : " large epsilon"),
             {{"x", Role::INPUT, N * D},
              {"weight", Role::PARAMETER, D},
              {"y", Role::OUTPUT, N * D},
              {"inv_rms", Role::KEPT, N}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) { ops.rms_norm(a["y"], a["inv_rms"], a["x"], a["weight"], epsilon, N, D); };
  row.backward = [=](Ops& ops, Arrays& a) {
    if (into == Into::ADD) a.tensor("dx").zero();
    ops.rms_norm_backward(a["dx"], a["dweight"], a["dy"], a["x"], a["inv_rms"], a["weight"], N, D, into);
  };
  return row;
}

OpCase silu_gate_case(int64_t n) {
  OpCase row{
      text("silu_gate %lld", static_cast<long long>(n)),
      {{"y", Role::INPUT, n}, {"z", Role::INPUT, n, -8, 8}, {"gated", Role::OUTPUT, n}, {"again", Role::SCRATCH, n}},
      {},
      {}};
  row.forward = [=](Ops& ops, Arrays& a) { ops.silu_gate(a["gated"], a["y"], a["z"], n); };
  row.backward = [=](Ops& ops, Arrays& a) {
    ops.silu_gate_backward(a["dy"], a["dz"], a["again"], a["dgated"], a["y"], a["z"], n);
  };
  row.numbers = static_cast<double>(n);
  row.forward_instructions = SIGMOID + Instructions{2, 2};
  row.backward_instructions = SIGMOID + Instructions{6, 7};
  return row;
}

OpCase linear_one_hot_case(int64_t N, int V, int out) {
  OpCase row{text("linear_one_hot %lldx%d vocab %d", static_cast<long long>(N), out, V),
             {{"weight", Role::PARAMETER, int64_t(out) * V},
              {"bias", Role::PARAMETER, out},
              {"tokens", Role::IDS, N, 0, double(V - 1)},
              {"y", Role::OUTPUT, N * out}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.linear_one_hot(a["y"], a["weight"], a["bias"], a.ids("tokens"), N, V, out);
  };
  row.backward = [=](Ops& ops, Arrays& a) {
    ops.linear_one_hot_backward(a["dweight"], a["dbias"], a["dy"], a.ids("tokens"), N, V, out);
  };
  return row;
}

OpCase tanh_case(int64_t n) {
  OpCase row{
      text("tanh %lld", static_cast<long long>(n)), {{"z", Role::INPUT, n, -3, 3}, {"h", Role::OUTPUT, n}}, {}, {}};
  row.forward = [=](Ops& ops, Arrays& a) { ops.tanh(a["h"], a["z"], n); };
  row.backward = [=](Ops& ops, Arrays& a) { ops.tanh_backward(a["dz"], a["dh"], a["h"], n); };
  return row;
}

// dc_before takes the place of dc, the cotangent of c.
OpCase lstm_cell_case(int64_t N, int H) {
  const int64_t size = N * H;
  OpCase row{text("lstm_cell %lldx%d", static_cast<long long>(N), H),
             {{"z", Role::INPUT, 4 * size, -3, 3},
              {"c_before", Role::INPUT, size},
              {"gates", Role::KEPT, 4 * size},
              {"c", Role::OUTPUT, size},
              {"h", Role::OUTPUT, size}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.copy(a["gates"], 0, a["z"], 0, static_cast<size_t>(4 * size) * sizeof(real), 1);
    ops.lstm_cell(a["h"], a["c"], a["gates"], a["c_before"], N, H);
  };
  row.backward = [=](Ops& ops, Arrays& a) {
    ops.copy(a["dc_before"], 0, a["dc"], 0, static_cast<size_t>(size) * sizeof(real), 1);
    ops.lstm_cell_backward(a["dz"], a["dc_before"], a["dh"], a["gates"], a["c"], a["c_before"], N, H);
  };
  return row;
}

OpCase class_token_case(int B, int T, int D) {
  OpCase row{text("append_class_token %dx%dx%d", B, T, D),
             {{"patches", Role::INPUT, int64_t(B) * (T - 1) * D},
              {"cls", Role::PARAMETER, D},
              {"position_table", Role::PARAMETER, int64_t(T) * D},
              {"x", Role::OUTPUT, int64_t(B) * T * D}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.append_class_token(a["x"], a["patches"], a["cls"], a["position_table"], B, T, D);
  };
  row.backward = [=](Ops& ops, Arrays& a) {
    ops.append_class_token_backward(a["dpatches"], a["dcls"], a["dposition_table"], a["dx"], B, T, D);
  };
  return row;
}

// range: of p and q. shifted: with a norm behind it, as in relation_case.
OpCase linear_relation_case(int B, int T, int H, bool causal, bool shifted, double range) {
  const LinearRelationShape s{B, T, H, causal, 0};
  const int64_t rows = int64_t(B) * T, size = rows * H, sums = int64_t(B) * s.chunks() * 2 * H;
  std::vector<Operand> operands = {{"p", Role::INPUT, size, -range, range},
                                   {"q", Role::INPUT, size, -range, range},
                                   {"z", shifted ? Role::KEPT : Role::OUTPUT, size},
                                   {"sums", Role::KEPT, sums},
                                   {"later", Role::SCRATCH, sums / 2}};
  if (shifted) {
    operands.push_back({"dz", Role::SCRATCH, size});
    operands.push_back({"y", Role::OUTPUT, size});
    operands.push_back({"y_inv_std", Role::KEPT, rows});
    operands.push_back({"shift", Role::KEPT, rows});
  }
  OpCase row{text("linear_relation %dx%dx%d%s%s within %g", B, T, H, causal ? " causal" : "", shifted ? " shifted" : "",
                  range),
             operands,
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.linear_relation(a["z"], shifted ? a["shift"] : nullptr, a["sums"], nullptr, a["p"], a["q"], s);
    if (shifted) ops.normalize(a["y"], a["y_inv_std"], a["z"], rows, H);
  };
  row.backward = [=](Ops& ops, Arrays& a) {
    if (shifted) ops.normalize_backward(a["dz"], a["dy"], a["y"], a["y_inv_std"], rows, H, Into::WRITE);
    ops.linear_relation_backward(a["dp"], a["dq"], a["later"], a["dz"], shifted ? a["shift"] : nullptr, a["sums"],
                                 a["p"], a["q"], s);
  };
  return row;
}

// Decoding continues after `before` positions.
OpCase linear_relation_stream_case(int B, int before, int n, int H) {
  const LinearRelationShape s{B, n, H, true, before};
  const int64_t rows = int64_t(B) * n;
  OpCase row{text("linear_relation %dx%dx%d after %d", B, n, H, before),
             {{"p", Role::INPUT, rows * H},
              {"q", Role::INPUT, rows * H},
              {"z", Role::OUTPUT, rows * H},
              {"shift", Role::KEPT, rows},
              {"state", Role::UPDATED, int64_t(B) * 6 * H, 0.5, 2}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.linear_relation(a["z"], a["shift"], nullptr, a["state"], a["p"], a["q"], s);
  };
  return row;
}

OpCase cross_entropy_case(int64_t N, int V) {
  OpCase row{text("cross_entropy %lldx%d", static_cast<long long>(N), V),
             {{"logits", Role::INPUT, N * V, -3, 3},
              {"targets", Role::IDS, N, -1, double(V - 1)},
              {"losses", Role::KEPT, N},
              {"partial", Role::SCRATCH, N / 1024 + 2},
              {"loss", Role::OUTPUT, 1}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.cross_entropy(a["losses"], nullptr, a["logits"], a.ids("targets"), 0, N, V);
    ops.sum(a["loss"], a["partial"], a["losses"], N);
  };
  row.backward = [=](Ops& ops, Arrays& a) {
    const real scale = a.tensor("dloss").download()[0];
    ops.cross_entropy(a["losses"], a["dlogits"], a["logits"], a.ids("targets"), scale, N, V);
  };
  return row;
}

using SetLoss = void (Ops::*)(real*, real*, const real*, const real*, real, int64_t, int);

// lowest: of the sets; fractions serve as well, to the formula
OpCase set_loss_case(const char* name, SetLoss set_loss, real lowest, int64_t N, int V) {
  OpCase row{text("%s %lldx%d", name, static_cast<long long>(N), V),
             {{"logits", Role::INPUT, N * V, -3, 3},
              {"sets", Role::CONSTANT, N * V, lowest, 1},
              {"losses", Role::KEPT, N},
              {"partial", Role::SCRATCH, N / 1024 + 2},
              {"loss", Role::OUTPUT, 1}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    (ops.*set_loss)(a["losses"], nullptr, a["logits"], a["sets"], 0, N, V);
    ops.sum(a["loss"], a["partial"], a["losses"], N);
  };
  row.backward = [=](Ops& ops, Arrays& a) {
    const real scale = a.tensor("dloss").download()[0];
    (ops.*set_loss)(a["losses"], a["dlogits"], a["logits"], a["sets"], scale, N, V);
  };
  return row;
}

OpCase optimizer_case(int64_t n) {
  OpCase row{text("adamw %lld", static_cast<long long>(n)),
             {{"value", Role::UPDATED, n},
              {"m", Role::UPDATED, n},
              {"v", Role::UPDATED, n, 0, 1},
              {"gradient", Role::CONSTANT, n},
              {"square_sum", Role::KEPT, 1},
              {"partial", Role::SCRATCH, n / 1024 + 2}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.sum_of_squares(a["square_sum"], a["partial"], a["gradient"], n);
    const AdamwStep step{real(1e-3), real(0.9),   real(0.999),    real(1e-8),
                         real(0.1),  real(0.271), real(0.002997), real(1)};
    ops.adamw(a["value"], a["m"], a["v"], a["gradient"], a["square_sum"], step, n);
  };
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

void add_regular_gpt_ops(std::vector<OpCase>& rows) {
  rows.push_back(dilated_attention_case(dilated(2, 7, 2, 3, 2, 1), false));
  rows.push_back(dilated_attention_case(dilated(2, 11, 1, 5, 3, 3), false));
  rows.push_back(dilated_attention_case(dilated(1, 9, 3, 2, 4, 7), false));  // few reach another
  rows.push_back(dilated_attention_case(dilated(1, 40, 1, 35, 37, 1), false));
  rows.push_back(dilated_attention_case(chunked(3, 7, 2, 4, 2), true));
  rows.push_back(dilated_attention_case(chunked(2, 10, 1, 5, 3), true));
  rows.push_back(dilated_attention_case(chunked(2, 1, 3, 3, 5), true));
  rows.push_back(dilated_attention_case({2, 3, 8, 11, 2, 5, 3, 2, 5, 1, 12, 23}, false));  // a decoder's newest queries
  rows.push_back(dilated_attention_case({2, 1, 4, 9, 1, 6, 2, 4, 3, 1, 6, 13}, true));
  rows.push_back(taken_rows_case(3, 7, 2, 2, 3, 5));
}

void add_linear_transformer_ops(std::vector<OpCase>& rows) {
  constexpr FeatureMap ELU = FeatureMap::ELU_PLUS_ONE, IDENTITY = FeatureMap::IDENTITY;
  for (const bool causal : {true, false}) {
    rows.push_back(linear_attention_case({2, 5, 1, 7, causal, true, IDENTITY, 0}));
    rows.push_back(linear_attention_case({2, 5, 1, 7, causal, false, ELU, 0}));
    rows.push_back(linear_attention_case({1, 145, 2, 3, causal, true, ELU, 0}));  // a chunk of one position
    rows.push_back(linear_attention_case({1, 145, 2, 3, causal, false, IDENTITY, 0}));
    rows.push_back(linear_attention_case({3, 299, 1, 33, causal, true, ELU, 0}));  // both ways through a state
    rows.push_back(linear_attention_case({1, 299, 1, 33, causal, false, IDENTITY, 0}));
  }
  rows.push_back(linear_attention_case({2, 1, 2, 5, true, true, ELU, 67}));
  rows.push_back(linear_attention_case({1, 150, 1, 17, true, true, ELU, 280}));  // through two ends of chunks
  rows.push_back(linear_attention_case({2, 3, 1, 6, true, false, IDENTITY, 142}));
}

// The heads of a sliding cosine transform, and how large their arrays are.
struct DctHeads {
  int head_width;
  std::vector<int64_t> windows, frequencies;

  int width() const { return static_cast<int>(windows.size()) * head_width; }
  int64_t coefficients() const { return std::accumulate(frequencies.begin(), frequencies.end(), int64_t(0)); }
  int64_t most() const { return *std::max_element(frequencies.begin(), frequencies.end()); }
  DctShape shape(Ops& ops, Arrays& a, int B, int T, int before) const {
    if (!a.tables) a.tables = std::make_shared<DctPlan>(ops, windows, frequencies, head_width, before + T);
    return static_cast<const DctPlan*>(a.tables.get())->shape(B, T, before);
  }
  std::string name() const {
    std::string list;
    for (size_t h = 0; h < windows.size(); ++h)
      list += text("%s%lld of %lld", h > 0 ? ", " : "", static_cast<long long>(frequencies[h]),
                   static_cast<long long>(windows[h]));
    return list;
  }
};

// Of a position, frequency and channel, all of them multiply: two to take x in and two to give c out in its own block,
// and, but for one place, as many for the block behind it, if there is one (ops/sliding_dct.h).
double dct_instructions(int64_t T, int64_t window) {
  double all = 4 * static_cast<double>(T);
  for (int64_t first = window; first < T; first += window)
    all += 2 * static_cast<double>(window - 1 + std::min(T - first, window - 1));
  return all / static_cast<double>(T);
}

OpCase sliding_dct_case(int B, int T, const DctHeads& heads) {
  const int64_t rows = int64_t(B) * T, x = rows * heads.width(), c = rows * heads.coefficients() * heads.head_width;
  OpCase row{text("sliding_dct %dx%d of %d: ", B, T, heads.head_width) + heads.name(),
             {{"x", Role::INPUT, x}, {"c", Role::OUTPUT, c}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) { ops.sliding_dct(a["c"], nullptr, a["x"], heads.shape(ops, a, B, T, 0)); };
  row.backward = [=](Ops& ops, Arrays& a) { ops.sliding_dct_backward(a["dx"], a["dc"], heads.shape(ops, a, B, T, 0)); };
  row.pairs = static_cast<double>(c);
  double all = 0;
  for (size_t h = 0; h < heads.windows.size(); ++h)
    all += static_cast<double>(rows * heads.head_width * heads.frequencies[h]) * dct_instructions(T, heads.windows[h]);
  row.forward_instructions = row.backward_instructions = {all / row.pairs, all / row.pairs};
  return row;
}

// Decoding continues after `before` positions.
OpCase sliding_dct_stream_case(int B, int before, int T, const DctHeads& heads) {
  const int64_t rows = int64_t(B) * T;
  int64_t state = 0;
  for (size_t h = 0; h < heads.windows.size(); ++h)
    state += heads.head_width *
             (std::min<int64_t>(heads.windows[h], before + T) * (heads.frequencies[h] + 1) + 2 * heads.frequencies[h]);
  OpCase row{text("sliding_dct %dx%d after %d of %d: ", B, T, before, heads.head_width) + heads.name(),
             {{"x", Role::INPUT, rows * heads.width()},
              {"state", Role::UPDATED, B * state},
              {"c", Role::OUTPUT, rows * heads.coefficients() * heads.head_width}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.sliding_dct(a["c"], a["state"], a["x"], heads.shape(ops, a, B, T, before));
  };
  return row;
}

OpCase mix_frequencies_case(int B, int T, const DctHeads& heads) {
  const int64_t rows = int64_t(B) * T, d = heads.head_width, c = rows * heads.coefficients() * d;
  OpCase row{text("mix_frequencies %dx%d of %d: ", B, T, heads.head_width) + heads.name(),
             {{"c", Role::INPUT, c},
              {"weight", Role::PARAMETER, static_cast<int64_t>(heads.windows.size()) * heads.most() * d * d},
              {"o", Role::OUTPUT, rows * heads.width()}},
             {},
             {}};
  row.forward = [=](Ops& ops, Arrays& a) {
    ops.mix_frequencies(a["o"], a["c"], a["weight"], heads.shape(ops, a, B, T, 0));
  };
  row.backward = [=](Ops& ops, Arrays& a) {
    ops.mix_frequencies_backward(a["dc"], a["dweight"], a["do"], a["c"], a["weight"], heads.shape(ops, a, B, T, 0));
  };
  row.flops = 2.0 * static_cast<double>(c * d);
  return row;
}

void add_dct_ops(std::vector<OpCase>& rows) {
  rows.push_back(sliding_dct_case(2, 7, {3, {3, 5}, {2, 5}}));         // k = t; a last block that is not whole
  rows.push_back(sliding_dct_case(1, 9, {5, {1, 9, 40}, {1, 9, 3}}));  // a window as long as the text, and one longer
  rows.push_back(sliding_dct_case(3, 1, {2, {4}, {3}}));
  rows.push_back(sliding_dct_case(1, 147, {33, {70, 2}, {6, 2}}));  // more than one run, and two groups of frequencies
  rows.push_back(sliding_dct_case(2, 131, {17, {13}, {13}}));
  rows.push_back(sliding_dct_stream_case(2, 0, 5, {3, {3, 9}, {2, 5}}));
  rows.push_back(sliding_dct_stream_case(2, 11, 8, {5, {3, 7, 30}, {3, 6, 1}}));  // through several ends of blocks
  rows.push_back(sliding_dct_stream_case(1, 64, 1, {37, {65, 64}, {1, 4}}));
  rows.push_back(mix_frequencies_case(2, 5, {3, {4, 4}, {2, 3}}));
  rows.push_back(mix_frequencies_case(1, 70, {33, {9, 9, 9}, {1, 5, 3}}));
  rows.push_back(mix_frequencies_case(2, 519, {5, {4, 4}, {4, 1}}));  // the weights' gradient is cut
}

void add_transformer_ops(std::vector<OpCase>& rows) {
  rows.push_back(layer_norm_case(3, 7));
  rows.push_back(layer_norm_case(1030, 33));
  rows.push_back(layer_norm_case(3, 7, real(0.5)));
  for (const Pointwise f : {Pointwise::RELU, Pointwise::GELU, Pointwise::GELU_TANH})
    rows.push_back(pointwise_case(f, 85));
  rows.push_back(rows_case(3, 4, 7));
  rows.push_back(kerple_case(37, 3));
  for (const bool causal : {true, false}) {
    rows.push_back(attention_case(whole(2, 5, 1, 7, causal), Distances::IGNORED));
    rows.push_back(attention_case(whole(1, 2, 3, 2, causal), Distances::IGNORED));
    rows.push_back(attention_case(whole(2, 67, 2, 17, causal), Distances::IGNORED));  // more than one tile
    rows.push_back(attention_case(whole(2, 5, 2, 3, causal), Distances::POSITIONED));
    rows.push_back(attention_case(whole(1, 66, 1, 33, causal), Distances::POSITIONED));
  }
  rows.push_back(attention_case(whole(3, 6, 2, 5, true), Distances::BIASED));
  rows.push_back(attention_case(whole(2, 65, 1, 16, true), Distances::BIASED));
  rows.push_back(attention_case({2, 1, 6, 9, 2, 5, true, 10, 13}, Distances::BIASED));  // a decoder's newest query
  rows.push_back(attention_case({3, 4, 7, 8, 1, 9, true, 11, 9}, Distances::POSITIONED));
  rows.push_back(attention_case({2, 1, 90, 99, 3, 5, true, 16, 5, true}, Distances::BIASED));  // keys head by head
  rows.push_back(attention_case({3, 20, 37, 38, 2, 9, true, 21, 9, true}, Distances::IGNORED));
}

}  // namespace

std::vector<OpCase> op_cases() {
  constexpr Activation EXP = Activation::EXP, RELU = Activation::RELU, ELU = Activation::ELU, GELU = Activation::GELU;
  std::vector<OpCase> rows;
  rows.push_back(embedding_case(3, 5, 7, 4, true));
  rows.push_back(embedding_case(2, 700, 33, 29, false));  // more than one chunk of rows
  rows.push_back(linear_case(1, 1, 1, true, Into::WRITE));
  rows.push_back(linear_case(5, 7, 3, true, Into::WRITE));
  rows.push_back(linear_case(17, 33, 49, false, Into::ADD));
  rows.push_back(linear_case(9, 1100, 5, true, Into::ADD));     // the chain is cut
  rows.push_back(linear_case(1061, 6, 11, true, Into::WRITE));  // the weight's gradient is cut
  rows.push_back(normalize_case(3, 7));
  rows.push_back(normalize_case(37, 65));
  rows.push_back(center_case(5, 31));
  for (const bool causal : {true, false}) {
    for (const Activation activation : {EXP, RELU, ELU, GELU}) {
      rows.push_back(relation_case(whole(2, 5, 7, 1, causal, activation), true, false));
      rows.push_back(relation_case(whole(2, 4, 6, 1, causal, activation), false, false));
    }
    rows.push_back(relation_case(whole(1, 6, 66, 2, causal, EXP), true, false));
    rows.push_back(relation_case(whole(3, 4, 9, 3, causal, EXP), true, false));
    rows.push_back(relation_case(whole(2, 5, 37, 1, causal, EXP), false, true));
  }
  rows.push_back(
      relation_case(whole(1, 3, 191, 1, true, EXP), true, false));  // blocks of 64, twice, and of 32, 16 … 1 channels
  rows.push_back(relation_case(whole(1, 3, 191, 1, true, EXP), false, true));
  rows.push_back(relation_case(whole(1, 67, 40, 2, true, EXP), true, false));  // more than one block of queries
  rows.push_back(relation_case({2, 1, 5, 8, 34, 2, true, EXP}, true, false));  // a decoder's newest query
  rows.push_back(relation_case({3, 2, 4, 4, 10, 1, true, EXP}, false, true));
  rows.push_back(linear_relation_case(1, 1, 1, true, false, 1));
  for (const bool causal : {true, false}) {
    rows.push_back(linear_relation_case(2, 5, 7, causal, false, 1));
    rows.push_back(linear_relation_case(3, 64, 33, causal, true, 3));   // a whole chunk
    rows.push_back(linear_relation_case(2, 130, 5, causal, false, 2));  // three
    rows.push_back(linear_relation_case(1, 197, 35, causal, true, 40));
  }
  rows.push_back(linear_relation_stream_case(3, 0, 2, 7));
  rows.push_back(linear_relation_stream_case(2, 126, 5, 37));  // into the next chunk
  rows.push_back(class_token_case(3, 5, 7));
  rows.push_back(class_token_case(1030, 2, 3));  // the sum over the batch is cut
  rows.push_back(rms_norm_case(3, 7, Into::WRITE));
  rows.push_back(rms_norm_case(3, 7, Into::WRITE, real(0.5)));
  rows.push_back(rms_norm_case(1031, 33, Into::ADD));  // the weight's gradient is cut
  rows.push_back(causal_convolution_case(2, 7, 5, 4, false));
  rows.push_back(causal_convolution_case(3, 2, 67, 3, false));  // shorter than the filter reaches
  rows.push_back(causal_convolution_case(1, 3, 9, 1, false));
  rows.push_back(causal_convolution_case(2, 515, 3, 5, false));  // the weight's gradient is cut
  rows.push_back(causal_convolution_case(2, 2, 35, 4, true));
  rows.push_back(causal_convolution_case(2, 5, 6, 3, true));
  rows.push_back(selective_scan_case({2, 5, 3, 4, 10}, false));
  rows.push_back(selective_scan_case({3, 7, 33, 5, 10}, false));     // more than one group of channels
  rows.push_back(selective_scan_case({1, 131, 35, 16, 37}, false));  // more than one segment
  rows.push_back(selective_scan_case({2, 64, 32, 1, 2}, false));
  rows.push_back(selective_scan_case({1, 70, 5, 37, 74}, false));  // more states than a GPU holds at once
  rows.push_back(selective_scan_case({2, 3, 37, 16, 35}, true));
  rows.push_back(selective_scan_case({1, 9, 2, 18, 36}, true));
  rows.push_back(silu_gate_case(37));
  rows.push_back(linear_one_hot_case(3, 5, 7));       // fewer rows than tokens
  rows.push_back(linear_one_hot_case(2100, 11, 67));  // more than one chunk of rows
  rows.push_back(tanh_case(67));
  rows.push_back(lstm_cell_case(3, 5));
  rows.push_back(lstm_cell_case(2, 33));
  add_transformer_ops(rows);
  add_regular_gpt_ops(rows);
  add_linear_transformer_ops(rows);
  add_dct_ops(rows);
  rows.push_back(cross_entropy_case(3, 5));
  rows.push_back(cross_entropy_case(1030, 33));
  rows.push_back(set_loss_case("binary_cross_entropy", &Ops::binary_cross_entropy, 0, 5, 37));
  rows.push_back(set_loss_case("sigmoid_squared_error", &Ops::sigmoid_squared_error, -1, 7, 2));
  rows.push_back(set_loss_case("sigmoid_squared_error", &Ops::sigmoid_squared_error, -1, 3, 35));
  rows.push_back(optimizer_case(5));
  rows.push_back(optimizer_case(2500));
  return rows;
}

namespace {

void add_special_relations(std::vector<OpCase>& rows) {
  for (const bool causal : {true, false})
    for (const Activation activation : {Activation::EXP, Activation::RELU, Activation::ELU, Activation::GELU}) {
      rows.push_back(relation_case(whole(2, 5, 35, 1, causal, activation), true, false));
      rows.push_back(relation_case(whole(2, 5, 35, 1, causal, activation), false, false));
    }
  rows.push_back(relation_case(whole(2, 5, 37, 1, true, Activation::EXP), false, true));
  for (const bool causal : {true, false}) {
    rows.push_back(linear_relation_case(2, 130, 5, causal, false, 2));
    rows.push_back(linear_relation_case(3, 66, 33, causal, true, 3));
  }
  rows.push_back(linear_relation_stream_case(2, 126, 5, 37));
}

// Causal sequences are short here. Keys that a query does not see but that are in its tile are multiplied by zero,
// which turns an infinity into a NaN. Tiles differ between devices, and so, in longer sequences, do the queries that
// get a NaN.
void add_special_attentions(std::vector<OpCase>& rows) {
  for (const bool causal : {true, false}) {
    rows.push_back(attention_case(whole(3, causal ? 6 : 35, 2, 5, causal), Distances::IGNORED));
    rows.push_back(attention_case(whole(3, 6, 2, 5, causal), Distances::POSITIONED));
    rows.push_back(linear_attention_case({2, 5, 2, 7, causal, true, FeatureMap::ELU_PLUS_ONE, 0}));
    rows.push_back(linear_attention_case({2, causal ? 9 : 145, 2, 3, causal, false, FeatureMap::IDENTITY, 0}));
  }
  rows.push_back(attention_case(whole(3, 6, 2, 5, true), Distances::BIASED));
  rows.push_back(attention_case({2, 1, 6, 9, 2, 5, true, 10, 13}, Distances::BIASED));
  rows.push_back(linear_attention_case({2, 3, 2, 5, true, true, FeatureMap::ELU_PLUS_ONE, 67}));
  rows.push_back(dilated_attention_case(dilated(2, 11, 2, 5, 3, 3), false));
  rows.push_back(dilated_attention_case(chunked(3, 7, 2, 4, 2), true));
  rows.push_back(taken_rows_case(3, 7, 2, 2, 3, 5));
  rows.push_back(kerple_case(37, 3));
}

void add_special_rest(std::vector<OpCase>& rows) {
  rows.push_back(embedding_case(3, 5, 7, 4, true));
  rows.push_back(linear_case(17, 33, 49, true, Into::ADD));
  rows.push_back(normalize_case(37, 65));
  rows.push_back(center_case(5, 31));
  rows.push_back(layer_norm_case(19, 35));
  rows.push_back(rms_norm_case(19, 35, Into::WRITE));
  rows.push_back(class_token_case(3, 5, 7));
  rows.push_back(causal_convolution_case(2, 7, 5, 4, false));
  rows.push_back(causal_convolution_case(2, 5, 6, 3, true));
  rows.push_back(selective_scan_case({3, 7, 33, 5, 10}, false));
  rows.push_back(selective_scan_case({2, 3, 37, 16, 35}, true));
  rows.push_back(silu_gate_case(37));
  rows.push_back(linear_one_hot_case(9, 5, 7));
  rows.push_back(tanh_case(67));
  rows.push_back(lstm_cell_case(7, 33));
  for (const Pointwise f : {Pointwise::RELU, Pointwise::GELU, Pointwise::GELU_TANH})
    rows.push_back(pointwise_case(f, 85));
  rows.push_back(rows_case(3, 4, 7));
  rows.push_back(sliding_dct_case(2, 7, {3, {3, 5}, {2, 5}}));
  rows.push_back(mix_frequencies_case(2, 5, {3, {4, 4}, {2, 3}}));
  rows.push_back(cross_entropy_case(9, 37));
  rows.push_back(set_loss_case("binary_cross_entropy", &Ops::binary_cross_entropy, 0, 9, 37));
  rows.push_back(set_loss_case("sigmoid_squared_error", &Ops::sigmoid_squared_error, -1, 9, 35));
  rows.push_back(optimizer_case(2500));
}

}  // namespace

std::vector<OpCase> special_cases() {
  std::vector<OpCase> rows, all;
  add_special_rest(rows);
  add_special_relations(rows);
  add_special_attentions(rows);
  for (const OpCase& row : rows)
    for (const auto& [special, name] : {std::pair(Special::SMALL, " with zeros and subnormals"),
                                        {Special::INFINITE, " with infinities"},
                                        {Special::NOT_A_NUMBER, " with NaN"}}) {
      all.push_back(row);
      all.back().name += name;
      for (Operand& operand : all.back().operands) operand.special = special;
    }
  return all;
}

namespace {

std::string causal_rn_config(int vocab, int context, int width, int hidden, int layers, int heads,
                             const char* activation, const char* pre_norm, bool post_norm, bool causal) {
  return text(
      "{\"vocab\":%d,\"context\":%d,\"width\":%d,\"hidden\":%d,\"layers\":%d,\"heads\":%d,\"activation\":\"%s\","
      "\"pre_activation_norm\":\"%s\",\"post_reduction_norm\":%s,\"causal\":%s}",
      vocab, context, width, hidden, layers, heads, activation, pre_norm, post_norm ? "true" : "false",
      causal ? "true" : "false");
}

std::string linear_causal_rn_config(int vocab, int context, int width, int hidden, int layers, const char* pre_norm,
                                    bool post_norm, bool causal) {
  return text(
      "{\"vocab\":%d,\"context\":%d,\"width\":%d,\"hidden\":%d,\"layers\":%d,\"heads\":1,"
      "\"pre_activation_norm\":\"%s\",\"post_reduction_norm\":%s,\"causal\":%s}",
      vocab, context, width, hidden, layers, pre_norm, post_norm ? "true" : "false", causal ? "true" : "false");
}

// The keys that every Transformer has, and more.
std::string transformer_config(int width, int hidden, int layers, int heads, bool causal, const char* position,
                               bool affine, bool biases, const char* gelu, const char* readout,
                               const std::string& more) {
  return text(
      "{\"width\":%d,\"hidden\":%d,\"layers\":%d,\"heads\":%d,\"causal\":%s,\"position\":\"%s\",\"norm\":\"%s\","
      "\"qkv_bias\":%s,\"out_bias\":%s,\"gelu\":\"%s\",\"readout\":\"%s\",%s}",
      width, hidden, layers, heads, causal ? "true" : "false", position, affine ? "affine" : "plain",
      biases ? "true" : "false", biases ? "true" : "false", gelu, readout, more.c_str());
}

void add_transformers(std::vector<ModelCase>& rows) {
  const auto add = [&](const char* name, const std::string& config, int batch, int length) {
    rows.push_back({std::string("transformer ") + name, "transformer", config, batch, length});
    rows.back().last = config.find("\"last\"") != std::string::npos;
  };
  const std::string tokens = "\"vocab\":9,\"context\":8";
  add("learned", transformer_config(12, 20, 2, 1, true, "learned", false, false, "erf", "all", tokens), 3, 7);
  add("gpt2", transformer_config(10, 14, 2, 2, true, "learned", true, true, "tanh", "all", tokens), 2, 8);
  add("none", transformer_config(9, 10, 2, 3, true, "none", true, false, "erf", "all", tokens), 2, 9);
  add("sinusoidal last", transformer_config(7, 9, 2, 1, true, "sinusoidal", false, true, "tanh", "last", tokens), 2, 9);
  add("alibi", transformer_config(9, 8, 2, 3, true, "alibi", false, false, "erf", "all", tokens), 2, 6);
  add("t5", transformer_config(8, 8, 2, 2, true, "t5", false, false, "erf", "all", tokens), 2, 21);
  add("kerple", transformer_config(8, 8, 2, 2, true, "kerple", true, true, "tanh", "all", tokens), 2, 6);
  add("xl", transformer_config(10, 8, 2, 2, true, "xl", true, true, "tanh", "all", tokens), 2, 7);
  add("xl bidirectional last", transformer_config(10, 8, 2, 2, false, "xl", false, false, "erf", "last", tokens), 3, 7);
  const std::string post = tokens +
                           ",\"norm_position\":\"post\",\"mlp_activation\":\"relu\",\"classes\":4,\"head_bias\":true,"
                           "\"embedding_scale\":1.75";
  add("post affine", transformer_config(8, 12, 2, 2, true, "learned", true, true, "erf", "all", post), 2, 7);
  add("post plain", transformer_config(8, 12, 2, 1, true, "sinusoidal", false, false, "erf", "last", post), 3, 5);
  const std::string tied = tokens + ",\"tied_head\":true,\"norm_epsilon\":0.01";
  add("tied", transformer_config(10, 14, 2, 2, true, "learned", true, true, "tanh", "all", tied), 2, 8);
  add("tied, normalized embedding, published slopes",
      transformer_config(9, 8, 2, 3, true, "alibi", true, true, "tanh", "all",
                         tied + ",\"embedding_norm\":true,\"slopes\":\"published\""),
      2, 6);
  add("post, normalized embedding",
      transformer_config(8, 9, 2, 2, true, "none", true, false, "erf", "all",
                         tied + ",\"embedding_norm\":true,\"norm_position\":\"post\""),
      2, 6);
  const std::string images = "\"patches\":6,\"patch_size\":5,\"classes\":4";
  rows.push_back({"transformer images with a head's bias", "transformer",
                  transformer_config(8, 9, 2, 2, false, "learned", true, true, "erf", "last",
                                     images + ",\"head_bias\":true,\"norm_epsilon\":1e-12"),
                  3, 6, false, true, 5});
  rows.push_back({"transformer images", "transformer",
                  transformer_config(8, 9, 2, 2, false, "learned", false, false, "erf", "last", images), 3, 6, false,
                  true, 5});
}

void add_regular_gpts(std::vector<ModelCase>& rows) {
  const auto add = [&](const char* name, int width, int heads, int chunk, int thickness, const char* readout,
                       const char* form, int batch, int length) {
    rows.push_back(
        {std::string("regular_gpt ") + name, "regular_gpt",
         text("{\"vocab\":7,\"classes\":5,\"width\":%d,\"hidden\":13,\"heads\":%d,\"chunk\":%d,\"thickness\":%d,"
              "\"readout\":\"%s\",\"norm\":\"affine\",\"form\":\"%s\"}",
              width, heads, chunk, thickness, readout, form),
         batch, length});
    rows.back().last = std::string(readout) == "last";
  };
  add("last", 8, 2, 2, 1, "last", "dilated", 3, 11);
  add("all", 9, 3, 3, 2, "all", "dilated", 2, 10);
  add("one layer", 6, 1, 5, 1, "last", "dilated", 2, 5);
  add("chunked", 8, 2, 2, 1, "last", "chunked", 3, 11);
  add("chunked by three", 9, 3, 3, 1, "last", "chunked", 2, 14);
  add("chunked of one", 6, 1, 4, 1, "last", "chunked", 3, 1);
  rows.push_back({"regular_gpt tied", "regular_gpt",
                  "{\"vocab\":7,\"classes\":7,\"width\":8,\"hidden\":13,\"heads\":2,\"chunk\":2,\"thickness\":2,"
                  "\"readout\":\"all\",\"norm\":\"affine\",\"form\":\"dilated\",\"tied_head\":true,\"head_bias\":false,"
                  "\"embedding_deviation\":0.02}",
                  2, 9});
}

void add_dct_mlps(std::vector<ModelCase>& rows) {
  const auto add = [&](const char* name, int width, int heads, const char* frequencies, const char* windows, int batch,
                       int length) {
    rows.push_back(
        {std::string("dct_mlp") + name, "dct_mlp",
         text("{\"vocab\":9,\"context\":8,\"width\":%d,\"hidden\":11,\"layers\":2,\"heads\":%d,\"frequencies\":[%s],"
              "\"windows\":[%s]}",
              width, heads, frequencies, windows),
         batch, length});
  };
  add("", 8, 2, "2,3", "3,8", 3, 7);
  add(" of many frequencies", 9, 3, "1,5,9", "1,7,9", 2, 23);
  add(" beyond its windows", 36, 1, "4", "5", 2, 33);
  add(" of one position", 6, 2, "1,2", "4,2", 3, 1);
}

void add_mlp_lms(std::vector<ModelCase>& rows) {
  const auto add = [&](const char* name, int vocab, int context, int embedding, int width, int blocks, int batch) {
    rows.push_back({std::string("mlp_lm") + name, "mlp_lm",
                    text("{\"vocab\":%d,\"context\":%d,\"embedding\":%d,\"width\":%d,\"blocks\":%d}", vocab, context,
                         embedding, width, blocks),
                    batch, context, true, true});
  };
  add("", 9, 5, 6, 11, 2, 3);
  add(" of one token", 7, 1, 5, 3, 1, 4);
  add(" with a long window", 5, 37, 33, 35, 1, 2);  // the first layer's chain is cut
}

void add_linear_transformers(std::vector<ModelCase>& rows) {
  const auto add = [&](const char* name, const std::string& config, int batch, int length) {
    rows.push_back({std::string("linear_transformer ") + name, "linear_transformer", config, batch, length});
    rows.back().last = config.find("\"last\"") != std::string::npos;
    rows.back().decodes = config.find("\"causal\":true") != std::string::npos;
  };
  const std::string tokens = "\"vocab\":9,\"context\":8,";
  const std::string elu = "\"feature_map\":\"elu1\",\"normalized\":true",
                    raw = "\"feature_map\":\"elu1\",\"normalized\":false",
                    identity = "\"feature_map\":\"identity\",\"normalized\":false";
  add("learned", transformer_config(12, 20, 2, 1, true, "learned", false, false, "erf", "all", tokens + elu), 3, 7);
  add("identity", transformer_config(10, 14, 2, 2, true, "none", true, true, "tanh", "all", tokens + identity), 2, 9);
  add("two chunks", transformer_config(6, 5, 2, 2, true, "sinusoidal", false, true, "erf", "last", tokens + elu), 1,
      147);
  add("not normalized", transformer_config(9, 10, 1, 3, true, "none", true, false, "erf", "all", tokens + raw), 2, 6);
  add("bidirectional", transformer_config(8, 9, 2, 2, false, "sinusoidal", false, false, "tanh", "all", tokens + elu),
      2, 7);
  rows.push_back({"linear_transformer images", "linear_transformer",
                  transformer_config(8, 9, 2, 2, false, "learned", false, false, "erf", "last",
                                     "\"patches\":6,\"patch_size\":5,\"classes\":4," + elu),
                  3, 6, false, true, 5});
}

}  // namespace

std::vector<ModelCase> model_cases() {
  std::vector<ModelCase> rows;
  const auto causal_rn = [&](const char* name, const std::string& config, int batch, int length) {
    rows.push_back({std::string("causal_rn ") + name, "causal_rn", config, batch, length});
  };
  causal_rn("exact exp", causal_rn_config(11, 9, 12, 20, 2, 1, "exp", "exact", true, true), 3, 7);
  causal_rn("two heads", causal_rn_config(7, 8, 10, 14, 2, 2, "exp", "exact", true, true), 2, 8);
  causal_rn("approximate", causal_rn_config(9, 6, 8, 13, 2, 1, "exp", "approximate", true, true), 2, 6);
  causal_rn("none", causal_rn_config(9, 6, 8, 8, 2, 1, "exp", "none", true, true), 2, 6);
  causal_rn("none no post norm", causal_rn_config(9, 6, 8, 8, 2, 1, "exp", "none", false, true), 2, 5);
  causal_rn("exact no post norm elu", causal_rn_config(9, 6, 8, 11, 2, 1, "elu", "exact", false, true), 2, 6);
  causal_rn("exact relu", causal_rn_config(9, 6, 8, 9, 2, 1, "relu", "exact", true, true), 2, 6);
  causal_rn("approximate gelu", causal_rn_config(9, 6, 8, 9, 2, 1, "gelu", "approximate", true, true), 2, 6);
  causal_rn("bidirectional", causal_rn_config(9, 6, 8, 12, 2, 1, "exp", "exact", true, false), 2, 6);
  rows.back().decodes = false;
  const auto mamba = [&](const char* name, int width, int layers, int state, int conv, int expand, int dt_rank,
                         int batch, int length, const char* more = "") {
    rows.push_back({std::string("mamba ") + name, "mamba",
                    text("{\"vocab\":11,\"context\":9,\"width\":%d,\"layers\":%d,\"state\":%d,\"conv\":%d,\"expand\":%"
                         "d,\"dt_rank\":%d%s}",
                         width, layers, state, conv, expand, dt_rank, more),
                    batch, length});
  };
  mamba("usual", 10, 2, 16, 4, 2, 3, 3, 7);
  mamba("more than one segment", 17, 1, 16, 4, 2, 2, 2, 67);
  mamba("unusual", 9, 2, 3, 1, 3, 12, 2, 5);
  mamba("tied", 10, 2, 4, 3, 2, 3, 2, 6, ",\"tied_head\":true,\"norm_epsilon\":0.01");
  for (const char* cell : {"elman", "lstm"})
    for (const char* readout : {"all", "last"})
      rows.push_back(
          {text("rnn %s %s", cell, readout), "rnn",
           text("{\"vocab\":9,\"classes\":6,\"hidden\":11,\"cell\":\"%s\",\"readout\":\"%s\"}", cell, readout), 3, 7});
  const auto linear_causal_rn = [&](const char* name, const std::string& config, int batch, int length) {
    rows.push_back({std::string("linear_causal_rn ") + name, "linear_causal_rn", config, batch, length});
  };
  linear_causal_rn("approximate", linear_causal_rn_config(11, 9, 12, 20, 2, "approximate", true, true), 3, 7);
  linear_causal_rn("two chunks", linear_causal_rn_config(7, 70, 5, 9, 2, "approximate", true, true), 1, 69);
  linear_causal_rn("none", linear_causal_rn_config(9, 6, 8, 13, 2, "none", true, true), 2, 6);
  linear_causal_rn("none no post norm", linear_causal_rn_config(9, 6, 8, 8, 2, "none", false, true), 2, 5);
  linear_causal_rn("approximate no post norm", linear_causal_rn_config(9, 6, 8, 11, 2, "approximate", false, true), 2,
                   6);
  linear_causal_rn("bidirectional", linear_causal_rn_config(9, 67, 8, 12, 2, "approximate", true, false), 2, 67);
  rows.back().decodes = false;
  const auto birn_image = [&](const char* pre_norm, bool post_norm, int heads) {
    const std::string config = text(
        "{\"patches\":6,\"patch_size\":5,\"classes\":4,\"width\":9,\"hidden\":14,\"layers\":2,"
        "\"heads\":%d,\"pre_activation_norm\":\"%s\",\"post_reduction_norm\":%s}",
        heads, pre_norm, post_norm ? "true" : "false");
    rows.push_back({text("birn_image %s%s", pre_norm, post_norm ? "" : " no post norm"), "birn_image", config, 3, 6});
    rows.back().decodes = false;
    rows.back().patch_size = 5;
  };
  birn_image("exact", true, 2);
  birn_image("approximate", true, 1);
  birn_image("none", false, 1);
  const auto set_network = [&](const char* name, const char* model, const char* settings) {
    rows.push_back({name, model,
                    text("{\"patches\":7,\"patch_size\":5,\"classes\":4,\"width\":9,\"hidden\":14,%s}", settings), 3, 7,
                    false, true, 5});
  };
  set_network("deep_sets", "deep_sets", "\"activation\":\"gelu\"");
  set_network("relation_network exp", "relation_network", "\"activation\":\"exp\",\"form\":\"quadratic\"");
  set_network("relation_network linear", "relation_network", "\"activation\":\"exp\",\"form\":\"linear\"");
  set_network("relation_network relu", "relation_network", "\"activation\":\"relu\",\"form\":\"quadratic\"");
  add_transformers(rows);
  add_regular_gpts(rows);
  add_linear_transformers(rows);
  add_mlp_lms(rows);
  add_dct_mlps(rows);
  return rows;
}

std::vector<OpCase> paper_cases(int batch) {
  constexpr int T = 258, D = 192, I = 384, STATES = 16, RANK = 12;  // I, STATES and RANK: Mamba's
  const int N = batch * T;
  std::vector<OpCase> rows;
  rows.push_back(linear_case(N, D, D, true, Into::WRITE));
  rows.push_back(linear_case(N, D, 4 * D, true, Into::WRITE));
  rows.push_back(linear_case(N, 4 * D, D, true, Into::WRITE));
  rows.push_back(normalize_case(N, D));
  rows.push_back(relation_case(whole(batch, T, D, 1, true, Activation::EXP), true, false));
  rows.push_back(linear_relation_case(batch, T, D, true, true, 3));
  rows.push_back(layer_norm_case(N, D));
  rows.push_back(pointwise_case(Pointwise::GELU, N * 4 * D));
  rows.push_back(attention_case(whole(batch, T, 1, D, true), Distances::IGNORED));
  rows.push_back(linear_attention_case({batch, T, 1, D, true, true, FeatureMap::ELU_PLUS_ONE, 0}));
  rows.push_back(rms_norm_case(N, D, Into::WRITE));
  rows.push_back(causal_convolution_case(batch, T, I, 4, false));
  rows.push_back(selective_scan_case({batch, T, I, STATES, RANK + 2 * STATES}, false));
  rows.push_back(silu_gate_case(N * I));
  const DctHeads dct = {32, {T, T, T, T, T, T}, {4, 4, 4, 4, 4, 4}};
  rows.push_back(sliding_dct_case(batch, T, dct));
  rows.push_back(mix_frequencies_case(batch, T, dct));
  rows.push_back(cross_entropy_case(N, 29));
  rows.push_back(optimizer_case(1340000));
  return rows;
}

}  // namespace petroglyph
