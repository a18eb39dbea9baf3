#include "reproduction/page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/atomic_file.h"
#include "base/text.h"
#include "figures/figure.h"

namespace petroglyph {

namespace {

const char* const NOT_RUN = "not run";

// "train/compare.svg" of copy-curves as a file of the page: "copy-curves/train-compare.svg".
std::string page_name(const std::string& id, const std::string& file) { return id + "/" + kept_name(file); }

// Of UTF-8 on a terminal.
size_t columns_of(const std::string& words) {
  return static_cast<size_t>(
      std::count_if(words.begin(), words.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// A file's lines from the first that begins so.
std::string listed(const Listing& listing, const std::string& path) {
  std::string words;
  bool begun = listing.from.empty();
  for (const std::string& line : split(read_file(path), '\n')) {
    begun = begun || line.rfind(listing.from, 0) == 0;
    if (begun) words += line + "\n";
  }
  while (!words.empty() && words.back() == '\n') words.pop_back();
  return words;
}

// Of all claims, their conditions and what stands beside them.
std::vector<Cell> claimed_cells(const Plan& plan) {
  std::vector<Cell> cells;
  for (const Claim& claim : plan.claims)
    for (const std::vector<Cell>& some : {cells_of(claim), cells_of(claim.conditions)})
      cells.insert(cells.end(), some.begin(), some.end());
  return cells;
}

// Those that rows, plots and claims are read from, and those that the plan names.
std::set<std::string> tables_of(const Plan& plan) {
  std::set<std::string> files(plan.tables.begin(), plan.tables.end());
  const auto add = [&](const Cell& cell) {
    if (cell.file.find('/') == std::string::npos) return;  // given, or said
    files.insert(cell.file);
    files.insert(cell.others.begin(), cell.others.end());
  };
  for (const Row& row : plan.rows) add(row.ours);
  for (const Plot& plot : plan.plots)
    for (const Plot::Curve& curve : plot.curves)
      for (const auto& point : curve.points) add(point.second);
  for (const Cell& cell : claimed_cells(plan)) add(cell);
  return files;
}

// Words that rows, claims and listings are read from.
std::set<std::string> logs_of(const Plan& plan) {
  std::set<std::string> files;
  const auto add = [&](const Cell& cell) {
    if (cell.form != Cell::Form::SAID) return;
    files.insert(cell.file);
    files.insert(cell.others.begin(), cell.others.end());
  };
  for (const Row& row : plan.rows) add(row.ours);
  for (const Cell& cell : claimed_cells(plan)) add(cell);
  for (const Listing& listing : plan.listings) files.insert(listing.file);
  return files;
}

// Of several seeds the pictures are the first one's.
std::string caption_of(const PlanPicture& picture, const Plan& plan) {
  const std::string other = seed_part(picture.file.substr(0, picture.file.find('/')), OTHER_SEEDS[0]);
  const bool several = std::any_of(plan.commands.begin(), plan.commands.end(),
                                   [&](const Command& command) { return command.part == other; });
  return picture.caption + (several ? "; seed 1" : "");
}

void add_files(PageSection& section, const Plan& plan, const Finder& find) {
  for (const Plot& plot : plan.plots) {
    const std::string svg = plot_svg(plot, find);
    if (!svg.empty()) section.figures.push_back({page_name(section.id, plot.file), "", svg});
  }
  for (const PlanPicture& picture : plan.pictures)
    if (std::filesystem::exists(find(picture.file)))
      section.figures.push_back(
          {page_name(section.id, picture.file), caption_of(picture, plan), read_file(find(picture.file))});
  for (const std::string& file : tables_of(plan))
    if (std::filesystem::exists(find(file)))
      section.tables.push_back({page_name(section.id, file), "", read_file(find(file))});
  for (const std::string& file : logs_of(plan))
    if (std::filesystem::exists(find(file)))
      section.records.push_back({page_name(section.id, file), "", read_file(find(file))});
  for (const Listing& listing : plan.listings)
    if (std::filesystem::exists(find(listing.file)))
      section.listings.push_back({listing.title, listed(listing, find(listing.file))});
}

std::string status_of(const Record& record) {
  double seconds = 0;
  size_t done = 0;
  for (const DoneCommand& command : record.commands) {
    seconds += command.seconds;
    done += command.done;
  }
  const std::string edition = edition_of(record.scale) == "data" ? "quick, on other data" : edition_of(record.scale);
  if (record.done()) return edition + ", in " + duration_text(seconds);
  return edition + text(", %zu of %zu commands done", done, record.commands.size());
}

}  // namespace

std::string plot_svg(const Plot& plot, const Finder& find) {
  Figure figure(plot.title);
  Panel& panel = figure.panel().x(plot.x).y(plot.y);
  if (plot.log_x) panel.log_x();
  if (plot.log_y) panel.log_y();
  bool any = false;
  for (const Plot::Curve& curve : plot.curves) {
    std::vector<double> xs, ys;
    for (const auto& [x, cell] : curve.points) {
      const double y = cell_number(cell, find);
      if (!std::isfinite(y)) continue;
      xs.push_back(x);
      ys.push_back(y);
    }
    any = any || !xs.empty();
    LineStyle style;
    style.markers = true;
    panel.line(curve.name + (xs.empty() ? ": at no point" : ""), xs, ys, style);
  }
  return any ? figure.svg() : "";
}

PageSection section_of(const Experiment& experiment, const Kept* kept) {
  PageSection section;
  const Record* record = kept ? &kept->record : nullptr;
  const Scale scale = record ? record->scale : Scale();
  const std::string edition = edition_of(scale);
  section.id = kept_folder(experiment.name, edition);
  section.title = experiment.title;
  section.paper = experiment.paper;
  section.where = experiment.where;
  section.shows = experiment.shows;
  section.status = record ? status_of(*record) : NOT_RUN;
  const Plan plan = experiment.plan(scale);
  for (const Row& row : plan.rows) {
    const std::optional<std::string> ours =
        record && !row.ours.file.empty() ? shown_cell(row.ours, kept->find) : std::nullopt;
    section.rows.push_back({row.label, row.paper, ours.value_or(NOT_RUN),
                            ours && plan.comparable ? distance(row.paper, *ours) : "", ours ? row.remark : "",
                            row.column});
  }
  if (!record) return section;
  section.size = plan.size;
  section.machine = record->machine;
  section.commands = record->commands;
  for (DoneCommand& command : section.commands)
    if (command.machine == record->machine) command.machine.clear();  // said of the section
  section.records.push_back({section.id + "/record.json", "", record_text(*record)});
  add_files(section, plan, kept->find);
  return section;
}

Page make_page(const std::vector<Experiment>& experiments, const std::string& results) {
  Page page;
  page.title = "The papers' figures and tables, and ours";
  page.introduction = {
      "Left in each table is what a paper prints, right of it what this code measured, and their distance, ours less "
      "the paper's, where both are of the same kind; in tables of several columns both stand in one cell, paper → "
      "ours. The commands below a table make its numbers again, and the same weights "
      "with them, on any machine.",
      "Quick runs are small ones, for a machine with two cores: they show an effect, or that it does not show at this "
      "size, and do not reach the papers' numbers where those need the papers' sizes. Evening runs have the papers' "
      "models where two cores can train them in hours, and say what is smaller. Where there are several of an "
      "experiment the largest stands first. What was not run says so. Times are of machines that had other work, too.",
      "A claim comes down to some comparisons. A number alone before a <, and factors such as 1.5 ×, are margins of "
      "ours, where the paper gives none. It is confirmed where each of them holds with every seed, at reduced "
      "scale where that is of smaller models; contradicted where each fails with every seed; not confirmed where some "
      "hold and some fail, or where seeds overlap, or one seed's numbers are no further apart than those of several "
      "are elsewhere. What is alike or apart is asked of the seeds' means. Some claims also hold for models that have "
      "learned nothing. They are not decided where "
      "the models have learned too little: a model of text must beat a table of the last four letters, and the best "
      "such table where the claim is what it looks at, or makes of positions or of long texts. Nor are claims decided "
      "for which numbers are still missing, or where something here differs from the paper, as T5's buckets do."};
  for (const Experiment& experiment : experiments) {
    const std::vector<Kept> kept = kept_of(experiment, results, &page.stale);
    for (const PageClaim& claim : claims_of(experiment, kept)) page.claims.push_back(claim);
    if (kept.empty()) page.sections.push_back(section_of(experiment, nullptr));
    for (const Kept& one : kept) page.sections.push_back(section_of(experiment, &one));
  }
  return page;
}

std::string plain_rows(const PageSection& section) {
  if (section.rows.empty()) return "";
  std::vector<PageRow> rows = {{"", "paper", "ours", "", ""}};
  rows.insert(rows.end(), section.rows.begin(), section.rows.end());
  for (PageRow& row : rows)
    if (!row.column.empty()) row.label += ", " + row.column;
  size_t label = 0, paper = 0, ours = 0;
  for (const PageRow& row : rows) {
    label = std::max(label, columns_of(row.label));
    paper = std::max(paper, columns_of(row.paper));
    ours = std::max(ours, columns_of(row.ours));
  }
  std::string lines;
  for (const PageRow& row : rows) {
    const std::string line =
        "  " + row.label + std::string(label - columns_of(row.label) + 2 + paper - columns_of(row.paper), ' ') +
        row.paper + std::string(2 + ours - columns_of(row.ours), ' ') + row.ours + "  " + row.distance;
    lines += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return lines;
}

bool has_columns(const PageSection& section) {
  return std::any_of(section.rows.begin(), section.rows.end(), [](const PageRow& row) { return !row.column.empty(); });
}

PageGrid grid_of(const PageSection& section) {
  PageGrid grid;
  for (const PageRow& row : section.rows)
    if (std::find(grid.columns.begin(), grid.columns.end(), row.column) == grid.columns.end())
      grid.columns.push_back(row.column);
  for (const PageRow& row : section.rows) {
    auto line = std::find_if(grid.lines.begin(), grid.lines.end(),
                             [&](const PageGrid::Line& other) { return other.label == row.label; });
    if (line == grid.lines.end())
      line = grid.lines.insert(line, {row.label, "", std::vector<std::string>(grid.columns.size())});
    const auto column = std::find(grid.columns.begin(), grid.columns.end(), row.column) - grid.columns.begin();
    line->cells[static_cast<size_t>(column)] = row.paper.empty() ? row.ours : row.paper + " → " + row.ours;
    if (!row.remark.empty()) line->remark += (line->remark.empty() ? "" : "; ") + row.remark;
  }
  return grid;
}

namespace {

// "seed 1", "seeds 1, 2, 3"; nothing of what draws no random numbers of its own.
std::string seeds_of(const DoneCommand& command) {
  const std::vector<std::string> words = words_of(command.line);
  if (const auto one = word_behind(words, "--seed")) return "seed " + *one;
  if (const auto several = word_behind(words, "--seeds")) return "seeds " + join(split(*several, ','), ", ");
  return command.weights.empty() ? "" : "seed 1";
}

std::string weights_of(const DoneCommand& command) {
  std::vector<std::string> all;
  for (const Fingerprint& f : command.weights) all.push_back(f.run.empty() ? f.weights : f.run + " " + f.weights);
  return all.empty() ? "" : "weights " + join(all, ", ");
}

std::string took(const DoneCommand& command) {
  if (!command.done) return command.seconds > 0 ? "begun, not finished" : NOT_RUN;
  return duration_text(command.seconds) + (command.machine.empty() ? "" : " on " + command.machine);
}

}  // namespace

std::string facts_of(const DoneCommand& command) {
  std::vector<std::string> facts;
  for (const std::string& fact : {took(command), seeds_of(command), weights_of(command)})
    if (!fact.empty()) facts.push_back(fact);
  return join(facts, ", ");
}

// ---- Files ----------------------------------------------------------------------------------------------------------

namespace {

// A page that has not these words is not of ours.
void check_page(const std::string& path, const std::string& words, bool force) {
  if (is_there(path) && read_regular_file(path).find(words) == std::string::npos) check_replaced(path, force);
}

}  // namespace

void save_page(const Page& page, const std::string& folder, const std::string& results, bool force) {
  check_page(folder + "/index.html", "<h1>" + page.title + "</h1>", force);
  if (!results.empty()) check_page(results + "/RESULTS.md", "written by `./reproduce report", force);
  write_html(page, folder);
  const auto count = std::count_if(page.sections.begin(), page.sections.end(),
                                   [](const PageSection& section) { return !section.commands.empty(); });
  print("saved %s/index.html (%lld of %zu sections were run)\n", folder.c_str(), static_cast<long long>(count),
        page.sections.size());
  if (results.empty()) return;
  write_markdown(page, results);
  print("saved %s/RESULTS.md\n", results.c_str());
}

}  // namespace petroglyph
