// The weights in files of others: named tensors, read when they are asked for.
//
//   safetensors   one file, or several that an index names: model.safetensors.index.json   safetensors_weights
//   llm.c's       one array after another                                                  llm_c.h
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
  std::string origin;  // what complaints open with
  std::map<std::string, Tensor> tensors;

  bool has(const std::string& name) const { return tensors.count(name) > 0; }
};

// How many bits a number gets in a file of others.
enum class Precision { F32, F16, BF16 };
// Throws Error, which names the tensor, for a number that would become infinite.
std::string bytes_of(const std::string& name, const std::vector<float>& values, Precision precision);

// The parts that an index names, as paths: files beside it.
std::vector<std::string> parts_of_index(const std::string& path);
// One file, or an index in JSON beside its files.
Weights safetensors_weights(const std::string& path);

}  // namespace petroglyph
