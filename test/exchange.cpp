// Models of others: folders of Hugging Face's and llm.c's files, made here; what they become, and what they are refused
// for. Damaged files: test/damage.cpp.

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>

#include "base/half.h"
#include "base/text.h"
#include "check.h"
#include "cpu/make_cpu.h"
#include "exchange/foreign.h"
#include "math/random.h"
#include "tasks/corpus.h"
#include "tasks/stories.h"
#include "tokenizers/byte_pair_training.h"
#include "tokenizers/characters.h"
#include "tokenizers/foreign_files.h"
#include "train/text_checkpoint.h"

namespace petroglyph {
namespace {

// ---- A small GPT-2 --------------------------------------------------------------------------------------------------

constexpr int64_t V = 300, T = 8, D = 6, H = 24, LAYERS = 2;

struct TestTensor {
  std::string name;
  Shape shape;
};

std::vector<TestTensor> gpt2_tensors(int64_t vocab = V) {
  std::vector<TestTensor> list = {{"transformer.wte.weight", {vocab, D}}, {"transformer.wpe.weight", {T, D}}};
  for (int l = 0; l < LAYERS; ++l) {
    const std::string h = "transformer.h." + std::to_string(l) + ".";
    for (const auto& [name, in, out] : {std::tuple("attn.c_attn", D, 3 * D), std::tuple("attn.c_proj", D, D),
                                        std::tuple("mlp.c_fc", D, H), std::tuple("mlp.c_proj", H, D)}) {
      list.push_back({h + name + ".weight", {in, out}});
      list.push_back({h + name + ".bias", {out}});
    }
    for (const char* name : {"ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"}) list.push_back({h + name, {D}});
  }
  list.push_back({"transformer.ln_f.weight", {D}});
  list.push_back({"transformer.ln_f.bias", {D}});
  return list;
}

std::vector<float> values_of(const TestTensor& tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < elements(tensor.shape); ++i)
    values.push_back(static_cast<float>(normal(1, stream_of(tensor.name), 0, static_cast<uint64_t>(i))));
  return values;
}

Json gpt2_config() {
  Json json = Json::object();
  json.set("model_type", "gpt2").set("vocab_size", V).set("n_positions", T).set("n_embd", D).set("n_layer", LAYERS);
  return json.set("n_head", 2).set("activation_function", "gelu_new").set("resid_pdrop", 0.1), json;
}

enum class Precision { F32, F16, BF16 };

// To the nearest, ties to even.
uint16_t to_bf16(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);  // NaN stays one
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

uint16_t to_f16(float value) {
  const uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7FFFFFFF;
  if (rest > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00);
  if (rest >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // 65520 and more: infinity
  if (rest >= 0x38800000) {                                             // from 2⁻¹⁴, the least normal one
    const uint32_t moved = rest - ((127 - 15) << 23);
    return static_cast<uint16_t>(sign | (moved + 0xFFF + (moved >> 13 & 1)) >> 13);
  }
  // Added to 2⁻¹ its last bit is worth 2⁻²⁴, as a subnormal's is: the addition rounds.
  const uint32_t sum = bits_of(float_of(rest) + 0.5f);
  return static_cast<uint16_t>(sign | (sum - bits_of(0.5f)));
}

std::string bytes_of(const std::vector<float>& values, Precision precision) {
  std::string bytes;
  for (const float value : values)
    bytes += precision == Precision::F32 ? little(bits_of(value), 4)
                                         : little(precision == Precision::F16 ? to_f16(value) : to_bf16(value), 2);
  return bytes;
}

float rounded(float value, Precision precision) {
  if (precision == Precision::F16) return from_f16(to_f16(value));
  return precision == Precision::BF16 ? from_bf16(to_bf16(value)) : value;
}

// Tensors first … last of GPT-2's as one file.
void write_tensors(const std::string& path, Precision precision = Precision::F32, size_t first = 0, size_t last = 1000,
                   int64_t vocab = V) {
  constexpr const char* TYPES[] = {"F32", "F16", "BF16"};
  SafetensorsWriter writer;
  const std::vector<TestTensor> all = gpt2_tensors(vocab);
  std::deque<std::string> bytes;
  for (size_t i = first; i < std::min(last, all.size()); ++i)
    writer.add(all[i].name, TYPES[static_cast<int>(precision)], all[i].shape,
               bytes.emplace_back(bytes_of(values_of(all[i]), precision)).data());
  writer.save(path);
}

void write_config(const std::string& folder, const Json& config = gpt2_config()) {
  write_bytes(folder + "/config.json", config.text());
}

// A folder as Hugging Face's programs write it.
std::string write_model(const std::string& folder, int64_t vocab = V) {
  std::filesystem::create_directories(folder);
  write_config(folder, gpt2_config().set("vocab_size", vocab));
  write_tensors(folder + "/model.safetensors", Precision::F32, 0, 1000, vocab);
  return folder;
}

std::unique_ptr<Model> load(const std::string& path) {
  static const auto ops = make_cpu(1);
  return load_foreign(open_foreign(path), *ops);
}

std::vector<float> parameter(Model& model, const std::string& name) {
  const Parameter* p = model.parameters.find(name);
  const std::vector<real> all = model.parameters.values().download();
  return {all.begin() + p->begin, all.begin() + p->begin + p->size()};
}

// Whether the model holds GPT-2's values, rounded to this precision.
bool holds_gpt2(Model& model, Precision precision = Precision::F32) {
  bool same = true;
  const auto as = [&](const TestTensor& tensor, const std::string& ours, bool turned) {
    const std::vector<float> theirs = values_of(tensor), found = parameter(model, ours);
    const int64_t rows = tensor.shape[0], columns = turned ? tensor.shape[1] : elements(tensor.shape) / rows;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        same = same && found[static_cast<size_t>(turned ? c * rows + r : r * columns + c)] ==
                           rounded(theirs[static_cast<size_t>(r * columns + c)], precision);
  };
  as({"transformer.wte.weight", {V, D}}, "token_embedding.weight", false);
  as({"transformer.wpe.weight", {T, D}}, "position_embedding.weight", false);
  as({"transformer.h.1.attn.c_attn.weight", {D, 3 * D}}, "blocks.1.attention.qkv.weight", true);
  as({"transformer.h.0.mlp.c_proj.weight", {H, D}}, "blocks.0.mlp.down.weight", true);
  as({"transformer.h.1.ln_2.bias", {D}}, "blocks.1.norm_2.bias", false);
  as({"transformer.ln_f.weight", {D}}, "final_norm.weight", false);
  return same;
}

void halves(Test& test) {
  bool f16 = true, bf16 = true;
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float a = from_f16(half), b = from_bf16(half);
    f16 = f16 && (std::isnan(a) ? std::isnan(from_f16(to_f16(a))) : to_f16(a) == half);
    bf16 = bf16 && (std::isnan(b) ? std::isnan(from_bf16(to_bf16(b))) : to_bf16(b) == half);
  }
  test.check("every F16 comes back", f16);
  test.check("every BF16 comes back", bf16);
  for (const auto& [bits, value] : {std::pair(0x3C00, 1.0f), {0x7BFF, 65504.0f}, {1, 0x1p-24f}})
    test.equal(text("F16 of %04x", bits), from_f16(static_cast<uint16_t>(bits)), value);
}

void hugging_face(Test& test) {
  const TemporaryFolder folder;
  const std::string in = write_model(folder.file("in")), saved = folder.file("gpt2.safetensors");
  test.check("every value in its place", holds_gpt2(*load(in)));
  ForeignModel foreign = open_foreign(in);
  foreign.tokenizer = train_byte_pairs({tell_stories(1, 1, 3000)}, 290);
  save_as_checkpoint(foreign, in, saved);
  const SafetensorsFile file(saved);
  test.equal("its own words", read_run_state(file).config.text(),
             "{\"vocab\":300,\"context\":8,\"width\":6,\"hidden\":24,\"layers\":2,\"heads\":2,\"causal\":true,"
             "\"position\":\"learned\",\"norm\":\"affine\",\"qkv_bias\":true,\"out_bias\":true,\"gelu\":\"tanh\","
             "\"readout\":\"all\",\"tied_head\":true}");
  test.equal("its tokenizer", load_tokenizer(file, read_run_state(file))->vocab(), 290);

  const std::string out = folder.file("out");
  save_as_hugging_face(saved, out);
  const SafetensorsFile back(out + "/model.safetensors");
  bool equal = back.names().size() == gpt2_tensors().size();
  for (const TestTensor& tensor : gpt2_tensors())
    equal =
        equal && back.entry(tensor.name).shape == tensor.shape && back.read_as_float(tensor.name) == values_of(tensor);
  test.check("and back, every tensor", equal);
  test.check("and in again", holds_gpt2(*load(out)));
  test.equal("with its tokenizer", find_tokenizer(out)->to_json().text(), foreign.tokenizer->to_json().text());
  const auto nothing = [&](const char* file, const char* key) {
    const Json json = Json::parse(read_bytes(out + "/" + file), file);
    test.check(std::string(key) + " is none", json.find(key) && json.at(key).is(Json::Kind::Null), json.text());
  };
  for (const char* key : {"bos_token_id", "eos_token_id"}) nothing("config.json", key);
  for (const char* key : {"unk_token", "bos_token", "eos_token"}) nothing("tokenizer_config.json", key);
}

void shards_and_halves(Test& test) {
  const TemporaryFolder folder;
  for (const Precision precision : {Precision::BF16, Precision::F16, Precision::F32}) {
    write_config(folder.path());
    write_tensors(folder.file("a.safetensors"), precision, 0, 7);
    write_tensors(folder.file("b.safetensors"), precision, 7);
    Json map = Json::object();
    for (size_t i = 0; i < gpt2_tensors().size(); ++i)
      map.set(gpt2_tensors()[i].name, i < 7 ? "a.safetensors" : "b.safetensors");
    folder.write("model.safetensors.index.json", Json::object().set("weight_map", map).text());
    test.check(text("precision %d, in parts", static_cast<int>(precision)),
               holds_gpt2(*load(folder.path()), precision));
  }
  for (const auto& [map, words] :
       {std::pair(R"({"transformer.wte.weight": "../f16/a.safetensors"})", "is no name of a file beside it"),
        {R"({"wte": "a.safetensors"})", "it has no tensor wte"}}) {
    folder.write("model.safetensors.index.json", std::string("{\"weight_map\": ") + map + "}");
    test.throws(words, [&] { load(folder.path()); });
  }
}

// A head in the file of a tied model: the embedding once more, or one of its own.
void heads(Test& test) {
  const TemporaryFolder folder;
  write_config(folder.path());
  write_tensors(folder.file("a.safetensors"));
  Json map = Json::object().set("lm_head.weight", "b.safetensors");
  for (const TestTensor& tensor : gpt2_tensors()) map.set(tensor.name, "a.safetensors");
  folder.write("model.safetensors.index.json", Json::object().set("weight_map", map).text());
  const auto write_head = [&](const std::vector<float>& values) {
    SafetensorsWriter writer;
    writer.add("lm_head.weight", {V, D}, values.data());
    writer.save(folder.file("b.safetensors"));
  };
  std::vector<float> values = values_of({"transformer.wte.weight", {V, D}});
  write_head(values);
  test.check("once more", load(folder.path())->parameters.find("head.weight") == nullptr);
  values.back() += 1;
  write_head(values);
  test.check("of its own, every value", parameter(*load(folder.path()), "head.weight") == values);
  test.equal(
      "and it is said", open_foreign(folder.path()).translation.notes.back(),
      "lm_head.weight differs from transformer.wte.weight: the head is its own, whatever tie_word_embeddings says");
}

// What a key that cannot be expressed is refused with: its name and why.
void refused_keys(Test& test) {
  const TemporaryFolder folder;
  write_tensors(folder.file("model.safetensors"));
  const auto refuse = [&](const std::string& name, Json config, const std::string& words) {
    write_config(folder.path(), config);
    const std::string message = message_of([&] { load(folder.path()); });
    test.check(name, message.find(words) != std::string::npos && message.find('\n') == std::string::npos, message);
  };
  refuse("a missing size", Json::object().set("model_type", "gpt2"), "config.json: config lacks \"vocab_size\"");
  for (const auto& [key, value, words] :
       {std::tuple("model_type", Json("llama"), "model_type \"llama\" cannot be expressed"),
        {"activation_function", "silu", "activation_function \"silu\" cannot be"},
        {"scale_attn_weights", false, "scale_attn_weights false cannot be expressed"},
        {"scale_attn_by_inverse_layer_idx", true, "scale_attn_by_inverse_layer_idx"},
        {"n_layer", -1, "n_layer -1 out of range"},
        {"n_layer", 16000000, "n_layer 16000000 out of range"},
        {"n_head", "two", "n_head: expected a number"},
        {"n_head", 4, "heads 4 does not divide width 6"},
        {"vocab_size", 299, "tensor transformer.wte.weight has shape 300×6"},
        {"vocab_size", 16000000, "too few for a model of width 6"},
        {"n_layer", 1, "cannot be expressed: our model has no place for it"},
        {"n_layer", 3, "has no tensor transformer.h.2."},
        {"tie_word_embeddings", false, "has no tensor lm_head.weight"}})
    refuse(key, gpt2_config().set(key, value), words);
  Json bloom = Json::object().set("model_type", "bloom").set("vocab_size", V).set("n_layer", 1).set("n_head", 2);
  const auto width = [&] { return translate(bloom, "c").config.at("width").integer(); };
  test.equal("BLOOM's width", (bloom.set("hidden_size", 24), width()), int64_t(24));
  test.equal("by its first name", (bloom.set("n_embed", 12), width()), int64_t(12));
}

// What other families may have and ours have not: without a word it would be another model.
void refused_families(Test& test) {
  const auto config = [](const char* words) { return Json::parse(words, "config"); };
  const Json opt = config(
                 R"({"model_type":"opt","vocab_size":300,"max_position_embeddings":8,"hidden_size":6,"ffn_dim":24,
                             "num_hidden_layers":1,"num_attention_heads":2,"word_embed_proj_dim":6,"enable_bias":true})"),
             mpt = config(R"({"model_type":"mpt","vocab_size":300,"max_seq_len":8,"d_model":6,"n_layers":1,"n_heads":2,
                             "no_bias":true,"logit_scale":null,
                             "attn_config":{"alibi":true,"qk_ln":false,"prefix_lm":false,"clip_qkv":null,
                                            "softmax_scale":null,"alibi_bias_max":8}})"),
             bloom = config(R"({"model_type":"bloom","vocab_size":300,"hidden_size":6,"n_layer":1,"n_head":2,
                               "apply_residual_connection_post_layernorm":false})"),
             mamba = config(R"({"model_type":"mamba","vocab_size":300,"hidden_size":6,"num_hidden_layers":1,"expand":2,
                               "intermediate_size":12,"hidden_act":"silu","use_bias":false,"use_conv_bias":true})");
  for (const Json* good : {&opt, &mpt, &bloom, &mamba})
    test.equal(good->at("model_type").string() + " is read", message_of([&] { translate(*good, "c"); }), "");
  const auto refuse = [&](const Json& good, const char* key, const Json& value) {
    const std::string message = message_of([&] { translate(Json(good).set(key, value), "c"); });
    test.check(good.at("model_type").string() + " with " + key + " " + value.text(),
               message.find("c") == 0 && message.find(key) != std::string::npos, message);
  };
  refuse(opt, "enable_bias", false);
  refuse(opt, "layer_norm_elementwise_affine", false);
  refuse(opt, "_remove_final_layer_norm", true);
  refuse(opt, "do_layer_norm_before", false);
  refuse(mpt, "no_bias", false);
  refuse(mpt, "logit_scale", "inv_sqrt_d_model");
  refuse(mpt, "expansion_ratio", 2);
  for (const auto& [key, value] : {std::pair("alibi", Json(false)),
                                   {"qk_ln", true},
                                   {"prefix_lm", true},
                                   {"clip_qkv", 8},
                                   {"softmax_scale", 0.5},
                                   {"alibi_bias_max", 16}}) {
    const Json attention = Json(mpt.at("attn_config")).set(key, value);
    const std::string message = message_of([&] { translate(Json(mpt).set("attn_config", attention), "c"); });
    test.check(std::string("mpt with ") + key + " " + value.text(), message.find(key) != std::string::npos, message);
  }
  refuse(bloom, "apply_residual_connection_post_layernorm", true);
  refuse(mamba, "hidden_act", "gelu");
  refuse(mamba, "use_bias", true);
  refuse(mamba, "use_conv_bias", false);
}

// ---- llm.c ----------------------------------------------------------------------------------------------------------

std::string llm_c(int version) {
  std::string file;
  for (const int64_t n : {int64_t(20240326), int64_t(version), T, V, LAYERS, int64_t(2), D, V + 20})
    file += little(static_cast<uint64_t>(n), 4);
  file.resize(1024);
  const auto add = [&](const std::string& name, const Shape& shape) {
    for (const float value : values_of({name, shape}))
      file += version == 3 ? little(bits_of(value), 4) : little(to_bf16(value), 2);
  };
  add("wte", {V, D});
  add("padding", {20, D});
  add("wpe", {T, D});
  for (const auto& [name, size] :
       {std::pair("ln1w", D), std::pair("ln1b", D), std::pair("qkvw", 3 * D * D), std::pair("qkvb", 3 * D),
        std::pair("attprojw", D * D), std::pair("attprojb", D), std::pair("ln2w", D), std::pair("ln2b", D),
        std::pair("fcw", 4 * D * D), std::pair("fcb", 4 * D), std::pair("fcprojw", 4 * D * D), std::pair("fcprojb", D)})
    for (int l = 0; l < LAYERS; ++l) add(name + std::to_string(l), {size});
  add("lnfw", {D});
  add("lnfb", {D});
  return file;
}

void llm_c_files(Test& test) {
  const TemporaryFolder folder;
  const std::string path = folder.file("gpt2.bin");
  for (const int version : {3, 5}) {
    write_bytes(path, llm_c(version));
    const auto model = load(path);
    const auto as = [&](const char* name, const Shape& shape, const std::string& ours) {
      std::vector<float> values = values_of({name, shape});
      for (float& value : values) value = rounded(value, version == 5 ? Precision::BF16 : Precision::F32);
      test.check(text("version %d: ", version) + name, parameter(*model, ours) == values);
    };
    as("wte", {V, D}, "token_embedding.weight");  // without the padding
    as("wpe", {T, D}, "position_embedding.weight");
    as("qkvw1", {3 * D * D}, "blocks.1.attention.qkv.weight");
    as("fcprojb0", {D}, "blocks.0.mlp.down.bias");
    as("lnfb", {D}, "final_norm.bias");
  }
  std::string file = llm_c(3);
  write_bytes(path, file.substr(0, file.size() - 1));
  test.throws("truncated", "its header promises", [&] { load(path); });
  file[4] = 4;
  write_bytes(path, file);
  test.throws("another version", "a model of llm.c's version 4, expected 3 (float32) or 5", [&] { load(path); });
}

void llm_c_back(Test& test) {
  const TemporaryFolder folder;
  const std::string in = folder.file("in.bin"), saved = folder.file("a.safetensors"), out = folder.file("out.bin");
  const uint64_t table = 1024 + static_cast<uint64_t>(V * D) * sizeof(float);
  std::string file = llm_c(3);
  write_bytes(in, file);
  save_as_checkpoint(open_foreign(in), in, saved);
  save_as_llm_c(saved, out);
  // 300 tokens are padded to 384, with zeros.
  file.replace(28, 4, little(384, 4));
  file.replace(table, static_cast<size_t>(20 * D) * sizeof(float),
               std::string(static_cast<size_t>(84 * D) * sizeof(float), '\0'));
  test.check("byte for byte", read_bytes(out) == file);
  test.check("and in again", load(out)->parameters.values().download() == load(in)->parameters.values().download());
  const auto refuse = [&](const std::string& key, const Json& value, const std::string& words) {
    SafetensorsFile file(saved);
    RunState state = read_run_state(file);
    const auto ops = make_cpu(1);
    state.config.set(key, value);
    const std::string other = folder.file("other.safetensors");
    save_checkpoint(other, state, *make_model(state.model, state.config, *ops));
    test.equal(key, message_of([&] { save_as_llm_c(other, out); }), other + ": config: " + words);
  };
  refuse("gelu", "erf", "gelu \"erf\" cannot be expressed by llm.c, which has \"tanh\"");
  refuse("tied_head", false, "tied_head false cannot be expressed by llm.c, which has true");
  refuse("norm_epsilon", 1e-6, "norm_epsilon 1e-06 cannot be expressed by llm.c, which has 1e-05");
  refuse("hidden", 25, "hidden 25 cannot be expressed by llm.c, which has 24");
  refuse("mlp_activation", "relu", "mlp_activation \"relu\" cannot be expressed by llm.c, which has \"gelu\"");
  refuse("position", "none", "position \"none\" cannot be expressed by llm.c, which has \"learned\"");
}

// ---- Files that are refused by name ---------------------------------------------------------------------------------

// PyTorch files and git-lfs pointers are refused with one line that names the command to run.
void other_files(Test& test) {
  const TemporaryFolder folder;
  const std::string zip = "PK\3\4" + std::string(100, '\0'), old = "\x80\x02\x8a\x0al\xfc\x9c" + std::string(100, 'F');
  const auto torch = [](const std::string& path) {
    return path + ": is a PyTorch file. Convert it first: python3 data/torch_to_safetensors.py " + path + " FOLDER";
  };
  for (const std::string& bytes : {zip, old}) {
    const std::string path = folder.file("ckpt.pt");
    write_bytes(path, bytes);
    test.equal("a file of PyTorch's", message_of([&] { open_foreign(path); }), torch(path));
    test.equal("as a checkpoint", message_of([&] { SafetensorsFile{path}; }), torch(path));
  }
  folder.write("x", "something");
  test.throws("another file", "x: expected a folder with config.json and model.safetensors, or a model of llm.c",
              [&] { open_foreign(folder.file("x")); });
  write_config(folder.path());
  test.throws("no weights", "has neither model.safetensors nor", [&] { open_foreign(folder.path()); });
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    folder.write(name, old);
    test.equal(name, message_of([&] { open_foreign(folder.path()); }), torch(folder.file(name)));
  }
  const auto pointer = [&](const std::string& name) {
    folder.write(name, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 548105171\n");
    return folder.file(name) + ": is a git-lfs pointer, not the file: git lfs pull";
  };
  std::string words = pointer("model.safetensors");
  test.equal("a pointer for weights", message_of([&] { open_foreign(folder.path()); }), words);
  write_tensors(folder.file("model.safetensors"));
  for (const char* name : {"tokenizer.json", "config.json"}) {
    words = pointer(name);
    test.equal(name, message_of([&] { open_foreign(folder.path()); }), words);
    std::filesystem::remove(folder.file(name));
    write_config(folder.path());
  }
  for (const char* name : {"vocab.json", "gpt2.bin"}) {
    words = pointer(name);
    test.equal(name, message_of([&] { open_tokenizer(folder.file(name), false); }), words);
  }
  test.equal("a model's file", message_of([&] { open_foreign(folder.file("gpt2.bin")); }), words);
  test.equal("a shard", message_of([&] { open_corpus(folder.file("gpt2.bin"), ByteTokenizer()); }), words);
  words = pointer("a.txt");
  test.equal("a text", message_of([&] { open_corpus(folder.file("a.txt"), ByteTokenizer()); }), words);
  test.equal("a prompt", message_of([&] { read_file(folder.file("a.txt")); }), words);
}

// ---- Tokenizers -----------------------------------------------------------------------------------------------------

Json tokenizer_json(const BytePairTokenizer& tokenizer) {
  const Json ours = tokenizer.to_json();
  Json vocab = Json::object();
  const std::vector<Json>& tokens = ours.at("tokens").items();
  for (size_t i = 0; i < tokens.size(); ++i) vocab.set(tokens[i].string(), i);
  Json end = Json::object();
  end.set("id", tokens.size()).set("content", std::string(END_OF_TEXT)).set("special", true);
  Json model = Json::object(), json = Json::object(), level = Json::object();
  model.set("type", "BPE").set("vocab", vocab).set("merges", ours.at("merges"));
  level.set("type", "ByteLevel").set("add_prefix_space", false).set("use_regex", true);
  json.set("added_tokens", Json::array().push(end)).set("normalizer", Json()).set("pre_tokenizer", level);
  return json.set("model", model), json;
}

std::vector<int32_t> tokens_of(const Tokenizer& tokenizer, const std::string& text, Reading reading = Reading::PLAIN) {
  std::vector<int32_t> tokens;
  tokenizer.encode(text, tokens, reading);
  return tokens;
}

void tokenizers(Test& test) {
  const TemporaryFolder folder;
  const std::string stories = tell_stories(1, 1, 20000);
  const auto trained = train_byte_pairs({stories}, 500);
  const std::string path = folder.file("tokenizer.json");
  Json json = tokenizer_json(*trained);
  write_bytes(path, json.text());
  const auto read = open_tokenizer(path, false);
  test.equal("tokenizer.json: its tokens", read->vocab(), 501);
  test.check("tokenizer.json: stories", tokens_of(*read, stories) == tokens_of(*trained, stories));
  test.equal("tokenizer.json: the end of a text", read->end_of_text(), {500});
  test.equal("in a folder", open_tokenizer(folder.path(), false)->vocab(), 501);

  const auto refuse = [&](const std::string& key, const Json& value, const std::string& words) {
    test.throws("t: " + words, [&] { read_tokenizer_json(Json(json).set(key, value), "t"); });
  };
  const Json model = json.at("model");
  Json vocab = model.at("vocab"), pairs = model.at("merges");
  refuse("model", Json(model).set("vocab", vocab.set("Ċa", 501)).set("merges", pairs.push("Ċ a")),
         "token 501, \"Ċa\", reaches over a place where GPT-2 cuts texts");
  refuse("model", Json(model).set("ignore_merges", true), "ignore_merges true is not supported");
  refuse("model", Json(model).set("type", "WordPiece"), "model \"WordPiece\" is not supported");
  for (const auto& [key, value, words] :
       {std::tuple("added_tokens", R"([{"id": 7, "content": "'", "single_word": true}])",
                   "single_word true is not supported"),
        {"pre_tokenizer", R"({"type": "Metaspace"})", "pre_tokenizer \"Metaspace\" is not supported"},
        {"pre_tokenizer", R"({"type": "ByteLevel", "use_regex": false})", "use_regex false is not supported"},
        {"normalizer", R"({"type": "Lowercase"})", "normalizer \"Lowercase\" is not supported"},
        {"post_processor", R"({"type": "TemplateProcessing", "single": [{"Sequence": {}}, {"Sequence": {}}]})",
         "post_processor: expected a template with one text in it"},
        {"post_processor",
         R"({"type": "TemplateProcessing", "single": [{"Sequence": {}}, {"SpecialToken": {"id": "a"}}],
             "special_tokens": {"a": {"ids": [501]}}})",
         "post_processor: token 501, expected one of the 501 tokens"},
        {"post_processor", R"({"type": "RobertaProcessing", "cls": ["a"], "sep": ["b", 0]})",
         "post_processor: cls: expected a token and its number"},
        {"post_processor", R"({"type": "Other"})", "post_processor \"Other\" is not supported"}})
    refuse(key, Json::parse(value, "x"), words);
}

// Numbers and spellings that no file can have. What added tokens do with a text: "token ids".
void added_tokens(Test& test) {
  const auto trained = train_byte_pairs({tell_stories(1, 1, 3000)}, 303);
  Json json = tokenizer_json(*trained);
  const auto read = read_tokenizer_json(json, "t");
  test.throws("\"added\" has 4294967297, expected one of its 304 tokens, from 0 on", [&] {
    tokenizer_from_json(read->to_json().set("added", Json::array().push(int64_t(1) << 32 | 1)), "x");
  });
  const TemporaryFolder folder;
  const std::string in = write_model(folder.file("in"), 304), saved = folder.file("model.safetensors"),
                    out = folder.file("out");
  ForeignModel foreign = open_foreign(in);
  foreign.tokenizer = read_tokenizer_json(json, "t");
  save_as_checkpoint(foreign, in, saved);
  save_as_hugging_face(saved, out);
  test.equal("the end of a text", Json::parse(read_bytes(out + "/tokenizer_config.json"), "c").at("eos_token").string(),
             std::string(END_OF_TEXT));
  test.throws(folder.path() + " contains a Petroglyph checkpoint, model.safetensors; choose another folder",
              [&] { save_as_hugging_face(saved, folder.path()); });
  Json list = json.at("added_tokens");
  list.push(Json::parse(R"({"id": 304, "content": "<|endoftext|>", "special": true})", "x"));
  const Json twice = read_tokenizer_json(json.set("added_tokens", list), "t")->to_json();
  const Json config = foreign.translation.config.set("vocab", 305);
  const auto ops = make_cpu(1);
  save_checkpoint(saved,
                  {"convert", "transformer", config, Json::object(), 0, "", Json::object().set("tokenizer", twice)},
                  *make_model("transformer", config, *ops));
  test.throws(saved + ": tokens 303 and 304 are both \"<|endoftext|>\", which tokenizer.json cannot express",
              [&] { save_as_hugging_face(saved, out); });
}

// The token ids of transformers and tokenizers (test/python/token_ids.py), with every kind of added token. Ids stay the
// same in a checkpoint and in the files that are written from it.
void token_ids(Test& test) {
  const std::string path = "test/oracle/token_ids.json";
  if (!std::filesystem::exists(path)) return test.skip(path, "run this in the repository's root");
  const Json fixture = Json::parse(read_bytes(path), path);
  for (const Json& one : fixture.at("cases").items()) {
    const TemporaryFolder folder;
    for (const auto& [name, content] : one.at("files").members())
      folder.write(name, content.is(Json::Kind::String) ? content.string() : content.text());
    const auto read = find_tokenizer(folder.path());
    write_model(folder.path());
    save_as_checkpoint(open_foreign(folder.path()), "x", folder.file("saved"));
    save_as_hugging_face(folder.file("saved"), folder.file("back"));
    const auto kept = open_tokenizer(folder.file("saved"), false);
    const auto back = find_tokenizer(folder.file("back"));
    const Json vocab = Json::parse(folder.read("back/tokenizer.json"), "x").at("model").at("vocab");
    test.equal(one.at("name").string() + ": tokens of the vocabulary that is written", vocab.members().size(),
               static_cast<size_t>(read->vocab()));
    for (const Json& row : one.at("texts").items()) {
      std::vector<int32_t> expected;
      const std::string text = row.items()[0].string();
      for (const Json& token : row.items()[1].items()) expected.push_back(static_cast<int32_t>(token.integer()));
      for (const Tokenizer* tokenizer :
           {static_cast<const Tokenizer*>(read.get()), static_cast<const Tokenizer*>(kept.get()),
            static_cast<const Tokenizer*>(back.get())})
        test.equal(one.at("name").string() + ": " + in_one_line(text), tokens_of(*tokenizer, text, Reading::DOCUMENTS),
                   expected);
    }
  }
}

// Tokens that end texts: of generation_config.json, or of config.json, a number or a list; else of the tokenizer; null
// is none.
void ends_of_texts(Test& test) {
  const auto trained = train_byte_pairs({tell_stories(1, 1, 3000)}, 298);
  Json json = tokenizer_json(*trained), list = json.at("added_tokens");
  list.push(Json::object().set("id", 299).set("content", "<|end|>").set("special", true));
  json.set("added_tokens", list);
  struct Row {
    const char *config, *generation, *names;
    std::vector<int32_t> begin, end;
    const char* written;
  };
  const std::vector<Row> rows = {
      {"", "", "", {298}, {298}, "298"},
      {R"("eos_token_id": 299)", "", "", {298}, {299}, "299"},
      {R"("eos_token_id": 299, "bos_token_id": null)", "", "", {}, {299}, "299"},
      {R"("eos_token_id": [299, 298], "bos_token_id": 7)", "", "", {7}, {299, 298}, "[299,298]"},
      {R"("eos_token_id": 298)", R"({"eos_token_id": [299]})", "", {298}, {299}, "299"},
      {R"("eos_token_id": 299)", R"({"top_k": 5})", "", {298}, {299}, "299"},
      {R"("eos_token_id": null)", "", R"({"eos_token": "<|end|>"})", {299}, {}, "null"},
      {"", "", R"({"eos_token": {"content": "<|end|>"}, "bos_token": "<|endoftext|>"})", {298}, {299}, "299"},
      {R"("eos_token_id": 50256, "bos_token_id": 50256)", "", "", {}, {}, "null"}};
  for (const Row& row : rows) {
    const TemporaryFolder folder;
    const std::string config = gpt2_config().text(), name = std::string(row.config) + row.generation + row.names;
    const std::string more = row.config[0] ? std::string(", ") + row.config + "}" : "}";
    folder.write("config.json", config.substr(0, config.size() - 1) + more);
    if (row.generation[0]) folder.write("generation_config.json", row.generation);
    if (row.names[0]) folder.write("tokenizer_config.json", row.names);
    write_tensors(folder.file("model.safetensors"));
    folder.write("tokenizer.json", json.text());
    const ForeignModel foreign = open_foreign(folder.path());
    save_as_checkpoint(foreign, "x", folder.file("saved"));
    const auto kept = open_tokenizer(folder.file("saved"), false);
    test.equal(name + ": kept", kept->end_of_text(), row.end);
    test.equal(name + ": the beginning", *dynamic_cast<const BytePairTokenizer&>(*kept).extras().begin, row.begin);
    save_as_hugging_face(folder.file("saved"), folder.file("back"));
    for (const char* file : {"back/config.json", "back/generation_config.json"})
      test.equal(name + ": " + file, Json::parse(folder.read(file), "x").at("eos_token_id").text(), row.written);
    const std::string lacking = "eos_token_id 50256 is none of the tokenizer's tokens: left out";
    const std::vector<std::string> notes = notes_on_tokenizer(foreign);
    test.equal(name + ": a note", std::count(notes.begin(), notes.end(), lacking),
               std::ptrdiff_t(row.end.empty() && row.begin.empty()));
  }
  const TemporaryFolder folder;
  write_model(folder.path(), 304);
  folder.write("tokenizer.json", json.text());
  test.equal("more tokens than the tokenizer has", join(notes_on_tokenizer(open_foreign(folder.path())), "; "),
             "the model has 304 tokens, its tokenizer 300: the others are never written");
  write_config(folder.path(), gpt2_config().set("eos_token_id", "</s>"));
  test.throws("eos_token_id: expected a number or a list of numbers", [&] { open_foreign(folder.path()); });
}

// Which files a conversion reads and writes, and its message for a tokenizer that tokenizer.json cannot express.
void conversions(Test& test) {
  const TemporaryFolder folder;
  const auto has = [&](const std::vector<std::string>& files, const std::string& name) {
    test.check(name, std::find(files.begin(), files.end(), folder.file(name)) != files.end());
  };
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors", "c": "1.safetensors"}})");
  for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json", "1.safetensors",
                           "2.safetensors", "vocab.json", "merges.txt", "tokenizer.json"})
    has(files_of_foreign(folder.path()), name);
  for (const char* name :
       {"config.json", "model.safetensors", "vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json"})
    has(files_of_hugging_face(folder.path()), name);

  const std::string in = write_model(folder.file("in")), saved = folder.file("saved"), out = folder.file("out");
  ForeignModel foreign = open_foreign(in);
  const auto notes = [&] {
    save_as_checkpoint(foreign, in, saved);
    return join(save_as_hugging_face(saved, out), "; ");
  };
  test.equal("of no tokenizer nothing is said", notes(), "");
  foreign.tokenizer = std::make_unique<AsciiTokenizer>(false);
  test.equal("of one that is left out", notes(),
             "the tokenizer, ascii, is left out: files of Hugging Face's are written of byte pairs only");
  test.equal("of one that their programs do not have", join(save_as_llm_c(saved, folder.file("c")), "; "),
             "the tokenizer, ascii, is left out: llm.c's files have none, its programs GPT-2's");
  foreign.tokenizer = train_byte_pairs({tell_stories(1, 1, 3000)}, 290);
  test.equal("nor of one that is written", notes(), "");

  // Only a sound tokenizer of another kind may be left out.
  const std::string json = in + "/tokenizer.json";
  write_bytes(json, R"({"model": {"type": "Unigram", "vocab": [["a", 0]]}})");
  const ForeignModel another = open_foreign(in);
  test.check("a tokenizer of another kind is noted",
             !another.tokenizer && another.translation.notes.back().find("Unigram") != std::string::npos,
             join(another.translation.notes, "; "));
  write_bytes(json, "");
  test.throws("an empty one is refused", json + ": line 1: expected a value, found the end", [&] { open_foreign(in); });
  write_bytes(
      json, R"({"model": {"type": "BPE", "vocab": {"a": "x"}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel"}})");
  test.throws("a damaged one is refused", json + ": ", [&] { open_foreign(in); });
  std::filesystem::remove(json);
  std::filesystem::create_directory(json);
  test.throws(json + ": expected a file, found something else", [&] { open_foreign(in); });
}

void documents(Test& test) {
  const auto trained = train_byte_pairs({tell_stories(1, 1, 3000)}, 300);
  const auto with_end = read_tokenizer_json(tokenizer_json(*trained), "t");
  const std::string two = "a<|endoftext|>b";
  test.check("a text where there is no such token",
             tokens_of(*trained, two, Reading::DOCUMENTS) == tokens_of(*trained, two));
  test.check("encode() alone never makes it", tokens_of(*with_end, two) == tokens_of(*trained, two));
  // Tokens around each document; an end-of-text token is not repeated.
  const auto around = [&](const char* prefix, const char* suffix) {
    Json json = with_end->to_json();
    return tokenizer_from_json(json.set("prefix", Json::parse(prefix, "x")).set("suffix", Json::parse(suffix, "x")),
                               "x");
  };
  const auto documents = [&](const char* prefix, const char* suffix, const std::string& text) {
    return tokens_of(*around(prefix, suffix), text, Reading::DOCUMENTS);
  };
  test.equal("one before each", documents("[7]", "[]", two), {7, 'a', 300, 7, 'b'});
  test.equal("the end of one before the next", documents("[300]", "[]", two + std::string(END_OF_TEXT)),
             {300, 'a', 300, 'b', 300});
  test.equal("the end behind each", documents("[7]", "[300]", two), {7, 'a', 300, 7, 'b', 300});
  test.equal("a prompt is one text", tokens_of(*around("[7]", "[300]"), two, Reading::SPECIAL_PROMPT),
             {7, 'a', 300, 'b', 300});
  test.equal("a special token that is spelled out", with_end->special_in("a" + two), std::string(END_OF_TEXT));
  test.equal("none", with_end->special_in("<|endof"), "");
}

// nanoGPT's files: tokens and nothing else.
void raw_tokens(Test& test) {
  const TemporaryFolder folder;
  const std::string path = folder.file("train.bin");
  const ByteTokenizer bytes;
  const std::vector<int32_t> wanted = {7, 0, 255, 3};
  std::string file;
  for (const int32_t token : wanted) file += little(static_cast<uint64_t>(token), 2);
  write_bytes(path, file);
  std::vector<int32_t> found(4);
  open_corpus(path, bytes, "uint16")->read(0, 4, found.data());
  test.check("16 bits a token", found == wanted);
  test.throws("without being asked", "no shard of tokens", [&] { open_corpus(path, bytes); });
  write_bytes(path, file + "x");
  test.throws("a byte more", "9 bytes long, expected a multiple of 2", [&] { open_corpus(path, bytes, "uint16"); });
  write_bytes(path, file + little(256, 2));
  test.throws("token 256 at position 4, expected one of the tokenizer's", [&] { open_corpus(path, bytes, "uint16"); });
  write_bytes(path, little(20240520, 4) + std::string(1020, '\0'));
  test.throws("a shard", "begins as llm.c's shards do (--format llm.c)", [&] { open_corpus(path, bytes, "uint16"); });
  write_bytes(path, std::string(2000, 'x'));
  test.throws("what to ask for", "nanoGPT's have no header: --format uint16", [&] { open_corpus(path, bytes); });
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  test.run("halves", halves);
  test.run("hugging face", hugging_face);
  test.run("shards and halves", shards_and_halves);
  test.run("heads", heads);
  test.run("refused keys", refused_keys);
  test.run("refused families", refused_families);
  test.run("other files", other_files);
  test.run("llm.c", llm_c_files);
  test.run("llm.c, back", llm_c_back);
  test.run("tokenizers", tokenizers);
  test.run("added tokens", added_tokens);
  test.run("token ids", token_ids);
  test.run("ends of texts", ends_of_texts);
  test.run("conversions", conversions);
  test.run("documents", documents);
  test.run("raw tokens", raw_tokens);
  return test.finish();
}
