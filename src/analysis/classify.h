// The predictions of a trained image model, and its confusion matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "models/model.h"
#include "tasks/images.h"
#include "train/ranks.h"

namespace petroglyph {

struct Answers {
  std::vector<int> labels, answers;  // a class for each picture
  double loss = 0;                   // mean cross-entropy in nats

  double accuracy() const;
};

// Classifies the pictures 0 … count−1 of a random stream, `batch` at a time, distributed over all ranks. `progress`
// counts the pictures.
Answers classify(Model& model, Ops& ops, const Images& task, uint64_t seed, uint32_t stream, int count, int batch,
                 Ranks& ranks, Progress& progress);

// A confusion matrix: how often pictures of one class were classified as another.
class Confusion {
 public:
  Confusion(std::vector<std::string> class_names, const Answers& answers);

  // A table of up to 20 classes, with one row for each true class. For more classes, the name of the file that
  // contains it.
  std::string text() const;
  std::string csv() const;
  // Writes confusion.csv and confusion.svg.
  void save(const std::string& folder, const std::string& title) const;

 private:
  int count(size_t label, size_t answer) const { return counts_[label * names_.size() + answer]; }
  int total(size_t label) const;
  std::string table() const;

  std::vector<std::string> names_;
  std::vector<int> counts_;  // (classes,classes), one row for each true class
};

}  // namespace petroglyph
