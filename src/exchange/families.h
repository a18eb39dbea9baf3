// The models of Hugging Face's transformers that ours can say, by the model_type of their config.json: what its keys mean, and
// which tensors are which. What ours cannot say is an Error that names the key.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "exchange/rules.h"

namespace petroglyph {

struct Translation {
  std::string model;  // ours
  Json config;        // ours
  std::vector<Rule> rules;
  std::vector<std::string> notes;  // what is left out
  Json classes = {};               // of a model of images: their names
};

// `origin` opens complaints: the path of the config.json.
Translation translate(const Json& config, const std::string& origin);

// The other way: GPT-2's form for our transformer, Mamba's for ours. `origin`: of the checkpoint.
struct BackTranslation {
  Json config;  // config.json
  std::vector<Rule> rules;
};
BackTranslation translate_back(const std::string& model, const Json& config, const std::string& origin);

// Throws Error, which names the key, for what is not GPT-2 as llm.c has it: one table for embedding and readout, an MLP 4 times as
// wide, GELU by its tanh form.
void check_llm_c(const std::string& model, const Json& config, const std::string& origin);

// The keys that all translations to a transformer share: causal, with learned positions, gain and shift, biases.
Json transformer_config(int64_t vocab, int64_t context, int64_t width, int64_t hidden, int64_t layers, int64_t heads);

}  // namespace petroglyph
