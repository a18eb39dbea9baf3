// The regular languages: every label of the specification's examples (test/oracle/regular_languages.tsv), every
// automaton against the sentence that defines its language, and the random strings against the law that they are drawn
// from.

#include "tasks/regular_languages.h"

#include <map>
#include <set>

#include "base/text.h"
#include "check.h"
#include "math/random.h"

namespace petroglyph {
namespace {

constexpr uint32_t STREAM = stream_of("train");

const std::vector<std::string> LANGUAGES = {"D_2",      "D_3",      "D_4",      "D_12",
                                            "Tomita_3", "Tomita_4", "Tomita_5", "Tomita_6"};

RegularLanguage task_of(const std::string& language, int shortest = 1, int longest = 40, bool near_misses = false) {
  RegularLanguage::Settings settings;
  settings.language = language;
  settings.shortest = shortest;
  settings.longest = longest;
  settings.near_misses = near_misses;
  return RegularLanguage(settings);
}

int label(const std::string& language, const SymbolString& string) {
  return automaton_of(language).label(string.data(), static_cast<int>(string.size()));
}

std::string shown(const SymbolString& string) {
  std::string out;
  for (const int32_t symbol : string) out += RegularLanguage::character(symbol);
  return out;
}

SymbolString read_string(const std::string& words) {
  SymbolString string;
  for (const char c : words)
    if (c != ' ') string.push_back(static_cast<int32_t>(std::string("01234+-*").find(c)));
  return string;
}

// ---- Labels ---------------------------------------------------------------------------------------------------------

void examples(Test& test) {
  std::istringstream lines(read_bytes("test/oracle/regular_languages.tsv"));
  std::string line;
  std::getline(lines, line);  // the columns' names
  std::map<std::string, int> rows;
  while (std::getline(lines, line)) {
    const size_t tab = line.find('\t'), second = line.find('\t', tab + 1);
    const std::string task = line.substr(0, tab), target = line.substr(second + 1);
    const SymbolString string = read_string(line.substr(tab + 1, second - tab - 1));
    const std::string language = task.substr(0, task.find('/'));
    ++rows[task];
    if (task.find("/next") == std::string::npos) {
      test.equal(task + " " + shown(string), std::to_string(label(language, string)), target);
      continue;
    }
    std::string found;
    const std::vector<int> bits = next_symbol_targets(language, string);
    for (size_t i = 0; i < bits.size(); i += 2) found += text("%s%d%d", i > 0 ? " " : "", bits[i], bits[i + 1]);
    test.equal(task + " " + shown(string), found, target);
  }
  test.equal("tasks", rows.size(), size_t(20));
}

bool balanced(const SymbolString& string, int n) {
  int depth = 0;
  for (const int32_t symbol : string) {
    depth += symbol == 0 ? 1 : -1;
    if (depth < 0 || depth > n) return false;
  }
  return depth == 0;
}

bool odd_run_behind_odd_run(const SymbolString& string) {
  int ones = 0, zeros = 0;
  for (size_t i = 0; i <= string.size(); ++i) {
    const bool one = i < string.size() && string[i] == 1, zero = i < string.size() && string[i] == 0;
    if (zeros > 0 && !zero) {
      if (ones % 2 == 1 && zeros % 2 == 1) return true;
      ones = zeros = 0;
    }
    ones += one;
    zeros += zero;
  }
  return false;
}

int by_definition(const std::string& language, const SymbolString& string) {
  const auto ones = static_cast<int>(std::count(string.begin(), string.end(), 1));
  const int zeros = static_cast<int>(string.size()) - ones;
  if (language == "parity_check") return ones % 2;
  if (language == "even_pairs") {
    int pairs = 0;
    for (size_t i = 1; i < string.size(); ++i) pairs += string[i] != string[i - 1];
    return pairs % 2;
  }
  if (language == "Tomita_3") return !odd_run_behind_odd_run(string);
  if (language == "Tomita_4") return shown(string).find("000") == std::string::npos;
  if (language == "Tomita_5") return zeros % 2 == 0 && ones % 2 == 0;
  if (language == "Tomita_6") return (zeros - ones) % 3 == 0;
  return balanced(string, std::stoi(language.substr(2)));
}

// All strings of up to 14 bits.
void definitions(Test& test) {
  std::vector<std::string> names = LANGUAGES;
  names.insert(names.end(), {"even_pairs", "parity_check"});
  for (const std::string& language : names) {
    std::string wrong;
    for (int length = 1; length <= 14 && wrong.empty(); ++length)
      for (uint32_t bits = 0; bits < 1u << length && wrong.empty(); ++bits) {
        SymbolString string;
        for (int i = 0; i < length; ++i) string.push_back(static_cast<int32_t>(bits >> i & 1));
        if (label(language, string) != by_definition(language, string)) wrong = shown(string);
      }
    test.equal(language, wrong, std::string());
  }
}

// Products first, then sums from the left.
int value_of(SymbolString string) {
  if (string[0] >= 5) string.erase(string.begin());
  int sum = 0, term = string[0], sign = 1;
  for (size_t i = 1; i < string.size(); i += 2) {
    const int digit = string[i + 1];
    if (string[i] == 7) {
      term = term * digit % 5;
      continue;
    }
    sum += sign * term;
    sign = string[i] == 5 ? 1 : -1;
    term = digit;
  }
  return ((sum + sign * term) % 5 + 5) % 5;
}

// All are as long, and where only some lengths have members, of one that has.
void evaluations(Test& test) {
  for (const auto& [language, longest, expected] :
       {std::tuple("D_2", 41, 40), {"Tomita_5", 50, 50}, {"parity_check", 41, 41}}) {
    const RegularLanguage task = task_of(language, 1, longest);
    std::set<int> lengths, answers;
    for (uint32_t step = 0; step < 20; ++step) {
      const Batch batch = task.batch(1, stream_of("evaluate"), step, 0, 64);
      lengths.insert(batch.length);
      answers.insert(batch.targets.begin(), batch.targets.end());
    }
    test.check(std::string(language) + ": one length", lengths == std::set<int>{expected});
    test.check(std::string(language) + ": both answers", answers == std::set<int>{0, 1});
  }
}

void expressions(Test& test) {
  for (const bool plus : {false, true}) {
    RegularLanguage::Settings settings;
    settings.language = "modular_arithmetic";
    settings.leading_plus = plus;
    const RegularLanguage task(settings);
    bool right = true, shaped = true;
    std::set<int> lengths;
    for (uint32_t step = 0; step < 300; ++step) {
      const Batch batch = task.batch(3, STREAM, step, 0, 9);
      lengths.insert(batch.length);
      for (int b = 0; b < batch.size; ++b) {
        const auto begin = batch.tokens.begin() + b * batch.length;
        const SymbolString string(begin, begin + batch.length);
        right &= value_of(string) == batch.targets[static_cast<size_t>(b)];
        for (int i = 0; i < batch.length; ++i)
          shaped &= (string[static_cast<size_t>(i)] >= 5) == (i % 2 == (plus ? 0 : 1));
      }
    }
    const std::string name = plus ? "with a leading plus" : "without";
    test.check(name + ": values", right);
    test.check(name + ": digits and operators in turn", shaped);
    test.check(name + ": odd lengths, and one token more",
               lengths.size() == 20 && *lengths.begin() == 1 + plus && *lengths.rbegin() == 39 + plus);
    test.equal(name + ": context", task.context(), 39 + plus);
  }
}

// ---- Batches --------------------------------------------------------------------------------------------------------

std::vector<SymbolString> strings_of(const Batch& batch) {
  std::vector<SymbolString> strings;
  for (int b = 0; b < batch.size; ++b) {
    const auto begin = batch.tokens.begin() + b * batch.length;
    strings.emplace_back(begin, begin + batch.length);
  }
  return strings;
}

// A batch is a function of its step, whatever pieces it comes in.
void pieces(Test& test) {
  for (const std::string& language : language_names()) {
    const RegularLanguage task = task_of(language);
    const Batch whole = task.batch(5, STREAM, 77, 0, 20);
    std::vector<int32_t> tokens, targets;
    for (int first = 0; first < 20; first += 7) {
      const Batch piece = task.batch(5, STREAM, 77, first, std::min(7, 20 - first));
      tokens.insert(tokens.end(), piece.tokens.begin(), piece.tokens.end());
      targets.insert(targets.end(), piece.targets.begin(), piece.targets.end());
    }
    test.equal(language + ": tokens", tokens, whole.tokens);
    test.equal(language + ": targets", targets, whole.targets);
    test.check(language + ": another step has other strings", task.batch(5, STREAM, 78, 0, 20).tokens != whole.tokens);
    test.check(language + ": another stream has other strings",
               task.batch(5, stream_of("evaluate"), 77, 0, 20).tokens != whole.tokens);
  }
}

void every_position(Test& test) {
  RegularLanguage::Settings settings;
  settings.language = "parity_check";
  const RegularLanguage last(settings);
  settings.every_position = true;
  const Batch batch = RegularLanguage(settings).batch(5, STREAM, 9, 0, 6), short_one = last.batch(5, STREAM, 9, 0, 6);
  test.equal("tokens", batch.tokens, short_one.tokens);
  test.equal("as many targets as tokens", batch.targets.size(), batch.tokens.size());
  std::vector<int32_t> counted;
  for (size_t i = 0; i < batch.targets.size(); ++i) {
    const bool end = (i + 1) % static_cast<size_t>(batch.length) == 0;
    if (end) counted.push_back(batch.targets[i]);
    if (!end && batch.targets[i] != -1) counted.push_back(-7);
  }
  test.equal("only the last ones count", counted, short_one.targets);
  std::vector<int32_t> best = batch.targets;
  best.back() ^= 1;
  CHECK(last.accuracy(short_one, short_one.targets) == 1);
  CHECK(std::fabs(RegularLanguage(settings).accuracy(batch, best) - 5 / 6.0) < 1e-12);
}

// How far a count is from n·p, in standard deviations.
double deviations(double count, double n, double p) { return (count - n * p) / std::sqrt(n * p * (1 - p)); }

void lengths(Test& test) {
  const RegularLanguage task = task_of("parity_check");
  constexpr int STEPS = 20000;
  std::map<int, int> counts;
  for (uint32_t step = 0; step < STEPS; ++step) ++counts[task.batch(1, STREAM, step, 0, 1).length];
  test.check("lengths", counts.size() == 40 && counts.begin()->first == 1 && counts.rbegin()->first == 40);
  double square = 0, most = 0;
  for (const auto& [length, count] : counts) {
    const double d = deviations(count, STEPS, 1 / 40.0);
    square += d * d;
    most = std::max(most, std::fabs(d));
  }
  test.check("each as often", most < 4, text("%.1f standard deviations off", most));
  test.check("all lengths together", square > 16 && square < 73, text("chi square %.1f of 39", square));
  test.equal("one length", task_of("parity_check", 17, 17).batch(1, STREAM, 3, 0, 1).length, 17);
}

void symbols(Test& test) {
  for (const auto& [language, symbols] :
       std::map<std::string, int>{{"even_pairs", 2}, {"parity_check", 2}, {"cycle_navigation", 3}}) {
    std::vector<int> counts(static_cast<size_t>(symbols));
    const Batch batch = task_of(language, 60, 60).batch(2, STREAM, 0, 0, 1000);
    for (const int32_t token : batch.tokens) ++counts[static_cast<size_t>(token)];
    for (int s = 0; s < symbols; ++s) {
      const double d = deviations(counts[static_cast<size_t>(s)], 60000, 1.0 / symbols);
      test.check(text("%s: symbol %d", language.c_str(), s), std::fabs(d) < 4, text("%.1f standard deviations off", d));
    }
  }
  for (const float ones : {0.1f, 0.3f, 0.9f}) {
    RegularLanguage::Settings settings;
    settings.language = "parity_check";
    settings.ones = ones;
    const Batch batch = RegularLanguage(settings).batch(2, STREAM, 0, 0, 4000);
    const auto n = static_cast<double>(batch.tokens.size());
    const double d = deviations(static_cast<double>(std::count(batch.tokens.begin(), batch.tokens.end(), 1)), n, ones);
    test.check(text("parity_check: %g of 1s", static_cast<double>(ones)), std::fabs(d) < 4,
               text("%.1f standard deviations off", d));
  }
}

// Even samples are members and odd ones are not, but where a length has only one kind.
int expected_label(const std::string& language, int length, int sample) {
  if (length % 2 == 1 && (language[0] == 'D' || language == "Tomita_5")) return 0;
  if (length == 1) return language != "Tomita_6";
  if (length == 2 && language == "Tomita_4") return 1;
  return sample % 2 == 0;
}

bool one_flip_from_a_member(const std::string& language, SymbolString string) {
  for (int32_t& symbol : string) {
    symbol ^= 1;
    if (label(language, string) == 1) return true;
    symbol ^= 1;
  }
  return false;
}

void membership(Test& test) {
  for (const std::string& language : LANGUAGES) {
    bool labels = true, balance = true, near = true;
    for (int length = 1; length <= 60; ++length)
      for (const bool near_misses : {false, true}) {
        const RegularLanguage task = task_of(language, length, length, near_misses);
        const Batch batch = task.batch(4, STREAM, 0, 0, 24);
        const std::vector<SymbolString> strings = strings_of(batch);
        for (int b = 0; b < batch.size; ++b) {
          const SymbolString& string = strings[static_cast<size_t>(b)];
          const int target = batch.targets[static_cast<size_t>(b)], expected = expected_label(language, length, b);
          labels &= target == by_definition(language, string) && static_cast<int>(string.size()) == length;
          balance &= target == expected;
          const bool members = length % 2 == 0 || (language[0] != 'D' && language != "Tomita_5");
          if (near_misses && target == 0 && members && (length > 1 || language != "Tomita_6"))
            near &= one_flip_from_a_member(language, string);
        }
      }
    test.check(language + ": labels", labels);
    test.check(language + ": every other string is a member", balance);
    test.check(language + ": near misses are one flip from a member", near);
  }
}

double mean_changes(const std::vector<SymbolString>& strings, size_t first) {
  int changes = 0, count = 0;
  for (size_t b = first; b < strings.size(); b += 2, ++count)
    for (size_t i = 1; i < strings[b].size(); ++i) changes += strings[b][i] != strings[b][i - 1];
  return static_cast<double>(changes) / count;
}

// How members look: how often the symbol changes in strings of 100. The specification measured the same with a sampler
// of its own.
void shapes(Test& test) {
  const std::map<std::string, double> expected = {{"D_2", 93},      {"D_3", 85},     {"D_4", 77},
                                                  {"D_12", 58},     {"Tomita_3", 2}, {"Tomita_4", 57},
                                                  {"Tomita_5", 49}, {"Tomita_6", 49}};
  for (const auto& [language, changes] : expected) {
    const std::vector<SymbolString> strings = strings_of(task_of(language, 100, 100).batch(6, STREAM, 0, 0, 2000));
    const double members = mean_changes(strings, 0), others = mean_changes(strings, 1);
    test.check(language + ": members", std::fabs(members - changes) < 1, text("%.2f changes", members));
    test.check(language + ": others", std::fabs(others - 49.5) < 1, text("%.2f changes", others));
  }
}

// ---- The next symbol ------------------------------------------------------------------------------------------------

void next_symbols(Test& test) {
  const std::map<std::string, int> medians = {{"D_2", 48}, {"D_3", 44}, {"D_4", 40}, {"D_12", 42}};
  for (const std::string& language : LANGUAGES) {
    const auto draw = [&](int count, bool distinct, uint64_t seed, const std::vector<SymbolString>& apart) {
      return draw_members(language, 2, 50, count, distinct, seed, STREAM, apart);
    };
    const std::vector<SymbolString> strings = draw(2000, false, 1, {});
    bool members = true, lengths = true;
    std::vector<int> sizes;
    for (const SymbolString& string : strings) {
      sizes.push_back(static_cast<int>(string.size()));
      members &= by_definition(language, string) == 1;
      lengths &= sizes.back() >= 2 && sizes.back() <= 50;
    }
    test.check(language + ": members of 2 to 50 symbols", members && lengths && strings.size() == 2000);
    std::sort(sizes.begin(), sizes.end());
    const auto median = medians.find(language);
    if (median != medians.end())  // lengths are even; D_12 has 49.95 % of its strings below 42
      test.check(language + ": median length", std::abs(sizes[1000] - median->second) <= 2,
                 std::to_string(sizes[1000]));
    const std::vector<SymbolString> some = draw(25, true, 1, {}), others = draw(20, true, 1, some);
    std::set<SymbolString> all(some.begin(), some.end());
    test.equal(language + ": all different", all.size(), size_t(25));
    all.insert(others.begin(), others.end());
    test.equal(language + ": another set shares none", all.size(), size_t(45));
    test.check(language + ": another seed, other strings", draw(25, true, 2, {}) != some);
  }
}

// The strings of a batch of that protocol, without padding; `right`: whether their bits follow the language.
std::vector<SymbolString> members_of(const std::string& language, const Batch& batch, bool* right) {
  std::vector<SymbolString> strings;
  int64_t counted = 0;
  for (int b = 0; b < batch.size; ++b) {
    SymbolString string;
    std::vector<int> bits;
    for (int t = b * batch.length; t < (b + 1) * batch.length; ++t) {
      const size_t i = static_cast<size_t>(t);
      *right &= (batch.sets[2 * i] < 0) == (batch.sets[2 * i + 1] < 0);
      if (batch.sets[2 * i] < 0) continue;
      *right &= static_cast<int>(string.size()) == t - b * batch.length;  // nothing in front
      string.push_back(batch.tokens[i]);
      bits.insert(bits.end(), {static_cast<int>(batch.sets[2 * i]), static_cast<int>(batch.sets[2 * i + 1])});
    }
    *right &= bits == next_symbol_targets(language, string) && by_definition(language, string) == 1;
    counted += static_cast<int64_t>(bits.size());
    strings.push_back(string);
  }
  *right &= counted == batch.counted;
  return strings;
}

void next_symbol_task(Test& test) {
  for (const std::string& language : LANGUAGES) {
    const NextSymbol task(language, 2, 50, 200, 40, 50, 7);
    bool right = true;
    std::set<SymbolString> learned, tested;
    std::multiset<SymbolString> first, second;  // epochs of four steps
    for (uint32_t step = 0; step < 8; ++step)
      for (const SymbolString& s : members_of(language, task.batch(3, STREAM, step, 0, 50), &right)) {
        learned.insert(s);
        (step < 4 ? first : second).insert(s);
      }
    const int count = static_cast<int>(task.evaluation_samples());
    for (const SymbolString& s : members_of(language, task.batch(3, stream_of("evaluate"), 5, 0, count), &right))
      tested.insert(s);
    test.check(language + ": strings and bits", right);
    test.check(language + ": an epoch has each training string once", first == second && first.size() == 200);
    test.equal(language + ": the test's are all different", tested.size(), static_cast<size_t>(count));
    bool apart = count >= 5;
    for (const SymbolString& s : tested) apart &= learned.count(s) == 0;
    test.check(language + ": none of them is learned from", apart, std::to_string(count));

    const Batch batch = task.batch(3, STREAM, 0, 0, 4);
    std::vector<int32_t> best;
    for (const real bit : batch.sets) best.push_back(bit > real(0.5));
    CHECK(task.accuracy(batch, best) == 1);
    best[0] ^= 1;
    test.check(language + ": one wrong bit, one wrong string", task.accuracy(batch, best) == 0.75);
  }
  const NextSymbol longer("D_3", 51, 100, 0, 30, 1, 7);
  CHECK(longer.evaluation_samples() == 30 && longer.training_strings() == 0);
  // Seventeen are found in the first tries; the test's own are one less.
  test.equal("a window with few strings", NextSymbol("D_3", 11, 20, 0, 500, 1, 1).evaluation_samples(), 16);
  bool right = true;
  for (const SymbolString& s : members_of("D_3", longer.batch(1, stream_of("evaluate"), 0, 0, 30), &right))
    right &= s.size() >= 51 && s.size() <= 100;
  CHECK(right);
}

void bad_input(Test& test) {
  test.throws("D_2: strings of 2 to 1 symbols", [] { NextSymbol("D_2", 2, 1, 5, 5, 1, 1); });
  test.throws("even_pairs: has no members", [] { NextSymbol("even_pairs", 2, 50, 5, 5, 1, 1); });
  CHECK(task_of("D_2", 1, 5).has_near_misses(4) && !task_of("D_2", 1, 5).has_near_misses(3));
  CHECK(!task_of("Tomita_4", 1, 5).has_near_misses(2) && !task_of("even_pairs", 1, 5).has_near_misses(4));
  test.throws("unknown language parity, expected one of even_pairs, parity_check", [] { automaton_of("parity"); });
  test.throws("D_2: strings of 0 to 5 symbols", [] { task_of("D_2", 0, 5); });
  test.throws("D_2: strings of 6 to 5 symbols", [] { task_of("D_2", 6, 5); });
  test.throws("D_2: found only 2 of 4 strings of 2 to 4 symbols",
              [] { draw_members("D_2", 2, 4, 4, true, 1, STREAM); });
  test.throws("even_pairs: has no members", [] { draw_members("even_pairs", 2, 4, 3, false, 1, STREAM); });
  test.throws("parity_check: the next symbol", [] { next_symbol_targets("parity_check", {0, 1}); });
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  test.run("examples", examples);
  test.run("definitions", definitions);
  test.run("evaluations", evaluations);
  test.run("expressions", expressions);
  test.run("pieces", pieces);
  test.run("every position", every_position);
  test.run("lengths", lengths);
  test.run("symbols", symbols);
  test.run("membership", membership);
  test.run("shapes", shapes);
  test.run("next symbols", next_symbols);
  test.run("next symbol task", next_symbol_task);
  test.run("bad input", bad_input);
  return test.finish();
}
