// Shapes at the boundaries of the kernels (tiles, chunks, strips, warps), and the comparisons of every operation and
// model with the reference. gpu_checks.h lists the programs that run them.
#include "gpu_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "cases.h"
#include "check.h"
#include "math/random.h"
#include "ops/dct_plan.h"
#include "reference/reference.h"

namespace petroglyph {
namespace {

// ---- A row of shapes ------------------------------------------------------------------------------------------------

// The arrays of one run of an operation on one device. Random values depend only on the name and the seed.
class Run {
 public:
  Run(Ops& ops, uint64_t seed) : ops(ops), seed_(seed) {}

  real* in(const std::string& name, int64_t size, double low = -1, double high = 1) {
    return add(name, random(name, size, low, high), false);
  }
  // Magnitudes from 2^-11 to 2^11: a few terms dominate a sum, so that no rounding difference is hidden by other terms.
  real* uneven(const std::string& name, int64_t size) {
    std::vector<real> host = random(name, size, -1, 1);
    for (size_t i = 0; i < host.size(); ++i) host[i] *= std::ldexp(real(1), static_cast<int>(i % 23) - 11);
    return add(name, host, false);
  }
  const real* constant(const std::string& name, const std::vector<real>& values) { return add(name, values, false); }
  real* out(const std::string& name, int64_t size) {  // initially NaN, which reveals unwritten elements
    return add(name, std::vector<real>(static_cast<size_t>(size), std::numeric_limits<real>::quiet_NaN()), true);
  }
  real* scratch(const std::string& name, int64_t size) {
    out(name, size);
    arrays_.back().compared = false;
    return arrays_.back().tensor.data();
  }
  real* updated(const std::string& name, int64_t size, double low = -1, double high = 1) {
    return add(name, random(name, size, low, high), true);
  }
  real* updated(const std::string& name, int64_t size, Into into) {
    return into == Into::ADD ? updated(name, size) : out(name, size);
  }
  int32_t* ids(const std::string& name, int64_t size, int low, int count) {
    std::vector<int32_t> host(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i)
      host[i] = low + static_cast<int32_t>(below(word(name, i), static_cast<uint32_t>(count)));
    return ids(name, host);
  }
  int32_t* ids(const std::string& name, const std::vector<int32_t>& values) {
    ids_.push_back({name, Tokens(ops, {static_cast<int64_t>(values.size())})});
    ids_.back().tokens.upload(values);
    return ids_.back().tokens.data();
  }

  std::vector<Written> written() const {
    std::vector<Written> all;
    for (const Reals& array : arrays_)
      if (array.compared) all.push_back({array.name, array.tensor.download(), {}});
    for (const Ids& array : ids_) all.push_back({array.name, {}, array.tokens.download()});
    return all;
  }

  Ops& ops;
  std::shared_ptr<void> tables;  // tables on the device, for operations that read some

 private:
  struct Reals {
    std::string name;
    Tensor tensor;
    bool compared;
  };
  struct Ids {
    std::string name;
    Tokens tokens;
  };

  uint32_t word(const std::string& name, int64_t i) const {
    return philox(seed_, stream_of(name), 0, static_cast<uint64_t>(i)).word[0];
  }
  std::vector<real> random(const std::string& name, int64_t size, double low, double high) const {
    std::vector<real> host(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) host[i] = static_cast<real>(low + (high - low) * uniform(word(name, i)));
    return host;
  }
  real* add(const std::string& name, const std::vector<real>& values, bool compared) {
    arrays_.push_back({name, Tensor(ops, {static_cast<int64_t>(values.size())}), compared});
    if (!values.empty()) arrays_.back().tensor.upload(values);
    return arrays_.back().tensor.data();
  }

  uint64_t seed_;
  std::vector<Reals> arrays_;
  std::vector<Ids> ids_;
};

constexpr uint64_t SEED = 17;

// A row of this file: a name, and what it runs; compared are all arrays that it writes.
struct Row {
  std::string name;
  std::function<void(Run&)> run;

  operator GpuCheck() const {
    return {name, [run = run](Ops& ops) {
              Run here(ops, SEED);
              run(here);
              return here.written();
            }};
  }
};

// A case of the shared table: compares everything that the operation writes, forward and backward.
GpuCheck check_of(const OpCase& row) {
  return {row.name, [row](Ops& ops) { return written_by(row, ops, SEED, true); }, false, row.nan_spreads()};
}

const char* name_of(Into into) { return into == Into::ADD ? "add" : "write"; }

Row linear_row(int64_t N, int in, int out, bool bias, Into into) {
  return {text("linear %lld×%d→%d%s %s", static_cast<long long>(N), in, out, bias ? " bias" : "", name_of(into)),
          [=](Run& r) {
            real* y = r.updated("y", N * out, into);
            r.ops.linear(y, r.in("x", N * in), r.in("weight", int64_t(out) * in), bias ? r.in("bias", out) : nullptr, N,
                         in, out, into);
          }};
}

Row linear_input_row(int64_t N, int in, int out, Into into) {
  return {text("linear_backward_input %lld×%d←%d %s", static_cast<long long>(N), in, out, name_of(into)), [=](Run& r) {
            real* dx = r.updated("dx", N * in, into);
            r.ops.linear_backward_input(dx, r.in("dy", N * out), r.in("weight", int64_t(out) * in), N, in, out, into);
          }};
}

Row linear_weight_row(int64_t N, int in, int out, bool bias) {
  return {text("linear_backward_weight %lld rows, %d×%d%s", static_cast<long long>(N), out, in, bias ? " bias" : ""),
          [=](Run& r) {
            real* dweight = r.updated("dweight", int64_t(out) * in);
            real* dbias = bias ? r.updated("dbias", out) : nullptr;
            r.ops.linear_backward_weight(dweight, dbias, r.in("dy", N * out), r.in("x", N * in), N, in, out);
          }};
}

// The rows of all chunks but the last are nearly zero, so that every bit of the last chunk's sums reaches the result.
Row last_chunk_row(int64_t N, int in, int out) {
  return {text("linear_backward_weight %lld rows, %d×%d, the last chunk alone", static_cast<long long>(N), out, in),
          [=](Run& r) {
            real *dweight = r.updated("dweight", int64_t(out) * in), *x = r.updated("x", N * in);
            r.ops.scale(x, x, real(0x1p-40), (N - 1) / 1024 * 1024 * in);
            r.ops.linear_backward_weight(dweight, nullptr, r.in("dy", N * out), x, N, in, out);
          }};
}

// few: the number of different tokens that occur
Row embedding_row(int B, int T, int D, int V, int few, bool positions) {
  return {text("embedding %d×%d×%d of %d%s", B, T, D, V, positions ? " positions" : ""), [=](Run& r) {
            const int first = 2;
            const int32_t* tokens = r.ids("tokens", int64_t(B) * T, V - few, few);
            r.ops.embedding(r.out("x", int64_t(B) * T * D), r.in("token_table", int64_t(V) * D),
                            positions ? r.in("position_table", int64_t(T + first) * D) : nullptr, tokens, first, B, T,
                            D);
            r.ops.embedding_backward(r.updated("dtoken_table", int64_t(V) * D),
                                     positions ? r.updated("dposition_table", int64_t(T) * D) : nullptr,
                                     r.in("dx", int64_t(B) * T * D), tokens, B, T, D, V);
          }};
}

Row normalize_row(int64_t N, int D, Into into) {
  return {text("normalize, center %lld×%d %s", static_cast<long long>(N), D, name_of(into)), [=](Run& r) {
            real *y = r.updated("y", N * D), *inv_std = r.out("inv_std", N);
            if (D > 1)
              r.ops.copy(y, 1, r.in("row", D, 3, 3), 1, static_cast<size_t>(D) * sizeof(real), 1);  // variance 0
            r.ops.normalize(y, inv_std, y, N, D);
            if (into == Into::ADD) {
              r.ops.normalize_backward(r.updated("dx", N * D), r.in("dy", N * D), y, inv_std, N, D, into);
            } else {
              real* dx = r.updated("dx", N * D);
              r.ops.normalize_backward(dx, dx, y, inv_std, N, D, into);
            }
            r.ops.center(r.out("centered", N * D), r.in("x", N * D), N, D);
          }};
}

struct RelationOptions {
  bool normalized, shifted;
  double spread;  // range of p and q: −spread … spread
};

Row relation_row(const RelationShape& s, const RelationOptions& o) {
  const std::string name = text("relation %s%s%s %d×%d of %d(%d)×%d in %d heads%s", name_of(s.activation),
                                o.normalized ? " normalized" : "", o.shifted ? " shifted" : "", s.batch, s.queries,
                                s.keys, s.capacity, s.hidden, s.heads, s.causal ? " causal" : "");
  return {name, [=](Run& r) {
            const int64_t keys = int64_t(s.batch) * s.capacity * s.hidden,
                          queries = int64_t(s.batch) * s.queries * s.hidden;
            const int64_t pairs = int64_t(s.batch) * s.heads * s.queries * s.keys;
            real *p = r.updated("p", keys, -o.spread, o.spread), *q = r.updated("q", queries, -o.spread, o.spread);
            const int width = s.head_width();
            r.ops.center(p, p, keys / width, width);
            r.ops.center(q, q, queries / width, width);
            // Some queries are the negative of a key, or nearly so: their variances cancel.
            const size_t row = static_cast<size_t>(s.hidden) * sizeof(real);
            if (s.queries > 2) r.ops.copy(q + s.hidden, row, r.in("opposite", s.hidden, 0, 0), row, row, 1);
            if (s.queries > 2) r.ops.copy(p + s.hidden, row, r.in("zero", s.hidden, 0, 0), row, row, 1);
            if (s.queries > 3) r.ops.scale(q + 3 * s.hidden, p, real(-0.999), s.hidden);
            real* inv_std = o.normalized ? r.out("inv_std", pairs) : nullptr;
            real* shift = o.shifted ? r.out("shift", int64_t(s.batch) * s.queries) : nullptr;
            if (inv_std) r.ops.relation_inv_std(inv_std, p, q, s);
            if (shift) r.ops.relation_shift(shift, p, q, s);
            r.ops.relation(r.out("z", queries), inv_std, shift, p, q, s);
            if (s.queries != s.keys || s.keys != s.capacity) return;
            real* dz = r.updated("dz", queries);
            real* weight = inv_std ? r.scratch("weight", pairs) : nullptr;
            r.ops.relation_backward(r.out("dp", keys), r.out("dq", queries), weight, dz, inv_std, shift, p, q, s);
          }};
}

Row linear_relation_row(const LinearRelationShape& s, bool shifted, double range) {
  return {
      text("linear_relation %d×%d×%d after %d%s%s within %g", s.batch, s.positions, s.hidden, s.before,
           s.causal ? " causal" : "", shifted ? " shifted" : "", range),
      [=](Run& r) {
        const int64_t rows = int64_t(s.batch) * s.positions, size = rows * s.hidden,
                      sum = int64_t(s.batch) * 2 * s.hidden;
        real *p = r.in("p", size, -range, range), *q = r.in("q", size, -range, range);
        real* shift = shifted ? r.out("shift", rows) : nullptr;
        if (s.before > 0)
          return r.ops.linear_relation(r.out("z", size), shift, nullptr, r.updated("state", 3 * sum, 0, 2), p, q, s);
        real* sums = r.out("sums", s.chunks() * sum);
        r.ops.linear_relation(r.out("z", size), shift, sums, nullptr, p, q, s);
        r.ops.linear_relation_backward(r.out("dp", size), r.out("dq", size), r.scratch("later", s.chunks() * sum / 2),
                                       r.in("dz", size), shift, sums, p, q, s);
        if (s.causal)
          r.ops.linear_relation(r.out("z of decoding", size), shift, nullptr, r.out("state", 3 * sum), p, q, s);
      }};
}

// The channel that determines a shift. Channel `nan` is NaN at the second position, or all are zeros of both signs.
Row shift_row(int H, int nan, bool causal) {
  return {text("linear_relation 1×3×%d%s, %s", H, causal ? " causal" : "",
               nan < 0 ? "zeros" : text("NaN at channel %d", nan).c_str()),
          [=](Run& r) {
            const LinearRelationShape s{1, 3, H, causal, 0};
            std::vector<real> numbers(static_cast<size_t>(3 * H));
            for (int i = 0; nan < 0 && i < 3 * H; ++i)
              numbers[static_cast<size_t>(i)] = i % 3 == 0 ? real(0) : real(-0.0);
            if (nan >= 0) numbers[static_cast<size_t>(H + nan)] = std::numeric_limits<real>::quiet_NaN();
            const real *p = r.constant("p", numbers), *q = r.constant("q", numbers);
            const int64_t size = 3 * H, sum = 2 * H;
            r.ops.linear_relation(r.out("z", size), r.out("shift", 3), r.out("sums", sum), nullptr, p, q, s);
            if (causal)
              r.ops.linear_relation(r.out("z of decoding", size), r.out("its shift", 3), nullptr,
                                    r.out("state", 3 * sum), p, q, s);
          }};
}

Row layer_norm_row(int64_t N, int D, Into into) {
  return {text("layer_norm %lld×%d %s", static_cast<long long>(N), D, name_of(into)), [=](Run& r) {
            real *y = r.updated("y", N * D), *hat = r.out("hat", N * D), *inv_std = r.out("inv_std", N);
            const real *weight = r.in("weight", D), *bias = r.in("bias", D);
            r.ops.layer_norm(y, hat, inv_std, y, weight, bias, real(1e-5), N, D);
            r.ops.layer_norm_output(r.out("once more", N * D), hat, weight, bias, N, D);
            real* dx = r.updated("dx", N * D);
            r.ops.layer_norm_backward(dx, r.updated("dweight", D), r.updated("dbias", D),
                                      into == Into::ADD ? r.in("dy", N * D) : dx, hat, inv_std, weight, N, D, into);
          }};
}

// Operations without sums along a row, on N rows of D elements.
Row elements_row(int64_t N, int D) {
  return {text("pointwise, scale, add, add_row, add_positions %lld×%d", static_cast<long long>(N), D), [=](Run& r) {
            const int64_t n = N * D;
            for (const Pointwise f : {Pointwise::RELU, Pointwise::GELU, Pointwise::GELU_TANH}) {
              const std::string name = std::to_string(static_cast<int>(f));
              real *x = r.in("x" + name, n, -9, 9), *dy = r.updated("dy" + name, n),
                   *y = r.updated("in place" + name, n);
              r.ops.pointwise(r.out("y" + name, n), x, f, n);
              r.ops.pointwise(y, y, f, n);
              r.ops.pointwise_backward(r.out("dx" + name, n), nullptr, dy, x, f, n);
              r.ops.pointwise_backward(dy, r.out("again" + name, n), dy, x, f, n);
            }
            real* scaled = r.updated("scaled", n);
            r.ops.scale(scaled, scaled, real(0.7), n);
            r.ops.add(r.updated("sum", N * (D + 3)), D + 3, scaled, r.in("other", n), N, D);
            r.ops.add_row(r.out("with a row", n), r.in("steps", N * (D + 5)), D + 5, r.in("row", D), N, D);
            r.ops.add_row_backward(r.updated("drow", D), scaled, N, D);
            r.ops.add_positions(scaled, r.in("positions", (N + 2) * D), 2, 1, static_cast<int>(N), D);
            r.ops.add_positions_backward(r.updated("dpositions", D), r.in("dx", n), static_cast<int>(N), 1, D);
          }};
}

Row taken_rows_row(int B, int T, int first, int step, int count, int D) {
  return {text("take_rows %d×%d of %d×%d", B, count, T, D), [=](Run& r) {
            real* x = r.updated("x", int64_t(B) * T * D);
            real* y = r.out("y", int64_t(B) * count * D);
            r.ops.take_rows(y, x, B, T, first, step, count, D);
            r.ops.add_to_rows(x, y, B, T, first, step, count, D);
          }};
}

Row cross_entropy_row(int64_t N, int V, bool in_place) {
  return {
      text("cross_entropy, argmax %lld×%d%s", static_cast<long long>(N), V, in_place ? " in place" : ""), [=](Run& r) {
        real* logits = r.updated("logits", N * V, -9, 9);
        const int32_t* targets = r.ids("targets", N, -1, V + 1);
        r.ops.argmax(r.ids("best", std::vector<int32_t>(static_cast<size_t>(N), -7)), logits, N, V);
        r.ops.cross_entropy(r.out("losses", N), in_place ? logits : r.out("dlogits", N * V), logits, targets,
                            real(0.37), N, V);
        r.ops.binary_cross_entropy(r.out("losses of sets", N), r.out("dlogits of sets", N * V), r.in("x", N * V, -9, 9),
                                   r.in("sets", N * V, 0, 1), real(0.37), N, V);
        r.ops.sigmoid_squared_error(r.out("squared errors", N), r.out("their dlogits", N * V), r.in("z", N * V, -9, 9),
                                    r.in("sets with gaps", N * V, -1, 1), real(0.37), N, V);
      }};
}

// The functions of gates, on enough numbers that their coefficients' last bits matter, and where two formulas meet.
Row gates_row(int64_t N, int H) {
  return {text("tanh, silu_gate, lstm_cell, causal_convolution %lld×%d", static_cast<long long>(N), H), [=](Run& r) {
            const int64_t n = N * H;
            const std::vector<real> seams = {0, real(-0.0), real(0.625), real(-0.625)};
            real *z = r.in("z", 4 * n, -3, 3), *h = r.out("tanh", n), *dh = r.in("dh", n);
            r.ops.upload(z, seams.data(), std::min<size_t>(seams.size(), static_cast<size_t>(n)) * sizeof(real));
            r.ops.tanh(h, z, n);
            r.ops.tanh_backward(r.out("dz", n), dh, h, n);
            r.ops.silu_gate(r.out("gated", n), dh, z, n);
            r.ops.silu_gate_backward(r.out("dy", n), r.out("through silu", n), r.out("gated again", n), dh, dh, z, n);
            real *gates = r.updated("gates", 4 * n, -3, 3), *c = r.out("c", n), *before = r.in("c before", n);
            r.ops.upload(gates, seams.data(), std::min<size_t>(seams.size(), static_cast<size_t>(n)) * sizeof(real));
            r.ops.lstm_cell(r.out("h", n), c, gates, before, N, H);
            r.ops.lstm_cell_backward(r.out("dgates", 4 * n), r.updated("dc", n), dh, gates, c, before, N, H);
            constexpr int TAPS = 7;  // large enough that taps processed together reach back beyond the first row
            const real *weight = r.in("weight", TAPS * H), *bias = r.in("bias", H);
            const int T = static_cast<int>(N);
            r.ops.causal_convolution(r.out("convolved", n), nullptr, z, weight, bias, 1, T, H, TAPS);
            r.ops.causal_convolution_backward(r.out("dx", n), r.updated("dweight", TAPS * H), r.updated("dbias", H),
                                              r.updated("dconvolved", n), z, weight, bias, 1, T, H, TAPS);
          }};
}

Row ties_row() {
  return {"argmax of equal numbers", [](Run& r) {
            real* logits = r.updated("logits", 2 * 300, 1, 1);
            r.ops.argmax(r.ids("best", std::vector<int32_t>(2, -7)), logits, 2, 300);
          }};
}

Row sum_row(int64_t n) {
  return {text("sum, sum_of_squares of %lld", static_cast<long long>(n)), [=](Run& r) {
            real *even = r.in("even", n), *uneven = r.uneven("uneven", n),
                 *partial = r.scratch("partial", n / 1024 + 2);
            r.ops.sum(r.out("sum", 1), partial, even, n);
            r.ops.sum_of_squares(r.out("squares", 1), partial, even, n);
            r.ops.sum(r.out("uneven sum", 1), partial, uneven, n);
            r.ops.sum_of_squares(r.out("uneven squares", 1), partial, uneven, n);
          }};
}

Row adamw_row(int64_t n, real clip) {
  return {text("adamw of %lld%s", static_cast<long long>(n), clip > 0 ? " clipped" : ""), [=](Run& r) {
            const AdamwStep step{real(1e-3), real(0.9),   real(0.999),    real(1e-8),
                                 real(0.1),  real(0.271), real(0.002997), clip};
            real *value = r.updated("value", n), *m = r.updated("m", n), *v = r.updated("v", n, 0, 1);
            r.ops.adamw(value, m, v, r.in("gradient", n), r.in("square_sum", 1, 1, 9), step, n);
          }};
}

// before: number of positions decoded earlier; −1: full sequences
Row dct_row(int B, int T, int before, int d, const std::vector<int64_t>& windows,
            const std::vector<int64_t>& frequencies) {
  std::string name = text("sliding_dct, mix_frequencies %d×%d×%d after %d:", B, T, d, before);
  for (size_t h = 0; h < windows.size(); ++h)
    name += text(" %d of %d", static_cast<int>(frequencies[h]), static_cast<int>(windows[h]));
  return {name, [=](Run& r) {
            const auto plan = std::make_shared<DctPlan>(r.ops, windows, frequencies, d, T + std::max(before, 0));
            r.tables = plan;
            const DctShape s = plan->shape(B, T, std::max(before, 0));
            const int64_t x = s.rows() * s.width();
            real *c = r.out("c", s.size()), *weight = r.in("weight", s.weight(s.heads));
            r.ops.sliding_dct(c, before < 0 ? nullptr : r.updated("state", B * s.state_size), r.in("x", x), s);
            r.ops.mix_frequencies(r.out("o", x), c, weight, s);
            if (before >= 0) return;
            real* dc = r.updated("dc", s.size());
            r.ops.sliding_dct_backward(r.out("dx", x), dc, s);
            r.ops.mix_frequencies_backward(dc, r.updated("dweight", s.weight(s.heads)), r.in("do", x), dc, weight, s);
          }};
}

Row rms_norm_row(int64_t N, int D, Into into) {
  return {text("rms_norm %lld×%d %s", static_cast<long long>(N), D, name_of(into)), [=](Run& r) {
            const real *x = r.in("x", N * D), *weight = r.in("weight", D);
            real* inv_rms = r.out("inv_rms", N);
            r.ops.rms_norm(r.out("y", N * D), inv_rms, x, weight, real(1e-5), N, D);
            r.ops.rms_norm_backward(r.updated("dx", N * D, into), r.updated("dweight", D), r.in("dy", N * D), x,
                                    inv_rms, weight, N, D, into);
          }};
}

Row copies_row() {
  return {"memory", [](Run& r) {
            real* x = r.updated("x", 3 * 11);
            const size_t size = sizeof(real);
            r.ops.copy(x + 2, 11 * size, r.in("rows", 3 * 5), 5 * size, 4 * size, 3);
            r.ops.zero(x + 29, 3 * size);
            const std::vector<real> large((size_t(11) << 20) / size, real(0.5));  // so large that its upload is split
            real* y = r.updated("y", static_cast<int64_t>(large.size()));
            r.ops.upload(y + 3, large.data() + 1, (large.size() - 3) * size);
          }};
}

// ---- The table of shapes --------------------------------------------------------------------------------------------

void add_linear_rows(std::vector<GpuCheck>& rows) {
  for (const Into into : {Into::WRITE, Into::ADD}) {
    for (const bool bias : {false, true}) {
      rows.push_back(linear_row(1, 1, 1, bias, into));
      rows.push_back(linear_row(97, 17, 65, bias, into));
      rows.push_back(linear_row(96, 32, 64, bias, into));
      rows.push_back(linear_row(3, 1025, 5, bias, into));
    }
    rows.push_back(linear_row(193, 15, 130, true, into));
    rows.push_back(linear_row(2, 2100, 67, false, into));
    rows.push_back(linear_row(1, 40, 3001, true, into));
    rows.push_back(linear_input_row(1, 1, 1, into));
    rows.push_back(linear_input_row(98, 66, 19, into));
    rows.push_back(linear_input_row(95, 64, 16, into));
    rows.push_back(linear_input_row(5, 7, 1025, into));
    rows.push_back(linear_input_row(4, 128, 2048, into));
  }
  for (const int in : {64, 66})
    rows.push_back(linear_input_row(97, in, 1030, Into::WRITE));  // full tiles, accumulated over chunks
  for (const bool bias : {false, true}) {
    rows.push_back(linear_weight_row(1, 1, 1, bias));
    rows.push_back(linear_weight_row(2500, 33, 17, bias));
    rows.push_back(linear_weight_row(1024, 64, 96, bias));
    rows.push_back(linear_weight_row(1025, 68, 100, bias));
  }
  rows.push_back(linear_weight_row(31, 131, 197, true));
  rows.push_back(last_chunk_row(1024 + 15, 50, 70));
  rows.push_back(linear_weight_row(2049, 4, 1501, true));  // enough tiles: a block processes all chunks
  rows.push_back(linear_weight_row(1030, 1024, 1030, false));
  rows.push_back(embedding_row(2, 5, 7, 11, 11, true));
  rows.push_back(embedding_row(1, 1, 1, 1, 1, true));
  rows.push_back(embedding_row(5, 500, 33, 29, 29, false));
  rows.push_back(embedding_row(2, 1025, 65, 50000, 50000, false));
  rows.push_back(embedding_row(1, 2100, 3, 50000, 1, false));
  rows.push_back(embedding_row(1100, 2, 35, 1000, 7, true));
  rows.push_back(embedding_row(35, 1000, 2, 300, 300, false));  // more than 32 chunks
}

void add_row_rows(std::vector<GpuCheck>& rows) {
  for (const Into into : {Into::WRITE, Into::ADD})
    for (const int D : {1, 2, 31, 32, 33, 64, 65, 192, 257, 1031})
      rows.push_back(normalize_row(D < 100 ? 19 : 3, D, into));
  rows.push_back(normalize_row(1, 4099, Into::WRITE));
  for (const Into into : {Into::WRITE, Into::ADD})
    for (const int D : {1, 31, 33, 65, 257}) rows.push_back(layer_norm_row(19, D, into));
  rows.push_back(layer_norm_row(2050, 3, Into::WRITE));
  // The last block's last element is a thread's first, second, third or fourth.
  for (const int D : {1, 31, 50, 85, 120}) rows.push_back(elements_row(7, D));
  for (const int H : {50, 85, 120}) rows.push_back(gates_row(7, H));
  rows.push_back(elements_row(2050, 60));
  rows.back().once = true;
  for (const int V : {1, 2, 31, 33, 64, 130, 1025}) rows.push_back(cross_entropy_row(11, V, V % 2 == 0));
  rows.push_back(cross_entropy_row(2, 5003, true));
  rows.push_back(cross_entropy_row(60, 2048, false));
  rows.back().once = true;
  rows.push_back(gates_row(3, 37));
  rows.push_back(gates_row(1500, 100));
  rows.back().once = true;
  rows.push_back(ties_row());
  for (const int64_t n : {0, 1, 33, 64, 65, 96, 100, 200, 333, 1023, 1024, 1025, 5000, 1024 * 33 + 5})
    rows.push_back(sum_row(n));
  rows.push_back(sum_row(1024 * 1024 + 1025));
  for (const int64_t n : {1, 255, 256, 1000}) rows.push_back(adamw_row(n, n % 2 == 0 ? real(0) : real(1)));
  rows.push_back(copies_row());
}

void add_norm_rows(std::vector<GpuCheck>& rows) {
  for (const int D : {1, 31, 33, 257, 600})
    for (const Into into : {Into::ADD, Into::WRITE}) rows.push_back(rms_norm_row(5, D, into));
  for (const int T : {1, 33, 300, 1030}) rows.push_back(check_of(kerple_case(T, 3)));
  rows.push_back(check_of(kerple_case(2000, 50)));
  rows.back().once = true;
  rows.push_back(check_of(kerple_case(520, 9, 0.001)));
  for (int T = 1; T <= 12; ++T)
    rows.push_back(check_of(causal_convolution_case(2, T, 3, 4, false)));  // every length of a thread's last run
  for (const int K : {2, 17, 18, 19, 20})
    rows.push_back(check_of(causal_convolution_case(2, 23, 3, K, false)));  // every reach of a group of taps
  for (const int channels : {1, 300})
    rows.push_back(check_of(selective_scan_case({2, 70, channels, 5, 13}, false, Gaps::KEPT)));
}

void add_relation_rows(std::vector<GpuCheck>& rows) {
  constexpr Activation EXP = Activation::EXP, ALL[] = {EXP, Activation::RELU, Activation::ELU, Activation::GELU};
  const auto add = [&](const RelationShape& s, bool normalized, bool shifted = false) {
    rows.push_back(relation_row(s, {normalized, shifted, 1.0}));
  };
  for (const bool causal : {true, false}) {
    for (const Activation activation : ALL) {
      add(whole(2, 19, 39, 1, causal, activation), true);
      add(whole(1, 11, 21, 3, causal, activation), false);
    }
    for (const Activation activation : ALL) {
      // Several rounds of partners and several warps; all branches of the activation.
      for (const int width : {20, 150}) add(whole(1, 70, width, 1, causal, activation), true);
      rows.push_back(relation_row(whole(1, 37, 150, 1, causal, activation), {false, false, 9.0}));
      rows.push_back(relation_row(whole(1, 70, 20, 1, causal, activation), {false, false, 9.0}));
    }
    for (int T = 9; T <= 16; ++T)  // every number of rows of a sweep's last block, of one and of two channels a thread
      for (const int width : {20, 40})
        for (const Activation activation : ALL) {
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
  }
  for (const bool causal : {true, false}) {  // chains over positions are cut into chunks
    add(whole(1, causal ? 1100 : 1030, 2, 1, causal, EXP), true);
    rows.back().once = true;
    add(whole(1, 100, 1030, 1, causal, EXP), true);  // full tiles, accumulated over chunks
    rows.back().once = true;
  }
  add(whole(1, 1060, 64, 1, true, EXP), true);  // the same in products over positions
  rows.back().once = true;
}

void add_linear_relation_rows(std::vector<GpuCheck>& rows) {
  for (const bool causal : {true, false}) {
    for (const int H : {1, 31, 32, 33, 63, 64, 65, 129, 512, 513, 1030})
      rows.push_back(linear_relation_row({1, 3, H, causal, 0}, H % 2 == 1, 5));
    for (const int T : {1, 2, 63, 64, 65, 127, 128, 129, 200}) {
      rows.push_back(linear_relation_row({2, T, 5, causal, 0}, true, 90));
      rows.push_back(linear_relation_row({3, T, 34, causal, 0}, false, 1));
    }
  }
  for (const bool causal : {true, false}) rows.push_back(linear_relation_row({1, 20, 1030, causal, 0}, true, 5));
  for (const int before : {1, 62, 63, 64, 65, 127, 128, 1000})
    rows.push_back(linear_relation_row({2, 3, 70, true, before}, true, 5));
  rows.push_back(linear_relation_row({2, 150, 7, true, 50}, false, 1));
  for (const int H : {1, 5, 40, 600, 1030})
    for (const int nan : {-1, 0, 1, 3, 4, 31, 32, 599, 1029})
      if (nan < H)
        for (const bool causal : {true, false}) rows.push_back(shift_row(H, nan, causal));
}

void add_attention_rows(std::vector<GpuCheck>& rows) {
  constexpr Distances IGNORED = Distances::IGNORED, BIASED = Distances::BIASED, POSITIONED = Distances::POSITIONED;
  const auto add = [&](const AttentionShape& s, Distances distances) {
    rows.push_back(check_of(attention_case(s, distances)));
  };
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
  const auto add_long = [&](const AttentionShape& s,
                            Distances distances) {  // chains over positions are cut; several groups
    add(s, distances);
    rows.back().once = true;
  };
  add_long(whole(4, 1100, 1, 2, true), BIASED);
  add_long(whole(3, 1060, 1, 1, true), POSITIONED);
  add_long(whole(1, 1030, 1, 2, false), POSITIONED);
  for (const int width : {64, 66})  // full tiles, accumulated over chunks
    add_long({1, 100, 1100, 1100, 1, width, true, width, width}, width == 64 ? POSITIONED : IGNORED);
  add_long(whole(1, 1060, 1, 64, true), IGNORED);
  add_long(whole(1, 100, 1, 1028, true), POSITIONED);
}

void add_dilated_rows(std::vector<GpuCheck>& rows) {
  const auto add = [&](const DilatedShape& s, bool before) {
    rows.push_back(check_of(dilated_attention_case(s, before, Gaps::KEPT)));
  };
  const auto sliding = [&](int B, int T, int heads, int width, int chunk, int dilation) {
    add({B, T, T, T, heads, width, chunk, dilation, 0, 1, 3 * heads * width, 2 * heads * width}, false);
  };
  const auto chunks = [&](int B, int T, int heads, int width, int chunk) {
    const int queries = (T + chunk - 1) / chunk;
    add({B, queries, T, T, heads, width, chunk, 1, T - 1 - (queries - 1) * chunk, chunk, heads * width,
         2 * heads * width},
        true);
  };
  for (const int width : {1, 7, 31, 32, 33, 65}) {
    sliding(1, 5, 2, width, 2, 2);
    chunks(2, 5, 2, width, 2);
  }
  for (const int chunk : {2, 3, 31, 32, 33, 65, 300}) {
    sliding(2, 70, 3, 5, chunk, 1);
    chunks(2, 70, 3, 5, chunk);
  }
  for (const int dilation : {1, 4, 16, 64}) sliding(2, 19, 1, 9, 4, dilation);
  chunks(130, 3, 2, 6, 4);
  chunks(2, 12, 2, 6, 4);  // no earlier positions
  add({3, 2, 9, 12, 2, 5, 3, 2, 7, 1, 30, 20}, false);
  add({3, 2, 4, 12, 2, 5, 3, 3, 2, 1, 30, 20}, true);
  rows.push_back(taken_rows_row(3, 11, 4, 3, 3, 7));
  rows.push_back(taken_rows_row(40, 9, 1, 2, 4, 33));
}

void add_linear_attention_rows(std::vector<GpuCheck>& rows) {
  constexpr FeatureMap ELU = FeatureMap::ELU_PLUS_ONE, IDENTITY = FeatureMap::IDENTITY;
  const auto add = [&](const LinearAttentionShape& s, bool once = false) {  // and, from its beginning, decoded
    for (const bool decoded : {false, true}) {
      if (decoded && (s.before > 0 || !s.causal)) continue;
      rows.push_back(check_of(linear_attention_case(s, decoded || s.before > 0)));
      rows.back().once = once;
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
}

void add_dct_rows(std::vector<GpuCheck>& rows) {
  for (const int T : {1, 2, 63, 64, 65, 97, 128, 200}) rows.push_back(dct_row(2, T, -1, 5, {64, 3, 7}, {4, 3, 1}));
  for (const int d : {1, 15, 16, 31, 33, 64, 65, 127, 130}) rows.push_back(dct_row(1, 9, -1, d, {5, 4}, {5, 2}));
  for (const int d : {97, 100}) rows.push_back(dct_row(1, 100, -1, d, {8}, {2}));  // full tiles
  for (const auto& [d, frequencies] :
       {std::pair(97, 12), std::pair(100, 12), std::pair(1027, 1)}) {  // accumulated over chunks
    rows.push_back(dct_row(1, 100, -1, d, {12}, {frequencies}));
    rows.back().once = true;
  }
  for (const int64_t k : {1, 2, 3, 4, 5, 8, 9, 12}) rows.push_back(dct_row(1, 40, -1, 3, {12}, {k}));
  rows.push_back(dct_row(1, 70, -1, 33, {32, 40}, {32, 1}));  // the chain over (j, channel) is cut
  rows.push_back(dct_row(1, 3, -1, 1027, {2}, {2}));          // the chain over the channels is cut
  rows.push_back(dct_row(3, 700, -1, 3, {600, 4}, {2, 4}));   // the chain over the rows is cut
  for (const int before : {0, 1, 5, 6, 7, 12, 13, 20}) rows.push_back(dct_row(2, 3, before, 4, {7, 3, 100}, {5, 2, 4}));
  rows.push_back(dct_row(1, 50, 3, 35, {8, 64}, {3, 6}));
}

std::vector<GpuCheck> rows_of(const std::string& group) {
  std::vector<GpuCheck> rows;
  if (group == "linear") add_linear_rows(rows);
  if (group == "rows") {
    add_row_rows(rows);
    add_norm_rows(rows);
  }
  if (group == "relation") add_relation_rows(rows);
  if (group == "linear relation") add_linear_relation_rows(rows);
  if (group == "attention") add_attention_rows(rows);
  if (group == "dilated") add_dilated_rows(rows);
  if (group == "dct") add_dct_rows(rows);
  if (group == "linear attention") add_linear_attention_rows(rows);
  return rows;
}

// ---- Comparisons ----------------------------------------------------------------------------------------------------

// True for equal bits or two NaN: the bits of a NaN have no meaning.
template <class T>
bool same_value(T found, T expected) {
  return same(found, expected) || (found != found && expected != expected);
}

template <class T>
std::string differing(const std::vector<T>& expected, const std::vector<T>& found, bool nan_spreads) {
  if (expected.size() != found.size()) return text(": %zu numbers, expected %zu", found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    if (!same_value(found[i], expected[i]) && !(nan_spreads && found[i] != found[i]))
      return text("[%zu of %zu]: found ", i, expected.size()) + shown(found[i]) + ", the reference has " +
             shown(expected[i]);
  return "";
}

std::vector<real> attention_maps(const ModelCase& row, const Json& config, Model& model) {
  std::vector<real> maps;
  if (row.model.find("transformer") == std::string::npos && row.model != "birn_image") return maps;
  for (int block = 0; block < config.at("layers").integer(); ++block) {
    const std::vector<real> map = model.attention_map(static_cast<size_t>(block), row.batch - 1);
    maps.insert(maps.end(), map.begin(), map.end());
  }
  return maps;
}

// Three training steps on one batch, with everything that training consists of. Then the logits and the attention maps.
std::vector<Written> train(const ModelCase& row, Ops& ops) {
  const Json config = Json::parse(row.config, row.name);
  const auto model = make_model(row.model, config, ops);
  Parameters& parameters = model->parameters;
  parameters.initialize(SEED);
  const int64_t size = parameters.padded_size();
  Tensor m(ops, {size}), v(ops, {size}), square_sum(ops, {1}), loss(ops, {1}), partial(ops, {size / 1024 + 100});
  m.zero();
  v.zero();
  const ModelBatch batch(ops, row, model->classes(), SEED);
  const Input input = batch.input();
  const int64_t rows = model->logit_rows(input);
  Tensor losses(ops, {rows}), dlogits(ops, {rows, model->classes()});
  real correction1 = 1, correction2 = 1;
  for (int step = 0; step < 3; ++step) {
    parameters.zero_gradients();
    const real* logits = model->forward(input);
    ops.cross_entropy(losses.data(), dlogits.data(), logits, batch.targets.data(), batch.scale, rows, model->classes());
    ops.sum(loss.data(), partial.data(), losses.data(), rows);
    model->backward(input, dlogits.data());
    correction1 *= real(0.9);
    correction2 *= real(0.999);
    const AdamwStep adamw{real(0.01), real(0.9),       real(0.999),     real(1e-8),
                          real(0.1),  1 - correction1, 1 - correction2, 1};
    ops.sum_of_squares(square_sum.data(), partial.data(), parameters.gradients().data(), size);
    ops.adamw(parameters.values().data(), m.data(), v.data(), parameters.gradients().data(), square_sum.data(), adamw,
              size);
  }
  std::vector<real> logits(static_cast<size_t>(rows) * model->classes());
  const real* on_device = model->forward(input);
  ops.download(logits.data(), on_device, logits.size() * sizeof(real));
  return {{"loss of step 3", loss.download(), {}},
          {"weights", parameters.values().download(), {}},
          {"logits", logits, {}},
          {"maps", attention_maps(row, config, *model), {}}};
}

// Incremental decoding: logits of one to three tokens at a time.
std::vector<real> decoded(const ModelCase& row, Ops& ops) {
  const auto model = make_model(row.model, Json::parse(row.config, row.name), ops);
  model->parameters.initialize(SEED);
  const ModelBatch batch(ops, row, model->classes(), SEED);
  if (row.patch_size > 0) model->decoder(row.batch, row.length);  // throws
  const std::vector<int32_t> tokens = batch.to_decode(*model);
  const int T = static_cast<int>(tokens.size()) / row.batch;
  const auto decoder = model->decoder(row.batch, T);
  std::vector<real> all;
  for (int t = 0, n = 1; t < T; t += n, n = std::min(n % 3 + 1, T - t)) {
    std::vector<int32_t> some;
    for (int b = 0; b < row.batch; ++b)
      some.insert(some.end(), tokens.begin() + b * T + t, tokens.begin() + b * T + t + n);
    Tokens ids(ops, {row.batch, n});
    ids.upload(some);
    std::vector<real> logits(static_cast<size_t>(row.batch) * n * model->classes());
    ops.download(logits.data(), decoder->decode(ids.data(), n), logits.size() * sizeof(real));
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

// A model without a decoder throws the same message on every device; the message is compared as an array's name.
std::vector<Written> decoded_or_refused(const ModelCase& row, Ops& ops) {
  try {
    return {{"logits", decoded(row, ops), {}}};
  } catch (const Error& error) {
    return {{error.what(), {}, {}}};
  }
}

std::vector<GpuCheck> make_checks(const std::string& group) {
  std::vector<GpuCheck> checks = rows_of(group);
  if (group == "special")
    for (const OpCase& row : special_cases()) checks.push_back(check_of(row));
  if (group == "table")
    for (const OpCase& row : op_cases()) checks.push_back(check_of(row));
  for (const ModelCase& row : model_cases()) {
    if (group == "models") checks.push_back({row.name + ": 3 steps", [row](Ops& ops) { return train(row, ops); }});
    if (group == "streams")
      checks.push_back({row.name + ": decoding", [row](Ops& ops) { return decoded_or_refused(row, ops); }});
  }
  return checks;
}

}  // namespace

const std::vector<std::string>& gpu_check_groups() {
  static const std::vector<std::string> groups = {"linear",    "rows",    "relation",         "linear relation",
                                                  "attention", "dilated", "linear attention", "dct",
                                                  "table",     "special", "models",           "streams"};
  return groups;
}

const std::vector<GpuCheck>& gpu_checks(const std::string& group) {
  static std::map<std::string, std::vector<GpuCheck>> made;
  const auto found = made.find(group);
  return found != made.end() ? found->second : made[group] = make_checks(group);
}

std::string GpuCheck::difference(Ops& device) const {
  if (!expected) expected = std::make_shared<std::vector<Written>>(run(*std::make_unique<Reference>()));
  const std::vector<Written> found = run(device);
  if (found.size() != expected->size()) return text("%zu arrays, expected %zu", found.size(), expected->size());
  for (size_t i = 0; i < found.size(); ++i) {
    const Written& written = (*expected)[i];
    if (found[i].name != written.name) return found[i].name + ", the reference has " + written.name;
    const std::string reals = differing(written.reals, found[i].reals, nan_spreads);
    if (!reals.empty()) return written.name + reals;
    const std::string ids = differing(written.ids, found[i].ids, false);
    if (!ids.empty()) return written.name + ids;
  }
  return "";
}

}  // namespace petroglyph
