// inspect lemma1: the two weight matrices of an MLP that multiplies matrices of 0 and 1. It prints one product step by
// step and checks many others (regular_gpt, lemma 1, section 7.2 and appendices C and D).

#include <cstdio>

#include "analysis/inspect.h"
#include "analysis/lemma1.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "math/random.h"

namespace petroglyph {

namespace {

struct LemmaSettings {
  int n = 2, trials = 1000, length = 12;
  uint64_t seed = 1;

  void declare(Options& options) {
    options.add("n", &n, 1, 24, "rows of the matrices; the two weights have 3n⁵ numbers");
    options.add("trials", &trials, 0, 1 << 24, "random pairs of matrices that are checked");
    options.add("length", &length, 1, 1 << 16, "symbols of the two strings whose transitions are composed");
    options.add("seed", &seed, 0, std::numeric_limits<uint64_t>::max(), "which random matrices and strings");
  }
};

using Matrix = std::vector<int>;

// Entries 0 and 1 with equal probability. which: 0 and 1 are the factors of trial 0, 2 and 3 those of trial 1, and so
// on.
Matrix random_matrix(const LemmaSettings& s, uint32_t which) {
  Matrix matrix;
  for (int i = 0; i < s.n * s.n; ++i)
    matrix.push_back(philox(s.seed, stream_of("lemma1"), which, static_cast<uint64_t>(i)).word[0] >> 31);
  return matrix;
}

Matrix product(const Matrix& a, const Matrix& b, int n) {
  Matrix c(a.size());
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < n; ++k)
        c[static_cast<size_t>(i * n + j)] += a[static_cast<size_t>(i * n + k)] * b[static_cast<size_t>(k * n + j)];
  return c;
}

void show(const char* title, const Matrix& matrix, size_t columns) {
  print("%s\n", title);
  for (size_t i = 0; i < matrix.size(); ++i)
    print("%s%d%s", i % columns == 0 ? "  " : " ", matrix[i], (i + 1) % columns == 0 ? "\n" : "");
}

void show_example(const LemmaSettings& s, const MatrixProductNetwork& network) {
  const size_t n = static_cast<size_t>(s.n);
  const Matrix a = random_matrix(s, 0), b = random_matrix(s, 1);
  show("A", a, n);
  show("B", b, n);
  show("two heads of attention, r = (-inf, 0) and (0, -inf): [A, B]", concatenated_by_two_heads({a, b}), 2 * n * n);
  show("relu([A, B] W1 - 1), the products A_ik B_kj, k in turn within a group", network.hidden(a, b), n);
  show("times W2: A B", network.multiply(a, b), n);
}

// Whether an error is found: the state map of two concatenated strings must be the product of their maps, and layers
// of two heads and this network must compute the same map from single symbols.
bool wrong_composition(const LemmaSettings& s, const std::string& language) {
  const Automaton automaton = automaton_of(language);
  const MatrixProductNetwork network(automaton.states());
  SymbolString first, second;
  for (uint64_t i = 0; i < 2 * static_cast<uint64_t>(s.length); ++i) {
    const uint32_t word = philox(s.seed, stream_of(language), 0, i).word[0];
    (i % 2 == 0 ? first : second)
        .push_back(static_cast<int32_t>(below(word, static_cast<uint32_t>(automaton.symbols))));
  }
  SymbolString both = first;
  both.insert(both.end(), second.begin(), second.end());
  const Matrix right = transition_matrix(automaton, both);
  return network.multiply(transition_matrix(automaton, first), transition_matrix(automaton, second)) != right ||
         composed_by_layers(network, automaton, both) != right;
}

}  // namespace

int inspect_lemma1(const std::vector<std::string>& words) {
  LemmaSettings s;
  Options options("inspect lemma1",
                  "Shows two linear layers with a relu between them that multiply matrices of 0 and 1.");
  s.declare(options);
  options.parse(words);
  const MatrixProductNetwork network(s.n);
  const size_t n = static_cast<size_t>(s.n);
  print("n = %d: relu([A, B] W1 - 1) W2 = A B, with W1 (%zu,%zu) and W2 (%zu,%zu)\n", s.n, 2 * n * n, n * n * n,
        n * n * n, n * n);
  constexpr int LARGEST_SHOWN = 4;
  if (s.n <= LARGEST_SHOWN) {
    show("W1", network.first(), n * n * n);
    show("W2", network.second(), n * n);
    show_example(s, network);
  } else {
    print("too large to be shown here; up to --n %d they are\n", LARGEST_SHOWN);
  }

  int wrong = 0;
  for (int trial = 0; trial < s.trials; ++trial) {
    const uint32_t first = 2 * static_cast<uint32_t>(trial);
    const Matrix a = random_matrix(s, first), b = random_matrix(s, first + 1);
    wrong += network.multiply(a, b) != product(a, b, s.n);
  }
  print("%s of %s random products right\n", with_commas(s.trials - wrong).c_str(), with_commas(s.trials).c_str());

  std::vector<std::string> composed;
  for (const std::string& language : language_names()) {
    if (automaton_of(language).states() > 20) continue;  // W1 would have 2 n⁵ entries
    if (wrong_composition(s, language)) throw Error("lemma 1: wrong for the transitions of " + language);
    composed.push_back(language);
  }
  print(
      "transitions of two strings of %s, composed by such a network, and of each symbol, composed by layers of two\n"
      "heads and such a network, are those of both strings in a row: %s\n",
      counted(s.length, "symbol").c_str(), join(composed, ", ").c_str());
  if (wrong > 0) throw Error(text("lemma 1: %d products are wrong", wrong));
  return 0;
}

}  // namespace petroglyph
