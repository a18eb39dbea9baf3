#include "train/model_options.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "math/numerics.h"

namespace petroglyph {

namespace {

bool any_of(const std::vector<std::string>& models, const std::vector<std::string>& wanted) {
  return std::any_of(models.begin(), models.end(), [&](const std::string& model) {
    return std::find(wanted.begin(), wanted.end(), model) != wanted.end();
  });
}

// Which models read an option; those that are not here all of them read, or say themselves what is wrong.
struct Readers {
  std::vector<std::string> options, models;
};

const std::vector<Readers>& readers() {
  static const std::vector<Readers> all = {
      {{"hidden"},
       {"causal_rn", "linear_causal_rn", "transformer", "linear_transformer", "rnn", "regular_gpt", "dct_mlp",
        "birn_image", "relation_network", "deep_sets"}},
      {{"layers"},
       {"causal_rn", "linear_causal_rn", "transformer", "linear_transformer", "mamba", "regular_gpt", "mlp_lm",
        "dct_mlp", "birn_image"}},
      {{"heads"},
       {"causal_rn", "linear_causal_rn", "transformer", "linear_transformer", "regular_gpt", "dct_mlp", "birn_image"}},
      {{"activation"}, {"causal_rn", "linear_causal_rn", "relation_network", "deep_sets"}},
      {{"pre-norm", "post-norm"}, {"causal_rn", "linear_causal_rn", "birn_image"}},
      {{"position", "norm", "gelu", "norm-position", "mlp-activation", "qkv-bias", "out-bias", "head-bias",
        "embedding-scale", "embedding-norm", "slopes"},
       {"transformer", "linear_transformer"}},
      {{"embedding-deviation"}, {"transformer", "linear_transformer", "regular_gpt"}},
      {{"tied-head"}, {"transformer", "linear_transformer", "mamba", "regular_gpt"}},
      {{"norm-epsilon"}, {"transformer", "linear_transformer", "mamba"}},
      {{"feature-map"}, {"linear_transformer"}},
      {{"cell"}, {"rnn"}},
      {{"embedding"}, {"mlp_lm"}},
      {{"positions"},
       {"causal_rn", "linear_causal_rn", "transformer", "linear_transformer", "mamba", "mlp_lm", "dct_mlp"}},
      {{"frequencies", "windows"}, {"dct_mlp"}},
      {{"chunk", "thickness"}, {"regular_gpt"}},
      {{"state", "conv", "expand", "dt-rank"}, {"mamba"}}};
  return all;
}

const std::vector<std::string> RELATIONS = {"causal_rn", "linear_causal_rn", "birn_image", "relation_network",
                                            "deep_sets"};
const std::vector<std::string> TRANSFORMERS = {"transformer", "linear_transformer"};

// What an option is for models that read it, in words for those alone that a program trains.
struct Meaning {
  std::vector<std::string> models;
  std::string words;
};
std::string meanings(const std::vector<std::string>& models, const std::vector<Meaning>& all) {
  std::vector<std::string> words;
  for (const Meaning& one : all)
    if (any_of(models, one.models)) words.push_back(one.words);
  return join(words, "; ");
}

}  // namespace

// What none of the program's models reads is not declared.
void ModelOptions::declare(Options& options, const std::vector<std::string>& models) {
  options.section("Model");
  options.add("model", &model, models, "what learns");
  options.add("width", &width, 1, 1 << 16,
              meanings(models, {{models, "channels of the residual stream, the paper's d_e"},
                                {{"mlp_lm"}, "mlp_lm: inside a block, the paper's w"}}));
  options.add(
      "hidden", &hidden, 0, 1 << 20,
      meanings(models, {{RELATIONS, "relation networks: channels between positions, the paper's d_h, 0 for the width"},
                        {{"rnn"}, "rnn: its state, 0 for the width"},
                        {TRANSFORMERS, "transformers: of their MLP, 0 for 4 widths"},
                        {{"regular_gpt"}, "regular_gpt: the same"},
                        {{"dct_mlp"}, "dct_mlp: the same"}}));
  options.add("layers", &layers, 1, 1 << 10, "blocks");
  options.add("heads", &heads, 1, 1 << 16,
              meanings(models, {{RELATIONS, "relation networks: groups of hidden channels with an inner norm each"},
                                {TRANSFORMERS, "transformers: attention heads"},
                                {{"regular_gpt"}, "regular_gpt: the same"},
                                {{"dct_mlp"}, "dct_mlp: heads with a window each"}}));
  if (any_of(models, RELATIONS)) declare_relations(options, models);
  if (any_of(models, TRANSFORMERS)) declare_transformers(options);
  if (any_of(models, {"rnn"})) options.add("cell", &cell, {"lstm", "elman"}, "rnn: its cell");
  if (any_of(models, {"mlp_lm", "dct_mlp", "regular_gpt"})) declare_text_models(options);
  if (any_of(models, {"mamba"}) && any_of(models, {"mlp_lm"})) {
    declare_others(options);
    options.only_with("gelu", "mlp-activation", {"gelu"});
  }
  for (const Readers& some : readers())
    for (const std::string& option : some.options) options.only_with(option, "model", some.models);
  options.only_with("slopes", "position", {"alibi"});
}

void ModelOptions::declare_relations(Options& options, const std::vector<std::string>& models) {
  options.add("activation", &activation, {"exp", "relu", "elu", "gelu"},
              meanings(models, {{{"causal_rn", "linear_causal_rn", "birn_image", "relation_network"},
                                 "relation networks: of each pair"},
                                {{"deep_sets"}, "deep_sets: relu, its default, or gelu"}}));
  options.add("pre-norm", &pre_norm, {"exact", "approximate", "none"},
              "normalization before the activation: exact, the default, of each pair; approximate, the default of "
              "birn_image and linear_causal_rn, and none take linear time, and linear_causal_rn has these two only");
  options.add("post-norm", &post_norm, "relation networks: normalization after the sum over the pairs");
}

void ModelOptions::declare_transformers(Options& options) {
  options.add("position", &position, {"learned", "sinusoidal", "none", "alibi", "t5", "kerple", "xl"},
              "transformers: their positions; linear_transformer has the first three, images the first");
  options.add("feature-map", &feature_map, {"elu1", "identity"},
              "linear_transformer: elu(x) + 1 with normalized weights, or x without");
  options.add("norm", &norm, {"plain", "affine"}, "transformers: layer normalization without or with gain and shift");
  options.add("gelu", &gelu, {"erf", "tanh"}, "transformers: exact, or GPT-2's approximation");
  options.add("embedding-deviation", &embedding_deviation, 0, 100,
              "transformers, regular_gpt: of the initial embeddings of tokens and positions; GPT-2: 0.02");
}

// Those that only texts are read with.
void ModelOptions::declare_text_models(Options& options) {
  options.add("readout", &readout, {"all", "last"},
              "transformers: all, each token's next one; last, only the token after the window, which a transformer "
              "without a mask then sees");
  options.add("embedding", &embedding, 1, 1 << 14,
              "mlp_lm: channels of a token's embedding and of the residual stream");
  options.add("frequencies", &frequencies, 1, 1 << 10, "dct_mlp: cosines of its window that each head takes");
  options.add("windows", &windows, 1, 1 << 24,
              "dct_mlp: tokens that each head looks back over, one number for every head or one for all; default from "
              "4 up to the context in equal ratios");
  options.add("chunk", &chunk, 2, 1 << 16, "regular_gpt: C, the positions that each one attends to");
  options.add("thickness", &thickness, 0, 1 << 10,
              "regular_gpt: K, the blocks with weights of their own; all of them once for each power of C up to the "
              "length; 0: half of --layers");
  options.only_with("layers", "thickness", {"0"});
}

// What the models of others have, for which --init sets it.
void ModelOptions::declare_others(Options& options) {
  options.section("Models as others have them; --init FILE sets these as the file has them");
  options.add("positions", &positions, 0, 1 << 24, "places that the model has; 0: as many as windows need");
  options.add("vocab", &vocab, 0, 1 << 24, "tokens of the model, of which those beyond the tokenizer's are padding");
  options.add("tied-head", &tied_head,
              "transformers, regular_gpt, mamba: the readout is the embedding, and that of regular_gpt without a bias");
  options.add("norm-epsilon", &norm_epsilon, 0, 1, "transformers with --norm affine, mamba");
  options.add("norm-position", &norm_position, {"pre", "post"}, "transformers: before or after a branch");
  options.add("mlp-activation", &mlp_activation, {"gelu", "relu"}, "transformers");
  options.add("qkv-bias", &qkv_bias, "transformers: of queries, keys and values");
  options.add("out-bias", &out_bias, "transformers: of the attention's output");
  options.add("head-bias", &head_bias, "transformers: of the readout");
  options.add("embedding-scale", &embedding_scale, -1e6, 1e6, "transformers: multiplies the tokens' embeddings");
  options.add("embedding-norm", &embedding_norm, "transformers: a norm before the first block");
  options.add("slopes", &slopes, {"even", "published"}, "--position alibi: as published where heads are no power of 2");
  options.add("state", &state, 1, 1 << 10, "mamba: numbers that a channel remembers");
  options.add("conv", &conv, 1, 1 << 10, "mamba: taps of its convolution");
  options.add("expand", &expand, 1, 64, "mamba: channels within a block, in widths");
  options.add("dt-rank", &dt_rank, 0, 1 << 16, "mamba: the width that the time step is made from; 0: a sixteenth");
}

// visit(key of a configuration, option, value)
template <class Visit>
void ModelOptions::for_each_key(Visit visit) {
  visit("width", "width", width);
  visit("hidden", "hidden", hidden);
  visit("layers", "layers", layers);
  visit("blocks", "layers", layers);
  visit("heads", "heads", heads);
  visit("embedding", "embedding", embedding);
  visit("activation", "activation", activation);
  visit("pre_activation_norm", "pre-norm", pre_norm);
  visit("post_reduction_norm", "post-norm", post_norm);
  visit("position", "position", position);
  visit("feature_map", "feature-map", feature_map);
  visit("cell", "cell", cell);
  visit("norm", "norm", norm);
  visit("gelu", "gelu", gelu);
  visit("readout", "readout", readout);
  visit("embedding_deviation", "embedding-deviation", embedding_deviation);
  visit("chunk", "chunk", chunk);
  visit("thickness", "thickness", thickness);
  visit("vocab", "vocab", vocab);
  visit("context", "positions", positions);
  visit("tied_head", "tied-head", tied_head);
  visit("norm_epsilon", "norm-epsilon", norm_epsilon);
  visit("norm_position", "norm-position", norm_position);
  visit("mlp_activation", "mlp-activation", mlp_activation);
  visit("qkv_bias", "qkv-bias", qkv_bias);
  visit("out_bias", "out-bias", out_bias);
  visit("head_bias", "head-bias", head_bias);
  visit("embedding_scale", "embedding-scale", embedding_scale);
  visit("embedding_norm", "embedding-norm", embedding_norm);
  visit("slopes", "slopes", slopes);
  visit("state", "state", state);
  visit("conv", "conv", conv);
  visit("expand", "expand", expand);
  visit("dt_rank", "dt-rank", dt_rank);
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
  bool asked = options.given("windows") || options.given("frequencies");  // for other than the file has
  try {
    std::set<std::string> known = {"windows", "frequencies", "classes"};
    for_each_key([&](const char* key, const char* option, auto& value) {
      known.insert(key);
      asked = asked || options.given(option);
      const Json* const found = config.find(key);
      if (!found || options.given(option)) return;
      adopt_value(value, option, *found, text("config: %s", key), options);
    });
    if (config.find("windows") && !options.given("windows")) adopt_heads(config, options);
    const Json said = this->config(vocab, positions);
    for (const auto& [key, value] : config.members())
      if (!known.count(key) && !said.find(key))
        throw Error("config: " + key + " " + value.text() + ": no option says this");
  } catch (const UsageError& error) {
    if (asked) throw;
    throw Error(origin + ": config: as options: " + error.what());
  } catch (const Error& error) {
    throw Error(origin + ": " + error.what());
  }
}

// Of dct_mlp, whose heads have a window each; all of ours take as many frequencies.
void ModelOptions::adopt_heads(const Json& config, Options& options) {
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

Json ModelOptions::config(int tokens, int longest) const {
  if (this->vocab > 0 && this->vocab < tokens && !vocab_from_.empty())
    throw Error(text("%s: its model has tokens from 0 to %d, the text from 0 to %d", vocab_from_.c_str(),
                     this->vocab - 1, tokens - 1));
  if (this->vocab > 0 && this->vocab < tokens)
    throw UsageError("--vocab " + std::to_string(this->vocab) + ": the text has tokens from 0 to " +
                     std::to_string(tokens - 1) + "; expected " + std::to_string(tokens) + " or more, or 0");
  const int vocab = std::max(tokens, this->vocab), context = std::max(longest, positions);
  if (readout == "last" && !is_transformer())
    throw UsageError("--readout last: an option of transformers" +
                     std::string(model == "mlp_lm" ? "; mlp_lm has no other readout" : ""));
  Json json = Json::object();
  json.set("vocab", vocab);
  if (model == "rnn")
    return json.set("classes", vocab).set("hidden", hidden).set("cell", cell).set("readout", "all"), json;
  if (model == "regular_gpt") return regular_gpt_config(vocab);
  json.set("context", context);
  if (model == "mlp_lm") return json.set("embedding", embedding).set("width", width).set("blocks", layers), json;
  json.set("width", width).set("layers", layers);
  if (model == "mamba") return add_mamba(json), json;
  if (model == "dct_mlp") return add_dct_mlp(json, context), json;
  json.set("hidden", hidden).set("heads", heads).set("causal", readout == "all");
  is_transformer() ? add_transformer(json) : add_relations(json);
  if (is_transformer() && embedding_deviation != 1) json.set("embedding_deviation", embedding_deviation);
  if (is_transformer()) add_rare_keys(json);
  return json;
}

Json ModelOptions::image_config(int patches, int patch_size, int classes) const {
  Json json = Json::object();
  json.set("patches", patches).set("patch_size", patch_size).set("classes", classes);
  json.set("width", width).set("hidden", hidden);
  if (model == "deep_sets") return json.set("activation", activation == "exp" ? "relu" : activation), json;
  if (model == "relation_network")
    return json.set("activation", activation).set("form", activation == "exp" ? "linear" : "quadratic"), json;
  json.set("layers", layers).set("heads", heads);
  if (is_transformer()) {
    if (position != "learned") throw UsageError("--position " + position + ": models of images learn their positions");
    if (embedding_deviation != 1) throw UsageError("--embedding-deviation: models of images embed no tokens");
    json.set("causal", false);
    add_transformer(json);
    return json.set("readout", "last"), json;
  }
  if (hidden % heads != 0) throw UsageError(text("--heads %d does not divide --hidden %d", heads, hidden));
  return json.set("pre_activation_norm", pre_norm).set("post_reduction_norm", post_norm), json;
}

// The form that answers at every position. It knows no places but the C of relative, and reads any length.
Json ModelOptions::regular_gpt_config(int vocab) const {
  if (width % heads != 0) throw UsageError(text("--heads %d does not divide --width %d", heads, width));
  Json json = Json::object();
  json.set("vocab", vocab).set("classes", vocab).set("width", width).set("hidden", hidden).set("heads", heads);
  json.set("chunk", chunk)
      .set("thickness", thickness > 0 ? thickness : std::max(1, layers / 2))
      .set("norm", "affine")
      .set("form", "dilated")
      .set("readout", "all");
  if (embedding_deviation != 1) json.set("embedding_deviation", embedding_deviation);
  if (tied_head) json.set("tied_head", true).set("head_bias", false);
  return json;
}

// Windows from 4, or the frequencies where these are more, up to the context, each the same factor larger than the one before.
// "varying t from 4 to 2048 (the maximal sequence length)" (mlps_for_nlp, appendix C.3)
void ModelOptions::add_dct_mlp(Json& json, int context) const {
  if (width % heads != 0) throw UsageError(text("--heads %d does not divide --width %d", heads, width));
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
  json.set("hidden", hidden).set("heads", heads).set("frequencies", of_frequencies).set("windows", of_windows);
}

// The usual sizes of Mamba-1.
void ModelOptions::add_mamba(Json& json) const {
  json.set("state", state).set("conv", conv).set("expand", expand);
  json.set("dt_rank", dt_rank > 0 ? dt_rank : (width + 15) / 16);
  if (tied_head) json.set("tied_head", true);
  if (norm_epsilon != 1e-5) json.set("norm_epsilon", norm_epsilon);
}

// Where they are not what they are without being said.
void ModelOptions::add_rare_keys(Json& json) const {
  if (tied_head) json.set("tied_head", true);
  if (head_bias) json.set("head_bias", true);
  if (embedding_norm) json.set("embedding_norm", true);
  if (norm_epsilon != 1e-5) {
    if (norm != "affine") throw UsageError("--norm-epsilon: plain norms have none (--norm affine)");
    json.set("norm_epsilon", norm_epsilon);
  }
  if (norm_position != "pre") json.set("norm_position", norm_position);
  if (mlp_activation != "gelu") json.set("mlp_activation", mlp_activation);
  if (embedding_scale != 1) json.set("embedding_scale", embedding_scale);
  if (position == "alibi" && slopes != "even") json.set("slopes", slopes);
}

void ModelOptions::add_transformer(Json& json) const {
  if (width % heads != 0) throw UsageError(text("--heads %d does not divide --width %d", heads, width));
  const bool common = position == "learned" || position == "sinusoidal" || position == "none";
  if (model == "linear_transformer" && !common)
    throw UsageError("--position " + position + ": linear_transformer has learned, sinusoidal or none");
  json.set("position", position).set("norm", norm).set("qkv_bias", qkv_bias).set("out_bias", out_bias);
  json.set("gelu", gelu).set("readout", readout);
  if (model == "linear_transformer") json.set("feature_map", feature_map).set("normalized", feature_map == "elu1");
}

void ModelOptions::add_relations(Json& json) const {
  if (hidden % heads != 0) throw UsageError(text("--heads %d does not divide --hidden %d", heads, hidden));
  const bool linear = model == "linear_causal_rn";
  if (linear && pre_norm == "exact")
    throw UsageError("--pre-norm exact: what makes causal_rn quadratic; linear_causal_rn has approximate or none");
  if (linear && activation != "exp") throw UsageError("--activation " + activation + ": linear_causal_rn has exp only");
  if (!linear) json.set("activation", activation);
  json.set("pre_activation_norm", pre_norm).set("post_reduction_norm", post_norm);
}

}  // namespace petroglyph
