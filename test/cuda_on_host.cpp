// The threads of a block on the host: fibers, barriers, warp exchanges, shared memory. See the header for its purpose.
//
// One block runs at a time. A fiber takes a thread that has not started, runs it until it ends, and takes the next one.
// So a kernel without barriers is a plain loop on one fiber. A thread that must wait keeps its fiber, and the next
// thread in the order runs. A barrier or a shuffle costs one switch per thread (20 to 35 ns, all included).
#include "cuda_on_host.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <numeric>

#include <sys/mman.h>
#include <unistd.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

// ---- Switching stacks: void cuda_on_host_switch(void** stack_to_leave, void* stack_to_enter) ----
//
// Saves the callee-saved registers on the current stack and restores them from the other stack. It ends with a jump: a
// return would be predicted to go to the caller of the current stack.

extern "C" void cuda_on_host_switch(void** stack_to_leave, void* stack_to_enter);
#ifdef __APPLE__
#define ASSEMBLY_NAME "_cuda_on_host_switch"
#else
#define ASSEMBLY_NAME "cuda_on_host_switch"
#endif

#if defined(__x86_64__)
constexpr int SAVED_WORDS = 7, ADDRESS_WORD = 6;
asm(".text\n.globl " ASSEMBLY_NAME "\n" ASSEMBLY_NAME
    ":\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  popq %rcx\n  jmp *%rcx\n");
#elif defined(__aarch64__)
constexpr int SAVED_WORDS = 20, ADDRESS_WORD = 11;
asm(".text\n.p2align 2\n.globl " ASSEMBLY_NAME "\n" ASSEMBLY_NAME
    ":\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
    "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n  br x30\n");
#else
#error "the host run of kernels switches stacks on x86-64 and aarch64 only"
#endif

namespace cuda_on_host {
namespace {

constexpr int MAX_THREADS = 1024, MAX_WARPS = MAX_THREADS / 32;
constexpr size_t STACK_BYTES = 256 << 10;

void enter_fiber();

// A stack and the point where it stopped. The fiber without its own stack is the caller of the kernel.
class Fiber {
 public:
  Fiber() = default;
  explicit Fiber(int number) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    mapped_ = STACK_BYTES + page;  // the lowest page is inaccessible: it detects stack overflow
    mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (mapping_ == MAP_FAILED || mprotect(mapping_, page, PROT_NONE) != 0) {
      throw std::runtime_error("no memory for the stack of a thread: " + std::string(std::strerror(errno)));
    }
    // Stacks at equal offsets within their pages would compete for the same few sets of the first-level cache.
    const size_t end = mapped_ - static_cast<size_t>(number * 7 % 64) * 64;
    // The frame that cuda_on_host_switch expects, with space for the return address, which enter_fiber never uses.
    auto* top = reinterpret_cast<uintptr_t*>(static_cast<unsigned char*>(mapping_) + end) - 2;
#ifdef __x86_64__
    --top;
    *top = 0;
#endif
    uintptr_t* saved = top - SAVED_WORDS;
    std::fill(saved, top, uintptr_t(0));
    saved[ADDRESS_WORD] = reinterpret_cast<uintptr_t>(&enter_fiber);
    stopped_at_ = saved;
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() {
    if (mapping_ != nullptr) munmap(mapping_, mapped_);
  }

  // Switches from this (running) fiber to another; returns when another fiber switches back to this one.
  void switch_to(Fiber& to) { cuda_on_host_switch(&stopped_at_, to.stopped_at_); }

 private:
  void* mapping_ = nullptr;
  size_t mapped_ = 0;
  void* stopped_at_ = nullptr;
};

// ---- State of the running block ----

enum class Waiting { NO, BLOCK, WARP };

struct Thread {
  Fiber* fiber = nullptr;  // null: not started
  Waiting waiting = Waiting::NO;
  Place place = {};
  // State of an exchange with other lanes. For a vote, source is -1 and the bits are 0 or 1.
  uint32_t mask = 0;
  int source = 0;
  uint64_t bits = 0, result = 0;
};

struct Warp {
  uint32_t ready = 0, exchanging = 0, ended = 0;  // one bit per lane; lanes beyond the block's size count as ended
};

struct AsyncCopies {
  struct Copy {
    void* to;
    const void* from;
    size_t bytes;
  };
  std::vector<Copy> copies;
  std::vector<size_t> commits;  // the number of copies at each commit
};

struct SharedRange {
  const char* name;
  size_t begin, end;
};

// Guard bytes between and behind shared arrays; no thread may access them.
constexpr size_t SHARED_GAP = 128;
constexpr size_t SHARED_BYTES = SHARED_LIMIT_WITH_LEAVE + 64 * SHARED_GAP;

struct Block {
  const Kernel* kernel = nullptr;
  uint64_t launch = 0;
  int size = 0, live = 0, at_barrier = 0;
  bool one_barrier = true;  // all waiting threads wait at the same source line
  uint32_t ready_warps = 0;
  int current = 0;  // the running thread
  Place barrier = {};
  std::string fault;
  Thread threads[MAX_THREADS];
  Warp warps[MAX_WARPS];
  AsyncCopies async[MAX_THREADS];
  bool any_async = false;

  Fiber caller;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> idle;

  std::vector<SharedRange> shared_ranges;
  size_t shared_end = 0;    // including the gaps
  size_t shared_bytes = 0;  // without the gaps
  alignas(1024) unsigned char shared[SHARED_BYTES];
};

Block block;

// ---- Order of threads ----

struct Choice {
  Order order = Order::ASCENDING;
  unsigned seed = 1;
};

Choice choice;
Order order_now = Order::ASCENDING;
uint32_t random_state = 1;

uint32_t next_random() {  // xorshift
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  random_state ^= random_state << 5;
  return random_state;
}

// Picks one of the bits that are set (at least one is). Strict orders need no memory of the last thread: a thread that
// waits has its bit cleared, and all bits are set again at once.
int pick(uint32_t bits) {
  if (order_now == Order::ASCENDING) return __builtin_ctz(bits);
  if (order_now == Order::DESCENDING) return 31 - __builtin_clz(bits);
  const unsigned turn = next_random() >> 27;
  const uint32_t turned = turn == 0 ? bits : bits >> turn | bits << (32 - turn);
  return static_cast<int>((static_cast<unsigned>(__builtin_ctz(turned)) + turn) & 31);
}

// ---- Reports ----

std::string text(uint3 v) {
  return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")";
}

std::string where() { return "kernel " + block.kernel->name + ", block " + text(blockIdx); }

std::string state_of(const Thread& thread, bool ended) {
  if (ended) return "ended";
  if (thread.waiting == Waiting::NO) return "running";
  char mask[32] = "";
  if (thread.waiting == Waiting::WARP) std::snprintf(mask, sizeof mask, " of lanes %#x", thread.mask);
  return std::string("at ") + thread.place.operation + mask + ", " + thread.place.file + ":" +
         std::to_string(thread.place.line);
}

// Two threads at different places, for example "thread 0 at __syncthreads, x.cu:12; thread 16 ended".
std::string where_two_stand() {
  const auto state = [](int k) { return state_of(block.threads[k], block.warps[k / 32].ended >> (k % 32) & 1); };
  int other = 1;
  while (other < block.size - 1 && state(other) == state(0)) ++other;
  return "thread 0 " + state(0) + "; thread " + std::to_string(other) + " " + state(other);
}

// ---- Scheduling ----

void set_ready(int warp, uint32_t lanes) {
  block.warps[warp].ready |= lanes;
  if (block.warps[warp].ready != 0) block.ready_warps |= 1u << warp;
}

void set_waiting(int warp, uint32_t lanes) {
  block.warps[warp].ready &= ~lanes;
  if (block.warps[warp].ready == 0) block.ready_warps &= ~(1u << warp);
}

// No live thread can run. Releases them if all are at the same barrier; returns false if the block is stuck.
bool release_barrier() {
  if (block.at_barrier != block.live || !block.one_barrier) {
    block.fault = where() + ": divergent barrier: " + where_two_stand();
    return false;
  }
  block.at_barrier = 0;
  for (int warp = 0; warp * 32 < block.size; ++warp) set_ready(warp, ~block.warps[warp].ended);
  return true;
}

constexpr int NOBODY = -1;

int next_thread() {
  if (block.ready_warps == 0 && (block.live == 0 || !release_barrier())) return NOBODY;
  const int warp = pick(block.ready_warps);
  return warp * 32 + pick(block.warps[warp].ready);
}

void make_current(int thread) {
  block.current = thread;
  block.threads[thread].waiting = Waiting::NO;
  threadIdx = {static_cast<unsigned>(thread), 0, 0};
}

Fiber* idle_fiber() {
  if (block.idle.empty()) {
    block.fibers.push_back(std::make_unique<Fiber>(static_cast<int>(block.fibers.size())));
    return block.fibers.back().get();
  }
  Fiber* fiber = block.idle.back();
  block.idle.pop_back();
  return fiber;
}

// Switches to the next thread or, if there is none, to the kernel's caller.
void switch_to_next(Fiber& from, int next) {
  if (next == NOBODY) {
    from.switch_to(block.caller);
    return;
  }
  Thread& thread = block.threads[next];
  if (thread.fiber == nullptr) thread.fiber = idle_fiber();
  make_current(next);
  if (thread.fiber != &from) from.switch_to(*thread.fiber);
}

// The current thread has stored what it waits for; now switches to another one.
void wait() { switch_to_next(*block.threads[block.current].fiber, next_thread()); }

void blame_thread(const std::string& reason) { block.fault = where() + ", thread " + text(threadIdx) + ": " + reason; }

// Leaves the block permanently, after blame_thread. Objects on the stack are not destroyed, so none may own memory.
[[noreturn]] void stop() {
  block.threads[block.current].fiber->switch_to(block.caller);
  std::abort();  // a stopped block is never entered again
}

// Releases the lanes of `mask` if all that are live have reached the same exchange.
void complete_exchange(int number, uint32_t mask) {
  Warp& warp = block.warps[number];
  const uint32_t members = mask & ~warp.ended;
  if ((members & ~warp.exchanging) != 0 || members == 0) return;
  Thread* lanes = block.threads + number * 32;
  const Thread& first = lanes[__builtin_ctz(members)];
  uint32_t votes = 0;
  for (uint32_t rest = members; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    const Thread& thread = lanes[lane];
    const bool same_kind = (thread.source < 0) == (first.source < 0);
    if (thread.mask != mask || thread.place.line != first.place.line || !same_kind) return;
    votes |= static_cast<uint32_t>(thread.bits & 1) << lane;
  }
  for (uint32_t rest = members; rest != 0; rest &= rest - 1) {
    Thread& thread = lanes[__builtin_ctz(rest)];
    if (thread.source < 0) {
      thread.result = votes;
    } else {
      thread.result = members >> thread.source & 1 ? lanes[thread.source].bits : ~uint64_t(0);
    }
  }
  warp.exchanging &= ~members;
  set_ready(number, members);
}

uint64_t exchange(uint32_t mask, uint64_t bits, int source, const Place& place) {
  const int number = block.current / 32;
  const uint32_t own = 1u << (block.current % 32);
  if ((mask & own) == 0) {
    blame_thread(std::string(place.operation) + " by a lane that its own mask does not name");
    stop();
  }
  Thread& thread = block.threads[block.current];
  thread.waiting = Waiting::WARP;
  thread.place = place;
  thread.mask = mask;
  thread.source = source;
  thread.bits = bits;
  set_waiting(number, own);
  block.warps[number].exchanging |= own;
  complete_exchange(number, mask);
  wait();
  return thread.result;
}

// The other threads no longer wait for a thread that has ended.
void end_thread() {
  const int number = block.current / 32;
  Warp& warp = block.warps[number];
  const uint32_t own = 1u << (block.current % 32);
  warp.ended |= own;
  set_waiting(number, own);
  --block.live;
  for (uint32_t rest = warp.exchanging; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    if (warp.exchanging >> lane & 1) complete_exchange(number, block.threads[number * 32 + lane].mask);
  }
}

// The endless loop of every fiber.
void enter_fiber() {
  for (;;) {
    Fiber& self = *block.threads[block.current].fiber;
    block.kernel->thread();
    end_thread();
    const int next = next_thread();
    if (next != NOBODY && block.threads[next].fiber == nullptr) {
      block.threads[next].fiber = &self;
      make_current(next);
      continue;
    }
    block.idle.push_back(&self);
    switch_to_next(self, next);
  }
}

// ---- Shared memory: the launch's dynamic part, then the kernel's arrays in the order in which threads reach them ----

unsigned char* add_shared(const char* name, size_t bytes, size_t alignment) {
  const size_t begin = (block.shared_end + alignment - 1) / alignment * alignment, end = begin + bytes;
  block.shared_bytes += bytes;
  if (block.shared_bytes > block.kernel->shared_limit || end + SHARED_GAP > SHARED_BYTES) {
    blame_thread("shared memory: " + std::string(name) + " makes it " + std::to_string(block.shared_bytes) +
                 " bytes, " + std::to_string(block.kernel->shared_limit) + " are allowed");
    stop();
  }
  block.shared_ranges.push_back({name, begin, end});
  block.shared_end = end + SHARED_GAP;
  std::memset(block.shared + begin, 0xFF, bytes + SHARED_GAP);
  return block.shared + begin;
}

void forget_shared() {
  block.shared_ranges.clear();
  block.shared_end = block.shared_bytes = 0;
}

void fill_shared() {
  for (const SharedRange& range : block.shared_ranges) {
    std::memset(block.shared + range.begin, 0xFF, range.end - range.begin);
  }
}

void check_shared() {
  for (const SharedRange& range : block.shared_ranges) {
    const unsigned char* gap = block.shared + range.end;
    if (std::all_of(gap, gap + SHARED_GAP, [](unsigned char c) { return c == 0xFF; })) continue;
    throw Fault(where() + ": a write behind shared memory " + std::string(range.name));
  }
}

// ---- Blocks ----

void run_block() {
  block.live = block.size;
  block.at_barrier = 0;
  for (int i = 0; i < block.size; ++i) block.threads[i].fiber = nullptr;
  for (int warp = 0; warp * 32 < block.size; ++warp) {
    const int lanes = std::min(32, block.size - warp * 32);
    const uint32_t all = ~0u >> (32 - lanes);
    block.warps[warp] = {0, 0, ~all};
    set_ready(warp, all);
  }
  if (block.any_async) {
    for (AsyncCopies& async : block.async) async = {};
    block.any_async = false;
  }
  fill_shared();
  switch_to_next(block.caller, next_thread());
  if (!block.fault.empty()) {
    block.idle.clear();  // their stacks hold data of the stopped threads
    block.fibers.clear();
    block.ready_warps = 0;
    forget_shared();
    std::string fault;
    fault.swap(block.fault);
    throw Fault(fault);
  }
  check_shared();
}

uint3 block_index(uint64_t number, dim3 grid) {
  const uint64_t row = number / grid.x;
  return {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(row % grid.y),
          static_cast<unsigned>(row / grid.y)};
}

}  // namespace

void set_order(Order order, unsigned seed) { choice = {order, seed}; }

void run(const Kernel& kernel) {
  if (block.kernel != nullptr) throw Fault("kernel " + kernel.name + " was launched by kernel " + block.kernel->name);
  if (kernel.block.y * kernel.block.z != 1) throw Fault("kernel " + kernel.name + ": not supported: blocks of rows");
  order_now = choice.order;
  random_state = choice.seed * 2654435761u | 1;
  block.kernel = &kernel;
  const std::unique_ptr<Block, void (*)(Block*)> at_end(&block, [](Block* b) { b->kernel = nullptr; });
  ++block.launch;
  gridDim = kernel.grid;
  blockDim = kernel.block;
  block.size = static_cast<int>(blockDim.x);
  forget_shared();
  if (kernel.shared_bytes > 0) add_shared("of the launch", kernel.shared_bytes, 1024);
  const uint64_t blocks = static_cast<uint64_t>(gridDim.x) * gridDim.y * gridDim.z;
  // Random order of blocks: the step has no divisor in common with the number of blocks.
  uint64_t step = next_random() % blocks + 1;
  while (std::gcd(step, blocks) != 1) ++step;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t turned = order_now == Order::ASCENDING    ? i
                            : order_now == Order::DESCENDING ? blocks - 1 - i
                                                             : (i + 1) * step % blocks;
    blockIdx = block_index(turned, gridDim);
    run_block();
  }
  forget_shared();
}

void block_barrier(const Place& place) {
  if (block.at_barrier++ == 0) {
    block.barrier = place;
    block.one_barrier = true;
  } else if (place.line != block.barrier.line || std::strcmp(place.file, block.barrier.file) != 0) {
    block.one_barrier = false;
  }
  Thread& thread = block.threads[block.current];
  thread.waiting = Waiting::BLOCK;
  thread.place = place;
  set_waiting(block.current / 32, 1u << (block.current % 32));
  wait();
}

uint64_t warp_shuffle(uint32_t mask, uint64_t bits, int source, const Place& place) {
  return exchange(mask, bits, source & 31, place);
}

uint32_t warp_vote(uint32_t mask, bool yes, const Place& place) {
  return static_cast<uint32_t>(exchange(mask, yes, -1, place));
}

int lane() { return block.current % 32; }

void* shared_array(SharedSite& site, size_t bytes, size_t alignment, const char* name) {
  if (site.launch != block.launch) {
    site.address = add_shared(name, bytes, std::max(alignment, size_t(16)));
    site.launch = block.launch;
  }
  return site.address;
}

void* shared_memory() {
  if (block.kernel->shared_bytes == 0) {
    blame_thread("it uses shared memory of the launch, of which there is none");
    stop();
  }
  return block.shared;
}

void copy_async(void* to, const void* from, size_t bytes) {
  const bool good_size = bytes == 4 || bytes == 8 || bytes == 16;
  if (!good_size || (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % bytes != 0) {
    blame_thread("an asynchronous copy moves 4, 8 or 16 bytes, aligned to as many");
    stop();
  }
  std::memset(to, 0xFF, bytes);
  block.any_async = true;
  block.async[block.current].copies.push_back({to, from, bytes});
}

void commit_copies() {
  AsyncCopies& async = block.async[block.current];
  block.any_async = true;
  async.commits.push_back(async.copies.size());
}

void wait_for_copies(size_t commits_left) {
  AsyncCopies& async = block.async[block.current];
  if (async.commits.size() <= commits_left) return;
  const size_t due = async.commits.size() - commits_left, copies = async.commits[due - 1];
  for (size_t i = 0; i < copies; ++i) std::memcpy(async.copies[i].to, async.copies[i].from, async.copies[i].bytes);
  async.copies.erase(async.copies.begin(), async.copies.begin() + static_cast<std::ptrdiff_t>(copies));
  async.commits.erase(async.commits.begin(), async.commits.begin() + static_cast<std::ptrdiff_t>(due));
  for (size_t& commit : async.commits) commit -= copies;
}

}  // namespace cuda_on_host
