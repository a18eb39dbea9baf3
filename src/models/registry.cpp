// The models by name.

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "models/model.h"

namespace petroglyph {

namespace {

const std::pair<const char*, std::unique_ptr<Model> (*)(const Json& config, Ops& ops)> MODELS[] = {
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

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& model : MODELS) names.push_back(model.first);
  return names;
}

std::unique_ptr<Model> make_model(const std::string& name, const Json& config, Ops& ops, const std::string& origin) {
  try {
    for (const auto& [known, make] : MODELS)
      if (known == name) return make(config, ops);
    throw Error("unknown model " + name + ", expected one of " + join(model_names(), ", "));
  } catch (const Error& error) {
    throw Error((origin.empty() ? "" : origin + ": ") + error.what());
  }
}

}  // namespace petroglyph
