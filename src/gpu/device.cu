// The GPU as a device: its memory, its stream and its name. The GPU version of cpu/device.cpp.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "gpu/gpu.h"

namespace petroglyph {

namespace {

constexpr size_t LONGEST_STRIDE = 0x7fffffff;  // largest row stride that CUDA accepts

std::string gibibytes(size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

// The driver's number of GPUs, or the error of the query.
struct Listed {
  cudaError_t status = cudaSuccess;
  int count = 0;
};
Listed list_gpus() {
  Listed listed;
  listed.status = cudaGetDeviceCount(&listed.count);
  (void)cudaGetLastError();
  return listed;
}

// The newest CUDA version that the driver supports; 0 without a driver.
int driver_version() {
  int version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess) return version;
  (void)cudaGetLastError();
  return 0;
}

// CUDA returns cudaErrorInsufficientDriver both for a missing driver and for one that is too old.
bool has_no_driver(const Listed& listed) {
  return listed.status == cudaErrorInsufficientDriver && driver_version() == 0;
}

// "13.0" for 13000.
std::string shown_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string why_none(const Listed& listed) {
  if (listed.status == cudaSuccess) return "no GPU found (the driver lists none)";
  if (has_no_driver(listed)) return "no GPU found (there is no driver)";
  const std::string words = cudaGetErrorString(listed.status);
  if (listed.status == cudaErrorNoDevice) return "no GPU found (" + words + ")";
  if (listed.status != cudaErrorInsufficientDriver)
    return "CUDA does not start: " + words + " (" + cudaGetErrorName(listed.status) + ")";
  int version = 0;
  CUDA_CHECK(cudaRuntimeGetVersion(&version));
  return "the GPU's driver is too old: it knows CUDA " + shown_version(driver_version()) + ", this build is of CUDA " +
         shown_version(version);
}

// True if this build's CUDA version no longer supports this GPU.
bool is_forgotten(const cudaDeviceProp& gpu) { return CUDART_VERSION >= 13000 && gpu.major == 7 && gpu.minor < 5; }

void* allocate_pinned(size_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMallocHost(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw Error("out of pinned memory of the host: " + gibibytes(bytes) + " wanted for one array");
  }
  CUDA_CHECK(status);
  return memory;
}

// Never launched. Used to test whether this build contains a kernel image that the GPU can run.
__global__ void asked_for() {}

}  // namespace

Stage::Stage() : memory_(allocate_pinned(BYTES)) {}

Stage::~Stage() {
  (void)cudaEventSynchronize(copied_);
  (void)cudaFreeHost(memory_);
}

void Stage::upload(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  CUDA_CHECK(cudaEventSynchronize(copied_));  // wait for the previous copy; does not wait for an event never recorded
  std::memcpy(memory_, from, bytes);
  CUDA_CHECK(cudaMemcpyAsync(to, memory_, bytes, cudaMemcpyHostToDevice, stream));
  CUDA_CHECK(cudaEventRecord(copied_, stream));
}

int gpu_count() {
  const Listed listed = list_gpus();
  return listed.status == cudaSuccess ? listed.count : 0;
}

bool gpu_absent() {
  const Listed listed = list_gpus();
  if (listed.status == cudaSuccess) return listed.count == 0;
  return listed.status == cudaErrorNoDevice || has_no_driver(listed);
}

std::string gpu_obstacle(int number) {
  const Listed listed = list_gpus();
  if (listed.status != cudaSuccess || listed.count == 0) return why_none(listed);
  if (number < 0 || number >= listed.count)
    return "there is no GPU " + std::to_string(number) + ", expected one from 0 to " + std::to_string(listed.count - 1);
  cudaDeviceProp gpu;
  const cudaError_t asked = cudaGetDeviceProperties(&gpu, number);
  if (asked != cudaSuccess) {
    (void)cudaGetLastError();
    return "GPU " + std::to_string(number) + " does not work: " + cudaGetErrorString(asked);
  }
  const std::string capability = std::to_string(gpu.major) + "." + std::to_string(gpu.minor),
                    name = gpu.name + (" has compute capability " + capability);
  if (gpu.major < 7) return name + ", 7.0 or newer is needed";
  cudaFuncAttributes attributes;
  cudaError_t status = cudaSetDevice(number);
  if (status == cudaSuccess) status = cudaFuncGetAttributes(&attributes, asked_for);
  if (status == cudaSuccess) return "";
  (void)cudaGetLastError();
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction)
    return name + ", for which this build has no kernels: " +
           (is_forgotten(gpu)
                ? "a CUDA before 13 builds them"
                : "make CUDA=1 GPU_ARCH=" + std::to_string(gpu.major) + std::to_string(gpu.minor) + " builds them");
  return gpu.name + (std::string(" does not work: ") + cudaGetErrorString(status));
}

int64_t gpu_memory_in_use() {
  size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(total - free);
}

std::unique_ptr<Ops> make_gpu(int number, const ScratchLimits& limits) {
  const std::string obstacle = gpu_obstacle(number);
  if (!obstacle.empty()) throw Error("--device cuda: " + obstacle);
  cudaDeviceProp gpu;
  CUDA_CHECK(cudaGetDeviceProperties(&gpu, number));
  CUDA_CHECK(cudaSetDevice(number));
  return std::make_unique<Gpu>(gpu.name, gpu.multiProcessorCount, limits);
}

Gpu::Gpu(const std::string& name, int multiprocessors, const ScratchLimits& limits)
    : name_(name), multiprocessors_(multiprocessors), limits_(limits) {}

std::string Gpu::description() const { return name_ + ", " + std::to_string(multiprocessors_) + " multiprocessors"; }

void* Gpu::allocate(size_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, std::max<size_t>(bytes, 1));
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    size_t free = 0, total = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    throw Error("out of GPU memory: " + gibibytes(bytes) + " wanted for one array, " + gibibytes(free) + " of " +
                gibibytes(total) + " are free on " + name_);
  }
  CUDA_CHECK(status);
  return memory;
}

// A kernel may still use the memory, and CUDA does not guarantee that cudaFree waits for it.
void Gpu::release(void* memory) noexcept {
  (void)cudaStreamSynchronize(stream_);
  (void)cudaFree(memory);
}

void Gpu::upload(void* to, const void* host, size_t bytes) {
  for (size_t done = 0; done < bytes; done += Stage::BYTES) {
    stages_[next_stage_].upload(static_cast<char*>(to) + done, static_cast<const char*>(host) + done,
                                std::min(bytes - done, Stage::BYTES), stream_);
    next_stage_ ^= 1;
  }
}

void Gpu::download(void* host, const void* from, size_t bytes) {
  if (bytes > 0) CUDA_CHECK(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, stream_));
  CUDA_CHECK(cudaStreamSynchronize(stream_));
}

void Gpu::zero(void* memory, size_t bytes) {
  if (bytes > 0) CUDA_CHECK(cudaMemsetAsync(memory, 0, bytes, stream_));
}

void* Gpu::allocate_host(size_t bytes) { return allocate_pinned(bytes); }

void Gpu::release_host(void* memory) noexcept {
  (void)cudaStreamSynchronize(stream_);
  (void)cudaFreeHost(memory);
}

void Gpu::copy(void* to, size_t to_stride, const void* from, size_t from_stride, size_t bytes, size_t count) {
  if (bytes == 0 || count == 0) return;
  if (count == 1 || std::max(to_stride, from_stride) > LONGEST_STRIDE) {
    for (size_t i = 0; i < count; ++i)
      CUDA_CHECK(cudaMemcpyAsync(static_cast<char*>(to) + i * to_stride,
                                 static_cast<const char*>(from) + i * from_stride, bytes, cudaMemcpyDeviceToDevice,
                                 stream_));
    return;
  }
  CUDA_CHECK(cudaMemcpy2DAsync(to, to_stride, from, from_stride, bytes, count, cudaMemcpyDeviceToDevice, stream_));
}

real* Gpu::scratch(int64_t size) {
  if (scratch_.size() < size) scratch_.resize(*this, {size});
  return scratch_.data();
}

}  // namespace petroglyph
