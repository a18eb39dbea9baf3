// Shared and global memory, with a history for each word, and the asynchronous copies between them.
//
// Every four-byte word records who wrote it last and who has read it since, and when. The clock advances at every
// barrier and every bar.warp.sync. If two threads of a block access a word and one of them writes, a barrier must come
// between the accesses or, within a warp, a bar.warp.sync; a shuffle does not count. Two blocks of a launch must not do
// so at all. A violation is a race, reported at the second access. Reading shared memory that this block has not
// written is reported too.
//
// cp.async completes as late as allowed. It first stores NaN; its bytes arrive when its thread waits for its group.
// Until then no thread may access the destination or write the source. Afterwards the bytes count as written by that
// thread at that time; other threads need a barrier.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "ptx/machine.h"

namespace ptx {

// The time of a launch, whose blocks run one after another.
class Clock {
 public:
  uint32_t now() const { return now_; }
  uint32_t barrier() const { return barrier_; }  // when all threads of the block last met, or when the block began
  uint32_t block() const { return block_; }      // when the block began
  void begin_block() { block_ = barrier_ = ++now_; }
  void pass_barrier() { barrier_ = ++now_; }
  void pass_warp_barrier() { ++now_; }

 private:
  uint32_t now_ = 0, barrier_ = 0, block_ = 0;
};

// A word's history; all zeros for an untouched word.
class Word {
 public:
  bool written() const { return written_ != 0; }
  // Both throw a Fault if the access is a race.
  void read(const Clock& clock, Thread thread);
  void write(const Clock& clock, Thread thread);
  // For cp.async: no thread may access the word until the copy arrives.
  void expect();
  void arrives(const Clock& clock, Thread thread);
  bool written_after(uint32_t when) const { return written_ > when; }

 private:
  static constexpr uint16_t SEVERAL_LANES = 1024, SEVERAL_WARPS = 2048, COPYING = 4096;
  static constexpr uint32_t FOR_EVER = UINT32_MAX;

  void check_read(const Clock& clock, Thread thread) const;
  void check_write(const Clock& clock, Thread thread) const;
  void note_reader(const Clock& clock, Thread thread);

  uint32_t written_, read_;   // times; 0: never
  uint16_t writer_, reader_;  // thread in the block; several readers: SEVERAL_LANES + warp, or SEVERAL_WARPS
};

class SharedMemory {
 public:
  explicit SharedMemory(const Clock& clock) : clock_(clock) {}
  // Empties the memory for another block.
  void begin(size_t bytes);

  // Return the bytes at `address` after checking that this thread may access them now.
  const unsigned char* read(uint64_t address, unsigned bytes, Thread thread);
  unsigned char* write(uint64_t address, unsigned bytes, Thread thread);
  void expect_copy(uint64_t address, unsigned bytes, Thread thread);
  void copy_arrives(uint64_t address, const unsigned char* from, unsigned bytes, Thread thread);

 private:
  void check_range(uint64_t address, unsigned bytes) const;

  const Clock& clock_;
  std::vector<unsigned char> bytes_;
  std::vector<Word> words_;
};

// The allocations that a launch accesses. Each instruction caches the one that it accessed last.
class GlobalMemory {
 public:
  GlobalMemory(const Launch& launch, const Clock& clock, size_t instructions);

  const unsigned char* read(const Instruction& i, uint64_t address, unsigned bytes, Thread thread);
  unsigned char* write(const Instruction& i, uint64_t address, unsigned bytes, Thread thread);
  // Reads the source of an asynchronous copy. It must not have been written since the copy was issued.
  const unsigned char* read_late(uint64_t address, unsigned bytes, uint32_t asked);

 private:
  struct Free {
    void operator()(Word* words) const { std::free(words); }
  };
  struct Allocation {
    uint64_t begin = 0, end = 0;
    std::unique_ptr<Word, Free> words;
  };

  bool holds(const Allocation& a, uint64_t address, unsigned bytes) const {
    return address >= a.begin && address < a.end && a.end - address >= bytes;
  }
  Allocation& allocation_at(uint64_t address, unsigned bytes);
  Word* words_at(const Instruction& i, uint64_t address, unsigned bytes);

  const Launch& launch_;
  const Clock& clock_;
  std::map<uint64_t, Allocation> allocations_;
  Allocation none_;
  std::vector<Allocation*> last_;
};

// Copies that the threads of a warp have issued and not yet waited for.
class AsyncCopies {
 public:
  struct Copy {
    Lanes lanes;  // lanes that have not waited for it yet
    uint64_t from[LANES];
    uint32_t to[LANES], group[LANES];
    unsigned bytes;
    uint32_t asked;  // time of issue
  };
  Copy& add() {
    copies_.emplace_back();
    return copies_.back();
  }
  uint32_t group(int lane) const { return groups_[lane]; }
  void commit(Lanes lanes);
  // Completes all groups of these lanes except the last `left`.
  void wait(Lanes lanes, uint32_t left, Warp& warp);
  void forget() {
    copies_.clear();
    for (uint32_t& group : groups_) group = 0;
  }

 private:
  std::vector<Copy> copies_;
  uint32_t groups_[LANES] = {};  // number of groups that each lane has committed
};

}  // namespace ptx
