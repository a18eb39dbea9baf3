#include "exchange/families.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"

namespace petroglyph {

namespace {

using Form = Rule::Form;
constexpr int64_t MOST = 1 << 24;
constexpr const char* OURS = "our transformer";

// ---- Mapping of tensor names ----------------------------------------------------------------------------------------

// `ours` is Petroglyph's name of a parameter; `theirs` is Hugging Face's, or several names separated by spaces. A '*'
// at the beginning is the block's prefix: "blocks.N." in `ours`, Tensors::block in `theirs`. A name that ends in '.'
// means two parameters, its "weight" and its "bias".
struct Row {
  std::string ours, theirs;
  Form form = Form::SAME;
  int64_t skipped = 0;
};

struct Tensors {
  std::string block;  // of Hugging Face's names; '#' is the block's number
  std::vector<Row> rows;
  bool biases_may_lack = false;
};

const Tensors GPT2 = {"transformer.h.#.",
                      {{"token_embedding.weight", "transformer.wte.weight"},
                       {"position_embedding.weight", "transformer.wpe.weight"},
                       {"*norm_1.", "*ln_1."},
                       {"*attention.qkv.", "*attn.c_attn.", Form::TRANSPOSED},
                       {"*attention.out.", "*attn.c_proj.", Form::TRANSPOSED},
                       {"*norm_2.", "*ln_2."},
                       {"*mlp.up.", "*mlp.c_fc.", Form::TRANSPOSED},
                       {"*mlp.down.", "*mlp.c_proj.", Form::TRANSPOSED},
                       {"final_norm.", "transformer.ln_f."},
                       {"head.weight", "lm_head.weight"}}};

const Tensors OPT = {"model.decoder.layers.#.",
                     {{"token_embedding.weight", "model.decoder.embed_tokens.weight"},
                      {"position_embedding.weight", "model.decoder.embed_positions.weight", Form::SAME, 2},
                      {"*norm_1.", "*self_attn_layer_norm."},
                      {"*attention.qkv.", "*self_attn.q_proj. *self_attn.k_proj. *self_attn.v_proj."},
                      {"*attention.out.", "*self_attn.out_proj."},
                      {"*norm_2.", "*final_layer_norm."},
                      {"*mlp.up.", "*fc1."},
                      {"*mlp.down.", "*fc2."},
                      {"final_norm.", "model.decoder.final_layer_norm."},
                      {"head.weight", "lm_head.weight"}}};

const Tensors MPT = {"transformer.blocks.#.",
                     {{"token_embedding.weight", "transformer.wte.weight"},
                      {"*norm_1.", "*norm_1."},
                      {"*attention.qkv.weight", "*attn.Wqkv.weight"},
                      {"*attention.out.weight", "*attn.out_proj.weight"},
                      {"*norm_2.", "*norm_2."},
                      {"*mlp.up.", "*ffn.up_proj."},
                      {"*mlp.down.", "*ffn.down_proj."},
                      {"final_norm.", "transformer.norm_f."},
                      {"head.weight", "lm_head.weight"}},
                     true};

const Tensors BLOOM = {"transformer.h.#.",
                       {{"token_embedding.weight", "transformer.word_embeddings.weight"},
                        {"embedding_norm.", "transformer.word_embeddings_layernorm."},
                        {"*norm_1.", "*input_layernorm."},
                        {"*attention.qkv.", "*self_attention.query_key_value.", Form::INTERLEAVED},
                        {"*attention.out.", "*self_attention.dense."},
                        {"*norm_2.", "*post_attention_layernorm."},
                        {"*mlp.up.", "*mlp.dense_h_to_4h."},
                        {"*mlp.down.", "*mlp.dense_4h_to_h."},
                        {"final_norm.", "transformer.ln_f."},
                        {"head.weight", "lm_head.weight"}}};

const Tensors MAMBA = {"backbone.layers.#.",
                       {{"token_embedding.weight", "backbone.embeddings.weight"},
                        {"*norm.weight", "*norm.weight"},
                        {"*in_proj.weight", "*mixer.in_proj.weight"},
                        {"*conv.weight", "*mixer.conv1d.weight", Form::TAPS},
                        {"*conv.bias", "*mixer.conv1d.bias"},
                        {"*x_proj.weight", "*mixer.x_proj.weight"},
                        {"*dt_proj.", "*mixer.dt_proj."},
                        {"*A_log", "*mixer.A_log"},
                        {"*D", "*mixer.D"},
                        {"*out_proj.weight", "*mixer.out_proj.weight"},
                        {"final_norm.weight", "backbone.norm_f.weight"},
                        {"head.weight", "lm_head.weight"}}};

const Tensors VIT = {
    "vit.encoder.layer.#.",
    {{"patch_embedding.weight", "vit.embeddings.patch_embeddings.projection.weight", Form::PIXELS},
     {"cls_token", "vit.embeddings.cls_token", Form::FLAT},
     {"position_embedding.weight", "vit.embeddings.position_embeddings vit.embeddings.patch_embeddings.projection.bias",
      Form::ANSWER_LAST},
     {"*norm_1.", "*layernorm_before."},
     {"*attention.qkv.", "*attention.attention.query. *attention.attention.key. *attention.attention.value."},
     {"*attention.out.", "*attention.output.dense."},
     {"*norm_2.", "*layernorm_after."},
     {"*mlp.up.", "*intermediate.dense."},
     {"*mlp.down.", "*output.dense."},
     {"final_norm.", "vit.layernorm."},
     {"head.", "classifier."}}};

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The name of one parameter, "weight" or "bias", in block `layer`.
std::string full_name(std::string name, std::string block, int64_t layer, const std::string& kind) {
  if (const size_t number = block.find('#'); number != std::string::npos)
    block.replace(number, 1, std::to_string(layer));
  if (name[0] == '*') name.replace(0, 1, block);
  return name.back() == '.' ? name + kind : name;
}

// left_out: Petroglyph's names of parameters that this model does not have; in a model with tied embeddings, the head
// is one.
std::vector<Rule> rules_of(const Tensors& tensors, int64_t layers, bool tied, std::vector<std::string> left_out = {}) {
  if (tied) left_out.push_back("head.weight");
  std::vector<Rule> rules;
  const auto add = [&](const Row& row, int64_t layer, const std::string& kind) {
    Rule rule{full_name(row.ours, "blocks.#.", layer, kind), {}, row.form, row.skipped};
    for (const std::string& name : split(row.theirs, ' '))
      rule.theirs.push_back(full_name(name, tensors.block, layer, kind));
    if (kind == "bias" && row.form == Form::TRANSPOSED) rule.form = Form::SAME;
    rule.may_lack = kind == "bias" && tensors.biases_may_lack;
    if (std::none_of(left_out.begin(), left_out.end(), [&](const auto& name) { return ends_with(rule.ours, name); }))
      rules.push_back(rule);
  };
  for (const Row& row : tensors.rows)
    for (int64_t layer = 0; layer < (row.ours[0] == '*' ? layers : 1); ++layer) {
      add(row, layer, "weight");
      if (row.ours.back() == '.') add(row, layer, "bias");
    }
  return rules;
}

// ---- The keys of config.json ----------------------------------------------------------------------------------------

int64_t size(ConfigReader& keys, const std::string& key) { return keys.integer(key, 1, MOST); }
// Each block has its own rules, which are made before the file's tensors are checked; so the number is limited.
int64_t blocks(ConfigReader& keys, const std::string& key) { return keys.integer(key, 1, 1 << 10); }

// `only`: the only value of these keys that can be expressed. A key that is absent or null has this value.
void check_only(const ConfigReader& keys, const Json& config, const std::string& who, const Json& only) {
  for (const auto& [key, value] : only.members()) {
    const Json* found = config.find(key);
    if (found && !found->is(Json::Kind::Null) && *found != value)
      keys.fail(key + " " + found->text().substr(0, 60) + " cannot be expressed by " + who + ", which has " +
                value.text());
  }
}

Json literal(const char* words) { return Json::parse(words, ""); }

void activation(ConfigReader& keys, const std::string& key, const std::string& otherwise, Json& config) {
  const std::string word = keys.string(key, otherwise);
  const bool tanh = word == "gelu_new" || word == "gelu_pytorch_tanh" || word == "gelu_fast";
  if (!tanh && word != "gelu" && word != "relu")
    keys.fail(key + " \"" + word + "\" cannot be expressed: our transformer has gelu, gelu_new and relu");
  config.set("gelu", tanh ? "tanh" : "erf");
  if (word == "relu") config.set("mlp_activation", "relu");
}

// Keys that all model types have under one name or another.
void common(ConfigReader& keys, Json& config) {
  const double found = keys.number("layer_norm_epsilon", 0, 1, 1e-5);
  if (found != 1e-5) config.set("norm_epsilon", found);
  if (keys.boolean("tie_word_embeddings", true)) config.set("tied_head", true);
}

bool is_tied(const Json& config) {
  const Json* tied = config.find("tied_head");
  return tied && tied->boolean();
}

Translation gpt2(ConfigReader& keys, const Json& json) {
  Translation t{"transformer", Json(), {}, {}};
  const int64_t width = size(keys, "n_embd"), layers = blocks(keys, "n_layer");
  t.config = transformer_config(size(keys, "vocab_size"), size(keys, "n_positions"), width,
                                keys.integer("n_inner", 1, MOST, 4 * width), layers, size(keys, "n_head"));
  activation(keys, "activation_function", "gelu_new", t.config);
  common(keys, t.config);
  check_only(keys, json, OURS, literal(R"({"scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false,
                                           "add_cross_attention": false})"));
  t.rules = rules_of(GPT2, layers, is_tied(t.config));
  return t;
}

Translation opt(ConfigReader& keys, const Json& json) {
  Translation t{"transformer", Json(), {}, {}};
  const int64_t width = size(keys, "hidden_size"), layers = blocks(keys, "num_hidden_layers");
  t.config = transformer_config(size(keys, "vocab_size"), size(keys, "max_position_embeddings"), width,
                                size(keys, "ffn_dim"), layers, size(keys, "num_attention_heads"));
  activation(keys, "activation_function", "relu", t.config);
  common(keys, t.config);
  Json only = literal(R"({"enable_bias": true, "layer_norm_elementwise_affine": true, "do_layer_norm_before": true,
                          "_remove_final_layer_norm": false})");
  check_only(keys, json, OURS, only.set("word_embed_proj_dim", width));
  t.rules = rules_of(OPT, layers, is_tied(t.config));
  return t;
}

Translation mpt(ConfigReader& keys, const Json& json) {
  Translation t{"transformer", Json(), {}, {}};
  const int64_t width = size(keys, "d_model"), layers = blocks(keys, "n_layers");
  t.config = transformer_config(size(keys, "vocab_size"), size(keys, "max_seq_len"), width,
                                keys.integer("expansion_ratio", 1, 1 << 10, 4) * width, layers, size(keys, "n_heads"));
  t.config.set("position", "alibi").set("slopes", "published").set("gelu", "erf");
  t.config.set("qkv_bias", false).set("out_bias", false);
  common(keys, t.config);
  check_only(keys, json, OURS, literal(R"({"no_bias": true, "logit_scale": null})"));
  if (keys.has("attn_config"))
    check_only(keys, keys.object("attn_config"), OURS,
               literal(R"({"alibi": true, "qk_ln": false, "prefix_lm": false, "clip_qkv": null, "softmax_scale": null,
                           "alibi_bias_max": 8})"));
  t.rules = rules_of(MPT, layers, is_tied(t.config));
  return t;
}

Translation bloom(ConfigReader& keys, const Json& json) {
  Translation t{"transformer", Json(), {}, {}};
  const std::string heads = keys.has("n_head") ? "n_head" : "num_attention_heads";
  const std::string depth = keys.has("n_layer") ? "n_layer" : "num_hidden_layers";
  const int64_t older = keys.integer("n_embed", 1, MOST, 0);  // the older name; it has priority if both exist
  const int64_t width = older > 0 ? older : size(keys, "hidden_size"), layers = blocks(keys, depth);
  t.config = transformer_config(size(keys, "vocab_size"), keys.integer("seq_length", 1, MOST, 2048), width, 4 * width,
                                layers, size(keys, heads));
  t.config.set("position", "alibi").set("slopes", "published").set("gelu", "tanh").set("embedding_norm", true);
  common(keys, t.config);
  check_only(keys, json, OURS, literal(R"({"apply_residual_connection_post_layernorm": false})"));
  t.rules = rules_of(BLOOM, layers, is_tied(t.config));
  return t;
}

Translation mamba(ConfigReader& keys, const Json& json) {
  Translation t{"mamba", Json::object(), {}, {}};
  const int64_t width = size(keys, "hidden_size"), layers = blocks(keys, "num_hidden_layers");
  const int64_t expand = keys.integer("expand", 1, 64, 2);
  int64_t rank = (width + 15) / 16;
  try {
    rank = keys.integer("time_step_rank", 1, 1 << 16, rank);
  } catch (const Error&) {
    keys.choice("time_step_rank", {"auto"});
  }
  t.config.set("vocab", size(keys, "vocab_size")).set("context", 2048).set("width", width).set("layers", layers);
  t.config.set("state", keys.integer("state_size", 1, 1 << 10, 16))
      .set("conv", keys.integer("conv_kernel", 1, 1 << 10, 4));
  t.config.set("expand", expand).set("dt_rank", rank);
  common(keys, t.config);
  Json only = literal(R"({"hidden_act": "silu", "use_bias": false, "use_conv_bias": true, "use_mambapy": false})");
  check_only(keys, json, "our mamba", only.set("intermediate_size", expand * width));
  t.rules = rules_of(MAMBA, layers, is_tied(t.config));
  return t;
}

// The class names by class number: {"0": "tench", …}.
Json class_names(ConfigReader& keys, int64_t& count) {
  Json names = Json::array();
  const Json list = keys.object("id2label");
  count = static_cast<int64_t>(list.members().size());
  for (int64_t i = 0; i < count; ++i) {
    const Json* name = list.find(std::to_string(i));
    if (!name || !name->is(Json::Kind::String)) keys.fail("id2label has no name of class " + std::to_string(i));
    names.push(*name);
  }
  return names;
}

Translation vit(ConfigReader& keys, const Json& json) {
  Translation t{"transformer", Json::object(), {}, {}};
  const int64_t side = size(keys, "patch_size"), across = size(keys, "image_size") / side;
  const int64_t layers = blocks(keys, "num_hidden_layers");
  check_only(keys, json, OURS, literal(R"({"num_channels": 3})"));
  int64_t classes = 0;
  t.classes = class_names(keys, classes);
  t.config.set("patches", across * across).set("patch_size", 3 * side * side).set("classes", classes);
  t.config.set("width", size(keys, "hidden_size")).set("hidden", size(keys, "intermediate_size")).set("layers", layers);
  t.config.set("heads", size(keys, "num_attention_heads")).set("causal", false).set("position", "learned");
  t.config.set("norm", "affine").set("qkv_bias", keys.boolean("qkv_bias", true)).set("out_bias", true);
  t.config.set("readout", "last")
      .set("head_bias", true)
      .set("norm_epsilon", keys.number("layer_norm_eps", 0, 1, 1e-12));
  activation(keys, "hidden_act", "gelu", t.config);
  t.notes.push_back("its images are normalized here as CIFAR-10's are, whatever its own preprocessor does");
  const std::vector<std::string> bias = {"attention.qkv.bias"}, none;
  t.rules = rules_of(VIT, layers, false, t.config.at("qkv_bias").boolean() ? none : bias);
  return t;
}

struct Family {
  const char* type;
  Translation (*translate)(ConfigReader& keys, const Json& config);
};

constexpr Family FAMILIES[] = {{"gpt2", gpt2}, {"mamba", mamba}, {"opt", opt},
                               {"mpt", mpt},   {"bloom", bloom}, {"vit", vit}};

}  // namespace

Json transformer_config(int64_t vocab, int64_t context, int64_t width, int64_t hidden, int64_t layers, int64_t heads) {
  Json config = Json::object();
  config.set("vocab", vocab).set("context", context).set("width", width).set("hidden", hidden).set("layers", layers);
  config.set("heads", heads).set("causal", true).set("position", "learned").set("norm", "affine");
  return config.set("qkv_bias", true).set("out_bias", true).set("gelu", "tanh").set("readout", "all"), config;
}

Translation translate(const Json& config, const std::string& origin) {
  ConfigReader keys(origin, config);
  const std::string type = keys.string("model_type");
  std::vector<std::string> known;
  for (const Family& family : FAMILIES) {
    if (type == family.type) return family.translate(keys, config);
    known.push_back(family.type);
  }
  keys.fail("model_type \"" + type +
            "\" cannot be expressed by any of our models; those that can: " + join(known, ", "));
}

// ---- From Petroglyph to Hugging Face --------------------------------------------------------------------------------

namespace {

Json with_type(const char* type, const char* architecture) {
  Json json = Json::object();
  json.set("model_type", type).set("architectures", Json::array().push(architecture)).set("dtype", "float32");
  return json;
}

BackTranslation mamba_back(ConfigReader& keys) {
  const int64_t width = size(keys, "width"), layers = blocks(keys, "layers"), expand = size(keys, "expand");
  const bool tied = keys.boolean("tied_head", false);
  BackTranslation back{with_type("mamba", "MambaForCausalLM"), rules_of(MAMBA, layers, tied)};
  back.config.set("vocab_size", size(keys, "vocab")).set("hidden_size", width).set("num_hidden_layers", layers);
  back.config.set("state_size", size(keys, "state")).set("conv_kernel", size(keys, "conv")).set("expand", expand);
  back.config.set("intermediate_size", expand * width).set("time_step_rank", size(keys, "dt_rank"));
  back.config.set("layer_norm_epsilon", keys.number("norm_epsilon", 0, 1, 1e-5)).set("tie_word_embeddings", tied);
  return back.config.set("use_bias", false).set("use_conv_bias", true).set("hidden_act", "silu"), back;
}

// The properties that all forms of GPT-2 share. who: the format's name for error messages
void check_gpt2(ConfigReader& keys, const Json& config, const std::string& who) {
  check_only(keys, config, who, literal(R"({"position": "learned", "norm": "affine", "norm_position": "pre",
                                            "readout": "all", "causal": true, "qkv_bias": true, "out_bias": true,
                                            "head_bias": false, "embedding_norm": false, "embedding_scale": 1})"));
  check_only(keys, config, who, Json::object().set("classes", size(keys, "vocab")));
}

BackTranslation gpt2_back(ConfigReader& keys, const Json& config) {
  check_gpt2(keys, config, "GPT-2");
  const int64_t width = size(keys, "width"), layers = blocks(keys, "layers"), vocab = size(keys, "vocab");
  const bool tied = keys.boolean("tied_head", false), relu = keys.string("mlp_activation", "gelu") == "relu";
  BackTranslation back{with_type("gpt2", "GPT2LMHeadModel"), rules_of(GPT2, layers, tied)};
  back.config.set("vocab_size", vocab).set("n_positions", size(keys, "context")).set("n_embd", width);
  back.config.set("n_layer", layers).set("n_head", size(keys, "heads")).set("n_inner", size(keys, "hidden"));
  back.config.set("activation_function", relu ? "relu" : keys.string("gelu") == "tanh" ? "gelu_new" : "gelu");
  back.config.set("layer_norm_epsilon", keys.number("norm_epsilon", 0, 1, 1e-5)).set("tie_word_embeddings", tied);
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) back.config.set(key, 0);
  return back;
}

}  // namespace

BackTranslation translate_back(const std::string& model, const Json& config, const std::string& origin) {
  ConfigReader keys(origin + ": config", config);
  if (model == "mamba") return mamba_back(keys);
  if (model == "transformer") return gpt2_back(keys, config);
  throw Error(origin + ": a " + model + ", which transformers does not have; expected a transformer or mamba");
}

void check_llm_c(const std::string& model, const Json& config, const std::string& origin) {
  if (model != "transformer")
    throw Error(origin + ": a " + model + ", which llm.c does not have; expected a transformer");
  ConfigReader keys(origin + ": config", config);
  check_gpt2(keys, config, "llm.c");
  if (!is_tied(config)) keys.fail("tied_head false cannot be expressed by llm.c, which has true");
  check_only(keys, config, "llm.c", literal(R"({"mlp_activation": "gelu", "gelu": "tanh", "norm_epsilon": 1e-5})"));
  check_only(keys, config, "llm.c", Json::object().set("hidden", 4 * size(keys, "width")));
}

}  // namespace petroglyph
