#include "analysis/clusters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analysis/inspection.h"
#include "analysis/lemma1.h"
#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

// The spans of layer l, from the spans of the layer below. Each position has one span; if a layer keeps only the last
// of every C positions, there are fewer.
std::vector<LayerPoint> pieces_above(const std::vector<LayerPoint>& below, int layer, size_t positions, int chunk,
                                     int64_t reach) {
  std::vector<LayerPoint> pieces;
  const bool shrunk = positions < below.size();
  const size_t C = static_cast<size_t>(chunk);
  for (size_t j = 0; j < positions; ++j) {
    const size_t last = shrunk ? below.size() - 1 - (positions - 1 - j) * C : j;
    const int end = below[last].end;
    const int begin = shrunk ? below[last < C ? 0 : last + 1 - C].begin
                             : static_cast<int>(chunk > 0 ? std::max<int64_t>(0, end - reach) : 0);
    pieces.push_back({layer, begin, end});
  }
  return pieces;
}

}  // namespace

LayerVectors layer_vectors(Model& model, Ops& ops, const SymbolString& string, int chunk) {
  LayerVectors found;
  std::vector<LayerPoint> pieces;
  for (int i = 0; i < static_cast<int>(string.size()); ++i) pieces.push_back({-1, i, i + 1});
  int64_t reach = 1;
  model.after_layer = [&](size_t layer, const real* x, int positions, int width) {
    std::vector<real> values(static_cast<size_t>(positions) * width);
    ops.download(values.data(), x, values.size() * sizeof(real));
    reach *= std::max(chunk, 1);
    pieces = pieces_above(pieces, static_cast<int>(layer), static_cast<size_t>(positions), chunk, reach);
    found.width = width;
    found.x.insert(found.x.end(), values.begin(), values.end());
    found.points.insert(found.points.end(), pieces.begin(), pieces.end());
  };
  Tokens tokens;
  forward(model, ops, tokens, string);
  model.after_layer = nullptr;
  if (found.points.empty()) throw Error("this model does not show its layers; regular_gpt and transformer do");
  return found;
}

PointClasses classes_of(const Automaton& automaton, const SymbolString& string, const std::vector<LayerPoint>& points,
                        size_t most) {
  std::map<std::vector<int>, int> functions;
  std::vector<std::vector<int>> of_point;
  for (const LayerPoint& p : points) {
    of_point.push_back(state_map(automaton, {string.begin() + p.begin, string.begin() + p.end}));
    functions.emplace(of_point.back(), 0);
  }
  PointClasses classes;
  if (functions.size() > most) {
    for (int answer = 0; answer < automaton.classes; ++answer) classes.names.push_back(text("answer %d", answer));
    for (const std::vector<int>& function : of_point)
      classes.of_point.push_back(automaton.answer[static_cast<size_t>(function[static_cast<size_t>(automaton.start)])]);
    return classes;
  }
  for (auto& [function, number] : functions) {
    number = static_cast<int>(classes.names.size());
    std::vector<std::string> states;
    for (const int state : function) states.push_back(std::to_string(state));
    classes.names.push_back("states to " + join(states, " "));
  }
  for (const std::vector<int>& function : of_point) classes.of_point.push_back(functions.at(function));
  return classes;
}

namespace {

double distance(const double* a, const double* b, int columns) {
  double square = 0;
  for (int c = 0; c < columns; ++c) square += (a[c] - b[c]) * (a[c] - b[c]);
  return std::sqrt(square);
}

}  // namespace

double nearest_to_own(const std::vector<double>& x, int columns, const std::vector<int>& classes) {
  const size_t C = static_cast<size_t>(columns);
  const size_t K = static_cast<size_t>(*std::max_element(classes.begin(), classes.end())) + 1;
  std::vector<double> means(K * C), counts(K);
  for (size_t i = 0; i < classes.size(); ++i) {
    const size_t k = static_cast<size_t>(classes[i]);
    ++counts[k];
    for (size_t c = 0; c < C; ++c) means[k * C + c] += x[i * C + c];
  }
  for (size_t k = 0; k < K; ++k)
    for (size_t c = 0; c < C; ++c) means[k * C + c] /= std::max(counts[k], 1.0);
  double found = 0;
  for (size_t i = 0; i < classes.size(); ++i) {
    const size_t own = static_cast<size_t>(classes[i]);
    const double d = distance(&x[i * C], &means[own * C], columns);
    bool nearest = true;
    for (size_t k = 0; k < K; ++k)
      nearest = nearest && (k == own || counts[k] == 0 || distance(&x[i * C], &means[k * C], columns) > d);
    found += nearest;
  }
  return found / static_cast<double>(classes.size());
}

int count_clusters(const std::vector<double>& x, int columns, int most) {
  const size_t n = x.size() / static_cast<size_t>(columns);
  if (n < 2) return static_cast<int>(n);
  // Prim's algorithm for the minimum spanning tree: each point joins by its shortest edge to the points already in
  // the tree.
  std::vector<double> nearest(n, std::numeric_limits<double>::infinity()), edges;
  std::vector<bool> in(n);
  size_t last = 0;
  in[0] = true;
  for (size_t joined = 1; joined < n; ++joined) {
    size_t next = n;
    for (size_t i = 0; i < n; ++i) {
      if (in[i]) continue;
      nearest[i] = std::min(nearest[i], distance(&x[i * columns], &x[last * columns], columns));
      if (next == n || nearest[i] < nearest[next]) next = i;
    }
    edges.push_back(nearest[next]);
    in[next] = true;
    last = next;
  }
  std::sort(edges.rbegin(), edges.rend());
  if (edges.empty() || edges[0] == 0) return 1;  // all points are identical
  int clusters = 1;
  double largest = 0;
  for (size_t k = 1; k < static_cast<size_t>(most) && k < edges.size(); ++k) {
    const double ratio = edges[k - 1] / std::max(edges[k], 1e-12 * edges[0]);
    if (ratio <= largest) continue;
    largest = ratio;
    clusters = static_cast<int>(k) + 1;
  }
  return clusters;
}

}  // namespace petroglyph
