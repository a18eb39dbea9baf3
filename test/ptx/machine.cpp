#include "ptx/machine.h"

#include <algorithm>
#include <numeric>

#include "ptx/block.h"

namespace ptx {
namespace {

constexpr size_t REGISTER_ALIGNMENT = 64;

std::string text(Shape s) {
  return "(" + std::to_string(s.x) + "," + std::to_string(s.y) + "," + std::to_string(s.z) + ")";
}

Shape index_of(uint64_t number, Shape grid) {
  const uint64_t row = number / grid.x;
  return {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(row % grid.y),
          static_cast<unsigned>(row / grid.y)};
}

Lanes first_lanes(unsigned count) { return count >= LANES ? ALL : (Lanes(1) << count) - 1; }

// Adds a group of lanes. If another group is at the same instruction, the two become one.
void add_group(Warp& warp, Group added) {
  if (added.lanes == 0) return;
  for (Group& group : warp.groups) {
    if (group.at != added.at) continue;
    group.lanes |= added.lanes;
    group.waiting = false;
    return;
  }
  warp.groups.push_back(added);
}

void set(Warp& warp, const Constant& c) {
  if (c.bits == 1) warp.predicate(c.place) = c.value != 0 ? ALL : 0;
  if (c.bits == 16) std::fill_n(warp.lanes_of<uint16_t>(c.place), LANES, static_cast<uint16_t>(c.value));
  if (c.bits == 32) std::fill_n(warp.lanes_of<uint32_t>(c.place), LANES, static_cast<uint32_t>(c.value));
  if (c.bits == 64) std::fill_n(warp.lanes_of<uint64_t>(c.place), LANES, c.value);
}

void check_limits(const Program& program, const Launch& launch) {
  const unsigned threads = launch.block.size();
  const auto fail = [&](const std::string& why) { throw Fault("kernel " + program.name + ": " + why); };
  if (launch.block.y * launch.block.z * launch.grid.z != 1) fail("not supported: blocks of rows, grids of planes");
  if (threads == 0 || threads > program.most_threads)
    fail(std::to_string(threads) + " threads a block, its __launch_bounds__ promises at most " +
         std::to_string(program.most_threads));
  if (launch.parameters.size() < program.parameter_bytes)
    fail(std::to_string(launch.parameters.size()) + " bytes of parameters, the code reads " +
         std::to_string(program.parameter_bytes));
}

}  // namespace

Block::Block(Program& program, const Launch& launch)
    : shared(clock),
      global(launch, clock, program.code.size()),
      copies((launch.block.size() + LANES - 1) / LANES),
      program_(program),
      launch_(launch),
      warps_(copies.size()),
      registers_(copies.size() * program.register_bytes + REGISTER_ALIGNMENT, 0xFF),
      random_(launch.seed * 2654435761u | 1) {
  auto address = reinterpret_cast<uintptr_t>(registers_.data());
  unsigned char* at = registers_.data() + (REGISTER_ALIGNMENT - address % REGISTER_ALIGNMENT) % REGISTER_ALIGNMENT;
  for (Warp& warp : warps_) {
    warp.registers = at;
    warp.block = this;
    warp.number = static_cast<int>(&warp - warps_.data());
    at += program.register_bytes;
    for (const Constant& c : program.constants) set(warp, c);
  }
}

void Block::prepare_warp(Warp& warp, Shape index) {
  const unsigned first = static_cast<unsigned>(warp.number) * LANES;
  warp.living = first_lanes(launch_.block.size() - first);
  warp.groups = {{0, warp.living, false}};
  warp.at_barrier = 0;
  warp.synchronized = clock.barrier();
  for (const uint32_t place : program_.watched) warp.predicate(place) = 0;
  for (const Constant& c : program_.unwritten) set(warp, c);
  for (const Special& special : program_.specials) {
    uint32_t* to = warp.lanes_of<uint32_t>(special.place);
    for (unsigned l = 0; l < LANES; ++l) {
      const unsigned values[] = {first + l, launch_.block.x, index.x, index.y};
      to[l] = values[special.which];
    }
  }
}

unsigned Block::below(unsigned n) {  // xorshift
  random_ ^= random_ << 13;
  random_ ^= random_ >> 17;
  random_ ^= random_ << 5;
  return random_ % n;
}

void Block::fail(const Instruction& i, Lanes lanes, const std::string& why) const {
  char mask[16];
  std::snprintf(mask, sizeof mask, "%#x", lanes);
  throw Fault("kernel " + program_.name + ", block " + text(index_) + ", lanes " + mask + ": " + why + ": " +
              program_.texts[static_cast<size_t>(i.number)]);
}

// Picks the group to run: the one that is furthest behind, so that groups meet again; in random order, any group.
int Block::pick_group(const Warp& warp) {
  int best = -1, seen = 0;
  const bool random = launch_.order == Order::RANDOM && below(4) == 0;
  for (int g = 0; g < static_cast<int>(warp.groups.size()); ++g) {
    const Group& group = warp.groups[static_cast<size_t>(g)];
    if (group.waiting) continue;
    ++seen;
    if (best < 0 ||
        (random ? below(static_cast<unsigned>(seen)) == 0 : group.at < warp.groups[static_cast<size_t>(best)].at))
      best = g;
  }
  return best;
}

// Runs a warp until all of its lanes wait at a barrier or have ended.
void Block::run_warp(Warp& warp) {
  while (!warp.groups.empty()) {
    const int picked = pick_group(warp);
    if (picked < 0) {
      const Group& stuck = warp.groups.front();
      fail(program_.code[static_cast<size_t>(stuck.at)], stuck.lanes, "waits for lanes that do not come");
    }
    const Group group = warp.groups[static_cast<size_t>(picked)];
    warp.groups.erase(warp.groups.begin() + picked);
    run_group(warp, group);
  }
}

void Block::check_written(Warp& warp, const Instruction& i, Lanes lanes) const {
  const Watch& watch = program_.watches[static_cast<size_t>(i.watch)];
  for (const uint32_t place : watch.reads)
    if ((lanes & ~warp.predicate(place)) != 0) fail(i, lanes & ~warp.predicate(place), "reads what nothing wrote");
  for (const uint32_t place : watch.writes) warp.predicate(place) |= lanes;
}

void Block::execute(Warp& warp, const Instruction& i, Lanes lanes) const {
  try {
    i.run(warp, i, lanes);
  } catch (const Fault& fault) {
    fail(i, lanes, fault.what());
  }
}

// Runs a group until it diverges, waits, ends, or reaches an instruction at which another group is.
void Block::run_group(Warp& warp, Group group) {
  int others = INT32_MAX;  // the first instruction after this one at which another group is
  for (const Group& other : warp.groups)
    if (other.at > group.at) others = std::min(others, other.at);
  int at = group.at;
  const Instruction* code = program_.code.data();
  uint8_t* executed = program_.executed.data();
  for (;;) {
    const Instruction& i = code[at];
    Lanes lanes = group.lanes;
    if (i.guarded) lanes &= i.negated ? ~warp.predicate(i.guard) : warp.predicate(i.guard);
    if (lanes != 0 || i.flow == Flow::BRANCH) executed[at] = 1;
    if (i.watch >= 0) check_written(warp, i, i.flow == Flow::BRANCH ? group.lanes : lanes);
    switch (i.flow) {
      case Flow::NEXT:
        if (lanes != 0) execute(warp, i, lanes);
        ++at;
        break;
      case Flow::BRANCH:
        if (++branches_ > launch_.most_branches) fail(i, lanes, "goes on and on");
        if (lanes != group.lanes && lanes != 0) {
          add_group(warp, {i.target, lanes, false});
          return add_group(warp, {at + 1, group.lanes & ~lanes, false});
        }
        at = lanes != 0 ? i.target : at + 1;
        break;
      case Flow::EXIT:
        warp.living &= ~lanes;
        group.lanes &= ~lanes;
        if (lanes != 0)
          for (Group& other : warp.groups) other.waiting = false;  // lanes that have ended are no longer waited for
        if (group.lanes == 0) return;
        ++at;
        break;
      case Flow::BARRIER: return arrive(warp, at, lanes);
      case Flow::EXCHANGE:
        if (!run_exchange(warp, i, lanes)) return add_group(warp, {at, group.lanes, true});
        ++at;
        break;
    }
    if (at >= others || (at < group.at && !warp.groups.empty())) return add_group(warp, {at, group.lanes, false});
  }
}

// Returns false if live lanes of the mask have not arrived yet.
bool Block::run_exchange(Warp& warp, const Instruction& i, Lanes lanes) {
  const uint32_t* masks = warp.lanes_of<uint32_t>(i.mask);
  const Lanes mask = masks[__builtin_ctz(lanes)];
  for (Lanes rest = lanes; rest != 0; rest &= rest - 1) {
    if (masks[__builtin_ctz(rest)] != mask) fail(i, lanes, "the lanes name different masks");
  }
  if ((lanes & ~mask) != 0) fail(i, lanes & ~mask, "a lane that its own mask does not name");
  if ((mask & warp.living & ~lanes) != 0) return false;
  execute(warp, i, lanes);
  return true;
}

void Block::arrive(Warp& warp, int at, Lanes lanes) {
  const Instruction& i = program_.code[static_cast<size_t>(at)];
  if (warp.at_barrier != 0 && warp.barrier != at) fail(i, lanes, "a warp at two barriers at once");
  warp.at_barrier |= lanes;
  warp.barrier = at;
}

// All warps have ended or are at a barrier. Releases them if it is the same barrier.
void Block::pass_barrier() {
  const Warp* first = nullptr;
  for (const Warp& warp : warps_) {
    if (warp.living == 0) continue;
    const Instruction& i = program_.code[static_cast<size_t>(warp.barrier)];
    if (first != nullptr && first->barrier != warp.barrier) fail(i, warp.living, "warps at different barriers");
    first = &warp;
  }
  clock.pass_barrier();
  for (Warp& warp : warps_) {
    if (warp.living == 0) continue;
    warp.groups = {{warp.barrier + 1, warp.at_barrier, false}};
    warp.at_barrier = 0;
    warp.synchronized = clock.barrier();
  }
}

void Block::run(Shape index) {
  index_ = index;
  clock.begin_block();
  shared.begin(program_.shared_bytes + launch_.shared_bytes);
  for (Warp& warp : warps_) prepare_warp(warp, index);
  for (AsyncCopies& copy : copies) copy.forget();
  const auto count = static_cast<unsigned>(warps_.size());
  const auto lives = [](const Warp& warp) { return warp.living != 0; };
  while (std::any_of(warps_.begin(), warps_.end(), lives)) {
    const unsigned turn = launch_.order == Order::RANDOM ? below(count) : 0;
    for (unsigned n = 0; n < count; ++n) {
      const unsigned k = (n + turn) % count;
      run_warp(warps_[launch_.order == Order::DESCENDING ? count - 1 - k : k]);
    }
    pass_barrier();
  }
}

void run(Program& program, const Launch& launch) {
  check_limits(program, launch);
  Block block(program, launch);
  const uint64_t blocks = static_cast<uint64_t>(launch.grid.x) * launch.grid.y * launch.grid.z;
  // Random order of blocks: the step has no divisor in common with the number of blocks.
  uint64_t step = (launch.seed * uint64_t(2654435761)) % blocks + 1;
  while (std::gcd(step, blocks) != 1) ++step;
  for (uint64_t n = 0; n < blocks; ++n) {
    const uint64_t turned = launch.order == Order::ASCENDING    ? n
                            : launch.order == Order::DESCENDING ? blocks - 1 - n
                                                                : (n + 1) * step % blocks;
    block.run(index_of(turned, launch.grid));
  }
}

}  // namespace ptx
