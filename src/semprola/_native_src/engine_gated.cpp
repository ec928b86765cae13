// The likelihood of states straight from features, as shown to Python. Returns 0, or 1 when memory ran out.

#include <algorithm>
#include <limits>
#include <vector>

#include "engine_dispatch.hpp"

namespace semprola {
namespace {

// Value or slopes of one state: calls part(row of the matrix, slope) for every logit that shares in its likelihood.
template <class T, class Part>
T gated_state(const GatedJob<T> &job, const Kernels<T> &k, int64_t b, int64_t component, std::vector<T> &logits,
              const Part &part) {
    const Circuit &c = *job.circuit;
    const int32_t *code = job.codes + b * job.most;
    const T *features = job.features.data + b * job.features.row_stride;
    T total = 0;
    for (int64_t j = 0; j < job.most && code[j] != -1; ++j) {
        if (code[j] < 0 || code[j] >= c.num_weights) return -std::numeric_limits<T>::infinity();
        const int32_t s = c.sum_of_weight[code[j]], fan_in = c.edge_start[s + 1] - c.edge_start[s];
        T top = -std::numeric_limits<T>::infinity(), sum = 0;
        for (int32_t i = 0; i < fan_in; ++i) {
            const int64_t row = (c.first_weight[s] + i) * job.components + component;
            logits[i] = job.bias[row] + k.dot(job.matrix.data + row * job.matrix.row_stride, features, job.width);
            top = std::max(top, logits[i]);
        }
        for (int32_t i = 0; i < fan_in; ++i) sum += std::exp(logits[i] - top);
        total += logits[code[j] - c.first_weight[s]] - top - std::log(sum);
        for (int32_t i = 0; i < fan_in; ++i) {
            const int32_t w = c.first_weight[s] + i;
            part(w * job.components + component, T(w == code[j]) - std::exp(logits[i] - top) / sum);
        }
    }
    return total;
}

template <class T> void gated(const GatedJob<T> &job, int threads) {
    const Circuit &c = *job.circuit;
    const Kernels<T> &k = wide_kernels(job.bias);
    if (!job.cotangent) {
        run_tiles(threads, job.batch, [&](const auto &next) {
            std::vector<T> logits(c.max_fan_in);
            for (int64_t b = next(); b >= 0; b = next())
                for (int64_t component = 0; component < job.components; ++component)
                    job.value[component * job.batch + b] =
                        gated_state(job, k, b, component, logits, [](int64_t, T) {});
        });
        return;
    }
    // states share rows of the matrix, whose gradient is therefore added up by one thread
    std::vector<T> logits(c.max_fan_in);
    for (int64_t b = 0; b < job.batch; ++b) {
        const T *features = job.features.data + b * job.features.row_stride;
        for (int64_t component = 0; component < job.components; ++component) {
            const T outer = job.cotangent[component * job.batch + b];
            if (outer == T(0) || job.codes[b * job.most] < -1) continue;
            gated_state(job, k, b, component, logits, [&](int64_t row, T slope) {
                const T part = slope * outer;
                job.bias_gradient[row] += part;
                k.add_scaled(job.matrix_gradient + row * job.width, features, part, job.width);
                k.add_scaled(job.features_gradient + b * job.width, job.matrix.data + row * job.matrix.row_stride, part,
                             job.width);
            });
        }
    }
}

}  // namespace
}  // namespace semprola

using namespace semprola;

#define SEMPROLA_ENGINE(T_, suffix)                                                                                     \
    SEMPROLA_EXPORT int semprola_gated_##suffix(const void *plan, SEMPROLA_M(T_, matrix), const T_ *bias,               \
                                                SEMPROLA_M(T_, features), int64_t width, const int32_t *codes,          \
                                                int64_t most, int64_t components, int64_t batch, T_ *value,             \
                                                const T_ *cotangent, T_ *matrix_gradient, T_ *bias_gradient,            \
                                                T_ *features_gradient, int threads) {                                   \
        return guarded([&] {                                                                                            \
            gated<T_>({&circuit_of(plan, true), SEMPROLA_AS_MATRIX(matrix), bias, SEMPROLA_AS_MATRIX(features), width,  \
                       codes, most, components, batch, value, cotangent, matrix_gradient, bias_gradient,                \
                       features_gradient}, threads);                                                                    \
        });                                                                                                             \
    }

SEMPROLA_ENGINE(float, float)
SEMPROLA_ENGINE(double, double)
