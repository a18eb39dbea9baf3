// Text on its way to a model: splitting, tokenizers, corpora, batches, stories, and the program that makes shards.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <sys/stat.h>

#include "base/checksum.h"
#include "base/error.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "check.h"
#include "dice.h"
#include "gpt2_pieces.h"
#include "math/random.h"
#include "shell.h"
#include "tasks/copying.h"
#include "tasks/corpus.h"
#include "tasks/language_modeling.h"
#include "tasks/last_token.h"
#include "tasks/shard_writer.h"
#include "tasks/stories.h"
#include "tokenizers/byte_pair_training.h"
#include "tokenizers/byte_spelling.h"
#include "tokenizers/characters.h"
#include "tokenizers/foreign_files.h"
#include "tokenizers/gpt2_split.h"
#include "tokenizers/unicode_ranges.h"

using namespace petroglyph;

namespace {

// Bytes of all kinds, among them much that the splitting looks at.
std::string wild_text(Dice& dice, size_t length) {
  static const std::vector<std::string> parts = {"'",      " ",      "\n", "\t",   "s",    "re",   "'ll",
                                                 "the",    "a",      "7",  "½",    "é",    "東",   "😀",
                                                 "\u00A0", "\u3000", "!",  "\xE2", "\x80", "\xFF", "\xF0\x9F"};
  std::string text;
  while (text.size() < length)
    text += dice.below(8) == 0 ? std::string(1, static_cast<char>(dice.below(256))) : parts[dice.below(parts.size())];
  return text;
}

std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> pieces;
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = gpt2_piece_end(text, at);
    pieces.emplace_back(text.substr(at, end - at));
  }
  return pieces;
}

std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> tokens;
  tokenizer.encode(text, tokens);
  return tokens;
}

std::vector<int32_t> all_of(const Corpus& corpus) {
  std::vector<int32_t> tokens(static_cast<size_t>(corpus.size()));
  corpus.read(0, corpus.size(), tokens.data());
  return tokens;
}

void characters(Test& test) {
  int letters = 0, numbers = 0, spaces = 0;
  for (uint32_t code = 0; code < 0x110000; ++code) {
    letters += class_of(code) == CharacterClass::Letter;
    numbers += class_of(code) == CharacterClass::Number;
    spaces += class_of(code) == CharacterClass::Space;
  }
  test.equal("Unicode", std::string(UNICODE_VERSION), "17.0.0");
  test.equal("letters", letters, 145672);
  test.equal("numbers", numbers, 1924);
  test.equal("white space", spaces, 25);
  for (const uint32_t code : {0x41, 0xAA, 0xE9, 0x4E00, 0x10FFFF})
    test.equal(text("U+%04X is a letter", code), class_of(code) == CharacterClass::Letter, code != 0x10FFFF);
}

void splitting(Test& test) {
  for (const SplitText& row : GPT2_PIECES) test.equal("\"" + row.text + "\"", pieces_of(row.text), row.pieces);
  Dice dice(stream_of("splitting"));
  bool whole = true;
  for (int i = 0; i < 300; ++i) {
    const std::string text = wild_text(dice, 200);
    whole = whole && join(pieces_of(text), "") == text;
  }
  test.check("pieces of random bytes make up the text", whole);
}

void characters_as_tokens(Test& test) {
  const AsciiTokenizer strict(false), lenient(true);
  const ByteTokenizer bytes;
  const std::string plain("a\0Z\x7F\n", 5), accents = "caf\u00E9 \u6771\u4EAC!";
  test.equal("ascii", encode(strict, plain), {'a', 0, 'Z', 127, '\n'});
  test.equal("ascii comes back", strict.decode(encode(strict, plain)), plain);
  strict.check(plain, "x");
  test.equal("ascii refuses", message_of([&] { strict.check("a\nbc\u00E9", "x.txt"); }),
             "x.txt: line 2, byte 4: '\u00E9' is no 7-bit ASCII character "
             "(where text is read, --replace puts '?' there; --tokenizer bytes takes everything)");
  test.equal("of a prompt without what helps elsewhere", message_of([&] { strict.check_prompt("\u00E9", "--prompt"); }),
             "--prompt: line 1, byte 0: '\u00E9' is no 7-bit ASCII character");
  for (const auto& [first, name] :
       {std::pair("\uFEFF", "'\\uFEFF'"), {"\u0085", "'\\u0085'"}, {"\U0001F600", "'\U0001F600'"}})
    test.equal("and names it", strict.complaint(first + std::string("a")),
               std::string("line 1, byte 0: ") + name + " is no 7-bit ASCII character");
  test.equal("ascii has all of its own", strict.complaint(plain) + lenient.complaint(accents), "");
  test.throws("'\\xFF' is no 7-bit", [&] { strict.check("a\xFF", "x"); });
  lenient.check(accents, "x");
  std::vector<int32_t> tokens;
  test.equal("characters replaced", lenient.encode(accents, tokens), int64_t(3));
  test.equal("by question marks", lenient.decode(tokens),
             "caf? ?"
             "?!");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  test.equal("bytes come back", bytes.decode(encode(bytes, all)), all);
  test.throws("token 256, expected one of the tokenizer's, 0 to 255", [&] { bytes.decode({256}); });
  test.throws("token -1, expected one of", [&] { strict.decode({-1}); });
  test.equal("a byte that begins no character", bytes.characters(0xA9), 0);
  std::string long_text;  // of more than one part
  while (long_text.size() < 9'000'000) long_text += accents;
  tokens.clear();
  const auto count = static_cast<int64_t>(long_text.size() / accents.size());
  test.equal("ascii: replaced in a long text", lenient.encode(long_text, tokens), 3 * count);
  test.equal("ascii: its tokens", tokens.size(), static_cast<size_t>(8 * count));
  test.check("bytes of a long text come back", bytes.decode(encode(bytes, long_text)) == long_text);
}

// The definition, word for word: all places of the pair that is first in the list, again and again.
std::vector<std::string> merge_slowly(const std::string& piece, const std::vector<std::string>& merges) {
  std::vector<std::string> symbols;
  for (const char byte : piece) symbols.push_back(spell(std::string(1, byte)));
  for (;;) {
    size_t best = merges.size();
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = std::find(merges.begin(), merges.end(), symbols[i] + " " + symbols[i + 1]);
      best = std::min(best, static_cast<size_t>(found - merges.begin()));
    }
    if (best == merges.size()) return symbols;
    std::vector<std::string> merged;
    for (size_t i = 0; i < symbols.size(); ++i) {
      const bool here = i + 1 < symbols.size() && symbols[i] + " " + symbols[i + 1] == merges[best];
      merged.push_back(here ? symbols[i] + symbols[i + 1] : symbols[i]);
      i += here;
    }
    symbols = merged;
  }
}

std::vector<std::string> all_bytes_spelled() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(spell(std::string(1, static_cast<char>(byte))));
  return tokens;
}

// Merges in any order, of tokens that may come later in the list, over an alphabet of two letters.
BytePairTokenizer random_merges(Dice& dice, std::vector<std::string>& merges) {
  std::vector<std::string> tokens = all_bytes_spelled(), parts = {"a", "b"};
  while (merges.size() < 12) {
    const std::string left = parts[dice.below(parts.size())];
    const std::string right = parts[dice.below(parts.size())];
    const std::string merge = left + " " + right, made = left + right;
    if (std::find(merges.begin(), merges.end(), merge) != merges.end()) continue;
    merges.insert(merges.begin() + static_cast<std::ptrdiff_t>(dice.below(merges.size() + 1)), merge);
    if (std::find(parts.begin(), parts.end(), made) != parts.end()) continue;
    parts.push_back(made);
    tokens.push_back(made);
  }
  return {tokens, "tokens", merges, "merges"};
}

void merging(Test& test) {
  Dice dice(stream_of("merging"));
  bool same = true;
  for (int list = 0; list < 60; ++list) {
    std::vector<std::string> merges;
    const BytePairTokenizer tokenizer = random_merges(dice, merges);
    for (int i = 0; i < 20; ++i) {
      std::string piece;
      for (size_t n = 1 + dice.below(30); n > 0; --n) piece += dice.below(2) == 0 ? 'a' : 'b';
      std::vector<std::string> found;
      for (const int32_t token : encode(tokenizer, piece)) found.emplace_back(tokenizer.bytes(token));
      same = same && found == merge_slowly(piece, merges);
    }
  }
  test.check("what the definition gives, for any list of merges", same);
  // Every pair of letters is a token: a piece of many kinds of pairs, minutes if all of it were looked through for each.
  std::string words, piece;
  for (char first = 'a'; first <= 'z'; ++first)
    for (char second = 'a'; second <= 'z'; ++second)
      words += std::string("\n") + first + second + "\n" + first + second;
  const auto pairs = train_byte_pairs({words}, 800);
  for (int i = 0; i < 1000000; ++i) piece += static_cast<char>('a' + dice.below(26));
  test.check("a piece of a million letters", pairs->decode(encode(*pairs, piece)) == piece);
}

// The definition, word for word: the first place where a word begins, and of these words the longest; then what is
// behind it.
std::vector<std::pair<size_t, int32_t>> find_slowly(std::string_view text, const std::vector<std::string>& words,
                                                    size_t first) {
  std::vector<std::pair<size_t, int32_t>> found;
  for (size_t at = 0; at < text.size();) {
    size_t longest = 0;
    for (size_t i = first; i < words.size(); ++i)
      if (words[i].size() > longest && text.compare(at, words[i].size(), words[i]) == 0) {
        longest = words[i].size();
        if (found.empty() || found.back().first != at) found.emplace_back(at, 0);
        found.back().second = static_cast<int32_t>(i);
      }
    at += std::max<size_t>(longest, 1);
  }
  return found;
}

void added_token_search(Test& test) {
  Dice dice(stream_of("added tokens"));
  bool same = true;
  for (int round = 0; round < 200; ++round) {
    const auto letters = [&](uint32_t most) {
      std::string word;
      for (size_t n = 1 + dice.below(most); n > 0; --n) word += "aab"[dice.below(3)];
      return word;
    };
    std::vector<std::string> words, tokens = all_bytes_spelled();
    BytePairExtras extras;
    for (int i = 0; i < 8; ++i) {
      words.push_back(letters(6));
      tokens.push_back(words.back());
      extras.added.push_back({256 + i, i < 3});  // the first three are special
    }
    const BytePairTokenizer tokenizer(tokens, "tokens", {}, "merges", extras);
    const std::string text = letters(60);
    for (const bool special : {false, true}) {
      std::vector<std::pair<size_t, int32_t>> found;
      size_t at = 0;
      tokenizer.cut_out(
          text, special, [&](std::string_view piece) { at += piece.size(); },
          [&](int32_t token) {
            found.emplace_back(at, token - 256);
            at += tokenizer.bytes(token).size();
          });
      same = same && at == text.size() && found == find_slowly(text, words, special ? 0 : 3);
    }
  }
  test.check("the first, and of these the longest, of any words", same);
}

void byte_pairs(Test& test) {
  const std::string stories = tell_stories(1, 1, 20000);
  const auto tokenizer = train_byte_pairs({stories}, 600);
  test.equal("tokens", tokenizer->vocab(), 600);
  // with tokens that are cut out of a text: of some merges, of one byte, over the ends of pieces
  Json json = tokenizer->to_json(), added = Json::array();
  for (const int token : {100, 310, 311, 312}) added.push(token);
  const auto cutting = tokenizer_from_json(json.set("added", added), "x");
  Dice dice(stream_of("byte pairs"));
  bool back = true;
  for (int i = 0; i < 300; ++i) {
    const std::string text = i % 2 == 0 ? wild_text(dice, 1 + dice.below(300)) : stories.substr(dice.below(15000), 300);
    for (const Tokenizer* each : std::vector<const Tokenizer*>{tokenizer.get(), cutting.get()})
      back = back && each->decode(encode(*each, text)) == text;
  }
  test.check("random bytes and stories come back", back);
  std::string words;  // more than the encoder remembers
  for (int i = 0; i < 300000; ++i) words += " w" + std::to_string(i);
  test.check("very many words come back", tokenizer->decode(encode(*tokenizer, words + words)) == words + words);
  const std::string letters(100000, 'e');
  test.check("a very long word comes back", tokenizer->decode(encode(*tokenizer, letters)) == letters);
  test.equal("nothing", encode(*tokenizer, "").size(), size_t(0));
}

// The rule of byte_pair_training.h, counted again for every merge.
std::vector<std::string> train_slowly(const std::string& text, int vocab) {
  std::vector<std::vector<int>> words;
  std::vector<std::string> tokens = all_bytes_spelled(), merges;
  for (const std::string& piece : pieces_of(text)) {
    words.emplace_back();
    for (const char byte : piece) words.back().push_back(static_cast<unsigned char>(byte));
  }
  while (static_cast<int>(tokens.size()) < vocab) {
    std::map<std::pair<int, int>, int64_t> counts;
    for (const auto& word : words)
      for (size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    std::pair<int, int> best;
    int64_t most = 1;
    for (const auto& [pair, count] : counts) {
      const std::string made = tokens[static_cast<size_t>(pair.first)] + tokens[static_cast<size_t>(pair.second)];
      if (count <= most || std::find(tokens.begin(), tokens.end(), made) != tokens.end()) continue;
      best = pair;
      most = count;
    }
    if (most == 1) break;
    const auto made = static_cast<int>(tokens.size());
    merges.push_back(tokens[static_cast<size_t>(best.first)] + " " + tokens[static_cast<size_t>(best.second)]);
    tokens.push_back(tokens[static_cast<size_t>(best.first)] + tokens[static_cast<size_t>(best.second)]);
    for (auto& word : words) {
      std::vector<int> merged;
      for (size_t i = 0; i < word.size(); ++i) {
        const bool here = i + 1 < word.size() && word[i] == best.first && word[i + 1] == best.second;
        merged.push_back(here ? made : word[i]);
        i += here;
      }
      word = merged;
    }
  }
  return merges;
}

std::vector<std::string> merges_of(const Tokenizer& tokenizer) {
  std::vector<std::string> merges;
  const Json json = tokenizer.to_json();
  for (const Json& merge : json.at("merges").items()) merges.push_back(merge.string());
  return merges;
}

void training(Test& test) {
  const std::string stories = tell_stories(3, 1, 3000);
  test.equal("stories", merges_of(*train_byte_pairs({stories}, 450)), train_slowly(stories, 450));
  Dice dice(stream_of("training"));
  for (int i = 0; i < 8; ++i) {
    std::string text;
    for (int n = 0; n < 400; ++n) text += "aab b\n"[dice.below(6)];
    test.equal("letters " + std::to_string(i), merges_of(*train_byte_pairs({text}, 300)), train_slowly(text, 300));
  }
  const size_t half = stories.find("\n") + 1;
  test.equal("from two texts", merges_of(*train_byte_pairs({stories.substr(0, half), stories.substr(half)}, 400)),
             train_slowly(stories, 400));
  test.equal("nothing to learn", train_byte_pairs({"abc"}, 400)->vocab(), 256);
  const std::string documents = "abab<|endoftext|>abab";
  const auto with_end = train_byte_pairs({documents}, 400, true);
  test.equal("documents and their end", merges_of(*with_end), {"a b", "ab ab"});
  test.equal("which is the last token", with_end->end_of_text(), {258});
  std::vector<int32_t> tokens;
  with_end->encode(documents, tokens, Reading::DOCUMENTS);
  test.equal("between documents", tokens, {257, 258, 257});
  test.equal("no text", train_byte_pairs({""}, 400)->vocab(), 256);
  test.throws("at least 256 tokens, not 255", [] { train_byte_pairs({"abc"}, 255); });
  const std::string run(100000, 'x');
  test.equal("one long word", train_byte_pairs({run}, 262)->bytes(261).size(), size_t(64));
  // Of its parts none begins what is no piece of the text, as 's would be.
  const std::string marks(1024, '!');
  for (const std::string& merge : merges_of(*train_byte_pairs({marks + "'s " + marks + "'s " + marks + "'s"}, 300)))
    test.check("a long word cut: " + merge, merge != "' s");
}

void tokenizer_files(Test& test) {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.json");
  const auto trained = train_byte_pairs({tell_stories(1, 1, 3000)}, 300);
  const AsciiTokenizer ascii(true);
  const ByteTokenizer bytes;
  for (const Tokenizer* tokenizer : {static_cast<const Tokenizer*>(trained.get()),
                                     static_cast<const Tokenizer*>(&ascii), static_cast<const Tokenizer*>(&bytes)}) {
    write_bytes(path, tokenizer_file_text(*tokenizer));
    const auto read = open_tokenizer(path, false);
    test.check(tokenizer->name() + " from its file", read->to_json() == tokenizer->to_json());
    const std::string line = tokenizer->to_json().text();
    const auto again = tokenizer_from_json(Json::parse(line, "x"), "x");
    test.equal(tokenizer->name() + " from a checkpoint's line", again->to_json().text(), line);
  }
  std::filesystem::create_directory(folder.file("run"));
  test.throws("no tokenizer is in this folder; expected tokenizer.json, vocab.json and merges.txt",
              [&] { open_tokenizer(folder.file("run"), false); });
  SafetensorsWriter checkpoint;
  checkpoint.metadata("data", Json::object().set("tokenizer", trained->to_json()).text());
  checkpoint.save(folder.file("run") + "/model.safetensors");
  test.check("a run's folder", open_tokenizer(folder.file("run"), false)->to_json() == trained->to_json());
  test.throws("--tokenizer nowhere: expected ascii, bytes, a tokenizer's file or a folder",
              [] { open_tokenizer("nowhere", false); });
  const std::string good = tokenizer_file_text(*trained);
  const auto refuse = [&](const std::string& from, const std::string& to, const std::string& words) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    write_bytes(path, bad);
    test.throws(path + ": " + words, [&] { open_tokenizer(path, false); });
  };
  refuse("petroglyph tokenizer", "bpe", "expected \"format\": \"petroglyph tokenizer\"");
  refuse("1", "2", "expected version 1, found 2: made by a newer program?");
  refuse("\"bpe\"", "\"word\"", "expected the kind ascii, bytes or bpe, found \"word\"");
  refuse("gpt2", "gpt4", "expected the split gpt2, found \"gpt4\"");
  refuse("\"Ā\",\n", "", "the tokenizer: has no token for the byte 0x00, \"Ā\"");
  refuse("\"ā\"", "\"Ā\"", "the tokenizer: token 1, \"Ā\", is listed twice");
  refuse("\"Ā\"", "\"€\"", "the tokenizer: token 0, \"€\", has a character that stands for no byte");
  refuse("\"Ā\"", "\"\"", "the tokenizer: token 0, \"\", is empty");
  refuse("\"h e\"", "\"h éé\"", "the tokenizer: merge 2, \"h éé\", names a token that the vocabulary has not");
  refuse("\"h e\"", "\"q q\"", "the tokenizer: merge 2, \"q q\", makes a token that the vocabulary has not");
  refuse("\"h e\"", "\"he\"", "the tokenizer: merge 2, \"he\", is not two tokens with a space between them");
  refuse("\"Ā\"", "7", "expected a string, found a number");
}

// A pair of files as GPT-2's: other numbers for the bytes, and a special token.
void write_gpt2_files(const std::string& folder, const BytePairTokenizer& tokenizer) {
  Json encoder = Json::object();
  const int vocab = tokenizer.vocab();
  for (int32_t token = 0; token < vocab; ++token)
    encoder.set(spell(tokenizer.bytes(token)), token < 256 ? 255 - token : token);
  encoder.set("<|endoftext|>", vocab);
  write_bytes(folder + "/vocab.json", encoder.text());
  write_bytes(folder + "/merges.txt", "#version: 0.2\n" + join(merges_of(tokenizer), "\n") + "\n");
}

void gpt2_files(Test& test) {
  const TemporaryFolder folder;
  const std::string stories = tell_stories(1, 1, 5000);
  const auto trained = train_byte_pairs({stories}, 400);
  write_gpt2_files(folder.path(), *trained);
  const auto read = open_tokenizer(folder.path(), false);
  test.equal("vocabulary", read->vocab(), 401);
  std::vector<int32_t> expected = encode(*trained, stories);
  for (int32_t& token : expected) token = token < 256 ? 255 - token : token;
  test.equal("stories", encode(*read, stories), expected);
  test.equal("the special token", read->decode({400}), "<|endoftext|>");
  test.check("is never made from text", encode(*read, "<|endoftext|>").size() > 1);
  test.equal("through JSON", tokenizer_from_json(read->to_json(), "x")->to_json().text(), read->to_json().text());

  const std::string encoder = folder.read("vocab.json"), merges = folder.read("merges.txt");
  const auto refuse = [&](const std::string& name, const char* file, const std::string& content,
                          const std::string& words) {
    folder.write(file, content);
    const std::string message = message_of([&] { open_tokenizer(folder.path(), false); });
    test.check(name, message.find(folder.path()) == 0 && message.find(words) != std::string::npos, message);
    folder.write("vocab.json", encoder);
    folder.write("merges.txt", merges);
  };
  const auto with = [](std::string content, const std::string& from, const std::string& to) {
    return content.replace(content.find(from), from.size(), to);
  };
  refuse("vocab.json truncated", "vocab.json", encoder.substr(0, encoder.size() / 2), "vocab.json: line 1: ");
  refuse("vocab.json a list", "vocab.json", "[1]", "vocab.json: is a list, expected an object");
  refuse("a number twice", "vocab.json", with(encoder, ":400", ":399"),
         "has the number 399, expected each from 0 to 400 once");
  refuse("a negative number", "vocab.json", with(encoder, ":400", ":-1"), "has the number -1");
  refuse("half a number", "vocab.json", with(encoder, ":400", ":3.5"), "has the number 3.5");
  refuse("no number", "vocab.json", with(encoder, ":400", ":\"x\""), "has the number \"x\"");
  refuse("merges.txt truncated at a line's end", "merges.txt",
         merges.substr(0, merges.find('\n', merges.size() / 2) + 1), "merges.txt: no merge makes token");
  refuse("merges.txt twice the same", "merges.txt", merges + "h e\n", "is listed twice");
  refuse("three tokens", "merges.txt", merges + "h e l\n", "is not two tokens");
  // <=> is a word like others where merges make it.
  const std::string code = "a<=>b<=>c<=>d they're we're";
  const auto of_code = train_byte_pairs({code, code}, 280);
  write_gpt2_files(folder.path(), *of_code);
  const auto again = open_tokenizer(folder.path(), false);
  test.check("<=> is learnt", of_code->decode(encode(*of_code, "<=>")) == "<=>" && encode(*of_code, "<=>").size() == 1);
  test.equal("<=> of a text", encode(*again, "<=>").size(), size_t(1));
  folder.write("vocab.json", with(encoder, ":400", ":400,\".Ċ\":401"));
  folder.write("merges.txt", merges + ". Ċ\n");
  test.throws("vocab.json: token 401, \".Ċ\", reaches over a place where GPT-2 cuts texts",
              [&] { open_tokenizer(folder.path(), false); });
  std::filesystem::remove(folder.file("merges.txt"));
  mkfifo(folder.file("merges.txt").c_str(), 0600);
  test.throws("merges.txt: expected a file, found something else", [&] { open_tokenizer(folder.path(), false); });
  std::filesystem::remove(folder.file("merges.txt"));
  test.throws("merges.txt: cannot read: No such file", [&] { open_tokenizer(folder.path(), false); });
}

// Says these tokens, whatever the text.
class Numbers final : public Tokenizer {
 public:
  Numbers(std::vector<int32_t> tokens, int vocab) : tokens_(std::move(tokens)), vocab_(vocab) {}
  std::string name() const override { return "numbers"; }
  int vocab() const override { return vocab_; }
  int64_t encode_parts(std::string_view, Reading, const TakeTokens& take) const override { return take(tokens_), 0; }
  std::string_view bytes(int32_t) const override { return ""; }
  Json to_json() const override { return {}; }

 private:
  std::vector<int32_t> tokens_;
  int vocab_;
};

void text_corpora(Test& test) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt"), stories = tell_stories(2, 1, 20000);
  const AsciiTokenizer strict(false), lenient(true);
  const ByteTokenizer bytes;
  write_bytes(path, stories);
  test.equal("bytes", all_of(*open_corpus(path, bytes)), encode(bytes, stories));
  test.equal("ascii", all_of(*open_corpus(path, strict)), encode(strict, stories));
  const auto trained = train_byte_pairs({stories}, 300);
  test.equal("byte pairs", all_of(*open_corpus(path, *trained)), encode(*trained, stories));

  Dice dice(stream_of("corpora"));
  std::string wild = stories.substr(0, 5000) + wild_text(dice, 9000) + stories.substr(0, 6000) + wild_text(dice, 100);
  write_bytes(path, wild);
  const auto corpus = open_corpus(path, lenient);
  const std::vector<int32_t> expected = encode(lenient, wild);
  test.equal("replaced characters", all_of(*corpus), expected);
  test.equal("so many", corpus->replaced(), lenient.encode(wild, *std::make_unique<std::vector<int32_t>>()));
  bool windows = true;
  for (int i = 0; i < 200; ++i) {
    const size_t count = 1 + dice.below(300), begin = dice.below(static_cast<size_t>(corpus->size()) - count);
    std::vector<int32_t> window(count);
    corpus->read(static_cast<int64_t>(begin), static_cast<int64_t>(count), window.data());
    windows =
        windows && std::equal(window.begin(), window.end(), expected.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  test.check("any window of them", windows);
  test.throws(path + ": line ", [&] { open_corpus(path, strict); });

  const std::vector<int32_t> numbers = {0, 1, 65535, 65536, 70000, 131071, 3};
  for (const int vocab : {65536, 65537, 131072}) {
    std::vector<int32_t> known = numbers;
    for (int32_t& number : known) number = std::min(number, vocab - 1);
    test.equal(text("tokens of %d", vocab), all_of(*encode_corpus("text", "x", Numbers(known, vocab))), known);
  }
  const std::shared_ptr<const Corpus> whole = open_corpus(path, bytes);
  const CorpusPart part(whole, 100, 150);
  test.equal("a part's size", part.size(), int64_t(50));
  test.equal("a part", bytes.decode(all_of(part)), wild.substr(100, 50));
  write_bytes(path, "");
  test.equal("empty", message_of([&] { open_corpus(path, bytes); }), path + ": the file is empty");
  test.throws("nowhere.txt: cannot read: No such file", [&] { open_corpus("nowhere.txt", bytes); });
  test.throws(folder.path() + ": expected a file, found something else", [&] { open_corpus(folder.path(), bytes); });
  test.throws("/dev/null: expected a file, found something else", [&] { open_corpus("/dev/null", bytes); });
}

void shards(Test& test) {
  const TemporaryFolder folder;
  const ByteTokenizer bytes;
  const std::vector<int32_t> first = {1, 2, 255, 0}, second = {7, 8};
  const std::string path = folder.file("s_0.bin"), good = shard_bytes(first);
  write_bytes(path, good);
  folder.write("s_1.bin", shard_bytes(second));
  test.equal("size", good.size(), size_t(1024 + 8));
  test.equal("a shard", all_of(*open_corpus(path, bytes)), first);
  const auto both = open_corpus(folder.file("s_?.bin"), bytes);
  test.equal("two shards", all_of(*both), {1, 2, 255, 0, 7, 8});
  std::vector<int32_t> window(3);
  both->read(3, 3, window.data());
  test.equal("across their border", window, {0, 7, 8});
  both->read(4, 2, window.data());
  test.equal("from the border on", window, {7, 8, 8});
  test.throws("x*.bin: no file has such a name", [&] { open_corpus(folder.file("x*.bin"), bytes); });
  const auto refuse = [&](const std::string& name, const std::string& content, const std::string& words) {
    write_bytes(path, content);
    test.equal(name, message_of([&] { open_corpus(path, bytes); }), path + ": " + words);
  };
  const auto with = [&](size_t at, char byte) {
    std::string bad = good;
    bad[at] = byte;
    return bad;
  };
  const std::string none =
      "no shard of tokens, which begins as llm.c's with 20240520 and 1 (nanoGPT's have no header: "
      "--format uint16)";
  refuse("short", good.substr(0, 1000), none);
  refuse("magic", with(0, 0), none);
  refuse("version", with(4, 7), none);
  refuse("truncated", good.substr(0, 1030), "1,030 bytes long, its header promises 1,032: truncated");
  refuse("too long", good + "x", "1,033 bytes long, its header promises 1,032: damaged");
  refuse("a negative length", with(11, '\xFF'), "1,032 bytes long, its header promises -33,553,400: damaged");
  refuse("a token beyond the vocabulary", with(1027, 1),
         "token 258 at position 1, expected one of the tokenizer's, 0 to 255");
  refuse("text", std::string(2000, 'x'), none);
}

// A shard has 16 bits a token: a tokenizer with more tokens is refused.
void wide_tokens(Test& test) {
  const TemporaryFolder folder;
  const std::string prefix = folder.file("s");
  test.equal("too many", message_of([&] { ShardWriter(prefix, 100, Numbers({}, 65537), false); }),
             "--out: a shard has 16 bits a token, too few for 65,537 tokens");
  ShardWriter("", 100, Numbers({}, 65537), false).finish();  // where none is written
  const std::vector<int32_t> most = {0, 65535, 7, 1};
  ShardWriter(prefix, 100, Numbers(most, 65536), false);
  write_bytes(prefix + ".bin", shard_bytes(most));
  test.equal("as many as they tell", all_of(*open_corpus(prefix + ".bin", Numbers({}, 65536))), most);
}

// Tokens that are their own positions.
class Counting final : public Corpus {
 public:
  explicit Counting(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  void read(int64_t begin, int64_t count, int32_t* tokens) const override {
    for (int64_t i = 0; i < count; ++i) tokens[i] = static_cast<int32_t>(begin + i);
  }

 private:
  int64_t size_;
};

void language_modeling(Test& test) {
  constexpr int T = 4, A_STEP = 6;
  const auto training = std::make_shared<Counting>(43), validation = std::make_shared<Counting>(22);
  const LanguageModeling task(training, "train.txt", validation, "val.txt", T, A_STEP);
  const uint32_t train = stream_of("train"), evaluate = stream_of("evaluate");
  test.equal("windows", task.training_windows(), int64_t(10));  // 43 tokens, 42 that have a next one
  test.equal("windows of validation", task.evaluation_samples(), int64_t(5));

  std::vector<int32_t> starts;
  bool shifted = true;
  for (uint32_t step = 0; step < 10; ++step) {
    const Batch batch = task.batch(9, train, step, 0, A_STEP);
    for (int b = 0; b < A_STEP; ++b) starts.push_back(batch.tokens[static_cast<size_t>(b) * T]);
    for (size_t i = 0; i < batch.tokens.size(); ++i) shifted = shifted && batch.targets[i] == batch.tokens[i] + 1;
  }
  test.check("targets are the next tokens", shifted);
  bool whole = true, fresh = false;
  for (int epoch = 0; epoch < 6; ++epoch) {
    const std::set<int32_t> windows(starts.begin() + 10 * epoch, starts.begin() + 10 * (epoch + 1));
    whole = whole && windows.size() == 10 && *windows.begin() == 0 && *windows.rbegin() == 36;
    fresh = fresh || !std::equal(starts.begin(), starts.begin() + 10, starts.begin() + 10 * epoch);
  }
  test.check("every window once in an epoch", whole);
  test.check("in another order in the next", fresh);
  test.equal("a batch in two parts", task.batch(9, train, 3, 4, 2).tokens,
             {starts[22], starts[22] + 1, starts[22] + 2, starts[22] + 3, starts[23], starts[23] + 1, starts[23] + 2,
              starts[23] + 3});
  test.check("another seed", task.batch(8, train, 0, 0, A_STEP).tokens != task.batch(9, train, 0, 0, A_STEP).tokens);

  const Batch checked = task.batch(9, evaluate, 7, 0, 5);
  std::set<int32_t> seen;
  for (int b = 0; b < 5; ++b) seen.insert(checked.tokens[static_cast<size_t>(b) * T]);
  test.equal("evaluation sees every window", seen.size(), size_t(5));
  test.equal("and the same ones always", task.batch(1, evaluate, 0, 0, 5).tokens, checked.tokens);
  test.equal("counted", checked.counted, int64_t(20));
  const Batch last = LanguageModeling(training, "train.txt", validation, "val.txt", T, A_STEP, Targets::LAST)
                         .batch(9, evaluate, 7, 0, 5);
  std::vector<int32_t> ends;
  for (size_t b = 0; b < 5; ++b) ends.push_back(checked.targets[b * T + T - 1]);
  test.equal("one target a window", last.targets, ends);
  test.equal("of the same window", last.tokens, checked.tokens);
  test.equal("counted once", last.counted, int64_t(5));
  std::vector<int32_t> best = checked.targets;
  best[3] = -5;
  test.equal("accuracy", task.accuracy(checked, best), 19.0 / 20);
  test.throws(
      "val.txt: 4 tokens are less than a window of the context and its next token, 5: expected a longer text, a "
      "smaller --context, or a larger --val-part",
      [&] { LanguageModeling(training, "train.txt", std::make_shared<Counting>(4), "val.txt", T, A_STEP); });
}

// The same last tokens for every length, evenly over a text, each behind as many as the longest window has.
void last_tokens(Test& test) {
  const Counting text(107);
  for (const int length : {1, 3, 7}) {
    const LastToken task(text, "a.txt", length, 7, 10);
    const std::string name = petroglyph::text("length %d: ", length);
    test.equal(name + "windows", task.windows(), 10);
    const Batch batch = task.batch(9, stream_of("evaluate"), 5, 0, 10);
    std::vector<int32_t> asked;
    bool before = batch.counted == 10 && batch.length == length && batch.targets.size() == batch.tokens.size();
    for (size_t i = 0; i < batch.targets.size(); ++i) {
      const size_t left = static_cast<size_t>(length) - 1 - i % static_cast<size_t>(length);
      if (left > 0 && batch.targets[i] != -1) asked.push_back(-7);
      if (left == 0) asked.push_back(batch.targets[i]);
      const size_t end = i + left;
      before = before && batch.tokens[i] == batch.targets[end] - 1 - static_cast<int32_t>(left);
    }
    test.equal(name + "the tokens that are asked for", asked, {7, 17, 27, 37, 47, 57, 67, 77, 87, 97});
    test.check(name + "behind those before them", before);
    const Batch part = task.batch(1, stream_of("train"), 0, 4, 2);
    test.equal(name + "in parts", part.targets.back(), 57);
  }
  test.equal("no more than there are", LastToken(Counting(10), "a.txt", 3, 7, 10).windows(), 3);
  test.equal("the last of them", LastToken(Counting(10), "a.txt", 3, 7, 10).batch(1, 1, 0, 2, 1).targets.back(), 9);
  test.equal("where it stands", LastToken(Counting(10), "a.txt", 3, 7, 10).place(2), 9);
  test.equal("too short", message_of([] { LastToken(Counting(7), "a.txt", 3, 7, 10); }),
             "a.txt: 7 tokens are less than a window of 7 and its next token");
}

// The paper's rule for a right answer of the copying task. Its samples: test/examples.sh, by a program that draws its own.
void copying(Test& test) {
  const Copying task(5);
  const Batch batch = task.batch(3, stream_of("train"), 8, 2, 3);
  test.equal("a batch in parts", task.batch(3, stream_of("train"), 8, 4, 1).tokens,
             std::vector<int32_t>(batch.tokens.end() - 12, batch.tokens.end()));
  for (const auto& [name, other] : {std::pair("seed", task.batch(4, stream_of("train"), 8, 2, 3)),
                                    {"step", task.batch(3, stream_of("train"), 9, 2, 3)},
                                    {"stream", task.batch(3, stream_of("evaluate"), 8, 2, 3)}})
    test.check(std::string("other strings of another ") + name, other.tokens != batch.tokens);

  std::vector<int32_t> best = batch.targets;
  test.equal("all right", task.accuracy(batch, best), 1.0);
  for (size_t row = 0; row < best.size(); row += 12) best[row + 3] = Copying::EOS;
  test.equal("whatever it says before it is asked", task.accuracy(batch, best), 1.0);
  best[6] = best[6] == 3 ? 4 : 3;
  test.equal("a wrong letter", task.accuracy(batch, best), (0.8 + 1 + 1) / 3);
  best[23] = 7;
  test.equal("a string that does not end", task.accuracy(batch, best), (0.8 + 0 + 1) / 3);
  best[34] = Copying::EOS;
  test.equal("one that ends too soon", task.accuracy(batch, best), 0.8 / 3);
}

void stories(Test& test) {
  const std::string told = tell_stories(1, stream_of("train"), 100000);
  Checksum checksum;
  checksum.update(told.data(), told.size());
  test.equal("the same everywhere", checksum.hex(), "eb1c93e4b9d36982");
  test.check("long enough", told.size() >= 100000 && told.size() < 102000);
  test.check("a longer text begins with it",
             tell_stories(1, stream_of("train"), 150000).compare(0, told.size(), told) == 0);
  test.check("another stream", tell_stories(1, stream_of("evaluate"), 1000) != told.substr(0, 1000));
  test.equal("ascii", AsciiTokenizer::find_outside(told), told.size());
  std::istringstream lines(told);
  bool quotes = true;
  for (std::string line; std::getline(lines, line);)
    quotes = quotes && std::count(line.begin(), line.end(), '"') % 2 == 0;
  test.check("quotation marks in pairs", quotes);
  test.equal("articles", told.find(" a old "), std::string::npos);
}

void program(Test& test) {
  const Shell folder(test, "tokenize");
  const std::string stories = tell_stories(4, 1, 50000), train = "--train 300 --save few.json ";
  folder.write("a.txt", stories.substr(0, 30000));
  folder.write("b.txt", stories.substr(30000));
  folder.write("empty.txt", "");
  folder.write("odd.txt", "caf\u00E9");
  folder.write("one.txt", "a");
  folder.write("vocab.json", "{\"a\": 0}");
  folder.expect("--train 300 --save t.json --out s --shard-tokens 5000 a.txt b.txt", 0, "s_000001.bin: 5,000 tokens");
  test.equal("and reads them", folder.run("--tokenizer t.json --decode s_*.bin").output, stories);
  folder.script("cp s_000001.bin r_000001.bin; cp t.json merges.txt; cp a.txt x_000007.bin; cat [!z]* | cksum > z");
  folder.expect({
      {"--tokenizer t.json a.txt", 0, "a.txt: 30,000 bytes, "},
      {"--tokenizer t.json --out s a.txt", 1, "s_000000.bin: exists already"},
      {"--tokenizer t.json --out r --shard-tokens 5000 a.txt b.txt", 1, "r_000001.bin: exists already"},
      {"--train 300 --save t.json a.txt", 1, "t.json: exists already; choose another name, or --force"},
      {"", 2, "FILE"},
      {"c.txt", 1, "tokenize: c.txt: cannot read: No such file"},
      {"--train 100 --save few.json a.txt", 2, "--train 100: expected a whole number from 257 to"},
      {"--train 300 a.txt", 2, "--train 300: does nothing without --save"},
      {train + "a.txt --tokenizer ascii", 2, "--tokenizer ascii: does nothing with --train 300"},
      {"--decode s_000000.bin --out p", 2, "--out p: does nothing with --decode\n"},
      {"--decode s_000000.bin --save t.json --train 300", 2, "--train 300: does nothing with --decode\n"},
      {"--shard-tokens 9 a.txt", 2, "--shard-tokens 9: does nothing without --out\n"},
      {"--replace a.txt", 2, "--replace: does nothing with bytes"},
      {"--tokenizer merges.txt a.txt", 0, "tokens"},  // by what is in it
      {"--tokenizer vocab.json a.txt", 1, "vocab.json: has no \"format\"; expected a tokenizer's file, or the folder"},
      {"--tokenizer a.txt a.txt", 1, "; expected a tokenizer's file, or the folder of one with several files"},
      {train + "empty.txt", 1, "empty.txt: the file is empty"},
      {"--tokenizer ascii odd.txt", 1, "odd.txt: line 1, byte 3: '\u00E9' is no 7-bit ASCII character"},
      {"--tokenizer ascii --replace odd.txt", 0, "4 tokens (ascii), 1.25 bytes each"},
      {"--tokenizer ascii one.txt", 0, "one.txt: 1 byte, 1 token (ascii), 1.00 bytes each"},
      // A later file is refused, and what is read is no place to write to.
      {"--tokenizer t.json --out s --force a.txt empty.txt", 1, "empty.txt: the file is empty"},
      {"--tokenizer ascii --out s --force a.txt odd.txt", 1, "odd.txt: "},
      {"--tokenizer ascii --save merges.txt --force odd.txt", 1, "odd.txt: "},
      {"--decode --save merges.txt --force x_000007.bin", 1, "x_000007.bin: no shard of tokens"},
      {"--train 257 --save a.txt --force a.txt", 1, "a.txt: is read here ("},
      {"--tokenizer t.json --save t.json --force a.txt", 1, "t.json: is read here ("},
      {"--tokenizer t.json --decode 's_*.bin' --save s_000001.bin --force", 1, "s_000001.bin: is read here ("},
      {"--out x --force x_000007.bin", 1, "x_000007.bin: is read here ("},
      {"--out nosuch/x a.txt", 1, "tokenize: nosuch/x_000000.bin: cannot write: No such file or directory\n"},
      {train + "--out nosuch/x a.txt", 1, "nosuch/x_000000.bin: cannot write: No such file or directory\n"},
      {"--train 300 --save nosuch/t a.txt", 1, "tokenize: nosuch/t: cannot write: No such file or directory\n"},
      {"--train 300 --save . --force a.txt", 1, "tokenize: .: cannot write: Is a directory\n"},
  });
  test.equal("all files stay", folder.script("cat [!z]* | cksum").output, folder.read("z"));
  test.check("nothing was learnt in vain", !folder.exists("few.json") && !folder.exists("r_000000.bin"));
  folder.script("cp s_000000.bin s_000007.bin; echo no shard > s_20240101.bin");
  folder.expect("--tokenizer t.json --out s --force b.txt", 0,
                {"s_000001.bin: removed, of more", "s_000007.bin: removed, of more"});
  test.equal("other files stay", folder.script("ls s_*").output, "s_000000.bin\ns_20240101.bin\n");
}

// The scripts of data/, with small files of the same form in place of the downloads.
void scripts(Test& test) {
  const std::string data = (std::filesystem::current_path() / "data").string();
  if (!std::filesystem::exists(data + "/c4.sh")) return test.skip("data/c4.sh", "run this in the repository's root");
  const Shell folder(test);
  const auto sum_of = [&](const std::string& file) {
    return folder.script("(sha256sum " + file + " || shasum -a 256 " + file + ") 2> /dev/null").output.substr(0, 64);
  };
  const auto installed = [&](const std::string& program) {
    const bool here = folder.script("command -v " + program).status == 0;
    if (!here) test.skip("a script", program + " is not installed");
    return here;
  };
  const std::string url = "_URL=\"file://$PWD/", script = " '" + data + "/";

  folder.write("plays", "First Citizen:\nSpeak.\n");
  const std::string plays = "TINYSHAKESPEARE" + url + "plays\"" + script + "tinyshakespeare.sh' out";
  folder.expect_script(plays, 1, "expected 86c4e6aa");
  test.check("and leaves no text", std::filesystem::is_empty(folder.file("out")));
  folder.expect_script("TINYSHAKESPEARE_SHA256=" + sum_of("plays") + " " + plays, 0, "--data out/tinysh");
  test.equal("its text", folder.read("out/tinyshakespeare.txt"), folder.read("plays"));

  // A server without parts of files, or a file that is complete already: curl ends with status 22 and reports 416, or
  // with status 33.
  folder.script(
      "mkdir bin; printf '%s\\n' '#!/bin/sh' 'while [ $1 != --output ]; do shift; done' "
      "'[ -s $2 ] && { printf $CODE; exit $STATUS; }; cp plays $2' > bin/curl; chmod +x bin/curl");
  const std::string sum = sum_of("plays"), here = "PATH=\"$PWD/bin:$PATH\"; export PATH; ",
                    fetch = script + "fetch.sh' http://x got " + sum, begun = here + "rm -f got; echo x > got.part; ";
  folder.expect_script({
      {here + "cp plays got.part; CODE=500 STATUS=22" + fetch, 0, "got: SHA-256"},  // it was not moved
      {begun + "CODE=416 STATUS=22" + fetch, 0, "got: SHA-256 " + sum},
      {begun + "CODE=200 STATUS=33" + fetch, 0, "got: SHA-256 " + sum},
      {begun + "CODE=503 STATUS=22" + fetch, 1, "cannot be had"},
  });
  test.equal("what was begun stays", folder.read("got.part"), "x\n");

  if (installed("unzip") && installed("zip")) {
    folder.script(
        "mkdir wikitext-2; for s in train valid test; do echo $s > wikitext-2/wiki.$s.tokens; done; zip -qr a.zip "
        "wiki*");
    const std::string wiki = "WIKITEXT2_SHA256=" + sum_of("a.zip") + " WIKITEXT2" + url + "a.zip\"" + script;
    folder.expect_script(wiki + "wikitext2.sh' out", 0, "--val out/wikitext2_valid.txt");
    test.equal("its validation text", folder.read("out/wikitext2_valid.txt"), "valid\n");
    folder.expect_script(wiki + "wikitext2.sh' out raw", 1, "cannot unpack wikitext-2-raw/wiki.train.raw");
  }
  if (!installed("python3")) return;
  const std::string expected = "One page.\n\nAnother\nof two lines, caf\u00E9.\n\n";
  folder.write("documents", "{\"text\": \"One page.\"}\n\n{\"text\": \"Another\\nof two lines, caf\\u00e9.\\n\"}\n");
  folder.script(
      "for i in 0 1 2 8; do gzip -c documents > c4-train.0000$i-of-01024.json.gz; done; "
      "gzip -c plays > c4-train.00003-of-01024.json.gz; gzip -c documents | head -c 40 > "
      "c4-train.00004-of-01024.json.gz");
  const std::string c4 = "C4" + url + "\"" + script + "c4.sh' out ";
  folder.expect_script(c4 + "0 2", 0, "c4-train.00002-of-01024.json.gz: SHA-256 ");
  test.equal("its text", folder.read("out/c4_00002.txt"), expected);
  folder.script("echo x >> out/c4-train.00002-of-01024.json.gz; echo x | gzip > c4-train.00002-of-01024.json.gz");
  folder.expect_script({
      {c4 + "2", 1, "expected "},  // the first checksum
      {c4 + "008", 0, "c4-train.00008-of-01024.json.gz: SHA-256 "},
      {c4 + "3", 1, "document 1 is no JSON object"},
      {c4 + "4", 1, "c4-train.00004-of-01024.json.gz: cannot be read"},
  });
  test.check("leaves no text", !folder.exists("out/c4_00004.txt.part") && !folder.exists("out/c4_00004.txt"));
  if (!installed("zstd")) return;
  folder.script("zstd -q documents -o 1.jsonl.zst; cp 1.jsonl.zst 2.jsonl.zst; tar -cf a.tar 1.jsonl.zst 2.jsonl.zst");
  folder.expect_script(
      "OPENWEBTEXT2_SHA256=" + sum_of("a.tar") + " OPENWEBTEXT2" + url + "a.tar\"" + script + "openwebtext2.sh' out", 0,
      "out/openwebtext2.txt");
  test.equal("its text", folder.read("out/openwebtext2.txt"), expected + expected);
}

}  // namespace

int main(int argc, char** argv) {
  Test test(argc, argv);
  test.run("characters", characters);
  test.run("splitting", splitting);
  test.run("characters as tokens", characters_as_tokens);
  test.run("merging", merging);
  test.run("search for added tokens", added_token_search);
  test.run("byte pairs", byte_pairs);
  test.run("training", training);
  test.run("tokenizer files", tokenizer_files);
  test.run("GPT-2 files", gpt2_files);
  test.run("text corpora", text_corpora);
  test.run("shards", shards);
  test.run("wide tokens", wide_tokens);
  test.run("language modeling", language_modeling);
  test.run("last tokens", last_tokens);
  test.run("copying", copying);
  test.run("stories", stories);
  test.run("program", program);
  test.run("scripts", scripts);
  return test.finish();
}
