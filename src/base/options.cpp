#include "base/options.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/error.h"
#include "base/program.h"
#include "base/text.h"
#include "base/version.h"

namespace petroglyph {

namespace {

constexpr size_t HELP_WIDTH = 100, LONGEST_LABEL = 30;

bool starts_with(std::string_view word, std::string_view prefix) { return word.substr(0, prefix.size()) == prefix; }

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// ---- Values ---------------------------------------------------------------------------------------------------------

std::string shown(bool value) { return value ? "true" : "false"; }
std::string shown(const std::string& value) { return value; }
template <class Number>
std::string shown(Number value) {
  if constexpr (std::is_floating_point_v<Number>)
    return exact_text(value);
  else
    return std::to_string(value);
}
template <class Number>
std::string shown(const std::vector<Number>& values) {
  std::vector<std::string> words;
  for (const Number value : values) words.push_back(shown(value));
  return join(words, ",");
}

// A number in words. A float that is not 0 but would become 0 in single precision is refused.
template <class Number>
bool read_number(std::string_view word, Number low, Number high, Number* value) {
  const auto parsed = [&] {
    if constexpr (std::is_floating_point_v<Number>)
      return parse_number(word);
    else if constexpr (std::is_unsigned_v<Number>)
      return parse_unsigned(word);
    else
      return parse_integer(word);
  }();
  if (!parsed || *parsed < low || *parsed > high) return false;
  *value = static_cast<Number>(*parsed);
  if constexpr (!std::is_floating_point_v<Number>) return true;
  const bool is_zero = word.substr(0, word.find_first_of("eE")).find_first_of("123456789") == std::string_view::npos;
  return is_zero || static_cast<float>(*parsed) != 0;
}

// "a whole number from 1 to 64"
template <class Number>
std::string range(const std::string& kind, Number low, Number high) {
  const bool bounded = high < std::numeric_limits<Number>::max() || std::is_unsigned_v<Number>;
  if (bounded) return kind + " from " + shown(low) + " to " + shown(high);
  return low > std::numeric_limits<Number>::lowest() ? kind + ", at least " + shown(low) : kind;
}

// An option with its value, as the user would write it.
std::string written(const std::string& name, bool is_switch, const std::string& value) {
  if (is_switch) return (value == "true" ? "--" : "--no-") + name;
  return value.empty() ? "no --" + name : "--" + name + " " + value;
}

// ---- Help -----------------------------------------------------------------------------------------------------------

// Appends words to `out` in lines of at most HELP_WIDTH columns; all lines except the first are indented.
void append_wrapped(std::string& out, const std::string& words, size_t indent) {
  size_t column = indent;
  for (const std::string& word : split(words, ' ')) {
    const bool breaks = column > indent && column + 1 + word.size() > HELP_WIDTH;
    out += breaks ? "\n" + std::string(indent, ' ') : column > indent ? " " : "";
    column = (breaks || column == indent ? indent : column + 1) + word.size();
    out += word;
  }
  out += '\n';
}

void append_help_line(std::string& out, const std::string& label, const std::string& meaning, size_t indent) {
  const bool fits = label.size() + 4 <= indent;
  out += "  " + label + (fits ? std::string(indent - 2 - label.size(), ' ') : "\n" + std::string(indent, ' '));
  append_wrapped(out, meaning, indent);
}

[[noreturn]] void print_and_stop(const std::string& words) {
  std::fputs(words.c_str(), stdout);
  if (!flush_output()) throw Error("cannot write to the standard output");
  std::exit(0);
}

}  // namespace

// ---- Declarations ---------------------------------------------------------------------------------------------------

Options::Options(std::string program, std::string purpose)
    : program_(std::move(program)), purpose_(std::move(purpose)) {}

template <class Value, class Assign>
Option& Options::declare(const std::string& name, Value* value, const std::string& expected, Assign assign,
                         const std::string& help) {
  if (find(name) != nullptr) throw Error("option --" + name + " declared twice");
  Option& option = options_.emplace_back();
  option.name_ = name;
  option.help_ = help;
  option.section_ = section_;
  option.expected_ = expected;
  option.default_ = shown(*value);
  option.is_switch_ = std::is_same_v<Value, bool>;
  option.placeholder_ = std::is_same_v<Value, double> ? "X" : "N";
  option.show_ = [value] { return shown(*value); };
  option.is_number_ = std::is_arithmetic_v<Value>;
  option.assign_ = assign;
  return option;
}

template <class Number>
Option& Options::add(const std::string& name, Number* value, Bound<Number> low, Bound<Number> high,
                     const std::string& help) {
  const auto assign = [=](std::string_view word) { return read_number(word, low, high, value); };
  return declare(name, value, range(std::is_integral_v<Number> ? "a whole number" : "a number", low, high), assign,
                 help);
}
template Option& Options::add(const std::string&, int*, int, int, const std::string&);
template Option& Options::add(const std::string&, int64_t*, int64_t, int64_t, const std::string&);
template Option& Options::add(const std::string&, uint64_t*, uint64_t, uint64_t, const std::string&);
template Option& Options::add(const std::string&, double*, double, double, const std::string&);

template <class Number>
Option& Options::add(const std::string& name, std::vector<Number>* values, Bound<Number> low, Bound<Number> high,
                     const std::string& help) {
  const auto assign = [=](std::string_view list) {
    std::vector<Number> read;
    for (const std::string& word : list.empty() ? std::vector<std::string>() : split(list, ','))
      if (!read_number(word, low, high, &read.emplace_back())) return false;
    *values = read;
    return true;
  };
  const char* const kind = std::is_integral_v<Number> ? "whole numbers" : "numbers";
  return declare(name, values, range(kind, low, high) + " separated by commas", assign, help).placeholder("N,N,...");
}
template Option& Options::add(const std::string&, std::vector<int>*, int, int, const std::string&);
template Option& Options::add(const std::string&, std::vector<double>*, double, double, const std::string&);

Option& Options::add(const std::string& name, bool* value, const std::string& help) {
  const auto assign = [value](std::string_view word) {
    *value = contains({"true", "yes", "on"}, word);
    return *value || contains({"false", "no", "off"}, word);
  };
  return declare(name, value, "true or false", assign, help);
}

Option& Options::add(const std::string& name, std::string* value, const std::string& expected,
                     std::function<bool(std::string_view)> accepts, const std::string& help) {
  const auto assign = [value, accepts = std::move(accepts)](std::string_view word) {
    if (!accepts(word)) return false;
    *value = word;
    return true;
  };
  return declare(name, value, expected, assign, help).placeholder("WORD");
}
Option& Options::add(const std::string& name, std::string* value, const std::string& help) {
  return add(name, value, "text in UTF-8", is_utf8, help).placeholder("TEXT");
}
Option& Options::add(const std::string& name, std::string* value, const std::vector<std::string>& choices,
                     const std::string& help) {
  const auto accepts = [choices](std::string_view word) { return contains(choices, word); };
  return add(name, value, "one of " + join(choices, ", "), accepts, help + ": " + join(choices, ", "));
}

void Options::set_defaults(const std::string& list) {
  for (const std::string& word : split(list, ' ')) {
    const size_t equals = word.find('=');
    Option* const option = find(word.substr(0, equals));
    if (option == nullptr) throw Error("default " + word + ": no such option was declared");
    if (!option->source_.empty()) continue;
    if (!option->assign_(word.substr(equals + 1))) throw Error("default " + word + ": expected " + option->expected_);
    if (!parsed_) option->default_ = option->show_();
  }
}

void Options::positional(const std::string& name, std::string* value, const std::string& help) {
  positional_.push_back({name, help, value, nullptr, false});
}
void Options::positional(const std::string& name, std::vector<std::string>* values, const std::string& help) {
  positional_.push_back({name, help, nullptr, values, !values->empty()});
}

// ---- Questions ------------------------------------------------------------------------------------------------------

Option* Options::find(std::string_view name) {
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name_ == name; });
  return found == options_.end() ? nullptr : &*found;
}

const Option& Options::known(const std::string& name) const {
  const Option* const option = const_cast<Options*>(this)->find(name);
  if (option == nullptr) throw Error("option --" + name + " was never declared");
  return *option;
}

bool Options::given(const std::string& name) const { return !known(name).source_.empty(); }

std::string Options::value(const std::string& name) const { return known(name).show_(); }

void Options::only_with(const std::string& name, const std::string& other, const std::vector<std::string>& values) {
  Option* const option = find(name);
  if (option != nullptr && find(other) != nullptr) option->conditions_.push_back({other, values});
}

std::map<std::string, std::string> Options::without_effect(bool all) const {
  std::map<std::string, std::string> found;
  for (const Option& option : options_) {
    if (option.source_.empty() && !all) continue;
    for (const Option::Condition& condition : option.conditions_) {
      const Option& other = known(condition.option);
      const std::string now = other.show_();
      if (contains(condition.values, now)) continue;
      found.emplace(option.name_,
                    option.source_ + ": does nothing with " + written(other.name_, other.is_switch_, now));
    }
  }
  return found;
}

void Options::refuse_without_effect() const {
  const std::map<std::string, std::string> found = without_effect();
  if (!found.empty()) throw UsageError(found.begin()->second);
}

void Options::only_beside(const std::string& name, const std::vector<std::string>& others) const {
  if (!given(name)) return;
  for (const Option& option : options_)
    if (!option.source_.empty() && option.name_ != name && !contains(others, option.name_))
      throw UsageError(option.source_ + ": does nothing with " + known(name).source_);
}

// ---- Parsing --------------------------------------------------------------------------------------------------------

void Options::refuse_unknown(const std::string& word) const {
  std::vector<std::string> names = {"help", "version"};
  for (const Option& option : options_) {
    names.push_back(option.name_);
    if (option.is_switch_) names.push_back("no-" + option.name_);
  }
  const std::string bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  const std::string meant = nearest_word(bare, names);
  const bool helps = !meant.empty() && word != "--" + meant;
  throw UsageError("unknown option " + word + (helps ? " (did you mean --" + meant + "?)" : ""));
}

void Options::assign(Option& option, const std::string& value, const std::string& source) {
  const bool lacks = value.empty() && starts_with(option.expected_, "text") && option.placeholder_ != "TEXT";
  if (lacks || !option.assign_(value))
    throw UsageError(source + ": expected " + (lacks ? option.placeholder_ : option.expected_));
  option.source_ = source;
}

// One word that begins with '-', and its value, which may be the next word.
size_t Options::read_option(const std::vector<std::string>& words, size_t at) {
  const std::string& word = words[at];
  const size_t equals = word.find('=');
  const bool attached = equals != std::string::npos;
  const std::string head = word.substr(0, equals), name = starts_with(head, "--") ? head.substr(2) : "";
  if (head == "--help" || word == "-h") print_and_stop(help());
  if (head == "--version") print_and_stop(version() + "\n");
  Option* option = find(name);
  const bool negated = option == nullptr && starts_with(name, "no-");
  if (negated) option = find(name.substr(3));
  if (option == nullptr || (negated && !option->is_switch_)) refuse_unknown(head);
  if (negated && attached) throw UsageError(word + ": " + head + " takes no value");
  if (option->is_switch_ && !attached) {
    assign(*option, negated ? "false" : "true", word);
    return at + 1;
  }
  if (!attached && (at + 1 == words.size() || starts_with(words[at + 1], "--")))
    throw UsageError(head + ": expected " + option->expected_ + " after it");
  const std::string value = attached ? word.substr(equals + 1) : words[at + 1];
  assign(*option, value, option->is_switch_ ? word : head + (value.empty() ? "" : " " + value));
  return attached ? at + 1 : at + 2;
}

void Options::parse(int argc, const char* const* argv) { parse({argv + std::min(argc, 1), argv + argc}); }

void Options::parse(const std::vector<std::string>& words) {
  parsed_ = true;
  std::vector<std::string> bare;
  for (size_t at = 0; at < words.size();) {
    if (words[at] == "--") {
      bare.insert(bare.end(), words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
      break;
    }
    if (words[at].size() > 1 && words[at][0] == '-')
      at = read_option(words, at);
    else
      bare.push_back(words[at++]);
  }
  assign_positional(bare);
}

void Options::assign_positional(const std::vector<std::string>& words) {
  size_t at = 0;
  for (const Positional& next : positional_) {
    if (at == words.size() && next.optional) continue;
    const std::string expected = "expected " + next.name + " (" + next.help + "); see --help";
    if (at == words.size()) throw UsageError(expected);
    const size_t end = next.value != nullptr ? at + 1 : words.size();
    const std::vector<std::string> taken(words.begin() + static_cast<std::ptrdiff_t>(at),
                                         words.begin() + static_cast<std::ptrdiff_t>(end));
    if (contains(taken, "")) throw UsageError("an argument is empty, " + expected);
    if (next.value != nullptr)
      *next.value = taken[0];
    else
      *next.values = taken;
    at = end;
  }
  if (at < words.size()) throw UsageError("unexpected argument \"" + words[at] + "\"; options begin with --");
}

std::string Options::help() const {
  const auto label = [](const Option& option) {
    if (option.is_switch_) return (option.default_ == "true" ? "--[no-]" : "--") + option.name_;
    return "--" + option.name_ + " " + option.placeholder_;
  };
  size_t indent = sizeof("  --version  ") - 1;
  std::vector<std::string> sections;
  for (const Option& option : options_) {
    indent = std::max(indent, std::min(label(option).size(), LONGEST_LABEL) + 4);
    if (!contains(sections, option.section_)) sections.push_back(option.section_);
  }
  std::string out = "Usage: " + program_ + " [options]";
  for (const Positional& next : positional_)
    out += (next.optional ? " [" : " ") + next.name + (next.values ? "..." : "") + (next.optional ? "]" : "");
  append_wrapped(out += "\n", purpose_, 0);
  if (!positional_.empty()) out += "\n";
  for (const Positional& next : positional_) append_help_line(out, next.name, next.help, indent);
  for (const std::string& section : sections) {
    out += "\n" + section + "\n";
    for (const Option& option : options_) {
      if (option.section_ != section) continue;
      const std::string otherwise = !option.is_switch_ ? option.default_ : option.default_ == "true" ? "on" : "";
      append_help_line(out, label(option), option.help_ + (otherwise.empty() ? "" : " [" + otherwise + "]"), indent);
    }
  }
  out += "\n";
  append_help_line(out, "--help", "print this and stop", indent);
  append_help_line(out, "--version", "print the version and stop", indent);
  return out;
}

// ---- Saving ---------------------------------------------------------------------------------------------------------

// JSON numbers are doubles: a larger seed is saved as a string.
Json Option::saved() const {
  const std::string word = show_();
  if (is_switch_) return word == "true";
  const std::optional<double> number = is_number_ ? parse_number(word) : std::nullopt;
  return number && exact_text(*number) == word ? Json(*number) : Json(word);
}

Json Options::to_json() const {
  Json json = Json::object();
  for (const Option& option : options_)
    if (option.saved_) json.set(option.name_, option.saved());
  return json;
}

void Options::restore(const Json& json, const std::string& origin, bool same) {
  if (!json.is(Json::Kind::Object))
    throw Error(origin + ": its options are " + name_of(json.kind()) + ", expected an object");
  for (const auto& [name, value] : json.members()) {
    const Option* const option = find(name);
    if (option == nullptr || !option->saved_)
      throw Error(origin + ": saved with option --" + name + ", which " + program_ + " does not have");
  }
  for (Option& option : options_) {
    if (!option.saved_) continue;
    const Json* const found = json.find(option.name_);
    const std::string before = !found                          ? option.default_
                               : found->is(Json::Kind::String) ? found->string()
                                                               : found->text();
    const std::string now = option.show_(), earlier = written(option.name_, option.is_switch_, before);
    const bool chosen = same || !option.source_.empty();
    if (chosen && option.always_) continue;
    if (!option.assign_(before)) throw Error(origin + ": saved with " + earlier + ": expected " + option.expected_);
    if (chosen && option.show_() != now)
      throw Error((option.source_.empty() ? written(option.name_, option.is_switch_, now) : option.source_) +
                  ": this run was started with " + earlier +
                  ", and an option that defines a run cannot change; nothing was changed");
  }
}

// ---- Options of several programs ------------------------------------------------------------------------------------

void declare_force(Options& options, bool* force) {
  options.add("force", force, "replace existing files").always().not_saved();
}

void declare_device(Options& options, std::string* device) {
  const auto accepts = [](std::string_view word) {
    int number = 0;
    return contains({"auto", "cpu", "cuda", "reference"}, word) ||
           (starts_with(word, "cuda:") && read_number(word.substr(5), 0, 1023, &number));
  };
  options
      .add("device", device, "one of auto, cpu, cuda, cuda:N, reference", accepts,
           "auto takes the GPU if there is one, cuda:N the GPU with this number, from 0, reference the slow loops that "
           "define the operations; the results do not depend on it: auto, cpu, cuda, cuda:N, reference")
      .always()
      .not_saved();
}

void declare_device(Options& options, std::string* device, int* threads) {
  declare_device(options, device);
  options.add("threads", threads, 0, 1024, "CPU threads, 0 for all cores; the results do not depend on it")
      .always()
      .not_saved();
}

}  // namespace petroglyph
