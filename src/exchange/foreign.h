// Models of others as checkpoints of ours, and back.
//
//   a folder of Hugging Face's     config.json beside model.safetensors, or beside its parts and their index
//   llm.c's gpt2_124M.bin          llm_c.h
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
  Json texts = Json::object();           // "begin", "end": lists of tokens, where its files name them
  std::string config_origin;             // whose fault a configuration is: the file that it is read from
};

// Throws Error, with the path, for what is damaged or cannot be expressed.
ForeignModel open_foreign(const std::string& path);
// The files that it may read.
std::vector<std::string> files_of_foreign(const std::string& path);

// The model with its weights. Throws Error where a tensor is missing, of another shape, or has no place in it.
std::unique_ptr<Model> load_foreign(const ForeignModel& foreign, Ops& ops);

// What the tokenizer lacks: tokens of the model, and some that begin or end its texts.
std::vector<std::string> notes_on_tokenizer(const ForeignModel& foreign);
// Writes it as a checkpoint with its tokenizer, if it has one. Returns the number of parameters.
int64_t save_as_checkpoint(const ForeignModel& foreign, const std::string& from, const std::string& path);

// A checkpoint as a folder of Hugging Face's. Returns what is left out.
std::vector<std::string> save_as_hugging_face(const std::string& checkpoint, const std::string& folder,
                                              Precision precision);
// The files that it writes, and those of other tokenizers that it refuses.
std::vector<std::string> files_of_hugging_face(const std::string& folder);
// As llm.c's file, which replaces what is there; only GPT-2 as llm.c has it. Returns what is left out: the tokenizer, where it is
// not GPT-2's, which llm.c has beside its files.
std::vector<std::string> save_as_llm_c(const std::string& checkpoint, const std::string& path, Precision precision);

}  // namespace petroglyph
