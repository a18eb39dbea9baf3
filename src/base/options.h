// The command line: declared once, checked, explained by --help, saved into checkpoints and compared on --resume.
//
//   int width = 64, threads = 0;
//   Options options("train_copy", "Trains a sequence model on the copying task.");
//   options.section("Model");
//   options.add("width", &width, 1, 65536, "channels of the residual stream");
//   options.add("threads", &threads, 0, 1024, "threads, 0 for all cores").not_saved();
//   options.parse(words);
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
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"

namespace petroglyph {

constexpr double LARGEST_SEED = Json::MAX_INTEGER;

class Option {
 public:
  using Variable =
      std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::string*, std::vector<int>*, std::vector<double>*>;

  Option& always() { return always_ = true, *this; }
  Option& not_saved() { return saved_ = false, always(); }

 private:
  friend class Options;
  bool is_switch() const { return std::holds_alternative<bool*>(variable_); }
  Json json() const;                                    // the value
  std::string words() const;                            // the same as the user would write it
  std::string written(const std::string& value) const;  // the option with a value, as the user would write it
  bool assign(std::string_view word) const;             // false: not a value of this option

  std::string name_, help_, section_, placeholder_, default_;
  std::string expected_;  // "a whole number from 1 to 64"
  std::string source_;    // as it was given: "--width 64"; or empty
  Variable variable_;
  double low_ = 0, high_ = 0;                      // of numbers
  std::function<bool(std::string_view)> accepts_;  // of words
  bool always_ = false, saved_ = true;
  std::vector<std::pair<std::string, std::vector<std::string>>> conditions_;  // only_with()
};

class Options {
 public:
  Options(std::string program, std::string purpose) : program_(std::move(program)), purpose_(std::move(purpose)) {}

  // Heads the options that follow in --help.
  void section(const std::string& title) { section_ = title; }

  // The variable's value at this moment is the default; it must outlive the Options.
  // A number, or numbers separated by commas; only a default may have none. Bounds are included.
  Option& add(const std::string& name, Option::Variable value, double low, double high, const std::string& help);
  Option& add(const std::string& name, bool* value, const std::string& help);
  // Any text. placeholder: what --help shows in its place, "--data FILE"; unless it is TEXT, an empty value is refused.
  Option& add(const std::string& name, std::string* value, const char* placeholder, const std::string& help);
  Option& add(const std::string& name, std::string* value, const std::vector<std::string>& choices,
              const std::string& help);
  // --device and, where there is a variable for it, --threads of the CPU, 0 for all cores: no result depends on them.
  void add_device(std::string* device, int* threads = nullptr);

  // Other defaults for options that were not given: "width=192 layers=12". --help shows them if this comes before
  // parse().
  void set_defaults(const std::string& list);

  // The arguments without a name, `most` of them at most; at least one, unless `values` holds a default.
  void positional(const std::string& name, std::vector<std::string>* values, const std::string& help,
                  size_t most = SIZE_MAX);

  // Reads the command line, without the program's name. --help (or -h) and --version print, and end the program with
  // status 0.
  void parse(const std::vector<std::string>& words);

  std::string help() const;
  bool given(const std::string& name) const { return !known(name).source_.empty(); }  // on the command line
  std::string value(const std::string& name) const { return known(name).words(); }    // as the user would write it

  // `name` has an effect only where `other` has one of these values, or, where there are none, another value than its
  // default. Ignored where the program lacks either.
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
  Option& declare(const std::string& name, Option::Variable variable, const std::string& placeholder,
                  const std::string& expected, const std::string& help);
  Option* find(std::string_view name) const;
  Option& known(const std::string& name) const;
  [[noreturn]] void refuse_unknown(const std::string& word) const;
  size_t read_option(const std::vector<std::string>& words, size_t at);

  std::string program_, purpose_, section_ = "Options";
  std::vector<std::unique_ptr<Option>> options_;
  std::string argument_, argument_help_;
  std::vector<std::string>* arguments_ = nullptr;
  size_t most_arguments_ = 0;
};

}  // namespace petroglyph
