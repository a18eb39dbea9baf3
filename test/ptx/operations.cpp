#include "ptx/operations.h"

#include <tuple>
#include <utility>

#include "ptx/arithmetic.h"
#include "ptx/block.h"

namespace ptx {
namespace {

// ---- A function of numbers for every lane ----

// The lanes of a source operand, as the function's type.
template <class T>
struct Source {
  const T* at;
  T operator[](int l) const { return at[l]; }
};
template <>
struct Source<bool> {
  Lanes bits;
  bool operator[](int l) const { return (bits >> l & 1) != 0; }
};

template <class T>
Source<T> source(Warp& w, uint32_t place) {
  if constexpr (std::is_same_v<T, bool>) {
    return {w.predicate(place)};
  } else {
    return {w.lanes_of<const T>(place)};
  }
}

template <class T>
constexpr int WIDTH = std::is_same_v<T, bool> ? 1 : BITS<T>;

template <auto F, class R, class... A, size_t... I>
void apply(Warp& w, const Instruction& i, Lanes lanes, R (*)(A...), std::index_sequence<I...>) {
  const std::tuple<Source<A>...> operands{source<A>(w, i.from[I])...};
  if constexpr (std::is_same_v<R, bool>) {
    Lanes yes = 0;
    for (int l = 0; l < LANES; ++l) yes |= Lanes(F(std::get<I>(operands)[l]...)) << l;
    Lanes& to = w.predicate(i.to[0]);
    to = (to & ~lanes) | (yes & lanes);
  } else {
    R* to = w.lanes_of<R>(i.to[0]);
    for_each_lane(lanes, [&](int l) { to[l] = F(std::get<I>(operands)[l]...); });
  }
}

template <auto F, class R, class... A>
void each(Warp& w, const Instruction& i, Lanes lanes) {
  apply<F>(w, i, lanes, static_cast<R (*)(A...)>(nullptr), std::index_sequence_for<A...>());
}

// Integer division. A zero divisor is a Fault, because PTX leaves the result undefined.
template <auto F, class T>
void divide(Warp& w, const Instruction& i, Lanes lanes) {
  const T* divisor = w.lanes_of<T>(i.from[1]);
  for (Lanes rest = lanes; rest != 0; rest &= rest - 1)
    if (divisor[__builtin_ctz(rest)] == 0) throw Fault("division by zero");
  T* to = w.lanes_of<T>(i.to[0]);
  const T* dividend = w.lanes_of<T>(i.from[0]);
  for (Lanes rest = lanes; rest != 0; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    to[l] = F(dividend[l], divisor[l]);
  }
}

template <auto F, class R, class... A>
Meaning means_with(const char* opcode, R (*)(A...)) {
  return {opcode, each<F, R, A...>, WIDTH<R>, {WIDTH<A>...}};
}
template <auto F>
Meaning means(const char* opcode) {
  return means_with<F>(opcode, F);
}
template <auto F, class T>
Meaning divides(const char* opcode) {
  return {opcode, divide<F, T>, BITS<T>, {BITS<T>, BITS<T>}};
}

// ---- The table ----

#define COMPARISONS(type) \
  { "setp.eq." type, "setp.ne." type, "setp.lt." type, "setp.le." type, "setp.gt." type, "setp.ge." type }
// The variants of "setp.COMPARISON.TYPE" for one type.
template <class T>
void add_comparisons(std::vector<Meaning>& all, const char* const (&names)[6]) {
  const Operation operations[] = {
      each<holds<std::equal_to<>, T>, bool, T, T>, each<ne<T>, bool, T, T>,
      each<holds<std::less<>, T>, bool, T, T>,     each<holds<std::less_equal<>, T>, bool, T, T>,
      each<holds<std::greater<>, T>, bool, T, T>,  each<holds<std::greater_equal<>, T>, bool, T, T>};
  for (int k = 0; k < 6; ++k) all.push_back({names[k], operations[k], 1, {BITS<T>, BITS<T>}});
}

std::vector<Meaning> make_meanings() {
  std::vector<Meaning> all;
  const auto add_all = [&](const std::vector<Meaning>& more) { all.insert(all.end(), more.begin(), more.end()); };
  add_all({means<add_f32>("add.rn.f32"), means<sub_f32>("sub.rn.f32"), means<mul_f32>("mul.rn.f32"),
           means<fma_f32>("fma.rn.f32"), means<div_f32>("div.rn.f32"), means<rcp_f32>("rcp.rn.f32"),
           means<sqrt_f32>("sqrt.rn.f32"), means<neg_f32>("neg.f32"), means<max_f32>("max.f32")});
  add_all({means<of<std::plus<>, u16>>("add.s16"), means<of<std::plus<>, u32>>("add.s32"),
           means<of<std::plus<>, u64>>("add.s64"), means<of<std::minus<>, u16>>("sub.s16"),
           means<of<std::minus<>, u32>>("sub.s32"), means<of<std::minus<>, u64>>("sub.s64"),
           means<mul_lo<u16>>("mul.lo.s16"), means<mul_lo<u32>>("mul.lo.s32"), means<mul_lo<u64>>("mul.lo.s64"),
           means<mad_lo<u32>>("mad.lo.s32"), means<mad_lo<u64>>("mad.lo.s64"),
           means<of_one<std::negate<>, u32>>("neg.s32"), means<of_one<std::negate<>, u64>>("neg.s64")});
  add_all({means<mul_wide<u32, u16>>("mul.wide.u16"), means<mul_wide<u64, u32>>("mul.wide.u32"),
           means<mul_wide<s64, s32>>("mul.wide.s32"), means<mul_hi_u32>("mul.hi.u32"), means<mul_hi_u64>("mul.hi.u64"),
           means<mul_hi_s64>("mul.hi.s64")});
  add_all({divides<div<u16>, u16>("div.u16"), divides<div<u32>, u32>("div.u32"), divides<div<s32>, s32>("div.s32"),
           divides<div<s64>, s64>("div.s64"), divides<rem<u32>, u32>("rem.u32"), divides<rem<s32>, s32>("rem.s32"),
           divides<rem<s64>, s64>("rem.s64")});
  add_all({means<least<u32>>("min.u32"), means<least<s32>>("min.s32"), means<least<s64>>("min.s64"),
           means<greatest<u32>>("max.u32"), means<greatest<s32>>("max.s32"), means<greatest<s64>>("max.s64")});
  add_all({means<of<std::bit_and<>, u16>>("and.b16"), means<of<std::bit_and<>, u32>>("and.b32"),
           means<of<std::bit_and<>, u64>>("and.b64"), means<of<std::bit_or<>, u32>>("or.b32"),
           means<of<std::bit_or<>, u64>>("or.b64"), means<of<std::bit_xor<>, u32>>("xor.b32"),
           means<of<std::bit_xor<>, u64>>("xor.b64"), means<of_one<std::bit_not<>, u32>>("not.b32"),
           means<of_one<std::bit_not<>, u64>>("not.b64"), means<of<std::bit_and<>, bool>>("and.pred"),
           means<of<std::bit_or<>, bool>>("or.pred"), means<of<std::bit_xor<>, bool>>("xor.pred"),
           means<of_one<std::logical_not<>, bool>>("not.pred")});
  add_all({means<shl<u32>>("shl.b32"), means<shl<u64>>("shl.b64"), means<shr<u32>>("shr.u32"),
           means<shr<s32>>("shr.s32"), means<shr<u64>>("shr.u64"), means<shr<s64>>("shr.s64"), means<popc>("popc.b32"),
           means<brev>("brev.b32"), means<bfind_shift>("bfind.shiftamt.u32"), means<bfe_u32>("bfe.u32"),
           means<prmt>("prmt.b32")});
  add_all({means<same<bool>>("mov.pred"), means<pack>("mov.b64"), means<same<u64>>("cvta.to.global.u64"),
           means<convert<f32, s32>>("cvt.rn.f32.s32"), means<convert<f32, u32>>("cvt.rn.f32.u32"),
           means<convert<f32, s64>>("cvt.rn.f32.s64"), means<convert<u16, u32>>("cvt.u16.u32"),
           means<convert<u32, u16>>("cvt.u32.u16"), means<convert<u64, u16>>("cvt.u64.u16"),
           means<convert<u32, u64>>("cvt.u32.u64"), means<convert<u64, u32>>("cvt.u64.u32"),
           means<convert<s64, s32>>("cvt.s64.s32"),
           // converts the low half of a wider register
           means<convert<u64, u32, u64>>("cvt.u64.u32"), means<convert<s64, s32, s64>>("cvt.s64.s32"),
           means<same<u16>>("mov.u16"), means<select<u16>>("selp.u16"), means<select<u64>>("selp.b64")});
  for (const char* type : {"mov.b32", "mov.u32", "mov.f32"}) all.push_back(means<same<u32>>(type));
  for (const char* type : {"mov.b64", "mov.u64"}) all.push_back(means<same<u64>>(type));
  for (const char* type : {"selp.b32", "selp.u32", "selp.f32"}) all.push_back(means<select<u32>>(type));
  add_all({means<holds<std::equal_to<>, u32>>("setp.eq.b32"), means<holds<std::equal_to<>, u64>>("setp.eq.b64"),
           means<equ>("setp.equ.f32"), means<neu>("setp.neu.f32"), means<ltu>("setp.ltu.f32"),
           means<leu>("setp.leu.f32"), means<geu>("setp.geu.f32"), means<unordered>("setp.nan.f32")});
  add_comparisons<f32>(all, COMPARISONS("f32"));
  add_comparisons<u16>(all, COMPARISONS("u16"));
  add_comparisons<s16>(all, COMPARISONS("s16"));
  add_comparisons<u32>(all, COMPARISONS("u32"));
  add_comparisons<s32>(all, COMPARISONS("s32"));
  add_comparisons<u64>(all, COMPARISONS("u64"));
  add_comparisons<s64>(all, COMPARISONS("s64"));
  return all;
}
#undef COMPARISONS

// ---- Memory ----

u64 shared_address(Warp& w, const Instruction& i, int64_t offset, int l) {
  return (i.wide ? w.lanes_of<u64>(i.from[0])[l] : w.lanes_of<u32>(i.from[0])[l]) + static_cast<u64>(offset);
}

u64 address(Warp& w, const Instruction& i, int l) { return w.lanes_of<u64>(i.from[0])[l] + static_cast<u64>(i.offset); }

const unsigned char* parameter(const std::vector<unsigned char>& parameters, u64 address, unsigned bytes) {
  if (address > parameters.size() || parameters.size() - address < bytes || address % bytes != 0)
    throw Fault("a parameter's address out of range, or not a multiple of its size");
  return parameters.data() + address;
}

template <Space SPACE>
const unsigned char* reading(Warp& w, const Instruction& i, int l, unsigned bytes) {
  Block& block = *w.block;
  if (SPACE == Space::GLOBAL) return block.global.read(i, address(w, i, l), bytes, w.thread(l));
  if (SPACE == Space::SHARED) return block.shared.read(shared_address(w, i, i.offset, l), bytes, w.thread(l));
  return parameter(block.launch().parameters, address(w, i, l), bytes);
}

template <Space SPACE>
unsigned char* writing(Warp& w, const Instruction& i, int l, unsigned bytes) {
  Block& block = *w.block;
  if (SPACE == Space::GLOBAL) return block.global.write(i, address(w, i, l), bytes, w.thread(l));
  return block.shared.write(shared_address(w, i, i.offset, l), bytes, w.thread(l));
}

template <Space SPACE, class Memory, class Register>
void load(Warp& w, const Instruction& i, Lanes lanes) {
  for (Lanes rest = lanes; rest != 0; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    const unsigned char* from = reading<SPACE>(w, i, l, i.count * sizeof(Memory));
    for (int k = 0; k < i.count; ++k) {
      Memory value;
      std::memcpy(&value, from + k * sizeof value, sizeof value);
      w.lanes_of<Register>(i.to[k])[l] = static_cast<Register>(value);
    }
  }
}

template <Space SPACE, class Memory, class Register>
void store(Warp& w, const Instruction& i, Lanes lanes) {
  for (Lanes rest = lanes; rest != 0; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    unsigned char* to = writing<SPACE>(w, i, l, i.count * sizeof(Memory));
    for (int k = 0; k < i.count; ++k) {
      const auto value = static_cast<Memory>(w.lanes_of<Register>(i.from[1 + k])[l]);
      std::memcpy(to + k * sizeof value, &value, sizeof value);
    }
  }
}

enum class Access { LOAD, STORE };

template <Access ACCESS, Space SPACE, class Memory, class Register>
Operation access_of_types() {
  if constexpr (ACCESS == Access::LOAD) return load<SPACE, Memory, Register>;
  return store<SPACE, Memory, Register>;
}

// Numbers of 32 and 64 bits, also of 32 in a register of 64, and bytes in registers of 16: what our kernels' arrays and
// parameters are.
template <Access ACCESS, Space SPACE>
Operation access_of_space(const std::string& type, int bits) {
  const int bits_in_memory = bits_of_type(type);
  if (type == "s8" && bits == 16) return access_of_types<ACCESS, SPACE, int8_t, u16>();
  if (bits_in_memory == 8 && bits == 16) return access_of_types<ACCESS, SPACE, uint8_t, u16>();
  if (type == "s32" && bits == 64) return access_of_types<ACCESS, SPACE, s32, u64>();
  if (bits_in_memory == 32 && bits == 64) return access_of_types<ACCESS, SPACE, u32, u64>();
  if (bits_in_memory == 32 && bits == 32) return access_of_types<ACCESS, SPACE, u32, u32>();
  return bits_in_memory == 64 && bits == 64 ? access_of_types<ACCESS, SPACE, u64, u64>() : nullptr;
}

template <Access ACCESS>
Operation access(Space space, const std::string& type, int bits) {
  if (space == Space::GLOBAL) return access_of_space<ACCESS, Space::GLOBAL>(type, bits);
  if (space == Space::SHARED) return access_of_space<ACCESS, Space::SHARED>(type, bits);
  if constexpr (ACCESS == Access::STORE) return nullptr;
  return access_of_space<ACCESS, Space::PARAMETER>(type, bits);
}

// ---- Whole warps ----

// Computes for each lane its source lane, as the PTX manual specifies. c contains the segments and their clamp.
using SourceLane = bool (*)(int& j, int lane, int b, int first, int last);
bool butterfly(int& j, int lane, int b, int, int last) { return (j = lane ^ b) <= last; }
bool index(int& j, int, int b, int first, int last) { return (j = first | b) <= last; }

template <SourceLane SOURCE>
void shuffle(Warp& w, const Instruction& i, Lanes lanes) {
  u32 values[LANES];
  std::memcpy(values, w.lanes_of<u32>(i.from[0]), sizeof values);
  const u32 *b = w.lanes_of<u32>(i.from[1]), *c = w.lanes_of<u32>(i.from[2]);
  u32* to = w.lanes_of<u32>(i.to[0]);
  Lanes inside = 0;
  for (Lanes rest = lanes; rest != 0; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    const int clamp = static_cast<int>(c[l] & 31), segment = static_cast<int>(c[l] >> 8 & 31);
    const int first = l & segment, last = first | (clamp & ~segment);
    int j = l;
    const int step = static_cast<int>(b[l] & 31);
    const bool in = SOURCE(j, l, SOURCE == index ? step & ~segment : step, first, last);
    if (!in) j = l;
    inside |= Lanes(in) << l;
    to[l] = (lanes >> j & 1) != 0 ? values[j] : ~u32(0);  // undefined if the source lane does not take part
  }
  Lanes& p = w.predicate(i.to[1]);
  p = (p & ~lanes) | inside;
}

void ballot(Warp& w, const Instruction& i, Lanes lanes) {
  const Lanes votes = w.predicate(i.from[0]) & lanes;
  u32* to = w.lanes_of<u32>(i.to[0]);
  for_each_lane(lanes, [&](int l) { to[l] = votes; });
}

}  // namespace

const std::vector<Meaning>& meanings() {
  static const std::vector<Meaning> all = make_meanings();
  return all;
}

Operation load_operation(Space space, const std::string& type, int register_bits) {
  return access<Access::LOAD>(space, type, register_bits);
}
Operation store_operation(Space space, const std::string& type, int register_bits) {
  return access<Access::STORE>(space, type, register_bits);
}

Operation shuffle_operation(const std::string& mode) {
  if (mode == "bfly") return shuffle<butterfly>;
  return mode == "idx" ? shuffle<index> : nullptr;
}

Operation vote_operation(const std::string& mode) { return mode == "ballot" ? ballot : nullptr; }

// Advances the warp's clock only if all live lanes take part: otherwise nothing is published to the others.
void synchronize_warp(Warp& w, const Instruction&, Lanes lanes) {
  if (lanes != w.living) return;
  w.block->clock.pass_warp_barrier();
  w.synchronized = w.block->clock.now();
}

void copy_async(Warp& w, const Instruction& i, Lanes lanes) {
  const u64* from = w.lanes_of<u64>(i.from[1]);
  AsyncCopies& copies = w.block->copies[static_cast<size_t>(w.number)];
  AsyncCopies::Copy& copy = copies.add();
  copy.lanes = lanes;
  copy.bytes = i.count;
  copy.asked = w.block->clock.now();
  for (Lanes rest = lanes; rest != 0; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    copy.from[l] = from[l] + static_cast<u64>(i.offset);
    copy.to[l] = static_cast<u32>(shared_address(w, i, i.shared_offset, l));
    copy.group[l] = copies.group(l);
    w.block->global.read(i, copy.from[l], copy.bytes, w.thread(l));
    w.block->shared.expect_copy(copy.to[l], copy.bytes, w.thread(l));
  }
}

void commit_copies(Warp& w, const Instruction&, Lanes lanes) {
  w.block->copies[static_cast<size_t>(w.number)].commit(lanes);
}

void wait_for_copies(Warp& w, const Instruction& i, Lanes lanes) {
  w.block->copies[static_cast<size_t>(w.number)].wait(lanes, static_cast<u32>(i.offset), w);
}

void unpack(Warp& w, const Instruction& i, Lanes lanes) {
  const u64* from = w.lanes_of<u64>(i.from[0]);
  u32 *low = w.lanes_of<u32>(i.to[0]), *high = w.lanes_of<u32>(i.to[1]);
  for_each_lane(lanes, [&](int l) {
    low[l] = static_cast<u32>(from[l]);
    high[l] = static_cast<u32>(from[l] >> 32);
  });
}

}  // namespace ptx
