// AdamW, elementwise: the GPU version of cpu/optimizer.cpp. The gradient's norm stays on the device.

#include "gpu/gpu.h"
#include "gpu/lanes.cuh"

namespace petroglyph {

namespace {

constexpr int THREADS = 256;

__global__ void adamw_step(float* value, float* m, float* v, const float* gradient, const float* gradient_square_sum,
                           AdamwStep step, int64_t n) {
  const int64_t i = element_of_thread<THREADS>();
  if (i >= n) return;
  const float norm = numerics::sqrt(*gradient_square_sum);
  const float shrink = step.clip > 0 && norm > step.clip ? step.clip / norm : 1;
  const float g = shrink * gradient[i];
  m[i] = step.beta1 * m[i] + (1 - step.beta1) * g;
  v[i] = step.beta2 * v[i] + (1 - step.beta2) * (g * g);
  const float direction = m[i] / step.correction1 / (numerics::sqrt(v[i] / step.correction2) + step.epsilon);
  value[i] -= step.learning_rate * (direction + step.weight_decay * value[i]);
}

}  // namespace

void Gpu::adamw(real* value, real* m, real* v, const real* gradient, const real* gradient_square_sum,
                const AdamwStep& step, int64_t n) {
  if (n > 0)
    LAUNCH(adamw_step, blocks_for(n, THREADS), THREADS, 0, stream_, value, m, v, gradient, gradient_square_sum, step,
           n);
}

}  // namespace petroglyph
