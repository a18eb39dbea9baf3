#include "ops/dct_plan.h"

#include <algorithm>

#include "math/positions.h"
#include "ops/sliding_dct.h"

namespace petroglyph {

DctPlan::DctPlan(Memory& memory, const std::vector<int64_t>& windows, const std::vector<int64_t>& frequencies,
                 int head_width, int longest)
    : longest_(longest) {
  std::vector<DctHead> heads;
  std::vector<real> waves;
  int64_t first = 0, state = 0;
  for (size_t h = 0; h < windows.size(); ++h) {
    const int64_t t = windows[h], k = frequencies[h], rows = std::min<int64_t>(t, longest);
    heads.push_back({static_cast<int>(t), static_cast<int>(k), static_cast<int>(rows), static_cast<int>(first),
                     static_cast<int64_t>(waves.size()) / 4, state});
    first += k;
    state += (rows * (k + 1) + 2 * k) * head_width;
    const std::vector<real> own = dct_waves(t, k, rows);
    waves.insert(waves.end(), own.begin(), own.end());
  }
  heads_ = Array<DctHead>(memory, {static_cast<int64_t>(heads.size())});
  heads_.upload(heads);
  waves_ = Tensor(memory, {static_cast<int64_t>(waves.size())});
  waves_.upload(waves);
  shape_.heads = static_cast<int>(heads.size());
  shape_.head_width = head_width;
  shape_.coefficients = static_cast<int>(first);
  shape_.most = static_cast<int>(*std::max_element(frequencies.begin(), frequencies.end()));
  shape_.state_size = state;
  shape_.plan = heads_.data();
  shape_.waves = waves_.data();
}

DctShape DctPlan::shape(int batch, int positions, int before) const {
  DctShape s = shape_;
  s.batch = batch;
  s.positions = positions;
  s.before = before;
  return s;
}

}  // namespace petroglyph
