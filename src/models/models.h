// One line for each model: what the registry (registry.cpp) builds it with.
#pragma once

#include <memory>

#include "base/json.h"
#include "ops/ops.h"

namespace petroglyph {

class Model;

std::unique_ptr<Model> make_birn_image(const Json& config, Ops& ops);
std::unique_ptr<Model> make_causal_rn(const Json& config, Ops& ops);
std::unique_ptr<Model> make_dct_mlp(const Json& config, Ops& ops);
std::unique_ptr<Model> make_deep_sets(const Json& config, Ops& ops);
std::unique_ptr<Model> make_linear_causal_rn(const Json& config, Ops& ops);
std::unique_ptr<Model> make_linear_transformer(const Json& config, Ops& ops);
std::unique_ptr<Model> make_mamba(const Json& config, Ops& ops);
std::unique_ptr<Model> make_mlp_lm(const Json& config, Ops& ops);
std::unique_ptr<Model> make_regular_gpt(const Json& config, Ops& ops);
std::unique_ptr<Model> make_relation_network(const Json& config, Ops& ops);
std::unique_ptr<Model> make_rnn(const Json& config, Ops& ops);
std::unique_ptr<Model> make_transformer(const Json& config, Ops& ops);

}  // namespace petroglyph
