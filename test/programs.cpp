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

// Of a checkpoint's log.
std::string checksum_of_rows(const std::string& checkpoint) { return SafetensorsFile(checkpoint).metadata("log"); }

class ProgramTest : ProgramChecks {
 public:
  ProgramTest(Test& test, const std::string& program) : ProgramChecks(test), program_(program) {}

  void usage() {
    const Shell shell(program_);
    expect(shell, "help", "--help", 0, "--length");
    for (const char* word : {"--help > /dev/full", "--version > /dev/full"})
      expect(shell, word, word, 1, "cannot write to the standard output");
    expect(shell, "unknown option", "--lenght 5", 2, "train_copy: unknown option --lenght (did you mean --length?)");
    expect(shell, "length 0", "--length 0", 2, "--length 0: expected a whole number from 1");
    expect(shell, "heads", "--heads 5", 2, "train_copy: --heads 5 does not divide --hidden 192");
    expect(shell, "no number", "--lr fast", 2, "--lr fast: expected a number");
    expect(shell, "no such model", "--model gru", 2, "causal_rn");
    expect(shell, "a path for a name", "--name ../a", 2, "--name ../a: expected letters");
    test_.check("nothing was made", !shell.exists("runs"));
    expect(shell, "too many samples a step",
           "--batch 65536 --shards 65536 --accumulate 65536 --length 1 --width 4 --layers 1", 2,
           "--batch 65536 --accumulate 65536: expected at most 2,147,483,647 samples a step");
  }

  void run_and_resume() {
    const Shell shell(program_);
    const Outcome whole = expect(shell, "a run", "--name whole --steps 9" + SMALL, 0, "one token at a time");
    leaves(shell, "runs/whole/", {"log.csv", "model.safetensors", "curve.svg"});
    test_.equal("three threads", shell.run("--name three --steps 9" + SMALL + "--threads 3").weights(),
                whole.weights());
    shell.run("--name parts --steps 5" + SMALL);
    test_.equal("resumed", shell.run("--name parts --resume --steps 9").weights(), whole.weights());
    test_.equal("its log", shell.log("parts"), shell.log("whole"));
    const auto without_seconds = [&](const char* name) {
      return checksum_of_rows(shell.file(std::string("runs/") + name + "/model.safetensors"));
    };
    test_.equal("its checkpoint knows the same log", without_seconds("parts"), without_seconds("whole"));
    expect(shell, "a run that exists", "--name whole" + SMALL, 1, "runs/whole: exists already");
    expect(shell, "another width", "--name whole --resume --width 16", 1,
           "--width 16: this run was started with --width 12");
    expect(shell, "no such run", "--name nothing --resume", 1, "runs/nothing: there is no such run to resume");
    expect(shell, "names by itself", "--steps 0" + SMALL, 0, "saved runs/copy ");
    expect(shell, "and again", "--steps 0" + SMALL, 0, "saved runs/copy-2 ");
  }

  // The reference device trains, saves and resumes as the CPU does, to the bit.
  void reference() {
    const Shell shell(program_);
    const std::string run = "--length 4 --width 16 --layers 2 --steps 20 --stop-at 2 --device ";
    const Outcome cpu = shell.run("--name cpu " + run + "cpu"),
                  reference = shell.run("--name loops " + run + "reference");
    test_.check("names itself", reference.prints("reference (plain loops, one thread)"), reference.output);
    test_.check("ends with weights", reference.weights().size() == 16, reference.output);
    test_.equal("the CPU's weights", reference.weights(), cpu.weights());
    test_.equal("the CPU's log", shell.log("loops"), shell.log("cpu"));
    const auto resumed = [&](const char* name, const char* device) {
      return shell.run(text("--name %s --resume --steps 23 --device %s", name, device)).weights();
    };
    test_.equal("each resumed on the other device", resumed("loops", "cpu"), resumed("cpu", "reference"));
  }

  // The run of the README: all defaults.
  void defaults() {
    const Shell shell(program_);
    shell.run("--steps 0 --eval-samples 1 --name a --threads 1");
    const SafetensorsFile file(shell.file("runs/a/model.safetensors"));
    test_.equal("the model", file.metadata("config"),
                "{\"vocab\":29,\"context\":66,\"width\":192,\"layers\":12,\"hidden\":192,\"heads\":1,\"causal\":true,"
                "\"activation\":\"exp\",\"pre_activation_norm\":\"exact\",\"post_reduction_norm\":true}");
    const Json options = Json::parse(file.metadata("options"), "options");
    for (const auto& [name, value] : {std::pair("length", "32"),
                                      {"batch", "64"},
                                      {"accumulate", "1"},
                                      {"stop-at", "1"},
                                      {"lr", "0.0005"},
                                      {"warmup", "50"},
                                      {"schedule", "\"constant\""},
                                      {"lr-floor", "0"},
                                      {"beta1", "0.9"},
                                      {"beta2", "0.999"},
                                      {"epsilon", "1e-08"},
                                      {"weight-decay", "0"},
                                      {"clip", "1"},
                                      {"seed", "1"},
                                      {"eval-every", "10"}})
      test_.equal(name, options.at(name).text(), value);
  }

  // One seed is of the initial weights and of the samples.
  void seeds() {
    const Shell shell(program_);
    const std::string one = shell.run("--name one --steps 0 --seed 1" + SMALL).weights(),
                      two = shell.run("--name two --steps 0 --seed 2" + SMALL).weights();
    test_.check("other weights", one != two);
    test_.equal("which are the same whatever else",
                shell.run("--name same --steps 0 --batch 4 --lr 1" + SMALL).weights(), one);
    for (const char* seed : {"1", "2"})
      shell.run(std::string("--name from-") + seed + " --steps 1 --init runs/one --seed " + seed + SMALL);
    const CsvTable first = read_csv(shell.file("runs/from-1/log.csv")),
                   second = read_csv(shell.file("runs/from-2/log.csv"));
    test_.check("other samples to learn from", first.column("loss")[0] != second.column("loss")[0]);
    test_.check("and to be evaluated on", first.column("eval_loss")[0] != second.column("eval_loss")[0]);
    test_.check("which are not those that it learns from", first.column("eval_loss")[0] != first.column("loss")[0]);
  }

  // The papers' sizes (causal_rn_workshop, appendix D) are the defaults.
  void parameter_counts() {
    const Shell shell(program_);
    for (const auto& [model, blocks] : {std::pair("causal_rn", "1,331,712"),
                                        {"transformer", "5,329,152"},
                                        {"transformer --norm affine", "5,338,752"},
                                        {"rnn --hidden 8", "1,248"}})
      expect(shell, model, std::string("--steps 0 --eval-samples 1 --length 4 --model ") + model, 0,
             std::string(blocks) + " without embeddings and readout");
  }

  void comparison() {
    const Shell shell(program_);
    const std::string list = "--compare transformer,rnn:hidden=8,transformer:position=none --evaluate-lengths 3,6 ";
    const Outcome whole =
        expect(shell, "a comparison", list + "--name whole --steps 9" + SMALL, 0, "transformer:position=none");
    leaves(shell, "runs/whole/", {"compare.csv", "compare.svg", "lengths.csv", "lengths.svg", "rnn-hidden-8/log.csv"});
    for (const char* name : {"compare.svg", "lengths.svg"})
      test_.check(std::string("what guesses would reach stands in ") + name,
                  shell.read(std::string("runs/whole/") + name).find(">chance<") != std::string::npos);
    const Outcome alone =
        shell.run("--model transformer --position none --evaluate-lengths 3,6 --name alone --steps 9" + SMALL);
    test_.check("the weights of each are said", whole.prints("  " + alone.weights() + "\n"), whole.output);
    test_.check("and kept",
                shell.read("runs/whole/compare.csv").find("," + alone.weights() + "\n") != std::string::npos);
    const Outcome folder = expect_script(shell, "its folder is that of no checkpoint", "inspect info runs/whole", 1,
                                         "runs/whole: several runs are in this folder (rnn-hidden-8, transformer, "
                                         "transformer-position-none): name one of them");
    test_.equal("a variant is the run that it would be alone", shell.log("alone"),
                shell.log("whole/transformer-position-none"));
    shell.run(list + "--name parts --steps 5" + SMALL);
    shell.run(list + "--name parts --steps 9" + SMALL);
    test_.equal("continued: a log", shell.log("parts/rnn-hidden-8"), shell.log("whole/rnn-hidden-8"));
    same_files(shell, "continued: ", "runs/parts/", "runs/whole/", {"compare.csv", "lengths.csv"});
    expect(shell, "no such comparison", "--compare rnn --resume --name nowhere" + SMALL, 1,
           "runs/nowhere: there is no such folder to continue");
    expect(shell, "an empty variant", "--compare rnn,,rnn", 2, "\"\": expected a model or OPTION=VALUE");
    expect(shell, "the same twice", "--compare rnn,rnn", 2, "\"rnn\" is listed twice");
    expect(shell, "a bad last variant", "--compare rnn,transformer:heads=5" + SMALL, 2, "--heads 5 does not divide");
    expect(shell, "in other words", "--compare lr=1e-3,lr=0.001 --steps 1", 2,
           "--compare lr=1e-3,lr=0.001: lr=1e-3 and lr=0.001 are the same");
    expect(shell, "help instead", "--compare rnn,help=x" + SMALL, 2,
           "--compare rnn,help=x: \"help=x\": --help is common to all variants");
    expect(shell, "no such model", "--compare gru" + SMALL, 2, "--model gru: expected one of");
    expect(shell, "a last variant that starts from nothing", "--name no --compare rnn,transformer:init=none" + SMALL, 1,
           "none: ");
    expect(shell, "from another model", "--name no --compare transformer,rnn:init=runs/alone" + SMALL, 1,
           "has no tensor cell.input.weight, which this model wants\n");
    test_.check("leave nothing", !shell.exists("runs/no") && !shell.exists("runs/compare"));
    expect(shell, "lengths of one variant", "--compare rnn:evaluate-lengths=3,transformer" + SMALL, 2,
           "--evaluate-lengths is common to all variants");
    expect(shell, "no such device", "--device cuda:x" + SMALL, 2,
           "--device cuda:x: expected one of auto, cpu, cuda, cuda:N, reference");
    expect(shell, "a length of 0", "--evaluate-lengths 3,0", 2,
           "--evaluate-lengths 3,0: expected whole numbers from 1");
    idle_options(shell);
  }

  // The step of a log's first evaluation of this accuracy, as a table has it; empty where there is none.
  static std::string first_of(const CsvTable& log, double accuracy) {
    for (size_t i = 0; i < log.rows(); ++i)
      if (log.column("eval_accuracy")[i] >= accuracy) return exact_text(log.column("step")[i]);
    return "";
  }

  // "50 % at step 95, 90 and 99 % at step 100, 100 % at step 110"
  static std::string milestones(const CsvTable& log) {
    std::vector<std::pair<std::string, std::string>> parts;  // percents, step
    for (const auto& [percent, accuracy] : {std::pair("50", 0.5), {"90", 0.9}, {"99", 0.99}, {"100", 1.0}}) {
      const std::string step = first_of(log, accuracy);
      if (step.empty()) continue;
      if (parts.empty() || parts.back().second != step)
        parts.emplace_back(percent, step);
      else
        parts.back().first += std::string(", ") + percent;
    }
    std::vector<std::string> words;
    for (auto& [percents, step] : parts) {
      const size_t comma = percents.rfind(", ");
      if (comma != std::string::npos) percents.replace(comma, 2, " and ");
      words.push_back(percents + " % at step " + step);
    }
    return join(words, ", ");
  }

  // Strings of two letters, which are learned in less than 200 steps.
  void learning() {
    const Shell shell(program_);
    const std::string two =
        " --length 2 --width 16 --hidden 16 --layers 1 --batch 32 --lr 0.01 --eval-every 5 --eval-samples 64 --threads "
        "1 ";
    const Outcome learned = shell.run("--name a --steps 2000 --evaluate-lengths 1,2,6" + two);
    const CsvTable log = read_csv(shell.file("runs/a/log.csv"));
    const std::string last = exact_text(log.column("step").back());
    test_.check("ends with the first evaluation that is all right",
                first_of(log, 1) == last &&
                    learned.prints("Stopped at step " + last + ": accuracy 100 % reached (--stop-at 1). Time: "),
                learned.output);
    test_.check("and shows it", learned.prints("\nstep " + last + "  evaluated: loss "), learned.output);
    test_.check("says when it was half right, and more",
                learned.prints("Accuracy first reached " + milestones(log) + ".\n"), learned.output);
    const std::string one = "one token at a time, 64 fresh strings of 2 letters: accuracy ";
    const size_t said = learned.output.find(one);
    test_.check("token by token, too", said != std::string::npos && std::atof(&learned.output[said + one.size()]) > 90,
                learned.output);
    const CsvTable lengths = numbers_of(shell.file("runs/a/lengths.csv"));
    test_.check("strings of its length, and of no other",
                lengths.column("1")[0] < 0.1 && lengths.column("2")[0] > 0.9 && lengths.column("6")[0] < 0.1,
                learned.output);
    const std::string size = "A checkpoint takes 0.1 GB; 2 of them are kept: model, previous.\n";
    const std::string one_step = " --length 4 --batch 1 --steps 1 --eval-samples 1 --stop-at 2 --name ";
    test_.check(
        "large checkpoints are announced",
        shell.run("--model rnn --hidden 1500" + one_step + "large").prints(size) && !learned.prints("A checkpoint"));
    shell.run("--compare causal_rn,rnn:hidden=12 --name c --steps 300" + two);
    const CsvTable table = numbers_of(shell.file("runs/c/compare.csv"));
    for (const size_t row : {0, 1}) {
      const std::string name = row == 0 ? "causal_rn" : "rnn-hidden-12";
      const CsvTable of_run = read_csv(shell.file("runs/c/" + name + "/log.csv"));
      for (const auto& [column, accuracy] : {std::pair("step_50", 0.5), {"step_90", 0.9}, {"step_99", 0.99}}) {
        const double step = table.column(column)[row];
        test_.equal(name + ": " + column, std::isnan(step) ? "" : exact_text(step), first_of(of_run, accuracy));
      }
      for (const auto& [ours, theirs] :
           {std::pair("last_step", "step"), {"last_loss", "eval_loss"}, {"last_accuracy", "eval_accuracy"}})
        test_.equal(name + ": " + ours, table.column(ours)[row], of_run.column(theirs).back());
    }
    test_.check("one has learned it", !std::isnan(table.column("step_99")[0]));
  }

  // A table of numbers, except its first column and its weights.
  static CsvTable numbers_of(const std::string& path) {
    CsvTable table;
    std::istringstream lines(read_bytes(path));
    for (std::string line; std::getline(lines, line);) {
      const std::vector<std::string> cells = split(line, ',');
      if (table.names.empty()) {
        table.names = cells;
        table.columns.resize(cells.size());
        continue;
      }
      for (size_t i = 0; i < cells.size(); ++i)
        table.columns[i].push_back(parse_number(cells[i]).value_or(std::numeric_limits<double>::quiet_NaN()));
    }
    return table;
  }

  // Given, and read by no model that is trained.
  void idle_options(const Shell& shell) {
    expect(shell, "heads of none", "--model rnn --heads 3" + SMALL, 2, "--heads 3: does nothing with --model rnn");
    expect(shell, "a norm of none", "--model mamba --no-post-norm", 2,
           "--no-post-norm: does nothing with --model mamba");
    expect(shell, "of one variant", "--compare transformer,rnn:position=none", 2,
           "--compare transformer,rnn:position=none: \"rnn:position=none\": --position none: does nothing with --model "
           "rnn");
    expect(shell, "of all variants", "--compare mamba,rnn --heads 2", 2,
           "--compare mamba,rnn: \"rnn\": --heads 2: does nothing with --model rnn");
    expect(shell, "of some variants", "--compare transformer,rnn:hidden=8 --heads 2 --name some --steps 1" + SMALL, 0,
           "saved runs/some");
  }

  void damaged() {
    const Shell shell(program_);
    shell.run("--name a --steps 3" + SMALL);
    const std::string path = shell.file("runs/a/model.safetensors"), good = read_bytes(path);
    const auto refuse = [&](const std::string& name, const std::string& bytes, const std::string& words) {
      write_bytes(path, bytes);
      expect(shell, name, "--name a --resume --steps 5", 1, words);
      test_.check(name + ": nothing was changed", read_bytes(path) == bytes);
    };
    refuse("truncated", good.substr(0, good.size() / 2), "truncated");
    refuse("truncated header", good.substr(0, 100), "model.safetensors: ");
    refuse("empty", "", "runs/a/model.safetensors");
    std::string flipped = good;
    flipped[good.size() - 5] = static_cast<char>(flipped[good.size() - 5] ^ 1);
    refuse("one flipped bit", flipped, "damaged");
    refuse("text", std::string(1000, 'x'), "runs/a/model.safetensors");
    write_bytes(path, good);
    expect(shell, "the good file again", "--name a --resume --steps 5", 0, "weights");
  }

  // A thread's stack is as large as the shell allows, and one that no address space holds cannot be started.
  void threads() {
    const Shell shell(program_);
    const std::string no_room = "ulimit -s 200000000000;";
    if (shell.script(no_room).status != 0) return test_.skip("threads that do not start", "ulimit -s cannot be raised");
    expect(shell, "threads that do not start", "--name a --steps 1" + SMALL + "--threads 3", 1,
           "Thread creation failed", no_room);
    test_.check("leave no run", !shell.exists("runs/a"));
    expect(shell, "one needs none", "--name a --steps 1" + SMALL, 0, "weights ", no_room);
  }

  void initial_parameters() {
    const Shell shell(program_);
    shell.run("--name a --steps 3" + SMALL);
    expect(shell, "from another run", "--name b --steps 1 --init runs/a/model.safetensors" + SMALL, 0, "weights");
    expect(shell, "of another shape", "--name c --steps 1 --init runs/a/model.safetensors" + SMALL + "--width 16", 1,
           "tensor token_embedding.weight has shape 29×12, this model wants 29×16\n");
    expect(shell, "no file", "--name c --init nowhere" + SMALL, 1, "nowhere");
    test_.check("no folder is left", !shell.exists("runs/c"));
  }

  void divergence() {
    const Shell shell(program_);
    shell.run("--name a --steps 1" + SMALL);
    const SafetensorsFile file(shell.file("runs/a/model.safetensors"));
    std::vector<std::vector<float>> values;
    for (const std::string& name : file.names()) values.push_back(file.read<float>(name));
    const auto save = [&](const char* name) {
      SafetensorsWriter writer;
      for (size_t i = 0; i < values.size(); ++i)
        writer.add(file.names()[i], file.entry(file.names()[i]).shape, values[i].data());
      writer.save(shell.file(name));
    };
    const std::vector<float> good = values[0];
    values[0].back() = std::numeric_limits<float>::quiet_NaN();
    save("nan.safetensors");
    expect(shell, "NaN", "--name b --init nan.safetensors" + SMALL, 1,
           "nan.safetensors: tensor " + file.names()[0] + " has a nan at position " +
               with_commas(static_cast<int64_t>(good.size()) - 1));
    values[0].assign(good.size(), 3e38f);
    save("large.safetensors");
    expect(shell, "too large", "--name b --init large.safetensors" + SMALL, 1,
           "before the first step: the weights of --init large.safetensors are too large");
    test_.check("is not saved", !shell.exists("runs/b/model.safetensors"));
  }

  void disk() {
    const Shell shell(program_);
    shell.write("runs", "a file");
    expect(shell, "runs is a file", "--steps 1" + SMALL, 1, "runs/copy: cannot make the folder: Not a directory");
    std::filesystem::remove(shell.file("runs"));
    shell.run("--name a --steps 3" + SMALL);
    const std::string path = shell.file("runs/a/model.safetensors"), good = read_bytes(path);
    // Files may have 8 blocks of 512 or 1024 bytes; the signal is ignored, so that a write fails as on a full disk.
    expect(shell, "full disk", "--name a --resume --steps 6", 1, "runs/a/model.safetensors",
           "trap '' XFSZ; ulimit -f 8;");
    test_.check("the checkpoint is as it was", read_bytes(path) == good);
    const Outcome left = shell.script("ls -A runs/a | grep tmp");
    test_.equal("no temporary file is left", left.output, "");
    expect(shell, "a limit of the shell", "--name a --resume --steps 6", 1,
           "runs/a/model.safetensors: cannot write: File too large", "ulimit -f 8;");
  }

  // Ended by a signal after its third step or so, then resumed.
  void stopped(const std::string& signal, int status) {
    const Shell shell(program_);
    const std::string settings = "--steps 150 --save-every 1 --name ";
    const std::string whole = shell.run(settings + "whole" + SMALL).weights();
    const Outcome outcome =
        shell.script("train_copy " + settings + "a" + SMALL + "--batch 512 & child=$!; " +
                     wait_for_lines("runs/a/log.csv", 3) + "kill -" + signal + " $child; wait $child; echo status $?");
    test_.check("status", outcome.prints(text("status %d", status)), outcome.output);
    if (signal == "INT")
      test_.check("says how to go on", outcome.prints("To continue: ./train_copy --resume --name a"), outcome.output);
    const std::string other = shell.run(settings + "b" + SMALL + "--batch 512").weights();
    test_.equal("resumes bit-identically", shell.run("--name a --resume").weights(), other);
    test_.check("which another batch has not", other != whole);
  }

 private:
  std::string program_;
};

// The other programs: their shells start where train_copy's do.
class OtherPrograms : ProgramChecks {
 public:
  OtherPrograms(Test& test, std::string folder) : ProgramChecks(test), folder_(std::move(folder)) {}

  void text() {
    const Shell shell(folder_ + "/train_text");
    const Outcome whole = expect(shell, "a run", "--name whole --steps 9" + TEXT, 0, {"bits/character", "  | "});
    leaves(shell, "runs/whole/", {"log.csv", "model.safetensors", "best.safetensors", "curve.svg"});
    // The windows of an epoch are 23: both parts end within one.
    shell.write("text", std::string(100, 'a') + "\n" + std::string(99, 'b'));
    const std::string data = " --data text --val-part 0.05 --schedule constant" + TEXT;
    const Outcome epochs = shell.run("--name epochs --steps 20" + data);
    shell.run("--name parts --steps 7" + data);
    test_.equal("resumed within an epoch", shell.run("--name parts --resume --steps 20").weights(), epochs.weights());
    expect(shell, "epochs", "--name two --epochs 2 --quiet" + data, 0, "Finished at step 12");
    expect(shell, "no such file", "--data nowhere" + TEXT, 1, "nowhere");
    shell.write("latin", std::string(300, 'x') + "\xE9" + std::string(300, 'x'));
    expect(shell, "not ASCII", "--data latin --steps 1" + TEXT, 0,
           "latin is not ASCII (its byte 301): tokens are bytes");
    expect(shell, "not ASCII, and characters are wanted", "--data latin --tokenizer ascii" + TEXT, 1, "latin");
    expect(shell, "replaced", "--data latin --replace" + TEXT, 0, "replaced 1 character by");
    expect(shell, "too short a text", "--data text --context 500" + TEXT + "--context 500", 1, "less than a window");
    expect(shell, "lengths", "--name l --steps 1 --evaluate-lengths 4,16 --length-windows 8 --position alibi" + TEXT, 0,
           "perplexity of the last token at length");
    expect(shell, "lengths beyond the text", "--evaluate-lengths 500000" + TEXT, 1, "less than a window of 500000");
    expect(shell, "extrapolation",
           "--compare regular_gpt:chunk=4:thickness=2,transformer:position=kerple --name x --steps 2 "
           "--evaluate-lengths 8,128 --length-windows 8" +
               TEXT,
           0, "regular_gpt:chunk=4:thickness=2");
    expect(shell, "no chunk", "--model regular_gpt --chunk 1" + TEXT, 2, "--chunk 1: expected a whole number from 2");
    expect(shell, "a comparison", "--compare mamba,linear_transformer --name c --steps 2" + TEXT, 0,
           "saved runs/c (compare.csv");
  }

  // The number after some words of the output.
  static double number_behind(const Outcome& outcome, const std::string& words) {
    const size_t at = outcome.output.rfind(words);
    return at == std::string::npos ? std::nan("") : std::atof(&outcome.output[at + words.size()]);
  }

  // A text whose second half, the evaluation's, is nothing like its first.
  void text_measured() {
    const Shell shell(folder_ + "/train_text");
    shell.write("a", std::string(100, 'a'));
    shell.write("b", std::string(100, 'b'));
    shell.write("both", std::string(100, 'a') + std::string(100, 'b'));
    const std::string learn = " --warmup 0 --lr 0.05 --schedule constant" + TEXT + "--eval-samples 100 ";
    const Outcome run = shell.run("--name both --data both --val-part 0.5 --steps 12" + learn);
    const CsvTable log = read_csv(shell.file("runs/both/log.csv"));
    test_.equal("the first half is learned", log.column("accuracy")[11], 1.0);
    test_.equal("and nothing of the other", log.column("eval_accuracy").back(), 0.0);
    test_.equal("tokens that were read", log.column("tokens").back(), 12.0 * 4 * 8);
    const double loss = log.column("eval_loss").back();
    const auto about = [&](const std::string& name, double found, double expected) {
      test_.check(name, std::abs(found - expected) < 1e-3 * expected, run.output);
    };
    about("its loss is said", number_behind(run, "validation loss "), loss);
    about("and the perplexity", number_behind(run, "perplexity "), std::exp(loss));
    about("and bits", number_behind(run, petroglyph::text("perplexity %.2f  ", std::exp(loss))), loss / std::log(2.0));
    const std::vector<double>& losses = log.column("eval_loss");
    const auto lowest = std::min_element(losses.begin(), losses.end(),
                                         [](double x, double y) { return x < y || (!std::isnan(x) && std::isnan(y)); });
    test_.equal("the checkpoint of the lowest loss",
                SafetensorsFile(shell.file("runs/both/best.safetensors")).metadata("step"),
                std::to_string(lowest - losses.begin()));
    test_.check("which is not the last", lowest + 1 != losses.end());
    const std::string line = run.output.substr(run.output.rfind("validation loss "));
    const std::string measures = line.substr(0, line.find('\n'));
    shell.write("whole", std::string(97, 'b'));  // 96 tokens that have one before them
    expect(shell, "the same of a file", "--evaluate runs/both --data whole --threads 1", 0,
           "12 windows of 8 tokens, 96 tokens scored\n" + measures);
    expect(shell, "some windows of a file", "--evaluate runs/both --data b --eval-samples 5", 0,
           ": 5 of 12 windows of 8 tokens, 40 tokens scored\n");
    // What is left behind whole windows is scored, too: four right answers of the 102.
    shell.write("tail", std::string(99, 'b') + "aaaa");
    const Outcome tail = shell.run("--evaluate runs/both --data tail");
    test_.check("the last, shorter window", tail.prints("12 windows of 8 and one of 6 tokens, 102 tokens scored\n"),
                tail.output);
    test_.check("counts as its tokens", tail.prints("accuracy 3.9 %"), tail.output);
    shell.write("short", "bbbb");
    expect(shell, "a text of less than a window", "--evaluate runs/both --data short", 0,
           "one window of 3 tokens, 3 tokens scored\n");
    test_.equal("and where it is a file of its own",
                shell.run("--name own --data a --val b --steps 12" + learn).weights(), run.weights());
    expect(shell, "an epoch of that half", "--name epoch --data both --val-part 0.5 --epochs 1" + TEXT, 0,
           "Finished at step 3");
    // Of characters of two bytes, each of them a token: the 21 targets of three windows begin 11 of them.
    std::string accents;
    for (int i = 0; i < 100; ++i) accents += "\u00E9";
    shell.write("accents", accents);
    const Outcome bytes = shell.run("--name accents --data accents --val-part 0.125 --tokenizer bytes --steps 1" +
                                    TEXT + "--context 7 --eval-samples 100");
    const double of_bytes = number_behind(bytes, "validation loss ");
    const std::string perplexity = petroglyph::text("perplexity %.2f  ", number_behind(bytes, "perplexity "));
    test_.check("bits of a character, not of a token",
                std::abs(number_behind(bytes, perplexity) - 21.0 / 11 * of_bytes / std::log(2.0)) < 0.01, bytes.output);
    expect(shell, "windows longer than its positions", "--evaluate runs/both --data b --context 9", 2,
           "--context 9: runs/both has positions for windows of 8 tokens");
    went_on(shell, " --data both --val-part 0.5" + learn + "--eval-every 1000 ");
    const std::string asked = "--name lengths --steps 1 --length-windows 8 --position alibi" + TEXT;
    const Shell backwards(folder_ + "/train_text");
    backwards.run("--evaluate-lengths 16,4 " + asked);
    shell.run("--evaluate-lengths 4,16 " + asked);
    test_.equal("a curve goes from left to right whatever the order", backwards.read("runs/lengths/lengths.svg"),
                shell.read("runs/lengths/lengths.svg"));
    const std::string lengths = shell.read("runs/lengths/lengths.csv");
    const std::vector<std::string> cells = split(lengths.substr(lengths.rfind("transformer,")), ',');
    test_.check("each length has a perplexity of its own", cells.size() == 3 && cells[1] + "\n" != cells[2], lengths);
  }

  // Of a run that ended, gets more steps, and then fewer than it has: its evaluations, and the checkpoint of the best.
  void went_on(const Shell& shell, const std::string& settings) {
    const auto kept = [&] { return SafetensorsFile(shell.file("runs/on/best.safetensors")).metadata("step"); };
    const auto last = [&] { return read_csv(shell.file("runs/on/log.csv")).column("eval_loss").back(); };
    shell.run("--name on" + settings + " --steps 2");
    const double early = last();
    test_.equal("of the only evaluation", kept(), "2");
    shell.run("--name on --resume --steps 12");
    test_.check("who goes on learns for worse", last() > early, std::to_string(last()));
    test_.equal("and keeps the better model", kept(), "2");
    const std::string rows = shell.log("on");
    expect(shell, "fewer steps than there are", "--name on --resume --steps 9", 0, "step 12 of 12");
    test_.equal("leave the evaluation", shell.log("on"), rows);
    shell.write("runs/on/best.safetensors", "damaged");
    expect(
        shell, "a damaged one keeps nobody from going on", "--name on --resume --steps 14", 0,
        {"Finished at step 14",
         "saved runs/on (log.csv, model.safetensors, previous.safetensors, best.safetensors, curve.svg, index.html)"});
    test_.equal("and is made anew", kept(), "14");
  }

  // What options make of models: their configurations, as checkpoints keep them (test/configurations.txt).
  void configurations() {
    const Shell shell(folder_ + "/train_text");
    std::istringstream lines(read_bytes("test/configurations.txt"));
    std::string command, config;
    for (int runs = 1; std::getline(lines, command);) {
      if (command.empty() || command[0] == '#') continue;
      std::getline(lines, config);
      const std::string name = "r" + std::to_string(runs++);
      const Outcome outcome = shell.script(command + " --steps 0 --quiet --threads 1 --name " + name + "; ls -d runs/" +
                                           name + "/*/model*");
      const size_t inside = outcome.output.find("\nruns/" + name + "/");  // of a group's only run
      const std::string path = inside == std::string::npos ? "runs/" + name + "/model.safetensors"
                                                           : std::string(trim(outcome.output.substr(inside)));
      test_.equal(command, shell.exists(path) ? SafetensorsFile(shell.file(path)).metadata("config") : outcome.output,
                  config);
    }
  }

  // Models that read windows of one length and answer once, at their end.
  void windows() {
    const Shell shell(folder_ + "/train_text");
    const std::string mlp = "--model mlp_lm --embedding 6" + WINDOWS;
    const Outcome whole = expect(shell, "a run", "--name whole --steps 9" + (" " + mlp), 0, {"bits/character", "  | "});
    shell.run("--name parts --steps 4 --schedule constant " + mlp);
    const Outcome constant = shell.run("--name constant --steps 9 --warmup 0 --schedule constant " + mlp);
    test_.equal("resumed", shell.run("--name parts --resume --steps 9").weights(), constant.weights());
    const std::string many = " --name many --eval-samples 100000 --schedule constant" + TEXT;
    expect(shell, "more samples than windows", "--steps 2" + many, 0, "bits/character");
    expect(shell, "and on", "--resume --steps 4" + many + "--steps 4", 0, "step 4");
    shell.script("mkdir -p runs/killed");
    expect(shell, "without a checkpoint", "--resume --name killed", 1,
           "runs/killed: there is no checkpoint to resume from");
    expect(shell, "another context", "--init runs/whole/model.safetensors --context 9", 1,
           "tensor first.weight has shape 6×48, this model wants 6×54");
    expect(shell, "another context of its own run", "--name whole --resume --context 9", 1, "--context 9");
    expect(shell, "lengths", "--evaluate-lengths 4 " + mlp, 2, "--evaluate-lengths");
    expect(shell, "no other readout", "--model mlp_lm --readout last", 2,
           "--readout last: does nothing with --model mlp_lm");
    expect(shell, "no such readout", "--model mamba --readout last", 2,
           "--readout last: does nothing with --model mamba");
    expect(shell, "a transformer without a mask", "--name t --readout last --steps 3" + TEXT, 0, "bits/character");
    expect(shell, "a comparison", "--compare mlp_lm,transformer:readout=last --steps 2" + TEXT, 0,
           "transformer:readout=last");
    receptive_fields(shell);
    const std::string generate = "generate --length 30 --quiet ";
    for (const char* name : {"whole", "t"}) {
      const std::string run = generate + "runs/" + name + " --prompt 'One '";  // shorter than the context of 8
      const Outcome once = shell.script(run);
      test_.check(std::string(name) + " continues the prompt",
                  once.status == 0 && once.output.rfind("One ", 0) == 0 && once.output.size() >= 35, once.output);
      test_.equal(std::string(name) + " again", shell.script(run + " --threads 2").output, once.output);
      test_.equal(std::string(name) + " on the reference", shell.script(run + " --device reference").output,
                  once.output);
      // A longer prompt continues as its last window does.
      test_.equal(std::string(name) + " sees its window only",
                  shell.script(run + "'and a long way off' --temperature 0").output.substr(22),
                  shell.script(run + "'but a long way off' --temperature 0").output.substr(22));
    }
  }

  // Of models that answer once a window, and of one that does not.
  void receptive_fields(const Shell& shell) {
    const std::string inspect = "inspect receptive-field runs/whole runs/t ";
    expect_script(shell, "receptive fields", inspect, 0, {"mlp_lm, text", "transformer, text"});
    test_.equal("receptive fields on the reference", shell.script(inspect + "--device reference").output,
                shell.script(inspect).output);
    expect_script(shell, "of another length", inspect + "--length 9", 2,
                  "--length 9: runs/whole/model.safetensors reads windows of 8 tokens only");
    const Outcome missing = shell.script(inspect + "nowhere");
    test_.check("what is wrong with the last shows at once",
                missing.status == 1 && missing.prints("nowhere") && !missing.prints("mlp_lm, text"), missing.output);
  }

  void dct_mlp() {
    const Shell shell(folder_ + "/train_text");
    const std::string dct = " --model dct_mlp" + TEXT;
    const Outcome whole = expect(shell, "a run", "--name whole --steps 9" + dct, 0, {"bits/character", "  | "});
    test_.check("its windows",
                shell.read("runs/whole/model.safetensors").find("\\\"windows\\\":[4,8]") != std::string::npos);
    const std::string generate = "generate runs/whole --length 30 --quiet --prompt 'One '";
    const Outcome once = shell.script(generate);
    test_.check("continues the prompt",
                once.status == 0 && once.output.rfind("One ", 0) == 0 && once.output.size() >= 35,
                once.output);  // beyond the context of 8
    test_.equal("again", shell.script(generate + " --threads 2").output, once.output);
    expect(shell, "windows", "--steps 1 --windows 5,9 --frequencies 3" + dct, 0, "bits/character");
    expect(shell, "lengths", "--name l --steps 1 --evaluate-lengths 4,16 --length-windows 8" + dct, 0,
           "perplexity of the last token at length");
    expect(shell, "a window too small", "--windows 3,8" + dct, 2, "a window of 3 tokens has no 4 frequencies");
    expect(shell, "too few windows", "--windows 4,8,16" + dct, 2, "3 numbers, expected one for each of the --heads 2");
    expect(shell, "no frequencies", "--frequencies 0" + dct, 2, "--frequencies 0");
    expect(shell, "heads", "--heads 3" + dct + "--heads 3", 2, "--heads 3 does not divide --width 8");
  }

  // The checkpoint of runs/t with a vocabulary of another size, in which tokens beyond the tokenizer's are very likely.
  static void change_vocabulary(const Shell& shell, const std::string& to, int64_t vocab, int64_t rows) {
    const SafetensorsFile from(shell.file("runs/t/best.safetensors"));
    SafetensorsWriter writer;
    for (const auto& [key, value] : from.metadata())
      writer.metadata(
          key, key == "config" ? Json::parse(value, key).set("vocab", vocab).set("classes", vocab).text() : value);
    std::map<std::string, std::vector<float>> kept;
    for (const std::string& name : from.names()) {
      std::vector<float>& values = kept[name] = from.read<float>(name);
      std::vector<int64_t> shape = from.entry(name).shape;
      if (name == "head.weight" || name == "token_embedding.weight") {
        for (shape[0] = 128; shape[0] < rows; ++shape[0]) {  // logits of both signs
          values.push_back(shape[0] % 2 == 0 ? 1e6f : -1e6f);
          values.resize(values.size() + static_cast<size_t>(shape[1]) - 1);
        }
        values.resize(static_cast<size_t>((shape[0] = rows) * shape[1]));
      }
      writer.add(name, shape, values.data());
    }
    writer.save(shell.file(to));
  }

  void vocabularies(const Shell& shell) {
    const std::string prompt = " --length 40 --quiet --prompt 'One ' --temperature 0";
    change_vocabulary(shell, "padded.safetensors", 144, 144);
    const Outcome whole = shell.run("runs/t" + prompt);
    test_.check("a text", whole.status == 0, whole.output);
    test_.equal("a padded vocabulary: its extra tokens are never said", shell.run("padded.safetensors" + prompt).output,
                whole.output);
    change_vocabulary(shell, "small.safetensors", 100, 100);
    expect(shell, "fewer tokens than the tokenizer has", "small.safetensors", 1,
           "small.safetensors: the model's vocab is 100, less than the tokenizer's 128 tokens");
    change_vocabulary(shell, "lies.safetensors", 200000, 128);
    expect(shell, "more tokens than the weights have", "lies.safetensors", 1, "lies.safetensors: tensor ");
    test_.check("nor can it be inspected",
                shell.script("inspect receptive-field small.safetensors").prints("less than the"));
  }

  void windows_and_talk(const Shell& shell) {
    // Beyond the context of 8 a model that slides sees the last 8 tokens, whatever was before.
    const std::string slide = "runs/t --length 12 --quiet --temperature 0 --window slide --prompt ";
    test_.equal("slides", shell.run(slide + "'Once a cat sat '").output.substr(15),
                shell.run(slide + "'Never cat sat '").output.substr(14));
    const std::string halves = "runs/t --length 12 --quiet --temperature 0 --prompt 'Once a cat sat '";
    test_.check("as far as half a window never does", shell.run(halves).output.size() == 28);
    const std::string like = shell.run("runs/t --length 9 --quiet --prompt 'One '").output;
    shell.write("talk", "One \nTwo \n");
    const Outcome talk = shell.run("runs/t --length 9 --quiet --interactive < talk");
    const Outcome slowly = shell.script("(echo 'One '; sleep 1) | generate runs/t --length 9 --interactive");
    test_.check("the waiting for a prompt is not its time", number_behind(slowly, "9 tokens in ") < 0.9, slowly.output);
    test_.check("talks", talk.status == 0 && talk.output.size() == 20 && talk.output.substr(0, 9) == like.substr(4, 9),
                talk.output);
    talks_in_windows(shell);
    expect(shell, "a prompt that looks like an option", "runs/t --quiet --length 3 --prompt -i", 0, "-i");
    expect(shell, "a prompt while talking", "runs/t --interactive --prompt a", 2, "expected one of them");
    expect(shell, "samples while talking", "runs/t --interactive --samples 2", 2,
           "--samples 2: does nothing with --interactive");
    shell.write("foreign", "\xC3\xA9\nOne \nTwo \n");
    const Outcome on = shell.run("runs/t --length 9 --quiet --interactive < foreign");
    test_.check("a character that it has not ends no talk",
                on.status == 0 && on.prints("is no 7-bit ASCII character") &&
                    on.prints("nothing of this line was read\n") &&
                    on.output.substr(on.output.find('\n') + 1) == talk.output,
                on.output);
    talk_that_ends(shell);
  }

  // Signals, an output that takes no more, an input that cannot be read, and one that is longer than what the model
  // reads.
  void talk_that_ends(const Shell& shell) {
    const std::string generate = "generate runs/t ";
    const Outcome ended = shell.script("yes One | timeout -k 9 2 " + generate +
                                       "--interactive --quiet --length 10000000 > said; echo status $?");
    test_.check("SIGTERM ends a talk in the midst of an answer", ended.prints("status 124"), ended.output);
    if (std::filesystem::exists("/dev/full")) {
      expect_script(shell, "an output that takes no more ends it at once",
                    "timeout 20 " + generate + "--quiet --length 100000000 > /dev/full", 1,
                    "generate: cannot write to the standard output: ");
    }
    expect(shell, "a folder as the standard input", "runs/t --quiet --length 3 --interactive < .", 1,
           "the standard input cannot be read to its end");
    expect(shell, "nothing said", "runs/t --interactive < /dev/null", 0, "0 tokens in 0.0 s, 0 tokens/s");
    shell.write("long", "One day he went\n");
    expect(shell, "a long line", "runs/t --interactive --length 2 < long", 0,
           "note: the prompt has 15 tokens and the model reads 8 at most");
    shell.write("longer", std::string(5000, 'a') + "\n");
    for (const char* const model :
         {"rnn --hidden 8", "mamba --width 8", "linear_transformer --position none --width 8 --heads 2"}) {
      shell.script(std::string("train_text --name recurrent --model ") + model +
                   " --steps 1 --context 8 --batch 4 --eval-samples 4 --sample-length 0 --tokenizer "
                   "bytes --threads 1");
      const Outcome talk = shell.run("runs/recurrent --interactive --length 2 < longer");
      test_.check(std::string("a line of any length: ") + model, talk.status == 0 && !talk.prints("note:"),
                  talk.output);
      shell.script("rm -r runs/recurrent");
    }
  }

  // A continuation depends on the whole dialogue, not on the number of tokens requested.
  void talks_in_windows(const Shell& shell) {
    const std::string train = "train_text ",
                      learn =
                          " --width 32 --layers 1 --context 8 --batch 16 --eval-samples 8 --eval-every 400 "
                          "--sample-length 0 --threads 1 --lr 0.01 ";
    shell.script(train + "--model mlp_lm --name m --steps 400 --embedding 8" + learn);
    const std::string greedy = " --quiet --temperature 0 --length 20 ", line = "Once upon a time there was";
    const std::string first = shell.run("runs/m" + greedy + "--prompt '" + line + "'").output;
    shell.write("lines", line + "\nA\n");
    shell.write("said", first.substr(0, first.size() - 1) + "\nA");
    test_.equal("a model of windows remembers what was said",
                shell.run("runs/m --interactive" + greedy + "< lines").output.substr(21),
                shell.run("runs/m --prompt \"$(cat said)\"" + greedy).output.substr(first.size() + 1));
    shell.script(train + "--model regular_gpt --chunk 2 --thickness 1 --heads 2 --name g --steps 200" + learn);
    const std::string few = shell.run("runs/g --prompt 'One ' --quiet --seed 3 --length 20").output;
    test_.equal("a model that deepens with length says the same however much it is asked for",
                shell.run("runs/g --prompt 'One ' --quiet --seed 3 --length 60").output.substr(0, 24),
                few.substr(0, 24));
  }

  // Weights that are no numbers or too large, and sizes that no model has: the file is named.
  void of_a_damaged_checkpoint(const Shell& shell, const std::string& train) {
    std::string whole = shell.read("runs/t/model.safetensors");
    for (size_t at; (at = whole.find("checksum_of")) != std::string::npos;) whole[at] = 'x';  // as others write them
    uint64_t header = 0;
    std::memcpy(&header, whole.data(), sizeof header);
    std::string bytes = whole;
    const auto fill = [&](const char* name, uint32_t bits) {
      for (size_t i = sizeof header + header; i + sizeof bits <= bytes.size(); i += sizeof bits)
        std::memcpy(&bytes[i], &bits, sizeof bits);
      shell.write(name, bytes);
      return shell.script(train + "--evaluate " + name + " --data other.txt");
    };
    const Outcome nan = fill("nan.safetensors", 0x7fc00000u), large = fill("large.safetensors", 0x7f7fffffu);
    test_.check(
        "weights that are no numbers",
        nan.status == 1 && nan.prints("train_text: nan.safetensors: tensor ") && nan.prints(" has a nan at position 0"),
        nan.output);
    test_.check("weights that are too large",
                large.status == 1 && large.prints("large.safetensors: the loss is nan: its weights are too large"),
                large.output);
    bytes = whole;
    const std::string heads = "\\\"heads\\\":";
    const size_t at = bytes.find(heads);
    if (!test_.check("heads", at != std::string::npos)) return;
    bytes[at + heads.size()] = '3';
    shell.write("heads.safetensors", bytes);
    expect(shell, "sizes that no model has", "heads.safetensors", 1,
           "generate: heads.safetensors: transformer: heads 3 does not divide width");
  }

  // Sizes and tokenizer from a file, and its loss on another text.
  void of_a_checkpoint(const Shell& shell) {
    shell.write("other.txt", std::string(300, 'a') + "One day he went to the old house.");
    const std::string train = "train_text ";
    expect_script(shell, "its loss on another text", train + "--evaluate runs/t --data other.txt", 0,
                  "on other.txt: 41 windows of 8 and one of 4 tokens, 332 tokens scored");
    const auto refused = [&](const char* name, const std::string& arguments, const std::string& words) {
      expect_script(shell, name, train + arguments, 2, words);
    };
    refused("with what it does not need", "--evaluate runs/t --data other.txt --model rnn",
            "--model rnn: does nothing with --evaluate runs/t");
    refused("lengths", "--evaluate runs/t --data other.txt --evaluate-lengths 4",
            "--evaluate-lengths 4: does nothing with --evaluate runs/t");
    of_a_damaged_checkpoint(shell, train);
    refused("a part beside a file", "--data other.txt --val other.txt --val-part 0.3",
            "--val-part 0.3: does nothing with --val other.txt");
    refused("a form without a file", "--format text", "--format text: does nothing without --data or --val");
    refused("what bytes cannot lack", "--tokenizer bytes --replace", "--replace: does nothing with bytes");
    refused("a seed of no draw", "--evaluate runs/t --data other.txt --seed 5",
            "--seed 5: does nothing with --evaluate runs/t");
    refused("blocks that are said twice", "--model regular_gpt --layers 4 --thickness 1",
            "--layers 4: does nothing with --thickness 1");
    refused("a model beside that of a file", "--data other.txt --init runs/t --model rnn",
            "--model rnn: does nothing with --init runs/t");
    test_.check("leaves no run", !shell.exists("runs/text"));
    expect_script(
        shell, "a text that becomes shorter",
        "cp other.txt shorter.txt; " + train +
            "--data shorter.txt --val-part 0.3 --name shorter --context 8 --width 8 --layers 1 --heads 1 --batch 2 "
            "--eval-every 1000000 "
            "--eval-samples 2 --sample-length 0 --steps 100000000 --threads 1 --quiet & "
            "while ! test -e runs/shorter/model.safetensors && kill -0 $!; do sleep 0.1; done; : > shorter.txt; wait "
            "$!",
        1, "a file that is being read has become shorter");
    shell.write("accents.txt", std::string(300, 'a') + "caf\u00E9");
    const std::string accents = "--evaluate runs/t --data accents.txt";
    test_.check("another character", shell.script(train + accents).prints("is no 7-bit ASCII character"));
    test_.check("replaced", shell.script(train + accents + " --replace").prints("windows of 8 "));
    const Outcome folder = expect_script(shell, "a run's folder to begin with",
                                         train +
                                             "--init runs/t --name folder --steps 1 --data other.txt --threads 1 "
                                             "--batch 4 --sample-length 0 --eval-samples 2 --val-part 0.1",
                                         0, "weights");
    const Outcome letters = expect_script(shell, "a model of no text to begin with", train + "--init runs/c", 1,
                                          "runs/c: a checkpoint of train_copy without a tokenizer");
    const std::string more =
        "--data other.txt --threads 1 --batch 4 --sample-length 0 --eval-samples 2 --val-part 0.1 ";
    const Outcome tuned =
        expect_script(shell, "sizes from a checkpoint",
                      train + "--init runs/t/model.safetensors --name u --steps 2 " + more, 0, "weights");
    shell.script(train + "--init runs/t/model.safetensors --name v --steps 1 --schedule constant " + more);
    shell.script(train + "--init runs/t/model.safetensors --name w --steps 2 --schedule constant " + more);
    shell.script("mv runs/t/model.safetensors runs/t/moved.safetensors");
    test_.equal("resumed without it", shell.script(train + "--name v --resume --steps 2").weights(),
                shell.script(train + "--name w --resume --steps 2").weights());
    shell.script("mv runs/t/moved.safetensors runs/t/model.safetensors");
    expect_script(shell, "what it is", "inspect info runs/u", 0,
                  {"transformer, by train_text, step 2", "weights      " + tuned.weights(), "128×8"});
    const std::string convert = "convert ";
    test_.check(
        "a checkpoint to make a checkpoint of",
        shell.script(convert + "runs/t").prints("runs/t is already a Petroglyph checkpoint; --to hf or --to llm.c"));
    test_.check("whatever it is named", shell.script("cp runs/t/model.safetensors as.st; " + convert + "as.st")
                                            .prints("as.st is already a Petroglyph checkpoint; --to hf or --to llm.c"));
    test_.check("which has the tokenizer of it",
                shell.script("tokenize other.txt --tokenizer as.st").prints("(ascii)"));
    test_.check("and of one that is cut short",
                shell.script("head -c 300 as.st > cut.st; tokenize other.txt --tokenizer cut.st")
                    .prints("cut.st: 300 bytes long: truncated, or not"));
    test_.check("nothing to convert",
                shell.script(convert + "nowhere").prints("nowhere: there is no such file or folder"));
    test_.check("what GPT-2 cannot say",
                shell.script(convert + "runs/t --to hf").prints("norm \"plain\" cannot be expressed by GPT-2"));
    shell.script(train +
                 "--model mamba --name h --steps 1 --layers 1 --width 8 --data other.txt --batch 2 --context 8 " +
                 "--eval-samples 2 --sample-length 0 --threads 1");
    expect_script(shell, "a folder's whole name", "cp -r runs/h v.5; " + convert + "v.5 --to hf", 0, "saved v.5-hf");
    test_.check("a file where a folder is made",
                shell.script(": > plain; " + convert + "runs/h --to hf --save plain --force")
                    .prints("plain: is a file; expected a folder"));
    test_.check(
        "a folder that cannot be made",
        shell.script(convert + "runs/h --to hf --save plain/x").prints("plain/x: cannot write: Not a directory"));
    expect_script(shell, "the folder that one is in", convert + "runs/h --to hf --save hf/; cd hf && " + convert + ".",
                  0, "saved hf.safetensors");
    test_.check("a tokenizer that stays behind",
                shell.script(convert + "runs/h --to hf --save hf-2").prints("note: the tokenizer, ascii, is left out"));
    expect(shell, "a folder of Hugging Face's", "hf", 1,
           "hf/model.safetensors: a safetensors file, but no checkpoint of ours; ./convert makes one of a model of "
           "Hugging Face's\n");
    expect_script(
        shell, "fewer tokens than the text",
        train + "--init hf/hf.safetensors --tokenizer bytes --data other.txt --val-part 0.3 --context 8 --name few", 1,
        "hf/hf.safetensors: the model's vocab is 128, less than the tokenizer's 256 tokens\n");
    test_.check(
        "whose fault a configuration is",
        shell
            .script("cp -r hf hf-3; sed 's/\"state_size\":16/\"state_size\":0/' hf/config.json > hf-3/config.json; " +
                    convert + "hf-3 --save x")
            .prints("hf-3/config.json: "));
    test_.check(
        "a name of other letters",
        shell.script("cp -r hf \"$(printf 'h\\351')\"; " + convert + "\"$(printf 'h\\351')\" --save x.safetensors")
            .prints("saved x.safetensors"));
    expect(shell, "converted without a tokenizer", "hf/hf.safetensors", 1,
           "hf/hf.safetensors: has no tokenizer: none was converted with this model; ./convert --tokenizer NAME gives "
           "it one\n");
    test_.check("so does an inspection",
                shell.script("inspect receptive-field hf/hf.safetensors").prints(": none was"));
    const Outcome given = shell.script(convert + "hf --save h.safetensors --tokenizer runs/t");
    test_.check("a run's tokenizer", given.status == 0 && given.prints("parameters, ascii\n"), given.output);
    expect(shell, "which it writes with", "h.safetensors --length 1 --prompt a", 0, "1 token in ");
    test_.check("a folder of runs has none",
                shell.script(convert + "hf --tokenizer runs --save x").prints("or a run's model.safetensors\n"));
  }

  // What a command prints where its standard output is a terminal, whose line ends are \r\n.
  static std::string on_terminal(const Shell& shell, const std::string& command) {
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) throw std::runtime_error("no terminal");
    shell.script(command + " > " + ptsname(terminal) + " 2> /dev/null < /dev/null");
    std::string output;
    char buffer[4096];
    for (ssize_t n; (n = read(terminal, buffer, sizeof buffer)) > 0;) output.append(buffer, static_cast<size_t>(n));
    close(terminal);
    return output;
  }

  void texts_with_an_end() {
    const Shell shell(folder_ + "/generate");
    std::string documents;
    for (int i = 0; i < 200; ++i) documents += "ab<|endoftext|>";
    shell.write("documents", documents);
    expect_script(shell, "an encoding with an end of a text",
                  "tokenize --train 258 --save t.json documents && train_text --name e --data documents --tokenizer "
                  "t.json --steps 60 --lr 0.02 "
                  "--warmup 0 --eval-samples 8 --sample-length 0 --context 8 --batch 8 --width 16 --layers 1",
                  0, "bpe, 258 tokens");
    const std::string words = "runs/e --temperature 0 --length 20 --prompt ";
    test_.equal("writing stops there", shell.run(words + "ab --quiet").output, "ab\n");
    test_.check("as its letters, with a note",
                shell.run(words + "'ab<|endoftext|>'")
                    .prints("note: <|endoftext|> in the prompt is read as its letters; --special: as one token\n"));
    test_.check("as one token, without one", shell.run(words + "'ab<|endoftext|>' --special").prints("note") == false);
    const std::string wild = words + "\"$(printf 'a\\033[31m\\007\\016\\tb')\" --quiet --length 0";
    test_.equal("control characters into a pipe", shell.run(wild).output, "a\033[31m\007\016\tb\n");
    test_.equal("on a terminal", on_terminal(shell, "generate " + wild), "a\\x1B[31m\\x07\\x0E\tb\r\n");
  }

  void generation() {
    const Shell shell(folder_ + "/generate");
    shell.script("train_text --name t --steps 3" + TEXT + "; train_copy --name c --steps 1" + SMALL);
    const std::string run = "runs/t --length 40 --quiet --prompt 'One ' ";
    const Outcome once = shell.run(run + "--seed 5");
    test_.check("continues the prompt",
                once.status == 0 && once.output.rfind("One ", 0) == 0 && once.output.size() >= 45,
                once.output);  // beyond the context of 8
    test_.equal("the same seed", shell.run(run + "--seed 5 --threads 2").output, once.output);
    test_.check("another seed", shell.run(run + "--seed 6").output != once.output);
    const std::string both = shell.run(run + "--seed 5 --samples 2").output;
    test_.check("two samples, of which the second is another one",
                both.size() > once.output.size() && both.substr(0, once.output.size()) == once.output &&
                    both.substr(once.output.size()) != once.output,
                both);
    const std::string any = shell.run("runs/t --length 400 --quiet --seed 5 --temperature 100").output;
    test_.check("each token is a draw of its own", std::set<char>(any.begin(), any.end()).size() > 100, any);
    expect(shell, "a draw where nothing is drawn", run + "--temperature 0 --top-k 3", 2,
           "--top-k 3: does nothing with --temperature 0");
    test_.equal("the likeliest", shell.run(run + "--temperature 0").output,
                shell.run(run + "--top-k 1 --seed 9").output);
    test_.equal("of next to nothing", shell.run(run + "--top-p 0").output, shell.run(run + "--top-k 1").output);
    expect(shell, "samples", "runs/t/model.safetensors --length 3 --samples 2", 0, "--- 2");
    expect(shell, "a prompt beyond the context", "runs/t --length 3 --prompt 'One day he went'", 0,
           "note: the prompt has 15 tokens and the model reads 8 at most");
    vocabularies(shell);
    windows_and_talk(shell);
    of_a_checkpoint(shell);
    expect(shell, "no text model", "runs/c", 1, "has no tokenizer: this model was trained by train_copy");
    expect(shell, "no file", "nowhere.safetensors", 1, "nowhere.safetensors");
    expect(shell, "a full disk", "runs/t --length 3 > /dev/full", 1, "cannot write to the standard output");
    expect(shell, "two prompts", "runs/t --prompt a --interactive", 2, "expected one of them");
    // A prompt that never ends: the program waits for it, and a signal ends it.
    const Outcome waiting = shell.script(
        "mkfifo p; exec 3<> p; generate runs/t --interactive < p & child=$!; "
        "sleep 0.3; kill -0 $child && echo waits; kill -TERM $child; for i in $(seq 100); do kill -0 $child "
        "2> /dev/null && sleep 0.1; done; kill -KILL $child 2> /dev/null; wait $child; echo status $?");
    test_.check("a signal while the prompt is read", waiting.prints("waits") && waiting.prints("status 143"),
                waiting.output);
    expect(shell, "not ASCII", "runs/t --prompt '\xC3\xA9'", 1,
           "generate: --prompt: line 1, byte 0: '\u00E9' is no 7-bit ASCII character\n");
    expect(shell, "a byte order mark", "runs/t --prompt '\uFEFFOne '", 1, "'\\uFEFF' is no 7-bit ASCII");
    shell.script("head -c 2000 runs/t/model.safetensors > cut");
    expect(shell, "a cut file is read only", "cut", 1, "truncated, or not a safetensors file\n");
    expect(shell, "nothing", "", 2, "expected CHECKPOINT");
  }

  void regular() {
    const Shell shell(folder_ + "/train_regular");
    const Outcome whole = expect(shell, "a run", "--name whole --seeds 1,2 --parity-probability 10" + REGULAR, 0,
                                 {"2 seeds: best", "at the training length",
                                  "saved runs/whole (results.csv, lengths.svg, probabilities.csv, and a run each)"});
    leaves(shell, "runs/whole/", {"results.csv", "probabilities.csv", "lengths.svg", "parity_check-seed-2/test.csv"});
    results_of_seeds(shell, whole);
    shell.run("--name parts --seeds 1,2 --parity-probability 10" + REGULAR + "--steps 3");
    shell.run("--name parts --seeds 1,2 --parity-probability 10" + REGULAR);
    test_.equal("continued", shell.read("runs/parts/results.csv"), shell.read("runs/whole/results.csv"));
    // As if it had been killed before its first checkpoint.
    shell.script("rm runs/parts/parity_check-seed-2/model.safetensors runs/parts/results.csv");
    shell.run("--name parts --seeds 1,2 --parity-probability 10" + REGULAR);
    test_.equal("a run without a checkpoint starts anew", shell.read("runs/parts/results.csv"),
                shell.read("runs/whole/results.csv"));
    expect(shell, "a seed too large", "--seed 3000000000" + REGULAR, 2, "--seed 3000000000: expected at most");
    for (const char* model : {"transformer", "rnn", "mamba", "regular_gpt --form dilated"})
      expect(shell, model, std::string("--task Tomita_5 --model ") + model + REGULAR, 0, "Tomita_5");
    expect(shell, "all tasks", "--all-tasks --quiet --model rnn" + REGULAR, 0, "D_12");
    expect(shell, "near misses", "--task D_3 --near-misses" + REGULAR, 0, "D_3                       1    12 to 14");
    shell.run("--name shares --task Tomita_5" + REGULAR);  // members are of even lengths
    test_.check("what one answer scores, and the training's own length",
                shell.read("runs/shares/results.csv").find(",0.75,0.5\n") != std::string::npos,
                shell.read("runs/shares/results.csv"));
    test_.check("of each length",
                read_csv(shell.file("runs/shares/Tomita_5-seed-1/test.csv")).column("one_answer").at(0) == 1);
    shell.run("--name few --task cycle_navigation --model rnn" + REGULAR);
    shell.run("--name more --task cycle_navigation --model rnn --seed 2" + REGULAR + "--steps 9");
    const auto asked = [&](const char* run) {  // for each length, the share of most probable answers that are right
      return read_csv(shell.file(std::string("runs/") + run + "/test.csv")).column("one_answer");
    };
    test_.check("whatever the model, the seed and the steps, it is asked about the same strings",
                asked("few/cycle_navigation-seed-1") == asked("more/cycle_navigation-seed-2"));
    expect(shell, "members only", "--task D_3 --model rnn --batch 1 --threads 1", 2,
           "--batch 1: D_3 has a member and another string in turn, expected an even number");
    expect(shell, "near misses of all", "--all-tasks --near-misses --quiet" + REGULAR, 0, "Tomita_6");
    const std::string next = " --protocol next --train-length 10" + SMALL_REGULAR;
    for (const char* model : {"transformer", "rnn", "mamba", "regular_gpt"})
      expect(shell, std::string("next symbol: ") + model, std::string("--task D_3 --model ") + model + next, 0,
             "21 to 30");
    shell.run("--name sets --task D_3 --model rnn" + next);
    const std::string curve = shell.read("runs/sets/D_3-seed-1/curve.svg");
    test_.check("its figure says what the loss is",
                curve.find("squared error") != std::string::npos && curve.find("nats") == std::string::npos);
    shell.run("--name nw --task Tomita_4" + next);
    shell.run("--name np --task Tomita_4 --steps 3 --protocol next --train-length 10" + SMALL_REGULAR + "--steps 3");
    shell.run("--name np --task Tomita_4" + next);
    test_.equal("next symbol, continued", shell.log("np/Tomita_4-seed-1"), shell.log("nw/Tomita_4-seed-1"));
  }

  // What the tables of runs/whole, of two seeds, have of their tests.
  void results_of_seeds(const Shell& shell, const Outcome& said) {
    const auto table = [&](const std::string& file) {  // without its line of names
      std::vector<std::vector<std::string>> rows;
      std::istringstream lines(shell.read("runs/" + file));
      std::string line;
      for (std::getline(lines, line); std::getline(lines, line);) rows.push_back(split(line, ','));
      return rows;
    };
    const auto results = table("whole/results.csv");
    std::vector<double> means;
    for (const size_t seed : {0, 1}) {
      const std::string name = petroglyph::text("seed %zu: ", seed + 1);
      const CsvTable tested =
          read_csv(shell.file(petroglyph::text("runs/whole/parity_check-seed-%zu/test.csv", seed + 1)));
      const std::vector<double>&accuracies = tested.column("accuracy"), &answers = tested.column("one_answer");
      const auto mean = [](const std::vector<double>& of) {
        double sum = 0;
        for (const double one : of) sum += one;
        return sum / static_cast<double>(of.size());
      };
      test_.equal(name + "lengths", tested.column("length"), std::vector<double>{11, 12, 13, 14});
      means.push_back(mean(accuracies));
      test_.equal(name + "accuracy", results[seed][4], number_text(means.back(), 9));
      test_.equal(name + "one answer", results[seed][5], number_text(mean(answers), 9));
    }
    const double best = std::max(means[0], means[1]), worst = std::min(means[0], means[1]);
    test_.check("best, mean and worst",
                best > worst && said.prints(petroglyph::text("2 seeds: best %.2f %%, mean %.2f %%, worst %.2f %%",
                                                             100 * best, 50 * (best + worst), 100 * worst)),
                said.output);
    // Each seed alone, and beside the strings of the table those whose symbols are alike, as in the test without
    // probabilities.
    std::vector<std::vector<std::vector<std::string>>> alone;
    for (const std::string seed : {"1", "2"}) {
      const std::string name = "alone-" + seed;
      shell.run("--name " + name + " --seeds " + seed + " --parity-probability 10,50" + REGULAR);
      alone.push_back(table(name + "/probabilities.csv"));
      const std::vector<std::string> result = table(name + "/results.csv").at(0);
      test_.check("seed " + seed + ": at the training length and on longer strings",
                  alone.back()[1][2] == result[6] && alone.back()[3][2] == result[4] && result[6] != result[4]);
    }
    const auto both = table("whole/probabilities.csv");
    for (const size_t row : {0, 1}) {
      const std::string lengths = row == 0 ? "same" : "longer";
      test_.check("by probability, " + lengths, both[row][0] == lengths && both[row][1] == "0.1");
      test_.equal("the mean of the seeds, " + lengths, both[row][2],
                  number_text((*parse_number(alone[0][2 * row][2]) + *parse_number(alone[1][2 * row][2])) / 2, 9));
    }
  }

  void regular_errors() {
    const Shell shell(folder_ + "/train_regular");
    expect(shell, "no such task", "--task parity", 2, "--task parity: expected one of");
    expect(shell, "no chunk", "--chunk 1", 2, "--chunk 1: expected a whole number from 2");
    expect(shell, "heads of none", "--model rnn --heads 3", 2, "--heads 3: does nothing with --model rnn");
    expect(shell, "no K", "--thickness 2", 2, "--thickness 2: does nothing with --form chunked");
    expect(shell, "lengths", "--test-from 50 --test-to 48", 2, "--test-from 50, --test-to 48: expected them in");
    expect(shell, "shorter than the training's", "--test-from 30", 2,
           "--train-length 40, --test-from 30, --test-to 500: expected them in rising order");
    expect(shell, "a length without members", "--task D_2 --near-misses --test-from 51 --test-to 51", 2,
           "D_2 has no members of the lengths of this test, 51 to 51");
    expect(shell, "near misses of no language", "--near-misses", 2,
           "--near-misses: only for --task D_n and Tomita, not for parity_check");
    expect(shell, "no next symbol", "--protocol next", 2,
           "--protocol next: only for --task D_n and Tomita, not for parity_check");
    expect(shell, "longer than the test", "--train-length 600", 2,
           "--train-length 600, --test-from 601, --test-to 500: expected them in rising order");
    expect(shell, "a test that ends early", "--train-length 10 --test-to 20", 2,
           "--train-length 10, --test-from 41, --test-to 20: expected them in rising order");
    expect(shell, "an odd stride without members", "--task D_4 --test-every 999", 2,
           "expected --test-from, --test-to and --test-every that take in a length with members");
    expect(shell, "a window without strings", "--task D_2 --protocol next --train-length 1", 2,
           "--train-length 1: --protocol next has strings of 2 symbols and more");
    expect(shell, "nothing but the test", "--task D_2 --protocol next --train-length 2", 1,
           "D_2: all strings of 2 to 2 symbols are in the test");
    expect(shell, "a test as long as the training", "--task D_2 --train-length 10 --test-from 10 --test-to 14", 2,
           "--train-length 10, --test-from 10, --test-to 14: expected them in rising order");
    expect(shell, "next symbol at the end only", "--task D_2 --protocol next --form chunked", 2, "--form chunked:");
    expect(shell, "next symbol at other lengths", "--task D_2 --protocol next --test-to 90", 2, "--test-to: not with");
    expect(shell, "no seeds", "--seeds=", 2, "--seeds: expected at least one");
    expect(shell, "heads", "--heads 5", 2, "--heads 5 does not divide --width 64");
    expect(shell, "resumes nothing", "--resume --name nothing", 1, "runs/nothing: there is no such folder to continue");
    expect(shell, "a stride without members", "--all-tasks --test-every 46", 2,
           "D_2 has no members of the lengths of this test, 51 to 100, every 46");
    expect(shell, "one length without members", "--task Tomita_5 --test-from 61 --test-to 61", 2,
           "Tomita_5 has no members of the lengths of this test, 61 to 61");
    test_.check("nothing was made", !shell.exists("runs"));
#if !ASAN  // the sanitizer reserves the whole address space
    const std::string longest =
        "--name long --test-from 1048576 --test-to 1048576" + SMALL_REGULAR + "--train-length 10 --width 64";
    expect(shell, "longer than memory", longest, 1, "train_regular: not enough memory", "ulimit -v 1000000;");
#endif
  }

  // Ctrl-C in the second of two runs.
  void regular_stopped() {
    const Shell shell(folder_ + "/train_regular");
    const std::string seeds = "--seeds 1,2 --name ", more = REGULAR + "--steps 200 --save-every 1 --batch 64 ";
    shell.run(seeds + "whole" + more);
    const Outcome outcome = shell.script("train_regular " + seeds + "a" + more + "& child=$!; " +
                                         wait_for_lines("runs/a/parity_check-seed-2/log.csv", 3) +
                                         "kill -INT $child; wait $child; echo status $?");
    test_.check("status", outcome.prints("status 130"), outcome.output);
    test_.check("names the command that continues", outcome.prints("To continue, repeat the command with --name a."),
                outcome.output);
    shell.run(seeds + "a" + more);
    test_.equal("with the same results", shell.read("runs/a/results.csv"), shell.read("runs/whole/results.csv"));
  }

  void neurons() {
    const Shell shell(folder_ + "/inspect");
    const std::string train = "train_text --quiet --name ", mlp = " --model mlp_lm --embedding 6" + WINDOWS;
    shell.script(train + "m --steps 5 --snapshots 4" + mlp + ";" + train + "wide --steps 1" + mlp + "--context 9;" +
                 train + "t --steps 1" + TEXT);
    const auto exists = [&](const std::string& file) { return shell.exists(file); };
    for (const int step : {0, 1, 2, 3, 4, 5})  // every fourth, and halves of that before
      test_.equal(petroglyph::text("a snapshot at step %d", step),
                  exists(petroglyph::text("runs/m/snapshots/step-%d.safetensors", step)), step != 3 && step != 5);
    expect(shell, "a run", "neurons runs/m", 0, {"6 neurons, context 8, embedding 6", "step 5"});
    leaves(shell, "runs/m/neurons/", {"types.svg", "ratios.svg", "norms.svg", "windows.svg", "words.txt"});
    const std::string types = shell.read("runs/m/neurons/types.csv");
    test_.equal("a row for each step", std::count(types.begin(), types.end(), '\n'), 6);
    shell.script("cp runs/m/snapshots/step-1.safetensors runs/m/best.safetensors; rm runs/m/snapshots/step-1.*");
    shell.run("neurons runs/m --out fewer");
    const std::string fewer = shell.read("fewer/types.csv");
    test_.equal("the best is no snapshot", std::count(fewer.begin(), fewer.end(), '\n'), 5);
    expect(shell, "one step", "neurons runs/m/snapshots/step-2.safetensors --out one", 0, "step 2 ");
    test_.check("in its own folder, no curve", exists("one/types.csv") && !exists("one/types.svg"));
    expect(shell, "another model", "neurons runs/t", 1, "runs/t/model.safetensors: transformer has no first.weight");
    shell.script("cp runs/wide/model.safetensors runs/m/snapshots/step-9.safetensors");
    expect(shell, "of two models", "neurons runs/m", 1, "another model than that of runs/m/snapshots/step-");
    expect(shell, "nothing", "neurons", 2, "expected CHECKPOINT");
    expect(shell, "no file", "neurons nowhere", 1, "nowhere");
    shell.script("mkdir empty");
    expect(shell, "an empty folder", "neurons empty", 1, "empty/model.safetensors");
    shell.script("cp runs/m/model.safetensors cut; truncate -s 2000 cut");
    expect(shell, "a cut file", "neurons cut", 1, "cut: ");
  }

  void scaling() {
    const Shell shell(folder_ + "/scaling");
    const std::string small = " --widths 4,8,16 --context 4 --heads 1 --batch 8 --eval-samples 16 ";
    const std::string both = " --budgets 2e7,4e7 ";
    const Outcome whole =
        expect(shell, "a study", "--name whole" + both + small, 0, {"12 runs in runs/whole", "N_opt ∝ C^"});
    leaves(shell, "runs/whole/",
           {"points.csv", "optima.csv", "laws.csv", "scaling_mlp_lm.svg", "scaling_transformer.svg", "loss.svg"});
    check_points(shell);
    expect(shell, "shards of no power of two", "--name shards --shards 3 --models mlp_lm --budgets 4e7" + small, 2,
           "--shards 3");
    test_.check("leaves no study", !shell.exists("runs/shards"));
    expect(shell, "steps beyond count", "--budgets 1e30 --models mlp_lm --list" + small, 2,
           "expected at least one and at most 2147483647");
    expect(shell, "less than a step", "--budgets 1 --models mlp_lm --list" + small, 2, "expected at least one");
    // The same in two parts, with other threads, killed in between.
    shell.run("--name parts --threads 2 --models mlp_lm --budgets 4e7" + small);
    shell.script("cd runs/parts && rm -r mlp_lm-C4e7-w8 points.csv");
    const std::string done = shell.file("runs/parts/mlp_lm-C4e7-w16/model.safetensors"), before = read_bytes(done);
    const Outcome parts = shell.run("--name parts" + both + small);
    test_.check("a finished run is kept", read_bytes(done) == before, parts.output);
    test_.check("says the weights of all runs", whole.weights().size() == 16, whole.output);
    test_.equal("in parts: weights", parts.weights(), whole.weights());
    same_files(shell, "in parts: ", "runs/parts/", "runs/whole/", {"points.csv", "laws.csv"});
    expect(shell, "another configuration", "--name whole" + both + small + "--context 5", 1,
           "this run's cosine schedule was laid out over");
    expect(shell, "an option of another study", "--what context --budgets 1e9", 2,
           "--budgets 1e9: does nothing with --what context");
    expect(shell, "two widths", "--widths 4,8 --context 4", 2, "--widths: 2 of them, expected three or more");
    expect(shell, "no such model", "--models gru", 2, "\"gru\": expected mlp_lm or transformer");
    expect(shell, "heads", "--models transformer --widths 12,16,20 --heads 2", 2,
           "--heads 2: a model's 3 channels (--embedding) are no multiple of it");
    expect(shell, "heads, of models that may come", "--list --models mlp_lm --heads 3", 0, "mlp_lm");
    expect(shell, "no heads", "--list --heads 0", 2, "--heads 0: expected a whole number from 1 to 1024");
    expect(shell, "no context", "--list --context 0", 2, "--context 0: expected a whole number from 1 to 65536");
    expect(shell, "too long a context", "--list --context 65537", 2,
           "--context 65537: expected a whole number from 1 to 65536");
    expect(shell, "diverges", "--name nan --lr 1000 --clip 0 --lr-floor 1000 --models mlp_lm" + both + small, 1,
           "training has diverged");
    expect(shell, "depths",
           "--name d --what dct --depths 1 --transformer-depths 1 --tokens 640 --context 16 --embedding 8 "
           "--eval-samples 4",
           0, "dct.svg");
    expect(shell, "another configuration in as many steps",
           "--name d --what dct --depths 1 --transformer-depths 1 --tokens 640 --context 16 --embedding 8 "
           "--eval-samples 4 "
           "--heads 2",
           1, "runs/d/dct_mlp-L1-D640/model.safetensors: its model is {");
    const Outcome list = expect(shell, "a list", "--list --name list --preset paper --what context --tokens 1e9", 0,
                                "mlp_lm-w16384-T127-D1e9");
    test_.check("leaves nothing", !shell.exists("runs/list"));
    expect(shell, "contexts", "--what context --contexts 1,2,5 --widths 8 --tokens 64 --batch 8 --eval-samples 16", 0,
           "context.svg");
  }

  // Of runs/whole: C = 6ND in whole steps of 8 windows, with one target token each; perplexities are exp of losses;
  // warm-up takes a tenth of the steps.
  void check_points(const Shell& shell) {
    std::istringstream lines(shell.read("runs/whole/points.csv"));
    std::string line, wrong;
    int rows = 0;
    for (std::getline(lines, line); std::getline(lines, line); ++rows) {
      const std::vector<std::string> cells = split(line, ',');
      const auto number = [&](size_t i) { return *parse_number(cells.at(i)); };
      const double budget = number(2), N = number(4), D = number(5), steps = number(6), loss = number(7);
      if (D != 8 * steps || std::abs(budget - 6 * N * D) > 6 * N * 4) wrong += "tokens: " + line + "\n";
      if (std::abs(number(8) - std::exp(loss)) > 1e-6 * std::exp(loss)) wrong += "perplexity: " + line + "\n";
      const CsvTable log = read_csv(shell.file("runs/whole/" + cells[0] + "/log.csv"));
      const std::vector<double>& rate = log.column("learning_rate");
      const size_t warm = static_cast<size_t>(steps) / 10;
      if (log.column("step").back() != steps || log.column("eval_loss").back() != loss) wrong += "last: " + line + "\n";
      if (rate[0] != 0 || rate[warm] != 0.002 ||
          std::abs(rate[warm / 2] - 0.002 * double(warm / 2) / double(warm)) > 1e-9)
        wrong += "warm-up: " + line + "\n";
      if (rate[static_cast<size_t>(steps) - 1] > 0.0001) wrong += "end: " + line + "\n";
    }
    test_.equal("points", rows, 12);
    test_.equal("what stands in them", wrong, "");
  }

  // Two layers at 64 windows of 48 characters: after two steps they look everywhere nearly alike.
  void looks(const std::string& csv) {
    const std::vector<std::string> lines = split(csv, '\n');
    test_.equal("where layers look: lines", lines.size(), size_t{4});  // the last is empty
    test_.equal("where layers look: columns", lines[0], "layer,own,entropy");
    double alike = 0;
    for (int t = 1; t < 48; ++t) alike += 1.0 / (t + 1) / 47;
    for (size_t layer = 1; layer + 1 < lines.size(); ++layer) {
      const std::vector<std::string> cells = split(lines[layer], ',');
      const double own = std::atof(cells.at(1).c_str()), entropy = std::atof(cells.at(2).c_str());
      test_.check("where layers look: " + lines[layer], std::abs(own - alike) < 0.02 && entropy > 0.95 && entropy <= 1);
    }
  }

  void inspect() {
    const Shell shell(folder_ + "/inspect");
    expect(shell, "help", "", 0, "positions");
    expect(shell, "no such thing", "position", 2, "unknown subcommand position, expected one of");
    expect(shell, "positions", "positions --steps 2 --trials 2 --threads 1 --name p", 0,
           "sees a set at the last position");
    test_.check("draws attention", shell.exists("runs/p/attention.svg"));
    looks(shell.read("runs/p/attention.csv"));
    const std::string positions = shell.read("runs/p/positions.csv");
    const auto numbers_of = [&](const std::string& row, const char* weights) {  // moved, last, later, perplexity
      const size_t at = positions.find("\n" + row + ",none," + weights + ",");
      const std::string line =
          at == std::string::npos ? "" : positions.substr(at + 1, positions.find('\n', at + 1) - at - 1);
      std::vector<double> numbers(4, std::nan(""));
      const std::vector<std::string> cells = split(line, ',');
      for (size_t i = 0; i < 4 && cells.size() == 9; ++i) numbers[i] = std::atof(cells[5 + i].c_str());
      return numbers;
    };
    const std::vector<double> none = numbers_of("transformer,no,2", "random"),
                              one = numbers_of("transformer,yes,1", "random"),
                              two = numbers_of("transformer,yes,2", "random"),
                              trained = numbers_of("transformer,yes,2", "trained");
    test_.check("its table: a set", none[0] < 1e-5, positions);
    test_.check("its table: a set behind the last token", one[0] > 1e-3 && one[1] < 1e-5, positions);
    test_.check("its table: a sequence", two[1] > 1e-3 && two[2] > 1e-3 && two[2] < two[1], positions);
    test_.check("its table: of 128 characters it knows nothing yet", trained[3] > 120 && trained[3] < 135, positions);
    expect(shell, "lemma 1", "lemma1 --n 3 --trials 50", 0, "50 of 50 random products right");
    expect(shell, "lemma 1 of nothing", "lemma1 --n 0", 2, "--n 0: expected a whole number from 1 to 24");
    shell.write("ab", "abababababababababab");
    expect(shell, "counts", "counts --data ab --val ab --last 1", 0, "the last 1 token: perplexity 1.");
    expect(shell, "counts in windows", "counts --data ab --val ab --last 1 --context 3", 0,
           "the last 0 tokens: perplexity 2.20, in windows of 3 2.20, 1.135 bits");
    expect(shell, "of none", "counts --data ab --val ab --last 1", 0,  // (10 + 2/128) / 22
           "the last 0 tokens: perplexity 2.20, 1.135 bits a token, 1 row of 0\n");
    expect(shell, "of no text", "counts --data nowhere", 1, "nowhere");
    expect(shell, "a part beside a whole", "counts --data ab --val ab --val-part 0.3", 2,
           "--val-part 0.3: does nothing with --val ab");
    expect(shell, "a format of no file", "counts --format text", 2,
           "--format text: does nothing without --data or --val\n");
    expect(shell, "a format of one", "counts --format text --val ab --last 1", 0, "20 of ab asked");
    expect(shell, "counts of the last of windows",
           "counts --data ab --val ab --last 1 --evaluate-length 4 --length-windows 8", 0, "8 of ab asked\n");
    expect(shell, "of windows that are longer", "counts --data ab --val ab --evaluate-length 20", 1,
           "ab: 20 tokens are less than a window of 20");
    expect(shell, "windows of no length", "counts --length-windows 3", 2,
           "--length-windows 3: does nothing without --evaluate-length\n");
    expect(shell, "two kinds of windows", "counts --context 3 --evaluate-length 3", 2,
           "--context 3: does nothing with --evaluate-length");
    expect(shell, "more than can be told apart", "counts --data ab --last 9", 2,
           "--last 9: expected at most 7 with 128 tokens");
  }

  // runs/t is a Transformer of one layer that learned from windows of 8, runs/m Mamba.
  void attention(const Shell& shell, const std::string& language) {
    shell.script("train_text --quiet --name l --steps 1 --model linear_transformer" + TEXT +
                 "; train_text --quiet --name u --steps 1 --model linear_transformer --feature-map identity" + TEXT);
    expect(shell, "where layers look", "attention runs/t runs/l --windows 3 --out looks", 0, "weight on the new token");
    const std::vector<std::string> lines = split(shell.read("looks/attention.csv"), '\n');
    test_.equal("a line a layer", lines.size(), size_t{4});  // the last is empty
    for (size_t i = 1; i + 1 < lines.size(); ++i) {
      const std::vector<std::string> cells = split(lines[i], ',');
      const double own = std::atof(cells.at(3).c_str()), entropy = std::atof(cells.at(4).c_str());
      test_.check("shares: " + lines[i], own > 0 && own < 1 && entropy > 0 && entropy <= 1);
    }
    expect(shell, "no more windows than there are", "attention runs/t --windows 5000 --text own.txt --out looks", 0,
           "49 windows of 8 tokens of own.txt\n");
    shell.script("cp runs/t/model.safetensors runs/t/copy.safetensors");
    expect(shell, "a file that is not the last", "attention runs/t/copy.safetensors --windows 1 --out looks", 0,
           "t/copy.safetensors: transformer");
    expect(shell, "a file in place of a folder", "attention runs/t --out runs/t/log.csv", 1,
           "inspect: runs/t/log.csv: cannot make the folder: Not a directory");
    expect(shell, "a folder that cannot be made, before the work", "attention runs/t --out runs/t/log.csv/x", 1,
           "inspect: runs/t/log.csv/x: cannot make the folder: Not a directory");
    expect(shell, "two of one depth", "attention runs/t runs/l --windows 1 --out looks", 0,
           "l: linear_transformer, 1 layer, 1 window of 8 tokens");
    shell.script("train_text --quiet --name g --steps 1 --model regular_gpt --chunk 2" + TEXT);
    expect(shell, "maps of another kind", "attention runs/g", 1,
           "this regular_gpt does not attend to all earlier tokens");
    expect(shell, "one place to look", "attention runs/t --length 1", 2, "--length 1: expected at least 2");
    expect(shell, "more than it has positions for", "attention runs/l --length 9", 2,
           "--length 9: runs/l/model.safetensors reads 8 tokens at most");
    expect(shell, "weights that are no shares", "attention runs/u", 1, "does not normalize its attention");
    expect(shell, "a model that does not attend", "attention runs/t runs/m", 1,
           "this mamba does not attend to all earlier tokens");
    expect(shell, "a model of a language", "attention " + language, 1, "a checkpoint of train_regular, expected one");
    expect(shell, "no such text", "attention runs/t --text nowhere", 1, "nowhere");
    expect(shell, "attention of nothing", "attention", 2, "./train_text makes one");
  }

  void inspect_checkpoints() {
    const Shell shell(folder_ + "/inspect");
    const std::string train = "train_regular --quiet" + REGULAR;
    shell.script(train + "--name a; " + train + "--name b --task D_2 --form dilated; " + train +
                 "--name c --model transformer --task Tomita_4; " + train +
                 "--name r --model rnn; train_text --quiet --name t --steps 2 --position alibi" + TEXT +
                 "; train_text --quiet --name m --model mamba --steps 1" + WINDOWS);
    const std::string a = "runs/a/parity_check-seed-1", b = " runs/b/D_2-seed-1", c = " runs/c/Tomita_4-seed-1",
                      r = " runs/r/parity_check-seed-1";
    expect(shell, "clusters", "clusters --length 60 " + a + b + "/model.safetensors", 0, "60 vectors of 6 layers");
    leaves(shell, a, {"/clusters.csv", "/clusters.svg"});
    expect(shell, "clusters of a transformer", "clusters --length 14 --out there" + c, 0, "saved there");
    expect(shell, "clusters of one vector", "clusters --length 2 " + a, 1, "principal components of 1 points");
    expect(shell, "longer than the model reads", "clusters --length 1" + c, 2, "--length 1: expected");
    expect(shell, "clusters of a folder of runs", "clusters runs/a", 1,
           "runs/a: the run in this folder is runs/a/parity_check-seed-1: name that");
    expect(shell, "the tensors of a checkpoint", "info runs/t", 0,
           "  F32   24×8             blocks.0.attention.qkv.weight\n"
           "  F32   24               blocks.0.attention.qkv.bias\n");
    expect(shell, "clusters of nothing", "clusters", 2, "./train_regular makes one");
    const Outcome mixed = shell.run("clusters --out mixed --length 60 " + a + r);
    test_.check("clusters of an rnn, before it looks into another",
                mixed.status == 1 &&
                    mixed.output ==
                        "inspect: runs/r/parity_check-seed-1/model.safetensors: a rnn does not show its layers; "
                        "regular_gpt and transformer do\n" &&
                    !shell.exists("mixed/clusters.csv"),
                mixed.output);
    expect(shell, "clusters of text", "clusters runs/t", 1,
           "a checkpoint of train_text, expected one of train_regular");
    expect(shell, "receptive fields", "receptive-field --length 30 " + a + b + r + " runs/t", 0,
           "transformer, text: of 30 positions, from the last one, half of the gradient is within ");
    expect(shell, "of a transformer on longer strings than it learned", "receptive-field --out longer --length 16" + c,
           0, "transformer, Tomita_4: of 16 positions");
    shell.write("own.txt", std::string(400, 'x'));
    shell.script("train_text --quiet --name own --steps 1 --data own.txt --position alibi" + TEXT);
    expect(shell, "all of a text that is named", "receptive-field runs/own --length 30 --text own.txt", 0,
           "transformer");
    const std::string csv = shell.read(a + "/receptive_field.csv");
    test_.check("ends at one", csv.find(a + ",0,1\n") != std::string::npos, csv.substr(0, 200));
    expect(shell, "a text of one's own", "receptive-field runs/t --text nowhere", 1, "nowhere");
    expect(shell, "a text for a language", "receptive-field " + r + " --text nowhere", 2,
           "--text nowhere: this model was trained on a regular language");
    attention(shell, a);
    expect(shell, "a map of a text", "heatmap runs/t", 1, "this transformer reads no images");
    expect(shell, "maps of two", "heatmap runs/t runs/m", 2, "runs/m: expected one checkpoint");
    shell.write("digits", std::string(100, '1'));
    expect(shell, "the end of a text", "counts --data digits --last 0", 0, "5 of the end of digits asked");
    expect(shell, "receptive field of nothing", "receptive-field", 2, "./train_regular makes one");
  }

 private:
  const std::string WINDOWS =  // of models without heads
      " --width 8 --layers 1 --context 8 --batch 4 --eval-samples 8 --eval-every 4 --sample-length 20 --threads 1 ";
  const std::string TEXT = WINDOWS + "--heads 2 ";
  const std::string SMALL_REGULAR = " --width 8 --batch 8 --eval-samples 8 --steps 6 --test-strings 8 --threads 1 ";
  const std::string REGULAR = SMALL_REGULAR + "--train-length 10 --test-from 11 --test-to 14 ";

  std::string folder_;
};

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  const std::string folder = std::filesystem::absolute(argv[0]).parent_path().parent_path().string();
  ProgramTest programs(test, folder + "/train_copy");
  test.run("usage", [&] { programs.usage(); });
  test.run("run and resume", [&] { programs.run_and_resume(); });
  test.run("reference", [&] { programs.reference(); });
  test.run("defaults", [&] { programs.defaults(); });
  test.run("seeds", [&] { programs.seeds(); });
  test.run("parameter counts", [&] { programs.parameter_counts(); });
  test.run("comparison", [&] { programs.comparison(); });
  test.run("learning", [&] { programs.learning(); });
  test.run("damaged", [&] { programs.damaged(); });
  test.run("threads", [&] { programs.threads(); });
  test.run("initial parameters", [&] { programs.initial_parameters(); });
  test.run("divergence", [&] { programs.divergence(); });
  test.run("disk", [&] { programs.disk(); });
  test.run("interrupted", [&] { programs.stopped("INT", 130); });
  test.run("killed", [&] { programs.stopped("KILL", 137); });
  OtherPrograms others(test, folder);
  test.run("text", [&] { others.text(); });
  test.run("text, measured", [&] { others.text_measured(); });
  test.run("configurations", [&] { others.configurations(); });
  test.run("windows", [&] { others.windows(); });
  test.run("dct_mlp", [&] { others.dct_mlp(); });
  test.run("generation", [&] { others.generation(); });
  test.run("texts with an end", [&] { others.texts_with_an_end(); });
  test.run("regular", [&] { others.regular(); });
  test.run("regular, bad options", [&] { others.regular_errors(); });
  test.run("regular, interrupted", [&] { others.regular_stopped(); });
  test.run("neurons", [&] { others.neurons(); });
  test.run("scaling", [&] { others.scaling(); });
  test.run("inspect", [&] { others.inspect(); });
  test.run("inspect checkpoints", [&] { others.inspect_checkpoints(); });
  return test.finish();
}
