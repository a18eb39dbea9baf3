// Checkpoints of ours as files of others.

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <unordered_map>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "cpu/make_cpu.h"
#include "exchange/foreign.h"
#include "exchange/llm_c.h"
#include "exchange/torch_file.h"
#include "tokenizers/byte_spelling.h"
#include "tokenizers/gpt2_files.h"
#include "train/text_checkpoint.h"

namespace petroglyph {

namespace {

// A checkpoint whose parameters are written in another form.
class OwnModel {
 public:
  explicit OwnModel(const std::string& path)
      : file_(path),
        state_(read_run_state(file_)),
        ops_(make_cpu(0)),
        model_(make_model(state_.model, state_.config, *ops_, path)) {
    const Json* heads = state_.config.find("heads");
    heads_ = heads ? heads->integer() : 1;
  }
  const SafetensorsFile& file() const { return file_; }
  const RunState& state() const { return state_; }
  bool has_tokenizer() const { return state_.data.is(Json::Kind::Object) && state_.data.find("tokenizer"); }

  std::vector<float> values(const std::string& name) const {
    file_.expect_shape(name, model_->parameters.find(name)->shape);
    return file_.read_as_float(name);
  }
  std::vector<NamedTensor> give(const Rule& rule) const {
    return petroglyph::give(rule, model_->parameters.find(rule.ours)->shape, heads_, values(rule.ours));
  }

 private:
  SafetensorsFile file_;
  RunState state_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;  // which says the shapes
  int64_t heads_;
};

using Files = std::map<std::string, std::string>;  // contents by their names

// Their files have a token's number by its spelling: two of one spelling would become one.
void check_spellings(const BytePairTokenizer& tokenizer, const std::string& origin) {
  std::unordered_map<std::string_view, int32_t> numbers;
  for (int32_t i = 0; i < tokenizer.vocab(); ++i)
    if (const auto [found, is_new] = numbers.emplace(tokenizer.bytes(i), i); !is_new)
      throw Error(origin + text(": tokens %d and %d are both \"%s\": no tokenizer of Hugging Face's can say so",
                                found->second, i, spell(tokenizer.bytes(i)).substr(0, 60).c_str()));
}

// {"!": 0, …}; without the special tokens, where they are said elsewhere.
Json vocabulary(const BytePairTokenizer& tokenizer, bool with_special) {
  Json vocab = Json::object();
  for (int32_t i = 0; i < tokenizer.vocab(); ++i)
    if (with_special || !tokenizer.is_special(i)) vocab.append(spell(tokenizer.bytes(i)), i);
  return vocab;
}

// Whether two files say it all: no token is cut out of a text, and of those that are special the spelling shows it.
bool is_simple(const BytePairTokenizer& tokenizer) {
  for (int32_t i = 0; i < tokenizer.vocab(); ++i)
    if (tokenizer.is_special(i) && !looks_special(tokenizer.bytes(i))) return false;
  return tokenizer.added().empty();
}

// tokenizer.json, which alone can say the rest.
Files one_file(const BytePairTokenizer& tokenizer) {
  Json added = Json::array(), model = Json::object(), level = Json::object();
  const std::vector<int32_t>& cut_out = tokenizer.added();
  for (int32_t i = 0; i < tokenizer.vocab(); ++i) {
    const bool is_added = std::find(cut_out.begin(), cut_out.end(), i) != cut_out.end();
    if (!tokenizer.is_special(i) && !is_added) continue;
    Json token = Json::object().set("id", i).set("content", std::string(tokenizer.bytes(i)));
    for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"}) token.set(key, false);
    added.push(token.set("special", !is_added));
  }
  model.set("type", "BPE").set("vocab", vocabulary(tokenizer, false)).set("merges", tokenizer.to_json().at("merges"));
  level.set("type", "ByteLevel").set("add_prefix_space", false).set("trim_offsets", true).set("use_regex", true);
  Json json = Json::object();
  json.set("version", "1.0").set("added_tokens", std::move(added)).set("normalizer", Json()).set("decoder", level);
  json.set("pre_tokenizer", std::move(level)).set("model", std::move(model));
  return {{"tokenizer.json", json.text()}};
}

Files vocab_and_merges(const BytePairTokenizer& tokenizer) {
  std::string merges = "#version: 0.2\n";
  const Json json = tokenizer.to_json();
  for (const Json& merge : json.at("merges").items()) merges += merge.string() + "\n";
  return {{"vocab.json", vocabulary(tokenizer, true).text()}, {"merges.txt", merges}};
}

// With what tells transformers whose they are.
Files tokenizer_files(const BytePairTokenizer& tokenizer) {
  const bool simple = is_simple(tokenizer);
  Files files = simple ? vocab_and_merges(tokenizer) : one_file(tokenizer);
  Json config = Json::object();
  config.set("tokenizer_class", simple ? "GPT2Tokenizer" : "PreTrainedTokenizerFast").set("add_prefix_space", false);
  // Unsaid, they would be GPT-2's <|endoftext|>, a token more than the model has where ours has none.
  const int32_t end = tokenizer.end_of_text();
  for (const char* key : {"unk_token", "bos_token", "eos_token"})
    config.set(key, end >= 0 ? Json(std::string(tokenizer.bytes(end))) : Json());
  files["tokenizer_config.json"] = config.text() + "\n";
  return files;
}

constexpr const char* TOKENIZER_FILES[] = {
    "tokenizer.json",          "vocab.json",           "merges.txt", "encoder.json", "vocab.bpe", "added_tokens.json",
    "special_tokens_map.json", "tokenizer_config.json"};

// Nothing that is no model of Hugging Face's may be replaced.
void check_no_checkpoint(const std::string& folder) {
  const std::string weights = folder + "/model.safetensors";
  if (is_there(weights) && is_checkpoint(SafetensorsFile(weights)))
    throw Error(folder + ": a checkpoint of ours lies there as model.safetensors; choose another folder");
}

// No other tokenizer's file may stay, which a reader could prefer.
void check_no_other_tokenizer(const std::string& folder, const Files& replaced) {
  std::vector<std::string> names(std::begin(TOKENIZER_FILES), std::end(TOKENIZER_FILES));
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.path().extension() == ".tiktoken") names.push_back(entry.path().filename().string());
  for (const std::string& name : names)
    if (!replaced.count(name) && is_there(folder + "/" + name))
      throw Error(folder + "/" + name +
                  ": of another tokenizer than what is written; remove it, or choose another folder");
}

}  // namespace

std::vector<std::string> files_of_hugging_face(const std::string& folder) {
  std::vector<std::string> files = {folder + "/model.safetensors", folder + "/config.json"};
  for (const char* name : TOKENIZER_FILES) files.push_back(folder + "/" + name);
  return files;
}

std::vector<std::string> save_as_hugging_face(const std::string& checkpoint, const std::string& folder,
                                              Precision precision) {
  check_no_checkpoint(folder);
  const OwnModel own(checkpoint);
  BackTranslation back = translate_back(own.state().model, own.state().config, checkpoint);
  if (precision != Precision::F32) back.config.set("dtype", precision == Precision::F16 ? "float16" : "bfloat16");
  const char* const dtype = precision == Precision::F32 ? "F32" : precision == Precision::F16 ? "F16" : "BF16";
  SafetensorsWriter writer;
  writer.metadata("format", "pt");
  std::deque<std::string> kept;  // the writer does not copy
  for (const Rule& rule : back.rules)
    for (const NamedTensor& tensor : own.give(rule))
      writer.add(tensor.name, dtype, tensor.shape,
                 kept.emplace_back(bytes_of(tensor.name, tensor.values, precision)).data());
  const auto tokenizer = own.has_tokenizer() ? load_tokenizer(own.file(), own.state()) : nullptr;
  const int32_t end = tokenizer ? tokenizer->end_of_text() : -1;
  for (const char* key : {"bos_token_id", "eos_token_id"}) back.config.set(key, end >= 0 ? Json(end) : Json());
  const auto* pairs = dynamic_cast<const BytePairTokenizer*>(tokenizer.get());
  if (pairs) check_spellings(*pairs, checkpoint);
  const Files files = pairs ? tokenizer_files(*pairs) : Files();
  check_no_other_tokenizer(folder, files);
  make_folder(folder);
  writer.save(folder + "/model.safetensors");
  write_file_atomically(folder + "/config.json", back.config.text() + "\n");
  for (const auto& [name, content] : files) write_file_atomically(folder + "/" + name, content);
  if (!tokenizer || pairs) return {};
  return {"the tokenizer, " + tokenizer->name() +
          ", is left out: files of Hugging Face's are written of byte pairs only"};
}

namespace {

constexpr int GPT2_TOKENS = 50257;

// Their files have none: their programs take GPT-2's.
std::vector<std::string> tokenizer_left_out(const OwnModel& own, const std::string& whose) {
  if (!own.has_tokenizer()) return {};
  const auto tokenizer = load_tokenizer(own.file(), own.state());
  if (dynamic_cast<const BytePairTokenizer*>(tokenizer.get()) && tokenizer->vocab() == GPT2_TOKENS) return {};
  return {"the tokenizer, " + tokenizer->name() + ", is left out: " + whose +
          "'s files have none, its programs GPT-2's"};
}

}  // namespace

std::vector<std::string> save_as_nano_gpt(const std::string& checkpoint, const std::string& path, Precision precision) {
  const OwnModel own(checkpoint);
  const Json& config = own.state().config;
  check_fixed_gpt2(own.state().model, config, checkpoint, "nanoGPT", "erf");
  const std::vector<std::string> notes = tokenizer_left_out(own, "nanoGPT");
  std::vector<TorchTensor> tensors;
  std::vector<std::string> storages;
  for (const Rule& rule : gpt2_rules(config.at("layers").integer(), true, false))
    for (const NamedTensor& tensor : own.give(rule)) {
      tensors.push_back({tensor.name, tensor.shape, storages.size()});
      storages.push_back(bytes_of(tensor.name, tensor.values, precision));
    }
  tensors.push_back({"lm_head.weight", tensors[0].shape, tensors[0].storage});  // the first one is the token embedding
  Json arguments = Json::object(), beside = Json::object();
  for (const auto& [theirs, ours] :
       {std::pair("n_layer", "layers"), std::pair("n_head", "heads"), std::pair("n_embd", "width"),
        std::pair("block_size", "context"), std::pair("vocab_size", "vocab")})
    arguments.set(theirs, config.at(ours));
  arguments.set("bias", true).set("dropout", 0);
  beside.set("model_args", arguments).set("iter_num", own.state().step).set("config", Json::object());
  write_torch_file(path, "model", tensors, storages, precision, beside);
  return notes;
}

std::vector<std::string> save_as_llm_c(const std::string& checkpoint, const std::string& path, Precision precision) {
  if (precision == Precision::F16) throw UsageError("--precision f16: llm.c has f32 and bf16");
  const OwnModel own(checkpoint);
  check_fixed_gpt2(own.state().model, own.state().config, checkpoint, "llm.c", "tanh");
  const std::vector<std::string> notes = tokenizer_left_out(own, "llm.c");
  save_llm_c(path, own.state().config, precision == Precision::BF16,
             [&](const std::string& name) { return own.values(name); });
  return notes;
}

}  // namespace petroglyph
