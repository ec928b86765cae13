#include "plans.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "library.hpp"

Arrays::Arrays(const Plan& plan)
    : num_leaves(plan.leaves()),
      num_sums(static_cast<int32_t>(plan.sums.size())),
      num_edges(0),
      num_weights(plan.num_weights),
      root_row(plan.root_row()),
      first_weight(plan.first_weight),
      has_default(static_cast<size_t>(plan.variables), 0) {
  for (const auto& edges : plan.sums) {
    for (const auto& rows : edges) {
      factors.insert(factors.end(), rows.begin(), rows.end());
      factor_start.push_back(static_cast<int32_t>(factors.size()));
      ++num_edges;
    }
    edge_start.push_back(num_edges);
  }
  factors.push_back(0);  // so that there is an address, even of nothing
  for (int32_t s = 0; s < num_sums; ++s) order.push_back(s), row.push_back(num_leaves + s);
}

void* Arrays::create() const {
  return function<Create>("semprola_plan_create")(
      num_leaves, num_sums, num_edges, num_weights, root_row, order.data(), row.data(), edge_start.data(),
      has_weights ? first_weight.data() : nullptr, factor_start.data(), factors.data(), has_default.data());
}

Handle::Handle(const Plan& plan, bool has_weights) {
  Arrays arrays(plan);
  arrays.has_weights = has_weights;
  plan_ = arrays.create();
  if (plan_ != nullptr) return;
  std::printf("a test's own plan was refused: %s\n", function<const char*()>("semprola_engine_error")());
  std::exit(2);
}

Handle::~Handle() { function<void(void*)>("semprola_plan_destroy")(plan_); }

namespace {

void add_sum(Plan& plan, std::vector<std::vector<int32_t>> edges) {
  plan.first_weight.push_back(edges.size() > 1 ? plan.num_weights : -1);
  if (edges.size() > 1) plan.num_weights += static_cast<int32_t>(edges.size());
  plan.sums.push_back(std::move(edges));
}

int32_t last_row(const Plan& plan) { return plan.root_row(); }

int32_t add_mixture(Plan& plan, int32_t depth, int32_t fan_in, int32_t& variable, std::mt19937& random) {
  const int32_t first = variable;
  std::vector<std::vector<int32_t>> edges;
  for (int32_t i = 0; i < fan_in + static_cast<int32_t>(random() % 3); ++i) {
    variable = first;
    std::vector<int32_t> rows;
    for (int part = 0; part < 3; ++part) {
      if (depth > 0 && part == 0) {
        rows.push_back(add_mixture(plan, depth - 1, fan_in - 1, variable, random));
      } else {
        rows.push_back(2 * variable++ + static_cast<int32_t>(random() % 2));
      }
    }
    edges.push_back(rows);
  }
  add_sum(plan, std::move(edges));
  return last_row(plan);
}

}  // namespace

Plan decision_diagram(int32_t variables, int32_t width, std::mt19937& random) {
  Plan plan;
  plan.variables = variables;
  std::vector<int32_t> below;
  for (int32_t v = variables - 1; v >= 0; --v) {
    std::vector<int32_t> here;
    for (int32_t i = 0; i < (v == 0 ? 1 : width); ++i) {
      std::vector<std::vector<int32_t>> edges;
      const unsigned branches = 1 + random() % 3;  // bit 0: zero, bit 1: one
      for (int32_t value = 0; value < 2; ++value) {
        if (((branches >> value) & 1) == 0) continue;
        std::vector<int32_t> rows{2 * v + value};
        if (!below.empty()) rows.push_back(below[random() % below.size()]);
        edges.push_back(rows);
      }
      add_sum(plan, std::move(edges));
      here.push_back(last_row(plan));
    }
    below = here;
  }
  return plan;
}

Plan mixture(int32_t depth, int32_t fan_in, std::mt19937& random) {
  Plan plan;
  plan.variables = 2 * depth + 3;
  int32_t variable = 0;
  add_mixture(plan, depth, fan_in, variable, random);
  return plan;
}

std::vector<Path> all_paths(const Plan& plan) {
  std::vector<std::vector<Path>> of_sum;
  for (size_t s = 0; s < plan.sums.size(); ++s) {
    std::vector<Path> paths;
    for (size_t e = 0; e < plan.sums[s].size(); ++e) {
      Path start;
      if (plan.first_weight[s] >= 0) start.weights.push_back(plan.first_weight[s] + static_cast<int32_t>(e));
      std::vector<Path> some{start};
      for (const int32_t row : plan.sums[s][e]) {
        if (row < plan.leaves()) {
          for (Path& path : some) path.literals.push_back(row);
          continue;
        }
        std::vector<Path> longer;
        for (const Path& path : some) {
          for (const Path& rest : of_sum[static_cast<size_t>(row - plan.leaves())]) {
            longer.push_back(path);
            longer.back().literals.insert(longer.back().literals.end(), rest.literals.begin(), rest.literals.end());
            longer.back().weights.insert(longer.back().weights.end(), rest.weights.begin(), rest.weights.end());
          }
        }
        some = std::move(longer);
      }
      paths.insert(paths.end(), some.begin(), some.end());
    }
    of_sum.push_back(std::move(paths));
  }
  return of_sum.back();
}

double path_value(const Path& path, const std::vector<double>& weights, const std::vector<double>& leaves,
                  int64_t columns, int64_t column) {
  double sum = 0;
  for (const int32_t w : path.weights) {
    if (!weights.empty()) sum += weights[static_cast<size_t>(w * columns + column)];
  }
  for (const int32_t literal : path.literals) sum += leaves[static_cast<size_t>(literal * columns + column)];
  return sum;
}

double log_sum(const std::vector<double>& values) {
  double top = kNever, sum = 0;
  for (const double value : values) top = std::max(top, value);
  if (top == kNever) return top;
  for (const double value : values) sum += std::exp(value - top);
  return top + std::log(sum);
}
