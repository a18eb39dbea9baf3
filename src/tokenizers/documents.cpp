#include "tokenizers/documents.h"

#include <algorithm>

namespace petroglyph {

int64_t encode_documents(const Tokenizer& tokenizer, std::string_view text,
                         const std::function<void(const std::vector<int32_t>&)>& take) {
  constexpr size_t PIECE = size_t(1) << 24;  // bytes whose tokens are held
  const int32_t separator = tokenizer.end_of_text();
  int64_t replaced = 0;
  std::vector<int32_t> tokens;
  for (size_t at = 0; at < text.size();) {
    const size_t found = separator < 0 ? std::string_view::npos : text.find(END_OF_TEXT, at);
    const size_t document = std::min(found, text.size());
    for (size_t end; at < document; at = end) {
      const std::string_view rest = text.substr(at, document - at);
      end = rest.size() > PIECE ? at + tokenizer.cut(rest, PIECE) : document;
      tokens.clear();
      replaced += tokenizer.encode(text.substr(at, end - at), tokens);
      take(tokens);
    }
    if (found == std::string_view::npos) break;
    take({separator});
    at = found + END_OF_TEXT.size();
  }
  return replaced;
}

}  // namespace petroglyph
