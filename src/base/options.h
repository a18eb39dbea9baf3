// The command line: declared once, checked, explained by --help, saved into checkpoints and compared on --resume.
//
//   int width = 64, threads = 0;
//   Options options("train_copy", "Trains a sequence model on the copying task.");
//   options.section("Model");
//   options.add("width", &width, 1, 65536, "channels of the residual stream");
//   options.add("threads", &threads, 0, 1024, "threads, 0 for all cores").always().not_saved();
//   options.parse(argc, argv);
//
// There are two kinds of options. Most define the run: they are saved with it, and on --resume a different value is
// refused. The others may always be given (always()): steps, save-every, threads, device, quiet. A resumed run repeats
// the earlier value of those too where it is not given again, except for those that concern one call only
// (not_saved()).
//
// `--width 64` and `--width=64` are the same, and the last one counts; a switch is turned on by --quiet, off by
// --no-quiet. All mistakes of the user are UsageErrors.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/json.h"

namespace petroglyph {

class Option {
 public:
  Option& always() { return always_ = true, *this; }
  Option& not_saved() { return saved_ = false, *this; }
  // What --help shows in place of the value: "--data FILE". Unless it is TEXT, an empty value is refused.
  Option& placeholder(const std::string& word) { return placeholder_ = word, *this; }

 private:
  friend class Options;
  struct Condition {
    std::string option;
    std::vector<std::string> values;
  };
  std::string name_, help_, section_, placeholder_, default_;
  std::string expected_;  // "a whole number from 1 to 64"
  std::string source_;    // as it was given: "--width 64"; or empty
  bool is_switch_ = false, is_number_ = false, always_ = false, saved_ = true;
  std::vector<Condition> conditions_;
  std::function<bool(std::string_view)> assign_;  // false: not a value of this option
  std::function<std::string()> show_;             // the value as the user would write it
  Json saved() const;
};

// The type of an option's bounds: that of its variable, whatever type the bounds are written with.
template <class Number>
using Bound = std::common_type_t<Number>;

class Options {
 public:
  Options(std::string program, std::string purpose);
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // Heads the options that follow in --help.
  void section(const std::string& title) { section_ = title; }

  // The variable's value at this moment is the default; it must outlive the Options. Bounds are included.
  template <class Number>  // int, int64_t, uint64_t, double
  Option& add(const std::string& name, Number* value, Bound<Number> low, Bound<Number> high, const std::string& help);
  // Numbers separated by commas; may be empty.
  template <class Number>  // int, double
  Option& add(const std::string& name, std::vector<Number>* values, Bound<Number> low, Bound<Number> high,
              const std::string& help);
  Option& add(const std::string& name, bool* value, const std::string& help);
  Option& add(const std::string& name, std::string* value, const std::string& help);
  Option& add(const std::string& name, std::string* value, const std::vector<std::string>& choices,
              const std::string& help);
  // A word that `accepts` takes; `expected` describes those.
  Option& add(const std::string& name, std::string* value, const std::string& expected,
              std::function<bool(std::string_view)> accepts, const std::string& help);

  // Other defaults for options that were not given: "width=192 layers=12". --help shows them if this comes before
  // parse().
  void set_defaults(const std::string& list);

  // Arguments without a name, in this order. A list takes all that are left: at least one, unless it holds a default.
  void positional(const std::string& name, std::string* value, const std::string& help);
  void positional(const std::string& name, std::vector<std::string>* values, const std::string& help);

  // Reads the command line. --help (or -h) and --version print, and end the program with status 0.
  void parse(int argc, const char* const* argv);
  void parse(const std::vector<std::string>& words);  // without the program's name

  std::string help() const;
  bool given(const std::string& name) const;         // on the command line
  std::string value(const std::string& name) const;  // as the user would write it

  // `name` has an effect only where `other` has one of these values. Ignored where the program lacks either.
  void only_with(const std::string& name, const std::string& other, const std::vector<std::string>& values);
  // The given options that have no effect, and why: {"heads", "--heads 3: does nothing with --model rnn"}.
  // all: also of those that were not given.
  std::map<std::string, std::string> without_effect(bool all = false) const;
  void refuse_without_effect() const;  // throws UsageError for the first one
  // Throws UsageError where `name` is given together with an option that is not one of these.
  void only_beside(const std::string& name, const std::vector<std::string>& others) const;

  // The saved options, with types. restore() sets those that were not given. It throws Error for one that defines the
  // run and was given with another value (with `same`: has another value), or that this program does not have. An
  // option that the file lacks had its default. origin: the file, which opens messages.
  Json to_json() const;
  void restore(const Json& saved, const std::string& origin, bool same = false);

 private:
  struct Positional {
    std::string name, help;
    std::string* value;  // one of the two
    std::vector<std::string>* values;
    bool optional;
  };

  template <class Value, class Assign>
  Option& declare(const std::string& name, Value* value, const std::string& expected, Assign assign,
                  const std::string& help);
  Option* find(std::string_view name);
  const Option& known(const std::string& name) const;
  [[noreturn]] void refuse_unknown(const std::string& word) const;
  size_t read_option(const std::vector<std::string>& words, size_t at);
  static void assign(Option& option, const std::string& value, const std::string& source);
  void assign_positional(const std::vector<std::string>& words);

  std::string program_, purpose_, section_ = "Options";
  bool parsed_ = false;
  std::deque<Option> options_;  // a deque keeps the references that add() returns
  std::vector<Positional> positional_;
};

// --force: replace existing files.
void declare_force(Options& options, bool* force);

// --device, and --threads of the CPU, 0 for all cores: no result depends on them.
void declare_device(Options& options, std::string* device);
void declare_device(Options& options, std::string* device, int* threads);

}  // namespace petroglyph
