// Plans to test with, and what they should say: worked out path by path, with nothing shared with the engine.
#pragma once

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

constexpr double kNever = -std::numeric_limits<double>::infinity();

struct Plan {
  int32_t variables = 0;
  int32_t num_weights = 0;
  std::vector<std::vector<std::vector<int32_t>>> sums;  // edges, each a list of rows
  std::vector<int32_t> first_weight;

  int32_t leaves() const { return 2 * variables; }
  int32_t root_row() const { return leaves() + static_cast<int32_t>(sums.size()) - 1; }
};

// The arrays that semprola_plan_create takes.
struct Arrays {
  explicit Arrays(const Plan& plan);
  void* create() const;  // null if it is refused

  int32_t num_leaves, num_sums, num_edges, num_weights, root_row;
  bool has_weights = true;
  std::vector<int32_t> order, row, edge_start{0}, first_weight, factor_start{0}, factors;
  std::vector<uint8_t> has_default;
};

// A plan in the library, as long as this object lives.
class Handle {
 public:
  explicit Handle(const Plan& plan, bool has_weights = true);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  const void* get() const { return plan_; }

 private:
  void* plan_;
};

// Decides on one variable after another, with branches that come together again: deterministic, and decomposable; every
// state has one path. `width` is the number of sums per variable. Some branches are missing.
Plan decision_diagram(int32_t variables, int32_t width, std::mt19937& random);
// Edges are products of sums over disjoint variables, three or more per sum: long products, large fan-ins, no
// determinism.
Plan mixture(int32_t depth, int32_t fan_in, std::mt19937& random);

// One way through the plan: its literals and its weights.
struct Path {
  std::vector<int32_t> literals, weights;
};

std::vector<Path> all_paths(const Plan& plan);
// The sum of a path's log-weights and log-leaves; `column` of matrices [rows, columns].
double path_value(const Path& path, const std::vector<double>& weights, const std::vector<double>& leaves,
                  int64_t columns, int64_t column);
double log_sum(const std::vector<double>& values);
