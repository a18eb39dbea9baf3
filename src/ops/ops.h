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
  // A promise, as long as the result lives, that weights among these values are read much more often than written: a
  // device may store a copy of each in an order that its products read faster. Only upload() and adamw() may write
  // them.
  virtual std::shared_ptr<const real> hold(const real* /*values*/, int64_t /*size*/) { return nullptr; }
  // Calls body(). Many operations in a row are faster inside: the device's threads wait for the next one.
  virtual void run(const std::function<void()>& body) { body(); }
#define OP(...) virtual __VA_ARGS__ = 0
#include "ops/catalogue.h"
#undef OP
};

}  // namespace petroglyph
