// A block's shared memory, word by word with its history, and the asynchronous copies into it.
//
// Every word of four bytes knows who wrote it last and who read it since, and when: by a clock that goes on at every
// barrier and at every bar.warp.sync. Two threads may touch a word, one of them writing, only with a barrier between, or,
// in one warp, a bar.warp.sync; a shuffle is none. What is not so is a race, reported at the second of the two. A word
// that this block has not written is reported when it is read.
//
// cp.async is as late as it may be: it leaves NaN, and its bytes arrive when its thread waits for its group. Until then
// nobody may touch them; after it they count as written by that thread then, and others need a barrier.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/machine.h"

namespace ptx {

class SharedMemory {
 public:
  // Empty, for another block.
  void begin(size_t bytes);
  // All threads of the block have met.
  void barrier() { barrier_ = ++clock_; }
  // For Warp::synchronized, after a bar.warp.sync.
  uint32_t warp_synchronized() { return ++clock_; }
  uint32_t last_barrier() const { return barrier_; }

  // The bytes at `address`, after the check that this thread may read or write them now. `synchronized` is its warp's.
  const unsigned char* read(uint64_t address, unsigned bytes, unsigned thread, uint32_t synchronized);
  unsigned char* write(uint64_t address, unsigned bytes, unsigned thread, uint32_t synchronized);
  // For cp.async: nobody may touch the bytes until it arrives.
  void expect_copy(uint64_t address, unsigned bytes, unsigned thread, uint32_t synchronized);
  void copy_arrives(uint64_t address, const unsigned char* from, unsigned bytes, unsigned thread);

 private:
  struct Word {
    uint32_t written = 0, read = 0;   // when; 0: before all blocks
    uint16_t writer = 0, reader = 0;  // threads; a reader may be more than one: SEVERAL_LANES + warp, SEVERAL_WARPS
  };
  static constexpr uint16_t SEVERAL_LANES = 1024, SEVERAL_WARPS = 2048, COPYING = 4096;
  static constexpr uint32_t FOR_EVER = UINT32_MAX;

  void check_range(uint64_t address, unsigned bytes) const;
  void check_read(Word& word, unsigned thread, uint32_t synchronized);
  void check_write(const Word& word, unsigned thread, uint32_t synchronized) const;
  void note_reader(Word& word, unsigned thread, uint32_t synchronized);
  // Whether what `other` did at `when` may not have ended, or not have begun, for this thread.
  bool unsynchronized(unsigned other, uint32_t when, unsigned thread, uint32_t synchronized) const {
    return when >= barrier_ && other != thread && (other / LANES != thread / LANES || when >= synchronized);
  }

  std::vector<unsigned char> bytes_;
  std::vector<Word> words_;
  size_t size_ = 0;
  uint32_t clock_ = 0, barrier_ = 0, block_ = 0;  // now, at the last barrier, when the block began
};

// What a warp's threads have asked for and not yet waited for.
class AsyncCopies {
 public:
  struct Copy {
    Lanes lanes;  // that still wait for it
    uint64_t from[LANES];
    uint32_t to[LANES], group[LANES];
    unsigned bytes;
  };
  Copy& add() {
    copies_.emplace_back();
    return copies_.back();
  }
  uint32_t group(int lane) const { return groups_[lane]; }
  void commit(Lanes lanes);
  // All groups of these lanes but the last `left` arrive.
  void wait(Lanes lanes, uint32_t left, SharedMemory& shared, unsigned first_thread);
  void forget() {
    copies_.clear();
    for (uint32_t& group : groups_) group = 0;
  }

 private:
  std::vector<Copy> copies_;
  uint32_t groups_[LANES] = {};  // that each lane has committed
};

}  // namespace ptx
