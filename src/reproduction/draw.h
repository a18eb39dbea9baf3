// The figures of a folder of results drawn again, from the numbers that it keeps beside them: nothing is run.
#pragma once

#include <string>
#include <vector>

namespace petroglyph {

// Draws what its CSV files say all of: other lengths, studies of scaling, plots of several runs. What else there is (curves of each
// step, what is inside a model) needs the runs. The files that were drawn.
std::vector<std::string> draw_results(const std::string& results);

}  // namespace petroglyph
