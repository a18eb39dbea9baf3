// Attention weights for drawings, of an attention that never stores them (Model::attention_map). No forward or backward
// pass uses this.
#pragma once

#include <algorithm>
#include <vector>

#include "ops/ops.h"

namespace petroglyph {

// The weights of one sample, (heads,T,T). If the values v are columns of the identity matrix, the outputs of attention
// are the weights: so the pass is repeated with as many columns at a time as a head has channels. qkv (B,T,3D): q, k
// and v of a position side by side. attend(y, qkv): the forward pass of attention from such a qkv to y (B,T,D)
template <class Attend>
std::vector<real> attention_weights(Ops& ops, const real* qkv, int batch, int positions, int width, int heads_of_layer,
                                    int sample, Attend attend) {
  const size_t D = width, T = positions, heads = heads_of_layer, d = D / heads;
  std::vector<real> original(static_cast<size_t>(batch) * T * 3 * D), map(heads * T * T);
  ops.download(original.data(), qkv, original.size() * sizeof(real));
  Tensor changed(ops, {batch, positions, 3 * width}), y(ops, {batch, positions, width});
  for (size_t first = 0; first < T; first += d) {
    const size_t count = std::min(d, T - first);
    std::vector<real> values = original;
    for (size_t s = 0; s < T; ++s)
      for (size_t c = 0; c < D; ++c) values[((sample * T + s) * 3 + 2) * D + c] = s == first + c % d ? 1 : 0;
    changed.upload(values);
    attend(y.data(), changed.data());
    const std::vector<real> rows = y.download();
    for (size_t h = 0; h < heads; ++h)
      for (size_t t = 0; t < T; ++t)
        for (size_t c = 0; c < count; ++c) map[(h * T + t) * T + first + c] = rows[(sample * T + t) * D + h * d + c];
  }
  return map;
}

}  // namespace petroglyph
