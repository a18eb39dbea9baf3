// Tests that the host run of CUDA kernels (cuda_on_host.h) computes what a GPU would, and that it detects
// missing and divergent barriers, unwritten shared memory, accesses out of range, host pointers and missing
// waits.
#include "cuda_on_host.h"

#include "gpu/launch.h"

#include <sys/wait.h>
#include <unistd.h>

#include "address_sanitizer.h"
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
  const Order before = cuda_on_host::order();
  for (Order order : {Order::ASCENDING, Order::DESCENDING}) {
    cuda_on_host::set_order(order);
    function(order == Order::ASCENDING ? "ascending" : "descending");
  }
  for (unsigned seed : {1u, 2u, 3u}) {
    cuda_on_host::set_order(Order::RANDOM, seed);
    function(("random " + std::to_string(seed)).c_str());
  }
  cuda_on_host::set_order(before);
}

// Numbers whose sum depends on the order of additions.
std::vector<float> uneven(size_t n) {
  std::vector<float> values(n);
  uint32_t state = 12345;
  for (float& x : values) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(state >> 8) * (state >> 31 ? 1e-3f : 1e4f) + 1.0f;
  }
  return values;
}

// The catalogue's sum along a row: a strided 32-way sum (lanes), then folds of 16, 8, 4, 2, 1.
float sum_of_row(const float* row, int n) {
  float lanes[32] = {};
  for (int i = 0; i < n; ++i) lanes[i % 32] += row[i];
  for (int fold = 16; fold > 0; fold /= 2) {
    for (int lane = 0; lane < fold; ++lane) lanes[lane] += lanes[lane + fold];
  }
  return lanes[0];
}

__device__ float sum_of_warp(float x) {
#pragma unroll
  for (int fold = 16; fold > 0; fold /= 2) x += __shfl_xor_sync(ALL, x, fold);
  return x;
}

// One warp per row.
__global__ void __launch_bounds__(128) row_sums(float* out, const float* in, int rows, int columns) {
  const int row = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
  if (row >= rows) return;
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += warpSize) sum += in[row * columns + i];
  sum = sum_of_warp(sum);
  if (threadIdx.x == 0) out[row] = sum;
}

// The catalogue's long sum in one block: each warp sums chunks of 1024, then the first warp adds these sums.
__global__ void long_sum(float* out, const float* in, int n) {
  SHARED_MEMORY(float, sums);
  const int lane = static_cast<int>(threadIdx.x % 32), chunks = (n + 1023) / 1024;
  for (int chunk = static_cast<int>(threadIdx.x / 32); chunk < chunks; chunk += static_cast<int>(blockDim.x / 32)) {
    float sum = 0;
    for (int i = chunk * 1024 + lane; i < min(n, chunk * 1024 + 1024); i += 32) sum += in[i];
    sum = sum_of_warp(sum);
    if (lane == 0) sums[chunk] = sum;
  }
  __syncthreads();
  if (threadIdx.x >= 32) return;
  float sum = 0;
  for (int i = lane; i < chunks; i += 32) sum += sums[i];
  sum = sum_of_warp(sum);
  if (lane == 0) *out = sum;
}

void sums(Test& test) {
  const int rows = 7, columns = 77, n = 70003;
  const std::vector<float> values = uneven(n);
  std::vector<float> expected, chunk_sums;
  for (int row = 0; row < rows; ++row) expected.push_back(sum_of_row(values.data() + row * columns, columns));
  for (int i = 0; i < n; i += 1024) chunk_sums.push_back(sum_of_row(values.data() + i, std::min(1024, n - i)));
  const float expected_long = sum_of_row(chunk_sums.data(), static_cast<int>(chunk_sums.size()));
  const OnDevice<float> in(values);
  in_every_order([&](const char* order) {
    const OnDevice<float> out(rows), total(1);
    LAUNCH(row_sums, 2, dim3(32, 4), 0, nullptr, out, in, rows, columns);
    LAUNCH(long_sum, 1, 1024, chunk_sums.size() * sizeof(float), nullptr, total, in, n);
    test.equal(std::string("rows, ") + order, out.values(), expected);
    test.equal(std::string("long, ") + order, total.values(), {expected_long});
  });
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

// The number of orders, of five, in which the kernel's result is correct.
int right_orders(void (*kernel)(float*), const std::vector<float>& input, const std::vector<float>& expected) {
  int right = 0;
  in_every_order([&](const char*) {
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
  test.equal("right with __syncthreads", right_orders(reverse_in_block<true>, block, reversed), 5);
  test.equal("wrong without", right_orders(reverse_in_block<false>, block, reversed), 0);
  test.equal("right with __syncwarp", right_orders(rotate_in_warp<true>, warp, rotated), 5);
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
  in_every_order([&](const char* order) {
    const std::string name = order;
    test.throws(name + ", the kernel",
                "kernel half_at_barrier, block (0,0,0): divergent barrier: threads 0-31 at __syncthreads, ",
                [&] { LAUNCH(half_at_barrier, 1, 64, 0, nullptr, data); });
    test.throws(name + ", the lanes", "; threads 32-47 at __shfl_xor_sync of lanes 0xffffffff, ",
                [&] { LAUNCH(half_at_barrier, 1, 64, 0, nullptr, data); });
    test.throws(name + ", two barriers", "divergent barrier: threads 0, 2, 4 at __syncthreads",
                [&] { LAUNCH(two_barriers, 1, 6, 0, nullptr, integers); });
    test.throws(name + ", a lane outside its mask", "by a lane that its own mask does not name",
                [&] { LAUNCH(wrong_mask, 1, 64, 0, nullptr, integers); });
    const OnDevice<float> one(std::vector<float>(64, 1.0f)), sum(2);
    LAUNCH(row_sums, 1, dim3(32, 2), 0, nullptr, sum, one, 2, 32);
    test.equal(name + ", kernels run after that", sum.values(), {32.0f, 32.0f});
  });
}

// Threads from `n` on return immediately; the others reach barriers and exchanges without them.
__global__ void leave_early(int* out, int n) {
  SHARED_ARRAY(int, sum, [64]);
  const int i = static_cast<int>(threadIdx.x);
  if (i >= n) return;
  sum[i] = i;
  __syncthreads();
  const int next = __shfl_xor_sync(ALL, sum[(i + 1) % n], 1);
  out[i] = next + 1000 * __popc(__ballot_sync(ALL, i % 2));
  __syncthreads();
  if (i % 3 == 0) return;
  __syncwarp();
  __syncthreads();
  out[64 + i] = __ballot_sync(ALL, i % 3 == 0) == 0;
}

void early_exits(Test& test) {
  const int n = 45;
  std::vector<int> expected(128, -1);
  for (int i = 0; i < n; ++i) {
    const int other = i ^ 1, next = other < n ? (other + 1) % n : -1;
    expected[static_cast<size_t>(i)] = next + 1000 * (i < 32 ? 16 : 6);
    if (i % 3 != 0) expected[static_cast<size_t>(64 + i)] = 1;
  }
  in_every_order([&](const char* order) {
    const OnDevice<int> out(128);
    LAUNCH(leave_early, 1, 64, 0, nullptr, out, n);
    test.equal(order, out.values(), expected);
  });
}

__global__ void exchanges(int* out, double* wide) {
  const int lane = static_cast<int>(threadIdx.x);
  int* mine = out + lane * 4;
  mine[0] = __shfl_sync(ALL, lane, 5);
  mine[1] = __shfl_xor_sync(ALL, lane, 17);
  mine[2] = static_cast<int>(__ballot_sync(ALL, lane % 4 == 1));
  if (lane < 16) {
    // The lower half warp exchanges three times while the upper half exchanges once.
    mine[3] = __shfl_xor_sync(0xffffu, __shfl_xor_sync(0xffffu, __shfl_xor_sync(0xffffu, lane, 1), 2), 4);
  } else {
    mine[3] = __shfl_xor_sync(0xffff0000u, lane, 8);
  }
  wide[lane] = __shfl_xor_sync(ALL, 0.1 * lane, 31);
}

void warp_exchanges(Test& test) {
  std::vector<int> expected;
  std::vector<double> expected_wide;
  for (int lane = 0; lane < 32; ++lane) {
    for (const int value : {5, lane ^ 17, 0x22222222, lane < 16 ? lane ^ 7 : lane ^ 8}) expected.push_back(value);
    expected_wide.push_back(0.1 * (31 - lane));
  }
  in_every_order([&](const char* order) {
    const OnDevice<int> out(128);
    const OnDevice<double> wide(32);
    LAUNCH(exchanges, 1, 32, 0, nullptr, out, wide);
    test.equal(order, out.values(), expected);
    test.equal(std::string("8 bytes, ") + order, wide.values(), expected_wide);
  });
}

__global__ void write_index(int* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] += static_cast<int>(block * 1000 + thread) + 1;
}

__global__ void deep_sums(float* out) {
  volatile float many[4096];
  for (int i = 0; i < 4096; ++i) many[i] = static_cast<float>(i);
  for (int i = 0; i < 4; ++i) __syncthreads();
  out[threadIdx.x] = many[threadIdx.x] + many[4095];
}

void grids(Test& test) {
  std::vector<int> expected;
  for (int block = 0; block < 3 * 4 * 5; ++block) {
    for (int thread = 0; thread < 5 * 3 * 2; ++thread) expected.push_back(block * 1000 + thread);
  }
  in_every_order([&](const char* order) {
    const OnDevice<int> out(expected.size());  // initial value: -1
    LAUNCH(write_index, dim3(3, 4, 5), dim3(5, 3, 2), 0, nullptr, out);
    test.equal(std::string("every thread once, ") + order, out.values(), expected);
  });
  const OnDevice<float> sums(1024);
  LAUNCH(deep_sums, 2, 1024, 0, nullptr, sums);
  test.equal("1024 threads with 16 KiB each", sums.values()[1023], 1023.0f + 4095.0f);
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

// Returns what the function writes to stderr before it ends the process: the sanitizer's report.
template <class Function>
std::string last_words(Function function) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    function();
    _exit(0);
  }
  close(ends[1]);
  std::string words;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) words.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? "" : words;
}

template <class Function>
void out_of_range(Test& test, const std::string& name, const std::string& words, Function function) {
  if (ASAN) {
    const std::string report = last_words(function);
    auto names = [&](const char* word) { return report.find(word) != std::string::npos; };
    test.check(name, names("ERROR: AddressSanitizer") && names("write_"), report.substr(0, 2000));
  } else {
    test.throws(name, words, function);
  }
}

void accesses_out_of_range(Test& test) {
  float* data = nullptr;
  CUDA_CHECK(cudaMalloc(&data, 10 * sizeof(float)));
  for (int index : {10, -1}) {
    out_of_range(test, "device memory at " + std::to_string(index),
                 "kernel write_at: a write beside an allocation of 40 bytes",
                 [&] { LAUNCH(write_at, 1, 1, 0, nullptr, data, index); });
    if (!ASAN) std::memset(&data[index], 0xFF, sizeof(float));  // restores the initial value
  }
  const OnDevice<float> out(1);
  out_of_range(test, "a shared array", "kernel write_shared_at<6>, block (0,0,0): a write behind shared memory numbers",
               [&] { LAUNCH(write_shared_at<6>, 1, 1, 0, nullptr, out, 6); });
  out_of_range(test, "the launch's shared memory", "a write behind shared memory of the launch",
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
  test.throws("a call", "cuda_on_host_test.cpp:", [&] { CUDA_CHECK(cudaSetDevice(7)); });
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
  LAUNCH(write_at, 1, 1, cuda_on_host::SHARED_LIMIT_WITH_LEAVE, nullptr, data, 2);
  test.equal("as much as there is", data.values()[2], 1.0f);
  test.equal("a copy that is too long", cudaMemcpy(data, host, 20, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  test.equal("a copy the wrong way", cudaMemcpy(data, host, 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  const auto none = reinterpret_cast<cudaStream_t>(host);
  test.equal("a stream that is none", cudaStreamSynchronize(none), cudaErrorInvalidResourceHandle);
}

void limits(Test& test) {
  const cuda_on_host::Device before = cuda_on_host::device();
  const size_t allocations = cuda_on_host::allocations();
  cuda_on_host::device().memory = 1000;
  float* memory = nullptr;
  size_t free = 0, total = 0;
  test.equal("fits", cudaMalloc(&memory, 600), cudaSuccess);
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  test.equal("free", free, size_t(400));
  float* more = nullptr;
  test.equal("does not fit", cudaMalloc(&more, 401), cudaErrorMemoryAllocation);
  test.equal("is remembered", cudaGetLastError(), cudaErrorMemoryAllocation);
  test.equal("allocations", cuda_on_host::allocations(), allocations + 1);
  CUDA_CHECK(cudaFree(memory));
  cuda_on_host::device().multiprocessors = 132;
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  test.equal("multiprocessors", properties.multiProcessorCount, 132);
  cuda_on_host::device().count = 0;
  int count = -1;
  test.equal("no device", cudaGetDeviceCount(&count), cudaErrorNoDevice);
  test.equal("none counted", count, 0);
  test.equal("no memory without it", cudaMalloc(&memory, 1), cudaErrorNoDevice);
  cuda_on_host::device() = before;
}

// Errors of a machine on which CUDA does not start: every call that needs a GPU fails.
void starts(Test& test) {
  const cuda_on_host::Device before = cuda_on_host::device();
  const OnDevice<float> data(4);
  for (const cudaError_t start : {cudaErrorInsufficientDriver, cudaErrorNoDevice, cudaErrorSystemNotReady}) {
    cuda_on_host::device().start = start;
    const std::string name = cudaGetErrorName(start);
    int count = -1, number = -1;
    float* memory = nullptr;
    test.equal(name, cudaGetDeviceCount(&count), start);
    test.equal(name + " is remembered", cudaGetLastError(), start);
    test.check(name + ": counts none", count <= 0);
    test.equal(name + ": none can be set", cudaSetDevice(0), start);
    test.equal(name + ": none is set", cudaGetDevice(&number), start);
    test.equal(name + ": no memory", cudaMalloc(&memory, 1), start);
    test.throws(name + ": no kernel", cudaGetErrorString(start), [&] { LAUNCH(write_at, 1, 1, 0, nullptr, data, 0); });
  }
  cuda_on_host::device() = before;
  int driver = -1, built_for = -1, number = -1;
  CUDA_CHECK(cudaRuntimeGetVersion(&built_for));
  cuda_on_host::device().driver = built_for - 2000;
  CUDA_CHECK(cudaDriverGetVersion(&driver));
  test.equal("an older driver", driver, built_for - 2000);
  cuda_on_host::device().count = 2;
  CUDA_CHECK(cudaSetDevice(1));
  CUDA_CHECK(cudaGetDevice(&number));
  test.equal("the one that was set", number, 1);
  CUDA_CHECK(cudaSetDevice(0));
  cuda_on_host::device() = before;
}

__global__ void add(float* data, float x) { data[threadIdx.x] += x; }
__global__ void double_it(float* data) { data[threadIdx.x] *= 2; }

struct Stream {
  Stream() { CUDA_CHECK(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { (void)cudaStreamDestroy(handle); }
  operator cudaStream_t() const { return handle; }
  cudaStream_t handle = nullptr;
};

struct Event {
  Event() { CUDA_CHECK(cudaEventCreateWithFlags(&handle, cudaEventDefault)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { (void)cudaEventDestroy(handle); }
  operator cudaEvent_t() const { return handle; }
  cudaEvent_t handle = nullptr;
};

void late_streams(Test& test) {
  cuda_on_host::set_late_streams(true);
  const OnDevice<float> data(1);
  float* pinned = nullptr;
  CUDA_CHECK(cudaMallocHost(&pinned, sizeof(float)));
  const Stream stream;
  const Event ready, done;
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
  cuda_on_host::set_late_streams(false);
}

__global__ void intrinsics(unsigned* out) {
  out[0] = static_cast<unsigned>(__popc(0xF0u));
  out[1] = static_cast<unsigned>(__ffs(8));
  out[2] = static_cast<unsigned>(max(7, 2) * min(7, 2));
}

void functions(Test& test) {
  const OnDevice<unsigned> out(3);
  LAUNCH(intrinsics, 1, 1, 0, nullptr, out);
  test.equal("values", out.values(), std::vector<unsigned>{4, 4, 14});
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  test.run("sums", sums);
  test.run("missing_barriers", missing_barriers);
  test.run("uninitialised_memory", uninitialised_memory);
  test.run("divergent_barriers", divergent_barriers);
  test.run("early_exits", early_exits);
  test.run("warp_exchanges", warp_exchanges);
  test.run("grids", grids);
  test.run("asynchronous_copies", asynchronous_copies);
  test.run("accesses_out_of_range", accesses_out_of_range);
  test.run("bad_calls", bad_calls);
  test.run("limits", limits);
  test.run("starts", starts);
  test.run("late_streams", late_streams);
  test.run("functions", functions);
  return test.finish();
}
