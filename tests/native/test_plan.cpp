// Plans are checked where they come in: arrays that do not fit together are refused, with a word on what and where.

#include <functional>
#include <string>

#include "library.hpp"
#include "plans.hpp"
#include "testing.hpp"

namespace {

Arrays good() {
  std::mt19937 random(1);
  return Arrays(mixture(2, 4, random));
}

std::string refusal(const Arrays& arrays) {
  void* const plan = arrays.create();
  if (plan == nullptr) return function<const char*()>("semprola_engine_error")();
  function<void(void*)>("semprola_plan_destroy")(plan);
  return "";
}

void check_refused(const char* expected, const std::function<void(Arrays&)>& spoil) {
  Arrays arrays = good();
  spoil(arrays);
  const std::string text = refusal(arrays);
  if (text.find(expected) == std::string::npos) {
    testing::fail(__FILE__, __LINE__, "expected '" + std::string(expected) + "', got '" + text + "'");
  }
  if (!text.empty()) CHECK_EQUAL(function<int()>("semprola_engine_status")(), 3);
}

}  // namespace

TEST(plan_is_accepted) { CHECK(refusal(good()).empty()); }

TEST(plan_counts_are_checked) {
  check_refused("two leaves per variable", [](Arrays& a) { a.num_leaves = 7; });
  check_refused("two leaves per variable", [](Arrays& a) { a.num_leaves = -2; });
  check_refused("needs a sum", [](Arrays& a) { a.num_sums = 0; });
  check_refused("needs a sum", [](Arrays& a) { a.num_sums = -1; });
  check_refused("cannot have", [](Arrays& a) { a.num_edges = -1; });
  check_refused("cannot have", [](Arrays& a) { a.num_weights = -5; });
  check_refused("too large", [](Arrays& a) { a.num_leaves = INT32_MAX - 1; });
}

TEST(plan_root_is_a_sum) {
  check_refused("the root", [](Arrays& a) { a.root_row = 0; });
  check_refused("the root", [](Arrays& a) { a.root_row = -1; });
  check_refused("the root", [](Arrays& a) { a.root_row = a.num_leaves + a.num_sums; });
}

TEST(plan_offsets_rise) {
  check_refused("edge_start: begins", [](Arrays& a) { a.edge_start[0] = 1; });
  check_refused("edge_start: list 0", [](Arrays& a) { a.edge_start[1] = 0; });  // a sum without edges
  check_refused("edge_start: list 1", [](Arrays& a) { a.edge_start[2] = -3; });
  check_refused("edge_start: ends", [](Arrays& a) { ++a.edge_start.back(); });
  check_refused("factor_start: begins", [](Arrays& a) { a.factor_start[0] = -1; });
  check_refused("factor_start: list", [](Arrays& a) { a.factor_start[2] = INT32_MIN; });
}

TEST(plan_factors_come_before) {
  check_refused("as a factor", [](Arrays& a) { a.factors[0] = -1; });
  check_refused("as a factor", [](Arrays& a) { a.factors[0] = INT32_MAX; });
  check_refused("as a factor", [](Arrays& a) { a.factors[0] = a.num_leaves; });      // itself: a cycle
  check_refused("as a factor", [](Arrays& a) { a.factors[0] = a.num_leaves + 1; });  // of a later level
}

TEST(plan_weights_belong_to_one_edge) {
  check_refused("has weights", [](Arrays& a) { a.first_weight[0] = -2; });
  check_refused("has weights", [](Arrays& a) { a.first_weight[0] = a.num_weights - 1; });
  check_refused("has weights", [](Arrays& a) { a.first_weight[0] = INT32_MAX; });
  check_refused("two edges", [](Arrays& a) { a.first_weight[1] = a.first_weight[0]; });
  check_refused("weights belong", [](Arrays& a) { a.first_weight[0] = -1; });
  check_refused("weights belong", [](Arrays& a) { ++a.num_weights; });
}

// The library keeps no pointer to the arrays.
TEST(plan_outlives_its_arrays) {
  void* plan = nullptr;
  {
    const Arrays arrays = good();
    plan = arrays.create();
  }
  std::vector<double> leaves(20, 0.0), value(1);
  CHECK_EQUAL((query<Evaluate<double>, double>("evaluate")(plan, nullptr, 0, 0, leaves.data(), 1, 1, 1, value.data(),
                                                           nullptr, nullptr, 1)),
              0);
  CHECK(value[0] > 0);
  function<void(void*)>("semprola_plan_destroy")(plan);
}
