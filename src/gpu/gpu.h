// The catalogue on an NVIDIA GPU: kernels over `real` = float on one stream, bit-identical to the CPU.
//
// Every operation adds in the order that the catalogue defines, so results do not depend on blocks, warps or timing.
// All work is queued on one stream, and data stays on the device. Three calls wait for the stream: download(),
// release(), and a scratch that grows. An upload waits only for the last upload but one.
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

// A recorded point of a stream's work.
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

// Pinned memory through which uploads pass, so that the caller need not wait until the previous upload ends.
class Stage {
 public:
  static constexpr size_t BYTES = size_t(4) << 20;  // a batch of tokens fits; weights are uploaded in pieces

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
  // Returns at least `size` floats of scratch for the calling operation, valid until the next call. It grows only in a
  // model's first training step or at the first tokens that are decoded.
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
