// What the devices share whose memory is the host's: the CPU and the reference.
#pragma once

#include "ops/ops.h"

namespace petroglyph {

class HostOps : public Ops {
 public:
  void* allocate(size_t bytes) override;
  void release(void* memory) noexcept override;
  void upload(void* to, const void* host, size_t bytes) override;
  void download(void* host, const void* from, size_t bytes) override;
  void zero(void* memory, size_t bytes) override;
  bool on_host() const override { return true; }
  void* allocate_host(size_t bytes) override { return allocate(bytes); }
  void release_host(void* memory) noexcept override { release(memory); }
  void copy(void* to, size_t to_stride, const void* from, size_t from_stride, size_t bytes, size_t count) override;
};

}  // namespace petroglyph
