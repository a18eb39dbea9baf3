#include "train/study.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/log.h"
#include "base/text.h"
#include "train/compare.h"
#include "train/device.h"

namespace petroglyph {

namespace {

bool train_one(RunSettings settings, const std::string& study, StudyRun& run) {
  settings.group = study + "/";
  settings.name = run.name;
  settings.steps = run.steps;
  settings.eval_every = 1 << 30;  // only after the last step
  settings.stop_at = 2;
  settings.schedule = "cosine";
  settings.rate.warmup = run.steps / 10;
  Options options(settings.program, "");
  settings.declare(options);
  Run training(settings, options, run.name);
  training.prepare(run.model, run.config, *run.task);
  if (!training.train()) return false;
  if (settings.ranks->first()) run.loss = read_csv(training.file("log.csv")).column("eval_loss").back();
  run.weights = fingerprint_text(training.model());
  return true;
}

void write_points(const std::string& folder, const std::vector<StudyRun>& runs) {
  std::string csv = "name,model,budget,setting,parameters,tokens,steps,loss,perplexity,weights\n";
  for (const StudyRun& r : runs)
    csv += r.name + "," + r.model + "," + (r.budget > 0 ? number_text(r.budget, 9) : "") + "," +
           number_text(r.setting, 9) + "," + std::to_string(r.parameters) + "," + number_text(r.tokens, 15) + "," +
           std::to_string(r.steps) + "," + number_text(r.loss, 9) + "," + number_text(std::exp(r.loss), 9) + "," +
           r.weights + "\n";
  write_file_atomically(folder + "/points.csv", csv);
}

}  // namespace

bool train_study(const RunSettings& settings, const std::string& name, std::vector<StudyRun>& runs) {
  for (StudyRun& run : runs) {
    if (!train_one(settings, name, run)) return false;
    std::printf("%3td of %zu  %-36s %13s parameters %13s tokens   loss %.4f\n", &run - runs.data() + 1, runs.size(),
                run.name.c_str(), with_commas(run.parameters).c_str(),
                with_commas(static_cast<int64_t>(run.tokens)).c_str(), run.loss);
    std::fflush(stdout);
  }
  if (settings.ranks->first()) write_points("runs/" + name, runs);
  return true;
}

std::string weights_of_study(const std::vector<StudyRun>& runs) {
  std::vector<std::string> rows;
  for (const StudyRun& run : runs) rows.push_back(run.name + " " + run.weights + "\n");
  std::sort(rows.begin(), rows.end());
  Checksum checksum;
  for (const std::string& row : rows) checksum.update(row.data(), row.size());
  return checksum.hex();
}

int64_t ParameterCounter::count(const std::string& model, Json config, const std::string& key, int64_t value) {
  config.set(key, 1);
  const std::string family = model + config.text();
  if (counted_.find(family) == counted_.end()) {
    const auto ops = make_device("cpu", 1);
    const int64_t one = make_model(model, config, *ops)->parameters.size();
    config.set(key, 2);
    counted_[family] = {one, make_model(model, config, *ops)->parameters.size()};
  }
  const auto [one, two] = counted_[family];
  return one + (value - 1) * (two - one);
}

}  // namespace petroglyph
