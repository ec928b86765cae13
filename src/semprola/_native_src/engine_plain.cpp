// The kernels for any processor (on ARM, compilers make NEON instructions of their loops).

#include "engine_plan.hpp"

namespace semprola {
namespace plain {
namespace {
#include "engine_ops.hpp"
#include "engine_kernels.hpp"
#include "engine_choose.hpp"
#include "engine_likelihood.hpp"
}  // namespace
}  // namespace plain
}  // namespace semprola

const semprola::KernelSet *semprola::plain_kernels() { return &plain::set; }
