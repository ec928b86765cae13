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

TEST(plan_order_has_every_sum_once) {
  check_refused("order: place 1", [](Arrays& a) { a.order[1] = a.num_sums; });
  check_refused("order: place 0", [](Arrays& a) { a.order[0] = -1; });
  check_refused("row: sum 0", [](Arrays& a) { a.order[1] = 0; });
  check_refused("row: sum 1", [](Arrays& a) { a.row[1] = INT32_MAX; });
}

// Sums may stand in any order, as long as it is said which comes when.
TEST(plan_sums_stand_in_any_order) {
  const Arrays given = good();
  Arrays turned = given;
  const int32_t last = given.num_sums - 1;
  turned.edge_start = turned.factor_start = {0};
  turned.factors.clear();
  for (int32_t s = last; s >= 0; --s) {
    turned.order[static_cast<size_t>(s)] = last - s;
    turned.row[static_cast<size_t>(last - s)] = given.num_leaves + s;
    turned.first_weight[static_cast<size_t>(last - s)] = given.first_weight[static_cast<size_t>(s)];
    for (int32_t e = given.edge_start[static_cast<size_t>(s)]; e < given.edge_start[static_cast<size_t>(s) + 1]; ++e) {
      for (int32_t f = given.factor_start[static_cast<size_t>(e)]; f < given.factor_start[static_cast<size_t>(e) + 1];
           ++f) {
        const int32_t factor = given.factors[static_cast<size_t>(f)];
        turned.factors.push_back(factor < given.num_leaves ? factor : 2 * given.num_leaves + last - factor);
      }
      turned.factor_start.push_back(static_cast<int32_t>(turned.factors.size()));
    }
    turned.edge_start.push_back(static_cast<int32_t>(turned.factor_start.size()) - 1);
  }
  turned.factors.push_back(0);
  std::vector<double> leaves(static_cast<size_t>(given.num_leaves));
  for (size_t i = 0; i < leaves.size(); ++i) leaves[i] = -0.1 * static_cast<double>(i);
  double values[2] = {0, 1};
  for (int i = 0; i < 2; ++i) {
    void* const plan = (i == 0 ? given : turned).create();
    CHECK(plan != nullptr);
    CHECK_EQUAL((query<Evaluate<double>, double>("evaluate")(plan, nullptr, 0, 0, leaves.data(), 1, 1, 1, values + i,
                                                             nullptr, nullptr, 1)),
                0);
    function<void(void*)>("semprola_plan_destroy")(plan);
  }
  CHECK_EQUAL(values[0], values[1]);
}

TEST(plan_without_weights_takes_none) {
  std::mt19937 random(1);
  const Handle handle(mixture(2, 4, random), false);
  std::vector<double> numbers(1000, 0.0), value(1);
  CHECK_EQUAL((query<Evaluate<double>, double>("evaluate")(handle.get(), numbers.data(), 1, 1, numbers.data(), 1, 1, 1,
                                                           value.data(), nullptr, nullptr, 1)),
              3);
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
