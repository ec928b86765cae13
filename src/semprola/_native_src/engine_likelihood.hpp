// The likelihood of states: log-softmax terms of the sums that they reach. Included once for each instruction set, after
// engine_kernels.hpp.

// Turns a matrix of 64 by 64 bits over its diagonal: halves, then quarters, and so on, change places.
SEMPROLA_INLINE void transpose(Word *words) {
    Word mask = 0x00000000ffffffffu;
    for (int width = 32; width; width >>= 1, mask ^= mask << width)
        for (int i = 0; i < kWordBits; i = ((i | width) + 1) & ~width) {
            const Word moved = ((words[i] >> width) ^ words[i | width]) & mask;
            words[i] ^= moved << width;
            words[i | width] ^= moved;
        }
}

// Which of up to 64 numbers, side by side in memory, are ones.
template <class O> SEMPROLA_INLINE Word ones_of(const typename O::T *p, int count) {
    using T = typename O::T;
    const typename O::V half = O::set(T(0.5));
    Word word = 0;
    int i = 0;
    for (; i + O::N <= count; i += O::N) word |= Word(O::greater(O::load(p + i), half)) << i;
    for (; i < count; ++i) word |= Word(p[i] > T(0.5)) << i;
    return word;
}

// For each variable, in which of up to 64 states it is one.
template <class O> void ones(const Matrix<const typename O::T> &rows, int64_t first, int count, int32_t from,
                             int32_t variables, Word *result) {
    using T = typename O::T;
    if (rows.column_stride == 1) {
        for (int32_t v = from; v < variables; ++v) result[v] = ones_of<O>(&rows.at(v, first), count);
        return;
    }
    for (int32_t v = from; v < variables; v += kWordBits) {
        const int width = variables - v < kWordBits ? variables - v : kWordBits;
        Word block[kWordBits] = {};
        for (int i = 0; i < count; ++i) {
            const T *state = &rows.at(v, first + i);
            if (rows.row_stride == 1) {
                block[i] = ones_of<O>(state, width);
            } else {
                for (int j = 0; j < width; ++j) block[i] |= Word(state[j * rows.row_stride] > T(0.5)) << j;
            }
        }
        transpose(block);
        for (int j = 0; j < width; ++j) result[v + j] = block[j];
    }
}

// The logarithm of a product, and what else there is to add to it. Logarithms cost more than all the rest, so they are
// taken of the product as a whole.
template <class O> struct LogProduct {
    using T = typename O::T;
    using V = typename O::V;
    V added = O::set(T(0)), mantissa = O::set(T(1)), exponent = O::set(T(0));
    int factors = 0;

    // Factors are between 1 and the largest fan-in.
    SEMPROLA_INLINE void divide(V factor, int32_t largest) {
        mantissa = O::mul(mantissa, factor);
        factors += largest <= 2 ? 1 : 31;
        if (factors < 90) return;
        V power;
        O::split(mantissa, mantissa, power);
        exponent = O::add(exponent, power);
        factors = 0;
    }

    SEMPROLA_INLINE V value() const {
        V m, power;
        O::split(mantissa, m, power);
        const V logarithm = O::fma(O::add(exponent, power), O::set(T(0.69314718055994530942)), log_positive<O>(m));
        return O::sub(added, logarithm);
    }
};

// Sixteen (or so) states of one component, all sums that they reach.
template <class O, bool Given> struct LikelihoodTile {
    using T = typename O::T;
    using V = typename O::V;
    static constexpr int N = O::N;

    const LikelihoodJob<T> &job;
    const Word *used, *open;
    const int64_t first;
    const int shift, width;
    const V cotangent;
    LogProduct<O> total;

    SEMPROLA_INLINE V logit(int64_t w) const {
        const V x = load<O>(job.logits, w, first, width);
        return Given ? O::select(uint32_t(open[w] >> shift), x, O::set(-T(HUGE_VAL))) : x;
    }

    SEMPROLA_INLINE void slope(int64_t w, V part) const {
        T *p = job.gradient + w * job.components * job.batch + first;
        if (width == N) return O::store(p, job.samples == 1 ? part : O::add(O::load(p), part));
        T numbers[N];
        O::store(numbers, part);
        for (int j = 0; j < width; ++j) p[j] += numbers[j];
    }

    // log p = min(lead, 0) - log(1 + exp(-|lead|)) for the lead of the chosen edge over the other.
    SEMPROLA_INLINE void pair(int64_t w, uint32_t lanes) {
        const V zero = O::set(T(0)), one = O::set(T(1));
        const uint32_t second = uint32_t(used[w + 1] >> shift);
        const V above = O::sub(logit(w + 1), logit(w)), below = O::sub(zero, above);
        const V lead = O::select(second, above, below);
        const V small = exp_negative<O>(O::sub(zero, O::max(above, below)));
        const V sum = O::add(one, small);
        total.added = O::add(total.added, O::select(lanes, O::sub(lead, O::max(lead, zero)), zero));
        total.divide(O::select(lanes, sum, one), 2);
        if (!job.gradient) return;
        // the other's probability is what the chosen edge gains and the other loses
        const V other = O::mul(O::select(O::greater(lead, zero), small, one), O::inverse(sum));
        const V gain = O::select(lanes, O::mul(other, cotangent), zero), loss = O::sub(zero, gain);
        slope(w, O::select(second, loss, gain));
        slope(w + 1, O::select(second, gain, loss));
    }

    SEMPROLA_INLINE void many(int64_t w, int32_t fan_in, uint32_t lanes) {
        const V zero = O::set(T(0)), one = O::set(T(1));
        V top = logit(w), chosen = top, sum = zero;
        for (int32_t i = 1; i < fan_in; ++i) {
            const V x = logit(w + i);
            top = O::max(x, top);
            chosen = O::select(uint32_t(used[w + i] >> shift), x, chosen);
        }
        for (int32_t i = 0; i < fan_in; ++i) sum = O::add(sum, exp_negative<O>(O::sub(logit(w + i), top)));
        total.added = O::add(total.added, O::select(lanes, O::sub(chosen, top), zero));
        total.divide(O::select(lanes, sum, one), fan_in);
        if (!job.gradient) return;
        const V scale = O::div(O::set(T(-1)), sum);
        for (int32_t i = 0; i < fan_in; ++i) {
            V part = O::mul(exp_negative<O>(O::sub(logit(w + i), top)), scale);
            part = O::select(uint32_t(used[w + i] >> shift), O::add(part, one), part);
            slope(w + i, O::select(lanes, O::mul(part, cotangent), zero));
        }
    }
};

// All sums that up to 64 states reach, for one component.
template <class O, bool Given>
void likelihood_of(const LikelihoodJob<typename O::T> &job, const Reached *reached, int64_t number, const Word *used,
                   const Word *open, int64_t first, int count, typename O::T *total, const typename O::T *cotangent) {
    const Circuit &c = *job.circuit;
    for (int shift = 0; shift < count; shift += O::N) {
        const int width = count - shift < O::N ? count - shift : O::N;
        LikelihoodTile<O, Given> tile{job,   used,  open,
                                      first + shift, shift, width,
                                      cotangent ? O::load(cotangent + shift) : O::set(typename O::T(1)), {}};
        for (int64_t i = 0; i < number; ++i) {
            const uint32_t lanes = uint32_t((reached[i].states >> shift) & ((Word(1) << O::N) - 1));
            if (!lanes) continue;
            const int32_t s = reached[i].sum, fan_in = c.edge_start[s + 1] - c.edge_start[s];
            if (fan_in == 2 && !Given) tile.pair(c.first_weight[s], lanes);
            else tile.many(c.first_weight[s], fan_in, lanes);
        }
        if (total) O::store(total + shift, tile.total.value());
    }
}

template <class O>
void likelihood_word(const LikelihoodJob<typename O::T> &job, const Reached *reached, int64_t number, const Word *used,
                     const Word *open, int64_t first, int count, typename O::T *total,
                     const typename O::T *cotangent) {
    if (open) likelihood_of<O, true>(job, reached, number, used, open, first, count, total, cotangent);
    else likelihood_of<O, false>(job, reached, number, used, open, first, count, total, cotangent);
}

template <class O> void scale_columns(typename O::T *numbers, int64_t rows, int64_t columns, const typename O::T *factors) {
    for (int64_t row = 0; row < rows; ++row) {
        typename O::T *p = numbers + row * columns;
        int64_t i = 0;
        for (; i + O::N <= columns; i += O::N) O::store(p + i, O::mul(O::load(p + i), O::load(factors + i)));
        for (; i < columns; ++i) p[i] *= factors[i];
    }
}

template <class O> typename O::T dot(const typename O::T *a, const typename O::T *b, int64_t length) {
    using T = typename O::T;
    int64_t i = 0;
    typename O::V sum = O::set(T(0));
    for (; i + O::N <= length; i += O::N) sum = O::fma(O::load(a + i), O::load(b + i), sum);
    T lanes[O::N], total = 0;
    O::store(lanes, sum);
    for (const T lane : lanes) total += lane;
    for (; i < length; ++i) total += a[i] * b[i];
    return total;
}

template <class O> void add_scaled(typename O::T *to, const typename O::T *a, typename O::T factor, int64_t length) {
    int64_t i = 0;
    const typename O::V f = O::set(factor);
    for (; i + O::N <= length; i += O::N) O::store(to + i, O::fma(f, O::load(a + i), O::load(to + i)));
    for (; i < length; ++i) to[i] += factor * a[i];
}

template <class O> constexpr Kernels<typename O::T> kernels_of() {
    return {O::N,           scratch_numbers<O>, evaluate_tile<O>,   maximize_tile<O>, sample_tile<O>,
            ones<O>,        likelihood_word<O>, scale_columns<O>,   dot<O>,           add_scaled<O>};
}

const KernelSet set = {kernels_of<WideFloat>(),    kernels_of<OneFloat>(),  kernels_of<NarrowFloat>(),
                       kernels_of<WideDouble>(),   kernels_of<OneDouble>(), kernels_of<NarrowDouble>()};
