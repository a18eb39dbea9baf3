#include "analysis/classify.h"

#include <algorithm>
#include <numeric>

#include "base/atomic_file.h"
#include "base/text.h"
#include "figures/figure.h"
#include "math/random.h"

namespace petroglyph {

namespace {

// The test images, whatever the step. It counts how often one class is the answer to another.
class TestImages final : public Task {
 public:
  TestImages(const Images& images, uint64_t seed)
      : images_(images), seed_(seed), K_(static_cast<size_t>(images.classes())), counts_(K_ * K_) {}

  Batch batch(uint64_t, uint32_t, uint32_t, int first, int count) const override {
    return images_.batch(seed_, stream_of("test"), 0, first, count);
  }
  double accuracy(const Batch& batch, const std::vector<int32_t>& best) const override {
    for (size_t i = 0; i < best.size(); ++i)
      ++counts_[static_cast<size_t>(batch.targets[i]) * K_ + static_cast<size_t>(best[i])];
    return Task::accuracy(batch, best);
  }
  // The sum over all ranks; each rank has evaluated some of the images.
  std::vector<int> counts(Ranks& ranks) const {
    const std::vector<int> all = ranks.gather(counts_);
    std::vector<int> sum(counts_.size());
    for (size_t i = 0; i < all.size(); ++i) sum[i % sum.size()] += all[i];
    return sum;
  }

 private:
  const Images& images_;
  uint64_t seed_;
  size_t K_;
  mutable std::vector<int> counts_;  // (classes,classes)
};

}  // namespace

Measures test_on_images(Run& run, Ranks& ranks, const Images& images, int count, const std::string& title) {
  const TestImages task(images, run.seed());
  const Measures found = run.evaluate(task, count);
  const std::vector<int> counts = task.counts(ranks);
  if (!ranks.first()) return found;
  run.check_folder();
  save_confusion(images.class_names(), counts, run.folder(), title);
  return found;
}

void save_confusion(const std::vector<std::string>& class_names, const std::vector<int>& counts,
                    const std::string& folder, const std::string& title) {
  const size_t K = class_names.size();
  std::string csv = "true," + join(class_names, ",") + "\n";
  std::vector<double> shares;
  for (size_t label = 0; label < K; ++label) {
    csv += class_names[label];
    const int total = std::accumulate(&counts[label * K], &counts[label * K] + K, 0);
    for (size_t answer = 0; answer < K; ++answer) {
      csv += "," + std::to_string(counts[label * K + answer]);
      shares.push_back(static_cast<double>(counts[label * K + answer]) / std::max(1, total));
    }
    csv += "\n";
  }
  write_file_atomically(folder + "/confusion.csv", csv);
  Figure figure(title);
  Panel& panel = figure.panel("Which class is taken for which").x("answer").y("class");
  panel.x_names(class_names).y_names(class_names);
  panel.heatmap(K, K, shares, "part of the class").color_range(0, 1);
  const double side = std::max(320.0, 12.0 * static_cast<double>(K));
  figure.panel_size(side, side);
  figure.save(folder + "/confusion.svg");
}

}  // namespace petroglyph
