// Functions for Python: the likelihood of states, computed from a gate's features. Only the rows of the gate's last
// layer that a state uses are multiplied.

#include <algorithm>
#include <limits>
#include <vector>

#include "engine_dispatch.hpp"

namespace semprola {
namespace {

// The value of one state under one component; calls part(row of the matrix, slope) for every logit that it depends on.
template <class T, class Part>
T value_of_state(const GateJob<T>& job, const Kernels<T>& k, int64_t b, int64_t component, std::vector<T>& logits,
                 const Part& part) {
  const Plan& c = *job.plan;
  const int32_t* code = job.codes + b * job.most;
  const T* features = job.features.data + b * job.features.row_stride;
  T total = 0;
  for (int64_t j = 0; j < job.most && code[j] != -1; ++j) {
    if (code[j] < 0 || code[j] >= c.num_weights) return -std::numeric_limits<T>::infinity();
    const int32_t s = c.sum_of_weight[code[j]], fan_in = c.edge_start[s + 1] - c.edge_start[s];
    T top = -std::numeric_limits<T>::infinity(), sum = 0;
    for (int32_t i = 0; i < fan_in; ++i) {
      const int64_t w = int64_t(c.first_weight[s]) + i, row = job.row_of(w) * job.components + component;
      logits[i] = T(0);
      if (!job.is_zero(w))
        logits[i] = job.bias[row] + k.dot(job.matrix.data + row * job.matrix.row_stride, features, job.width);
      top = std::max(top, logits[i]);
    }
    for (int32_t i = 0; i < fan_in; ++i) sum += std::exp(logits[i] - top);
    total += logits[code[j] - c.first_weight[s]] - top - std::log(sum);
    for (int32_t i = 0; i < fan_in; ++i) {
      const int64_t w = int64_t(c.first_weight[s]) + i;
      if (job.is_zero(w)) continue;
      part(job.row_of(w) * job.components + component, T(w == code[j]) - std::exp(logits[i] - top) / sum);
    }
  }
  return total;
}

template <class T>
void values(const GateJob<T>& job, const Kernels<T>& k, int threads) {
  run_tiles(threads, job.batch, [&](const auto& next) {
    std::vector<T> logits(job.plan->max_fan_in);
    for (int64_t b = next(); b >= 0; b = next())
      for (int64_t component = 0; component < job.components; ++component)
        job.value[component * job.batch + b] = value_of_state(job, k, b, component, logits, [](int64_t, T) {});
  });
}

// States share rows of the matrix, so a single thread adds up its gradient.
template <class T>
void gradients(const GateJob<T>& job, const Kernels<T>& k) {
  std::vector<T> logits(job.plan->max_fan_in);
  for (int64_t b = 0; b < job.batch; ++b) {
    const T* features = job.features.data + b * job.features.row_stride;
    for (int64_t component = 0; component < job.components; ++component) {
      const T outer = job.cotangent[component * job.batch + b];
      if (outer == T(0) || job.codes[b * job.most] < -1) continue;
      value_of_state(job, k, b, component, logits, [&](int64_t row, T slope) {
        const T part = slope * outer;
        job.bias_gradient[row] += part;
        k.add_scaled(job.matrix_gradient + row * job.width, features, part, job.width);
        k.add_scaled(job.features_gradient + b * job.width, job.matrix.data + row * job.matrix.row_stride, part,
                     job.width);
      });
    }
  }
}

template <class T>
void gate(const GateJob<T>& job, int threads) {
  require(job.batch >= 0 && job.components >= 0 && job.most > 0 && job.width >= 0,
          "gate: a negative number of rows, components, codes or features");
  require(job.pairs >= 0 && 2 * job.pairs <= job.plan->num_weights, "gate: more pairs of weights than there are");
  require(job.matrix.column_stride == 1 && job.features.column_stride == 1, "gate: rows are not contiguous");
  const Kernels<T>& k = wide_kernels(job.bias);
  if (job.cotangent)
    gradients(job, k);
  else
    values(job, k, job.batch * job.most * job.width < 100000 ? 1 : threads);
}

}  // namespace
}  // namespace semprola

using namespace semprola;

#define SEMPROLA_ENGINE(T_, suffix)                                                                                   \
  SEMPROLA_EXPORT int semprola_gate_##suffix(                                                                         \
      const void* plan, SEMPROLA_M(T_, matrix), const T_* bias, SEMPROLA_M(T_, features), int64_t width,              \
      const int32_t* codes, int64_t most, int64_t pairs, int64_t components, int64_t batch, T_* value,                \
      const T_* cotangent, T_* matrix_gradient, T_* bias_gradient, T_* features_gradient, int threads) {              \
    return guarded([&] {                                                                                              \
      gate<T_>({&plan_of(plan, true), SEMPROLA_AS_MATRIX(matrix), bias, SEMPROLA_AS_MATRIX(features), width, codes,   \
                most, pairs, components, batch, value, cotangent, matrix_gradient, bias_gradient, features_gradient}, \
               threads);                                                                                              \
    });                                                                                                               \
  }

SEMPROLA_ENGINE(float, float)
SEMPROLA_ENGINE(double, double)
