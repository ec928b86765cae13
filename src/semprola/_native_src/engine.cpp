// Functions for Python: plans, values, best states and samples, one function per query and number type. All return a
// Status (engine_dispatch.hpp). The caller owns the arrays and is responsible for their shapes; counts and indices are
// checked here.

#include <algorithm>
#include <vector>

#include "engine_bits.hpp"
#include "engine_check.hpp"
#include "engine_dispatch.hpp"

namespace semprola {
namespace {

// Whether the literals of a column look like those of a state, so that most of the plan need not be evaluated.
template <class T>
bool mostly_dead(const Plan& c, const Matrix<const T>& leaves, int64_t column) {
  constexpr int32_t kLooks = 64;
  const int32_t step = std::max(1, c.num_leaves / kLooks) | 1;  // odd: literals of both signs
  int32_t dead = 0, seen = 0;
  for (int32_t row = 0; row < c.num_leaves; row += step, ++seen)
    dead += leaves.at(row, column) == -std::numeric_limits<T>::infinity();
  return 5 * dead > 2 * seen;  // half are dead in a state, a quarter if half of the labels are observed
}

template <class T>
void evaluate(const EvaluateJob<T>& job, int threads) {
  const Plan& c = *job.plan;
  require(job.columns >= 0, "evaluate: a negative number of columns");
  const bool flows = job.leaf_flows != nullptr;
  const Kernels<T>&dense = slot_kernels_for(job.leaves.data, c, job.columns),
        &sparse = kernels_for(job.leaves.data, c, job.columns);
  const int64_t numbers = std::max(dense.slot_numbers(c, flows), sparse.scratch_numbers(c, flows));
  // a task is one word of columns: if they are states, one bit-parallel pass finds the dead part of the plan for all
  const int step = job.columns * int64_t(c.num_edges) > 200000 && job.columns >= kWordBits
                       ? kWordBits
                       : std::max(dense.lanes, sparse.lanes);
  const int64_t tiles = (job.columns + step - 1) / step;
  run_tiles(useful_threads(threads, c, job.columns), tiles, [&](const auto& next) {
    Scratch scratch(numbers * int64_t(sizeof(T))), words(2 * c.num_rows() * int64_t(sizeof(Word)));
    Bits bits{&c, words.as<Word>(), words.as<Word>() + c.num_rows()};
    for (int64_t tile = next(); tile >= 0; tile = next()) {
      const int64_t first = tile * step;
      const int count = int(std::min<int64_t>(step, job.columns - first));
      const bool dead = mostly_dead(c, job.leaves, first);
      if (dead) {
        bits_of_leaves(job.leaves, first, count, bits);
        bits_up(bits);
        bits_down(bits, [](int32_t, Word) {});
      }
      const Kernels<T>& k = dead ? sparse : dense;
      for (int shift = 0; shift < count; shift += k.lanes)
        k.evaluate(job, first + shift, std::min(k.lanes, count - shift), scratch.as<T>(), dead ? &bits : nullptr,
                   shift);
    }
  });
}

template <class T>
void tangent(const TangentJob<T>& job, int threads) {
  const Plan& c = *job.plan;
  require(job.columns >= 0, "tangent: a negative number of columns");
  require(!job.weights.data == !job.d_weights.data && !job.weights.data == !job.edge_changes,
          "tangent: weights, their changes and the changes of their flows go together");
  const Kernels<T>& k = kernels_for(job.leaves.data, c, job.columns);
  const int64_t tiles = (job.columns + k.lanes - 1) / k.lanes;
  run_tiles(useful_threads(threads, c, job.columns), tiles, [&](const auto& next) {
    Scratch scratch(k.tangent_numbers(c) * int64_t(sizeof(T)));
    for (int64_t tile = next(); tile >= 0; tile = next()) {
      const int64_t first = tile * k.lanes;
      k.tangent(job, first, int(std::min<int64_t>(k.lanes, job.columns - first)), scratch.as<T>());
    }
  });
}

template <class T>
void marginal(const MarginalJob<T>& job, int threads) {
  const Plan& c = *job.plan;
  require(job.components >= 0 && job.batch >= 0, "marginal: a negative number of components or rows");
  require(job.pairs >= 0 && 2 * job.pairs <= c.num_weights, "marginal: more pairs of weights than there are");
  const Kernels<T>& k = kernels_for(job.logits.data, c, job.batch);
  const int64_t tiles = (job.batch + k.lanes - 1) / k.lanes;
  run_tiles(useful_threads(threads, c, job.components * job.batch), job.components * tiles, [&](const auto& next) {
    Scratch scratch(k.marginal_numbers(c) * int64_t(sizeof(T)));
    for (int64_t tile = next(); tile >= 0; tile = next()) {
      const int64_t first = tile % tiles * k.lanes;
      const int count = int(std::min<int64_t>(k.lanes, job.batch - first));
      k.marginal(job, tile / tiles, first, count, scratch.as<T>());
    }
  });
}

template <class T>
void maximize(const MaximizeJob<T>& job, int threads) {
  const Plan& c = *job.plan;
  require(job.columns >= 0, "maximize: a negative number of columns");
  const Kernels<T>& k = kernels_of_size(job.leaves.data, c.num_rows(), job.columns);
  run_tiles(useful_threads(threads, c, job.columns), (job.columns + k.lanes - 1) / k.lanes, [&](const auto& next) {
    Scratch scratch(k.lanes * c.num_rows() * int64_t(sizeof(T))), used(c.num_rows() * int64_t(sizeof(uint32_t)));
    for (int64_t tile = next(); tile >= 0; tile = next()) {
      const int64_t first = tile * k.lanes;
      k.maximize(job, first, int(std::min<int64_t>(k.lanes, job.columns - first)), scratch.as<T>(),
                 used.as<uint32_t>());
    }
  });
}

template <class T>
void sample(SampleJob<T> job, const int64_t* column, int threads) {
  const Plan& c = *job.plan;
  require(job.columns >= 0 && job.samples >= 0, "sample: a negative number of columns or samples");
  const Kernels<T>& k = kernels_for(job.leaves.data, c, job.columns);
  // sorted by column, by counting
  std::vector<int64_t> start(job.columns + 2, 0), order(job.samples);
  for (int64_t i = 0; i < job.samples; ++i) {
    require(column[i] >= 0 && column[i] < job.columns, "sample: a column that does not exist");
    ++start[column[i] + 2];
  }
  for (int64_t i = 2; i < job.columns + 2; ++i) start[i] += start[i - 1];
  for (int64_t i = 0; i < job.samples; ++i) order[start[column[i] + 1]++] = i;
  job.sample_start = start.data();
  job.sample = order.data();
  const int64_t numbers = k.scratch_numbers(c, c.keeps_shares());
  run_tiles(useful_threads(threads, c, job.columns), (job.columns + k.lanes - 1) / k.lanes, [&](const auto& next) {
    Scratch scratch(numbers * int64_t(sizeof(T))), used(c.num_rows() * int64_t(sizeof(uint32_t)));
    for (int64_t tile = next(); tile >= 0; tile = next()) {
      const int64_t first = tile * k.lanes;
      k.sample(job, first, int(std::min<int64_t>(k.lanes, job.columns - first)), scratch.as<T>(), used.as<uint32_t>());
    }
  });
}

}  // namespace
}  // namespace semprola

using namespace semprola;

// See GivenPlan. Returns null if the arrays do not fit together or memory ran out; semprola_engine_error says which.
SEMPROLA_EXPORT void* semprola_plan_create(int32_t num_leaves, int32_t num_sums, int32_t num_edges, int32_t num_weights,
                                           int32_t root_row, const int32_t* order, const int32_t* row,
                                           const int32_t* edge_start, const int32_t* first_weight,
                                           const int32_t* factor_start, const int32_t* factors,
                                           const uint8_t* has_default) {
  void* plan = nullptr;
  guarded([&] {
    const GivenPlan given{num_leaves, num_sums,   num_edges,    num_weights,  root_row, order,
                          row,        edge_start, first_weight, factor_start, factors,  has_default};
    check_plan(given);
    plan = new OwnedPlan(arrange(given));
  });
  return plan;
}

SEMPROLA_EXPORT void semprola_plan_destroy(void* plan) { delete static_cast<OwnedPlan*>(plan); }

#define SEMPROLA_ENGINE(T_, suffix)                                                                                    \
  SEMPROLA_EXPORT int semprola_evaluate_##suffix(const void* plan, SEMPROLA_M(T_, weights), SEMPROLA_M(T_, leaves),    \
                                                 int64_t columns, T_* value, T_* edge_flows, T_* leaf_flows,           \
                                                 int threads) {                                                        \
    return guarded([&] {                                                                                               \
      evaluate<T_>({&plan_of(plan, weights || edge_flows), SEMPROLA_AS_MATRIX(weights), SEMPROLA_AS_MATRIX(leaves),    \
                    columns, value, edge_flows, leaf_flows},                                                           \
                   threads);                                                                                           \
    });                                                                                                                \
  }                                                                                                                    \
  SEMPROLA_EXPORT int semprola_tangent_##suffix(const void* plan, SEMPROLA_M(T_, weights), SEMPROLA_M(T_, leaves),     \
                                                SEMPROLA_M(T_, d_weights), SEMPROLA_M(T_, d_leaves), int64_t columns,  \
                                                T_* edge_changes, T_* leaf_changes, int threads) {                     \
    return guarded([&] {                                                                                               \
      tangent<T_>({&plan_of(plan, weights || edge_changes), SEMPROLA_AS_MATRIX(weights), SEMPROLA_AS_MATRIX(leaves),   \
                   SEMPROLA_AS_MATRIX(d_weights), SEMPROLA_AS_MATRIX(d_leaves), columns, edge_changes, leaf_changes},  \
                  threads);                                                                                            \
    });                                                                                                                \
  }                                                                                                                    \
  SEMPROLA_EXPORT int semprola_marginal_##suffix(const void* plan, SEMPROLA_M(T_, logits), SEMPROLA_M(T_, observed),   \
                                                 int64_t pairs, int64_t components, int64_t batch, T_* value,          \
                                                 T_* gradient, int threads) {                                          \
    return guarded([&] {                                                                                               \
      marginal<T_>({&plan_of(plan, true), SEMPROLA_AS_MATRIX(logits), SEMPROLA_AS_MATRIX(observed), pairs, components, \
                    batch, value, gradient},                                                                           \
                   threads);                                                                                           \
    });                                                                                                                \
  }                                                                                                                    \
  SEMPROLA_EXPORT int semprola_maximize_##suffix(const void* plan, SEMPROLA_M(T_, weights), SEMPROLA_M(T_, leaves),    \
                                                 const T_* defaults, int64_t columns, T_* value, T_* states,           \
                                                 T_* literals, int threads) {                                          \
    return guarded([&] {                                                                                               \
      maximize<T_>({&plan_of(plan, weights), SEMPROLA_AS_MATRIX(weights), SEMPROLA_AS_MATRIX(leaves), defaults,        \
                    columns, value, states, literals},                                                                 \
                   threads);                                                                                           \
    });                                                                                                                \
  }                                                                                                                    \
  SEMPROLA_EXPORT int semprola_sample_##suffix(const void* plan, SEMPROLA_M(T_, weights), SEMPROLA_M(T_, leaves),      \
                                               const T_* defaults, int64_t columns, const int64_t* column,             \
                                               int64_t samples, uint64_t seed, T_* states, int threads) {              \
    return guarded([&] {                                                                                               \
      sample<T_>({&plan_of(plan, weights), SEMPROLA_AS_MATRIX(weights), SEMPROLA_AS_MATRIX(leaves), defaults, columns, \
                  nullptr, nullptr, samples, seed, states},                                                            \
                 column, threads);                                                                                     \
    });                                                                                                                \
  }

SEMPROLA_ENGINE(float, float)
SEMPROLA_ENGINE(double, double)
