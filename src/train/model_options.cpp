#include "train/model_options.h"

#include <algorithm>
#include <set>
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

// What an option means to the models that read it.
struct Meaning {
  Models models;
  std::string words;
};

enum class Group {
  SIZES,
  COMMON,
  TEXT,    // options of programs that train on text
  OTHERS,  // of models of other projects; --init sets them
};

// Whether a model's configuration has the key.
enum class Written {
  ALWAYS,
  IF_CHANGED,  // from the default, which is the configuration's too
  ELSEWHERE,   // config() writes it
};

struct Row {
  const char *option, *key;  // the key of the configuration
  Member member;
  std::vector<Meaning> meanings;
  double low = 0, high = 0;               // of a number
  std::vector<std::string> choices = {};  // of a word
  Group group = Group::COMMON;
  Written written = Written::ALWAYS;

  Models readers() const {
    Models all;
    for (const Meaning& meaning : meanings) all = all + meaning.models;
    return all;
  }
};

// Every option except dct_mlp's two lists, in the order in which a configuration has them. An option that none of a
// program's models reads is not declared there; one that the chosen model does not read is refused.
const std::vector<Row>& rows() {
  using O = ModelOptions;
  constexpr Group SIZES = Group::SIZES, COMMON = Group::COMMON, TEXT = Group::TEXT, OTHERS = Group::OTHERS;
  constexpr Written IF_CHANGED = Written::IF_CHANGED, ELSEWHERE = Written::ELSEWHERE;
  // A row takes a few lines here, not one line a field.
  // clang-format off
  static const std::vector<Row> all = {
      {"embedding", "embedding", &O::embedding,
       {{{"mlp_lm"}, "mlp_lm: channels of a token's embedding and of the residual stream"}}, 1, 1 << 14, {}, SIZES},
      {"width", "width", &O::width,
       {{ALL, "channels of the residual stream, the paper's d_e"},
        {{"mlp_lm"}, "mlp_lm: channels inside a block, the paper's w"}}, 1, 1 << 16, {}, SIZES},
      {"layers", "layers", &O::layers,
       {{RELATIONS + TRANSFORMERS + Models{"mamba", "regular_gpt", "mlp_lm", "dct_mlp"}, "blocks"}},
       1, 1 << 10, {}, SIZES},
      {"hidden", "hidden", &O::hidden,
       {{RELATIONS + SETS, "relation networks: channels between positions, the paper's d_h, 0 for the width"},
        {{"rnn"}, "rnn: channels of its state, 0 for the width"},
        {TRANSFORMERS + Models{"regular_gpt", "dct_mlp"},
         "models with an MLP: its channels, 0 for 4 widths"}}, 0, 1 << 20, {}, SIZES},
      {"heads", "heads", &O::heads,
       {{RELATIONS, "relation networks: groups of hidden channels, each with its own inner norm"},
        {TRANSFORMERS + Models{"regular_gpt"}, "models with attention: its heads"},
        {{"dct_mlp"}, "dct_mlp: heads, each with its own window"}}, 1, 1 << 16, {}, SIZES},
      {"chunk", "chunk", &O::chunk,
       {{{"regular_gpt"}, "regular_gpt: C, the positions that each position attends to"}}, 2, 1 << 16, {}, TEXT},
      {"thickness", "thickness", &O::thickness,
       {{{"regular_gpt"}, "regular_gpt: K, the blocks with weights of their own, applied once for each power of C up to "
                          "the length; 0: half of --layers"}}, 0, 1 << 10, {}, TEXT},
      {"activation", "activation", &O::activation,
       {{{"causal_rn", "relation_network"}, "relation networks: applied to each pair"},
        {{"deep_sets"}, "deep_sets: relu, its default, or gelu"}}, 0, 0, {"exp", "relu", "elu", "gelu"}},
      {"pre-norm", "pre_activation_norm", &O::pre_norm,
       {{RELATIONS, "normalization before the activation: exact, the default, of each pair; approximate, the default of "
                    "birn_image and linear_causal_rn, and none take linear time; linear_causal_rn has only these two"}},
       0, 0, {"exact", "approximate", "none"}},
      {"post-norm", "post_reduction_norm", &O::post_norm,
       {{RELATIONS, "relation networks: normalization after the sum over the pairs"}}},
      {"position", "position", &O::position,
       {{TRANSFORMERS, "transformers: position scheme; linear_transformer has the first three, images only the first"}},
       0, 0, {"learned", "sinusoidal", "none", "alibi", "t5", "kerple", "xl"}},
      {"norm", "norm", &O::norm, {{TRANSFORMERS, "transformers: layer normalization without or with gain and shift"}},
       0, 0, {"plain", "affine"}},
      {"qkv-bias", "qkv_bias", &O::qkv_bias, {{TRANSFORMERS, "transformers: biases of queries, keys and values"}}},
      {"out-bias", "out_bias", &O::out_bias, {{TRANSFORMERS, "transformers: bias of the attention's output"}}},
      {"gelu", "gelu", &O::gelu, {{TRANSFORMERS, "transformers: exact, or GPT-2's approximation"}},
       0, 0, {"erf", "tanh"}},
      {"readout", "readout", &O::readout,
       {{TRANSFORMERS, "transformers: all predicts the token after each position; last, only the token after the window, "
                       "and the attention has no mask"}}, 0, 0, {"all", "last"}, TEXT},
      {"feature-map", "feature_map", &O::feature_map,
       {{{"linear_transformer"}, "linear_transformer: elu(x) + 1 with normalized weights, or x without"}},
       0, 0, {"elu1", "identity"}},
      {"cell", "cell", &O::cell, {{{"rnn"}, "rnn: its cell"}}, 0, 0, {"lstm", "elman"}},
      {"state", "state", &O::state, {{{"mamba"}, "mamba: state size of a channel"}}, 1, 1 << 10, {}, OTHERS},
      {"conv", "conv", &O::conv, {{{"mamba"}, "mamba: taps of its convolution"}}, 1, 1 << 10, {}, OTHERS},
      {"expand", "expand", &O::expand, {{{"mamba"}, "mamba: channels within a block, in widths"}}, 1, 64, {}, OTHERS},
      {"dt-rank", "dt_rank", &O::dt_rank, {{{"mamba"}, "mamba: rank of the time step; 0: a sixteenth of the width"}},
       0, 1 << 16, {}, OTHERS},
      {"embedding-deviation", "embedding_deviation", &O::embedding_deviation,
       {{TRANSFORMERS + Models{"regular_gpt"}, "transformers, regular_gpt: standard deviation of the initial embeddings "
                                               "of tokens and positions; GPT-2: 0.02"}}, 0, 100, {}, COMMON, IF_CHANGED},
      {"tied-head", "tied_head", &O::tied_head,
       {{TRANSFORMERS + Models{"mamba", "regular_gpt"}, "transformers, regular_gpt, mamba: the readout is the embedding; "
                                                        "that of regular_gpt then has no bias"}},
       0, 0, {}, OTHERS, IF_CHANGED},
      {"head-bias", "head_bias", &O::head_bias, {{TRANSFORMERS, "transformers: bias of the readout"}},
       0, 0, {}, OTHERS, IF_CHANGED},
      {"embedding-norm", "embedding_norm", &O::embedding_norm,
       {{TRANSFORMERS, "transformers: a norm before the first block"}}, 0, 0, {}, OTHERS, IF_CHANGED},
      {"norm-epsilon", "norm_epsilon", &O::norm_epsilon,
       {{TRANSFORMERS + Models{"mamba"}, "transformers with --norm affine, mamba"}}, 0, 1, {}, OTHERS, IF_CHANGED},
      {"norm-position", "norm_position", &O::norm_position,
       {{{"transformer"}, "transformer: the norm is before or after a branch"}}, 0, 0, {"pre", "post"}, OTHERS, IF_CHANGED},
      {"mlp-activation", "mlp_activation", &O::mlp_activation, {{{"transformer"}, "transformer: activation of the MLP"}},
       0, 0, {"gelu", "relu"}, OTHERS, IF_CHANGED},
      {"embedding-scale", "embedding_scale", &O::embedding_scale,
       {{TRANSFORMERS, "transformers: factor of the tokens' embeddings"}}, -1e6, 1e6, {}, OTHERS, IF_CHANGED},
      {"slopes", "slopes", &O::slopes,
       {{TRANSFORMERS, "--position alibi: as published where the number of heads is no power of 2"}},
       0, 0, {"even", "published"}, OTHERS, IF_CHANGED},
      {"positions", "context", &O::positions,
       {{CAUSAL + Models{"mamba", "mlp_lm", "dct_mlp"}, "positions of the model; 0: as many as the windows need"}},
       0, 1 << 24, {}, OTHERS, ELSEWHERE},
      {"vocab", "vocab", &O::vocab, {{ALL, "tokens of the model, of which those beyond the tokenizer's are padding"}},
       0, 1 << 24, {}, OTHERS, ELSEWHERE},
  };
  // clang-format on
  return all;
}

// The words for those models alone that a program trains; empty where it trains none.
std::string meaning_for(const Row& row, const Models& models) {
  std::vector<std::string> words;
  for (const Meaning& meaning : row.meanings)
    if (any_of(models, meaning.models)) words.push_back(meaning.words);
  return join(words, "; ");
}

// The key in this model's configuration.
std::string key_of(const Row& row, const std::string& model) {
  return model == "mlp_lm" && row.key == std::string("layers") ? "blocks" : row.key;
}

}  // namespace

void ModelOptions::declare(Options& options, const Models& models) {
  options.section("Model");
  options.add("model", &model, models, "the model to train");
  const bool of_text = any_of(models, {"mlp_lm"});
  for (const Row& row : rows()) {
    const std::string help = meaning_for(row, models);
    if (help.empty() || (row.group >= Group::TEXT && !of_text)) continue;
    options.section(row.group == Group::OTHERS ? "Models of other projects; --init FILE sets these as the file has them"
                                               : "Model");
    std::visit(
        [&](const auto member) {
          auto* const value = &(this->*member);
          using Value = std::remove_reference_t<decltype(*value)>;
          if constexpr (std::is_same_v<Value, bool>)
            options.add(row.option, value, help);
          else if constexpr (std::is_same_v<Value, std::string>)
            options.add(row.option, value, row.choices, help);
          else
            options.add(row.option, value, static_cast<Value>(row.low), static_cast<Value>(row.high), help);
        },
        row.member);
    options.only_with(row.option, "model", row.readers());
  }
  if (any_of(models, {"dct_mlp"})) declare_windows(options);
  options.only_with("gelu", "mlp-activation", {"gelu"});
  options.only_with("layers", "thickness", {"0"});
  options.only_with("slopes", "position", {"alibi"});
}

void ModelOptions::declare_windows(Options& options) {
  options.section("Model");
  options.add("frequencies", &frequencies, 1, 1 << 10, "dct_mlp: cosines of its window that each head takes");
  options.add("windows", &windows, 1, 1 << 24,
              "dct_mlp: tokens that each head reads before its position, one number for each head or one for all; "
              "default: from 4 up to the context in equal ratios");
  for (const char* const option : {"frequencies", "windows"}) options.only_with(option, "model", {"dct_mlp"});
}

namespace {

void assign(int& value, const Json& json) { value = static_cast<int>(json.integer()); }
void assign(double& value, const Json& json) { value = json.number(); }
void assign(bool& value, const Json& json) { value = json.boolean(); }
void assign(std::string& value, const Json& json) { value = json.string(); }

// The value of an option: of its kind, and one that the command line might give.
template <class Value>
void adopt_value(Value& value, const std::string& option, const Json& json, const std::string& where,
                 Options& options) {
  try {
    assign(value, json);
  } catch (const Error& error) {
    throw Error(where + ": " + error.what());
  }
  options.adopt(option, json, where);
}

}  // namespace

void ModelOptions::adopt(const std::string& name, const Json& config, Options& options, const std::string& origin) {
  model = name;
  if (config.find("vocab") && !options.given("vocab")) vocab_from_ = origin;
  bool is_changed = options.given("windows") || options.given("frequencies");  // by an option
  try {
    std::set<std::string> known = {"windows", "frequencies", "classes"};
    for (const Row& row : rows()) {
      const std::string key = key_of(row, model);
      known.insert(key);
      is_changed = is_changed || options.given(row.option);
      const Json* const found = config.find(key);
      if (!found || options.given(row.option)) continue;
      std::visit([&](auto member) { adopt_value(this->*member, row.option, *found, "config: " + key, options); },
                 row.member);
    }
    if (config.find("windows") && !options.given("windows")) adopt_windows(config, options);
    const Json ours = this->config(vocab, positions);
    for (const auto& [key, value] : config.members())
      if (!known.count(key) && !ours.find(key))
        throw Error("config: " + key + " " + value.text() + ": no option has this meaning");
  } catch (const UsageError& error) {
    if (is_changed) throw;
    throw Error(origin + ": config: as options: " + error.what());
  } catch (const Error& error) {
    throw Error(origin + ": " + error.what());
  }
}

// dct_mlp's heads have a window each; with these options all heads take as many frequencies.
void ModelOptions::adopt_windows(const Json& config, Options& options) {
  for (const char* key : {"windows", "frequencies"})
    if (config.at(key).items().empty()) throw Error(text("config: %s is empty, expected a number for each head", key));
  std::vector<int> list;
  for (const Json& window : config.at("windows").items())
    adopt_value(list.emplace_back(), "windows", window, "config: windows", options);
  windows = list;
  if (options.given("frequencies")) return;
  adopt_value(frequencies, "frequencies", config.at("frequencies").items()[0], "config: frequencies", options);
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
    if ((row.group == Group::SIZES) != sizes || row.written == Written::ELSEWHERE || !contains(row.readers(), model))
      continue;
    if ((model == "rnn" && key == "width") || (model == "regular_gpt" && key == "layers")) continue;
    if (key == "slopes" && position != "alibi") continue;
    const bool changed = std::visit([&](auto member) { return this->*member != DEFAULTS.*member; }, row.member);
    if (row.written == Written::IF_CHANGED && !changed) continue;
    std::visit([&](auto member) { json.set(key, this->*member); }, row.member);
  }
}

void ModelOptions::check() const {
  const bool splits_width = is_transformer() || model == "regular_gpt" || model == "dct_mlp";
  if (splits_width && width % heads != 0) throw UsageError(text("--heads %d does not divide --width %d", heads, width));
  if (contains(RELATIONS, model) && hidden % heads != 0)
    throw UsageError(text("--heads %d does not divide --hidden %d", heads, hidden));
  if (model == "linear_transformer" && !contains({"learned", "sinusoidal", "none"}, position))
    throw UsageError("--position " + position + ": linear_transformer has learned, sinusoidal or none");
  if (model == "linear_causal_rn" && pre_norm == "exact")
    throw UsageError("--pre-norm exact: makes causal_rn quadratic; linear_causal_rn has approximate or none");
  if (is_transformer() && norm_epsilon != 1e-5 && norm != "affine")
    throw UsageError("--norm-epsilon: plain norms have none (--norm affine)");
}

Json ModelOptions::config(int tokens, int longest) const {
  if (this->vocab > 0 && this->vocab < tokens && !vocab_from_.empty())
    throw Error(text("%s: its model has tokens from 0 to %d, the text from 0 to %d", vocab_from_.c_str(),
                     this->vocab - 1, tokens - 1));
  if (this->vocab > 0 && this->vocab < tokens)
    throw UsageError("--vocab " + std::to_string(this->vocab) + ": the text has tokens from 0 to " +
                     std::to_string(tokens - 1) + "; expected " + std::to_string(tokens) + " or more, or 0");
  check();
  const int vocab = std::max(tokens, this->vocab), context = std::max(longest, positions);
  const bool any_length = model == "rnn" || model == "regular_gpt";
  Json json = Json::object();
  json.set("vocab", vocab);
  any_length ? json.set("classes", vocab) : json.set("context", context);
  write(json, true);
  if (contains(CAUSAL, model)) json.set("causal", readout == "all");
  write(json, false);
  if (model == "linear_transformer") json.set("normalized", feature_map == "elu1");
  if (model == "mamba") json.set("dt_rank", dt_rank > 0 ? dt_rank : (width + 15) / 16);
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
  if (is_transformer() && position != "learned")
    throw UsageError("--position " + position + ": models of images have learned positions");
  if (is_transformer() && embedding_deviation != 1)
    throw UsageError("--embedding-deviation: models of images embed no tokens");
  check();
  Json json = Json::object();
  json.set("patches", patches).set("patch_size", patch_size).set("classes", classes);
  write(json, true);
  if (is_transformer()) json.set("causal", false);
  write(json, false);
  if (is_transformer()) json.set("readout", "last");
  if (model == "linear_transformer") json.set("normalized", feature_map == "elu1");
  if (model == "deep_sets" && activation == "exp") json.set("activation", "relu");
  if (model == "relation_network") json.set("form", activation == "exp" ? "linear" : "quadratic");
  return json;
}

// Windows from 4, or from the number of frequencies if that is more, up to the context, in equal ratios.
// "varying t from 4 to 2048 (the maximal sequence length)" (mlps_for_nlp, appendix C.3)
void ModelOptions::write_windows(Json& json, int context) const {
  std::vector<int> list = windows;
  if (list.size() == 1) list.assign(static_cast<size_t>(heads), windows[0]);
  const int least = std::max(frequencies, 4), most = std::max(least, context);
  for (int h = 0; windows.empty() && h < heads; ++h) {
    const float part = heads > 1 ? static_cast<float>(h) / static_cast<float>(heads - 1) : 1.0f;
    const float ratio = static_cast<float>(most) / static_cast<float>(least);
    const auto window = static_cast<int>(static_cast<float>(least) * numerics::exp(part * numerics::log(ratio)) + 0.5f);
    list.push_back(std::clamp(window, least, most));
  }
  if (list.size() != static_cast<size_t>(heads))
    throw UsageError(
        text("--windows: %zu numbers, expected one for each of the --heads %d, or one for all", list.size(), heads));
  Json of_windows = Json::array(), of_frequencies = Json::array();
  for (const int window : list) {
    if (window < frequencies)
      throw UsageError(
          text("--windows: a window of %d tokens has no %d frequencies (--frequencies)", window, frequencies));
    of_windows.push(window);
    of_frequencies.push(frequencies);
  }
  json.set("frequencies", of_frequencies).set("windows", of_windows);
}

}  // namespace petroglyph
