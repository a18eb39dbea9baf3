// Allocations and system calls that fail, one at a time: programs run with a preloaded library
// (failing_calls_preload.cpp) that lets the N-th one fail. Each failure has three checks:
//   1. Message: a program that stops prints one line, which begins with the program's name.
//   2. Exit status: 1 if it stops; if 0, its result is that of an undisturbed program.
//   3. Afterwards: the same work, restarted or resumed, ends with the undisturbed result.
//
//   failing_calls [--places N] [--seed N]     N places of each row; make test: some, make storm: all of them

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "address_sanitizer.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
#include "check.h"
#include "dice.h"
#include "shell.h"

namespace petroglyph {
namespace {

constexpr const char* COPY =
    "train_copy --length 4 --width 8 --layers 1 --batch 4 --eval-samples 8 --threads 1 --save-every 2 --name a ";
// A disturbed run may lack the previous checkpoint.
constexpr const char* RUN =
    "tail -n 1 out; cut -d, -f1-4 runs/a/log.csv; ls -A runs/a | if [ $STATUS = 0 ]; then cat; else grep -v previous; "
    "fi";
constexpr const char* GPT2 =
    "printf 'abcab %.0s' $(seq 200) > t; BIN/train_text --data t --tokenizer bytes --norm affine --gelu tanh --width 8 "
    "--heads 1 "
    "--layers 1 --context 8 --batch 4 --steps 2 --eval-samples 8 --sample-length 0 --threads 1 --name a";

// Shell text. BIN is the folder of the programs; standard output goes to the file `out`.
struct Work {
  const char* name;
  std::string before;   // makes the folder that each place begins with
  std::string command;  // what is disturbed: a program and its words
  std::string again;    // ends the work undisturbed, wherever it stopped
  std::string result;   // prints what must be the same in the end; STATUS is that of the disturbed command
};

std::vector<Work> works() {
  const std::string run = std::string(COPY) + "--steps 4";
  const auto forced = [](const std::string& command) { return "BIN/" + command + " --force"; };
  const std::string import = "convert hf --save b.safetensors", encoding = "tokenize t --train 270 --save b.json";
  return {
      {"a run", "true", run,
       "if [ -e runs/a/model.safetensors ]; then BIN/train_copy --resume --name a; else rm -rf runs; BIN/" + run +
           "; fi",
       RUN},
      {"a resumed run", "BIN/" + run + " --lr 0.0005", "train_copy --resume --name a --steps 6",
       "BIN/train_copy --resume --name a --steps 6", RUN},
      {"an export", GPT2, "convert runs/a --to hf --save b", "rm -rf b; BIN/convert runs/a --to hf --save b",
       "cat b/*; ls -A b"},
      {"an import", std::string(GPT2) + "; BIN/convert runs/a --to hf --save hf", import, forced(import),
       "cat b.safetensors"},
      {"an encoding", "printf 'the cat sat on the mat %.0s' $(seq 50) > t", encoding, forced(encoding), "cat b.json"},
      {"a report", "true", "reproduce report", "BIN/reproduce report", "cat runs/report/RESULTS.md"},
      {"an inspection", "BIN/" + run, "inspect info runs/a", "BIN/inspect info runs/a", "cat out"},
  };
}

std::string with_programs(std::string script, const std::string& folder) {
  for (size_t at; (at = script.find("BIN/")) != std::string::npos;) script.replace(at, 4, "'" + folder + "'/");
  return script;
}

// Whether this system and its compiler can make the library that is preloaded.
bool make_library([[maybe_unused]] const std::string& path) {
#if defined __GLIBC__ && !ASAN
  const std::string rest =
      " -std=c++17 -O1 -fPIC -shared -o '" + path + "' test/failing_calls_preload.cpp -ldl 2> /dev/null";
  for (const char* compiler : {"${CXX:-c++}", "g++", "clang++"})
    if (std::system((compiler + rest).c_str()) == 0) return true;
#endif
  return false;
}

// Lines that begin with the program's name, or OpenMP's library's own where that has no memory; a note is none.
int64_t complaints(const std::string& errors, const std::string& program) {
  int64_t count = 0;
  for (const std::string& line : split(errors, '\n'))
    count += (line.rfind(program + ": ", 0) == 0 && line.size() > program.size() + 2) ||
             line.rfind("libgomp: Out of memory", 0) == 0;
  return count;
}

class FailingCalls {
 public:
  FailingCalls(Test& test, std::string programs, std::string library, int places, uint64_t seed)
      : test_(test), programs_(std::move(programs)), library_(std::move(library)), places_(places), dice_(seed) {}

  void disturb(const Work& work) {
    const Shell shell(test_);
    const Outcome made =
        shell.script("mkdir base && cd base && " + with_programs(work.before, programs_) + " > before 2>&1");
    if (!test_.check("what it begins with", made.status == 0, made.output)) return;
    shell.script("cp -r base w; cd w && " + with_programs("BIN/" + work.command, programs_) + " > out");
    const std::string good = result(shell, work, 0), good_again = result(shell, work, 1);
    for (const char* kind : {"memory", "calls"}) {
      const int64_t count = begin_place(shell, work, kind, 0, false);
      if (!test_.check(std::string(kind) + " are counted", count > 0 && result(shell, work, 0) == good, good)) continue;
      std::vector<int64_t> places(static_cast<size_t>(count));
      std::iota(places.begin(), places.end(), 1);
      for (size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[dice_.below(i)]);
      places.resize(std::min(places.size(), static_cast<size_t>(places_)));
      std::string fault;
      for (size_t i = 0; i < places.size() && fault.empty(); ++i)
        fault = fault_at(shell, work, kind, places[i], i % 4 == 3, good, good_again);
      test_.check(text("%s: %zu of %lld places", kind, places.size(), static_cast<long long>(count)), fault.empty(),
                  fault);
    }
  }

 private:
  static std::string result(const Shell& shell, const Work& work, int status) {
    return shell.script("cd w && STATUS=" + std::to_string(status) + " && { " + work.result + "; }").output;
  }

  // Runs the command in a copy of its folder. How many there were of the kind.
  int64_t begin_place(const Shell& shell, const Work& work, const char* kind, int64_t place, bool stays) {
    const std::string fail =
        text("FAIL_KIND=%s FAIL_AT=%lld FAIL_STAYS=%d FAIL_LOG=../log", kind, static_cast<long long>(place), stays);
    const std::string library = " LD_PRELOAD='" + library_ + "' ";
    outcome_ = shell.script("rm -rf w log; cp -r base w; cd w && timeout -s KILL 20 env " + fail + library +
                            with_programs("BIN/" + work.command, programs_) +
                            " > out 2> errors; status=$?; cat errors; exit $status");
    failed_ = shell.script("cat log").output;
    return parse_integer(failed_.substr(0, failed_.find(' '))).value_or(0);
  }

  // What is wrong when this one fails; empty: nothing.
  std::string fault_at(const Shell& shell, const Work& work, const char* kind, int64_t place, bool stays,
                       const std::string& good, const std::string& good_again) {
    begin_place(shell, work, kind, place, stays);
    const std::string program = work.command.substr(0, work.command.find(' '));
    const std::string where =
        text("FAIL_KIND=%s FAIL_AT=%lld FAIL_STAYS=%d", kind, static_cast<long long>(place), stays) + " (" +
        std::string(trim(failed_)) + "): status " + std::to_string(outcome_.status) + ", " + outcome_.output;
    if (outcome_.status > 2) return where + ": expected 0, 1 or 2";
    // Before main() a program does not know its name.
    const int64_t lines = complaints(outcome_.output, program) + complaints(outcome_.output, "petroglyph");
    if (lines != (outcome_.status != 0)) return where + ": expected a line, and one alone, where it stops";
    if (outcome_.status == 0) {
      const std::string found = result(shell, work, 0);
      return found == good ? "" : where + ": another result, " + found;
    }
    const Outcome again = shell.script("cd w && { " + with_programs(work.again, programs_) + "; } > out");
    const std::string found = result(shell, work, 1);
    return found == good_again ? "" : where + "; afterwards: " + again.output + ", " + found;
  }

  Test& test_;
  std::string programs_, library_;
  int places_;
  Dice dice_;
  Outcome outcome_ = {};
  std::string failed_;
};

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  return run_program("failing_calls", [&] {
    int places = 20;
    uint64_t seed = 1;
    Options options("failing_calls", "Lets allocations and system calls of programs fail, one at a time.");
    options.add("places", &places, 1, 1 << 30, "of each kind and each work");
    options.add("seed", &seed, 0, 1 << 30, "other places");
    options.parse({argv + 1, argv + argc});
    work_in_memory();
    const std::string folder = std::filesystem::absolute(argv[0]).parent_path().parent_path().string();
    const TemporaryFolder libraries;
    const std::string library = libraries.file("failing_calls.so");
    const bool made = make_library(library);
    Test test(1, argv);
    for (const Work& work : works())
      test.run(work.name, [&] {
        if (!made)
          return test.skip("all", "no library can be preloaded here: expected Linux with glibc, and a compiler");
        FailingCalls(test, folder, library, places, seed).disturb(work);
      });
    return test.finish();
  });
}
