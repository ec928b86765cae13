// Upward and downward pass over one tile of columns. Included once per instruction set, after engine_ops.hpp.

// A tile's columns of one row; columns past the end repeat the last.
template <class O>
SEMPROLA_INLINE typename O::V load(const Matrix<const typename O::T>& a, int64_t row, int64_t first, int count) {
  using T = typename O::T;
  const T* p = a.data + row * a.row_stride + first * a.column_stride;
  if (a.column_stride == 1 && count == O::N) return O::load(p);
  T lanes[O::N];
  for (int i = 0; i < O::N; ++i) lanes[i] = p[(i < count ? i : count - 1) * a.column_stride];
  return O::load(lanes);
}

template <class O>
SEMPROLA_INLINE void store(typename O::T* p, typename O::V a, int count) {
  if (count == O::N) return O::store(p, a);
  typename O::T lanes[O::N];
  O::store(lanes, a);
  for (int i = 0; i < count; ++i) p[i] = lanes[i];
}

// How much scratch memory (numbers) a thread needs for a tile with a row for every sum, ...
template <class O>
int64_t scratch_numbers(const Plan& c, bool flows) {
  return O::N * ((flows ? 3 : 2) * c.num_rows() + (flows && c.keeps_shares() ? 2 * int64_t(c.num_sums) : 0));
}

// ... and with slots, where shares are kept.
template <class O>
int64_t slot_numbers(const Plan& c, bool flows) {
  return O::N * ((flows ? 3 : 2) * int64_t(c.num_slots) + (flows ? int64_t(c.num_shares) : 0));
}

template <class O>
struct Number {
  typename O::V mantissa, exponent;
};

// With slots, rows share memory, so that it stays in a fast cache: the value of a sum is there until the last sum that
// uses it has been computed. The way down then needs the shares of all edges, which it reads one after another.
template <class O, bool Slots = false>
struct Tile {
  using T = typename O::T;
  using V = typename O::V;
  static constexpr int N = O::N;

  Tile(const Plan& plan, T* scratch)
      : c(plan),
        factors(Slots ? c.slot_factors : c.factors),
        num_places(Slots ? c.num_slots : c.num_rows()),
        numbers(scratch),
        flow(numbers + 2 * N * num_places),
        shares(flow + N * num_places) {}

  const Plan& c;
  const int32_t* factors;  // places
  int64_t num_places;      // slots or rows
  T* numbers;              // N mantissas and N exponents of each place, side by side
  T* flow;                 // into each place [places, N]
  // Where they are kept: with slots, of the edges of sums that have several [shares, N]; else, of both edges of sums
  // that have two [sums, 2, N].
  T* shares;

  SEMPROLA_INLINE int64_t place(int32_t s) const { return Slots ? c.slot_of_sum[s] : int64_t(c.num_leaves) + s; }
  int64_t root_place() const { return place(c.root_row - c.num_leaves); }

  SEMPROLA_INLINE Number<O> at(int64_t row) const {
    const T* p = numbers + 2 * N * row;
    return {O::load(p), O::load(p + N)};
  }

  SEMPROLA_INLINE void put(int64_t row, V m, V x) {
    O::store(numbers + 2 * N * row, m);
    O::store(numbers + 2 * N * row + N, x);
  }

  SEMPROLA_INLINE void put_normal(int64_t row, Number<O> a) {
    V m, power;
    O::split(a.mantissa, m, power);
    put(row, m, O::add(a.exponent, power));
  }

  // The product of an edge's factors.
  SEMPROLA_INLINE Number<O> product(int32_t e) const {
    const int32_t* f = factors + c.factor_start[e];
    const int32_t count = c.factor_start[e + 1] - c.factor_start[e];
    if (count == 0) return {O::set(T(1)), O::set(T(0))};
    Number<O> all = at(f[0]);
    for (int32_t i = 1; i < count; ++i) {
      const Number<O> next = at(f[i]);
      all.mantissa = O::mul(all.mantissa, next.mantissa);
      all.exponent = O::add(all.exponent, next.exponent);
      if ((i & 31) == 31) {  // mantissas are between 1/2 and 2: 32 of them stay far from the ends of the range
        V m, power;
        O::split(all.mantissa, m, power);
        all = {m, O::add(all.exponent, power)};
      }
    }
    return all;
  }

  void leaves(const Matrix<const T>& values, int64_t first, int count) {
    for (int32_t i = 0; i < c.num_used_leaves; ++i) {
      const int32_t row = c.used_leaves[i];
      V m, x;
      exp_parts<O>(load<O>(values, row, first, count), m, x);
      put(row, m, x);
    }
  }

  // What a pass needs to know about the weights (null: none) and about the edges that matter (null: all).
  struct View {
    const Matrix<const T>& weights;
    int64_t first;
    int count;
    const Bits* bits;  // of 64 columns; those of the tile are from `shift` on
    int shift;

    bool reaches(int64_t row) const { return (bits->reach[row] >> shift) & ((Word(1) << N) - 1); }
    bool reaches(int64_t row, int32_t e) const {
      return ((bits->reach[row] & bits->edge(e)) >> shift) & ((Word(1) << N) - 1);
    }
  };

  template <bool Sparse>
  SEMPROLA_INLINE Number<O> edge(const View& v, int64_t row, int32_t e, int32_t w) const {
    if (Sparse && !v.reaches(row, e)) return {O::set(T(1)), O::set(-T(HUGE_VAL))};
    Number<O> all = product(e);
    if (w < 0) return all;
    V m, x;
    exp_parts<O>(load<O>(v.weights, w, v.first, v.count), m, x);
    return {O::mul(all.mantissa, m), O::add(all.exponent, x)};
  }

  // The sum of K edges, and of what came before them.
  template <int K, bool Sparse, bool First>
  SEMPROLA_INLINE Number<O> join(Number<O> sum, const View& v, int64_t row, int32_t e, int32_t w) const {
    Number<O> part[K];
    // finite, so that no difference is of two infinities
    V top = First ? O::set(lowest<T>()) : sum.exponent;
    for (int i = 0; i < K; ++i) {
      part[i] = edge<Sparse>(v, row, e + i, w < 0 ? w : w + i);
      top = O::max(part[i].exponent, top);
    }
    V total = O::scale(part[0].mantissa, O::sub(part[0].exponent, top));
    for (int i = 1; i < K; ++i) total = O::add(total, O::scale(part[i].mantissa, O::sub(part[i].exponent, top)));
    if (!First) total = O::add(total, O::scale(sum.mantissa, O::sub(sum.exponent, top)));
    return {total, top};
  }

  // A sum of two edges, with their shares.
  SEMPROLA_INLINE void pair(const View& v, int32_t s, int32_t e, int32_t w) {
    const int64_t row = place(s);
    const Number<O> a = edge<false>(v, row, e, w), b = edge<false>(v, row, e + 1, w < 0 ? w : w + 1);
    const V top = O::max(O::max(a.exponent, b.exponent), O::set(lowest<T>()));
    const V first = O::scale(a.mantissa, O::sub(a.exponent, top));
    const V second = O::scale(b.mantissa, O::sub(b.exponent, top));
    V m, power;
    O::split(O::add(first, second), m, power);
    put(row, m, O::add(top, power));
    // times the power first: a denominator between one and two has an inverse
    const V inverse = O::inverse(m), down = O::sub(O::set(T(0)), O::max(power, O::set(T(-1e30))));
    O::store(shares + 2 * N * int64_t(s), O::mul(O::scale(first, down), inverse));
    O::store(shares + 2 * N * int64_t(s) + N, O::mul(O::scale(second, down), inverse));
  }

  // A sum of K edges, and the share of each at `to`.
  template <int K>
  SEMPROLA_INLINE Number<O> shared(const View& v, int32_t e, int32_t w, T* to) const {
    Number<O> part[K];
    V top = O::set(lowest<T>());
    for (int i = 0; i < K; ++i) {
      part[i] = edge<false>(v, 0, e + i, w < 0 ? w : w + i);
      top = O::max(part[i].exponent, top);
    }
    V total = O::set(T(0));
    for (int i = 0; i < K; ++i) {
      part[i].mantissa = O::scale(part[i].mantissa, O::sub(part[i].exponent, top));
      total = i ? O::add(total, part[i].mantissa) : part[i].mantissa;
    }
    const V inverse = inverse_of_total(total);
    for (int i = 0; i < K; ++i) O::store(to + N * i, O::mul(part[i].mantissa, inverse));
    return {total, top};
  }

  // The largest part is a product of mantissas, far from the ends of the range; the total is zero if all are
  // impossible.
  static SEMPROLA_INLINE V inverse_of_total(V total) { return O::inverse(O::max(O::set(T(1e-30)), total)); }

  // The same for any number of edges.
  SEMPROLA_INLINE Number<O> shared_by_many(const View& v, int32_t e, int32_t fan_in, int32_t w, T* to) const {
    const Number<O> sum = total_of_many<false>(v, 0, e, fan_in, w);
    const V inverse = inverse_of_total(sum.mantissa);
    for (int32_t i = 0; i < fan_in; ++i) {
      const Number<O> part = edge<false>(v, 0, e + i, w < 0 ? w : w + i);
      O::store(to + int64_t(N) * i, O::mul(O::scale(part.mantissa, O::sub(part.exponent, sum.exponent)), inverse));
    }
    return sum;
  }

  // A sum of three edges or more.
  template <bool Sparse>
  SEMPROLA_INLINE Number<O> total_of_many(const View& v, int64_t row, int32_t begin, int32_t fan_in, int32_t w) const {
    Number<O> sum = join<3, Sparse, true>(Number<O>{O::set(T(0)), O::set(T(0))}, v, row, begin, w);
    int32_t i = 3;
    for (; i + 4 <= fan_in; i += 4) sum = join<4, Sparse, false>(sum, v, row, begin + i, w < 0 ? w : w + i);
    for (; i < fan_in; ++i) sum = join<1, Sparse, false>(sum, v, row, begin + i, w < 0 ? w : w + i);
    return sum;
  }

  // Upward with slots, keeping shares.
  void up_with_shares(const View& v) {
    T* to = shares;
    for (int32_t s = 0; s < c.num_sums; ++s) {
      const int32_t begin = c.edge_start[s], fan_in = c.edge_start[s + 1] - begin;
      const int32_t w = v.weights.data ? c.first_weight[s] : -1;
      const int64_t here = place(s);
      if (fan_in == 1) {
        put_normal(here, edge<false>(v, 0, begin, w));
        continue;
      }
      put_normal(here, fan_in == 2   ? shared<2>(v, begin, w, to)
                       : fan_in == 3 ? shared<3>(v, begin, w, to)
                       : fan_in == 4 ? shared<4>(v, begin, w, to)
                                     : shared_by_many(v, begin, fan_in, w, to));
      to += int64_t(N) * fan_in;
    }
  }

  // Hands the root's flow down by the shares that were kept.
  void down_by_shares(const View& v, T* edge_flows, int64_t columns) {
    std::memset(flow, 0, size_t(N * num_places) * sizeof(T));
    O::store(flow + N * root_place(), flow_of_root());
    const T* from = shares + int64_t(N) * c.num_shares;
    for (int32_t s = c.num_sums - 1; s >= 0; --s) {
      T* own = flow + N * place(s);
      const V arriving = O::load(own);
      O::store(own, O::set(T(0)));  // for the next sum in this slot, which may be one of those below
      const int32_t begin = c.edge_start[s], fan_in = c.edge_start[s + 1] - begin;
      const int32_t w = edge_flows ? c.first_weight[s] : -1;
      if (fan_in == 1) {
        if (w >= 0) store<O>(edge_flows + w * columns + v.first, arriving, v.count);
        hand_on(begin, arriving);
        continue;
      }
      from -= int64_t(N) * fan_in;
      for (int32_t i = 0; i < fan_in; ++i) {
        const V part = O::mul(arriving, O::load(from + int64_t(N) * i));
        if (w >= 0) store<O>(edge_flows + (w + i) * columns + v.first, part, v.count);
        hand_on(begin + i, part);
      }
    }
  }

  template <bool Sparse, bool Keep>
  void up(const View& v) {
    for (int32_t s = 0; s < c.num_sums; ++s) {
      const int32_t begin = c.edge_start[s], fan_in = c.edge_start[s + 1] - begin;
      const int64_t row = place(s);
      if (Sparse && !v.reaches(row)) continue;
      const int32_t w = v.weights.data ? c.first_weight[s] : -1;
      if (fan_in == 2 && Keep) {
        pair(v, s, begin, w);
        continue;
      }
      if (fan_in == 2) {
        put_normal(row, join<2, Sparse, true>(Number<O>{O::set(T(0)), O::set(T(0))}, v, row, begin, w));
        continue;
      }
      if (fan_in == 1) {
        put_normal(row, edge<Sparse>(v, row, begin, w));
        continue;
      }
      put_normal(row, total_of_many<Sparse>(v, row, begin, fan_in, w));
    }
  }

  // Hands the root's flow down along the edges that matter; each edge gets its share of its sum's flow.
  void down(const View& v, T* edge_flows, int64_t columns) {
    std::memset(flow, 0, size_t(N * num_places) * sizeof(T));
    O::store(flow + N * root_place(), flow_of_root());
    for (int32_t s = c.num_sums - 1; s >= 0; --s)
      share_out(v, s, O::load(flow + N * place(s)), edge_flows ? c.first_weight[s] : -1, edge_flows, columns);
  }

  SEMPROLA_INLINE void share_out(const View& v, int32_t s, V arriving, int32_t w, T* edge_flows, int64_t columns) {
    const int64_t row = int64_t(c.num_leaves) + s;
    const int32_t begin = c.edge_start[s], fan_in = c.edge_start[s + 1] - begin;
    const int32_t own = v.weights.data ? c.first_weight[s] : -1;
    const bool any = O::any(arriving);
    if (!any && w < 0) return;
    const Number<O> sum = any ? at(row) : Number<O>{O::set(T(1)), O::set(T(0))};
    const V scaled = fan_in == 1 ? arriving : O::mul(arriving, O::inverse(sum.mantissa));
    const V top = O::max(sum.exponent, O::set(lowest<T>()));
    for (int32_t i = 0; i < fan_in; ++i) {
      const bool reached = any && v.reaches(row, begin + i);
      V part = arriving;
      if (!reached) {
        part = O::set(T(0));
      } else if (fan_in > 1) {
        const Number<O> all = edge<false>(v, row, begin + i, own < 0 ? own : own + i);
        part = O::mul(scaled, O::scale(all.mantissa, O::sub(all.exponent, top)));
      }
      if (w >= 0) store<O>(edge_flows + (w + i) * columns + v.first, part, v.count);
      if (reached) hand_on(begin + i, part);
    }
  }

  SEMPROLA_INLINE void hand_on(int32_t e, V part) {
    for (int32_t f = c.factor_start[e]; f < c.factor_start[e + 1]; ++f) {
      T* p = flow + N * int64_t(factors[f]);
      O::store(p, O::add(O::load(p), part));
    }
  }

  // One where the root is possible (or NaN, which must not be hidden), else zero.
  SEMPROLA_INLINE V flow_of_root() const {
    T lanes[N];
    O::store(lanes, at(root_place()).exponent);
    for (int i = 0; i < N; ++i) lanes[i] = lanes[i] == -T(HUGE_VAL) ? T(0) : T(1);
    return O::load(lanes);
  }

  void root(T* value, int64_t first, int count) const {
    const T *m = numbers + 2 * N * root_place(), *x = m + N;
    for (int i = 0; i < count; ++i)
      value[first + i] = T(std::log(double(m[i])) + 0.69314718055994530942 * double(x[i]));
  }
};

// By slots, for columns of which nothing is known.
template <class O>
void evaluate_densely(const EvaluateJob<typename O::T>& job, int64_t first, int count, typename O::T* scratch) {
  Tile<O, true> tile(*job.plan, scratch);
  const typename Tile<O, true>::View view{job.weights, first, count, nullptr, 0};
  tile.leaves(job.leaves, first, count);
  if (job.leaf_flows)
    tile.up_with_shares(view);
  else
    tile.template up<false, false>(view);
  tile.root(job.value, first, count);
  if (!job.leaf_flows) return;
  tile.down_by_shares(view, job.edge_flows, job.columns);
  for (int64_t row = 0; row < job.plan->num_leaves; ++row)
    store<O>(job.leaf_flows + row * job.columns + first, O::load(tile.flow + tile.N * row), count);
}

template <class O>
void evaluate_tile(const EvaluateJob<typename O::T>& job, int64_t first, int count, typename O::T* scratch,
                   const Bits* bits, int shift) {
  using T = typename O::T;
  const Plan& c = *job.plan;
  if (!bits) return evaluate_densely<O>(job, first, count, scratch);
  Tile<O> tile(c, scratch);
  const typename Tile<O>::View view{job.weights, first, count, bits, shift};
  const bool possible = view.reaches(c.root_row);
  if (possible) {
    tile.leaves(job.leaves, first, count);
    tile.template up<true, false>(view);
    tile.root(job.value, first, count);
  } else {
    for (int i = 0; i < count; ++i) job.value[first + i] = -T(HUGE_VAL);
  }
  if (!job.leaf_flows) return;
  const typename O::V zero = O::set(T(0));
  if (!possible) {
    for (int64_t w = 0; job.edge_flows && w < c.num_weights; ++w)
      store<O>(job.edge_flows + w * job.columns + first, zero, count);
    for (int64_t row = 0; row < c.num_leaves; ++row) store<O>(job.leaf_flows + row * job.columns + first, zero, count);
    return;
  }
  tile.down(view, job.edge_flows, job.columns);
  for (int64_t row = 0; row < c.num_leaves; ++row)
    store<O>(job.leaf_flows + row * job.columns + first, O::load(tile.flow + tile.N * row), count);
}
