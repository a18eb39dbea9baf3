#include "exchange/weights.h"

#include <filesystem>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace petroglyph {

namespace {

// The path of the file for each tensor of an index: {"weight_map": {"wte.weight": "model-00001-of-00002.safetensors",
// …}}
std::map<std::string, std::string> read_index(const std::string& path) {
  const Json json = Json::parse(read_file(path), path);
  std::map<std::string, std::string> files;
  try {
    for (const auto& [name, file] : json.at("weight_map").members()) {
      const std::filesystem::path part(file.string());
      if (part.empty() || part.filename() != part)
        throw Error("\"" + part.string() + "\" is no name of a file beside it");
      files[name] = (std::filesystem::path(path).parent_path() / part).string();
    }
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
  return files;
}

}  // namespace

std::vector<std::string> parts_of_index(const std::string& path) {
  std::set<std::string> parts;
  for (const auto& [name, file] : read_index(path)) parts.insert(file);
  return {parts.begin(), parts.end()};
}

Weights safetensors_weights(const std::string& path) {
  Weights weights{path, {}};
  const auto add = [&](const std::shared_ptr<SafetensorsFile>& file, const std::string& name) {
    weights.tensors[name] = {file->entry(name).shape, [file, name] { return file->read_as_float(name); }};
  };
  if (std::filesystem::path(path).extension() != ".json") {
    const auto file = std::make_shared<SafetensorsFile>(path);
    for (const std::string& name : file->names()) add(file, name);
    return weights;
  }
  std::map<std::string, std::shared_ptr<SafetensorsFile>> open;
  for (const auto& [name, part] : read_index(path)) {
    std::shared_ptr<SafetensorsFile>& file = open[part];
    if (!file) file = std::make_shared<SafetensorsFile>(part);
    try {
      add(file, name);
    } catch (const Error& error) {
      throw Error(path + ": " + error.what());
    }
  }
  return weights;
}

}  // namespace petroglyph
