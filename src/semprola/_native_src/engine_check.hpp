// Checks of a plan that comes from outside.
#pragma once

#include "engine_arrange.hpp"

namespace semprola {

// Throws std::invalid_argument, saying what is wrong and where, unless the arrays fit together. That they are as long
// as the counts and offsets say cannot be checked here; the caller must ensure it.
void check_plan(const GivenPlan& plan);

}  // namespace semprola
