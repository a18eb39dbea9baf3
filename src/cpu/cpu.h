// The catalogue on the CPU: plain loops over `real`, spread over threads by cpu/parallel.h.
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

  // From now on small operations are shared among the threads, too: for tests of the bits.
  void share_all() { threads_.alone = 0; }
  // From now on the time of each operation is added up there; null ends it.
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
  // All of p.b; to: packed_size reals
  Packed pack_all(real* to, const Product& p);
  // Where a is transposed; row_sums (M) += Σ_k a_ik, unless it is null.
  void product_of_transposed(const Product& p, real* row_sums);
  void sum_positions(real* dtable, real* last, const real* dx, int64_t B, int64_t T, int D);

  // Makes scratch(thread) at least `size` reals long, for every thread. Not inside a parallel section: it may throw.
  void reserve_scratch(int64_t size);
  real* scratch(int thread) const { return scratch_[static_cast<size_t>(thread)].data(); }

  Threads threads_;
  std::vector<Tensor> scratch_;
  Tensor packed_;  // a product's second factor, shared by the threads
  PackedWeights weights_;
};

}  // namespace petroglyph
