#include "tasks/copying.h"

#include "math/random.h"

namespace petroglyph {

Batch Copying::batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const {
  const int n = length_, T = context();
  Batch batch;
  batch.size = count;
  batch.length = T;
  batch.tokens.resize(static_cast<size_t>(count) * T);
  batch.targets.assign(static_cast<size_t>(count) * T, -1);
  batch.counted = static_cast<int64_t>(count) * (n + 1);
  const int draws = (n + 3) / 4;  // one draw gives four letters
  for (int b = 0; b < count; ++b) {
    int32_t* tokens = &batch.tokens[static_cast<size_t>(b) * T];
    int32_t* targets = &batch.targets[static_cast<size_t>(b) * T];
    tokens[0] = BOS;
    tokens[n + 1] = SEP;
    for (int i = 0; i < n; ++i) {
      const uint64_t index = static_cast<uint64_t>(first + b) * draws + i / 4;
      const uint32_t bits = philox(seed, stream, step, index).word[i % 4];
      const int32_t token = FIRST_LETTER + static_cast<int32_t>(below(bits, LETTERS));
      tokens[1 + i] = tokens[n + 2 + i] = targets[n + 1 + i] = token;
    }
    targets[T - 1] = EOS;
  }
  return batch;
}

double Copying::answer_accuracy(const int32_t* string, const int32_t* answer) const {
  if (answer[length_] != EOS) return 0;
  int right = 0;
  for (int i = 0; i < length_; ++i) {
    if (answer[i] == EOS) return 0;
    right += answer[i] == string[i];
  }
  return static_cast<double>(right) / length_;
}

double Copying::accuracy(const Batch& batch, const std::vector<int32_t>& best) const {
  double sum = 0;
  for (int b = 0; b < batch.size; ++b) {
    const size_t row = static_cast<size_t>(b) * batch.length;
    sum += answer_accuracy(&batch.tokens[row + 1], &best[row + static_cast<size_t>(length_) + 1]);
  }
  return sum / batch.size;
}

char Copying::letter(int32_t token) {
  return token >= FIRST_LETTER ? static_cast<char>('a' + token - FIRST_LETTER) : "^|$"[token];
}

}  // namespace petroglyph
