// Compares a model with fixtures that an independent implementation made in double precision (test/oracle/README.md).
//
//   build/test/oracle [FILE…]  all of test/oracle without arguments; status 0 only if every tensor of every file agrees
//
// One line a tensor: its relative distance ‖ours − oracle‖ / ‖oracle‖ and what is allowed.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "check.h"
#include "cpu/make_cpu.h"
#include "models/model.h"

namespace petroglyph {
namespace {

constexpr bool DOUBLE = sizeof(real) == sizeof(double);
constexpr double OUTPUT_TOLERANCE = DOUBLE ? 1e-9 : 2e-5;
constexpr double GRADIENT_TOLERANCE = DOUBLE ? 1e-9 : 2e-4;
constexpr size_t FIXTURES = 54;          // in test/oracle: one that is lost would not be missed
constexpr double TINY = 1e-12;           // an oracle norm below this is compared absolutely
constexpr double TINY_TOLERANCE = 1e-7;  // with this

// A NaN fails this check too.
void compare(Test& test, const std::string& name, const std::vector<double>& expected, const std::vector<real>& actual,
             double tolerance) {
  double difference = actual.size() == expected.size() ? 0 : INFINITY, norm = 0;
  for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  const bool tiny = std::sqrt(norm) < TINY;
  const double distance = std::sqrt(tiny ? difference : difference / norm), allowed = tiny ? TINY_TOLERANCE : tolerance;
  test.check(text("%s: %.2e of %.0e%s", name.c_str(), distance, allowed, tiny ? " absolute" : ""), distance <= allowed);
}

// Every parameter of the file into the model; they must be the same set with the same shapes.
void load_parameters(Model& model, const SafetensorsFile& file) {
  for (const Parameter& parameter : model.parameters.list())
    if (!file.find("param/" + parameter.name)) throw Error("param/" + parameter.name + " is missing from the file");
  for (const std::string& name : file.names()) {
    if (name.rfind("param/", 0) != 0) continue;
    const Parameter* parameter = model.parameters.find(name.substr(6));
    if (!parameter || parameter->shape != file.entry(name).shape)
      throw Error(name + " is unknown to the model, or has another shape there");
    const std::vector<float> values = file.read_as_float(name);
    model.parameters.upload(*parameter, std::vector<real>(values.begin(), values.end()));
  }
}

template <class T>
std::vector<T> read(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsFile::Entry& entry = file.entry(name);
  std::vector<T> values(static_cast<size_t>(entry.count()));
  if (values.size() * sizeof(T) != entry.end - entry.begin) throw Error(name + ": a tensor of another type");
  std::memcpy(values.data(), file.data_of(entry), values.size() * sizeof(T));
  return values;
}

// input/tokens or input/patches on the device
struct FixtureInput {
  FixtureInput(const SafetensorsFile& file, Ops& ops) {
    const bool images = file.find("input/patches") != nullptr;
    shape = file.entry(images ? "input/patches" : "input/tokens").shape;
    if (images) {
      const std::vector<float> values = file.read_as_float("input/patches");
      patches = Tensor(ops, shape);
      patches.upload(std::vector<real>(values.begin(), values.end()));
    } else {
      tokens = Tokens(ops, shape);
      tokens.upload(read<int32_t>(file, "input/tokens"));
    }
  }
  Input input() const {
    return {tokens.data(), static_cast<int>(shape.at(0)), static_cast<int>(shape.at(1)), patches.data()};
  }

  Shape shape;
  Tokens tokens;
  Tensor patches;
};

// The fixture's loss: cross-entropy against its targets, or binary cross-entropy against its sets. Returns what the sum
// of the losses is multiplied by to give their mean.
real apply_loss(const SafetensorsFile& file, Ops& ops, Tensor& losses, Tensor& dlogits, const real* logits,
                int64_t rows, int V) {
  if (file.find("input/target_sets")) {
    const std::vector<float> values = file.read_as_float("input/target_sets");
    Tensor sets(ops, {rows, V});
    sets.upload(std::vector<real>(values.begin(), values.end()));
    const real scale = 1 / static_cast<real>(rows * V);
    ops.binary_cross_entropy(losses.data(), dlogits.data(), logits, sets.data(), scale, rows, V);
    return scale;
  }
  const std::vector<int32_t> targets = read<int32_t>(file, "input/targets");
  if (static_cast<int64_t>(targets.size()) != rows)
    throw Error(
        text("input/targets has %zu ids, the logits have %lld rows", targets.size(), static_cast<long long>(rows)));
  Tokens ids(ops, {rows});
  ids.upload(targets);
  const real scale = 1 / static_cast<real>(std::count_if(targets.begin(), targets.end(), [](int t) { return t >= 0; }));
  ops.cross_entropy(losses.data(), dlogits.data(), logits, ids.data(), scale, rows, V);
  return scale;
}

void compare_file(Test& test, const std::string& path) {
  const SafetensorsFile file(path);
  const auto ops = make_cpu(0);
  const auto model = make_model(file.metadata("model"), Json::parse(file.metadata("config"), path), *ops);
  load_parameters(*model, file);

  const FixtureInput fixture(file, *ops);
  const Input input = fixture.input();
  const real* logits_data = model->forward(input);
  const int64_t rows = model->logit_rows(input);
  const int V = model->classes();
  std::vector<real> logits(static_cast<size_t>(rows * V));
  ops->download(logits.data(), logits_data, logits.size() * sizeof(real));
  compare(test, "output/logits", read<double>(file, "output/logits"), logits, OUTPUT_TOLERANCE);

  Tensor losses(*ops, {rows}), dlogits(*ops, {rows, V}), total(*ops, {1}), partial(*ops, {rows / 1024 + 2});
  const real scale = apply_loss(file, *ops, losses, dlogits, logits_data, rows, V);
  ops->sum(total.data(), partial.data(), losses.data(), rows);
  compare(test, "output/loss", read<double>(file, "output/loss"), {total.download()[0] * scale}, OUTPUT_TOLERANCE);

  model->parameters.zero_gradients();
  model->backward(input, dlogits.data());
  const std::vector<real> gradients = model->parameters.gradients().download();
  for (const Parameter& p : model->parameters.list())
    compare(test, "grad/" + p.name, read<double>(file, "grad/" + p.name),
            {gradients.begin() + p.begin, gradients.begin() + p.begin + p.size()}, GRADIENT_TOLERANCE);
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  std::vector<std::string> files(argv + 1, argv + argc);
  Test test(1, argv);
  if (files.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator("test/oracle"))
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
    test.run("test/oracle", [&] { test.equal("fixtures", files.size(), FIXTURES); });
  }
  std::sort(files.begin(), files.end());
  for (const std::string& path : files) test.run(path, [&] { compare_file(test, path); });
  return test.finish();
}
