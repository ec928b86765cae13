// Best states, lists of best states, and samples.

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "library.hpp"
#include "plans.hpp"
#include "testing.hpp"

namespace {

struct Case {
  Plan plan;
  std::vector<Path> paths;
  std::vector<double> weights, leaves;
  int64_t columns;

  explicit Case(int64_t columns_, unsigned seed) : columns(columns_) {
    std::mt19937 random(seed);
    plan = decision_diagram(8, 3, random);
    paths = all_paths(plan);
    std::normal_distribution<double> normal(0, 1);
    weights.resize(static_cast<size_t>(plan.num_weights * columns));
    leaves.resize(static_cast<size_t>(plan.leaves() * columns));
    for (double& number : weights) number = normal(random);
    for (double& number : leaves) number = normal(random);
  }

  // Values of all paths, best first.
  std::vector<double> ranked(int64_t column) const {
    std::vector<double> values;
    for (const Path& path : paths) values.push_back(path_value(path, weights, leaves, columns, column));
    std::sort(values.rbegin(), values.rend());
    return values;
  }

  // The value of a state, given by its variables: the path that it is.
  double value_of(const std::vector<int>& state, int64_t column) const {
    for (const Path& path : paths) {
      const bool is = std::all_of(path.literals.begin(), path.literals.end(),
                                  [&](int32_t l) { return state[static_cast<size_t>(l / 2)] == l % 2; });
      if (is) return path_value(path, weights, leaves, columns, column);
    }
    return kNever;
  }
};

int rank(const Handle& handle, const Case& c, int32_t k, double* values, double* states, int threads = 2) {
  return query<Rank<double>, double>("rank")(handle.get(), c.weights.data(), c.columns, 1, c.leaves.data(), c.columns,
                                             1, c.columns, k, values, states, threads);
}

}  // namespace

TEST(rank_lists_paths_in_order) {
  for_each_level([] {
    for (unsigned seed = 0; seed < 8; ++seed) {
      const Case c(seed % 2 == 0 ? 5 : 1, seed);
      const Handle handle(c.plan);
      const int64_t k = static_cast<int64_t>(c.paths.size()) + 3;
      std::vector<double> values(static_cast<size_t>(k * c.columns)), states(static_cast<size_t>(8 * k * c.columns));
      CHECK_EQUAL(rank(handle, c, int32_t(k), values.data(), states.data()), 0);
      for (int64_t column = 0; column < c.columns; ++column) {
        const std::vector<double> expected = c.ranked(column);
        for (int64_t i = 0; i < k; ++i) {
          const double value = values[static_cast<size_t>(i * c.columns + column)];
          if (i >= static_cast<int64_t>(expected.size())) {
            CHECK(value == kNever);
            continue;
          }
          CHECK_CLOSE(value, expected[static_cast<size_t>(i)], 1e-12);
          std::vector<int> state;
          for (int64_t v = 0; v < 8; ++v) {
            state.push_back(int(states[static_cast<size_t>((v * k + i) * c.columns + column)]));
          }
          CHECK_CLOSE(c.value_of(state, column), value, 1e-12);
        }
      }
    }
  });
}

// The place of a variable's value among the results is beyond 32 bits long before the results are.
TEST(rank_places_are_wide_enough) {
  constexpr int32_t kVariables = 1200, kStates = 2'000'000;
  Plan plan;
  plan.variables = kVariables;
  std::vector<int32_t> zeros, ones;
  for (int32_t v = 0; v < kVariables; ++v) {
    zeros.push_back(2 * v);
    ones.push_back(2 * v + 1);
  }
  plan.sums = {{zeros, ones}};
  plan.first_weight = {-1};
  const Handle handle(plan);
  // Nearly all of it is never touched, and takes no memory.
  const size_t bytes = size_t{kVariables} * kStates * sizeof(float);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  float* const states = static_cast<float*>(memory);
  std::vector<float> leaves(2 * size_t{kVariables}, 0.0f), values(kStates);
  for (size_t i = 1; i < leaves.size(); i += 2) leaves[i] = 0.5f;
  CHECK_EQUAL((query<Rank<float>, float>("rank")(handle.get(), nullptr, 0, 0, leaves.data(), 1, 1, 1, kStates,
                                                 values.data(), states, 1)),
              0);
  CHECK_CLOSE(double(values[0]), 0.5 * kVariables, 1e-6);
  CHECK_CLOSE(double(values[1]), 0.0, 1e-6);
  CHECK(values[2] == -std::numeric_limits<float>::infinity());
  for (size_t v = 0; v < kVariables; ++v) CHECK(states[v * kStates] == 1.0f && states[v * kStates + 1] == 0.0f);
  munmap(memory, bytes);
}

TEST(rank_refuses_negative_numbers) {
  const Case c(1, 1);
  const Handle handle(c.plan);
  double number = 0;
  CHECK_EQUAL(rank(handle, c, -1, &number, &number), 3);
  CHECK_EQUAL(rank(handle, c, 0, &number, &number), 0);
}

TEST(sample_draws_from_the_distribution) {
  for_each_level([] {
    const Case c(3, 5);
    const Handle handle(c.plan);
    const int64_t each = 20000, samples = 3 * each;
    std::vector<int64_t> column;
    for (int64_t i = 0; i < samples; ++i) column.push_back((7 * i) % 3);
    std::vector<double> states(static_cast<size_t>(8 * samples)), defaults(static_cast<size_t>(8 * 3), 0.5);
    const auto draw = [&](std::vector<double>& out, int threads) {
      return query<Sample<double>, double>("sample")(handle.get(), c.weights.data(), 3, 1, c.leaves.data(), 3, 1,
                                                     defaults.data(), 3, column.data(), samples, 99, out.data(),
                                                     threads);
    };
    CHECK_EQUAL(draw(states, 1), 0);
    std::vector<double> again(states.size());
    CHECK_EQUAL(draw(again, 3), 0);
    CHECK(states == again);
    for (int64_t chosen = 0; chosen < 3; ++chosen) {
      const double total = log_sum(c.ranked(chosen));
      std::map<std::vector<int>, int> counts;
      for (int64_t i = 0; i < samples; ++i) {
        if (column[static_cast<size_t>(i)] != chosen) continue;
        std::vector<int> state;
        for (int64_t v = 0; v < 8; ++v) state.push_back(int(states[static_cast<size_t>(v * samples + i)]));
        ++counts[state];
      }
      for (const auto& [state, count] : counts) {
        const double p = std::exp(c.value_of(state, chosen) - total);
        CHECK(p > 0);
        CHECK(std::fabs(count / double(each) - p) < 5 * std::sqrt(p * (1 - p) / each) + 1e-9);
      }
    }
  });
}

TEST(sample_refuses_columns_that_do_not_exist) {
  const Case c(3, 5);
  const Handle handle(c.plan);
  for (const int64_t bad : {int64_t{-1}, int64_t{3}, INT64_MAX, INT64_MIN}) {
    const std::vector<int64_t> column{0, bad};
    std::vector<double> states(16), defaults(24, 0.5);
    CHECK_EQUAL((query<Sample<double>, double>("sample")(handle.get(), nullptr, 0, 0, c.leaves.data(), 3, 1,
                                                         defaults.data(), 3, column.data(), 2, 1, states.data(), 1)),
                3);
    CHECK(std::string(function<const char*()>("semprola_engine_error")()).find("column") != std::string::npos);
  }
}

// Sanitizers end the program where `new` has no memory.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(no_memory_is_reported_as_that) {
  const Case c(1, 2);
  const Handle handle(c.plan);
  double number = 0;
  const int64_t column = 0;
  CHECK_EQUAL((query<Sample<double>, double>("sample")(handle.get(), nullptr, 0, 0, c.leaves.data(), 1, 1, &number,
                                                       int64_t{1} << 55, &column, 0, 1, &number, 1)),
              1);
}
#endif
