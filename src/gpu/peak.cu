// The GPU's measured peak of arithmetic: the GPU version of test/peak.cpp.

#include "gpu/gpu.h"
#include "math/numerics.h"

namespace petroglyph {

namespace {

constexpr int THREADS = 256, CHAINS = 8, ROUNDS = 4096;

// Each thread executes only fused multiply-adds in registers. The sum keeps the compiler from removing them.
__global__ void multiply_adds(float* out, float factor, float term) {
  const int thread = static_cast<int>(blockIdx.x) * THREADS + static_cast<int>(threadIdx.x);
  float chain[CHAINS];
#pragma unroll
  for (int i = 0; i < CHAINS; ++i) chain[i] = static_cast<float>(thread + i);
  for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) chain[i] = numerics::fma(chain[i], factor, term);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < CHAINS; ++i) sum += chain[i];
  out[thread] = sum;
}

}  // namespace

double gpu_peak_flops(Ops& gpu) {
  int number = 0;
  cudaDeviceProp device;
  CUDA_CHECK(cudaGetDevice(&number));
  CUDA_CHECK(cudaGetDeviceProperties(&device, number));
  const int blocks = device.multiProcessorCount * 8;
  Tensor out(gpu, {static_cast<int64_t>(blocks) * THREADS});
  const CudaEvent start(cudaEventDefault), end(cudaEventDefault);
  double best = 1e30;
  for (int run = 0; run < 20; ++run) {
    CUDA_CHECK(cudaEventRecord(start, nullptr));
    LAUNCH(multiply_adds, dim3(static_cast<unsigned>(blocks)), dim3(THREADS), 0, nullptr, out.data(), 0.999f, 0.001f);
    CUDA_CHECK(cudaEventRecord(end, nullptr));
    CUDA_CHECK(cudaEventSynchronize(end));
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, end));
    best = milliseconds * 1e-3 < best ? milliseconds * 1e-3 : best;
  }
  return 2.0 * blocks * THREADS * CHAINS * ROUNDS / best;
}

}  // namespace petroglyph
