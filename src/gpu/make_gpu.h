// The GPU for those who need nothing of CUDA. Only in builds with CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ops/ops.h"

namespace petroglyph {

// 0 also where CUDA does not start.
int gpu_count();

// Whether there is no GPU or no driver here, or all are hidden (CUDA_VISIBLE_DEVICES): nothing that anyone must be told. Where
// CUDA does not start for another reason there may well be one.
bool gpu_absent();

// Why the GPU of this number, counted from 0, cannot be used; empty where it can: CUDA starts, it is there, new enough,
// and this build has kernels for it.
std::string gpu_obstacle(int number);

// The most numbers of scratch that an operation takes where less will do: it works in turns. No limit changes a bit.
struct ScratchLimits {
  int64_t sums = int64_t(16) << 20;  // of chunks, before they are added up
  int64_t pairs = int64_t(64) << 20;  // of attention: queries and keys
};

// Throws Error where there is an obstacle.
std::unique_ptr<Ops> make_gpu(int number = 0, const ScratchLimits& limits = {});

// Bytes of the GPU that was last made, taken by this program and all others.
int64_t gpu_memory_in_use();

// Floating-point operations a second of fused multiply-adds in registers, one counting as two: the best of several runs.
double gpu_peak_flops(Ops& gpu);

}  // namespace petroglyph
