// The models by name.

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "models/model.h"
#include "models/models.h"

namespace petroglyph {

namespace {

using Maker = std::unique_ptr<Model> (*)(const Json& config, Ops& ops);

const std::vector<std::pair<std::string, Maker>>& registry() {
  static const std::vector<std::pair<std::string, Maker>> models = {
      {"causal_rn", make_causal_rn},
      {"linear_causal_rn", make_linear_causal_rn},
      {"birn_image", make_birn_image},
      {"linear_transformer", make_linear_transformer},
      {"dct_mlp", make_dct_mlp},
      {"deep_sets", make_deep_sets},
      {"mamba", make_mamba},
      {"mlp_lm", make_mlp_lm},
      {"relation_network", make_relation_network},
      {"rnn", make_rnn},
      {"transformer", make_transformer},
      {"regular_gpt", make_regular_gpt},
  };
  return models;
}

}  // namespace

std::unique_ptr<Model> make_model(const std::string& name, const Json& config, Ops& ops) {
  for (const auto& [known, make] : registry())
    if (known == name) return make(config, ops);
  throw Error("unknown model " + name + ", expected one of " + join(model_names(), ", "));
}

std::unique_ptr<Model> make_model(const std::string& name, const Json& config, Ops& ops, const std::string& origin) {
  try {
    return make_model(name, config, ops);
  } catch (const Error& error) {
    throw Error(origin + ": " + error.what());
  }
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : registry()) names.push_back(name);
  return names;
}

}  // namespace petroglyph
