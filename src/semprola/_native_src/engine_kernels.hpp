// The passes over one tile of columns. Included once for each instruction set, after engine_ops.hpp.

// A tile's columns of one row; columns past the end repeat the last.
template <class O> inline typename O::V load(const Matrix<const typename O::T> &a, int64_t row, int64_t first, int count) {
    using T = typename O::T;
    const T *p = a.data + row * a.row_stride + first * a.column_stride;
    if (a.column_stride == 1 && count == O::N) return O::load(p);
    T lanes[O::N];
    for (int i = 0; i < O::N; ++i) lanes[i] = p[(i < count ? i : count - 1) * a.column_stride];
    return O::load(lanes);
}

template <class O> inline void store(typename O::T *p, typename O::V a, int count) {
    if (count == O::N) return O::store(p, a);
    typename O::T lanes[O::N];
    O::store(lanes, a);
    for (int i = 0; i < count; ++i) p[i] = lanes[i];
}

// How much scratch memory (numbers) a thread needs for a tile.
template <class O> inline int64_t scratch_numbers(const Circuit &c, bool shares) {
    return O::N * (2 * c.num_rows() + 2 * int64_t(c.max_fan_in) + (shares ? int64_t(c.num_sums) + c.num_edges : 0));
}

template <class O> struct Tile {
    using T = typename O::T;
    using V = typename O::V;
    static constexpr int N = O::N;

    Tile(const Circuit &circuit, T *scratch, bool keep_shares) : c(circuit) {
        mantissa = scratch;
        exponent = mantissa + N * c.num_rows();
        edge_mantissa = exponent + N * c.num_rows();
        edge_exponent = edge_mantissa + N * int64_t(c.max_fan_in);
        inverse = keep_shares ? edge_exponent + N * int64_t(c.max_fan_in) : nullptr;
        share = keep_shares ? inverse + N * int64_t(c.num_sums) : nullptr;
    }

    const Circuit &c;
    T *mantissa, *exponent;            // [rows, N]
    T *edge_mantissa, *edge_exponent;  // of the sum at hand
    T *inverse;                        // one over the sum of a sum's shares [sums, N]
    T *share;                          // of every edge, unnormalised [edges, N]

    // The product of an edge's factors.
    inline void product(int32_t e, V &m, V &x) const {
        const int32_t *f = c.factors + c.factor_start[e];
        const int32_t count = c.factor_start[e + 1] - c.factor_start[e];
        if (count == 0) {
            m = O::set(T(1));
            x = O::set(T(0));
            return;
        }
        m = O::load(mantissa + N * int64_t(f[0]));
        x = O::load(exponent + N * int64_t(f[0]));
        for (int32_t i = 1; i < count; ++i) {
            m = O::mul(m, O::load(mantissa + N * int64_t(f[i])));
            x = O::add(x, O::load(exponent + N * int64_t(f[i])));
            if ((i & 31) == 31) {  // mantissas are below two: 32 of them stay far from overflow
                V power;
                O::split(m, m, power);
                x = O::add(x, power);
            }
        }
    }

    inline void weigh(const Matrix<const T> &weights, int32_t w, int64_t first, int count, V &m, V &x) const {
        V wm, wx;
        exp_parts<O>(load<O>(weights, w, first, count), wm, wx);
        m = O::mul(m, wm);
        x = O::add(x, wx);
    }

    void leaves(const Matrix<const T> &values, int64_t first, int count) {
        for (int32_t i = 0; i < c.num_used_leaves; ++i) {
            const int32_t row = c.used_leaves[i];
            V m, x;
            exp_parts<O>(load<O>(values, row, first, count), m, x);
            put(row, m, x);
        }
    }

    inline void put(int64_t row, V m, V x) {
        V power;
        O::split(m, m, power);
        O::store(mantissa + N * row, m);
        O::store(exponent + N * row, O::add(x, power));
    }

    // Values of all sums; with `bits`, only of those that are reached (bits: which of 64 columns, from `shift` on).
    template <bool Keep, bool Sparse>
    void up(const Matrix<const T> &weights, int64_t first, int count, const Bits *bits, int shift) {
        const V low = O::set(T(-1e30));
        const Word lanes = (Word(1) << N) - 1;
        for (int32_t s = 0; s < c.num_sums; ++s) {
            const int32_t begin = c.edge_start[s], end = c.edge_start[s + 1];
            const int64_t row = int64_t(c.num_leaves) + s;
            if (Sparse && !((bits->reach[row] >> shift) & lanes)) continue;
            const int32_t w = weights.data ? c.first_weight[s] : -1;
            if (end - begin == 2 && !Sparse) {
                V m0, x0, m1, x1;
                product(begin, m0, x0);
                product(begin + 1, m1, x1);
                if (w >= 0) {
                    weigh(weights, w, first, count, m0, x0);
                    weigh(weights, w + 1, first, count, m1, x1);
                }
                const V top = O::max(O::max(x0, x1), low);
                m0 = O::scale(m0, O::sub(x0, top));
                m1 = O::scale(m1, O::sub(x1, top));
                const V total = O::add(m0, m1);
                if (Keep) {
                    O::store(share + N * int64_t(begin), m0);
                    O::store(share + N * int64_t(begin + 1), m1);
                    keep_inverse(s, total);
                }
                put(row, total, top);
                continue;
            }
            V top = low;
            for (int32_t e = begin; e < end; ++e) {
                V m, x;
                if (Sparse && !(((bits->reach[row] & bits->edge(e)) >> shift) & lanes)) {
                    m = O::set(T(1));
                    x = O::set(-T(HUGE_VAL));
                } else {
                    product(e, m, x);
                    if (w >= 0) weigh(weights, w + (e - begin), first, count, m, x);
                }
                if (end - begin == 1) {
                    put(row, m, x);
                    break;
                }
                top = O::max(x, top);
                O::store(edge_mantissa + N * int64_t(e - begin), m);
                O::store(edge_exponent + N * int64_t(e - begin), x);
            }
            if (end - begin == 1) continue;
            V total = O::set(T(0));
            for (int32_t e = begin; e < end; ++e) {
                const V x = O::sub(O::load(edge_exponent + N * int64_t(e - begin)), top);
                const V m = O::scale(O::load(edge_mantissa + N * int64_t(e - begin)), x);
                total = O::add(total, m);
                if (Keep) O::store(share + N * int64_t(e), m);
            }
            if (Keep) keep_inverse(s, total);
            put(row, total, top);
        }
    }

    inline void keep_inverse(int32_t s, V total) {
        const V one = O::set(T(1));
        O::store(inverse + N * int64_t(s), O::positive(total, O::div(one, total), O::set(T(0))));
    }

    // Hand the root's flow down. The values are no longer needed: their memory holds the flows into rows.
    template <bool Sparse>
    void down(int64_t first, int count, int64_t columns, T *edge_flows, T *leaf_flows, const Bits *bits, int shift) {
        T *flow = mantissa;
        const V start = flow_of_root(O::load(exponent + N * int64_t(c.root_row)));
        [[maybe_unused]] const Word lanes = (Word(1) << N) - 1;
        const int64_t numbers = N * c.num_rows();
        for (int64_t i = 0; i < numbers; ++i) flow[i] = T(0);
        O::store(flow + N * int64_t(c.root_row), start);
        int32_t open[2] = {0, 1};
        V gathered[2] = {O::set(T(0)), O::set(T(0))};
        for (int32_t s = c.num_sums - 1; s >= 0; --s) {
            const int64_t row = int64_t(c.num_leaves) + s;
            V arriving = O::load(flow + N * row);
            const int32_t begin = c.edge_start[s], end = c.edge_start[s + 1];
            const int32_t w = edge_flows ? c.first_weight[s] : -1;
            if (!O::any(arriving)) {
                for (int32_t e = begin; w >= 0 && e < end; ++e)
                    store<O>(edge_flows + (w + (e - begin)) * columns + first, arriving, count);
                continue;
            }
            if (end - begin > 1) arriving = O::mul(arriving, O::load(inverse + N * int64_t(s)));
            for (int32_t e = begin; e < end; ++e) {
                const V part = end - begin > 1 ? O::mul(arriving, O::load(share + N * int64_t(e))) : arriving;
                if (w >= 0) store<O>(edge_flows + (w + (e - begin)) * columns + first, part, count);
                if (Sparse && !(((bits->reach[row] & bits->edge(e)) >> shift) & lanes)) continue;
                for (int32_t f = c.factor_start[e]; f < c.factor_start[e + 1]; ++f) {
                    const int32_t factor = c.factors[f];
                    if (factor < c.num_leaves) {
                        // neighbouring sums decide on the same variable: adding up in a register saves a long chain of
                        // loads that wait for the store before them
                        const int sign = factor & 1;
                        if (factor != open[sign]) {
                            add_flow(open[sign], gathered[sign]);
                            open[sign] = factor;
                            gathered[sign] = part;
                        } else {
                            gathered[sign] = O::add(gathered[sign], part);
                        }
                    } else {
                        add_flow(factor, part);
                    }
                }
            }
        }
        for (int sign = 0; sign < 2; ++sign) add_flow(open[sign], gathered[sign]);
        for (int32_t row = 0; row < c.num_leaves; ++row)
            store<O>(leaf_flows + row * columns + first, O::load(flow + N * int64_t(row)), count);
    }

    inline void add_flow(int64_t row, V part) {
        T *p = mantissa + N * row;
        O::store(p, O::add(O::load(p), part));
    }

    // One where the root is possible (or NaN, which must not be hidden), else zero.
    inline V flow_of_root(V exponent_of_root) const {
        T lanes[N];
        O::store(lanes, exponent_of_root);
        for (int i = 0; i < N; ++i) lanes[i] = lanes[i] == -T(HUGE_VAL) ? T(0) : T(1);
        return O::load(lanes);
    }

    void root(T *value, int64_t first, int count) const {
        const T *m = mantissa + N * int64_t(c.root_row), *x = exponent + N * int64_t(c.root_row);
        for (int i = 0; i < count; ++i) value[first + i] = T(std::log(double(m[i])) + 0.69314718055994530942 * double(x[i]));
    }
};

template <class O> void evaluate_tile(const EvaluateJob<typename O::T> &job, int64_t first, int count,
                                      typename O::T *scratch, const Bits *bits, int shift) {
    const bool flows = job.leaf_flows != nullptr;
    Tile<O> tile(*job.circuit, scratch, flows);
    tile.leaves(job.leaves, first, count);
    if (bits) {
        if (flows) tile.template up<true, true>(job.weights, first, count, bits, shift);
        else tile.template up<false, true>(job.weights, first, count, bits, shift);
    } else {
        if (flows) tile.template up<true, false>(job.weights, first, count, bits, shift);
        else tile.template up<false, false>(job.weights, first, count, bits, shift);
    }
    const Word lanes = (Word(1) << O::N) - 1;
    if (bits && !((bits->reach[job.circuit->root_row] >> shift) & lanes)) {
        // nothing is possible: the root was never evaluated
        for (int i = 0; i < count; ++i) job.value[first + i] = -typename O::T(HUGE_VAL);
        if (!flows) return;
        const typename O::V zero = O::set(typename O::T(0));
        for (int64_t row = 0; row < job.circuit->num_leaves; ++row)
            store<O>(job.leaf_flows + row * job.columns + first, zero, count);
        for (int64_t w = 0; job.edge_flows && w < job.circuit->num_weights; ++w)
            store<O>(job.edge_flows + w * job.columns + first, zero, count);
        return;
    }
    tile.root(job.value, first, count);
    if (!flows) return;
    if (bits) tile.template down<true>(first, count, job.columns, job.edge_flows, job.leaf_flows, bits, shift);
    else tile.template down<false>(first, count, job.columns, job.edge_flows, job.leaf_flows, bits, shift);
}

// Max-product in log space (sums and comparisons only), then trace back through the sums that the best state uses.
template <class O> void maximize_tile(const MaximizeJob<typename O::T> &job, int64_t first, int count,
                                      typename O::T *scratch, uint32_t *used) {
    using T = typename O::T;
    using V = typename O::V;
    constexpr int N = O::N;
    const Circuit &c = *job.circuit;
    const bool weighted = job.weights.data != nullptr;
    T *value = scratch;
    for (int32_t i = 0; i < c.num_used_leaves; ++i)
        O::store(value + N * int64_t(c.used_leaves[i]), load<O>(job.leaves, c.used_leaves[i], first, count));
    const auto edge = [&](int32_t e, int32_t w) {
        const int32_t *f = c.factors + c.factor_start[e], *end = c.factors + c.factor_start[e + 1];
        V sum = f < end ? O::load(value + N * int64_t(*f++)) : O::set(T(0));
        while (f < end) sum = O::add(sum, O::load(value + N * int64_t(*f++)));
        return w >= 0 ? O::add(sum, load<O>(job.weights, w, first, count)) : sum;
    };
    for (int32_t s = 0; s < c.num_sums; ++s) {
        const int32_t begin = c.edge_start[s], end = c.edge_start[s + 1];
        const int32_t w = weighted ? c.first_weight[s] : -1;
        V best = edge(begin, w);
        for (int32_t e = begin + 1; e < end; ++e) best = O::max(edge(e, w < 0 ? w : w + (e - begin)), best);
        O::store(value + N * int64_t(c.num_leaves + s), best);
    }
    const T *top = value + N * int64_t(c.root_row);
    for (int i = 0; i < count; ++i) job.value[first + i] = top[i];
    if (!job.leaf_flows) return;
    for (int64_t row = 0; row < c.num_rows(); ++row) used[row] = 0;
    used[c.root_row] = (uint32_t(1) << count) - 1;
    for (int32_t s = c.num_sums - 1; s >= 0; --s) {
        const uint32_t here = used[c.num_leaves + s];
        if (!here) continue;
        const int32_t begin = c.edge_start[s], end = c.edge_start[s + 1];
        const int32_t w = weighted ? c.first_weight[s] : -1;
        // the first edge that nothing exceeds, as argmax has it
        uint32_t open = here;
        const V best = O::load(value + N * int64_t(c.num_leaves + s));
        for (int32_t e = begin; e < end && open; ++e) {
            uint32_t take = open;
            if (e + 1 < end) take &= ~O::greater(best, edge(e, w < 0 ? w : w + (e - begin)));
            open &= ~take;
            if (!take) continue;
            for (int32_t f = c.factor_start[e]; f < c.factor_start[e + 1]; ++f) used[c.factors[f]] |= take;
        }
    }
    for (int32_t row = 0; row < c.num_leaves; ++row)
        for (int i = 0; i < count; ++i) job.leaf_flows[row * job.columns + first + i] = T((used[row] >> i) & 1);
}

// A random number in [0, 1) that depends on nothing but the seed, the sample and the sum.
inline double uniform(uint64_t seed, uint64_t sample, uint64_t row) {
    uint64_t z = seed + 0x9e3779b97f4a7c15u * (sample + 1) + 0xd1342543de82ef95u * (row + 1);
    for (int i = 0; i < 2; ++i) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z ^= z >> 31;
    }
    return double(z >> 11) * 0x1p-53;
}

template <class O> void sample_sum(const SampleJob<typename O::T> &, const Tile<O> &, int32_t, int64_t, int, const int64_t *,
                                   uint32_t *);

// Upward once; then, for one sample of every column at a time, downward through the sums that the samples use.
template <class O> void sample_tile(const SampleJob<typename O::T> &job, int64_t first, int count,
                                    typename O::T *scratch, uint32_t *used) {
    using T = typename O::T;
    const Circuit &c = *job.circuit;
    Tile<O> tile(c, scratch, false);
    tile.leaves(job.leaves, first, count);
    tile.template up<false, false>(job.weights, first, count, nullptr, 0);
    for (int64_t turn = 0;; ++turn) {
        int64_t sample[O::N] = {};
        uint32_t lanes = 0;
        for (int lane = 0; lane < count; ++lane) {
            const int64_t i = job.sample_start[first + lane] + turn;
            if (i >= job.sample_start[first + lane + 1]) continue;
            sample[lane] = job.sample[i];
            lanes |= uint32_t(1) << lane;
        }
        if (!lanes) return;
        for (int64_t row = 0; row < c.num_rows(); ++row) used[row] = 0;
        used[c.root_row] = lanes;
        for (int32_t s = c.num_sums - 1; s >= 0; --s)
            if (used[c.num_leaves + s]) sample_sum(job, tile, s, first, count, sample, used);
        for (int32_t i = 0; i < c.num_used_leaves; ++i) {
            const int64_t row = c.used_leaves[i];
            for (uint32_t left = used[row], lane = 0; left; left >>= 1, ++lane)
                if (left & 1) job.leaf_flows[row * job.samples + sample[lane]] = T(1);
        }
    }
}

// Draws an edge of one sum for the lanes that use it, and marks its factors.
template <class O> void sample_sum(const SampleJob<typename O::T> &job, const Tile<O> &tile, int32_t s, int64_t first,
                                          int count, const int64_t *sample, uint32_t *used) {
    using T = typename O::T;
    using V = typename O::V;
    constexpr int N = O::N;
    const Circuit &c = tile.c;
    const int64_t row = int64_t(c.num_leaves) + s;
    const int32_t begin = c.edge_start[s], fan_in = c.edge_start[s + 1] - begin;
    uint32_t open = used[row];
    const auto take = [&](int32_t k, uint32_t lanes) {
        const int32_t *f = c.factors + c.factor_start[begin + k], *end = c.factors + c.factor_start[begin + k + 1];
        for (; f < end; ++f) used[*f] |= lanes;
    };
    if (fan_in == 1) return take(0, open);
    const int32_t w = job.weights.data ? c.first_weight[s] : -1;
    // shares relative to the sum, whose exponent is minus infinity only where nothing is drawn
    const V top = O::max(O::load(tile.exponent + N * row), O::set(T(-1e30)));
    T *shares = tile.edge_mantissa;
    V total = O::set(T(0));
    for (int32_t k = 0; k < fan_in; ++k) {
        V m, x;
        tile.product(begin + k, m, x);
        if (w >= 0) tile.weigh(job.weights, w + k, first, count, m, x);
        // a share may exceed the sum by rounding, never by a power of two
        const V share = O::scale(O::mul(m, O::set(T(0.25))), O::sub(x, top));
        O::store(shares + N * int64_t(k), share);
        total = O::add(total, share);
    }
    T number[N] = {};
    for (int lane = 0; lane < count; ++lane)
        if ((open >> lane) & 1) number[lane] = T(uniform(job.seed, uint64_t(sample[lane]), uint64_t(row)));
    V left = O::mul(O::load(number), total);
    for (int32_t k = 0; k < fan_in && open; ++k) {
        const V share = O::load(shares + N * int64_t(k));
        const uint32_t here = open & O::greater(share, left);
        left = O::sub(left, share);
        open &= ~here;
        if (here) take(k, here);
    }
    // rounding left these without: they take the last edge that has a probability at all
    for (int lane = 0; open; ++lane, open >>= 1) {
        if (!(open & 1)) continue;
        int32_t k = fan_in - 1;
        while (k > 0 && !(shares[N * int64_t(k) + lane] > T(0))) --k;
        take(k, uint32_t(1) << lane);
    }
}

template <class O> inline void add_gradient(const LikelihoodJob<typename O::T> &job, int64_t w, int64_t first, int width,
                                            typename O::V part) {
    typename O::T *p = job.gradient + w * job.components * job.batch + first;
    if (width == O::N) return O::store(p, O::add(O::load(p), part));
    typename O::T numbers[O::N];
    O::store(numbers, part);
    for (int j = 0; j < width; ++j) p[j] += numbers[j];
}

// A sum of two edges: log p = -log(1 + exp(other - chosen)), with one exponential in all.
template <class O> inline void likelihood_pair(const LikelihoodJob<typename O::T> &job, int64_t w, typename O::V a,
                                               typename O::V b, uint32_t second, uint32_t lanes, int64_t first, int width,
                                               typename O::T *total, const typename O::T *cotangent) {
    using T = typename O::T;
    using V = typename O::V;
    const V zero = O::set(T(0)), one = O::set(T(1));
    const V lead = O::sub(O::select(second, b, a), O::select(second, a, b));  // of the chosen edge over the other
    const V small = exp_negative<O>(O::sub(zero, O::max(lead, O::sub(zero, lead))));
    const V sum = O::add(one, small);
    if (total) {
        const V behind = O::sub(lead, O::max(lead, zero));
        const V part = O::sub(behind, log_positive<O>(sum));
        O::store(total, O::add(O::load(total), O::select(lanes, part, zero)));
        return;
    }
    // the other's probability is what the chosen edge gains and the other loses
    const V other = O::div(O::select(O::greater(lead, zero), small, one), sum);
    const V slope = O::select(lanes, O::mul(other, O::load(cotangent)), zero);
    add_gradient<O>(job, w, first, width, O::select(second, O::sub(zero, slope), slope));
    add_gradient<O>(job, w + 1, first, width, O::select(second, slope, O::sub(zero, slope)));
}

// One sum's part in the likelihood of up to 64 states of one component: log-softmax of the edge that each uses.
template <class O> void likelihood_sum(const LikelihoodJob<typename O::T> &job, int32_t s, Word here, const Word *used,
                                       const Word *open, int64_t first, int count, typename O::T *total,
                                       const typename O::T *cotangent) {
    using T = typename O::T;
    using V = typename O::V;
    constexpr int N = O::N;
    const Circuit &c = *job.circuit;
    const int32_t fan_in = c.edge_start[s + 1] - c.edge_start[s], w = c.first_weight[s];
    const V low = O::set(-T(HUGE_VAL));
    for (int shift = 0; shift < count; shift += N) {
        const uint32_t lanes = uint32_t((here >> shift) & ((Word(1) << N) - 1));
        if (!lanes) continue;
        const int width = count - shift < N ? count - shift : N;
        const auto logit = [&](int32_t i) {
            const V x = load<O>(job.logits, w + i, first + shift, width);
            return open ? O::select(uint32_t(open[i] >> shift), x, low) : x;
        };
        if (fan_in == 2 && !open) {
            likelihood_pair<O>(job, w, logit(0), logit(1), uint32_t(used[1] >> shift), lanes, first + shift, width,
                               cotangent ? nullptr : total + shift, cotangent ? cotangent + shift : nullptr);
            continue;
        }
        V top = logit(0), chosen = top, sum = O::set(T(0));
        for (int32_t i = 1; i < fan_in; ++i) {
            const V x = logit(i);
            top = O::max(x, top);
            chosen = O::select(uint32_t(used[i] >> shift), x, chosen);
        }
        for (int32_t i = 0; i < fan_in; ++i) sum = O::add(sum, exp_negative<O>(O::sub(logit(i), top)));
        if (!cotangent) {
            const V part = O::sub(O::sub(chosen, top), log_positive<O>(sum));
            O::store(total + shift, O::add(O::load(total + shift), O::select(lanes, part, O::set(T(0)))));
            continue;
        }
        const V scale = O::div(O::set(T(-1)), sum);
        const V outer = O::select(lanes, O::load(cotangent + shift), O::set(T(0)));
        for (int32_t i = 0; i < fan_in; ++i) {
            V slope = O::mul(exp_negative<O>(O::sub(logit(i), top)), scale);
            slope = O::select(uint32_t(used[i] >> shift), O::add(slope, O::set(T(1))), slope);
            add_gradient<O>(job, w + i, first + shift, width, O::select(lanes, O::mul(slope, outer), O::set(T(0))));
        }
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
    return {O::N,           scratch_numbers<O>, evaluate_tile<O>, maximize_tile<O>,
            sample_tile<O>, likelihood_sum<O>,  dot<O>,           add_scaled<O>};
}

const KernelSet set = {kernels_of<WideFloat>(),    kernels_of<OneFloat>(),  kernels_of<NarrowFloat>(),
                       kernels_of<WideDouble>(),   kernels_of<OneDouble>(), kernels_of<NarrowDouble>()};
