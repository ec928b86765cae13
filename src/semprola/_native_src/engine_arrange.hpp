// Circuits made ready for the kernels: what costs a row and need not is taken out.
#pragma once

#include <mutex>
#include <vector>

#include "engine_plan.hpp"

namespace semprola {

struct OwnedPlan {
  Plan view{};
  std::vector<int32_t> edge_start, first_weight, factor_start, factors, sum_of_weight, used_leaves;
  std::vector<uint8_t> has_default;

  void look();  // makes the view, once the arrays are there
};

// Sums of one edge that carry no weight become part of the edges above them, where that copies nothing. Without
// weights, a sum that is all of one edge of one other sum hands its edges on to it. The order is by level, alike sums
// side by side, so that a pass runs through few kinds of loop.
OwnedPlan arrange(const Plan& given, bool weighted);

// A plan as arranged for edges with weights and, made when first asked for, for edges without.
class Arranged {
 public:
  explicit Arranged(const Plan& given) : given_weights_(arrange(given, true)) {}
  const Plan& with_weights() const { return given_weights_.view; }
  const Plan& without_weights() const;

 private:
  OwnedPlan given_weights_;
  mutable OwnedPlan plain_;
  mutable std::once_flag made_;
};

}  // namespace semprola
