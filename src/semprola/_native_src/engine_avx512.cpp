// The kernels for processors with AVX-512. Everything between the pragmas is compiled for them, so nothing that other
// files share may be defined there. SEMPROLA_PLAIN_KERNELS leaves them out of a build.

#include "engine_plan.hpp"

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__) && !defined(SEMPROLA_PLAIN_KERNELS)
#define SEMPROLA_HAS_KERNELS
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#endif
#define SEMPROLA_AVX2
#define SEMPROLA_AVX512
namespace semprola {
namespace avx512 {
namespace {
#include "engine_ops.hpp"
#include "engine_kernels.hpp"
#include "engine_choose.hpp"
#include "engine_independent.hpp"
#include "engine_marginal.hpp"
#include "engine_tangent.hpp"
#include "engine_likelihood.hpp"
}  // namespace
}  // namespace avx512
}  // namespace semprola
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

const semprola::KernelSet* semprola::avx512_kernels() {
#if defined(SEMPROLA_HAS_KERNELS)
  return &avx512::set;
#else
  return nullptr;
#endif
}
