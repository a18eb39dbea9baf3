// The one file that knows whether this build has CUDA.

#include "train/device.h"

#include "base/error.h"
#include "cpu/make_cpu.h"
#ifdef PETROGLYPH_CUDA
#include "gpu/make_gpu.h"
#endif

namespace petroglyph {

std::unique_ptr<Ops> make_device(const std::string& name, int threads) {
#ifdef PETROGLYPH_CUDA
  if (name == "cuda" || (name == "auto" && gpu_present())) return make_gpu();
#else
  if (name == "cuda")
    throw Error("--device cuda: this build has no CUDA; build it where nvcc is installed, or with CUDA=1");
#endif
  return make_cpu(threads);
}

}  // namespace petroglyph
