#include "ptx/decode.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "ptx/operations.h"
#include "ptx/registers.h"

namespace ptx {
namespace {

// Blocks have one dimension, grids at most two.
const char* const SPECIALS[] = {"%tid.x", "%ntid.x", "%ctaid.x", "%ctaid.y"};

// Splits "setp.lt.f32" into words.
std::vector<std::string> words_of(const std::string& opcode) {
  std::vector<std::string> words(1);
  for (const char c : opcode) {
    if (c == '.') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// Splits "{%f1, %f2}" into parts; any other operand is one part.
std::vector<std::string> parts_of(const std::string& operand) {
  if (operand.empty() || operand.front() != '{') return {operand};
  return split_operands(operand.substr(1, operand.size() - 2));
}

class Decoder {
 public:
  explicit Decoder(const Kernel& kernel) : kernel_(kernel) {}

  Program decode() {
    for (const Statement& s : kernel_.statements) {
      try {
        add(s);
      } catch (const Fault& fault) {
        throw Fault("kernel " + kernel_.name + " of " + kernel_.file + ": " + fault.what() + ": " + s.text);
      }
    }
    const bool ends = !code_.empty() && !code_.back().guarded &&
                      (code_.back().flow == Flow::EXIT || code_.back().flow == Flow::BRANCH);
    if (!ends) throw Fault("kernel " + kernel_.name + " goes on behind its end");
    return finished();
  }

 private:
  void add(const Statement& s);
  bool add_special(const Statement& s, const std::vector<std::string>& words);
  void add_meaning(const Statement& s);
  void add_access(const Statement& s, const std::vector<std::string>& words);
  void add_copy_async(const Statement& s, const std::vector<std::string>& words);
  void add_shuffle(const Statement& s, const std::vector<std::string>& words);
  Program finished();
  void watch(const std::vector<int>& doubtful, Program& program);

  int new_value(const std::string& name, int bits, bool fixed) {
    values_.push_back({name, bits, fixed});
    return static_cast<int>(values_.size()) - 1;
  }
  int bits_of(const std::string& operand, int otherwise) const;
  int operand(const std::string& name, int bits);
  int constant(uint64_t value, int bits);
  bool symbol(const std::string& name, uint64_t& value) const;
  int address(const std::string& operand, int64_t& offset);

  int read(const std::string& name, int bits) {
    now_.reads.push_back(operand(name, bits));
    return now_.reads.back();
  }
  int write(const std::string& name, int bits) {
    const int value = name == "_" ? new_value("_", bits, false) : operand(name, bits);
    if (values_[static_cast<size_t>(value)].fixed) throw Fault(name + " is no register");
    now_.writes.push_back(value);
    return value;
  }
  void count(const Statement& s, size_t operands) const {
    if (s.operands.size() != operands) throw Fault("not " + std::to_string(operands) + " operands");
  }

  const Kernel& kernel_;
  std::vector<Value> values_;
  std::unordered_map<std::string, int> named_;
  std::vector<Constant> constants_;  // their places still contain indices of values, like all places in code_
  std::vector<Special> specials_;
  std::vector<Instruction> code_;
  std::vector<Use> uses_;
  Instruction i_;
  Use now_;
};

// ---- Operands ----

// The width of a register; `otherwise` for a number.
int Decoder::bits_of(const std::string& operand, int otherwise) const {
  const auto found = kernel_.registers.find(operand);
  if (found != kernel_.registers.end()) return found->second;
  return std::find(std::begin(SPECIALS), std::end(SPECIALS), operand) != std::end(SPECIALS) ? 32 : otherwise;
}

int Decoder::constant(uint64_t value, int bits) {
  const std::string name = std::to_string(value) + ":" + std::to_string(bits);
  const auto [at, added] = named_.emplace(name, 0);
  if (added) {
    at->second = new_value(name, bits, true);
    constants_.push_back({static_cast<uint32_t>(at->second), bits, value});
  }
  return at->second;
}

bool Decoder::symbol(const std::string& name, uint64_t& value) const {
  const auto parameter = kernel_.parameters.find(name), shared = kernel_.shared.find(name);
  if (parameter != kernel_.parameters.end()) {
    value = parameter->second.offset;
  } else if (shared != kernel_.shared.end()) {
    value = shared->second.offset;
  } else if (!name.empty() && name == kernel_.launch_shared) {
    value = (kernel_.shared_bytes + 15) / 16 * 16;
  } else {
    return false;
  }
  return true;
}

// Parses 17, -1, 0x3f or 0f3F800000 into bits.
bool number(const std::string& word, uint64_t& value) {
  const bool is_float = word.compare(0, 2, "0f") == 0;
  char* end = nullptr;
  value = is_float              ? std::strtoull(word.c_str() + 2, &end, 16)
          : word.front() == '-' ? static_cast<uint64_t>(std::strtoll(word.c_str(), &end, 0))
                                : std::strtoull(word.c_str(), &end, 0);
  if (*end == 'U') ++end;
  return end != word.c_str() && *end == '\0' && (!is_float || word.size() == 10);
}

int Decoder::operand(const std::string& name, int bits) {
  if (name.empty()) throw Fault("an operand is missing");
  const auto found = kernel_.registers.find(name);
  if (found != kernel_.registers.end()) {
    if (found->second != bits) throw Fault("register " + name + " is not " + std::to_string(bits) + " bits wide");
    const auto [at, added] = named_.emplace(name, 0);
    if (added) at->second = new_value(name, bits, false);
    return at->second;
  }
  const auto special = std::find(std::begin(SPECIALS), std::end(SPECIALS), name);
  if (special != std::end(SPECIALS)) {
    if (bits != 32) throw Fault(name + " is 32 bits wide");
    const auto [at, added] = named_.emplace(name, 0);
    if (added) {
      at->second = new_value(name, 32, true);
      specials_.push_back({static_cast<uint32_t>(at->second), static_cast<int>(special - SPECIALS)});
    }
    return at->second;
  }
  uint64_t value = 0;
  if (!symbol(name, value) && !number(name, value)) throw Fault("unknown operand " + name);
  return constant(value, bits);
}

// "[%rd1+4]", "[name]", "[%r2]"
int Decoder::address(const std::string& operand, int64_t& offset) {
  if (operand.size() < 3 || operand.front() != '[' || operand.back() != ']') throw Fault("no address: " + operand);
  const std::string inside = operand.substr(1, operand.size() - 2);
  const size_t plus = std::min(inside.find('+'), inside.size());
  uint64_t steps = 0;
  if (plus < inside.size() && !number(inside.substr(plus + 1), steps)) throw Fault("no address: " + operand);
  offset = static_cast<int64_t>(steps);
  const std::string base = inside.substr(0, plus);
  const int bits = bits_of(base, 64);
  if (bits != 32 && bits != 64) throw Fault("no address: " + operand);
  i_.wide = bits == 64;
  return read(base, bits);
}

// ---- Statements ----

void Decoder::add(const Statement& s) {
  i_ = {};
  now_ = {};
  if (!s.guard.empty()) {
    i_.guarded = true;
    i_.negated = s.negated;
    i_.guard = static_cast<uint32_t>(read(s.guard, 1));
    now_.always = false;
  }
  if (!add_special(s, words_of(s.opcode))) add_meaning(s);
  const bool alone = i_.flow == Flow::BARRIER || i_.flow == Flow::EXCHANGE;
  if (i_.guarded && alone) throw Fault("unknown: guarded");
  i_.number = static_cast<int>(code_.size());
  code_.push_back(i_);
  uses_.push_back(std::move(now_));
}

// Decodes instructions that are not functions of numbers. Returns false if the instruction may be such a function.
bool Decoder::add_special(const Statement& s, const std::vector<std::string>& words) {
  const std::string& name = words[0];
  if (s.opcode == "bra" || s.opcode == "bra.uni") {
    count(s, 1);
    const auto label = kernel_.labels.find(s.operands[0]);
    if (label == kernel_.labels.end()) throw Fault("unknown label");
    if (label->second >= kernel_.statements.size()) throw Fault("a label behind the kernel's end");
    i_.flow = Flow::BRANCH;
    i_.target = static_cast<int>(label->second);
  } else if (s.opcode == "ret") {
    i_.flow = Flow::EXIT;
  } else if (s.opcode == "bar.sync") {
    count(s, 1);
    if (s.operands[0] != "0") throw Fault("unknown barrier");
    i_.flow = Flow::BARRIER;
  } else if (s.opcode == "bar.warp.sync") {
    count(s, 1);
    i_.flow = Flow::EXCHANGE;
    i_.run = synchronize_warp;
    i_.mask = static_cast<uint32_t>(read(s.operands[0], 32));
  } else if (name == "shfl" || name == "vote") {
    add_shuffle(s, words);
  } else if (name == "ld" || name == "st") {
    add_access(s, words);
  } else if (name == "cp") {
    add_copy_async(s, words);
  } else if (s.opcode == "mov.b64" && !s.operands.empty() && s.operands[0].front() == '{') {
    count(s, 2);
    const auto parts = parts_of(s.operands[0]);
    if (parts.size() != 2) throw Fault("unknown parts");
    i_.run = unpack;
    i_.from[0] = static_cast<uint32_t>(read(s.operands[1], 64));
    for (size_t k = 0; k < 2; ++k) i_.to[k] = static_cast<uint32_t>(write(parts[k], 32));
  } else {
    return false;
  }
  return true;
}

void Decoder::add_meaning(const Statement& s) {
  static const auto by_name = [] {
    std::unordered_multimap<std::string, const Meaning*> table;
    for (const Meaning& m : meanings()) table.emplace(m.opcode, &m);
    return table;
  }();
  std::vector<std::string> operands;
  for (const std::string& o : s.operands)
    for (const std::string& part : parts_of(o)) operands.push_back(part);
  const auto [begin, end] = by_name.equal_range(s.opcode);
  if (begin == end) throw Fault("unknown instruction");
  for (auto m = begin; m != end; ++m) {
    const Meaning& meaning = *m->second;
    if (operands.size() != meaning.operands.size() + 1 || bits_of(operands[0], 0) != meaning.result) continue;
    bool fits = true;
    for (size_t k = 0; k < meaning.operands.size(); ++k)
      fits = fits && bits_of(operands[k + 1], meaning.operands[k]) == meaning.operands[k];
    if (!fits) continue;
    i_.run = meaning.run;
    for (size_t k = 0; k < meaning.operands.size(); ++k)
      i_.from[k] = static_cast<uint32_t>(read(operands[k + 1], meaning.operands[k]));
    i_.to[0] = static_cast<uint32_t>(write(operands[0], meaning.result));
    return;
  }
  throw Fault("unknown operands of an instruction");
}

// ld.SPACE[.vN].TYPE d, [a] and st.SPACE[.vN].TYPE [a], b
void Decoder::add_access(const Statement& s, const std::vector<std::string>& words) {
  count(s, 2);
  const bool loads = words[0] == "ld";
  const bool vector = words.size() == 4;
  if (words.size() < 3 || words.size() > 4 || (vector && words[2] != "v2" && words[2] != "v4"))
    throw Fault("unknown instruction");
  const Space space = words[1] == "param"    ? Space::PARAMETER
                      : words[1] == "global" ? Space::GLOBAL
                      : words[1] == "shared" ? Space::SHARED
                                             : throw Fault("unknown state space");
  i_.count = static_cast<uint8_t>(vector ? words[2][1] - '0' : 1);
  i_.from[0] = static_cast<uint32_t>(address(s.operands[loads ? 1 : 0], i_.offset));
  if (space != Space::SHARED && !i_.wide) throw Fault("an address of 32 bits");
  const auto parts = parts_of(s.operands[loads ? 0 : 1]);
  if (parts.size() != i_.count) throw Fault("unknown operands of an instruction");
  const int bits = bits_of(parts[0], std::max(16, bits_of_type(words.back())));
  i_.run = loads ? load_operation(space, words.back(), bits) : store_operation(space, words.back(), bits);
  if (i_.run == nullptr) throw Fault("unknown instruction");
  for (size_t k = 0; k < parts.size(); ++k) {
    if (loads) i_.to[k] = static_cast<uint32_t>(write(parts[k], bits));
    if (!loads) i_.from[1 + k] = static_cast<uint32_t>(read(parts[k], bits));
  }
}

// cp.async.CACHE.shared.global [to], [from], bytes, bytes and its groups
void Decoder::add_copy_async(const Statement& s, const std::vector<std::string>& words) {
  uint64_t n = 0;
  if (s.opcode == "cp.async.commit_group") {
    count(s, 0);
    i_.run = commit_copies;
  } else if (s.opcode == "cp.async.wait_group") {
    count(s, 1);
    if (!number(s.operands[0], n)) throw Fault("unknown group");
    i_.run = wait_for_copies;
    i_.offset = static_cast<int64_t>(n);
  } else if (s.opcode == "cp.async.ca.shared.global" || s.opcode == "cp.async.cg.shared.global") {
    count(s, 4);
    if (s.operands[3] != s.operands[2]) throw Fault("unknown: a copy that is filled with zeros");
    if (!number(s.operands[2], n) || (n != 16 && (words[2] == "cg" || (n != 4 && n != 8))))
      throw Fault("unknown size of a copy");
    i_.count = static_cast<uint8_t>(n);
    i_.run = copy_async;
    i_.from[1] = static_cast<uint32_t>(address(s.operands[1], i_.offset));
    if (!i_.wide) throw Fault("an address of 32 bits");
    i_.from[0] = static_cast<uint32_t>(address(s.operands[0], i_.shared_offset));
  } else {
    throw Fault("unknown instruction");
  }
}

// shfl.sync.MODE.b32 d|p, a, b, c, mask and vote.sync.MODE.b32 d, p, mask
void Decoder::add_shuffle(const Statement& s, const std::vector<std::string>& words) {
  const bool shuffles = words[0] == "shfl";
  count(s, shuffles ? 5 : 3);
  i_.flow = Flow::EXCHANGE;
  const bool known = words.size() == 4 && words[1] == "sync" && words[3] == "b32";
  i_.run = !known ? nullptr : shuffles ? shuffle_operation(words[2]) : vote_operation(words[2]);
  if (i_.run == nullptr) throw Fault("unknown instruction");
  i_.mask = static_cast<uint32_t>(read(s.operands.back(), 32));
  if (!shuffles) {
    i_.from[0] = static_cast<uint32_t>(read(s.operands[1], 1));
    i_.to[0] = static_cast<uint32_t>(write(s.operands[0], 32));
    return;
  }
  for (size_t k = 0; k < 3; ++k) i_.from[k] = static_cast<uint32_t>(read(s.operands[k + 1], 32));
  const size_t bar = s.operands[0].find('|');
  i_.to[0] = static_cast<uint32_t>(write(s.operands[0].substr(0, bar), 32));
  i_.to[1] = static_cast<uint32_t>(write(bar == std::string::npos ? "_" : s.operands[0].substr(bar + 1), 1));
}

// ---- The whole ----

// Adds code that tracks in which lanes each of these values has been written.
void Decoder::watch(const std::vector<int>& doubtful, Program& program) {
  std::unordered_map<int, uint32_t> books;
  for (const int value : doubtful) {
    books[value] = program.register_bytes;
    program.watched.push_back(program.register_bytes);
    program.register_bytes += sizeof(Lanes);
  }
  program.register_bytes = (program.register_bytes + 63) / 64 * 64;
  for (size_t n = 0; n < code_.size(); ++n) {
    Watch watch;
    // Moving an unwritten value is no fault: nvcc fills unused bytes of a word with such values.
    const std::string& opcode = kernel_.statements[n].opcode;
    const bool moves = opcode.compare(0, 4, "mov.") == 0 || opcode == "prmt.b32";
    for (const int value : uses_[n].reads)
      if (!moves && books.count(value) != 0) watch.reads.push_back(books[value]);
    for (const int value : uses_[n].writes)
      if (books.count(value) != 0) watch.writes.push_back(books[value]);
    if (watch.reads.empty() && watch.writes.empty()) continue;
    code_[n].watch = static_cast<int>(program.watches.size());
    program.watches.push_back(watch);
  }
}

Program Decoder::finished() {
  Program program;
  const Places places = assign_places(values_, code_, uses_);
  program.register_bytes = places.bytes;
  watch(places.doubtful, program);
  for (const int v : places.doubtful) {
    const auto n = static_cast<size_t>(v);
    program.unwritten.push_back({places.of[n], values_[n].bits, ~uint64_t(0)});
  }
  const auto replace = [&](uint32_t& value) { value = places.of.empty() ? 0 : places.of[value]; };
  for (Instruction& i : code_) {
    replace(i.guard);
    replace(i.mask);
    for (uint32_t& to : i.to) replace(to);
    for (uint32_t& from : i.from) replace(from);
  }
  for (Constant& c : constants_) replace(c.place);
  for (Special& s : specials_) replace(s.place);
  program.name = kernel_.name;
  program.file = kernel_.file;
  program.executed.assign(code_.size(), 0);
  program.code = std::move(code_);
  program.constants = std::move(constants_);
  program.specials = std::move(specials_);
  for (const Statement& s : kernel_.statements) {
    const std::string source = source_of(kernel_, s);
    program.texts.push_back(s.text + (source.empty() ? "" : " (" + source + ")"));
  }
  program.parameter_bytes = kernel_.parameter_bytes;
  program.shared_bytes = (kernel_.shared_bytes + 15) / 16 * 16;
  program.most_threads = kernel_.most_threads;
  return program;
}

}  // namespace

Program decode(const Kernel& kernel) { return Decoder(kernel).decode(); }

}  // namespace ptx
