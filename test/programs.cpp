// The programs as a user meets them, on good days and bad ones: what they say, how they exit, what they leave behind.

#include <sys/wait.h>

#include <filesystem>
#include <limits>

#include "check.h"
#include "model.h"
#include "text.h"
#include "train/safetensors.h"

namespace petroglyph {
namespace {

struct Outcome {
  int status;
  std::string output;  // of both streams

  bool says(const std::string& words) const { return output.find(words) != std::string::npos; }
  std::string weights() const {  // the last line's fingerprint
    const size_t at = output.rfind("weights ");
    return at == std::string::npos ? "none: " + output : output.substr(at + 8, 16);
  }
};

// A program in a folder of its own.
class Shell {
 public:
  explicit Shell(const std::string& program) : program_(program) {}

  // `before` is shell text that comes first, such as "ulimit -f 1;".
  Outcome run(const std::string& arguments, const std::string& before = "") const {
    return script(before + " '" + program_ + "' " + arguments);
  }
  Outcome script(const std::string& commands) const {
    const std::string command =
        "cd '" + folder_.path() + "' && export OMP_WAIT_POLICY=passive && { " + commands + "\n} 2>&1";
    std::FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) throw std::runtime_error("cannot start a shell");
    Outcome outcome;
    char buffer[4096];
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.output.append(buffer, n);
    const int status = pclose(pipe);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
  }
  std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  std::string program_;
  TemporaryFolder folder_;
};

// Two blocks, strings of four letters: a step takes a millisecond.
const std::string SMALL =
    " --length 4 --width 12 --hidden 12 --layers 2 --batch 8 --eval-samples 8 --eval-every 4 --stop-at 2 --threads 1 ";

class ProgramTest {
 public:
  ProgramTest(Test& test, const std::string& program) : test_(test), program_(program) {}

  // The program must end with this status and say these words.
  void expect(const Shell& shell, const std::string& name, const std::string& arguments, int status,
              const std::string& words, const std::string& before = "") {
    const Outcome outcome = shell.run(arguments, before);
    test_.check(name, outcome.status == status && outcome.says(words),
                text("status %d, said: ", outcome.status) + outcome.output);
  }

  void usage() {
    const Shell shell(program_);
    expect(shell, "help", "--help", 0, "--length");
    expect(shell, "unknown option", "--lenght 5", 2, "train_copy: unknown option --lenght (did you mean --length?)");
    expect(shell, "length 0", "--length 0", 2, "--length 0: expected a whole number from 1");
    expect(shell, "heads", "--heads 5", 2, "train_copy: --heads 5 does not divide --hidden 192");
    expect(shell, "no number", "--lr fast", 2, "--lr fast: expected a number");
    expect(shell, "no such model", "--model gru", 2, "causal_rn");
    write_bytes(shell.file("settings"), "length = 3\nwidht = 5\n");
    expect(shell, "config file", "--config settings", 2, "settings:2: unknown option widht (did you mean width?)");
    expect(shell, "a path for a name", "--name ../a", 2, "--name ../a: expected letters");
    test_.check("nothing was made", !std::filesystem::exists(shell.file("runs")));
  }

  void run_and_resume() {
    const Shell shell(program_);
    const Outcome whole = shell.run("--name whole --steps 9" + SMALL);
    test_.check("a run", whole.status == 0 && whole.says("one token at a time"), whole.output);
    for (const char* name : {"log.csv", "model.safetensors", "curve.svg"})
      test_.check(std::string("leaves ") + name,
                  std::filesystem::exists(shell.file(std::string("runs/whole/") + name)));
    test_.equal("three threads", shell.run("--name three --steps 9" + SMALL + "--threads 3").weights(),
                whole.weights());
    shell.run("--name parts --steps 5" + SMALL);
    test_.equal("resumed", shell.run("--name parts --resume --steps 9").weights(), whole.weights());
    test_.equal("its log", read_bytes(shell.file("runs/parts/log.csv")), read_bytes(shell.file("runs/whole/log.csv")));
    expect(shell, "a run that exists", "--name whole" + SMALL, 1, "runs/whole: this run exists already");
    expect(shell, "another width", "--name whole --resume --width 16", 1,
           "--width 16: this run was started with --width 12");
    expect(shell, "no such run", "--name nothing --resume", 1, "runs/nothing/model.safetensors");
    expect(shell, "names by itself", "--steps 0" + SMALL, 0, "saved runs/copy ");
    expect(shell, "and again", "--steps 0" + SMALL, 0, "saved runs/copy-2 ");
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
    refuse("truncated", good.substr(0, good.size() / 2), "truncated; nothing was changed");
    refuse("truncated header", good.substr(0, 100), "nothing was changed");
    refuse("empty", "", "runs/a/model.safetensors");
    std::string flipped = good;
    flipped[good.size() - 5] = static_cast<char>(flipped[good.size() - 5] ^ 1);
    refuse("one flipped bit", flipped, "damaged; nothing was changed");
    refuse("text", std::string(1000, 'x'), "runs/a/model.safetensors");
    write_bytes(path, good);
    expect(shell, "the good file again", "--name a --resume --steps 5", 0, "weights");
  }

  void initial_parameters() {
    const Shell shell(program_);
    shell.run("--name a --steps 3" + SMALL);
    expect(shell, "from another run", "--name b --steps 1 --init runs/a/model.safetensors" + SMALL, 0, "weights");
    expect(shell, "of another shape", "--name c --steps 1 --init runs/a/model.safetensors" + SMALL + "--width 16", 1,
           "tensor token_embedding.weight has shape 29×12, this model wants 29×16");
    expect(shell, "no file", "--name c --init nowhere" + SMALL, 1, "nowhere");
    test_.check("no folder is left", !std::filesystem::exists(shell.file("runs/c")));
  }

  void divergence() {
    const Shell shell(program_);
    shell.run("--name a --steps 1" + SMALL);
    const SafetensorsFile file(shell.file("runs/a/model.safetensors"));
    SafetensorsWriter writer;
    std::vector<std::vector<float>> values;
    for (const std::string& name : file.names()) values.push_back(file.read<float>(name));
    for (float& x : values[0]) x = std::numeric_limits<float>::quiet_NaN();
    for (size_t i = 0; i < values.size(); ++i)
      writer.add(file.names()[i], file.entry(file.names()[i]).shape, values[i].data());
    writer.save(shell.file("nan.safetensors"));
    expect(shell, "NaN", "--name b --init nan.safetensors" + SMALL, 1, "the loss is nan at step");
    test_.check("is not saved", !std::filesystem::exists(shell.file("runs/b/model.safetensors")));
  }

  void disk() {
    const Shell shell(program_);
    write_bytes(shell.file("runs"), "a file");
    expect(shell, "runs is a file", "--steps 1" + SMALL, 1, "runs/copy: cannot make this folder");
    std::filesystem::remove(shell.file("runs"));
    shell.run("--name a --steps 3" + SMALL);
    const std::string path = shell.file("runs/a/model.safetensors"), good = read_bytes(path);
    // Files may have 8 blocks of 512 or 1024 bytes; the signal is ignored, so that a write fails as on a full disk.
    expect(shell, "full disk", "--name a --resume --steps 6", 1, "runs/a/model.safetensors",
           "trap '' XFSZ; ulimit -f 8;");
    test_.check("the checkpoint is as it was", read_bytes(path) == good);
    test_.check("no temporary file is left", !std::filesystem::exists(path + ".tmp"));
  }

  // Ended by a signal after its third step or so, then resumed.
  void stopped(const std::string& signal, int status) {
    const Shell shell(program_);
    const std::string settings = "--steps 60 --save-every 1 --name ";
    const std::string whole = shell.run(settings + "whole" + SMALL).weights();
    const std::string wait_for_log = "until [ $(wc -l < runs/a/log.csv) -gt 3 ] 2>/dev/null; do sleep 0.02; done; ";
    const Outcome outcome = shell.script("'" + program_ + "' " + settings + "a" + SMALL + "--batch 512 & child=$!; " +
                                         wait_for_log + "kill -" + signal + " $child; wait $child; echo status $?");
    test_.check("status", outcome.says(text("status %d", status)), outcome.output);
    if (signal == "INT")
      test_.check("says how to go on", outcome.says("go on with: ./train_copy --resume --name a"), outcome.output);
    const std::string other = shell.run(settings + "b" + SMALL + "--batch 512").weights();
    test_.equal("goes on to the same bits", shell.run("--name a --resume").weights(), other);
    test_.check("which another batch has not", other != whole);
  }

 private:
  Test& test_;
  std::string program_;
};

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  const auto program = (std::filesystem::absolute(argv[0]).parent_path().parent_path() / "train_copy").string();
  ProgramTest programs(test, program);
  test.run("usage", [&] { programs.usage(); });
  test.run("run and resume", [&] { programs.run_and_resume(); });
  test.run("damaged", [&] { programs.damaged(); });
  test.run("initial parameters", [&] { programs.initial_parameters(); });
  test.run("divergence", [&] { programs.divergence(); });
  test.run("disk", [&] { programs.disk(); });
  test.run("interrupted", [&] { programs.stopped("INT", 130); });
  test.run("killed", [&] { programs.stopped("KILL", 137); });
  return test.finish();
}
