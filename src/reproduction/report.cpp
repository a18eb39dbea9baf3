#include "reproduction/report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "figures/figure.h"
#include "reproduction/run_experiment.h"

namespace petroglyph {

namespace {

const char* const WRITTEN = "This page was written by `./reproduce report`.\n\n";

std::string markdown_text(std::string words) {
  std::string out;
  for (const char c : in_one_line(words)) {
    if (c == '&' || c == '<') {
      out += c == '&' ? "&amp;" : "&lt;";
    } else {
      if (std::string("\\`*_[]#|~>").find(c) != std::string::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string paragraph(const std::string& words) { return words.empty() ? "" : markdown_text(words) + "\n\n"; }

// A fence longer than any in the text, so that the text does not close it.
std::string fenced(const std::string& words) {
  std::string fence = "```";
  while (words.find(fence) != std::string::npos) fence += "`";
  return fence + "\n" + words + (words.empty() || words.back() == '\n' ? "" : "\n") + fence + "\n\n";
}

std::string capitalized(std::string size) {
  size[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(size[0])));
  return size;
}

double seconds_of(const Measured& measured) {
  double seconds = 0;
  for (const RunRecord& run : measured.runs) seconds += run.seconds;
  return seconds;
}

// "in 1:47:28", or how many runs are done.
std::string status_of(const Measured& measured) {
  if (measured.finished()) return "in " + duration_text(seconds_of(measured));
  return text("%zu of %zu runs done", measured.done(), measured.runs.size());
}

// A claim with its verdict from the largest size that decides it. If no size decides it, the largest size that was
// run.
struct JudgedClaim {
  std::string says, word = "not run";  // the verdict, with "at reduced scale" if that applies
  Verdict verdict;
  const Measured* measured = nullptr;
  const Claim* claim = nullptr;  // of that size
};

// The results of an experiment, the largest size first. For each size they come from runs/, or from results/ if more
// runs are done there.
std::vector<Measured> measured_of(const Experiment& experiment) {
  std::vector<Measured> found;
  for (auto size = experiment.sizes.rbegin(); size != experiment.sizes.rend(); ++size) {
    const Plan plan = experiment.plan(*size);
    Measured here = read_measured(plan, folder_of(plan));
    Measured kept = read_measured(plan, "results/" + plan.name + "/" + plan.size);
    Measured& more = kept.done() >= here.done() ? kept : here;
    if (more.done() > 0) found.push_back(std::move(more));
  }
  return found;
}

std::vector<JudgedClaim> judged_claims(const Experiment& experiment, const std::vector<Measured>& measured) {
  std::vector<JudgedClaim> judged;
  const bool has_full = std::count(experiment.sizes.begin(), experiment.sizes.end(), "full") > 0;
  const std::vector<Claim> claims = experiment.plan(experiment.sizes.at(0)).claims;
  for (size_t i = 0; i < claims.size(); ++i) {
    JudgedClaim best;
    best.says = claims[i].says;
    for (const Measured& one : measured) {
      const Claim& claim = one.plan.claims.at(i);
      const Verdict verdict = verdict_of(claim, one);
      if (best.verdict.is_final || verdict.word == "not run" || (best.measured && !verdict.is_final)) continue;
      const bool reduced = verdict.decided() && (claim.reduced || (has_full && one.plan.size != "full"));
      best = {claim.says, verdict.word + (reduced ? " at reduced scale" : ""), verdict, &one, &claim};
    }
    judged.push_back(best);
  }
  return judged;
}

// A figure with the numbers of several runs. The legend names points whose goal was not reached; points without a
// measurement are left out.
std::string plot_svg(const Plot& plot, const Measured& measured) {
  Figure figure(plot.title);
  Panel& panel = figure.panel().x(plot.x).y(plot.y);
  std::set<double> marks;  // the points' x values, drawn at equal distances: 16, 32, 64
  for (const Plot::Curve& curve : plot.curves)
    for (const auto& point : curve.points) marks.insert(point.first);
  std::vector<std::string> names;
  for (const double x : marks) names.push_back(number_text(x, 6));
  panel.x_names(names);
  if (plot.log_y) panel.log_y();
  bool any = false;
  for (const Plot::Curve& curve : plot.curves) {
    std::vector<double> xs, ys;
    std::vector<std::string> missed;
    for (const auto& [x, cell] : curve.points) {
      const Numbers numbers = numbers_of(cell, measured);
      if (numbers.values.empty()) continue;
      any = true;
      if (!std::isfinite(mean_of(numbers.values))) {
        missed.push_back(number_text(x, 6));
        continue;
      }
      xs.push_back(static_cast<double>(std::distance(marks.begin(), marks.find(x))));
      ys.push_back(mean_of(numbers.values));
    }
    if (xs.empty() && missed.empty()) continue;
    panel.line(curve.name + (missed.empty() ? "" : " (not reached at " + join(missed, ", ") + ")"), xs, ys,
               WITH_MARKERS);
  }
  return any ? figure.svg() : "";
}

std::string commands_of(const Measured& measured) {
  std::string lines, facts;
  for (const RunRecord& run : measured.runs) {
    lines += in_one_line(run.command) + "\n";
    facts += "- " + markdown_text(run.name) + ": " + (run.done ? duration_text(run.seconds) : "not finished") +
             (run.machine.empty() ? "" : " on " + markdown_text(run.machine)) +
             (run.weights.empty() ? "" : "; weights " + markdown_text(run.weights)) + "\n";
  }
  return fenced(lines) + facts + "\n";
}

std::string picture(const std::string& path, const std::string& caption) {
  return "![" + markdown_text(caption) + "](" + path + ")\n\n*" + markdown_text(caption) + "*\n\n";
}

// The section of a size on the experiment's page.
std::string size_page(const Measured& measured, const std::string& folder) {
  const Plan& plan = measured.plan;
  std::string out = "## " + capitalized(plan.size) + "\n\n`./reproduce run " + plan.name + " --" + plan.size + "` (" +
                    status_of(measured) + ")\n\n" + paragraph(plan.about);
  for (const Table& table : plan.tables) out += markdown_table(table, measured);
  for (const Plot& plot : plan.plots)
    if (const std::string svg = plot_svg(plot, measured); !svg.empty()) {
      write_file_atomically(folder + "/" + plot.file, svg);
      out += picture(plan.size + "/" + plot.file, plot.title);
    }
  for (const ShownFile& shown : plan.shown) {
    const std::filesystem::path path = measured.path(shown.part, shown.file);
    if (!is_there(path)) continue;
    if (path.extension() == ".svg")
      out += picture(plan.size + "/" + path.filename().string(), shown.caption);
    else
      out += paragraph(shown.caption) + fenced(read_file(path));
  }
  return out + commands_of(measured);
}

std::string claim_lines(const std::vector<JudgedClaim>& claims, bool with_remarks) {
  std::string out;
  for (const JudgedClaim& judged : claims) {
    out += "- " + markdown_text(judged.says) + ": **" + judged.word + "**";
    if (!judged.verdict.reason.empty()) out += ": " + markdown_text(judged.verdict.reason);
    if (judged.verdict.decided()) out += " (" + markdown_text(judged.verdict.number) + ")";
    out += ".";
    if (with_remarks && judged.claim)
      for (const std::string& remark : judged.claim->remarks)
        if (const std::string words = with_numbers(remark, *judged.measured); !words.empty())
          out += " " + markdown_text(words);
    out += "\n";
  }
  return out.empty() ? "" : out + "\n";
}

// All files of a size that are copied to the results: small tables, logs and pictures.
void copy_files(const std::string& from, const std::string& to) {
  make_folder(to);
  if (std::filesystem::exists(to) && std::filesystem::equivalent(from, to)) return;
  for (const std::string& name : names_in(from))
    if (name[0] != '.' && std::filesystem::is_regular_file(from + "/" + name))
      write_file_atomically(to + "/" + name, read_file(from + "/" + name));
}

std::string experiment_page(const std::string& title, const Plan& plan, const std::vector<Measured>& measured,
                            const std::vector<JudgedClaim>& claims, const std::string& out) {
  std::string page = "# " + markdown_text(plan.title) + "\n\n" + title + ", " + markdown_text(plan.where) + ".\n\n" +
                     paragraph(plan.shows) + claim_lines(claims, true) + WRITTEN;
  for (const Measured& one : measured) {
    const std::string folder = out + "/" + plan.name + "/" + one.plan.size;
    copy_files(one.folder, folder);
    page += size_page(one, folder);
  }
  page.pop_back();
  return page;
}

// RESULTS.md also shows the page's first picture.
std::string section_of(const Plan& plan, const std::vector<Measured>& measured, const std::vector<JudgedClaim>& claims,
                       const std::string& page) {
  std::string out = "### " + markdown_text(plan.title) + "\n\n" + markdown_text(capitalized(plan.where)) +
                    ". [Numbers, commands, fingerprints](" + plan.name + "/README.md). Run: ";
  std::vector<std::string> sizes;
  for (const Measured& one : measured) sizes.push_back(one.plan.size + " " + status_of(one));
  out += join(sizes, ", ") + ".\n\n" + paragraph(plan.shows) + claim_lines(claims, false);
  const size_t picture = page.find("![");
  if (picture == std::string::npos) return out;
  const size_t file = page.find("](", picture) + 2, end = page.find(')', file);
  return out + page.substr(picture, file - picture) + plan.name + "/" + page.substr(file, end + 1 - file) + "\n\n";
}

std::string tally_of(const std::vector<std::string>& words) {
  std::vector<std::string> counts;
  for (const char* word : {"confirmed", "confirmed at reduced scale", "contradicted", "contradicted at reduced scale",
                           "not decided", "not run"})
    if (const auto count = std::count(words.begin(), words.end(), word); count > 0)
      counts.push_back(text("%td %s", count, word));
  return text("%zu claims: ", words.size()) + join(counts, ", ") + ".";
}

const char* const INTRODUCTION =
    "A claim is a sentence of a paper, written as comparisons of numbers that runs measured. It is *confirmed* if all "
    "comparisons hold with all seeds, *contradicted* if none holds, and *not decided* otherwise; its section gives the "
    "reason. *At reduced scale*: measured with smaller models, shorter runs or other data than the paper's. Nothing is "
    "decided if the models have learned too little; each claim states the limit. Margins such as 1.5 × are chosen "
    "here. A number is the mean of all seeds; the smallest and the largest follow in parentheses.";

}  // namespace

std::string markdown_table(const Table& table, const Measured& measured) {
  std::string head = "| |", rule = "| --- |", lines;
  for (const Column& column : table.columns) head += " " + markdown_text(column.label) + " |", rule += " ---: |";
  bool any = false;
  for (const Row& row : table.rows) {
    lines += "| " + markdown_text(row.label) + " |";
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const std::string ours = shown(row.cells[i], numbers_of(row.cells[i], measured));
      any = any || !ours.empty();
      lines += " " + markdown_text(row.paper[i].empty() ? ours : row.paper[i] + " → " + ours) + " |";
    }
    lines += "\n";
  }
  if (!any) return "";
  return paragraph(table.title) + head + "\n" + rule + "\n" + lines + "\n";
}

size_t write_report(const std::string& out) {
  std::string claims, sections;
  std::vector<std::string> words, not_run;
  size_t count = 0;
  for (const Paper& paper : PAPERS) {
    std::string theirs;
    for (const Experiment& experiment : experiments()) {
      const Plan plan = experiment.plan(experiment.sizes.at(0));
      if (plan.paper != paper.key) continue;
      const std::vector<Measured> measured = measured_of(experiment);
      if (measured.empty()) {
        not_run.push_back(plan.name);
        continue;
      }
      const std::vector<JudgedClaim> judged = judged_claims(experiment, measured);
      ++count;
      for (const JudgedClaim& claim : judged) {
        words.push_back(claim.word);
        claims += "| " + plan.paper + ", " + markdown_text(plan.where) + " | " + markdown_text(claim.says) + " | " +
                  claim.word + " | " + markdown_text(claim.verdict.number) + " | [" + plan.name + "](" + plan.name +
                  "/README.md) |\n";
      }
      make_folder(out + "/" + plan.name);
      const std::string page = experiment_page(paper.title, plan, measured, judged, out);
      write_file_atomically(out + "/" + plan.name + "/README.md", page);
      theirs += section_of(plan, measured, judged, page);
    }
    if (!theirs.empty()) sections += std::string("## ") + paper.title + "\n\n" + theirs;
  }
  if (!not_run.empty())
    sections += "## Not run\n\n" + join(not_run, ", ") + ". `./reproduce list NAME` shows the commands.\n\n";
  sections.pop_back();
  write_file_atomically(out + "/RESULTS.md",
                        std::string("# The papers' figures and tables, and ours\n\n") + INTRODUCTION + "\n\n" +
                            WRITTEN + tally_of(words) +
                            "\n\n| paper | claim | verdict | measured | numbers |\n| --- | --- | --- | --- | --- |\n" +
                            claims + "\n" + sections);
  return count;
}

}  // namespace petroglyph
