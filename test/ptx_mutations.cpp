// Mutation tests: prove that the comparisons on the PTX machine can fail. A mutation is a small change of the PTX that
// a wrong compiler, a wrong flag or a careless edit could make. A check must detect it, by different bits or a Fault.
//
//   PTX=build/ptx/compute_90 build/test/ptx_mutations
//   PTX=build/ptx/compute_90 PTX_MUTATIONS=240 build/test/ptx_mutations
//
// A mutation changes one randomly drawn instruction that the checks execute. These checks run, cheapest first, until
// one detects it. Most kinds must be detected wherever they are. Others need not show in a result: the order of a
// maximum's folds, a bound that no number reaches, the last bit of a term far below the rounding of the result. Of these
// an undetected one is printed with its line of source.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/text.h"
#include "check.h"
#include "gpu/make_gpu.h"
#include "gpu_checks.h"
#include "math/random.h"
#include "ptx/decode.h"
#include "ptx/launch.h"

namespace petroglyph {
namespace {

using ptx::Kernel;
using ptx::Statement;

constexpr double NOTICED = 0.85;
constexpr size_t MANY = 200;  // with fewer, the rates of all and of kinds that need not show are left to chance
constexpr uint64_t SEED = 23;

bool begins(const std::string& words, const std::string& with) { return words.compare(0, with.size(), with) == 0; }

// ---- Kinds of mutation: each changes statement n, or returns false if nothing can change ----------------------------

using Change = bool (*)(Kernel& kernel, size_t n, uint32_t draw);

// Inserts a statement before n; labels at n move with it.
void insert(Kernel& kernel, size_t n, const Statement& s) {
  kernel.statements.insert(kernel.statements.begin() + static_cast<std::ptrdiff_t>(n), s);
  for (auto& [name, at] : kernel.labels)
    if (at > n) ++at;
}

bool remove(Kernel& kernel, size_t n) {
  kernel.statements.erase(kernel.statements.begin() + static_cast<std::ptrdiff_t>(n));
  for (auto& [name, at] : kernel.labels)
    if (at > n) --at;
  return true;
}

bool split_fma(Kernel& kernel, size_t n, uint32_t) {
  Statement& s = kernel.statements[n];
  if (s.opcode != "fma.rn.f32") return false;
  kernel.registers["%product"] = 32;
  Statement product = s;
  product.opcode = "mul.rn.f32";
  product.operands = {"%product", s.operands[1], s.operands[2]};
  s.opcode = "add.rn.f32";
  s.operands = {s.operands[0], "%product", s.operands[3]};
  insert(kernel, n, product);
  return true;
}

bool round_otherwise(Kernel& kernel, size_t n, uint32_t draw) {
  std::string& opcode = kernel.statements[n].opcode;
  const size_t at = opcode.find(".rn.f32");
  if (at == std::string::npos) return false;
  opcode.replace(at, 3, draw % 2 == 0 ? ".approx" : ".rn.ftz");
  return true;
}

bool remove_barrier(Kernel& kernel, size_t n, uint32_t) {
  return kernel.statements[n].opcode == "bar.sync" && remove(kernel, n);
}

bool remove_warp_barrier(Kernel& kernel, size_t n, uint32_t) {
  return kernel.statements[n].opcode == "bar.warp.sync" && remove(kernel, n);
}

bool wait_for_less(Kernel& kernel, size_t n, uint32_t) {
  Statement& s = kernel.statements[n];
  if (s.opcode != "cp.async.wait_group") return false;
  s.operands[0] = std::to_string(std::stoi(s.operands[0]) + 1);
  return true;
}

bool mask_without_lane(Kernel& kernel, size_t n, uint32_t draw) {
  Statement& s = kernel.statements[n];
  if (!begins(s.opcode, "shfl.sync")) return false;
  char mask[16];
  std::snprintf(mask, sizeof mask, "0x%x", ~(1u << draw % 32));
  s.operands.back() = mask;
  return true;
}

bool move_address(Kernel& kernel, size_t n, uint32_t) {
  Statement& s = kernel.statements[n];
  if (!begins(s.opcode, "ld.global") && !begins(s.opcode, "st.global") && !begins(s.opcode, "ld.shared") &&
      !begins(s.opcode, "st.shared"))
    return false;
  std::string& address = s.operands[begins(s.opcode, "ld") ? 1 : 0];
  const size_t plus = address.find('+');
  const int64_t offset = plus == std::string::npos ? 0 : std::stoll(address.substr(plus + 1));
  address =
      address.substr(0, plus == std::string::npos ? address.size() - 1 : plus) + "+" + std::to_string(offset + 4) + "]";
  return true;
}

// Skips comparisons whose operands a selp selects ("p ? a : b"): in a maximum, or at an unused bound, ties do not show.
bool other_comparison(Kernel& kernel, size_t n, uint32_t) {
  Statement& s = kernel.statements[n];
  static const std::map<std::string, std::string> others = {{"lt", "le"}, {"le", "lt"}, {"gt", "ge"}, {"ge", "gt"}};
  if (!begins(s.opcode, "setp.")) return false;
  const auto other = others.find(s.opcode.substr(5, 2));
  if (other == others.end() || s.opcode[7] != '.') return false;
  for (const Statement& user : kernel.statements)
    if (begins(user.opcode, "selp") && user.operands[3] == s.operands[0] &&
        (user.operands[1] == s.operands[1] || user.operands[1] == s.operands[2] || user.operands[2] == s.operands[1] ||
         user.operands[2] == s.operands[2]))
      return false;
  s.opcode.replace(5, 2, other->second);
  return true;
}

// The number that a register is set to; otherwise the name itself.
std::string set_to(const Kernel& kernel, const std::string& name) {
  for (const Statement& s : kernel.statements)
    if (begins(s.opcode, "mov.") && s.operands[0] == name) return s.operands[1];
  return name;
}

// Exchanges the distances of two successive folds.
bool exchange_folds(Kernel& kernel, size_t n, uint32_t) {
  if (kernel.statements[n].opcode != "shfl.sync.bfly.b32") return false;
  for (size_t k = n + 1; k < kernel.statements.size(); ++k) {
    if (kernel.statements[k].opcode != "shfl.sync.bfly.b32") continue;
    const std::string first = set_to(kernel, kernel.statements[n].operands[2]);
    const std::string second = set_to(kernel, kernel.statements[k].operands[2]);
    if (first == second) continue;
    kernel.statements[n].operands[2] = second;
    kernel.statements[k].operands[2] = first;
    return true;
  }
  return false;
}

bool scalar_load(Kernel& kernel, size_t n, uint32_t) {
  Statement& s = kernel.statements[n];
  const size_t vector = s.opcode.find(".v");
  if (begins(s.opcode, "ld.param") || !begins(s.opcode, "ld.") || vector == std::string::npos) return false;
  s.opcode.erase(vector, 3);
  s.operands[0] = s.operands[0].substr(1, s.operands[0].find(',') - 1);
  return true;
}

// Only constants in arithmetic: no number of the cases reaches a bound, and beside zero the last bit has no effect.
bool change_constant(Kernel& kernel, size_t n, uint32_t) {
  Statement& s = kernel.statements[n];
  if (begins(s.opcode, "setp") || begins(s.opcode, "selp") || begins(s.opcode, "max")) return false;
  for (std::string& operand : s.operands) {
    if (!begins(operand, "0f") || operand == "0f00000000") continue;
    char changed[16];
    std::snprintf(changed, sizeof changed, "0f%08lX", std::strtoul(operand.c_str() + 2, nullptr, 16) ^ 1);
    operand = changed;
    return true;
  }
  return false;
}

struct Kind {
  const char* name;
  Change change;
  bool always;  // must be detected at every instruction
};
constexpr Kind KINDS[] = {{"fma becomes mul and add", split_fma, false},
                          {".rn becomes .approx or .ftz", round_otherwise, true},
                          {"bar.sync removed", remove_barrier, true},
                          {"bar.warp.sync removed", remove_warp_barrier, true},
                          {"wait_group waits for one less", wait_for_less, true},
                          {"a mask without a lane", mask_without_lane, true},
                          {"an address + 4", move_address, true},
                          {"a comparison with or without equality", other_comparison, false},
                          {"two folds exchanged", exchange_folds, false},
                          {"a vector load made scalar", scalar_load, true},
                          {"a constant's last bit", change_constant, false}};

// ---- Checks, and what each of them executes -------------------------------------------------------------------------

void set_order(ptx::Programs& programs, ptx::Order order) {
  cuda_on_host::set_executor(
      [&programs, order](const cuda_on_host::Kernel& kernel) { programs.run(kernel, order, 1); });
}

struct Reached {
  GpuCheck check;
  double seconds;
  std::map<size_t, std::vector<uint8_t>> executed;  // of each program that the check launched
};

std::string difference_of(const GpuCheck& check) {
  try {
    return check.difference(*make_gpu());
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::vector<Reached> run_all(ptx::Programs& programs, const std::vector<std::string>& groups) {
  std::vector<Reached> all;
  for (const std::string& group : groups)
    for (const GpuCheck& check : gpu_checks(group)) {
      for (ptx::Program& program : programs.all()) std::fill(program.executed.begin(), program.executed.end(), 0);
      const auto start = std::chrono::steady_clock::now();
      const std::string difference = difference_of(check);
      if (!difference.empty()) throw ptx::Fault(check.name + " fails without any change: " + difference);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      all.push_back({check, seconds.count(), {}});
      for (size_t n = 0; n < programs.all().size(); ++n) {
        const std::vector<uint8_t>& executed = programs.all()[n].executed;
        if (std::count(executed.begin(), executed.end(), 1) > 0) all.back().executed[n] = executed;
      }
    }
  std::sort(all.begin(), all.end(), [](const Reached& a, const Reached& b) { return a.seconds < b.seconds; });
  return all;
}

// ---- Mutations ------------------------------------------------------------------------------------------------------

struct Mutation {
  size_t kind, program, statement;
  uint32_t draw;
};

// Draws equally many of every kind, each at an instruction that some check executes; none if the kind applies nowhere.
std::vector<Mutation> draw_mutations(const ptx::Programs& programs, const std::vector<Reached>& reached, size_t count) {
  std::map<size_t, std::vector<uint8_t>> executed;
  for (const Reached& r : reached)
    for (const auto& [n, here] : r.executed) {
      std::vector<uint8_t>& all = executed[n];
      all.resize(here.size(), 0);
      for (size_t k = 0; k < here.size(); ++k) all[k] |= here[k];
    }
  std::vector<size_t> launched;
  for (const auto& [n, here] : executed) launched.push_back(n);
  std::vector<Mutation> mutations;
  std::set<std::tuple<size_t, size_t, size_t>> drawn;
  for (size_t kind = 0; kind < std::size(KINDS); ++kind) {
    uint64_t draws = 0;  // each kind has its own random sequence: a few mutations are a subset of many
    const auto draw = [&] {
      return philox(SEED, stream_of("mutations"), static_cast<uint32_t>(kind), draws++).word[0];
    };
    const size_t wanted = count / std::size(KINDS) + (kind < count % std::size(KINDS) ? 1 : 0);
    size_t found = 0;
    for (int tries = 0; found < wanted && tries < 2000000; ++tries) {
      const size_t program = launched[draw() % launched.size()], statement = draw() % executed[program].size();
      if (!executed[program][statement]) continue;
      Kernel one;  // enough to see whether the kind fits
      const Statement& s = programs.kernels()[program].statements[statement];
      one.statements = {s, s};
      const uint32_t word = draw();
      const bool folds = KINDS[kind].change == exchange_folds;
      if (!(folds ? s.opcode == "shfl.sync.bfly.b32" : KINDS[kind].change(one, 0, word))) continue;
      Kernel whole = programs.kernels()[program];
      if (!KINDS[kind].change(whole, statement, word)) continue;
      if (!drawn.emplace(kind, program, statement).second) continue;
      mutations.push_back({kind, program, statement, word});
      ++found;
    }
  }
  return mutations;
}

// The message of the first check that detects the mutation. If ascending order hides it, descending order is tried.
std::optional<std::string> notice(ptx::Programs& programs, const std::vector<Reached>& reached, const Mutation& m) {
  Kernel changed = programs.kernels()[m.program];
  KINDS[m.kind].change(changed, m.statement, m.draw);
  std::optional<ptx::Program> mutant;
  try {
    mutant = ptx::decode(changed);
  } catch (const ptx::Fault& fault) {
    return fault.what();
  }
  std::swap(programs.all()[m.program], *mutant);
  std::optional<std::string> noticed;
  for (const ptx::Order order : {ptx::Order::ASCENDING, ptx::Order::DESCENDING}) {
    set_order(programs, order);
    for (const Reached& r : reached) {
      const auto here = r.executed.find(m.program);
      if (noticed || here == r.executed.end() || !here->second[m.statement]) continue;
      const std::string difference = difference_of(r.check);
      if (!difference.empty()) noticed = r.check.name + ": " + difference;
    }
  }
  std::swap(programs.all()[m.program], *mutant);
  set_order(programs, ptx::Order::ASCENDING);
  return noticed;
}

// ---- Results --------------------------------------------------------------------------------------------------------

struct Count {
  int all = 0, noticed = 0;
};

void mutate(Test& test, ptx::Programs& programs, size_t count, const std::vector<std::string>& groups) {
  set_order(programs, ptx::Order::ASCENDING);
  const std::vector<Reached> reached = run_all(programs, groups);
  programs.most_branches = 20000000;
  std::map<std::string, Count> of_kind;
  Count total;
  for (const Mutation& m : draw_mutations(programs, reached, count)) {
    const Kind& kind = KINDS[m.kind];
    const bool noticed = notice(programs, reached, m).has_value();
    for (Count* c : {&of_kind[kind.name], &total}) ++c->all, c->noticed += noticed;
    if (noticed) continue;
    const Kernel& kernel = programs.kernels()[m.program];
    const Statement& s = kernel.statements[m.statement];
    const std::string what =
        text("%s: %s (%s: %s), statement %zu of %s", kind.name, s.text.c_str(), ptx::source_of(kernel, s).c_str(),
             ptx::source_text(kernel, s).c_str(), m.statement, kernel.name.c_str());
    if (kind.always) test.check(what, false, "nothing notices it: mend the cases");
    if (!kind.always) std::printf("note not noticed: %s\n", what.c_str());
  }
  for (const auto& [kind, c] : of_kind) std::printf("%s: %d of %d noticed\n", kind.c_str(), c.noticed, c.all);
  std::printf("mutations: %d of %d noticed\n", total.noticed, total.all);
  for (const Kind& kind : KINDS)
    if (kind.always || count >= MANY)
      test.check(std::string("some are noticed: ") + kind.name, of_kind[kind.name].noticed > 0);
  if (count >= MANY) test.check("nearly all are noticed", total.noticed >= NOTICED * total.all);
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  try {
    const char *folder = std::getenv("PTX"), *number = std::getenv("PTX_MUTATIONS");
    const std::string from = folder != nullptr ? folder : "build/ptx/compute_90";
    const size_t count = number != nullptr ? std::strtoul(number, nullptr, 10) : 22;
    const std::vector<std::string> groups = {
        "linear", "rows", "relation", "linear relation", "attention", "dilated", "linear attention", "dct", "table"};
    Test test(argc, argv);
    ptx::Programs programs(from);
    test.run("mutations", [&](Test& t) { mutate(t, programs, count, groups); });
    return test.finish();
  } catch (const std::exception& error) {
    std::printf("FAIL ptx: %s\n0 passed, 1 failed\n", error.what());
    return 1;
  }
}
