// Which tensors of others a parameter of ours is made of, said once for both directions.
#pragma once

#include <string>
#include <vector>

#include "exchange/weights.h"

namespace petroglyph {

struct Rule {
  enum class Form {
    SAME,
    TRANSPOSED,   // theirs is (in,out)
    TAPS,         // theirs is (I,1,K), ours (I,K)
    INTERLEAVED,  // the rows of theirs are (heads,3,n), of ours (3,heads,n)
    PIXELS,       // theirs is (D,channels,side,side), ours (D,P) with a pixel's channels side by side
    ANSWER_LAST,  // places (1,N+1,D) of which the first is the answer's, ours the last; and a bias (D) that each patch adds
    FLAT,         // as many numbers in any shape
  };
  std::string ours;
  std::vector<std::string> theirs;  // ours are these, one below the other
  Form form = Form::SAME;
  int64_t skipped = 0;    // rows of theirs before the first that means something
  bool may_lack = false;  // zeros where they have none: a bias that they do without
};

// The tensor's name in the file: as it is, or without its first word ("transformer."); empty where there is neither.
std::string find_tensor(const Weights& weights, const std::string& name);

// The values of our parameter of this shape. Throws Error where something is missing or has another shape.
std::vector<float> take(const Weights& weights, const Rule& rule, const Shape& ours, int64_t heads);

struct NamedTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;
};
// Their tensors from the values of ours.
std::vector<NamedTensor> give(const Rule& rule, const Shape& ours, int64_t heads, const std::vector<float>& values);

}  // namespace petroglyph
