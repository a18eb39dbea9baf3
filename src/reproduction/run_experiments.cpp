#include "reproduction/run_experiments.h"

#include <cstdio>
#include <optional>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/program.h"
#include "base/text.h"
#include "reproduction/choice.h"
#include "reproduction/dry_run.h"
#include "reproduction/page.h"
#include "reproduction/record.h"

namespace petroglyph {
namespace {

// Before what takes hours: whether the models are the paper's, and how long each command takes. Less than a hundredth of the run.
std::vector<double> look_ahead(const Experiment& experiment, const Scale& scale, const Conductor& conductor,
                               const Record* begun) {
  const DryRun dry{conductor.programs, conductor.device, conductor.threads};
  if (scale.full()) dry.run(experiment, scale);
  if (interrupted()) return {};
  if (!conductor.quiet) std::printf("%s: a few steps, to tell how long it takes\n", experiment.name.c_str());
  std::fflush(stdout);
  const std::vector<double> seconds = dry.seconds_of(experiment, scale, begun);
  if (interrupted()) return {};
  const Plan plan = experiment.plan(scale);
  double all = 0;
  std::string unknown;
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (begun && begun->done(i)) continue;
    all += seconds[i];
    if (seconds[i] == 0 && plan.commands[i].kind == Command::Kind::TRAINS) unknown += " " + plan.commands[i].part;
  }
  if (!conductor.quiet)
    std::printf("%s --%s: about %s of training on this machine, without evaluations%s\n", experiment.name.c_str(),
                name_of(scale.size).c_str(), duration_text(all).c_str(),
                unknown.empty() ? "" : (", and without" + unknown).c_str());
  return seconds;
}

// One experiment and the table of what it gave; the exit status, not 0 where it was interrupted.
int run_one(const Experiment& experiment, const Scale& scale, const Conductor& conductor) {
  const std::string folder = folder_of(experiment.name, scale);
  const std::optional<Record> begun = begun_record(folder, experiment.plan(scale));
  const bool look = !scale.quick() && !(begun && begun->done());
  const std::vector<double> seconds =
      look ? look_ahead(experiment, scale, conductor, begun ? &*begun : nullptr) : std::vector<double>();
  if (interrupted()) return INTERRUPTED_STATUS;
  const int status = conductor.run(experiment, scale, seconds);
  if (status != 0) return status;
  const Kept kept{*read_record(folder), finder_of(folder)};
  std::printf("\n%s: %s\n%s", experiment.name.c_str(), experiment.title.c_str(),
              plain_rows(section_of(experiment, &kept)).c_str());
  return 0;
}

// Of an experiment that is asked for by itself.
void refuse_unused(const Experiment& experiment, const Scale& given, const Scale& used) {
  for (const auto& [option, before, now] :
       {std::tuple("--data", given.text, used.text), {"--cifar", given.images, used.images}})
    if (before != now) throw UsageError(std::string(option) + " " + before + ": does nothing in " + experiment.name);
}

// All its commands, made short.
int try_one(const Experiment& experiment, const Scale& scale, const Conductor& conductor) {
  DryRun{conductor.programs, conductor.device, conductor.threads}.run(experiment, scale);
  return interrupted() ? INTERRUPTED_STATUS : 0;
}

}  // namespace

int run_experiments(const RunOptions& given, const std::string& programs) {
  const std::vector<const Experiment*> wanted = chosen_experiments(given.names);
  given.check_files();
  const Conductor conductor{programs, given.device, given.threads, given.quiet};
  std::vector<std::string> missing;
  std::string failed;
  int begun = 0;
  for (const Experiment* experiment : wanted) {
    const Scale scale = scale_for(*experiment, given.scale);
    if (wanted.size() == 1) refuse_unused(*experiment, given.scale, scale);
    if (const std::string lack = lacking(*experiment, scale); !lack.empty()) {
      if (wanted.size() == 1) throw UsageError(experiment->name + " --" + name_of(scale.size) + ": " + lack);
      if (has_plan(*experiment, scale.size)) missing.push_back(experiment->name + ": " + lack);
      continue;
    }
    ++begun;
    try {
      if (const int status =
              given.dry ? try_one(*experiment, scale, conductor) : run_one(*experiment, scale, conductor)) {
        if (!given.dry)
          std::printf("interrupted in %s; go on with: %s\n", experiment->name.c_str(), given.again().c_str());
        return status;
      }
    } catch (const Error& error) {
      if (wanted.size() == 1) throw;
      std::printf("\n%s\n", error.what());
      failed += (failed.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  if (begun == 0)
    throw UsageError("none of these " + std::to_string(wanted.size()) + " experiments can be run" +
                     (missing.empty() ? ": none has a plan of this size" : ": " + join(missing, "; ")));
  if (!missing.empty()) std::printf("\nnot run:\n  %s\n", join(missing, "\n  ").c_str());
  if (!failed.empty()) throw Error(failed);
  return 0;
}

}  // namespace petroglyph
