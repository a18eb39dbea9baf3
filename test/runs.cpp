// Runs that are disturbed: two processes in one folder, killed studies, damaged logs, closed streams, other command
// lines on --resume. Nothing is lost, and every error is one line.

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "address_sanitizer.h"
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

// Shell text: starts a program whose words go to the file `first`, and $child is its number.
std::string begin(const std::string& command) { return command + " > first 2>&1 & child=$!; "; }
// Ends it, and prints its status and what it printed.
std::string end(const std::string& signal) {
  return "kill -" + signal + " $child; wait $child; echo status $?; cat first";
}

// A run that is still going, and a second process that would resume it.
void two_processes(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string steps = " --batch 512 --steps 150 --save-every 5 ";
  const std::string whole = shell.run("--name whole" + SMALL + steps).weights();
  const Outcome both = shell.expect_script(
      begin("train_copy --name a" + SMALL + steps) + wait_for_lines("runs/a/log.csv", 5) +
          "kill -STOP $child; train_copy --resume --name a; echo second $?; " + end("CONT"),
      0, "runs/a: another process is at work in this folder, or a child of one; nothing was changed\nsecond 1");
  test.equal("the first is not disturbed", both.weights(), whole);
  test.equal("nor its log", shell.log("a"), shell.log("whole"));
}

// A study that is ended by a signal, or cannot write its points: the same command continues it.
void interrupted_study(Test& test) {
  const Shell shell(test, "scaling");
  const std::string study =  // long enough for a signal to come between its first checkpoint and its end
      " --budgets 2e8 --widths 4,8,16 --models mlp_lm --context 4 --embedding 4 --heads 1 "
      "--batch 8 --eval-samples 8 --data text --threads 1 --save-every 20 ";
  std::string text;
  for (int i = 0; i < 400; ++i) text += "abc"[i * i % 3], text += i % 7 ? ' ' : '\n';
  shell.write("text", text);
  shell.expect("--name whole" + study, 0, "weights");
  shell.expect_script(
      begin("scaling --name a" + study) + wait_until("ls runs/a/*/model.safetensors > files 2>&1") + end("TERM"), 0,
      {"status 130", "To continue, repeat the command with --name a.\n"});
  shell.script("mkdir -p runs/a/points.csv/x");
  shell.expect("--name a" + study, 1, "runs/a/points.csv");
  shell.script("rm -r runs/a/points.csv");
  shell.expect("--name a" + study, 0, "weights");
  shell.same_files("runs/a/", "runs/whole/", {"points.csv"});
}

// The log is held against the checkpoint.
void damaged_logs(Test& test) {
  const Shell shell(test, "train_copy");
  shell.run("--name a --steps 6" + SMALL);
  const std::string path = shell.file("runs/a/log.csv"), good = read_bytes(path);
  const std::string checkpoint = shell.read("runs/a/model.safetensors");
  const std::vector<std::string> lines = split(good, '\n');
  std::vector<std::string> cut(lines.begin(), lines.begin() + 4), lacking = lines, spliced = lines, numbered = lines,
                                                                  changed = lines;
  lacking.erase(lacking.begin() + 3);
  std::swap(spliced[2], spliced[3]);
  for (size_t i = 1; i + 1 < lines.size(); ++i) numbered[i] = std::to_string(i) + lines[i].substr(lines[i].find(','));
  changed[3].replace(changed[3].find(',') + 1, 1, "9");
  const std::string other = ": its rows before step 6 are not those";
  for (const auto& [damaged, words] : {std::pair(cut, std::string(": ends before the row of step 2")),
                                       {lacking, other},
                                       {spliced, other},
                                       {numbered, other},
                                       {changed, other}}) {
    write_bytes(path, join(damaged, "\n"));
    const Outcome outcome =
        shell.expect("--name a --resume --steps 9", 1, {"runs/a/log.csv" + words, "nothing was changed"});
    test.check("one line, nothing changed",
               std::count(outcome.output.begin(), outcome.output.end(), '\n') == 1 &&
                   read_bytes(path) == join(damaged, "\n") && shell.read("runs/a/model.safetensors") == checkpoint,
               outcome.output);
  }
  std::filesystem::remove(path);
  shell.expect("--name a --resume --steps 9", 1, "runs/a/log.csv: is missing");
  write_bytes(path, good);
  shell.expect("--name a --resume --steps 9", 0, "weights");
}

// The first checkpoint is early, whatever --save-every is, and two signals at once count as one.
void soon_saved(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string long_run = SMALL + "--batch 256 --steps 1000000 --save-every 1000000 ";
  shell.expect_script(begin("train_copy --name a" + long_run) +
                          wait_until("[ -e runs/a/model.safetensors ] && [ -e runs/a/index.html ]") + end("KILL"),
                      0, "status 137");
  const std::string page = shell.read("runs/a/index.html");
  test.check(
      "the page of a run that goes on reloads itself",
      page.find("http-equiv=\"refresh\"") != std::string::npos && page.find("src=\"curve.svg?") != std::string::npos,
      page);
  const Outcome twice =
      shell.expect_script(begin("train_copy --name b" + long_run) + wait_for_lines("runs/b/log.csv", 20) +
                              "kill -TERM $child; kill -CONT $child; " + end("TERM"),
                          0, {"status 130", "Interrupted after step", "To continue: ./train_copy --resume --name b"});
  const std::string step = SafetensorsFile(shell.file("runs/b/model.safetensors")).metadata("step");
  test.check("its checkpoint is of the last step",
             twice.prints("Interrupted after step " + with_commas(std::stoll(step)) + ".\n"), twice.output + step);
  shell.expect("--name b --resume --steps " + step, 0, "weights");
  test.check("the page of one that has ended stays",
             shell.read("runs/b/index.html").find("refresh") == std::string::npos);
}

// A signal ends an evaluation at once; it is repeated on resume. Closing the terminal is a signal.
void within_an_evaluation(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string some =
      " --length 4 --width 12 --hidden 12 --layers 1 --batch 8 --eval-every 4 --stop-at 2 --threads 1 ";
  const std::string many = "--eval-samples 600000 --steps 8" + some;  // seconds
  const std::string whole = shell.run("--name whole " + many).weights();
  shell.expect_script(
      begin("train_copy --name a " + many) + wait_until("[ -e runs/a/log.csv ]") + "sleep 0.3; " + end("HUP"), 0,
      {"status 130", "Interrupted after step"});
  test.check("not after the next steps", read_csv(shell.file("runs/a/log.csv")).rows() <= 4);
  test.equal("resumes bit-identically", shell.run("--name a --resume").weights(), whole);
  test.equal("and the same log", shell.log("a"), shell.log("whole"));
  shell.expect_script("trap '' HUP; " + begin("train_copy --name b --eval-samples 64 --steps 3000" + some) +
                          wait_for_lines("runs/b/log.csv", 20) + end("HUP"),
                      0, "status 0");
}

// What is in the folder of a name.
void what_is_there(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string list = "--compare rnn:hidden=8,transformer:heads=2 --name c ";
  shell.run(list + "--steps 3" + SMALL);
  shell.run("--model transformer --heads 2 --name alone --steps 5" + SMALL);
  // As if it had been killed when the first variant was made.
  shell.script(
      "rm -r runs/c/transformer-heads-2 runs/c/compare.csv; mkdir -p runs/left runs/e; : > runs/file; "
      "head -n 3 runs/alone/log.csv > runs/e/log.csv");
  const std::string first = shell.read("runs/c/rnn-hidden-8/model.safetensors");
  shell.expect(list + "--steps 3" + SMALL, 0, "transformer:heads=2");
  test.check("a finished run is kept", shell.read("runs/c/rnn-hidden-8/model.safetensors") == first);
  shell.expect(list + "--steps 5" + SMALL, 0, "at step 5");
  test.equal("a variant is the run that it would be alone", shell.log("c/transformer-heads-2"), shell.log("alone"));
  const std::string one = "--quiet --steps 1" + SMALL, exists = ": exists already; choose another --name";
  shell.expect({
      {list + "--steps 5" + SMALL + "--width 24", 1, "this run was started with --width 12"},
      {"--compare rnn:hidden=8,mamba --name c --steps 3" + SMALL, 0, "mamba"},
      {"--resume --name c", 1, "several runs are in this folder (mamba, rnn-hidden-8, transformer-heads-2); to"},
      {"--compare rnn,mamba --name alone" + SMALL, 1, "runs/alone: a single run is in this folder"},
      {"--resume --name e", 1, "no checkpoint to resume from in this folder"},
      {one, 0, "saved runs/copy "},
      {one, 0, "saved runs/copy-2 "},
      {"--resume", 0, "saved runs/copy "},
      {"--name file" + SMALL, 1, "runs/file" + exists},
      {"--name left" + SMALL, 1, "runs/left" + exists},
  });
}

// Input files that changed after a run or a comparison was started.
void changed_behind_its_back(Test& test) {
  const Shell shell(test, "train_text");
  std::string words;
  for (int i = 0; i < 60; ++i) words += "Once there was a stone. " + std::to_string(i * i) + "\n";
  shell.write("x.txt", words);
  const std::string small =
      " --width 8 --layers 1 --heads 2 --context 8 --batch 4 --eval-samples 8 --sample-length 0 --threads 1 "
      "--schedule constant --steps 2 ";
  const std::string others = "its samples are not those", resume = "--name a --resume --steps ";
  shell.run("--name a --data x.txt" + small);
  shell.script("mkdir there; cp x.txt near.txt; mv x.txt kept; tr e a < kept > there/other.txt; tr o u < kept > x.txt");
  shell.expect(resume + "4", 1, "runs/a: " + others);
  shell.script("cp kept x.txt");
  shell.expect(resume + "4", 0, "weights");
  shell.script("mv x.txt there");
  shell.expect({
      {resume + "5", 1, "x.txt: "},
      {resume + "5 --data there/x.txt", 0, "weights"},
      {resume + "6", 0, "weights"},  // the new place is saved
      {resume + "7 --data there/other.txt", 1, "runs/a: " + others},
      {resume + "7 --data=", 2, "--data"},
  });
  // A new place, and nothing to learn.
  const std::string previous = shell.read("runs/a/previous.safetensors");
  shell.expect("--name a --resume --data near.txt", 0, "weights");
  test.check("the checkpoint before is kept", shell.read("runs/a/previous.safetensors") == previous);
  shell.script("mv there/x.txt far.txt");
  const std::string both = "--name both --compare rnn,transformer" + small;
  shell.run(both + "--data kept --val kept");
  shell.expect(both + "--data far.txt --val far.txt --steps 3", 0, "transformer");
  const auto letters = [&](size_t place) {
    std::string text(100, 'v');
    if (place < text.size()) text[place] = 'w';
    shell.write("v.txt", text);
  };
  letters(100);
  shell.run("--name v --data far.txt --val v.txt" + small);
  for (const size_t place : {5, 45, 85}) {
    letters(place);
    shell.expect("--name v --resume --steps 4", 1, "runs/v: " + others);
  }
  // Later runs of a study would be in one table with runs that were trained on the earlier text.
  const std::string study =
      "scaling --widths 4,8,16 --context 4 --embedding 4 --heads 1 --batch 8 --eval-samples 8 --models mlp_lm "
      "--threads 1 --budgets 2e7";
  const std::string whole = shell.script(study + ",4e7 --name whole --data kept").weights();
  shell.script(study + " --name s --data kept");
  const std::string before = shell.read("runs/s/points.csv");
  shell.expect_script(study + ",4e7 --name s --data there/other.txt", 1, others);
  test.equal("changes no point", shell.read("runs/s/points.csv"), before);
  test.equal("data that moved continue", shell.script(study + ",4e7 --name s --data far.txt").weights(), whole);
}

// A variant that was not started takes from --init what it would have taken at first: its rate, its sizes.
void variant_from_a_checkpoint(Test& test) {
  const Shell shell(test, "train_text");
  const std::string tiny = " --batch 2 --eval-samples 2 --sample-length 0 --threads 1 --warmup 0 ";
  shell.run("--name b --steps 1 --width 12 --layers 1 --heads 2 --context 8" + tiny);
  const std::string both = "--name c --compare weight-decay=0,weight-decay=0.1 --init runs/b --steps 2" + tiny;
  shell.expect(both, 0, "saved runs/c");
  const std::string table = shell.read("runs/c/compare.csv");
  shell.script("rm -r runs/c/weight-decay-0.1 runs/c/compare.csv");
  shell.expect(both, 0, "saved runs/c");
  test.equal("with the same result", shell.read("runs/c/compare.csv"), table);
}

// The test options of a run on regular languages are its own.
void regular(Test& test) {
  const Shell shell(test, "train_regular");
  const std::string seeds = "--seeds 1,2 --parity-probability 10" + REGULAR;
  shell.run("--name whole " + seeds);
  shell.run("--name a " + seeds + "--steps 3");
  shell.expect("--name a " + seeds, 0, "at the training length");
  shell.same_files("runs/a/", "runs/whole/", {"results.csv", "probabilities.csv"});
  const std::string before = shell.read("runs/a/results.csv");
  shell.expect("--name a " + seeds + "--test-to 12", 0, "results.csv");
  test.check("the results of the first stay",
             shell.script("cat runs/a/results.csv.before*").output.find(before) != std::string::npos);
  shell.expect("--name a --seeds 1,3" + REGULAR, 0, "parity_check, seed 3");
  // Before the first one learns it shows that the last one's weights would not fit.
  shell.expect("--quiet --name b --all-tasks --init runs/a/parity_check-seed-1" + REGULAR, 1, "this model wants");
  test.check("nothing was begun", !shell.exists("runs/b"));
}

// A refused command leaves all runs as they are.
void refused_again(Test& test) {
  const auto again = [&](const char* name, const std::string& started, const std::string& refused, int status,
                         const std::string& message) {
    const Shell shell(test, name);
    shell.run("--name a " + started);
    const std::string all = "cd runs/a; cat */log.csv */model.safetensors | cksum", before = shell.script(all).output;
    shell.expect("--name a " + started + refused, status, message);
    test.equal(refused + ": nothing changed", shell.script(all).output, before);
  };
  again("train_copy", "--compare causal_rn,transformer:schedule=cosine --steps 3" + SMALL, "--steps 6", 1,
        "this run's cosine schedule was laid out over 3 steps");
  again("train_regular",
        "--all-tasks --quiet --test-every 9 --heads 2 --width 8 --batch 8 --steps 1 --test-strings 2 --eval-samples 8 "
        "--threads 1 ",
        "--test-to 45", 2, "--test-from 51, --test-to 45: expected them in rising order");
}

// Words of comparisons that are odd but right, or wrong.
void odd_comparisons(Test& test) {
  const Shell shell(test, "train_text");
  shell.run("--name t --steps 1" + TEXT);
  shell.script("cp runs/t/model.safetensors 'a\"b'");
  shell.expect({
      {"--lr-floor 1e-6 --compare schedule=constant,schedule=cosine --steps 1" + TEXT, 0, "saved"},
      {"--compare schedule=constant:lr-floor=1e-6,mamba --steps 1" + TEXT, 2,
       "--lr-floor 1e-6: does nothing with --schedule constant"},
      {"--compare transformer:widht=8,mamba --steps 1" + TEXT, 2, "did you mean --width?"},
      {"--name odd --compare 'init=a\"b,seed=2' --steps 1" + TEXT, 0, "saved runs/odd"},
      {"--epochs 1048576" + TEXT + "--context 1 --batch 1", 2, "steps, expected 2,147,483,648 at most"},
      {"--epochs 1 --steps 2" + TEXT, 2, "--steps 2: does nothing with --epochs 1"},
      {"--mlp-activation relu --gelu tanh" + TEXT, 2, "--gelu tanh: does nothing with --mlp-activation relu"},
  });
  test.check("a label with quotes", shell.read("runs/odd/compare.csv").find("\n\"init=a\"\"b\",") != std::string::npos);
}

// What a process that was killed left of a snapshot.
void cut_snapshots(Test& test) {
  const Shell shell(test, "train_copy");
  shell.run("--name a --steps 2 --snapshots 1" + SMALL);
  shell.write("runs/a/snapshots/.petroglyph-7-1.tmp", "half");
  shell.expect("--resume --name a --steps 3", 0, "saved");
  test.check("is taken away, and nothing else", !shell.exists("runs/a/snapshots/.petroglyph-7-1.tmp") &&
                                                    shell.exists("runs/a/snapshots/step-1.safetensors"));
}

// A configuration that no run of ours wrote, in a file that is whole otherwise.
void odd_configurations(Test& test) {
  const Shell shell(test, "train_text");
  shell.script("train_text --quiet --name t --steps 0" + TEXT +
               "; train_text --quiet --name d --steps 0 --model dct_mlp" + TEXT);
  const auto refused = [&](const std::string& run, const char* option, const Json& value, const std::string& words) {
    change_checkpoint(shell.file("runs/" + run + "/model.safetensors"), shell.file("odd.safetensors"),
                      [&](const std::string& key, const std::string& old) {
                        return key == "config" ? Json::parse(old, key).set(option, value).text() : old;
                      });
    shell.expect("--init odd.safetensors --steps 1", 1, "odd.safetensors: " + words);
  };
  refused("t", "heads", 0, "transformer: heads 0 out of range 1 to 65536");
  refused("t", "heads", int64_t(1) << 32, "transformer: heads 4294967296 out of range 1 to 65536");
  refused("t", "context", (int64_t(1) << 32) + 8, "transformer: context 4294967304 out of range 1 to 16777216");
  refused("t", "heads", "2", "transformer: heads: expected a number, found a string");
  refused("t", "heads", 3, "transformer: heads 3 does not divide width");
  refused("d", "frequencies", Json::array(), "dct_mlp: frequencies");
  refused("d", "windows", Json::array(), "dct_mlp: windows");
}

// Ctrl-C while a run that is done is drawn, or what follows is measured: what is written of it is right.
void interrupted_at_its_end(Test& test) {
  const Shell shell(test, "train_text");
  const std::string lengths = " --evaluate-lengths 4,8 --steps 0" + TEXT;
  shell.run("--name whole" + lengths);
  const std::string table = shell.read("runs/whole/lengths.csv");
  for (int turn = 0; turn < 16; ++turn) {
    const std::string folder = text("runs/turn-%d/", turn);
    const Outcome outcome =
        shell.script(begin(text("train_text --name turn-%d", turn) + lengths) + wait_for_lines(folder + "log.csv", 1) +
                     text("sleep 0.%02d; ", turn / 2) + end(turn % 2 ? "TERM" : "INT"));
    const bool done = outcome.prints("status 0\n"), there = shell.exists(folder + "lengths.csv");
    test.check("a table that is there is right", there ? shell.read(folder + "lengths.csv") == table : !done,
               outcome.output);
  }
}

// Weights from which the loss is not finite are never saved, and the last good ones are kept.
void divergence(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string mamba = " --model mamba --warmup 0 --clip 0 --save-every 1" + MAMBA;
  const std::string where = "the loss is nan at step 13: training has diverged";
  shell.expect("--name a --lr 10 --steps 50" + mamba, 1, {where, "runs/a/model.safetensors holds step 12"});
  // From the last checkpoint that a diverging run left, its next loss is finite.
  shell.expect("--name a --resume", 1, where);
  shell.expect("--name soon --lr 1000" + mamba, 1, "there is no checkpoint yet");
  shell.run("--name b --steps 6 --save-every 2" + SMALL);
  const auto step = [&](const char* file) {
    return SafetensorsFile(shell.file(std::string("runs/b/") + file + ".safetensors")).metadata("step");
  };
  test.equal("the last two are kept", step("previous") + " " + step("model"), "4 6");
  const std::string whole = shell.run("--name c --steps 6" + SMALL).weights();
  shell.script("cp runs/b/previous.safetensors runs/b/model.safetensors");
  test.equal("the one before resumes bit-identically", shell.run("--name b --resume").weights(), whole);
}

void streams_and_files(Test& test) {
  const Shell shell(test, "train_copy");
  shell.run("--name whole --steps 6" + SMALL);
  shell.run("--name a --steps 6" + SMALL + ">&- 2>&- <&-");
  test.equal("closed streams: the log is a log", shell.log("a"), shell.log("whole"));
  test.equal("a checkpoint", SafetensorsFile(shell.file("runs/a/model.safetensors")).metadata("step"), "6");
  shell.script("mkdir -p runs/p; mkfifo runs/p/model.safetensors");
  const std::string name(256, 'n'), too_long = std::strerror(ENAMETOOLONG);
  shell.expect({
      {"--name p --resume", 1, "runs/p/model.safetensors: expected a file, found something else"},
      {"--name " + name + SMALL, 1, too_long},
      {"--init " + name + SMALL, 1, too_long},
  });
  shell.expect_script("generate " + name, 1, ": " + too_long);
  shell.write("a[1].txt", std::string(300, 'x') + "\n");
  shell.expect_script("train_text --data 'a[1].txt' --val 'a[1].txt' --steps 1" + TEXT, 0, "weights");
  shell.expect_script("train_text --data 'b*.txt'" + TEXT, 1, "b*.txt: no file has such a name");
  const Outcome lines = shell.expect_script("train_text --data 'no\n\x1b[2Jfile'" + TEXT, 1, "no\\n\\x1B[2Jfile: ");
  test.equal("in one line", lines.output.find('\n') + 1, lines.output.size());
  shell.script("mv runs kept; ln -s nowhere runs");
  shell.expect("--steps 1" + SMALL, 1, "runs/copy: cannot make the folder: ");
}

// What we did not write is never replaced.
void overwriting(Test& test) {
  const Shell shell(test, "inspect");
  shell.script("train_regular --quiet --name a" + REGULAR +
               "; mkdir out own; echo x | tee out/clusters.svg own/clusters.svg > out/receptive_field.csv; "
               "cp runs/a/parity_check-seed-1/model.safetensors own");
  const std::string run = " runs/a/parity_check-seed-1 --length 20 --out out";
  const std::string own = "clusters own/model.safetensors --length 20",
                    saved = "saved own (clusters.csv, clusters.svg)";
  shell.expect({
      {"clusters" + run, 0, "saved out (clusters.csv, clusters.svg)"},
      {"receptive-field" + run, 0, "saved out"},
      // Without --out a figure lies beside its checkpoint.
      {own, 0, saved},
      {own, 0, saved},
  });
  for (const char* name : {"out/clusters.svg", "out/receptive_field.csv", "own/clusters.svg"})
    test.equal(std::string(name) + " is kept", shell.read(std::string(name) + ".before"), "x\n");
  test.check("the same figure twice is not",
             !shell.exists("own/clusters.svg.before-2") && !shell.exists("own/clusters.csv.before"));
}

// What is read is no place to write to, with --force neither.
void conversion_over_its_model(Test& test) {
  const Shell shell(test, "convert");
  shell.script("train_text --quiet --name g --norm affine --gelu tanh --tied-head" + TEXT +
               "--steps 1; convert runs/g --to hf --save hf; convert runs/g --to llm.c --save g.bin; mkdir l; ln "
               "-s ../runs/g l/g; ln runs/g/model.safetensors hard");
  const std::string all = "cat runs/g/model.safetensors hf/* g.bin | cksum";
  const std::string before = shell.script(all).output;
  for (const std::string arguments :
       {"runs/g --to llm.c --save runs/g/model.safetensors", "runs/g --to hf --save runs/g",
        "runs/g --to llm.c --save l/g/model.safetensors", "runs/g --to llm.c --save hard",
        "hf --save hf/model.safetensors", "hf --save hf/config.json", "g.bin --save g.bin",
        "hf --tokenizer runs/g --save runs/g/model.safetensors"})
    for (const char* force : {"", " --force"})
      shell.expect(arguments + force, 1, ") and never replaced; choose another name\n");
  shell.expect("hf --save nosuch/g.safetensors", 1, "nosuch/g.safetensors: cannot write: No such file or directory\n");
  shell.expect("g.bin --save hf --force", 1, "hf: cannot write: Is a directory");
  test.equal("all that was read stays", shell.script(all).output, before);
  // Into a folder with other files.
  shell.script("mkdir out; echo mine > out/config.json; echo mine > out/notes; mkfifo pipe");
  const std::string back = "runs/g --to hf --save out";
  shell.expect(back, 1, "out: exists already; choose another name, or --force");
  test.equal("whose files stay", shell.read("out/config.json"), "mine\n");
  shell.expect(back + " --force", 0, "saved out");
  test.check("its files are replaced, and no others",
             shell.read("out/config.json") != "mine\n" && shell.read("out/notes") == "mine\n");
  shell.script("mv out/config.json there; ln -s ../there out/config.json");
  shell.expect(back + " --force", 1, "out/config.json: expected a file or a folder; a link");
  shell.expect("pipe", 1, "pipe: expected a file or a folder, found something else");
  shell.expect_script("timeout 20 train_text --tokenizer pipe --steps 1", 1,
                      "train_text: pipe: expected a file, found something else");
}

// A finished run, a longer one, and what its page lists.
void extended(Test& test) {
  const Shell shell(test, "train_text");
  shell.write("x.txt", std::string(2000, 'a'));
  shell.run("--data x.txt --name a --steps 4 --no-keep-best" + TEXT);
  test.check("--no-keep-best", !shell.exists("runs/a/best.safetensors"));
  shell.expect({
      {"--resume --name a --steps 6", 1, "laid out over 4 steps; to train longer: --resume --name a --extend N"},
      {"--resume --name a", 0, "To train longer: --resume --name a --extend N"},
      {"--resume --name a --extend 2 --sample-length 4", 0, "Finished at step 6."},
      {"--compare rnn,mamba --name c --steps 2 --width 8 --context 4 --batch 4 --eval-samples 8 --threads 1", 0, ""},
  });
  const std::string page = shell.read("runs/a/index.html");
  const auto has = [&](const char* words) { return page.find(words) != std::string::npos; };
  test.check("its page has the options that its model uses", has("--heads") && !has("--state") && !has("--conv"), page);
  test.check("and the last sample", has("<h2>Sample</h2>\n<pre>"), page);
  test.check("the page of a comparison has its figure",
             shell.read("runs/c/index.html").find("compare.svg") != std::string::npos);
}

void schedules(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string words = " --steps 8 --schedule cosine --warmup 2 --lr 0.001" + SMALL;
  const Outcome whole = shell.run("--name whole" + words);
  shell.run("--name parts --save-every 3" + words);
  shell.script("cp runs/parts/previous.safetensors runs/parts/model.safetensors");
  test.equal("in its midst", SafetensorsFile(shell.file("runs/parts/model.safetensors")).metadata("step"), "6");
  test.equal("resumed", shell.run("--name parts --resume").weights(), whole.weights());
  const std::vector<double> rates = read_csv(shell.file("runs/whole/log.csv")).column("learning_rate");
  test.check("the whole rate at step 2", std::abs(rates.at(2) - 0.001) < 1e-9, std::to_string(rates.at(2)));
  test.check("half of it at step 5", std::abs(rates.at(5) - 0.0005) < 1e-9, std::to_string(rates.at(5)));
}

// A run's folder from somebody else: it overwrites nothing, and names no file that is then read.
void from_somebody_else(Test& test) {
  const Shell shell(test, "train_copy");
  shell.run("--name a --steps 2 --snapshots 1" + SMALL);
  const std::string resume = "--resume --name a --steps 4";
  shell.script("echo precious > victim; mkdir elsewhere; rm runs/a/.lock; ln -s ../../victim runs/a/.lock");
  shell.expect(resume, 1, "runs/a/.lock: cannot be opened: ");
  shell.expect("--name a" + SMALL, 1, "runs/a: exists already");
  shell.script("rm runs/a/.lock; mv runs/a/snapshots s; ln -s ../../elsewhere runs/a/snapshots");
  shell.expect(resume, 1, "runs/a/snapshots: expected a folder, found a link");
  shell.script(
      "rm runs/a/snapshots; mv s runs/a/snapshots; cp runs/a/log.csv log; cp log before; ln -sf ../../log "
      "runs/a/log.csv");
  shell.expect(resume, 0, "weights ");
  test.equal("nothing was written through any link", shell.script("cmp log before; cat victim; ls -A elsewhere").output,
             "precious\n");

  const Shell text(test, "train_text");
  text.script("printf 'a secret %.0s' $(seq 100) > secret");
  text.run("--quiet --name a --data secret --schedule constant --steps 2" + TEXT);
  text.script("cp runs/a/model.safetensors kept");
  text.expect("--resume --name a --steps 3", 0, "weights");
  text.script("rm runs/a/*.safetensors; head -n 3 runs/a/log.csv > l; mv l runs/a/log.csv");
  change_checkpoint(
      text.file("kept"), text.file("runs/a/model.safetensors"),  // as another machine would have saved it
      [](const std::string& key, const std::string& value) { return key == "begun_on" ? "0123456789abcdef" : value; });
  const std::string refused = "names the file secret, but was not trained by this user on this machine";
  text.expect("--resume --name a --steps 3", 1, "runs/a/model.safetensors: " + refused);
  text.expect_script("inspect receptive-field runs/a", 1, refused);
  text.expect("--resume --name a --steps 3 --data secret", 0, "weights ");
}

// Text from files and command lines is escaped on a terminal.
void on_a_terminal(Test& test) {
  const Shell shell(test, "inspect");
  const float weight = 1;
  SafetensorsWriter writer;
  for (const char* key : {"program", "model"}) writer.metadata(key, "\x1b]0;title\x07\u009b31m\u202e");
  writer.metadata("other\x1b", "\x1b[2J");
  writer.add("w\x1b", {1}, &weight);
  writer.save(shell.file("a.safetensors"));
  shell.script("printf 'abcabc%.0s' 1 2 3 4 > \"$(printf 't\\033]0;x')\"");
  const std::string terminal = shell.run("info a.safetensors").output + shell.run("counts --data t*").output;
  test.check("nothing that a terminal obeys",
             terminal.find_first_of("\x1b\x07") == std::string::npos && terminal.find("\u009b") == std::string::npos &&
                 terminal.find("\u202e") == std::string::npos,
             terminal);
  test.check("but all of it", terminal.find("\\x1B]0;title\\x07\\u009B31m\\u202E") != std::string::npos, terminal);
}

// A stack of 64 kB, too little memory: a line, or nothing of it is noticed.
void narrow_machines(Test& test) {
#if ASAN
  test.skip("all", "the address sanitizer needs more of both");
#else
  const Shell shell(test, "train_copy");
  shell.expect("--quiet --steps 1" + SMALL, 0, "", "ulimit -s 64;");
  shell.expect("--evaluate-lengths 65536 --steps 1" + SMALL, 1, "train_copy: not enough memory", "ulimit -v 1000000;");
  shell.expect_script("ulimit -v 4000000; train_image --batch 1048576 --steps 1", 1, "train_image: not enough memory");
#endif
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  std::signal(SIGHUP, SIG_DFL);  // ignored under nohup, by all that is started there
  work_in_memory();
  Test test(argc, argv);
  test.run("refused again", refused_again);
  test.run("odd comparisons", odd_comparisons);
  test.run("cut snapshots", cut_snapshots);
  test.run("two processes", two_processes);
  test.run("interrupted study", interrupted_study);
  test.run("damaged logs", damaged_logs);
  test.run("soon saved", soon_saved);
  test.run("within an evaluation", within_an_evaluation);
  test.run("what is there", what_is_there);
  test.run("changed behind its back", changed_behind_its_back);
  test.run("variant from a checkpoint", variant_from_a_checkpoint);
  test.run("regular", regular);
  test.run("odd configurations", odd_configurations);
  test.run("interrupted at its end", interrupted_at_its_end);
  test.run("divergence", divergence);
  test.run("streams and files", streams_and_files);
  test.run("overwriting", overwriting);
  test.run("conversion over its model", conversion_over_its_model);
  test.run("from somebody else", from_somebody_else);
  test.run("on a terminal", on_a_terminal);
  test.run("narrow machines", narrow_machines);
  test.run("extended", extended);
  test.run("schedules", schedules);
  return test.finish();
}
