#include "tasks/task.h"

namespace petroglyph {

double Task::accuracy(const Batch& batch, const std::vector<int32_t>& best) const {
  int64_t right = 0;
  for (size_t i = 0; i < best.size(); ++i) right += batch.targets[i] >= 0 && batch.targets[i] == best[i];
  return batch.counted > 0 ? static_cast<double>(right) / static_cast<double>(batch.counted) : 0;
}

}  // namespace petroglyph
