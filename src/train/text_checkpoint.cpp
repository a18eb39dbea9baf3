#include "train/text_checkpoint.h"

#include "base/error.h"
#include "base/program.h"
#include "base/text.h"

namespace petroglyph {

void check_vocabulary(const RunState& state, int tokens, const std::string& origin) {
  for (const char* key : {"vocab", "classes"}) {  // what it reads, and what it may say
    const Json* size = state.config.find(key);
    if (size && size->number() < tokens)
      throw Error(origin + ": the model's " + key + " is " + size->text() + ", less than the tokenizer's " +
                  with_commas(tokens) + " tokens");
  }
}

int learned_context(const RunState& state) {
  constexpr int64_t LONGEST = 1 << 24;  // that --context takes
  const Json* const context = state.options.find("context");
  const int64_t tokens = context && context->is(Json::Kind::Number) ? context->integer() : 0;
  return tokens >= 0 && tokens <= LONGEST ? static_cast<int>(tokens) : 0;
}

namespace {

std::string why_no_tokenizer(const RunState& state) {
  if (state.config.find("patches")) return "this is a model of images";
  return state.program == "convert"
             ? "none was converted with this model; " + called("convert") + " --tokenizer NAME gives it one"
             : "this model was trained by " + state.program + ", not on text";
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const SafetensorsFile& file, const RunState& state) {
  if (state.data.is(Json::Kind::Null) || !state.data.find("tokenizer"))
    throw Error(file.path() + ": has no tokenizer: " + why_no_tokenizer(state));
  auto tokenizer = tokenizer_from_json(state.data.at("tokenizer"), file.path());
  check_vocabulary(state, tokenizer->vocab(), file.path());
  return tokenizer;
}

}  // namespace petroglyph
