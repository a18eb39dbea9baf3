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
  r.logits = logits_of(ops, *model, batch.input());
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

// (v − mean) / std of each of so many groups
std::vector<real> normalized(std::vector<real> v, int groups = 1) {
  const size_t n = v.size() / static_cast<size_t>(groups);
  for (size_t g = 0; g < v.size(); g += n) {
    real mean = 0, variance = 0;
    for (size_t c = g; c < g + n; ++c) mean += v[c] / static_cast<real>(n);
    for (size_t c = g; c < g + n; ++c) variance += (v[c] - mean) * (v[c] - mean) / static_cast<real>(n);
    for (size_t c = g; c < g + n; ++c) v[c] = (v[c] - mean) / std::sqrt(variance);
  }
  return v;
}

std::vector<real> sum_of(std::vector<real> a, const std::vector<real>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// W x + b; some layers have no b.
std::vector<real> linear(Model& model, const std::string& name, const std::vector<real>& x) {
  const Parameter *weight = model.parameters.find(name + ".weight"), *bias = model.parameters.find(name + ".bias");
  std::vector<real> y;
  for (int64_t out = 0; out < weight->shape.at(0); ++out) {
    y.push_back(bias ? bias->value[out] : 0);
    for (size_t k = 0; k < x.size(); ++k) y.back() += weight->value[static_cast<size_t>(out) * x.size() + k] * x[k];
  }
  return y;
}

// The embedding of patch n of a sample.
std::vector<real> embedded(Model& model, const std::vector<real>& patches, int sample, int n) {
  const Parameter& positions = *model.parameters.find("position_embedding.weight");
  const auto P = model.parameters.find("patch_embedding.weight")->shape.back(), D = positions.shape.back();
  const auto first = patches.begin() + (sample * static_cast<int64_t>(patches.size()) / P / 2 + n) * P;
  return sum_of(linear(model, "patch_embedding", {first, first + P}),
                {positions.value + n * D, positions.value + (n + 1) * D});
}

// The definitions, element by element and pair by pair (equations 2 and 3), with a network f that is given [x_i; x_j].
void set_definitions(Test& test) {
  const auto ops = make_cpu(1);
  const int N = 6, D = 4, H = 5;
  for (const bool pairs : {false, true}) {
    const ModelCase row = pairs
                              ? set_case("relation_network", N, D, H, "\"activation\":\"relu\",\"form\":\"quadratic\"")
                              : set_case("deep_sets", N, D, H, "\"activation\":\"relu\"");
    const auto model = make_model(row.model, Json::parse(row.config, row.name), *ops);
    draw_weights(model->parameters, real(0.5));
    const ModelBatch batch(*ops, row, model->classes(), 5);
    const std::vector<real> patches = batch.patches.download();
    std::vector<real> y(D);  // the mean of f([x_i; x_j]), or f([x_i])
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < (pairs ? N : 1); ++j) {
        const std::vector<real> x = embedded(*model, patches, 0, i);
        std::vector<real> in =
            pairs ? sum_of(linear(*model, "left", x), linear(*model, "right", embedded(*model, patches, 0, j)))
                  : linear(*model, "in", x);
        for (real& v : in) v = std::max(v, real(0));
        const std::vector<real> f = linear(*model, "out", in);
        for (size_t d = 0; d < f.size(); ++d) y[d] += f[d] / (pairs ? N * N : N);
      }
    near(test, row.model, logits_of(*ops, *model, batch.sample(*ops, 0).input()), linear(*model, "head", normalized(y)),
         TOLERANCE);
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
    const ModelBatch batch(*ops, row, 4, 5);
    const std::vector<real> patches = batch.patches.download();
    model->forward(batch.input());
    const Parameter &cls = *model->parameters.find("cls_token"),
                    &rows = *model->parameters.find("position_embedding.weight");
    std::vector<std::vector<real>> p, q;
    for (int t = 0; t < T; ++t) {
      const std::vector<real> x =
          normalized(t < N ? embedded(*model, patches, 1, t)
                           : sum_of({cls.value, cls.value + D}, {rows.value + N * D, rows.value + T * D}));
      p.push_back(linear(*model, "blocks.0.left", x));
      q.push_back(linear(*model, "blocks.0.right", x));
      if (norm == "approximate") p[t] = normalized(p[t]), q[t] = normalized(q[t]);
    }
    std::vector<real> expected;
    for (int j = 0; j < T; ++j) {
      real total = 0;
      for (int i = 0; i < T; ++i) {
        std::vector<real> sum = sum_of(p[i], q[j]);
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
  test.run("relation_network in linear time", petroglyph::relation_network_forms);
  test.run("set networks by definition", petroglyph::set_definitions);
  test.run("order", petroglyph::order);
  test.run("attention maps", petroglyph::attention_maps);
  test.run("maps of relation networks", petroglyph::relation_maps);
  return test.finish();
}
