#include "exchange/rules.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

// (rows,columns) → (columns,rows)
std::vector<float> transposed(const std::vector<float>& values, int64_t rows, int64_t columns) {
  std::vector<float> turned(values.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      turned[static_cast<size_t>(c * rows + r)] = values[static_cast<size_t>(r * columns + c)];
  return turned;
}

// Rows (a,b,n) → (b,a,n), each of `row` numbers.
std::vector<float> exchanged(const std::vector<float>& values, int64_t a, int64_t b, int64_t n, int64_t row) {
  std::vector<float> moved(values.size());
  for (int64_t i = 0; i < a; ++i)
    for (int64_t j = 0; j < b; ++j)
      std::copy_n(values.begin() + (i * b + j) * n * row, n * row, moved.begin() + (j * a + i) * n * row);
  return moved;
}

// The shape of each source tensor.
Shape their_shape(const Rule& rule, const Shape& ours) {
  Shape shape = ours;
  if (rule.form == Rule::Form::TRANSPOSED) std::reverse(shape.begin(), shape.end());
  if (rule.form == Rule::Form::TAPS) shape.insert(shape.begin() + 1, 1);
  shape[0] = shape[0] / static_cast<int64_t>(rule.theirs.size()) + rule.skipped;
  return shape;
}

int64_t row_of(const Shape& shape) { return elements(shape) / std::max<int64_t>(1, shape[0]); }

}  // namespace

std::string find_tensor(const Weights& weights, const std::string& name) {
  if (weights.has(name)) return name;
  const std::string rest = name.substr(name.find('.') + 1);
  return weights.has(rest) ? rest : "";
}

namespace {

// The values of one source tensor of this shape, or with any_shape of as many numbers; zeros if it is missing and may be.
std::vector<float> take_tensor(const Weights& weights, const Rule& rule, const std::string& name, const Shape& wanted,
                               bool any_shape) {
  const std::string found = find_tensor(weights, name);
  if (found.empty() && rule.may_lack) return std::vector<float>(static_cast<size_t>(elements(wanted)));
  if (found.empty()) throw Error(weights.origin + ": has no tensor " + name);
  const auto& [shape, read] = weights.tensors.at(found);
  if (any_shape ? elements(shape) != elements(wanted) : shape != wanted)
    throw Error(weights.origin + ": tensor " + found + " has shape " + shape_text(shape) +
                ", its configuration requires " + shape_text(wanted) + (any_shape ? ", or as many numbers" : ""));
  return read();
}

std::vector<float> take_answer_last(const Weights& weights, const Rule& rule, const Shape& ours) {
  std::vector<float> places = take_tensor(weights, rule, rule.theirs[0], ours, true);
  const std::vector<float> bias = take_tensor(weights, rule, rule.theirs[1], {ours[1]}, true);
  std::rotate(places.begin(), places.begin() + ours[1], places.end());
  for (int64_t i = 0; i < (ours[0] - 1) * ours[1]; ++i)
    places[static_cast<size_t>(i)] += bias[static_cast<size_t>(i % ours[1])];
  return places;
}

}  // namespace

std::vector<float> take(const Weights& weights, const Rule& rule, const Shape& ours, int64_t heads) {
  if (rule.form == Rule::Form::FLAT) return take_tensor(weights, rule, rule.theirs[0], ours, true);
  if (rule.form == Rule::Form::ANSWER_LAST) return take_answer_last(weights, rule, ours);
  if (rule.form == Rule::Form::PIXELS) {  // (D,3,pixels) → (D,pixels,3)
    std::vector<float> values = take_tensor(weights, rule, rule.theirs[0], ours, true), turned;
    const int64_t pixels = ours[1] / 3;
    for (int64_t d = 0; d < ours[0]; ++d) {
      const auto begin = values.begin() + d * ours[1];
      const std::vector<float> row = transposed({begin, begin + ours[1]}, 3, pixels);
      turned.insert(turned.end(), row.begin(), row.end());
    }
    return turned;
  }
  const Shape wanted = their_shape(rule, ours);
  std::vector<float> values;
  for (const std::string& name : rule.theirs) {
    const std::vector<float> part = take_tensor(weights, rule, name, wanted, false);
    values.insert(values.end(), part.begin() + rule.skipped * row_of(wanted), part.end());
  }
  if (rule.form == Rule::Form::TRANSPOSED) return transposed(values, wanted[0], wanted[1]);
  if (rule.form == Rule::Form::INTERLEAVED) return exchanged(values, heads, 3, ours[0] / 3 / heads, row_of(ours));
  return values;
}

NamedTensor give(const Rule& rule, const Shape& ours, const std::vector<float>& values) {
  const bool is_transposed = rule.form == Rule::Form::TRANSPOSED;
  return {rule.theirs[0], their_shape(rule, ours), is_transposed ? transposed(values, ours[0], ours[1]) : values};
}

}  // namespace petroglyph
