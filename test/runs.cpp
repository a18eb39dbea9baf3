// Runs that are disturbed: two processes in one folder, killed studies, damaged logs, closed streams, other command
// lines on --resume. Nothing is lost, and every error is one line.

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <filesystem>

#include "address_sanitizer.h"
#include "base/atomic_file.h"
#include "base/log.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "check.h"
#include "dice.h"
#include "shell.h"

namespace petroglyph {
namespace {

// Two blocks, strings of four letters: a step takes a millisecond.
const std::string MAMBA =
    " --length 4 --width 12 --layers 2 --batch 8 --eval-samples 8 --eval-every 4 --stop-at 2 --threads 1 ";
const std::string SMALL = MAMBA + "--hidden 12 ";
const std::string TEXT =
    " --width 8 --layers 1 --heads 2 --context 8 --batch 4 --eval-samples 8 --eval-every 4 --sample-length 0 --threads "
    "1 ";
const std::string REGULAR =
    " --width 8 --heads 2 --batch 8 --eval-samples 8 --steps 6 --test-strings 8 --threads 1 --train-length 10 "
    "--test-from 11 --test-to 14 ";

class RunsTest : ProgramChecks {
 public:
  RunsTest(Test& test, std::string programs) : ProgramChecks(test), programs_(std::move(programs)) {}

  // A run that is still going, and a second process that would resume it.
  void two_processes() {
    const Shell shell(program("train_copy"));
    const std::string steps = " --batch 512 --steps 150 --save-every 5 ";
    const std::string whole = shell.run("--name whole" + SMALL + steps).weights();
    const Outcome both = shell.script(
        begin("train_copy", "--name a" + SMALL + steps, "first") + wait_for_lines("runs/a/log.csv", 5) +
        "kill -STOP $child; train_copy --resume --name a; echo second $?; kill -CONT $child; wait $child; cat first");
    test_.check("the second is refused",
                both.prints("runs/a: another process is at work in this folder, or a child of one; nothing was "
                            "changed\nsecond 1"),
                both.output);
    test_.equal("the first is not disturbed", both.weights(), whole);
    test_.equal("nor its log", shell.log("a"), shell.log("whole"));
  }

  // A study that is killed, or ended by a signal: the same command continues it.
  void killed_study() {
    const Shell shell(program("scaling"));
    const std::string study =  // long enough for a signal to come between its first checkpoint and its end
        " --budgets 2e8 --widths 4,8,16 --models mlp_lm --context 4 --embedding 4 --heads 1 "
        "--batch 8 --eval-samples 8 --data text --threads 1 --save-every 20 ";
    std::string text;
    for (int i = 0; i < 400; ++i) text += "abc"[i * i % 3], text += i % 7 ? ' ' : '\n';
    shell.write("text", text);
    const Outcome whole = shell.run("--name whole" + study);
    test_.check("a study", whole.status == 0, whole.output);
    const Outcome outcome = shell.script(begin("scaling", "--name a" + study, "first") +
                                         wait_until("ls runs/a/*/model.safetensors > files 2>&1") +
                                         "kill -KILL $child; wait $child; for i in $(seq 200); do scaling --name a" +
                                         study + " && exit 0; sleep 0.1; done; exit 1");
    test_.check("the same command continues", outcome.status == 0, outcome.output);
    test_.equal("to the same points", shell.read("runs/a/points.csv"), shell.read("runs/whole/points.csv"));
    const Outcome ended = shell.script(begin("scaling", "--name b" + study, "first") +
                                       wait_until("ls runs/b/*/model.safetensors > files 2>&1") +
                                       "kill -TERM $child; wait $child; echo status $?; cat first");
    test_.check("one that is ended names the command that continues",
                ended.prints("status 130") && ended.prints("To continue, repeat the command with --name b.\n"),
                ended.output);
    // Points that cannot be written: the next process writes them.
    shell.script("mkdir -p runs/c/points.csv/x");
    expect(shell, "points that cannot be written", "--name c" + study, 1, "runs/c/points.csv");
    shell.script("rm -r runs/c/points.csv");
    expect(shell, "are written later", "--name c" + study, 0, "weights");
    test_.equal("as if nothing had been", shell.read("runs/c/points.csv"), shell.read("runs/whole/points.csv"));
  }

  // The log is held against the checkpoint.
  void damaged_logs() {
    const Shell shell(program("train_copy"));
    shell.run("--name a --steps 6" + SMALL);
    const std::string path = shell.file("runs/a/log.csv"), good = read_bytes(path);
    const std::string checkpoint = shell.read("runs/a/model.safetensors");
    std::vector<std::string> lines = split(good, '\n');
    const auto refuse = [&](const std::string& name, const std::vector<std::string>& damaged,
                            const std::string& words) {
      write_bytes(path, join(damaged, "\n"));
      const Outcome outcome = expect(shell, name, "--name a --resume --steps 9", 1, "runs/a/log.csv" + words);
      test_.check(name + ": one line, nothing changed",
                  std::count(outcome.output.begin(), outcome.output.end(), '\n') == 1 &&
                      outcome.prints("nothing was changed") && read_bytes(path) == join(damaged, "\n") &&
                      shell.read("runs/a/model.safetensors") == checkpoint,
                  outcome.output);
    };
    std::vector<std::string> some(lines.begin(), lines.begin() + 4);
    refuse("truncated", some, ": ends before the row of step 2");
    some = lines;
    some.erase(some.begin() + 3);
    refuse("a row taken out", some, ": its rows before step 6 are not those");
    some = lines;
    std::swap(some[2], some[3]);
    refuse("spliced", some, ": its rows before step 6 are not those");
    some = lines;
    for (size_t i = 1; i + 1 < some.size(); ++i) some[i] = std::to_string(i) + some[i].substr(some[i].find(','));
    refuse("renumbered", some, ": its rows before step 6 are not those");
    some = lines;
    some[3].replace(some[3].find(',') + 1, 1, "9");
    refuse("another loss", some, ": its rows before step 6 are not those");
    std::filesystem::remove(path);
    expect(shell, "missing", "--name a --resume --steps 9", 1, "runs/a/log.csv: is missing");
    write_bytes(path, good);
    test_.check("the good one again", shell.run("--name a --resume --steps 9").status == 0);
  }

  // The first checkpoint is early, whatever --save-every is, and two signals at once count as one.
  void soon_saved() {
    const Shell shell(program("train_copy"));
    const std::string long_run = SMALL + "--batch 256 --steps 1000000 --save-every 1000000 ";
    const Outcome killed = shell.script(begin("train_copy", "--name a" + long_run, "first") +
                                        wait_until("[ -e runs/a/model.safetensors ] && [ -e runs/a/index.html ]") +
                                        "kill -KILL $child; wait $child; echo status $?");
    test_.check("a checkpoint of a killed run", killed.prints("status 137"), killed.output);
    const std::string page = shell.read("runs/a/index.html");
    test_.check(
        "the page of a run that goes on reloads itself",
        page.find("http-equiv=\"refresh\"") != std::string::npos && page.find("src=\"curve.svg?") != std::string::npos,
        page);
    const Outcome twice =
        shell.script(begin("train_copy", "--name b" + long_run, "first") + wait_for_lines("runs/b/log.csv", 20) +
                     "kill -TERM $child; kill -CONT $child; kill -TERM $child; wait $child; echo status $?; cat first");
    test_.check("two signals at once are one", twice.prints("status 130") && twice.prints("Interrupted after step"),
                twice.output);
    const SafetensorsFile file(shell.file("runs/b/model.safetensors"));
    test_.check("and its checkpoint is of the last step",
                twice.prints("Interrupted after step " + with_commas(std::stoll(file.metadata("step"))) + ".\n"),
                twice.output + file.metadata("step"));
    const Outcome more = shell.run("--name b --resume --steps " + file.metadata("step"));
    test_.check("and goes on", more.status == 0, more.output);
    test_.check("the page of one that has ended stays",
                shell.read("runs/b/index.html").find("refresh") == std::string::npos);
  }

  // A signal ends an evaluation at once; it is repeated on resume. Closing the terminal is a signal.
  void within_an_evaluation() {
    const Shell shell(program("train_copy"));
    const std::string some =
        " --length 4 --width 12 --hidden 12 --layers 1 --batch 8 --eval-every 4 --stop-at 2 --threads 1 ";
    const std::string many = "--eval-samples 600000 --steps 8" + some;  // seconds
    const std::string whole = shell.run("--name whole " + many).weights();
    const Outcome stopped =
        shell.script(begin("train_copy", "--name a " + many, "first") + wait_until("[ -e runs/a/log.csv ]") +
                     "sleep 0.3; kill -HUP $child; wait $child; echo status $?; cat first");
    test_.check("stops, and saves", stopped.prints("status 130") && stopped.prints("Interrupted after step"),
                stopped.output);
    test_.check("not after the next steps", read_csv(shell.file("runs/a/log.csv")).rows() <= 4, stopped.output);
    test_.equal("resumes bit-identically", shell.run("--name a --resume").weights(), whole);
    test_.equal("and the same log", shell.log("a"), shell.log("whole"));
    const Outcome ignored =
        shell.script("trap '' HUP; " + begin("train_copy", "--name b --eval-samples 64 --steps 3000" + some, "first") +
                     wait_for_lines("runs/b/log.csv", 20) + "kill -HUP $child; wait $child; echo status $?");
    test_.check("nohup", ignored.prints("status 0"), ignored.output);
    shell.run("--eval-samples 8 --steps 1" + some), shell.run("--eval-samples 8 --steps 1" + some);
    expect(shell, "without a name the first one is resumed", "--resume", 0, "saved runs/copy ");
    expect(shell, "and without a name one is told the folder", "--quiet --eval-samples 8 --steps 1" + some, 0,
           "saved runs/copy-3 ");
    shell.script(": > runs/file");
    expect(shell, "a file where the folder would be", "--name file" + some, 1,
           "runs/file: exists already; choose another --name");
    shell.script("mkdir -p runs/left");
    expect(shell, "a folder without a checkpoint", "--name left" + some, 1,
           "runs/left: exists already; choose another --name");
  }

  void what_is_there() {
    const Shell shell(program("train_copy"));
    const std::string list = "--compare rnn:hidden=8,transformer:heads=2 ";
    shell.run(list + "--name c --steps 3" + SMALL);
    expect(shell, "another width", list + "--name c --steps 3" + SMALL + "--width 24", 1,
           "this run was started with --width 12");
    // As if it had been killed when the first variant was made.
    shell.script("rm -r runs/c/transformer-heads-2 runs/c/compare.csv");
    const std::string first = shell.read("runs/c/rnn-hidden-8/model.safetensors");
    expect(shell, "the same command again", list + "--name c --steps 3" + SMALL, 0, "transformer:heads=2");
    test_.check("a finished run is kept", shell.read("runs/c/rnn-hidden-8/model.safetensors") == first);
    shell.run("--model transformer --heads 2 --name alone --steps 3" + SMALL);
    test_.equal("it is the run that it would be alone", shell.log("c/transformer-heads-2"), shell.log("alone"));
    expect(shell, "a longer list", "--compare rnn:hidden=8,mamba --name c --steps 3" + SMALL, 0, "mamba");
    expect(shell, "more steps", list + "--name c --steps 5" + SMALL, 0, "at step 5");
    shell.run("--model transformer --heads 2 --name five --steps 5" + SMALL);
    test_.equal("continue each run", shell.log("c/transformer-heads-2"), shell.log("five"));
    expect(
        shell, "a folder of runs", "--resume --name c", 1,
        "runs/c: several runs are in this folder (mamba, rnn-hidden-8, transformer-heads-2); to continue them repeat");
    expect(shell, "a run is no comparison", list + "--name alone" + SMALL, 1,
           "runs/alone: a single run is in this folder");
    shell.script("mkdir -p runs/e; head -n 3 runs/alone/log.csv > runs/e/log.csv");
    expect(shell, "a log without a checkpoint", "--resume --name e", 1, "no checkpoint to resume from in this folder");
    expect(shell, "a variant's name", "--compare name=1,name=2" + SMALL, 2, "--name is common to all variants");
    expect(shell, "a variant's threads", "--compare rnn:threads=2" + SMALL, 2, "--threads is common to all variants");
  }

  // Input files that changed after a run or a comparison was started.
  void changed_behind_its_back() {
    const Shell shell(program("train_text"));
    std::string words;
    for (int i = 0; i < 60; ++i) words += "Once there was a stone. " + std::to_string(i * i) + "\n";
    shell.write("x.txt", words);
    const std::string small =
        " --data x.txt --width 8 --layers 1 --heads 2 --context 8 --batch 4 --eval-samples 8 "
        "--sample-length 0 --threads 1 --schedule constant --steps 2 ";
    shell.run("--name a" + small);
    shell.script("tr o u < x.txt > y.txt; mv y.txt x.txt");
    expect(shell, "other data", "--name a --resume --steps 4", 1, "runs/a: its samples are not those");
    shell.write("x.txt", words);
    expect(shell, "the same data again", "--name a --resume --steps 4", 0, "weights");
    shell.script("mkdir there; tr e a < x.txt > there/other.txt; mv x.txt there");
    expect(shell, "data that are gone", "--name a --resume --steps 5", 1, "x.txt: ");
    expect(shell, "data that moved", "--name a --resume --steps 5 --data there/x.txt", 0, "weights");
    expect(shell, "and are remembered", "--name a --resume --steps 6", 0, "weights");
    expect(shell, "other data elsewhere", "--name a --resume --steps 7 --data there/other.txt", 1,
           "runs/a: its samples are not those");
    expect(shell, "no data", "--name a --resume --steps 7 --data=", 2, "--data");
    shell.script("cp there/x.txt near.txt");
    const std::string previous = shell.read("runs/a/previous.safetensors");
    expect(shell, "data that moved once more, and nothing to learn", "--name a --resume --data near.txt", 0, "weights");
    test_.check("keep the checkpoint before", shell.read("runs/a/previous.safetensors") == previous);
    shell.script("rm there/x.txt");
    expect(shell, "are remembered, too", "--name a --resume", 0, "weights");
    shell.script("cp near.txt there/x.txt");
    shell.run("--name both --compare rnn,transformer --val there/x.txt" + small + "--data there/x.txt");
    shell.script("mkdir far; mv there/x.txt far");
    expect(shell, "a comparison whose data moved",
           "--name both --compare rnn,transformer" + small + "--data far/x.txt --val far/x.txt --steps 3", 0,
           "transformer");
    shell.write("v.txt", std::string(100, 'v'));
    shell.write("x.txt", words);
    shell.run("--name v --val v.txt" + small);
    for (const size_t place : {5, 45, 85}) {
      std::string changed(100, 'v');
      changed[place] = 'w';
      shell.write("v.txt", changed);
      expect(shell, text("one letter of the text for evaluations, %zu", place), "--name v --resume --steps 4", 1,
             "runs/v: its samples are not those");
    }
    a_study_of_other_data(words);
  }

  // Later runs of a study would be in one table with runs that were trained on the earlier text.
  void a_study_of_other_data(const std::string& words) {
    const Shell shell(program("scaling"));
    shell.write("x.txt", words);
    const std::string small =
        " --widths 4,8,16 --context 4 --embedding 4 --heads 1 --batch 8 --eval-samples 8 --models mlp_lm "
        "--threads 1 ";
    const std::string whole = shell.run("--name whole --budgets 2e7,4e7 --data x.txt" + small).weights();
    shell.run("--name s --budgets 2e7 --data x.txt" + small);
    shell.script("mkdir there; cp x.txt there; tr o u < there/x.txt > x.txt");
    const std::string more = "--name s --budgets 2e7,4e7" + small;
    const std::string before = shell.read("runs/s/points.csv");
    expect(shell, "a study of other data", more + "--data x.txt", 1, "its samples are not those");
    test_.equal("changes no point", shell.read("runs/s/points.csv"), before);
    test_.equal("data that moved continue", shell.run(more + "--data there/x.txt").weights(), whole);
  }

  // A variant that was not started takes from --init what it would have taken at first: its rate, its sizes.
  void variant_from_a_checkpoint() {
    const Shell shell(program("train_text"));
    const std::string tiny = " --batch 2 --eval-samples 2 --sample-length 0 --threads 1 --warmup 0 ";
    shell.run("--name b --steps 1 --width 12 --layers 1 --heads 2 --context 8" + tiny);
    const Outcome whole =
        shell.run("--name c --compare weight-decay=0,weight-decay=0.1 --init runs/b --steps 2" + tiny);
    test_.check("two of one checkpoint", whole.status == 0, whole.output);
    const std::string table = shell.read("runs/c/compare.csv");
    shell.script("rm -r runs/c/weight-decay-0.1 runs/c/compare.csv");
    expect(shell, "continues where one was not started",
           "--name c --compare weight-decay=0,weight-decay=0.1 --init runs/b --steps 2" + tiny, 0, "saved runs/c");
    test_.equal("with the same result", shell.read("runs/c/compare.csv"), table);
  }

  void interrupted_comparison() {
    const Shell shell(program("train_copy"));
    const Outcome stopped = shell.script(
        begin("train_copy", "--compare rnn:hidden=8,transformer:heads=2 --steps 1000000 --name c" + SMALL, "first") +
        wait_for_lines("runs/c/rnn-hidden-8/log.csv", 3) + "kill -INT $child; wait $child; echo status $?; cat first");
    test_.check("names the command that continues",
                stopped.prints("status 130") && stopped.prints("To continue, repeat the command with --name c.\n"),
                stopped.output);
    expect(shell, "which continues", "--compare rnn:hidden=8,transformer:heads=2 --steps 1 --name c" + SMALL, 0,
           "saved runs/c");
  }

  // The test options of a run on regular languages are its own.
  void regular() {
    const Shell shell(program("train_regular"));
    const std::string seeds = "--seeds 1,2 --parity-probability 10";
    shell.run("--name whole " + seeds + REGULAR);
    shell.run("--name a " + seeds + REGULAR + "--steps 3");
    expect(shell, "more steps", "--name a " + seeds + REGULAR, 0, "at the training length");
    same_files(shell, "with the tests of before: ", "runs/a/", "runs/whole/", {"results.csv", "probabilities.csv"});
    const std::string before = shell.read("runs/a/results.csv");
    expect(shell, "another test", "--name a " + seeds + REGULAR + "--test-to 12", 0, "results.csv");
    const auto kept = [&](const char* name) {
      const std::string path = shell.file(std::string("runs/a/results.csv.before") + name);
      return std::filesystem::exists(path) && read_bytes(path) == before;
    };
    test_.check("the results of the first stay", kept("") || kept("-2"));
    expect(shell, "one more seed", "--name a --seeds 1,3" + REGULAR, 0, "parity_check, seed 3");
    for (const auto& [words, said] :
         {std::pair("--seed 1 --seeds 2", "--seed 1: --seeds is given as well"),
          {"--all-tasks --task D_2", "--task D_2: --all-tasks are every language"},
          {"--task D_2 --parity-probability 10", "--parity-probability: only for --task parity_check"},
          {"--leading-plus", "--leading-plus: only for --task modular_arithmetic"}})
      expect(shell, words, words + REGULAR, 2, said);
  }

  // A refused command leaves all runs as they are.
  void refused_again() {
    const auto again = [&](const char* name, const std::string& started, const std::string& refused, int status,
                           const std::string& message) {
      const Shell shell(program(name));
      shell.run("--name a " + started);
      const std::string before = shell.script("cd runs/a; cat */log.csv */model.safetensors | cksum").output;
      expect(shell, refused, "--name a " + started + refused, status, message);
      test_.equal(refused + ": nothing changed",
                  shell.script("cd runs/a; cat */log.csv */model.safetensors | cksum").output, before);
    };
    again("train_copy", "--compare causal_rn,transformer:schedule=cosine --steps 3" + SMALL, "--steps 6", 1,
          "this run's cosine schedule was laid out over 3 steps");
    again("train_regular",
          "--all-tasks --quiet --test-every 9 --heads 2 --width 8 --batch 8 --steps 1 "
          "--test-strings 2 --eval-samples 8 --threads 1 ",
          "--test-to 45", 2, "--test-from 51, --test-to 45: expected them in rising order");
    again("train_regular", "--task D_2" + REGULAR, "--parity-probability 10", 2,
          "--parity-probability: only for --task parity_check, not for D_2");
  }

  // Before the first one learns it shows that the last one's weights would not fit.
  void from_weights_of_one_language() {
    const Shell shell(program("train_regular"));
    shell.run("--name parity --task parity_check" + REGULAR);
    expect(shell, "weights for some", "--quiet --name b --all-tasks --init runs/parity/parity_check-seed-1" + REGULAR,
           1, "this model wants");
    test_.check("nothing was begun", !shell.exists("runs/b"));
  }

  // Words of comparisons that are odd but right, or wrong.
  void odd_comparisons() {
    const Shell shell(program("train_text"));
    expect(shell, "options end", "--compare transformer,mamba --steps 1" + TEXT + "--", 0, "mamba");
    expect(shell, "a floor that one of them has",
           "--lr-floor 1e-6 --compare schedule=constant,schedule=cosine --steps 1" + TEXT, 0, "saved");
    expect(shell, "a setting that has no effect", "--compare schedule=constant:lr-floor=1e-6,mamba --steps 1" + TEXT, 2,
           "--lr-floor 1e-6: does nothing with --schedule constant");
    expect(shell, "a mistyped option", "--compare transformer:widht=8,mamba --steps 1" + TEXT, 2,
           "did you mean --width?");
    expect(shell, "no name of a folder", "--compare .transformer --steps 1" + TEXT, 2,
           "--model .transformer: expected one of");
    shell.run("--name t --steps 1" + TEXT);
    shell.script("cp runs/t/model.safetensors 'a\"b'");
    shell.run("--name odd --compare 'init=a\"b,seed=2' --steps 1" + TEXT);
    const std::string table = shell.read("runs/odd/compare.csv");
    test_.check("a label with quotes", table.find("\n\"init=a\"\"b\",") != std::string::npos, table);
    expect(shell, "more epochs than steps", "--epochs 1048576 --batch 1" + TEXT + "--context 1 --batch 1", 2,
           "steps, expected 2,147,483,648 at most");
    expect(shell, "a kind of what is not there", "--mlp-activation relu --gelu tanh --steps 1" + TEXT, 2,
           "--gelu tanh: does nothing with --mlp-activation relu");
#if !ASAN  // which wants all addresses there are
    const Outcome large =
        Shell(program("train_copy")).run("--evaluate-lengths 65536 --steps 1" + SMALL, "ulimit -v 1000000;");
    test_.check("a length that memory is too small for",
                large.status == 1 && large.prints("train_copy: not enough memory"), large.output);
#endif
  }

  // What a process that was killed left of a snapshot.
  void cut_snapshots() {
    const Shell shell(program("train_copy"));
    shell.run("--name a --steps 2 --snapshots 1" + SMALL);
    shell.write("runs/a/snapshots/.petroglyph-7-1.tmp", "half");
    expect(shell, "goes on", "--resume --name a --steps 3", 0, "saved");
    test_.check("is taken away", !shell.exists("runs/a/snapshots/.petroglyph-7-1.tmp"));
    test_.check("others stay", shell.exists("runs/a/snapshots/step-1.safetensors"));
  }

  // A configuration that no run of ours wrote, in a file that is whole otherwise.
  void odd_configurations() {
    const Shell shell(program("train_text"));
    shell.script("train_text --quiet --name t --steps 0" + TEXT +
                 "; train_text --quiet --name d --steps 0 --model dct_mlp" + TEXT);
    const auto refused = [&](const char* run, const std::string& key, const Json& value, const std::string& words) {
      const std::string model = run == std::string("d") ? "dct_mlp" : "transformer";
      const SafetensorsFile file(shell.file(std::string("runs/") + run + "/model.safetensors"));
      SafetensorsWriter writer;
      for (const auto& [name, content] : file.metadata())
        writer.metadata(name, name != "config" ? content : Json::parse(content, "config").set(key, value).text());
      std::deque<std::vector<float>> kept;
      for (const std::string& name : file.names())
        writer.add(name, file.entry(name).shape, kept.emplace_back(file.read<float>(name)).data());
      writer.save(shell.file("odd.safetensors"));
      expect(shell, key + " " + value.text(),
             "--init odd.safetensors --steps 1 --quiet --eval-samples 1 --sample-length 0", 1,
             "odd.safetensors: " + model + ": " + words);
    };
    refused("t", "heads", 0, "heads 0 out of range 1 to 65536");
    refused("t", "heads", int64_t(1) << 32, "heads 4294967296 out of range 1 to 65536");
    refused("t", "context", (int64_t(1) << 32) + 8, "context 4294967304 out of range 1 to 16777216");
    refused("t", "heads", "2", "heads: expected a number, found a string");
    refused("t", "heads", 3, "heads 3 does not divide width");
    expect(shell, "heads of the command line", "--init runs/t --heads 4 --steps 1", 2,
           "--heads 4: does nothing with --init runs/t");
    refused("d", "frequencies", Json::array(), "frequencies");
    refused("d", "windows", Json::array(), "windows");
  }

  // Ctrl-C while a run that is done is drawn, or what follows is measured: what is written of it is right.
  void interrupted_at_its_end() {
    const Shell shell(program("train_text"));
    const std::string lengths = " --evaluate-lengths 4,8 --steps 0" + TEXT;
    shell.run("--name whole" + lengths);
    const std::string table = shell.read("runs/whole/lengths.csv");
    for (int turn = 0; turn < 16; ++turn) {
      const std::string name = text("turn-%d", turn), log = "runs/" + name + "/log.csv";
      const Outcome outcome = shell.script(
          begin("train_text", "--name " + name + lengths, "said") + wait_for_lines(log, 1) +
          text("sleep 0.%02d; kill -%s $child; ", turn / 2, turn % 2 ? "TERM" : "INT") + "wait $child; echo status $?");
      const std::string path = shell.file("runs/" + name + "/lengths.csv");
      const bool done = outcome.prints("status 0\n"), there = std::filesystem::exists(path);
      test_.check("a table that is there is right", there ? read_bytes(path) == table : !done, outcome.output);
    }
  }

  // Weights from which the loss is not finite are never saved, and the last good ones are kept.
  void divergence() {
    const Shell shell(program("train_copy"));
    const Outcome outcome =
        shell.run("--name a --model mamba --lr 10 --warmup 0 --clip 0 --save-every 1 --steps 50" + MAMBA);
    const std::string where = "the loss is nan at step 13: training has diverged",
                      there = "runs/a/model.safetensors holds step 12, previous.safetensors the one before";
    test_.check("diverges", outcome.status == 1 && outcome.prints(where), outcome.output);
    test_.check("and says what is there", outcome.prints(there), outcome.output);
    expect(shell, "or that nothing is",
           "--name soon --model mamba --lr 1000 --warmup 0 --clip 0 --save-every 1" + MAMBA, 1,
           "there is no checkpoint yet");
    shell.run("--name b --steps 6 --save-every 2" + SMALL);
    const SafetensorsFile last(shell.file("runs/b/model.safetensors")),
        before(shell.file("runs/b/previous.safetensors"));
    test_.equal("the last two are kept", before.metadata("step") + " " + last.metadata("step"), "4 6");
    shell.script("cp runs/b/previous.safetensors runs/b/model.safetensors");
    const Outcome again = shell.run("--name b --resume");
    test_.equal("the one before resumes bit-identically", again.weights(),
                shell.run("--name c --steps 6" + SMALL).weights());
    // From the last checkpoint that a diverging run left, its next loss is finite.
    expect(shell, "the next loss is finite", "--name a --resume", 1, where);
  }

  void streams_and_files() {
    const Shell shell(program("train_copy"));
    const Outcome whole = shell.run("--name whole --steps 6" + SMALL);
    shell.run("--name a --steps 6" + SMALL + ">&- 2>&- <&-");
    test_.equal("closed streams: the log is a log", shell.log("a"), shell.log("whole"));
    test_.check("a checkpoint", SafetensorsFile(shell.file("runs/a/model.safetensors")).metadata("step") == "6");
    shell.script("mkdir -p runs/p; mkfifo runs/p/model.safetensors");
    expect(shell, "a pipe for a checkpoint", "--name p --resume", 1,
           "runs/p/model.safetensors: expected a file, found something else");
    const std::string long_name(256, 'n');
    expect(shell, "a long name", "--name " + long_name + SMALL, 1, std::strerror(ENAMETOOLONG));
    expect(shell, "a long file name", "--init " + long_name + SMALL, 1, std::strerror(ENAMETOOLONG));
    expect(Shell(program("generate")), "a long checkpoint", long_name, 1,
           std::string(": ") + std::strerror(ENAMETOOLONG));
    shell.script("mv runs kept; ln -s nowhere runs");
    expect(shell, "runs leads nowhere", "--steps 1" + SMALL, 1, "runs/copy: cannot make the folder: ");
    const Shell text(program("train_text"));
    text.write("a[1].txt", std::string(300, 'x') + "\n");
    expect(text, "a file with a pattern's name", "--data 'a[1].txt' --val 'a[1].txt' --steps 1" + TEXT, 0, "weights");
    expect(text, "a pattern without files", "--data 'b*.txt'" + TEXT, 1, "b*.txt: no file has such a name");
    const Outcome lines = text.run("--data 'no\n\x1b[2Jfile'" + TEXT);
    test_.check(
        "a name of two lines",
        lines.status == 1 && lines.output.find('\n') + 1 == lines.output.size() && lines.prints("no\\n\\x1B[2Jfile: "),
        lines.output);
    expect(text, "epochs and steps", "--epochs 1 --steps 2" + TEXT, 2, "--epochs 1: in place of --steps");
  }

  // What we did not write is never replaced.
  void overwriting() {
    const Shell shell(program("tokenize"));
    shell.write("text", "one two one two one two\n");
    shell.write("mine", "precious");
    const std::string learn = "text --train 258 --save mine";
    expect(shell, "a tokenizer over a file", learn, 1, "mine: exists already; choose another name, or --force");
    test_.equal("which stays", shell.read("mine"), "precious");
    expect(shell, "unless it is wanted", learn + " --force", 0, "learnt");
    test_.check("and is replaced then", shell.read("mine") != "precious");
    shell.run("text --out s");
    expect(shell, "shards over shards", "text --out s", 1, "s_000000.bin: exists already");
    expect(shell, "unless they are wanted", "text --out s --force", 0, "s_000000.bin: ");
    shell.write("odd", "caf\u00E9\n");
    const std::string before = shell.read("s_000000.bin");
    expect(shell, "a later file that is refused", "odd text odd --tokenizer ascii --out s --force", 1, "odd: ");
    expect(shell, "in whatever place", "text odd --tokenizer ascii --out s --force", 1, "odd: ");
    test_.equal("leaves the shards of before", shell.read("s_000000.bin"), before);
    const std::string encoding = shell.read("mine");
    expect(shell, "a tokenizer of a text that is refused", "odd --tokenizer ascii --save mine --force", 1, "odd: ");
    test_.equal("leaves the one of before", shell.read("mine"), encoding);
    shell.write("short.bin", "x");
    expect(shell, "or of shards that are", "short.bin --decode --save mine --force", 1,
           "short.bin: no shard of tokens");
    test_.equal("too", shell.read("mine"), encoding);
    const Shell inspect(program("inspect"));
    inspect.script("train_regular --quiet --name a" + REGULAR +
                   "; mkdir out; echo x > out/clusters.svg; "
                   "echo x > out/receptive_field.csv");
    const std::string run = " runs/a/parity_check-seed-1 --length 20 --out out";
    expect(inspect, "clusters over a file", "clusters" + run, 0, "saved out (clusters.csv, clusters.svg)");
    expect(inspect, "a receptive field over a file", "receptive-field" + run, 0, "saved out");
    for (const char* name : {"clusters.svg", "receptive_field.csv"})
      test_.equal(std::string("which is kept: ") + name, inspect.read(std::string("out/") + name + ".before"), "x\n");
    beside_a_checkpoint(inspect);
    folder_of_a_conversion();
    conversion_over_its_model();
  }

  // What is read is no place to write to, with --force neither.
  void conversion_over_its_model() {
    const Shell convert(program("convert"));
    convert.script("train_text --quiet --name g --norm affine --gelu tanh --tied-head" + TEXT +
                   "--steps 1; convert runs/g --to hf --save hf; convert runs/g --to llm.c --save g.bin; mkdir l; ln "
                   "-s ../runs/g l/g; ln runs/g/model.safetensors hard");
    const std::string all = "cat runs/g/model.safetensors hf/* g.bin | cksum";
    const std::string before = convert.script(all).output;
    for (const char* const arguments :
         {"runs/g --to llm.c --save runs/g/model.safetensors", "runs/g --to hf --save runs/g",
          "runs/g --to llm.c --save l/g/model.safetensors", "runs/g --to llm.c --save hard",
          "hf --save hf/model.safetensors", "hf --save hf/config.json", "g.bin --save g.bin",
          "hf --tokenizer runs/g --save runs/g/model.safetensors"})
      for (const char* force : {"", " --force"})
        expect(convert, arguments, std::string(arguments) + force, 1, ") and never replaced; choose another name\n");
    expect(convert, "into no folder", "hf --save nosuch/g.safetensors", 1,
           "nosuch/g.safetensors: cannot write: No such file or directory\n");
    expect(convert, "over a folder", "g.bin --save hf --force", 1, "hf: cannot write: Is a directory");
    test_.equal("all that was read stays", convert.script(all).output, before);
  }

  // Without --out a figure lies beside its checkpoint, and what lay there is kept.
  void beside_a_checkpoint(const Shell& inspect) {
    inspect.script("mkdir own; cp runs/a/parity_check-seed-1/model.safetensors own; echo mine > own/clusters.svg");
    for (const char* turn : {"first", "again"})
      expect(inspect, std::string("beside its checkpoint, ") + turn, "clusters own/model.safetensors --length 20", 0,
             "saved own (clusters.csv, clusters.svg)");
    test_.equal("what lay there is kept", inspect.read("own/clusters.svg.before"), "mine\n");
    test_.check("and the same twice is not",
                !inspect.exists("own/clusters.svg.before-2") && !inspect.exists("own/clusters.csv.before"));
  }

  void folder_of_a_conversion() {
    const Shell convert(program("convert"));
    convert.script("train_text --quiet --name a --model transformer --norm affine --gelu tanh" + TEXT +
                   "--steps 1; mkdir out; echo mine > out/config.json; echo mine > out/notes");
    const std::string back = "runs/a --to hf --save out";
    expect(convert, "a conversion into a folder", back, 1, "out: exists already; choose another name, or --force");
    test_.equal("whose files stay", convert.read("out/config.json"), "mine\n");
    expect(convert, "unless it is wanted", back + " --force", 0, "saved out");
    convert.script("mv out/config.json there; ln -s ../there out/config.json");
    expect(convert, "but no link", back + " --force", 1, "out/config.json: expected a file or a folder; a link");
    convert.script("rm out/config.json; mv there out/config.json; mkfifo pipe");
    expect(convert, "a pipe for a model", "pipe", 1, "pipe: expected a file or a folder, found something else");
    expect_script(convert, "a pipe for a tokenizer", "timeout 20 train_text --tokenizer pipe --steps 1", 1,
                  "train_text: pipe: expected a file, found something else");
    test_.check("its files are replaced, and no others",
                convert.read("out/config.json") != "mine\n" && convert.read("out/notes") == "mine\n");
  }

  // A finished run, a longer one, and what its page lists.
  void extended() {
    const Shell shell(program("train_text"));
    shell.write("x.txt", std::string(2000, 'a'));
    const Outcome first = shell.run("--data x.txt --name a --steps 4 --no-keep-best" + TEXT);
    test_.check("--no-keep-best", !shell.exists("runs/a/best.safetensors"), first.output);
    expect(shell, "beyond a cosine schedule", "--resume --name a --steps 6", 1,
           "this run's cosine schedule was laid out over 4 steps; to train longer: --resume --name a --extend N");
    expect(shell, "a finished run", "--resume --name a", 0, "To train longer: --resume --name a --extend N");
    expect(shell, "extended", "--resume --name a --extend 2 --sample-length 4", 0, "Finished at step 6.");
    const std::string page = shell.read("runs/a/index.html");
    const auto has = [&](const char* words) { return page.find(words) != std::string::npos; };
    test_.check("its page has the options that its model uses", has("--heads") && !has("--state") && !has("--conv"),
                page);
    test_.check("and the last sample", has("<h2>Sample</h2>\n<pre>"), page);
    const Shell copy(program("train_copy"));
    copy.run("--compare rnn,mamba --name c --steps 2 --width 8 --length 4 --batch 4 --eval-samples 8 --threads 1");
    test_.check("the page of a comparison has its figure",
                copy.read("runs/c/index.html").find("compare.svg") != std::string::npos);
  }

  void schedules() {
    const Shell shell(program("train_copy"));
    expect(shell, "a floor of nothing", "--lr-floor 1e-5" + SMALL, 2,
           "--lr-floor 1e-5: does nothing with --schedule constant");
    const std::string words = " --schedule cosine --warmup 2 --lr 0.001" + SMALL;
    const Outcome whole = shell.run("--name whole --steps 8" + words);
    const std::string last = "runs/parts/model.safetensors";
    shell.run("--name parts --steps 8 --save-every 3" + words);
    shell.script("cp runs/parts/previous.safetensors " + last);
    test_.equal("in its midst", SafetensorsFile(shell.file(last)).metadata("step"), std::string("6"));
    test_.equal("resumed", shell.run("--name parts --resume").weights(), whole.weights());
    const std::vector<double> rates = read_csv(shell.file("runs/whole/log.csv")).column("learning_rate");
    test_.check("the whole rate at step 2", std::abs(rates.at(2) - 0.001) < 1e-9, std::to_string(rates.at(2)));
    test_.check("half of it at step 5", std::abs(rates.at(5) - 0.0005) < 1e-9, std::to_string(rates.at(5)));
    expect(shell, "a cosine of another length", "--name whole --resume --steps 9", 1,
           "--steps 9: this run's cosine schedule was laid out over 8 steps");
  }

  // A run's folder from somebody else: it overwrites nothing, and names no file that is then read.
  void from_somebody_else() {
    const Shell shell(program("train_copy"));
    shell.script("echo precious > victim; mkdir elsewhere");
    shell.run("--name a --steps 2 --snapshots 1" + SMALL);
    shell.script("rm runs/a/.lock; ln -s ../../victim runs/a/.lock");
    expect(shell, "a lock that is a link", "--resume --name a --steps 4", 1, "runs/a/.lock: cannot be opened: ");
    expect(shell, "and the same where nothing begins", "--name a" + SMALL, 1, "runs/a: exists already");
    shell.script("rm runs/a/.lock; mv runs/a/snapshots s; ln -s ../../elsewhere runs/a/snapshots");
    expect(shell, "snapshots in a linked folder", "--resume --name a --steps 4", 1,
           "runs/a/snapshots: expected a folder, found a link");
    shell.script(
        "rm runs/a/snapshots; mv s runs/a/snapshots; cp runs/a/log.csv log; cp log before; ln -sf ../../log "
        "runs/a/log.csv");
    shell.run("--resume --name a --steps 4");
    expect(shell, "a log that is a link", "--resume --name a --steps 6", 0, "weights ");
    test_.check("is not written through", shell.script("cmp log before").status == 0);
    test_.equal("nothing was written through any", shell.script("cat victim; ls -A elsewhere").output, "precious\n");

    const Shell text(program("train_text"));
    text.script("printf 'a secret %.0s' $(seq 100) > secret");
    text.run("--quiet --name a --data secret --schedule constant --steps 2" + TEXT);
    const std::string own = text.read("runs/a/model.safetensors");
    test_.check("a run of one's own goes on", text.run("--resume --name a --steps 3").status == 0);
    text.script("rm -r runs/a/*.safetensors");
    save_as_of_another(own, text.file("runs/a/model.safetensors"));
    text.script("head -n 3 runs/a/log.csv > l; mv l runs/a/log.csv");
    const std::string refused =
        "runs/a/model.safetensors: names the file secret, but was not trained by this user on this machine";
    expect(text, "a text that somebody else names", "--resume --name a --steps 3", 1, refused);
    expect_script(text, "nor is it looked at", "inspect receptive-field runs/a", 1, refused);
    expect(text, "but one's own", "--resume --name a --steps 3 --data secret", 0, "weights ");
  }

  // The same checkpoint as another machine would have saved it, without the checksums.
  static void save_as_of_another(const std::string& bytes, const std::string& path) {
    const std::string copy = path + ".copy";
    write_bytes(copy, bytes);
    const SafetensorsFile file(copy);
    SafetensorsWriter writer;
    std::deque<std::vector<float>> kept;
    for (const auto& [key, value] : file.metadata())
      writer.metadata(key, key == "begun_on" ? "0123456789abcdef" : value);
    for (const std::string& name : file.names())
      writer.add(name, file.entry(name).shape, kept.emplace_back(file.read_as_float(name)).data());
    writer.save(path);
    std::filesystem::remove(copy);
  }

  // Text from files and command lines is escaped on a terminal.
  void on_a_terminal() {
    const Shell shell(program("inspect"));
    const float weight = 1;
    SafetensorsWriter writer;
    for (const char* key : {"program", "model"}) writer.metadata(key, "\x1b]0;title\x07\u009b31m\u202e");
    writer.metadata("other\x1b", "\x1b[2J");
    writer.add("w\x1b", {1}, &weight);
    writer.save(shell.file("a.safetensors"));
    shell.script("printf 'abcabc%.0s' 1 2 3 4 > \"$(printf 't\\033]0;x')\"");
    const std::string terminal = shell.run("info a.safetensors").output + shell.run("counts --data t*").output;
    test_.check("nothing that a terminal obeys",
                terminal.find_first_of("\x1b\x07") == std::string::npos &&
                    terminal.find("\u009b") == std::string::npos && terminal.find("\u202e") == std::string::npos,
                terminal);
    test_.check("but all of it", terminal.find("\\x1B]0;title\\x07\\u009B31m\\u202E") != std::string::npos, terminal);
  }

  // A stack of 64 kB, too little memory: a line, or nothing of it is noticed.
  void narrow_machines() {
    const Shell shell(program("train_copy"));
#if !ASAN  // which needs more of both
    const Outcome small = shell.run("--quiet --steps 1" + SMALL, "ulimit -s 64;");
    test_.check("a stack of 64 kB", small.status == 0, small.output);
    const Outcome images = Shell(program("train_image")).run("--batch 1048576 --steps 1", "ulimit -v 4000000;");
    test_.check("images that memory is too small for",
                images.status == 1 && images.prints("train_image: not enough memory"), images.output);
#endif
  }

 private:
  std::string program(const std::string& name) const { return programs_ + "/" + name; }
  // Shell text: starts a program whose words go to a file, and $child is its number.
  std::string begin(const std::string& name, const std::string& arguments, const std::string& output) const {
    return "'" + program(name) + "' " + arguments + " > " + output + " 2>&1 & child=$!; ";
  }

  std::string programs_;
};

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  std::signal(SIGHUP, SIG_DFL);  // ignored under nohup, by all that is started there
  work_in_memory();
  Test test(argc, argv);
  RunsTest runs(test, std::filesystem::absolute(argv[0]).parent_path().parent_path().string());
  test.run("refused again", [&] { runs.refused_again(); });
  test.run("from weights of one language", [&] { runs.from_weights_of_one_language(); });
  test.run("odd comparisons", [&] { runs.odd_comparisons(); });
  test.run("cut snapshots", [&] { runs.cut_snapshots(); });
  test.run("two processes", [&] { runs.two_processes(); });
  test.run("killed study", [&] { runs.killed_study(); });
  test.run("damaged logs", [&] { runs.damaged_logs(); });
  test.run("soon saved", [&] { runs.soon_saved(); });
  test.run("within an evaluation", [&] { runs.within_an_evaluation(); });
  test.run("what is there", [&] { runs.what_is_there(); });
  test.run("changed behind its back", [&] { runs.changed_behind_its_back(); });
  test.run("variant from a checkpoint", [&] { runs.variant_from_a_checkpoint(); });
  test.run("interrupted comparison", [&] { runs.interrupted_comparison(); });
  test.run("regular", [&] { runs.regular(); });
  test.run("odd configurations", [&] { runs.odd_configurations(); });
  test.run("interrupted at its end", [&] { runs.interrupted_at_its_end(); });
  test.run("divergence", [&] { runs.divergence(); });
  test.run("streams and files", [&] { runs.streams_and_files(); });
  test.run("overwriting", [&] { runs.overwriting(); });
  test.run("from somebody else", [&] { runs.from_somebody_else(); });
  test.run("on a terminal", [&] { runs.on_a_terminal(); });
  test.run("narrow machines", [&] { runs.narrow_machines(); });
  test.run("extended", [&] { runs.extended(); });
  test.run("schedules", [&] { runs.schedules(); });
  return test.finish();
}
