// The CUDA runtime on the host: memory, streams, events. See the header for the purpose.
//
// Work on a stream is a closure. It runs immediately, or late: when something waits for it.
#include "cuda_on_host.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <new>

using Operation = std::function<void()>;

struct CUstream_st {
  std::deque<Operation> pending;
};

struct CUevent_st {
  CUstream_st* stream = nullptr;
  uint64_t recorded = 0, completed = 0;  // number of times
  std::chrono::steady_clock::time_point time;
};

namespace cuda_on_host {
namespace {

constexpr size_t GUARD = 256;
constexpr std::align_val_t ALIGNMENT{256};  // as on a GPU

struct AlignedDelete {
  void operator()(unsigned char* bytes) const { ::operator delete(bytes, ALIGNMENT); }
};

struct Allocation {
  std::unique_ptr<unsigned char, AlignedDelete> bytes;  // with guards before and behind
  size_t size = 0;
  bool pinned = false;  // whether it is pinned host memory

  const unsigned char* begin() const { return bytes.get() + GUARD; }
  bool intact() const {
    auto untouched = [](const unsigned char* guard) {
      return std::all_of(guard, guard + GUARD, [](unsigned char c) { return c == 0xFF; });
    };
    return untouched(bytes.get()) && untouched(begin() + size);
  }
};

struct Runtime {
  Device device;
  std::map<uintptr_t, Allocation> allocations;
  size_t used = 0;
  int current = 0;  // set by cudaSetDevice
  std::map<const void*, size_t> allowed_shared;
  CUstream_st default_stream;
  std::map<CUstream_st*, std::unique_ptr<CUstream_st>> streams;
  cudaError_t last_error = cudaSuccess;
  std::string next_kernel;
  std::function<void(const Kernel&)> executor = run;
  bool late = false;
};

Runtime& runtime() {
  static Runtime the_one;
  return the_one;
}

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) runtime().last_error = error;
  return error;
}

// The status of a call that needs a GPU.
cudaError_t started() {
  const Device& device = runtime().device;
  return result(device.start == cudaSuccess && device.count == 0 ? cudaErrorNoDevice : device.start);
}

// The status of a call that names a GPU.
cudaError_t there_is(int number) {
  if (const cudaError_t status = started(); status != cudaSuccess) return status;
  return result(number < 0 || number >= runtime().device.count ? cudaErrorInvalidDevice : cudaSuccess);
}

// ---- Streams ----

CUstream_st* find_stream(cudaStream_t handle) {
  if (handle == nullptr) return &runtime().default_stream;
  const auto found = runtime().streams.find(handle);
  return found == runtime().streams.end() ? nullptr : found->second.get();
}

void run_one(CUstream_st& stream) {
  const Operation operation = std::move(stream.pending.front());
  stream.pending.pop_front();
  operation();
}

void drain(CUstream_st& stream) {
  while (!stream.pending.empty()) run_one(stream);
}

void drain_all() {
  drain(runtime().default_stream);
  for (auto& [handle, stream] : runtime().streams) drain(*stream);
}

cudaError_t put(cudaStream_t handle, Operation operation, bool at_once = false) {
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return result(cudaErrorInvalidResourceHandle);
  stream->pending.push_back(std::move(operation));
  if (at_once || !runtime().late) drain(*stream);
  return cudaSuccess;
}

// ---- Memory ----

// The allocation that contains the pointer, or at whose end the pointer is.
const Allocation* find_allocation(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto after = runtime().allocations.upper_bound(address);
  if (after == runtime().allocations.begin()) return nullptr;
  const auto& [begin, allocation] = *--after;
  return address - begin <= allocation.size ? &allocation : nullptr;
}

enum class Side { HOST, PINNED, DEVICE, NOWHERE };

// The memory that holds these bytes; NOWHERE if they are not all within one allocation.
Side side_of(const void* pointer, size_t bytes) {
  const Allocation* allocation = find_allocation(pointer);
  if (allocation == nullptr) return pointer == nullptr ? Side::NOWHERE : Side::HOST;
  const auto offset = static_cast<size_t>(static_cast<const unsigned char*>(pointer) - allocation->begin());
  if (bytes > allocation->size - offset) return Side::NOWHERE;
  return allocation->pinned ? Side::PINNED : Side::DEVICE;
}

cudaError_t allocate(void** memory, size_t bytes, bool pinned) {
  Runtime& r = runtime();
  *memory = nullptr;
  if (const cudaError_t status = started(); status != cudaSuccess) return status;
  if (bytes == 0) return cudaSuccess;
  if (bytes > (pinned ? r.device.pinned : r.device.memory - std::min(r.used, r.device.memory)))
    return result(cudaErrorMemoryAllocation);
  auto* raw = static_cast<unsigned char*>(::operator new(bytes + 2 * GUARD, ALIGNMENT, std::nothrow));
  if (raw == nullptr) return result(cudaErrorMemoryAllocation);
  Allocation allocation;
  allocation.bytes.reset(raw);
  allocation.size = bytes;
  allocation.pinned = pinned;
  std::memset(raw, 0xFF, bytes + 2 * GUARD);
  *memory = raw + GUARD;
  if (!pinned) r.used += bytes;
  r.allocations.emplace(reinterpret_cast<uintptr_t>(*memory), std::move(allocation));
  return cudaSuccess;
}

void check_guards(const std::string& who) {
  for (const auto& [address, allocation] : runtime().allocations) {
    if (!allocation.intact()) {
      throw Fault(who + ": a write beside an allocation of " + std::to_string(allocation.size) + " bytes");
    }
  }
}

cudaError_t release(void* memory, bool pinned) {
  Runtime& r = runtime();
  if (memory == nullptr) return cudaSuccess;
  const auto found = r.allocations.find(reinterpret_cast<uintptr_t>(memory));
  if (found == r.allocations.end() || found->second.pinned != pinned) return result(cudaErrorInvalidValue);
  for (const auto& [handle, stream] : r.streams)
    if (!pinned && !stream->pending.empty())
      throw Fault("memory is given back while a stream has work: that cudaFree waits is not promised");
  drain_all();
  check_guards("what ran before a call of cudaFree");
  if (!pinned) r.used -= found->second.size;
  r.allocations.erase(found);
  return cudaSuccess;
}

bool direction_fits(cudaMemcpyKind kind, Side to, Side from) {
  if (to == Side::NOWHERE || from == Side::NOWHERE) return false;
  const bool to_device = to == Side::DEVICE, from_device = from == Side::DEVICE;
  switch (kind) {
    case cudaMemcpyHostToDevice: return to_device && !from_device;
    case cudaMemcpyDeviceToHost: return !to_device && from_device;
    case cudaMemcpyDeviceToDevice: return to_device && from_device;
  }
  return false;
}

struct Copy {
  void* to;
  size_t to_pitch;
  const void* from;
  size_t from_pitch, width, height;
  cudaMemcpyKind kind;
};

cudaError_t put_copy(const Copy& copy, cudaStream_t stream) {
  if (copy.width == 0 || copy.height == 0) return cudaSuccess;
  if (copy.height > 1 && copy.width > std::min(copy.to_pitch, copy.from_pitch)) return result(cudaErrorInvalidValue);
  const Side to = side_of(copy.to, (copy.height - 1) * copy.to_pitch + copy.width);
  const Side from = side_of(copy.from, (copy.height - 1) * copy.from_pitch + copy.width);
  if (!direction_fits(copy.kind, to, from)) return result(cudaErrorInvalidValue);
  auto operation = [copy] {
    for (size_t row = 0; row < copy.height; ++row) {
      std::memcpy(static_cast<unsigned char*>(copy.to) + row * copy.to_pitch,
                  static_cast<const unsigned char*>(copy.from) + row * copy.from_pitch, copy.width);
    }
  };
  // A GPU accesses host memory asynchronously only if it is pinned; otherwise the call itself must wait.
  return put(stream, operation, to == Side::HOST || from == Side::HOST);
}

// ---- Kernels ----

cudaError_t check_shape(dim3 grid, dim3 threads) {
  const uint64_t size = static_cast<uint64_t>(threads.x) * threads.y * threads.z;
  const bool fits = size >= 1 && size <= 1024 && threads.x <= 1024 && threads.y <= 1024 && threads.z <= 64 &&
                    grid.x >= 1 && grid.x <= 0x7fffffffu && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 &&
                    grid.z <= 65535;
  return fits ? cudaSuccess : cudaErrorInvalidConfiguration;
}

void check_pointers(const std::string& kernel, const std::vector<const void*>& pointers) {
  for (const void* pointer : pointers) {
    if (pointer != nullptr && find_allocation(pointer) == nullptr) {
      throw Fault("kernel " + kernel + " was given a pointer to memory that is not the device's, or no longer");
    }
  }
}

}  // namespace

Device& device() { return runtime().device; }

void set_late_streams(bool late) {
  drain_all();
  runtime().late = late;
}

void set_executor(std::function<void(const Kernel&)> executor) {
  runtime().executor = executor ? std::move(executor) : run;
}

Memory device_memory_at(uintptr_t address) {
  const Allocation* allocation = find_allocation(reinterpret_cast<const void*>(address));
  if (allocation == nullptr || allocation->pinned) return {0, 0};
  const auto begin = reinterpret_cast<uintptr_t>(allocation->begin());
  return {begin, begin + allocation->size};
}

size_t allocations() { return runtime().allocations.size(); }

void name_next_kernel(const char* name) {
  std::string& next = runtime().next_kernel;
  next = name;
  if (next.size() > 2 && next.front() == '(') next = next.substr(1, next.size() - 2);
}

cudaError_t allow_shared_memory(const void* kernel, int value) {
  if (value < 0 || static_cast<size_t>(value) > SHARED_LIMIT_WITH_LEAVE) return result(cudaErrorInvalidValue);
  runtime().allowed_shared[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}

cudaError_t submit(const cudaLaunchConfig_t& config, const void* kernel, std::vector<const void*> pointers,
                   std::function<void()> thread, std::vector<unsigned char> parameters) {
  Runtime& r = runtime();
  const std::string name = r.next_kernel.empty() ? "without a name" : r.next_kernel;
  r.next_kernel.clear();
  if (const cudaError_t status = started(); status != cudaSuccess) return status;
  if (check_shape(config.gridDim, config.blockDim) != cudaSuccess) return result(cudaErrorInvalidConfiguration);
  const auto allowed = r.allowed_shared.find(kernel);
  const bool leave = allowed != r.allowed_shared.end();
  if (config.dynamicSmemBytes > (leave ? allowed->second : SHARED_LIMIT)) return result(cudaErrorInvalidValue);
  const Kernel work = {name,
                       config.gridDim,
                       config.blockDim,
                       config.dynamicSmemBytes,
                       leave ? SHARED_LIMIT_WITH_LEAVE : SHARED_LIMIT,
                       std::move(thread),
                       kernel,
                       std::move(parameters)};
  return put(config.stream, [work, pointers = std::move(pointers)] {
    check_pointers(work.name, pointers);
    runtime().executor(work);
    check_guards("kernel " + work.name);
  });
}

}  // namespace cuda_on_host

using namespace cuda_on_host;

// ---- Errors and the device ----

namespace {

struct ErrorWords {
  cudaError_t error;
  const char *name, *words;
};
constexpr ErrorWords ERRORS[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid shape of blocks or grid"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver", "driver too old"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "no such kernel for this GPU"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no GPU"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "no such GPU"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice", "no kernel image for this GPU"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "no such stream or event"},
    {cudaErrorSystemNotReady, "cudaErrorSystemNotReady", "the system is not ready yet"},
    {cudaErrorSystemDriverMismatch, "cudaErrorSystemDriverMismatch", "the driver's parts are of different versions"}};

ErrorWords words_of(cudaError_t error) {
  for (const ErrorWords& known : ERRORS)
    if (known.error == error) return known;
  return {error, "unknown error", "unknown error"};
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) { return words_of(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return words_of(error).words; }

cudaError_t cudaGetLastError() { return std::exchange(runtime().last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
  const cudaError_t status = started();
  if (status == cudaSuccess) *count = device().count;
  if (status == cudaErrorNoDevice) *count = 0;  // other errors leave *count unchanged
  return status;
}

cudaError_t cudaSetDevice(int number) {
  const cudaError_t status = there_is(number);
  if (status == cudaSuccess) runtime().current = number;
  return status;
}

cudaError_t cudaGetDevice(int* number) {
  *number = runtime().current;
  return started();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
  const cudaError_t status = there_is(number);
  if (status != cudaSuccess) return status;
  if (number == device().broken) return result(cudaErrorSystemNotReady);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "host run");
  properties->major = number == device().old ? 6 : device().major;
  properties->minor = device().minor;
  properties->multiProcessorCount = device().multiprocessors;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  drain_all();
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = device().driver;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

// ---- Memory ----

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = device().memory;
  *free = *total - std::min(runtime().used, *total);
  return started();
}

cudaError_t cudaMalloc(void** memory, size_t bytes) { return allocate(memory, bytes, false); }
cudaError_t cudaFree(void* memory) { return release(memory, false); }
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return allocate(memory, bytes, true); }
cudaError_t cudaFreeHost(void* memory) { return release(memory, true); }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return put_copy({to, bytes, from, bytes, bytes, 1, kind}, stream);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return put_copy({to, to_pitch, from, from_pitch, width, height, kind}, stream);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const cudaError_t status = cudaMemcpyAsync(to, from, bytes, kind);
  return status == cudaSuccess ? cudaStreamSynchronize(nullptr) : status;
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  const Side side = side_of(memory, bytes);
  if (side != Side::DEVICE && side != Side::PINNED) return result(cudaErrorInvalidValue);
  return put(stream, [=] { std::memset(memory, value, bytes); });
}

// ---- Streams ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (device().count == 0) return result(cudaErrorNoDevice);
  if (flags != cudaStreamNonBlocking) return result(cudaErrorInvalidValue);  // it would wait for the default stream
  auto created = std::make_unique<CUstream_st>();
  *stream = created.get();
  runtime().streams.emplace(*stream, std::move(created));
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr || handle == nullptr) return result(cudaErrorInvalidResourceHandle);
  drain(*stream);
  runtime().streams.erase(handle);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return result(cudaErrorInvalidResourceHandle);
  drain(*stream);
  return cudaSuccess;
}

// ---- Events ----

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (device().count == 0) return result(cudaErrorNoDevice);
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  drain_all();
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  event->stream = find_stream(handle);
  const uint64_t number = ++event->recorded;
  return put(handle, [event, number] {
    event->completed = number;
    event->time = std::chrono::steady_clock::now();
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  while (event->completed < event->recorded) run_one(*event->stream);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start->completed < start->recorded || end->completed < end->recorded) return result(cudaErrorInvalidValue);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}
