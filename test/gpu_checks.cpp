// The comparisons of every operation and model with the reference. gpu_checks.h lists the programs that run them.
#include "gpu_checks.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "check.h"
#include "fingerprints.h"
#include "reference/reference.h"

namespace petroglyph {
namespace {

constexpr uint64_t SEED = 17;

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

// Three training steps on one batch. Then the logits and the attention maps.
std::vector<Written> train(const ModelCase& row, Ops& ops) {
  const Trained after = trained(row, ops, SEED);
  Model& model = *after.model;
  const ModelBatch batch(ops, row, model.classes(), SEED);
  const std::vector<real> logits = logits_of(ops, model, batch.input());
  return {{"losses of step 3", after.losses, {}},
          {"weights", model.parameters.values().download(), {}},
          {"logits", logits, {}},
          {"maps", attention_maps(row, Json::parse(row.config, row.name), model), {}}};
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
    const Tokens ids = some_of(ops, tokens, row.batch, t, t + n);
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
  std::vector<GpuCheck> checks;
  for (const OpCase& row : boundary_cases(group))
    checks.push_back(
        {row.name, [row](Ops& ops) { return written_by(row, ops, SEED, true); }, row.once, row.nan_spreads()});
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

void compare(Test& test, const std::string& group, Ops& device, bool all) {
  for (const GpuCheck& check : gpu_checks(group)) {
    if (check.once && !all) continue;
    const std::string difference = check.difference(device);
    test.check(check.name, difference.empty(), difference);
  }
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
