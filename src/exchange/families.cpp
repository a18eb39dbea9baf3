#include "exchange/families.h"

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"

namespace petroglyph {

namespace {

using Form = Rule::Form;
constexpr int64_t MOST = 1 << 24;

int64_t size(ConfigReader& keys, const std::string& key) { return keys.integer(key, 1, MOST); }
// Each has rules of its own, which are made before the file's tensors are looked at.
int64_t blocks(ConfigReader& keys, const std::string& key) { return keys.integer(key, 1, 1 << 10); }

// Throws unless the key has this value, or is not there.
void only(ConfigReader& keys, const std::string& key, bool value, const std::string& why) {
  if (keys.boolean(key, value) != value) keys.fail(key + (value ? " false" : " true") + " cannot be expressed: " + why);
}

void activation(ConfigReader& keys, const std::string& key, const std::string& otherwise, Json& config) {
  const std::string word = keys.string(key, otherwise);
  const bool tanh = word == "gelu_new" || word == "gelu_pytorch_tanh" || word == "gelu_fast";
  if (!tanh && word != "gelu" && word != "relu")
    keys.fail(key + " \"" + word + "\" cannot be expressed: our transformer has gelu, gelu_new and relu");
  config.set("gelu", tanh ? "tanh" : "erf");
  if (word == "relu") config.set("mlp_activation", "relu");
}

// Keys that all of them have under one name or another.
void common(ConfigReader& keys, Json& config, const std::string& epsilon_key, double epsilon, bool tied) {
  const double found = keys.number(epsilon_key, 0, 1, epsilon);
  if (found != 1e-5) config.set("norm_epsilon", found);
  if (keys.boolean("tie_word_embeddings", tied)) config.set("tied_head", true);
}

void note_dropout(ConfigReader& keys, const std::vector<std::string>& names, std::vector<std::string>& notes) {
  for (const std::string& name : names)
    if (const double part = keys.number(name, 0, 1, 0); part > 0) {
      notes.push_back(name + " " + exact_text(part) +
                      ": our training has no dropout; what the model says is the same");
      return;
    }
}

bool is_tied(const Json& config) { return config.find("tied_head") != nullptr; }

void add_head(std::vector<Rule>& rules, bool tied) {
  if (!tied) rules.push_back({"head.weight", {"lm_head.weight"}});
}

// Both parameters of a layer, of theirs under one or several names.
void add_pair(std::vector<Rule>& rules, const std::string& ours, const std::vector<std::string>& theirs,
              Form form = Form::SAME, bool may_lack = false) {
  for (const std::string kind : {"weight", "bias"}) {
    Rule rule{ours + "." + kind, theirs};
    for (std::string& name : rule.theirs) name += "." + kind;
    rule.form = form == Form::TRANSPOSED && kind == "bias" ? Form::SAME : form;
    rule.may_lack = may_lack && kind == "bias";
    rules.push_back(rule);
  }
}

// ---- GPT-2, OpenAI's first GPT ----------------------------------------------------------------------------------------

std::vector<Rule> gpt2_rules(int64_t layers, bool tied) {
  const std::string h = "transformer.h.*.";
  std::vector<Rule> rules = {{"token_embedding.weight", {"transformer.wte.weight"}},
                             {"position_embedding.weight", {"transformer.wpe.weight"}}};
  add_pair(rules, "blocks.*.norm_1", {h + "ln_1"});
  add_pair(rules, "blocks.*.attention.qkv", {h + "attn.c_attn"}, Form::TRANSPOSED);
  add_pair(rules, "blocks.*.attention.out", {h + "attn.c_proj"}, Form::TRANSPOSED);
  add_pair(rules, "blocks.*.norm_2", {h + "ln_2"});
  add_pair(rules, "blocks.*.mlp.up", {h + "mlp.c_fc"}, Form::TRANSPOSED);
  add_pair(rules, "blocks.*.mlp.down", {h + "mlp.c_proj"}, Form::TRANSPOSED);
  add_pair(rules, "final_norm", {"transformer.ln_f"});
  add_head(rules, tied);
  return for_blocks(rules, layers);
}

Translation gpt2(ConfigReader& keys) {
  Translation t{"transformer", Json(), {}, {}};
  const int64_t width = size(keys, "n_embd"), layers = blocks(keys, "n_layer");
  t.config = transformer_config(size(keys, "vocab_size"), size(keys, "n_positions"), width,
                                keys.integer("n_inner", 1, MOST, 4 * width), layers, size(keys, "n_head"));
  activation(keys, "activation_function", "gelu_new", t.config);
  common(keys, t.config, "layer_norm_epsilon", 1e-5, true);
  only(keys, "scale_attn_weights", true, "our attention divides its scores by the root of a head's width");
  only(keys, "scale_attn_by_inverse_layer_idx", false, "our attention has one scale for all blocks");
  only(keys, "add_cross_attention", false, "our transformer reads one sequence");
  note_dropout(keys, {"resid_pdrop", "embd_pdrop", "attn_pdrop"}, t.notes);
  t.rules = gpt2_rules(layers, is_tied(t.config));
  return t;
}

Translation openai_gpt(ConfigReader& keys) {
  Translation t{"transformer", Json(), {}, {}};
  const int64_t width = size(keys, "n_embd"), layers = blocks(keys, "n_layer");
  t.config = transformer_config(size(keys, "vocab_size"), size(keys, "n_positions"), width, 4 * width, layers,
                                size(keys, "n_head"));
  const std::string word = keys.choice("afn", {"gelu", "relu"}, "gelu");  // its gelu is what others call gelu_new
  t.config.set("gelu", "tanh").set("norm_position", "post");
  if (word == "relu") t.config.set("mlp_activation", "relu");
  common(keys, t.config, "layer_norm_epsilon", 1e-5, true);
  note_dropout(keys, {"resid_pdrop", "embd_pdrop", "attn_pdrop"}, t.notes);
  std::vector<Rule> rules = {{"token_embedding.weight", {"transformer.tokens_embed.weight"}},
                             {"position_embedding.weight", {"transformer.positions_embed.weight"}}};
  const std::string h = "transformer.h.*.";
  add_pair(rules, "blocks.*.attention.qkv", {h + "attn.c_attn"}, Form::TRANSPOSED);
  add_pair(rules, "blocks.*.attention.out", {h + "attn.c_proj"}, Form::TRANSPOSED);
  add_pair(rules, "blocks.*.norm_1", {h + "ln_1"});
  add_pair(rules, "blocks.*.mlp.up", {h + "mlp.c_fc"}, Form::TRANSPOSED);
  add_pair(rules, "blocks.*.mlp.down", {h + "mlp.c_proj"}, Form::TRANSPOSED);
  add_pair(rules, "blocks.*.norm_2", {h + "ln_2"});
  add_head(rules, is_tied(t.config));
  t.rules = for_blocks(rules, layers);
  return t;
}

// ---- OPT --------------------------------------------------------------------------------------------------------------

Translation opt(ConfigReader& keys) {
  Translation t{"transformer", Json(), {}, {}};
  const int64_t width = size(keys, "hidden_size"), layers = blocks(keys, "num_hidden_layers");
  t.config = transformer_config(size(keys, "vocab_size"), size(keys, "max_position_embeddings"), width,
                                size(keys, "ffn_dim"), layers, size(keys, "num_attention_heads"));
  activation(keys, "activation_function", "relu", t.config);
  common(keys, t.config, "layer_norm_epsilon", 1e-5, true);
  if (keys.integer("word_embed_proj_dim", 1, MOST, width) != width)
    keys.fail("word_embed_proj_dim: embeddings of another width than the model's cannot be expressed");
  only(keys, "enable_bias", true, "the MLPs of our transformer have biases");
  only(keys, "layer_norm_elementwise_affine", true, "norms with and without a gain differ in our transformer's ε");
  only(keys, "_remove_final_layer_norm", false, "our transformer ends in a norm");
  const bool pre = keys.boolean("do_layer_norm_before", true);
  if (!pre) t.config.set("norm_position", "post");
  note_dropout(keys, {"dropout", "attention_dropout"}, t.notes);
  std::vector<Rule> rules = {{"token_embedding.weight", {"model.decoder.embed_tokens.weight"}}};
  rules.push_back({"position_embedding.weight", {"model.decoder.embed_positions.weight"}, Form::SAME, 2});
  const std::string h = "model.decoder.layers.*.";
  add_pair(rules, "blocks.*.norm_1", {h + "self_attn_layer_norm"});
  add_pair(rules, "blocks.*.attention.qkv", {h + "self_attn.q_proj", h + "self_attn.k_proj", h + "self_attn.v_proj"});
  add_pair(rules, "blocks.*.attention.out", {h + "self_attn.out_proj"});
  add_pair(rules, "blocks.*.norm_2", {h + "final_layer_norm"});
  add_pair(rules, "blocks.*.mlp.up", {h + "fc1"});
  add_pair(rules, "blocks.*.mlp.down", {h + "fc2"});
  if (pre) add_pair(rules, "final_norm", {"model.decoder.final_layer_norm"});
  add_head(rules, is_tied(t.config));
  t.rules = for_blocks(rules, layers);
  return t;
}

// ---- MPT, BLOOM: ALiBi ------------------------------------------------------------------------------------------------

Translation mpt(ConfigReader& keys) {
  Translation t{"transformer", Json(), {}, {}};
  const int64_t width = size(keys, "d_model"), layers = blocks(keys, "n_layers");
  t.config = transformer_config(size(keys, "vocab_size"), size(keys, "max_seq_len"), width,
                                keys.integer("expansion_ratio", 1, 1 << 10, 4) * width, layers, size(keys, "n_heads"));
  t.config.set("position", "alibi").set("slopes", "published").set("gelu", "erf");
  t.config.set("qkv_bias", false).set("out_bias", false);
  common(keys, t.config, "layer_norm_epsilon", 1e-5, true);
  only(keys, "no_bias", true, "MPT has its MLPs' biases and its attention's at once or not at all");
  if (keys.string("logit_scale", "").size() > 0) keys.fail("logit_scale cannot be expressed: our logits have no factor");
  if (keys.has("attn_config")) {
    ConfigReader attention(keys.owner() + ": attn_config", keys.object("attn_config"));
    only(attention, "alibi", true, "positions of MPT are told by ALiBi alone");
    only(attention, "qk_ln", false, "our attention normalizes no queries and keys");
    only(attention, "prefix_lm", false, "our transformer is causal all through");
    if (attention.number("clip_qkv", 0, 1e9, 0) > 0) attention.fail("clip_qkv cannot be expressed: nothing is clipped");
    if (attention.number("softmax_scale", 0, 1e9, 0) != 0) attention.fail("softmax_scale: ours is 1 / √n");
    if (attention.number("alibi_bias_max", 0, 1e9, 8) != 8) attention.fail("alibi_bias_max: ours is 8");
    note_dropout(attention, {"attn_pdrop"}, t.notes);
  }
  std::vector<Rule> rules = {{"token_embedding.weight", {"transformer.wte.weight"}}};
  const std::string h = "transformer.blocks.*.";
  add_pair(rules, "blocks.*.norm_1", {h + "norm_1"}, Form::SAME, true);
  rules.push_back({"blocks.*.attention.qkv.weight", {h + "attn.Wqkv.weight"}});
  rules.push_back({"blocks.*.attention.out.weight", {h + "attn.out_proj.weight"}});
  add_pair(rules, "blocks.*.norm_2", {h + "norm_2"}, Form::SAME, true);
  add_pair(rules, "blocks.*.mlp.up", {h + "ffn.up_proj"}, Form::SAME, true);
  add_pair(rules, "blocks.*.mlp.down", {h + "ffn.down_proj"}, Form::SAME, true);
  add_pair(rules, "final_norm", {"transformer.norm_f"}, Form::SAME, true);
  add_head(rules, is_tied(t.config));
  t.rules = for_blocks(rules, layers);
  return t;
}

Translation bloom(ConfigReader& keys) {
  Translation t{"transformer", Json(), {}, {}};
  const std::string heads = keys.has("n_head") ? "n_head" : "num_attention_heads";
  const std::string depth = keys.has("n_layer") ? "n_layer" : "num_hidden_layers";
  const int64_t older = keys.integer("n_embed", 1, MOST, 0);  // its first name, which counts where both are there
  const int64_t width = older > 0 ? older : size(keys, "hidden_size"), layers = blocks(keys, depth);
  t.config = transformer_config(size(keys, "vocab_size"), keys.integer("seq_length", 1, MOST, 2048), width, 4 * width,
                                layers, size(keys, heads));
  t.config.set("position", "alibi").set("slopes", "published").set("gelu", "tanh").set("embedding_norm", true);
  common(keys, t.config, "layer_norm_epsilon", 1e-5, true);
  only(keys, "apply_residual_connection_post_layernorm", false, "the residual connection of ours begins before a norm");
  note_dropout(keys, {"hidden_dropout", "attention_dropout"}, t.notes);
  std::vector<Rule> rules = {{"token_embedding.weight", {"transformer.word_embeddings.weight"}}};
  const std::string h = "transformer.h.*.";
  add_pair(rules, "embedding_norm", {"transformer.word_embeddings_layernorm"});
  add_pair(rules, "blocks.*.norm_1", {h + "input_layernorm"});
  add_pair(rules, "blocks.*.attention.qkv", {h + "self_attention.query_key_value"}, Form::INTERLEAVED);
  add_pair(rules, "blocks.*.attention.out", {h + "self_attention.dense"});
  add_pair(rules, "blocks.*.norm_2", {h + "post_attention_layernorm"});
  add_pair(rules, "blocks.*.mlp.up", {h + "mlp.dense_h_to_4h"});
  add_pair(rules, "blocks.*.mlp.down", {h + "mlp.dense_4h_to_h"});
  add_pair(rules, "final_norm", {"transformer.ln_f"});
  add_head(rules, is_tied(t.config));
  t.rules = for_blocks(rules, layers);
  return t;
}

// ---- Mamba ------------------------------------------------------------------------------------------------------------

std::vector<Rule> mamba_rules(int64_t layers, bool tied) {
  const std::string h = "backbone.layers.*.", m = h + "mixer.";
  std::vector<Rule> rules = {{"token_embedding.weight", {"backbone.embeddings.weight"}},
                             {"blocks.*.norm.weight", {h + "norm.weight"}},
                             {"blocks.*.conv.weight", {m + "conv1d.weight"}, Form::TAPS},
                             {"blocks.*.conv.bias", {m + "conv1d.bias"}},
                             {"final_norm.weight", {"backbone.norm_f.weight"}}};
  for (const char* name :
       {"in_proj.weight", "x_proj.weight", "dt_proj.weight", "dt_proj.bias", "A_log", "D", "out_proj.weight"})
    rules.push_back({std::string("blocks.*.") + name, {m + name}});
  add_head(rules, tied);
  return for_blocks(rules, layers);
}

Translation mamba(ConfigReader& keys) {
  Translation t{"mamba", Json::object(), {}, {}};
  const int64_t width = size(keys, "hidden_size"), layers = blocks(keys, "num_hidden_layers");
  const int64_t expand = keys.integer("expand", 1, 64, 2);
  if (keys.integer("intermediate_size", 1, MOST, expand * width) != expand * width)
    keys.fail("intermediate_size: expected expand times hidden_size");
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
  common(keys, t.config, "layer_norm_epsilon", 1e-5, true);
  keys.choice("hidden_act", {"silu"}, "silu");
  only(keys, "use_bias", false, "our projections in and out have none");
  only(keys, "use_conv_bias", true, "our convolution has one");
  only(keys, "use_mambapy", false, "it would compute another recurrence");
  t.rules = mamba_rules(layers, is_tied(t.config));
  return t;
}

// ---- ViT --------------------------------------------------------------------------------------------------------------

// The names of the classes by their numbers: {"0": "tench", …}.
Json class_names(ConfigReader& keys, int64_t& count) {
  Json names = Json::array();
  const Json list = keys.object("id2label");
  count = static_cast<int64_t>(list.members().size());
  for (int64_t i = 0; i < count; ++i) {
    const Json* name = list.find(std::to_string(i));
    if (!name) keys.fail("id2label has no class " + std::to_string(i));
    if (!name->is(Json::Kind::String))
      keys.fail("id2label: class " + std::to_string(i) + ": expected a string, found " + name_of(name->kind()));
    names.push(name->string());
  }
  return names;
}

Translation vit(ConfigReader& keys) {
  Translation t{"transformer", Json::object(), {}, {}};
  const int64_t side = size(keys, "patch_size"), across = size(keys, "image_size") / side;
  const int64_t layers = blocks(keys, "num_hidden_layers");
  if (keys.integer("num_channels", 1, MOST, 3) != 3) keys.fail("num_channels: our images have 3");
  int64_t classes = 0;
  t.classes = class_names(keys, classes);
  t.config.set("patches", across * across).set("patch_size", 3 * side * side).set("classes", classes);
  t.config.set("width", size(keys, "hidden_size")).set("hidden", size(keys, "intermediate_size")).set("layers", layers);
  t.config.set("heads", size(keys, "num_attention_heads")).set("causal", false).set("position", "learned");
  t.config.set("norm", "affine").set("qkv_bias", keys.boolean("qkv_bias", true)).set("out_bias", true);
  t.config.set("readout", "last")
      .set("head_bias", true)
      .set("norm_epsilon", keys.number("layer_norm_eps", 0, 1, 1e-12));
  if (keys.choice("hidden_act", {"gelu", "gelu_new", "gelu_pytorch_tanh"}, "gelu") == "gelu")
    t.config.set("gelu", "erf");
  else
    t.config.set("gelu", "tanh");
  note_dropout(keys, {"hidden_dropout_prob", "attention_probs_dropout_prob"}, t.notes);
  t.notes.push_back("its images are normalized here as CIFAR-10's are, whatever its own preprocessor does");
  const std::string v = "vit.embeddings.", h = "vit.encoder.layer.*.", a = h + "attention.attention.";
  std::vector<Rule> rules = {{"patch_embedding.weight", {v + "patch_embeddings.projection.weight"}, Form::PIXELS},
                             {"cls_token", {v + "cls_token"}, Form::FLAT},
                             {"position_embedding.weight",
                              {v + "position_embeddings", v + "patch_embeddings.projection.bias"},
                              Form::ANSWER_LAST}};
  add_pair(rules, "blocks.*.norm_1", {h + "layernorm_before"});
  add_pair(rules, "blocks.*.attention.qkv", {a + "query", a + "key", a + "value"});
  if (!t.config.at("qkv_bias").boolean()) rules.pop_back();
  add_pair(rules, "blocks.*.attention.out", {h + "attention.output.dense"});
  add_pair(rules, "blocks.*.norm_2", {h + "layernorm_after"});
  add_pair(rules, "blocks.*.mlp.up", {h + "intermediate.dense"});
  add_pair(rules, "blocks.*.mlp.down", {h + "output.dense"});
  add_pair(rules, "final_norm", {"vit.layernorm"});
  add_pair(rules, "head", {"classifier"});
  t.rules = for_blocks(rules, layers);
  return t;
}

struct Family {
  const char* type;
  Translation (*translate)(ConfigReader& keys);
};

constexpr Family FAMILIES[] = {{"gpt2", gpt2}, {"mamba", mamba},           {"opt", opt},
                               {"mpt", mpt},   {"openai-gpt", openai_gpt}, {"bloom", bloom},
                               {"vit", vit}};

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
    if (type == family.type) return family.translate(keys);
    known.push_back(family.type);
  }
  keys.fail("model_type \"" + type + "\" cannot be expressed by any of our models; those that can: " + join(known, ", "));
}

// ---- Back -------------------------------------------------------------------------------------------------------------

namespace {

Json with_type(const char* type, const char* architecture) {
  Json json = Json::object();
  json.set("model_type", type).set("architectures", Json::array().push(architecture)).set("dtype", "float32");
  return json;
}

BackTranslation mamba_back(ConfigReader& keys) {
  const int64_t width = size(keys, "width"), layers = blocks(keys, "layers"), expand = size(keys, "expand");
  const bool tied = keys.boolean("tied_head", false);
  BackTranslation back{with_type("mamba", "MambaForCausalLM"), mamba_rules(layers, tied)};
  back.config.set("vocab_size", size(keys, "vocab")).set("hidden_size", width).set("num_hidden_layers", layers);
  back.config.set("state_size", size(keys, "state")).set("conv_kernel", size(keys, "conv")).set("expand", expand);
  back.config.set("intermediate_size", expand * width).set("time_step_rank", size(keys, "dt_rank"));
  back.config.set("layer_norm_epsilon", keys.number("norm_epsilon", 0, 1, 1e-5)).set("tie_word_embeddings", tied);
  return back.config.set("use_bias", false).set("use_conv_bias", true).set("hidden_act", "silu"), back;
}

void must(ConfigReader& keys, const std::string& who, const std::string& key, const std::string& value) {
  if (const std::string found = keys.string(key, value); found != value)
    keys.fail(key + " \"" + found + "\" cannot be expressed by " + who + ", which has \"" + value + "\"");
}

// What GPT-2 is in all its forms. who: the one that complaints name
void check_gpt2(ConfigReader& keys, const std::string& who) {
  must(keys, who, "position", "learned");
  must(keys, who, "norm", "affine");
  must(keys, who, "norm_position", "pre");
  must(keys, who, "readout", "all");
  for (const char* key : {"causal", "qkv_bias", "out_bias"}) only(keys, key, true, who + " has it");
  for (const char* key : {"head_bias", "embedding_norm"}) only(keys, key, false, who + " has none");
  if (keys.number("embedding_scale", -1e6, 1e6, 1) != 1)
    keys.fail("embedding_scale cannot be expressed by " + who + ": it has 1");
  const int64_t vocab = size(keys, "vocab");
  if (keys.integer("classes", 1, MOST, vocab) != vocab) keys.fail("classes: " + who + " answers with tokens");
}

BackTranslation gpt2_back(ConfigReader& keys) {
  check_gpt2(keys, "GPT-2");
  const int64_t width = size(keys, "width"), layers = blocks(keys, "layers"), vocab = size(keys, "vocab");
  const bool tied = keys.boolean("tied_head", false), relu = keys.string("mlp_activation", "gelu") == "relu";
  BackTranslation back{with_type("gpt2", "GPT2LMHeadModel"), gpt2_rules(layers, tied)};
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
  if (model == "transformer") return gpt2_back(keys);
  throw Error(origin + ": a " + model + ", which transformers does not have; expected a transformer or mamba");
}

void check_llm_c(const std::string& model, const Json& config, const std::string& origin) {
  if (model != "transformer")
    throw Error(origin + ": a " + model + ", which llm.c does not have; expected a transformer");
  ConfigReader keys(origin + ": config", config);
  check_gpt2(keys, "llm.c");
  if (!keys.boolean("tied_head", false))
    keys.fail("tied_head false cannot be expressed by llm.c, which has one table for embedding and readout");
  must(keys, "llm.c", "mlp_activation", "gelu");
  must(keys, "llm.c", "gelu", "tanh");
  if (keys.number("norm_epsilon", 0, 1, 1e-5) != 1e-5)
    keys.fail("norm_epsilon cannot be expressed by llm.c: it has 1e-5");
  if (keys.integer("hidden", 1, MOST) != 4 * size(keys, "width"))
    keys.fail("hidden cannot be expressed by llm.c: it has 4 times width");
}

}  // namespace petroglyph
