// The test of a trained image model, and its confusion matrix.
#pragma once

#include <string>
#include <vector>

#include "tasks/images.h"
#include "train/run.h"

namespace petroglyph {

// Evaluates the model on the test images 0 … count−1, by all ranks together. Writes the confusion matrix into the
// run's folder.
Measures test_on_images(Run& run, Ranks& ranks, const Images& images, int count, const std::string& title);

// Writes confusion.csv and confusion.svg: how often pictures of one class, a row each, were classified as another.
// counts: (classes,classes).
void save_confusion(const std::vector<std::string>& class_names, const std::vector<int>& counts,
                    const std::string& folder, const std::string& title);

}  // namespace petroglyph
