#include "analysis/length_test.h"

#include <algorithm>
#include <optional>

#include "base/atomic_file.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "math/random.h"

namespace petroglyph {

namespace {

// The strings of a test. They depend on the length only, so that all models are tested on the same strings, whatever
// their seed or number of steps.
class TestStrings final : public Task {
 public:
  TestStrings(const RegularLanguage& language, int length) : language_(language), length_(length) {}

  Batch batch(uint64_t, uint32_t, uint32_t, int first, int count) const override {
    constexpr uint64_t SEED = 1;
    return language_.batch(SEED, stream_of("test"), static_cast<uint32_t>(length_), first, count);
  }
  double accuracy(const Batch& batch, const std::vector<int32_t>& best) const override {
    return language_.accuracy(batch, best);
  }

 private:
  const RegularLanguage& language_;
  int length_;
};

// The test of one trained model, with a progress line.
class TestOfLengths {
 public:
  explicit TestOfLengths(RegularRun& session)
      : session_(session), s_(session.regular), ranks_(*session.settings.ranks) {
    result_.task = s_.task;
    result_.seed = session.settings.seed;
  }

  TestResult run() {
    if (s_.next_symbol()) return windows(), result_;
    const Lengths lengths = session_.lengths();
    const std::vector<int> wanted = session_.test_lengths();
    const bool parity = s_.task == "parity_check";
    const auto count = static_cast<int64_t>(wanted.size());
    begin(1 + count + (parity ? static_cast<int64_t>(s_.probabilities.size()) * (count + 1) : 0), "length");
    const int same = session_.language(1, lengths.train, 0.5f, s_.near_misses).evaluated_length();
    result_.same_length = accuracy(same, 0.5f);
    for (const int length : wanted) add(length, length, accuracy(length, 0.5f));
    count_answers(wanted);
    for (size_t p = 0; parity && p < s_.probabilities.size(); ++p) {
      const float ones = static_cast<float>(s_.probabilities[p]) / 100;
      result_.same_by_probability.push_back(accuracy(same, ones));
      double sum = 0;
      for (const int length : wanted) sum += accuracy(length, ones);
      result_.longer_by_probability.push_back(sum / static_cast<double>(count));
    }
    save("length,accuracy,one_answer\n");
    return result_;
  }

 private:
  void begin(int64_t total, const char* unit) {
    progress_.emplace(0, total, Progress::Settings{session_.settings.quiet, unit});
  }
  void add(double from, double to, double accuracy) {
    result_.from.push_back(from);
    result_.to.push_back(to);
    result_.accuracies.push_back(accuracy);
  }
  double accuracy(int length, float ones) {
    if (stopped()) return 0;
    const RegularLanguage language = session_.language(length, length, ones, s_.near_misses);
    const double longer = double(length) / session_.lengths().train;
    const double accuracy = session_.run->evaluate(TestStrings(language, length), s_.strings, longer).accuracy;
    if (progress_->due(++done_)) progress_->show(done_, text("length %d  accuracy %.1f %%", length, 100 * accuracy));
    return accuracy;
  }

  // Whether any rank has received a signal: all ranks stop together.
  bool stopped() { return stopped_ = stopped_ || ranks_.any(interrupted()); }

  // The best constant answer, from the correct answers of each length's strings.
  void count_answers(const std::vector<int>& lengths) {
    std::vector<std::vector<double>> counts;  // [class][length]
    for (const int length : lengths) {
      const RegularLanguage language = session_.language(length, length, 0.5f, s_.near_misses);
      counts.resize(static_cast<size_t>(language.classes()));
      for (std::vector<double>& count : counts) count.push_back(0);
      for (const int32_t target : TestStrings(language, length).batch(0, 0, 0, 0, s_.strings).targets)
        if (target >= 0) ++counts[static_cast<size_t>(target)].back();
    }
    result_.one_answer = *std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
      return TestResult::mean_of(a) < TestResult::mean_of(b);
    });
    for (double& answer : result_.one_answer) answer /= s_.strings;
  }

  void windows() {
    begin(RegularRun::WINDOWS, "window");
    for (int i = 0; i < RegularRun::WINDOWS && !stopped(); ++i) {
      const NextSymbol strings = session_.next_symbols(i);
      const auto [low, high] = session_.window(i);
      add(low, high, session_.run->evaluate(strings, static_cast<int>(strings.evaluation_samples()), i + 1).accuracy);
      progress_->show(++done_, text("%lld strings of %d to %d symbols  accuracy %.1f %%",
                                    static_cast<long long>(strings.evaluation_samples()), low, high,
                                    100 * result_.accuracies.back()));
    }
    save("longest,accuracy\n");
  }

  void save(std::string csv) {
    if (stopped() || !ranks_.first()) return;
    for (size_t i = 0; i < result_.to.size(); ++i) {
      csv += text("%.0f,", result_.to[i]) + number_text(result_.accuracies[i], 9);
      if (!result_.one_answer.empty()) csv += "," + cell_text(result_.one_answer[i]);
      csv += "\n";
    }
    write_file_atomically(session_.run->file("test.csv"), csv);
  }

  RegularRun& session_;
  const RegularSettings& s_;
  Ranks& ranks_;
  TestResult result_;
  bool stopped_ = false;
  std::optional<Progress> progress_;
  int64_t done_ = 0;
};

}  // namespace

TestResult test_lengths(RegularRun& run) { return TestOfLengths(run).run(); }

}  // namespace petroglyph
