#include "exchange/weights.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/half.h"
#include "base/json.h"
#include "base/text.h"

namespace petroglyph {

namespace {

std::string part_of_index(const std::string& path, const Json& name) {
  const std::filesystem::path part(name.string());
  if (part.empty() || part.filename() != part) throw Error("\"" + part.string() + "\" is no name of a file beside it");
  return (std::filesystem::path(path).parent_path() / part).string();
}

class SafetensorsWeights final : public Weights {
 public:
  explicit SafetensorsWeights(const std::string& path) : origin_(path) {
    if (path.size() > 5 && path.compare(path.size() - 5, 5, ".json") == 0) {
      read_index(path);
      return;
    }
    files_.emplace_back(path);
    for (const std::string& name : files_.back().names()) file_of_[name] = &files_.back();
  }

  std::string origin() const override { return origin_; }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, file] : file_of_) names.push_back(name);
    return names;
  }
  const Shape* shape(const std::string& name) const override {
    const auto found = file_of_.find(name);
    return found == file_of_.end() ? nullptr : &found->second->entry(name).shape;
  }
  std::vector<float> read(const std::string& name) const override { return file_of_.at(name)->read_as_float(name); }

 private:
  // {"weight_map": {"wte.weight": "model-00001-of-00002.safetensors", …}}
  void read_index(const std::string& path) {
    const Json json = Json::parse(read_regular_file(path), path);
    std::map<std::string, const SafetensorsFile*> open;
    try {
      for (const auto& [name, file] : json.at("weight_map").members()) {
        const std::string part = part_of_index(path, file);
        const SafetensorsFile*& found = open[part];
        if (!found) found = &files_.emplace_back(part);
        found->entry(name);  // throws where it is not there
        file_of_[name] = found;
      }
    } catch (const Error& error) {
      throw Error(path + ": " + error.what());
    }
  }

  std::string origin_;
  std::deque<SafetensorsFile> files_;
  std::map<std::string, const SafetensorsFile*> file_of_;
};

}  // namespace

std::string bytes_of(const std::string& name, const std::vector<float>& values, Precision precision) {
  if (precision == Precision::F32) {
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  std::vector<uint16_t> halves(values.size());
  const bool f16 = precision == Precision::F16;
  std::transform(values.begin(), values.end(), halves.begin(), f16 ? to_f16 : to_bf16);
  for (size_t i = 0; i < values.size(); ++i)
    if (overflowed(values[i], f16 ? from_f16(halves[i]) : from_bf16(halves[i])))
      throw Error(text("--precision %s: tensor %s has %s, more than such a number can say; %sf32 can",
                       f16 ? "f16" : "bf16", name.c_str(), number_text(values[i], 9).c_str(), f16 ? "bf16 or " : ""));
  std::string bytes(halves.size() * sizeof(uint16_t), '\0');
  std::memcpy(bytes.data(), halves.data(), bytes.size());
  return bytes;
}

std::vector<std::string> parts_of_index(const std::string& path) {
  const Json json = Json::parse(read_regular_file(path), path);
  std::set<std::string> parts;
  try {
    for (const auto& [tensor, file] : json.at("weight_map").members()) parts.insert(part_of_index(path, file));
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
  return {parts.begin(), parts.end()};
}

std::unique_ptr<Weights> safetensors_weights(const std::string& path) {
  return std::make_unique<SafetensorsWeights>(path);
}

}  // namespace petroglyph
