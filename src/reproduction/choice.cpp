#include "reproduction/choice.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "reproduction/record.h"

namespace petroglyph {

namespace {

bool means(const std::string& word, const Experiment& experiment) {
  return word == "all" || experiment.name.rfind(word, 0) == 0;
}

std::vector<std::string> names_of_experiments() {
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments()) names.push_back(experiment.name);
  return names;
}

// What a plan wants.
const std::string& data_of(const Experiment& experiment, Scale::Size size) {
  static const std::string nothing;
  return size == Scale::Size::FULL ? experiment.data : size == Scale::Size::EVENING ? experiment.evening_data : nothing;
}

const std::string& cost_of(const Experiment& experiment, Scale::Size size) {
  return size == Scale::Size::QUICK     ? experiment.quick
         : size == Scale::Size::EVENING ? experiment.evening
                                        : experiment.full;
}

std::string cost_and_data(const Experiment& experiment, Scale::Size size) {
  const std::string& data = data_of(experiment, size);
  return cost_of(experiment, size) + (data.empty() ? "" : ", wants " + data);
}

}  // namespace

std::vector<const Experiment*> chosen_experiments(const std::vector<std::string>& words) {
  const auto& all = experiments();
  for (const std::string& word : words) {
    if (std::any_of(all.begin(), all.end(), [&](const Experiment& e) { return means(word, e); })) continue;
    const std::string near = nearest_word(word, names_of_experiments());
    throw UsageError("unknown experiment " + word +
                     (near.empty() ? "; ./reproduce list shows all" : " (did you mean " + near + "?)"));
  }
  std::vector<const Experiment*> found;
  for (const Experiment& experiment : all)
    if (std::any_of(words.begin(), words.end(), [&](const std::string& word) { return means(word, experiment); }))
      found.push_back(&experiment);
  return found;
}

bool has_plan(const Experiment& experiment, Scale::Size size) { return !cost_of(experiment, size).empty(); }

std::string lacking(const Experiment& experiment, const Scale& scale) {
  if (scale.evening() && !has_plan(experiment, scale.size)) return "has none, expected --quick or --full";
  const std::string& data = data_of(experiment, scale.size);
  if (!data.empty() && !scale.has_data()) return "expected " + data;
  return "";
}

void list_experiment(const Experiment& experiment) {
  std::printf("%s: %s\n  %s, %s\n  %s\n", experiment.name.c_str(), experiment.title.c_str(), experiment.paper.c_str(),
              experiment.where.c_str(), experiment.shows.c_str());
  for (const Scale::Size size : {Scale::Size::QUICK, Scale::Size::EVENING, Scale::Size::FULL}) {
    if (!has_plan(experiment, size)) continue;
    Scale scale;
    scale.size = size;
    if (!data_of(experiment, size).empty()) scale.text = scale.validation = scale.images = "FILE";
    const Plan plan = experiment.plan(scale_for(experiment, scale));
    std::printf("\n  --%s: %s\n  %s\n", name_of(size).c_str(), cost_of(experiment, size).c_str(), plan.size.c_str());
    for (const Command& command : plan.commands)
      std::printf("    %s\n", command_line(command, folder_of(experiment.name, scale)).c_str());
  }
}

void list_experiments() {
  std::string paper;
  for (const Experiment& experiment : experiments()) {
    if (experiment.paper != paper) std::printf("%s%s\n", paper.empty() ? "" : "\n", experiment.paper.c_str());
    paper = experiment.paper;
    std::string done;
    for (const Kept& kept : kept_of(experiment))
      done += std::string(done.empty() ? "  [" : ", ") + edition_of(kept.record.scale) +
              (kept.record.done() ? " done" : " begun");
    std::printf("  %-21s %s, %s%s\n", experiment.name.c_str(), experiment.where.c_str(), experiment.title.c_str(),
                done.empty() ? "" : (done + "]").c_str());
    std::printf("  %-21s quick: %s;%s full: %s\n", "", experiment.quick.c_str(),
                experiment.evening.empty()
                    ? ""
                    : (" evening: " + cost_and_data(experiment, Scale::Size::EVENING) + ";").c_str(),
                experiment.full.empty() ? "as quick" : cost_and_data(experiment, Scale::Size::FULL).c_str());
  }
}

Scale scale_for(const Experiment& experiment, const Scale& wanted) {
  Scale scale = wanted;
  if (experiment.data.find("--data") == std::string::npos) scale.text = scale.validation = scale.tokenizer = "";
  if (experiment.data.find("--cifar") == std::string::npos) scale.images = "";
  return scale;
}

}  // namespace petroglyph
