// Elimination orders of a graph, and the branching depth of each variable in a tree decomposition.
#pragma once

#include <functional>

#include "ddnnf_common.hpp"

namespace semprola::ddnnf {

using Graph = std::vector<std::vector<Var>>;  // sorted neighbours, both directions, no loops

enum class Greedy { kMinFill, kMinDegree };

struct Elimination {
  std::vector<Var> order;              // in the order of elimination
  std::vector<std::vector<Var>> bags;  // bags[i]: the neighbours of order[i] when it is eliminated
  uint32_t width = 0;                  // size of the largest bag
  double cost = 0;                     // sum of 2^size over the bags that were found greedily
};

// A graph with edges between all variables of each set. Throws kOutOfMemory if there would be more than `max_edges`.
Graph clique_graph(Var num_vars, const std::vector<std::vector<Var>>& sets, size_t max_edges);

// Greedy elimination; ties are broken at random by `seed` (0: by the lowest number). Gives up and returns an empty
// order as soon as a bag has more than `width_limit` members, all bags together would take too much memory, or
// `expired`, which is called after each slice of some 10^5 steps, returns true.
Elimination eliminate(const Graph& graph, Greedy method, uint64_t seed, uint32_t width_limit,
                      const std::function<bool()>& expired);

// The branching depth of every variable. Plain: the distance of its bag from the centroid of the decomposition, so the
// search sweeps outwards. Balanced: the round in which recursive splitting at centroids removes it; this is for long
// chains, where sweeping would take quadratic time.
std::vector<uint32_t> branching_depth(const Elimination& elimination, bool balanced);

}  // namespace semprola::ddnnf
