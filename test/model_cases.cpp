// Models, and batches for them.
#include <cctype>
#include <sstream>

#include "base/text.h"
#include "cases.h"
#include "math/random.h"

namespace petroglyph {
namespace {

// Settings such as "vocab=9 position=learned windows=[3,8]".
void set(Json& config, const std::string& settings) {
  std::istringstream words(settings);
  for (std::string word; words >> word;) {
    const size_t equal = word.find('=');
    std::string value = word.substr(equal + 1);
    const bool is_text = std::isalpha(value[0]) && value != "true" && value != "false";
    config.set(word.substr(0, equal), Json::parse(is_text ? '"' + value + '"' : value, word));
  }
}

bool is(const Json& config, const char* key, const Json& value) {
  const Json* found = config.find(key);
  return found && *found == value;
}

}  // namespace

std::vector<ModelCase> model_cases() {
  std::vector<ModelCase> rows;
  std::string model;
  Json shared;
  for (const std::string& line : split(read_file("test/models.txt"), '\n')) {
    if (line.empty() || line[0] == '#') continue;
    if (line.rfind("model ", 0) == 0) {
      const size_t colon = line.find(':');
      model = line.substr(6, colon - 6);
      shared = Json::object();
      set(shared, line.substr(colon + 1));
      continue;
    }
    const std::vector<std::string> cells = split(line, '|');
    const size_t x = cells.at(1).find('x');
    ModelCase row{std::string(trim(model + " " + std::string(trim(cells[0])))), model, "", std::stoi(cells[1]),
                  std::stoi(cells[1].substr(x + 1))};
    Json config = shared;
    set(config, cells.at(2));
    row.config = config.text();
    if (const Json* size = config.find("patch_size")) row.patch_size = static_cast<int>(size->integer());
    // A batch of an rnn has targets everywhere, of which one that answers at the end reads the first ones: golden.txt.
    const bool last = is(config, "readout", "last") && model != "rnn";
    row.last = last || row.patch_size > 0 || model == "mlp_lm";
    row.decodes = row.patch_size == 0 && (last || !is(config, "causal", false));
    rows.push_back(row);
  }
  return rows;
}

ModelBatch::ModelBatch(Ops& ops, const ModelCase& row, int vocab, uint64_t seed)
    : batch(row.batch), length(row.length) {
  const bool images = row.patch_size > 0;
  const int answers = images || row.last ? batch : batch * length;
  std::vector<int32_t> ids, chosen;
  int counted = 0;
  for (int i = 0; i < batch * length; ++i) {
    const Random4 random = philox(seed, stream_of("batch"), 0, static_cast<uint64_t>(i));
    ids.push_back(static_cast<int32_t>(below(random.word[0], static_cast<uint32_t>(vocab))));
    if (i >= answers) continue;
    const bool counts = below(random.word[1], 4) != 0 || i == 0;
    chosen.push_back(counts ? static_cast<int32_t>(below(random.word[2], static_cast<uint32_t>(vocab))) : -1);
    counted += counts;
  }
  if (images) {
    std::vector<real> pixels;
    for (int i = 0; i < batch * length * row.patch_size; ++i)
      pixels.push_back(2 * uniform(philox(seed, stream_of("patches"), 0, static_cast<uint64_t>(i)).word[0]) - 1);
    patches = Tensor(ops, {batch, length, row.patch_size});
    patches.upload(pixels);
  } else {
    tokens = Tokens(ops, {batch, length});
    tokens.upload(ids);
  }
  targets = Tokens(ops, {answers});
  targets.upload(chosen);
  scale = 1 / static_cast<real>(counted);
}

ModelBatch ModelBatch::sample(Ops& ops, int b) const {
  const auto take = [&](const auto& all) {
    auto host = all.download();
    const int64_t size = all.size() / batch;
    return decltype(host)(host.begin() + b * size, host.begin() + (b + 1) * size);
  };
  ModelBatch one(length);
  if (patches.size() > 0) {
    one.patches = Tensor(ops, {patches.size() / batch});
    one.patches.upload(take(patches));
  } else {
    one.tokens = Tokens(ops, {length});
    one.tokens.upload(take(tokens));
  }
  return one;
}

std::vector<int32_t> ModelBatch::to_decode(const Model& model) const {
  const std::vector<int32_t> once = tokens.download();
  std::vector<int32_t> all;
  for (int b = 0; b < batch; ++b)
    for (int times = model.window() > 0 ? 3 : 1; times > 0; --times)
      all.insert(all.end(), once.begin() + b * length, once.begin() + (b + 1) * length);
  return all;
}

// The columns begin … end−1 of tokens (B,T).
Tokens some_of(Ops& ops, const std::vector<int32_t>& tokens, int B, int begin, int end) {
  const auto T = static_cast<int64_t>(tokens.size()) / B;
  std::vector<int32_t> some;
  for (int b = 0; b < B; ++b) some.insert(some.end(), &tokens[b * T] + begin, &tokens[b * T] + end);
  Tokens ids(ops, {B, end - begin});
  ids.upload(some);
  return ids;
}

std::vector<real> logits_of(Ops& ops, Model& model, const Input& input) {
  const real* logits = model.forward(input);
  std::vector<real> host(static_cast<size_t>(model.logit_rows(input)) * model.classes());
  ops.download(host.data(), logits, host.size() * sizeof(real));
  return host;
}

}  // namespace petroglyph
