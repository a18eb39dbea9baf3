#include "train/run_page.h"

#include <algorithm>

#include "base/atomic_file.h"
#include "base/text.h"

namespace petroglyph {

namespace {

constexpr int RELOAD_SECONDS = 10;

std::string option_text(const Json& value) { return value.is(Json::Kind::String) ? value.string() : value.text(); }

std::string opening(const std::string& title, bool reloads) {
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  if (reloads) html += text("<meta http-equiv=\"refresh\" content=\"%d\">\n", RELOAD_SECONDS);
  return html + "<title>" + title +
         "</title>\n<style>\nbody { font-family: sans-serif; max-width: 60em; margin: 2em auto; }\n"
         "img { width: 100%; }\ntd { padding-right: 2em; }\n</style>\n</head>\n<body>\n<h1>" +
         title + "</h1>\n";
}

// The figures of the folder. `version` stands in their address: a browser with an older picture loads this one.
std::string figures_of(const std::string& folder, int64_t version) {
  std::string html;
  for (const char* name : {"curve.svg", "compare.svg", "lengths.svg", "confusion.svg", "heatmaps.svg"})
    if (is_there(folder + "/" + name))
      html += text("<img src=\"%s?%lld\" alt=\"%s\">\n", name, static_cast<long long>(version), name);
  return html;
}

}  // namespace

void write_run_page(const std::string& folder, const RunPage& page, const RunState& state) {
  std::string html = opening(markup_text(state.model + ": " + page.name), page.running);
  html += "<p>" + markup_text(page.status) + "</p>\n" + figures_of(folder, state.step);
  if (!page.sample.empty()) html += "<h2>Sample</h2>\n<pre>" + markup_text(join(page.sample, "\n")) + "</pre>\n";
  html += "<p><a href=\"log.csv\">log.csv</a>: every step</p>\n<h2>" + markup_text(state.program) + "</h2>\n<table>\n";
  const auto& hidden = page.without_effect;
  for (const auto& [name, value] : state.options.members())
    if (std::find(hidden.begin(), hidden.end(), name) == hidden.end())
      html += "<tr><td>--" + markup_text(name) + "</td><td>" + markup_text(option_text(value)) + "</td></tr>\n";
  write_file_atomically(folder + "/index.html", html + "</table>\n</body>\n</html>\n");
}

void write_runs_page(const std::string& folder, const std::string& title, const std::vector<std::string>& runs) {
  std::string html = opening(markup_text(title), false) + figures_of(folder, 0) + "<h2>Runs</h2>\n<ul>\n";
  for (const std::string& run : runs)
    html += "<li><a href=\"" + markup_text(run) + "/index.html\">" + markup_text(run) + "</a></li>\n";
  write_file_atomically(folder + "/index.html", html + "</ul>\n</body>\n</html>\n");
}

}  // namespace petroglyph
