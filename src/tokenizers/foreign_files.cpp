#include "tokenizers/foreign_files.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/byte_spelling.h"
#include "tokenizers/gpt2_files.h"

namespace petroglyph {

namespace {

// ---- tokenizer.json -------------------------------------------------------------------------------------------------

// The spelled tokens by their numbers, which must be 0, 1, 2, … without a hole.
class TokenList {
 public:
  explicit TokenList(size_t most) : most_(most) {}  // entries that there are
  void set(int64_t number, std::string spelling) {
    if (number < 0 || static_cast<uint64_t>(number) >= most_)
      throw Error(text("token \"%s\" has the number %lld, of %zu tokens", spelling.substr(0, 60).c_str(),
                       static_cast<long long>(number), most_));
    const auto place = static_cast<size_t>(number);
    if (tokens_.size() <= place) tokens_.resize(place + 1);
    tokens_[place] = std::move(spelling);
  }
  bool has(int64_t number) const {
    return number >= 0 && static_cast<uint64_t>(number) < tokens_.size() &&
           !tokens_[static_cast<size_t>(number)].empty();
  }
  const std::vector<std::string>& tokens() const {
    for (size_t i = 0; i < tokens_.size(); ++i)
      if (tokens_[i].empty()) throw Error(text("no token has the number %zu", i));
    return tokens_;
  }

 private:
  size_t most_;
  std::vector<std::string> tokens_;
};

// {"type": "ByteLevel", "add_prefix_space": false}, by itself or as the only one of a sequence.
void check_splitting(const Json* json) {
  if (!json || json->is(Json::Kind::Null)) throw Error("pre_tokenizer: expected ByteLevel, found none");
  const std::string& type = json->at("type").string();
  if (type == "Sequence" && json->at("pretokenizers").items().size() == 1)
    return check_splitting(&json->at("pretokenizers").items()[0]);
  if (type != "ByteLevel")
    throw Error("pre_tokenizer \"" + type + "\" cannot be said: ours cuts texts as GPT-2's ByteLevel does");
  const Json* space = json->find("add_prefix_space");
  if (space && space->boolean()) throw Error("add_prefix_space true cannot be said: ours adds nothing to a text");
  const Json* regex = json->find("use_regex");
  if (regex && !regex->boolean()) throw Error("use_regex false cannot be said: ours cuts texts as GPT-2 does");
}

// Unicode's composed form, of which nearly all texts are, is taken for granted.
void check_normalizer(const Json* json) {
  if (!json || json->is(Json::Kind::Null) || json->at("type").string() == "NFC") return;
  throw Error("normalizer \"" + json->at("type").string() + "\" cannot be said: ours changes no text");
}

bool is_true(const Json& object, const char* key) {
  const Json* value = object.find(key);
  return value && value->is(Json::Kind::Boolean) && value->boolean();
}

// Special ones are no part of a text; of all others a text is made before its pieces are merged.
void add_tokens(const Json& added, TokenList& list, std::vector<int32_t>& special, std::vector<int32_t>& cut_out) {
  for (const Json& token : added.items()) {
    const auto number = static_cast<int32_t>(token.at("id").integer());
    const std::string& content = token.at("content").string();
    const bool known = list.has(token.at("id").integer());
    list.set(token.at("id").integer(), spell(content));
    if (!known || is_true(token, "special")) special.push_back(number);
    if (is_true(token, "special")) continue;
    for (const char* key : {"single_word", "lstrip", "rstrip"})
      if (is_true(token, key))
        throw Error("added token \"" + content.substr(0, 60) + "\": " + key +
                    " true cannot be said: ours is cut out of " + "a text wherever it is");
    cut_out.push_back(number);
  }
}

std::unique_ptr<BytePairTokenizer> build(const Json& json, const std::string& origin) {
  const Json& model = json.at("model");
  if (is_true(model, "ignore_merges"))
    throw Error("ignore_merges true cannot be said: ours takes no piece for a token but by merges");
  const Json* suffix = model.find("end_of_word_suffix");
  if (suffix && suffix->is(Json::Kind::String) && !suffix->string().empty())
    throw Error("end_of_word_suffix \"" + suffix->string() +
                "\" cannot be said: tokens of ours are of bytes, as GPT-2's");
  check_normalizer(json.find("normalizer"));
  check_splitting(json.find("pre_tokenizer"));
  const Json* added = json.find("added_tokens");
  TokenList list(model.at("vocab").members().size() + (added ? added->items().size() : 0));
  for (const auto& [spelling, number] : model.at("vocab").members()) list.set(number.integer(), spelling);
  std::vector<int32_t> special, cut_out;
  if (added) add_tokens(*added, list, special, cut_out);
  std::vector<std::string> merges;
  for (const Json& merge : model.at("merges").items()) {
    const bool pair = merge.is(Json::Kind::Array);
    if (pair && merge.items().size() != 2) throw Error("a merge of other than two tokens");
    merges.push_back(pair ? merge.items()[0].string() + " " + merge.items()[1].string() : merge.string());
  }
  auto tokenizer = std::make_unique<BytePairTokenizer>(list.tokens(), origin, merges, origin, special, cut_out);
  check_pieces(*tokenizer, origin);
  return tokenizer;
}

// ---- *.tiktoken -----------------------------------------------------------------------------------------------------

std::string from_base64(std::string_view digits) {
  constexpr std::string_view DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t held = 0;
  int bits = 0;
  for (const char digit : digits) {
    if (digit == '=') break;
    const size_t value = DIGITS.find(digit);
    if (value == std::string_view::npos) throw Error("expected base 64, found '" + std::string(1, digit) + "'");
    held = held << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(held >> bits & 0xFF);
  }
  return bytes;
}

using MergeRanks = std::unordered_map<std::string, size_t>;

// The two parts that a token is merged from: what is left of its bytes when all pairs of lower ranks are merged, the lowest first.
std::string merge_of(const std::string& token, size_t rank, const MergeRanks& ranks) {
  std::vector<std::string> parts;
  for (const char byte : token) parts.emplace_back(1, byte);
  while (parts.size() > 2) {
    size_t best = rank, place = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find(parts[i] + parts[i + 1]);
      if (found != ranks.end() && found->second < best) best = found->second, place = i;
    }
    if (best == rank) throw Error(text("token %zu is made of no two others", rank));
    parts[place] += parts[place + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  return spell(parts[0]) + " " + spell(parts[1]);
}

std::unique_ptr<BytePairTokenizer> build_tiktoken(const std::string& path) {
  std::vector<std::string> tokens, merges;
  MergeRanks ranks;
  for (const std::string& line : split(read_regular_file(path), '\n')) {
    if (trim(line).empty()) continue;
    const size_t space = line.find(' ');
    const auto number = space == std::string::npos ? std::nullopt : parse_integer(trim(line.substr(space + 1)));
    if (!number || *number != static_cast<int64_t>(tokens.size()))
      throw Error("line " + with_commas(static_cast<int64_t>(tokens.size()) + 1) +
                  ": expected a token and its number, " + std::to_string(tokens.size()));
    const std::string bytes = from_base64(line.substr(0, space));
    if (bytes.size() > 1 << 12) throw Error(text("token %zu has %zu bytes", tokens.size(), bytes.size()));
    ranks.emplace(bytes, tokens.size());
    tokens.push_back(spell(bytes));
    if (bytes.size() > 1) merges.push_back(merge_of(bytes, tokens.size() - 1, ranks));
  }
  // GPT-2's file has what texts are made of; the token between them comes after.
  const auto last = static_cast<int32_t>(tokens.size());
  tokens.push_back("<|endoftext|>");
  auto tokenizer = std::make_unique<BytePairTokenizer>(tokens, path, merges, path, std::vector<int32_t>{last});
  check_pieces(*tokenizer, path);
  return tokenizer;
}

// What is wrong, after the file's name.
template <class Build>
auto with_origin(const std::string& origin, Build build) {
  try {
    return build();
  } catch (const Error& error) {
    const std::string what = error.what();
    throw Error(what.compare(0, origin.size(), origin) == 0 ? what : origin + ": " + what);
  }
}

}  // namespace

bool is_tokenizer_json(const Json& json) {
  const Json* model = json.is(Json::Kind::Object) ? json.find("model") : nullptr;
  return model && model->is(Json::Kind::Object) && model->find("vocab");
}

std::unique_ptr<BytePairTokenizer> read_tokenizer_json(const Json& json, const std::string& origin) {
  return with_origin(origin, [&] {
    const Json* type = json.at("model").find("type");
    if (type && type->is(Json::Kind::String) && type->string() != "BPE")
      throw Error("model \"" + type->string() + "\" cannot be said: ours merges pairs of bytes, BPE");
    return build(json, origin);
  });
}

bool is_tiktoken_file(const std::string& path) { return std::filesystem::path(path).extension() == ".tiktoken"; }

std::unique_ptr<BytePairTokenizer> read_tiktoken_file(const std::string& path) {
  return with_origin(path, [&] { return build_tiktoken(path); });
}

std::unique_ptr<BytePairTokenizer> find_tokenizer(const std::string& folder) {
  const auto has = [&](const char* name) { return std::filesystem::exists(folder + "/" + name); };
  if ((has("encoder.json") && has("vocab.bpe")) || (has("vocab.json") && has("merges.txt")))
    return read_gpt2_files(folder);
  const std::string path = folder + "/tokenizer.json";
  if (has("tokenizer.json")) return read_tokenizer_json(Json::parse(read_regular_file(path), path), path);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (is_tiktoken_file(entry.path().string())) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files.empty() ? nullptr : read_tiktoken_file(files.front());
}

}  // namespace petroglyph
