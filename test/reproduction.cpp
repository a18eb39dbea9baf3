// ./reproduce: the table of experiments, running them and going on, and the pages that are made of their results.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "check.h"
#include "image_bytes.h"
#include "reproduction/child.h"
#include "reproduction/choice.h"
#include "reproduction/draw.h"
#include "reproduction/dry_run.h"
#include "reproduction/page.h"
#include "reproduction/record.h"
#include "reproduction/table.h"
#include "shell.h"
#include "tokenizers/byte_spelling.h"

namespace petroglyph {
namespace {

const std::string SMALL =
    " --length 4 --width 12 --hidden 12 --layers 1 --batch 8 --eval-samples 8 --eval-every 4 --stop-at 2 --steps 8";

// Two commands, the second of which needs the first one's folder.
Plan tiny_plan(const Scale& scale) {
  Plan plan;
  plan.size = "tiny";
  plan.comparable = true;
  plan.commands = {
      {"train", "train_copy", words_of("--compare causal_rn,rnn" + SMALL)},
      {"again", "train_copy",
       words_of("--init @train/causal_rn/model.safetensors --seed 7" + SMALL + (scale.full() ? " --lr 9" : ""))}};
  plan.rows = {{"last loss <1>", "1.00", {"train/compare.csv", {{"variant", "rnn"}}, "last_loss"}, "a | b"},
               {"steps", "", {"train/compare.csv", {{"variant", "rnn"}}, "step_99", Cell::Form::STEP}, ""},
               {"nowhere", "5", {"train/nowhere.csv", {}, "x"}, "never shown"}};
  Plot plot{"loss.svg", "Loss", "variant", "loss", {}, false, false};
  plot.curves = {{"ours", {{1, plan.rows[0].ours}, {2, plan.rows[0].ours}}}};
  plan.plots = {plot};
  plan.pictures = {{"train/compare.svg", "curves & more"}, {"train/nothing.svg", ""}};
  plan.listings = {{"what it said", "again.log", "weights"}};
  return plan;
}
const Experiment TINY = {"tiny", "A paper", "table 0", "A <title>", "It shows.", "", "seconds", "", tiny_plan};

// Of models whose size the paper says.
Plan sized_plan(const Scale& scale) {
  Plan plan;
  plan.commands = {{"train", "train_copy", words_of("--model causal_rn" + SMALL)}};
  plan.model_sizes = {{"train", "causal_rn", scale.full() ? 9 : 0.001272}};
  return plan;
}
const Experiment SIZED = {"sized", "A paper", "table 0", "Sized", "", "", "", "", sized_plan};

Plan study_plan(const Scale&) {
  Plan plan;
  plan.commands = {{"train", "scaling", words_of("--what context --widths 16 --contexts 3 --tokens 30000000")}};
  return plan;
}
const Experiment STUDY = {"study", "A paper", "table 0", "A study", "", "", "", "", study_plan};

// The second begins with what the first leaves, whose steps are the program's own.
Plan tuned_plan(const Scale&) {
  const std::string model = "--model causal_rn --width 8 --length 4 --batch 2";
  Plan plan;
  plan.commands = {{"first", "train_copy", words_of(model)},
                   {"tuned", "train_copy", words_of(model + " --init @first/model.safetensors --steps 3")}};
  return plan;
}
const Experiment TUNED = {"tuned", "A paper", "table 0", "Tuned", "", "", "", "", tuned_plan};

Plan broken_plan(const Scale&) {
  Plan plan;
  plan.commands = {{"bad", "train_copy", words_of("--heads 5")}};
  return plan;
}
const Experiment BROKEN = {"broken", "A paper", "table 0", "Broken", "", "", "", "", broken_plan};

// Runs in a folder of its own, as a user's shell would.
class Workplace {
 public:
  Workplace() : before_(std::filesystem::current_path()) { std::filesystem::current_path(folder_.path()); }
  ~Workplace() { std::filesystem::current_path(before_); }

 private:
  TemporaryFolder folder_;
  std::filesystem::path before_;
};

// Members of some languages are of even lengths only: a stride must be odd.
bool both_parities(const Command& command) {
  const auto stride = std::find(command.words.begin(), command.words.end(), "--test-every");
  return stride == command.words.end() || (stride + 1)->back() % 2 == 1;
}

// The words behind an option of a command, between commas.
std::vector<std::string> list_of(const Command& command, const std::string& option) {
  const auto found = std::find(command.words.begin(), command.words.end(), option);
  return found == command.words.end() ? std::vector<std::string>() : split(*(found + 1), ',');
}

// Whether a command makes what a cell reads of it: the variant of a comparison, the length that it is asked for.
bool makes(const Command& command, const Cell& cell) {
  const auto is_in = [&](const std::string& option, const std::string& word) {
    const std::vector<std::string> words = list_of(command, option);
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  for (const auto& [column, word] : cell.where)
    if (column == "variant" && !is_in("--compare", word)) return false;
  const bool of_lengths = cell.file.size() > 12 && cell.file.substr(cell.file.size() - 12) == "/lengths.csv";
  return !of_lengths || is_in("--evaluate-lengths", cell.column);
}

void experiment_table(Test& test) {
  std::set<std::string> names;
  for (const Experiment& experiment : experiments()) {
    test.check(experiment.name + " is there once", names.insert(experiment.name).second);
    for (const Scale::Size size : {Scale::Size::QUICK, Scale::Size::EVENING, Scale::Size::FULL}) {
      if (!has_plan(experiment, size)) continue;
      Scale scale;
      scale.size = size;
      const Plan plan = experiment.plan(scale);
      std::set<std::string> parts;
      for (const Command& command : plan.commands) parts.insert(command.part);
      test.equal(experiment.name + ": a part has one command", parts.size(), plan.commands.size());
      bool known = !plan.size.empty() && !plan.commands.empty();
      const auto of_a_part = [&](const std::string& file) {
        known = known && (file.empty() || parts.count(file.substr(0, file.find_first_of("/."))) == 1);
      };
      std::string missed;
      const auto made = [&](const Cell& cell) {
        of_a_part(cell.file);
        for (const Command& command : plan.commands)
          if (cell.file.rfind(command.part + "/", 0) == 0 && !makes(command, cell))
            missed += cell.file + " " + cell.column + " " + (cell.where.empty() ? "" : cell.where[0].second) + "\n";
      };
      for (const Row& row : plan.rows) made(row.ours);
      for (const PlanPicture& picture : plan.pictures) of_a_part(picture.file);
      for (const Listing& listing : plan.listings) of_a_part(listing.file);
      for (const std::string& file : plan.tables) of_a_part(file);
      for (const Plot& plot : plan.plots)
        for (const Plot::Curve& curve : plot.curves)
          for (const auto& point : curve.points) made(point.second);
      for (const Claim& claim : plan.claims)
        for (const std::vector<Cell>& cells : {cells_of(claim), cells_of(claim.conditions)})
          for (const Cell& cell : cells) made(cell);
      test.check(experiment.name + ": every file is of a part", known);
      test.equal(experiment.name + ": every variant and length is of its command", missed, "");
      for (const Command& command : plan.commands)
        test.check(experiment.name + ": a test of a language has strings of even and odd lengths",
                   both_parities(command));
    }
  }
}

// Of the models in the command of table 3: the chunks of those that have any, and the lengths that they are asked for.
std::pair<std::vector<int>, std::vector<int>> chunks_and_lengths(const Command& command) {
  std::pair<std::vector<int>, std::vector<int>> found;
  for (const std::string& length : list_of(command, "--evaluate-lengths")) found.second.push_back(std::stoi(length));
  for (const std::string& variant : list_of(command, "--compare"))
    if (const size_t at = variant.find("chunk="); at != std::string::npos)
      found.first.push_back(std::stoi(variant.substr(at + 6)));
  return found;
}

// Small models of table 3 need as many layers for a length as the paper's for theirs.
void same_layers(Test& test) {
  const auto layers = [](int chunk, int length) {
    int count = 0;
    for (int64_t reached = 1; reached < length; reached *= chunk) ++count;
    return count;
  };
  const auto found = std::find_if(experiments().begin(), experiments().end(),
                                  [](const Experiment& one) { return one.name == "regular-text"; });
  Scale full;
  full.size = Scale::Size::FULL;
  const auto [chunks, lengths] = chunks_and_lengths(found->plan({}).commands[0]);
  const auto [their_chunks, their_lengths] = chunks_and_lengths(found->plan(full).commands[0]);
  test.equal("table 3: as many models with chunks", chunks.size(), their_chunks.size());
  test.equal("and lengths", lengths.size(), their_lengths.size());
  for (size_t c = 0; c < chunks.size() && chunks.size() == their_chunks.size(); ++c)
    for (size_t l = 0; l < lengths.size() && lengths.size() == their_lengths.size(); ++l)
      test.equal(text("chunk %d at %d tokens has the layers of %d at %d", chunks[c], lengths[l], their_chunks[c],
                      their_lengths[l]),
                 layers(chunks[c], lengths[l]), layers(their_chunks[c], their_lengths[l]));
}

const Finder in_place = [](const std::string& file) { return file; };

// A table of three rows, two of the same name, and those of other seeds beside it.
void write_tables() {
  write_bytes("a.csv", "name,step_99,last_step,x\n\"a, \"\"b\"\"\",,300,0.25\nc,1200,1300,0.5\nc,7,8,1\n");
  write_bytes("b.csv", "name,step_99,last_step,x\nc,1000,1300,0\n\"a, \"\"b\"\"\",,300,0\n");
  write_bytes("d.csv", "name,step_99,last_step,x\n\"a, \"\"b\"\"\",200,300,\n");
}

void cells(Test& test) {
  const Workplace here;
  write_tables();
  const auto shown = [&](const std::string& name, const std::string& column, Cell::Form form, int digits = 2) {
    return shown_cell({"a.csv", {{"name", name}}, column, form, digits}, in_place).value_or("none");
  };
  test.equal("quoted", shown("a, \"b\"", "x", Cell::Form::NUMBER), "0.25");
  test.equal("never", shown("a, \"b\"", "step_99", Cell::Form::STEP), "not in 300");
  test.equal("a step", shown("c", "step_99", Cell::Form::STEP), "1,200");
  test.equal("an empty cell", shown("a, \"b\"", "step_99", Cell::Form::NUMBER), "none");
  test.equal("percent", shown("c", "x", Cell::Form::PERCENT, 1), "50.0");
  test.equal("best and mean", shown("c", "x", Cell::Form::BEST_MEAN), "100.0 / 75.0");
  test.equal("mean", shown("c", "x", Cell::Form::MEAN), "75.0");
  test.equal("best", shown("c", "x", Cell::Form::BEST), "100.0");
  test.equal("perplexity", shown("c", "x", Cell::Form::PERPLEXITY), "1.65");
  test.equal("scientific", shown("c", "step_99", Cell::Form::SCIENTIFIC), "1.2e+03");
  test.equal("millions", shown("c", "step_99", Cell::Form::MILLIONS, 4), "0.0012");
  test.equal("no such row", shown("d", "x", Cell::Form::NUMBER), "none");
  test.throws("no such column", "no column y", [&] { shown("c", "y", Cell::Form::NUMBER); });
  write_bytes("a.csv", "a,b\n1\n");
  test.throws("a short row", "row 2 has 1 fields, expected 2", [&] { shown("c", "x", Cell::Form::NUMBER); });
}

// Of one row, or rows, in the files of several seeds.
void cells_of_seeds(Test& test) {
  const Workplace here;
  write_tables();
  const auto seeds = [&](const std::string& name, const char* column, Cell::Form form,
                         const std::vector<std::string>& others) {
    return shown_cell({"a.csv", {{"name", name}}, column, form, 1, others}, in_place).value_or("none");
  };
  const auto steps = [&](const std::string& name, const std::vector<std::string>& others) {
    return seeds(name, "step_99", Cell::Form::STEP, others);
  };
  test.equal("steps of seeds", steps("c", {"b.csv"}), "1,100 (1,000 to 1,200)");
  test.equal("steps of two seeds of three", steps("c", {"b.csv", "nowhere.csv"}),
             "1,100 (1,000 to 1,200), 2 of 3 seeds");
  test.equal("the same step", steps("c", {"a.csv", "a.csv"}), "1,200 (each of 3)");
  test.equal("other seeds were not run", steps("c", {"nowhere.csv"}), "1,200, one seed");
  test.equal("or lack the row", steps("c", {"d.csv"}), "1,200, one seed");
  test.equal(
      "or the first one lacks it",
      shown_cell({"d.csv", {{"name", "c"}}, "step_99", Cell::Form::STEP, 1, {"a.csv"}}, in_place).value_or("none"),
      "1,200, one seed");
  test.equal("never by any seed", steps("a, \"b\"", {"b.csv"}), "not in 300");
  test.equal("never by one", steps("a, \"b\"", {"d.csv"}), "by 1 of 2 seeds only");
  test.equal("percent of seeds", seeds("c", "x", Cell::Form::PERCENT, {"b.csv"}), "25.0 (0.0 to 50.0)");
  test.equal("perplexity of seeds", seeds("c", "x", Cell::Form::PERPLEXITY, {"b.csv"}), "1.3 (1.0 to 1.6)");
  test.equal("a seed without a number", seeds("a, \"b\"", "x", Cell::Form::NUMBER, {"b.csv", "d.csv"}),
             "0.1 (0.0 to 0.2), 2 of 3 seeds");
  test.equal("rows of two files", seeds("c", "x", Cell::Form::BEST_MEAN, {"b.csv"}), "100.0 / 50.0");
  test.equal("of one of them", seeds("c", "x", Cell::Form::MEAN, {"nowhere.csv"}), "75.0, one seed");
  test.equal("of one that has the row", seeds("c", "x", Cell::Form::MEAN, {"d.csv"}), "75.0, one seed");
  test.equal("rows without a number", seeds("a, \"b\"", "x", Cell::Form::MEAN, {"d.csv"}), "none");
}

// What cannot be written down ends the child, too: nobody begins another beside it.
void a_full_log(Test& test) {
  const Workplace here;
  if (!std::filesystem::exists("/dev/full")) return test.skip("a full log", "there is no /dev/full");
  const std::vector<std::string> words = {"-c",
                                          "echo $$ > child; trap 'echo saved > saved; exit' TERM; echo one; "
                                          "for i in 1 2 3 4 5 6; do sleep 1; done; echo on > on"};
  test.throws("a full log", "/dev/full: cannot write", [&] { run_child("/bin/sh", words, "/dev/full", true); });
  test.check("its child has ended", std::filesystem::exists("saved") && !std::filesystem::exists("on"));
}

void numbers_of_cells(Test& test) {
  const Workplace here;
  write_tables();
  const auto number = [&](const std::string& column, Cell::Form form, const std::vector<std::string>& others = {}) {
    return cell_number({"a.csv", {{"name", "c"}}, column, form, 0, others}, in_place);
  };
  test.equal("as it stands", number("x", Cell::Form::NUMBER), 0.5);
  test.equal("percent", number("x", Cell::Form::PERCENT), 50.0);
  test.equal("perplexity", number("x", Cell::Form::PERPLEXITY), std::exp(0.5));
  test.equal("best", number("x", Cell::Form::BEST), 100.0);
  test.equal("mean", number("x", Cell::Form::MEAN), 75.0);
  test.equal("best and mean", number("x", Cell::Form::BEST_MEAN), 75.0);
  test.equal("the best row of two files", number("x", Cell::Form::BEST, {"b.csv"}), 100.0);
  test.equal("the mean of theirs", number("x", Cell::Form::MEAN, {"b.csv"}), 50.0);
  test.equal("steps of seeds", number("step_99", Cell::Form::STEP, {"b.csv"}), 1100.0);
  test.equal("percent of seeds", number("x", Cell::Form::PERCENT, {"b.csv"}), 25.0);
}

void cells_of_logs(Test& test) {
  const Workplace here;
  write_bytes("a.log", "a: 5 clusters\nb on 500: clusters: 12, x\nc\n");
  const auto said = [&](const std::string& after, const std::string& words) {
    return shown_cell({"a.log", {{"", after}}, words, Cell::Form::SAID}, in_place).value_or("none");
  };
  test.equal("said", said("b on", "clusters: "), "12");
  test.equal("not said behind it", said("x\nc", "clusters: "), "none");
  test.equal("no number", said("a", "5 clus"), "none");
  write_bytes("b.log", "b on 500: clusters: 15\n");
  const auto clusters = [&](const std::vector<std::string>& others) {
    return Cell{"a.log", {{"", "b on"}}, "clusters: ", Cell::Form::SAID, 0, others};
  };
  test.equal("said of seeds", shown_cell(clusters({"b.log"}), in_place).value_or("none"), "14 (12 to 15)");
  test.equal("of one of them", shown_cell(clusters({"nowhere.log"}), in_place).value_or("none"), "12, one seed");
  test.equal("their mean as a number", cell_number(clusters({"b.log"}), in_place), 13.5);
}

void distances(Test& test) {
  test.equal("further", distance("2.70", "2.9512"), "+0.25");
  test.equal("nearer", distance("100.0 / 89.3", "100.0 / 88.1"), "±0.0 / −1.2");
  test.equal("whole", distance("200", "155"), "−45");
  test.equal("of seeds", distance("0.24", "0.53 (0.49 to 0.55)"), "+0.29");
  test.equal("words", distance("near 200", "155"), "");
  test.equal("one of two", distance("100.0 / 89.3", "100.0"), "");
}

// The commands that add_seeds adds, each as one line.
void other_seeds(Test& test) {
  using Kind = Command::Kind;
  Plan plan;
  plan.commands = {{"train", "train_text", {"--steps", "5"}},
                   {"parity", "train_regular", {"--task", "parity_check"}, Kind::NAMES},
                   {"look", "inspect", {"clusters", "@parity/parity_check-seed-1", "@train"}, Kind::WRITES},
                   {"counts", "inspect", {"counts"}, Kind::SAYS}};
  add_seeds(plan);
  std::vector<std::string> lines;
  for (size_t i = 4; i < plan.commands.size(); ++i)
    lines.push_back(plan.commands[i].part + ": " + join(plan.commands[i].words, " "));
  const std::vector<std::string> expected = {"seed2: --steps 5 --seed 2",
                                             "parity-seed2: --task parity_check --seed 2",
                                             "look-seed2: clusters @parity-seed2/parity_check-seed-2 @seed2",
                                             "seed3: --steps 5 --seed 3",
                                             "parity-seed3: --task parity_check --seed 3",
                                             "look-seed3: clusters @parity-seed3/parity_check-seed-3 @seed3"};
  test.equal("other seeds", join(lines, "\n"), join(expected, "\n"));
  const auto others = [](const char* file) { return join(of_seeds({file, {}, ""}).others, ","); };
  test.equal("their tables", others("train/a.csv"), "seed2/a.csv,seed3/a.csv");
  test.equal("their logs", others("look.log"), "look-seed2.log,look-seed3.log");
}

void running(Test& test, const std::string& programs) {
  const Workplace here;
  Conductor conductor{programs, "cpu", 1, true};
  test.equal("runs", conductor.run(TINY, {}), 0);
  const std::optional<Record> record = read_record("runs/reproduce-quick-tiny");
  if (!test.check("is done", record && record->done())) return;
  const std::string log = read_bytes("runs/reproduce-quick-tiny/again.log");
  test.equal("two models, one of them twice", record->commands[0].weights.size(), size_t(2));
  test.check("the fingerprint is the program's",
             log.find("weights " + record->commands[1].weights.at(0).weights) != std::string::npos, log);
  const auto facts = [](size_t command) { return facts_of(make_page({TINY}).sections.at(0).commands.at(command)); };
  test.check("the seed", facts(1).find(", seed 7, weights ") != std::string::npos, facts(1));
  const auto of_tiny = [&](size_t command) { return facts(command).substr(0, facts(command).find(", seed")); };
  test.equal("of one machine the time alone", of_tiny(0), duration_text(record->commands[0].seconds));
  test.check("what is done is not done again", [&] {
    conductor.run(TINY, {});
    return read_bytes("runs/reproduce-quick-tiny/again.log") == log;
  }());

  // The second command anew, the first one half done.
  Record half = *record;
  for (DoneCommand& command : half.commands) command.done = false;
  write_record("runs/reproduce-quick-tiny", half);
  test.equal("a command that did not come to its end", of_tiny(0), "begun, not finished");
  const std::string train = "runs/reproduce-quick-tiny.train/", before = read_bytes(train + "compare.csv");
  std::filesystem::remove_all(train + "rnn");
  std::filesystem::remove(train + "compare.csv");
  std::filesystem::remove(std::string("runs/reproduce-quick-tiny.again/model.safetensors"));
  test.equal("goes on", conductor.run(TINY, {}), 0);
  test.equal("to the same numbers", read_bytes(train + "compare.csv"), before);
  test.equal("and the same weights", read_record("runs/reproduce-quick-tiny")->commands[1].weights.at(0).weights,
             record->commands[1].weights.at(0).weights);

  const std::string here_now = record->machine;
  half.commands[0].done = true;
  half.machine = half.commands[0].machine = "another machine";
  write_record("runs/reproduce-quick-tiny", half);
  conductor.run(TINY, {});
  test.equal("of two machines both", read_record("runs/reproduce-quick-tiny")->machine,
             "another machine, and " + here_now);
  test.equal("of a command that was done its own", read_record("runs/reproduce-quick-tiny")->commands[0].machine,
             "another machine");
  test.equal("and of one that was not this", read_record("runs/reproduce-quick-tiny")->commands[1].machine, here_now);
  test.equal("beside its time on the page", of_tiny(0),
             duration_text(record->commands[0].seconds) + " on another machine");

  Scale scale;
  scale.text = "text.txt";
  write_bytes("text.txt", "One text.\n");
  test.equal("with a text", conductor.run(TINY, scale), 0);
  Record begun = *read_record("runs/reproduce-data-tiny");
  for (DoneCommand& command : begun.commands) command.done = false;
  write_record("runs/reproduce-data-tiny", begun);
  write_bytes("text.txt", "Two text.\n");
  test.throws("whose file was changed", "its text is not the one that it was begun with",
              [&] { conductor.run(TINY, scale); });
  write_bytes("text.txt", "One text.\n");
  test.equal("and is as before", conductor.run(TINY, scale), 0);
  for (DoneCommand& command : begun.commands) command.line += " --lr 5";
  for (const DoneCommand& command : begun.commands)
    std::filesystem::remove_all(part_folder("runs/reproduce-data-tiny", command.part));
  write_record("runs/reproduce-data-tiny", begun);
  test.equal("what left nothing is no run that goes on", conductor.run(TINY, scale), 0);
  std::filesystem::remove("text.txt");
  test.throws("whose file is gone", "runs/reproduce-data-tiny: the text that it was begun with: text.txt",
              [&] { begun_record("runs/reproduce-data-tiny", TINY.plan(scale)); });
  write_bytes("text.txt", "One text.\n");

  half.commands[0].line += " --lr 5";
  write_record("runs/reproduce-quick-tiny", half);
  test.throws("other commands", "was run with other commands", [&] { conductor.run(TINY, {}); });
  test.throws("a child fails", "broken: train_copy ended with status 2: train_copy: --heads 5 does not divide",
              [&] { conductor.run(BROKEN, {}); });
  conductor.programs = "nowhere";
  test.throws("no such program", "nowhere/train_copy: there is no such program", [&] { conductor.run(BROKEN, {}); });
}

void pages(Test& test, const std::string& programs) {
  const Workplace here;
  const std::vector<Experiment> table = {TINY, BROKEN};
  const PageSection none = section_of(TINY, nullptr);
  test.equal("not run", none.rows.at(0).ours, "not run");
  test.equal("the paper's number is there all the same", none.rows.at(0).paper, "1.00");
  test.check("nothing else is", none.figures.empty() && none.commands.empty() && none.rows[0].remark.empty());

  Conductor{programs, "cpu", 1, true}.run(TINY, {});
  const Page page = make_page(table);
  write_html(page, "report");
  write_markdown(page, "results");
  const std::string html = read_bytes("report/index.html"), markdown = read_bytes("results/RESULTS.md");
  const auto says = [&](const std::string& name, const std::string& page_text, const std::string& words) {
    test.check(name, page_text.find(words) != std::string::npos, words + " is not in " + page_text);
  };
  const std::string loss = shown_cell(tiny_plan({}).rows[0].ours, finder_of("runs/reproduce-quick-tiny")).value();
  says("html escapes", html, "A &lt;title&gt;");
  says("html: the number", html, "<td class=\"number\">" + loss + "</td>");
  says("html: not run", html, "<td class=\"number not-run\">not run</td>");
  says("html: the figure", html, "<img src=\"tiny/train-compare.svg\" alt=\"A &lt;title&gt; curves &amp; more\">");
  says("html: the words of a log", html, "<pre>weights ");
  says("html: never a script", html, "<nav>");
  test.check("html: no script and nothing from elsewhere",
             html.find("<script") == std::string::npos && html.find("http") == std::string::npos);
  test.check("html: what is not there is not shown", html.find("nothing.svg") == std::string::npos);
  says("markdown escapes", markdown, "### <a id=\"tiny\"></a>A &lt;title\\>");
  says("markdown: the row", markdown,
       "| last loss &lt;1\\> | 1.00 | " + loss + " | " + distance("1.00", loss) + " | a \\| b |");
  says("markdown: a step", markdown, "| steps |  | not in 8 |");
  says("markdown: not run", markdown, "| nowhere | 5 | not run |  |  |");
  says("markdown: a whole experiment", markdown, "`broken` · not run");
  says("markdown: the command", markdown, "./train_copy --compare causal_rn,rnn --length 4");
  for (const char* file : {"report/tiny/train-compare.svg", "report/tiny/loss.svg", "results/tiny/train-compare.svg",
                           "results/tiny/train-compare.csv", "results/tiny/loss.svg"})
    test.check(std::string("leaves ") + file, std::filesystem::exists(file));
  Record other = *read_record("runs/reproduce-quick-tiny");
  const Record today = other;
  other.commands[0].line += " --lr 5";
  write_record("runs/reproduce-quick-tiny", other);
  const Page without = make_page(table);
  test.equal("what was run with other commands", join(without.stale, ","), "runs/reproduce-quick-tiny");
  test.equal("is not shown", without.sections.at(0).rows.at(0).ours, "not run");
  write_record("runs/reproduce-quick-tiny", today);
  test.check("else nothing is left out", page.stale.empty());
  // What a folder of results keeps is enough to write it again, and goes on being there.
  std::filesystem::rename("runs", "elsewhere");
  write_markdown(make_page(table, "results"), "results");
  test.equal("again from what is kept", read_bytes("results/RESULTS.md"), markdown);
  write_markdown(make_page(table, "nowhere"), "others");
  test.check("elsewhere it was not run", read_bytes("others/RESULTS.md").find("`tiny` · not run") != std::string::npos);
  test.equal("a row of a table", markdown_text("a|b_c*d\ne"), "a\\|b\\_c\\*d e");
}

// A claim, and the verdict on it and why; of those without one something else is tested.
struct Judged {
  Claim claim;
  std::string verdict = {}, why = {};
};

constexpr auto ALIKE = Check::Relation::ALIKE, APART = Check::Relation::APART;

Side loss(const char* name) { return {name, {"a/x.csv", {{"name", name}}, "loss", Cell::Form::NUMBER, 1}}; }
Side step(const char* name) { return {name, {"a/x.csv", {{"name", name}}, "step_99", Cell::Form::STEP, 0}}; }
// Of two seeds.
Side steps(const char* name) {
  return {name, {"b/x.csv", {{"name", name}}, "step_99", Cell::Form::STEP, 0, {"b/y.csv"}}};
}
Side shares(const char* name) {
  return {name, {"b/x.csv", {{"name", name}}, "share", Cell::Form::PERCENT, 0, {"b/y.csv"}}};
}
Side sum(const char* name) { return {"both", shares("one").cell, 0, {shares(name).cell}}; }
// Of three, of which one is not there.
Side more_steps(const char* name) {
  Side side = steps(name);
  side.cell.others.push_back("b/z.csv");
  return side;
}

Side more_shares(const char* name) {
  Side side = shares(name);
  side.cell.others.push_back("b/z.csv");
  return side;
}

Check of_one_run(const char* less, const char* more) {
  Check check{steps(less), steps(more), 1, 1.3};
  check.of_one_run = true;
  return check;
}

// A condition that is not met, and says why in words of its own.
Check unmet_otherwise() {
  Check check{loss("two"), {"a yardstick", {}, 1}};
  check.unmet = "no such thing";
  return check;
}

// Of all rows of two files, of which one is not there.
Side rows(const char* name) { return {name, {"a/x.csv", {{"name", name}}, "loss", Cell::Form::MEAN, 1, {"b/z.csv"}}}; }

// Numbers of two models, and a step that was not reached.
std::vector<Judged> judged_by_one_run() {
  return {
      {{"holds", {{loss("one"), loss("two")}, {step("one"), step("two")}}},
       "confirmed at reduced scale",
       "one 1.0 < two 2.0; one 20 < two not in 300"},
      {{"half of it", {{loss("one"), loss("two")}, {loss("two"), loss("one")}}},
       "not confirmed",
       "one 1.0 < two 2.0; two 2.0 is not below one 1.0"},
      {{"the other way", {{loss("two"), loss("one")}}, "Note"},
       "contradicted at reduced scale",
       "two 2.0 is not below one 1.0. Note"},
      {{"numbers beside", {{loss("one"), loss("two")}}, "Note", {}, false, {step("one"), loss("three"), step("two")}},
       "confirmed at reduced scale",
       "one 1.0 < two 2.0. Note; one 20; two not in 300"},
      {{"too near", {{loss("one"), loss("two"), 1, 3}}},
       "not confirmed",
       "one 1.0, within the spread of seeds of two 2.0"},
      {{"against a number", {{{"", {}, 0.5}, loss("one")}}}, "confirmed at reduced scale", "0.5 < one 1.0"},
      {{"nowhere", {{loss("one"), loss("three")}}}, "not run", ""},
      {{"of two files", {{loss("one"), loss("two")}, {steps("one"), steps("three")}}}},
      {{"alike", {{loss("one"), loss("two"), 2.1, 1, ALIKE}, {loss("two"), loss("one"), 2.1, 1, ALIKE}}},
       "confirmed at reduced scale",
       "one 1.0 is within 2.1 × two 2.0; two 2.0 is within 2.1 × one 1.0"},
      {{"not alike", {{loss("one"), loss("two"), 1.9, 1, ALIKE}}},
       "contradicted at reduced scale",
       "one 1.0 is not within 1.9 × two 2.0"},
      {{"nearly alike", {{loss("two"), loss("one"), 1.9, 1.1, ALIKE}}},
       "not confirmed",
       "two 2.0 is about as near as 1.9 × one 1.0"},
      {{"learned enough", {{loss("one"), loss("two")}}, "", {{loss("two"), {"a yardstick", {}, 3}}}},
       "confirmed at reduced scale",
       "one 1.0 < two 2.0"},
      {{"learned too little", {{loss("one"), loss("two")}}, "Note", {{loss("two"), {"a yardstick", {}, 2}}}},
       "not decided",
       "learned too little: two 2.0 is not below a yardstick 2. one 1.0 < two 2.0. Note"},
      {{"otherwise", {{loss("one"), loss("two")}}, "", {unmet_otherwise()}},
       "not decided",
       "no such thing: two 2.0 is not below a yardstick 1. one 1.0 < two 2.0"},
      {{"small", {{loss("one"), loss("two")}}, "", {}, true}},
      {{"apart", {{loss("one"), loss("two"), 1.9, 1, APART}}},
       "confirmed at reduced scale",
       "one 1.0 is not within 1.9 × two 2.0"},
      {{"not apart", {{loss("one"), loss("two"), 2.1, 1.5, APART}}},
       "contradicted at reduced scale",
       "one 1.0 is within 2.1 × two 2.0"},
      {{"nearly apart", {{loss("one"), loss("two"), 1.9, 1.1, APART}}},
       "not confirmed",
       "one 1.0 is about as near as 1.9 × two 2.0"},
      {{"a sum", {{{"", {}, 2.9}, {"both", loss("one").cell, 0, {loss("two").cell}}}}},
       "confirmed at reduced scale",
       "2.9 < both 3.0"},
      {{"a sum of what is not there", {{{"both", loss("one").cell, 0, {loss("three").cell}}, {"", {}, 9}}}},
       "not run",
       ""},
      {{"of other signs", {{{"", {}, -0.3}, {"", {}, 0.3}, 2, 1, ALIKE}}},
       "contradicted at reduced scale",
       "-0.3 is not within 2 × 0.3"},
      {{"both nothing", {{{"", {}, 0}, {"", {}, 0}, 2, 1, ALIKE}}}, "confirmed at reduced scale", "0 is within 2 × 0"},
      {{"nothing apart", {{{"", {}, 0}, {"", {}, 0}, 2, 1, APART}}},
       "contradicted at reduced scale",
       "0 is within 2 × 0"},
      {{"who knows", {{loss("one"), loss("two")}}, "", {{loss("three"), {"a yardstick", {}, 2}}}},
       "not decided",
       "whether it has learned enough was not measured: three ? is not below a yardstick 2. one 1.0 < two 2.0"},
      {{"a tie", {{loss("one"), loss("one")}}}, "not confirmed", "one 1.0 is the same as one 1.0"},
      {{"rows of which some lack", {{{"", {}, 0.5}, rows("one")}}},
       "not decided",
       "0.5 < one 100.0, one seed; 1 not of all seeds"},
      {{"a number that is not passed", {{{"", {}, 1}, loss("one")}}},
       "contradicted at reduced scale",
       "1 is not below one 1.0"}};
}

const std::string ONE_SHARE = "one 22 (20 to 25)", TWO_SHARES = "two 28 (25 to 30)",
                  THREE_SHARES = "three 55 (50 to 60)";

// Of the means of the seeds.
std::vector<Judged> judged_by_means() {
  const std::string one = ONE_SHARE, two = TWO_SHARES, three = THREE_SHARES;
  return {{{"alike: means of seeds", {{shares("one"), shares("two"), 1.3, 1, ALIKE}}},
           "confirmed at reduced scale",
           one + " is within 1.3 × " + two},
          {{"nearly alike: means", {{shares("one"), shares("two"), 1.1, 1.2, ALIKE}}},
           "not confirmed",
           one + " is about as near as 1.1 × " + two},
          {{"not alike: means", {{shares("three"), shares("one"), 1.9, 1, ALIKE}}},
           "contradicted at reduced scale",
           three + " is not within 1.9 × " + one},
          {{"apart: means", {{shares("one"), shares("three"), 1.9, 1, APART}}},
           "confirmed at reduced scale",
           one + " is not within 1.9 × " + three},
          {{"apart from nothing", {{shares("none"), shares("one"), 1.6, 1, APART}}},
           "confirmed at reduced scale",
           "none 0 (each of 2) is not within 1.6 × " + one},
          {{"alike: some arrive", {{steps("two"), steps("three"), 1.6, 1, ALIKE}}},
           "not confirmed",
           "two by 1 of 2 seeds only is about as near as 1.6 × three by 1 of 2 seeds only"},
          {{"alike: none arrives", {{steps("never"), steps("never"), 1.6, 1, ALIKE}}},
           "not confirmed",
           "never not in 50 is about as near as 1.6 × never not in 50"}};
}

std::vector<Judged> judged_by_seeds() {
  const Side a_run{"a run", {"b/y.csv", {{"name", "three"}}, "share", Cell::Form::PERCENT, 0}};
  const std::string one = ONE_SHARE, three = THREE_SHARES;
  return {{{"all seeds", {{steps("one"), steps("three")}}},
           "confirmed at reduced scale",
           "one 30 (20 to 40) < three by 1 of 2 seeds only"},
          {{"seeds that overlap", {{steps("one"), steps("two"), 1, 1.3}}},
           "not confirmed",
           "one 30 (20 to 40), within the spread of seeds of two by 1 of 2 seeds only"},
          {{"all the other way", {{steps("three"), steps("one"), 1, 9}}},
           "contradicted at reduced scale",
           "three by 1 of 2 seeds only is not below one 30 (20 to 40)"},
          {{"two of three seeds", {{more_steps("one"), more_steps("three")}}},
           "not decided",
           "one 30 (20 to 40), 2 of 3 seeds < three by 1 of 2 seeds only, 3 planned; 1 not of all seeds"},
          {{"of one run each", {of_one_run("one", "two")}},
           "confirmed at reduced scale",
           "one 30 (20 to 40) < two by 1 of 2 seeds only"},
          {{"the other way, of one run each", {of_one_run("two", "one")}},
           "contradicted at reduced scale",
           "two by 1 of 2 seeds only is not below one 30 (20 to 40)"},
          {{"never alike", {{more_steps("never"), more_steps("one"), 1.6, 1, ALIKE}}},
           "not confirmed",
           "never not in 50, 2 of 3 seeds is not within 1.6 × one 30 (20 to 40), 2 of 3 seeds; 1 not of all seeds"},
          {{"near, of two seeds of three", {{more_steps("one"), more_steps("two"), 1, 9}}},
           "not confirmed",
           "one 30 (20 to 40), 2 of 3 seeds, within the spread of seeds of two by 1 of 2 seeds only, 3 planned; 1 not "
           "of all "
           "seeds"},
          {{"not alike yet", {{more_shares("one"), more_shares("three"), 1.1, 1, ALIKE}}},
           "not decided",
           "one 22 (20 to 25), 2 of 3 seeds is not within 1.1 × three 55 (50 to 60), 2 of 3 seeds; 1 not of all seeds"},
          {{"seeds below a number", {{shares("one"), {"", {}, 26}}}}, "confirmed at reduced scale", one + " < 26"},
          {{"some seeds below a number", {{shares("one"), {"", {}, 25}}}},
           "not confirmed",
           one + " is below 25 with some seeds only"},
          {{"no seed below a number", {{shares("one"), {"", {}, 20}}}},
           "contradicted at reduced scale",
           one + " is not below 20"},
          {{"a number below some seeds", {{{"", {}, 22}, shares("one")}}},
           "not confirmed",
           "22 is below " + one + " with some seeds only"},
          {{"a number below no seed", {{{"", {}, 25}, shares("one")}}},
           "contradicted at reduced scale",
           "25 is not below " + one},
          {{"sums of seeds", {{{"", {}, 46}, sum("four")}, {{"", {}, 44}, sum("four")}}},
           "not confirmed",
           "44 < both 48 (45 to 50); 46 is below both 48 (45 to 50) with some seeds only"},
          {{"a sum that lacks a seed", {{{"", {}, 20}, sum("five")}}},
           "not decided",
           "20 < both 30, one seed; 1 not of all seeds"},
          {{"a sum that lacks a seed, near", {{{"", {}, 20}, sum("five"), 1, 9}}},
           "not decided",
           "20 is below both 30, one seed by less than seeds spread; 1 not of all seeds"},
          {{"below one run", {{shares("three"), a_run}}},
           "not confirmed",
           three + ", within the spread of seeds of a run 60"},
          {{"not far enough below one run", {{shares("one"), a_run, 1, 3}}},
           "not confirmed",
           one + ", within the spread of seeds of a run 60"}};
}

std::vector<Judged> all_judged() {
  std::vector<Judged> all = judged_by_one_run();
  for (const auto part : {judged_by_seeds, judged_by_means})
    for (Judged& judged : part()) all.push_back(std::move(judged));
  return all;
}

Plan judged_plan(const Scale&) {
  Plan plan;
  plan.commands = {{"a", "train_copy", {}}};
  for (const Judged& judged : all_judged()) plan.claims.push_back(judged.claim);
  return plan;
}
const Experiment JUDGED = {"judged", "A paper", "table 0", "", "", "", "seconds", "days", judged_plan};

const PageClaim& named(const std::vector<PageClaim>& claims, const std::string& says) {
  return *std::find_if(claims.begin(), claims.end(), [&](const PageClaim& claim) { return claim.says == says; });
}

// What the claims are judged by.
Kept judged_run() {
  std::filesystem::create_directories("a");
  write_bytes("a/x.csv", "name,loss,step_99,last_step\none,1.0,20,20\ntwo,2.0,,300\n");
  std::filesystem::create_directories("b");
  write_bytes(
      "b/x.csv",
      "name,step_99,last_step,share\none,20,20,0.2\ntwo,30,30,0.25\nthree,41,41,0.5\nfour,,50,0.3\nfive,,50,0.1\n"
      "never,,50,1\nnone,,50,0\n");
  write_bytes("b/y.csv",
              "name,step_99,last_step,share\none,40,40,0.25\ntwo,,50,0.3\nthree,,50,0.6\nfour,,50,0.2\nnever,,50,1\n"
              "none,,50,0\n");
  Kept kept;
  kept.find = in_place;
  kept.record.commands = {{"a", "./train_copy", 1, true, {{"one", "0123"}}}};
  return kept;
}

void claims(Test& test) {
  const Workplace here;
  Kept kept = judged_run();
  const std::vector<PageClaim> judged = claims_of(JUDGED, {kept});
  for (const Judged& expected : all_judged()) {
    if (expected.verdict.empty()) continue;
    const PageClaim& found = named(judged, expected.claim.says);
    test.equal(found.says, found.verdict, expected.verdict);
    test.equal(found.says + ": why", found.why, expected.why);
  }
  test.equal("the run behind it", named(judged, "holds").command + ": " + named(judged, "holds").weights,
             "./reproduce run judged --quick: one 0123");
  kept.record.experiment = "judged";
  kept.record.commands = {
      {"a", "./inspect neurons runs/reproduce-quick-judged.b --out runs/reproduce-quick-judged.a", 1, true, {}},
      {"b", "./train_text", 1, true, {{"", "4567"}}},
      {"b_2", "./train_text", 1, true, {{"", "89ab"}}}};
  test.equal("what has no weights was made from some", named(claims_of(JUDGED, {kept}), "holds").weights, "b 4567");
  kept.record.scale.size = Scale::Size::FULL;
  test.equal("at the papers' sizes", named(claims_of(JUDGED, {kept}), "holds").verdict, "confirmed");
  test.equal("by a small model all the same", named(claims_of(JUDGED, {kept}), "small").verdict,
             "confirmed at reduced scale");
  test.equal("not run at all", named(claims_of(JUDGED, {}), "holds").verdict, "not run");
}

// Each is counted under its verdict.
void tally(Test& test) {
  std::vector<PageClaim> claims;
  int counted = 0;
  for (const Judged& judged : all_judged()) {
    claims.emplace_back();
    claims.back().verdict = judged.verdict.empty() ? "not run" : judged.verdict;
  }
  std::istringstream words(tally_of(claims).substr(tally_of(claims).find(':')));
  for (std::string word; words >> word;) counted += std::atoi(word.c_str());
  test.equal("all verdicts are counted", counted, static_cast<int>(claims.size()));
  claims = {PageClaim(), PageClaim(), PageClaim()};
  claims[0].verdict = claims[2].verdict = "not decided";
  claims[1].verdict = "confirmed";
  test.equal("in words", tally_of(claims), "3 claims: 1 confirmed, 2 not decided.");
}

void claims_of_larger_runs(Test& test) {
  const Workplace here;
  const Kept kept = judged_run();
  std::filesystem::create_directories("evening/a");
  write_bytes("evening/a/x.csv", "name,loss,step_99,last_step\none,1.0,20,20\ntwo,2.0,,300\n");
  Kept evening = kept;
  evening.record.scale.size = Scale::Size::EVENING;
  evening.find = [](const std::string& file) { return "evening/" + file; };
  const std::vector<PageClaim> both = claims_of(JUDGED, {evening, kept});
  test.equal("a larger run that is not finished does not speak for a claim", named(both, "of two files").command,
             "./reproduce run judged --quick");
  test.equal("one that is finished does", named(both, "against a number").command, "./reproduce run judged --evening");
  test.equal("and it can speak against one", named(both, "half of it").command, "./reproduce run judged --evening");
  write_bytes("evening/a/x.csv", "name,loss,step_99,last_step\none,1.0,20,20\ntwo,4.0,,300\n");
  test.equal("nor does one of models that have learned too little",
             named(claims_of(JUDGED, {evening, kept}), "learned enough").command, "./reproduce run judged --quick");
  test.equal("where there is no other, it is shown", named(claims_of(JUDGED, {evening}), "of two files").why,
             "one 1.0 < two 4.0; 1 not measured");
}

// Whatever the size of a run, it is held against the same sentences.
void claims_of_all_sizes(Test& test) {
  for (const Experiment& experiment : experiments())
    for (const Scale::Size size : {Scale::Size::EVENING, Scale::Size::FULL}) {
      Scale scale;
      scale.size = size;
      if (!has_plan(experiment, size)) continue;
      std::vector<std::string> quick, larger;
      for (const Claim& claim : experiment.plan({}).claims) quick.push_back(claim.says);
      for (const Claim& claim : experiment.plan(scale).claims) larger.push_back(claim.says);
      test.equal(experiment.name + ": the same claims at all sizes", join(larger, "; "), join(quick, "; "));
    }
}

// The tokens of the windows that a command trains on, by its own words or its preset; empty of what trains on no text.
std::string window_of(const Command& command) {
  const auto behind = [&](const char* option) -> std::string {
    const auto at = std::find(command.words.begin(), command.words.end(), option);
    return at == command.words.end() ? "" : *(at + 1);
  };
  if (command.program != "train_text" && command.program != "scaling") return "";
  if (!behind("--context").empty()) return behind("--context");
  return behind("--preset") == "base" ? "256" : behind("--preset") == "paper" ? "2048" : "?";
}

// Tables of letters that are asked in windows are asked in those of the models that are held against them.
void tables_in_windows(Test& test) {
  int asked = 0;
  for (const Experiment& experiment : experiments())
    for (const Scale::Size size : {Scale::Size::QUICK, Scale::Size::EVENING, Scale::Size::FULL}) {
      if (!has_plan(experiment, size)) continue;
      Scale scale;
      scale.size = size;
      const Plan plan = experiment.plan(scale);
      std::string window;
      for (const Command& command : plan.commands)
        if (command.part == "counts" && command.words.size() > 1 && *(command.words.end() - 2) == "--context")
          window = command.words.back();
      if (window.empty()) continue;
      for (const Command& command : plan.commands)
        if (const std::string trained = window_of(command); !trained.empty()) {
          test.equal(experiment.name + ", " + command.part + ": the windows of its tables", window, trained);
          ++asked;
        }
    }
  test.check("there are such plans", asked > 20, std::to_string(asked));
}

// The committed figures are what their numbers give.
void draws(Test& test) {
  const TemporaryFolder folder;
  const std::vector<std::string> files = {"copy-lengths/steps.svg", "position-lengths/text-lengths.svg",
                                          "position-lengths/copying-lengths.svg", "mlp-dct/train-dct.svg"};
  for (const char* name : {"copy-lengths", "position-lengths", "mlp-dct"})
    std::filesystem::copy(std::string("results/") + name, folder.file(name));
  for (const std::string& file : files) std::filesystem::remove(folder.file(file));
  const std::vector<std::string> drawn = draw_results(folder.path());
  test.equal("figures", drawn.size(), files.size());
  for (const std::string& file : files)
    test.check("as in results/, which ./reproduce draw results brings up to date: " + file,
               read_bytes(folder.file(file)) == read_bytes("results/" + file));
  write_bytes(folder.file("position-lengths/text-lengths.csv"), "variant,64,x\na,1,2\n");
  test.throws("no number", "\"x\": expected a number", [&] { draw_results(folder.path()); });
  const TemporaryFolder empty;
  test.throws("nothing kept", "expected a folder of results", [&] { draw_results(empty.path()); });
  write_bytes(empty.file("RESULTS.md"), "");
  test.throws("a report of nothing", "has no results yet that a figure is drawn of",
              [&] { draw_results(empty.path()); });
}

// What is committed was made by the commands that this program would give today: another option would be another result.
void kept_results(Test& test) {
  const std::string results = std::filesystem::absolute("results").string();
  const Workplace without_runs;
  size_t records = 0;
  for (const Experiment& experiment : experiments())
    for (const char* edition : {"quick", "data", "evening", "full"}) {
      const std::optional<Record> kept = read_record(results + "/" + kept_folder(experiment.name, edition));
      if (!kept) continue;
      const std::string folder = folder_of(experiment.name, kept->scale);
      std::vector<std::string> today, then;
      for (const Command& command : experiment.plan(kept->scale).commands)
        today.push_back(command_line(command, folder));
      for (const DoneCommand& command : kept->commands) then.push_back(command.line);
      test.equal(folder + ": the commands of the plan", join(then, "\n"), join(today, "\n"));
      ++records;
    }
  test.check("results of most experiments", records >= experiments().size() - 3);
}

// The committed page says what its numbers give: no cell, claim or remark is another one than that of the plans.
void committed_page(Test& test) {
  const std::string results = std::filesystem::absolute("results").string();
  const Workplace without_runs;
  const std::vector<std::string> found = split(markdown_page(make_page(experiments(), results)), '\n'),
                                 committed = split(read_bytes(results + "/RESULTS.md"), '\n');
  size_t line = 0;
  while (line < std::min(found.size(), committed.size()) && found[line] == committed[line]) ++line;
  const auto shown_line = [&](const std::vector<std::string>& page) {
    return line < page.size() ? page[line] : "none";
  };
  test.check("as in results/, which ./reproduce report --results results brings up to date", found == committed,
             text("line %zu: ", line + 1) + shown_line(found) + ", committed " + shown_line(committed));
}

void words(Test& test) {
  for (const std::string word : {"plain", "a b", " x", "it's", "a\"b\\c", "$HOME `x`", "", "5%", "\\"}) {
    const std::vector<std::string> back = words_of("before " + as_word(word) + "  after");
    test.equal("there and back: " + word, join(back, "|"), "before|" + word + "|after");
  }
  test.equal("plain words stay", as_word("runs/a,b=1:c"), "runs/a,b=1:c");
  test.equal("a shell's signs", as_word("a $b"), "\"a \\$b\"");
}

void grids(Test& test) {
  PageSection section;
  section.rows = {{"a", "1", "2", "", "far", "x"}, {"b", "", "3", "", "", "x"}, {"a", "", "not run", "", "near", "y"}};
  const PageGrid grid = grid_of(section);
  test.equal("columns", join(grid.columns, " "), "x y");
  test.equal("lines", grid.lines.size(), size_t(2));
  test.equal("a line", join(grid.lines[0].cells, ", ") + ": " + grid.lines[0].remark, "1 → 2, not run: far; near");
  test.equal("a line with a hole", join(grid.lines[1].cells, ", "), "3, ");
  Page page;
  page.sections = {section};
  test.check("in Markdown",
             markdown_page(page).find("| | x | y | |\n| --- | ---: | ---: | --- |\n"
                                      "| a | 1 → 2 | not run | far; near |\n| b | 3 |  |  |\n") != std::string::npos);
  test.check("in HTML", html_page(page).find("<td class=\"number not-run\">not run</td>") != std::string::npos);
}

// Checks how the program ends, and that it says some words.
auto expecting(Test& test, const Shell& shell) {
  return [&](const std::string& name, const std::string& arguments, int status, const std::string& words) {
    const Outcome outcome = shell.run(arguments);
    test.check(name, outcome.status == status && outcome.says(words),
               text("status %d, said: ", outcome.status) + outcome.output);
  };
}

void program(Test& test, const std::string& programs) {
  const Shell shell(programs + "/reproduce");
  const auto expect = expecting(test, shell);
  expect("help", "", 0, "report");
  expect("list", "list", 0, "copy-pre-norm");
  expect("threads for nothing", "list --threads 5", 2, "--threads 5: does nothing without --measure");
  expect("list one", "list copy-pre-norm", 0, "./train_copy --compare pre-norm=exact");
  // Two that cannot go on: both are tried.
  shell.script(
      "for e in copy-curves copy-lengths; do mkdir -p runs/reproduce-quick-$e; "
      "echo '{\"experiment\":\"\",\"machine\":\"\",\"size\":\"quick\",\"text\":\"\",\"validation\":\"\","
      "\"images\":\"\",\"commands\":[]}' > runs/reproduce-quick-$e/record.json; done");
  expect("after one that fails", "run copy-curves copy-lengths", 1,
         "runs/reproduce-quick-copy-lengths: was run with other commands or data");
  shell.script("rm -r runs");
  write_bytes(shell.file("text"), "a");
  expect("data that it takes none of", "run regular-lemma --data text --quick", 2,
         "--data text: does nothing in regular-lemma");
  expect("no such subcommand", "show", 2, "reproduce: unknown subcommand show, expected one of list, run, report");
  expect("no such experiment", "run copy-pre-nrom", 2,
         "unknown experiment copy-pre-nrom (did you mean copy-pre-norm?)");
  expect("no experiment", "run", 2, "expected NAME");
  expect("both sizes", "run copy --quick --full", 2, "--quick, --evening and --full: expected one of the three");
  expect("no data", "run text-perplexity --full", 2, "text-perplexity --full: expected --data");
  for (const char* how : {"", " --dry-run"})
    expect(std::string("no such data") + how, "run copy-curves text-perplexity --data nowhere" + std::string(how), 1,
           "reproduce: --data nowhere: cannot read: No such file or directory");
  shell.script("echo a > a");
  expect("no such text for evaluations", "run text-perplexity --data a --val nowhere", 1, "--val nowhere: cannot read");
  expect("a folder of text", "run text-perplexity --data .", 1, "--data .: is a folder, expected a file");
  expect("no such tokenizer", "run text-perplexity --data a --tokenizer nowhere", 1, "--tokenizer nowhere: expected");
  expect("no such images", "run image-accuracy --cifar nowhere", 1, "--cifar nowhere: there is no such folder");
  test.check("nothing was begun", !std::filesystem::exists(shell.file("runs")));
  expect("no name", "run ''", 2, "an argument is empty, expected NAME");
  expect("no data for the evening", "run text-perplexity --evening", 2,
         "text-perplexity --evening: expected --data data/wikitext2_train.txt");
  expect("what an evening wants", "list", 0, "six hours on two cores, wants --data data/wikitext2_train.txt");
  expect("none of two", "run mlp-context mlp-neurons --evening", 2,
         "none of these 2 experiments can be run: none has a plan of this size");
  expect("no evening", "run mlp-context --evening", 2, "mlp-context --evening: has none, expected --quick or --full");
  shell.script("mkdir -p runs/dry-quick-copy-curves.mine runs/dry-quick-copy-pre-norm.train/mine");
  expect("a dry run", "run copy-pre-norm --dry-run", 0, "works");
  test.check("takes nothing away that is not its own",
             std::filesystem::exists(shell.file("runs/dry-quick-copy-curves.mine")) &&
                 std::filesystem::exists(shell.file("runs/dry-quick-copy-pre-norm.train.before/mine")));
  shell.script("mkdir -p runs/reproduce-quick-copy-curves; echo '{}' > runs/reproduce-quick-copy-curves/record.json");
  expect("a damaged record", "list", 1, "runs/reproduce-quick-copy-curves/record.json: expected a key");
  shell.script("rm -r runs");
  expect("a report of nothing", "report", 0, "saved runs/report/index.html (0 of ");
}

// Ctrl-C within a dry run, an estimate and a run.
void program_interrupted(Test& test, const std::string& programs) {
  const Shell shell(programs + "/reproduce");
  const auto expect = expecting(test, shell);
  const Outcome tried = shell.script(
      "'" + programs + "/reproduce' run copy-curves copy-lengths --dry-run & child=$!; " +
      wait_until("[ -d runs/dry-quick-copy-curves ]") + "kill -INT $child; wait $child; echo status $?; ls runs");
  test.check("an interrupted try ends all, and leaves nothing",
             tried.says("status 130") && !tried.says("copy-lengths") && !tried.says("dry-quick"), tried.output);
  const Outcome measured = shell.script("'" + programs + "/reproduce' run copy-curves --evening & child=$!; " +
                                        wait_until("[ -d runs/measured-evening-copy-curves ]") +
                                        "kill -INT $child; wait $child; echo status $?; ls runs");
  test.check("an interrupted estimate says no time, and leaves nothing",
             measured.says("status 130") && measured.says("a few steps, to tell") && !measured.says("of training") &&
                 !measured.says("measured-evening"),
             measured.output);
  const Outcome outcome =
      shell.script("'" + programs + "/reproduce' run copy-pre-norm --threads 1 & child=$!; " +
                   wait_for_lines("runs/reproduce-quick-copy-pre-norm.train/pre-norm-exact/log.csv", 3) +
                   "kill -INT $child; wait $child; echo status $?");
  test.check("interrupted", outcome.says("status 130"), outcome.output);
  test.check("says how to go on", outcome.says("go on with: ./reproduce run copy-pre-norm --quick --threads 1"),
             outcome.output);
  test.check(
      "the child has saved",
      std::filesystem::exists(shell.file("runs/reproduce-quick-copy-pre-norm.train/pre-norm-exact/model.safetensors")));
  expect("begun", "list", 0, "[quick begun]");
  expect("a report of a part", "report", 0, "(1 of ");
}

void sizes(Test& test) {
  const std::vector<SaidSize> said = said_sizes(
      "gpt: 1,000,000 parameters, 900,000 without embeddings and readout; CPU\nstep 1 of 2\n"
      "x: 7 parameters\ngpt: 2,000,000 parameters, 1,900,000 without embeddings and readout; CPU\n");
  test.equal("lines that say a size", said.size(), size_t(2));
  test.equal("the model", said[0].model, "gpt");
  test.equal("all and those of the blocks", text("%.0f %.0f", said[1].parameters, said[1].of_blocks),
             "2000000 1900000");
  const ModelSize one{"a", "gpt", 1.02}, two{"a", "gpt", 1.9, "", ModelSize::Counts::BLOCKS};
  test.equal("both are there", wrong_size({one, two}, "a", said), "");
  test.equal("of another part", wrong_size({{"b", "gpt", 5}}, "a", said), "");
  test.equal("one is not the paper's", wrong_size({one}, "a", said),
             "a gpt of 2,000,000 parameters, in the paper there is none");
  test.equal("one is missing", wrong_size({one, two, {"a", "gpt", 1.1}}, "a", said),
             "no gpt of 1.1 million parameters, as in the paper (within 3 %)");
  test.equal("no such model", wrong_size({{"a", "rnn", 1}}, "a", said),
             "no rnn of 1 million parameters, as in the paper (within 3 %)");
}

void time_left(Test& test) {
  Record record;
  record.commands = {{"a", "", 20, true, {}}, {"b", "", 0, false, {}}, {"c", "", 0, false, {}}};
  test.equal("twice as slow as expected", seconds_left(record, {10, 30, 5}, 1), 70.0);
  test.equal("of the last", seconds_left(record, {10, 30, 5}, 2), 10.0);
  record.commands[0].done = false;
  test.equal("nothing is done", seconds_left(record, {10, 30, 5}, 0), 45.0);
  test.equal("not known", seconds_left(record, {}, 0), 0.0);
}

// GPT-2's two files for tokens of up to three letters, so many that rows of five of them are no 64-bit numbers.
void write_large_vocabulary(const std::string& folder) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string merges = "#version: 0.2\n";
  Json vocab = Json::object();
  int tokens = 0;
  for (int byte = 0; byte < 256; ++byte) vocab.set(spell(std::string(1, static_cast<char>(byte))), tokens++);
  for (const std::string& begin : {std::string(), std::string("e"), std::string("t")})
    for (const char first : letters)
      for (const char second : letters) {
        const std::string left = begin + first;
        merges += left + " " + second + "\n";
        vocab.set(left + second, tokens++);
      }
  std::filesystem::create_directories(folder);
  write_bytes(folder + "/merges.txt", merges);
  write_bytes(folder + "/vocab.json", vocab.text());
}

// Two steps of these take seconds and a few hundred megabytes.
bool too_large_to_try(const ModelSize& size) { return size.millions > 10; }

// What a dry run fails with; empty where it goes.
std::string outcome_of(const DryRun& dry, const Experiment& experiment, const Scale& scale) {
  try {
    dry.run(experiment, scale_for(experiment, scale));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// Every plan of the evening and of the papers' sizes is tried with its own options, on files of the right kinds; the models are of
// fewer channels and blocks than there.
void dry_runs(Test& test, const std::string& programs) {
  const Workplace here;
  std::string text;
  while (text.size() < 400000)
    text += "The robber pointed his gun at the cashier and demanded " + std::to_string(text.size()) + ".\n";
  write_bytes("text.txt", text);
  std::filesystem::create_directories("images");
  for (const char* part : {"train", "test"}) {
    write_bytes(std::string("images/cifar10_") + part + ".bin", cifar10(10));
    write_bytes(std::string("images/cifar100_") + part + ".bin", cifar100(100));
  }
  for (int part = 0; part < 6; ++part) write_bytes("images/cifar5m_part" + std::to_string(part) + ".bin", cifar10(10));
  write_large_vocabulary("vocabulary");
  Scale scale;
  scale.text = "text.txt";
  scale.images = "images";
  const DryRun dry{programs, "cpu", 1, words_of("--width 48 --layers 1"), false};
  DryRun of_their_depth = dry;  // languages, and what is compared by depth
  of_their_depth.more = words_of("--width 48");
  for (const Experiment& experiment : experiments())
    for (const Scale::Size size : {Scale::Size::QUICK, Scale::Size::EVENING, Scale::Size::FULL}) {
      scale.size = size;
      if (!has_plan(experiment, size)) continue;
      const std::vector<Command> commands = experiment.plan(scale_for(experiment, scale)).commands;
      const bool deep = std::any_of(commands.begin(), commands.end(), [](const Command& command) {
        return command.program == "train_regular" || join(command.words, " ").find("layers=") != std::string::npos;
      });
      const bool words = scale.full() && experiment.data.find("--tokenizer") != std::string::npos;
      scale.tokenizer = words ? "vocabulary" : "";
      test.equal(experiment.name + ": a dry run --" + name_of(size),
                 outcome_of(deep ? of_their_depth : dry, experiment, scale), "");
    }
  const DryRun true_to_size{programs, "cpu", 1};
  int sized = 0;
  for (const Experiment& experiment : experiments()) {
    scale.size = Scale::Size::FULL;
    const std::vector<ModelSize> sizes = experiment.plan(scale_for(experiment, scale)).model_sizes;
    if (sizes.empty() || std::any_of(sizes.begin(), sizes.end(), too_large_to_try)) continue;
    test.equal(experiment.name + ": its models are the paper's", outcome_of(true_to_size, experiment, scale), "");
    ++sized;
  }
  test.check("more than one has models small enough to try", sized > 1, std::to_string(sized));
  true_to_size.run(SIZED, {});
  scale.size = Scale::Size::FULL;
  test.throws("a model that is not the paper's is refused", "sized --full, train: no causal_rn of 9 million parameters",
              [&] { true_to_size.run(SIZED, scale); });
  const std::vector<double> seconds = dry.seconds_of(TINY, {});
  test.equal("what each command takes is measured", seconds.size(), size_t(2));
  const std::vector<double> tuned = dry.seconds_of(TUNED, {});
  test.check("also what begins with one of unknown length", tuned.at(0) == 0 && tuned.at(1) > 0,
             number_text(tuned.at(1), 6));
  test.check("it takes some time", seconds[0] > 0, number_text(seconds[0], 6));
  Record begun;
  begun.commands = {{"train", "", 0, false, {}}, {"again", "", 1234, true, {}}};
  test.equal("of what is done, what it took", dry.seconds_of(TINY, {}, &begun).at(1), 1234.0);
  begun.commands = {{"train", "", 1234, true, {}}, {"again", "", 0, false, {}}};
  test.check("which is done again where another begins with it", dry.seconds_of(TINY, {}, &begun).at(0) < 1234);
  const double study = dry.seconds_of(STUDY, {}).at(0);
  test.check("and a study", study > 0, number_text(study, 6));
  test.check("leaves nothing", std::filesystem::is_empty("runs"));
  test.throws("a command that fails", "./train_copy --heads 5", [&] { dry.run(BROKEN, {}); });
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  const std::string programs = std::filesystem::absolute(argv[0]).parent_path().parent_path().string();
  test.run("experiment table", experiment_table);
  test.run("layers of table 3", same_layers);
  test.run("cells", cells);
  test.run("cells of seeds", cells_of_seeds);
  test.run("a full log", a_full_log);
  test.run("numbers of cells", numbers_of_cells);
  test.run("cells of logs", cells_of_logs);
  test.run("distances", distances);
  test.run("other seeds", other_seeds);
  test.run("sizes", sizes);
  test.run("time left", time_left);
  test.run("running", [&] { running(test, programs); });
  test.run("claims", [](Test& group) {
    claims(group);
    tally(group);
    claims_of_larger_runs(group);
    claims_of_all_sizes(group);
    tables_in_windows(group);
  });
  test.run("draws", draws);
  test.run("kept results", kept_results);
  test.run("committed page", committed_page);
  test.run("words", words);
  test.run("grids", grids);
  test.run("pages", [&] { pages(test, programs); });
  test.run("dry runs", [&] { dry_runs(test, programs); });
  test.run("program", [&] { program(test, programs); });
  test.run("program interrupted", [&] { program_interrupted(test, programs); });
  return test.finish();
}
