// What is measured on trained models and drawn from their logits, against the fixtures test/oracle/*.json and against
// what must hold of any input.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "analysis/clusters.h"
#include "analysis/lemma1.h"
#include "analysis/neuron_types.h"
#include "analysis/order.h"
#include "analysis/pca.h"
#include "analysis/power_law.h"
#include "analysis/receptive_field.h"
#include "analysis/token_counts.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "cases.h"
#include "check.h"
#include "cpu/make_cpu.h"
#include "generation/sampling.h"
#include "math/random.h"
#include "ops/dct_plan.h"

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

// ---- Lemma 1 --------------------------------------------------------------------------------------------------------

void lemma1(Test& test) {
  const Json file = fixture("lemma1.json");
  for (const Json& c : file.at("cases").items()) {
    const int n = static_cast<int>(c.at("n").integer());
    const MatrixProductNetwork network(n);
    const std::string name = text("n = %d: ", n);
    test.equal(name + "W1", network.first(), numbers<int>(c.at("expected").at("W1")));
    test.equal(name + "W2", network.second(), numbers<int>(c.at("expected").at("W2")));
    for (const Json& product : c.at("products").items()) {
      const std::vector<int> both =
          concatenated_by_two_heads(numbers<int>(product.at("A")), numbers<int>(product.at("B")));
      test.equal(name + "hidden", network.hidden(both), numbers<int>(product.at("expected").at("hidden")));
      test.equal(name + "AB", network.multiply(both), numbers<int>(product.at("expected").at("AB")));
    }
  }
}

// The matrix of two strings, one behind the other, is the product of theirs, and the network finds it.
void transitions(Test& test) {
  for (const char* language : {"parity_check", "cycle_navigation", "even_pairs", "D_4", "Tomita_3", "Tomita_6"}) {
    const Automaton automaton = automaton_of(language);
    const MatrixProductNetwork network(automaton.states());
    bool right = true, layers_right = true;
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
      right &= network.multiply(concatenated_by_two_heads(transition_matrix(automaton, first),
                                                          transition_matrix(automaton, second))) ==
               transition_matrix(automaton, both);
      layers_right &= composed_by_layers(network, automaton, both) == transition_matrix(automaton, both);
    }
    test.check(language, right);
    test.check(std::string(language) + ": layers of two heads and the network", layers_right);
  }
  test.equal("two heads", concatenated_by_two_heads({1, 0, 0, 1}, {0, 1, 1, 0}),
             std::vector<int>{1, 0, 0, 1, 0, 1, 1, 0});
  test.equal("parity of 1", transition_matrix(automaton_of("parity_check"), {1}), std::vector<int>{0, 1, 1, 0});
}

// ---- Principal components -------------------------------------------------------------------------------------------

void pca(Test& test) {
  const Json file = fixture("pca.json");
  const int rows = static_cast<int>(file.at("matrix").items().size());
  const std::vector<double> matrix = numbers(file.at("matrix"));
  const int columns = static_cast<int>(matrix.size()) / rows;
  const PrincipalComponents found = principal_components(matrix, rows, columns, 2);
  near(test, "loadings", found.loadings, numbers(file.at("expected").at("loadings")), TOLERANCE);
  near(test, "scores", found.scores, numbers(file.at("expected").at("scores")), TOLERANCE);
  near(test, "explained", found.explained, numbers(file.at("expected").at("explained")), TOLERANCE);
  test.throws("points", "principal components of 1 points", [] { principal_components({1, 2}, 1, 2, 1); });
  test.throws("3 principal components of points with 2", [] { principal_components({1, 2, 3, 4}, 2, 2, 3); });
  const PrincipalComponents same = principal_components({1, 2, 1, 2}, 2, 2, 1);
  CHECK(same.explained[0] == 0 && same.scores[0] == 0);
}

double random_number(const char* name, uint64_t i) { return normal(7, stream_of(name), 0, i); }

// Of points of every rank: directions of length one, orthogonal, the largest variance first; the centered points in
// these directions are uncorrelated, and their variances are the explained fractions of the whole.
void check_components(Test& test, const std::string& name, const std::vector<double>& points, int rows, int columns) {
  const PrincipalComponents found = principal_components(points, rows, columns, columns);
  const auto at = [&](const std::vector<double>& m, int i, int j) { return m[static_cast<size_t>(i * columns + j)]; };
  double total = 0, off = 0, correlated = 0, variances = 0;
  for (int j = 0; j < columns; ++j) {
    double mean = 0;
    for (int r = 0; r < rows; ++r) mean += at(points, r, j);
    mean /= rows;
    for (int r = 0; r < rows; ++r) total += (at(points, r, j) - mean) * (at(points, r, j) - mean);
  }
  for (int i = 0; i < columns; ++i)
    for (int j = 0; j < columns; ++j) {
      double product = 0, together = 0;
      for (int k = 0; k < columns; ++k) product += at(found.loadings, i, k) * at(found.loadings, j, k);
      for (int r = 0; r < rows; ++r) together += at(found.scores, r, i) * at(found.scores, r, j);
      off = std::max(off, std::abs(product - (i == j)));
      const double variance = i == j ? found.explained[static_cast<size_t>(i)] * total : 0;
      correlated = std::max(correlated, std::abs(together - variance));
      if (i == j) variances += together;
    }
  test.check(name + ": orthogonal", off < 1e-13 * columns, text("off by %.2e", off));
  test.check(name + ": uncorrelated", correlated <= 1e-13 * total, text("off by %.2e of %.2e", correlated, total));
  test.check(name + ": all of the variance", std::abs(variances - total) <= 1e-13 * columns * total);
  test.check(name + ": in order", std::is_sorted(found.explained.rbegin(), found.explained.rend()));
}

void components_of_any_rank(Test& test) {
  constexpr int ROWS = 50;
  for (const int columns : {1, 2, 3, 7, 40, 60}) {  // the last has fewer points than coordinates
    std::vector<double> points, line, axes;
    for (int r = 0; r < ROWS; ++r)
      for (int c = 0; c < columns; ++c) {
        points.push_back(random_number("matrix", static_cast<uint64_t>(r * columns + c)));
        line.push_back(1e-9 * random_number("row", static_cast<uint64_t>(r)) *
                       random_number("column", static_cast<uint64_t>(c)));  // of rank one, and small
        axes.push_back(r % columns == c ? 1 : 0);                           // equal variances
      }
    check_components(test, text("random %d", columns), points, ROWS, columns);
    check_components(test, text("rank one %d", columns), line, ROWS, columns);
    check_components(test, text("axes %d", columns), axes, ROWS, columns);
  }
}

// ---- Clusters -------------------------------------------------------------------------------------------------------

// Weights so large that what depends on something shows it.
std::unique_ptr<Model> random_model(const std::string& name, const std::string& config, Ops& ops) {
  auto model = make_model(name, Json::parse(config, name), ops);
  std::vector<real> weights(static_cast<size_t>(model->parameters.padded_size()));
  for (const Parameter& p : model->parameters.list())
    for (int64_t i = 0; i < p.size(); ++i)
      weights[static_cast<size_t>(p.begin + i)] = real(0.5) * normal(8, stream_of(p.name), 0, static_cast<uint64_t>(i));
  model->parameters.upload_all(weights);
  return model;
}

// A vector moves with the symbols begin … end−1, every one of them, and with no other.
void check_pieces(Test& test, const std::string& title, const std::string& name, const std::string& config, int chunk,
                  size_t layers) {
  const auto ops = make_cpu(1);
  const auto model = random_model(name, config, *ops);
  const SymbolString string = {0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1};
  const LayerVectors before = layer_vectors(*model, *ops, string, chunk);
  const size_t D = static_cast<size_t>(before.width);
  std::string wrong;
  for (int i = 0; i < static_cast<int>(string.size()); ++i) {
    SymbolString other = string;
    other[static_cast<size_t>(i)] ^= 1;
    const LayerVectors after = layer_vectors(*model, *ops, other, chunk);
    for (size_t n = 0; n < before.points.size(); ++n) {
      const LayerPoint& p = before.points[n];
      const bool moved = !std::equal(&before.x[n * D], &before.x[n * D] + D, &after.x[n * D]);
      if (moved != (p.begin <= i && i < p.end))
        wrong = text("layer %d, symbols %d to %d: symbol %d", p.layer, p.begin, p.end - 1, i);
    }
  }
  test.equal(title + ": vectors know their pieces", wrong, std::string());
  test.check(title + ": layers", before.points.back().layer + 1 == static_cast<int>(layers) &&
                                     before.points.back().begin == 0 && before.points.back().end == 13);
}

void pieces(Test& test) {
  const std::string sizes = "{\"vocab\":2,\"classes\":2,\"width\":8,\"hidden\":8,\"heads\":2,";
  const std::string gpt = sizes + "\"thickness\":1,\"norm\":\"affine\",\"readout\":\"last\",\"form\":";
  check_pieces(test, "chunked, C = 2", "regular_gpt", gpt + "\"chunked\",\"chunk\":2}", 2, 4);
  check_pieces(test, "chunked, C = 3", "regular_gpt", gpt + "\"chunked\",\"chunk\":3}", 3, 3);
  check_pieces(test, "dilated, C = 2", "regular_gpt", gpt + "\"dilated\",\"chunk\":2}", 2, 4);
  check_pieces(test, "dilated, C = 3", "regular_gpt", gpt + "\"dilated\",\"chunk\":3}", 3, 3);
  check_pieces(test, "transformer", "transformer",
               sizes +
                   "\"layers\":2,\"context\":13,\"causal\":true,\"position\":\"none\",\"norm\":\"plain\","
                   "\"qkv_bias\":true,\"out_bias\":true,\"gelu\":\"erf\",\"readout\":\"all\"}",
               0, 2);
  const auto ops = make_cpu(1);
  const auto rnn =
      random_model("rnn", "{\"vocab\":2,\"classes\":2,\"hidden\":4,\"cell\":\"elman\",\"readout\":\"last\"}", *ops);
  test.throws("a model without layers", "does not show its layers", [&] { layer_vectors(*rnn, *ops, {0, 1}, 0); });
}

// Points around the corners of a polygon.
std::vector<double> polygon(int corners, int points, double radius) {
  std::vector<double> x;
  for (int i = 0; i < points; ++i)
    for (int c = 0; c < 2; ++c)
      x.push_back(10 * std::cos(2 * 3.14159265 * (i % corners) / corners - c * 1.5707963) +
                  radius * normal(3, 1, static_cast<uint32_t>(i), static_cast<uint64_t>(c)));
  return x;
}

void clusters(Test& test) {
  test.equal("equal points", count_clusters(std::vector<double>(40, 0.5), 2, 12), 1);
  for (const int corners : {2, 3, 5, 8})
    test.equal(text("%d clusters", corners), count_clusters(polygon(corners, 400, 0.3), 2, 12), corners);
  std::vector<int> classes;
  for (int i = 0; i < 400; ++i) classes.push_back(i % 5);
  CHECK(nearest_to_own(polygon(5, 400, 0.1), 2, classes) == 1);
  const double loose = nearest_to_own(polygon(5, 400, 9), 2, classes);
  CHECK(loose > 0.2 && loose < 0.8);

  // What pieces do to the states of parity: one has two 1s, the other three.
  const Automaton parity = automaton_of("parity_check");
  const SymbolString string = {1, 0, 1, 1, 0};
  const PointClasses two = classes_of(parity, string, {{0, 0, 3}, {0, 0, 5}, {1, 3, 4}, {1, 4, 5}}, 7);
  CHECK(two.names.size() == 2 && two.of_point == (std::vector<int>{0, 1, 1, 0}));
  CHECK(two.names[0] == "states to 0 1" && two.names[1] == "states to 1 0");
  // Too many functions for the figure: the answers instead.
  const PointClasses answers = classes_of(parity, string, {{0, 0, 3}, {0, 0, 4}}, 1);
  CHECK(answers.names.size() == 2 && answers.names[1] == "answer 1" && answers.of_point == (std::vector<int>{0, 1}));
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
    std::vector<double> norms, cumulative;
    for (const Json& sample : c.at("tokens").items()) {
      const ReceptiveField field =
          receptive_field(weights.metadata("model"), config, *model, *ops, numbers<int32_t>(sample));
      norms.insert(norms.end(), field.norms.begin(), field.norms.end());
      cumulative.insert(cumulative.end(), field.cumulative.begin(), field.cumulative.end());
    }
    const Json& expected = c.at("expected");
    near(test, path + ": norms", norms, numbers(expected.at("gradient_norms")), MODEL_TOLERANCE);
    near(test, path + ": cumulative", cumulative, numbers(expected.at("cumulative")), MODEL_TOLERANCE);
  }
}

// If all tokens are different, the model's embedding table holds the gradient of each position. f is the sum of the
// last row's logits.
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
    std::vector<real> weights(static_cast<size_t>(model->parameters.padded_size()));
    for (const Parameter& p : model->parameters.list())
      for (int64_t i = 0; i < p.size(); ++i)
        weights[static_cast<size_t>(p.begin + i)] =
            (p.init.value(0, 0, 0) == 1 ? 1 : 0) +
            real(0.2) * normal(3, stream_of(p.name), 0, static_cast<uint64_t>(i));
    model->parameters.upload_all(weights);
    std::vector<int32_t> tokens;
    const int vocab = static_cast<int>(config.at("vocab").integer());
    for (int i = 0; i < std::min(vocab, row.length); ++i) tokens.push_back((i * 5 + 2) % vocab);
    if (vocab % 5 == 0) continue;  // the tokens would not all be different
    // Of a tied head the gradient is not what a position gave: the same model with a head of its own.
    Json untied = config;
    if (config.find("tied_head")) untied.set("tied_head", false);
    const auto twin = make_model(row.model, untied, *ops);
    std::vector<real> same(static_cast<size_t>(twin->parameters.padded_size()));
    for (const Parameter& p : twin->parameters.list()) {
      const Parameter* from = model->parameters.find(p.name);
      if (!from) from = model->parameters.find("token_embedding.weight");
      std::copy_n(weights.begin() + from->begin, p.size(), same.begin() + p.begin);
    }
    twin->parameters.upload_all(same);
    const std::vector<double> expected = own_norms(*twin, *ops, tokens);
    const ReceptiveField field = receptive_field(row.model, config, *model, *ops, tokens);
    near(test, row.name, field.norms, expected, 1e-5);
    test.check(row.name + ": ends at one", std::abs(field.cumulative.back() - 1) < 1e-12);
  }
}

// Two heads at three positions: one looks everywhere alike, the other does not.
void looks(Test& test) {
  const real third = real(1) / 3;
  const std::vector<real> map = {1, 0, 0, 0.5, 0.5, 0, third, third, third, 1, 0, 0, 0.25, 0.75, 0, 0.5, 0, 0.5};
  test.check("alike: two positions, and three",
             alike_weight(2) == 0.5 && std::abs(alike_weight(3) - (1.0 / 2 + 1.0 / 3) / 2) < 1e-12);
  const Look look = look_of(map, 2, 3);
  const double skewed = 2 - 0.75 * std::log2(3.0);  // of (1/4, 3/4), in bits: of one bit at most
  test.check("the weight on the new input", std::abs(look.own - (0.5 + 1.0 / 3 + 0.75 + 0.5) / 4) < 1e-6);
  test.check("entropy, as a part of uniform", std::abs(look.entropy - (1 + 1 + skewed + 1 / std::log2(3.0)) / 4) < 1e-6,
             text("%g", look.entropy));
}

// ---- Types of neurons -----------------------------------------------------------------------------------------------

std::vector<bool> flags(const Json& json) {
  std::vector<bool> all;
  for (const Json& item : json.items()) all.push_back(item.boolean());
  return all;
}

NeuronThresholds thresholds(const Json& json) {
  return {json.at("p").number(), json.at("low").number(), json.at("high").number(), json.at("bag_of_words").number()};
}

void check_verdicts(Test& test, const std::string& name, const std::vector<NeuronVerdict>& found,
                    const Json& expected) {
  const auto check_flag = [&](const char* flag, bool NeuronVerdict::*member) {
    std::vector<bool> all;
    for (const NeuronVerdict& verdict : found) all.push_back(verdict.*member);
    test.equal(name + flag, all, flags(expected.at(flag)));
  };
  check_flag("ngram", &NeuronVerdict::ngram);
  check_flag("bag_of_words", &NeuronVerdict::bag_of_words);
  check_flag("ngram_hybrid", &NeuronVerdict::ngram_hybrid);
  check_flag("bag_of_words_hybrid", &NeuronVerdict::bag_of_words_hybrid);
  check_flag("ngram_dct", &NeuronVerdict::ngram_dct);
  std::vector<std::string> types, right;
  for (const NeuronVerdict& verdict : found) types.emplace_back(name_of(verdict.type));
  for (const Json& type : expected.at("types").items()) right.push_back(type.string());
  test.equal(name + "types", types, right);
}

void neuron_types(Test& test) {
  const Json file = fixture("neuron_types.json");
  const int T = static_cast<int>(file.at("time").integer()), E = static_cast<int>(file.at("embedding").integer());
  const std::vector<double> weights = numbers(file.at("weight"));
  std::vector<NeuronMeasures> measures;
  for (size_t at = 0; at < weights.size(); at += static_cast<size_t>(T * E))
    measures.push_back(measure_neuron({&weights[at], T, E}));
  std::vector<double> norms, variance, ratio, ratio_dct;
  for (const NeuronMeasures& m : measures) {
    for (const double norm : relative_norms(m.norms)) norms.push_back(norm);
    variance.push_back(m.variance);
    ratio.push_back(m.l1_l2);
    ratio_dct.push_back(m.l1_l2_dct);
  }
  const Json& expected = file.at("expected");
  near(test, "slice norms", norms, numbers(expected.at("slice_norms")), TOLERANCE);
  near(test, "bag-of-words variance", variance, numbers(expected.at("bag_of_words_variance")), TOLERANCE);
  near(test, "l1/l2", ratio, numbers(expected.at("l1_l2")), TOLERANCE);
  near(test, "l1/l2 of the transform", ratio_dct, numbers(expected.at("l1_l2_dct")), TOLERANCE);
  for (const Json& c : file.at("cases").items()) {
    const NeuronRules rules{thresholds(c.at("thresholds").at("strict")), thresholds(c.at("thresholds").at("hybrid"))};
    std::vector<NeuronVerdict> verdicts;
    for (const NeuronMeasures& m : measures) verdicts.push_back(classify_neuron(m, rules));
    check_verdicts(test, text("%g: ", rules.strict.bag_of_words), verdicts, c.at("expected"));
  }
  const NeuronRules rescaled = NeuronRules().rescaled(E);
  test.check("the paper's thresholds for another width", std::abs(rescaled.strict.bag_of_words - 0.0192) < 1e-15 &&
                                                             std::abs(rescaled.hybrid.bag_of_words - 0.032) < 1e-15);
}

// Neurons whose measures are known.
void ideal_neurons(Test& test) {
  constexpr int T = 15, E = 3;
  const auto neuron = [](auto value) {
    std::vector<double> w;
    for (int t = 0; t < T; ++t)
      for (int e = 0; e < E; ++e) w.push_back(value(t) * (e + 1));
    return w;
  };
  const auto verdict = [](const std::vector<double>& w) {
    return classify_neuron(measure_neuron({w.data(), T, E}), NeuronRules().rescaled(E));
  };
  const std::vector<double> unigram = neuron([](int t) { return t == T - 1 ? 2.0 : 0.0; });
  const std::vector<double> bag = neuron([](int) { return 0.5; });
  const std::vector<double> wave =
      neuron([](int t) { return std::cos(3.14159265358979323846 * 2 * (2 * t + 1) / (2 * T)); });
  CHECK(verdict(unigram).type == NeuronType::NGRAM);
  CHECK(verdict(bag).type == NeuronType::BAG_OF_WORDS);
  CHECK(verdict(wave).type == NeuronType::DCT_SPARSE);
  CHECK(verdict(neuron([](int) { return 0.0; })).type == NeuronType::OTHER);
  CHECK(std::isnan(bag_of_words_variance({unigram.data(), T, E})));
  const NeuronMeasures m = measure_neuron({wave.data(), T, E});
  for (int f = 0; f < T; ++f)
    test.check(text("frequency %d of a wave", f),
               f == 2 ? m.dct_norms[2] > 10 : m.dct_norms[static_cast<size_t>(f)] < 1e-13);
  // 9 of 15 slices are not more than 0.6 of them; 10 are.
  for (const int low : {9, 10})
    test.equal(text("%d low slices", low), verdict(neuron([&](int t) { return t < low ? 0.1 : 1 - 0.01 * t; })).ngram,
               low > 9);
  CHECK(large_slices({0, 2, 4, 5, 1.9}) == 2);  // above 0.4 of the largest
}

// ---- Power laws -----------------------------------------------------------------------------------------------------

void power_laws(Test& test) {
  constexpr double FIT_TOLERANCE = 1e-6;
  const Json file = fixture("power_law.json");
  std::vector<ScalingPoint> points;
  for (const Json& p : file.at("points").items())
    points.push_back({p.at("budget").number(), p.at("parameters").number(), p.at("loss").number()});
  const PowerLaws laws = fit_power_laws(points);
  std::vector<double> budgets, parabolas, parameters, tokens, losses;
  for (const BudgetFit& fit : laws.budgets) {
    budgets.push_back(fit.budget);
    for (const double c : {fit.parabola.c0, fit.parabola.c1, fit.parabola.c2}) parabolas.push_back(c);
    parameters.push_back(fit.parameters);
    tokens.push_back(fit.tokens);
    losses.push_back(fit.loss);
    test.check(text("a minimum inside at %g", fit.budget), fit.inside);
  }
  const Json& expected = file.at("expected");
  test.equal("budgets", budgets, numbers(expected.at("budgets")));
  near(test, "parabolas", parabolas, numbers(expected.at("parabolas")), FIT_TOLERANCE);
  near(test, "optimal parameters", parameters, numbers(expected.at("optimal_parameters")), FIT_TOLERANCE);
  near(test, "optimal tokens", tokens, numbers(expected.at("optimal_tokens")), FIT_TOLERANCE);
  near(test, "optimal loss", losses, numbers(expected.at("optimal_loss")), FIT_TOLERANCE);
  const auto law = [&](const std::string& name, const Line& line) {
    near(test, name + " exponent", std::vector<double>{line.slope}, {expected.at(name + "_exponent").number()},
         FIT_TOLERANCE);
    near(test, name + " intercept", std::vector<double>{line.intercept}, {expected.at(name + "_intercept").number()},
         FIT_TOLERANCE);
  };
  law("parameter", laws.parameters);
  law("token", laws.tokens);
  law("loss", laws.loss);
}

void fits(Test& test) {
  test.check("two sizes have no parabola", !(fit_parabola({1, 2, 2}, {1, 2, 3}).c2 > 0));
  test.check("one x has no line", std::isnan(fit_line({1, 1}, {1, 2}).slope));
  // A budget whose losses bend downwards has no minimum and does not count.
  std::vector<ScalingPoint> points;
  for (const double size : {1e3, 1e4, 1e5}) {
    const double x = std::log10(size);
    points.push_back({1e9, size, (x - 4) * (x - 4) + 2});
    points.push_back({1e10, size, -(x - 4) * (x - 4) + 2});
  }
  const PowerLaws laws = fit_power_laws(points);
  CHECK(laws.budgets[0].inside && std::abs(laws.budgets[0].parameters - 1e4) < 1e-6);
  CHECK(!laws.budgets[1].inside && std::isnan(laws.budgets[1].parameters) && std::isnan(laws.parameters.slope));
}

// The sliding cosine transform after 100,000 positions is as near to the definition in double as after the first
// windows.
void no_drift(Test& test) {
  constexpr int T = 100000, K = 4;
  const auto ops = make_cpu(2);
  for (const int64_t window : {4, 64, 2048}) {
    const DctPlan plan(*ops, {window}, {K}, 1, T);
    const DctShape shape = plan.shape(1, T);
    std::vector<real> x;
    for (int i = 0; i < T; ++i) x.push_back(1 + normal(31, 0, 0, static_cast<uint64_t>(i)));
    Tensor input(*ops, {T}), output(*ops, {shape.size()});
    input.upload(x);
    ops->sliding_dct(output.data(), nullptr, input.data(), shape);
    const std::vector<real> found = output.download();
    const auto error = [&](int begin) {  // of every 37th position among 5000
      double difference = 0, norm = 0;
      for (int i = begin; i < begin + 5000; i += 37)
        for (int j = 0; j < K; ++j) {
          double sum = 0;
          for (int64_t m = 0; m < window; ++m)
            sum += static_cast<double>(x[static_cast<size_t>(i - window + 1 + m)]) *
                   std::cos(M_PI * j * static_cast<double>(2 * m + 1) / static_cast<double>(2 * window));
          sum *= std::sqrt((j == 0 ? 1.0 : 2.0) / static_cast<double>(window));
          difference += (found[static_cast<size_t>(i * K + j)] - sum) * (found[static_cast<size_t>(i * K + j)] - sum);
          norm += sum * sum;
        }
      return std::sqrt(difference / norm);
    };
    const double first = error(5000), last = error(T - 5000);
    test.check(text("window %d", static_cast<int>(window)), first < 1e-6 && last < 1.5 * first,
               text("relative error %.2e at first, %.2e at last", first, last));
  }
}

// How often each token is drawn where u goes through [0, 1) in equal steps.
std::vector<double> shares(const Sampling& settings, const std::vector<real>& logits) {
  constexpr int STEPS = 20000;
  std::vector<double> share(logits.size(), 0);
  for (int i = 0; i < STEPS; ++i)
    share.at(static_cast<size_t>(draw_token(logits, settings, (static_cast<real>(i) + 0.5f) / STEPS))) += 1.0 / STEPS;
  return share;
}

// The same by the definition, of tokens that are named from the likeliest on: the rest is never drawn.
std::vector<double> softmax_of(const std::vector<real>& logits, double temperature, const std::vector<size_t>& kept) {
  std::vector<double> share(logits.size(), 0);
  double total = 0;
  for (const size_t i : kept) total += share[i] = std::exp(static_cast<double>(logits[i]) / temperature);
  for (double& one : share) one /= total;
  return share;
}

class Symbols final : public Corpus {
 public:
  explicit Symbols(std::vector<int32_t> symbols) : symbols_(std::move(symbols)) {}
  int64_t size() const override { return static_cast<int64_t>(symbols_.size()); }
  void read(int64_t begin, int64_t count, int32_t* tokens) const override {
    std::copy_n(symbols_.begin() + begin, count, tokens);
  }

 private:
  std::vector<int32_t> symbols_;
};

// Against the definition, with the n-grams counted again for each token of the validation text.
double loss_by_definition(const std::vector<int32_t>& training, const std::vector<int32_t>& asked, int vocab,
                          size_t longest) {
  double loss = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    double probability = 1.0 / vocab;
    for (size_t k = 0; k <= std::min(i, longest); ++k) {
      const std::vector<int32_t> context(asked.begin() + static_cast<std::ptrdiff_t>(i - k),
                                         asked.begin() + static_cast<std::ptrdiff_t>(i));
      double all = 0, same = 0;
      std::set<int32_t> different;
      for (size_t j = k; j < training.size(); ++j) {
        if (!std::equal(context.begin(), context.end(), training.begin() + static_cast<std::ptrdiff_t>(j - k)))
          continue;
        all += 1, same += training[j] == asked[i];
        different.insert(training[j]);
      }
      const auto types = static_cast<double>(different.size());
      if (all > 0) probability = (same + types * probability) / (all + types);
    }
    loss -= std::log(probability) / static_cast<double>(asked.size());
  }
  return loss;
}

void token_counts(Test& test) {
  constexpr int V = 5;
  std::vector<int32_t> training, asked;
  for (uint32_t i = 0; i < 400; ++i)
    training.push_back(static_cast<int32_t>(below(philox(1, 1, 0, i / 2).word[i % 3], V - 1)));
  for (uint32_t i = 0; i < 60; ++i) asked.push_back(static_cast<int32_t>(below(philox(1, 2, 0, i / 2).word[i % 3], V)));
  const Symbols before(training), behind(asked);
  const CountedTokens counted = count_tokens(before, behind, V, 3);
  for (size_t k = 0; k < 4; ++k)
    test.check("after " + std::to_string(k),
               std::abs(counted.loss.at(k) - loss_by_definition(training, asked, V, k)) < 1e-12);
  for (const int64_t T : {1, 2, 7})
    for (size_t k = 0; k < 4; ++k) {
      double sum = 0;
      for (int64_t t = 1; t <= T; ++t)
        sum += loss_by_definition(training, asked, V, std::min(k, static_cast<size_t>(t)));
      test.check(text("after %zu, in windows of %d", k, static_cast<int>(T)),
                 std::abs(loss_in_windows(counted, k, T) - sum / static_cast<double>(T)) < 1e-12);
    }
  const CountedTokens of_some = count_tokens(before, behind, V, 3, nullptr, {3, 4, 59});
  for (size_t k = 0; k < 4; ++k) {  // by what the sums of texts that end there differ by
    double sum = 0;
    for (const size_t place : {3, 4, 59})
      for (const size_t end : {place, place + 1})
        sum += (end == place ? -1 : 1) * static_cast<double>(end) *
               loss_by_definition(training, {asked.begin(), asked.begin() + static_cast<std::ptrdiff_t>(end)}, V, k);
    test.check(text("of three tokens, after %zu", k), std::abs(of_some.loss.at(k) - sum / 3) < 1e-12);
  }
  test.equal("after none there is one row", counted.contexts[0], 1);
  test.equal("after one, each that is there", counted.contexts[1], V - 1);
  const Symbols again(std::vector<int32_t>{0, 1, 0, 1, 0, 1, 0, 1});
  test.check("what is regular is soon known", std::exp(count_tokens(again, again, 2, 1).loss[1]) < 1.3);
  test.throws("token 4: expected 0 to 3", [&] { count_tokens(before, behind, V - 1, 1); });
  test.equal("bytes", most_counted(256), 6);
  test.equal("GPT-2's", most_counted(50257), 3);
}

void sampling(Test& test) {
  constexpr real NONE = -std::numeric_limits<real>::infinity();
  const std::vector<real> logits = {0.5f, 2, -1, 2, NONE, 1.25f};  // probabilities 0.08, 0.36, 0.02, 0.36, 0, 0.17
  const auto compare = [&](const std::string& name, const Sampling& settings, const std::vector<size_t>& kept) {
    const std::vector<double> ours = shares(settings, logits);
    const std::vector<double> theirs = softmax_of(logits, settings.temperature, kept);
    double apart = 0;
    for (size_t i = 0; i < ours.size(); ++i) apart = std::max(apart, std::abs(ours[i] - theirs[i]));
    test.check(name, apart < 2e-4, "a share is " + std::to_string(apart) + " off");
  };
  const std::vector<size_t> all = {1, 3, 5, 0, 2, 4};
  compare("all tokens", {1, 0, 1}, all);
  compare("hotter", {2, 0, 1}, all);
  compare("colder", {0.25, 0, 1}, all);
  compare("of three", {1, 3, 1}, {1, 3, 5});
  compare("of two equal ones the first", {1, 1, 1}, {1});
  compare("more than there are", {1, 100, 1}, all);
  compare("of nineteen twentieths", {1, 0, 0.95}, {1, 3, 5, 0});
  compare("of a half", {1, 0, 0.5}, {1, 3});
  compare("of next to nothing", {1, 0, 0}, {1});
  compare("of three's nine tenths", {1, 3, 0.75}, {1, 3});
  test.equal("the likeliest, the first of two", draw_token(logits, {0, 0, 1}, 0.99f), 1);
  test.equal("the only one", draw_token({NONE, 0, NONE}, {1, 0, 1}, 0), 1);
  for (const double temperature : {0.0, 1.0}) {
    const auto draw = [&](const std::vector<real>& from) { draw_token(from, {temperature, 0, 1}, 0.5f); };
    const std::string name = temperature > 0 ? "drawn" : "likeliest";
    test.throws(name + ": no number", "token 2 is no number", [&] { draw({0, 1, std::nanf(""), 3}); });
    test.throws(name + ": the first is none", "token 0 is no number", [&] { draw({std::nanf(""), 1}); });
    test.throws(name + ": infinite", "largest logit is inf", [&] { draw({0, -NONE}); });
    test.throws(name + ": none is possible", "largest logit is -inf", [&] { draw({NONE, NONE}); });
  }
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  test.run("sampling", sampling);
  test.run("token counts", token_counts);
  test.run("lemma 1", lemma1);
  test.run("transitions", transitions);
  test.run("pca", pca);
  test.run("components of any rank", components_of_any_rank);
  test.run("pieces", pieces);
  test.run("clusters", clusters);
  test.run("receptive field", receptive_fields);
  test.run("receptive field of any model", any_model);
  test.run("where attention looks", looks);
  test.run("neuron types", neuron_types);
  test.run("ideal neurons", ideal_neurons);
  test.run("power laws", power_laws);
  test.run("fits", fits);
  test.run("sliding cosine transform", no_drift);
  return test.finish();
}
