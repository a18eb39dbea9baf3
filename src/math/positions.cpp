// Tables for position encodings: sinusoids (count,width), the waves of the cosine transform (rows,frequencies,4),
// ALiBi's biases (count,heads) and T5's buckets (count).

#include "math/positions.h"

#include <cmath>

namespace petroglyph {

namespace {

// In float an angle of thousands of radians has few digits for its fraction, and libm's functions differ between
// machines. So these tables are computed in double with only +, −, ×, ÷, √ and fma, which round the same way
// everywhere. Compared with long double, the error of the sinusoids at position 5000 is 1e-12, the effect of one ulp of
// the frequency.

using numerics::fma;

constexpr double ROUND_TO_INTEGER = 0x1.8p52;

// e^x for −700 ≤ x ≤ 0: x = n ln 2 + r with |r| ≤ ln 2 / 2, then 15 terms of the series in r.
double exp_of(double x) {
  const double n = (x * 1.4426950408889634 + ROUND_TO_INTEGER) - ROUND_TO_INTEGER;
  const double r = fma(n, -2.3190468138462996e-17, fma(n, -0.69314718055994529, x));
  double sum = 1;
  for (int k = 15; k > 0; --k) sum = fma(sum * r, 1.0 / k, 1.0);
  return std::ldexp(sum, static_cast<int>(n));  // exact
}

struct SinCos {
  double sin, cos;
};

// Subtracts the quadrants, with π/2 in two parts, then sums eight terms of each series. Precise for |a| up to 1e8.
SinCos sin_cos(double a) {
  const double n = (a * 0.63661977236758134 + ROUND_TO_INTEGER) - ROUND_TO_INTEGER;
  double r = fma(n, -1.5707963267948966, a);
  r = fma(n, -6.123233995736766e-17, r);
  const double square = r * r;
  double sine = 1, cosine = 1;
  for (int k = 8; k > 0; --k) {
    sine = fma(sine, -square / (2 * k * (2 * k + 1)), 1.0);
    cosine = fma(cosine, -square / (2 * k * (2 * k - 1)), 1.0);
  }
  sine *= r;
  switch (static_cast<int64_t>(n) & 3) {
    case 0: return {sine, cosine};
    case 1: return {cosine, -sine};
    case 2: return {-sine, -cosine};
    default: return {-cosine, sine};
  }
}

}  // namespace

std::vector<real> sinusoids(int first, int count, int width) {
  constexpr double LOG_10000 = 9.2103403719761827;
  std::vector<real> table(static_cast<size_t>(count) * static_cast<size_t>(width));
  for (int column = 0; column < width; column += 2) {
    const double frequency = exp_of(-LOG_10000 * column / width);
    for (int t = 0; t < count; ++t) {
      const SinCos wave = sin_cos(frequency * (first + t));
      real* row = &table[static_cast<size_t>(t) * static_cast<size_t>(width)];
      row[column] = static_cast<real>(wave.sin);
      if (column + 1 < width) row[column + 1] = static_cast<real>(wave.cos);
    }
  }
  return table;
}

std::vector<real> dct_waves(int64_t window, int64_t frequencies, int64_t rows) {
  constexpr double PI = 3.141592653589793116;
  const auto wave = [&](int64_t quarters) {  // sin and cos of quarters·π/(2t); the remainder modulo 4t is exact
    return sin_cos(PI * static_cast<double>(quarters % (4 * window)) / static_cast<double>(2 * window));
  };
  std::vector<real> table;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t j = 0; j < frequencies; ++j) {
      const double factor = std::sqrt((j == 0 ? 1.0 : 2.0) / static_cast<double>(window));
      const SinCos take = wave(2 * j * row), give = wave(j * (2 * row + 1));
      for (const double number : {take.cos, take.sin, factor * give.cos, factor * give.sin})
        table.push_back(static_cast<real>(number));
    }
  return table;
}

std::vector<real> alibi_bias(int count, int heads, bool published) {
  constexpr double LOG_2 = 0.69314718055994529;
  int of = heads;  // the number of slopes in the geometric sequence
  if (published)
    for (of = 1; 2 * of <= heads;) of *= 2;
  std::vector<real> table(static_cast<size_t>(count) * static_cast<size_t>(heads));
  for (int h = 0; h < heads; ++h) {
    const double slope =
        h < of ? exp_of(-8 * LOG_2 * (h + 1) / of) : exp_of(-8 * LOG_2 * (2 * (h - of) + 1) / (2 * of));
    for (int n = 0; n < count; ++n) table[static_cast<size_t>(n) * heads + h] = static_cast<real>(-slope * n);
  }
  return table;
}

std::vector<int32_t> t5_buckets(int count) {
  // Bucket 16 + k begins where 16 log(n/16) / log 8 reaches k: bucket 17 at n = 16·8^(1/16) = 18.2, so 19, and so on.
  constexpr int FIRST[T5_BUCKETS - 16] = {16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113};
  std::vector<int32_t> buckets;
  for (int n = 0; n < count; ++n) {
    int bucket = n < 16 ? n : 15;
    for (const int first : FIRST) bucket += n >= first;
    buckets.push_back(bucket);
  }
  return buckets;
}

}  // namespace petroglyph
