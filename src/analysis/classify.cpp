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

namespace {

constexpr size_t LARGEST_TABLE = 20;  // classes: a larger table does not fit a terminal

}  // namespace

Confusion::Confusion(std::vector<std::string> class_names, const Answers& answers)
    : names_(std::move(class_names)), counts_(names_.size() * names_.size()) {
  for (size_t i = 0; i < answers.labels.size(); ++i)
    ++counts_[static_cast<size_t>(answers.labels[i]) * names_.size() + static_cast<size_t>(answers.answers[i])];
}

int Confusion::total(size_t label) const {
  const auto row = counts_.begin() + static_cast<int64_t>(label * names_.size());
  return std::accumulate(row, row + static_cast<int64_t>(names_.size()), 0);
}

std::string Confusion::text() const {
  if (names_.size() > LARGEST_TABLE)
    return "confusion.csv has the table of " + std::to_string(names_.size()) + " classes\n";
  return table();
}

// Each column is as wide as its class name and its numbers require.
std::string Confusion::table() const {
  const auto padded = [](const std::string& words, size_t width) {
    return std::string(width - std::min(width, words.size()), ' ') + words;
  };
  std::vector<size_t> columns;
  size_t first = 0;
  for (size_t k = 0; k < names_.size(); ++k) {
    columns.push_back(std::max<size_t>(4, names_[k].size()));
    for (size_t i = 0; i < names_.size(); ++i) columns[k] = std::max(columns[k], std::to_string(count(i, k)).size());
    first = std::max(first, names_[k].size());
  }
  std::string lines(first, ' ');
  for (size_t k = 0; k < names_.size(); ++k) lines += " " + padded(names_[k], columns[k]);
  for (size_t i = 0; i < names_.size(); ++i) {
    lines += "\n" + names_[i] + std::string(first - names_[i].size(), ' ');
    for (size_t k = 0; k < names_.size(); ++k)
      lines += " " + padded(count(i, k) == 0 ? "." : std::to_string(count(i, k)), columns[k]);
  }
  return lines + "\n";
}

std::string Confusion::csv() const {
  std::string lines = "true";
  for (const std::string& name : names_) lines += "," + name;
  for (size_t i = 0; i < names_.size(); ++i) {
    lines += "\n" + names_[i];
    for (size_t k = 0; k < names_.size(); ++k) lines += "," + std::to_string(count(i, k));
  }
  return lines + "\n";
}

void Confusion::save(const std::string& folder, const std::string& title) const {
  write_file_atomically(folder + "/confusion.csv", csv());
  std::vector<double> shares;
  for (size_t i = 0; i < names_.size(); ++i)
    for (size_t k = 0; k < names_.size(); ++k)
      shares.push_back(static_cast<double>(count(i, k)) / std::max(1, total(i)));
  Figure figure(title);
  Panel& panel = figure.panel("Which class is taken for which").x("answer").y("class").x_names(names_).y_names(names_);
  panel.heatmap(names_.size(), names_.size(), shares, "part of the class").color_range(0, 1);
  const double side = std::max(320.0, 12.0 * static_cast<double>(names_.size()));
  figure.panel_size(side, side);
  figure.save(folder + "/confusion.svg");
}

}  // namespace petroglyph
