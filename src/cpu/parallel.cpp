// A team of threads that share pieces of work. OpenMP's parallel loops end with a meeting of all threads: on a busy machine the
// caller waits for threads that have not even begun, and those that wait burn the time that others need. Here the caller takes
// pieces as the others do and waits only for those that somebody else has begun; who has nothing to do looks out for a tenth of
// a millisecond, then sleeps. A job that took next to nothing when it was last done is not shared at all.
//
// Each thread has a share of a job's pieces, those of the same part of the work in every job, so that it finds in its caches
// what it wrote there in the job before. It takes its own share from the front, and then those of others from their ends. A
// share is one word: the first of the pieces that nobody has taken yet, and the one behind the last. Who makes it smaller has a
// piece, and the job lives until all its pieces are done: nobody who is late can take a piece of a job that is over, for its
// shares are empty. Who read a share in one job and finds the same word in the next takes a piece of the next, rightly: nothing
// else of a job is read before a piece is taken.

#include "cpu/parallel.h"

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

constexpr std::chrono::microseconds LOOKOUT{100};
// Less than this is done sooner alone: a piece that goes to another core takes its data there, and a worker may have to be woken.
constexpr std::chrono::microseconds WORTH{80};
constexpr size_t KNOWN = 1024;

// Room for the other thread of a core.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether the condition held within the time.
template <class Condition>
bool look_out(bool patient, Condition condition) {
  if (condition()) return true;
  if (!patient) return false;
  const auto end = std::chrono::steady_clock::now() + LOOKOUT;
  do {
    for (int i = 0; i < 32; ++i) {
      if (condition()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// The pieces of one thread that nobody has taken yet, begin … end−1.
class alignas(64) Share {
 public:
  void open(int64_t begin, int64_t end) {
    word_.store(static_cast<uint64_t>(begin) << 32 | static_cast<uint64_t>(end));
  }
  bool empty() const {
    const uint64_t word = word_.load();
    return begin_of(word) == end_of(word);
  }

  // The first or the last of them, which is the caller's now; −1 where there is none.
  int64_t take(bool first) {
    uint64_t word = word_.load();
    do {
      if (begin_of(word) == end_of(word)) return -1;
    } while (!word_.compare_exchange_weak(word, first ? word + (uint64_t(1) << 32) : word - 1));
    return first ? begin_of(word) : end_of(word) - 1;
  }

 private:
  static int64_t begin_of(uint64_t word) { return static_cast<int64_t>(word >> 32); }
  static int64_t end_of(uint64_t word) { return static_cast<int64_t>(word & 0xffffffff); }

  std::atomic<uint64_t> word_{0};
};

// Signals are for the caller, which may wait for input: threads made meanwhile get none.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

class Threads::Team {
 public:
  explicit Team(int workers) : patient_(workers < available_threads()), shares_(static_cast<size_t>(workers) + 1) {
    const NoSignals masked;
    try {
      for (int i = 0; i < workers; ++i) threads_.emplace_back([this, i] { work(i + 1); });
    } catch (const std::system_error& error) {
      const size_t started = threads_.size() + 1;
      end();
      throw Error(
          text("--threads %d: the system starts no more than %zu of them (%s)", workers + 1, started, error.what()));
    }
  }
  ~Team() { end(); }

  void share(int64_t pieces, int64_t size, One one, const void* context) {
    Known& known = known_[(reinterpret_cast<uintptr_t>(one) / 16 + static_cast<uint64_t>(pieces) * 31 +
                           static_cast<uint64_t>(size) * 0x9e3779b97f4a7c15 / KNOWN) %
                          KNOWN];
    if (known.one != one || known.pieces != pieces || known.size != size) known = {one, pieces, size, WORTH, 0};
    const bool alone = known.work < WORTH;
    if (alone && ++known.calls % 16 != 0) return do_alone(pieces, one, context);  // each 16th is measured again
    const auto start = std::chrono::steady_clock::now();
    alone ? do_alone(pieces, one, context) : share_out(pieces, one, context);
    known.work = (std::chrono::steady_clock::now() - start) * (alone ? 1 : static_cast<int>(threads_.size()) + 1);
  }

 private:
  // What a job took last time it was measured, of all threads together.
  struct Known {
    One one = nullptr;
    int64_t pieces = 0, size = 0;
    std::chrono::nanoseconds work{0};
    uint32_t calls = 0;
  };

  void end() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  static void do_alone(int64_t pieces, One one, const void* context) {
    for (int64_t piece = 0; piece < pieces; ++piece) one(context, piece, 0);
  }

  void share_out(int64_t pieces, One one, const void* context) {
    one_ = one;
    context_ = context;
    pieces_ = pieces;
    done_.store(0, std::memory_order_relaxed);
    const int64_t threads = static_cast<int64_t>(shares_.size());
    const auto begin = [&](int64_t thread) { return (pieces * thread + threads - 1) / threads; };
    for (int64_t t = 0; t < threads; ++t) shares_[static_cast<size_t>(t)].open(begin(t), begin(t + 1));
    wake(pieces - 1);
    while (take(0)) {
    }
    wait_for(pieces);
  }

  bool nothing_open() const {
    return std::all_of(shares_.begin(), shares_.end(), [](const Share& share) { return share.empty(); });
  }

  // Does a piece, of its own share where one is left; false where there is none.
  bool take(int thread) {
    int64_t piece = -1;
    for (size_t i = 0; i < shares_.size() && piece < 0; ++i)
      piece = shares_[(static_cast<size_t>(thread) + i) % shares_.size()].take(i == 0);
    if (piece < 0) return false;
    const int64_t pieces = pieces_;  // of this job: it is not over before this piece is done
    one_(context_, piece, thread);
    if (done_.fetch_add(1) + 1 == pieces && caller_sleeps_.load()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_all_.notify_one();
    }
    return true;
  }

  // As many of those that sleep as find something.
  void wake(int64_t most) {
    const int64_t sleeping = std::min<int64_t>(sleeping_.load(), most);
    if (sleeping == 0) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int64_t i = 0; i < sleeping; ++i) wake_.notify_one();
  }

  void wait_for(int64_t pieces) {
    const auto all_done = [&] { return done_.load() == pieces; };
    if (look_out(patient_, all_done)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    caller_sleeps_ = true;
    done_all_.wait(lock, all_done);
    caller_sleeps_ = false;
  }

  void work(int thread) {
    for (;;) {
      while (take(thread)) {
      }
      if (look_out(patient_, [&] { return !nothing_open(); })) continue;
      std::unique_lock<std::mutex> lock(mutex_);
      ++sleeping_;
      wake_.wait(lock, [&] { return over_ || !nothing_open(); });
      --sleeping_;
      if (over_) return;
    }
  }

  std::vector<Known> known_ = std::vector<Known>(KNOWN);
  // Who only waits takes nothing from anybody, where there is a core for each.
  const bool patient_;
  One one_ = nullptr;
  const void* context_ = nullptr;
  int64_t pieces_ = 0;
  std::vector<Share> shares_;
  alignas(64) std::atomic<int64_t> done_{0};
  alignas(64) std::atomic<int> sleeping_{0};
  std::atomic<bool> caller_sleeps_{false};
  bool over_ = false;
  std::mutex mutex_;
  std::condition_variable wake_, done_all_;
  std::vector<std::thread> threads_;
};

Threads::Threads(int count) : count(count), team_(count > 1 ? std::make_unique<Team>(count - 1) : nullptr) {}

Threads::~Threads() = default;

void Threads::share(int64_t pieces, int64_t size, One one, const void* context) const {
  team_->share(pieces, size, one, context);
}

int available_threads() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace petroglyph
