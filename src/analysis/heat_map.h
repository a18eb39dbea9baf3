// What a model of images looks at: how strongly each patch speaks to the position that the answer is read from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "figures/canvas.h"
#include "models/model.h"
#include "tasks/images.h"

namespace petroglyph {

// Of one image of the last forward(), in one block: a number for each patch, adding up to 1. A relation network's is the
// paper's (causal_rn_linear_time, section 4.4; models/birn_image.cpp), a Transformer's the mean over its heads of the attention
// weights; what the answer's position takes from itself is left out.
std::vector<double> heat_map(Model& model, size_t block, int sample);

// Blocks for a sheet, counted from 0: four, evenly, up to the last one. Of twelve the second is the papers' 6th.
std::vector<size_t> blocks_to_show(int layers);

// Pictures, what they are and what the model says, beside their maps in some blocks, each from its lowest value (black) to
// its highest (white). Without the names of the model's classes it says nothing: it learned others than the pictures'.
Canvas heat_map_sheet(Model& model, Ops& ops, const std::vector<std::string>& picture_classes,
                      const std::vector<std::string>& model_classes, const std::vector<Picture>& pictures,
                      const std::vector<size_t>& blocks);

}  // namespace petroglyph
