#include "exchange/foreign.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "cpu/make_cpu.h"
#include "exchange/llm_c.h"
#include "tokenizers/foreign_files.h"
#include "train/text_checkpoint.h"

namespace petroglyph {

namespace {

Weights weights_of(const std::string& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"})
    if (std::filesystem::exists(folder + "/" + name)) return safetensors_weights(folder + "/" + name);
  for (const char* name : {"pytorch_model.bin.index.json", "pytorch_model.bin"})
    if (std::filesystem::exists(folder + "/" + name)) refuse_torch(folder + "/" + name);
  throw Error(folder + ": has neither model.safetensors nor model.safetensors.index.json");
}

// The reason to use a separate head although the configuration ties it to the embedding: the file has a head tensor
// that differs from the embedding. Otherwise empty.
std::string head_of_its_own(const ForeignModel& foreign) {
  const Weights& weights = foreign.weights;
  if (!foreign.translation.config.find("tied_head") || !weights.has("lm_head.weight")) return "";
  const std::string table = find_tensor(weights, foreign.translation.rules[0].theirs[0]);  // the token embedding
  if (table.empty()) return "";  // load_foreign() reports the missing tensor later
  const Weights::Tensor &embedding = weights.tensors.at(table), &head = weights.tensors.at("lm_head.weight");
  const bool same = embedding.shape == head.shape && embedding.read() == head.read();
  return same ? "" : "lm_head.weight differs from " + table;
}

// {"bos_token_id": 1, "eos_token_id": [2, 3]} from generation_config.json, or from config.json for a key that is
// missing there.
Json begin_and_end(const Json& config, const std::string& folder) {
  const std::string path = folder + "/generation_config.json";
  const Json of_generation = std::filesystem::exists(path) ? Json::parse(read_file(path), path) : Json::object();
  Json texts = Json::object();
  for (const auto& [theirs, ours] : {std::pair("bos_token_id", "begin"), std::pair("eos_token_id", "end")}) {
    const Json* found = of_generation.is(Json::Kind::Object) ? of_generation.find(theirs) : nullptr;
    if (!found) found = config.find(theirs);
    if (!found) continue;
    Json tokens = Json::array();
    const std::vector<Json> one = {*found};
    for (const Json& token : found->is(Json::Kind::Array) ? found->items() : one) {
      if (token.is(Json::Kind::Null)) continue;
      if (!token.is(Json::Kind::Number))
        throw Error(folder + ": " + theirs + ": expected a number or a list of numbers");
      tokens.push(token.integer());
    }
    texts.set(ours, std::move(tokens));
  }
  return texts;
}

ForeignModel open_folder(const std::string& folder) {
  const std::string path = folder + "/config.json";
  if (!std::filesystem::exists(path)) throw Error(folder + ": has no config.json: no model of Hugging Face's");
  ForeignModel foreign;
  Json config = Json::parse(read_file(path), path);
  foreign.translation = translate(config, path);
  foreign.config_origin = path;
  foreign.texts = begin_and_end(config, folder);
  foreign.weights = weights_of(folder);
  if (const std::string why = head_of_its_own(foreign); !why.empty()) {  // the same rule as in transformers
    foreign.translation = translate(config.set("tie_word_embeddings", false), path);
    foreign.translation.notes.push_back(why + ": the head is its own, whatever tie_word_embeddings says");
  }
  try {
    foreign.tokenizer = find_tokenizer(folder);
  } catch (const Unsupported& error) {
    foreign.translation.notes.push_back(std::string("no tokenizer: ") + error.what());
  }
  return foreign;
}

ForeignModel open_llm_c_model(const std::string& path) {
  LlmCFile file = open_llm_c(path);
  ForeignModel foreign;
  foreign.translation = {"transformer", std::move(file.config), {}, {}};
  foreign.weights = std::move(file.weights);
  for (const auto& [name, tensor] : foreign.weights.tensors) foreign.translation.rules.push_back({name, {name}});
  return foreign;
}

// Tensors without a parameter: masks, and the head of a tied model, which head_of_its_own() has compared with the
// embedding.
bool says_nothing(const std::string& name, bool tied) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  return has(".attn.bias") || has(".attn.masked_bias") || (tied && name == "lm_head.weight");
}

void check_all_used(const ForeignModel& foreign) {
  const Weights& weights = foreign.weights;
  std::set<std::string> used;
  for (const Rule& rule : foreign.translation.rules)
    for (const std::string& name : rule.theirs) used.insert(find_tensor(weights, name));
  const bool tied = foreign.translation.config.find("tied_head") != nullptr;
  for (const auto& [name, tensor] : weights.tensors)
    if (!used.count(name) && !says_nothing(name, tied))
      throw Error(weights.origin + ": tensor " + name + " cannot be expressed: our model has no place for it");
}

// Checked before memory is allocated: whether the file has enough numbers for a model of these sizes.
void check_sizes(const Json& config, const Weights& weights) {
  double there = 0;
  for (const auto& [name, tensor] : weights.tensors) {
    double numbers = 1;  // the shape of unused tensors, such as masks, is not checked: it may be anything
    for (const int64_t side : tensor.shape) numbers *= static_cast<double>(side);
    there += numbers;
  }
  const auto size = [&](const char* key) { return config.find(key) ? config.at(key).number() : 0; };
  const double width = size("width"), inner = std::max(size("hidden"), size("expand") * width);
  const double places =
      config.find("position") && config.at("position").string() == "learned" ? size("context") + size("patches") : 0;
  const double wanted = width * (size("vocab") + size("patch_size") + places + size("layers") * inner);
  if (wanted > there)
    throw Error(weights.origin +
                text(": has %.0f numbers, too few for a model of width %.0f with %.0f tokens and %.0f blocks", there,
                     width, size("vocab"), size("layers")));
}

}  // namespace

ForeignModel open_foreign(const std::string& path) {
  if (std::filesystem::is_directory(path)) return open_folder(path);
  if (!std::filesystem::exists(path)) throw Error(path + ": there is no such file or folder");
  if (!std::filesystem::is_regular_file(path))
    throw Error(path + ": expected a file or a folder, found something else");
  const MappedFile file(path);
  if (is_llm_c(file)) return open_llm_c_model(path);
  if (is_torch(file)) refuse_torch(path);
  throw Error(path + ": expected a folder with config.json and model.safetensors, or a model of llm.c");
}

std::vector<std::string> files_of_foreign(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::string> files = files_of_tokenizer(path);
  for (const char* name : {"config.json", "model.safetensors"}) files.push_back(path + "/" + name);
  const std::string index = path + "/model.safetensors.index.json";
  if (!std::filesystem::exists(index)) return files;
  files.push_back(index);
  for (const std::string& part : parts_of_index(index)) files.push_back(part);
  return files;
}

std::unique_ptr<Model> load_foreign(const ForeignModel& foreign, Ops& ops) {
  const Translation& t = foreign.translation;
  const Weights& weights = foreign.weights;
  check_all_used(foreign);
  check_sizes(t.config, weights);
  auto model =
      make_model(t.model, t.config, ops, foreign.config_origin.empty() ? weights.origin : foreign.config_origin);
  if (t.rules.size() != model->parameters.list().size())
    throw Error(weights.origin + ": a parameter of our " + t.model + " would stay empty");
  const Json* heads = t.config.find("heads");
  for (const Rule& rule : t.rules) {
    const Parameter* parameter = model->parameters.find(rule.ours);
    if (!parameter) throw Error(weights.origin + ": our " + t.model + " has no parameter " + rule.ours);
    const std::vector<float> values = take(weights, rule, parameter->shape, heads ? heads->integer() : 1);
    model->parameters.upload(*parameter, {values.begin(), values.end()});
  }
  return model;
}

namespace {

// The tokenizer as JSON, with the model's tokens that begin and end texts.
Json with_texts(const ForeignModel& foreign) {
  Json json = foreign.tokenizer->to_json();
  if (json.at("kind").string() != "bpe") return json;
  for (const auto& [key, list] : foreign.texts.members()) {
    Json known = Json::array();
    for (const Json& token : list.items())
      if (token.integer() >= 0 && token.integer() < foreign.tokenizer->vocab()) known.push(token);
    json.set(key, std::move(known));
  }
  return json;
}

}  // namespace

std::vector<std::string> notes_on_tokenizer(const ForeignModel& foreign) {
  if (!foreign.tokenizer) return {};
  std::vector<std::string> notes;
  const int tokens = foreign.tokenizer->vocab();
  if (const Json* vocab = foreign.translation.config.find("vocab"); vocab && vocab->integer() > tokens)
    notes.push_back("the model has " + counted(vocab->integer(), "token") + ", its tokenizer " + with_commas(tokens) +
                    ": the others are never written");
  for (const auto& [key, list] : foreign.texts.members())
    for (const Json& token : list.items())
      if (token.integer() < 0 || token.integer() >= tokens)
        notes.push_back((key == "end" ? "eos_token_id " : "bos_token_id ") + token.text() +
                        " is none of the tokenizer's tokens: left out");
  return notes;
}

int64_t save_as_checkpoint(const ForeignModel& foreign, const std::string& from, const std::string& path) {
  const Translation& t = foreign.translation;
  RunState state{"convert", t.model, t.config, Json::object().set("from", in_one_line(from)), 0, "", Json::object()};
  if (foreign.tokenizer) {
    state.data.set("tokenizer", with_texts(foreign));
    check_vocabulary(state, foreign.tokenizer->vocab(), from);
  }
  if (t.classes.is(Json::Kind::Array)) state.data.set("classes", t.classes);
  const auto ops = make_cpu(0);
  const auto model = load_foreign(foreign, *ops);
  save_checkpoint(path, state, *model);
  return model->parameters.size();
}

}  // namespace petroglyph
