// What the functions for Python share: the choice of kernels and of the number of threads, and error handling.
#pragma once

#include "engine_arrange.hpp"
#include "engine_workers.hpp"
#include "export.h"

namespace semprola {

// The kernels for a number type, a plan and a number of columns, on this processor: for passes with a row for every
// sum, and for passes with slots.
const Kernels<float>& kernels_for(const float*, const Plan&, int64_t columns);
const Kernels<double>& kernels_for(const double*, const Plan&, int64_t columns);
const Kernels<float>& slot_kernels_for(const float*, const Plan&, int64_t columns);
const Kernels<double>& slot_kernels_for(const double*, const Plan&, int64_t columns);
// The kernels for passes with so many numbers for every column.
const Kernels<float>& kernels_of_size(const float*, int64_t numbers, int64_t columns);
const Kernels<double>& kernels_of_size(const double*, int64_t numbers, int64_t columns);
// The kernels for work that is not done in tiles.
const Kernels<float>& wide_kernels(const float*);
const Kernels<double>& wide_kernels(const double*);

// Starting a thread takes about ten microseconds, or hundreds if a core has to wake up. Work of less than half a
// millisecond stays on the caller's thread.
inline int useful_threads(int threads, const Plan& c, int64_t columns) {
  return (int64_t(c.num_edges) + c.num_leaves) * columns < 2000000 ? 1 : threads;
}

// What the C functions return; backends/native.py mirrors it.
enum Status : int { kFine = 0, kNoMemory = 1, kInternal = 2, kBadArgument = 3 };

// Turns the current exception into a status, and keeps its text for semprola_engine_error. Call it inside a catch
// block.
int report_failure() noexcept;

// Runs a C function's body; no exception may reach the caller.
template <class Body>
int guarded(const Body& body) noexcept {
  try {
    body();
    return kFine;
  } catch (...) {
    return report_failure();
  }
}

// Checks a caller's arguments: throws std::invalid_argument, so that nothing is read or written out of bounds.
void require(bool condition, const char* what);

// The plan behind a handle. A plan arranged for weighted edges supports every query; the other kind has fewer rows and
// supports only queries without weights.
inline const Plan& plan_of(const void* plan, bool needs_weights) {
  const auto* owned = static_cast<const OwnedPlan*>(plan);
  require(owned->has_weights || !needs_weights, "a plan without weights is asked about weights");
  return owned->view;
}

}  // namespace semprola

// A matrix as parameters of a C function, and these parameters as a matrix.
#define SEMPROLA_M(T_, name) const T_ *name, int64_t name##_row, int64_t name##_column
#define SEMPROLA_AS_MATRIX(name) {name, name##_row, name##_column}
