// Converts model files of other projects to Petroglyph checkpoints, and back.
//
//   Hugging Face: a folder         config.json with model.safetensors, or with several parts and their index
//   llm.c: gpt2_124M.bin           llm_c.h
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exchange/families.h"
#include "models/model.h"
#include "tokenizers/byte_pairs.h"

namespace petroglyph {

struct ForeignModel {
  Translation translation;
  Weights weights;
  std::unique_ptr<Tokenizer> tokenizer;  // null: none was found
  Json texts = Json::object();           // "begin", "end": lists of tokens, if the files name them
  std::string config_origin;             // the file that configuration errors refer to
};

// Throws Error, with the path, if the file is damaged or the model cannot be expressed.
ForeignModel open_foreign(const std::string& path);
// The files that open_foreign() may read.
std::vector<std::string> files_of_foreign(const std::string& path);

// The model with its weights. Throws Error if a tensor is missing, has another shape, or has no counterpart in the
// model.
std::unique_ptr<Model> load_foreign(const ForeignModel& foreign, Ops& ops);

// Notes on what the tokenizer lacks: tokens of the model, or tokens that begin or end its texts.
std::vector<std::string> notes_on_tokenizer(const ForeignModel& foreign);
// Writes the model as a checkpoint, with its tokenizer if it has one. Returns the number of parameters.
int64_t save_as_checkpoint(const ForeignModel& foreign, const std::string& from, const std::string& path);

// Writes a checkpoint as a Hugging Face folder. Returns the list of what is left out.
std::vector<std::string> save_as_hugging_face(const std::string& checkpoint, const std::string& folder);
// The files that it writes, and the files of other tokenizers that it does not accept in the folder.
std::vector<std::string> files_of_hugging_face(const std::string& folder);
// Writes llm.c's file and replaces an existing one. The model must be GPT-2 as llm.c defines it. Returns the list of
// what is left out: the tokenizer, unless it is GPT-2's, which llm.c stores in a separate file.
std::vector<std::string> save_as_llm_c(const std::string& checkpoint, const std::string& path);

}  // namespace petroglyph
