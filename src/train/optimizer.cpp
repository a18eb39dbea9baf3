#include "train/optimizer.h"

#include <algorithm>
#include <cmath>

namespace petroglyph {

double Schedule::at(int64_t step) const {
  if (step < warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
  if (shape == Shape::CONSTANT) return peak;
  const double part =
      std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(std::max<int64_t>(1, steps - warmup)));
  // Our own cosine: that of a host's library differs from machine to machine.
  const double wave = numerics::cos(3.14159265f * static_cast<float>(part));
  return floor + (peak - floor) * 0.5 * (1 + wave);
}

namespace {

// x^n by squaring: multiplications only, so that every machine gets the same.
double power(double x, int64_t n) {
  double result = 1;
  for (; n > 0; n /= 2, x *= x)
    if (n % 2 == 1) result *= x;
  return result;
}

}  // namespace

Optimizer::Optimizer(Parameters& parameters, Ops& ops, const AdamwSettings& settings)
    : parameters_(parameters),
      ops_(ops),
      settings_(settings),
      square_sum_(ops, {1}),
      partial_(ops, {parameters.padded_size() / 1024 + 2}) {
  square_sum_.zero();
  for (const Parameter& parameter : parameters.list()) {
    const bool decays = settings.weight_decay > 0 && parameter.shape.size() > 1;
    if (ranges_.empty() || ranges_.back().decays != decays) ranges_.push_back({parameter.begin, 0, decays});
    ranges_.back().end = parameter.begin + parameter.size();
  }
}

Tensor& Optimizer::moment(Tensor& tensor) {
  if (tensor.size() < parameters_.padded_size()) {
    tensor = Tensor(ops_, {parameters_.padded_size()});
    tensor.zero();
  }
  return tensor;
}

void Optimizer::step(int64_t step, double learning_rate) {
  AdamwStep s;
  s.learning_rate = static_cast<real>(learning_rate);
  s.beta1 = static_cast<real>(settings_.beta1);
  s.beta2 = static_cast<real>(settings_.beta2);
  s.epsilon = static_cast<real>(settings_.epsilon);
  s.correction1 = static_cast<real>(1 - power(settings_.beta1, step + 1));
  s.correction2 = static_cast<real>(1 - power(settings_.beta2, step + 1));
  s.clip = static_cast<real>(settings_.clip);
  ops_.sum_of_squares(square_sum_.data(), partial_.data(), parameters_.gradients().data(), parameters_.padded_size());
  real *const m = this->m().data(), *const v = this->v().data();
  for (const Range& range : ranges_) {
    s.weight_decay = static_cast<real>(range.decays ? settings_.weight_decay : 0);
    ops_.adamw(parameters_.values().data() + range.begin, m + range.begin, v + range.begin,
               parameters_.gradients().data() + range.begin, square_sum_.data(), s, range.end - range.begin);
  }
}

double Optimizer::gradient_norm() const { return std::sqrt(square_sum_.download()[0]); }

}  // namespace petroglyph
