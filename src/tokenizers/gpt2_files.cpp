#include "tokenizers/gpt2_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/byte_spelling.h"
#include "tokenizers/gpt2_split.h"

namespace petroglyph {

namespace {

std::string path_of(const std::string& folder, const char* name, const char* other_name) {
  const std::string path = folder + "/" + name, other = folder + "/" + other_name;
  return !std::filesystem::exists(path) && std::filesystem::exists(other) ? other : path;
}

// The spelled tokens in the order of their numbers.
std::vector<std::string> read_encoder(const std::string& path) {
  const Json json = Json::parse(read_regular_file(path), path);
  if (!json.is(Json::Kind::Object)) throw Error(path + ": is " + name_of(json.kind()) + ", expected an object");
  std::vector<std::string> tokens(json.members().size());
  std::vector<bool> there(tokens.size());
  for (const auto& [spelling, number] : json.members()) {
    const double value = number.is(Json::Kind::Number) ? number.number() : -1;
    const bool good = value >= 0 && value < static_cast<double>(tokens.size()) && value == std::floor(value);
    const size_t place = good ? static_cast<size_t>(value) : 0;
    if (!good || there[place])
      throw Error(path + text(": token \"%s\" has the number %s, expected each from 0 to %zu once", spelling.c_str(),
                              number.text().c_str(), tokens.size() - 1));
    tokens[place] = spelling;
    there[place] = true;
  }
  return tokens;
}

std::vector<std::string> read_merges(const std::string& path) {
  const std::string file = read_regular_file(path);
  std::vector<std::string> merges;
  for (size_t at = 0, end; at < file.size(); at = end + 1) {
    end = std::min(file.find('\n', at), file.size());
    std::string line = file.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const bool heading = at == 0 && line.compare(0, 9, "#version:") == 0;
    if (!heading && !line.empty()) merges.push_back(std::move(line));
  }
  return merges;
}

constexpr const char* END_OF_WORD = "</w>";

bool ends_a_word(const std::string& token) {
  return token.size() > 4 && token.compare(token.size() - 4, 4, END_OF_WORD) == 0;
}

}  // namespace

bool looks_special(std::string_view token) {
  return (token.size() > 2 && token.front() == '<' && token.back() == '>') || token.substr(0, 10) == "madeupword";
}

std::unique_ptr<BytePairTokenizer> read_gpt2_files(const std::string& folder) {
  const std::string encoder = path_of(folder, "encoder.json", "vocab.json");
  const std::string merges = path_of(folder, "vocab.bpe", "merges.txt");
  const std::vector<std::string> tokens = read_encoder(encoder);
  if (std::any_of(tokens.begin(), tokens.end(), ends_a_word) &&
      std::find(tokens.begin(), tokens.end(), spell(std::string_view("\0", 1))) == tokens.end())
    throw Error(encoder + ": tokens that end words with \"" + END_OF_WORD +
                "\", as those of OpenAI's first GPT do, cannot be said: ours are of bytes, as GPT-2's");
  const std::vector<std::string> pairs = read_merges(merges);
  std::unordered_set<std::string> made;
  for (const std::string& pair : pairs) made.insert(std::string(pair).erase(std::min(pair.find(' '), pair.size()), 1));
  std::vector<int32_t> special;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (looks_special(tokens[i]) && !made.count(tokens[i])) special.push_back(static_cast<int32_t>(i));
  auto tokenizer = std::make_unique<BytePairTokenizer>(tokens, encoder, pairs, merges, special);
  for (int32_t token = 0; token < tokenizer->vocab(); ++token) {
    const std::string_view bytes = tokenizer->bytes(token);
    if (made.count(tokens[static_cast<size_t>(token)]) || bytes.size() == 1 || tokenizer->is_special(token)) continue;
    throw Error(merges + text(": no merge makes token %d, \"%s\", of %s: truncated?", token, std::string(bytes).c_str(),
                              encoder.c_str()));
  }
  check_pieces(*tokenizer, encoder);
  return tokenizer;
}

void check_pieces(const BytePairTokenizer& tokenizer, const std::string& origin) {
  for (int32_t token = 0; token < tokenizer.vocab(); ++token) {
    const std::string_view bytes = tokenizer.bytes(token);
    const std::vector<int32_t>& added = tokenizer.added();
    // Of characters that are not whole nothing can be said; 're, 've and 'll may be merged from these two.
    if (!is_utf8(bytes) || bytes == "'r" || bytes == "'v" || bytes == "'l") continue;
    if (tokenizer.is_special(token) || gpt2_piece_end(bytes, 0) == bytes.size()) continue;
    if (std::find(added.begin(), added.end(), token) != added.end()) continue;
    throw Error(origin + text(": token %d, \"%s\", ", token, spell(bytes).substr(0, 60).c_str()) +
                "reaches over a place where GPT-2 cuts texts: it is of a tokenizer that cuts them otherwise");
  }
}

}  // namespace petroglyph
