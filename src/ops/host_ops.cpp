#include "ops/host_ops.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"

namespace petroglyph {

namespace {
constexpr size_t ALIGNMENT = 64;  // a cache line, and the widest vector
}

void* HostOps::allocate(size_t bytes) {
  // Not new: where that has no memory, the program ends (base/program.cpp).
  void* memory = std::aligned_alloc(ALIGNMENT, (bytes / ALIGNMENT + 1) * ALIGNMENT);
  if (!memory)
    throw Error("not enough memory: " + std::to_string(bytes >> 20) + " MiB requested for one tensor" +
                ": a smaller batch, context or model needs less");
#ifdef PETROGLYPH_POISON  // tests: what nobody wrote is NaN
  std::memset(memory, 0xFF, bytes);
#endif
  return memory;
}

void HostOps::release(void* memory) noexcept { std::free(memory); }

void HostOps::upload(void* to, const void* host, size_t bytes) {
  if (bytes > 0) std::memcpy(to, host, bytes);  // of nothing, the addresses may be null
}

void HostOps::download(void* host, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(host, from, bytes);
}

void HostOps::zero(void* memory, size_t bytes) { std::memset(memory, 0, bytes); }

void HostOps::copy(void* to, size_t to_stride, const void* from, size_t from_stride, size_t bytes, size_t count) {
  for (size_t i = 0; i < count; ++i)
    std::memcpy(static_cast<char*>(to) + i * to_stride, static_cast<const char*>(from) + i * from_stride, bytes);
}

}  // namespace petroglyph
