#include "analysis/length_test.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/atomic_file.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "math/random.h"

namespace petroglyph {

namespace {

// The strings of a test. They depend on the length only, so that all models are tested on the same strings, whatever
// their seed or number of steps. It also counts the correct answers of each class.
class TestStrings final : public Task {
 public:
  TestStrings(const RegularLanguage& language, int length)
      : language_(language), length_(length), answers_(static_cast<size_t>(language.classes())) {}

  Batch batch(uint64_t, uint32_t, uint32_t, int first, int count) const override {
    constexpr uint64_t SEED = 1;
    return language_.batch(SEED, stream_of("test"), static_cast<uint32_t>(length_), first, count);
  }
  double accuracy(const Batch& batch, const std::vector<int32_t>& best) const override {
    for (const int32_t target : batch.targets)
      if (target >= 0) answers_[static_cast<size_t>(target)] += 1;
    return language_.accuracy(batch, best);
  }
  // The sum over all ranks; each rank has evaluated some of the strings.
  std::vector<double> answers(Ranks& ranks) const {
    const std::vector<double> all = ranks.gather(answers_);
    std::vector<double> sum(answers_.size());
    for (size_t i = 0; i < all.size(); ++i) sum[i % sum.size()] += all[i];
    return sum;
  }

 private:
  const RegularLanguage& language_;
  int length_;
  mutable std::vector<double> answers_;  // how many strings have each correct answer
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
    for (const int length : wanted) add(length, length, accuracy(length, 0.5f, &answers_.emplace_back()));
    count_answers();
    for (size_t p = 0; parity && p < s_.probabilities.size(); ++p) {
      const float ones = static_cast<float>(s_.probabilities[p]) / 100;
      result_.same_by_probability.push_back(accuracy(same, ones));
      double sum = 0;
      for (const int length : wanted) sum += accuracy(length, ones);
      result_.longer_by_probability.push_back(sum / static_cast<double>(count));
    }
    save("length,accuracy,members,one_answer\n");
    return result_;
  }

 private:
  void begin(int64_t total, const char* unit) {
    Progress::Settings shown;
    shown.quiet = session_.settings.quiet;
    shown.unit = unit;
    progress_.emplace(0, total, shown);
  }
  void add(double from, double to, double accuracy) {
    result_.from.push_back(from);
    result_.to.push_back(to);
    result_.accuracies.push_back(accuracy);
  }
  double accuracy(int length, float ones, std::vector<double>* answers = nullptr) {
    if (stopped()) return 0;
    const RegularLanguage language = session_.language(length, length, ones, s_.near_misses);
    const double longer = double(length) / session_.lengths().train;
    const TestStrings strings(language, length);
    const double accuracy = session_.run->evaluate(strings, s_.strings, longer).accuracy;
    if (answers) *answers = strings.answers(ranks_);
    if (progress_->due(++done_)) progress_->show(done_, text("length %d  accuracy %.1f %%", length, 100 * accuracy));
    return accuracy;
  }

  // Whether any rank has received a signal: all ranks stop together.
  bool stopped() { return stopped_ = stopped_ || ranks_.any(interrupted()); }

  // The fraction of members and the best constant answer, from the correct answers of each length's strings.
  void count_answers() {
    if (stopped()) return;
    const bool membership = session_.language(1, 1).is_membership();
    std::vector<double> all(answers_[0].size());
    for (const std::vector<double>& answers : answers_)
      for (size_t i = 0; i < all.size(); ++i) all[i] += answers[i];
    const auto likeliest = static_cast<size_t>(std::max_element(all.begin(), all.end()) - all.begin());
    for (const std::vector<double>& answers : answers_) {
      const double strings = std::accumulate(answers.begin(), answers.end(), 0.0);
      result_.members.push_back(membership ? answers[1] / strings : std::numeric_limits<double>::quiet_NaN());
      result_.one_answer.push_back(answers[likeliest] / strings);
    }
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
    progress_->finish();
    if (stopped() || !ranks_.first()) return;
    for (size_t i = 0; i < result_.to.size(); ++i) {
      csv += text("%.0f,", result_.to[i]) + number_text(result_.accuracies[i], 9);
      if (!answers_.empty()) csv += "," + cell_text(result_.members[i]) + "," + cell_text(result_.one_answer[i]);
      csv += "\n";
    }
    write_file_atomically(session_.run->file("test.csv"), csv);
  }

  RegularRun& session_;
  const RegularSettings& s_;
  Ranks& ranks_;
  TestResult result_;
  bool stopped_ = false;
  std::vector<std::vector<double>> answers_;  // [length][class]
  std::optional<Progress> progress_;
  int64_t done_ = 0;
};

}  // namespace

TestResult test_lengths(RegularRun& run) { return TestOfLengths(run).run(); }

}  // namespace petroglyph
