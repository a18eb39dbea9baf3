// What the papers prove equal is equal: two ways of computing one function, on random configurations and weights. Rounding is all
// that may differ, so this program is built with REAL=double.

#include <cmath>

#include "cases.h"
#include "check.h"
#include "random.h"
#include "text.h"

namespace petroglyph {
namespace {

static_assert(sizeof(real) == sizeof(double), "this test is built with REAL=double");

constexpr double TOLERANCE = 1e-11;  // of the norm of all compared numbers; rounding alone is about 1e-14

double distance(const std::vector<real>& found, const std::vector<real>& expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

// Logits, and the gradients of Σ logits∘dlogits with random dlogits.
struct Results {
  std::vector<real> logits, gradients;
};

Results results(Ops& ops, const ModelCase& row, real deviation) {
  const auto model = make_model(row.model, Json::parse(row.config, row.name), ops);
  Parameters& parameters = model->parameters;
  std::vector<real> weights(static_cast<size_t>(parameters.room())), dlogits;
  for (const Parameter& p : parameters.list())
    for (int64_t i = 0; i < p.size(); ++i)
      weights[static_cast<size_t>(p.begin + i)] = deviation * normal(3, stream_of(p.name), 0, static_cast<uint64_t>(i));
  parameters.upload_all(weights);
  const ModelBatch batch(ops, row, model->classes(), 5);
  const int64_t size = model->logit_rows(batch.input()) * model->classes();
  for (int64_t i = 0; i < size; ++i) dlogits.push_back(normal(4, stream_of("dlogits"), 0, static_cast<uint64_t>(i)));
  Tensor on_device(ops, {size});
  on_device.upload(dlogits);
  Results r;
  r.logits.resize(static_cast<size_t>(size));
  ops.download(r.logits.data(), model->forward(batch.input()), r.logits.size() * sizeof(real));
  model->backward(batch.input(), on_device.data());
  r.gradients = parameters.gradients().download();
  return r;
}

void compare(Test& test, const std::string& name, const Results& found, const Results& expected) {
  const double logits = distance(found.logits, expected.logits),
               gradients = distance(found.gradients, expected.gradients);
  test.check(name + ": logits", logits < TOLERANCE, text("relative distance %.2e", logits));
  test.check(name + ": gradients", gradients < TOLERANCE, text("relative distance %.2e", gradients));
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

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  petroglyph::Test test(argc, argv);
  test.run("linear_causal_rn is causal_rn", petroglyph::linear_form);
  return test.finish();
}
