// The kernels against sums over all paths, for both number types, every instruction set and every width of tile.

#include <algorithm>
#include <cmath>
#include <map>

#include "library.hpp"
#include "plans.hpp"
#include "testing.hpp"

namespace {

// Numbers [rows, columns] in a matrix with its own strides; -inf here and there.
template <class T>
struct Numbers {
  Numbers(int64_t rows_, int64_t columns_, double holes, bool turned, std::mt19937& random)
      : rows(rows_),
        columns(columns_),
        row(turned ? 1 : columns_),
        column(turned ? rows_ : 1),
        exact(static_cast<size_t>(rows_ * columns_)),
        data(exact.size()) {
    std::normal_distribution<double> normal(0, 3);
    std::uniform_real_distribution<double> uniform(0, 1);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        const T number = T(uniform(random) < holes ? kNever : normal(random));
        exact[static_cast<size_t>(r * columns + c)] = double(number);
        data[static_cast<size_t>(r * row + c * column)] = number;
      }
    }
  }

  int64_t rows, columns, row, column;
  std::vector<double> exact;  // [rows, columns]
  std::vector<T> data;
};

template <class T>
constexpr double tolerance() {
  return sizeof(T) == 4 ? 2e-5 : 1e-12;
}

// Value, and shares of all weights and literals.
struct Expected {
  double value = kNever, best = kNever;
  std::vector<double> weights, literals;
};

Expected expected(const Plan& plan, const std::vector<Path>& paths, const std::vector<double>& weights,
                  const std::vector<double>& leaves, int64_t columns, int64_t column) {
  Expected all;
  all.weights.assign(static_cast<size_t>(plan.num_weights), 0.0);
  all.literals.assign(static_cast<size_t>(plan.leaves()), 0.0);
  std::vector<double> values;
  for (const Path& path : paths) values.push_back(path_value(path, weights, leaves, columns, column));
  all.value = log_sum(values);
  all.best = *std::max_element(values.begin(), values.end());
  for (size_t i = 0; i < paths.size() && all.value > kNever; ++i) {
    const double share = std::exp(values[i] - all.value);
    for (const int32_t w : paths[i].weights) all.weights[static_cast<size_t>(w)] += share;
    for (const int32_t literal : paths[i].literals) all.literals[static_cast<size_t>(literal)] += share;
  }
  return all;
}

template <class T>
void check_evaluate(const Plan& plan, const std::vector<Path>& paths, int64_t columns, double holes, bool weighted,
                    bool turned, std::mt19937& random) {
  const Handle handle(plan, weighted);
  const Numbers<T> leaves(plan.leaves(), columns, holes, turned, random);
  const Numbers<T> weights(weighted ? plan.num_weights : 0, columns, 0.05, turned, random);
  const T* const w = weighted ? weights.data.data() : nullptr;
  std::vector<T> value(static_cast<size_t>(columns)), again(value), best(value);
  std::vector<T> edges(static_cast<size_t>(plan.num_weights * columns)), literals(leaves.data.size());
  const auto evaluate = query<Evaluate<T>, T>("evaluate");
  const int64_t row = leaves.row, column = leaves.column;
  CHECK_EQUAL(evaluate(handle.get(), w, weights.row, weights.column, leaves.data.data(), row, column, columns,
                       value.data(), weighted ? edges.data() : nullptr, literals.data(), 3),
              0);
  CHECK_EQUAL(evaluate(handle.get(), w, weights.row, weights.column, leaves.data.data(), row, column, columns,
                       again.data(), nullptr, nullptr, 1),
              0);
  std::vector<T> used(leaves.data.size());
  CHECK_EQUAL((query<Maximize<T>, T>("maximize")(handle.get(), w, weights.row, weights.column, leaves.data.data(), row,
                                                 column, nullptr, columns, best.data(), nullptr, used.data(), 2)),
              0);
  for (int64_t c = 0; c < columns; ++c) {
    const Expected all = expected(plan, paths, weights.exact, leaves.exact, columns, c);
    const size_t i = static_cast<size_t>(c);
    CHECK_CLOSE(double(value[i]), all.value, tolerance<T>());
    CHECK_CLOSE(double(again[i]), all.value, tolerance<T>());
    CHECK_CLOSE(double(best[i]), all.best, tolerance<T>());
    CHECK((value[i] == T(kNever)) == (all.value == kNever));
    for (int64_t r = 0; r < plan.leaves(); ++r) {
      CHECK_CLOSE(double(literals[static_cast<size_t>(r * columns + c)]), all.literals[static_cast<size_t>(r)],
                  10 * tolerance<T>());
    }
    for (int64_t r = 0; weighted && r < plan.num_weights; ++r) {
      CHECK_CLOSE(double(edges[static_cast<size_t>(r * columns + c)]), all.weights[static_cast<size_t>(r)],
                  10 * tolerance<T>());
    }
  }
}

template <class T>
void check_all_shapes() {
  std::mt19937 random(7);
  for (int round = 0; round < 4; ++round) {
    const Plan plan = round % 2 == 0 ? decision_diagram(9, 4, random) : mixture(2, 4, random);
    const std::vector<Path> paths = all_paths(plan);
    for (const int64_t columns : {1, 2, 7, 16, 33, 70}) {
      for (const double holes : {0.0, 0.1, 0.6}) {
        check_evaluate<T>(plan, paths, columns, holes, round < 2, columns == 33, random);
      }
    }
  }
}

// A plan of one product of `length` literals.
Plan long_product(int32_t length) {
  Plan plan;
  plan.variables = length;
  std::vector<int32_t> rows;
  for (int32_t v = 0; v < length; ++v) rows.push_back(2 * v);
  plan.sums = {{rows}};
  plan.first_weight = {-1};
  return plan;
}

}  // namespace

TEST(kernels_float_agree_with_all_paths) { for_each_level(check_all_shapes<float>); }
TEST(kernels_double_agree_with_all_paths) { for_each_level(check_all_shapes<double>); }

// Far outside of what a float can hold, in both directions.
TEST(kernels_have_no_range) {
  for_each_level([] {
    const Plan plan = long_product(1000);
    const Handle handle(plan);
    for (const float each : {-80.0f, 80.0f, -3000.0f}) {
      std::vector<float> leaves(2000 * 20, each), value(20);
      CHECK_EQUAL((query<Evaluate<float>, float>("evaluate")(handle.get(), nullptr, 0, 0, leaves.data(), 20, 1, 20,
                                                             value.data(), nullptr, nullptr, 1)),
                  0);
      for (const float v : value) CHECK_CLOSE(double(v), 1000.0 * double(each), 1e-5);
    }
  });
}

TEST(kernels_show_what_is_not_a_number) {
  for_each_level([] {
    const Plan plan = long_product(40);
    const Handle handle(plan);
    std::vector<double> leaves(80 * 9, -1.0), value(9);
    leaves[9 * 6 + 4] = std::nan("");
    CHECK_EQUAL((query<Evaluate<double>, double>("evaluate")(handle.get(), nullptr, 0, 0, leaves.data(), 9, 1, 9,
                                                             value.data(), nullptr, nullptr, 1)),
                0);
    for (size_t i = 0; i < 9; ++i) CHECK(std::isnan(value[i]) == (i == 4));
  });
}

// What is possible, what a state uses, and what the codes say, against the paths.
TEST(kernels_support_and_codes) {
  for_each_level([] {
    std::mt19937 random(11);
    const Plan plan = decision_diagram(7, 3, random);
    const std::vector<Path> paths = all_paths(plan);
    const Handle handle(plan);
    const int64_t columns = 128;  // all states
    std::vector<float> rows(static_cast<size_t>(7 * columns)), leaves(static_cast<size_t>(14 * columns), float(kNever));
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t v = 0; v < 7; ++v) {
        const int64_t one = (c >> v) & 1;
        rows[static_cast<size_t>(v * columns + c)] = float(one);
        leaves[static_cast<size_t>((2 * v + one) * columns + c)] = 0;
      }
    }
    std::vector<uint8_t> some(static_cast<size_t>(columns)), flags(static_cast<size_t>(plan.num_weights * columns));
    CHECK_EQUAL((query<Support<float>, float>("support")(handle.get(), leaves.data(), columns, 1, columns, 2,
                                                         some.data(), flags.data(), 2)),
                0);
    int64_t longest = 0;
    const auto encode = query<Encode<float>, float>("encode");
    CHECK_EQUAL(encode(handle.get(), rows.data(), columns, 1, 7, columns, nullptr, 0, &longest), 0);
    std::vector<int32_t> codes(static_cast<size_t>(columns * longest), -7);
    CHECK_EQUAL(encode(handle.get(), rows.data(), columns, 1, 7, columns, codes.data(), longest, &longest), 0);
    for (int64_t c = 0; c < columns; ++c) {
      std::vector<int32_t> used;
      bool possible = false;
      for (const Path& path : paths) {
        if (path_value(path, {}, std::vector<double>(leaves.begin(), leaves.end()), columns, c) == kNever) continue;
        possible = true;
        used = path.weights;
      }
      CHECK_EQUAL(int(some[static_cast<size_t>(c)]), int(possible));
      std::vector<int32_t> code;
      for (int64_t j = 0; j < longest; ++j) code.push_back(codes[static_cast<size_t>(c * longest + j)]);
      if (!possible) {
        CHECK_EQUAL(code[0], -2);
        continue;
      }
      code.erase(std::remove(code.begin(), code.end(), -1), code.end());
      std::sort(code.begin(), code.end());
      std::sort(used.begin(), used.end());
      CHECK(code == used);
      for (int32_t w = 0; w < plan.num_weights; ++w) {
        const bool flag = flags[static_cast<size_t>(w * columns + c)] != 0;
        CHECK(flag == (std::find(used.begin(), used.end(), w) != used.end()));
      }
    }
  });
}

// Log-likelihoods of all states under local softmaxes, and their gradients, by rows and by codes.
TEST(kernels_likelihood_of_states) {
  for_each_level([] {
    std::mt19937 random(23);
    const Plan plan = decision_diagram(7, 3, random);
    const std::vector<Path> paths = all_paths(plan);
    const Handle handle(plan);
    const int64_t batch = 128, pairs = plan.num_weights / 2;  // every sum with weights has two
    const Numbers<double> logits(pairs, batch, 0.0, false, random);
    std::vector<double> rows(static_cast<size_t>(7 * batch)), value(static_cast<size_t>(batch));
    for (int64_t c = 0; c < batch; ++c) {
      for (int64_t v = 0; v < 7; ++v) rows[static_cast<size_t>(v * batch + c)] = double((c >> v) & 1);
    }
    int64_t longest = 0;
    const auto encode = query<Encode<double>, double>("encode");
    CHECK_EQUAL(encode(handle.get(), rows.data(), batch, 1, 7, batch, nullptr, 0, &longest), 0);
    std::vector<int32_t> codes(static_cast<size_t>(batch * longest));
    CHECK_EQUAL(encode(handle.get(), rows.data(), batch, 1, 7, batch, codes.data(), longest, &longest), 0);
    for (const bool by_codes : {false, true}) {
      std::vector<double> gradient(logits.data.size(), 7.0);
      CHECK_EQUAL(
          (query<Likelihood<double>, double>("likelihood")(
              handle.get(), logits.data.data(), batch, 1, rows.data(), batch, 1, by_codes ? codes.data() : nullptr,
              longest, 7, pairs, 1, 1, batch, value.data(), nullptr, gradient.data(), 2)),
          0);
      for (int64_t c = 0; c < batch; ++c) {
        double expected = kNever;
        std::vector<double> slopes(static_cast<size_t>(pairs), 0.0);
        for (const Path& path : paths) {
          const bool is = std::all_of(path.literals.begin(), path.literals.end(),
                                      [&](int32_t l) { return ((c >> (l / 2)) & 1) == l % 2; });
          if (!is) continue;
          expected = 0;
          for (const int32_t w : path.weights) {
            const double x = logits.exact[static_cast<size_t>(w / 2 * batch + c)], p = 1 / (1 + std::exp(-x));
            expected += w % 2 == 1 ? std::log(p) : std::log1p(-p);
            slopes[static_cast<size_t>(w / 2)] = (w % 2 == 1 ? 1 : 0) - p;
          }
        }
        CHECK_CLOSE(value[static_cast<size_t>(c)], expected, 1e-11);
        for (int64_t r = 0; r < pairs; ++r) {
          CHECK_CLOSE(gradient[static_cast<size_t>(r * batch + c)], slopes[static_cast<size_t>(r)], 1e-11);
        }
      }
    }
  });
}
