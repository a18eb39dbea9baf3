// AdamW: updates value, m and v (n) from the gradient, which is clipped to a norm. The loop that defines it is in
// reference/optimizer.cpp.

#include "cpu/cpu.h"
#include "cpu/loops.h"

namespace petroglyph {

void Cpu::adamw(real* value, real* m, real* v, const real* gradient, const real* gradient_square_sum,
                const AdamwStep& step, int64_t n) {
  weights_.forget(value, static_cast<size_t>(n) * sizeof(real));
  const real norm = numerics::sqrt(*gradient_square_sum);
  const real shrink = step.clip > 0 && norm > step.clip ? step.clip / norm : 1;
  parallel_elements(threads_, n, n * FUNCTION, [&](int64_t i) {
    const real g = shrink * gradient[i];
    m[i] = step.beta1 * m[i] + (1 - step.beta1) * g;
    v[i] = step.beta2 * v[i] + (1 - step.beta2) * (g * g);
    const real direction = m[i] / step.correction1 / (numerics::sqrt(v[i] / step.correction2) + step.epsilon);
    value[i] -= step.learning_rate * (direction + step.weight_decay * value[i]);
  });
}

}  // namespace petroglyph
