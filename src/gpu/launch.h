// Interface of .cu files to CUDA: checks the status of every call, launches kernels and declares shared memory, in one
// way only. So test/cuda_on_host.h can run the kernels without a GPU.
//
//   CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream));
//   LAUNCH(scale, grid, block, shared_bytes, stream, out, in, n);
//   LAUNCH((scale<4, 2>), grid, block, shared_bytes, stream, out, in, n);   // a comma needs parentheses
//
//   template <int ROWS>
//   __global__ void scale(float* out, const float* in, int n) {
//     SHARED_ARRAY(float, tile, [ROWS][33]);   // float tile[ROWS][33]: the compiler knows its size; any number of them
//     SHARED_ARRAY(float, mean, );             // float mean
//     SHARED_MEMORY(float, rows);              // float* rows: shared_bytes long, 16-byte aligned; one a kernel,
//                                              // to be cut: float* more = rows + n;
//
// Do not use plain `__shared__`: the host run could not fill it with NaN before each block, so it would not detect
// reads of shared memory that the kernel never wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#ifndef CUDA_ON_HOST
#include <cuda_pipeline_primitives.h>  // asynchronous copies into shared memory: __pipeline_memcpy_async
#include <cuda_runtime.h>
#endif

#include "base/error.h"

#ifndef CUDA_ON_HOST
#define SHARED_ARRAY(type, name, extents) __shared__ type name extents
#define SHARED_MEMORY(type, name)                                          \
  extern __shared__ __align__(16) unsigned char petroglyph_shared_bytes[]; \
  type* name = reinterpret_cast<type*>(petroglyph_shared_bytes)
#endif

#define CUDA_CHECK(...) petroglyph::check_cuda((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

#define LAUNCH(kernel, ...) petroglyph::launch({#kernel, __FILE__, __LINE__}, kernel, __VA_ARGS__)

namespace petroglyph {

inline void check_cuda(cudaError_t status, const std::string& call, const char* file, int line) {
  if (status == cudaSuccess) return;
  // The runtime also stores the error and would return it from the next, unrelated call.
  (void)cudaGetLastError();
  throw Error(std::string(file) + ":" + std::to_string(line) + ": " + call + " failed: " + cudaGetErrorString(status));
}

// Converts a number of blocks to the type of a grid. A cast alone would silently truncate too large a number.
inline unsigned grid_blocks(int64_t blocks) {
  constexpr int64_t MOST = 0x7fffffff;
  if (blocks > MOST)
    throw Error("a GPU runs " + std::to_string(MOST) + " blocks of a kernel at most, and this needs " +
                std::to_string(blocks) + ": a smaller --batch needs fewer");
  return static_cast<unsigned>(blocks);
}

struct LaunchPlace {
  const char* kernel;
  const char* file;
  int line;
};

inline std::string describe(const LaunchPlace& place, dim3 grid, dim3 block, size_t shared_bytes) {
  auto product = [](dim3 d) { return std::to_string(d.x) + "×" + std::to_string(d.y) + "×" + std::to_string(d.z); };
  return "kernel " + std::string(place.kernel) + " on " + product(grid) + " blocks of " + product(block) +
         " threads with " + std::to_string(shared_bytes) + " bytes of shared memory";
}

// Use LAUNCH. This checks the launch only; an error inside the kernel is reported by the next call that waits for it.
template <class... Parameters, class... Arguments>
void launch(const LaunchPlace& place, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, Arguments&&... arguments) {
#ifdef CUDA_ON_HOST
  cuda_on_host::name_next_kernel(place.kernel);
#endif
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  cudaError_t status = cudaSuccess;
  // Without this attribute, a block gets at most 48 KiB, static arrays included.
  if (shared_bytes > 0) {
    status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
  }
  if (status == cudaSuccess) status = cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
  if (status != cudaSuccess) {
    check_cuda(status, describe(place, grid, block, shared_bytes), place.file, place.line);
  }
}

}  // namespace petroglyph
