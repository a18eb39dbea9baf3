// The command line: declared once, checked, explained by --help, saved into checkpoints and compared on --resume.
//
//   int width = 64;
//   Options options("train_copy", "Trains a sequence model on the copying task.");
//   options.section("Model");
//   options.add("width", &width, 1, 65536, "channels of the residual stream");
//   options.add("threads", &threads, 0, 1024, "threads, 0 for all cores").may_change();
//   options.parse(argc, argv);
//
// `--width 64` and `--width=64` are the same, and the last one counts; a bool is switched on by --quiet, off by
// --no-quiet. `--config FILE`, given once, reads lines `width = 64` with # comments; the command line wins over the file.
// Everything the user gets wrong is a UsageError.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace petroglyph {

// One option; what add() gives back, for the few things that most options do not need.
class Option {
 public:
  // The option does not shape the run (threads, quiet, device): it is not saved, and may differ on --resume.
  Option& may_change() {
    free_ = true;
    return *this;
  }
  // Saved and restored like one that shapes the run, but another value may be given on --resume (steps).
  Option& may_differ() {
    differs_ = true;
    return *this;
  }
  // A list, of which --resume may ask for more than was begun, and for all of that.
  Option& may_grow() {
    grows_ = true;
    return *this;
  }
  // Another word for it, of an option that is a flag: "-i".
  Option& also(const std::string& word) {
    also_ = word;
    return *this;
  }
  // Runs saved before there was this option lack it: they did what its default says.
  Option& may_lack() {
    lacks_ = true;
    return *this;
  }
  // What runs that are compared have in common, such as how they are tested.
  Option& may_not_vary() {
    common_ = true;
    return *this;
  }
  // A list of which no value is there twice.
  Option& distinct() {
    distinct_ = true;
    return *this;
  }
  // What --help shows in place of the value: "--data FILE". Where it is any but TEXT, the value is not empty.
  Option& placeholder(const std::string& word) {
    placeholder_ = word;
    return *this;
  }

 private:
  friend class Options;
  struct Condition {
    std::string option;
    std::vector<std::string> values;
  };
  std::string name_, help_, section_, placeholder_, default_;
  bool flag_ = false;  // a bool: needs no value
  bool real_ = false;  // a number that programs may compute with in single precision
  bool text_ = false;  // may be any text
  std::string also_;
  bool free_ = false, differs_ = false, grows_ = false, lacks_ = false, common_ = false, distinct_ = false;
  std::vector<Condition> conditions_;
  std::string source_;  // how the user gave it: "--width 64" or "FILE:3: width = 64"; empty when he did not
  std::function<bool(std::string_view)> assign_;  // false: not a value of this option
  std::function<std::string()> show_;             // the value as the user would write it
  std::function<Json()> save_;
  std::string expected_;  // "a whole number from 1 to 64"
  std::vector<std::string> choices_;
};

class Options {
 public:
  Options(std::string program, std::string purpose);
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // Heads the options that follow in --help.
  void section(const std::string& title) { section_ = title; }

  // The variable's value at this moment is the default; it must outlive the Options. Bounds are included.
  Option& add(const std::string& name, int* value, int low, int high, const std::string& help);
  Option& add(const std::string& name, int64_t* value, int64_t low, int64_t high, const std::string& help);
  Option& add(const std::string& name, uint64_t* value, uint64_t low, uint64_t high, const std::string& help);
  Option& add(const std::string& name, double* value, double low, double high, const std::string& help);
  Option& add(const std::string& name, bool* value, const std::string& help);
  Option& add(const std::string& name, std::string* value, const std::string& help);
  Option& add(const std::string& name, std::string* value, const std::vector<std::string>& choices,
              const std::string& help);
  // A word of which is_one() knows whether it is expected.
  Option& add(const std::string& name, std::string* value, const std::string& expected,
              std::function<bool(std::string_view)> is_one, const std::string& help);
  // Whole numbers with commas between them; may be empty.
  Option& add(const std::string& name, std::vector<int>* values, int low, int high, const std::string& help);
  // The same of any numbers.
  Option& add(const std::string& name, std::vector<double>* values, double low, double high, const std::string& help);

  // Arguments without a name, in this order; each must be there. A list takes all that are left, at least one unless
  // the variable holds what is meant by none.
  void positional(const std::string& name, std::string* value, const std::string& help);
  void positional(const std::string& name, std::vector<std::string>* values, const std::string& help);

  // Reads the command line. --help (or -h) prints help(), --version the version(), and both exit with
  // status 0.
  void parse(int argc, const char* const* argv);
  void parse(const std::vector<std::string>& words);  // without the program's name

  std::string help() const;
  bool given(const std::string& name) const;         // on the command line or in the --config file
  std::string value(const std::string& name) const;  // as the user would write it
  // How a command line says that: "--steps 5", "--no-post-norm".
  std::string as_written(const std::string& name, const std::string& value) const;
  // As the command line has it, "--width 64"; empty where it does not, and where there is no such option.
  std::string on_command_line(const std::string& name) const;
  // It does something only where `other` has one of these values. Nothing where the program does not have it.
  void only_with(const std::string& name, const std::string& other, const std::vector<std::string>& values);
  // The words of a command line with the options of the --config file in its place, as this one was when it was read.
  std::vector<std::string> spelled_out(const std::vector<std::string>& words) const;
  // Of the options that were given: those that do nothing beside what others say, and why: {"heads", "--heads 3: does nothing …"}.
  std::map<std::string, std::string> idle() const;
  void refuse_idle() const;  // throws UsageError for the first one
  // Throws UsageError where the user gave `name` and beside it an option that is not one of these.
  void only_beside(const std::string& name, const std::vector<std::string>& others) const;
  // Whether there is such an option, and it is none by which runs that are compared differ: may_change(), may_not_vary(), --help.
  bool never_varies(const std::string& name) const;

  // The options that shape the run. restore() sets those that were not given, and throws an Error for one that was
  // given with another value, is missing or unknown; `origin` is the file they come from.
  Json to_json() const;
  void restore(const Json& saved, const std::string& origin);
  // Sets an option, where there is such a one, to what a file has: throws an Error that begins with `where` for what is none of its
  // values.
  void adopt(const std::string& name, const Json& value, const std::string& where);

 private:
  static std::string beside(const Option& other, const std::string& now);
  struct Positional {
    std::string name, help;
    std::string* value;
    std::vector<std::string>* values;  // one of the two
    bool optional;
  };
  struct Argument {
    Option* option;
    std::string value, source;
  };

  Option& declare(const std::string& name, const std::string& help);
  template <class Integer>
  Option& add_integer(const std::string& name, Integer* value, Integer low, Integer high, const std::string& help);
  template <class Number, class Parse>
  Option& add_list(const std::string& name, std::vector<Number>* values, Number low, Number high, const char* kind,
                   Parse parse, const std::string& help);
  Option* find(std::string_view name);
  const Option& known(const std::string& name) const;
  [[noreturn]] void refuse_unknown(std::string_view word, bool in_file = false) const;
  [[noreturn]] void refuse_line(const std::string& name) const;
  size_t read_option(const std::vector<std::string>& words, size_t at, std::vector<Argument>& arguments);
  // Assigns it: what is wrong with the value, or nothing.
  static std::string fault(const Option& option, const std::string& value);
  void assign(Option& option, const std::string& value, const std::string& source);
  static bool has_all(const Option& option, const std::string& before);
  void assign_positional(const std::vector<std::string>& words);
  void read_config(const std::string& path);
  void set_config(const std::string& path);
  void read_config_line(std::string_view line, const std::string& where);

  std::string program_, purpose_, section_ = "Options", config_;
  std::vector<std::string> config_words_;  // "--width=64", of the --config file
  std::deque<Option> options_;             // a deque keeps the references that add() gives
  std::vector<Positional> positional_;
};

// --force, by which files that were there before are replaced.
void declare_force(Options& options, bool* force);

// --device, and --threads of the CPU, 0 for all cores: no result depends on them
void declare_device(Options& options, std::string* device);
void declare_device(Options& options, std::string* device, int* threads);

}  // namespace petroglyph
