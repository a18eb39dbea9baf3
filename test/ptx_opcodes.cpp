// Tests the PTX machine itself: the instructions that are more than an operator of C++ against results that follow from
// the manual's definition (the others show in the kernels' results), and each undefined behaviour of a GPU against the
// machine's Fault.

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "check.h"
#include "ptx/decode.h"
#include "ptx/machine.h"
#include "ptx/operations.h"
#include "ptx/text.h"

namespace petroglyph {
namespace {

// All numbers are hexadecimal bits; predicates are 0 and 1. Cases: halves of a unit in the last place, NaN, zeros of
// both signs, subnormals, shifts by 32 and more, carries, the smallest number.
const char* const ROWS[] = {
    // to nearest, ties to even; 2^24 + 1, 2^24 + 3
    "add.rn.f32 4b800000 3f800000 = 4b800000", "add.rn.f32 4b800001 3f800000 = 4b800002",
    "add.rn.f32 00000001 00000001 = 00000002", "add.rn.f32 80000000 80000000 = 80000000",
    "add.rn.f32 3f800000 bf800000 = 00000000", "add.rn.f32 7f800000 ff800000 = 7fffffff",
    "add.rn.f32 7fc00123 3f800000 = 7fffffff", "add.rn.f32 7f7fffff 7f7fffff = 7f800000",
    "sub.rn.f32 00800000 00000001 = 007fffff", "sub.rn.f32 80000000 80000000 = 00000000",
    "sub.rn.f32 7f800000 7f800000 = 7fffffff", "mul.rn.f32 00800000 3f000000 = 00400000",
    "mul.rn.f32 00000001 3f000000 = 00000000", "mul.rn.f32 00000003 3f000000 = 00000002",
    "mul.rn.f32 80000000 3f800000 = 80000000", "mul.rn.f32 00000000 7f800000 = 7fffffff",
    // (1 + 2^-12)^2 - 1 - 2^-11 is 2^-24 in one rounding, 0 in two
    "fma.rn.f32 3f800800 3f800800 bf801000 = 33800000", "fma.rn.f32 00000000 7f800000 3f800000 = 7fffffff",
    "fma.rn.f32 80000000 3f800000 80000000 = 80000000", "fma.rn.f32 00800000 3f000000 00000001 = 00400001",
    "div.rn.f32 3f800000 40400000 = 3eaaaaab", "div.rn.f32 3f800000 80000000 = ff800000",
    "div.rn.f32 00000000 00000000 = 7fffffff", "div.rn.f32 00800000 40000000 = 00400000",
    "rcp.rn.f32 40400000 = 3eaaaaab", "rcp.rn.f32 80000000 = ff800000", "rcp.rn.f32 7f000000 = 00400000",
    "sqrt.rn.f32 40000000 = 3fb504f3", "sqrt.rn.f32 80000000 = 80000000", "sqrt.rn.f32 bf800000 = 7fffffff",
    "sqrt.rn.f32 00000001 = 1a3504f3", "neg.f32 00000000 = 80000000", "neg.f32 3f800000 = bf800000",
    "max.f32 00000000 80000000 = 00000000", "max.f32 80000000 00000000 = 00000000",
    "max.f32 3f800000 7fc00000 = 3f800000", "max.f32 bf800000 c0000000 = bf800000",
    // integers: products and quotients of either sign; nothing overflows
    "mul.lo.s16 ffff ffff = 1", "mul.lo.s32 ffffffff 7 = fffffff9", "mul.lo.s64 ffffffff ffffffff = fffffffe00000001",
    "mad.lo.s32 10000 10001 5 = 10005", "mul.wide.u16 ffff ffff = fffe0001",
    "mul.wide.u32 ffffffff ffffffff = fffffffe00000001", "mul.wide.s32 ffffffff 2 = fffffffffffffffe",
    "mul.hi.u32 ffffffff ffffffff = fffffffe", "mul.hi.u64 ffffffffffffffff ffffffffffffffff = fffffffffffffffe",
    "mul.hi.s64 ffffffffffffffff 1 = ffffffffffffffff", "div.u32 ffffffff 2 = 7fffffff",
    "div.s32 fffffff9 2 = fffffffd", "div.s32 80000000 ffffffff = 80000000",
    "div.s64 fffffffffffffff9 2 = fffffffffffffffd", "rem.s32 fffffff9 2 = ffffffff", "rem.s32 7 fffffffe = 1",
    "rem.s64 fffffffffffffff9 2 = ffffffffffffffff", "neg.s32 80000000 = 80000000",
    // bits: shifts by the width and more
    "shl.b32 1 1f = 80000000", "shl.b32 1 20 = 0", "shl.b32 1 ffffffff = 0", "shl.b64 1 40 = 0",
    "shr.u32 80000000 1f = 1", "shr.u32 80000000 20 = 0", "shr.s32 80000000 20 = ffffffff", "shr.s32 7fffffff 40 = 0",
    "shr.u64 8000000000000000 40 = 0", "shr.s64 8000000000000000 40 = ffffffffffffffff", "popc.b32 ff0001 = 9",
    "brev.b32 0000ff01 = 80ff0000", "bfind.shiftamt.u32 1 = 1f", "bfind.shiftamt.u32 0 = ffffffff",
    "bfe.u32 12345678 8 8 = 56", "bfe.u32 ffffffff 1f 20 = 1", "bfe.u32 ffffffff 20 1 = 0",
    "prmt.b32 33221100 77665544 7531 = 77553311", "prmt.b32 000080ff 0 0098 = ffffffff",
    // moves and conversions
    "mov.b64 89abcdef 01234567 = 0123456789abcdef", "mov.f32 7fc00123 = 7fc00123", "cvt.rn.f32.s32 1000001 = 4b800000",
    "cvt.rn.f32.s32 1000003 = 4b800002", "cvt.rn.f32.u32 ffffffff = 4f800000",
    "cvt.rn.f32.s64 ffffffffffffffff = bf800000", "cvt.u16.u32 12345678 = 5678", "cvt.u64.u32 ffffffff = ffffffff",
    "cvt.s64.s32 80000000 = ffffffff80000000",
    // comparisons: zeros, NaN, signs
    "setp.eq.f32 00000000 80000000 = 1", "setp.eq.f32 7fc00000 7fc00000 = 0", "setp.ne.f32 7fc00000 3f800000 = 0",
    "setp.ne.f32 3f800000 40000000 = 1", "setp.lt.f32 80000000 00000000 = 0", "setp.lt.f32 bf800000 00000001 = 1",
    "setp.lt.f32 7fc00000 3f800000 = 0", "setp.le.f32 80000000 00000000 = 1", "setp.le.f32 7fc00000 7fc00000 = 0",
    "setp.gt.f32 7f800000 7f7fffff = 1", "setp.gt.f32 00000000 80000000 = 0", "setp.ge.f32 00000000 80000000 = 1",
    "setp.ge.f32 3f800000 7fc00000 = 0", "setp.equ.f32 7fc00000 3f800000 = 1", "setp.equ.f32 1 2 = 0",
    "setp.neu.f32 7fc00000 7fc00000 = 1", "setp.neu.f32 00000000 80000000 = 0", "setp.ltu.f32 7fc00000 1 = 1",
    "setp.ltu.f32 2 1 = 0", "setp.leu.f32 7fc00000 1 = 1", "setp.leu.f32 2 1 = 0", "setp.geu.f32 7fc00000 1 = 1",
    "setp.geu.f32 1 2 = 0", "setp.nan.f32 7fc00000 1 = 1", "setp.nan.f32 1 1 = 0", "setp.lt.u32 ffffffff 1 = 0",
    "setp.lt.s32 ffffffff 1 = 1", "setp.ge.s16 ffff 1 = 0", "setp.ge.u64 ffffffffffffffff 1 = 1"};

const std::string REGISTERS =
    ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;\n";

// Runs a kernel whose only parameter is the address of 64 numbers, and returns these numbers.
std::vector<uint64_t> run_body(const std::string& body, unsigned threads = 32, ptx::Order order = ptx::Order::ASCENDING,
                               unsigned blocks = 1) {
  const std::string text =
      ".extern .shared .align 16 .b8 more[];\n.visible .entry k(.param .u64 out) {\n" + REGISTERS + body + "\nret; }\n";
  ptx::Program program = ptx::decode(ptx::parse_kernels(text, "test").at(0));
  std::vector<uint64_t> out(64, 0);
  const auto address = reinterpret_cast<uint64_t>(out.data());
  ptx::Launch launch;
  launch.grid = {blocks, 1, 1};
  launch.block = {threads, 1, 1};
  launch.shared_bytes = 256;
  launch.order = order;
  launch.parameters.resize(8);
  std::memcpy(launch.parameters.data(), &address, 8);
  launch.memory_at = [&](uint64_t at, uint64_t& begin, uint64_t& end) {
    const bool inside = at >= address && at < address + 512;
    begin = inside ? address : 0;
    end = inside ? address + 512 : 0;
  };
  ptx::run(program, launch);
  return out;
}

const char* register_of(int bits) { return bits == 1 ? "%p1" : bits == 16 ? "%rs1" : bits == 32 ? "%r1" : "%rd1"; }

// Runs a row such as "add.s32 1 2 = 3" as a kernel.
void check_row(Test& test, const std::string& row) {
  std::istringstream words(row);
  std::string opcode, word;
  words >> opcode;
  std::vector<std::string> operands;
  while (words >> word && word != "=") operands.push_back("0x" + word);
  uint64_t expected = 0;
  words >> std::hex >> expected;
  const ptx::Meaning* meaning = nullptr;
  for (const ptx::Meaning& m : ptx::meanings())
    if (opcode == m.opcode && operands.size() == m.operands.size()) meaning = &m;
  if (!test.check(row + " is known", meaning != nullptr)) return;

  const std::string to = register_of(meaning->result);
  std::string body = "ld.param.u64 %rd2, [out];\n" + opcode + " " + to + ", ";
  if (opcode == "mov.b64" && operands.size() == 2) {
    body += "{" + operands[0] + ", " + operands[1] + "}";
  } else {
    for (size_t k = 0; k < operands.size(); ++k) body += (k > 0 ? ", " : "") + operands[k];
  }
  body += ";\n";
  if (meaning->result == 1) body += "selp.u32 %r1, 1, 0, %p1;\n";
  if (meaning->result == 16) body += "cvt.u32.u16 %r1, %rs1;\n";
  const int bits = std::max(meaning->result, 32);
  body += "st.global.u" + std::to_string(bits) + " [%rd2], " + register_of(bits) + ";\n";
  char found[32], wanted[32];
  std::snprintf(found, sizeof found, "%llx", static_cast<unsigned long long>(run_body(body, 1)[0]));
  std::snprintf(wanted, sizeof wanted, "%llx", static_cast<unsigned long long>(expected));
  test.equal(row, std::string(found), std::string(wanted));
}

void opcodes(Test& test) {
  for (const char* row : ROWS) check_row(test, row);
  const auto wide = run_body(
      "ld.param.u64 %rd2, [out]; mov.u64 %rd3, 0x1ffffffff; cvt.s64.s32 %rd4, %rd3;\n"
      "st.global.u64 [%rd2], %rd4; cvt.u64.u32 %rd4, %rd3; st.global.u64 [%rd2+8], %rd4;",
      1);
  test.equal("the low half, with its sign", wide[0], ~uint64_t(0));
  test.equal("the low half, without", wide[1], uint64_t(0xffffffff));
}

// The number of each lane, for a shuffle; [%rd3] is the lane's output.
const std::string LANE =
    "ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd2, %rd3;\n";
const std::string STORE = "st.global.u32 [%rd3], %r2;";

// Sets %rd4 to the address of number %r6.
const std::string AT = "mul.wide.u32 %rd4, %r6, 4; add.s64 %rd4, %rd2, %rd4;\n";

uint32_t lane_of(const std::vector<uint64_t>& out, int lane) {
  return static_cast<uint32_t>(out[static_cast<size_t>(lane) / 2] >> (32 * (lane % 2)));
}

void exchanges(Test& test) {
  const auto shuffled = [](const std::string& words) {
    return run_body(LANE + "shfl.sync." + words + ", -1;\n" + STORE);
  };
  test.equal("bfly 16 of lane 3", lane_of(shuffled("bfly.b32 %r2|%p1, %r1, 16, 31"), 3), 19u);
  test.equal("idx 9 in segments of 8, lane 17", lane_of(shuffled("idx.b32 %r2|%p1, %r1, 9, 0x181f"), 17), 17u);
  test.equal("idx 3 in segments of 8, lane 17", lane_of(shuffled("idx.b32 %r2|%p1, %r1, 3, 0x181f"), 17), 19u);
  const auto ballot = run_body(LANE + "setp.lt.u32 %p1, %r1, 5; vote.sync.ballot.b32 %r2, %p1, -1;\n" + STORE);
  test.equal("ballot", lane_of(ballot, 31), 31u);
  // Lanes that branch differently meet the others at the exchange.
  const auto apart = run_body(LANE +
                              "mov.u32 %r3, 1; setp.gt.u32 %p1, %r1, 7; @%p1 bra $over; mov.u32 %r3, 2;\n"
                              "$over: shfl.sync.bfly.b32 %r2, %r3, 8, 31, -1;\n" +
                              STORE);
  test.equal("branches meet again", lane_of(apart, 15), 2u);
  for (const ptx::Order order : {ptx::Order::ASCENDING, ptx::Order::DESCENDING, ptx::Order::RANDOM}) {
    const auto far =
        run_body(".shared .align 4 .b8 s[256];\n" + LANE +
                     "mul.lo.s32 %r3, %r1, 4; mov.u32 %r4, s; add.s32 %r5, %r3, %r4; st.shared.u32 [%r5], %r1;\n"
                     "bar.sync 0; xor.b32 %r5, %r3, 128; add.s32 %r5, %r5, %r4; ld.shared.u32 %r2, [%r5];\n" +
                     STORE,
                 64, order);
    test.equal("a barrier publishes", lane_of(far, 1), 33u);
  }
}

// Behaviour that a GPU leaves undefined.
void faults(Test& test) {
  const auto faulty = [&](const std::string& name, const std::string& words, const std::string& body,
                          unsigned threads = 32) { test.throws(name, words, [&] { run_body(body, threads); }); };
  const std::string S =
      ".shared .align 16 .b8 s[256];\n" + LANE + "mul.lo.s32 %r3, %r1, 4; mov.u32 %r4, s; add.s32 %r5, %r3, %r4;\n";
  const std::string NEXT = "xor.b32 %r6, %r5, 4; ld.shared.u32 %r2, [%r6];\n" + STORE;
  faulty("unknown instruction", "unknown instruction: add.rn.ftz.f32", "add.rn.ftz.f32 %f1, 0f00000000, 0f00000000;");
  faulty("unknown modifier", "unknown instruction: div.approx.f32", "div.approx.f32 %f1, 0f00000000, 0f00000000;");
  faulty("unknown directive", "unknown directive .local", ".local .b8 x[4];");
  const auto refused = [&](const std::string& why, const std::string& instruction) {
    const std::string text = ".visible .entry k() {\n" + REGISTERS + instruction + " ret; }\n";
    const std::vector<ptx::Kernel> kernels = ptx::parse_kernels(text, "test");
    if (!why.empty()) test.throws(instruction, why, [&] { ptx::check_arithmetic(kernels.at(0)); });
    if (why.empty()) ptx::check_arithmetic(kernels.at(0));
  };
  refused("a fused multiply-add that the source does not write", "fma.rn.f32 %f1, %f2, %f3, %f4;");
  refused("a maximum", "max.f32 %f1, %f2, %f3;");
  refused("a maximum", "max.f32 %f1, %f2, 0f80000000;");
  refused("", "max.f32 %f1, %f2, 0f00000000;");
  faulty("unknown register", "unknown operand %z1", "mov.u32 %r1, %z1;");
  faulty("another width", "unknown operands", "add.s32 %r1, %r1, %rd1;");
  faulty("unwritten register", "reads what nothing wrote", LANE + STORE);
  faulty("written in some lanes only", "reads what nothing wrote",
         LANE + "setp.lt.u32 %p1, %r1, 3; @%p1 bra $a; mov.u32 %r2, 1;\n$a:\n" + STORE);
  faulty("division by zero", "division by zero", "div.u32 %r1, 1, 0;");
  faulty("outside of all allocations", "outside of all allocations", LANE + "st.global.u32 [%rd3+400], %r1;");
  faulty("global alignment", "not a multiple", LANE + "ld.global.v2.u32 {%r2, %r3}, [%rd3];");
  faulty("shared range", "in shared memory", S + "st.shared.u32 [%r5+480], %r1;");
  faulty("shared alignment", "not a multiple", S + "ld.shared.v4.u32 {%r2, %r6, %r7, %r8}, [%r5+4];");
  faulty("unwritten shared memory", "that nobody wrote", S + "ld.shared.u32 %r2, [%r5];\n" + STORE);
  faulty("race in a warp", "race", S + "st.shared.u32 [%r5], %r1;\n" + NEXT);
  faulty("a shuffle publishes nothing", "race",
         S + "st.shared.u32 [%r5], %r1; shfl.sync.bfly.b32 %r7, %r1, 1, 31, -1;\n" + NEXT);
  run_body(S + "st.shared.u32 [%r5], %r1; bar.warp.sync -1;\n" + NEXT);
  faulty("write after another's read", "race",
         S + "st.shared.u32 [%r5], %r1; bar.warp.sync -1; xor.b32 %r6, %r5, 4; ld.shared.u32 %r2, [%r6];\n"
             "st.shared.u32 [%r5], %r2;");
  const std::string FAR = "xor.b32 %r6, %r3, 128; add.s32 %r6, %r6, %r4; ld.shared.u32 %r2, [%r6];\n" + STORE;
  faulty(
      "race between warps", "race",
      S + "st.shared.u32 [%r5], %r1; setp.lt.u32 %p1, %r1, 32; @%p1 bra $end; bar.warp.sync -1;\n" + FAR + "$end:", 64);
  faulty("a barrier that some lanes miss", "waits for lanes that do not come",
         LANE + "setp.lt.u32 %p1, %r1, 3; @%p1 bra $end; bar.sync 0;\n$end: bar.warp.sync -1;");
  faulty("two barriers", "barriers", LANE + "setp.lt.u32 %p1, %r1, 32; @%p1 bra $a; bar.sync 0; ret;\n$a: bar.sync 0;",
         64);
  faulty("a warp at two barriers", "two barriers at once",
         LANE + "setp.lt.u32 %p1, %r1, 3; @%p1 bra $a; bar.sync 0; ret;\n$a: bar.sync 0;");
  faulty("a mask without the lane", "its own mask does not name", "bar.warp.sync 0xfffffffe;");
  faulty("lanes that do not come", "waits for lanes that do not come",
         LANE + "setp.lt.u32 %p1, %r1, 3; @%p1 bra $a; bar.warp.sync -1;\n$a: shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;");
  const std::string COPY = S + "cp.async.ca.shared.global [%r5], [%rd3], 4, 4; cp.async.commit_group;\n";
  const std::string OWN = "ld.shared.u32 %r2, [%r5];\n" + STORE;
  faulty("a copy not waited for", "has not brought yet", COPY + OWN);
  faulty("a copy of the group before", "has not brought yet", COPY + "cp.async.wait_group 1;\n" + OWN);
  faulty("a copy seen by others", "race", COPY + "cp.async.wait_group 0;\n" + NEXT);
  faulty("a copy's source written by another lane", "race",
         COPY + "xor.b32 %r6, %r1, 1;\n" + AT + "st.global.u32 [%rd4], %r1;");
  faulty("a copy's source written before it arrives", "was written before it arrived",
         COPY + "bar.sync 0; st.global.u32 [%rd3], %r1; cp.async.wait_group 0;");
  run_body(COPY + "cp.async.wait_group 0; bar.sync 0; st.global.u32 [%rd3], %r1;");
  run_body(COPY + "cp.async.wait_group 0;\n" + OWN);
  run_body(COPY + "cp.async.wait_group 0; bar.sync 0;\n" + NEXT);
}

// Accesses to a word of global memory by other lanes of the warp, other warps of the block and other blocks.
void global_races(Test& test) {
  const std::string WRITE = "st.global.u32 [%rd3], %r1;\n", READ = "ld.global.u32 %r2, [%rd4];\n";
  const std::string SHUFFLE = "shfl.sync.bfly.b32 %r7, %r1, 1, 31, -1;\n", WARP = "bar.warp.sync -1;\n";
  const std::string NEXT = LANE + "xor.b32 %r6, %r1, 1;\n" + AT, FAR = LANE + "xor.b32 %r6, %r1, 32;\n" + AT;
  const auto racing = [&](const std::string& name, const std::string& body, unsigned threads, unsigned blocks = 1) {
    for (const ptx::Order order : {ptx::Order::ASCENDING, ptx::Order::DESCENDING})
      test.throws(name, "race", [&] { run_body(body, threads, order, blocks); });
  };
  racing("a lane writes what another read", NEXT + READ + WRITE, 32);
  racing("a shuffle publishes nothing", NEXT + WRITE + SHUFFLE + READ, 32);
  test.equal("a warp's barrier publishes", lane_of(run_body(NEXT + WRITE + WARP + READ + WARP + STORE), 6), 7u);
  racing("a warp's barrier publishes nothing to other warps", FAR + WRITE + WARP + READ, 64);
  test.equal("a barrier publishes",
             lane_of(run_body(FAR + WRITE + "bar.sync 0;\n" + READ + "bar.sync 0;\n" + STORE, 64), 6), 38u);

  const std::string OF_BLOCK = LANE + "mov.u32 %r6, %ctaid.x;\n" + AT, LOOK = "ld.global.u32 %r2, [%rd2];\n";
  racing("two blocks write a word", LANE + "st.global.u32 [%rd2], %r1;", 1, 2);
  racing("the third of three blocks that read writes",
         OF_BLOCK + LOOK + "setp.ne.u32 %p1, %r6, 1; @%p1 bra $end; st.global.u32 [%rd2], %r1;\n$end:", 1, 3);
  run_body(OF_BLOCK + LOOK + "st.global.u32 [%rd4+16], %r6;", 1, ptx::Order::ASCENDING, 3);
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  petroglyph::Test test(argc, argv);
  test.run("opcodes", petroglyph::opcodes);
  test.run("exchanges", petroglyph::exchanges);
  test.run("faults", petroglyph::faults);
  test.run("races in global memory", petroglyph::global_races);
  return test.finish();
}
