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

template <class Number>
std::string range(const char* kind, Number low, Number high, const std::string& low_text,
                  const std::string& high_text) {
  const bool bounded = high < std::numeric_limits<Number>::max() || std::is_unsigned_v<Number>;
  if (bounded) return std::string(kind) + " from " + low_text + " to " + high_text;
  if (low > std::numeric_limits<Number>::lowest()) return std::string(kind) + ", at least " + low_text;
  return kind;
}

bool parse_bool(std::string_view word, bool* value) {
  const bool yes = word == "true" || word == "yes" || word == "on";
  if (!yes && word != "false" && word != "no" && word != "off") return false;
  *value = yes;
  return true;
}

bool starts_with(std::string_view word, std::string_view prefix) { return word.substr(0, prefix.size()) == prefix; }

// Adds `words` to `out`, broken so that no line is longer than HELP_WIDTH; new lines begin at `indent`.
void append_wrapped(std::string& out, const std::string& words, size_t indent) {
  size_t column = indent, at = 0;
  while (at < words.size()) {
    const size_t end = std::min(words.find(' ', at), words.size());
    if (column > indent && column + 1 + (end - at) > HELP_WIDTH) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out.append(words, at, end - at);
    column += end - at;
    at = end + 1;
  }
  out += '\n';
}

void append_help_line(std::string& out, const std::string& label, const std::string& meaning, size_t indent) {
  out += "  " + label;
  if (label.size() + 4 > indent) {
    out += "\n" + std::string(indent, ' ');
  } else {
    out += std::string(indent - 2 - label.size(), ' ');
  }
  append_wrapped(out, meaning, indent);
}

[[noreturn]] void print_and_stop(const std::string& words) {
  std::fputs(words.c_str(), stdout);
  if (!flush_output()) throw Error("cannot write to the standard output");
  std::exit(0);
}

// How the user would write the option with a value.
std::string written(const std::string& name, bool flag, const std::string& value) {
  if (flag) return (value == "true" ? "--" : "--no-") + name;
  return value.empty() ? "no --" + name : "--" + name + " " + value;
}

// Whether a program that computes in single precision would take this number, which is not 0, for 0.
bool vanishes(const std::string& word) {
  const bool is_zero = word.substr(0, word.find_first_of("eE")).find_first_of("123456789") == std::string::npos;
  return !is_zero && static_cast<float>(parse_number(word).value_or(1)) == 0;
}

// "a FILE", "FILES": what --help shows in place of a value
std::string one_of(const std::string& placeholder) {
  const bool several = placeholder.back() == 'S';
  return (several ? "" : "a ") + placeholder;
}

// A saved value as the user would have written it.
std::string restored_text(const Json& value, const std::string& name, const std::string& origin) {
  switch (value.kind()) {
    case Json::Kind::Boolean: return value.boolean() ? "true" : "false";
    case Json::Kind::Number: return exact_text(value.number());
    case Json::Kind::String: return value.string();
    default: throw Error(origin + ": option --" + name + " is " + name_of(value.kind()) + ", expected a value");
  }
}

// What every program has, without a variable.
bool is_own(const std::string& name) {
  return name == "help" || name == "version" || name == "config";
}

}  // namespace

Options::Options(std::string program, std::string purpose)
    : program_(std::move(program)), purpose_(std::move(purpose)) {}

Option& Options::declare(const std::string& name, const std::string& help) {
  if (find(name) != nullptr || is_own(name)) throw Error("option --" + name + " declared twice");
  Option& option = options_.emplace_back();
  option.name_ = name;
  option.help_ = help;
  option.section_ = section_;
  return option;
}

template <class Integer>
Option& Options::add_integer(const std::string& name, Integer* value, Integer low, Integer high,
                             const std::string& help) {
  Option& option = declare(name, help);
  option.placeholder_ = "N";
  option.default_ = std::to_string(*value);
  option.expected_ = range("a whole number", low, high, std::to_string(low), std::to_string(high));
  option.show_ = [value] { return std::to_string(*value); };
  // JSON numbers are doubles: a larger seed is saved as a string.
  option.save_ = [value] {
    const bool large = *value > 0 && static_cast<uint64_t>(*value) > static_cast<uint64_t>(Json::MAX_INTEGER);
    return large ? Json(std::to_string(*value)) : Json(*value);
  };
  option.assign_ = [value, low, high](std::string_view word) {
    if constexpr (std::is_unsigned_v<Integer>) {
      const std::optional<uint64_t> parsed = parse_unsigned(word);
      if (!parsed || *parsed < low || *parsed > high) return false;
      *value = *parsed;
    } else {
      const std::optional<int64_t> parsed = parse_integer(word);
      if (!parsed || *parsed < low || *parsed > high) return false;
      *value = static_cast<Integer>(*parsed);
    }
    return true;
  };
  return option;
}

Option& Options::add(const std::string& name, int* value, int low, int high, const std::string& help) {
  return add_integer(name, value, low, high, help);
}

Option& Options::add(const std::string& name, int64_t* value, int64_t low, int64_t high, const std::string& help) {
  return add_integer(name, value, low, high, help);
}

Option& Options::add(const std::string& name, uint64_t* value, uint64_t low, uint64_t high, const std::string& help) {
  return add_integer(name, value, low, high, help);
}

Option& Options::add(const std::string& name, double* value, double low, double high, const std::string& help) {
  Option& option = declare(name, help);
  option.placeholder_ = "X";
  option.real_ = true;
  option.default_ = exact_text(*value);
  option.expected_ = range("a number", low, high, exact_text(low), exact_text(high));
  option.show_ = [value] { return exact_text(*value); };
  option.save_ = [value] { return Json(*value); };
  option.assign_ = [value, low, high](std::string_view word) {
    const std::optional<double> parsed = parse_number(word);
    if (!parsed || *parsed < low || *parsed > high) return false;
    *value = *parsed;
    return true;
  };
  return option;
}

Option& Options::add(const std::string& name, bool* value, const std::string& help) {
  Option& option = declare(name, help);
  option.flag_ = true;
  option.default_ = *value ? "true" : "false";
  option.expected_ = "true or false";
  option.show_ = [value] { return std::string(*value ? "true" : "false"); };
  option.save_ = [value] { return Json(*value); };
  option.assign_ = [value](std::string_view word) { return parse_bool(word, value); };
  return option;
}

Option& Options::add(const std::string& name, std::string* value, const std::string& help) {
  Option& option = declare(name, help);
  option.placeholder_ = "TEXT";
  option.text_ = true;
  option.default_ = *value;
  option.expected_ = "text in UTF-8";
  option.show_ = [value] { return *value; };
  option.save_ = [value] { return Json(*value); };
  option.assign_ = [value](std::string_view word) {
    if (!is_utf8(word)) return false;
    *value = word;
    return true;
  };
  return option;
}

Option& Options::add(const std::string& name, std::string* value, const std::vector<std::string>& choices,
                     const std::string& help) {
  const auto is_one = [choices](std::string_view word) {
    return std::find(choices.begin(), choices.end(), word) != choices.end();
  };
  Option& option = add(name, value, "one of " + join(choices, ", "), is_one, help + ": " + join(choices, ", "));
  option.choices_ = choices;
  return option;
}

Option& Options::add(const std::string& name, std::string* value, const std::string& expected,
                     std::function<bool(std::string_view)> is_one, const std::string& help) {
  Option& option = add(name, value, help);
  option.placeholder_ = "WORD";
  option.text_ = false;
  option.expected_ = expected;
  option.assign_ = [value, is_expected = std::move(is_one)](std::string_view word) {
    if (!is_expected(word)) return false;
    *value = word;
    return true;
  };
  return option;
}

// parse: a word's value, or nothing
template <class Number, class Parse>
Option& Options::add_list(const std::string& name, std::vector<Number>* values, Number low, Number high,
                          const char* kind, Parse parse, const std::string& help) {
  const auto show = [values] {
    std::vector<std::string> words;
    for (const Number value : *values) words.push_back(exact_text(value));
    return join(words, ",");
  };
  Option& option = declare(name, help);
  option.placeholder_ = "N,N,...";
  option.default_ = show();
  option.expected_ = range(kind, low, high, exact_text(low), exact_text(high)) + " with commas between them";
  option.show_ = show;
  option.save_ = [show] { return Json(show()); };
  option.assign_ = [values, low, high, parse](std::string_view word) {
    std::vector<Number> read;
    for (const std::string& number : word.empty() ? std::vector<std::string>() : split(word, ',')) {
      const auto parsed = parse(number);
      if (!parsed || *parsed < low || *parsed > high) return false;
      read.push_back(static_cast<Number>(*parsed));
    }
    *values = read;
    return true;
  };
  return option;
}

Option& Options::add(const std::string& name, std::vector<int>* values, int low, int high, const std::string& help) {
  return add_list(name, values, low, high, "whole numbers", parse_integer, help);
}

Option& Options::add(const std::string& name, std::vector<double>* values, double low, double high,
                     const std::string& help) {
  return add_list(name, values, low, high, "numbers", parse_number, help);
}

void Options::positional(const std::string& name, std::string* value, const std::string& help) {
  positional_.push_back({name, help, value, nullptr, false});
}

void Options::positional(const std::string& name, std::vector<std::string>* values, const std::string& help) {
  positional_.push_back({name, help, nullptr, values, !values->empty()});
}

Option* Options::find(std::string_view name) {
  for (Option& option : options_) {
    if (option.name_ == name) return &option;
  }
  return nullptr;
}

const Option& Options::known(const std::string& name) const {
  for (const Option& option : options_) {
    if (option.name_ == name) return option;
  }
  throw Error("option --" + name + " was never declared");
}

bool Options::given(const std::string& name) const { return !known(name).source_.empty(); }

std::string Options::value(const std::string& name) const { return known(name).show_(); }

std::string Options::as_written(const std::string& name, const std::string& value) const {
  return written(name, known(name).flag_, value);
}

std::string Options::on_command_line(const std::string& name) const {
  const auto found =
      std::find_if(options_.begin(), options_.end(), [&](const Option& option) { return option.name_ == name; });
  return found != options_.end() && starts_with(found->source_, "--") ? found->source_ : "";
}

void Options::only_with(const std::string& name, const std::string& other, const std::vector<std::string>& values) {
  if (Option* const option = find(name)) option->conditions_.push_back({other, values});
}

// "without --measure" of a switch that nobody turned off, else "with --schedule constant".
std::string Options::beside(const Option& other, const std::string& now) {
  if (other.flag_ && now == "false" && other.source_.empty()) return "without --" + other.name_;
  return "with " + written(other.name_, other.flag_, now);
}

std::map<std::string, std::string> Options::idle() const {
  std::map<std::string, std::string> found;
  for (const Option& option : options_) {
    if (option.source_.empty()) continue;
    for (const Option::Condition& condition : option.conditions_) {
      const std::string now = value(condition.option);
      if (std::find(condition.values.begin(), condition.values.end(), now) == condition.values.end())
        found.emplace(option.name_, option.source_ + ": does nothing " + beside(known(condition.option), now));
    }
  }
  return found;
}

void Options::refuse_idle() const {
  const std::map<std::string, std::string> found = idle();
  if (!found.empty()) throw UsageError(found.begin()->second);
}

void Options::only_beside(const std::string& name, const std::vector<std::string>& others) const {
  if (!given(name)) return;
  for (const Option& option : options_)
    if (!option.source_.empty() && option.name_ != name &&
        std::find(others.begin(), others.end(), option.name_) == others.end())
      throw UsageError(option.source_ + ": does nothing with " + written(name, known(name).flag_, value(name)));
}

bool Options::never_varies(const std::string& name) const {
  if (is_own(name)) return true;
  return std::any_of(options_.begin(), options_.end(),
                     [&](const Option& o) { return o.name_ == name && (o.free_ || o.common_); });
}

// In a file, options have no dashes, and a switch is turned off by "= false".
void Options::refuse_unknown(std::string_view word, bool in_file) const {
  const bool on_command_line = !in_file;
  const std::string dashes = on_command_line ? "--" : "";
  std::vector<std::string> names;
  if (on_command_line) names = {"help", "version", "config"};
  for (const Option& option : options_) {
    names.push_back(option.name_);
    if (option.flag_ && on_command_line) names.push_back("no-" + option.name_);
  }
  const std::string_view bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  const std::string meant = nearest_word(bare, names);
  const std::string hint = meant.empty() ? "" : " (did you mean " + dashes + meant + "?)";
  throw UsageError("unknown option " + std::string(word) + hint);
}

// Of a line of a --config file whose name is no option's.
void Options::refuse_line(const std::string& name) const {
  const std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  const auto is_option = [&](const std::string& word, bool flag) {
    return std::any_of(options_.begin(), options_.end(),
                       [&](const Option& o) { return o.name_ == word && (o.flag_ || !flag); });
  };
  if (starts_with(bare, "no-") && is_option(bare.substr(3), true))
    throw UsageError(name + ": expected \"" + bare.substr(3) + " = false\"");
  if (bare != name && is_option(bare, false)) throw UsageError(name + ": expected the name without dashes, " + bare);
  refuse_unknown(name, true);
}

std::string Options::fault(const Option& option, const std::string& value) {
  if (value.empty() && option.text_ && option.placeholder_ != "TEXT")
    return "its value is empty, expected " + one_of(option.placeholder_);
  if (!option.assign_(value)) return (value.empty() ? "its value is empty, expected " : "expected ") + option.expected_;
  if (option.real_ && vanishes(value)) return "expected " + option.expected_ + ", and this is too small to tell from 0";
  if (!option.distinct_) return "";
  std::vector<std::string> values = split(option.show_(), ',');
  std::sort(values.begin(), values.end());
  const auto twice = std::adjacent_find(values.begin(), values.end());
  return twice == values.end() ? "" : *twice + " is there twice";
}

void Options::assign(Option& option, const std::string& value, const std::string& source) {
  const std::string wrong = fault(option, value);
  if (!wrong.empty()) throw UsageError(source + ": " + wrong);
  option.source_ = source;
}

// One word that begins with '-', and the word after it where it is its value. Nothing is assigned yet.
size_t Options::read_option(const std::vector<std::string>& words, size_t at, std::vector<Argument>& arguments) {
  const std::string& word = words[at];
  const size_t equals = word.find('=');
  const std::string head = word.substr(0, equals);
  const bool attached = equals != std::string::npos;
  if (head == "--help" || word == "-h") print_and_stop(help());
  if (head == "--version") print_and_stop(version() + "\n");
  for (const Option& option : options_)
    if (!option.also_.empty() && word == option.also_) {
      arguments.push_back({find(option.name_), "true", word});
      return at + 1;
    }
  if (!starts_with(head, "--")) refuse_unknown(head);
  const std::string name = head.substr(2);
  Option* option = find(name);
  if (option == nullptr && starts_with(name, "no-")) {
    option = find(name.substr(3));
    if (option == nullptr || !option->flag_) refuse_unknown(head);
    if (attached) throw UsageError(word + ": " + head + " takes no value");
    arguments.push_back({option, "false", word});
    return at + 1;
  }
  if (option == nullptr && name != "config") refuse_unknown(head);
  if (option != nullptr && option->flag_ && !attached) {
    arguments.push_back({option, "true", word});
    return at + 1;
  }
  const bool missing = !attached && (at + 1 == words.size() || starts_with(words[at + 1], "--"));
  if (missing)
    throw UsageError(head + ": expected " +
                     (!option                                           ? "a file"
                      : option->text_ && option->placeholder_ != "TEXT" ? one_of(option->placeholder_)
                                                                        : option->expected_) +
                     " after it");
  const std::string value = attached ? word.substr(equals + 1) : words[at + 1];
  if (option == nullptr) {
    set_config(value);
  } else {
    arguments.push_back({option, value, option->flag_ ? word : head + (value.empty() ? "" : " " + value)});
  }
  return attached ? at + 1 : at + 2;
}

// What a second file would say of an option in the first one is not clear.
void Options::set_config(const std::string& path) {
  if (path.empty()) throw UsageError("--config=: expected a file after it");
  if (!config_.empty()) throw UsageError("--config " + path + ": expected one such file, and there is " + config_);
  config_ = path;
}

void Options::parse(int argc, const char* const* argv) { parse({argv + std::min(argc, 1), argv + argc}); }

void Options::parse(const std::vector<std::string>& words) {
  std::vector<Argument> arguments;
  std::vector<std::string> bare;
  for (size_t at = 0; at < words.size();) {
    if (words[at] == "--") {
      bare.insert(bare.end(), words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
      break;
    }
    if (words[at].size() > 1 && words[at][0] == '-') {
      at = read_option(words, at, arguments);
    } else {
      bare.push_back(words[at++]);
    }
  }
  if (!config_.empty()) read_config(config_);
  for (const Argument& argument : arguments) assign(*argument.option, argument.value, argument.source);
  assign_positional(bare);
}

std::vector<std::string> Options::spelled_out(const std::vector<std::string>& words) const {
  std::vector<std::string> all = config_words_;
  for (size_t at = 0; at < words.size(); ++at) {
    if (words[at] == "--config")
      ++at;
    else if (!starts_with(words[at], "--config=") && words[at] != "--")  // more options may come behind these
      all.push_back(words[at]);
  }
  return all;
}

void Options::assign_positional(const std::vector<std::string>& words) {
  size_t at = 0;
  for (const Positional& wanted : positional_) {
    if (at == words.size() && wanted.optional) continue;
    const std::string expected = "expected " + wanted.name + " (" + wanted.help + "); see --help";
    if (at == words.size()) throw UsageError(expected);
    const auto end = wanted.value != nullptr ? words.begin() + static_cast<std::ptrdiff_t>(at) + 1 : words.end();
    if (std::find(words.begin() + static_cast<std::ptrdiff_t>(at), end, "") != end)
      throw UsageError("an argument is empty, " + expected);
    if (wanted.value != nullptr) {
      *wanted.value = words[at++];
    } else {
      wanted.values->assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
      at = words.size();
    }
  }
  if (at < words.size()) throw UsageError("unexpected argument \"" + words[at] + "\"; options begin with --");
}

void Options::read_config(const std::string& path) {
  std::string content;
  try {
    content = read_file(path);
  } catch (const Error& error) {
    throw UsageError(std::string("--config ") + error.what());
  }
  int number = 0;
  const std::string_view mark = "\xEF\xBB\xBF";  // some editors begin UTF-8 with this, and show nothing
  for (size_t at = starts_with(content, mark) ? mark.size() : 0; at < content.size();) {
    const size_t end = std::min(content.find('\n', at), content.size());
    read_config_line(std::string_view(content).substr(at, end - at), path + ":" + std::to_string(++number));
    at = end + 1;
  }
}

void Options::read_config_line(std::string_view line, const std::string& where) {
  // A message ends at one.
  if (line.find('\0') != std::string_view::npos) throw UsageError(where + ": has a zero byte, expected text");
  // A '#' begins a comment at the start of a line or after a space, so that a value may contain one.
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) line = line.substr(0, i);
  }
  line = trim(line);
  if (line.empty()) return;
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) throw UsageError(where + ": expected \"name = value\"");
  const std::string name(trim(line.substr(0, equals))), value(trim(line.substr(equals + 1)));
  if (name.empty()) throw UsageError(where + ": expected a name before \"=\"");
  Option* option = find(name);
  try {
    if (option == nullptr) refuse_line(name);
    if (!option->source_.empty()) throw UsageError(name + " was set before, at " + option->source_);
    const std::string wrong = fault(*option, value);
    if (!wrong.empty()) throw UsageError(name + (value.empty() ? " =" : " = " + value) + ": " + wrong);
    config_words_.push_back("--" + name + "=" + value);
  } catch (const UsageError& error) {
    throw UsageError(where + ": " + error.what());
  }
  option->source_ = where + ": " + name + " = " + value;
}

std::string Options::help() const {
  const auto label = [](const Option& option) {
    if (option.flag_) return (option.default_ == "true" ? "--[no-]" : "--") + option.name_;
    return "--" + option.name_ + " " + option.placeholder_;
  };
  size_t indent = sizeof("  --config FILE  ") - 1;
  for (const Option& option : options_) indent = std::max(indent, std::min(label(option).size(), LONGEST_LABEL) + 4);
  std::string out = "Usage: " + program_ + " [options]";
  for (const Positional& wanted : positional_)
    out += (wanted.optional ? " [" : " ") + wanted.name + (wanted.values ? "..." : "") + (wanted.optional ? "]" : "");
  out += "\n";
  append_wrapped(out, purpose_, 0);
  if (!positional_.empty()) out += "\n";
  for (const Positional& wanted : positional_) append_help_line(out, wanted.name, wanted.help, indent);
  std::vector<std::string> sections;
  for (const Option& option : options_) {
    if (std::find(sections.begin(), sections.end(), option.section_) == sections.end()) {
      sections.push_back(option.section_);
    }
  }
  for (const std::string& section : sections) {
    out += "\n" + section + "\n";
    for (const Option& option : options_) {
      if (option.section_ != section) continue;
      const std::string otherwise = option.flag_ ? (option.default_ == "true" ? "on" : "") : option.default_;
      append_help_line(out, label(option), option.help_ + (otherwise.empty() ? "" : " [" + otherwise + "]"), indent);
    }
  }
  out += "\n";
  append_help_line(out, "--config FILE", "read options from one file's lines \"name = value\"; the command line wins",
                   indent);
  append_help_line(out, "--help", "print this and stop", indent);
  append_help_line(out, "--version", "print the version and stop", indent);
  return out;
}

Json Options::to_json() const {
  Json saved = Json::object();
  for (const Option& option : options_) {
    if (!option.free_) saved.set(option.name_, option.save_());
  }
  return saved;
}

// Whether its list has every value of that one.
bool Options::has_all(const Option& option, const std::string& before) {
  const std::vector<std::string> now = split(option.show_(), ','), begun = split(before, ',');
  const auto has = [&](const std::string& one) { return std::find(now.begin(), now.end(), one) != now.end(); };
  return before.empty() || std::all_of(begun.begin(), begun.end(), has);
}

void Options::adopt(const std::string& name, const Json& value, const std::string& where) {
  Option* const option = find(name);
  if (option == nullptr) return;
  const std::string word = restored_text(value, name, where);
  if (!option->assign_(word)) throw Error(where + " " + word + ": expected " + option->expected_);
}

namespace {

const char* const CANNOT_CHANGE = "; an option that shapes the run cannot change on --resume";

}  // namespace

void Options::restore(const Json& saved, const std::string& origin) {
  if (!saved.is(Json::Kind::Object))
    throw Error(origin + ": its options are " + name_of(saved.kind()) + ", expected an object");
  for (const Json::Member& member : saved.members()) {
    const Option* option = find(member.first);
    if (option == nullptr || option->free_) {
      throw Error(origin + ": saved with option --" + member.first + ", which " + program_ + " does not have");
    }
  }
  for (Option& option : options_) {
    if (option.free_) continue;
    const Json* value = saved.find(option.name_);
    const bool changed = !option.source_.empty() && !option.differs_ && option.show_() != option.default_;
    if (value == nullptr && option.lacks_ && changed)
      throw Error(option.source_ + ": this run was started without it" + CANNOT_CHANGE);
    if (value == nullptr && option.lacks_) continue;
    if (value == nullptr) throw Error(origin + ": saved without option --" + option.name_ + ", which it needs");
    const std::string before = restored_text(*value, option.name_, origin);
    const std::string started = written(option.name_, option.flag_, before);
    if (!option.source_.empty()) {
      if (option.differs_ || option.save_() == *value) continue;
      if (option.grows_ && has_all(option, before)) continue;
      throw Error(
          option.source_ + ": this run was started with " + started +
          (option.grows_ ? "; on --resume this list may have more, and lacks nothing that it had" : CANNOT_CHANGE));
    }
    if (!option.assign_(before)) throw Error(origin + ": saved with " + started + ": expected " + option.expected_);
  }
}

void declare_force(Options& options, bool* force) {
  options.add("force", force, "replaces files that are there already").may_change();
}

void declare_device(Options& options, std::string* device) {
  const auto is_one = [](std::string_view word) {
    if (word == "auto" || word == "cpu" || word == "cuda" || word == "reference") return true;
    if (!starts_with(word, "cuda:")) return false;
    const std::optional<int64_t> number = parse_integer(word.substr(5));
    return number && *number >= 0 && *number < 1024;
  };
  options
      .add(
          "device", device, "one of auto, cpu, cuda, cuda:N, reference", is_one,
          "auto takes the GPU where there is one, cuda:N the one of this number, from 0, reference the slow loops that "
          "define the operations; the results do not depend on it: auto, cpu, cuda, cuda:N, reference")
      .may_change();
}

void declare_device(Options& options, std::string* device, int* threads) {
  declare_device(options, device);
  options.add("threads", threads, 0, 1024, "CPU threads, 0 for all cores; the results do not depend on it")
      .may_change();
}

}  // namespace petroglyph
