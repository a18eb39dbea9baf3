#include "tokenizers/foreign_files.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/byte_spelling.h"
#include "tokenizers/gpt2_split.h"

namespace petroglyph {

namespace {

bool is_true(const Json& object, const char* key) {
  const Json* value = object.find(key);
  return value && value->is(Json::Kind::Boolean) && value->boolean();
}

bool is_there(const Json* value) { return value && !value->is(Json::Kind::Null); }

// The common intermediate form of all file formats. Token names are as in the files: vocabulary tokens in byte
// spelling, added tokens as plain text.
struct Draft {
  explicit Draft(size_t most_tokens) : most(most_tokens) {}

  // number: token numbers must be 0, 1, 2, … without gaps
  void set(const Json& number, const std::string& name, std::string spelling, bool is_new) {
    const double value = number.is(Json::Kind::Number) ? number.number() : -1;
    const size_t place = value >= 0 && value < static_cast<double>(most) ? static_cast<size_t>(value) : most;
    if (place < most && tokens.size() <= place) tokens.resize(place + 1);
    if (place == most || static_cast<double>(place) != value || (is_new && !tokens[place].empty()))
      throw Error("token \"" + name.substr(0, 60) + "\" has the number " + number.text().substr(0, 60) +
                  ", expected each from 0 to " + std::to_string(most - 1) + " once");
    tokens[place] = std::move(spelling);
    numbers[name] = static_cast<int32_t>(place);
  }
  void read_vocabulary(const Json& vocab) {
    for (const auto& [name, number] : vocab.members()) set(number, name, unspell(name) ? name : spell(name), true);
  }
  void add(AddedToken token, const Json& number, const std::string& content) {
    set(number, content, spell(content), false);
    token.token = numbers[content];
    mark(token);
  }
  void mark(const AddedToken& token) {
    if (added.insert(token.token).second) extras.added.push_back(token);
  }
  // The number of the token with this name; −1 if there is none.
  int32_t number_of(const std::string& name) const {
    const auto found = numbers.find(name);
    return found == numbers.end() ? -1 : found->second;
  }

  size_t most;  // the number of entries
  std::vector<std::string> tokens, merges;
  std::unordered_map<std::string, int32_t> numbers;
  std::unordered_set<int32_t> added;
  BytePairExtras extras;
};

// Only the results of merges are checked against GPT-2's pieces, because encoding a piece never gives other tokens.
std::unique_ptr<BytePairTokenizer> build(Draft draft, const std::string& tokens_origin,
                                         const std::string& merges_origin) {
  for (size_t i = 0; i < draft.tokens.size(); ++i)
    if (draft.tokens[i].empty()) throw Error(tokens_origin + text(": no token has the number %zu", i));
  auto tokenizer = std::make_unique<BytePairTokenizer>(draft.tokens, tokens_origin, draft.merges, merges_origin,
                                                       std::move(draft.extras));
  for (const Merge& merge : tokenizer->merges()) {
    const std::string_view bytes = tokenizer->bytes(merge.result);
    // Incomplete UTF-8 characters cannot be checked. 're, 've and 'll may be merged from these prefixes.
    if (!is_utf8(bytes) || bytes == "'r" || bytes == "'v" || bytes == "'l" || tokenizer->is_added(merge.result))
      continue;
    if (gpt2_piece_end(bytes, 0) != bytes.size())
      throw Unsupported(tokens_origin + text(": token %d, \"%s\", ", merge.result, spell(bytes).substr(0, 60).c_str()) +
                        "reaches over a place where GPT-2 cuts texts: it is of a tokenizer that cuts them otherwise");
  }
  return tokenizer;
}

// Prepends the file's name to error messages.
template <class Read>
auto with_origin(const std::string& origin, Read read) {
  try {
    return read();
  } catch (const Unsupported& error) {
    throw Unsupported(origin + ": " + error.what());
  } catch (const Error& error) {
    throw Error(origin + ": " + error.what());
  }
}

Json read_json(const std::string& path) {
  const Json json = Json::parse(read_file(path), path);
  if (!json.is(Json::Kind::Object)) throw Error(path + ": is " + name_of(json.kind()) + ", expected an object");
  return json;
}

// ---- tokenizer_config.json, special_tokens_map.json: names ----------------------------------------------------------

AddedToken flags_of(const Json& token) {
  if (is_true(token, "single_word"))
    throw Unsupported("single_word true is not supported: added tokens are found within words, too");
  AddedToken added{-1};
  for (const auto& [key, flag] : ADDED_TOKEN_FLAGS) added.*flag = is_true(token, key);
  return added;
}

// "eos_token": "</s>" or {"content": "</s>", "lstrip": false, …}; "additional_special_tokens": a list of such.
class Names {
 public:
  Names() = default;
  // If the first file has added_tokens_decoder, transformers ignores the second file. Otherwise the second file has
  // priority.
  explicit Names(const std::string& folder) {
    if (const std::string path = folder + "/tokenizer_config.json"; std::filesystem::exists(path))
      config_ = read_json(path);
    const std::string path = folder + "/special_tokens_map.json";
    if (config_.find("added_tokens_decoder") || !std::filesystem::exists(path)) return;
    const Json map = read_json(path);
    for (const auto& [key, value] : map.members()) config_.set(key, value);
  }
  const Json& config() const { return config_; }

  // GPT-2's two files are read as in transformers' GPT2Tokenizer: tokens without a name are <|endoftext|>.
  void read_as_gpt2() {
    for (const char* key : {"unk_token", "bos_token", "eos_token"})
      if (!config_.find(key)) config_.set(key, std::string(END_OF_TEXT));
  }
  std::string named(const char* key) const {
    const Json* value = config_.find(key);
    return value ? content(*value) : "";
  }
  // In the order in which transformers adds them. If two entries describe the same token differently, the later one
  // is used.
  std::vector<const Json*> special() const {
    static const std::vector<std::string> FIRST = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                   "pad_token", "cls_token", "mask_token"};
    std::vector<const Json*> all;
    const auto add = [&](const Json& value) {
      if (std::none_of(all.begin(), all.end(), [&](const Json* other) { return *other == value; }))
        all.push_back(&value);
    };
    for (const std::string& key : FIRST)
      if (const Json* value = config_.find(key)) add(*value);
    for (const auto& [key, value] : config_.members()) {
      if (key.size() > 6 && key.compare(key.size() - 6, 6, "_token") == 0) add(value);
      const bool several = key == "additional_special_tokens" || key == "extra_special_tokens";
      for (size_t i = 0; several && value.is(Json::Kind::Array) && i < value.items().size(); ++i) add(value.items()[i]);
    }
    return all;
  }
  bool is_special(const std::string& name) const {
    const std::vector<const Json*> all = special();
    return std::any_of(all.begin(), all.end(), [&](const Json* value) { return content(*value) == name; });
  }

  // Makes every existing token that is named here a special token, unless it is already an added token. Also sets the
  // tokens that begin and end texts.
  void apply(Draft& draft) const {
    const std::vector<const Json*> all = special();
    for (auto value = all.rbegin(); value != all.rend(); ++value) {
      AddedToken token = (*value)->is(Json::Kind::Object) ? flags_of(**value) : AddedToken{-1};
      token.special = true;
      token.token = draft.number_of(content(**value));
      if (token.token >= 0) draft.mark(token);
    }
    if (const int32_t end = draft.number_of(named("eos_token")); end >= 0) draft.extras.end = {end};
    if (const int32_t begin = draft.number_of(named("bos_token")); begin >= 0) draft.extras.begin = {begin};
  }

 private:
  static std::string content(const Json& value) {
    const Json* words = value.is(Json::Kind::Object) ? value.find("content") : &value;
    return words && words->is(Json::Kind::String) ? words->string() : "";
  }

  Json config_ = Json::object();
};

// ---- tokenizer.json -------------------------------------------------------------------------------------------------

// {"type": "ByteLevel", "add_prefix_space": false}, alone or as the only element of a sequence.
void read_splitting(const Json* json, BytePairExtras& extras) {
  if (!is_there(json)) throw Unsupported("pre_tokenizer: expected ByteLevel, found none");
  const std::string& type = json->at("type").string();
  if (type == "Sequence" && json->at("pretokenizers").items().size() == 1)
    return read_splitting(&json->at("pretokenizers").items()[0], extras);
  if (type != "ByteLevel")
    throw Unsupported("pre_tokenizer \"" + type + "\" is not supported: texts are cut as GPT-2's ByteLevel does it");
  extras.space_before = is_true(*json, "add_prefix_space");
  if (json->find("use_regex") && !is_true(*json, "use_regex"))
    throw Unsupported("use_regex false is not supported: texts are cut as GPT-2 does it");
}

// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens": {"<s>": {"ids": [0]}}}
void read_template(const Json& json, BytePairExtras& extras) {
  std::vector<int32_t> around[2];
  size_t texts = 0;
  for (const Json& piece : json.at("single").items()) {
    if (piece.find("Sequence") && ++texts) continue;
    const Json& special = json.at("special_tokens").at(piece.at("SpecialToken").at("id").string());
    for (const Json& id : special.at("ids").items()) around[texts > 0].push_back(static_cast<int32_t>(id.integer()));
  }
  if (texts != 1) throw Unsupported("post_processor: expected a template with one text in it");
  extras.prefix.insert(extras.prefix.begin(), around[0].begin(), around[0].end());
  extras.suffix.insert(extras.suffix.end(), around[1].begin(), around[1].end());
}

void read_around(const Json& json, BytePairExtras& extras) {
  const std::string& type = json.at("type").string();
  if (type == "Sequence") {
    for (const Json& part : json.at("processors").items()) read_around(part, extras);
  } else if (type == "TemplateProcessing") {
    read_template(json, extras);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {  // "cls": ["<s>", 0], "sep": ["</s>", 2]
    const auto number = [&](const char* key) {
      const auto& token = json.at(key).items();
      if (token.size() != 2) throw Error(std::string("post_processor: ") + key + ": expected a token and its number");
      return static_cast<int32_t>(token[1].integer());
    };
    extras.prefix.insert(extras.prefix.begin(), number("cls"));
    extras.suffix.push_back(number("sep"));
  } else if (type != "ByteLevel") {  // which only changes offsets
    throw Unsupported("post_processor \"" + type +
                      "\" is not supported: a text may have tokens before and after it, no more");
  }
}

Draft draft_of_json(const Json& json, const Names& names) {
  const Json& model = json.at("model");
  if (const Json* type = model.find("type"); type && type->is(Json::Kind::String) && type->string() != "BPE")
    throw Unsupported("model \"" + type->string() + "\" is not supported, only pairs of bytes, BPE");
  if (is_true(model, "ignore_merges"))
    throw Unsupported("ignore_merges true is not supported: no piece is a token but by merges");
  // NFC normalization is not implemented: nearly all texts are in this form already.
  if (const Json* form = json.find("normalizer"); is_there(form) && form->at("type").string() != "NFC")
    throw Unsupported("normalizer \"" + form->at("type").string() + "\" is not supported: no text is changed");
  const Json* added = json.find("added_tokens");
  Draft draft(model.at("vocab").members().size() + (added ? added->items().size() : 0));
  read_splitting(json.find("pre_tokenizer"), draft.extras);
  draft.read_vocabulary(model.at("vocab"));
  for (size_t i = 0; added && i < added->items().size(); ++i)
    draft.add(flags_of(added->items()[i]), added->items()[i].at("id"), added->items()[i].at("content").string());
  if (const Json* around = json.find("post_processor"); is_there(around)) read_around(*around, draft.extras);
  for (const auto* list : {&draft.extras.prefix, &draft.extras.suffix})
    for (const int32_t token : *list)
      if (token < 0 || static_cast<size_t>(token) >= draft.tokens.size())
        throw Error(text("post_processor: token %d, expected one of the %zu tokens", token, draft.tokens.size()));
  for (const Json& merge : model.at("merges").items()) {
    const bool pair = merge.is(Json::Kind::Array);
    if (pair && merge.items().size() != 2) throw Error("a merge of other than two tokens");
    draft.merges.push_back(pair ? merge.items()[0].string() + " " + merge.items()[1].string() : merge.string());
  }
  names.apply(draft);
  return draft;
}

std::unique_ptr<BytePairTokenizer> read_json_tokenizer(const Json& json, const std::string& origin,
                                                       const Names& names) {
  Draft draft = with_origin(origin, [&] { return draft_of_json(json, names); });
  return build(std::move(draft), origin, origin);
}

// ---- vocab.json and merges.txt --------------------------------------------------------------------------------------

std::vector<std::string> read_merges(const std::string& path) {
  std::vector<std::string> merges;
  for (std::string& line : split(read_file(path), '\n')) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty() && line.compare(0, 9, "#version:") != 0) merges.push_back(std::move(line));
  }
  return merges;
}

// A token that no merge produces never occurs in an encoded text, unless it is an added token. But a token that
// begins with a space must be the result of a merge. If no merge produces it, merges are missing.
void check_made(const Draft& draft, const std::string& tokens_origin, const std::string& merges_origin) {
  std::unordered_set<std::string> made;
  for (std::string merge : draft.merges) made.insert(merge.erase(std::min(merge.find(' '), merge.size()), 1));
  const std::string space = spell(" ");
  for (size_t i = 0; i < draft.tokens.size(); ++i) {
    const std::string& token = draft.tokens[i];
    if (token.size() <= space.size() || token.compare(0, space.size(), space) != 0) continue;
    if (!made.count(token) && !draft.added.count(static_cast<int32_t>(i)))
      throw Error(merges_origin + text(": no merge makes token %zu, \"%s\", of ", i, token.c_str()) + tokens_origin +
                  ": truncated?");
  }
}

// added_tokens.json, or the equivalent entry of tokenizer_config.json.
void add_beside(Draft& draft, const Json& decoder, const Json& list, const Names& names) {
  for (const auto& [number, token] : decoder.members())
    draft.add(flags_of(token), parse_number(number).value_or(-1), token.at("content").string());
  for (const auto& [content, number] : list.members()) {
    AddedToken added{-1, names.is_special(content)};
    added.normalized = !added.special;
    draft.add(added, number, content);
  }
}

std::unique_ptr<BytePairTokenizer> read_two_files(const std::string& folder) {
  const std::string vocab_path = folder + "/vocab.json", merges_path = folder + "/merges.txt",
                    list_path = folder + "/added_tokens.json";
  const Json vocab = read_json(vocab_path);
  Names names(folder);
  names.read_as_gpt2();
  const Json* decoder = names.config().find("added_tokens_decoder");
  const bool has_list = !decoder && std::filesystem::exists(list_path);
  const Json none = Json::object(), list = has_list ? read_json(list_path) : none;
  Draft draft(vocab.members().size() + list.members().size() + (decoder ? decoder->members().size() : 0));
  with_origin(vocab_path, [&] { draft.read_vocabulary(vocab); });
  draft.merges = read_merges(merges_path);
  with_origin(has_list ? list_path : folder + "/tokenizer_config.json", [&] {
    add_beside(draft, decoder ? *decoder : none, list, names);
    names.apply(draft);
  });
  check_made(draft, vocab_path, merges_path);
  draft.extras.space_before = is_true(names.config(), "add_prefix_space");
  const int32_t begin = draft.number_of(names.named("bos_token")), end = draft.number_of(names.named("eos_token"));
  if (begin >= 0 && is_true(names.config(), "add_bos_token")) draft.extras.prefix = {begin};
  if (end >= 0 && is_true(names.config(), "add_eos_token")) draft.extras.suffix = {end};
  return build(std::move(draft), vocab_path, merges_path);
}

}  // namespace

bool is_tokenizer_json(const Json& json) {
  const Json* model = json.is(Json::Kind::Object) ? json.find("model") : nullptr;
  return model && model->is(Json::Kind::Object) && model->find("vocab");
}

std::unique_ptr<BytePairTokenizer> read_tokenizer_json(const Json& json, const std::string& origin) {
  return read_json_tokenizer(json, origin, {});
}

const std::vector<std::string>& tokenizer_file_names() {
  static const std::vector<std::string> NAMES = {
      "tokenizer.json",          "vocab.json",           "merges.txt", "added_tokens.json",
      "special_tokens_map.json", "tokenizer_config.json"};
  return NAMES;
}

std::unique_ptr<BytePairTokenizer> find_tokenizer(const std::string& folder) {
  const auto has = [&](const char* name) { return std::filesystem::exists(folder + "/" + name); };
  if (const std::string path = folder + "/tokenizer.json"; has("tokenizer.json"))
    return read_json_tokenizer(read_json(path), path, Names(folder));
  if (has("vocab.json") || has("merges.txt")) return read_two_files(folder);  // it reports the missing file
  return nullptr;
}

}  // namespace petroglyph
