// Chooses the instruction set and the width of tiles.

#include "engine_dispatch.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <stdexcept>

namespace semprola {
namespace {

// The text of the last failure on this thread. Its size is fixed: there may be no memory for a string.
thread_local char last_error[512];
thread_local int last_status = kFine;

int fail(Status status, const char* text) noexcept {
  std::snprintf(last_error, sizeof(last_error), "%s", text);
  return last_status = status;
}

enum Level { kPlain = 0, kAvx2 = 1, kAvx512 = 2 };

int best_level() {
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
  __builtin_cpu_init();
  if (avx512_kernels() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return kAvx512;
  if (avx2_kernels() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kAvx2;
#endif
  return kPlain;
}

std::atomic<int> chosen_level{-1};

const KernelSet& kernels() {
  int level = chosen_level.load(std::memory_order_relaxed);
  if (level < 0) chosen_level = level = best_level();
  return level == kAvx512 ? *avx512_kernels() : level == kAvx2 ? *avx2_kernels() : *plain_kernels();
}

constexpr int64_t kMostScratch = int64_t(512) << 20, kCached = int64_t(768) << 10, kCachedSlots = int64_t(1536) << 10,
                  kMostBroad = int64_t(64) << 20, kMostMaxima = int64_t(8) << 20;

template <class T>
const Kernels<T>& fitting(const Kernels<T>& wide, const Kernels<T>& broad, const Kernels<T>& one,
                          const Kernels<T>& narrow, const Plan& c, int64_t columns) {
  if (columns == 1) return one;
  if (columns > wide.lanes && broad.scratch_numbers(c, true) * int64_t(sizeof(T)) <= kCached) return broad;
  return wide.scratch_numbers(c, true) * int64_t(sizeof(T)) > kMostScratch ? narrow : wide;
}

// For maxima, which have one number per row and little to do with it, even tiles that only a slow cache holds may be
// wide.
template <class T>
const Kernels<T>& fitting_numbers(const Kernels<T>& wide, const Kernels<T>& broad, const Kernels<T>& one,
                                  const Kernels<T>& narrow, int64_t numbers, int64_t columns) {
  if (columns == 1) return one;
  if (columns > wide.lanes && broad.lanes * numbers * int64_t(sizeof(T)) <= kMostMaxima) return broad;
  return wide.lanes * numbers * int64_t(sizeof(T)) > kMostScratch ? narrow : wide;
}

// Shares are read and written in order, so only slots have to be in a cache. Larger buffers are not kept between calls.
template <class T>
const Kernels<T>& fitting_slots(const Kernels<T>& wide, const Kernels<T>& broad, const Kernels<T>& one,
                                const Kernels<T>& narrow, const Plan& c, int64_t columns) {
  if (columns == 1) return one;
  const int64_t slots = 3 * broad.lanes * int64_t(c.num_slots) * int64_t(sizeof(T));
  const int64_t all = broad.slot_numbers(c, true) * int64_t(sizeof(T));
  if (columns > wide.lanes && slots <= kCachedSlots && all <= kMostBroad) return broad;
  return wide.slot_numbers(c, true) * int64_t(sizeof(T)) > kMostScratch ? narrow : wide;
}

}  // namespace

int report_failure() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return fail(kNoMemory, "no memory left");
  } catch (const std::length_error&) {
    return fail(kNoMemory, "an array would be larger than memory can be");
  } catch (const std::invalid_argument& error) {
    return fail(kBadArgument, error.what());
  } catch (const std::exception& error) {
    return fail(kInternal, error.what());
  } catch (...) {
    return fail(kInternal, "an exception without a text");
  }
}

void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

const Kernels<float>& kernels_for(const float*, const Plan& c, int64_t columns) {
  const KernelSet& k = kernels();
  return fitting(k.wide_float, k.broad_float, k.one_float, k.narrow_float, c, columns);
}

const Kernels<double>& kernels_for(const double*, const Plan& c, int64_t columns) {
  const KernelSet& k = kernels();
  return fitting(k.wide_double, k.broad_double, k.one_double, k.narrow_double, c, columns);
}

const Kernels<float>& kernels_of_size(const float*, int64_t numbers, int64_t columns) {
  const KernelSet& k = kernels();
  return fitting_numbers(k.wide_float, k.broad_float, k.one_float, k.narrow_float, numbers, columns);
}

const Kernels<double>& kernels_of_size(const double*, int64_t numbers, int64_t columns) {
  const KernelSet& k = kernels();
  return fitting_numbers(k.wide_double, k.broad_double, k.one_double, k.narrow_double, numbers, columns);
}

const Kernels<float>& slot_kernels_for(const float*, const Plan& c, int64_t columns) {
  const KernelSet& k = kernels();
  return fitting_slots(k.wide_float, k.broad_float, k.one_float, k.narrow_float, c, columns);
}

const Kernels<double>& slot_kernels_for(const double*, const Plan& c, int64_t columns) {
  const KernelSet& k = kernels();
  return fitting_slots(k.wide_double, k.broad_double, k.one_double, k.narrow_double, c, columns);
}

const Kernels<float>& wide_kernels(const float*) { return kernels().wide_float; }
const Kernels<double>& wide_kernels(const double*) { return kernels().wide_double; }

}  // namespace semprola

// What went wrong in the last failed call on this thread, that is, one that returned a nonzero status or no plan.
SEMPROLA_EXPORT const char* semprola_engine_error() { return semprola::last_error; }
SEMPROLA_EXPORT int semprola_engine_status() { return semprola::last_status; }

SEMPROLA_EXPORT int semprola_engine_level() {
  const int level = semprola::chosen_level;
  return level < 0 ? semprola::best_level() : level;
}

// Use at most this instruction set (0 plain, 1 AVX2, 2 AVX-512), for tests; -1 for the best available.
SEMPROLA_EXPORT void semprola_engine_set_level(int level) {
  const int best = semprola::best_level();
  semprola::chosen_level = level < 0 ? best : std::min(level, best);
}

// Version of the functions' parameters, so that a library built from other sources is not mistaken for this one.
SEMPROLA_EXPORT int semprola_engine_interface() { return 10; }
