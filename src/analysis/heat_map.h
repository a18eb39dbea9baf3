// What an image model attends to: the weight of each patch at the position that the answer is read from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"
#include "tasks/images.h"

namespace petroglyph {

// For one image of the last forward() and one block: a number for each patch; the numbers add up to 1. For a relation
// network it is the paper's measure (causal_rn_linear_time, section 4.4; models/birn_image.cpp). For a Transformer it
// is the mean over the heads of the attention weights. The weight of the answer's position on itself is left out.
std::vector<double> heat_map(Model& model, size_t block, int sample);

// The blocks that a sheet shows, counted from 0: four, evenly spaced, up to the last one. With twelve blocks, the
// second of the four is the papers' 6th.
std::vector<size_t> blocks_to_show(int layers);

// An SVG file: the pictures with their true class and the model's prediction, beside their maps in some blocks. Each
// map ranges from its lowest value (dark) to its highest (bright). If model_classes is empty, predictions are left out,
// because the model was trained on other classes.
std::string heat_map_sheet(Model& model, Ops& ops, const std::vector<std::string>& picture_classes,
                           const std::vector<std::string>& model_classes, const std::vector<Picture>& pictures,
                           const std::vector<size_t>& blocks);

}  // namespace petroglyph
