// The only place that starts threads. A thread takes pieces of its own share first and then of others', as chance
// has it; no result may depend on it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace petroglyph {

// Seconds spent in each function that called parallel(), for the bench.
struct Profile {
  struct Entry {
    double seconds = 0;
    int64_t calls = 0;
  };
  std::map<std::string, Entry> entries;
};

// The caller and `count` − 1 workers, which live as long as this.
class Threads {
 public:
  explicit Threads(int count);
  ~Threads();

  // Calls one(context, piece, thread) for the pieces 0 … pieces−1, each once, on some thread; returns when all
  // are done. One caller at a time. Jobs of one size are taken to be about as long as each other.
  using One = void (*)(const void* context, int64_t piece, int thread);
  void share(int64_t pieces, int64_t size, One one, const void* context) const;

  const int count;
  Profile* profile = nullptr;  // written to where it is set

 private:
  class Team;
  const std::unique_ptr<Team> team_;
};

// Calls f(begin, end, thread) for pieces of at most `grain` that cover 0 … n−1, each once. f must not throw. size: what tells
// jobs apart that have n in common, as the operations of a product do; 0: nothing.
template <class F>
void parallel(const Threads& threads, int64_t n, int64_t grain, F f, const char* caller = __builtin_FUNCTION(),
              int64_t size = 0) {
  const auto start = threads.profile ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
  const int64_t pieces = (n + grain - 1) / grain;
  const auto one = [&](int64_t piece, int thread) { f(piece * grain, std::min((piece + 1) * grain, n), thread); };
  if (threads.count == 1 || pieces <= 1)
    for (int64_t piece = 0; piece < pieces; ++piece) one(piece, 0);
  else
    threads.share(
        pieces, size + n,
        [](const void* context, int64_t piece, int thread) { (*static_cast<decltype(one)*>(context))(piece, thread); },
        &one);
  if (!threads.profile) return;
  Profile::Entry& entry = threads.profile->entries[caller];
  entry.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++entry.calls;
}

// Cores that this process may use.
int available_threads();

}  // namespace petroglyph
