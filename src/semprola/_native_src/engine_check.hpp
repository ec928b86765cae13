// Checks of a plan that comes from outside.
#pragma once

#include "engine_arrange.hpp"

namespace semprola {

// Throws std::invalid_argument, with what is wrong and where, unless the arrays fit together. They must be as long as
// the counts and offsets say: that, only whoever made them can know.
void check_plan(const GivenPlan& plan);

}  // namespace semprola
