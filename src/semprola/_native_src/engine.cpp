// What the engine shows to Python: plans, and one function a query and number type. All return 0, or 1 when memory ran
// out. Arrays belong to the caller.

#include "engine_plan.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "engine_bits.hpp"
#include "engine_workers.hpp"
#include "export.h"

namespace semprola {
namespace {

struct OwnedCircuit {
    Circuit view{};
    std::vector<int32_t> edge_start, first_weight, factor_start, factors, sum_of_weight, used_leaves;
};

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

const KernelSet &kernels() {
    int level = chosen_level.load(std::memory_order_relaxed);
    if (level < 0) chosen_level = level = best_level();
    return level == kAvx512 ? *avx512_kernels() : level == kAvx2 ? *avx2_kernels() : *plain_kernels();
}

constexpr int64_t kMostScratch = int64_t(512) << 20;

template <class T>
const Kernels<T> &fitting(const Kernels<T> &wide, const Kernels<T> &one, const Kernels<T> &narrow, const Circuit &c,
                          int64_t columns) {
    if (columns == 1) return one;
    return wide.scratch_numbers(c, true) * int64_t(sizeof(T)) > kMostScratch ? narrow : wide;
}

const Kernels<float> &kernels_for(const float *, const Circuit &c, int64_t columns) {
    const KernelSet &k = kernels();
    return fitting(k.wide_float, k.one_float, k.narrow_float, c, columns);
}

const Kernels<double> &kernels_for(const double *, const Circuit &c, int64_t columns) {
    const KernelSet &k = kernels();
    return fitting(k.wide_double, k.one_double, k.narrow_double, c, columns);
}

// Starting a thread costs some ten microseconds: small work stays on the caller's.
int useful_threads(int threads, const Circuit &c, int64_t columns) {
    return (int64_t(c.num_edges) + c.num_leaves) * columns < 200000 ? 1 : threads;
}

// Runs a C function's body; no exception may reach the caller.
template <class Body> int guarded(const Body &body) {
    try {
        body();
        return 0;
    } catch (...) {
        return 1;
    }
}

// Whether the literals of a column look like those of a state: then little of the circuit is worth evaluating.
template <class T> bool mostly_dead(const Matrix<const T> &leaves, int32_t num_leaves, int64_t column) {
    int32_t dead = 0;
    for (int32_t row = 0; row < num_leaves; ++row)
        dead += leaves.at(row, column) == -std::numeric_limits<T>::infinity();
    return 4 * int64_t(dead) > num_leaves;
}

template <class T> void evaluate(const EvaluateJob<T> &job, int threads) {
    const Circuit &c = *job.circuit;
    const Kernels<T> &k = kernels_for(job.leaves.data, c, job.columns);
    const int64_t numbers = k.scratch_numbers(c, job.leaf_flows != nullptr);
    // a word of columns makes one task: the literals of a state leave most of a circuit dead, which is found for all
    const int step = job.columns * int64_t(c.num_edges) > 200000 && job.columns >= kWordBits ? kWordBits : k.lanes;
    const int64_t tiles = (job.columns + step - 1) / step;
    run_tiles(useful_threads(threads, c, job.columns), tiles, [&](const auto &next) {
        Scratch scratch(numbers * int64_t(sizeof(T))), words(2 * c.num_rows() * int64_t(sizeof(Word)));
        Bits bits{&c, words.as<Word>(), words.as<Word>() + c.num_rows()};
        for (int64_t tile = next(); tile >= 0; tile = next()) {
            const int64_t first = tile * step;
            const int count = int(std::min<int64_t>(step, job.columns - first));
            const bool sparse = mostly_dead(job.leaves, c.num_leaves, first);
            if (sparse) {
                bits_of_leaves(job.leaves, first, count, bits);
                bits_up(bits);
                bits_down(bits, [](int32_t, Word) {});
            }
            for (int shift = 0; shift < count; shift += k.lanes)
                k.evaluate(job, first + shift, std::min(k.lanes, count - shift), scratch.as<T>(),
                           sparse ? &bits : nullptr, shift);
        }
    });
}

template <class T> void maximize(const MaximizeJob<T> &job, int threads) {
    const Circuit &c = *job.circuit;
    const Kernels<T> &k = kernels_for(job.leaves.data, c, job.columns);
    run_tiles(useful_threads(threads, c, job.columns), (job.columns + k.lanes - 1) / k.lanes, [&](const auto &next) {
        Scratch scratch(k.lanes * c.num_rows() * int64_t(sizeof(T))), used(c.num_rows() * int64_t(sizeof(uint32_t)));
        for (int64_t tile = next(); tile >= 0; tile = next()) {
            const int64_t first = tile * k.lanes;
            k.maximize(job, first, int(std::min<int64_t>(k.lanes, job.columns - first)), scratch.as<T>(),
                       used.as<uint32_t>());
        }
    });
}

template <class T> void sample(const SampleJob<T> &job, int threads) {
    const Circuit &c = *job.circuit;
    const Kernels<T> &k = kernels_for(job.leaves.data, c, job.columns);
    const int64_t numbers = k.scratch_numbers(c, false);
    run_tiles(useful_threads(threads, c, job.columns), (job.columns + k.lanes - 1) / k.lanes, [&](const auto &next) {
        Scratch scratch(numbers * int64_t(sizeof(T))), used(c.num_rows() * int64_t(sizeof(uint32_t)));
        for (int64_t tile = next(); tile >= 0; tile = next()) {
            const int64_t first = tile * k.lanes;
            k.sample(job, first, int(std::min<int64_t>(k.lanes, job.columns - first)), scratch.as<T>(),
                     used.as<uint32_t>());
        }
    });
}

// The states of one word of columns, and what they use of the circuit.
template <class T> class Likelihood {
   public:
    Likelihood(const LikelihoodJob<T> &job, const Kernels<T> &k)
        : job_(job), k_(k), c_(*job.circuit), alive_(4 * c_.num_rows()), used_(c_.num_weights),
          open_words_(c_.max_fan_in), total_(job.components * kWordBits) {
        Word *p = alive_.data();
        bits_ = {&c_, p, p + c_.num_rows()};
        open_ = {&c_, p + 2 * c_.num_rows(), p + 3 * c_.num_rows()};
        has_given_ = 2 * job.labels < c_.num_leaves;
    }

    void run(int64_t sample, int64_t first, int count) {
        first_ = first;
        count_ = count;
        const int64_t column = sample * job_.batch + first;
        if (has_given_) {
            bits_of_rows(job_.rows, column, count, job_.labels, true, open_);
            bits_up(open_);
        }
        std::fill(total_.begin(), total_.end(), T(0));
        load_cotangent(sample);
        const Word possible = job_.codes ? from_codes(column) : from_rows(column);
        if (job_.cotangent) return;
        for (int64_t component = 0; component < job_.components; ++component)
            for (int i = 0; i < count; ++i)
                job_.value[(sample * job_.components + component) * job_.batch + first + i] =
                    (possible >> i) & 1 ? total_[component * kWordBits + i] : -std::numeric_limits<T>::infinity();
    }

   private:
    Word from_rows(int64_t column) {
        bits_of_rows(job_.rows, column, count_, job_.labels, false, bits_);
        bits_up(bits_);
        bits_down(bits_, [&](int32_t s, Word here) {
            const int32_t w = c_.first_weight[s];
            if (w < 0) return;
            const int32_t begin = c_.edge_start[s], fan_in = c_.edge_start[s + 1] - begin;
            for (int32_t i = 0; i < fan_in; ++i) used_[w + i] = here & bits_.edge(begin + i);
            add(s, here);
        });
        return bits_.alive[c_.root_row];
    }

    Word from_codes(int64_t column) {
        Word possible = count_ == kWordBits ? ~Word(0) : (Word(1) << count_) - 1;
        touched_.clear();
        for (int i = 0; i < count_; ++i) {
            const int32_t *code = job_.codes + (column + i) * job_.width;
            for (int64_t j = 0; j < job_.width && code[j] != -1; ++j) {
                if (code[j] < 0 || code[j] >= c_.num_weights) {
                    possible &= ~(Word(1) << i);
                    break;
                }
                const int32_t s = c_.sum_of_weight[code[j]], w = c_.first_weight[s];
                Word any = 0;
                for (int32_t e = 0; e < c_.edge_start[s + 1] - c_.edge_start[s]; ++e) any |= used_[w + e];
                if (!any) touched_.push_back(s);
                used_[code[j]] |= Word(1) << i;
            }
        }
        for (const int32_t s : touched_) {
            const int32_t w = c_.first_weight[s], fan_in = c_.edge_start[s + 1] - c_.edge_start[s];
            Word here = 0;
            for (int32_t e = 0; e < fan_in; ++e) here |= used_[w + e];
            add(s, here & possible);
        }
        return possible;
    }

    // Adds a sum's part for every component, and forgets what was used of it.
    void add(int32_t s, Word here) {
        const int32_t w = c_.first_weight[s], begin = c_.edge_start[s], fan_in = c_.edge_start[s + 1] - begin;
        if (has_given_)
            for (int32_t i = 0; i < fan_in; ++i) open_words_[i] = open_.edge(begin + i);
        for (int64_t component = 0; component < job_.components; ++component)
            k_.likelihood(job_, s, here, used_.data() + w, has_given_ ? open_words_.data() : nullptr,
                          component * job_.batch + first_, count_, total_.data() + component * kWordBits,
                          job_.cotangent ? cotangent_.data() + component * kWordBits : nullptr);
        std::fill(used_.begin() + w, used_.begin() + w + fan_in, Word(0));
    }

    void load_cotangent(int64_t sample) {
        if (!job_.cotangent) return;
        cotangent_.assign(job_.components * kWordBits, T(0));
        for (int64_t component = 0; component < job_.components; ++component)
            for (int i = 0; i < count_; ++i)
                cotangent_[component * kWordBits + i] =
                    job_.cotangent[(sample * job_.components + component) * job_.batch + first_ + i];
    }

    const LikelihoodJob<T> &job_;
    const Kernels<T> &k_;
    const Circuit &c_;
    std::vector<Word> alive_, used_, open_words_;
    std::vector<int32_t> touched_;
    std::vector<T> total_, cotangent_;
    Bits bits_{}, open_{};
    bool has_given_ = false;
    int64_t first_ = 0;
    int count_ = 0;
};

template <class T> void likelihood(const LikelihoodJob<T> &job, int threads) {
    const Kernels<T> &k = kernels_for(job.logits.data, *job.circuit, job.batch);
    const int64_t tiles = (job.batch + kWordBits - 1) / kWordBits;
    run_tiles(useful_threads(threads, *job.circuit, job.samples * job.batch), tiles, [&](const auto &next) {
        Likelihood<T> worker(job, k);
        for (int64_t tile = next(); tile >= 0; tile = next()) {
            const int64_t first = tile * kWordBits;
            for (int64_t s = 0; s < job.samples; ++s)
                worker.run(s, first, int(std::min<int64_t>(kWordBits, job.batch - first)));
        }
    });
}

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
    const Kernels<T> &k = kernels_for(job.bias, c, job.width);
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

// What is possible (edges: 1) or used by a state (edges: 2), for bits from leaves.
template <class T>
void support(const Circuit &c, const Matrix<const T> &leaves, int64_t columns, int edges, uint8_t *some, uint8_t *flags,
             int threads) {
    const int64_t tiles = (columns + kWordBits - 1) / kWordBits;
    run_tiles(useful_threads(threads, c, columns / 8), tiles, [&](const auto &next) {
        Scratch words(2 * c.num_rows() * int64_t(sizeof(Word)));
        Bits bits{&c, words.as<Word>(), words.as<Word>() + c.num_rows()};
        for (int64_t tile = next(); tile >= 0; tile = next()) {
            const int64_t first = tile * kWordBits;
            const int count = int(std::min<int64_t>(kWordBits, columns - first));
            bits_of_leaves(leaves, first, count, bits);
            bits_up(bits);
            for (int i = 0; i < count; ++i) some[first + i] = (bits.alive[c.root_row] >> i) & 1;
            if (!edges) continue;
            if (edges == 2) bits_down(bits, [](int32_t, Word) {});
            for (int32_t s = 0; s < c.num_sums; ++s) {
                const int32_t w = c.first_weight[s];
                if (w < 0) continue;
                const Word here = edges == 2 ? bits.reach[c.num_leaves + s] : ~Word(0);
                for (int32_t e = c.edge_start[s]; e < c.edge_start[s + 1]; ++e) {
                    const Word word = here ? here & bits.edge(e) : 0;
                    uint8_t *out = flags + (w + (e - c.edge_start[s])) * columns + first;
                    for (int i = 0; i < count; ++i) out[i] = (word >> i) & 1;
                }
            }
        }
    });
}

// The active weights of each state as lists [columns, width]; with no lists, only how long the longest is.
template <class T>
int64_t encode(const Circuit &c, const Matrix<const T> &rows, int32_t labels, int64_t columns, int32_t *codes, int64_t width) {
    std::vector<Word> words(2 * c.num_rows());
    Bits bits{&c, words.data(), words.data() + c.num_rows()};
    int64_t longest = 1;
    for (int64_t first = 0; first < columns; first += kWordBits) {
        const int count = int(std::min<int64_t>(kWordBits, columns - first));
        bits_of_rows(rows, first, count, labels, false, bits);
        bits_up(bits);
        int64_t length[kWordBits] = {};
        bits_down(bits, [&](int32_t s, Word here) {
            const int32_t w = c.first_weight[s];
            if (w < 0) return;
            for (int32_t e = c.edge_start[s]; e < c.edge_start[s + 1]; ++e) {
                const Word through = here & bits.edge(e);
                for (int i = 0; through && i < count; ++i) {
                    if (!((through >> i) & 1)) continue;
                    if (codes && length[i] < width) codes[(first + i) * width + length[i]] = w + (e - c.edge_start[s]);
                    ++length[i];
                }
            }
        });
        for (int i = 0; i < count; ++i) {
            longest = std::max(longest, length[i]);
            if (!codes) continue;
            const bool possible = (bits.alive[c.root_row] >> i) & 1;
            for (int64_t j = possible ? length[i] : 0; j < width; ++j) codes[(first + i) * width + j] = possible ? -1 : -2;
        }
    }
    return longest;
}

}  // namespace
}  // namespace semprola

using namespace semprola;

SEMPROLA_EXPORT int semprola_engine_level() { return chosen_level < 0 ? best_level() : int(chosen_level); }

// Use at most this instruction set (0 plain, 1 AVX2, 2 AVX-512), for tests; -1: the best there is.
SEMPROLA_EXPORT void semprola_engine_set_level(int level) {
    const int best = best_level();
    chosen_level = level < 0 ? best : std::min(level, best);
}

SEMPROLA_EXPORT void *semprola_plan_create(int32_t num_leaves, int32_t num_sums, int32_t num_edges, int32_t num_weights,
                                           int32_t root_row, const int32_t *edge_start, const int32_t *first_weight,
                                           const int32_t *factor_start, const int32_t *factors) {
    try {
        auto plan = std::make_unique<OwnedCircuit>();
        plan->edge_start.assign(edge_start, edge_start + num_sums + 1);
        plan->first_weight.assign(first_weight, first_weight + num_sums);
        plan->factor_start.assign(factor_start, factor_start + num_edges + 1);
        plan->factors.assign(factors, factors + factor_start[num_edges]);
        plan->sum_of_weight.assign(num_weights, 0);
        int32_t most = 1;
        for (int32_t s = 0; s < num_sums; ++s) {
            const int32_t fan_in = edge_start[s + 1] - edge_start[s];
            most = std::max(most, fan_in);
            if (first_weight[s] < 0) continue;
            std::fill_n(plan->sum_of_weight.begin() + first_weight[s], fan_in, s);
        }
        std::vector<bool> used(num_leaves, false);
        for (const int32_t factor : plan->factors)
            if (factor < num_leaves) used[factor] = true;
        for (int32_t leaf = 0; leaf < num_leaves; ++leaf)
            if (used[leaf]) plan->used_leaves.push_back(leaf);
        plan->view = {num_leaves, num_sums, num_edges, num_weights, root_row, most, int32_t(plan->used_leaves.size()),
                      plan->edge_start.data(), plan->first_weight.data(), plan->factor_start.data(),
                      plan->factors.data(), plan->sum_of_weight.data(), plan->used_leaves.data()};
        return plan.release();
    } catch (...) {
        return nullptr;
    }
}

SEMPROLA_EXPORT void semprola_plan_destroy(void *plan) { delete static_cast<OwnedCircuit *>(plan); }

#define SEMPROLA_PLAN static_cast<const OwnedCircuit *>(plan)->view
#define SEMPROLA_AS_MATRIX(name) {name, name##_row, name##_column}

#define SEMPROLA_ENGINE(T_, suffix)                                                                                       \
    SEMPROLA_EXPORT int semprola_evaluate_##suffix(const void *plan, SEMPROLA_M(T_, weights), SEMPROLA_M(T_, leaves),     \
                                                   int64_t columns, T_ *value, T_ *edge_flows, T_ *leaf_flows,            \
                                                   int threads) {                                                         \
        return guarded([&] {                                                                                              \
            evaluate<T_>({&SEMPROLA_PLAN, SEMPROLA_AS_MATRIX(weights), SEMPROLA_AS_MATRIX(leaves), columns, value,        \
                          edge_flows, leaf_flows}, threads);                                                              \
        });                                                                                                               \
    }                                                                                                                     \
    SEMPROLA_EXPORT int semprola_maximize_##suffix(const void *plan, SEMPROLA_M(T_, weights), SEMPROLA_M(T_, leaves),     \
                                                   int64_t columns, T_ *value, T_ *leaf_flows, int threads) {             \
        return guarded([&] {                                                                                              \
            maximize<T_>({&SEMPROLA_PLAN, SEMPROLA_AS_MATRIX(weights), SEMPROLA_AS_MATRIX(leaves), columns, value,        \
                          leaf_flows}, threads);                                                                          \
        });                                                                                                               \
    }                                                                                                                     \
    SEMPROLA_EXPORT int semprola_sample_##suffix(const void *plan, SEMPROLA_M(T_, weights), SEMPROLA_M(T_, leaves),       \
                                                 int64_t columns, const int64_t *sample_start, const int64_t *samples,    \
                                                 int64_t count, uint64_t seed, T_ *leaf_flows, int threads) {             \
        return guarded([&] {                                                                                              \
            sample<T_>({&SEMPROLA_PLAN, SEMPROLA_AS_MATRIX(weights), SEMPROLA_AS_MATRIX(leaves), columns, sample_start,   \
                        samples, count, seed, leaf_flows}, threads);                                                      \
        });                                                                                                               \
    }                                                                                                                     \
    SEMPROLA_EXPORT int semprola_likelihood_##suffix(                                                                     \
        const void *plan, SEMPROLA_M(T_, logits), SEMPROLA_M(T_, rows), const int32_t *codes, int64_t width,              \
        int32_t labels, int64_t samples, int64_t components, int64_t batch, T_ *value, const T_ *cotangent, T_ *gradient, \
        int threads) {                                                                                                    \
        return guarded([&] {                                                                                              \
            likelihood<T_>({&SEMPROLA_PLAN, SEMPROLA_AS_MATRIX(logits), SEMPROLA_AS_MATRIX(rows), codes, width, labels,   \
                            samples, components, batch, value, cotangent, gradient}, threads);                            \
        });                                                                                                               \
    }                                                                                                                     \
    SEMPROLA_EXPORT int semprola_gated_##suffix(const void *plan, SEMPROLA_M(T_, matrix), const T_ *bias,                 \
                                                SEMPROLA_M(T_, features), int64_t width, const int32_t *codes,            \
                                                int64_t most, int64_t components, int64_t batch, T_ *value,               \
                                                const T_ *cotangent, T_ *matrix_gradient, T_ *bias_gradient,              \
                                                T_ *features_gradient, int threads) {                                     \
        return guarded([&] {                                                                                              \
            gated<T_>({&SEMPROLA_PLAN, SEMPROLA_AS_MATRIX(matrix), bias, SEMPROLA_AS_MATRIX(features), width, codes,      \
                       most, components, batch, value, cotangent, matrix_gradient, bias_gradient, features_gradient},     \
                      threads);                                                                                           \
        });                                                                                                               \
    }                                                                                                                     \
    SEMPROLA_EXPORT int semprola_support_##suffix(const void *plan, SEMPROLA_M(T_, leaves), int64_t columns, int edges,   \
                                                  uint8_t *some, uint8_t *flags, int threads) {                           \
        return guarded(                                                                                                   \
            [&] { support<T_>(SEMPROLA_PLAN, SEMPROLA_AS_MATRIX(leaves), columns, edges, some, flags, threads); });       \
    }                                                                                                                     \
    SEMPROLA_EXPORT int semprola_encode_##suffix(const void *plan, SEMPROLA_M(T_, rows), int32_t labels, int64_t columns, \
                                                 int32_t *codes, int64_t width, int64_t *longest) {                       \
        return guarded([&] {                                                                                              \
            *longest = encode<T_>(SEMPROLA_PLAN, SEMPROLA_AS_MATRIX(rows), labels, columns, codes, width);                \
        });                                                                                                               \
    }
#define SEMPROLA_M(T_, name) const T_ *name, int64_t name##_row, int64_t name##_column

SEMPROLA_ENGINE(float, float)
SEMPROLA_ENGINE(double, double)
