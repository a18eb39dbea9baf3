// The weights in files of other formats: named tensors, which are read on request.
//
//   safetensors   one file, or several that an index names: model.safetensors.index.json   safetensors_weights
//   llm.c         one array after another                                                  llm_c.h
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/safetensors.h"
#include "ops/tensor.h"

namespace petroglyph {

struct Weights {
  struct Tensor {
    Shape shape;
    std::function<std::vector<float>()> read;
  };
  std::string origin;  // the beginning of error messages
  std::map<std::string, Tensor> tensors;

  bool has(const std::string& name) const { return tensors.count(name) > 0; }
};

// The paths of the parts that an index names: files in the same folder.
std::vector<std::string> parts_of_index(const std::string& path);
// Opens one safetensors file, or a JSON index with its parts in the same folder.
Weights safetensors_weights(const std::string& path);

}  // namespace petroglyph
