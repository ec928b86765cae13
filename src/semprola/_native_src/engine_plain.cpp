// The kernels for any processor: NEON instructions on ARM, SSE2 on x86-64, by GCC's and Clang's vectors of 16 bytes.

#include "engine_plan.hpp"

namespace semprola {
namespace plain {
namespace {
#include "engine_ops.hpp"
#include "engine_kernels.hpp"
#include "engine_choose.hpp"
#include "engine_independent.hpp"
#include "engine_marginal.hpp"
#include "engine_tangent.hpp"
#include "engine_likelihood.hpp"
}  // namespace
}  // namespace plain
}  // namespace semprola

const semprola::KernelSet* semprola::plain_kernels() { return &plain::set; }
