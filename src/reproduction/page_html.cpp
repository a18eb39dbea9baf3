// The page as HTML: one file with its own style, and the figures beside it.

#include "base/atomic_file.h"
#include "base/text.h"
#include "reproduction/page.h"

namespace petroglyph {

namespace {

const char* const STYLE = R"(
  :root { color-scheme: light; }
  body { font: 16px/1.5 Georgia, serif; color: #222; background: #fff; max-width: 60rem; margin: 0 auto; padding: 1rem; }
  h1, h2, h3 { font-family: system-ui, sans-serif; line-height: 1.2; }
  h2 { margin-top: 3rem; border-bottom: 2px solid #222; padding-bottom: .3rem; }
  h3 { margin-top: 2.2rem; }
  .where, .status, figcaption { font-family: system-ui, sans-serif; font-size: .85rem; color: #666; }
  .scroll { overflow-x: auto; }
  table { border-collapse: collapse; font-family: system-ui, sans-serif; font-size: .85rem; margin: 1rem 0; }
  th, td { text-align: left; vertical-align: top; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid #ddd; }
  td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
  td.not-run { color: #999; }
  figure { margin: 1rem 0; }
  figure img { max-width: 100%; height: auto; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; background: #f6f6f3; padding: .7rem; }
  code { overflow-wrap: anywhere; font-size: .8rem; }
  nav ul { padding-left: 1.2rem; }
  @media print {
    body { font-size: 11px; max-width: none; padding: 0; }
    section, figure, tr { break-inside: avoid; }
    section.long { break-inside: auto; }
    a { color: inherit; text-decoration: none; }
  }
)";

std::string tag(const std::string& name, const std::string& content) {
  return "<" + name + ">" + content + "</" + name + ">";
}

std::string number_cell(const std::string& kind, const std::string& words) {
  const bool not_run = words == "not run";
  return "<" + kind + " class=\"number" + (not_run ? " not-run" : "") + "\">" + markup_text(words) + "</" + kind + ">";
}

std::string html_grid(const PageGrid& grid) {
  std::string out = "<div class=\"scroll\"><table>\n<tr><th></th>";
  for (const std::string& column : grid.columns) out += number_cell("th", column);
  out += "<th></th></tr>\n";
  for (const PageGrid::Line& line : grid.lines) {
    out += "<tr>" + tag("td", markup_text(line.label));
    for (const std::string& cell : line.cells) out += number_cell("td", cell);
    out += tag("td", markup_text(line.remark)) + "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string html_table(const PageSection& section) {
  if (section.rows.empty()) return "";
  if (has_columns(section)) return html_grid(grid_of(section));
  std::string out =
      "<div class=\"scroll\"><table>\n<tr><th></th><th class=\"number\">paper</th><th class=\"number\">ours</th>"
      "<th class=\"number\">distance</th><th></th></tr>\n";
  for (const PageRow& row : section.rows)
    out += "<tr>" + tag("td", markup_text(row.label)) + number_cell("td", row.paper) + number_cell("td", row.ours) +
           number_cell("td", row.distance) + tag("td", markup_text(row.remark)) + "</tr>\n";
  return out + "</table></div>\n";
}

std::string html_commands(const PageSection& section) {
  std::string out;
  for (const DoneCommand& command : section.commands) {
    out += "<p><code>" + markup_text(command.line) + "</code><br><span class=\"status\">" +
           markup_text(facts_of(command)) + "</span></p>\n";
  }
  return out;
}

std::string section_html(const PageSection& section) {
  const bool is_long = section.figures.size() + section.listings.size() > 1 || section.rows.size() > 12;
  std::string out = text("<section id=\"%s\"%s>\n", section.id.c_str(), is_long ? " class=\"long\"" : "");
  out += tag("h3", markup_text(section.title)) + "\n";
  out += "<p class=\"where\">" + markup_text(section.where) + " · " + markup_text(section.id) + " · " +
         markup_text(section.status) + "</p>\n";
  out += tag("p", markup_text(section.shows)) + "\n";
  if (!section.size.empty()) out += tag("p", markup_text(section.size)) + "\n";
  out += html_table(section);
  for (const PageFigure& figure : section.figures) {
    out +=
        "<figure><img src=\"" + figure.name + "\" alt=\"" + markup_text(section.title + " " + figure.caption) + "\">";
    if (!figure.caption.empty()) out += tag("figcaption", markup_text(figure.caption));
    out += "</figure>\n";
  }
  for (const PageListing& listing : section.listings)
    out += "<p>" + markup_text(listing.title) + "</p>\n" + tag("pre", markup_text(listing.words)) + "\n";
  out += html_commands(section);
  if (!section.machine.empty()) out += "<p class=\"status\">" + markup_text(section.machine) + "</p>\n";
  return out + "</section>\n";
}

// All claims in one table.
std::string html_claims(const Page& page) {
  if (page.claims.empty()) return "";
  std::string out = tag("h2", "What the papers claim") + "\n" + tag("p", tally_of(page.claims)) + "\n", paper;
  for (const PageClaim& claim : page.claims) {
    if (claim.paper != paper)
      out += (paper.empty() ? "" : "</table></div>\n") + tag("h3", markup_text(claim.paper)) +
             "\n<div class=\"scroll\"><table>\n<tr><th>claim</th><th></th><th>measured</th><th>run</th></tr>\n";
    paper = claim.paper;
    out += "<tr>" + tag("td", markup_text(claim.where + ": " + claim.says)) +
           tag("td", tag("b", markup_text(claim.verdict))) + tag("td", markup_text(claim.why)) +
           tag("td", (claim.command.empty()
                          ? ""
                          : "<a href=\"#" + claim.id + "\">" + tag("code", markup_text(claim.command)) + "</a>") +
                         (claim.weights.empty() ? "" : ": " + markup_text(claim.weights))) +
           "</tr>\n";
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string html_page(const Page& page) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      markup_text(page.title) + "</title>\n<style>" + STYLE + "</style>\n</head>\n<body>\n";
  out += tag("h1", markup_text(page.title)) + "\n";
  for (const std::string& words : page.introduction) out += tag("p", markup_text(words)) + "\n";
  out += html_claims(page);
  out += "<nav><ul>\n";
  for (const PageSection& section : page.sections)
    out += "<li><a href=\"#" + section.id + "\">" + markup_text(section.title) + "</a> <span class=\"status\">" +
           markup_text(section.status) + "</span></li>\n";
  out += "</ul></nav>\n";
  std::string paper;
  for (const PageSection& section : page.sections) {
    if (section.paper != paper) out += tag("h2", markup_text(section.paper)) + "\n";
    paper = section.paper;
    out += section_html(section);
  }
  return out + "</body>\n</html>\n";
}

void write_html(const Page& page, const std::string& folder) {
  for (const PageSection& section : page.sections) {
    if (section.figures.empty()) continue;
    make_folder(folder + "/" + section.id);
    for (const PageFigure& figure : section.figures) write_file_atomically(folder + "/" + figure.name, figure.content);
  }
  make_folder(folder);
  write_file_atomically(folder + "/index.html", html_page(page));
}

}  // namespace petroglyph
