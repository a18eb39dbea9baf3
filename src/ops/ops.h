// What a device offers to the models: memory (tensor.h) and the catalogue of operations (catalogue.h) on shapes
// (shapes.h).
//
// The catalogue is declared once and included in the body of each device's class, so that the CPU (cpu/cpu.h) and the
// GPU (gpu/gpu.h) cannot drift apart: an operation that one of them lacks does not link.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ops/shapes.h"
#include "ops/tensor.h"

namespace petroglyph {

class Ops : public Memory {
 public:
  virtual std::string description() const = 0;  // "CPU, 2 threads, AVX-512"
  // As long as what this returns lives, weights among these values are read much more often than written: a device may
  // keep a copy of each in an order that its products read faster. Writing them by upload() or adamw() is allowed, and
  // by nothing else.
  virtual std::shared_ptr<const real> hold(const real* /*values*/, int64_t /*size*/) { return nullptr; }
  // Calls body(): what runs many operations is faster inside, where the device's threads stay at hand between two of
  // them.
  virtual void run(const std::function<void()>& body) { body(); }
#define OP(...) virtual __VA_ARGS__ = 0
#include "ops/catalogue.h"
#undef OP
};

}  // namespace petroglyph
