// Circuits made ready for the kernels: what costs a row and need not is taken out.
#pragma once

#include <vector>

#include "engine_plan.hpp"

namespace semprola {

struct OwnedPlan {
  Plan view{};
  std::vector<int32_t> edge_start, first_weight, factor_start, factors, sum_of_weight, used_leaves;
  std::vector<uint8_t> has_default;
  bool has_weights = false;  // whether it was arranged for edges with weights

  void look();  // makes the view, once the arrays are there
};

// A plan as it comes from outside. Nothing is copied: plans may have many million edges.
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

// Sums of one edge that carry no weight become part of the edges above them, where that copies nothing. Without
// weights, a sum that is all of one edge of one other sum hands its edges on to it. The order is by level, alike sums
// side by side, so that a pass runs through few kinds of loop.
OwnedPlan arrange(const GivenPlan& given);

}  // namespace semprola
