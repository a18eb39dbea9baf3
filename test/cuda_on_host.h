// Test only: CUDA for g++ and clang++. A .cu file compiled with this header in front runs its kernels on the host. So
// every kernel can be compared bit for bit with its CPU version on a machine without a GPU.
//
//   g++ -std=c++17 -Wno-unknown-pragmas -ffp-contract=off -Isrc -x c++ -include test/cuda_on_host.h -c src/gpu/x.cu
//   … linked with cuda_on_host.cpp (the threads of a block) and cuda_on_host_runtime.cpp (memory, streams)
//
// Every thread of a block runs alone until it reaches a barrier or a warp exchange. The test chooses the order of
// threads (set_order()). If a kernel lacks a barrier, the first two orders give different results, or it reads NaN, the
// initial value of shared and device memory.
// These errors throw a Fault that names the kernel: a barrier that not all threads reach, a write beside an allocation,
// a pointer that does not belong to the device. (The PTX machine reports every access out of range at the access
// itself.) set_late_streams() delays the work of a stream until something waits for it, which reveals missing
// synchronization.
//
// What the catalogue forbids does not compile: atomics, and CUDA's max and min of floats. The host run does not
// detect two kinds of errors. First, changes that nvcc makes to arithmetic (ptx_run detects those). Second, a
// shuffle without __syncwarp: on a GPU a shuffle alone does not make a warp's memory visible. Use it from one host
// thread only.
#pragma once

#define CUDA_ON_HOST 1

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static_assert(false, "use SHARED_ARRAY or SHARED_MEMORY (gpu/launch.h) instead of __shared__");

// ---- Vector types ----

struct uint3 {
  unsigned x, y, z;
};
struct alignas(8) float2 {
  float x, y;
};
struct float3 {
  float x, y, z;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
constexpr float2 make_float2(float x, float y) { return {x, y}; }
constexpr float3 make_float3(float x, float y, float z) { return {x, y, z}; }
constexpr float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

// ---- The threads of a block: cuda_on_host.cpp ----

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace cuda_on_host {

// Thrown for errors that on a GPU would give a wrong result or stop the kernel.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Order { ASCENDING, DESCENDING, RANDOM };

// Sets the order of threads, warps and blocks, from the next kernel on.
void set_order(Order order, unsigned seed = 1);

// The second limit requires cudaFuncSetAttribute: that of compute capability 7.5, the lowest supported by the build.
constexpr size_t SHARED_LIMIT = 48 << 10, SHARED_LIMIT_WITH_LEAVE = 64 << 10;

struct Kernel {
  std::string name;
  dim3 grid, block;
  size_t shared_bytes = 0;       // dynamic, set by the launch
  size_t shared_limit = 0;       // for the sum with the kernel's own arrays
  std::function<void()> thread;  // runs one thread
  // For another executor (ptx/launch.h): the kernel's address, and its arguments laid out as in a GPU's memory.
  const void* function = nullptr;
  std::vector<unsigned char> parameters;
};
void run(const Kernel& kernel);
// Sets the function that runs kernels from now on instead of run(); an empty function restores run().
void set_executor(std::function<void(const Kernel&)> executor);

// Where a thread waits. The lanes of one exchange must be at the same place.
struct Place {
  const char* operation;
  const char* file;
  int line;
};
void block_barrier(const Place& place);
// Waits for the lanes of `mask`, then returns the bits of lane `source`, or all ones if that lane does not take part.
uint64_t warp_shuffle(uint32_t mask, uint64_t bits, int source, const Place& place);
// Returns one bit per lane of `mask`: that lane's `yes`.
uint32_t warp_vote(uint32_t mask, bool yes, const Place& place);
int lane();

// A shared array's place in the block's memory, set when the first thread of a launch reaches its declaration.
struct SharedSite {
  uint64_t launch = 0;
  void* address = nullptr;
};
void* shared_array(SharedSite& site, size_t bytes, size_t alignment, const char* name);
void* shared_memory();

template <class T>
T& shared_array(SharedSite& site, const char* name) {
  return *static_cast<T*>(shared_array(site, sizeof(T), alignof(T), name));
}

void copy_async(void* to, const void* from, size_t bytes);
void commit_copies();
void wait_for_copies(size_t commits_left);

template <class T>
T shuffle(uint32_t mask, T value, int source, const Place& place) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "a shuffle moves numbers of at most 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = warp_shuffle(mask, bits, source, place);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace cuda_on_host

#define SHARED_ARRAY(type, name, extents)             \
  static cuda_on_host::SharedSite name##_shared_site; \
  auto& name = cuda_on_host::shared_array<type extents>(name##_shared_site, #name)
#define SHARED_MEMORY(type, name) type* name = static_cast<type*>(cuda_on_host::shared_memory())

// ---- Device functions ----

#define CUDA_ON_HOST_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(CUDA_ON_HOST_PLACE) { cuda_on_host::block_barrier({"__syncthreads", file, line}); }

inline void __syncwarp(unsigned mask = ~0u, CUDA_ON_HOST_PLACE) {
  cuda_on_host::warp_vote(mask, true, {"__syncwarp", file, line});
}

inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_ON_HOST_PLACE) {
  return cuda_on_host::warp_vote(mask, predicate != 0, {"__ballot_sync", file, line});
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, CUDA_ON_HOST_PLACE) {
  return cuda_on_host::shuffle(mask, value, source, {"__shfl_sync", file, line});
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, CUDA_ON_HOST_PLACE) {
  return cuda_on_host::shuffle(mask, value, cuda_on_host::lane() ^ lane_mask, {"__shfl_xor_sync", file, line});
}

#undef CUDA_ON_HOST_PLACE

// Asynchronous copies (cuda_pipeline_primitives.h). The host run performs them as late as allowed.
inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes) {
  cuda_on_host::copy_async(to, from, bytes);
}
inline void __pipeline_commit() { cuda_on_host::commit_copies(); }
inline void __pipeline_wait_prior(size_t commits_left) { cuda_on_host::wait_for_copies(commits_left); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }

#define CUDA_ON_HOST_MIN_MAX(T)                       \
  constexpr T min(T a, T b) { return b < a ? b : a; } \
  constexpr T max(T a, T b) { return a < b ? b : a; }
CUDA_ON_HOST_MIN_MAX(int)
CUDA_ON_HOST_MIN_MAX(long)
CUDA_ON_HOST_MIN_MAX(unsigned long)
#undef CUDA_ON_HOST_MIN_MAX
float min(float, float) = delete;  // use numerics::min and max instead: CUDA's treat NaN and -0 differently
float max(float, float) = delete;

// ---- The runtime: cuda_on_host_runtime.cpp ----

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInsufficientDriver = 35,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorSystemNotReady = 802,
  cudaErrorSystemDriverMismatch = 803
};

enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

constexpr unsigned cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDefault = 0, cudaEventDisableTiming = 2;

struct cudaDeviceProp {
  char name[256];
  int major, minor, multiProcessorCount;
};

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;

struct cudaFuncAttributes {};

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
};

const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
#define CUDART_VERSION 13000
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);

cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMallocHost(void** memory, size_t bytes);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream = nullptr);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

namespace cuda_on_host {

// Properties of the simulated machine; a test may change them.
struct Device {
  cudaError_t start = cudaSuccess;  // returned by every call that needs a driver and a GPU
  int driver = 13000;               // newest CUDA version that the driver supports; 0: there is no driver
  int count = 1;
  int old = -1;     // the GPU of this number has compute capability 6.0
  int broken = -1;  // the properties of the GPU of this number cannot be queried
  int major = 9, minor = 0;
  cudaError_t image = cudaSuccess;  // returned if the build has no kernels for the GPU
  size_t memory = size_t(16) << 30, pinned = memory;
  int multiprocessors = 4;
};
Device& device();

void set_late_streams(bool late);
void name_next_kernel(const char* name);
size_t allocations();  // number of live allocations of device memory and pinned host memory

// The device allocation that contains an address; both 0 if there is none.
struct Memory {
  uintptr_t begin, end;
};
Memory device_memory_at(uintptr_t address);

cudaError_t allow_shared_memory(const void* kernel, int value);
// `pointers`: the kernel's pointer arguments. Each must be null or point into memory of the runtime.
cudaError_t submit(const cudaLaunchConfig_t& config, const void* kernel, std::vector<const void*> pointers,
                   std::function<void()> thread, std::vector<unsigned char> parameters);

template <class T>
void append_parameter(std::vector<unsigned char>& bytes, const T& argument) {
  const size_t at = (bytes.size() + alignof(T) - 1) / alignof(T) * alignof(T);
  bytes.resize(at + sizeof argument);
  std::memcpy(bytes.data() + at, &argument, sizeof argument);
}

template <class T>
void note_pointer(std::vector<const void*>& pointers, const T& argument) {
  if constexpr (std::is_pointer_v<T>) pointers.push_back(argument);
}

}  // namespace cuda_on_host

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "the kernel takes another number of arguments");
  const std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  std::vector<const void*> pointers;
  std::apply([&](const Parameters&... value) { (cuda_on_host::note_pointer(pointers, value), ...); }, values);
  std::vector<unsigned char> parameters;
  std::apply([&](const Parameters&... value) { (cuda_on_host::append_parameter(parameters, value), ...); }, values);
  return cuda_on_host::submit(
      *config, reinterpret_cast<const void*>(kernel), std::move(pointers),
      [kernel, values] { std::apply(kernel, values); }, std::move(parameters));
}

template <class T>
cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute, int value) {
  return cuda_on_host::allow_shared_memory(reinterpret_cast<const void*>(kernel), value);
}

template <class T>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, T*) {
  return cuda_on_host::device().image;
}

template <class T>
cudaError_t cudaMalloc(T** memory, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}

template <class T>
cudaError_t cudaMallocHost(T** memory, size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void**>(memory), bytes);
}
