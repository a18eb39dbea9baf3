#include "ptx/memory.h"

#include <algorithm>
#include <new>

#include "ptx/block.h"

namespace ptx {
namespace {

std::string thread_name(unsigned thread) { return "thread " + std::to_string(thread); }

[[noreturn]] void race(Thread thread, const char* does, const std::string& other, const char* did) {
  throw Fault("race: " + thread_name(thread.number) + " " + does + " what " + other + " " + did);
}

// True if no barrier orders this thread after the access of thread `other` of this block at time `when`.
bool unsynchronized(const Clock& clock, unsigned other, uint32_t when, Thread thread) {
  return when >= clock.barrier() && other != thread.number &&
         (other / LANES != thread.number / LANES || when >= thread.synchronized);
}

bool in_another_block(const Clock& clock, uint32_t when) { return when != 0 && when < clock.block(); }

}  // namespace

// ---- A word ----

void Word::check_read(const Clock& clock, Thread thread) const {
  if (writer_ == COPYING) throw Fault("reads what an asynchronous copy has not brought yet");
  if (in_another_block(clock, written_)) race(thread, "reads", "another block", "wrote");
  if (unsynchronized(clock, writer_, written_, thread)) race(thread, "reads", thread_name(writer_), "wrote");
}

void Word::check_write(const Clock& clock, Thread thread) const {
  if (writer_ == COPYING) throw Fault("writes where an asynchronous copy has not arrived yet");
  if (in_another_block(clock, written_)) race(thread, "writes", "another block", "wrote");
  if (in_another_block(clock, read_)) race(thread, "writes", "another block", "read");
  if (unsynchronized(clock, writer_, written_, thread)) race(thread, "writes", thread_name(writer_), "wrote");
  if (read_ < clock.barrier() || reader_ == thread.number) return;
  const bool one = reader_ < SEVERAL_LANES;
  const unsigned warp = one ? reader_ / LANES : reader_ - SEVERAL_LANES;  // SEVERAL_WARPS: no existing warp
  if (warp != thread.number / LANES || read_ >= thread.synchronized)
    race(thread, "writes", one ? thread_name(reader_) : "others", "read");
}

void Word::note_reader(const Clock& clock, Thread thread) {
  if (in_another_block(clock, read_)) return;  // any write now is a race with that block
  const unsigned warp = thread.number / LANES;
  if (read_ < clock.barrier()) {
    reader_ = static_cast<uint16_t>(thread.number);
  } else if (reader_ != thread.number && reader_ != SEVERAL_WARPS) {
    const unsigned other = reader_ < SEVERAL_LANES ? reader_ / LANES : reader_ - SEVERAL_LANES;
    reader_ = static_cast<uint16_t>(other != warp                  ? SEVERAL_WARPS
                                    : read_ >= thread.synchronized ? SEVERAL_LANES + warp
                                                                   : thread.number);
  }
  read_ = clock.now();
}

void Word::read(const Clock& clock, Thread thread) {
  if (written_ >= clock.barrier() || in_another_block(clock, written_)) check_read(clock, thread);
  const bool known = read_ == clock.now() && (reader_ == SEVERAL_WARPS || reader_ == thread.number);
  if (!known) note_reader(clock, thread);
}

void Word::write(const Clock& clock, Thread thread) {
  if (written_ != 0 || read_ != 0) check_write(clock, thread);
  written_ = clock.now();
  writer_ = static_cast<uint16_t>(thread.number);
}

void Word::expect() {
  written_ = FOR_EVER;
  writer_ = COPYING;
}

void Word::arrives(const Clock& clock, Thread thread) {
  written_ = clock.now();
  writer_ = static_cast<uint16_t>(thread.number);
}

// ---- Shared memory ----

void SharedMemory::begin(size_t bytes) {
  bytes_.assign(bytes, 0xFF);
  words_.assign((bytes + 3) / 4, Word());
}

void SharedMemory::check_range(uint64_t address, unsigned bytes) const {
  if (address > bytes_.size() || bytes > bytes_.size() - address)
    throw Fault("byte " + std::to_string(address) + " of " + std::to_string(bytes_.size()) + " in shared memory");
  if (address % bytes != 0) throw Fault("shared address " + std::to_string(address) + " is not a multiple of its size");
}

const unsigned char* SharedMemory::read(uint64_t address, unsigned bytes, Thread thread) {
  check_range(address, bytes);
  for (uint64_t at = address / 4; at < (address + bytes + 3) / 4; ++at) {
    if (!words_[at].written()) throw Fault("reads shared memory that nobody wrote");
    words_[at].read(clock_, thread);
  }
  return &bytes_[address];
}

unsigned char* SharedMemory::write(uint64_t address, unsigned bytes, Thread thread) {
  check_range(address, bytes);
  for (uint64_t at = address / 4; at < (address + bytes + 3) / 4; ++at) words_[at].write(clock_, thread);
  return &bytes_[address];
}

void SharedMemory::expect_copy(uint64_t address, unsigned bytes, Thread thread) {
  std::fill_n(write(address, bytes, thread), bytes, 0xFF);
  for (uint64_t at = address / 4; at < (address + bytes) / 4; ++at) words_[at].expect();
}

void SharedMemory::copy_arrives(uint64_t address, const unsigned char* from, unsigned bytes, Thread thread) {
  std::copy_n(from, bytes, &bytes_[address]);
  for (uint64_t at = address / 4; at < (address + bytes) / 4; ++at) words_[at].arrives(clock_, thread);
}

// ---- Global memory ----

GlobalMemory::GlobalMemory(const Launch& launch, const Clock& clock, size_t instructions)
    : launch_(launch), clock_(clock), last_(instructions, &none_) {}

GlobalMemory::Allocation& GlobalMemory::allocation_at(uint64_t address, unsigned bytes) {
  Allocation found;
  launch_.memory_at(address, found.begin, found.end);
  if (!holds(found, address, bytes)) throw Fault("a global address outside of all allocations");
  Allocation& known = allocations_[found.begin];
  if (known.words == nullptr) {
    // calloc: zero pages that are never touched cost nothing.
    found.words.reset(static_cast<Word*>(std::calloc((found.end - found.begin + 3) / 4, sizeof(Word))));
    if (found.words == nullptr) throw std::bad_alloc();
    known = std::move(found);
  }
  return known;
}

Word* GlobalMemory::words_at(const Instruction& i, uint64_t address, unsigned bytes) {
  if (address % bytes != 0) throw Fault("a global address that is not a multiple of the access's size");
  Allocation*& last = last_[static_cast<size_t>(i.number)];
  if (!holds(*last, address, bytes)) last = &allocation_at(address, bytes);
  return last->words.get() + (address - last->begin) / 4;
}

const unsigned char* GlobalMemory::read(const Instruction& i, uint64_t address, unsigned bytes, Thread thread) {
  Word* words = words_at(i, address, bytes);
  for (unsigned k = 0; k < (bytes + 3) / 4; ++k) words[k].read(clock_, thread);
  return reinterpret_cast<const unsigned char*>(address);
}

unsigned char* GlobalMemory::write(const Instruction& i, uint64_t address, unsigned bytes, Thread thread) {
  Word* words = words_at(i, address, bytes);
  for (unsigned k = 0; k < (bytes + 3) / 4; ++k) words[k].write(clock_, thread);
  return reinterpret_cast<unsigned char*>(address);
}

const unsigned char* GlobalMemory::read_late(uint64_t address, unsigned bytes, uint32_t asked) {
  const Allocation& allocation = allocation_at(address, bytes);
  const Word* words = allocation.words.get() + (address - allocation.begin) / 4;
  for (unsigned k = 0; k < bytes / 4; ++k)
    if (words[k].written_after(asked)) throw Fault("an asynchronous copy's source was written before it arrived");
  return reinterpret_cast<const unsigned char*>(address);
}

// ---- Asynchronous copies ----

void AsyncCopies::commit(Lanes lanes) {
  for_each_lane(lanes, [&](int l) { ++groups_[l]; });
}

void AsyncCopies::wait(Lanes lanes, uint32_t left, Warp& warp) {
  Block& block = *warp.block;
  for (Copy& copy : copies_) {
    for (Lanes rest = copy.lanes & lanes; rest != 0; rest &= rest - 1) {
      const int l = __builtin_ctz(rest);
      if (copy.group[l] + left >= groups_[l]) continue;
      const unsigned char* from = block.global.read_late(copy.from[l], copy.bytes, copy.asked);
      block.shared.copy_arrives(copy.to[l], from, copy.bytes, warp.thread(l));
      copy.lanes &= ~(Lanes(1) << l);
    }
  }
  copies_.erase(std::remove_if(copies_.begin(), copies_.end(), [](const Copy& c) { return c.lanes == 0; }),
                copies_.end());
}

}  // namespace ptx
