// The relation's gradients of queries and of keys by the sweep of relation.cuh, for every activation: a file of its own, as so
// many kernels take long to compile.

#include "gpu/gpu.h"
#include "gpu/relation.cuh"
#include "math/activation.h"

namespace petroglyph {

namespace {

template <Sweep SWEEP>
void sweep(const SweepArguments& arguments, Activation activation, cudaStream_t stream) {
  with_activation(activation, arguments.inv_std != nullptr, arguments.pairs.width,
                  [&](auto psi) { run_sweep<decltype(psi), SWEEP>(arguments, stream); });
}

}  // namespace

void sweep_queries(const SweepArguments& arguments, Activation activation, cudaStream_t stream) {
  sweep<Sweep::QUERY_GRADIENT>(arguments, activation, stream);
}

void sweep_keys(const SweepArguments& arguments, Activation activation, cudaStream_t stream) {
  sweep<Sweep::KEY_GRADIENT>(arguments, activation, stream);
}

}  // namespace petroglyph
