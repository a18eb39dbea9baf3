// "Linear-Time Sequence Modeling with MLPs": state expansion, text and images (figure 4, tables 1 and 2, figure 7), and the samples
// of "An All-MLP Sequence Modeling Architecture That Excels at Copying", figure 6.

#include "reproduction/experiment.h"
#include "train/compare.h"

namespace petroglyph {

namespace {

// Hidden channels as multiples of the width: which model the paper expanded it does not say; that a vector-valued memory may do
// with them makes sense for the linear one.
Plan expansion(const Scale& scale) {
  const int width = scale.full() ? 192 : 64;
  Plan plan;
  plan.size = std::string("The Linear CausalRN; the paper does not say which of the two it expanded. ") +
              (scale.full() ? "The paper's width, depth and strings of 128 letters."
                            : "Quick: strings of 16 letters in place of 128, width 64 and 4 blocks in place of 192 and "
                              "12, 300 steps of 64 strings in place of 2,000 of 320, a rate of 1e-3 in place of 5e-4. "
                              "Three seeds.");
  std::string list;
  for (const int factor : {1, 2, 4, 8}) {
    const std::string variant = "hidden=" + std::to_string(width * factor);
    list += (list.empty() ? "" : ",") + variant;
    const Cell last{"train/compare.csv", {{"variant", variant}}, "last_accuracy", Cell::Form::PERCENT, 1};
    plan.rows.push_back(
        {"factor " + std::to_string(factor) + ": last accuracy, %", "", of_seeds(last, scale.quick()), ""});
  }
  if (!scale.full())
    plan.rows.back().remark = "more state, better copies, as in the paper; from factor 4 on nearly all is right";
  plan.commands = {
      {"train", "train_copy",
       words_of("--model linear_causal_rn --compare " + list +
                (scale.full()
                     ? " --length 128 --width 192 --layers 12 --batch 320 --lr 5e-4 --steps 2000 --eval-samples 320 "
                       "--eval-every 10 --stop-at 2"
                     : " --length 16 --width 64 --layers 4 --lr 1e-3 --eval-samples 128 --eval-every 5 --steps 300"))}};
  if (scale.quick()) add_seeds(plan);
  plan.claims = {{"with more hidden channels the model memorizes more",
                  {{{"factor 1", plan.rows[0].ours}, {"factor 2", plan.rows[1].ours}},
                   {{"factor 2", plan.rows[1].ours}, {"factor 4", plan.rows[2].ours}},
                   {{"factor 1", plan.rows[0].ours}, {"factor 8", plan.rows[3].ours}}},
                  measured_of("The last accuracy, %", scale.quick())}};
  plan.pictures = {{"train/compare.svg", "training loss, and accuracy on fresh strings"}};
  return plan;
}

// ---- Text -----------------------------------------------------------------------------------------------------------

struct TextModel {
  std::string variant, label, paper;
};

std::vector<TextModel> text_models(const Scale& scale) {
  // The same parameters in a block as the Transformer has: 4 widths of hidden channels, as the paper's base models have.
  // One head, as the authors have them: the preset's twelve are the Transformers', and three of 64 channels as theirs in the
  // evening. The quadratic one, which no claim compares, has the four of the quick Transformers.
  const std::string hidden = scale.full()      ? ":heads=1"
                             : scale.evening() ? ":hidden=768"
                                               : ":hidden=256",
                    heads = scale.evening() ? ":heads=3" : "";
  std::vector<TextModel> models = {{"transformer" + heads, "Transformer", "2.70"},
                                   {"linear_transformer" + heads, "Linear Transformer", "2.81"},
                                   {"mamba", "Mamba-1", "2.52"},
                                   {"linear_causal_rn" + hidden, "Linear CausalRN", "3.22"}};
  if (!scale.evening()) models.push_back({"causal_rn" + hidden, "CausalRN", ""});
  return models;
}

std::string text_size(const Scale& scale) {
  if (scale.full()) return "The paper's base models, one epoch; its context is not stated: 256 here.";
  if (scale.evening())
    return "A quarter of the base models' widths (192 in place of 768, hidden 768 in place of 3,072, 3 heads of 64 "
           "channels in place of 12) at their 12 blocks; 40,000 steps of 4 windows of 64 characters, once through a "
           "text like WikiText-2, in place of once through WikiText-103 with batch 320; a rate of 5e-4, the tiny "
           "models', that falls along a cosine, in place of 1e-4. Three seeds.";
  return std::string(
             "Quick: width 64, 4 blocks, context 64, 4,000 steps of 16 windows, a rate of 2e-3 that falls along a "
             "cosine in place of 1e-4") +
         (scale.text.empty() ? ", on stories that a grammar of our own tells." : ", on other text.") + " Three seeds.";
}

// The tokens of a window, of the presets and settings below.
int text_window(const Scale& scale) { return scale.full() ? 256 : 64; }

std::string text_settings(const Scale& scale) {
  if (scale.full())
    return " --preset base --epochs 1 --schedule constant --eval-every 2000 --eval-samples 2048 --sample-length 0";
  if (scale.evening())
    return " --preset tiny --context 64 --batch 4 --steps 40000 --eval-every 4000 --eval-samples 1024 --sample-length "
           "0";
  return " --width 64 --layers 4 --heads 4 --context 64 --batch 16 --steps 4000 --eval-every 800 --eval-samples 512 "
         "--sample-length 0";
}

// Quick results only; those on stories are the same bits everywhere, and so is what can be said of them.
std::string remark_on_model(const std::string& label, bool stories) {
  if (label == "Transformer")
    return stories ? "stories are easier than Wikipedia, and models and runs are small: only the order can be compared"
                   : "small models, few steps: only the order can be compared";
  if (!stories) return "";
  if (label == "Mamba-1") return "the best, as in the paper";
  if (label == "Linear CausalRN")
    return "level with the Transformer after so few steps; in the paper, after an epoch of Wikipedia, behind both";
  return "";
}

// run: of which part, as in "train/mamba"
Command samples_of(const std::string& part, const std::string& run) {
  Command command{part, "generate", {"@" + run, "--prompt", "Three years later,"}, Command::Kind::SAYS};
  for (const std::string& word : words_of("--temperature 0.8 --length 240 --samples 2 --quiet"))
    command.words.push_back(word);
  return command;
}

// The command that trains a model. An evening's models are an hour each and commands of their own, so that each is kept when it is
// there.
std::string part_of(const TextModel& model, const Scale& scale) {
  return scale.evening() ? model.variant.substr(0, model.variant.find(':')) : "train";
}

// A command, a picture and a row for each model, or one command and picture for all.
void train_models(Plan& plan, const std::vector<TextModel>& models, const Scale& scale) {
  for (const TextModel& model : models) {
    const std::string part = part_of(model, scale);
    if (plan.commands.empty() || plan.commands.back().part != part) {
      plan.commands.push_back({part, "train_text", {"--compare", ""}});
      for (const std::string& word : words_of(text_options(scale) + text_settings(scale)))
        plan.commands.back().words.push_back(word);
      plan.pictures.push_back({part + "/compare.svg", "training loss, and accuracy on text that no training sees" +
                                                          (scale.evening() ? ": " + model.label : std::string())});
    }
    std::string& list = plan.commands.back().words[1];
    list += (list.empty() ? "" : ",") + model.variant;
    Row row{model.label + ": perplexity", model.paper,
            of_seeds({part + "/compare.csv", {{"variant", model.variant}}, "last_loss", Cell::Form::PERPLEXITY, 2},
                     !scale.full()),
            ""};
    if (scale.quick()) row.remark = remark_on_model(model.label, scale.text.empty());
    if (model.paper.empty()) row.remark = "the quadratic one is not in the paper's table";
    plan.rows.push_back(row);
  }
}

Plan text_perplexity(const Scale& scale) {
  Plan plan;
  plan.comparable = scale.full();
  const std::vector<TextModel> models = text_models(scale);
  const Command counts = counts_command(scale, text_window(scale));
  if (scale.evening()) plan.commands.push_back(counts);  // what they are held against, before hours go by
  train_models(plan, models, scale);
  if (!scale.full()) add_seeds(plan);
  plan.size = text_size(scale);
  plan.commands.push_back(
      samples_of("samples", part_of(models[3], scale) + "/" + parse_variants(models[3].variant)[0].name));
  if (!scale.evening()) plan.commands.push_back(counts);
  const auto side = [&](size_t i) { return Side{models[i].label, plan.rows[i].ours}; };
  const Side transformer = side(0), linear_transformer = side(1), mamba = side(2), relation = side(3);
  const std::string perplexity = measured_of("Perplexity", !scale.full());
  constexpr double AS_GOOD = 1.15;  // times: the paper's own are 3.22 and 2.81
  constexpr double SPREAD = 1.02;   // what three seeds of each of the quick models lie within, and some
  // Whom the others are held against must know more than the last few letters, which any model can.
  const auto learned = [&](const Side& model) { return Check{model, counted(4, scale, text_window(scale))}; };
  plan.claims = {
      {"the Linear CausalRN is behind Transformers and Mamba",
       {{transformer, relation, 1, SPREAD}, {linear_transformer, relation, 1, SPREAD}, {mamba, relation, 1, SPREAD}},
       perplexity + (scale.quick() ? "" : "; on stories, after fewer steps, it is not (the quick run)"),
       {learned(transformer), learned(linear_transformer), learned(mamba)},
       false,
       {counted(4, scale, text_window(scale)), counted_best(text_window(scale))}},
      {"the Linear CausalRN is comparable to the Linear Transformer",
       {{relation, linear_transformer, AS_GOOD, 1, Check::Relation::ALIKE}},
       perplexity,
       {learned(relation), learned(linear_transformer)}},
      {"Mamba is the best, and the Transformer before the linear one",
       {{mamba, transformer, 1, SPREAD}, {transformer, linear_transformer, 1, SPREAD}},
       perplexity,
       {learned(mamba), learned(transformer)}}};
  if (scale.full())
    plan.model_sizes = {{"train", "transformer", 85.6},
                        {"train", "linear_transformer", 85.6},
                        {"train", "linear_causal_rn", 85.6},
                        {"train", "mamba", 45.8}};
  plan.listings = {
      {"The Linear CausalRN goes on from \"Three years later,\" (workshop paper, figure 6):", "samples.log", ""},
      COUNTED_LISTING};
  return plan;
}

// ---- Images ---------------------------------------------------------------------------------------------------------

struct ImageModel {
  std::string variant, label, cifar10, cifar100;
};
const std::vector<ImageModel> IMAGE_MODELS = {{"transformer", "Transformer", "84.87", "50.56"},
                                              {"linear_transformer", "Linear Transformer", "80.90", "48.64"},
                                              {"birn_image", "Linear BiRN", "78.57", "42.10"}};

// A comparison cannot start each variant from another file: a run each.
void add_fine_tuning(Plan& plan, const Scale& scale, const std::string& set) {
  for (const ImageModel& model : IMAGE_MODELS) {
    const std::string part = set + "-" + model.variant, files = scale.images + "/" + set;
    plan.commands.push_back(
        {part, "train_image",
         words_of("--preset base --model " + model.variant + " --init @cifar5m/" + model.variant +
                  "/model.safetensors --data " + as_word(files + "_train.bin") + " --test " +
                  as_word(files + "_test.bin") + " --flip --steps 3000 --eval-every 500 --eval-samples 10000")});
    plan.pictures.push_back({part + "/heatmaps.png", "where the " + model.label + " looks, " + set});
    plan.rows.push_back({model.label + ": " + (set == "cifar10" ? "CIFAR-10" : "CIFAR-100") + ", %",
                         set == "cifar10" ? model.cifar10 : model.cifar100,
                         {part + "/log.csv", {{"step", "3000"}}, "eval_accuracy", Cell::Form::PERCENT, 2},
                         ""});
  }
}

// By rows of Transformer, Linear Transformer and Linear BiRN, of which `first` is the first, and of others behind them.
Claim image_claim(const Plan& plan, const std::vector<size_t>& first, bool seeds) {
  constexpr double LEARNED = 50;  // percent; of ten classes anybody has ten
  Claim claim{
      "the Linear BiRN is behind the Transformers",
      {},
      measured_of("Accuracy, %", seeds) + "; in the paper by 2 to 8 points" +
          (seeds ? "; the BiRN has 0.14 million parameters, each Transformer 0.47: in the paper they have as many"
                 : "")};
  const auto side = [&](size_t row, size_t model) {
    return Side{IMAGE_MODELS[model].label, plan.rows[row + model].ours};
  };
  for (const size_t row : first)
    for (const size_t other : {0, 1}) claim.checks.push_back({side(row, 2), side(row, other)});
  for (const size_t model : {0, 1}) claim.conditions.push_back({{"", {}, LEARNED}, side(first[0], model)});
  return claim;
}

Plan images_full(const Scale& scale) {
  Plan plan;
  plan.comparable = true;
  plan.size =
      "The paper's base models and its epoch of CIFAR-5M. How it fine-tuned it does not say: here 3,000 steps at the "
      "same rate, images mirrored every other time.";
  std::string list, parts;
  for (const ImageModel& model : IMAGE_MODELS) list += (list.empty() ? "" : ",") + model.variant;
  for (int part = 0; part < 5; ++part)
    parts += (part > 0 ? "," : "") + scale.images + "/cifar5m_part" + std::to_string(part) + ".bin";
  plan.commands = {
      {"cifar5m", "train_image",
       words_of("--preset base --steps 15632 --compare " + list + " --data " + as_word(parts) + " --test " +
                as_word(scale.images + "/cifar5m_part5.bin") + " --eval-every 1000 --eval-samples 4096")}};
  plan.pictures = {{"cifar5m/compare.svg", "CIFAR-5M: training loss, and accuracy"}};
  add_fine_tuning(plan, scale, "cifar10");
  add_fine_tuning(plan, scale, "cifar100");
  plan.claims = {image_claim(plan, {0, IMAGE_MODELS.size()}, false)};
  return plan;
}

std::string quick_variant(const ImageModel& model) {
  return model.variant + (model.variant == "birn_image" ? "" : ":heads=4");
}

// What the paper does with CIFAR-5M, with drawn shapes, of which there are as many: first these, then CIFAR-10.
void add_transfer(Plan& plan, const std::string& variants, const std::string& data) {
  const std::string steps = "2000";
  plan.commands.push_back(
      {"shapes", "train_image",
       words_of("--compare " + variants + " --lr 5e-4 --steps 5000 --eval-every 1000 --eval-samples 1000 --maps 0")});
  for (const ImageModel& model : IMAGE_MODELS) {
    const std::string part = "tuned-" + model.variant, run = parse_variants(quick_variant(model))[0].name,
                      heads = model.variant == "birn_image" ? "" : " --heads 4";
    plan.commands.push_back(
        {part, "train_image",
         words_of("--model " + model.variant + heads + " --init @shapes/" + run + "/model.safetensors" + data +
                  " --lr 5e-4 --steps " + steps + " --eval-every " + steps + " --eval-samples 1000 --maps 0")});
    const auto accuracy = [&](const std::string& file) {
      return of_seeds({file, {{"step", steps}}, "eval_accuracy", Cell::Form::PERCENT, 1});
    };
    plan.rows.push_back({model.label + ": after 2,000 steps, %", "", accuracy("train/" + run + "/log.csv"), ""});
    plan.rows.push_back({model.label + ": after 5,000 steps of drawn shapes, then 2,000, %", "",
                         accuracy(part + "/log.csv"), "all from the shapes, the readout of as many classes too"});
  }
}

// The paper's models on CIFAR-10 alone take days on two cores: the sizes of ./train_image.
std::string image_size(const Scale& scale) {
  const bool files = !scale.images.empty();
  const std::string images = files ? "as much of CIFAR-10 as the folder has (docs/images.md)"
                                   : "drawn shapes of ten classes in place of photographs";
  return scale.evening() ? "The sizes of ./train_image in place of the base models', " + images +
                               " and no CIFAR-5M before, 10,000 steps of 32 images at the paper's rate of 5e-4; beside "
                               "it drawn shapes in place of CIFAR-5M, and from there to CIFAR-10. Three seeds."
                         : "Quick: the sizes of ./train_image, " + images +
                               ", 1,200 steps of 32 images, a rate of 2e-3 in place of 5e-4. Three seeds.";
}

Plan images(const Scale& scale) {
  if (scale.full()) return images_full(scale);
  Plan plan;
  const bool files = !scale.images.empty();
  plan.size = image_size(scale);
  std::string list;
  for (const ImageModel& model : IMAGE_MODELS) {
    const std::string variant = quick_variant(model);
    list += (list.empty() ? "" : ",") + variant;
    const Cell cell{"train/compare.csv", {{"variant", variant}}, "last_accuracy", Cell::Form::PERCENT, 1};
    plan.rows.push_back(
        {model.label + (files ? ": CIFAR-10, %" : ": shapes, %"), files ? model.cifar10 : "", of_seeds(cell), ""});
    if (!files) plan.rows.back().remark = "CIFAR-10 in the paper: " + model.cifar10 + ", CIFAR-100: " + model.cifar100;
  }
  if (scale.quick() && !files)
    plan.rows[2].remark += "; before the Transformers, which are before it in the paper, but have learned little here";
  plan.claims = {image_claim(plan, {0}, true)};
  const std::string data = files ? " --data " + as_word(scale.images + "/cifar10_train.bin") + " --test " +
                                       as_word(scale.images + "/cifar10_test.bin") + " --flip"
                                 : "";
  plan.commands = {{"train", "train_image",
                    words_of("--compare " + list +
                             (scale.evening() ? " --lr 5e-4 --steps 10000 --eval-every 2000" : " --eval-every 200") +
                             " --eval-samples 1000 --maps 6" + data)}};
  if (scale.evening()) add_transfer(plan, list, data);
  add_seeds(plan);
  plan.pictures = {
      {"train/compare.svg", "training loss, and accuracy on images that no training sees"},
      {"train/birn_image/heatmaps.png",
       "where the Linear BiRN looks (linear-time paper, figure 7): how strongly each patch reaches the class token"}};
  return plan;
}

}  // namespace

std::vector<Experiment> modeling_experiments() {
  return {
      {"copy-expansion", LINEAR_PAPER, "figure 4 (d)", "Copying with more hidden channels",
       "The paper: as the factor grows the model memorizes more, and soon enough it copies perfectly: a memory need "
       "not be infinite.",
       "", "two minutes on two cores", "less than an hour on a GPU for each model", expansion},
      {"text-perplexity", LINEAR_PAPER, "table 1, abstract", "Language modelling on characters",
       "The paper: the Linear CausalRN is behind Transformers and Mamba, but a valid language model.",
       "--data data/wikitext103_train.txt --val data/wikitext103_valid.txt (data/wikitext103.sh)",
       "a quarter of an hour on two cores", "days on a GPU", text_perplexity, "six hours on two cores", WIKITEXT_2},
      {"image-accuracy", LINEAR_PAPER, "table 2, figure 7", "Classification of images, three models",
       "The paper: trained on CIFAR-5M, then on CIFAR-10 and CIFAR-100, the Linear BiRN is 2 to 8 points behind the "
       "Transformers, and its heat maps show the main object.",
       "--cifar FOLDER with CIFAR-5M, CIFAR-10 and CIFAR-100 (data/cifar5m.sh, cifar10.sh, cifar100.sh)",
       "twenty minutes on two cores", "days on a GPU", images, "six hours on two cores",
       "--cifar FOLDER with CIFAR-10 (data/cifar10.sh)"},
  };
}

}  // namespace petroglyph
