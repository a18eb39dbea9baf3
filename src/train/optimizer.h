// AdamW over all parameters of a model, and the learning rate of each step.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"

namespace petroglyph {

struct Schedule {
  // After the warm-up: as it is, or along half a cosine down to `floor` at `steps`
  enum class Shape { CONSTANT, COSINE };
  double peak = 5e-4;   // learning rate after warm-up
  int64_t warmup = 50;  // step i < warmup uses peak · i / warmup
  Shape shape = Shape::CONSTANT;
  double floor = 0;
  int64_t steps = 0;

  double at(int64_t step) const;
};

struct AdamwSettings {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  // Of what has two dimensions or more: matrices and tables, and so Mamba's A_log (which its authors leave out), u and
  // v of the Transformer's "xl" and RegularGPT's `relative`. Vectors, as gains, shifts and biases are, stay as they
  // learn: the custom since GPT-2.
  double weight_decay = 0;
  double clip = 1;  // largest global norm of the gradient; 0: no clipping
};

class Optimizer {
 public:
  Optimizer(Parameters& parameters, Ops& ops, const AdamwSettings& settings);

  // Updates the parameters by their gradients. `step` counts from 0.
  void step(int64_t step, double learning_rate);
  // The global norm of the gradient that the last step() saw, before clipping. Waits for the device.
  double gradient_norm() const;

  // The moments (Parameters::room()), 0 before the first step. They take memory from the first step on, or when they
  // are asked
  // for: a model that is only evaluated has none.
  Tensor& m() { return moment(m_); }
  Tensor& v() { return moment(v_); }

 private:
  // Neighbours among the values that decay, or do not.
  struct Range {
    int64_t begin, end;
    bool decays;
  };

  Tensor& moment(Tensor& tensor);

  Parameters& parameters_;
  Ops& ops_;
  AdamwSettings settings_;
  std::vector<Range> ranges_;
  Tensor m_, v_, square_sum_, partial_;
};

}  // namespace petroglyph
