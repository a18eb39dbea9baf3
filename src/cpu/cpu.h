// The catalogue of operations (ops/catalogue.h) on the CPU: loops over `real`, divided among threads by cpu/loops.h.
// The file of the same name in reference/ has the loop that defines each operation.
#pragma once

#include <memory>
#include <vector>

#include "cpu/packed_weights.h"
#include "cpu/parallel.h"
#include "cpu/product.h"
#include "ops/host_ops.h"

namespace petroglyph {

class Cpu final : public HostOps {
 public:
  explicit Cpu(int threads);

  // For tests: small operations use all threads too.
  void share_all() { threads_.alone = 0; }
  // Adds the time of each operation to *profile from now on; null stops it.
  void measure(Profile* profile) { threads_.profile = profile; }

  void run(const std::function<void()>& body) override { threads_.run(body); }
  std::string description() const override;
  std::shared_ptr<const real> hold(const real* values, int64_t size) override;
  void upload(void* to, const void* host, size_t bytes) override;

#define OP(...) __VA_ARGS__ override
#include "ops/catalogue.h"
#undef OP

 private:
  void product(const Product& p);
  void product_of_packed(const Product& p, const Packed& b);
  // Packs all of p.b. to: packed_size(p.K, p.N) numbers
  Packed pack_all(real* to, const Product& p);
  // The product with a transposed p.a. row_sums (M), unless null, += Σ_k a_ik.
  void product_of_transposed(const Product& p, real* row_sums);

  // Makes scratch(thread) at least `size` numbers long for every thread. It may throw, so it is not called inside
  // parallel().
  void reserve_scratch(int64_t size);
  real* scratch(int thread) const { return scratch_[static_cast<size_t>(thread)].data(); }

  Threads threads_;
  std::vector<Tensor> scratch_;
  Tensor packed_;  // a product's second factor, shared by the threads
  PackedWeights weights_;
};

}  // namespace petroglyph
