#include "reproduction/draw.h"

#include <algorithm>
#include <filesystem>

#include "analysis/scaling_report.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "reproduction/page.h"
#include "reproduction/record.h"
#include "reproduction/table.h"
#include "tasks/copying.h"
#include "train/compare.h"

namespace petroglyph {

namespace {

double number_at(const WordTable& table, const std::string& word) {
  if (word.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto number = parse_number(word);
  if (!number) throw Error(table.path + ": \"" + word + "\": expected a number");
  return *number;
}

// As the programs call it.
LengthTable length_table(const WordTable& table, const Command& command) {
  LengthTable lengths;
  const bool copying = command.program == "train_copy";
  lengths.title = copying ? "Copying " + word_behind(command.words, "--length").value_or("32") + " letters"
                          : "Text: " + word_behind(command.words, "--data").value_or("stories");
  lengths.quantity = copying ? "accuracy" : "perplexity of the last token";
  lengths.unit = copying ? "letters" : "tokens";
  lengths.percent = copying;
  lengths.chance = copying ? 1.0 / Copying::LETTERS : 0;
  for (size_t i = 1; i < table.names.size(); ++i)
    lengths.lengths.push_back(static_cast<int>(number_at(table, table.names[i])));
  for (const std::vector<std::string>& row : table.rows) {
    lengths.labels.push_back(row.at(0));
    lengths.values.emplace_back();
    for (size_t i = 1; i < row.size(); ++i) lengths.values.back().push_back(number_at(table, row[i]));
  }
  return lengths;
}

std::vector<StudyRun> study_runs(const WordTable& table) {
  std::vector<StudyRun> runs;
  for (const std::vector<std::string>& row : table.rows) {
    const auto number = [&](const char* name) { return number_at(table, row[table.column(name)]); };
    StudyRun run;
    run.name = row[table.column("name")];
    run.model = row[table.column("model")];
    run.budget = number("budget");
    run.setting = number("setting");
    run.parameters = static_cast<int64_t>(number("parameters"));
    run.tokens = number("tokens");
    run.loss = number("loss");
    runs.push_back(run);
  }
  return runs;
}

// The figures of one command, by the names of their files.
std::vector<ScalingFigure> figures_of(const Command& command, const Finder& find) {
  const auto kept = [&](const char* file) { return std::filesystem::exists(find(command.part + "/" + file)); };
  const auto table = [&](const char* file) { return read_word_table(find(command.part + "/" + file)); };
  if ((command.program == "train_copy" || command.program == "train_text") && kept("lengths.csv"))
    return {{"lengths.svg", lengths_figure(length_table(table("lengths.csv"), command))}};
  if (command.program == "scaling" && kept("points.csv"))
    return scaling_figures(word_behind(command.words, "--what").value_or("compute"), study_runs(table("points.csv")));
  return {};
}

// Whether a page has this picture.
bool is_shown(const Plan& plan, const std::string& file) {
  return std::any_of(plan.pictures.begin(), plan.pictures.end(),
                     [&](const PlanPicture& picture) { return picture.file == file; });
}

}  // namespace

std::vector<std::string> draw_results(const std::string& results) {
  std::vector<std::string> files;
  for (const Experiment& experiment : experiments())
    for (const char* edition : {"quick", "data", "evening", "full"}) {
      const std::string folder = results + "/" + kept_folder(experiment.name, edition);
      const std::optional<Record> record = read_record(folder);
      if (!record) continue;
      const Finder find = [&](const std::string& file) { return folder + "/" + kept_name(file); };
      const Plan plan = experiment.plan(record->scale);
      const std::string run = folder_of(experiment.name, record->scale);
      for (const Command& command : plan.commands)
        for (ScalingFigure& drawn : figures_of(command, find)) {
          const std::string file = command.part + "/" + drawn.file;
          if (!is_shown(plan, file)) continue;  // that of another seed
          files.push_back(find(file));
          drawn.figure.caption(part_folder(run, command.part)).save(files.back());
        }
      for (const Plot& plot : plan.plots) {
        const std::string svg = plot_svg(plot, find);
        if (svg.empty()) continue;
        files.push_back(find(plot.file));
        write_file_atomically(files.back(), svg);
      }
    }
  if (files.empty() && is_there(results + "/RESULTS.md"))
    throw Error(results + ": has no results yet that a figure is drawn of; ./reproduce run makes them");
  if (files.empty()) throw Error(results + ": expected a folder of results, as ./reproduce report --results makes it");
  return files;
}

}  // namespace petroglyph
