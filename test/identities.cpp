// What the papers prove equal is equal: two ways of computing one function, on random configurations and weights.
// Rounding is all that may differ, so this program is built with REAL=double.

#include <algorithm>
#include <cmath>

#include "analysis/order.h"
#include "base/text.h"
#include "cases.h"
#include "check.h"
#include "cpu/make_cpu.h"
#include "math/random.h"
#include "ops/dct_plan.h"

namespace petroglyph {
namespace {

static_assert(sizeof(real) == sizeof(double), "this test is built with REAL=double");

constexpr double TOLERANCE = 1e-11;  // of the norm of all compared numbers; rounding alone is about 1e-14

// Logits, and the gradients of Σ logits∘dlogits with random dlogits.
struct Results {
  std::vector<real> logits, gradients;
};

// Larger than a model's initial values: what it does shows far above rounding.
void draw_weights(Parameters& parameters, real deviation) {
  std::vector<real> weights(static_cast<size_t>(parameters.padded_size()));
  for (const Parameter& p : parameters.list())
    for (int64_t i = 0; i < p.size(); ++i)
      weights[static_cast<size_t>(p.begin + i)] = deviation * normal(3, stream_of(p.name), 0, static_cast<uint64_t>(i));
  parameters.upload_all(weights);
}

Results results(Ops& ops, const ModelCase& row, real deviation) {
  const auto model = make_model(row.model, Json::parse(row.config, row.name), ops);
  Parameters& parameters = model->parameters;
  std::vector<real> dlogits;
  draw_weights(parameters, deviation);
  const ModelBatch batch(ops, row, model->classes(), 5);
  const int64_t size = model->logit_rows(batch.input()) * model->classes();
  for (int64_t i = 0; i < size; ++i) dlogits.push_back(normal(4, stream_of("dlogits"), 0, static_cast<uint64_t>(i)));
  Tensor on_device(ops, {size});
  on_device.upload(dlogits);
  Results r;
  r.logits.resize(static_cast<size_t>(size));
  ops.download(r.logits.data(), model->forward(batch.input()), r.logits.size() * sizeof(real));
  parameters.zero_gradients();
  model->backward(batch.input(), on_device.data());
  r.gradients = parameters.gradients().download();
  return r;
}

void compare(Test& test, const std::string& name, const Results& found, const Results& expected) {
  near(test, name + ": logits", found.logits, expected.logits, TOLERANCE);
  near(test, name + ": gradients", found.gradients, expected.gradients, TOLERANCE);
}

// With exp and no exact inner norm, the sum over pairs folds into one vector (causal_rn_workshop, eq. 5).
void linear_form(Test& test) {
  const auto ops = make_cpu(2);
  for (uint32_t trial = 0; trial < 24; ++trial) {
    const auto pick = [&](const char* what, uint32_t low, uint32_t high) {
      return static_cast<int>(low + below(philox(17, stream_of(what), trial, 0).word[0], high - low + 1));
    };
    // Every other trial has exponents far beyond the range of exp, which only a norm behind the sum allows.
    const bool large = trial % 2 == 1, post_norm = large || pick("post_norm", 0, 1);
    const int batch = pick("batch", 1, 4), length = pick("length", 1, 1 << pick("magnitude", 1, 8));
    const std::string settings = text(
        "\"vocab\":%d,\"context\":%d,\"width\":%d,\"hidden\":%d,\"layers\":%d,\"heads\":1,\"pre_activation_norm\":\"%"
        "s\","
        "\"post_reduction_norm\":%s,\"causal\":%s",
        pick("vocab", 2, 20), length, pick("width", 2, 40), pick("hidden", 2, 40), pick("layers", 1, 3),
        !large && pick("norm", 0, 1) ? "approximate" : "none", post_norm ? "true" : "false",
        pick("causal", 0, 3) ? "true" : "false");
    const ModelCase quadratic{"", "causal_rn", "{\"activation\":\"exp\"," + settings + "}", batch, length};
    const ModelCase linear{"", "linear_causal_rn", "{" + settings + "}", batch, length};
    const real deviation = large ? 25 : real(0.3);
    compare(test, text("%dx%d, ", batch, length) + settings, results(*ops, linear, deviation),
            results(*ops, quadratic, deviation));
  }
}

// One head of linear attention as the paper writes it: q, k and v are vectors of n numbers, side by side.
struct LinearAttentionHead {
  const LinearAttentionShape& shape;
  const real* qkv;  // of the first position
  int head;

  const real* part(int t, int number) const {
    return qkv + (int64_t(t) * 3 + number) * shape.width() + int64_t(head) * shape.head_width;
  }
  real weight(int t, int s) const {
    real sum = 0;
    for (int c = 0; c < shape.head_width; ++c) sum += part(t, 0)[c] * part(s, 1)[c];
    return sum;
  }

  // y_t = Σ_s (q_t·k_s) v_s, and the sum of the weights behind it                          attention form
  std::vector<real> attention(int t) const {
    std::vector<real> y(shape.head_width + 1);
    for (int s = 0; s < (shape.causal ? t + 1 : shape.positions); ++s) {
      const real a = weight(t, s);
      for (int c = 0; c < shape.head_width; ++c) y[c] += a * part(s, 2)[c];
      y[shape.head_width] += a;
    }
    return y;
  }
  // W_t = W_{t−1} + v_t ⊗ k_t,  y_t = W_t q_t, with a 1 behind v                            eqs. 7 and 8
  std::vector<real> recurrent(std::vector<real>& W, int t) const {
    const int n = shape.head_width;
    std::vector<real> y(n + 1);
    for (int i = 0; i <= n; ++i)
      for (int c = 0; c < n; ++c) {
        W[size_t(i) * n + c] += (i < n ? part(t, 2)[i] : 1) * part(t, 1)[c];
        y[i] += W[size_t(i) * n + c] * part(t, 0)[c];
      }
    return y;
  }
};

void linear_attention_forms(Test& test) {
  const auto ops = make_cpu(2);
  for (uint32_t trial = 0; trial < 24; ++trial) {
    const auto pick = [&](const char* what, uint32_t low, uint32_t high) {
      return static_cast<int>(low + below(philox(23, stream_of(what), trial, 0).word[0], high - low + 1));
    };
    const LinearAttentionShape s{pick("batch", 1, 3),      pick("positions", 1, 1 << pick("magnitude", 1, 9)),
                                 pick("heads", 1, 3),      pick("width", 1, 24),
                                 pick("causal", 0, 3) > 0, pick("normalized", 0, 1) > 0,
                                 FeatureMap::IDENTITY,     0};
    const int64_t rows = int64_t(s.batch) * s.positions, size = rows * s.width();
    std::vector<real> qkv, attention(size), recurrent(size);
    for (int64_t i = 0; i < 3 * size; ++i)
      qkv.push_back(uniform(philox(24, trial, 0, static_cast<uint64_t>(i)).word[0]) + (s.normalized ? 0.1 : -0.5));
    for (int64_t n = 0; n < int64_t(s.batch) * s.heads; ++n) {
      const int64_t first = n / s.heads * s.positions;
      const LinearAttentionHead head{s, qkv.data() + first * 3 * s.width(), static_cast<int>(n % s.heads)};
      std::vector<real> W(size_t(s.head_width + 1) * s.head_width);
      for (int t = 0; t < s.positions; ++t) {
        const std::vector<real> one = head.attention(t), other = head.recurrent(W, t);
        for (int c = 0; c < s.head_width; ++c) {
          const int64_t at = (first + t) * s.width() + n % s.heads * s.head_width + c;
          attention[at] = one[c] / (s.normalized ? one[s.head_width] : 1);
          recurrent[at] = other[c] / (s.normalized ? other[s.head_width] : 1);
        }
      }
    }
    Tensor input(*ops, {3 * size}), y(*ops, {size}), inv_sum(*ops, {rows * s.heads}), states(*ops, {s.states_size()});
    input.upload(qkv);
    ops->linear_attention(y.data(), inv_sum.data(), states.data(), nullptr, input.data(), s);
    const std::string name = text("%d×%d of %d×%d%s%s", s.batch, s.positions, s.heads, s.head_width,
                                  s.causal ? " causal" : "", s.normalized ? " normalized" : "");
    if (s.causal) near(test, name + ": recurrent and attention form", recurrent, attention, TOLERANCE);
    near(test, name + ": chunks and attention form", y.download(), attention, TOLERANCE);
  }
}

// The sliding cosine transform by its definition; and as many frequencies as the window is long only turn its basis, so
// that they have the length of what is in the window.
void sliding_transforms(Test& test) {
  const auto ops = make_cpu(2);
  for (uint32_t trial = 0; trial < 16; ++trial) {
    const auto pick = [&](const char* what, uint32_t low, uint32_t high) {
      return static_cast<int64_t>(low + below(philox(29, stream_of(what), trial, 0).word[0], high - low + 1));
    };
    const int B = static_cast<int>(pick("batch", 1, 2)), T = static_cast<int>(pick("length", 1, 150));
    const int64_t t = pick("window", 1, 1 << pick("magnitude", 1, 8)), d = pick("width", 1, 19);
    const int64_t k = trial % 2 ? t : pick("frequencies", 1, static_cast<uint32_t>(t));
    const DctPlan plan(*ops, {t}, {k}, static_cast<int>(d), T);
    const DctShape shape = plan.shape(B, T);
    std::vector<real> x, expected, lengths, found_lengths;
    for (int64_t i = 0; i < shape.rows() * d; ++i) x.push_back(normal(30, trial, 0, static_cast<uint64_t>(i)));
    for (int64_t n = 0; n < shape.rows(); ++n)
      for (int64_t j = 0; j < k; ++j)
        for (int64_t c = 0; c < d; ++c) {
          double sum = 0;
          for (int64_t m = std::max<int64_t>(0, t - 1 - n % T); m < t; ++m)
            sum += x[static_cast<size_t>((n - t + 1 + m) * d + c)] * std::cos(M_PI * j * (2 * m + 1) / (2.0 * t));
          expected.push_back(sum * std::sqrt((j == 0 ? 1.0 : 2.0) / t));
        }
    Tensor input(*ops, {shape.rows() * d}), output(*ops, {shape.size()});
    input.upload(x);
    ops->sliding_dct(output.data(), nullptr, input.data(), shape);
    const std::vector<real> found = output.download();
    const std::string name = text("%lld of %lld over %d×%d×%lld", static_cast<long long>(k), static_cast<long long>(t),
                                  B, T, static_cast<long long>(d));
    near(test, name, found, expected, TOLERANCE);
    for (int64_t n = 0; k == t && n < shape.rows(); ++n) {
      real length = 0, expected_length = 0;
      for (int64_t i = 0; i < k * d; ++i)
        length += found[static_cast<size_t>(n * k * d + i)] * found[static_cast<size_t>(n * k * d + i)];
      for (int64_t s = std::max<int64_t>(n - n % T, n - t + 1); s <= n; ++s)
        for (int64_t c = 0; c < d; ++c)
          expected_length += x[static_cast<size_t>(s * d + c)] * x[static_cast<size_t>(s * d + c)];
      found_lengths.push_back(length);
      lengths.push_back(expected_length);
    }
    if (k == t) near(test, name + ": lengths", found_lengths, lengths, TOLERANCE);
  }
}

ModelCase set_case(const char* model, int patches, int width, int hidden, const char* settings) {
  ModelCase row{"", model,
                text("{\"patches\":%d,\"patch_size\":5,\"classes\":4,\"width\":%d,\"hidden\":%d,%s}", patches, width,
                     hidden, settings),
                2, patches};
  row.patch_size = 5;
  return row;
}

// The Relation Network of exponentials in linear time is the quadratic one (causal_rn_linear_time, proposition 3.2).
void relation_network_forms(Test& test) {
  const auto ops = make_cpu(2);
  for (const int patches : {1, 2, 7, 64, 65, 150})
    for (const int hidden : {1, 6, 33}) {
      const auto form = [&](const char* settings) {
        return results(*ops, set_case("relation_network", patches, 9, hidden, settings), real(0.3));
      };
      compare(test, text("%d elements, %d channels", patches, hidden),
              form("\"activation\":\"exp\",\"form\":\"linear\""),
              form("\"activation\":\"exp\",\"form\":\"quadratic\""));
    }
}

// The definitions, element by element and pair by pair (equations 2 and 3), with a network f that is given [x_i; x_j].
void set_definitions(Test& test) {
  const auto ops = make_cpu(1);
  const int N = 6, D = 4, H = 5, P = 5;
  for (const bool pairs : {false, true}) {
    const ModelCase row = pairs
                              ? set_case("relation_network", N, D, H, "\"activation\":\"relu\",\"form\":\"quadratic\"")
                              : set_case("deep_sets", N, D, H, "\"activation\":\"relu\"");
    const auto model = make_model(row.model, Json::parse(row.config, row.name), *ops);
    draw_weights(model->parameters, real(0.5));
    const auto weight = [&](const char* name, int out, int in) {
      return model->parameters.find(name)->value[out * model->parameters.find(name)->shape.back() + in];
    };
    const auto bias = [&](const char* name, int out) { return model->parameters.find(name)->value[out]; };
    const ModelBatch batch(*ops, row, model->classes(), 5);
    const std::vector<real> patches = batch.patches.download();
    std::vector<std::vector<real>> x(N, std::vector<real>(D));
    for (int n = 0; n < N; ++n)
      for (int d = 0; d < D; ++d) {
        x[n][d] = weight("position_embedding.weight", n, d);
        for (int k = 0; k < P; ++k)
          x[n][d] += weight("patch_embedding.weight", d, k) * patches[static_cast<size_t>(n * P + k)];
      }
    std::vector<real> y(D);
    const auto add_f = [&](int i, int j, real scale) {  // scale · f([x_i; x_j]), or f([x_i])
      for (int d = 0; d < D; ++d) y[d] += scale * bias("out.bias", d);
      for (int h = 0; h < H; ++h) {
        real in = bias(pairs ? "right.bias" : "in.bias", h);
        for (int k = 0; k < D; ++k)
          in += pairs ? weight("left.weight", h, k) * x[i][k] + weight("right.weight", h, k) * x[j][k]
                      : weight("in.weight", h, k) * x[i][k];
        for (int d = 0; d < D; ++d) y[d] += scale * weight("out.weight", d, h) * std::max(in, real(0));
      }
    };
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < (pairs ? N : 1); ++j) add_f(i, j, real(1) / (pairs ? N * N : N));
    real mean = 0, variance = 0;
    for (const real v : y) mean += v / D;
    for (const real v : y) variance += (v - mean) * (v - mean) / D;
    std::vector<real> expected(4), found(4);
    for (int c = 0; c < 4; ++c)
      for (int d = 0; d < D; ++d) expected[c] += weight("head.weight", c, d) * (y[d] - mean) / std::sqrt(variance);
    ops->download(found.data(), model->forward(batch.input()), found.size() * sizeof(real));
    near(test, row.model, found, expected, TOLERANCE);
  }
}

// What models without positions make of the order of their inputs (positional_encodings_nonessential, section 3).
struct Order {
  const char* model;
  std::string settings;
  bool moved, last, later;  // whether the distances of OrderSensitivity are rounding only
};

void order(Test& test) {
  const auto ops = make_cpu(2);
  const std::string sizes =
      "\"vocab\":24,\"context\":16,\"width\":12,\"hidden\":20,\"heads\":2,\"norm\":\"plain\",\"qkv_bias\":true,"
      "\"out_bias\":true,\"gelu\":\"erf\",\"readout\":\"all\",";
  const std::string elu = ",\"feature_map\":\"elu1\",\"normalized\":true",
                    identity = ",\"feature_map\":\"identity\",\"normalized\":false";
  const Order rows[] = {
      // Question 1: without a mask, self-attention sees a set.
      {"transformer", "\"causal\":false,\"layers\":1,\"position\":\"none\"", true, true, true},
      {"transformer", "\"causal\":false,\"layers\":3,\"position\":\"none\"", true, true, true},
      {"transformer", "\"causal\":false,\"layers\":1,\"position\":\"learned\"", false, false, false},
      // Question 5: one causal layer sees a set at the last position.
      {"transformer", "\"causal\":true,\"layers\":1,\"position\":\"none\"", false, true, true},
      {"transformer", "\"causal\":true,\"layers\":1,\"position\":\"alibi\"", false, false, false},
      // Question 3: two see the order, everywhere.
      {"transformer", "\"causal\":true,\"layers\":2,\"position\":\"none\"", false, false, false},
      {"transformer", "\"causal\":true,\"layers\":3,\"position\":\"none\"", false, false, false},
      // The same for the linear Transformer (section 4), whose recurrence is that of a sum.
      {"linear_transformer", "\"causal\":false,\"layers\":2,\"position\":\"none\"" + elu, true, true, true},
      {"linear_transformer", "\"causal\":true,\"layers\":1,\"position\":\"none\"" + elu, false, true, true},
      {"linear_transformer", "\"causal\":true,\"layers\":1,\"position\":\"none\"" + identity, false, true, true},
      {"linear_transformer", "\"causal\":true,\"layers\":2,\"position\":\"none\"" + elu, false, false, false},
      {"linear_transformer", "\"causal\":true,\"layers\":2,\"position\":\"none\"" + identity, false, false, false},
  };
  for (const Order& row : rows) {
    const std::string settings = std::string(row.model) + " " + row.settings;
    const auto model = make_model(row.model, Json::parse("{" + sizes + row.settings + "}", settings), *ops);
    draw_weights(model->parameters, real(0.3));
    const OrderSensitivity found = order_sensitivity(*model, *ops, 24, 9, 20, 5);
    const auto check = [&](const char* what, double distance, bool rounding) {
      test.check(settings + ": " + what, rounding ? distance < TOLERANCE : distance > 1e-4,
                 text("relative distance %.2e", distance));
    };
    check("moved", found.moved, row.moved);
    check("last", found.last, row.last);
    check("later", found.later, row.later);
  }
}

// A row of weights sums to one, and sees no later position where it must not.
void attention_maps(Test& test) {
  const auto ops = make_cpu(2);
  for (const ModelCase& row : model_cases()) {
    const Json config = Json::parse(row.config, row.name);
    if (row.model != "transformer" && row.model != "linear_transformer") continue;
    if (const Json* normalized = config.find("normalized"); normalized && !normalized->boolean()) continue;
    const auto model = make_model(row.model, config, *ops);
    model->parameters.initialize(3);
    const ModelBatch batch(*ops, row, model->classes(), 5);
    model->forward(batch.input());
    const int heads = static_cast<int>(config.at("heads").integer()), T = row.length + (row.patch_size > 0);
    const std::vector<real> map = model->attention_map(0, batch.batch - 1);
    double worst = 0, later = 0;
    for (int i = 0; i < heads * T; ++i) {
      double sum = 0;
      for (int s = 0; s < T; ++s) {
        sum += map[static_cast<size_t>(i) * T + s];
        if (s > i % T) later += map[static_cast<size_t>(i) * T + s];
      }
      worst = std::max(worst, std::abs(sum - 1));
    }
    test.check(row.name + ": sums", map.size() == static_cast<size_t>(heads) * T * T && worst < 1e-12,
               text("off by %.2e", worst));
    test.check(row.name + ": mask", (later == 0) == config.at("causal").boolean() || T == 1);
  }
}

// The strengths of a relation network's pairs by definition: |exp(μ(p_i + q_j))| over the channels, divided by the sum
// over i.
void relation_maps(Test& test) {
  const auto ops = make_cpu(1);
  const int N = 5, T = N + 1, D = 6, H = 8, P = 3, heads = 2;
  for (const std::string norm : {"exact", "approximate", "none"}) {
    ModelCase row{
        "", "birn_image",
        text("{\"patches\":%d,\"patch_size\":%d,\"classes\":4,\"width\":%d,\"hidden\":%d,\"layers\":1,\"heads\":%d,"
             "\"pre_activation_norm\":\"%s\",\"post_reduction_norm\":true}",
             N, P, D, H, heads, norm.c_str()),
        2, N};
    row.patch_size = P;
    const auto model = make_model(row.model, Json::parse(row.config, row.name), *ops);
    draw_weights(model->parameters, 2);
    const auto value = [&](const char* name, int i) { return model->parameters.find(name)->value[i]; };
    const ModelBatch batch(*ops, row, 4, 5);
    const std::vector<real> patches = batch.patches.download();
    model->forward(batch.input());
    const auto normalized = [](std::vector<real> v, int groups) {
      const size_t n = v.size() / static_cast<size_t>(groups);
      for (size_t g = 0; g < v.size(); g += n) {
        real mean = 0, variance = 0;
        for (size_t c = g; c < g + n; ++c) mean += v[c] / static_cast<real>(n);
        for (size_t c = g; c < g + n; ++c) variance += (v[c] - mean) * (v[c] - mean) / static_cast<real>(n);
        for (size_t c = g; c < g + n; ++c) v[c] = (v[c] - mean) / std::sqrt(variance);
      }
      return v;
    };
    std::vector<std::vector<real>> p(T), q(T);
    for (int t = 0; t < T; ++t) {
      std::vector<real> x(D), &left = p[t], &right = q[t];
      for (int d = 0; d < D; ++d) {
        x[d] = value("position_embedding.weight", t * D + d) + (t == N ? value("cls_token", d) : 0);
        for (int k = 0; t < N && k < P; ++k)
          x[d] +=
              value("patch_embedding.weight", d * P + k) * patches[static_cast<size_t>((N + t) * P + k)];  // sample 1
      }
      x = normalized(x, 1);
      for (int h = 0; h < H; ++h) {
        left.push_back(0);
        right.push_back(value("blocks.0.right.bias", h));
        for (int d = 0; d < D; ++d) {
          left[h] += value("blocks.0.left.weight", h * D + d) * x[d];
          right[h] += value("blocks.0.right.weight", h * D + d) * x[d];
        }
      }
      if (norm == "approximate") left = normalized(left, 1), right = normalized(right, 1);
    }
    std::vector<real> expected;
    for (int j = 0; j < T; ++j) {
      real total = 0;
      for (int i = 0; i < T; ++i) {
        std::vector<real> sum(H);
        for (int h = 0; h < H; ++h) sum[h] = p[i][h] + q[j][h];
        if (norm == "exact") sum = normalized(sum, heads);
        real square = 0;
        for (const real s : sum) square += std::exp(2 * s);
        expected.push_back(std::sqrt(square));
        total += expected.back();
      }
      for (int i = 0; i < T; ++i) expected[static_cast<size_t>(j * T + i)] /= total;
    }
    const std::vector<real> found = model->attention_map(0, 1);
    near(test, norm, found, expected, TOLERANCE);
  }
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  petroglyph::Test test(argc, argv);
  test.run("linear_causal_rn is causal_rn", petroglyph::linear_form);
  test.run("linear attention", petroglyph::linear_attention_forms);
  test.run("sliding cosine transforms", petroglyph::sliding_transforms);
  test.run("relation_network in linear time", petroglyph::relation_network_forms);
  test.run("set networks by definition", petroglyph::set_definitions);
  test.run("order", petroglyph::order);
  test.run("attention maps", petroglyph::attention_maps);
  test.run("maps of relation networks", petroglyph::relation_maps);
  return test.finish();
}
