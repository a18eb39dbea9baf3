#include "analysis/order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "analysis/inspection.h"
#include "base/text.h"

namespace petroglyph {

namespace {

// `count` different numbers from 0 … n−1, in random order.
std::vector<int32_t> shuffled(int n, int count, uint64_t seed, uint32_t stream, uint32_t trial) {
  std::vector<int32_t> numbers(static_cast<size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int i = 0; i < count; ++i) {
    const auto left = static_cast<uint32_t>(n - i);
    std::swap(numbers[i], numbers[i + below(philox(seed, stream, trial, static_cast<uint64_t>(i)).word[0], left)]);
  }
  numbers.resize(static_cast<size_t>(count));
  return numbers;
}

std::vector<real> logits(Model& model, Ops& ops, const std::vector<int32_t>& tokens) {
  Tokens on_device;
  const real* const found = forward(model, ops, on_device, tokens);
  std::vector<real> logits(tokens.size() * static_cast<size_t>(model.classes()));
  ops.download(logits.data(), found, logits.size() * sizeof(real));
  return logits;
}

double distance_of_logits(const real* a, const real* b, int n) {
  double difference = 0, norm = 0;
  for (int i = 0; i < n; ++i) {
    const double x = a[i], y = b[i];
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

}  // namespace

OrderSensitivity order_sensitivity(Model& model, Ops& ops, int vocab, int length, int trials, uint64_t seed) {
  const int V = model.classes();
  OrderSensitivity result;
  result.later = std::numeric_limits<double>::infinity();
  for (int trial = 0; trial < trials; ++trial) {
    const auto draw = static_cast<uint32_t>(trial);
    const std::vector<int32_t> tokens = shuffled(vocab, length, seed, stream_of("tokens"), draw);
    std::vector<int32_t> order = shuffled(length - 1, length - 1, seed, stream_of("order"), draw);
    if (std::is_sorted(order.begin(), order.end())) std::swap(order[0], order[1]);
    order.push_back(length - 1);  // the last input keeps its position
    std::vector<int32_t> permuted;
    for (const int32_t from : order) permuted.push_back(tokens[static_cast<size_t>(from)]);
    const std::vector<real> before = logits(model, ops, tokens), after = logits(model, ops, permuted);
    bool differs = false;
    for (int t = 0; t < length; ++t) {
      const real* const now = &after[static_cast<size_t>(t) * V];
      const double here = distance_of_logits(now, &before[static_cast<size_t>(t) * V], V);
      const double moved = distance_of_logits(now, &before[static_cast<size_t>(order[t]) * V], V);
      differs = differs || order[t] != t;
      if (differs) result.later = std::min(result.later, here);
      if (t == length - 1) result.last = std::max(result.last, here);
      result.moved = std::max(result.moved, moved);
    }
  }
  return result;
}

Look look_of(const std::vector<real>& map, int heads, int T) {
  Look look;
  for (int h = 0; h < heads; ++h)
    for (int t = 1; t < T; ++t) {
      const real* const row = &map[(static_cast<size_t>(h) * T + t) * T];
      double sum = 0;
      for (int s = 0; s <= t; ++s) {
        const double weight = row[s];
        if (weight > 0) sum -= weight * std::log(weight);
      }
      look.own += row[t];
      look.entropy += sum / std::log(t + 1.0);
    }
  const double rows = static_cast<double>(heads) * (T - 1);
  return {look.own / rows, look.entropy / rows};
}

std::vector<Look> mean_looks(Model& model, Ops& ops, const Task& task, uint64_t seed, int windows, int layers,
                             int heads) {
  std::vector<Look> means(static_cast<size_t>(layers));
  Tokens on_device;
  for (int window = 0; window < windows; ++window) {
    const Batch batch = task.batch(seed, stream_of("evaluate"), 0, window, 1);
    forward(model, ops, on_device, batch.tokens);
    for (size_t layer = 0; layer < means.size(); ++layer) {
      const Look look = look_of(model.attention_map(layer, 0), heads, batch.length);
      means[layer].own += look.own / windows;
      means[layer].entropy += look.entropy / windows;
    }
  }
  return means;
}

void print_looks(const std::vector<Look>& looks, int T) {
  print("%-8s %24s %30s\n", "layer", "weight on the new token", "entropy, as a part of uniform");
  for (size_t layer = 0; layer < looks.size(); ++layer)
    print("%-8zu %24.3f %30.3f\n", layer + 1, looks[layer].own, looks[layer].entropy);
  print("uniform attention: %.3f and 1\n\n", alike_weight(T));
}

std::string look_cells(const Look& look) { return number_text(look.own, 6) + "," + number_text(look.entropy, 6); }

// The mean of 1/(t + 1) over the positions.
double alike_weight(int T) {
  double sum = 0;
  for (int t = 1; t < T; ++t) sum += 1.0 / (t + 1);
  return sum / (T - 1);
}

}  // namespace petroglyph
