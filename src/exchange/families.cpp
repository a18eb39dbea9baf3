#include "exchange/families.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"

namespace petroglyph {

namespace {

using Form = Rule::Form;
constexpr int64_t MOST = 1 << 24;
// Each block has its own rules, which are made before the file's tensors are checked.
constexpr int64_t MOST_LAYERS = 1 << 10;

// ---- The table of model types ---------------------------------------------------------------------------------------

// `ours` is Petroglyph's name of a parameter; `theirs` is Hugging Face's, or several names separated by spaces. A '*'
// at the beginning is the block's prefix: "blocks.N." in `ours`, Family::block in `theirs`. A name that ends in '.'
// means two parameters, its "weight" and its "bias".
struct Row {
  std::string ours, theirs;
  Form form = Form::SAME;
  int64_t skipped = 0;
};

// What config.json and the tensors of a model type mean.
struct Family {
  const char* type;
  const char* sizes;      // "OURS=THEIRS …"; A|B: the first that the file has; nothing: a default (default_of())
  const char* fixed;      // of Petroglyph's configuration: what this type always has, beside TRANSFORMER
  const char* only;       // of config.json: keys with the only value that can be expressed (check_only())
  std::string block;      // of Hugging Face's names; '#' is the block's number
  std::vector<Row> rows;  // the first is the embedding
  const char* activation = "";  // "KEY DEFAULT", unless it is fixed
  bool biases_may_lack = false;
};

// What transformers have, unless Family::fixed has another value.
constexpr const char* TRANSFORMER = R"({"causal": true, "position": "learned", "norm": "affine", "qkv_bias": true,
                                        "out_bias": true, "gelu": "tanh", "readout": "all"})";

const Family GPT2 = {
    "gpt2",
    "vocab=vocab_size context=n_positions width=n_embd hidden=n_inner layers=n_layer heads=n_head",
    "{}",
    R"({"scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false, "add_cross_attention": false})",
    "transformer.h.#.",
    {{"token_embedding.weight", "transformer.wte.weight"},
     {"position_embedding.weight", "transformer.wpe.weight"},
     {"*norm_1.", "*ln_1."},
     {"*attention.qkv.", "*attn.c_attn.", Form::TRANSPOSED},
     {"*attention.out.", "*attn.c_proj.", Form::TRANSPOSED},
     {"*norm_2.", "*ln_2."},
     {"*mlp.up.", "*mlp.c_fc.", Form::TRANSPOSED},
     {"*mlp.down.", "*mlp.c_proj.", Form::TRANSPOSED},
     {"final_norm.", "transformer.ln_f."},
     {"head.weight", "lm_head.weight"}},
    "activation_function gelu_new"};

const Family OPT = {"opt",
                    "vocab=vocab_size context=max_position_embeddings width=hidden_size hidden=ffn_dim "
                    "layers=num_hidden_layers heads=num_attention_heads",
                    "{}",
                    R"({"enable_bias": true, "layer_norm_elementwise_affine": true, "do_layer_norm_before": true,
        "_remove_final_layer_norm": false})",
                    "model.decoder.layers.#.",
                    {{"token_embedding.weight", "model.decoder.embed_tokens.weight"},
                     {"position_embedding.weight", "model.decoder.embed_positions.weight", Form::SAME, 2},
                     {"*norm_1.", "*self_attn_layer_norm."},
                     {"*attention.qkv.", "*self_attn.q_proj. *self_attn.k_proj. *self_attn.v_proj."},
                     {"*attention.out.", "*self_attn.out_proj."},
                     {"*norm_2.", "*final_layer_norm."},
                     {"*mlp.up.", "*fc1."},
                     {"*mlp.down.", "*fc2."},
                     {"final_norm.", "model.decoder.final_layer_norm."},
                     {"head.weight", "lm_head.weight"}},
                    "activation_function relu"};

const Family MPT = {
    "mpt",
    "vocab=vocab_size context=max_seq_len width=d_model hidden= layers=n_layers heads=n_heads",
    R"({"position": "alibi", "slopes": "published", "gelu": "erf", "qkv_bias": false, "out_bias": false})",
    R"({"no_bias": true, "logit_scale": null, "expansion_ratio": 4,
        "attn_config": {"alibi": true, "qk_ln": false, "prefix_lm": false, "clip_qkv": null, "softmax_scale": null,
                        "alibi_bias_max": 8}})",
    "transformer.blocks.#.",
    {{"token_embedding.weight", "transformer.wte.weight"},
     {"*norm_1.", "*norm_1."},
     {"*attention.qkv.weight", "*attn.Wqkv.weight"},
     {"*attention.out.weight", "*attn.out_proj.weight"},
     {"*norm_2.", "*norm_2."},
     {"*mlp.up.", "*ffn.up_proj."},
     {"*mlp.down.", "*ffn.down_proj."},
     {"final_norm.", "transformer.norm_f."},
     {"head.weight", "lm_head.weight"}},
    "",
    true};

const Family BLOOM = {"bloom",
                      "vocab=vocab_size context=seq_length width=n_embed|hidden_size hidden= "
                      "layers=n_layer|num_hidden_layers heads=n_head|num_attention_heads",
                      R"({"position": "alibi", "slopes": "published", "embedding_norm": true})",
                      R"({"apply_residual_connection_post_layernorm": false})",
                      "transformer.h.#.",
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

const Family MAMBA = {
    "mamba",
    "vocab=vocab_size context= width=hidden_size layers=num_hidden_layers state=state_size conv=conv_kernel "
    "expand=expand dt_rank=time_step_rank",
    "{}",
    R"({"hidden_act": "silu", "use_bias": false, "use_conv_bias": true, "use_mambapy": false})",
    "backbone.layers.#.",
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

const Family VIT = {
    "vit",
    "width=hidden_size hidden=intermediate_size layers=num_hidden_layers heads=num_attention_heads",
    R"({"causal": false, "gelu": "erf", "readout": "last", "head_bias": true})",
    R"({"num_channels": 3, "qkv_bias": true})",
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
     {"head.", "classifier."}},
    "hidden_act gelu"};

const Family* const FAMILIES[] = {&GPT2, &MAMBA, &OPT, &MPT, &BLOOM, &VIT};

// ---- Tensors --------------------------------------------------------------------------------------------------------

// The name of one parameter, "weight" or "bias", in block `layer`.
std::string full_name(std::string name, std::string block, int64_t layer, const std::string& kind) {
  if (const size_t number = block.find('#'); number != std::string::npos)
    block.replace(number, 1, std::to_string(layer));
  if (name[0] == '*') name.replace(0, 1, block);
  return name.back() == '.' ? name + kind : name;
}

// A model with tied embeddings has no head.
std::vector<Rule> rules_of(const Family& family, int64_t layers, bool is_tied) {
  std::vector<Rule> rules;
  const auto add = [&](const Row& row, int64_t layer, const std::string& kind) {
    Rule rule{full_name(row.ours, "blocks.#.", layer, kind), {}, row.form, row.skipped};
    for (const std::string& name : split(row.theirs, ' '))
      rule.theirs.push_back(full_name(name, family.block, layer, kind));
    if (kind == "bias" && row.form == Form::TRANSPOSED) rule.form = Form::SAME;
    rule.may_lack = kind == "bias" && family.biases_may_lack;
    if (!is_tied || rule.ours != "head.weight") rules.push_back(rule);
  };
  for (const Row& row : family.rows)
    for (int64_t layer = 0; layer < (row.ours[0] == '*' ? layers : 1); ++layer) {
      add(row, layer, "weight");
      if (row.ours.back() == '.') add(row, layer, "bias");
    }
  return rules;
}

// ---- The keys of config.json ----------------------------------------------------------------------------------------

Json literal(const char* words) { return Json::parse(words, ""); }

// A configuration with the members of `words`, a JSON object, in addition.
Json with(Json config, const char* words) {
  const Json more = literal(words);
  for (const auto& [key, value] : more.members()) config.set(key, value);
  return config;
}

bool is_given(const Json* value) { return value && !value->is(Json::Kind::Null); }

// `only`: the only value of these keys that can be expressed. A key that is absent or null has this value.
void check_only(const ConfigReader& keys, const Json& config, const std::string& who, const Json& only) {
  for (const auto& [key, value] : only.members()) {
    const Json* found = config.find(key);
    if (!is_given(found) || *found == value) continue;
    if (!found->is(Json::Kind::Object) || !value.is(Json::Kind::Object))
      keys.fail(key + " " + found->text().substr(0, 60) + " cannot be expressed by " + who + ", which has " +
                value.text());
    check_only(keys, *found, who, value);
  }
}

// A size without its key; none: the key is required. config: Petroglyph's, with the sizes before this one
std::optional<int64_t> default_of(const std::string& size, const Json& config) {
  if (size == "hidden") return 4 * config.at("width").integer();
  if (size == "dt_rank") return (config.at("width").integer() + 15) / 16;
  for (const auto& [name, value] : {std::pair("context", 2048), {"state", 16}, {"conv", 4}, {"expand", 2}})
    if (size == name) return value;
  return {};
}

void set_sizes(ConfigReader& keys, const Json& json, const Family& family, Json& config) {
  for (const std::string& pair : split(family.sizes, ' ')) {
    const std::string ours = pair.substr(0, pair.find('='));
    const std::vector<std::string> names = split(pair.substr(ours.size() + 1), '|');
    const auto name = std::find_if(names.begin(), names.end() - 1,
                                   [&](const std::string& name) { return is_given(json.find(name)); });
    const std::optional<int64_t> otherwise = default_of(ours, config);
    const Json* found = json.find(*name);
    const bool is_auto = otherwise && found && *found == Json("auto");  // Mamba's time_step_rank
    config.set(ours, is_auto ? *otherwise : keys.integer(*name, 1, ours == "layers" ? MOST_LAYERS : MOST, otherwise));
  }
}

void set_activation(ConfigReader& keys, const std::string& key, const std::string& otherwise, Json& config) {
  const std::string word = keys.string(key, otherwise);
  const bool tanh = word == "gelu_new" || word == "gelu_pytorch_tanh" || word == "gelu_fast";
  if (!tanh && word != "gelu" && word != "relu")
    keys.fail(key + " \"" + word + "\" cannot be expressed: our transformer has gelu, gelu_new and relu");
  config.set("gelu", tanh ? "tanh" : "erf");
  if (word == "relu") config.set("mlp_activation", "relu");
}

bool is_tied(const Json& config) {
  const Json* tied = config.find("tied_head");
  return tied && tied->boolean();
}

// The patches and the classes of an image model; its class names by class number: {"0": "tench", …}.
void set_images(ConfigReader& keys, Translation& t) {
  const int64_t side = keys.integer("patch_size", 1, MOST), across = keys.integer("image_size", 1, MOST) / side;
  const Json names = keys.object("id2label");
  t.classes = Json::array();
  for (size_t i = 0; i < names.members().size(); ++i) {
    const Json* name = names.find(std::to_string(i));
    if (!name || !name->is(Json::Kind::String)) keys.fail("id2label has no name of class " + std::to_string(i));
    t.classes.push(*name);
  }
  t.config.set("patches", across * across).set("patch_size", 3 * side * side);
  t.config.set("classes", t.classes.items().size());
  t.notes.push_back("its images are normalized here as CIFAR-10's are, whatever its own preprocessor does");
}

}  // namespace

Json transformer_config(int64_t vocab, int64_t context, int64_t width, int64_t hidden, int64_t layers, int64_t heads) {
  Json config = Json::object();
  config.set("vocab", vocab).set("context", context).set("width", width).set("hidden", hidden).set("layers", layers);
  config.set("heads", heads);
  return with(config, TRANSFORMER);
}

Translation translate(const Json& config, const std::string& origin) {
  ConfigReader keys(origin, config);
  const std::string type = keys.string("model_type");
  std::vector<std::string> known;
  for (const Family* family : FAMILIES) known.push_back(family->type);
  const auto found = std::find(known.begin(), known.end(), type);
  if (found == known.end())
    keys.fail("model_type \"" + type +
              "\" cannot be expressed by any of our models; those that can: " + join(known, ", "));
  const Family& family = *FAMILIES[found - known.begin()];
  Translation t{type == "mamba" ? "mamba" : "transformer", Json::object(), {}, {}};
  const bool of_images = type == "vit";
  if (of_images) set_images(keys, t);
  set_sizes(keys, config, family, t.config);
  if (t.model == "transformer") t.config = with(t.config, TRANSFORMER);
  t.config = with(t.config, family.fixed);
  const std::vector<std::string> activation = split(family.activation, ' ');
  if (activation.size() > 1) set_activation(keys, activation[0], activation[1], t.config);
  const double usual = of_images ? 1e-12 : 1e-5;
  const double epsilon = keys.number(of_images ? "layer_norm_eps" : "layer_norm_epsilon", 0, 1, usual);
  if (epsilon != 1e-5) t.config.set("norm_epsilon", epsilon);
  if (!of_images && keys.boolean("tie_word_embeddings", true)) t.config.set("tied_head", true);
  check_only(keys, config, "our " + t.model, literal(family.only));
  t.rules = rules_of(family, t.config.at("layers").integer(), is_tied(t.config));
  return t;
}

// ---- From Petroglyph to Hugging Face --------------------------------------------------------------------------------

namespace {

// The properties that all forms of GPT-2 share. who: the format's name for error messages
void check_gpt2(ConfigReader& keys, const Json& config, const std::string& who) {
  check_only(keys, config, who, literal(R"({"position": "learned", "norm": "affine", "norm_position": "pre",
                                            "readout": "all", "causal": true, "qkv_bias": true, "out_bias": true,
                                            "head_bias": false, "embedding_norm": false, "embedding_scale": 1})"));
  check_only(keys, config, who, Json::object().set("classes", keys.integer("vocab", 1, MOST)));
}

}  // namespace

BackTranslation translate_back(const std::string& model, const Json& config, const std::string& origin) {
  ConfigReader keys(origin + ": config", config);
  if (model != "mamba" && model != "transformer")
    throw Error(origin + ": a " + model + ", which transformers does not have; expected a transformer or mamba");
  const bool is_gpt2 = model == "transformer";
  const Family& family = is_gpt2 ? GPT2 : MAMBA;
  if (is_gpt2) check_gpt2(keys, config, "GPT-2");
  const bool tied = is_tied(config);
  BackTranslation back{literal(family.only), rules_of(family, keys.integer("layers", 1, MOST_LAYERS), tied)};
  back.config.set("model_type", family.type)
      .set("architectures", Json::array().push(is_gpt2 ? "GPT2LMHeadModel" : "MambaForCausalLM"));
  back.config.set("dtype", "float32").set("tie_word_embeddings", tied);
  back.config.set("layer_norm_epsilon", keys.number("norm_epsilon", 0, 1, 1e-5));
  for (const std::string& pair : split(family.sizes, ' ')) {
    const std::string ours = pair.substr(0, pair.find('='));
    if (ours.size() + 1 < pair.size()) back.config.set(pair.substr(ours.size() + 1), keys.integer(ours, 1, MOST));
  }
  if (!is_gpt2) {
    back.config.set("intermediate_size", keys.integer("expand", 1, MOST) * keys.integer("width", 1, MOST));
    return back;
  }
  const bool relu = keys.string("mlp_activation", "gelu") == "relu";
  back.config.set("activation_function", relu ? "relu" : keys.string("gelu") == "tanh" ? "gelu_new" : "gelu");
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) back.config.set(key, 0);
  return back;
}

void check_llm_c(const std::string& model, const Json& config, const std::string& origin) {
  if (model != "transformer")
    throw Error(origin + ": a " + model + ", which llm.c does not have; expected a transformer");
  ConfigReader keys(origin + ": config", config);
  check_gpt2(keys, config, "llm.c");
  if (!is_tied(config)) keys.fail("tied_head false cannot be expressed by llm.c, which has true");
  check_only(keys, config, "llm.c", literal(R"({"mlp_activation": "gelu", "gelu": "tanh", "norm_epsilon": 1e-5})"));
  check_only(keys, config, "llm.c", Json::object().set("hidden", 4 * keys.integer("width", 1, MOST)));
}

}  // namespace petroglyph
