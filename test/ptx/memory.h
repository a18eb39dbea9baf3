// Shared and global memory, word by word with its history, and the asynchronous copies from one to the other.
//
// Every word of four bytes knows who wrote it last and who read it since, and when: by a clock that goes on at every
// barrier and at every bar.warp.sync. Two threads of a block may touch a word, one of them writing, only with a barrier
// between, or, in one warp, a bar.warp.sync; a shuffle is none. Two blocks of a launch may not at all. What is not so is
// a race, reported at the second of the two. A word of shared memory that this block has not written is reported when
// it is read.
//
// cp.async is as late as it may be: it leaves NaN, and its bytes arrive when its thread waits for its group. Until then
// nobody may touch them, nor write where they come from; after it they count as written by that thread then, and others
// need a barrier.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "ptx/machine.h"

namespace ptx {

// The time of a launch's blocks, which run one after another.
class Clock {
 public:
  uint32_t now() const { return now_; }
  uint32_t barrier() const { return barrier_; }  // when all threads of the block met last, or when it began
  uint32_t block() const { return block_; }      // when the block began
  void begin_block() { block_ = barrier_ = ++now_; }
  void pass_barrier() { barrier_ = ++now_; }
  void pass_warp_barrier() { ++now_; }

 private:
  uint32_t now_ = 0, barrier_ = 0, block_ = 0;
};

// A word's history, which is all zeros where it has none.
class Word {
 public:
  bool written() const { return written_ != 0; }
  // Fault where that is a race.
  void read(const Clock& clock, Thread thread);
  void write(const Clock& clock, Thread thread);
  // Of cp.async: nobody may touch the word until it arrives.
  void expect();
  void arrives(const Clock& clock, Thread thread);
  bool written_after(uint32_t when) const { return written_ > when; }

 private:
  static constexpr uint16_t SEVERAL_LANES = 1024, SEVERAL_WARPS = 2048, COPYING = 4096;
  static constexpr uint32_t FOR_EVER = UINT32_MAX;

  void check_read(const Clock& clock, Thread thread) const;
  void check_write(const Clock& clock, Thread thread) const;
  void note_reader(const Clock& clock, Thread thread);

  uint32_t written_, read_;   // when; 0: never
  uint16_t writer_, reader_;  // threads of the block; readers may be more than one: SEVERAL_LANES + warp, SEVERAL_WARPS
};

class SharedMemory {
 public:
  explicit SharedMemory(const Clock& clock) : clock_(clock) {}
  // Empty, for another block.
  void begin(size_t bytes);

  // The bytes at `address`, after the check that this thread may read or write them now.
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

// The allocations that a launch touches. Each instruction remembers the one that it touched last, since it will again.
class GlobalMemory {
 public:
  GlobalMemory(const Launch& launch, const Clock& clock, size_t instructions);

  const unsigned char* read(const Instruction& i, uint64_t address, unsigned bytes, Thread thread);
  unsigned char* write(const Instruction& i, uint64_t address, unsigned bytes, Thread thread);
  // What an asynchronous copy brings: nobody may have written it since it was asked for.
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

// What a warp's threads have asked for and not yet waited for.
class AsyncCopies {
 public:
  struct Copy {
    Lanes lanes;  // that still wait for it
    uint64_t from[LANES];
    uint32_t to[LANES], group[LANES];
    unsigned bytes;
    uint32_t asked;  // when
  };
  Copy& add() {
    copies_.emplace_back();
    return copies_.back();
  }
  uint32_t group(int lane) const { return groups_[lane]; }
  void commit(Lanes lanes);
  // All groups of these lanes but the last `left` arrive.
  void wait(Lanes lanes, uint32_t left, Warp& warp);
  void forget() {
    copies_.clear();
    for (uint32_t& group : groups_) group = 0;
  }

 private:
  std::vector<Copy> copies_;
  uint32_t groups_[LANES] = {};  // that each lane has committed
};

}  // namespace ptx
