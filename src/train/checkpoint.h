// A checkpoint: parameters, optimizer moments and the run that they belong to, in one safetensors file.
//
//   NAME          (shape)  every parameter under its own name
//   adamw.m/NAME, adamw.v/NAME      its moments
//   metadata      format "petroglyph", version "1", program, model, config (JSON), step (updates done), options (JSON:
//                 those that define the run), log (a checksum of the rows of log.csv up to there), checksum_of_samples
//                 (of some training and evaluation samples), evaluated_loss (of best.safetensors), begun_on
//                 (mark_of_here()), and data (JSON: what else is needed to use the model, such as a tokenizer)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/safetensors.h"
#include "models/model.h"
#include "train/optimizer.h"

namespace petroglyph {

struct RunState {
  std::string program;              // "train_copy"
  std::string model;                // "causal_rn"
  Json config;                      // the model's
  Json options;                     // the program's
  int64_t step = 0;                 // updates done
  std::string log;                  // checksum of the log's rows before this step (base/log.h); empty: not known
  Json data;                        // what else is needed to use the model; null: nothing
  std::string samples = {};         // checksum of some training and evaluation samples; empty: not known
  std::string evaluated_loss = {};  // of these weights, in the log's digits; empty: not known
  std::string begun_on = {};        // mark_of_here() of the user and the machine that trained it; empty: not known
};

// The checkpoint in a run's folder; a file's path as it is. Throws Error, which lists the runs, for a folder of several
// runs.
std::string checkpoint_path(const std::string& file_or_folder);

// optimizer: null without the moments, enough to use the model, not to resume the run. previous: where the checkpoint
// that is replaced stays; empty: nowhere
void save_checkpoint(const std::string& path, const RunState& state, Model& model, Optimizer* optimizer = nullptr,
                     const std::string& previous = "");

// Whether this project wrote it as a checkpoint.
bool is_checkpoint(const SafetensorsFile& file);

// A mark of this user on this machine: a checksum of what identifies both, from which neither can be read.
std::string mark_of_here();

// A checkpoint from somebody else must not choose which files of this machine are read. Throws Error if it has a path
// under one of these options and was not trained by this user on this machine.
void refuse_foreign_paths(const SafetensorsFile& file, const RunState& state, const std::vector<std::string>& options);

// The metadata of a checkpoint; throws Error for any other file, and for another program's checkpoint unless `program`
// is empty.
RunState read_run_state(const SafetensorsFile& file, const std::string& program = "");

// Reads parameters and moments. Nothing is changed unless all are there with the right shapes.
void load_checkpoint(const SafetensorsFile& file, Model& model, Optimizer& optimizer, Ops& ops);

// The model of a checkpoint, ready to be used.
std::unique_ptr<Model> load_model(const SafetensorsFile& file, const RunState& state, Ops& ops);

// Of a checkpoint's parameters, in 16 digits: what a run's weights are compared by.
std::string fingerprint_of(const SafetensorsFile& file);

// Parameters only, from any safetensors file that has them under their names; throws Error, and changes nothing, where
// one is missing or has another shape. With new_head the readout's, head.weight and head.bias, stay as they are where
// the file has them for another number of classes. Returns whether they did.
bool load_parameters(const SafetensorsFile& file, Model& model, Ops& ops, bool new_head = false);

}  // namespace petroglyph
