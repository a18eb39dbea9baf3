// The hidden vectors of a model's layers on a string of a regular language, as points, and a test whether they form
// clusters (regular_gpt, section 7.3 and figure 3).
//
// In RegularGPT each vector o_m of layer l depends on a substring that ends at m. If the model has learned the
// construction of section 7.2, the vector encodes how this substring maps the automaton's states. Then all substrings
// with the same map should have the same vector, in all layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/pca.h"
#include "models/model.h"
#include "tasks/regular_languages.h"

namespace petroglyph {

// One vector of one layer, and the substring begin … end−1 that it depends on.
struct LayerPoint {
  int layer, begin, end;
};

struct LayerVectors {
  int width = 0;
  std::vector<double> x;  // (points,width)
  std::vector<LayerPoint> points;
};

// All vectors of all layers. chunk: RegularGPT's C, with one block a layer; 0: each position depends on all positions
// before it. Throws Error for a model that does not expose its layers.
LayerVectors layer_vectors(Model& model, Ops& ops, const SymbolString& string, int chunk);

// The class of each point, from 0: two substrings have the same class if they map the automaton's states in the same
// way (eq. 2). The class is the answer for the substring instead if each position depends on all before it, or if
// there are more than `most` such maps.
struct PointClasses {
  std::vector<int> of_point;
  std::vector<std::string> names;  // "states to 1 2 3 4 0", "answer 1"
};
PointClasses classes_of(const Automaton& automaton, const SymbolString& string, const std::vector<LayerPoint>& points,
                        size_t most);

// The fraction of points whose nearest class mean is that of their own class.
double nearest_to_own(const std::vector<double>& x, int columns, const std::vector<int>& classes);

// The number of clusters, found without class labels. The longest edges of the minimum spanning tree are cut, at most
// `most` − 1 of them. The cut is where the ratio between two consecutive edge lengths is largest.
int count_clusters(const std::vector<double>& x, int columns, int most);

}  // namespace petroglyph
