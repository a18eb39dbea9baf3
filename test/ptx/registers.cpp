#include "ptx/registers.h"

#include <algorithm>
#include <map>

namespace ptx {
namespace {

using Set = std::vector<uint64_t>;  // of values, one bit each

bool has(const Set& set, int n) { return (set[static_cast<size_t>(n) / 64] >> (n % 64) & 1) != 0; }
void put(Set& set, int n) { set[static_cast<size_t>(n) / 64] |= uint64_t(1) << (n % 64); }

template <class Function>
void for_each(const Set& set, Function f) {
  for (size_t w = 0; w < set.size(); ++w)
    for (uint64_t rest = set[w]; rest != 0; rest &= rest - 1) f(static_cast<int>(w * 64) + __builtin_ctzll(rest));
}

// A basic block: instructions that run one after the other, and the values that are live at its ends.
struct Stretch {
  int begin, end;
  std::vector<int> next;  // indices of successors
  Set read, written, live_in, live_out;
};

std::vector<Stretch> cut(const std::vector<Instruction>& code) {
  std::vector<char> starts(code.size() + 1, 0);
  starts[0] = 1;
  for (size_t n = 0; n < code.size(); ++n) {
    if (code[n].flow == Flow::BRANCH) starts[static_cast<size_t>(code[n].target)] = 1;
    if (code[n].flow == Flow::BRANCH || code[n].flow == Flow::EXIT) starts[n + 1] = 1;
  }
  std::vector<Stretch> all;
  std::vector<int> number(code.size() + 1, -1);
  for (int n = 0; n < static_cast<int>(code.size()); ++n) {
    if (starts[static_cast<size_t>(n)]) {
      number[static_cast<size_t>(n)] = static_cast<int>(all.size());
      all.push_back({n, n, {}, {}, {}, {}, {}});
    }
    all.back().end = n + 1;
  }
  for (Stretch& s : all) {
    const Instruction& last = code[static_cast<size_t>(s.end) - 1];
    const bool goes_on = last.guarded || (last.flow != Flow::BRANCH && last.flow != Flow::EXIT);
    if (last.flow == Flow::BRANCH) s.next.push_back(number[static_cast<size_t>(last.target)]);
    if (goes_on && s.end < static_cast<int>(code.size())) s.next.push_back(number[static_cast<size_t>(s.end)]);
  }
  return all;
}

// Liveness analysis: iterates backwards over the basic blocks until nothing changes.
void find_living(std::vector<Stretch>& stretches, const std::vector<Use>& uses, size_t words) {
  for (Stretch& s : stretches) {
    s.read = s.written = s.live_in = s.live_out = Set(words, 0);
    for (int n = s.begin; n < s.end; ++n) {
      const Use& use = uses[static_cast<size_t>(n)];
      for (const int r : use.reads)
        if (!has(s.written, r)) put(s.read, r);
      for (const int r : use.writes)
        if (use.always) put(s.written, r);
    }
    s.live_in = s.read;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto s = stretches.rbegin(); s != stretches.rend(); ++s) {
      for (size_t w = 0; w < words; ++w) {
        uint64_t out = 0;
        for (const int next : s->next) out |= stretches[static_cast<size_t>(next)].live_in[w];
        const uint64_t in = s->read[w] | (out & ~s->written[w]);
        changed = changed || in != s->live_in[w];
        s->live_out[w] = out;
        s->live_in[w] = in;
      }
    }
  }
}

struct Life {
  int first = INT32_MAX, last = -1;
  void at(int n) {
    first = std::min(first, n);
    last = std::max(last, n);
  }
};

std::vector<Life> lives_of(const std::vector<Stretch>& stretches, const std::vector<Use>& uses, size_t count) {
  std::vector<Life> lives(count);
  for (const Stretch& s : stretches) {
    for_each(s.live_in, [&](int r) { lives[static_cast<size_t>(r)].at(s.begin); });
    for_each(s.live_out, [&](int r) { lives[static_cast<size_t>(r)].at(s.end); });
    for (int n = s.begin; n < s.end; ++n) {
      for (const int r : uses[static_cast<size_t>(n)].reads) lives[static_cast<size_t>(r)].at(n);
      for (const int r : uses[static_cast<size_t>(n)].writes) lives[static_cast<size_t>(r)].at(n);
    }
  }
  return lives;
}

// Bytes of a value. A predicate is one word; any other value has one number per lane, aligned for vector instructions.
uint32_t size_of(int bits) { return bits == 1 ? 4 : static_cast<uint32_t>(bits / 8 * LANES); }

class Allocator {
 public:
  uint32_t take(int bits) {
    std::vector<uint32_t>& free = free_[bits];
    if (free.empty()) {
      const uint32_t alignment = std::min<uint32_t>(size_of(bits), 64);
      end_ = (end_ + alignment - 1) / alignment * alignment;
      free.push_back(end_);
      end_ += size_of(bits);
    }
    const uint32_t place = free.back();
    free.pop_back();
    return place;
  }
  void give_back(int bits, uint32_t place) { free_[bits].push_back(place); }
  uint32_t bytes() const { return (end_ + 63) / 64 * 64; }

 private:
  std::map<int, std::vector<uint32_t>> free_;
  uint32_t end_ = 0;
};

}  // namespace

Places assign_places(const std::vector<Value>& values, const std::vector<Instruction>& code,
                     const std::vector<Use>& uses) {
  std::vector<Stretch> stretches = cut(code);
  find_living(stretches, uses, values.size() / 64 + 1);
  const std::vector<Life> lives = lives_of(stretches, uses, values.size());

  Places places;
  Allocator allocator;
  places.of.assign(values.size(), 0);
  std::vector<size_t> by_start;
  for (size_t v = 0; v < values.size(); ++v) {
    if (values[v].fixed) places.of[v] = allocator.take(values[v].bits);
    if (!values[v].fixed && lives[v].last >= 0) by_start.push_back(v);
  }
  for_each(stretches.front().live_in, [&](int v) {
    if (!values[static_cast<size_t>(v)].fixed) places.doubtful.push_back(v);
  });
  std::sort(by_start.begin(), by_start.end(), [&](size_t a, size_t b) { return lives[a].first < lives[b].first; });
  std::multimap<int, size_t> living;  // sorted by end of life
  for (const size_t v : by_start) {
    while (!living.empty() && living.begin()->first < lives[v].first) {
      allocator.give_back(values[living.begin()->second].bits, places.of[living.begin()->second]);
      living.erase(living.begin());
    }
    places.of[v] = allocator.take(values[v].bits);
    living.emplace(lives[v].last, v);
  }
  places.bytes = allocator.bytes();
  return places;
}

}  // namespace ptx
