// Functions for Python: independent labels times the constraint. All return a Status (engine_dispatch.hpp).

#include <algorithm>

#include "engine_bits.hpp"
#include "engine_dispatch.hpp"

namespace semprola {
namespace {

// In which of up to 64 columns the states are in the support.
template <class T>
Word supported(const Kernels<T>& k, const IndependentJob<T>& job, int64_t first, int count, Word* memory) {
  const Plan& c = *job.referee;
  Bits bits{&c, memory, memory + c.num_rows()};
  Word* ones = bits.reach;  // not needed for anything else
  k.ones(job.states, first, count, 0, c.num_leaves / 2, ones);
  for (int32_t v = 0; v < c.num_leaves / 2; ++v) {
    bits.alive[2 * v] = ~ones[v];
    bits.alive[2 * v + 1] = ones[v];
  }
  bits_up(bits);
  return bits.alive[c.root_row];
}

template <class T>
void independent(const IndependentJob<T>& job, int threads) {
  const Plan& c = *job.plan;
  require(job.columns >= 0, "independent: a negative number of columns");
  require(!job.states.data || job.referee->num_leaves == c.num_leaves, "independent: plans of different variables");
  const Kernels<T>& k = slot_kernels_for(job.odds.data, c, job.columns);
  const int step = job.states.data ? kWordBits : k.lanes;
  const int64_t tiles = (job.columns + step - 1) / step;
  // after the tile: its states
  const int64_t numbers = k.independent_numbers(c, job.gradient != nullptr) + int64_t(k.lanes) * (c.num_leaves / 2);
  const int64_t words = job.states.data ? 2 * job.referee->num_rows() : 0;
  run_tiles(useful_threads(threads, c, job.columns), tiles, [&](const auto& next) {
    Scratch scratch(numbers * int64_t(sizeof(T))), memory(words * int64_t(sizeof(Word)));
    for (int64_t tile = next(); tile >= 0; tile = next()) {
      const int64_t first = tile * step;
      const int count = int(std::min<int64_t>(step, job.columns - first));
      const Word holds = job.states.data ? supported(k, job, first, count, memory.as<Word>()) : 0;
      for (int shift = 0; shift < count; shift += k.lanes)
        k.independent(job, first + shift, std::min(k.lanes, count - shift), scratch.as<T>(), holds >> shift);
    }
  });
}

template <class T>
void likeliest(const IndependentJob<T>& job, int threads) {
  const Plan& c = *job.plan;
  require(job.columns >= 0, "likeliest: a negative number of columns");
  // values; literals, odds and states of all variables
  const int64_t each = c.num_rows() + 2 * int64_t(c.num_leaves);
  const Kernels<T>& k = kernels_of_size(job.odds.data, each, job.columns);
  const int64_t numbers = k.lanes * each;
  run_tiles(useful_threads(threads, c, job.columns), (job.columns + k.lanes - 1) / k.lanes, [&](const auto& next) {
    Scratch scratch(numbers * int64_t(sizeof(T))), used(c.num_rows() * int64_t(sizeof(uint32_t)));
    for (int64_t tile = next(); tile >= 0; tile = next()) {
      const int64_t first = tile * k.lanes;
      k.likeliest(job, first, int(std::min<int64_t>(k.lanes, job.columns - first)), scratch.as<T>(),
                  used.as<uint32_t>());
    }
  });
}

// Multiplies rows by factors, apart from those whose value (if given) is minus infinity: these stay zero whatever the
// factor.
template <class T>
void scale_rows(T* numbers, int64_t rows, int64_t columns, const T* factors, int64_t stride, const T* values) {
  require(rows >= 0 && columns >= 0, "scale_rows: a negative number of rows or columns");
  for (int64_t row = 0; row < rows; ++row) {
    const T factor = factors[row * stride];
    if (factor == T(1) || (values && values[row] == -std::numeric_limits<T>::infinity())) continue;
    for (int64_t i = 0; i < columns; ++i) numbers[row * columns + i] *= factor;
  }
}

}  // namespace
}  // namespace semprola

using namespace semprola;

#define SEMPROLA_INDEPENDENT(T_, suffix)                                                                            \
  SEMPROLA_EXPORT int semprola_independent_##suffix(const void* plan, const void* referee, const uint8_t* kinds,    \
                                                    SEMPROLA_M(T_, odds), SEMPROLA_M(T_, states), int64_t columns,  \
                                                    T_* value, T_* gradient, int threads) {                         \
    return guarded([&] {                                                                                            \
      independent<T_>({&plan_of(plan, false), &plan_of(referee, false), kinds, SEMPROLA_AS_MATRIX(odds),            \
                       SEMPROLA_AS_MATRIX(states), columns, value, gradient},                                       \
                      threads);                                                                                     \
    });                                                                                                             \
  }                                                                                                                 \
  SEMPROLA_EXPORT int semprola_likeliest_##suffix(const void* plan, const uint8_t* kinds, SEMPROLA_M(T_, odds),     \
                                                  int64_t columns, T_* states, int threads) {                       \
    return guarded([&] {                                                                                            \
      const Plan& c = plan_of(plan, false);                                                                         \
      likeliest<T_>({&c, &c, kinds, SEMPROLA_AS_MATRIX(odds), {nullptr, 0, 0}, columns, states, nullptr}, threads); \
    });                                                                                                             \
  }                                                                                                                 \
  SEMPROLA_EXPORT int semprola_scale_rows_##suffix(T_* numbers, int64_t rows, int64_t columns, const T_* factors,   \
                                                   int64_t stride, const T_* values) {                              \
    return guarded([&] { scale_rows<T_>(numbers, rows, columns, factors, stride, values); });                       \
  }                                                                                                                 \
  SEMPROLA_EXPORT double semprola_largest_norm_##suffix(const T_* numbers, int64_t columns, int64_t rows) {         \
    return wide_kernels(numbers).largest_norm(numbers, columns, rows);                                              \
  }

SEMPROLA_INDEPENDENT(float, float)
SEMPROLA_INDEPENDENT(double, double)
