// The programs as a user runs them, with right and with wrong input: their output, exit status and files.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

#include "address_sanitizer.h"
#include "base/log.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "check.h"
#include "models/model.h"
#include "shell.h"

namespace petroglyph {
namespace {

// Two blocks, strings of four letters: a step takes a millisecond.
const std::string SMALL =
    " --length 4 --width 12 --hidden 12 --layers 2 --batch 8 --eval-samples 8 --eval-every 4 --stop-at 2 --threads 1 ";
// Of models without heads, and of the others.
const std::string WINDOWS =
    " --width 8 --layers 1 --context 8 --batch 4 --eval-samples 8 --eval-every 4 --sample-length 20 --threads 1 ";
const std::string TEXT = WINDOWS + "--heads 2 ";
const std::string SMALL_REGULAR = " --width 8 --batch 8 --eval-samples 8 --steps 6 --test-strings 8 --threads 1 ";
const std::string REGULAR = SMALL_REGULAR + "--train-length 10 --test-from 11 --test-to 14 ";

// ---- train_copy -----------------------------------------------------------------------------------------------------

void usage(Test& test) {
  const Shell shell(test, "train_copy");
  shell.expect({
      {"--help", 0, {"--length N", "accuracy reaches this; 2: never [1]", "steps between evaluations [10]"}},
      {"--version", 0, "petroglyph 0."},
      {"--help > /dev/full", 1, "cannot write to the standard output"},
      {"--version > /dev/full", 1, "cannot write to the standard output"},
      {"--lenght 5", 2, "unknown option --lenght (did you mean --length?)"},
      {"--length 0", 2, "--length 0: expected a whole number from 1"},
      {"--heads 5", 1, "causal_rn: heads 5 does not divide hidden 192"},
      {"--lr fast", 2, "--lr fast: expected a number"},
      {"--model gru", 2, "causal_rn"},
      {"--name ../a", 2, "--name ../a: expected letters"},
      {"--device cuda:x", 2, "--device cuda:x: expected one of auto, cpu, cuda, cuda:N, reference"},
      {"--evaluate-lengths 3,0", 2, "--evaluate-lengths 3,0: expected whole numbers from 1"},
      {"--model rnn --heads 3", 2, "--heads 3: does nothing with --model rnn"},
      {"--batch 65536 --shards 65536 --accumulate 65536 --length 1 --width 4 --layers 1", 2,
       "--batch 65536 --accumulate 65536: expected at most 2,147,483,647 samples a step"},
  });
  test.check("nothing was made", !shell.exists("runs"));
}

// The sizes that the documentation names are those of the models.
void quoted_parameters(Test& test) {
  const Shell shell(test);
  const std::string dct = "train_text --model dct_mlp --context 64 --width 64 --heads 4 --layers ",
                    small = "train_text --norm affine --gelu tanh --context 64 --width 64 --heads 4 --layers ";
  for (const auto& [page, number, command] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"README.md", "1,355,520", "train_copy"},
           {"README.md", "1,331,712", "train_copy"},
           {"docs/copying.md", "5,329,152", "train_copy --length 4 --model transformer"},
           {"docs/copying.md", "5,319,936", "train_copy --length 4 --model transformer --no-qkv-bias --no-out-bias"},
           {"docs/mlps.md", "43,808", "scaling --list --what context --contexts 1"},
           {"docs/mlps.md", "107,296", "scaling --list --what context --contexts 63"},
           {"docs/mlps.md", "291,456", dct + "6"},
           {"docs/mlps.md", "841,344", dct + "18"},
           {"docs/mlps.md", "120,576", small + "2"},
           {"docs/mlps.md", "320,512", small + "6"},
           {"results/NOTES-regular_languages.md", "4,274,946",
            "train_regular --model transformer --width 256 --train-length 16 --test-from 17 --test-to 17 "
            "--test-strings 2"}}) {
    const std::string once = command[0] == 's' ? "" : " --steps 0 --eval-samples 1";
    shell.expect_script("rm -rf runs; " + command + once, 0, number);
    test.check(page + " has " + number, read_bytes(page).find(number) != std::string::npos);
  }
}

void run_and_resume(Test& test) {
  const Shell shell(test, "train_copy");
  const Outcome whole = shell.expect("--name whole --steps 9" + SMALL, 0, "one token at a time");
  shell.leaves("runs/whole/", {"log.csv", "model.safetensors", "curve.svg"});
  test.equal("three threads", shell.run("--name three --steps 9" + SMALL + "--threads 3").weights(), whole.weights());
  shell.run("--name parts --steps 5" + SMALL);
  test.equal("resumed", shell.run("--name parts --resume --steps 9").weights(), whole.weights());
  test.equal("its log", shell.log("parts"), shell.log("whole"));
  const auto checksum = [&](const std::string& run) {
    return SafetensorsFile(shell.file("runs/" + run + "/model.safetensors")).metadata("log");
  };
  test.equal("its checkpoint's checksum of the log", checksum("parts"), checksum("whole"));
  shell.expect({
      {"--name whole" + SMALL, 1, "runs/whole: exists already"},
      {"--name whole --resume --width 16", 1, "--width 16: this run was started with --width 12"},
      {"--name nothing --resume", 1, "runs/nothing: there is no such run to resume"},
      {"--steps 0" + SMALL, 0, "saved runs/copy "},
      {"--steps 0" + SMALL, 0, "saved runs/copy-2 "},
      {"--name b --steps 1 --init runs/whole/model.safetensors" + SMALL, 0, "weights"},
      {"--name c --steps 1 --init runs/whole/model.safetensors" + SMALL + "--width 16", 1,
       "tensor token_embedding.weight has shape 29×12, this model wants 29×16\n"},
      {"--name c --init nowhere" + SMALL, 1, "nowhere"},
  });
  test.check("no folder is left of what was refused", !shell.exists("runs/c"));
}

// The reference device trains, saves and resumes as the CPU does, to the bit.
void reference(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string run = "--length 4 --width 16 --layers 2 --steps 20 --stop-at 2 --device ";
  const Outcome cpu = shell.run("--name cpu " + run + "cpu");
  const Outcome loops = shell.expect("--name loops " + run + "reference", 0, "reference (plain loops, one thread)");
  test.equal("the CPU's weights", loops.weights(), cpu.weights());
  test.equal("the CPU's log", shell.log("loops"), shell.log("cpu"));
  const auto resumed = [&](const char* name, const char* device) {
    return shell.run(text("--name %s --resume --steps 23 --device %s", name, device)).weights();
  };
  test.equal("each resumed on the other device", resumed("loops", "cpu"), resumed("cpu", "reference"));
}

// One seed is of the initial weights and of the samples.
void seeds(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string one = shell.run("--name one --steps 0 --seed 1" + SMALL).weights();
  test.check("other weights", shell.run("--name two --steps 0 --seed 2" + SMALL).weights() != one);
  test.equal("the same whatever else", shell.run("--name same --steps 0 --batch 4 --lr 1" + SMALL).weights(), one);
  std::set<double> losses;
  for (const char* seed : {"1", "2"}) {
    shell.run(std::string("--name from-") + seed + " --steps 1 --init runs/one --seed " + seed + SMALL);
    const CsvTable log = read_csv(shell.file(std::string("runs/from-") + seed + "/log.csv"));
    losses.insert({log.column("loss")[0], log.column("eval_loss").back()});
  }
  test.equal("other samples to learn from and to be evaluated on", losses.size(), size_t(4));
}

void comparison(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string list = "--compare transformer,rnn:hidden=8,transformer:position=none --evaluate-lengths 3,6 ";
  const Outcome whole = shell.expect(list + "--name whole --steps 9" + SMALL, 0, "transformer:position=none");
  shell.leaves("runs/whole/", {"compare.csv", "compare.svg", "lengths.csv", "lengths.svg", "rnn-hidden-8/log.csv"});
  for (const char* name : {"runs/whole/compare.svg", "runs/whole/lengths.svg"})
    test.check(std::string("chance is drawn in ") + name, shell.read(name).find(">chance<") != std::string::npos);
  const Outcome alone =
      shell.run("--model transformer --position none --evaluate-lengths 3,6 --name alone --steps 9" + SMALL);
  test.check("prints the weights of each", whole.prints("  " + alone.weights() + "\n"), whole.output);
  test.equal("and keeps them", Cells(shell.read("runs/whole/compare.csv")).at(2, "weights"), alone.weights());
  test.equal("a variant is the run that it would be alone", shell.log("alone"),
             shell.log("whole/transformer-position-none"));
  shell.run(list + "--name parts --steps 5" + SMALL);
  shell.run(list + "--name parts --steps 9" + SMALL);
  test.equal("continued: a log", shell.log("parts/rnn-hidden-8"), shell.log("whole/rnn-hidden-8"));
  shell.same_files("runs/parts/", "runs/whole/", {"compare.csv", "lengths.csv"});
  shell.expect_script("inspect info runs/whole", 1,
                      "several runs are in this folder (rnn-hidden-8, transformer, transformer-position-none): name");
  shell.expect({
      {"--compare rnn --resume --name nowhere" + SMALL, 1, "runs/nowhere: there is no such folder to continue"},
      {"--compare rnn,,rnn", 2, "\"\": expected a model or OPTION=VALUE"},
      {"--compare rnn,rnn", 2, "\"rnn\" is listed twice"},
      {"--compare rnn,transformer:heads=5" + SMALL, 1, "heads 5 does not divide"},
      {"--name no --compare transformer,rnn:init=runs/alone" + SMALL, 1, "has no tensor cell.input.weight"},
      {"--compare transformer,rnn:position=none", 2,
       "\"rnn:position=none\": --position none: does nothing with --model rnn"},
      {"--compare mamba,rnn --heads 2", 2, "\"rnn\": --heads 2: does nothing with --model rnn"},
      {"--compare transformer,rnn:hidden=8 --heads 2 --name some --steps 1" + SMALL, 0, "saved runs/some"},
  });
  test.check("what is refused leaves nothing", !shell.exists("runs/no") && !shell.exists("runs/compare"));
}

// The step of a log's first evaluation of this accuracy, as a table has it; empty where there is none.
std::string first_of(const CsvTable& log, double accuracy) {
  for (size_t i = 0; i < log.rows(); ++i)
    if (log.column("eval_accuracy")[i] >= accuracy) return exact_text(log.column("step")[i]);
  return "";
}

// Strings of two letters, which are learned in less than 200 steps.
void learning(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string two =
      " --length 2 --width 16 --hidden 16 --layers 1 --batch 32 --lr 0.01 --eval-every 5 --eval-samples 64 --threads "
      "1 ";
  const Outcome learned = shell.run("--name a --steps 2000 --evaluate-lengths 1,2,6" + two);
  const CsvTable log = read_csv(shell.file("runs/a/log.csv"));
  const std::string last = exact_text(log.column("step").back());
  test.equal("ends with the first evaluation that is all right", first_of(log, 1), last);
  const std::string one = "one token at a time, 64 fresh strings of 2 letters: accuracy ";
  for (const std::string& words : {"Stopped at step " + last + ": accuracy 100 % reached (--stop-at 1). Time: ",
                                   "\nstep " + last + "  evaluated: loss ", std::string("Accuracy first reached 50"),
                                   "100 % at step " + last + ".\n", one})
    test.check("prints " + words, learned.prints(words), learned.output);
  test.check("token by token, too", std::atof(&learned.output[learned.output.find(one) + one.size()]) > 90);
  const Cells lengths(shell.read("runs/a/lengths.csv"));
  test.check("strings of its length, and of no other",
             lengths.number(0, "1") < 0.1 && lengths.number(0, "2") > 0.9 && lengths.number(0, "6") < 0.1);
  shell.expect("--model rnn --hidden 1500 --length 4 --batch 1 --steps 1 --eval-samples 1 --stop-at 2 --name large", 0,
               "A checkpoint takes 0.1 GB; 2 of them are kept: model, previous.\n");
  test.check("a small one is not announced", !learned.prints("A checkpoint"));
  shell.run("--compare causal_rn,rnn:hidden=12 --name c --steps 300" + two);
  const Cells table(shell.read("runs/c/compare.csv"));
  test.check("one has learned it", table.number(0, "step_99") > 0);
  for (const size_t row : {0, 1}) {
    const std::string name = row == 0 ? "causal_rn" : "rnn-hidden-12";
    const CsvTable of_run = read_csv(shell.file("runs/c/" + name + "/log.csv"));
    for (const auto& [column, accuracy] : {std::pair("step_50", 0.5), {"step_90", 0.9}, {"step_99", 0.99}})
      test.equal(name + ": " + column, table.at(row, column), first_of(of_run, accuracy));
    for (const auto& [ours, theirs] :
         {std::pair("last_step", "step"), {"last_loss", "eval_loss"}, {"last_accuracy", "eval_accuracy"}})
      test.equal(name + ": " + ours, table.number(row, ours), of_run.column(theirs).back());
  }
}

// A damaged checkpoint is refused and left as it is; which damage is noticed: test/files.cpp and test/damage.cpp.
void damaged(Test& test) {
  const Shell shell(test, "train_copy");
  shell.run("--name a --steps 3" + SMALL);
  const std::string path = shell.file("runs/a/model.safetensors"), good = read_bytes(path);
  std::string flipped = good;
  flipped[good.size() - 5] = static_cast<char>(flipped[good.size() - 5] ^ 1);
  for (const auto& [bytes, words] : {std::pair(good.substr(0, good.size() / 2), "truncated"), {flipped, "damaged"}}) {
    write_bytes(path, bytes);
    shell.expect("--name a --resume --steps 5", 1, words);
    test.check("nothing was changed", read_bytes(path) == bytes);
  }
  write_bytes(path, good);
  // Files may have 8 blocks of 512 or 1024 bytes; the signal is ignored, so that a write fails as on a full disk.
  for (const char* limit : {"trap '' XFSZ; ulimit -f 8;", "ulimit -f 8;"})
    shell.expect("--name a --resume --steps 6", 1, "runs/a/model.safetensors: cannot write: File too large", limit);
  test.check("the checkpoint is as it was", read_bytes(path) == good);
  shell.expect_script("ls -A runs/a | grep tmp", 1, "");
  shell.expect("--name a --resume --steps 5", 0, "weights");
  shell.script("rm -r runs; echo a file > runs");
  shell.expect("--steps 1" + SMALL, 1, "runs/copy: cannot make the folder: Not a directory");
}

// A thread's stack is as large as the shell allows, and one that no address space holds cannot be started.
void threads(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string no_room = "ulimit -s 200000000000;";
  if (shell.script(no_room).status != 0) return test.skip("threads that do not start", "ulimit -s cannot be raised");
  shell.expect_script(no_room + "train_copy --name a --steps 1" + SMALL + "--threads 3", 1, "Thread creation failed");
  test.check("leave no run", !shell.exists("runs/a"));
  shell.expect("--name a --steps 1" + SMALL, 0, "weights ", no_room);
}

// A run's checkpoint with weights that are all NaN, and too large.
void write_wrong_weights(const Shell& shell, const std::string& run) {
  for (const auto& [name, value] : {std::pair("nan", std::nanf("")), {"large", std::numeric_limits<float>::max()}})
    change_checkpoint(
        shell.file("runs/" + run + "/model.safetensors"), shell.file(std::string(name) + ".safetensors"), {},
        [value = value](auto&, auto&, std::vector<float>& values) { values.assign(values.size(), value); });
}

void wrong_weights(Test& test) {
  const Shell shell(test, "train_copy");
  shell.run("--name a --steps 1" + SMALL);
  write_wrong_weights(shell, "a");
  shell.expect({
      {"--name b --init nan.safetensors" + SMALL, 1, {"nan.safetensors: tensor ", " has a nan at position 0"}},
      {"--name b --init large.safetensors" + SMALL, 1,
       "before the first step: with these options, or the weights of --init, values are too large"},
  });
  test.check("is not saved", !shell.exists("runs/b/model.safetensors"));
}

// ---- train_text -----------------------------------------------------------------------------------------------------

void text_runs(Test& test) {
  const Shell shell(test, "train_text");
  shell.expect("--name whole --steps 9" + TEXT, 0, {"bits/character", "  | "});
  shell.leaves("runs/whole/", {"log.csv", "model.safetensors", "best.safetensors", "curve.svg"});
  // The windows of an epoch are 23: both parts end within one.
  shell.write("text", std::string(100, 'a') + "\n" + std::string(99, 'b'));
  const std::string data = " --data text --val-part 0.05 --schedule constant" + TEXT;
  const Outcome epochs = shell.run("--name epochs --steps 20" + data);
  shell.run("--name parts --steps 7" + data);
  test.equal("resumed within an epoch", shell.run("--name parts --resume --steps 20").weights(), epochs.weights());
  shell.write("latin", std::string(300, 'x') + "\xE9" + std::string(300, 'x'));
  const std::string lengths = " --steps 1 --evaluate-lengths 4,16 --length-windows 8";
  shell.expect({
      {"--name two --epochs 2 --quiet" + data, 0, "Finished at step 12"},
      {"--data latin --steps 1" + TEXT, 0, "latin is not ASCII (its byte 301): tokens are bytes"},
      {"--data latin --tokenizer ascii" + TEXT, 1, "latin"},
      {"--data latin --replace" + TEXT, 0, "replaced 1 character by"},
      {"--data text" + TEXT + "--context 500", 1, "less than a window"},
      {"--name l --position alibi" + lengths + TEXT, 0, "perplexity of the last token at length"},
      {"--evaluate-lengths 500000" + TEXT, 1, "less than a window of 500000"},
      {"--compare regular_gpt:chunk=4:thickness=2,transformer:position=kerple --name x" + lengths + TEXT, 0,
       "regular_gpt:chunk=4:thickness=2"},
      // dct_mlp
      {"--name d --model dct_mlp" + lengths + TEXT, 0, "perplexity of the last token at length"},
      // Models that read windows of one length and answer once, at their end.
      {"--name m --model mlp_lm --embedding 6 --steps 9" + WINDOWS, 0, {"bits/character", "  | "}},
      {"--init runs/m/model.safetensors --context 9", 1, "first.weight has shape 6×48, this model wants 6×54"},
      {"--model mlp_lm --evaluate-lengths 4" + WINDOWS, 2, "--evaluate-lengths"},
      {"--model mlp_lm --readout last", 2, "--readout last: does nothing with --model mlp_lm"},
      {"--name t --readout last --steps 3" + TEXT, 0, "bits/character"},
      {"--compare mlp_lm,transformer:readout=last --steps 2" + TEXT, 0, "transformer:readout=last"},
      // More samples than windows.
      {"--name many --steps 2 --schedule constant" + TEXT + "--eval-samples 100000", 0, "bits/character"},
      {"--name many --resume --steps 4", 0, "step 4"},
      {"--resume --name empty", 1, "runs/empty: there is no such run"},
  });
  for (const char* name : {"d", "m", "t"}) {
    const std::string run = std::string("generate --length 30 --quiet runs/") + name + " --prompt 'One '";
    const Outcome once = shell.script(run);  // beyond the context of 8
    test.check(std::string(name) + " continues the prompt",
               once.status == 0 && once.output.rfind("One ", 0) == 0 && once.output.size() >= 35, once.output);
    test.equal(std::string(name) + " again", shell.script(run + " --threads 2").output, once.output);
    test.equal(std::string(name) + " on the reference", shell.script(run + " --device reference").output, once.output);
    if (*name == 'd') continue;
    // A longer prompt continues as its last window does.
    const auto behind = [&](const char* more) { return shell.script(run + more).output.substr(22); };
    test.equal(std::string(name) + " sees its window only", behind("'and a long way off' --temperature 0"),
               behind("'but a long way off' --temperature 0"));
  }
  const std::string inspect = "inspect receptive-field runs/m runs/t ";
  const Outcome fields = shell.expect_script(inspect, 0, {"mlp_lm, text", "transformer, text"});
  test.equal("receptive fields on the reference", shell.script(inspect + "--device reference").output, fields.output);
  shell.expect_script(inspect + "--length 9", 2, "--length 9: runs/m/model.safetensors reads windows of 8 tokens only");
  const Outcome missing = shell.expect_script(inspect + "nowhere", 1, "nowhere");
  test.check("what is wrong with the last shows at once", !missing.prints("mlp_lm, text"), missing.output);
}

// The number after some words of the output.
double number_behind(const Outcome& outcome, const std::string& words) {
  const size_t at = outcome.output.rfind(words);
  return at == std::string::npos ? std::nan("") : std::atof(&outcome.output[at + words.size()]);
}

// A run that ended gets more steps, and then fewer than it has: its evaluations, and the checkpoint of the best.
void resumed_for_worse(Test& test, const Shell& shell, const std::string& settings) {
  const auto kept = [&] { return SafetensorsFile(shell.file("runs/on/best.safetensors")).metadata("step"); };
  const auto last = [&] { return read_csv(shell.file("runs/on/log.csv")).column("eval_loss").back(); };
  shell.run("--name on" + settings + " --steps 2");
  const double early = last();
  test.equal("of the only evaluation", kept(), "2");
  shell.run("--name on --resume --steps 12");
  test.check("more steps learn for worse", last() > early, std::to_string(last()));
  test.equal("the better model is kept", kept(), "2");
  const std::string rows = shell.log("on");
  shell.expect("--name on --resume --steps 9", 0, "step 12 of 12");
  test.equal("fewer steps leave the evaluation", shell.log("on"), rows);
  shell.script("rm runs/on/best.safetensors");
  shell.expect("--name on --resume --steps 14", 0, {"Finished at step 14", "previous.safetensors, best.safetensors,"});
  test.equal("it is made again", kept(), "14");
}

// A text whose second half, the evaluation's, is nothing like its first.
void text_measured(Test& test) {
  const Shell shell(test, "train_text");
  shell.write("a", std::string(100, 'a'));
  shell.write("b", std::string(100, 'b'));
  shell.write("both", std::string(100, 'a') + std::string(100, 'b'));
  const std::string learn = " --warmup 0 --lr 0.05 --schedule constant" + TEXT + "--eval-samples 100 ";
  const Outcome run = shell.run("--name both --data both --val-part 0.5 --steps 12" + learn);
  const CsvTable log = read_csv(shell.file("runs/both/log.csv"));
  test.equal("the first half is learned", log.column("accuracy")[11], 1.0);
  test.equal("and nothing of the other", log.column("eval_accuracy").back(), 0.0);
  test.equal("tokens that were read", log.column("tokens").back(), 12.0 * 4 * 8);
  const double loss = log.column("eval_loss").back();
  const auto about = [&](const std::string& words, double expected) {
    const double found = number_behind(run, words);
    test.check("printed: " + words, std::abs(found - expected) < 1e-3 * expected, run.output);
  };
  about("validation loss ", loss);
  about("perplexity ", std::exp(loss));
  about(text("perplexity %.2f  ", std::exp(loss)), loss / std::log(2.0));  // bits
  const std::vector<double>& losses = log.column("eval_loss");
  const auto lowest = std::min_element(losses.begin(), losses.end(),
                                       [](double x, double y) { return x < y || (!std::isnan(x) && std::isnan(y)); });
  test.equal("the checkpoint of the lowest loss",
             SafetensorsFile(shell.file("runs/both/best.safetensors")).metadata("step"),
             std::to_string(lowest - losses.begin()));
  test.check("which is not the last", lowest + 1 != losses.end());
  const std::string line = run.output.substr(run.output.rfind("validation loss "));
  shell.write("whole", std::string(97, 'b'));  // 96 tokens that have one before them
  shell.write("tail", std::string(99, 'b') + "aaaa");
  shell.write("short", "bbbb");
  shell.expect({
      {"--evaluate runs/both --data whole --threads 1", 0,
       "on whole: windows of 8, 96 tokens scored\n" + line.substr(0, line.find('\n'))},
      {"--evaluate runs/both --data b --eval-samples 5", 0, ": windows of 8, 40 tokens scored\n"},
      // What is left behind whole windows is scored, too: four right answers of the 102.
      {"--evaluate runs/both --data tail", 0, {": windows of 8, 102 tokens scored\n", "accuracy 3.9 %"}},
      {"--evaluate runs/both --data short", 0, ": windows of 8, 3 tokens scored\n"},
      {"--name epoch --data both --val-part 0.5 --epochs 1" + TEXT, 0, "Finished at step 3"},
      {"--evaluate runs/both --data b --context 9", 1, "a sequence of 9 tokens is longer than the context of 8"},
  });
  test.equal("the evaluation's text as a file of its own",
             shell.run("--name own --data a --val b --steps 12" + learn).weights(), run.weights());
  // Of characters of two bytes, each of them a token: the 21 targets of three windows begin 11 of them.
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "\u00E9";
  shell.write("accents", accents);
  const Outcome bytes = shell.run("--name accents --data accents --val-part 0.125 --tokenizer bytes --steps 1" + TEXT +
                                  "--context 7 --eval-samples 100");
  const std::string perplexity = text("perplexity %.2f  ", number_behind(bytes, "perplexity "));
  const double of_bytes = number_behind(bytes, "validation loss "), bits = number_behind(bytes, perplexity);
  test.check("bits of a character, not of a token", std::abs(bits - 21.0 / 11 * of_bytes / std::log(2.0)) < 0.01,
             bytes.output);
  resumed_for_worse(test, shell, " --data both --val-part 0.5" + learn + "--eval-every 1000 ");
  const std::string lengths = " --steps 1 --length-windows 8 --position alibi" + TEXT;
  shell.run("--name back --evaluate-lengths 16,4" + lengths);
  shell.run("--name forth --evaluate-lengths 4,16" + lengths);
  const Cells back(shell.read("runs/back/lengths.csv")), forth(shell.read("runs/forth/lengths.csv"));
  for (const char* length : {"4", "16"}) test.equal("the same in any order", back.at(0, length), forth.at(0, length));
  test.check("each length has a perplexity of its own", back.at(0, "4") != back.at(0, "16"));
}

// What options make of models: their configurations, as checkpoints keep them (test/configurations.txt).
void configurations(Test& test) {
  const Shell shell(test, "train_text");
  std::istringstream lines(read_bytes("test/configurations.txt"));
  std::string command, config;
  for (int runs = 1; std::getline(lines, command);) {
    if (command.empty() || command[0] == '#') continue;
    std::getline(lines, config);
    const std::string name = "r" + std::to_string(runs++);
    const Outcome outcome =
        shell.script(command + " --steps 0 --quiet --threads 1 --name " + name + "; ls -d runs/" + name + "/*/model*");
    const size_t inside = outcome.output.find("\nruns/" + name + "/");  // of a group's only run
    const std::string path = inside == std::string::npos ? "runs/" + name + "/model.safetensors"
                                                         : std::string(trim(outcome.output.substr(inside)));
    test.equal(command, shell.exists(path) ? SafetensorsFile(shell.file(path)).metadata("config") : outcome.output,
               config);
  }
}

// ---- generate -------------------------------------------------------------------------------------------------------

// The checkpoint of runs/t with a vocabulary of another size, in which tokens beyond the tokenizer's are very likely.
void change_vocabulary(const Shell& shell, const std::string& to, int64_t vocab, int64_t rows) {
  change_checkpoint(
      shell.file("runs/t/best.safetensors"), shell.file(to),
      [=](const std::string& key, const std::string& value) {
        return key == "config" ? Json::parse(value, key).set("vocab", vocab).set("classes", vocab).text() : value;
      },
      [=](const std::string& name, std::vector<int64_t>& shape, std::vector<float>& values) {
        if (name != "head.weight" && name != "token_embedding.weight") return;
        const auto width = static_cast<size_t>(shape[1]);
        values.resize(static_cast<size_t>(rows) * width);
        for (shape[0] = 128; shape[0] < rows; ++shape[0])  // logits of both signs
          values[static_cast<size_t>(shape[0]) * width] = shape[0] % 2 == 0 ? 1e6f : -1e6f;
        shape[0] = rows;
      });
}

void vocabularies(Test& test, const Shell& shell) {
  const std::string prompt = " --length 40 --quiet --prompt 'One ' --temperature 0";
  change_vocabulary(shell, "padded.safetensors", 144, 144);
  change_vocabulary(shell, "small.safetensors", 100, 100);
  change_vocabulary(shell, "lies.safetensors", 200000, 128);
  const Outcome whole = shell.expect("runs/t" + prompt, 0, "One ");
  test.equal("extra tokens of a padded vocabulary are never written", shell.run("padded.safetensors" + prompt).output,
             whole.output);
  shell.expect("small.safetensors", 1, "the model's vocab is 100, less than the tokenizer's 128 tokens");
  shell.expect("lies.safetensors", 1, "lies.safetensors: tensor ");
  shell.expect_script("inspect receptive-field small.safetensors", 1, "less than the");
}

// A continuation depends on the whole dialogue, not on the number of tokens requested.
void talks_in_windows(Test& test, const Shell& shell) {
  const std::string learn =
      " --width 32 --layers 1 --context 8 --batch 16 --eval-samples 8 --eval-every 400 --sample-length 0 --threads 1 "
      "--lr 0.01 ";
  shell.script("train_text --model mlp_lm --name m --steps 400 --embedding 8" + learn);
  const std::string greedy = " --quiet --temperature 0 --length 20 ", line = "Once upon a time there was";
  const std::string first = shell.run("runs/m" + greedy + "--prompt '" + line + "'").output;
  shell.write("lines", line + "\nA\n");
  shell.write("said", first.substr(0, first.size() - 1) + "\nA");
  test.equal("a model of windows remembers the dialogue",
             shell.run("runs/m --interactive" + greedy + "< lines").output.substr(21),
             shell.run("runs/m --prompt \"$(cat said)\"" + greedy).output.substr(first.size() + 1));
  shell.script("train_text --model regular_gpt --chunk 2 --thickness 1 --heads 2 --name g --steps 200" + learn);
  const auto beginning = [&](const char* length) {
    return shell.run(std::string("runs/g --prompt 'One ' --quiet --seed 3 --length ") + length).output.substr(0, 24);
  };
  test.equal("a model that deepens with length writes the same whatever the length", beginning("60"), beginning("20"));
}

// Signals, an output that takes no more, an input that cannot be read, and one that is longer than what the model
// reads.
void talk_that_ends(Test& test, const Shell& shell) {
  shell.expect_script(
      "yes One | timeout -k 9 2 generate runs/t --interactive --quiet --length 10000000 > said; echo status $?", 0,
      "status 124");
  if (std::filesystem::exists("/dev/full"))
    shell.expect_script("timeout 20 generate runs/t --quiet --length 100000000 > /dev/full", 1,
                        "generate: cannot write to the standard output: ");
  // A prompt that never ends: the program waits for it, and a signal ends it.
  shell.expect_script(
      "mkfifo p; exec 3<> p; generate runs/t --interactive < p & child=$!; "
      "sleep 0.3; kill -0 $child && echo waits; kill -TERM $child; for i in $(seq 100); do kill -0 $child "
      "2> /dev/null && sleep 0.1; done; kill -KILL $child 2> /dev/null; wait $child; echo status $?",
      0, {"waits", "status 143"});
  shell.write("long", "One day he went\n");
  shell.expect({
      {"runs/t --quiet --length 3 --interactive < .", 1, "the standard input cannot be read to its end"},
      {"runs/t --interactive < /dev/null", 0, "0 tokens in 0.0 s, 0 tokens/s"},
      {"runs/t --interactive --length 2 < long", 0, "note: the prompt has 15 tokens and the model reads 8 at most"},
  });
  shell.write("longer", std::string(5000, 'a') + "\n");
  for (const std::string model :
       {"rnn --hidden 8", "mamba --width 8", "linear_transformer --position none --width 8 --heads 2"}) {
    shell.script(
        "rm -rf runs/recurrent; train_text --name recurrent --steps 1 --context 8 --batch 4 --eval-samples 4 "
        "--sample-length 0 --tokenizer bytes --threads 1 --model " +
        model);
    const Outcome talk = shell.expect("runs/recurrent --interactive --length 2 < longer", 0, "");
    test.check("a line of any length: " + model, !talk.prints("note:"), talk.output);
  }
}

void windows_and_talk(Test& test, const Shell& shell) {
  // Beyond the context of 8 a model that slides sees the last 8 tokens, whatever was before.
  const std::string slide = "runs/t --length 12 --quiet --temperature 0 --window slide --prompt ";
  test.equal("slides", shell.run(slide + "'Once a cat sat '").output.substr(15),
             shell.run(slide + "'Never cat sat '").output.substr(14));
  const std::string halves = "runs/t --length 12 --quiet --temperature 0 --prompt 'Once a cat sat '";
  test.equal("a window by halves", shell.run(halves).output.size(), size_t(28));
  const std::string like = shell.run("runs/t --length 9 --quiet --prompt 'One '").output;
  shell.write("talk", "One \nTwo \n");
  const Outcome talk = shell.run("runs/t --length 9 --quiet --interactive < talk");
  test.check("talks", talk.status == 0 && talk.output.size() == 20 && talk.output.substr(0, 9) == like.substr(4, 9),
             talk.output);
  const Outcome slowly = shell.script("(echo 'One '; sleep 1) | generate runs/t --length 9 --interactive");
  test.check("the waiting for a prompt is not its time", number_behind(slowly, "9 tokens in ") < 0.9, slowly.output);
  shell.expect({
      {"runs/t --quiet --length 3 --prompt -i", 0, "-i"},
      {"runs/t --interactive --prompt a", 2, "--prompt a: does nothing with --interactive"},
      {"runs/t --interactive --samples 2", 2, "--samples 2: does nothing with --interactive"},
  });
  shell.write("foreign", "\xC3\xA9\nOne \nTwo \n");
  const Outcome on = shell.expect("runs/t --length 9 --quiet --interactive < foreign", 0,
                                  {"is no 7-bit ASCII character", "nothing of this line was read\n"});
  test.equal("a character that it has not ends no talk", on.output.substr(on.output.find('\n') + 1), talk.output);
  talks_in_windows(test, shell);
  talk_that_ends(test, shell);
}

// Sizes and tokenizer from a file, and its loss on another text.
void of_a_checkpoint(Test& test, const Shell& shell) {
  shell.write("other.txt", std::string(300, 'a') + "One day he went to the old house.");
  shell.write("accents.txt", std::string(300, 'a') + "caf\u00E9");
  write_wrong_weights(shell, "t");
  const std::string evaluate = "train_text --data other.txt --evaluate ";
  shell.expect_script({
      {evaluate + "runs/t", 0, "on other.txt: windows of 8, 332 tokens scored"},
      {evaluate + "runs/t --model rnn", 2, "--model rnn: does nothing with --evaluate runs/t"},
      {evaluate + "nan.safetensors", 1, {"train_text: nan.safetensors: tensor ", " has a nan at position 0"}},
      {evaluate + "large.safetensors", 1, "large.safetensors: the loss is nan: its weights are too large"},
      {"train_text --evaluate runs/t --data accents.txt", 1, "is no 7-bit ASCII character"},
      {"train_text --evaluate runs/t --data accents.txt --replace", 0, "windows of 8, "},
      {"train_text --data other.txt --val other.txt --val-part 0.3", 2, "--val-part 0.3: does nothing with --val"},
      {"train_text --tokenizer bytes --replace", 2, "--replace: does nothing with bytes"},
      {"train_text --model regular_gpt --layers 4 --thickness 1", 2, "--layers 4: does nothing with --thickness 1"},
      {"train_text --data other.txt --init runs/t --model rnn", 2, "--model rnn: does nothing with --init runs/t"},
  });
  test.check("leaves no run", !shell.exists("runs/text"));
  shell.expect_script(
      "cp other.txt shorter.txt; train_text --data shorter.txt --val-part 0.3 --name shorter --context 8 --width 8 "
      "--layers 1 --heads 1 --batch 2 --eval-every 1000000 --eval-samples 2 --sample-length 0 --steps 100000000 "
      "--threads 1 --quiet & while ! test -e runs/shorter/model.safetensors && kill -0 $!; do sleep 0.1; done; "
      ": > shorter.txt; wait $!",
      1, "a file that is being read has become shorter");
  const std::string more =
      " --data other.txt --threads 1 --batch 4 --sample-length 0 --eval-samples 2 --val-part 0.1 --init runs/t";
  shell.expect_script("train_text --name folder --steps 1" + more, 0, "weights");
  shell.expect_script("train_text --init runs/c", 1, "runs/c: a checkpoint of train_copy without a tokenizer");
  const Outcome tuned =
      shell.expect_script("train_text --name u --steps 2" + more + "/model.safetensors", 0, "weights");
  for (const std::string run : {"v --steps 1", "w --steps 2"})
    shell.script("train_text --schedule constant --name " + run + more);
  const auto resumed = [&](const char* run) {
    return shell.script(text("train_text --name %s --resume --steps 2", run)).weights();
  };
  shell.script("mv runs/t there");
  test.equal("resumed without it", resumed("v"), resumed("w"));
  shell.script("mv there runs/t");
  shell.expect_script("inspect info runs/u", 0,
                      {"transformer, by train_text, step 2", "weights      " + tuned.weights(), "128×8"});
}

// Checkpoints and folders of Hugging Face's.
void conversions(const Shell& shell) {
  shell.script(
      "train_text --model mamba --name h --steps 1 --layers 1 --width 8 --data other.txt --batch 2 --context 8 "
      "--eval-samples 2 --sample-length 0 --threads 1; cp runs/t/model.safetensors as.st; "
      ": > plain; cp -r runs/h v.5");
  shell.expect_script({
      {"convert runs/t", 1, "runs/t is already a Petroglyph checkpoint; --to hf or --to llm.c"},
      {"tokenize other.txt --tokenizer as.st", 0, "(ascii)"},
      {"convert nowhere", 1, "nowhere: there is no such file or folder"},
      {"convert runs/t --to hf", 1, "norm \"plain\" cannot be expressed by GPT-2"},
      {"convert v.5 --to hf", 0, "saved v.5-hf"},
      {"convert runs/h --to hf --save plain --force", 1, "plain: is a file; expected a folder"},
      {"convert runs/h --to hf --save plain/x", 1, "plain/x: cannot write: Not a directory"},
      {"convert runs/h --to hf --save hf/", 0, "note: the tokenizer, ascii, is left out"},
      {"cd hf && convert .", 0, "saved hf.safetensors"},
      {"generate hf", 1, "hf/model.safetensors: a safetensors file, but no checkpoint of ours; ./convert makes one"},
      {"generate hf/hf.safetensors", 1, "hf/hf.safetensors: has no tokenizer: none was converted with this model"},
      {"inspect receptive-field hf/hf.safetensors", 1, ": none was"},
      {"train_text --init hf/hf.safetensors --tokenizer bytes --data other.txt --val-part 0.3 --context 8 --name few",
       1, "hf/hf.safetensors: the model's vocab is 128, less than the tokenizer's 256 tokens\n"},
      {"cp -r hf hf-3; sed 's/\"state_size\":16/\"state_size\":0/' hf/config.json > hf-3/config.json; "
       "convert hf-3 --save x",
       1, "hf-3/config.json: "},
      {"name=$(printf 'h\\351'); cp -r hf \"$name\"; convert \"$name\" --save x.safetensors", 0, "saved x.safetensors"},
      {"convert hf --save h.safetensors --tokenizer runs/t", 0, "parameters, ascii\n"},
      {"generate h.safetensors --length 1 --prompt a", 0, "1 token in "},
      {"convert hf --tokenizer runs --save x", 1, "or a run's model.safetensors\n"},
  });
}

// What a command prints where its standard output is a terminal, whose line ends are \r\n.
std::string on_terminal(const Shell& shell, const std::string& command) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) throw std::runtime_error("no terminal");
  shell.script(command + " > " + ptsname(terminal) + " 2> /dev/null < /dev/null");
  std::string output;
  char buffer[4096];
  for (ssize_t n; (n = read(terminal, buffer, sizeof buffer)) > 0;) output.append(buffer, static_cast<size_t>(n));
  close(terminal);
  return output;
}

void texts_with_an_end(Test& test) {
  const Shell shell(test, "generate");
  std::string documents;
  for (int i = 0; i < 200; ++i) documents += "ab<|endoftext|>";
  shell.write("documents", documents);
  shell.expect_script(
      "tokenize --train 258 --save t.json documents && train_text --name e --data documents --tokenizer t.json "
      "--steps 60 --lr 0.02 --warmup 0 --eval-samples 8 --sample-length 0 --context 8 --batch 8 --width 16 --layers 1",
      0, "bpe, 258 tokens");
  const std::string words = "runs/e --temperature 0 --length 20 --prompt ";
  test.equal("writing stops there", shell.run(words + "ab --quiet").output, "ab\n");
  shell.expect(words + "'ab<|endoftext|>'", 0,
               "note: <|endoftext|> in the prompt is read as its letters; --special: as one token\n");
  test.check("as one token, without a note", !shell.run(words + "'ab<|endoftext|>' --special").prints("note"));
  const std::string wild = words + "\"$(printf 'a\\033[31m\\007\\016\\tb')\" --quiet --length 0";
  test.equal("control characters into a pipe", shell.run(wild).output, "a\033[31m\007\016\tb\n");
  test.equal("on a terminal", on_terminal(shell, "generate " + wild), "a\\x1B[31m\\x07\\x0E\tb\r\n");
}

void generation(Test& test) {
  const Shell shell(test, "generate");
  shell.script("train_text --name t --steps 3" + TEXT + "; train_copy --name c --steps 1" + SMALL);
  const std::string run = "runs/t --length 40 --quiet --prompt 'One ' ";
  const std::string once = shell.expect(run + "--seed 5", 0, "One ").output;
  test.check("continues the prompt", once.rfind("One ", 0) == 0 && once.size() >= 45, once);  // beyond the context of 8
  test.equal("the same seed", shell.run(run + "--seed 5 --threads 2").output, once);
  test.check("another seed", shell.run(run + "--seed 6").output != once);
  const std::string both = shell.run(run + "--seed 5 --samples 2").output;
  test.check("two samples, of which the second is another one",
             both.size() > once.size() && both.substr(0, once.size()) == once && both.substr(once.size()) != once,
             both);
  const std::string any = shell.run("runs/t --length 400 --quiet --seed 5 --temperature 100").output;
  test.check("each token is a draw of its own", std::set<char>(any.begin(), any.end()).size() > 100, any);
  test.equal("the likeliest", shell.run(run + "--temperature 0").output, shell.run(run + "--top-k 1 --seed 9").output);
  test.equal("of next to nothing", shell.run(run + "--top-p 0").output, shell.run(run + "--top-k 1").output);
  shell.expect({
      {run + "--temperature 0 --top-k 3", 2, "--top-k 3: does nothing with --temperature 0"},
      {"runs/t/model.safetensors --length 3 --samples 2", 0, "--- 2"},
      {"runs/t --length 3 --prompt 'One day he went'", 0, "note: the prompt has 15 tokens and the model reads 8"},
      {"runs/c", 1, "has no tokenizer: this model was trained by train_copy"},
      {"nowhere.safetensors", 1, "nowhere.safetensors"},
      {"runs/t --prompt '\xC3\xA9'", 1, "generate: --prompt: line 1, byte 0: '\u00E9' is no 7-bit ASCII character\n"},
      {"runs/t --prompt '\uFEFFOne '", 1, "'\\uFEFF' is no 7-bit ASCII"},
      {"", 2, "expected CHECKPOINT"},
  });
  vocabularies(test, shell);
  windows_and_talk(test, shell);
  of_a_checkpoint(test, shell);
  conversions(shell);
}

// ---- train_regular --------------------------------------------------------------------------------------------------

double mean(const std::vector<double>& of) {
  double sum = 0;
  for (const double one : of) sum += one;
  return sum / static_cast<double>(of.size());
}

// What the tables of runs/whole, of two seeds, have of their tests.
void results_of_seeds(Test& test, const Shell& shell, const Outcome& said) {
  const auto table = [&](const std::string& file) { return Cells(shell.read("runs/" + file)); };
  const Cells results = table("whole/results.csv"), both = table("whole/probabilities.csv");
  std::vector<double> means;
  std::vector<Cells> alone;
  for (const size_t seed : {0, 1}) {
    const std::string number = std::to_string(seed + 1), name = "seed " + number + ": ";
    const CsvTable tested = read_csv(shell.file("runs/whole/parity_check-seed-" + number + "/test.csv"));
    test.equal(name + "lengths", tested.column("length"), std::vector<double>{11, 12, 13, 14});
    means.push_back(mean(tested.column("accuracy")));
    test.equal(name + "accuracy", results.rows[seed][4], number_text(means.back(), 9));
    test.equal(name + "one answer", results.rows[seed][5], number_text(mean(tested.column("one_answer")), 9));
    // Alone, with strings besides whose symbols are alike, as in the test without probabilities.
    shell.run("--name alone --seeds " + number + " --parity-probability 10,50" + REGULAR);
    alone.push_back(table("alone/probabilities.csv"));
    const std::vector<std::string> result = table("alone/results.csv").rows.at(0);
    test.check(name + "at the training length and on longer strings",
               alone.back().rows[1][2] == result[6] && alone.back().rows[3][2] == result[4] && result[6] != result[4]);
    shell.script("rm -r runs/alone");
  }
  const double best = std::max(means[0], means[1]), worst = std::min(means[0], means[1]);
  test.check("best, mean and worst",
             best > worst && said.prints(text("2 seeds: best %.2f %%, mean %.2f %%, worst %.2f %%", 100 * best,
                                              50 * (best + worst), 100 * worst)),
             said.output);
  for (const size_t row : {0, 1}) {
    test.check("by probability", both.rows[row][0] == (row == 0 ? "same" : "longer") && both.rows[row][1] == "0.1");
    const auto share = [&](size_t seed) { return *parse_number(alone[seed].rows[2 * row][2]); };
    test.equal("the mean of the seeds", both.rows[row][2], number_text((share(0) + share(1)) / 2, 9));
  }
}

void regular(Test& test) {
  const Shell shell(test, "train_regular");
  const Outcome whole =
      shell.expect("--name whole --seeds 1,2 --parity-probability 10" + REGULAR, 0,
                   {"2 seeds: best", "at the training length",
                    "saved runs/whole (results.csv, lengths.svg, probabilities.csv, and a run each)"});
  shell.leaves("runs/whole/", {"results.csv", "probabilities.csv", "lengths.svg", "parity_check-seed-2/test.csv"});
  results_of_seeds(test, shell, whole);
  // As if it had been killed before its first checkpoint.
  const std::string results = shell.read("runs/whole/results.csv");
  shell.script("rm runs/whole/parity_check-seed-2/model.safetensors runs/whole/results.csv");
  shell.run("--name whole --seeds 1,2 --parity-probability 10" + REGULAR);
  test.equal("a run without a checkpoint starts anew", shell.read("runs/whole/results.csv"), results);
  const std::string next = " --protocol next --train-length 10" + SMALL_REGULAR;
  for (const std::string model : {"transformer", "rnn", "mamba", "regular_gpt --form dilated"})
    shell.expect("--task Tomita_5 --model " + model + REGULAR, 0, "Tomita_5");
  for (const std::string model : {"transformer", "rnn", "mamba", "regular_gpt"})
    shell.expect("--task D_3 --model " + model + next, 0, "21 to 30");
  shell.expect({
      {"--all-tasks --quiet --model rnn" + REGULAR, 0, "D_12"},
      {"--task D_3 --near-misses" + REGULAR, 0, "D_3                       1    12 to 14"},
      {"--all-tasks --near-misses --quiet" + REGULAR, 0, "Tomita_6"},
      {"--name shares --task Tomita_5" + REGULAR, 0, "Tomita_5"},  // members are of even lengths
      {"--name few --task cycle_navigation --model rnn" + REGULAR, 0, "cycle_navigation"},
      {"--name more --task cycle_navigation --model rnn --seed 2" + REGULAR + "--steps 9", 0, "cycle_navigation"},
      {"--name sets --task D_3 --model rnn" + next, 0, "21 to 30"},
  });
  test.check("what one answer scores, and the training's own length",
             shell.read("runs/shares/results.csv").find(",0.75,0.5\n") != std::string::npos);
  const auto one_answer = [&](const std::string& run) {  // for each length, the most frequent right answer's share
    return read_csv(shell.file("runs/" + run + "/test.csv")).column("one_answer");
  };
  test.equal("of each length", one_answer("shares/Tomita_5-seed-1").at(0), 1.0);
  test.equal("all models, seeds and steps are tested on the same strings", one_answer("few/cycle_navigation-seed-1"),
             one_answer("more/cycle_navigation-seed-2"));
  const std::string curve = shell.read("runs/sets/D_3-seed-1/curve.svg");
  test.check("its figure names the loss",
             curve.find("squared error") != std::string::npos && curve.find("nats") == std::string::npos);
}

void regular_errors(Test& test) {
  const Shell shell(test, "train_regular");
  shell.expect({
      {"--task parity", 2, "--task parity: expected one of"},
      {"--chunk 1", 2, "--chunk 1: expected a whole number from 2"},
      {"--thickness 2", 2, "--thickness 2: does nothing with --form chunked"},
      {"--task D_3 --model rnn --batch 1 --threads 1", 2, "--batch 1: D_3 has a member and another string in turn"},
      {"--test-from 50 --test-to 48", 2, "--test-from 50, --test-to 48: expected them in"},
      {"--test-from 30", 2, "--train-length 40, --test-from 30, --test-to 500: expected them in rising order"},
      {"--train-length 600", 2, "--train-length 600, --test-from 601, --test-to 500: expected them in rising order"},
      {"--near-misses", 2, "--near-misses: does nothing with --task parity_check"},
      {"--protocol next", 2, "--protocol next: does nothing with --task parity_check"},
      {"--task D_2 --near-misses --test-from 51 --test-to 51", 2, "D_2 has no members of the lengths of this test"},
      {"--task D_4 --test-every 999", 2, "that take in a length with members"},
      {"--all-tasks --test-every 46", 2, "D_2 has no members of the lengths of this test, 51 to 100, every 46"},
      {"--task D_2 --protocol next --train-length 1", 2, "--protocol next has strings of 2 symbols and more"},
      {"--task D_2 --protocol next --train-length 2", 1, "D_2: all strings of 2 to 2 symbols are in the test"},
      {"--task D_2 --protocol next --form chunked", 1, "form \"chunked\" has logits of the last position only"},
      {"--task D_2 --protocol next --test-to 90", 2, "--test-to 90: does nothing with --protocol next"},
      {"--resume --name nothing", 1, "runs/nothing: there is no such folder to continue"},
      {"--seed 1 --seeds 2", 2, "--seed 1: --seeds is given as well"},
      {"--all-tasks --task D_2", 2, "--task D_2: --all-tasks are every language"},
      {"--task D_2 --parity-probability 10", 2, "--parity-probability 10: does nothing with --task D_2"},
      {"--leading-plus", 2, "--leading-plus: does nothing with --task parity_check"},
  });
  test.check("nothing was made", !shell.exists("runs"));
#if !ASAN  // the sanitizer reserves the whole address space
  shell.expect("--test-from 1048576 --test-to 1048576" + SMALL_REGULAR + "--train-length 10 --width 64", 1,
               "train_regular: not enough memory", "ulimit -v 1000000;");
#endif
}

// ---- scaling --------------------------------------------------------------------------------------------------------

// Of runs/whole: C = 6ND in whole steps of 8 windows, with one target token each; perplexities are exp of losses;
// warm-up takes a tenth of the steps.
void check_points(Test& test, const Shell& shell) {
  const Cells points(shell.read("runs/whole/points.csv"));
  test.equal("points", points.rows.size(), size_t(12));
  for (size_t row = 0; row < points.rows.size(); ++row) {
    const auto number = [&](size_t i) { return *parse_number(points.rows[row].at(i)); };
    const double budget = number(2), N = number(4), D = number(5), steps = number(6), loss = number(7);
    const std::string name = points.rows[row][0];
    test.check(name + ": tokens", D == 8 * steps && std::abs(budget - 6 * N * D) <= 6 * N * 4);
    test.check(name + ": perplexity", std::abs(number(8) - std::exp(loss)) <= 1e-6 * std::exp(loss));
    const CsvTable log = read_csv(shell.file("runs/whole/" + name + "/log.csv"));
    const std::vector<double>& rate = log.column("learning_rate");
    const size_t warm = static_cast<size_t>(steps) / 10;
    test.check(name + ": the last row", log.column("step").back() == steps && log.column("eval_loss").back() == loss);
    test.check(name + ": the learning rate",
               rate[0] == 0 && rate[warm] == 0.002 && rate[static_cast<size_t>(steps) - 1] <= 0.0001 &&
                   std::abs(rate[warm / 2] - 0.002 * double(warm / 2) / double(warm)) <= 1e-9);
  }
}

void scaling(Test& test) {
  const Shell shell(test, "scaling");
  const std::string small = " --widths 4,8,16 --context 4 --heads 1 --batch 8 --eval-samples 16 ";
  const std::string both = " --budgets 2e7,4e7 ";
  const Outcome whole =
      shell.expect("--name whole" + both + small, 0, {"12 runs in runs/whole", "N_opt ∝ C^", "weights "});
  shell.leaves("runs/whole/",
               {"points.csv", "optima.csv", "laws.csv", "scaling_mlp_lm.svg", "scaling_transformer.svg", "loss.svg"});
  check_points(test, shell);
  // Without one run, and with other threads.
  const std::string points = shell.read("runs/whole/points.csv");
  const std::string done = shell.read("runs/whole/mlp_lm-C4e7-w16/model.safetensors");
  shell.script("cd runs/whole && rm -r mlp_lm-C4e7-w8 points.csv");
  test.equal("again: weights", shell.run("--name whole --threads 2" + both + small).weights(), whole.weights());
  test.equal("again: points", shell.read("runs/whole/points.csv"), points);
  test.check("a finished run is kept", shell.read("runs/whole/mlp_lm-C4e7-w16/model.safetensors") == done);
  const std::string depths =
      "--name d --what dct --depths 1 --transformer-depths 1 --tokens 640 --context 16 --embedding 8 --eval-samples 4";
  shell.expect({
      {"--name shards --shards 3 --models mlp_lm --budgets 4e7" + small, 2, "--shards 3"},
      {"--budgets 1e30 --models mlp_lm --list" + small, 2, "expected at least one and at most 2147483647"},
      {"--name whole" + both + small + "--context 5", 1, "this run's cosine schedule was laid out over"},
      {"--what context --budgets 1e9", 2, "--budgets 1e9: does nothing with --what context"},
      {"--widths 4,8 --context 4", 2, "--widths: 2 of them, expected three or more"},
      {"--models gru", 2, "\"gru\": expected mlp_lm or transformer"},
      {"--models transformer --widths 12,16,20 --heads 2", 2, "--heads 2: a model's 3 channels (--embedding)"},
      {"--list --models mlp_lm --heads 3", 0, "mlp_lm"},
      {"--name nan --lr 1000 --clip 0 --lr-floor 1000 --models mlp_lm" + both + small, 1, "training has diverged"},
      {depths, 0, "dct.svg"},
      {depths + " --heads 2", 1, "runs/d/dct_mlp-L1-D640/model.safetensors: its model is {"},
      {"--list --name list --preset paper --what context --tokens 1e9", 0, "mlp_lm-w16384-T127-D1e9"},
      {"--what context --contexts 1,2,5 --widths 8 --tokens 64 --batch 8 --eval-samples 16", 0, "context.svg"},
  });
  test.check("what is refused or listed leaves nothing", !shell.exists("runs/shards") && !shell.exists("runs/list"));
}

// ---- inspect --------------------------------------------------------------------------------------------------------

void neurons(Test& test) {
  const Shell shell(test, "inspect");
  const std::string train = "train_text --quiet --name ", mlp = " --model mlp_lm --embedding 6" + WINDOWS;
  shell.script(train + "m --steps 5 --snapshots 4" + mlp + ";" + train + "wide --steps 1" + mlp + "--context 9;" +
               train + "t --steps 1" + TEXT);
  // Every fourth step, and halves of that before.
  test.equal("snapshots", shell.script("ls runs/m/snapshots").output,
             "step-0.safetensors\nstep-1.safetensors\nstep-2.safetensors\nstep-4.safetensors\n");
  shell.expect("neurons runs/m", 0, {"6 neurons, context 8, embedding 6", "step 5"});
  shell.leaves("runs/m/neurons/", {"types.svg", "ratios.svg", "norms.svg", "windows.svg", "words.txt"});
  test.equal("a row for each step", Cells(shell.read("runs/m/neurons/types.csv")).rows.size(), size_t(5));
  shell.script("cp runs/m/snapshots/step-1.safetensors runs/m/best.safetensors; rm runs/m/snapshots/step-1.*");
  shell.run("neurons runs/m --out fewer");
  test.equal("the best is no snapshot", Cells(shell.read("fewer/types.csv")).rows.size(), size_t(4));
  shell.script(
      "cp runs/wide/model.safetensors runs/m/snapshots/step-9.safetensors; "
      "head -c 2000 runs/m/model.safetensors > cut");
  shell.expect({
      {"neurons runs/m/snapshots/step-2.safetensors --out one", 0, "step 2 "},
      {"neurons runs/t", 1, "runs/t/model.safetensors: transformer has no first.weight"},
      {"neurons runs/m", 1, "another model than that of runs/m/snapshots/step-"},
      {"neurons cut", 1, "cut: "},
  });
  test.check("one step has no curve", shell.exists("one/types.csv") && !shell.exists("one/types.svg"));
}

// Of runs/p, at 48 characters: after two steps the layers look everywhere nearly alike.
void check_looks(Test& test, const Shell& shell) {
  const Cells looks(shell.read("runs/p/attention.csv"));
  test.equal("layers", looks.rows.size(), size_t(2));
  double alike = 0;
  for (int t = 1; t < 48; ++t) alike += 1.0 / (t + 1) / 47;
  for (size_t row = 0; row < looks.rows.size(); ++row) {
    const double own = looks.number(row, "own"), entropy = looks.number(row, "entropy");
    test.check("where a layer looks", std::abs(own - alike) < 0.02 && entropy > 0.95 && entropy <= 1);
  }
}

void inspect(Test& test) {
  const Shell shell(test, "inspect");
  shell.expect("positions --steps 2 --trials 2 --threads 1 --name p", 0, "sees a set at the last position");
  shell.leaves("runs/p/", {"attention.svg"});
  check_looks(test, shell);
  const Cells positions(shell.read("runs/p/positions.csv"));
  const auto row = [&](const std::string& words) {  // moved, last, later, perplexity
    for (const std::vector<std::string>& cells : positions.rows)
      if (join(cells, ",").rfind(words + ",", 0) == 0) return cells;
    return std::vector<std::string>(9);
  };
  const auto number = [&](const std::string& words, size_t i) { return std::atof(row(words).at(5 + i).c_str()); };
  const std::string none = "transformer,no,2,none,random", one = "transformer,yes,1,none,random",
                    two = "transformer,yes,2,none,random", trained = "transformer,yes,2,none,trained";
  test.check("its table: a set", number(none, 0) < 1e-5 && row(none)[0] == "transformer");
  test.check("its table: a set behind the last token", number(one, 0) > 1e-3 && number(one, 1) < 1e-5);
  test.check("its table: a sequence",
             number(two, 1) > 1e-3 && number(two, 2) > 1e-3 && number(two, 2) < number(two, 1));
  test.check("its table: chance of 128 characters", number(trained, 3) > 120 && number(trained, 3) < 135);
  shell.write("ab", "abababababababababab");
  shell.write("digits", std::string(100, '1'));
  shell.expect({
      {"", 0, "positions"},
      {"position", 2, "unknown subcommand position, expected one of"},
      {"lemma1 --n 3 --trials 50", 0, "50 of 50 random products right"},
      {"counts --data ab --val ab --last 1",
       0,
       {"the last 1 token: perplexity 1.",  // and (10 + 2/128) / 22
        "the last 0 tokens: perplexity 2.20, 1.135 bits a token, 1 row of 0\n"}},
      {"counts --data ab --val ab --last 1 --context 3", 0,
       "the last 0 tokens: perplexity 2.20, in windows of 3 2.20, 1.135 bits"},
      {"counts --format text --val ab --last 1", 0, "20 of ab asked"},
      {"counts --data ab --val ab --last 1 --evaluate-length 4 --length-windows 8", 0, "8 of ab asked\n"},
      {"counts --data digits --last 0", 0, "5 of the end of digits asked"},
      {"counts --data ab --val ab --val-part 0.3", 2, "--val-part 0.3: does nothing with --val ab"},
      {"counts --data ab --val ab --evaluate-length 20", 1, "ab: 20 tokens are less than a window of 20"},
      {"counts --length-windows 3", 2, "--length-windows 3: does nothing without --evaluate-length\n"},
      {"counts --context 3 --evaluate-length 3", 2, "--context 3: does nothing with --evaluate-length"},
      {"counts --data ab --last 9", 2, "--last 9: expected at most 7 with 128 tokens"},
  });
}

// runs/t is a Transformer of one layer that learned from windows of 8, runs/m Mamba.
void attention(Test& test, const Shell& shell, const std::string& language) {
  const std::string linear = "train_text --quiet --steps 1 --model linear_transformer" + TEXT;
  shell.script(linear + "--name l; " + linear + "--name u --feature-map identity; " +
               "cp runs/t/model.safetensors runs/t/copy.safetensors; train_text --quiet --name g --steps 1 "
               "--model regular_gpt --chunk 2" +
               TEXT);
  shell.expect("attention runs/t runs/l --windows 3 --out looks", 0, "weight on the new token");
  const Cells looks(shell.read("looks/attention.csv"));
  test.equal("a row a layer", looks.rows.size(), size_t(2));
  for (size_t row = 0; row < looks.rows.size(); ++row) {
    const double own = looks.number(row, "own"), entropy = looks.number(row, "entropy");
    test.check("shares", own > 0 && own < 1 && entropy > 0 && entropy <= 1);
  }
  shell.expect({
      {"attention runs/t --windows 5000 --text own.txt --out looks", 0, "49 windows of 8 tokens of own.txt\n"},
      {"attention runs/t/copy.safetensors --windows 1 --out looks", 0, "t/copy.safetensors: transformer"},
      {"attention runs/t --out runs/t/log.csv", 1, "runs/t/log.csv: cannot make the folder: Not a directory"},
      {"attention runs/t runs/l --windows 1 --out looks", 0, "l: linear_transformer, 1 layer, 1 window of 8 tokens"},
      {"attention runs/g", 1, "this regular_gpt does not attend to all earlier tokens"},
      {"attention runs/t --length 1", 2, "--length 1: expected at least 2"},
      {"attention runs/l --length 9", 2, "--length 9: runs/l/model.safetensors reads 8 tokens at most"},
      {"attention runs/u", 1, "does not normalize its attention"},
      {"attention runs/t runs/m", 1, "this mamba does not attend to all earlier tokens"},
      {"attention " + language, 1, "a checkpoint of train_regular, expected one"},
  });
}

void inspect_checkpoints(Test& test) {
  const Shell shell(test, "inspect");
  const std::string train = "train_regular --quiet" + REGULAR;
  shell.write("own.txt", std::string(400, 'x'));
  shell.script(train + "--name a; " + train + "--name b --task D_2 --form dilated; " + train +
               "--name c --model transformer --task Tomita_4; " + train +
               "--name r --model rnn; train_text --quiet --name t --steps 2 --position alibi" + TEXT +
               "; train_text --quiet --name m --model mamba --steps 1" + WINDOWS +
               "; train_text --quiet --name own --steps 1 --data own.txt --position alibi" + TEXT);
  const std::string a = "runs/a/parity_check-seed-1", b = " runs/b/D_2-seed-1", c = " runs/c/Tomita_4-seed-1",
                    r = " runs/r/parity_check-seed-1";
  shell.expect({
      {"clusters --length 60 " + a + b + "/model.safetensors", 0, "60 vectors of 6 layers"},
      {"clusters --length 14 --out there" + c, 0, "saved there"},
      {"clusters --length 2 " + a, 1, "principal components of 1 points"},
      {"clusters --length 1" + c, 2, "--length 1: expected"},
      {"clusters runs/a", 1, "runs/a: the run in this folder is runs/a/parity_check-seed-1: name that"},
      {"clusters", 2, "./train_regular makes one"},
      {"clusters --out mixed --length 60 " + a + r, 1,
       "a rnn does not show its layers; regular_gpt and transformer do"},
      {"clusters runs/t", 1, "a checkpoint of train_text, expected one of train_regular"},
      {"info runs/t", 0,
       "  F32   24×8             blocks.0.attention.qkv.weight\n"
       "  F32   24               blocks.0.attention.qkv.bias\n"},
      {"receptive-field --length 30 " + a + b + r + " runs/t", 0,
       "transformer, text: of 30 positions, from the last one, half of the gradient is within "},
      {"receptive-field --out longer --length 16" + c, 0, "transformer, Tomita_4: of 16 positions"},
      {"receptive-field runs/own --length 30 --text own.txt", 0, "transformer"},
      {"receptive-field " + r + " --text nowhere", 2, "--text nowhere: this model was trained on a regular language"},
      {"heatmap runs/t", 1, "this transformer reads no images"},
      {"heatmap runs/t runs/m", 2, "runs/m: expected one checkpoint"},
  });
  shell.leaves(a, {"/clusters.csv", "/clusters.svg"});
  test.check("the last model is looked at before the first is measured", !shell.exists("mixed/clusters.csv"));
  test.check("ends at one", shell.read(a + "/receptive_field.csv").find(a + ",0,1\n") != std::string::npos);
  attention(test, shell, a);
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  test.run("usage", usage);
  test.run("quoted parameters", quoted_parameters);
  test.run("run and resume", run_and_resume);
  test.run("reference", reference);
  test.run("seeds", seeds);
  test.run("comparison", comparison);
  test.run("learning", learning);
  test.run("damaged", damaged);
  test.run("threads", threads);
  test.run("wrong weights", wrong_weights);
  test.run("text", text_runs);
  test.run("text, measured", text_measured);
  test.run("configurations", configurations);
  test.run("generation", generation);
  test.run("texts with an end", texts_with_an_end);
  test.run("regular", regular);
  test.run("regular, bad options", regular_errors);
  test.run("scaling", scaling);
  test.run("neurons", neurons);
  test.run("inspect", inspect);
  test.run("inspect checkpoints", inspect_checkpoints);
  return test.finish();
}
