// The CPU as a device: its description, the weights that it holds packed, and the threads' scratch memory.

#include <unistd.h>

#include "cpu/cpu.h"
#include "cpu/make_cpu.h"

namespace petroglyph {

namespace {

#ifdef _OPENMP
constexpr char WITHOUT_OPENMP[] = "";
#else
constexpr char WITHOUT_OPENMP[] = " (built without OpenMP)";
#endif

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

Cpu::Cpu(int threads) : threads_(threads), scratch_(static_cast<size_t>(threads_.count)) {}

std::string Cpu::description() const {
  return "CPU, " + std::to_string(threads_.count) + (threads_.count == 1 ? " thread" : " threads") + WITHOUT_OPENMP +
         ", " + instruction_set();
}

// Does nothing if the values and their packed copies would take more than half of the machine's memory.
std::shared_ptr<const real> Cpu::hold(const real* values, int64_t size) {
  if (static_cast<double>(size) * sizeof(real) > bytes_of_machine() / 4) return nullptr;
  weights_.hold(values, size);
  return {values, [this, size](const real* held) { weights_.release(held, size); }};
}

void Cpu::upload(void* to, const void* host, size_t bytes) {
  weights_.forget(to, bytes);
  HostOps::upload(to, host, bytes);
}

void Cpu::reserve_scratch(int64_t size) {
  for (Tensor& buffer : scratch_)
    if (buffer.size() < size) buffer.resize(*this, {size});
}

}  // namespace petroglyph
