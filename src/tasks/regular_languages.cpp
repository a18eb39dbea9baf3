#include "tasks/regular_languages.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "math/random.h"
#include "tasks/shuffle.h"

namespace petroglyph {

// ---- Automata -------------------------------------------------------------------------------------------------------

int Automaton::after(const int32_t* string, int length) const {
  int state = start;
  for (int i = 0; i < length; ++i) state = next(state, string[i]);
  return state;
}

namespace {

constexpr int CYCLE = 5;  // states of the circle, and the modulus of the arithmetic expressions
enum { PLUS = 5, MINUS = 6, TIMES = 7, EXPRESSION_SYMBOLS = 8 };

int modulo(int n, int modulus) { return (n % modulus + modulus) % modulus; }

// A circle of `size` states; the label is the state itself, and symbol s moves by moves[s].
Automaton circle(int size, const std::vector<int>& moves) {
  Automaton a;
  a.symbols = static_cast<int>(moves.size());
  a.classes = size;
  for (int state = 0; state < size; ++state) {
    for (const int move : moves) a.table.push_back(modulo(state + move, size));
    a.answer.push_back(state);
  }
  return a;
}

// State: (sum, term, operator). The value of the expression read so far is sum + term mod 5, and `term` is the
// current product with its sign. `operator` is the operator that was read last. A digit sets it to TIMES; this value
// is not used, because no digit follows a digit.
Automaton modular_arithmetic() {
  const auto number = [](int sum, int term, int op) {
    return (modulo(sum, CYCLE) * CYCLE + modulo(term, CYCLE)) * 3 + op - PLUS;
  };
  Automaton a;
  a.symbols = EXPRESSION_SYMBOLS;
  a.classes = CYCLE;
  a.start = number(0, 0, PLUS);
  for (int sum = 0; sum < CYCLE; ++sum)
    for (int term = 0; term < CYCLE; ++term)
      for (const int op : {PLUS, MINUS, TIMES}) {
        for (int digit = 0; digit < CYCLE; ++digit)
          a.table.push_back(op == TIMES   ? number(sum, term * digit, TIMES)
                            : op == MINUS ? number(sum + term, -digit, TIMES)
                                          : number(sum + term, digit, TIMES));
        for (const int then : {PLUS, MINUS, TIMES}) a.table.push_back(number(sum, term, then));
        a.answer.push_back((sum + term) % CYCLE);
      }
  return a;
}

// State: the depth, or n + 1 if the string can no longer become a member.
Automaton brackets(int n) {
  Automaton a;
  a.sink = n + 1;
  for (int depth = 0; depth <= n; ++depth) {
    a.table.insert(a.table.end(), {depth < n ? depth + 1 : a.sink, depth > 0 ? depth - 1 : a.sink});
    a.answer.push_back(depth == 0);
  }
  a.table.insert(a.table.end(), {a.sink, a.sink});
  a.answer.push_back(0);
  return a;
}

// Of two symbols and two answers.
Automaton two_symbols(std::vector<int> table, std::vector<int> answer, int sink = -1) {
  return {2, 2, 0, std::move(table), std::move(answer), sink};
}

const std::vector<std::pair<std::string, Automaton>>& languages() {
  static const std::vector<std::pair<std::string, Automaton>> ALL = {
      // state: 0 before the first symbol, then 1 + 2·(first symbol) + (last symbol)
      {"even_pairs", two_symbols({1, 4, 1, 2, 1, 2, 3, 4, 3, 4}, {0, 0, 1, 1, 0})},
      {"parity_check", circle(2, {0, 1})},
      {"cycle_navigation", circle(CYCLE, {-1, 0, 1})},
      {"modular_arithmetic", modular_arithmetic()},
      {"D_2", brackets(2)},
      {"D_3", brackets(3)},
      {"D_4", brackets(4)},
      {"D_12", brackets(12)},
      // 0: an even run of 1s before the last run of 0s; 1: an odd run of 1s; 2, 3: an even and an odd run of 0s after
      // an odd one
      {"Tomita_3", two_symbols({0, 1, 3, 0, 3, 1, 2, 4, 4, 4}, {1, 1, 1, 0, 0}, 4)},
      // the number of 0s at the end
      {"Tomita_4", two_symbols({1, 0, 2, 0, 3, 0, 3, 3}, {1, 1, 1, 0}, 3)},
      // 2·(number of 0s mod 2) + (number of 1s mod 2)
      {"Tomita_5", two_symbols({2, 1, 3, 0, 0, 3, 1, 2}, {1, 0, 0, 0})},
      // (number of 0s − number of 1s) mod 3
      {"Tomita_6", two_symbols({1, 2, 2, 0, 0, 1}, {1, 0, 0})}};
  return ALL;
}

}  // namespace

std::vector<std::string> language_names() {
  std::vector<std::string> names;
  for (const auto& [name, automaton] : languages()) names.push_back(name);
  return names;
}

Automaton automaton_of(const std::string& language) {
  for (const auto& [name, automaton] : languages())
    if (name == language) return automaton;
  throw Error("unknown language " + language + ", expected one of " + join(language_names(), ", "));
}

// ---- Random strings -------------------------------------------------------------------------------------------------

// The random numbers of one string. They depend only on (seed, stream, step, sample).
class Draws {
 public:
  Draws(uint64_t seed, uint32_t stream, uint32_t step, uint32_t sample)
      : seed_(seed), stream_(stream), step_(step), block_(static_cast<uint64_t>(sample) << 32) {}

  uint32_t below(uint32_t n) { return petroglyph::below(bits(), n); }
  bool chance(float probability) { return uniform(bits()) < probability; }
  int bit() { return static_cast<int>(bits() >> 31); }
  float normal() {
    left_ = 0;
    return petroglyph::normal(seed_, stream_, step_, block_++);
  }

 private:
  uint32_t bits() {
    if (left_ == 0) {
      words_ = philox(seed_, stream_, step_, block_++);
      left_ = 4;
    }
    return words_.word[4 - left_--];
  }

  uint64_t seed_;
  uint32_t stream_, step_;
  uint64_t block_;  // the index of the next random block
  Random4 words_{};
  int left_ = 0;  // unused entries of words_
};

namespace {

int depth_of(const std::string& language) {
  return language.rfind("D_", 0) == 0 ? static_cast<int>(*parse_integer(language.substr(2))) : 0;
}

bool is_membership_task(const std::string& language) {
  return depth_of(language) > 0 || language.rfind("Tomita_", 0) == 0;
}

// A random number, about three quarters of n: a typical length of a bracket's content.
int most_of(int n, Draws& draws) {
  const float size = static_cast<float>(n);
  return static_cast<int>(0.75f * size + 0.075f * size * draws.normal());
}

// Appends `length` symbols of balanced brackets with a depth of at most n. `length` is even.
void append_brackets(SymbolString& string, int n, int length, Draws& draws) {
  if (n == 0) return;
  const size_t end = string.size() + static_cast<size_t>(length);
  while (string.size() < end) {
    const int room = static_cast<int>(end - string.size()) - 2;
    const int inside = std::min(room, most_of(room, draws) / 2 * 2);
    string.push_back(0);
    append_brackets(string, n - 1, inside, draws);
    string.push_back(1);
  }
}

// Runs of one symbol with random lengths; the number of 0s after an odd run of 1s is even.
SymbolString draw_tomita_3(int length, Draws& draws) {
  SymbolString string;
  int ones = 0;  // length of the last run of 1s
  while (static_cast<int>(string.size()) < length) {
    const int symbol = draws.bit();
    const uint32_t room = static_cast<uint32_t>(length) - static_cast<uint32_t>(string.size());
    const bool even = symbol == 0 && ones % 2 == 1;
    const int count = static_cast<int>(even ? 2 * draws.below(room / 2 + 1) : draws.below(room + 1));
    if (count == 0) continue;
    if (symbol == 1) ones = !string.empty() && string.back() == 1 ? ones + count : count;
    string.insert(string.end(), static_cast<size_t>(count), symbol);
  }
  return string;
}

SymbolString draw_tomita_4(int length, Draws& draws) {
  SymbolString string;
  int zeros = 0;  // number of 0s at the end
  while (static_cast<int>(string.size()) < length) {
    const int symbol = draws.bit();
    if (symbol == 0 && zeros == 2) continue;
    zeros = symbol == 0 ? zeros + 1 : 0;
    string.push_back(symbol);
  }
  return string;
}

bool member(const Automaton& automaton, const SymbolString& string) {
  return automaton.label(string.data(), static_cast<int>(string.size())) == 1;
}

SymbolString draw_bits_that_are(bool wanted, const Automaton& automaton, int length, Draws& draws) {
  for (;;) {
    SymbolString string(static_cast<size_t>(length));
    for (int32_t& symbol : string) symbol = draws.bit();
    if (member(automaton, string) == wanted) return string;
  }
}

SymbolString draw_member(const std::string& language, const Automaton& automaton, int length, Draws& draws) {
  if (language == "Tomita_3") return draw_tomita_3(length, draws);
  if (language == "Tomita_4") return draw_tomita_4(length, draws);
  if (depth_of(language) == 0) return draw_bits_that_are(true, automaton, length, draws);
  SymbolString string;
  append_brackets(string, depth_of(language), length, draws);
  return string;
}

// Whether members of this length exist, and strings that are no members.
bool members_exist(const std::string& language, int length) {
  if (language == "Tomita_6") return length != 1;
  return depth_of(language) == 0 && language != "Tomita_5" ? true : length % 2 == 0;
}
bool others_exist(const std::string& language, int length) {
  return length >= (language == "Tomita_3" ? 2 : language == "Tomita_4" ? 3 : 1);
}

}  // namespace

// ---- One answer a string --------------------------------------------------------------------------------------------

RegularLanguage::RegularLanguage(Settings settings)
    : settings_(std::move(settings)),
      automaton_(automaton_of(settings_.language)),
      has_members_(is_membership_task(settings_.language)) {
  const Settings& s = settings_;
  if (s.shortest < 1 || s.longest < s.shortest)
    throw Error(text("%s: strings of %d to %d symbols, expected at least one and the shorter length first",
                     s.language.c_str(), s.shortest, s.longest));
}

bool RegularLanguage::has_members(int length) const {
  return has_members_ && members_exist(settings_.language, length);
}

bool RegularLanguage::has_near_misses(int length) const {
  return has_members(length) && others_exist(settings_.language, length);
}

int RegularLanguage::tokens_of(int length) const {
  if (settings_.language != "modular_arithmetic") return length;
  return length - (length % 2 == 0) + settings_.leading_plus;
}

SymbolString RegularLanguage::draw_expression(int length, Draws& draws) const {
  SymbolString string;
  if (settings_.leading_plus) string.push_back(PLUS);
  for (int i = 0; i < length - (length % 2 == 0); ++i)
    string.push_back(static_cast<int32_t>(i % 2 == 0 ? draws.below(CYCLE) : PLUS + draws.below(3)));
  return string;
}

SymbolString RegularLanguage::draw_near_miss(int length, Draws& draws) const {
  for (;;) {
    SymbolString string = draw_member(settings_.language, automaton_, length, draws);
    string[draws.below(static_cast<uint32_t>(length))] ^= 1;
    if (!member(automaton_, string)) return string;
  }
}

SymbolString RegularLanguage::draw_other(int length, Draws& draws) const {
  if (settings_.near_misses && members_exist(settings_.language, length)) return draw_near_miss(length, draws);
  return draw_bits_that_are(false, automaton_, length, draws);
}

SymbolString RegularLanguage::draw(int length, bool member, Draws& draws) const {
  if (settings_.language == "modular_arithmetic") return draw_expression(length, draws);
  if (has_members_) {
    if (!members_exist(settings_.language, length)) member = false;
    if (!others_exist(settings_.language, length)) member = true;
    return member ? draw_member(settings_.language, automaton_, length, draws) : draw_other(length, draws);
  }
  SymbolString string(static_cast<size_t>(length));
  for (int32_t& symbol : string)
    symbol = settings_.language == "parity_check" ? draws.chance(settings_.ones)
                                                  : static_cast<int32_t>(draws.below(static_cast<uint32_t>(vocab())));
  return string;
}

// All strings of an evaluation have the same length, and so do those of later evaluations. Otherwise two evaluations
// would not be comparable. At a length without members, a model that always answers 0 would have an accuracy of 100
// %.
int RegularLanguage::evaluated_length() const {
  int length = settings_.longest;
  while (has_members_ && length > settings_.shortest && !has_members(length)) --length;
  return length;
}

Batch RegularLanguage::batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const {
  const uint32_t lengths = static_cast<uint32_t>(settings_.longest - settings_.shortest) + 1;
  const uint32_t word = philox(seed, stream ^ stream_of("length"), step, 0).word[0];
  const bool is_evaluation = stream == stream_of("evaluate");
  const int length = is_evaluation ? evaluated_length() : settings_.shortest + static_cast<int>(below(word, lengths));
  Batch batch;
  batch.size = count;
  batch.length = tokens_of(length);
  batch.counted = count;
  for (int b = 0; b < count; ++b) {
    const uint32_t sample = static_cast<uint32_t>(first + b);
    Draws draws(seed, stream, step, sample);
    const SymbolString string = draw(length, sample % 2 == 0, draws);
    batch.tokens.insert(batch.tokens.end(), string.begin(), string.end());
    if (settings_.every_position) batch.targets.insert(batch.targets.end(), static_cast<size_t>(batch.length) - 1, -1);
    batch.targets.push_back(automaton_.label(string.data(), batch.length));
  }
  return batch;
}

// ---- The next symbol ------------------------------------------------------------------------------------------------

std::vector<int> next_symbol_targets(const std::string& language, const SymbolString& string) {
  const Automaton automaton = automaton_of(language);
  const bool counting = language == "Tomita_5" || language == "Tomita_6";
  if (!counting && automaton.sink < 0) throw Error(language + ": the next symbol is defined for D_n and Tomita only");
  std::vector<int> targets;
  int state = automaton.start;
  const auto accepted = [&](int next) {
    return depth_of(language) > 0 ? next != automaton.sink : automaton.answer[static_cast<size_t>(next)] == 1;
  };
  for (const int32_t symbol : string) {
    state = automaton.next(state, symbol);
    if (counting) {
      const bool inside = automaton.answer[static_cast<size_t>(state)] == 1;
      targets.insert(targets.end(), {!inside, inside});
    } else {
      targets.insert(targets.end(), {accepted(automaton.next(state, 0)), accepted(automaton.next(state, 1))});
    }
  }
  return targets;
}

namespace {

// Like append_brackets, but the length of a bracket's content is not limited by the remaining length. So the string
// may become longer than `length`.
SymbolString draw_loose_brackets(int n, int length, Draws& draws) {
  SymbolString string;
  while (n > 0 && static_cast<int>(string.size()) < length) {
    const SymbolString inside = draw_loose_brackets(n - 1, most_of(length, draws), draws);
    string.push_back(0);
    string.insert(string.end(), inside.begin(), inside.end());
    string.push_back(1);
  }
  return string;
}

// Stops at each symbol with a probability for which the mean length is (low + high) / 2.
SymbolString draw_until_stop(int low, int high, Draws& draws) {
  const float mean = static_cast<float>((low + high) / 2), likely = mean / (1 + mean);
  SymbolString string;
  while (static_cast<int>(string.size()) < high && draws.chance(likely)) string.push_back(draws.bit());
  return string;
}

// One attempt; the result may be no member, or have another length.
SymbolString try_member(const std::string& language, int low, int high, Draws& draws) {
  if (depth_of(language) > 0) return draw_loose_brackets(depth_of(language), most_of(high, draws), draws);
  if (language == "Tomita_5" || language == "Tomita_6") return draw_until_stop(low, high, draws);
  const int length = low + static_cast<int>(draws.below(static_cast<uint32_t>(high - low) + 1));
  return language == "Tomita_3" ? draw_tomita_3(length, draws) : draw_tomita_4(length, draws);
}

// Like draw_members, but throws Error only if it finds fewer than `least`.
std::vector<SymbolString> find_members(const std::string& language, int low, int high, int count, int least,
                                       bool distinct, uint64_t seed, uint32_t stream,
                                       const std::vector<SymbolString>& apart) {
  const Automaton automaton = automaton_of(language);
  if (!is_membership_task(language)) throw Error(language + ": has no members, D_n and Tomita have");
  if (low < 1 || high < low)
    throw Error(text("%s: strings of %d to %d symbols, expected at least one and the shorter length first",
                     language.c_str(), low, high));
  std::set<SymbolString> seen(apart.begin(), apart.end());
  std::vector<SymbolString> found;
  constexpr uint32_t TRIES = 1000;  // for each string; the rarest (Tomita_5, a window of one length) need about 100
  for (uint32_t tried = 0; static_cast<int>(found.size()) < count && tried / TRIES <= static_cast<uint32_t>(count);
       ++tried) {
    Draws draws(seed, stream, 0, tried);
    SymbolString string = try_member(language, low, high, draws);
    const int length = static_cast<int>(string.size());
    if (length < low || length > high || !member(automaton, string) || seen.count(string) > 0) continue;
    if (distinct) seen.insert(string);
    found.push_back(std::move(string));
  }
  if (static_cast<int>(found.size()) < least)
    throw Error(
        text("%s: found only %zu of %d strings of %d to %d symbols", language.c_str(), found.size(), least, low, high));
  return found;
}

}  // namespace

std::vector<SymbolString> draw_members(const std::string& language, int low, int high, int count, bool distinct,
                                       uint64_t seed, uint32_t stream, const std::vector<SymbolString>& apart) {
  return find_members(language, low, high, count, count, distinct, seed, stream, apart);
}

NextSymbol::NextSymbol(const std::string& language, int shortest, int longest, int training, int most,
                       int samples_a_step, uint64_t seed)
    : language_(language), samples_a_step_(samples_a_step) {
  constexpr int TRIES = 2000, PART = 5;
  const std::vector<SymbolString> some =
      draw_members(language, shortest, longest, TRIES, false, seed, stream_of("next symbol"));
  const std::set<SymbolString> different(some.begin(), some.end());
  const int found = static_cast<int>(different.size());
  const int tested = std::min(most, training > 0 ? std::max(1, found / PART) : found);
  // If a language has few strings, a rare one may be in `some` and still not be found here.
  test_ = find_members(language, shortest, longest, tested, 1, true, seed, stream_of("next symbol test"), {});
  if (training > 0 && different.size() <= test_.size())
    throw Error(text(
        "%s: all strings of %d to %d symbols are in the test, and none is left to learn from; longer ones are needed",
        language.c_str(), shortest, longest));
  if (training > 0)
    training_ = draw_members(language, shortest, longest, training, false, seed, stream_of("next symbol"), test_);
}

Batch NextSymbol::batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const {
  const bool train = stream == stream_of("train");
  const std::vector<SymbolString>& all = train ? training_ : test_;
  std::vector<const SymbolString*> strings;
  Batch batch;
  batch.size = count;
  for (int b = 0; b < count; ++b) {
    const uint64_t n = all.size(), sample = (train ? uint64_t(step) * static_cast<uint64_t>(samples_a_step_) : 0) +
                                            static_cast<uint64_t>(first + b);
    const uint64_t place =
        train ? shuffled(sample % n, n, seed, stream_of("order"), static_cast<uint32_t>(sample / n)) : sample % n;
    strings.push_back(&all[place]);
    batch.length = std::max(batch.length, static_cast<int>(strings.back()->size()));
  }
  for (const SymbolString* string : strings) {
    const std::vector<int> bits = next_symbol_targets(language_, *string);
    batch.counted += static_cast<int64_t>(bits.size());
    batch.tokens.insert(batch.tokens.end(), string->begin(), string->end());
    batch.sets.insert(batch.sets.end(), bits.begin(), bits.end());
    const size_t missing = static_cast<size_t>(batch.length) - string->size();
    batch.tokens.insert(batch.tokens.end(), missing, 0);
    batch.sets.insert(batch.sets.end(), missing * CLASSES, real(-1));
  }
  return batch;
}

double NextSymbol::accuracy(const Batch& batch, const std::vector<int32_t>& best) const {
  const size_t row = batch.sets.size() / static_cast<size_t>(batch.size);
  int right = 0;
  for (size_t b = 0; b < static_cast<size_t>(batch.size); ++b) {
    bool all = true;
    for (size_t i = b * row; i < (b + 1) * row; ++i)
      all = all && (batch.sets[i] < 0 || (batch.sets[i] > real(0.5)) == (best[i] == 1));
    right += all;
  }
  return static_cast<double>(right) / batch.size;
}

}  // namespace petroglyph
