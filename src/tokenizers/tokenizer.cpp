#include "tokenizers/tokenizer.h"

#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "tokenizers/byte_pairs.h"
#include "tokenizers/characters.h"
#include "tokenizers/foreign_files.h"

namespace petroglyph {

namespace {

std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> all;
  for (const Json& item : list.items()) all.push_back(item.string());
  return all;
}

// An optional list of token numbers.
std::vector<int32_t> token_numbers(const Json& json, const char* key, size_t tokens) {
  std::vector<int32_t> numbers;
  const Json* list = json.find(key);
  for (size_t i = 0; list && i < list->items().size(); ++i) {
    const int64_t number = list->items()[i].integer();
    if (number < 0 || number >= static_cast<int64_t>(tokens))
      throw Error(text("\"%s\" has %lld, expected one of its %zu tokens, from 0 on", key,
                       static_cast<long long>(number), tokens));
    numbers.push_back(static_cast<int32_t>(number));
  }
  return numbers;
}

// A token that is in both "special" and "added" is an added one: older files list it in both if no merge produces it.
BytePairExtras read_extras(const Json& json, size_t tokens) {
  BytePairExtras extras;
  std::map<int32_t, AddedToken> added;
  for (const auto& [key, flag] : ADDED_TOKEN_FLAGS)
    for (const int32_t number : token_numbers(json, key, tokens)) added[number].*flag = true;
  for (const int32_t number : token_numbers(json, "added", tokens)) added[number].special = false;
  for (auto& [number, token] : added) {
    token.token = number;
    extras.added.push_back(token);
  }
  extras.prefix = token_numbers(json, "prefix", tokens);
  extras.suffix = token_numbers(json, "suffix", tokens);
  if (json.find("begin")) extras.begin = token_numbers(json, "begin", tokens);
  if (json.find("end")) extras.end = token_numbers(json, "end", tokens);
  if (json.find("space_before")) extras.space_before = json.at("space_before").boolean();
  return extras;
}

std::unique_ptr<Tokenizer> read_tokenizer(const Json& json, const std::string& origin) {
  if (!json.is(Json::Kind::Object) || json.at("format").string() != "petroglyph tokenizer")
    throw Error("expected \"format\": \"petroglyph tokenizer\"");
  if (json.at("version").integer() != 1)
    throw Error("expected version 1, found " + json.at("version").text() + ": made by a newer program?");
  const std::string& kind = json.at("kind").string();
  if (kind == "ascii") return std::make_unique<AsciiTokenizer>(json.at("replace").boolean());
  if (kind == "bytes") return std::make_unique<ByteTokenizer>();
  if (kind != "bpe") throw Error("expected the kind ascii, bytes or bpe, found \"" + kind + "\"");
  if (json.at("split").string() != "gpt2")
    throw Error("expected the split gpt2, found \"" + json.at("split").string() + "\"");
  const std::vector<std::string> tokens = strings(json.at("tokens")), merges = strings(json.at("merges"));
  return std::make_unique<BytePairTokenizer>(tokens, origin, merges, origin, read_extras(json, tokens.size()));
}

// The tokenizer in a checkpoint's metadata.
std::unique_ptr<Tokenizer> of_checkpoint(const std::string& path) {
  const SafetensorsFile file(path);
  const auto data = file.metadata().find("data");
  const Json json = data == file.metadata().end() ? Json::object() : Json::parse(data->second, path);
  const Json* tokenizer = json.is(Json::Kind::Object) ? json.find("tokenizer") : nullptr;
  if (!tokenizer) throw Error("--tokenizer " + path + ": this checkpoint has none");
  return tokenizer_from_json(*tokenizer, path);
}

}  // namespace

void Tokenizer::check(std::string_view text, const std::string& origin) const {
  if (const std::string wrong = complaint(text); !wrong.empty())
    throw Error(origin + ": " + wrong +
                " (where text is read, --replace puts '?' there; --tokenizer bytes takes everything)");
}

void Tokenizer::check_prompt(std::string_view text, const std::string& origin) const {
  if (const std::string wrong = complaint(text); !wrong.empty()) throw Error(origin + ": " + wrong);
}

int64_t Tokenizer::encode(std::string_view text, std::vector<int32_t>& tokens, Reading reading) const {
  return encode_parts(text, reading,
                      [&](const std::vector<int32_t>& part) { tokens.insert(tokens.end(), part.begin(), part.end()); });
}

std::string Tokenizer::decode(const std::vector<int32_t>& tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    if (token < 0 || token >= vocab())
      throw Error("token " + with_commas(token) + ", expected one of the tokenizer's, 0 to " +
                  with_commas(vocab() - 1));
    text += bytes(token);
  }
  return text;
}

int Tokenizer::characters(int32_t token) const {
  int count = 0;
  for (const char byte : bytes(token)) count += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  return count;
}

std::unique_ptr<Tokenizer> replacing(std::unique_ptr<Tokenizer> tokenizer) {
  if (tokenizer->name() == "ascii") return std::make_unique<AsciiTokenizer>(true);
  return tokenizer;
}

void check_replaces(const Tokenizer& tokenizer) {
  if (tokenizer.name() != "ascii")
    throw UsageError("--replace: does nothing with " + tokenizer.name() + ", a tokenizer that takes every character");
}

namespace {

std::unique_ptr<Tokenizer> of_folder(const std::string& folder) {
  if (auto found = find_tokenizer(folder)) return found;
  if (const std::string run = folder + "/model.safetensors"; std::filesystem::exists(run)) return of_checkpoint(run);
  throw Error("--tokenizer " + folder + ": no tokenizer is in this folder; expected tokenizer.json, vocab.json and " +
              "merges.txt, or a run's model.safetensors");
}

std::unique_ptr<Tokenizer> of_file(const std::string& path) {
  if (is_safetensors(path)) return of_checkpoint(path);
  const std::string text = read_file(path);
  const char* const expected = "; expected a tokenizer's file, or the folder of one with several files (--tokenizer)";
  Json json;
  try {
    json = Json::parse(text, path);
  } catch (const Error& error) {
    throw Error(error.what() + std::string(expected));
  }
  if (is_tokenizer_json(json)) return read_tokenizer_json(json, path);
  if (!json.is(Json::Kind::Object) || !json.find("format")) throw Error(path + ": has no \"format\"" + expected);
  return tokenizer_from_json(json, path);
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name, bool replace) {
  if (name == "ascii") return std::make_unique<AsciiTokenizer>(replace);
  if (name == "bytes") return std::make_unique<ByteTokenizer>();
  if (!std::filesystem::exists(name))
    throw Error("--tokenizer " + name + ": expected ascii, bytes, a tokenizer's file or a folder with GPT-2's, and " +
                "there is no such file");
  auto tokenizer = std::filesystem::is_directory(name) ? of_folder(name) : of_file(name);
  return replace ? replacing(std::move(tokenizer)) : std::move(tokenizer);
}

std::vector<std::string> files_of_tokenizer(const std::string& name) {
  if (name == "ascii" || name == "bytes") return {};
  if (!std::filesystem::is_directory(name)) return {name};
  std::vector<std::string> files = {name + "/model.safetensors"};
  for (const std::string& file : tokenizer_file_names()) files.push_back(name + "/" + file);
  return files;
}

std::unique_ptr<Tokenizer> tokenizer_from_json(const Json& json, const std::string& origin) {
  try {
    return read_tokenizer(json, "the tokenizer");
  } catch (const Error& error) {
    throw Error(origin + ": " + error.what());
  }
}

std::string tokenizer_file_text(const Tokenizer& tokenizer) {
  std::string out = "{";
  const Json json = tokenizer.to_json();
  for (const auto& [key, value] : json.members()) {
    out += (out.size() > 1 ? ",\n" : "") + Json(key).text() + ": ";
    if (!value.is(Json::Kind::Array)) {
      out += value.text();
      continue;
    }
    out += "[";
    for (const Json& item : value.items()) out += (&item == &value.items().front() ? "\n" : ",\n") + item.text();
    out += "]";
  }
  return out + "}\n";
}

}  // namespace petroglyph
