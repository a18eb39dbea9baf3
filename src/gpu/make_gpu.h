// Interface to the GPU for code without CUDA headers. Only in builds with CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ops/ops.h"

namespace petroglyph {

// Also 0 if CUDA does not start.
int gpu_count();

// True if no GPU or no driver is present, or all GPUs are hidden (CUDA_VISIBLE_DEVICES): no message is needed. If CUDA
// does not start for another reason, a GPU may be present: then false.
bool gpu_absent();

// The reason why this GPU (counted from 0) cannot be used, or "" if it can be used. Requirements: CUDA starts, the GPU
// exists and is new enough, and this build has kernels for it.
std::string gpu_obstacle(int number);

// Largest scratch, in numbers, of operations that can work in parts. Limits change no bit of a result.
struct ScratchLimits {
  int64_t sums = int64_t(16) << 20;   // sums of chunks, before they are added
  int64_t pairs = int64_t(64) << 20;  // attention: numbers for pairs of queries and keys
};

// Throws Error with gpu_obstacle(number), if there is one.
std::unique_ptr<Ops> make_gpu(int number = 0, const ScratchLimits& limits = {});

// Bytes in use, by this and all other programs, on the GPU that make_gpu created last.
int64_t gpu_memory_in_use();

// Peak floating-point operations per second: fma in registers, each counted as two. The best of several runs.
double gpu_peak_flops(Ops& gpu);

}  // namespace petroglyph
