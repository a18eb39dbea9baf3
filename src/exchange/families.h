// The model types of Hugging Face's transformers that Petroglyph can express, by the model_type of config.json: the
// meaning of its keys, and the mapping of tensors. A setting that cannot be expressed is an Error that names the key.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "exchange/rules.h"

namespace petroglyph {

struct Translation {
  std::string model;  // Petroglyph's
  Json config;        // Petroglyph's
  std::vector<Rule> rules;
  std::vector<std::string> notes;  // what is left out
  Json classes = {};               // the class names of an image model
};

// `origin`: the path of the config.json, at the beginning of error messages.
Translation translate(const Json& config, const std::string& origin);

// The other direction: transformer to GPT-2's form, mamba to Mamba's. `origin`: the path of the checkpoint.
struct BackTranslation {
  Json config;  // config.json
  std::vector<Rule> rules;
};
BackTranslation translate_back(const std::string& model, const Json& config, const std::string& origin);

// Throws Error, which names the key, if the model is not GPT-2 as llm.c defines it: tied embeddings, an MLP 4 times
// as wide, and GELU in its tanh form.
void check_llm_c(const std::string& model, const Json& config, const std::string& origin);

// The keys that all translations to a transformer have in common: causal, learned positions, LayerNorm with gain and
// shift, biases.
Json transformer_config(int64_t vocab, int64_t context, int64_t width, int64_t hidden, int64_t layers, int64_t heads);

}  // namespace petroglyph
