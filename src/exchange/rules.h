// The rules that map a parameter of Petroglyph to tensors of another format. The rules of GPT-2 and Mamba serve both
// directions.
#pragma once

#include <string>
#include <vector>

#include "exchange/weights.h"

namespace petroglyph {

struct Rule {
  enum class Form {
    SAME,
    TRANSPOSED,   // the source is (in,out)
    TAPS,         // the source is (I,1,K), ours is (I,K)
    INTERLEAVED,  // the source's rows are (heads,3,n), ours are (3,heads,n)
    PIXELS,       // the source is (D,channels,side,side), ours is (D,P) with a pixel's channels side by side
    ANSWER_LAST,  // positions (1,N+1,D), the answer's first in the source, last in ours; and a bias (D) of each patch
    FLAT,         // any shape with the same number of elements
  };
  std::string ours;
  std::vector<std::string> theirs;  // the parameter is their concatenation along the rows
  Form form = Form::SAME;
  int64_t skipped = 0;    // unused rows of the source before the first used one
  bool may_lack = false;  // a missing tensor means zeros: a bias that the source does not have
};

// The tensor's name in the file: as given, or without its first part ("transformer."); empty if the file has neither.
std::string find_tensor(const Weights& weights, const std::string& name);

// The values of the parameter, whose shape is `ours`. Throws Error if a tensor is missing or has another shape.
std::vector<float> take(const Weights& weights, const Rule& rule, const Shape& ours, int64_t heads);

struct NamedTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;
};
// The source's tensor, from the values of the parameter; for the forms SAME, TRANSPOSED and TAPS.
NamedTensor give(const Rule& rule, const Shape& ours, const std::vector<float>& values);

}  // namespace petroglyph
