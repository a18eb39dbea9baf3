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

// Writes confusion.csv and confusion.svg: how often pictures of one class, a row each, were classified as another.
void save_confusion(const std::vector<std::string>& class_names, const Answers& answers, const std::string& folder,
                    const std::string& title);

}  // namespace petroglyph
