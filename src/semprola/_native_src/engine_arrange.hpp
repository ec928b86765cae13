// Prepares plans for the kernels by removing rows that are not needed.
#pragma once

#include <vector>

#include "engine_plan.hpp"

namespace semprola {

struct OwnedPlan {
  Plan view{};
  std::vector<int32_t> edge_start, first_weight, factor_start, factors, sum_of_weight, used_leaves, slot_of_sum,
      slot_factors;
  std::vector<uint8_t> has_default;
  bool has_weights = false;  // whether it was arranged for edges with weights

  void look();  // sets up the view once the arrays are filled

 private:
  void give_slots();
};

// A plan as it comes from outside. Nothing is copied: plans may have many millions of edges.
struct GivenPlan {
  int32_t num_leaves, num_sums, num_edges, num_weights, root_row;
  const int32_t* order;         // [sums]: each after the sums that it uses
  const int32_t* row;           // [sums]: num_leaves plus the place in that order
  const int32_t* edge_start;    // [sums + 1]
  const int32_t* first_weight;  // [sums]: the weight of a sum's first edge, -1 for none; null: no edge has a weight
  const int32_t* factor_start;  // [edges + 1]
  const int32_t* factors;       // literals, and from num_leaves on num_leaves plus a sum
  const uint8_t* has_default;   // [variables]

  int32_t row_of(int32_t factor) const { return factor < num_leaves ? factor : row[factor - num_leaves]; }
};

// A sum with one unweighted edge is merged into the edge that uses it, if no other edge does. Without weights, a sum
// that is the only factor of the only edge that uses it passes its edges on to the sum above. Sums are ordered by
// level, with similar sums next to each other, so that a pass runs through few kinds of loops.
OwnedPlan arrange(const GivenPlan& given);

}  // namespace semprola
