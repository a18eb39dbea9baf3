// What is known of an experiment that was run: which commands are done, what they cost, and the weights that they left.
//
//   runs/reproduce-quick-NAME/record.json, PART.log     quick, evening, full, or data: quick on the user's data
//   runs/reproduce-quick-NAME.PART/                     a run of another program
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reproduction/experiment.h"
#include "reproduction/table.h"

namespace petroglyph {

struct Fingerprint {
  std::string run;  // "causal_rn": the folder in that of the part, "" for the part's own
  std::string weights;
};

struct DoneCommand {
  std::string part, line;  // "./train_copy --length 16 …", as a user would type it
  double seconds = 0;      // of all its parts where it was interrupted
  bool done = false;
  std::vector<Fingerprint> weights;
  std::string machine = {};  // "CPU, 2 threads", of several "A, and B"; empty: older records do not say
};

struct Record {
  std::string experiment, machine;
  Scale scale;
  std::string text_checksum = {};  // of the files of its text; empty: it has none, or it is not known
  std::vector<DoneCommand> commands;

  bool done() const;  // all of the plan's
  bool done(size_t i) const { return i < commands.size() && commands[i].done; }
};

std::string name_of(Scale::Size size);                                        // quick, evening, full
std::string edition_of(const Scale& scale);                                   // quick, data, evening, full
std::string folder_of(const std::string& experiment, const Scale& scale);     // runs/reproduce-quick-NAME
std::string part_folder(const std::string& folder, const std::string& part);  // runs/reproduce-quick-NAME.PART
Finder finder_of(const std::string& folder);

// The words that a command is started with and those that say what to do, without device and threads.
std::vector<std::string> full_words(const Command& command, const std::string& folder);
std::string command_line(const Command& command, const std::string& folder);

std::optional<Record> read_record(const std::string& folder);
// Of all bytes of the files of --data and --val, in 16 digits; empty where there are none.
std::string checksum_of_text(const Scale& scale);
// Throws Error where a run in this folder was begun with other commands than the plan's, or with another text.
void check_same_commands(const Record& before, const Plan& plan, const std::string& folder);
// What a run of this plan goes on with: nothing where none of an earlier run's commands left anything, whatever they were; else
// its record, checked as above.
std::optional<Record> begun_record(const std::string& folder, const Plan& plan);
void write_record(const std::string& folder, const Record& record);
std::string record_text(const Record& record);

// What was run of an experiment, and where its files lie.
struct Kept {
  Record record;
  Finder find;
};
// Whatever was run of an experiment, the largest size first: in runs/, or what a folder of results keeps of it (page.h) where
// more of it is done there. What was run with other commands than the plan's is left out, and named in `stale`.
std::vector<Kept> kept_of(const Experiment& experiment, const std::string& results = "",
                          std::vector<std::string>* stale = nullptr);
// In that folder: "mlp-scaling", "mlp-scaling-evening", and a file in it, "train-compare.csv" of train/compare.csv.
std::string kept_folder(const std::string& experiment, const std::string& edition);
std::string kept_name(std::string file);

// Of every checkpoint model.safetensors in the folder and those in it, by their names.
std::vector<Fingerprint> fingerprints_in(const std::string& folder);

// Runs what is not done yet, and says how long it goes on where it is known how long its commands take (DryRun::seconds_of). The
// exit status of the program: 0, or INTERRUPTED_STATUS. Throws Error where a child fails.
struct Conductor {
  std::string programs;  // the folder of the other programs
  std::string device = "auto";
  int threads = 0;
  bool quiet = false;
  int run(const Experiment& experiment, const Scale& scale, const std::vector<double>& expected = {}) const;
};

// What is left from command i on, in seconds: expected, as much slower or faster as what is done was. 0: not known.
double seconds_left(const Record& record, const std::vector<double>& expected, size_t i);

}  // namespace petroglyph
