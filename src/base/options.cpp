#include "base/options.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "base/error.h"
#include "base/program.h"
#include "base/text.h"
#include "base/version.h"

namespace petroglyph {

namespace {

constexpr size_t HELP_WIDTH = 100, HELP_INDENT = 28;

bool starts_with(std::string_view word, std::string_view prefix) { return word.substr(0, prefix.size()) == prefix; }

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// ---- Values ---------------------------------------------------------------------------------------------------------

// Each reads a word into a variable. False where it is not a value of that type between the bounds.
bool read(std::string_view word, double, double, bool* value) {
  *value = contains({"true", "yes", "on"}, word);
  return *value || contains({"false", "no", "off"}, word);
}

bool read(std::string_view word, double, double, std::string* value) {
  *value = word;
  return true;
}

template <class Number>
bool read(std::string_view word, double low, double high, Number* value) {
  const auto number = parse_number(word);
  if (!number || *number < low || *number > high) return false;
  *value = static_cast<Number>(*number);
  return !std::is_integral_v<Number> || parse_integer(word);
}

template <class Number>
bool read(std::string_view list, double low, double high, std::vector<Number>* values) {
  std::vector<Number> numbers;
  for (const std::string& word : list.empty() ? std::vector<std::string>() : split(list, ','))
    if (!read(word, low, high, &numbers.emplace_back())) return false;
  *values = numbers;
  return true;
}

template <class Value>
Json json_of(const Value& value) {
  return value;
}

template <class Number>
Json json_of(const std::vector<Number>& values) {
  std::vector<std::string> words;
  for (const Number value : values) words.push_back(Json(value).text());
  return join(words, ",");
}

std::string words_of(const Json& json) { return json.is(Json::Kind::String) ? json.string() : json.text(); }

// ---- Help -----------------------------------------------------------------------------------------------------------

// Appends words to `out` in lines of at most HELP_WIDTH columns; all lines except the first are indented.
void append_wrapped(std::string& out, const std::string& words, size_t indent) {
  size_t column = indent;
  for (const std::string& word : split(words, ' ')) {
    if (column + word.size() > HELP_WIDTH) {
      out.back() = '\n';
      out.append(column = indent, ' ');
    }
    out += word + " ";
    column += word.size() + 1;
  }
  out.back() = '\n';
}

void append_help_line(std::string& out, const std::string& label, const std::string& meaning) {
  const bool fits = label.size() + 4 <= HELP_INDENT;
  out += "  " + label + (fits ? "" : "\n");
  out.append(fits ? HELP_INDENT - 2 - label.size() : HELP_INDENT, ' ');
  append_wrapped(out, meaning, HELP_INDENT);
}

[[noreturn]] void print_and_stop(const std::string& words) {
  std::fputs(words.c_str(), stdout);
  if (!flush_output()) throw Error("cannot write to the standard output");
  std::exit(0);
}

}  // namespace

// ---- Declarations ---------------------------------------------------------------------------------------------------

Json Option::json() const {
  return std::visit([](const auto* value) { return json_of(*value); }, variable_);
}

std::string Option::words() const { return words_of(json()); }

std::string Option::written(const std::string& value) const {
  if (is_switch()) return (value == "true" ? "--" : "--no-") + name_;
  return value.empty() ? "no --" + name_ : "--" + name_ + " " + value;
}

bool Option::assign(std::string_view word) const {
  const auto read_into = [&](auto* value) { return read(word, low_, high_, value); };
  return (!accepts_ || accepts_(word)) && std::visit(read_into, variable_);
}

Option& Options::declare(const std::string& name, Option::Variable variable, const std::string& placeholder,
                         const std::string& expected, const std::string& help) {
  Option& option = *options_.emplace_back(std::make_unique<Option>());
  option.name_ = name;
  option.variable_ = variable;
  option.placeholder_ = placeholder;
  option.expected_ = expected;
  option.help_ = help;
  option.section_ = section_;
  option.default_ = option.words();
  return option;
}

Option& Options::add(const std::string& name, Option::Variable value, double low, double high,
                     const std::string& help) {
  const bool reals = std::holds_alternative<std::vector<double>*>(value);
  const bool list = reals || std::holds_alternative<std::vector<int>*>(value);
  const bool real = reals || std::holds_alternative<double*>(value);
  const std::string kind = std::string(list ? "" : "a ") + (real ? "number" : "whole number") + (list ? "s" : "");
  const std::string range = " from " + Json(low).text() + " to " + Json(high).text();
  Option& option = declare(name, value,
                           list   ? "N,N,..."
                           : real ? "X"
                                  : "N",
                           kind + range + (list ? " separated by commas" : ""), help);
  option.low_ = low;
  option.high_ = high;
  return option;
}

Option& Options::add(const std::string& name, bool* value, const std::string& help) {
  return declare(name, value, "", "true or false", help);
}

Option& Options::add(const std::string& name, std::string* value, const char* placeholder, const std::string& help) {
  Option& option = declare(name, value, placeholder, std::string(placeholder) + " in UTF-8", help);
  option.accepts_ = is_utf8;
  return option;
}

Option& Options::add(const std::string& name, std::string* value, const std::vector<std::string>& choices,
                     const std::string& help) {
  const std::string list = join(choices, ", ");
  Option& option = declare(name, value, "WORD", "one of " + list, help + ": " + list);
  option.accepts_ = [choices](std::string_view word) { return contains(choices, word); };
  return option;
}

void Options::add_device(std::string* device, int* threads) {
  Option& option =
      add("device", device, {"auto", "cpu", "cuda", "cuda:N", "reference"},
          "auto takes the GPU if there is one, cuda:N the GPU with this number, from 0, reference the slow loops that "
          "define the operations; the results do not depend on it")
          .not_saved();
  option.accepts_ = [is_choice = option.accepts_](std::string_view word) {
    int number = 0;
    return starts_with(word, "cuda:") ? read(word.substr(5), 0, 1023, &number) : is_choice(word);
  };
  if (threads == nullptr) return;
  add("threads", threads, 0, 1024, "CPU threads, 0 for all cores; the results do not depend on it").not_saved();
}

void Options::set_defaults(const std::string& list) {
  for (const std::string& word : split(list, ' ')) {
    const size_t equals = word.find('=');
    Option& option = known(word.substr(0, equals));
    if (!option.source_.empty()) continue;
    if (!option.assign(word.substr(equals + 1))) throw Error("default " + word + ": expected " + option.expected_);
    option.default_ = option.words();
  }
}

void Options::positional(const std::string& name, std::vector<std::string>* values, const std::string& help,
                         size_t most) {
  arguments_ = values;
  most_arguments_ = most;
  argument_ = name;
  argument_help_ = help;
}

// ---- Questions ------------------------------------------------------------------------------------------------------

Option* Options::find(std::string_view name) const {
  for (const auto& option : options_)
    if (option->name_ == name) return option.get();
  return nullptr;
}

Option& Options::known(const std::string& name) const {
  Option* const option = find(name);
  if (option == nullptr) throw Error("option --" + name + " was never declared");
  return *option;
}

void Options::only_with(const std::string& name, const std::string& other, const std::vector<std::string>& values) {
  Option* const option = find(name);
  if (option != nullptr && find(other) != nullptr) option->conditions_.emplace_back(other, values);
}

std::map<std::string, std::string> Options::without_effect(bool all) const {
  std::map<std::string, std::string> found;
  for (const auto& option : options_)
    for (const auto& [name, values] : option->conditions_) {
      const Option& other = known(name);
      const std::string now = other.words();
      if ((!all && option->source_.empty()) || (values.empty() ? now != other.default_ : contains(values, now)))
        continue;
      const std::string reason = values.empty() ? "without --" + name : "with " + other.written(now);
      found.emplace(option->name_, option->source_ + ": does nothing " + reason);
    }
  return found;
}

void Options::refuse_without_effect() const {
  const std::map<std::string, std::string> found = without_effect();
  if (!found.empty()) throw UsageError(found.begin()->second);
}

void Options::only_beside(const std::string& name, const std::vector<std::string>& others) const {
  for (const auto& option : options_)
    if (given(name) && !option->source_.empty() && option->name_ != name && !contains(others, option->name_))
      throw UsageError(option->source_ + ": does nothing with " + known(name).source_);
}

// ---- Parsing --------------------------------------------------------------------------------------------------------

void Options::refuse_unknown(const std::string& word) const {
  std::vector<std::string> names = {"help", "version"};
  for (const auto& option : options_) names.push_back(option->name_);
  const std::string_view bare = std::string_view(word).substr(std::min(word.find_first_not_of('-'), word.size()));
  const std::string meant = nearest_word(bare.substr(0, bare.find('=')), names);
  throw UsageError("unknown option " + word + (meant.empty() ? "" : " (did you mean --" + meant + "?)"));
}

// One word that begins with '-', and its value, which may be the next word.
size_t Options::read_option(const std::vector<std::string>& words, size_t at) {
  const std::string& word = words[at];
  const size_t equals = word.find('=');
  const bool attached = equals != std::string::npos;
  const std::string head = word.substr(0, equals);
  if (head == "--help" || head == "-h") print_and_stop(help());
  if (head == "--version") print_and_stop(version() + "\n");
  Option* option = starts_with(head, "--") ? find(head.substr(2)) : nullptr;
  const bool negated = option == nullptr && starts_with(head, "--no-") && !attached;
  if (negated) option = find(head.substr(5));
  if (option == nullptr || (negated && !option->is_switch())) refuse_unknown(word);
  std::string value = attached ? word.substr(equals + 1) : negated ? "false" : "true";
  const bool in_next = !attached && !option->is_switch();
  if (in_next) value = at + 1 < words.size() ? words[at + 1] : "--";
  const bool lacks = (in_next && starts_with(value, "--")) || (value.empty() && option->placeholder_ != "TEXT");
  option->source_ = option->is_switch() ? word : lacks || value.empty() ? head : head + " " + value;
  if (lacks || !option->assign(value)) throw UsageError(option->source_ + ": expected " + option->expected_);
  return at + (in_next ? 2 : 1);
}

void Options::parse(const std::vector<std::string>& words) {
  std::vector<std::string> bare;
  for (size_t at = 0; at < words.size();)
    if (words[at].size() > 1 && words[at][0] == '-')
      at = read_option(words, at);
    else
      bare.push_back(words[at++]);
  if (bare.size() > most_arguments_)
    throw UsageError("unexpected argument \"" + bare[most_arguments_] + "\"; options begin with --");
  const bool lacks = bare.empty() && arguments_ != nullptr && arguments_->empty();
  if (lacks || contains(bare, "")) throw UsageError("expected " + argument_ + " (" + argument_help_ + "); see --help");
  if (!bare.empty()) *arguments_ = bare;
}

std::string Options::help() const {
  const std::string many = most_arguments_ > 1 ? "..." : "";
  std::string out = "Usage: " + program_ + " [options]" + (argument_.empty() ? "" : " " + argument_ + many) + "\n";
  append_wrapped(out, purpose_, 0);
  if (!argument_.empty()) append_help_line(out += "\n", argument_, argument_help_);
  std::string section;
  for (const auto& option : options_) {
    if (option->section_ != section) out += "\n" + (section = option->section_) + "\n";
    const std::string label = option->is_switch() ? "--[no-]" + option->name_ : option->written(option->placeholder_);
    const std::string value = option->default_.empty() ? "" : " [" + option->default_ + "]";
    append_help_line(out, label, option->help_ + value);
  }
  append_help_line(out += "\n", "--help", "print this and stop");
  append_help_line(out, "--version", "print the version and stop");
  return out;
}

// ---- Saving ---------------------------------------------------------------------------------------------------------

Json Options::to_json() const {
  Json json = Json::object();
  for (const auto& option : options_)
    if (option->saved_) json.set(option->name_, option->json());
  return json;
}

void Options::restore(const Json& json, const std::string& origin, bool same) {
  for (const auto& [name, value] : json.members()) {
    const Option* const option = find(name);
    if (option == nullptr || !option->saved_)
      throw Error(origin + ": saved with option --" + name + ", which " + program_ + " does not have");
  }
  for (const auto& option : options_) {
    if (!option->saved_) continue;
    const Json* const found = json.find(option->name_);
    const std::string before = found ? words_of(*found) : option->default_, now = option->words();
    const bool chosen = same || !option->source_.empty();
    if (chosen && option->always_) continue;
    if (!option->assign(before))
      throw Error(origin + ": saved with " + option->written(before) + ": expected " + option->expected_);
    if (chosen && option->words() != now)
      throw Error(option->written(now) + ": this run was started with " + option->written(before) +
                  ", and an option that defines a run cannot change; nothing was changed");
  }
}

}  // namespace petroglyph
