// The GPU as a device: its memory, its stream and its name.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "gpu/gpu.h"

namespace petroglyph {

namespace {

std::string gibibytes(size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

// The properties of the first GPU, or an Error that says why there is none.
cudaDeviceProp find_device() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    throw Error(std::string("--device cuda: no GPU found (") +
                (status == cudaSuccess ? "the driver lists none" : cudaGetErrorString(status)) + ")");
  }
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  if (properties.major < 7)
    throw Error(std::string("--device cuda: ") + properties.name + " has compute capability " +
                std::to_string(properties.major) + "." + std::to_string(properties.minor) + ", 7.0 or newer is needed");
  return properties;
}

}  // namespace

Stage::Stage() {
  CUDA_CHECK(cudaMallocHost(&memory_, BYTES));
  try {
    CUDA_CHECK(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming));
  } catch (...) {
    (void)cudaFreeHost(memory_);
    throw;
  }
}

Stage::~Stage() {
  (void)cudaEventSynchronize(copied_);
  (void)cudaEventDestroy(copied_);
  (void)cudaFreeHost(memory_);
}

void Stage::upload(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  CUDA_CHECK(cudaEventSynchronize(copied_));  // the copy before has left; an event never recorded does not wait
  std::memcpy(memory_, from, bytes);
  CUDA_CHECK(cudaMemcpyAsync(to, memory_, bytes, cudaMemcpyHostToDevice, stream));
  CUDA_CHECK(cudaEventRecord(copied_, stream));
}

bool gpu_present() {
  int count = 0;
  const bool found = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  (void)cudaGetLastError();
  return found;
}

std::unique_ptr<Ops> make_gpu() {
  const cudaDeviceProp device = find_device();
  CUDA_CHECK(cudaSetDevice(0));
  return std::make_unique<Gpu>(device.name, device.multiProcessorCount);
}

Gpu::Gpu(const std::string& name, int multiprocessors) : name_(name), multiprocessors_(multiprocessors) {}

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

// cudaFree waits for the device, so that no kernel still uses the memory.
void Gpu::release(void* memory) noexcept { (void)cudaFree(memory); }

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

void Gpu::copy(void* to, size_t to_stride, const void* from, size_t from_stride, size_t bytes, size_t count) {
  if (bytes == 0 || count == 0) return;
  if (count == 1) {  // a row may be longer than a stride that CUDA takes
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
    return;
  }
  CUDA_CHECK(cudaMemcpy2DAsync(to, to_stride, from, from_stride, bytes, count, cudaMemcpyDeviceToDevice, stream_));
}

real* Gpu::scratch(int64_t size) {
  if (scratch_.size() < size) scratch_.resize(*this, {size});
  return scratch_.data();
}

}  // namespace petroglyph
