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

// The values of one complete source tensor, which must have `count` numbers.
std::vector<float> take_all(const Weights& weights, const std::string& name, int64_t count) {
  const std::string found = find_tensor(weights, name);
  if (found.empty()) throw Error(weights.origin + ": has no tensor " + name);
  const auto& [shape, read] = weights.tensors.at(found);
  if (elements(shape) != count)
    throw Error(weights.origin + ": tensor " + found + " has shape " + shape_text(shape) +
                ", its configuration requires " + with_commas(count) + " numbers");
  return read();
}

std::vector<float> take_answer_last(const Weights& weights, const Rule& rule, const Shape& ours) {
  std::vector<float> places = take_all(weights, rule.theirs[0], elements(ours));
  const std::vector<float> bias = take_all(weights, rule.theirs[1], ours[1]);
  std::rotate(places.begin(), places.begin() + ours[1], places.end());
  for (int64_t i = 0; i < (ours[0] - 1) * ours[1]; ++i)
    places[static_cast<size_t>(i)] += bias[static_cast<size_t>(i % ours[1])];
  return places;
}

}  // namespace

std::vector<float> take(const Weights& weights, const Rule& rule, const Shape& ours, int64_t heads) {
  if (rule.form == Rule::Form::FLAT) return take_all(weights, rule.theirs[0], elements(ours));
  if (rule.form == Rule::Form::ANSWER_LAST) return take_answer_last(weights, rule, ours);
  if (rule.form == Rule::Form::PIXELS) {  // (D,3,pixels) → (D,pixels,3)
    std::vector<float> values = take_all(weights, rule.theirs[0], elements(ours)), turned;
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
    const std::string found = find_tensor(weights, name);
    if (found.empty() && rule.may_lack) {
      values.resize(values.size() + static_cast<size_t>(elements(wanted)));
      continue;
    }
    if (found.empty()) throw Error(weights.origin + ": has no tensor " + name);
    const auto& [shape, read] = weights.tensors.at(found);
    if (shape != wanted)
      throw Error(weights.origin + ": tensor " + found + " has shape " + shape_text(shape) +
                  ", its configuration requires " + shape_text(wanted));
    const std::vector<float> part = read();
    values.insert(values.end(), part.begin() + rule.skipped * row_of(wanted), part.end());
  }
  if (rule.form == Rule::Form::TRANSPOSED) return transposed(values, wanted[0], wanted[1]);
  if (rule.form == Rule::Form::INTERLEAVED) return exchanged(values, heads, 3, ours[0] / 3 / heads, row_of(ours));
  return values;
}

std::vector<NamedTensor> give(const Rule& rule, const Shape& ours, int64_t heads, const std::vector<float>& values) {
  const Shape shape = their_shape(rule, ours);
  std::vector<float> all = values;
  if (rule.form == Rule::Form::TRANSPOSED) all = transposed(values, ours[0], ours[1]);
  if (rule.form == Rule::Form::INTERLEAVED) all = exchanged(values, 3, heads, ours[0] / 3 / heads, row_of(ours));
  std::vector<NamedTensor> given;
  const auto part = static_cast<std::ptrdiff_t>(all.size() / rule.theirs.size());
  for (size_t i = 0; i < rule.theirs.size(); ++i) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(i) * part;
    std::vector<float> rows(static_cast<size_t>(rule.skipped * row_of(shape)));  // zeros
    rows.insert(rows.end(), begin, begin + part);
    given.push_back({rule.theirs[i], shape, std::move(rows)});
  }
  return given;
}

}  // namespace petroglyph
