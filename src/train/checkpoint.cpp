#include "train/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/program.h"
#include "base/text.h"
#include "train/device.h"
#include "train/run_folder.h"

namespace petroglyph {

namespace {

constexpr const char* FIRST_MOMENT = "adamw.m/";
constexpr const char* SECOND_MOMENT = "adamw.v/";

constexpr std::pair<const char*, std::string RunState::*> OPTIONAL[] = {{"log", &RunState::log},
                                                                        {"checksum_of_samples", &RunState::samples},
                                                                        {"evaluated_loss", &RunState::evaluated_loss},
                                                                        {"begun_on", &RunState::begun_on}};

// Throws unless the file has a tensor of that name and of the parameter's shape.
void check(const SafetensorsFile& file, const std::string& name, const Parameter& parameter) {
  if (!file.find(name)) throw Error(file.path() + ": has no tensor " + name + ", which this model wants");
  const Shape& shape = file.entry(name).shape;
  if (shape != parameter.shape)
    throw Error(file.path() + ": tensor " + name + " has shape " + shape_text(shape) + ", this model wants " +
                shape_text(parameter.shape));
}

// Refuses NaN here: a ReLU makes 0 of it, and no later loss would show it. first: index of the first value in its
// tensor
void check_numbers(const SafetensorsFile& file, const std::string& name, int64_t first,
                   const std::vector<float>& values) {
  const auto none = std::find_if(values.begin(), values.end(), [](float x) { return std::isnan(x); });
  if (none != values.end())
    throw Error(file.path() + ": tensor " + name + " has a nan at position " +
                with_commas(first + (none - values.begin())) + ", expected numbers");
}

// The tensor from the file to the device, a part at a time: it is in memory once.
void load(const SafetensorsFile& file, const std::string& name, int64_t size, Ops& ops, real* to) {
  constexpr int64_t PART = 1 << 16;
  for (int64_t first = 0; first < size; first += PART) {
    std::vector<float> values(static_cast<size_t>(std::min(PART, size - first)));
    file.read_as_float(name, first, static_cast<int64_t>(values.size()), values.data());
    check_numbers(file, name, first, values);
    const std::vector<real> numbers(values.begin(), values.end());
    ops.upload(to + first, numbers.data(), numbers.size() * sizeof(real));
  }
}

}  // namespace

std::string checkpoint_path(const std::string& file_or_folder) {
  if (!std::filesystem::is_directory(file_or_folder)) return file_or_folder;
  const std::string path = file_or_folder + "/model.safetensors";
  if (is_there(path)) return path;
  const std::vector<std::string> runs = runs_in(file_or_folder);
  if (runs.size() == 1)
    throw Error(file_or_folder + ": the run in this folder is " + file_or_folder + "/" + runs[0] + ": name that");
  if (!runs.empty())
    throw Error(file_or_folder + ": several runs are in this folder (" + join(runs, ", ") + "): name one of them");
  return path;
}

namespace {

void add_metadata(SafetensorsWriter& writer, const RunState& state) {
  writer.metadata("format", "petroglyph");
  writer.metadata("version", "1");
  writer.metadata("program", state.program);
  writer.metadata("model", state.model);
  writer.metadata("config", state.config.text());
  writer.metadata("options", state.options.text());
  if (!state.data.is(Json::Kind::Null)) writer.metadata("data", state.data.text());
  writer.metadata("step", std::to_string(state.step));
  for (const auto& [key, member] : OPTIONAL)
    if (!(state.*member).empty()) writer.metadata(key, state.*member);
}

// A tensor for each parameter; `kept` holds them, for the writer does not copy.
void add_tensors(SafetensorsWriter& writer, std::deque<std::vector<float>>& kept, const Parameters& parameters,
                 const std::string& prefix, const Tensor& all) {
  const std::vector<real> values = all.download();
  for (const Parameter& p : parameters.list()) {
    kept.emplace_back(values.begin() + p.begin, values.begin() + p.begin + p.size());
    writer.add(prefix + p.name, p.shape, kept.back().data());
  }
}

}  // namespace

void save_checkpoint(const std::string& path, const RunState& state, Model& model, Optimizer* optimizer,
                     const std::string& previous) {
  SafetensorsWriter writer;
  std::deque<std::vector<float>> kept;
  add_metadata(writer, state);
  add_tensors(writer, kept, model.parameters, "", model.parameters.values());
  if (optimizer) {
    add_tensors(writer, kept, model.parameters, FIRST_MOMENT, optimizer->m());
    add_tensors(writer, kept, model.parameters, SECOND_MOMENT, optimizer->v());
  }
  writer.save(path, previous);
}

bool is_checkpoint(const SafetensorsFile& file) {
  const auto format = file.metadata().find("format");
  return format != file.metadata().end() && format->second == "petroglyph";
}

RunState read_run_state(const SafetensorsFile& file, const std::string& program) {
  const auto& metadata = file.metadata();
  if (!is_checkpoint(file))
    throw Error(file.path() + ": a safetensors file, but no checkpoint of ours; " + called("convert") +
                " makes one of a model of Hugging Face's");
  RunState state;
  state.program = file.metadata("program");
  if (!program.empty() && state.program != program)
    throw Error(file.path() + ": a checkpoint of " + state.program + ", not of " + program);
  state.model = file.metadata("model");
  state.config = Json::parse(file.metadata("config"), file.path());
  state.options = Json::parse(file.metadata("options"), file.path());
  if (metadata.find("data") != metadata.end()) state.data = Json::parse(file.metadata("data"), file.path());
  for (const auto& [key, value] :
       {std::pair("config", &state.config), std::pair("options", &state.options), std::pair("data", &state.data)})
    if (!value->is(Json::Kind::Object) && !(value == &state.data && value->is(Json::Kind::Null)))
      throw Error(file.path() + ": its " + key + " is " + name_of(value->kind()) + ", expected an object");
  const auto step = parse_integer(file.metadata("step"));
  if (!step || *step < 0)
    throw Error(file.path() + ": step \"" + file.metadata("step") + "\" is not a count of updates");
  state.step = *step;
  for (const auto& [key, member] : OPTIONAL)
    if (metadata.find(key) != metadata.end()) state.*member = file.metadata(key);
  return state;
}

std::string mark_of_here() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  // Nobody else can know the number of the machine. Where there is none, its name must do.
  const std::string id = is_there("/etc/machine-id") ? read_file("/etc/machine-id") : "";
  const std::string all = std::to_string(geteuid()) + " " + host + " " + id;
  Checksum sum;
  sum.update(all.data(), all.size());
  return sum.hex();
}

void refuse_foreign_paths(const SafetensorsFile& file, const RunState& state, const std::vector<std::string>& options) {
  struct stat status = {};
  const bool own = stat(file.path().c_str(), &status) == 0 && status.st_uid == geteuid();
  if (own && state.begun_on == mark_of_here()) return;
  for (const std::string& option : options) {
    const Json* const path = state.options.find(option);
    if (path && path->is(Json::Kind::String) && !path->string().empty())
      throw Error(file.path() + ": names the file " + path->string() + ", but was not trained by this user on this " +
                  "machine: expected the file on the command line, as in --" + option + " FILE");
  }
}

void load_checkpoint(const SafetensorsFile& file, Model& model, Optimizer& optimizer, Ops& ops) {
  const auto each_tensor = [&](auto use) {
    for (const Parameter& p : model.parameters.list()) {
      use(p.name, p, p.value);
      use(FIRST_MOMENT + p.name, p, optimizer.m().data() + p.begin);
      use(SECOND_MOMENT + p.name, p, optimizer.v().data() + p.begin);
    }
  };
  each_tensor([&](const std::string& name, const Parameter& p, real*) { check(file, name, p); });
  each_tensor([&](const std::string& name, const Parameter& p, real* to) { load(file, name, p.size(), ops, to); });
}

std::unique_ptr<Model> load_model(const SafetensorsFile& file, const RunState& state, Ops& ops) {
  auto model = make_model(state.model, state.config, ops, file.path());
  for (const Parameter& p : model->parameters.list()) check(file, p.name, p);
  for (const Parameter& p : model->parameters.list()) load(file, p.name, p.size(), ops, p.value);
  return model;
}

std::string fingerprint_of(const SafetensorsFile& file) {
  const auto ops = make_device("cpu", 1);
  const auto model = load_model(file, read_run_state(file), *ops);
  return text("%016llx", static_cast<unsigned long long>(model->parameters.fingerprint()));
}

bool load_parameters(const SafetensorsFile& file, Model& model, Ops& ops, bool new_head) {
  const auto is_new = [&](const Parameter& p) {
    const SafetensorsFile::Entry* found = file.find(p.name);
    return new_head && p.name.rfind("head.", 0) == 0 && found && !found->shape.empty() && found->shape[0] != p.shape[0];
  };
  const auto& list = model.parameters.list();
  for (const Parameter& p : list)
    if (!is_new(p)) check(file, p.name, p);
  for (const Parameter& p : list)
    if (!is_new(p)) load(file, p.name, p.size(), ops, p.value);
  return std::any_of(list.begin(), list.end(), is_new);
}

}  // namespace petroglyph
