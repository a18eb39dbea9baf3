#include "analysis/classify.h"

#include <algorithm>
#include <numeric>

#include "base/atomic_file.h"
#include "base/text.h"
#include "figures/figure.h"

namespace petroglyph {

double Answers::accuracy() const {
  double right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += labels[i] == answers[i];
  return labels.empty() ? 0 : right / static_cast<double>(labels.size());
}

namespace {

struct Answered {
  int32_t label, answer;
  real loss;
};

// The answers of the batches that belong to this rank.
std::vector<Answered> classify_some(Model& model, Ops& ops, const Images& task, uint64_t seed, uint32_t stream,
                                    int count, int batch, const Ranks& ranks, Progress& progress) {
  std::vector<Answered> some;
  for (int64_t begin = int64_t(ranks.rank()) * batch; begin < count; begin += int64_t(ranks.count()) * batch) {
    const int first = static_cast<int>(begin);
    const Batch pictures = task.batch(seed, stream, 0, first, std::min(batch, count - first));
    const int B = pictures.size;
    Tensor patches(ops, {static_cast<int64_t>(pictures.patches.size())}), losses(ops, {B});
    Tokens best(ops, {B}), targets(ops, {B});
    patches.upload(pictures.patches);
    targets.upload(pictures.targets);
    const real* logits = model.forward({nullptr, B, pictures.length, patches.data()});
    ops.argmax(best.data(), logits, B, model.classes());
    ops.cross_entropy(losses.data(), nullptr, logits, targets.data(), 0, B, model.classes());
    const std::vector<real> lost = losses.download();
    const std::vector<int32_t> answers = best.download();
    for (size_t i = 0; i < answers.size(); ++i) some.push_back({pictures.targets[i], answers[i], lost[i]});
    progress.show(std::min<int64_t>(count, begin + int64_t(ranks.count()) * batch), "");
  }
  return some;
}

}  // namespace

// Rank r computes the batches r, r + R, …; their results are added in the order of the pictures.
Answers classify(Model& model, Ops& ops, const Images& task, uint64_t seed, uint32_t stream, int count, int batch,
                 Ranks& ranks, Progress& progress) {
  const int R = ranks.count(), batches = (count + batch - 1) / batch;
  const size_t each = static_cast<size_t>((batches + R - 1) / R) * static_cast<size_t>(batch);
  std::vector<Answered> mine = classify_some(model, ops, task, seed, stream, count, batch, ranks, progress);
  mine.resize(each);
  const std::vector<Answered> gathered = ranks.gather(mine);
  Answers all;
  for (int i = 0; i < count; ++i) {
    const int b = i / batch;
    const Answered& one = gathered[static_cast<size_t>(b % R) * each + static_cast<size_t>(b / R * batch + i % batch)];
    all.loss += static_cast<double>(one.loss) / count;
    all.answers.push_back(one.answer);
    all.labels.push_back(one.label);
  }
  return all;
}

void save_confusion(const std::vector<std::string>& class_names, const Answers& answers, const std::string& folder,
                    const std::string& title) {
  const size_t K = class_names.size();
  std::vector<int> counts(K * K);
  for (size_t i = 0; i < answers.labels.size(); ++i)
    ++counts[static_cast<size_t>(answers.labels[i]) * K + static_cast<size_t>(answers.answers[i])];
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
