// ./reproduce: the experiments' files, running and resuming them, verdicts, and the pages that are made of results.

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "check.h"
#include "reproduction/report.h"
#include "reproduction/run_experiment.h"
#include "shell.h"

namespace petroglyph {
namespace {

const std::string TINY =
    "title A <title>\n"
    "paper copying, table 0\n"
    "shows It shows.\n"
    "size quick, seconds: Small.\n"
    "set SIZE = --length 4 --width 12 --hidden 12 --layers 1 --batch 8 --eval-samples 8 --eval-every 4 --stop-at 2\n"
    "run train, seeds 1 2: ./train_copy --compare causal_rn,rnn {SIZE} --steps 40\n"
    "run again: ./train_copy --init @train/causal_rn/model.safetensors --seed 7 {SIZE} \\\n"
    "  --steps 300 --save-every 1\n"
    "table\n"
    "column last loss: train/compare.csv variant={1} last_loss 3\n"
    "column steps: train/compare.csv variant={1} step_99 steps\n"
    "row RNN = rnn | 1.00\n"
    "row CausalRN = causal_rn\n"
    "plot loss.svg | Loss | variant | loss | linear\n"
    "point ours | 1 | RNN; last loss\n"
    "point ours | 2 | CausalRN; last loss\n"
    "claim a loss is above nothing\n"
    "need [RNN; last loss] > 0\n"
    "claim of a loss nothing is said\n"
    "open nobody knows\n"
    "show train/compare.svg: curves & more\n"
    "show again.log: what it printed\n";

// ---- The files ------------------------------------------------------------------------------------------------------

bool has_part(const Plan& plan, const std::string& part) {
  return std::any_of(plan.runs.begin(), plan.runs.end(),
                     [&](const PlannedRun& run) { return is_of_part(run.name, part); });
}

// Everything that a plan reads comes from one of its runs.
std::string missing_part(const Plan& plan) {
  for (const Table& table : plan.tables)
    for (const Row& row : table.rows)
      for (const Cell& cell : row.cells)
        if (!has_part(plan, cell.part)) return row.label + ": " + cell.part;
  for (const ShownFile& file : plan.shown)
    if (!has_part(plan, file.part)) return file.part + "/" + file.file;
  return "";
}

void files(Test& test) {
  test.equal("experiments", experiments().size(), size_t(25));
  std::set<std::string> papers;
  for (const Experiment& experiment : experiments()) {
    test.equal(experiment.name + " has a quick size", experiment.sizes.at(0), "quick");
    std::set<std::string> judged;
    for (const std::string& size : experiment.sizes) {
      const Plan plan = experiment.plan(size);
      const std::string name = experiment.name + " --" + size;
      papers.insert(plan.paper);
      test.check(name + " is described", !plan.title.empty() && !plan.where.empty() && !plan.shows.empty() &&
                                             !plan.cost.empty() && !plan.runs.empty());
      test.equal(name + ": every part is run", missing_part(plan), "");
      test.equal(name + ": the claims of all sizes", plan.claims.size(), experiment.plan("quick").claims.size());
      std::set<std::string> names;
      for (const PlannedRun& run : plan.runs) test.check(name + ", once: " + run.name, names.insert(run.name).second);
      for (const Claim& claim : plan.claims) {
        test.check("a cell of the table: " + claim.says, characters_in(claim.says) <= LONGEST_CELL);
        if (!claim.needs.empty() || !claim.open.empty()) judged.insert(claim.says);
      }
    }
    for (const Claim& claim : experiment.plan("quick").claims)
      test.check("judged at some size: " + claim.says, judged.count(claim.says) == 1);
  }
  test.equal("papers", papers.size(), PAPERS.size());
}

// Each command as the program's own parser reads it. A wrong value of --threads at its end keeps it from running: a
// mistake before it would be reported instead.
void commands(Test& test) {
  std::set<std::string> lines;
  for (const Experiment& experiment : experiments())
    for (const std::string& size : experiment.sizes) {
      const Plan plan = experiment.plan(size);
      for (const PlannedRun& run : plan.runs) {
        std::string common, list;
        for (size_t i = 0; i < run.words.size(); ++i) {
          if (run.words[i] == "--compare") {
            list = run.words[++i];
          } else {
            common += " " + as_word(run.words[i]);
          }
        }
        for (const std::string& variant : split(list, ',')) {  // none: one empty word
          std::string words;
          for (const std::string& word : split(variant, ':'))
            if (!word.empty()) words += word.find('=') == std::string::npos ? " --model " + word : " --" + word;
          lines.insert("./" + run.program + common + words + (has_device(run) ? " --device cpu" : ""));
        }
      }
    }
  test.check("many commands", lines.size() > 200, std::to_string(lines.size()));
  const Shell shell(test, "reproduce");
  std::string script = "for p in train_copy train_text train_regular train_image scaling generate inspect; do ln -s '" +
                       shell.programs() + "'/$p $p; done\n";
  for (const std::string& line : lines) script += line + " --threads nonsense\n";
  shell.write("commands.sh", script);
  const std::vector<std::string> said = split(shell.script("sh commands.sh").output, '\n');
  test.equal("one line each", said.size(), lines.size() + 1);
  size_t i = 0;
  for (const std::string& line : lines) {
    const bool taken = said[i].find("--threads nonsense: expected a whole number") != std::string::npos ||
                       said[i].find("unknown option --threads") != std::string::npos;
    test.check("the program takes: " + line, taken, said[i]);
    if (++i >= said.size()) break;
  }
}

std::string read_error(const std::string& text) {
  try {
    experiment_of_text("bad", text, {}).plan("quick");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void mistakes(Test& test) {
  const auto expect = [&](const std::string& text, const std::string& words) {
    const std::string error = read_error(text);
    test.check(words, error.find(words) != std::string::npos, error);
  };
  expect("nonsense words", "unknown statement nonsense");
  expect("run a: train_copy", "expected ./PROGRAM");
  expect("row a = b", "expected a table before it");
  expect("table\ncolumn a: b\nrow r", "expected FILE, columns and a format");
  expect("table\ncolumn a: b x 1\nrow r", "expected PART/FILE or PART.log");
  expect("table\ncolumn a: b/c.csv x 1\nrow r | 1 | 2", "more numbers than columns");
  expect("claim a\nneed [b; c] < 1", "no table has this row and column");
  expect("claim a\nneed 1 = 2", "expected A < B");
  expect("claim a\nneed b < 2", "expected a number or [ROW; COLUMN]");
  expect("set A = 1\nfor A in 1; 2: table {A}", "set has this name already");
  expect("set A; B = 1", "expected a value for each");
}

void reading(Test& test) {
  const Experiment experiment =
      experiment_of_text("e",
                         "set A; B = x y; v\n"
                         "size quick, soon\nrun t, seeds 1 2: ./scaling {A} @u/{B}-{seed}\nrun c: ./inspect counts\n"
                         "size full, late: Large.\nrun only: ./scaling\n"
                         "table\nfor L in 1; 2: column c{L}: t/a.csv k={1} v{L} 2\n"
                         "row r = \"p q\" | | 7\n@full row s = z\n"
                         "claim says\nneed 2 * best [r; c1] ~1.5 mean [r; c2]\nneed [r; c1] > 3\n",
                         {});
  const Plan plan = experiment.plan("quick");
  test.equal("cost", plan.cost, "soon");
  test.equal("about", experiment.plan("full").about, "Large.");
  test.equal("runs", plan.runs.size(), size_t(3));
  test.equal("a seed's", command_line(plan, plan.runs[1]),
             "./scaling x y runs/reproduce-quick-e.u-seed2/v-2 --seed 2 --name reproduce-quick-e.t-seed2");
  test.equal("no output", command_line(plan, plan.runs[2]), "./inspect counts");
  test.equal("rows of this size", plan.tables.at(0).rows.size(), size_t(1));
  const Row& row = plan.tables[0].rows[0];
  test.equal("an argument of two words", row.cells.at(0).where.at(0).second, "p");
  test.equal("the second number of the paper", row.paper.at(1), "7");
  const Comparison& first = plan.claims.at(0).needs.at(0);
  test.check("sides", first.relation == "~" && first.within == 1.5 && first.left.factor == 2 &&
                          first.left.of == Side::Of::BEST && first.right.of == Side::Of::MEAN);
  test.equal("above is below", plan.claims[0].needs.at(1).left.number, 3.0);
  test.equal("another size", experiment.plan("full").tables.at(0).rows.size(), size_t(2));
  const Experiment same = experiment_of_text("f", "set A; B = z; v\nsizes of e\ntable\n", {experiment});
  test.equal("sizes of another", join(same.sizes, " "), "quick full");
  test.equal("its commands", command_line(same.plan("quick"), same.plan("quick").runs[0]),
             "./scaling z runs/reproduce-quick-f.u/v-1 --name reproduce-quick-f.t");
  test.equal("its tables stay there", same.plan("full").tables.at(0).rows.size(), size_t(0));
}

// ---- Cells and verdicts ---------------------------------------------------------------------------------------------

// Two tables, of seeds 1 and 2, and a log.
Measured planted(const std::string& folder, const std::string& claim) {
  const Experiment experiment = experiment_of_text(
      "planted",
      "size quick, soon\nrun t, seeds 1 2: ./scaling\nrun log: ./inspect counts\ntable\n"
      "column step: t/a.csv v={1} step_99 steps\ncolumn x: t/a.csv v={1} x 2\ncolumn %: t/a.csv v={1} x %1\n"
      "column both: t/a.csv v={1} x best%\ncolumn e: t/a.csv v={1} x exp2\ncolumn sum: t/a.csv v={1} x+y 1\n"
      "row one = one\nrow two = two\nrow never = never\ntable\ncolumn said: log.log \"k = 2\" \"at\" 1\nrow log\n" +
          claim,
      {});
  std::filesystem::create_directories(folder);
  write_bytes(folder + "/t-a.csv",
              "v,step_99,last_step,x,y\none,10,90,0.5,1\ntwo,20,90,0.75,1\nnever,,90,1,1\n\"a,b\",1,1,1,1\n");
  write_bytes(folder + "/t-seed2-a.csv", "v,step_99,last_step,x,y\none,12,90,0.25,1\ntwo,,90,0.75,1\nnever,,90,1,1\n");
  write_bytes(folder + "/log.log", "k = 1 at 7\nk = 2 at 3.5, so\n");
  write_runs(folder, {{"t", "./scaling", 1, true, "", ""},
                      {"t-seed2", "./scaling --seed 2", 1, true, "", ""},
                      {"log", "./inspect counts", 1, true, "", ""}});
  return read_measured(experiment.plan("quick"), folder);
}

void cells(Test& test) {
  const TemporaryFolder folder;
  const Measured measured = planted(folder.path(), "");
  const auto expect = [&](const std::string& cell, const std::string& words) {
    test.equal(cell, with_numbers("{[" + cell + "]}", measured), words);
  };
  expect("one; step", "11 (10 to 12)");
  expect("two; step", "by 1 of 2 seeds only");
  expect("never; step", "not in 90");
  expect("one; x", "0.38 (0.25 to 0.50)");
  expect("two; x", "0.75 (each of 2)");
  expect("one; %", "37.5 (25.0 to 50.0)");
  expect("one; both", "50.0 / 37.5");
  expect("two; e", "2.12 (each of 2)");
  expect("one; sum", "1.4 (1.2 to 1.5)");
  expect("log", "3.5");
  test.equal("words around it", with_numbers("from {[log]} to {[one; step]}.", measured), "from 3.5 to 11 (10 to 12).");
  test.throws("an unknown column", "no column z", [&] { numbers_of({"t", "a.csv", {}, {"z"}, "1"}, measured); });
  folder.write("t-a.csv", "v,x\none\n");
  test.throws("row 2 has 1 fields, expected 2", [&] { numbers_of({"t", "a.csv", {}, {"x"}, "1"}, measured); });
}

void verdicts(Test& test) {
  const TemporaryFolder folder;
  const auto expect = [&](const std::string& claim, const std::string& word, const std::string& reason = "") {
    const Measured measured = planted(folder.path(), "claim c\n" + claim);
    const Verdict verdict = verdict_of(measured.plan.claims.at(0), measured);
    test.equal(claim, verdict.word, word);
    test.check(claim + " says why", verdict.reason.find(reason) != std::string::npos, verdict.reason);
  };
  expect("need [one; step] < [never; step]\n", "confirmed");
  expect("need [one; x] < [two; x]\n", "confirmed");
  expect("need [one; x] > [two; x]\n", "contradicted");
  expect("need [one; step] > 9\nneed [one; step] < 10\n", "not decided", "1 of 2 comparisons hold: one, step: ");
  expect("need [one; step] < 11\n", "not decided", "overlaps");  // of one seed it holds
  expect("need [one; step] < [two; step]\n", "confirmed");       // later, or never
  expect("need [two; step] < 100\n", "not decided");             // one seed never gets there
  expect("need [one; x] ~1.4 [two; x]\n", "contradicted");
  expect("need [one; x] ~2.1 [two; x]\n", "confirmed");
  expect("need best [one; both] > 49\nneed mean [one; both] < 38\n", "confirmed");
  expect("need [one; step] < [never; step]\nif [log] < 3\n", "not decided", "learned too little");
  expect("need [one; step] < [never; step]\nif [log] > 3\n", "confirmed");
  expect("need [one; step] < [never; step]\nopen it is of {[log]}\n", "not decided", "it is of 3.5");
  expect("", "not run");
  // A seed that was not run: nothing is decided, and one alone has to be further away.
  const std::string claim = "claim c\nneed [one; x] < [two; x]\nspread 1.3\n";
  planted(folder.path(), claim);
  write_runs(folder.path(), {{"t", "", 1, true, "", ""}, {"t-seed2", "", 0, false, "", ""}});
  const Plan plan = planted(folder.file("elsewhere"), claim).plan;
  const Verdict half = verdict_of(plan.claims[0], read_measured(plan, folder.path()));
  test.equal("half of it", half.reason, "not all of its runs are done: 1 of 2");
  write_runs(folder.path(), {{"t", "", 1, true, "", ""}});
  test.equal("of one seed", verdict_of(plan.claims[0], read_measured(plan, folder.path())).word, "confirmed");
  Claim wider = plan.claims[0];
  wider.spread = 1.6;
  test.equal("one seed is not far enough", verdict_of(wider, read_measured(plan, folder.path())).word, "not decided");
}

// ---- Running --------------------------------------------------------------------------------------------------------

void running(Test& test) {
  const Shell whole(test, "reproduce"), stopped(test, "reproduce");
  for (const Shell* shell : {&whole, &stopped}) shell->write("tiny.txt", TINY);
  whole.expect("run tiny.txt", 0,
               {"| RNN | 1.00 → ", "a loss is above nothing: confirmed",
                "of a loss nothing is said: not decided (nobody knows)"});
  stopped.expect_script("reproduce run tiny.txt & child=$!; " +
                            wait_for_lines("runs/reproduce-quick-tiny.again/log.csv", 3) +
                            "kill -INT $child; wait $child; echo status $?",
                        0, {"status 130", "the same command resumes it"});
  const Outcome resumed = stopped.expect("run tiny.txt --device reference", 0, {"reference (plain loops", "--init"});
  test.check("what is done stays", !resumed.prints("--compare"), resumed.output);
  const auto weights = [](const Shell& shell) {
    std::string all;
    for (const RunRecord& run : read_measured({}, shell.file("runs/reproduce-quick-tiny")).runs)
      all += run.name + " " + run.weights + (run.done ? "\n" : " not done\n");
    return all;
  };
  test.equal("the same weights", weights(stopped), weights(whole));
  test.check("of all runs", weights(whole).find("train-seed2 causal_rn ") != std::string::npos, weights(whole));
  for (const char* device : {"auto", "reference"})
    test.check(std::string("done already, --device ") + device,
               !whole.run(std::string("run tiny.txt --device ") + device).prints("./train_copy"));
  std::string other = TINY;
  other.replace(other.find("--steps 40"), 10, "--steps 41");
  whole.write("tiny.txt", other);
  whole.expect("run tiny.txt", 1, "train was run with another command");
}

void program(Test& test) {
  const Shell shell(test, "reproduce");
  shell.expect({
      {"list", 0, "regular-lemma"},
      {"list regular-lemma", 0, "./inspect lemma1 --trials 999"},
      {"list copy-curvse", 2, "unknown experiment copy-curvse; ./reproduce list shows all"},
      {"run copy-curves --quick --full", 2, "expected one of them"},
      {"run regular-lemma --full", 2, "has no such size, expected one of quick"},
      {"run nothing.txt", 1, "nothing.txt"},
      {"draw", 2, "expected one of list, run, report"},
      {"run regular-lemma --quick", 0, "right products of 999: 999"},
      {"report", 0, "saved runs/report/RESULTS.md (1 of 25 experiments were run)"},
  });
  const std::string page = shell.read("runs/report/RESULTS.md");
  test.check("the claim",
             page.find("| two layers multiply Boolean matrices exactly | confirmed | ") != std::string::npos);
  test.check("what was not run is in one line",
             page.find("not run |") == std::string::npos &&
                 page.find("copy-activation, copy-curves, ") != std::string::npos &&
                 !shell.exists("runs/report/copy-curves"),
             page);
  const std::string own = shell.read("runs/report/regular-lemma/README.md");
  test.check("its page",
             own.find("./inspect lemma1 --trials 999\n") != std::string::npos &&
                 own.find("random products right") != std::string::npos,
             own);
  // What was kept counts where the runs are gone.
  shell.expect("report --keep", 0, "saved results/RESULTS.md (1 of 25");
  shell.script("rm -r runs");
  shell.expect("report --keep", 0, "(1 of 25");
  test.equal("from what was kept", shell.read("results/regular-lemma/README.md"), own);
}

// The committed pages are what the program makes of the committed numbers.
void committed(Test& test) {
  if (!std::filesystem::exists("results/RESULTS.md")) return test.skip("committed pages", "no results/ here");
  const Shell shell(test, "reproduce");
  const std::string results = std::filesystem::absolute("results").string();
  std::filesystem::create_directory_symlink(results, shell.file("results"));
  test.equal("a report", shell.run("report").status, 0);
  for (const Experiment& experiment : experiments()) {
    const std::string page = experiment.name + "/README.md";
    test.check(page + " is up to date (./reproduce report --keep)",
               shell.read("runs/report/" + page) == read_bytes("results/" + page));
  }
  const std::string page = read_bytes("results/RESULTS.md");
  test.check("RESULTS.md is up to date", shell.read("runs/report/RESULTS.md") == page);
  for (const std::string& line : split(page, '\n')) {
    if (line.rfind("| ", 0) != 0) continue;
    std::string words = line;  // a cell as a reader sees it
    for (const char* mark : {"&lt;", "\\_"})
      for (size_t at; (at = words.find(mark)) != std::string::npos;) words.replace(at, std::string(mark).size(), "x");
    for (const std::string& cell : split(words, '|'))
      test.check("a short cell: " + cell, characters_in(cell) <= LONGEST_CELL + 2);
  }
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  test.run("files", files);
  test.run("commands", commands);
  test.run("mistakes", mistakes);
  test.run("reading", reading);
  test.run("cells", cells);
  test.run("verdicts", verdicts);
  test.run("running", running);
  test.run("program", program);
  test.run("committed pages", committed);
  return test.finish();
}
