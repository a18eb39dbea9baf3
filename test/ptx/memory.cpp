#include "ptx/memory.h"

#include <algorithm>

namespace ptx {
namespace {

std::string thread_name(unsigned thread) { return "thread " + std::to_string(thread); }

}  // namespace

void SharedMemory::begin(size_t bytes) {
  size_ = bytes;
  if (bytes_.size() < bytes) {
    bytes_.resize(bytes);
    words_.resize((bytes + 3) / 4);
  }
  std::fill(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(bytes), 0xFF);
  block_ = barrier_ = ++clock_;
  for (Word& word : words_)  // a copy for which nobody waited stays for ever otherwise
    if (word.written == FOR_EVER) word = Word();
}

void SharedMemory::check_range(uint64_t address, unsigned bytes) const {
  if (address > size_ || bytes > size_ - address)
    throw Fault("byte " + std::to_string(address) + " of " + std::to_string(size_) + " in shared memory");
  if (address % bytes != 0) throw Fault("shared address " + std::to_string(address) + " is not a multiple of its size");
}

void SharedMemory::check_read(Word& word, unsigned thread, uint32_t synchronized) {
  if (word.written < block_) throw Fault("reads shared memory that nobody wrote");
  if (word.writer == COPYING) throw Fault("reads what an asynchronous copy has not brought yet");
  if (unsynchronized(word.writer, word.written, thread, synchronized))
    throw Fault("race: " + thread_name(thread) + " reads what " + thread_name(word.writer) + " wrote");
}

void SharedMemory::note_reader(Word& word, unsigned thread, uint32_t synchronized) {
  const unsigned warp = thread / LANES;
  if (word.read < barrier_) {
    word.reader = static_cast<uint16_t>(thread);
  } else if (word.reader != thread && word.reader != SEVERAL_WARPS) {
    const unsigned other = word.reader < SEVERAL_LANES ? word.reader / LANES : word.reader - SEVERAL_LANES;
    word.reader = static_cast<uint16_t>(other != warp               ? SEVERAL_WARPS
                                        : word.read >= synchronized ? SEVERAL_LANES + warp
                                                                    : thread);
  }
  word.read = clock_;
}

void SharedMemory::check_write(const Word& word, unsigned thread, uint32_t synchronized) const {
  if (word.writer == COPYING && word.written == FOR_EVER)
    throw Fault("writes where an asynchronous copy has not arrived yet");
  if (word.written >= block_ && unsynchronized(word.writer, word.written, thread, synchronized))
    throw Fault("race: " + thread_name(thread) + " writes what " + thread_name(word.writer) + " wrote");
  if (word.read < barrier_ || word.reader == thread) return;
  const bool lanes = word.reader >= SEVERAL_LANES && word.reader < SEVERAL_WARPS;
  const bool own_warp = lanes ? word.reader - SEVERAL_LANES == static_cast<int>(thread / LANES)
                              : word.reader < SEVERAL_LANES && word.reader / LANES == thread / LANES;
  if (!own_warp || word.read >= synchronized)
    throw Fault("race: " + thread_name(thread) + " writes what " +
                (word.reader < SEVERAL_LANES ? thread_name(word.reader) : std::string("others")) + " read");
}

const unsigned char* SharedMemory::read(uint64_t address, unsigned bytes, unsigned thread, uint32_t synchronized) {
  check_range(address, bytes);
  for (uint64_t at = address / 4; at < (address + bytes + 3) / 4; ++at) {
    Word& word = words_[at];
    if (word.written >= barrier_ || word.written < block_) check_read(word, thread, synchronized);
    const bool known = word.read == clock_ && (word.reader == SEVERAL_WARPS || word.reader == thread);
    if (!known) note_reader(word, thread, synchronized);
  }
  return &bytes_[address];
}

unsigned char* SharedMemory::write(uint64_t address, unsigned bytes, unsigned thread, uint32_t synchronized) {
  check_range(address, bytes);
  for (uint64_t at = address / 4; at < (address + bytes + 3) / 4; ++at) {
    Word& word = words_[at];
    if (word.written >= barrier_ || word.read >= barrier_) check_write(word, thread, synchronized);
    word.written = clock_;
    word.writer = static_cast<uint16_t>(thread);
  }
  return &bytes_[address];
}

void SharedMemory::expect_copy(uint64_t address, unsigned bytes, unsigned thread, uint32_t synchronized) {
  std::fill_n(write(address, bytes, thread, synchronized), bytes, 0xFF);
  for (uint64_t at = address / 4; at < (address + bytes) / 4; ++at) {
    words_[at].written = FOR_EVER;
    words_[at].writer = COPYING;
  }
}

void SharedMemory::copy_arrives(uint64_t address, const unsigned char* from, unsigned bytes, unsigned thread) {
  std::copy_n(from, bytes, &bytes_[address]);
  for (uint64_t at = address / 4; at < (address + bytes) / 4; ++at) {
    words_[at].written = clock_;
    words_[at].writer = static_cast<uint16_t>(thread);
  }
}

void AsyncCopies::commit(Lanes lanes) {
  for_each_lane(lanes, [&](int l) { ++groups_[l]; });
}

void AsyncCopies::wait(Lanes lanes, uint32_t left, SharedMemory& shared, unsigned first_thread) {
  for (Copy& copy : copies_) {
    for (Lanes rest = copy.lanes & lanes; rest != 0; rest &= rest - 1) {
      const int l = __builtin_ctz(rest);
      if (copy.group[l] + left >= groups_[l]) continue;
      shared.copy_arrives(copy.to[l], reinterpret_cast<const unsigned char*>(copy.from[l]), copy.bytes,
                          first_thread + static_cast<unsigned>(l));
      copy.lanes &= ~(Lanes(1) << l);
    }
  }
  copies_.erase(std::remove_if(copies_.begin(), copies_.end(), [](const Copy& c) { return c.lanes == 0; }),
                copies_.end());
}

}  // namespace ptx
