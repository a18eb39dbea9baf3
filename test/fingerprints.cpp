#include "fingerprints.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "base/checksum.h"
#include "base/json.h"
#include "base/text.h"
#include "cases.h"

namespace petroglyph {

SmallRun::SmallRun(std::unique_ptr<Ops> device, int accumulate, int batch, int shards,
                   const std::shared_ptr<Ranks>& ranks)
    : task(5),
      ops(std::move(device)),
      model(make_model(
          "causal_rn",
          Json::parse("{\"vocab\":29,\"context\":12,\"width\":36,\"hidden\":40,\"layers\":2,\"heads\":1,"
                      "\"activation\":\"exp\",\"pre_activation_norm\":\"exact\",\"post_reduction_norm\":true,"
                      "\"causal\":true}",
                      "small"),
          *ops)),
      optimizer(model->parameters, *ops, {}),
      trainer(*model, task, optimizer, *ops, FINGERPRINT_SEED, batch, accumulate, shards, ranks) {
  model->parameters.initialize(FINGERPRINT_SEED);
}

void SmallRun::steps(int64_t first, int64_t last) {
  const Schedule schedule{1e-3, 10, Schedule::Shape::COSINE, 1e-5, 20};
  for (int64_t step = first; step < last; ++step) trainer.step(step, schedule.at(step));
}

std::string SmallRun::fingerprint() const {
  return text("%016llx", static_cast<unsigned long long>(model->parameters.fingerprint()));
}

Trained trained(const ModelCase& row, Ops& ops, uint64_t seed) {
  Trained trained{make_model(row.model, Json::parse(row.config, row.name), ops), {}};
  Model& model = *trained.model;
  model.parameters.initialize(seed);
  Optimizer optimizer(model.parameters, ops, {});
  const ModelBatch batch(ops, row, model.classes(), seed);
  const int64_t rows = model.logit_rows(batch.input());
  Tensor losses(ops, {rows}), dlogits(ops, {rows, model.classes()});
  for (int step = 0; step < 3; ++step) {
    model.parameters.zero_gradients();
    const real* logits = model.forward(batch.input());
    ops.cross_entropy(losses.data(), dlogits.data(), logits, batch.targets.data(), batch.scale, rows, model.classes());
    model.backward(batch.input(), dlogits.data());
    optimizer.step(step, 0.01);
  }
  trained.losses = losses.download();
  return trained;
}

namespace {

std::string op_fingerprint(const OpCase& row, const MakeOps& make) {
  Checksum checksum;
  for (Written& array : written_by(row, *make(), FINGERPRINT_SEED)) {
    for (real& x : array.reals)
      if (std::isnan(x)) x = std::numeric_limits<real>::quiet_NaN();
    checksum.update(array.reals.data(), array.reals.size() * sizeof(real));
  }
  return checksum.hex();
}

std::string model_fingerprint(const ModelCase& row, const MakeOps& make) {
  const auto ops = make();
  return text("%016llx",
              static_cast<unsigned long long>(trained(row, *ops, FINGERPRINT_SEED).model->parameters.fingerprint()));
}

std::string run_fingerprint(const MakeOps& make, int accumulate) {
  SmallRun run(make(), accumulate);
  run.steps(0, 20);
  return run.fingerprint();
}

std::map<std::string, std::string> read_golden() {
  std::istringstream lines(read_file("test/golden.txt"));
  std::map<std::string, std::string> golden;
  for (std::string line; std::getline(lines, line);) golden[line.substr(18)] = line.substr(0, 16);
  return golden;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> all_fingerprints(const MakeOps& make) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& rows : {op_cases(), special_cases()})
    for (const OpCase& row : rows) all.push_back({row.name, op_fingerprint(row, make)});
  for (const ModelCase& row : model_cases()) all.push_back({row.name, model_fingerprint(row, make)});
  all.push_back({"copying, 20 steps", run_fingerprint(make, 1)});
  all.push_back({"copying, 20 steps of 2 batches", run_fingerprint(make, 2)});
  return all;
}

void against_golden(Test& test, const MakeOps& make, NanSpread nan_spread) {
  auto golden = read_golden();
  std::set<std::string> left_out;
  for (const OpCase& row : special_cases())
    if (nan_spread == NanSpread::LEFT_OUT && row.nan_spreads()) left_out.insert(row.name);
  for (const auto& [name, fingerprint] : all_fingerprints(make)) {
    if (left_out.count(name) != 0) {
      golden.erase(name);
      continue;
    }
    const auto expected = golden.find(name);
    test.check(name, expected != golden.end() && expected->second == fingerprint,
               fingerprint + ", golden " + (expected == golden.end() ? "has none" : expected->second));
    golden.erase(name);
  }
  test.equal("lines of test/golden.txt that nothing makes any more", golden.size(), size_t{0});
}

}  // namespace petroglyph
