#include "reproduction/record.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/folder_lock.h"
#include "base/interrupt.h"
#include "base/mapped_file.h"
#include "base/program.h"
#include "base/text.h"
#include "ops/ops.h"
#include "reproduction/child.h"
#include "tasks/corpus.h"
#include "train/checkpoint.h"
#include "train/device.h"

namespace petroglyph {

namespace {

const char* const NAMES_OF_SIZES[] = {"quick", "evening", "full"};

const char* const EDITIONS[] = {"full", "evening", "data", "quick"};  // the best first
const char* const CHECKPOINT = "model.safetensors";
const char* const WEIGHTS = "weights ";  // begins the last line of programs

// "Intel … CPU @ 2.80GHz", where the system says it.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0 && line.find(':') != std::string::npos)
      return std::string(trim(std::string_view(line).substr(line.find(':') + 1)));
  return "";
}

std::string machine_of(const std::string& device, int threads) {
  const std::string description = describe_device(device, threads);
  return description.rfind("CPU", 0) == 0 && !processor().empty() ? description + "; " + processor() : description;
}

// To those of a list, "A, and B".
void add_machine(std::string& machines, const std::string& machine) {
  if (machines.find(machine) != std::string::npos) return;
  machines += (machines.empty() ? "" : ", and ") + machine;
}

// Whether the command repeated continues something: a checkpoint, in this folder or in one of its runs.
bool can_go_on(const std::string& folder) {
  std::error_code none;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, none))
    if (entry.path().filename() == CHECKPOINT) return true;
  return false;
}

const char* const TEXT_KEY = "checksum_of_text";

Json to_json(const Record& record) {
  Json commands = Json::array();
  for (const DoneCommand& command : record.commands) {
    Json weights = Json::array();
    for (const Fingerprint& f : command.weights)
      weights.push(Json::object().set("run", f.run).set("weights", f.weights));
    Json entry = Json::object();
    entry.set("part", command.part).set("command", command.line).set("seconds", command.seconds);
    entry.set("done", command.done).set("weights", weights);
    if (!command.machine.empty()) entry.set("machine", command.machine);
    commands.push(entry);
  }
  Json json = Json::object();
  json.set("format", "petroglyph reproduction")
      .set("experiment", record.experiment)
      .set("size", name_of(record.scale.size));
  json.set("text", record.scale.text).set("validation", record.scale.validation);
  json.set("tokenizer", record.scale.tokenizer).set("images", record.scale.images);
  if (!record.text_checksum.empty()) json.set(TEXT_KEY, record.text_checksum);
  return json.set("machine", record.machine).set("commands", commands), json;
}

Scale::Size size_of(const Json& record) {
  const std::string& name = record.at("size").string();
  for (const Scale::Size size : {Scale::Size::QUICK, Scale::Size::EVENING, Scale::Size::FULL})
    if (name == name_of(size)) return size;
  throw Error("size " + name + ": expected quick, evening or full");
}

Record from_json(const Json& json) {
  Record record;
  record.experiment = json.at("experiment").string();
  record.machine = json.at("machine").string();
  record.scale.size = size_of(json);
  record.scale.text = json.at("text").string();
  record.scale.validation = json.at("validation").string();
  if (const Json* tokenizer = json.find("tokenizer")) record.scale.tokenizer = tokenizer->string();
  record.scale.images = json.at("images").string();
  if (const Json* checksum = json.find(TEXT_KEY)) record.text_checksum = checksum->string();
  for (const Json& entry : json.at("commands").items()) {
    DoneCommand command;
    command.part = entry.at("part").string();
    command.line = entry.at("command").string();
    command.seconds = entry.at("seconds").number();
    command.done = entry.at("done").boolean();
    for (const Json& f : entry.at("weights").items())
      command.weights.push_back({f.at("run").string(), f.at("weights").string()});
    if (const Json* machine = entry.find("machine")) command.machine = machine->string();
    record.commands.push_back(std::move(command));
  }
  return record;
}

}  // namespace

bool Record::done() const {
  return std::all_of(commands.begin(), commands.end(), [](const DoneCommand& command) { return command.done; });
}

std::string name_of(Scale::Size size) { return NAMES_OF_SIZES[static_cast<size_t>(size)]; }

std::string edition_of(const Scale& scale) { return scale.quick() && scale.has_data() ? "data" : name_of(scale.size); }

std::string folder_of(const std::string& experiment, const Scale& scale) {
  return "runs/reproduce-" + edition_of(scale) + "-" + experiment;
}

std::string part_folder(const std::string& folder, const std::string& part) { return folder + "." + part; }

Finder finder_of(const std::string& folder) {
  return [folder](const std::string& file) {
    const size_t slash = file.find('/');
    if (slash == std::string::npos) return folder + "/" + file;  // a log
    return part_folder(folder, file.substr(0, slash)) + file.substr(slash);
  };
}

std::vector<std::string> full_words(const Command& command, const std::string& folder) {
  std::vector<std::string> words;
  for (const std::string& word : command.words) {
    const size_t slash = std::min(word.find('/'), word.size());
    words.push_back(word[0] == '@' ? part_folder(folder, word.substr(1, slash - 1)) + word.substr(slash) : word);
  }
  const std::string own = part_folder(folder, command.part);
  if (command.kind == Command::Kind::WRITES) words.insert(words.end(), {"--out", own});
  if (command.kind == Command::Kind::TRAINS || command.kind == Command::Kind::NAMES)
    words.insert(words.end(), {"--name", own.substr(std::string("runs/").size())});
  return words;
}

std::string command_line(const Command& command, const std::string& folder) {
  std::string line = "./" + command.program;
  for (const std::string& word : full_words(command, folder)) line += " " + as_word(word);
  return line;
}

std::optional<Record> read_record(const std::string& folder) {
  const std::string path = folder + "/record.json";
  if (!std::filesystem::exists(path)) return std::nullopt;
  const Json json = Json::parse(read_regular_file(path), path);
  try {
    return from_json(json);
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
}

void write_record(const std::string& folder, const Record& record) {
  make_folder(folder);
  write_file_atomically(folder + "/record.json", record_text(record));
}

std::string record_text(const Record& record) { return to_json(record).text() + "\n"; }

std::string kept_folder(const std::string& experiment, const std::string& edition) {
  return experiment + (edition == "quick" ? "" : "-" + edition);
}

std::string kept_name(std::string file) {
  std::replace(file.begin(), file.end(), '/', '-');
  return file;
}

namespace {

std::vector<DoneCommand> planned_commands(const Plan& plan, const std::string& folder) {
  std::vector<DoneCommand> commands;
  for (const Command& command : plan.commands)
    commands.push_back({command.part, command_line(command, folder), 0, false, {}});
  return commands;
}

bool has_same_commands(const Record& record, const Plan& plan) {
  const std::vector<DoneCommand> now = planned_commands(plan, folder_of(record.experiment, record.scale));
  return std::equal(now.begin(), now.end(), record.commands.begin(), record.commands.end(),
                    [](const DoneCommand& one, const DoneCommand& other) { return one.line == other.line; });
}

}  // namespace

std::vector<Kept> kept_of(const Experiment& experiment, const std::string& results, std::vector<std::string>* stale) {
  std::vector<Kept> found;
  const auto read = [&](const std::string& folder) {
    std::optional<Record> record = read_record(folder);
    if (record && !has_same_commands(*record, experiment.plan(record->scale))) {
      if (stale) stale->push_back(folder);
      record.reset();
    }
    return record;
  };
  const auto done = [](const std::optional<Record>& record) {
    return record ? std::count_if(record->commands.begin(), record->commands.end(),
                                  [](const DoneCommand& command) { return command.done; })
                  : -1;
  };
  for (const char* edition : EDITIONS) {
    const std::string here = std::string("runs/reproduce-") + edition + "-" + experiment.name;
    const std::string there = results + "/" + kept_folder(experiment.name, edition);
    const std::optional<Record> run = read(here);
    const std::optional<Record> kept = results.empty() ? std::nullopt : read(there);
    if (kept && done(kept) > done(run))
      found.push_back({*kept, [there](const std::string& file) { return there + "/" + kept_name(file); }});
    else if (run)
      found.push_back({*run, finder_of(here)});
  }
  return found;
}

std::vector<Fingerprint> fingerprints_in(const std::string& folder) {
  std::vector<Fingerprint> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, none)) {
    if (entry.path().filename() != CHECKPOINT) continue;
    const std::string run = std::filesystem::relative(entry.path().parent_path(), folder).string();
    found.push_back({run == "." ? "" : run, fingerprint_of(SafetensorsFile(entry.path().string()))});
  }
  std::sort(found.begin(), found.end(), [](const Fingerprint& a, const Fingerprint& b) { return a.run < b.run; });
  return found;
}

std::string checksum_of_text(const Scale& scale) {
  if (scale.text.empty()) return "";
  Checksum sum;
  for (const std::string& path : {scale.text, scale.validation}) {
    if (path.empty()) continue;
    for (const std::string& name : files_of_corpus(path)) {
      const MappedFile file(name);
      const uint64_t size = file.size();
      sum.update(&size, sizeof size);
      sum.update(file.data(), file.size());
    }
  }
  return sum.hex();
}

void check_same_commands(const Record& before, const Plan& plan, const std::string& folder) {
  const std::string anew = "; move this folder and " + folder + ".* away to run it anew";
  if (!has_same_commands(before, plan)) throw Error(folder + ": was run with other commands or data" + anew);
  if (before.text_checksum.empty()) return;
  std::string now;
  try {
    now = checksum_of_text(before.scale);
  } catch (const Error& error) {
    throw Error(folder + ": the text that it was begun with: " + error.what() + anew);
  }
  if (before.text_checksum != now)
    throw Error(folder + ": its text is not the one that it was begun with: were the files changed?" + anew);
}

std::optional<Record> begun_record(const std::string& folder, const Plan& plan) {
  std::optional<Record> record = read_record(folder);
  if (!record) return record;
  const auto is_kept = [&](const DoneCommand& command) {
    return command.done || is_there(part_folder(folder, command.part));
  };
  const std::vector<DoneCommand>& commands = record->commands;
  if (!commands.empty() && std::none_of(commands.begin(), commands.end(), is_kept)) return std::nullopt;
  check_same_commands(*record, plan, folder);
  return record;
}

namespace {

// One experiment while it is run.
class Conducting {
 public:
  Conducting(const Conductor& conductor, const Experiment& experiment, const Scale& scale,
             const std::vector<double>& expected)
      : conductor_(conductor),
        experiment_(experiment),
        folder_(folder_of(experiment.name, scale)),
        expected_(expected),
        machine_(machine_of(conductor.device, conductor.threads)) {
    plan_ = experiment.plan(scale);
    record_.experiment = experiment.name;
    record_.scale = scale;
    record_.text_checksum = checksum_of_text(scale);
    record_.commands = planned_commands(plan_, folder_);
    make_folder(folder_);
    lock_.emplace(folder_);
    remove_leftovers(folder_);
    if (const std::optional<Record> before = begun_record(folder_, plan_)) {
      record_.commands = before->commands;  // what is done stays done
      record_.machine = before->machine;
    }
    const bool begun = std::any_of(record_.commands.begin(), record_.commands.end(),
                                   [](const DoneCommand& command) { return command.done || command.seconds > 0; });
    if (!begun) record_.machine.clear();
    add_machine(record_.machine, machine_);
  }

  int run() {
    const InterruptGuard guard;
    if (record_.done()) {
      if (!conductor_.quiet)
        std::printf("%s: done already, in %s; without this folder and %s.* it starts anew\n", experiment_.name.c_str(),
                    folder_.c_str(), folder_.c_str());
      return 0;
    }
    write();
    for (size_t i = 0; i < plan_.commands.size(); ++i) {
      if (record_.commands[i].done) continue;
      say_left(i);
      if (!run(plan_.commands[i], record_.commands[i])) return INTERRUPTED_STATUS;
    }
    return 0;
  }

 private:
  void say_left(size_t i) const {
    const double left = seconds_left(record_, expected_, i);
    if (left > 0 && !conductor_.quiet)
      std::printf("\n%s: command %zu of %zu; about %s to the end of all\n", experiment_.name.c_str(), i + 1,
                  plan_.commands.size(), duration_text(left).c_str());
  }

  void write() const {
    lock_->check();
    write_record(folder_, record_);
  }

  bool run(const Command& command, DoneCommand& entry) {
    std::vector<std::string> words = full_words(command, folder_);
    const std::string own = part_folder(folder_, command.part);
    const bool goes_on = command.kind == Command::Kind::TRAINS && can_go_on(own);
    if (goes_on) {
      if (is_there(own + "/" + CHECKPOINT)) words.push_back("--resume");
    } else if (command.kind == Command::Kind::TRAINS || command.kind == Command::Kind::NAMES) {
      if (is_there(own)) put_aside(own);  // nothing in it can be gone on with
    }
    if (!conductor_.quiet) std::printf("\n%s: %s\n", experiment_.name.c_str(), entry.line.c_str());
    if (command.kind == Command::Kind::WRITES) words.push_back("--force");  // over what it wrote before
    if (command.has_device)
      words.insert(words.end(), {"--device", conductor_.device, "--threads", std::to_string(conductor_.threads)});
    const std::string log = folder_ + "/" + command.part + ".log";
    if (!goes_on) {  // nothing of an earlier attempt was kept, and numbers that are read in the log are of this one
      std::filesystem::remove(log);
      entry.seconds = 0;
      entry.machine.clear();
    }
    const auto start = std::chrono::steady_clock::now();
    const ChildOutcome outcome = run_child(conductor_.programs + "/" + command.program, words, log, conductor_.quiet);
    if (entry.seconds == 0 || !entry.machine.empty()) add_machine(entry.machine, machine_);  // else not all are known
    entry.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    entry.done = outcome.status == 0 && !interrupted();
    if (entry.done && !is_there(own + "/points.csv")) entry.weights = fingerprints_in(own);
    // A study, or a question to models that were trained for it: no checkpoint, but a line.
    if (entry.done && entry.weights.empty() && outcome.last_line.rfind(WEIGHTS, 0) == 0)
      entry.weights = {{"", outcome.last_line.substr(std::strlen(WEIGHTS))}};
    write();
    if (interrupted() || outcome.status == INTERRUPTED_STATUS) return false;
    if (outcome.status != 0)
      throw Error(text("%s: %s ended with status %d: %s", experiment_.name.c_str(), command.program.c_str(),
                       outcome.status, outcome.last_line.c_str()));
    return true;
  }

  const Conductor& conductor_;
  const Experiment& experiment_;
  std::string folder_;
  const std::vector<double> expected_;
  const std::string machine_;
  std::optional<FolderLock> lock_;  // of the folder, and so of all that its commands write
  Plan plan_;
  Record record_;
};

}  // namespace

int Conductor::run(const Experiment& experiment, const Scale& scale, const std::vector<double>& expected) const {
  return Conducting(*this, experiment, scale, expected).run();
}

double seconds_left(const Record& record, const std::vector<double>& expected, size_t i) {
  if (expected.size() != record.commands.size()) return 0;
  double taken = 0, thought = 0, left = 0;
  for (size_t c = 0; c < expected.size(); ++c) {
    const DoneCommand& command = record.commands[c];
    if (command.done && expected[c] > 0) taken += command.seconds, thought += expected[c];
    if (c >= i && !command.done) left += expected[c];
  }
  return thought > 0 ? left * taken / thought : left;
}

}  // namespace petroglyph
