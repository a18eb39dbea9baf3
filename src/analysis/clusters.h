// What a model's layers make of a string of a regular language, as points, and whether these fall into clusters (regular_gpt,
// section 7.3 and figure 3).
//
// In RegularGPT each vector o_m of layer l speaks of a piece of the string that ends at m: of what it does to the automaton's
// states, if the model has learned that (section 7.2). All pieces that do the same should then have one vector, in all layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/pca.h"
#include "models/model.h"
#include "tasks/regular_languages.h"

namespace petroglyph {

// One vector of one layer, and the symbols begin … end−1 that it can know.
struct LayerPoint {
  int layer, begin, end;
};

struct LayerVectors {
  int width = 0;
  std::vector<double> x;  // (points,width)
  std::vector<LayerPoint> points;
};

// All vectors of all layers. chunk: RegularGPT's C, with one block a layer; 0: each position knows all before it. Throws Error for
// a model that does not show its layers.
LayerVectors layer_vectors(Model& model, Ops& ops, const SymbolString& string, int chunk);

// For each point a number from 0 on, the same for pieces that do the same to the automaton's states (eq. 2); of models that know
// all before a position, and where there are more than `most` such functions, the answer of the piece instead.
struct PointClasses {
  std::vector<int> of_point;
  std::vector<std::string> names;  // "states to 1 2 3 4 0", "answer 1"
};
PointClasses classes_of(const Automaton& automaton, const SymbolString& string, const std::vector<LayerPoint>& points,
                        size_t most);

// How well points and classes agree.
struct Separation {
  double within = 0;   // the mean distance of a point from the mean of its class
  double between = 0;  // the smallest distance between the means of two classes
  double nearest = 0;  // the part of the points whose nearest mean is that of their own class
};
Separation separation(const std::vector<double>& x, int columns, const std::vector<int>& classes);

// The number of clusters that nobody has named: of all ways to cut the longest edges out of the tree of shortest connections, up to
// `most` − 1 of them, the one in front of the largest ratio between two neighbouring lengths of edges.
int count_clusters(const std::vector<double>& x, int columns, int most);

}  // namespace petroglyph
