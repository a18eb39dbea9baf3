// Tests that the host run of CUDA kernels (cuda_on_host.h) detects missing and divergent barriers, unwritten shared
// memory, accesses out of range, host pointers and missing waits. That it computes what a GPU would is seen by host_run:
// all kernels have the bits of the reference in it.
#include "cuda_on_host.h"

#include "gpu/launch.h"

#include "check.h"

namespace petroglyph {
namespace {

using cuda_on_host::Order;

constexpr unsigned ALL = ~0u;

// An array on the device, with the copies that a test needs.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(size_t size) : size_(size) { CUDA_CHECK(cudaMalloc(&data_, size * sizeof(T))); }
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    CUDA_CHECK(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { (void)cudaFree(data_); }
  operator T*() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> out(size_);
    CUDA_CHECK(cudaMemcpy(out.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

// Runs `function` in every order of threads, then restores the previous order.
template <class Function>
void in_every_order(Function function) {
  for (const Order order : {Order::DESCENDING, Order::RANDOM, Order::ASCENDING}) {
    cuda_on_host::set_order(order);
    function();
  }
}

template <bool BARRIER>
__global__ void reverse_in_block(float* data) {
  SHARED_ARRAY(float, copy, [64]);
  copy[threadIdx.x] = data[threadIdx.x];
  if (BARRIER) __syncthreads();
  data[threadIdx.x] = copy[63 - threadIdx.x];
}

template <bool BARRIER>
__global__ void rotate_in_warp(float* data) {
  SHARED_ARRAY(float, copy, [32]);
  copy[threadIdx.x] = data[threadIdx.x];
  if (BARRIER) __syncwarp();
  data[threadIdx.x] = copy[(threadIdx.x + 1) % 32];
}

// The number of orders, of three, in which the kernel's result is correct.
int right_orders(void (*kernel)(float*), const std::vector<float>& input, const std::vector<float>& expected) {
  int right = 0;
  in_every_order([&] {
    const OnDevice<float> data(input);
    LAUNCH(kernel, 1, static_cast<unsigned>(input.size()), 0, nullptr, data);
    right += data.values() == expected;
  });
  return right;
}

void missing_barriers(Test& test) {
  std::vector<float> block(64), warp(32);
  for (size_t i = 0; i < 64; ++i) block[i] = static_cast<float>(i);
  for (size_t i = 0; i < 32; ++i) warp[i] = static_cast<float>(i);
  const std::vector<float> reversed(block.rbegin(), block.rend());
  std::vector<float> rotated(warp.begin() + 1, warp.end());
  rotated.push_back(warp[0]);
  test.equal("right with __syncthreads", right_orders(reverse_in_block<true>, block, reversed), 3);
  test.equal("wrong without", right_orders(reverse_in_block<false>, block, reversed), 0);
  test.equal("right with __syncwarp", right_orders(rotate_in_warp<true>, warp, rotated), 3);
  test.equal("wrong without it", right_orders(rotate_in_warp<false>, warp, rotated), 0);
}

// Reads before it writes: without protection, the second block would read what the first one left.
template <int N>
__global__ void never_written(unsigned* out) {
  SHARED_ARRAY(float, numbers, [N][3]);
  SHARED_ARRAY(unsigned, number, );
  SHARED_MEMORY(unsigned, row);
  unsigned* mine = out + (blockIdx.x * N + threadIdx.x) * 3;
  std::memcpy(mine, &numbers[threadIdx.x][2], sizeof *mine);
  mine[1] = row[threadIdx.x];
  if (threadIdx.x == 0) mine[2] = number;
  __syncthreads();
  numbers[threadIdx.x][2] = 1;
  row[threadIdx.x] = number = 1;
}

void uninitialised_memory(Test& test) {
  const OnDevice<unsigned> five(3 * 5 * 3), nine(2 * 9 * 3);
  LAUNCH(never_written<5>, 3, 5, 5 * sizeof(unsigned), nullptr, five);
  LAUNCH((never_written<9>), 2, 9, 9 * sizeof(unsigned), nullptr, nine);
  test.equal("shared, by block", five.values(), std::vector<unsigned>(3 * 5 * 3, ALL));
  test.equal("shared, another size", nine.values(), std::vector<unsigned>(2 * 9 * 3, ALL));
  const OnDevice<float> fresh(4);
  test.check("device", std::isnan(fresh.values()[3]));
}

__global__ void half_at_barrier(float* data) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else if (threadIdx.x < 48) {
    data[threadIdx.x] = __shfl_xor_sync(ALL, data[threadIdx.x], 1);
  } else {
    __syncwarp(0xffff0000u);
    __syncthreads();
  }
}

__global__ void two_barriers(int*) {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void wrong_mask(int* data) { data[threadIdx.x] = __shfl_sync(1u, data[threadIdx.x], 0); }

void divergent_barriers(Test& test) {
  const OnDevice<float> data(64);
  const OnDevice<int> integers(64);
  in_every_order([&] {
    test.throws("the kernel", "kernel half_at_barrier, block (0,0,0): divergent barrier: thread 0 at __syncthreads, ",
                [&] { LAUNCH(half_at_barrier, 1, 64, 0, nullptr, data); });
    test.throws("the lanes", "; thread 32 at __shfl_xor_sync of lanes 0xffffffff, ",
                [&] { LAUNCH(half_at_barrier, 1, 64, 0, nullptr, data); });
    test.throws("two barriers", "; thread 1 at __syncthreads",
                [&] { LAUNCH(two_barriers, 1, 6, 0, nullptr, integers); });
    test.throws("a lane outside its mask", "by a lane that its own mask does not name",
                [&] { LAUNCH(wrong_mask, 1, 64, 0, nullptr, integers); });
    LAUNCH(rotate_in_warp<true>, 1, 32, 0, nullptr, data);  // kernels run after that
  });
}

__global__ void late_copies(float4* out, const float4* in, bool wait) {
  SHARED_ARRAY(float4, tile, [2][32]);
  const unsigned i = threadIdx.x;
  for (unsigned k = 0; k < 2; ++k) {
    __pipeline_memcpy_async(&tile[k][i], &in[k * 32 + i], sizeof(float4));
    __pipeline_commit();
  }
  __pipeline_wait_prior(1);
  __syncthreads();
  out[i] = tile[0][31 - i];
  if (wait) __pipeline_wait_prior(0);
  __syncthreads();
  out[32 + i] = tile[1][31 - i];
}

void asynchronous_copies(Test& test) {
  std::vector<float4> values;
  for (int i = 0; i < 64; ++i) values.push_back(make_float4(static_cast<float>(i), 0, 0, 1));
  const OnDevice<float4> in(values), out(64);
  LAUNCH(late_copies, 1, 32, 0, nullptr, out, in, true);
  test.equal("first", out.values()[0].x, 31.0f);
  test.equal("second", out.values()[32].x, 63.0f);
  LAUNCH(late_copies, 1, 32, 0, nullptr, out, in, false);
  test.equal("waited for", out.values()[0].x, 31.0f);
  test.check("not waited for", std::isnan(out.values()[32].x));
}

__global__ void write_at(float* data, int index) { data[index] = 1; }

template <int N>
__global__ void write_shared_at(float* out, int index) {
  SHARED_ARRAY(float, numbers, [N]);
  SHARED_ARRAY(float, others, [N]);
  float* anywhere = numbers;  // hides the array's size from the undefined-behaviour sanitizer
  others[0] = anywhere[index] = 1;
  out[0] = numbers[0] + others[0];
}

__global__ void write_launched_at(int index) {
  SHARED_MEMORY(float, row);
  row[index] = 1;
}

void accesses_out_of_range(Test& test) {
  float* data = nullptr;
  CUDA_CHECK(cudaMalloc(&data, 10 * sizeof(float)));
  for (int index : {10, -1}) {
    test.throws("device memory at " + std::to_string(index),
                "kernel write_at: a write beside an allocation of 40 bytes",
                [&] { LAUNCH(write_at, 1, 1, 0, nullptr, data, index); });
    std::memset(&data[index], 0xFF, sizeof(float));  // restores the initial value
  }
  const OnDevice<float> out(1);
  test.throws("a shared array", "kernel write_shared_at<6>, block (0,0,0): a write behind shared memory numbers",
              [&] { LAUNCH(write_shared_at<6>, 1, 1, 0, nullptr, out, 6); });
  test.throws("the launch's shared memory", "a write behind shared memory of the launch",
              [&] { LAUNCH(write_launched_at, 1, 1, 12, nullptr, 3); });
  LAUNCH(write_shared_at<6>, 1, 1, 0, nullptr, out, 5);
  test.check("the next kernel is not blamed", std::isnan(out.values()[0]));
  CUDA_CHECK(cudaFree(data));
  test.throws("freed memory", "a pointer to memory that is not the device's, or no longer",
              [&] { LAUNCH(write_at, 1, 1, 0, nullptr, data, 0); });
  float here = 0;
  test.throws("host memory", "kernel write_at was given a pointer to memory that is not the device's",
              [&] { LAUNCH(write_at, 1, 1, 0, nullptr, &here, 0); });
}

__global__ void much_shared(float* out) {
  SHARED_ARRAY(float, much, [10000]);
  SHARED_ARRAY(float, more, [3000]);
  out[0] = much[0] = more[0] = 1;
}

void bad_calls(Test& test) {
  const OnDevice<float> data(4);
  float host[8] = {};
  test.throws("its text and the reason", ": cudaSetDevice(7) failed: no such GPU",
              [&] { CUDA_CHECK(cudaSetDevice(7)); });
  test.equal("no error is left", cudaGetLastError(), cudaSuccess);
  test.throws("too many threads",
              ": kernel write_at on 2×1×1 blocks of 1025×1×1 threads with 0 bytes of shared memory failed: ", [&] {
                LAUNCH(write_at, 2, 1025, 0, nullptr, data, 0);
              });
  test.equal("as many blocks as a grid has", grid_blocks(0x7fffffff), 0x7fffffffu);
  test.throws("more blocks than a cast keeps", "and this needs 4294967297: a smaller --batch",
              [&] { grid_blocks((int64_t{1} << 32) + 1); });
  test.throws("no blocks", "invalid shape", [&] { LAUNCH(write_at, 0, 1, 0, nullptr, data, 0); });
  test.throws("too much shared memory", "invalid argument",
              [&] { LAUNCH(write_at, 1, 1, cuda_on_host::SHARED_LIMIT_WITH_LEAVE + 1024, nullptr, data, 0); });
  test.throws("too large shared arrays", "shared memory: more makes it 52000 bytes, 49152 are allowed",
              [&] { LAUNCH(much_shared, 1, 1, 0, nullptr, data); });
  test.equal("a copy that is too long", cudaMemcpy(data, host, 20, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  test.equal("a copy the wrong way", cudaMemcpy(data, host, 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
}

__global__ void add(float* data, float x) { data[threadIdx.x] += x; }
__global__ void double_it(float* data) { data[threadIdx.x] *= 2; }

void late_streams(Test& test) {
  cuda_on_host::set_late_streams(true);
  const OnDevice<float> data(1);
  float* pinned = nullptr;
  CUDA_CHECK(cudaMallocHost(&pinned, sizeof(float)));
  cudaStream_t stream = nullptr;
  cudaEvent_t ready = nullptr, done = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (cudaEvent_t* event : {&ready, &done}) CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDefault));
  *pinned = 1;
  CUDA_CHECK(cudaMemcpyAsync(data, pinned, sizeof(float), cudaMemcpyHostToDevice, stream));
  *pinned = 10;  // too early: the copy has not run yet
  LAUNCH(add, 1, 1, 0, stream, data, 5.0f);
  CUDA_CHECK(cudaEventRecord(ready, stream));
  LAUNCH(double_it, 1, 1, 0, stream, data);
  CUDA_CHECK(cudaMemcpyAsync(pinned, data, sizeof(float), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaEventRecord(done, stream));
  float time = -1;
  test.equal("nothing has run", *pinned, 10.0f);
  test.equal("events are not there yet", cudaEventElapsedTime(&time, ready, done), cudaErrorInvalidValue);
  CUDA_CHECK(cudaEventSynchronize(done));
  test.equal("all has run, the change of what was to be copied too", *pinned, 30.0f);
  CUDA_CHECK(cudaEventElapsedTime(&time, ready, done));
  test.check("time goes on", time >= 0);
  float* memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, sizeof(float)));
  LAUNCH(add, 1, 1, 0, stream, memory, 5.0f);
  test.throws("memory that is in use yet", "memory is given back while a stream has work", [&] { cudaFree(memory); });
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaFree(memory));
  CUDA_CHECK(cudaFreeHost(pinned));
  for (const cudaEvent_t event : {ready, done}) CUDA_CHECK(cudaEventDestroy(event));
  CUDA_CHECK(cudaStreamDestroy(stream));
  cuda_on_host::set_late_streams(false);
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  test.run("missing_barriers", missing_barriers);
  test.run("uninitialised_memory", uninitialised_memory);
  test.run("divergent_barriers", divergent_barriers);
  test.run("asynchronous_copies", asynchronous_copies);
  test.run("accesses_out_of_range", accesses_out_of_range);
  test.run("bad_calls", bad_calls);
  test.run("late_streams", late_streams);
  return test.finish();
}
