// A shape and a buffer of one device. A Tensor owns its memory; operations see bare pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "math/numerics.h"

namespace petroglyph {

using Shape = std::vector<int64_t>;  // printed by shape_text (text.h)

inline int64_t elements(const Shape& shape) {
  int64_t product = 1;
  for (int64_t d : shape) product *= d;
  return product;
}

// Where numbers live. Implemented by each device (ops.h); all calls are in order with the device's operations.
class Memory {
 public:
  virtual ~Memory() = default;
  // Uninitialised; throws Error with what was wanted where there is too little.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  virtual void upload(void* to, const void* host, size_t bytes) = 0;      // the host memory may be reused on return
  virtual void download(void* host, const void* from, size_t bytes) = 0;  // waits for the device
  virtual void zero(void* memory, size_t bytes) = 0;
  // Whether the host reads and writes this memory as its own.
  virtual bool on_host() const = 0;
  // Memory of the host that the device copies from and to fastest.
  virtual void* allocate_host(size_t bytes) = 0;
  virtual void release_host(void* memory) noexcept = 0;
  // `count` rows of `bytes`, a stride (in bytes) apart on either side: appends rows to a cache.
  virtual void copy(void* to, size_t to_stride, const void* from, size_t from_stride, size_t bytes, size_t count) = 0;
};

// An owned array of T on one device.
template <class T>
class Array {
 public:
  Array() = default;
  Array(Memory& memory, Shape shape)
      : memory_(&memory),
        shape_(std::move(shape)),
        allocated_(elements(shape_)),
        data_(static_cast<T*>(memory.allocate(static_cast<size_t>(allocated_) * sizeof(T))), {&memory}) {}

  T* data() const { return data_.get(); }
  operator T*() const { return data(); }  // an operation takes an array as the pointer to its numbers
  const Shape& shape() const { return shape_; }
  int64_t size() const { return data_ ? elements(shape_) : 0; }
  size_t bytes() const { return static_cast<size_t>(size()) * sizeof(T); }

  void zero() { memory_->zero(data(), bytes()); }
  void upload(const T* host) { memory_->upload(data(), host, bytes()); }
  void upload(const std::vector<T>& host) { memory_->upload(data(), host.data(), host.size() * sizeof(T)); }
  std::vector<T> download() const {
    std::vector<T> host(static_cast<size_t>(size()));
    memory_->download(host.data(), data(), bytes());
    return host;
  }
  // Makes the array `shape`; the contents are lost. An array of this shape is left as it is. Memory that is large
  // enough is used again: with a different length in every step, allocating would cost more than some steps.
  void resize(Memory& memory, const Shape& shape) {
    if (data_ && elements(shape) <= allocated_) {
      shape_ = shape;
      return;
    }
    *this = Array();  // frees the old memory before new memory is allocated
    *this = Array(memory, shape);
  }

 private:
  struct Release {
    Memory* memory = nullptr;
    void operator()(T* data) const { memory->release(data); }
  };
  Memory* memory_ = nullptr;
  Shape shape_;
  int64_t allocated_ = 0;  // numbers that the memory holds
  std::unique_ptr<T, Release> data_;
};

using Tensor = Array<real>;
using Tokens = Array<int32_t>;

}  // namespace petroglyph
