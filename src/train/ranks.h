// The processes that train one model together, each a rank, and their communication. One process alone is a rank too;
// several are started by mpirun. Only ranks.cpp calls MPI.
//
// A call that waits for the other ranks is made by all of them, in the same order. A rank that fails ends the job
// (run_ranks below); none waits for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/program.h"
#include "base/text.h"

namespace petroglyph {

class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const = 0;
  virtual int count() const = 0;
  bool first() const { return rank() == 0; }  // it writes the files, and prints
  virtual int rank_here() const = 0;          // among those on this machine
  virtual int sharing() const = 0;            // how many compute on the same cores

  // Concatenates each rank's `bytes` in the order of the ranks, on all of them.
  virtual void gather(void* all, const void* mine, size_t bytes) = 0;
  // What the first rank has, on all of them.
  virtual void broadcast(void* data, size_t bytes) = 0;
  // `partner` gets what `give` has while this rank takes what it gives.
  virtual void swap(int partner, const void* give, size_t given, void* take, size_t taken) = 0;
  // Ends the whole job.
  [[noreturn]] virtual void abandon(int status) = 0;

  template <class T>
  std::vector<T> gather(const T& mine) {
    std::vector<T> all(static_cast<size_t>(count()));
    gather(all.data(), &mine, sizeof mine);
    return all;
  }
  template <class T>
  std::vector<T> gather(const std::vector<T>& mine) {  // as many from each
    std::vector<T> all(mine.size() * static_cast<size_t>(count()));
    gather(all.data(), mine.data(), mine.size() * sizeof(T));
    return all;
  }
  // Whether it is true on any rank.
  bool any(bool mine);
  // The result of f(), text or a plain value, on the first rank, the only one that calls it: for files, which other
  // ranks may see later or not at all.
  template <class F>
  auto from_first(F f) {
    decltype(f()) result{};
    if (first()) result = f();
    if constexpr (std::is_same_v<decltype(result), std::string>)
      result = broadcast(result);
    else
      broadcast(&result, sizeof result);
    return result;
  }
  // Throws Error where `mine` is not the same everywhere: "rank 2 differs from rank 0 in `what`".
  void check_same(uint64_t mine, const std::string& what);

 private:
  std::string broadcast(std::string words);
};

// This process alone.
std::unique_ptr<Ranks> one_rank();
// Those that mpirun started, or this process alone. Throws Error where mpirun started several and this build has no
// MPI.
std::unique_ptr<Ranks> join_ranks();

// Throws Error if the ranks were started as different programs or with different options, except --device, --threads
// and --quiet: they would wait for each other in different calls.
void check_command_lines(Ranks& ranks, const std::string& program, const std::vector<std::string>& words);

// Discards what this process prints from now on, except errors.
void hush();

// A training program's main(): body(words, ranks) gives the exit status. An error of one rank ends them all, and its line
// names the rank. If all fail, then for one cause, and the first one ends the others before they print a line, too.
template <class Body>
int run_ranks(const std::string& program, int argc, char** argv, Body body) {
  const std::vector<std::string> words(argv + (argc > 0), argv + argc);
  std::shared_ptr<Ranks> ranks;
  const int joined = run_program(program.c_str(), [&] { return ranks = join_ranks(), 0; });
  if (joined != 0) return joined;
  if (!ranks->first()) hush();
  bool failed = true;
  const std::string name = ranks->first() ? program : text("%s: rank %d", program.c_str(), ranks->rank());
  const int status = run_program(name.c_str(), [&] {
    try {
      check_command_lines(*ranks, program, words);
      const int ended = body(words, ranks);
      failed = false;
      return ended;
    } catch (...) {
      if (!ranks->first()) std::this_thread::sleep_for(std::chrono::seconds(3));
      throw;
    }
  });
  if (failed && ranks->count() > 1) ranks->abandon(status);
  return status;
}

}  // namespace petroglyph
