// What the functions shown to Python share: which kernels, how many threads, what becomes of exceptions.
#pragma once

#include "engine_arrange.hpp"
#include "engine_workers.hpp"
#include "export.h"

namespace semprola {

// The kernels for a number type, a plan and a number of columns, on this processor.
const Kernels<float>& kernels_for(const float*, const Plan&, int64_t columns);
const Kernels<double>& kernels_for(const double*, const Plan&, int64_t columns);
// The kernels for work that does not go by tiles.
const Kernels<float>& wide_kernels(const float*);
const Kernels<double>& wide_kernels(const double*);

// Starting a thread takes some ten microseconds, and a core that has to wake up for it some hundreds: what is done in
// half a millisecond stays on the caller's thread.
inline int useful_threads(int threads, const Plan& c, int64_t columns) {
  return (int64_t(c.num_edges) + c.num_leaves) * columns < 2000000 ? 1 : threads;
}

// What the C functions return; Python's side of the seam mirrors it.
enum Status : int { kFine = 0, kNoMemory = 1, kInternal = 2, kBadArgument = 3 };

// Turns the exception that is being handled into a status, and keeps its text for semprola_engine_error. Call inside a
// catch block.
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

// For what a caller passes: throws std::invalid_argument, so that nothing is read or written out of bounds.
void require(bool condition, const char* what);

// The plan behind a handle. One that was arranged for edges with weights answers every question; the other kind has
// fewer rows, and is for questions without weights alone.
inline const Plan& plan_of(const void* plan, bool needs_weights) {
  const auto* owned = static_cast<const OwnedPlan*>(plan);
  require(owned->has_weights || !needs_weights, "a plan without weights is asked about weights");
  return owned->view;
}

}  // namespace semprola

// A matrix as parameters of a C function, and these as a matrix.
#define SEMPROLA_M(T_, name) const T_ *name, int64_t name##_row, int64_t name##_column
#define SEMPROLA_AS_MATRIX(name) {name, name##_row, name##_column}
