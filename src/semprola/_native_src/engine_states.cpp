// What states use of a circuit, and their likelihood, as shown to Python. All return 0, or 1 when memory ran out.

#include <algorithm>
#include <vector>

#include "engine_bits.hpp"
#include "engine_dispatch.hpp"

namespace semprola {
namespace {

// Literals' bits from the variables' values. Those before `labels` may be left open: then both literals are possible.
template <class T>
void bits_of_rows(const Kernels<T> &k, const Matrix<const T> &rows, int64_t first, int count, int32_t labels, bool open,
                  Bits &bits) {
    const Word all = count == kWordBits ? ~Word(0) : (Word(1) << count) - 1;
    const int32_t variables = bits.c->num_leaves / 2, from = open ? labels : 0;
    Word *ones = bits.reach;  // not needed yet
    k.ones(rows, first, count, from, variables, ones);
    for (int32_t v = 0; v < variables; ++v) {
        bits.alive[2 * v] = v < from ? all : all & ~ones[v];
        bits.alive[2 * v + 1] = v < from ? all : ones[v];
    }
}

// The states of one word of columns, and what they use of the circuit.
template <class T> class Likelihood {
   public:
    Likelihood(const LikelihoodJob<T> &job, const Kernels<T> &k)
        : job_(job), k_(k), c_(*job.circuit), words_(4 * c_.num_rows() * int64_t(sizeof(Word))),
          used_(c_.num_weights * int64_t(sizeof(Word))), total_(job.components * kWordBits),
          cotangent_(job.components * kWordBits, T(1)) {
        Word *p = words_.template as<Word>();
        bits_ = {&c_, p, p + c_.num_rows()};
        open_ = {&c_, p + 2 * c_.num_rows(), p + 3 * c_.num_rows()};
        has_given_ = 2 * job.labels < c_.num_leaves;
        if (has_given_) open_words_.resize(c_.num_weights);
        if (job.codes) states_.resize(c_.num_sums);
        reached_.resize(c_.num_sums);
    }

    void run(int64_t sample, int64_t first, int count) {
        first_ = first;
        count_ = count;
        const int64_t column = sample * job_.batch + first;
        if (has_given_) {
            bits_of_rows(k_, job_.rows, column, count, job_.labels, true, open_);
            bits_up(open_);
        }
        number_ = 0;
        const Word possible = job_.codes ? from_codes(column) : from_rows(column);
        load_cotangent(sample);
        if (job_.codes) clear_unreached();
        for (int64_t component = 0; component < job_.components; ++component)
            k_.likelihood(job_, reached_.data(), number_, used_.template as<Word>(),
                          has_given_ ? open_words_.data() : nullptr, component * job_.batch + first, count,
                          job_.value ? total_.data() + component * kWordBits : nullptr,
                          cotangent_.data() + component * kWordBits);
        if (!job_.value) return;
        for (int64_t component = 0; component < job_.components; ++component)
            for (int i = 0; i < count; ++i)
                job_.value[(sample * job_.components + component) * job_.batch + first + i] =
                    (possible >> i) & 1 ? total_[component * kWordBits + i] : -std::numeric_limits<T>::infinity();
    }

   private:
    Word from_rows(int64_t column) {
        bits_of_rows(k_, job_.rows, column, count_, job_.labels, false, bits_);
        return c_.decides ? decide() : search();
    }

    // Literals tell which edge of a sum is used: one pass downward. A state is impossible if they rule out all edges of
    // a sum that it reaches.
    Word decide() {
        Word *used = used_.template as<Word>(), *reach = bits_.reach;
        std::fill(reach + c_.num_leaves, reach + c_.num_rows(), Word(0));
        const Word all = count_ == kWordBits ? ~Word(0) : (Word(1) << count_) - 1;
        Word possible = reach[c_.root_row] = all;
        for (int32_t s = c_.num_sums - 1; s >= 0; --s) {
            const Word here = reach[c_.num_leaves + s];
            if (!here) {
                clear(s);
                continue;
            }
            Word left = here;
            const int32_t w = c_.first_weight[s], begin = c_.edge_start[s], end = c_.edge_start[s + 1];
            if (w >= 0) add(s, here);
            for (int32_t e = begin; e < end; ++e) {
                const int32_t from = c_.factor_start[e], to = c_.factor_start[e + 1];
                Word through = here;
                for (int32_t f = from; f < to; ++f)
                    if (c_.factors[f] < c_.num_leaves) through &= bits_.alive[c_.factors[f]];
                left &= ~through;
                if (w >= 0) used[w + (e - begin)] = through;
                for (int32_t f = from; f < to; ++f) reach[c_.factors[f]] |= through;
            }
            possible &= ~left;
        }
        for (int64_t i = 0; possible != all && i < number_; ++i) reached_[i].states &= possible;
        return possible;
    }

    // Exactly one edge of a sum that a state reaches is part of it, so the last takes what the others leave.
    Word search() {
        bits_up(bits_);
        Word *used = used_.template as<Word>(), *reach = bits_.reach;
        std::fill(reach + c_.num_leaves, reach + c_.num_rows(), Word(0));
        reach[c_.root_row] = bits_.alive[c_.root_row];
        for (int32_t s = c_.num_sums - 1; s >= 0; --s) {
            Word left = reach[c_.num_leaves + s];
            if (!left) {
                clear(s);
                continue;
            }
            const int32_t w = c_.first_weight[s], begin = c_.edge_start[s], end = c_.edge_start[s + 1];
            if (w >= 0) add(s, left);
            for (int32_t e = begin; e < end; ++e) {
                const Word through = e + 1 < end ? left & bits_.edge(e) : left;
                left &= ~through;
                if (w >= 0) used[w + (e - begin)] = through;
                for (int32_t f = c_.factor_start[e]; f < c_.factor_start[e + 1]; ++f) reach[c_.factors[f]] |= through;
            }
        }
        return bits_.alive[c_.root_row];
    }

    Word from_codes(int64_t column) {
        Word possible = count_ == kWordBits ? ~Word(0) : (Word(1) << count_) - 1;
        Word *used = used_.template as<Word>();
        for (int i = 0; i < count_; ++i) {
            const int32_t *code = job_.codes + (column + i) * job_.width;
            for (int64_t j = 0; j < job_.width && code[j] != -1; ++j) {
                if (code[j] < 0 || code[j] >= c_.num_weights) {
                    possible &= ~(Word(1) << i);
                    break;
                }
                const int32_t s = c_.sum_of_weight[code[j]], w = c_.first_weight[s];
                if (!states_[s]) {
                    add(s, 0);
                    std::fill_n(used + w, c_.edge_start[s + 1] - c_.edge_start[s], Word(0));
                }
                states_[s] |= Word(1) << i;
                used[code[j]] |= Word(1) << i;
            }
        }
        for (int64_t i = 0; i < number_; ++i) {
            reached_[i].states = states_[reached_[i].sum] & possible;
            states_[reached_[i].sum] = 0;
        }
        return possible;
    }

    void add(int32_t s, Word states) {
        reached_[number_++] = {s, states};
        if (!has_given_) return;
        const int32_t w = c_.first_weight[s];
        for (int32_t e = c_.edge_start[s]; e < c_.edge_start[s + 1]; ++e)
            open_words_[w + (e - c_.edge_start[s])] = open_.edge(e);
    }

    // Gradients of logits that play no part: what the kernel does not write.
    void clear(int32_t s) {
        const int32_t w = c_.first_weight[s], fan_in = c_.edge_start[s + 1] - c_.edge_start[s];
        if (w < 0 || !job_.gradient || job_.samples > 1) return;
        const int64_t from = job_.paired ? w / 2 : w, to = job_.paired ? from + 1 : from + fan_in;
        for (int64_t row = from * job_.components; row < to * job_.components; ++row)
            std::fill_n(job_.gradient + row * job_.batch + first_, count_, T(0));
    }

    void clear_unreached() {
        for (int64_t i = 0; i < number_; ++i) states_[reached_[i].sum] = 1;
        for (int32_t s = 0; s < c_.num_sums; ++s)
            if (!states_[s]) clear(s);
        for (int64_t i = 0; i < number_; ++i) states_[reached_[i].sum] = 0;
    }

    void load_cotangent(int64_t sample) {
        if (!job_.cotangent) return;
        for (int64_t component = 0; component < job_.components; ++component)
            for (int i = 0; i < count_; ++i)
                cotangent_[component * kWordBits + i] =
                    job_.cotangent[(sample * job_.components + component) * job_.batch + first_ + i];
    }

    const LikelihoodJob<T> &job_;
    const Kernels<T> &k_;
    const Circuit &c_;
    Scratch words_, used_;            // used_: the states that use each weight, where its sum is reached
    std::vector<Word> open_words_;    // the states whose given values leave each weight possible
    std::vector<Word> states_;        // that use each sum, while codes are at work; zero otherwise
    std::vector<Reached> reached_;    // the first number_ of them
    int64_t number_ = 0;
    std::vector<T> total_, cotangent_;
    Bits bits_{}, open_{};
    bool has_given_ = false;
    int64_t first_ = 0;
    int count_ = 0;
};

template <class T> void likelihood(const LikelihoodJob<T> &job, int threads) {
    const Kernels<T> &k = wide_kernels(job.logits.data);
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
int64_t encode(const Circuit &c, const Matrix<const T> &rows, int32_t labels, int64_t columns, int32_t *codes,
               int64_t width) {
    const Kernels<T> &k = wide_kernels(rows.data);
    std::vector<Word> words(2 * c.num_rows());
    Bits bits{&c, words.data(), words.data() + c.num_rows()};
    int64_t longest = 1;
    for (int64_t first = 0; first < columns; first += kWordBits) {
        const int count = int(std::min<int64_t>(kWordBits, columns - first));
        bits_of_rows(k, rows, first, count, labels, false, bits);
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

// Whether all numbers are zero or one.
template <class T> bool is_binary(const T *numbers, int64_t length) {
    constexpr int64_t kBlock = 1024;
    for (int64_t first = 0; first < length; first += kBlock) {
        int wrong = 0;  // no branch inside, so that compilers make vector instructions of the loop
        for (int64_t i = first; i < std::min(length, first + kBlock); ++i) wrong |= (numbers[i] != 0) & (numbers[i] != 1);
        if (wrong) return false;
    }
    return true;
}

// Multiplies columns by factors; with a stride of zero, all by the same.
template <class T> void scale(T *numbers, int64_t rows, int64_t columns, const T *factors, int64_t stride) {
    bool ones = true;
    for (int64_t i = 0; i < (stride ? columns : 1); ++i) ones = ones && factors[i] == T(1);
    if (ones) return;
    const std::vector<T> repeated(stride ? 0 : columns, factors[0]);
    wide_kernels(factors).scale_columns(numbers, rows, columns, stride ? factors : repeated.data());
}

}  // namespace
}  // namespace semprola

using namespace semprola;

#define SEMPROLA_ENGINE(T_, suffix)                                                                                       \
    SEMPROLA_EXPORT int semprola_likelihood_##suffix(                                                                     \
        const void *plan, SEMPROLA_M(T_, logits), SEMPROLA_M(T_, rows), const int32_t *codes, int64_t width,              \
        int32_t labels, int paired, int64_t samples, int64_t components, int64_t batch, T_ *value, const T_ *cotangent,   \
        T_ *gradient, int threads) {                                                                                      \
        return guarded([&] {                                                                                              \
            likelihood<T_>({&circuit_of(plan, true), SEMPROLA_AS_MATRIX(logits), SEMPROLA_AS_MATRIX(rows), codes, width,  \
                            labels, paired != 0, samples, components, batch, value, cotangent, gradient}, threads);       \
        });                                                                                                               \
    }                                                                                                                     \
    SEMPROLA_EXPORT int semprola_support_##suffix(const void *plan, SEMPROLA_M(T_, leaves), int64_t columns, int edges,   \
                                                  uint8_t *some, uint8_t *flags, int threads) {                           \
        return guarded([&] {                                                                                              \
            support<T_>(circuit_of(plan, true), SEMPROLA_AS_MATRIX(leaves), columns, edges, some, flags, threads);        \
        });                                                                                                               \
    }                                                                                                                     \
    SEMPROLA_EXPORT int semprola_encode_##suffix(const void *plan, SEMPROLA_M(T_, rows), int32_t labels, int64_t columns, \
                                                 int32_t *codes, int64_t width, int64_t *longest) {                       \
        return guarded([&] {                                                                                              \
            *longest = encode<T_>(circuit_of(plan, true), SEMPROLA_AS_MATRIX(rows), labels, columns, codes, width);       \
        });                                                                                                               \
    }                                                                                                                     \
    SEMPROLA_EXPORT int semprola_scale_##suffix(T_ *numbers, int64_t rows, int64_t columns, const T_ *factors,            \
                                                int64_t stride) {                                                         \
        return guarded([&] { scale<T_>(numbers, rows, columns, factors, stride); });                                      \
    }                                                                                                                     \
    SEMPROLA_EXPORT int semprola_is_binary_##suffix(const T_ *numbers, int64_t length) {                                  \
        return is_binary<T_>(numbers, length);                                                                            \
    }

SEMPROLA_ENGINE(float, float)
SEMPROLA_ENGINE(double, double)
