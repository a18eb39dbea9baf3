#include "exchange/pickle.h"

#include <cstring>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

// The instructions by their bytes, as Python's pickletools names them; up to protocol 5. Every value lives in `values_` from when
// it is made, and the stack, the memo and other values know it by its number: n bytes take memory of the order of n.
class Pickle::Machine {
 public:
  Machine(std::string_view bytes, const std::string& origin, std::vector<Value>& values)
      : bytes_(bytes), origin_(origin), values_(values) {}

  Id run() {
    for (;;) {
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') return pop();  // STOP
      if (!constant(code) && !container(code) && !memo(code) && !call(code))
        fail(text("has the instruction 0x%02X, which is not known", code));
    }
  }

 private:
  [[noreturn]] void fail(const std::string& complaint) const { throw Error(origin_ + ": its pickle " + complaint); }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) fail("is truncated or damaged");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  uint64_t number(int bytes) {  // little-endian
    uint64_t value = 0;
    const std::string_view digits = take(static_cast<uint64_t>(bytes));
    for (int i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(digits[static_cast<size_t>(i)]);
    return value;
  }
  std::string line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("is truncated or damaged");
    const std::string word(take(end - at_));
    take(1);
    return word;
  }

  Value& push(Kind kind) {
    stack_.push_back(static_cast<Id>(values_.size()));
    values_.emplace_back();
    values_.back().kind = kind;
    return values_.back();
  }
  void push_integer(int64_t integer, Kind kind = Kind::INTEGER) { push(kind).integer = integer; }
  void push_string(uint64_t length) { push(Kind::STRING).word = take(length); }
  Id pop() {
    if (stack_.empty()) fail("is damaged: it takes more than there is");
    const Id id = stack_.back();
    stack_.pop_back();
    return id;
  }
  // All above the last mark, which goes too.
  std::vector<Id> pop_to_mark() {
    size_t mark = stack_.size();
    while (mark > 0 && values_[stack_[mark - 1]].kind != Kind::MARK) --mark;
    if (mark == 0) fail("is damaged: it has no mark where one is wanted");
    std::vector<Id> items(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    stack_.resize(mark - 1);
    return items;
  }
  Value& top(Kind kind) {
    if (stack_.empty() || values_[stack_.back()].kind != kind) fail("is damaged: it adds to what is no container");
    return values_[stack_.back()];
  }
  void push_items(Kind kind, std::vector<Id> items) { push(kind).items = std::move(items); }
  // The n topmost as a tuple.
  void push_tuple(size_t n) {
    std::vector<Id> items(n);
    for (size_t i = n; i-- > 0;) items[i] = pop();
    push_items(Kind::LIST, std::move(items));
  }

  bool constant(unsigned char code) {
    switch (code) {
      case 0x80: take(1); return true;                                       // PROTO
      case 0x95: take(8); return true;                                       // FRAME
      case 'N': push(Kind::NONE); return true;                               // NONE
      case 0x88: push_integer(1, Kind::BOOLEAN); return true;                // NEWTRUE
      case 0x89: push_integer(0, Kind::BOOLEAN); return true;                // NEWFALSE
      case 'J': push_integer(static_cast<int32_t>(number(4))); return true;  // BININT
      case 'K': push_integer(static_cast<int64_t>(number(1))); return true;  // BININT1
      case 'M': push_integer(static_cast<int64_t>(number(2))); return true;  // BININT2
      case 0x8A: push_long(number(1)); return true;                          // LONG1
      case 'G': push_float(); return true;                                   // BINFLOAT
      case 'X': push_string(number(4)); return true;                         // BINUNICODE
      case 0x8C: push_string(number(1)); return true;                        // SHORT_BINUNICODE
      case 0x8D: push_string(number(8)); return true;                        // BINUNICODE8
      case 'T': push_string(number(4)); return true;                         // BINSTRING
      case 'U': push_string(number(1)); return true;                         // SHORT_BINSTRING
      case 'B': push_string(number(4)); return true;                         // BINBYTES
      case 'C': push_string(number(1)); return true;                         // SHORT_BINBYTES
      default: return false;
    }
  }
  void push_long(uint64_t length) {
    const std::string_view digits = take(length);
    if (length > 8) return push(Kind::NONE), void();  // such as a generator's state: nobody asks for it
    uint64_t value = length > 0 && (digits[length - 1] & 0x80) ? ~uint64_t(0) : 0;
    for (size_t i = length; i-- > 0;) value = value << 8 | static_cast<unsigned char>(digits[i]);
    push_integer(static_cast<int64_t>(value));
  }
  void push_float() {
    uint64_t bits = 0;
    for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);  // big-endian
    std::memcpy(&push(Kind::NUMBER).number, &bits, sizeof bits);
  }

  bool container(unsigned char code) {
    switch (code) {
      case '(': push(Kind::MARK); return true;
      case ']':
      case ')':
      case 0x8F: push(Kind::LIST); return true;       // EMPTY_LIST, EMPTY_TUPLE, EMPTY_SET
      case '}': push(Kind::DICTIONARY); return true;  // EMPTY_DICT
      case 'l':
      case 't': push_items(Kind::LIST, pop_to_mark()); return true;        // LIST, TUPLE
      case 'd': push_items(Kind::DICTIONARY, pop_to_mark()); return true;  // DICT
      case 0x85: push_tuple(1); return true;                               // TUPLE1 …
      case 0x86: push_tuple(2); return true;
      case 0x87: push_tuple(3); return true;
      case 'a': return add({pop()}, Kind::LIST);  // APPEND
      case 'e':
      case 0x90: return add(pop_to_mark(), Kind::LIST);                             // APPENDS, ADDITEMS
      case 's': push_tuple(2); return add(values_[pop()].items, Kind::DICTIONARY);  // SETITEM
      case 'u': return add(pop_to_mark(), Kind::DICTIONARY);                        // SETITEMS
      case '0': pop(); return true;                                                 // POP
      case '1': pop_to_mark(); return true;                                         // POP_MARK
      default: return false;
    }
  }
  // An ordered dictionary is a call whose result is filled.
  bool add(const std::vector<Id>& items, Kind kind) {
    const bool of_call = !stack_.empty() && values_[stack_.back()].kind == Kind::CALL;
    Value& to = top(of_call ? Kind::CALL : kind);
    if (of_call) to.kind = kind, to.items.clear();
    to.items.insert(to.items.end(), items.begin(), items.end());
    return true;
  }

  bool memo(unsigned char code) {
    switch (code) {
      case 'q': return keep(number(1));      // BINPUT
      case 'r': return keep(number(4));      // LONG_BINPUT
      case 0x94: return keep(memo_.size());  // MEMOIZE
      case 'h': return recall(number(1));    // BINGET
      case 'j': return recall(number(4));    // LONG_BINGET
      default: return false;
    }
  }
  bool keep(uint64_t place) {
    const Id id = pop();
    stack_.push_back(id);
    memo_[place] = id;
    return true;
  }
  bool recall(uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) fail("is damaged: it recalls what it has not kept");
    stack_.push_back(found->second);
    return true;
  }

  // A string alone, and no long one: names that are made of names double with every instruction.
  std::string part_of_name() {
    constexpr size_t LONGEST = 256;
    const Value& part = values_[pop()];
    if (part.kind != Kind::STRING || part.word.size() > LONGEST) fail("is damaged: it names something by no name");
    return part.word;
  }

  bool call(unsigned char code) {
    switch (code) {
      case 'c': {  // GLOBAL
        const std::string module = line();
        push(Kind::NAME).word = module + "." + line();
        return true;
      }
      case 0x93: {  // STACK_GLOBAL
        const std::string name = part_of_name();
        const std::string word = part_of_name() + "." + name;
        push(Kind::NAME).word = word;
        return true;
      }
      case 'R':
      case 0x81: {  // REDUCE, NEWOBJ
        const Id arguments = pop(), function = pop();
        push_items(Kind::CALL, {function, arguments});
        return true;
      }
      case 'b': pop(); return true;  // BUILD: what an object is given beside its items
      case 'Q': {                    // BINPERSID
        const Id name = pop();
        push_items(Kind::PERSISTENT, {name});
        return true;
      }
      default: return false;
    }
  }

  std::string_view bytes_;
  const std::string& origin_;
  std::vector<Value>& values_;
  size_t at_ = 0;
  std::vector<Id> stack_;
  std::map<uint64_t, Id> memo_;
};

Pickle::Pickle(std::string_view bytes, const std::string& origin) {
  if (bytes.size() > UINT32_MAX) throw Error(origin + ": its pickle is too long");
  root_ = Machine(bytes, origin, values_).run();
}

const Pickle::Value* Pickle::find(const Value& dictionary, std::string_view key) const {
  if (dictionary.kind != Kind::DICTIONARY) return nullptr;
  for (size_t i = 0; i + 1 < dictionary.items.size(); i += 2) {
    const Value& name = at(dictionary.items[i]);
    if (name.kind == Kind::STRING && name.word == key) return &at(dictionary.items[i + 1]);
  }
  return nullptr;
}

}  // namespace petroglyph
