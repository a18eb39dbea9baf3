// A vector register as a C++ type, for the few loops that compilers do not vectorise well by themselves.
#pragma once

#include "math/numerics.h"

namespace petroglyph {

#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64;
#elif defined(__AVX__)
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif
constexpr int VECTOR_WIDTH = VECTOR_BYTES / static_cast<int>(sizeof(real));

typedef real Vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

// g++ and clang++ compile this to one instruction if the machine has it.
inline Vector fma(Vector a, Vector b, Vector c) {
  Vector sum = c;
  for (int l = 0; l < VECTOR_WIDTH; ++l) sum[l] = numerics::fma(a[l], b[l], c[l]);
  return sum;
}

inline Vector broadcast(real x) { return x - Vector{}; }
inline Vector load(const real* x) { return *reinterpret_cast<const Vector*>(x); }
inline void store(real* x, Vector v) { *reinterpret_cast<Vector*>(x) = v; }

}  // namespace petroglyph
