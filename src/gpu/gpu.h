// The catalogue on an NVIDIA GPU: kernels over `real` = float, one stream, the same bits as the CPU.
//
// Every operation has the orders of sums of the catalogue, so that nothing depends on blocks, warps or who is first. All work is
// put on one stream and stays on the device. download() waits for it; so do memory that is given back, a scratch that grows, and
// an upload, for the last but one before it.
#pragma once

#include "gpu/launch.h"
#include "gpu/make_gpu.h"

namespace petroglyph {

class CudaStream {
 public:
  CudaStream() { CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() { (void)cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// When a stream's work has come so far.
class CudaEvent {
 public:
  explicit CudaEvent(unsigned flags) { CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags)); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() { (void)cudaEventDestroy(event_); }
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Pinned memory through which uploads pass, so that the caller need not wait for the one before to end.
class Stage {
 public:
  static constexpr size_t BYTES = size_t(4) << 20;  // a batch of tokens fits; weights pass in pieces

  Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage();
  // Returns when `from` may be reused. bytes ≤ BYTES.
  void upload(void* to, const void* from, size_t bytes, cudaStream_t stream);

 private:
  CudaEvent copied_{cudaEventDisableTiming};
  void* memory_;
};

class Gpu final : public Ops {
 public:
  Gpu(const std::string& name, int multiprocessors, const ScratchLimits& limits);

  std::string description() const override;
  void* allocate(size_t bytes) override;
  void release(void* memory) noexcept override;
  void upload(void* to, const void* host, size_t bytes) override;
  void download(void* host, const void* from, size_t bytes) override;
  void zero(void* memory, size_t bytes) override;
  bool on_host() const override { return false; }
  void* allocate_host(size_t bytes) override;
  void release_host(void* memory) noexcept override;
  void copy(void* to, size_t to_stride, const void* from, size_t from_stride, size_t bytes, size_t count) override;

#define OP(...) __VA_ARGS__ override
#include "ops/catalogue.h"
#undef OP

 private:
  // At least `size` floats for the operation that asks, until the next one asks. Grows in a model's first step, or at
  // a stream's first tokens, then never.
  real* scratch(int64_t size);

  std::string name_;
  int multiprocessors_;
  ScratchLimits limits_;
  CudaStream stream_;
  Stage stages_[2];
  int next_stage_ = 0;
  Tensor scratch_;
};

}  // namespace petroglyph
