#include "train/model_options.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "math/numerics.h"

namespace petroglyph {

namespace {

using Models = std::vector<std::string>;
using Member =
    std::variant<int ModelOptions::*, double ModelOptions::*, bool ModelOptions::*, std::string ModelOptions::*>;

bool contains(const Models& models, const std::string& model) {
  return std::find(models.begin(), models.end(), model) != models.end();
}
bool any_of(const Models& models, const Models& wanted) {
  return std::any_of(models.begin(), models.end(), [&](const std::string& model) { return contains(wanted, model); });
}

const Models RELATIONS = {"causal_rn", "linear_causal_rn", "birn_image"}, SETS = {"relation_network", "deep_sets"},
             TRANSFORMERS = {"transformer", "linear_transformer"},
             CAUSAL = {"causal_rn", "linear_causal_rn", "transformer", "linear_transformer"};

Models operator+(Models models, const Models& more) {
  models.insert(models.end(), more.begin(), more.end());
  return models;
}

const Models ALL = RELATIONS + SETS + TRANSFORMERS + Models{"mamba", "mlp_lm", "dct_mlp", "rnn", "regular_gpt"};

enum class Group {
  SIZES,
  COMMON,
  TEXT,  // of the program that trains on text
  MORE,  // of programs that train regular_gpt
};

struct Row {
  const char *option, *key;  // the key of the configuration
  Member member;
  Models models;  // that read it
  std::string help;
  double low = 0, high = 0;               // of a number
  std::vector<std::string> choices = {};  // of a word
  Group group = Group::COMMON;
  bool if_changed = false;  // a configuration has the key only if the value is not the default
};

// Every option, in the order in which a configuration has them. An option that none of a
// program's models reads is not declared there; one that the chosen model does not read is refused.
const std::vector<Row>& rows() {
  using O = ModelOptions;
  constexpr Group SIZES = Group::SIZES, COMMON = Group::COMMON, TEXT = Group::TEXT, MORE = Group::MORE;
  constexpr bool IF_CHANGED = true;
  // A row takes a few lines here, not one line a field.
  // clang-format off
  static const std::vector<Row> all = {
      {"embedding", "embedding", &O::embedding, {"mlp_lm"},
       "mlp_lm: channels of a token's embedding and of the residual stream", 1, 1 << 14, {}, SIZES},
      {"width", "width", &O::width, ALL,
       "channels of the residual stream, the paper's d_e; mlp_lm: channels inside a block, the paper's w",
       1, 1 << 16, {}, SIZES},
      {"layers", "layers", &O::layers, RELATIONS + TRANSFORMERS + Models{"mamba", "regular_gpt", "mlp_lm", "dct_mlp"},
       "blocks", 1, 1 << 10, {}, SIZES},
      {"hidden", "hidden", &O::hidden, RELATIONS + SETS + TRANSFORMERS + Models{"rnn", "regular_gpt", "dct_mlp"},
       "relation networks: channels between positions, the paper's d_h; rnn: channels of its state; 0 for the width. "
       "models with an MLP: its channels, 0 for 4 widths", 0, 1 << 20, {}, SIZES},
      {"heads", "heads", &O::heads, RELATIONS + TRANSFORMERS + Models{"regular_gpt", "dct_mlp"},
       "relation networks: groups of hidden channels, each with its own inner norm; models with attention: its heads; "
       "dct_mlp: each has its own window", 1, 1 << 16, {}, SIZES},
      {"chunk", "chunk", &O::chunk, {"regular_gpt"},
       "regular_gpt: C, the positions that each position attends to", 2, 1 << 16, {}, MORE},
      {"thickness", "thickness", &O::thickness, {"regular_gpt"},
       "regular_gpt: K, the blocks with weights of their own, applied once for each power of C up to the length; "
       "0: half of --layers", 0, 1 << 10, {}, MORE},
      {"activation", "activation", &O::activation, {"causal_rn", "relation_network", "deep_sets"},
       "relation networks: applied to each pair; deep_sets: relu, its default, or gelu",
       0, 0, {"exp", "relu", "elu", "gelu"}},
      {"pre-norm", "pre_activation_norm", &O::pre_norm, RELATIONS,
       "normalization before the activation: exact, the default, of each pair; approximate, the default of birn_image "
       "and linear_causal_rn, and none take linear time; linear_causal_rn has only these two",
       0, 0, {"exact", "approximate", "none"}},
      {"post-norm", "post_reduction_norm", &O::post_norm, RELATIONS,
       "relation networks: normalization after the sum over the pairs"},
      {"position", "position", &O::position, TRANSFORMERS,
       "transformers: position scheme; linear_transformer has the first three, images only the first",
       0, 0, {"learned", "sinusoidal", "none", "alibi", "t5", "kerple", "xl"}},
      {"norm", "norm", &O::norm, TRANSFORMERS, "transformers: layer normalization without or with gain and shift",
       0, 0, {"plain", "affine"}},
      {"qkv-bias", "qkv_bias", &O::qkv_bias, TRANSFORMERS, "transformers: biases of queries, keys and values"},
      {"out-bias", "out_bias", &O::out_bias, TRANSFORMERS, "transformers: bias of the attention's output"},
      {"gelu", "gelu", &O::gelu, TRANSFORMERS, "transformers: exact, or GPT-2's approximation", 0, 0, {"erf", "tanh"}},
      {"readout", "readout", &O::readout, TRANSFORMERS,
       "transformers: all predicts the token after each position; last, only the token after the window, and the "
       "attention has no mask", 0, 0, {"all", "last"}, TEXT},
      {"feature-map", "feature_map", &O::feature_map, {"linear_transformer"},
       "linear_transformer: elu(x) + 1 with normalized weights, or x without", 0, 0, {"elu1", "identity"}},
      {"cell", "cell", &O::cell, {"rnn"}, "rnn: its cell", 0, 0, {"lstm", "elman"}},
      {"state", "state", &O::state, {"mamba"}, "mamba: state size of a channel", 1, 1 << 10, {}, MORE},
      {"conv", "conv", &O::conv, {"mamba"}, "mamba: taps of its convolution", 1, 1 << 10, {}, MORE},
      {"expand", "expand", &O::expand, {"mamba"}, "mamba: channels within a block, in widths", 1, 64, {}, MORE},
      {"embedding-deviation", "embedding_deviation", &O::embedding_deviation, TRANSFORMERS + Models{"regular_gpt"},
       "transformers, regular_gpt: standard deviation of the initial embeddings of tokens and positions; GPT-2: 0.02",
       0, 100, {}, COMMON, IF_CHANGED},
      {"tied-head", "tied_head", &O::tied_head, TRANSFORMERS + Models{"mamba", "regular_gpt"},
       "transformers, regular_gpt, mamba: the readout is the embedding; that of regular_gpt then has no bias",
       0, 0, {}, MORE, IF_CHANGED},
      {"norm-position", "norm_position", &O::norm_position, {"transformer"},
       "transformer: the norm is before or after a branch", 0, 0, {"pre", "post"}, MORE, IF_CHANGED},
      {"mlp-activation", "mlp_activation", &O::mlp_activation, {"transformer"},
       "transformer: activation of the MLP", 0, 0, {"gelu", "relu"}, MORE, IF_CHANGED},
  };
  // clang-format on
  return all;
}

// The key in this model's configuration.
std::string key_of(const Row& row, const std::string& model) {
  return model == "mlp_lm" && row.key == std::string("layers") ? "blocks" : row.key;
}

}  // namespace

void ModelOptions::declare(Options& options, const Models& models) {
  options.section("Model");
  options.add("model", &model, models, "the model to train");
  const bool of_text = contains(models, "mlp_lm"), more = contains(models, "regular_gpt");
  for (const Row& row : rows()) {
    if (!any_of(models, row.models) || (row.group == Group::TEXT && !of_text) || (row.group == Group::MORE && !more))
      continue;
    std::visit(
        [&](const auto member) {
          auto* const value = &(this->*member);
          using Value = std::remove_reference_t<decltype(*value)>;
          if constexpr (std::is_same_v<Value, bool>)
            options.add(row.option, value, row.help);
          else if constexpr (std::is_same_v<Value, std::string>)
            options.add(row.option, value, row.choices, row.help);
          else
            options.add(row.option, value, row.low, row.high, row.help);
        },
        row.member);
    options.only_with(row.option, "model", row.models);
  }
  options.only_with("gelu", "mlp-activation", {"gelu"});
  options.only_with("layers", "thickness", {std::to_string(thickness)});
}

void ModelOptions::refuse_beside_init(Options& options) {
  options.only_with("model", "init", {""});
  for (const Row& row : rows()) options.only_with(row.option, "init", {""});
}

void ModelOptions::set_defaults() {
  if (hidden == 0) hidden = has_mlp() ? 4 * width : width;
  if (pre_norm.empty()) pre_norm = model == "linear_causal_rn" || model == "birn_image" ? "approximate" : "exact";
}

// The rows of a group that the model reads.
void ModelOptions::write(Json& json, bool sizes) const {
  static const ModelOptions DEFAULTS;
  for (const Row& row : rows()) {
    const std::string key = key_of(row, model);
    if ((row.group == Group::SIZES) != sizes || !contains(row.models, model)) continue;
    if ((model == "rnn" && key == "width") || (model == "regular_gpt" && key == "layers")) continue;
    const bool changed = std::visit([&](auto member) { return this->*member != DEFAULTS.*member; }, row.member);
    if (row.if_changed && !changed) continue;
    std::visit([&](auto member) { json.set(key, this->*member); }, row.member);
  }
}

Json ModelOptions::config(int vocab, int context) const {
  const bool any_length = model == "rnn" || model == "regular_gpt";
  Json json = Json::object();
  json.set("vocab", vocab);
  any_length ? json.set("classes", vocab) : json.set("context", context);
  write(json, true);
  if (contains(CAUSAL, model)) json.set("causal", readout == "all");
  write(json, false);
  if (model == "linear_transformer") json.set("normalized", feature_map == "elu1");
  if (model == "mamba") json.set("dt_rank", (width + 15) / 16);
  if (model == "dct_mlp") write_windows(json, context);
  // The form of regular_gpt that answers at every position. Its only positions are the C relative ones: it reads any
  // length.
  if (model == "regular_gpt") {
    json.set("thickness", thickness > 0 ? thickness : std::max(1, layers / 2)).set("norm", "affine");
    json.set("form", "dilated");
    if (tied_head) json.set("head_bias", false);
  }
  if (any_length) json.set("readout", "all");
  return json;
}

Json ModelOptions::image_config(int patches, int patch_size, int classes) const {
  Json json = Json::object();
  json.set("patches", patches).set("patch_size", patch_size).set("classes", classes);
  write(json, true);
  if (is_transformer()) json.set("causal", false);
  write(json, false);
  if (is_transformer()) json.set("readout", "last");
  if (model == "linear_transformer") json.set("normalized", feature_map == "elu1");
  if (model == "relation_network") json.set("form", activation == "exp" ? "linear" : "quadratic");
  return json;
}

// Windows from 4, or from the number of frequencies if that is more, up to the context, in equal ratios.
// "varying t from 4 to 2048 (the maximal sequence length)" (mlps_for_nlp, appendix C.3)
void ModelOptions::write_windows(Json& json, int context) const {
  const int least = std::max(frequencies, 4), most = std::max(least, context);
  const float ratio = static_cast<float>(most) / static_cast<float>(least);
  Json windows = Json::array(), of_each = Json::array();
  for (int h = 0; h < heads; ++h) {
    const float part = heads > 1 ? static_cast<float>(h) / static_cast<float>(heads - 1) : 1.0f;
    const auto window = static_cast<int>(static_cast<float>(least) * numerics::exp(part * numerics::log(ratio)) + 0.5f);
    windows.push(std::clamp(window, least, most));
    of_each.push(frequencies);
  }
  json.set("frequencies", of_each).set("windows", windows);
}

}  // namespace petroglyph
