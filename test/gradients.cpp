// Every gradient against central differences, in double precision (this program is built with REAL=double).
//
// An operation: each element of each input, with a random cotangent c: ∂(Σ c·output)/∂x ≈ (f(x+ε) − f(x−ε)) / 2ε.
// A model: the loss along random directions of all parameters together, and along each parameter's own gradient.
// The relative error must stay below 1e-6 of the gradient's norm. The reference has the CPU's bits here, too, and so
// its gradients.

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "cases.h"
#include "check.h"
#include "cpu/make_cpu.h"
#include "gpu_checks.h"
#include "math/random.h"

namespace petroglyph {
namespace {

static_assert(sizeof(real) == sizeof(double), "this test is built with REAL=double");

constexpr double TOLERANCE = 1e-6;
constexpr size_t MOST_ELEMENTS = 1000;
constexpr double STEP = 1e-5;  // central differences: error ~ STEP² in the mathematics, 1e-16/STEP in the arithmetic

// Σ cotangent · output over all outputs of one forward run
double objective(Ops& ops, const OpCase& row, Arrays& arrays) {
  row.forward(ops, arrays);
  double sum = 0;
  for (const Operand& o : row.operands) {
    if (o.role != Role::OUTPUT && o.role != Role::UPDATED) continue;
    const std::vector<real> value = arrays.tensor(o.name).download(),
                            cotangent = arrays.tensor("d" + o.name).download();
    for (size_t i = 0; i < value.size(); ++i) sum += value[i] * cotangent[i];
  }
  return sum;
}

// The gradient of one operand by central differences. A relu's kink within a step shows as a difference that depends on
// the
// step: such elements are halved until two steps agree.
// Of a large operand every `stride`-th element is checked.
std::vector<double> by_differences(Ops& ops, const OpCase& row, uint64_t seed, const Operand& o, size_t stride) {
  std::vector<double> gradient;
  Arrays arrays(ops, row, seed);
  const std::vector<real> start = arrays.tensor(o.name).download();
  std::vector<std::pair<std::string, std::vector<real>>> updated;  // what forward adds to, as it was
  for (const Operand& u : row.operands)
    if (u.role == Role::UPDATED) updated.push_back({u.name, arrays.tensor(u.name).download()});
  const auto at = [&](size_t i, double x) {
    for (const auto& [name, value] : updated) arrays.tensor(name).upload(value);
    std::vector<real> moved = start;
    moved[i] = x;
    arrays.tensor(o.name).upload(moved);
    return objective(ops, row, arrays);
  };
  const auto slope = [&](size_t i, double step) {
    return (at(i, start[i] + step) - at(i, start[i] - step)) / (2 * step);
  };
  for (size_t i = 0; i < start.size(); i += stride) {
    double step = STEP, found = slope(i, step);
    for (int tries = 0; row.kinked && tries < 4; ++tries) {
      const double finer = slope(i, step / 8);
      if (std::fabs(finer - found) < 1e-7) break;
      step /= 8;
      found = finer;
    }
    gradient.push_back(found);
  }
  return gradient;
}

void check_op(Test& test, Ops& ops, const OpCase& row) {
  constexpr uint64_t SEED = 7;
  Arrays arrays(ops, row, SEED);
  std::map<std::string, std::vector<real>> before;
  for (const Operand& o : row.operands)
    if (o.role == Role::PARAMETER) before[o.name] = arrays.tensor("d" + o.name).download();
  row.forward(ops, arrays);
  row.backward(ops, arrays);
  for (const Operand& o : row.operands) {
    if (o.role != Role::INPUT && o.role != Role::PARAMETER) continue;
    const std::vector<real> ours = arrays.tensor("d" + o.name).download();
    const size_t stride = ours.size() / MOST_ELEMENTS + 1;
    const std::vector<double> expected = by_differences(ops, row, SEED, o, stride);
    double difference = 0, norm = 0, largest = -1;
    std::string where;  // they differ most
    for (size_t n = 0; n < expected.size(); ++n) {
      const size_t i = n * stride;
      const double grown = o.role == Role::PARAMETER ? ours[i] - before[o.name][i] : ours[i];
      const double off = std::fabs(grown - expected[n]);
      difference += off * off;
      norm += expected[n] * expected[n];
      if (off <= largest) continue;
      largest = off;
      where = text("element %zu: %.9e (%a), by differences %.9e", i, grown, grown, expected[n]);
    }
    const double distance = std::sqrt(difference / norm);
    test.check("d" + o.name, norm > 0 && distance < TOLERANCE,
               text("relative error %.2e; %s", distance, where.c_str()));
  }
}

double loss(Ops& ops, Model& model, const ModelBatch& batch, Tensor& losses, real* dlogits) {
  const int64_t rows = model.logit_rows(batch.input());
  const real* logits = model.forward(batch.input());
  ops.cross_entropy(losses.data(), dlogits, logits, batch.targets.data(), batch.scale, rows, model.classes());
  double sum = 0;
  for (const real l : losses.download()) sum += l;
  return sum * batch.scale;
}

void check_model(Test& test, Ops& ops, const ModelCase& row) {
  const auto model = make_model(row.model, Json::parse(row.config, row.name), ops);
  Parameters& parameters = model->parameters;
  // Random everywhere, biases and gains too, so that no gradient is zero by luck.
  std::vector<real> start(static_cast<size_t>(parameters.padded_size()));
  for (const Parameter& p : parameters.list())
    for (int64_t i = 0; i < p.size(); ++i)
      start[static_cast<size_t>(p.begin + i)] =
          (p.init.value(0, 0, 0) == 1 ? 1 : 0) + 0.3 * normal(3, stream_of(p.name), 0, static_cast<uint64_t>(i));
  parameters.upload_all(start);
  const ModelBatch batch(ops, row, model->classes(), 5);
  const int64_t rows = model->logit_rows(batch.input());
  Tensor losses(ops, {rows}), dlogits(ops, {rows, model->classes()});
  parameters.zero_gradients();
  loss(ops, *model, batch, losses, dlogits.data());
  model->backward(batch.input(), dlogits.data());
  const std::vector<real> gradient = parameters.gradients().download();

  // A direction d: compare gradient·d with the difference of the loss along d.
  const auto along = [&](const std::string& name, const std::vector<double>& direction) {
    const auto at = [&](double step) {
      std::vector<real> moved = start;
      for (size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[i];
      parameters.upload_all(moved);
      return loss(ops, *model, batch, losses, nullptr);
    };
    double expected = 0;
    for (size_t i = 0; i < direction.size(); ++i) expected += gradient[i] * direction[i];
    // Richardson: two steps cancel the error of second order.
    const double step = 1e-4, one = (at(step) - at(-step)) / (2 * step),
                 two = (at(2 * step) - at(-2 * step)) / (4 * step);
    const double found = (4 * one - two) / 3, error = std::fabs(found - expected) / std::fabs(expected);
    test.check(name, std::fabs(expected) > 1e-9 && error < TOLERANCE,
               text("%.9e along the gradient, %.9e by differences", expected, found));
  };
  for (const Parameter& p : parameters.list()) {
    std::vector<double> direction(start.size());
    double norm = 0;
    for (int64_t i = p.begin; i < p.begin + p.size(); ++i)
      norm += gradient[static_cast<size_t>(i)] * gradient[static_cast<size_t>(i)];
    for (int64_t i = p.begin; i < p.begin + p.size(); ++i)
      direction[static_cast<size_t>(i)] = gradient[static_cast<size_t>(i)] / std::sqrt(norm);
    along(p.name, direction);
  }
  for (int trial = 0; trial < 3; ++trial) {
    std::vector<double> direction(start.size());
    for (const Parameter& p : parameters.list())
      for (int64_t i = p.begin; i < p.begin + p.size(); ++i)
        direction[static_cast<size_t>(i)] = 0.1 * normal(11, 1, static_cast<uint32_t>(trial), static_cast<uint64_t>(i));
    along(text("random direction %d", trial + 1), direction);
  }
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  const auto ops = make_cpu(1);
  for (const OpCase& row : op_cases())
    if (row.backward) test.run(row.name, [&](Test& t) { check_op(t, *ops, row); });
  for (const ModelCase& row : model_cases()) test.run(row.name, [&](Test& t) { check_model(t, *ops, row); });
  for (const char* group : {"table", "models", "streams"})
    test.run(std::string("reference, ") + group, [&](Test& t) { compare(t, group, *ops); });
  test.run("of every model", [&](Test& t) {
    const std::vector<ModelCase> rows = model_cases();
    for (const std::string& name : model_names())
      t.check(name, std::any_of(rows.begin(), rows.end(), [&](const ModelCase& row) { return row.model == name; }));
  });
  return test.finish();
}
