// Elimination orders of a graph, and the branching depth that a tree decomposition gives to each variable.
#pragma once

#include <functional>

#include "ddnnf_common.hpp"

namespace semprola::ddnnf {

using Graph = std::vector<std::vector<Var>>;  // sorted neighbours, both directions, no loops

enum class Greedy { kMinFill, kMinDegree };

struct Elimination {
  std::vector<Var> order;              // first eliminated first
  std::vector<std::vector<Var>> bags;  // bags[i]: the neighbours of order[i] when it is eliminated
  uint32_t width = 0;                  // size of the largest bag
  double cost = 0;                     // sum of 2^size over the bags that were found greedily
};

// Edges between all variables of each set. Throws kOutOfMemory when there would be more than `max_edges`.
Graph clique_graph(Var num_vars, const std::vector<std::vector<Var>>& sets, size_t max_edges);

// Greedy elimination, ties broken at random by `seed` (0: the lowest number). Gives up, leaving an empty order, as soon
// as a bag has more than `width_limit` members, all bags together more than memory should hold, or `expired`, called
// after each slice of some 10^5 steps, returns true.
Elimination eliminate(const Graph& graph, Greedy method, uint64_t seed, uint32_t width_limit,
                      const std::function<bool()>& expired);

// The branching depth of every variable. Plain: the distance of its bag from the centroid of the decomposition, so that
// the search sweeps outwards. Balanced: the round in which recursive splitting at centroids removes it; for chains that
// are so long that sweeping would take quadratic time.
std::vector<uint32_t> branching_depth(const Elimination& elimination, bool balanced);

}  // namespace semprola::ddnnf
