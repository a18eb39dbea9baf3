// The CPU as a device: its memory and its name.

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error.h"
#include "cpu/cpu.h"
#include "cpu/make_cpu.h"

namespace petroglyph {

namespace {

constexpr std::align_val_t ALIGNMENT{64};  // a cache line, and the widest vector

const char* instruction_set() {
#if defined(__AVX512F__)
  return "AVX-512";
#elif defined(__AVX2__)
  return "AVX2";
#elif defined(__aarch64__)
  return "NEON";
#else
  return "generic";
#endif
}

double bytes_of_machine() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::unique_ptr<Ops> make_cpu(int threads) {
  return std::make_unique<Cpu>(threads > 0 ? threads : available_threads());
}

Cpu::Cpu(int threads) : threads_(threads), scratch_(static_cast<size_t>(threads)) {}

std::string Cpu::description() const {
  return "CPU, " + std::to_string(threads_.count) + (threads_.count == 1 ? " thread, " : " threads, ") +
         instruction_set();
}

void* Cpu::allocate(size_t bytes) {
  void* memory = ::operator new(bytes, ALIGNMENT, std::nothrow);
  if (!memory)
    throw Error("out of memory: " + std::to_string(bytes >> 20) + " MiB wanted for one array" +
                ": a smaller batch, context or model needs less");
#ifdef PETROGLYPH_POISON  // tests: what nobody wrote is NaN
  std::memset(memory, 0xFF, bytes);
#endif
  return memory;
}

void Cpu::release(void* memory) noexcept { ::operator delete(memory, ALIGNMENT); }

// Not where the values and their copies would take more than half of the machine's memory.
std::shared_ptr<const real> Cpu::hold(const real* values, int64_t size) {
  if (static_cast<double>(size) * sizeof(real) > bytes_of_machine() / 4) return nullptr;
  weights_.hold(values, size);
  return {values, [this, size](const real* held) { weights_.release(held, size); }};
}

void Cpu::upload(void* to, const void* host, size_t bytes) {
  weights_.forget(to, bytes);
  if (bytes > 0) std::memcpy(to, host, bytes);  // of nothing, the addresses may be null
}

void Cpu::download(void* host, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(host, from, bytes);
}

void Cpu::zero(void* memory, size_t bytes) { std::memset(memory, 0, bytes); }

void Cpu::copy(void* to, size_t to_stride, const void* from, size_t from_stride, size_t bytes, size_t count) {
  for (size_t i = 0; i < count; ++i)
    std::memcpy(static_cast<char*>(to) + i * to_stride, static_cast<const char*>(from) + i * from_stride, bytes);
}

void Cpu::reserve_scratch(int64_t size) {
  for (Tensor& buffer : scratch_)
    if (buffer.size() < size) buffer.resize(*this, {size});
}

}  // namespace petroglyph
