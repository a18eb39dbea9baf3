// What is measured on trained models, against the fixtures test/oracle/*.json and against what must hold of any input.

#include <cmath>

#include "analysis/lemma1.h"
#include "analysis/pca.h"
#include "analysis/receptive_field.h"
#include "cases.h"
#include "check.h"
#include "random.h"
#include "text.h"
#include "train/safetensors.h"

namespace petroglyph {
namespace {

constexpr double TOLERANCE = 1e-9;  // of what is computed in double in every build
constexpr double MODEL_TOLERANCE = sizeof(real) == sizeof(double) ? 1e-9 : 2e-4;

Json fixture(const std::string& name) {
  const std::string path = "test/oracle/" + name;
  return Json::parse(read_bytes(path), path);
}

// The numbers of nested lists, one after another.
template <class T>
void flatten(const Json& json, std::vector<T>& numbers) {
  if (json.is(Json::Kind::Number)) return numbers.push_back(static_cast<T>(json.number()));
  for (const Json& item : json.items()) flatten(item, numbers);
}
template <class T = double>
std::vector<T> numbers(const Json& json) {
  std::vector<T> all;
  flatten(json, all);
  return all;
}

double distance(const std::vector<double>& found, const std::vector<double>& expected) {
  if (found.size() != expected.size()) return INFINITY;
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

void near(Test& test, const std::string& name, const std::vector<double>& found, const std::vector<double>& expected,
          double tolerance = TOLERANCE) {
  const double d = distance(found, expected);
  test.check(name, d <= tolerance, text("relative distance %.2e", d));
}

// ---- Lemma 1 --------------------------------------------------------------------------------------------------------

void lemma1(Test& test) {
  const Json file = fixture("lemma1.json");
  for (const Json& c : file.at("cases").items()) {
    const MatrixProductNetwork network(static_cast<int>(c.at("n").integer()));
    const std::string name = text("n = %d: ", network.n());
    test.equal(name + "W1", network.first(), numbers<int>(c.at("expected").at("W1")));
    test.equal(name + "W2", network.second(), numbers<int>(c.at("expected").at("W2")));
    for (const Json& product : c.at("products").items()) {
      const std::vector<int> a = numbers<int>(product.at("A")), b = numbers<int>(product.at("B"));
      test.equal(name + "hidden", network.hidden(a, b), numbers<int>(product.at("expected").at("hidden")));
      test.equal(name + "AB", network.multiply(a, b), numbers<int>(product.at("expected").at("AB")));
    }
  }
  test.throws("size", "lemma 1: matrices of 0 rows", [] { MatrixProductNetwork(0); });
  test.throws("shape", "a matrix of 3 numbers, expected 2×2", [] {
    MatrixProductNetwork(2).multiply({1, 0, 1}, {1, 0, 0, 1});
  });
  test.throws("entries", "0 and 1 only", [] { MatrixProductNetwork(1).multiply({2}, {1}); });
}

// The matrix of two strings, one behind the other, is the product of theirs, and the network finds it.
void transitions(Test& test) {
  for (const char* language : {"parity_check", "cycle_navigation", "even_pairs", "D_4", "Tomita_3", "Tomita_6"}) {
    const Automaton automaton = automaton_of(language);
    const MatrixProductNetwork network(automaton.states());
    bool right = true;
    for (uint32_t trial = 0; trial < 40; ++trial) {
      SymbolString first, second;
      for (uint32_t i = 0; i < 1 + trial % 7; ++i) {
        const Random4 random = philox(3, stream_of(language), trial, i);
        first.push_back(static_cast<int32_t>(below(random.word[0], static_cast<uint32_t>(automaton.symbols))));
        if (i < 3)
          second.push_back(static_cast<int32_t>(below(random.word[1], static_cast<uint32_t>(automaton.symbols))));
      }
      SymbolString both = first;
      both.insert(both.end(), second.begin(), second.end());
      right &= network.multiply(transition_matrix(automaton, first), transition_matrix(automaton, second)) ==
               transition_matrix(automaton, both);
    }
    test.check(language, right);
  }
  test.equal("parity of 1", transition_matrix(automaton_of("parity_check"), {1}), std::vector<int>{0, 1, 1, 0});
}

// ---- Principal components -------------------------------------------------------------------------------------------

void pca(Test& test) {
  const Json file = fixture("pca.json");
  const int rows = static_cast<int>(file.at("matrix").items().size());
  const std::vector<double> matrix = numbers(file.at("matrix"));
  const int columns = static_cast<int>(matrix.size()) / rows;
  const PrincipalComponents found = principal_components(matrix, rows, columns, 2);
  near(test, "loadings", found.loadings, numbers(file.at("expected").at("loadings")));
  near(test, "scores", found.scores, numbers(file.at("expected").at("scores")));
  near(test, "explained", found.explained, numbers(file.at("expected").at("explained")));
  test.throws("points", "principal components of 1 points", [] { principal_components({1, 2}, 1, 2, 1); });
  test.throws("components", "3 principal components of points with 2", [] {
    principal_components({1, 2, 3, 4}, 2, 2, 3);
  });
  const PrincipalComponents same = principal_components({1, 2, 1, 2}, 2, 2, 1);
  CHECK(same.explained[0] == 0 && same.scores[0] == 0);
}

double random_number(const char* name, uint64_t i) { return normal(7, stream_of(name), 0, i); }

// Vectors of length one, orthogonal, that the matrix only stretches, the largest value first.
void check_eigen(Test& test, const std::string& name, const std::vector<double>& matrix, int n) {
  const Eigen eigen = symmetric_eigen(matrix, n);
  double worst = 0, norm = 0, product = 0;
  for (const double x : matrix) norm += x * x;
  norm = std::sqrt(norm);
  const auto at = [&](const std::vector<double>& m, int i, int j) { return m[static_cast<size_t>(i * n + j)]; };
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      double dot = 0, image = 0;
      for (int k = 0; k < n; ++k) {
        dot += at(eigen.vectors, i, k) * at(eigen.vectors, j, k);
        image += at(matrix, j, k) * at(eigen.vectors, i, k);
      }
      product = std::max(product, std::abs(dot - (i == j)));
      worst = std::max(worst, std::abs(image - eigen.values[static_cast<size_t>(i)] * at(eigen.vectors, i, j)));
    }
  test.check(name + ": orthogonal", product < 1e-13 * n, text("off by %.2e", product));
  test.check(name + ": eigenvectors", worst <= 1e-14 * n * norm, text("off by %.2e of %.2e", worst, norm));
  test.check(name + ": in order", std::is_sorted(eigen.values.rbegin(), eigen.values.rend()));
}

void eigen(Test& test) {
  for (const int n : {1, 2, 3, 7, 40}) {
    std::vector<double> matrix(static_cast<size_t>(n * n)), low(matrix.size()), diagonal(matrix.size());
    for (int i = 0; i < n; ++i) {
      diagonal[static_cast<size_t>(i * n + i)] = i % 3 - 1;  // equal ones too
      for (int j = 0; j <= i; ++j) {
        const double x = random_number("matrix", static_cast<uint64_t>(i * n + j));
        matrix[static_cast<size_t>(i * n + j)] = matrix[static_cast<size_t>(j * n + i)] = x;
        const double y =
            random_number("vector", static_cast<uint64_t>(i)) * random_number("vector", static_cast<uint64_t>(j));
        low[static_cast<size_t>(i * n + j)] = low[static_cast<size_t>(j * n + i)] = 1e-9 * y;  // of rank one, and small
      }
    }
    check_eigen(test, text("random %d", n), matrix, n);
    check_eigen(test, text("rank one %d", n), low, n);
    check_eigen(test, text("diagonal %d", n), diagonal, n);
  }
  const Eigen known = symmetric_eigen({2, 1, 1, 2}, 2);
  CHECK(std::abs(known.values[0] - 3) < 1e-15 && std::abs(known.values[1] - 1) < 1e-15);
  CHECK(std::abs(std::abs(known.vectors[0]) - std::sqrt(0.5)) < 1e-15 && known.vectors[0] * known.vectors[1] > 0);
}

// ---- Receptive field ------------------------------------------------------------------------------------------------

void receptive_fields(Test& test) {
  const auto ops = make_cpu(2);
  const Json file = fixture("receptive_field.json");
  for (const Json& c : file.at("cases").items()) {
    const std::string path = "test/oracle/" + c.at("fixture").string();
    const SafetensorsFile weights(path);
    const Json config = Json::parse(weights.metadata("config"), path);
    const auto model = make_model(weights.metadata("model"), config, *ops);
    for (const Parameter& p : model->parameters.list()) {
      const std::vector<float> values = weights.read_as_float("param/" + p.name);
      model->parameters.upload(p, {values.begin(), values.end()});
    }
    const std::vector<int32_t> tokens = numbers<int32_t>(c.at("tokens"));
    const int batch = static_cast<int>(c.at("tokens").items().size());
    const ReceptiveField field = receptive_field(weights.metadata("model"), config, *model, *ops, tokens, batch,
                                                 static_cast<int>(tokens.size()) / batch);
    const Json& expected = c.at("expected");
    near(test, path + ": norms", field.norms, numbers(expected.at("gradient_norms")), MODEL_TOLERANCE);
    near(test, path + ": cumulative", field.cumulative, numbers(expected.at("cumulative")), MODEL_TOLERANCE);
  }
}

// Where all tokens are different, the gradients stand in the model's own table.
std::vector<double> own_norms(Model& model, Ops& ops, const std::vector<int32_t>& tokens) {
  Tokens ids(ops, {1, static_cast<int64_t>(tokens.size())});
  ids.upload(tokens);
  const Input input{ids.data(), 1, static_cast<int>(tokens.size())};
  model.forward(input);
  const int64_t rows = model.logit_rows(input), V = model.classes();
  std::vector<real> cotangent(static_cast<size_t>(rows * V));
  std::fill(cotangent.end() - V, cotangent.end(), real(1));
  Tensor dlogits(ops, {rows, V});
  dlogits.upload(cotangent);
  model.parameters.zero_gradients();
  model.backward(input, dlogits.data());
  const Parameter* table = model.parameters.find("token_embedding.weight");
  const Parameter& p = table ? *table : *model.parameters.find("cell.input.weight");
  const std::vector<real> all = model.parameters.gradients().download();
  const int64_t vocab = p.shape.at(table ? 0 : 1), width = p.size() / vocab;
  std::vector<double> norms;
  for (const int32_t token : tokens) {
    double square = 0;
    for (int64_t c = 0; c < width; ++c) {
      const double g = all[static_cast<size_t>(p.begin + (table ? token * width + c : c * vocab + token))];
      square += g * g;
    }
    norms.push_back(std::sqrt(square));
  }
  return norms;
}

void any_model(Test& test) {
  const auto ops = make_cpu(2);
  for (const ModelCase& row : model_cases()) {
    if (row.patch_size > 0) continue;
    const Json config = Json::parse(row.config, row.name);
    const auto model = make_model(row.model, config, *ops);
    std::vector<real> weights(static_cast<size_t>(model->parameters.room()));
    for (const Parameter& p : model->parameters.list())
      for (int64_t i = 0; i < p.size(); ++i)
        weights[static_cast<size_t>(p.begin + i)] =
            (p.init.kind == Init::ONES ? 1 : 0) + real(0.2) * normal(3, stream_of(p.name), 0, static_cast<uint64_t>(i));
    model->parameters.upload_all(weights);
    std::vector<int32_t> tokens;
    const int vocab = static_cast<int>(config.at("vocab").integer());
    for (int i = 0; i < std::min(vocab, row.length); ++i) tokens.push_back((i * 5 + 2) % vocab);
    if (vocab % 5 == 0) continue;  // the tokens would not all be different
    const std::vector<double> expected = own_norms(*model, *ops, tokens);
    const ReceptiveField field =
        receptive_field(row.model, config, *model, *ops, tokens, 1, static_cast<int>(tokens.size()));
    near(test, row.name, field.norms, expected, 1e-5);
    test.check(row.name + ": ends at one", std::abs(field.cumulative.back() - 1) < 1e-12);
  }
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  test.run("lemma 1", lemma1);
  test.run("transitions", transitions);
  test.run("pca", pca);
  test.run("eigen", eigen);
  test.run("receptive field", receptive_fields);
  test.run("receptive field of any model", any_model);
  return test.finish();
}
