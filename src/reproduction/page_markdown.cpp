// The page as a repository shows it: RESULTS.md, and a folder for each section with its figures and tables.

#include <algorithm>

#include "base/atomic_file.h"
#include "base/text.h"
#include "reproduction/page.h"

namespace petroglyph {

namespace {

std::string markdown_grid(const PageGrid& grid) {
  std::string out = "| |", rule = "| --- |";
  for (const std::string& column : grid.columns) out += " " + markdown_text(column) + " |", rule += " ---: |";
  out += " |\n" + rule + " --- |\n";
  for (const PageGrid::Line& line : grid.lines) {
    out += "| " + markdown_text(line.label) + " |";
    for (const std::string& cell : line.cells) out += " " + markdown_text(cell) + " |";
    out += " " + markdown_text(line.remark) + " |\n";
  }
  return out + "\n";
}

std::string markdown_table(const PageSection& section) {
  if (section.rows.empty()) return "";
  if (has_columns(section)) return markdown_grid(grid_of(section));
  std::string out = "| | paper | ours | distance | |\n| --- | ---: | ---: | ---: | --- |\n";
  for (const PageRow& row : section.rows)
    out += "| " + markdown_text(row.label) + " | " + markdown_text(row.paper) + " | " + markdown_text(row.ours) +
           " | " + markdown_text(row.distance) + " | " + markdown_text(row.remark) + " |\n";
  return out + "\n";
}

// A fence that the words do not close.
std::string fenced(const std::string& words) {
  std::string fence = "```";
  while (words.find(fence) != std::string::npos) fence += "`";
  return fence + "\n" + words + "\n" + fence + "\n\n";
}

std::string markdown_commands(const PageSection& section) {
  if (section.commands.empty()) return "";
  std::string lines, facts;
  for (const DoneCommand& command : section.commands) {
    lines += (lines.empty() ? "" : "\n") + in_one_line(command.line);
    facts += "- " + markdown_text(command.part) + ": " + markdown_text(facts_of(command)) + "\n";
  }
  return fenced(lines) + facts + "- " + markdown_text(section.machine) + "\n\n";
}

std::string section_markdown(const PageSection& section) {
  std::string out = "### <a id=\"" + section.id + "\"></a>" + markdown_text(section.title) + "\n\n" +
                    markdown_text(section.where) + " · `" + section.id + "` · " + markdown_text(section.status) +
                    "\n\n" + markdown_text(section.shows) + "\n\n";
  if (!section.size.empty()) out += markdown_text(section.size) + "\n\n";
  out += markdown_table(section);
  for (const PageFigure& figure : section.figures)
    out += "![" + markdown_text(section.title) + "](" + figure.name + ")\n\n" +
           (figure.caption.empty() ? "" : "*" + markdown_text(figure.caption) + "*\n\n");
  for (const PageListing& listing : section.listings)
    out += markdown_text(listing.title) + "\n\n" + fenced(listing.words);
  if (!section.tables.empty()) {
    std::vector<std::string> links;
    for (const PageFigure& file : section.tables)
      links.push_back("[" + markdown_text(file.name.substr(section.id.size() + 1)) + "](" + file.name + ")");
    out += "Numbers: " + join(links, ", ") + "\n\n";
  }
  return out + markdown_commands(section);
}

// All claims in one table.
std::string markdown_claims(const Page& page) {
  if (page.claims.empty()) return "";
  std::string out = "## What the papers claim\n\n" + tally_of(page.claims) + "\n\n", paper;
  for (const PageClaim& claim : page.claims) {
    if (claim.paper != paper)
      out += (paper.empty() ? "" : "\n") + ("**" + markdown_text(claim.paper)) +
             "**\n\n| claim | | measured | run |\n| --- | --- | --- | --- |\n";
    paper = claim.paper;
    out += "| " + markdown_text(claim.where + ": " + claim.says) + " | **" + markdown_text(claim.verdict) + "** | " +
           markdown_text(claim.why) + " | " +
           (claim.command.empty() ? "" : "[`" + claim.command + "`](#" + claim.id + ")") +
           (claim.weights.empty() ? "" : ": " + markdown_text(claim.weights)) + " |\n";
  }
  return out + "\n";
}

}  // namespace

std::string markdown_text(std::string words) {
  std::string out;
  std::replace(words.begin(), words.end(), '\n', ' ');
  for (const char c : in_one_line(words)) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      if (std::string("\\`*_[]#|~>").find(c) != std::string::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string markdown_page(const Page& page) {
  std::string out = "# " + markdown_text(page.title) + "\n\n";
  for (const std::string& words : page.introduction) out += markdown_text(words) + "\n\n";
  out +=
      "This page was written by `./reproduce report --results FOLDER`; `./reproduce run NAME` with a section's size "
      "and "
      "data makes it again.\n\n";
  out += markdown_claims(page);
  std::string paper;
  for (const PageSection& section : page.sections) {
    if (section.paper != paper) out += "## " + markdown_text(section.paper) + "\n\n";
    paper = section.paper;
    out += section_markdown(section);
  }
  out.pop_back();
  return out;
}

void write_markdown(const Page& page, const std::string& folder) {
  make_folder(folder);
  for (const PageSection& section : page.sections) {
    if (section.records.empty()) continue;
    make_folder(folder + "/" + section.id);
    for (const std::vector<PageFigure>* files : {&section.figures, &section.tables, &section.records})
      for (const PageFigure& file : *files) write_file_atomically(folder + "/" + file.name, file.content);
  }
  write_file_atomically(folder + "/RESULTS.md", markdown_page(page));
}

}  // namespace petroglyph
