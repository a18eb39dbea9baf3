// Writes Petroglyph checkpoints in the file formats of other projects.

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
#include "tokenizers/byte_spelling.h"
#include "tokenizers/foreign_files.h"
#include "train/text_checkpoint.h"

namespace petroglyph {

namespace {

// A checkpoint whose parameters are converted to another format.
struct OwnModel {
  explicit OwnModel(const std::string& path)
      : file(path),
        state(read_run_state(file)),
        ops(make_cpu(0)),
        model(make_model(state.model, state.config, *ops, path)) {
    if (state.data.is(Json::Kind::Object) && state.data.find("tokenizer")) tokenizer = load_tokenizer(file, state);
  }
  const Shape& shape(const std::string& name) const { return model->parameters.find(name)->shape; }
  std::vector<float> values(const std::string& name) const {
    file.expect_shape(name, shape(name));
    return file.read_as_float(name);
  }

  SafetensorsFile file;
  RunState state;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<Model> model;          // provides the parameters' shapes
  std::unique_ptr<Tokenizer> tokenizer;  // null: none
};

using Files = std::map<std::string, std::string>;  // file name → content

// The name of a token in tokenizer.json: an added token as it is, other tokens in byte spelling.
std::string name_of(const BytePairTokenizer& tokenizer, int32_t token) {
  return tokenizer.is_added(token) ? std::string(tokenizer.bytes(token)) : spell(tokenizer.bytes(token));
}

// {"!": 0, …}. It includes added tokens, because readers number added tokens that are missing here from the
// vocabulary's size on.
Json vocabulary(const BytePairTokenizer& tokenizer, const std::string& origin) {
  std::unordered_map<std::string, int32_t> numbers;
  Json vocab = Json::object();
  for (int32_t i = 0; i < tokenizer.vocab(); ++i) {
    const std::string name = name_of(tokenizer, i);
    if (!is_utf8(name))
      throw Error(origin + text(": token %d is added, and no UTF-8: tokenizer.json cannot have it", i));
    if (const auto [found, is_new] = numbers.emplace(name, i); !is_new)
      throw Error(origin + text(": tokens %d and %d are both \"%s\", which tokenizer.json cannot express",
                                found->second, i, name.substr(0, 60).c_str()));
    vocab.append(name, i);
  }
  return vocab;
}

Json added_tokens(const BytePairTokenizer& tokenizer) {
  Json list = Json::array();
  for (const AddedToken& added : tokenizer.extras().added) {
    Json token =
        Json::object().set("id", added.token).set("content", name_of(tokenizer, added.token)).set("single_word", false);
    for (const auto& [key, flag] : ADDED_TOKEN_FLAGS) token.set(key, added.*flag);
    list.push(std::move(token));
  }
  return list;
}

// The tokens before and after each text, as a post-processor.
Json template_of(const BytePairTokenizer& tokenizer) {
  const BytePairExtras& extras = tokenizer.extras();
  if (extras.prefix.empty() && extras.suffix.empty()) return {};
  Json single = Json::array(), special = Json::object();
  const auto add_tokens = [&](const std::vector<int32_t>& tokens) {
    for (const int32_t token : tokens) {
      const std::string name = name_of(tokenizer, token);
      const Json ids = Json::array().push(token), names = Json::array().push(name);
      single.push(Json::object().set("SpecialToken", Json::object().set("id", name).set("type_id", 0)));
      special.set(name, Json::object().set("id", name).set("ids", ids).set("tokens", names));
    }
  };
  const Json texts = Json::parse(R"([{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":0}}])", "");
  add_tokens(extras.prefix);
  single.push(texts.items()[0]);
  add_tokens(extras.suffix);
  Json json = Json::object().set("type", "TemplateProcessing").set("single", single);
  return json.set("pair", texts).set("special_tokens", special);
}

std::string tokenizer_json(const BytePairTokenizer& tokenizer, const std::string& origin) {
  Json level = Json::parse(R"({"type": "ByteLevel", "trim_offsets": true, "use_regex": true})", "");
  level.set("add_prefix_space", tokenizer.extras().space_before);
  Json model = Json::object().set("type", "BPE").set("vocab", vocabulary(tokenizer, origin));
  model.set("merges", tokenizer.to_json().at("merges"));
  Json json = Json::object().set("version", "1.0").set("added_tokens", added_tokens(tokenizer));
  json.set("normalizer", {}).set("pre_tokenizer", level).set("post_processor", template_of(tokenizer));
  json.set("decoder", level).set("model", std::move(model));
  return json.text();
}

// One number, a list of numbers, or null.
Json ids(const std::vector<int32_t>& tokens) {
  Json list = Json::array();
  for (const int32_t token : tokens) list.push(token);
  return tokens.empty() ? Json() : tokens.size() == 1 ? Json(tokens[0]) : list;
}

// The tokens that begin and end a text, in config.json and generation_config.json; their names; and the tokenizer
// class for transformers. Without these entries, transformers would use GPT-2's <|endoftext|>, a token that a
// Petroglyph model may not have. Only an added token gets a name, because transformers matches every named token in
// texts as a special token.
Files tokenizer_files(const Tokenizer* tokenizer, const std::string& origin, Json& config) {
  const auto* pairs = dynamic_cast<const BytePairTokenizer*>(tokenizer);
  const std::vector<int32_t> end = tokenizer ? tokenizer->end_of_text() : std::vector<int32_t>();
  const std::vector<int32_t> begin = pairs ? *pairs->extras().begin : end;
  Json generation = Json::object(), names = Json::object();
  names.set("tokenizer_class", "PreTrainedTokenizerFast").set("unk_token", Json());
  for (const auto& [who, tokens] : {std::pair("bos", begin), std::pair("eos", end)}) {
    const std::string key = std::string(who) + "_token";
    const std::vector<int32_t> one(tokens.begin(), tokens.begin() + (tokens.empty() ? 0 : 1));
    const Json number = ids(who[0] == 'b' ? one : tokens);
    config.set(key + "_id", number);
    generation.set(key + "_id", number);
    const bool named = !tokens.empty() && pairs && pairs->is_added(tokens[0]);
    names.set(key, named ? Json(name_of(*pairs, tokens[0])) : Json());
  }
  Files files = {{"generation_config.json", generation.text() + "\n"}};
  if (!pairs) return files;
  files["tokenizer_config.json"] = names.text() + "\n";
  files["tokenizer.json"] = tokenizer_json(*pairs, origin);
  return files;
}

// Throws if the folder has a Petroglyph checkpoint under the name of Hugging Face's file, which would be replaced.
void check_no_checkpoint(const std::string& folder) {
  const std::string weights = folder + "/model.safetensors";
  if (is_there(weights) && is_checkpoint(SafetensorsFile(weights)))
    throw Error(folder + " contains a Petroglyph checkpoint, model.safetensors; choose another folder");
}

}  // namespace

std::vector<std::string> files_of_hugging_face(const std::string& folder) {
  std::vector<std::string> files;
  for (const char* name : {"model.safetensors", "config.json", "generation_config.json"})
    files.push_back(folder + "/" + name);
  for (const std::string& name : tokenizer_file_names()) files.push_back(folder + "/" + name);
  return files;
}

std::vector<std::string> save_as_hugging_face(const std::string& checkpoint, const std::string& folder) {
  check_no_checkpoint(folder);
  const OwnModel own(checkpoint);
  BackTranslation back = translate_back(own.state.model, own.state.config, checkpoint);
  SafetensorsWriter writer;
  writer.metadata("format", "pt");
  std::deque<NamedTensor> kept;  // owns the data: the writer does not copy it
  for (const Rule& rule : back.rules) {
    const NamedTensor& tensor = kept.emplace_back(give(rule, own.shape(rule.ours), own.values(rule.ours)));
    writer.add(tensor.name, tensor.shape, tensor.values.data());
  }
  const Files files = tokenizer_files(own.tokenizer.get(), checkpoint, back.config);
  make_folder(folder);
  writer.save(folder + "/model.safetensors");
  write_file_atomically(folder + "/config.json", back.config.text() + "\n");
  for (const auto& [name, content] : files) write_file_atomically(folder + "/" + name, content);
  if (!own.tokenizer || files.count("tokenizer.json")) return {};
  return {"the tokenizer, " + own.tokenizer->name() +
          ", is left out: files of Hugging Face's are written of byte pairs only"};
}

std::vector<std::string> save_as_llm_c(const std::string& checkpoint, const std::string& path) {
  const OwnModel own(checkpoint);
  check_llm_c(own.state.model, own.state.config, checkpoint);
  save_llm_c(path, own.state.config, [&](const std::string& name) { return own.values(name); });
  constexpr int GPT2_TOKENS = 50257;
  const bool is_gpt2s =
      dynamic_cast<const BytePairTokenizer*>(own.tokenizer.get()) && own.tokenizer->vocab() == GPT2_TOKENS;
  if (!own.tokenizer || is_gpt2s) return {};
  return {"the tokenizer, " + own.tokenizer->name() + ", is left out: llm.c's files have none, its programs GPT-2's"};
}

}  // namespace petroglyph
