// inspect lemma1: the two weight matrices of an MLP that multiplies matrices of 0 and 1. It prints one product step by
// step and checks many others (regular_gpt, lemma 1, section 7.2 and appendices C and D).

#include <cstdio>

#include "analysis/inspection.h"
#include "analysis/lemma1.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "math/random.h"

namespace petroglyph {

namespace {

constexpr uint64_t SEED = 1;
constexpr int LENGTH = 12;  // symbols of the two strings whose transitions are composed

using Matrix = std::vector<int>;

// Entries 0 and 1 with equal probability. which: 0 and 1 are the factors of trial 0, 2 and 3 those of trial 1, and so
// on.
Matrix random_matrix(int n, uint32_t which) {
  Matrix matrix;
  for (int i = 0; i < n * n; ++i)
    matrix.push_back(philox(SEED, stream_of("lemma1"), which, static_cast<uint64_t>(i)).word[0] >> 31);
  return matrix;
}

Matrix product(const Matrix& a, const Matrix& b, size_t n) {
  Matrix c(a.size());
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t k = 0; k < n; ++k) c[i * n + j] += a[i * n + k] * b[k * n + j];
  return c;
}

void show(const char* title, const Matrix& matrix, size_t columns) {
  print("%s\n", title);
  for (size_t i = 0; i < matrix.size(); ++i)
    print("%s%d%s", i % columns == 0 ? "  " : " ", matrix[i], (i + 1) % columns == 0 ? "\n" : "");
}

void show_example(const MatrixProductNetwork& network, int rows) {
  const size_t n = static_cast<size_t>(rows);
  const Matrix a = random_matrix(rows, 0), b = random_matrix(rows, 1), both = concatenated_by_two_heads(a, b);
  show("W1", network.first(), n * n * n);
  show("W2", network.second(), n * n);
  show("A", a, n);
  show("B", b, n);
  show("two heads of attention, r = (-inf, 0) and (0, -inf): [A, B]", both, 2 * n * n);
  show("relu([A, B] W1 - 1), the products A_ik B_kj, k in turn within a group", network.hidden(both), n);
  show("times W2: A B", network.multiply(both), n);
}

// The state map of two concatenated strings must be the product of their maps, and layers of two heads and this
// network must compute the same map from single symbols.
void check_composition(const std::string& language) {
  const Automaton automaton = automaton_of(language);
  const MatrixProductNetwork network(automaton.states());
  SymbolString first, second;
  for (uint64_t i = 0; i < 2 * LENGTH; ++i) {
    const uint32_t word = philox(SEED, stream_of(language), 0, i).word[0];
    (i % 2 == 0 ? first : second)
        .push_back(static_cast<int32_t>(below(word, static_cast<uint32_t>(automaton.symbols))));
  }
  SymbolString both = first;
  both.insert(both.end(), second.begin(), second.end());
  const Matrix a = transition_matrix(automaton, first), b = transition_matrix(automaton, second);
  const Matrix right = transition_matrix(automaton, both);
  if (network.multiply(concatenated_by_two_heads(a, b)) != right ||
      composed_by_layers(network, automaton, both) != right)
    throw Error("lemma 1: wrong for the transitions of " + language);
}

}  // namespace

int inspect_lemma1(const std::vector<std::string>& words) {
  int rows = 2, trials = 1000;
  Options options("inspect lemma1",
                  "Shows two linear layers with a relu between them that multiply matrices of 0 and 1.");
  options.add("n", &rows, 1, 24, "rows of the matrices; the two weights have 3n⁵ numbers and are shown up to 4 rows");
  options.add("trials", &trials, 0, 1 << 24, "random pairs of matrices that are checked");
  options.parse(words);
  const MatrixProductNetwork network(rows);
  const size_t n = static_cast<size_t>(rows);
  print("n = %zu: relu([A, B] W1 - 1) W2 = A B, with W1 (%zu,%zu) and W2 (%zu,%zu)\n", n, 2 * n * n, n * n * n,
        n * n * n, n * n);
  if (n <= 4) show_example(network, rows);

  int wrong = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const uint32_t first = 2 * static_cast<uint32_t>(trial);
    const Matrix a = random_matrix(rows, first), b = random_matrix(rows, first + 1);
    wrong += network.multiply(concatenated_by_two_heads(a, b)) != product(a, b, n);
  }
  print("%s of %s random products right\n", with_commas(trials - wrong).c_str(), with_commas(trials).c_str());
  if (wrong > 0) throw Error(text("lemma 1: %d products are wrong", wrong));

  std::vector<std::string> composed;
  for (const std::string& language : language_names()) {
    if (automaton_of(language).states() > 20) continue;  // W1 would have 2 n⁵ entries
    check_composition(language);
    composed.push_back(language);
  }
  print(
      "transitions of two strings of %s, composed by such a network, and of each symbol, composed by layers of two\n"
      "heads and such a network, are those of both strings in a row: %s\n",
      counted(LENGTH, "symbol").c_str(), join(composed, ", ").c_str());
  return 0;
}

}  // namespace petroglyph
