// The likelihood of partly observed states under the sums' local softmaxes: an upward pass and, for the gradient of the
// logits, a downward one, with the softmaxes taken on the way. Included once per instruction set, after
// engine_kernels.hpp.

template <class O>
struct MarginalTile : Tile<O> {
  using T = typename O::T;
  using V = typename O::V;
  using Tile<O>::N;
  using Tile<O>::c;

  MarginalTile(const MarginalJob<T>& what, T* scratch, int64_t component, int64_t place, int columns)
      : Tile<O>(*what.plan, scratch),
        job(what),
        probability(this->flow + N * c.num_rows()),
        share(probability + N * int64_t(c.num_weights)),
        first(place),
        offset(component * what.batch),
        count(columns) {}

  const MarginalJob<T>& job;
  T *probability, *share;  // of each weighted edge: before and after the observations [W, N]
  int64_t first, offset;   // row of the batch, and column of its component's first
  int count;

  // A literal is impossible where its variable is observed to be the opposite, and has value one elsewhere.
  void leaves() {
    const V zero = O::set(T(0)), one = O::set(T(1)), half = O::set(T(0.5)), never = O::set(-T(HUGE_VAL));
    for (int32_t i = 0; i < c.num_used_leaves; ++i) {
      const int32_t row = c.used_leaves[i];
      const V x = load<O>(job.observed, row / 2, first, count);
      this->put(row, one, O::select(row % 2 ? O::greater(half, x) : O::greater(x, half), never, zero));
    }
  }

  SEMPROLA_INLINE V logit(int64_t w) const { return load<O>(job.logits, job.row_of(w), offset + first, count); }

  // The value of an edge times its probability, which is kept.
  SEMPROLA_INLINE Number<O> weighted(int32_t e, int64_t w, V mantissa, V exponent) {
    O::store(probability + N * w, O::scale(mantissa, exponent));
    const Number<O> all = this->product(e);
    return {O::mul(all.mantissa, mantissa), O::add(all.exponent, exponent)};
  }

  void pair(int32_t s, int32_t e, int64_t w) {
    const V zero = O::set(T(0)), one = O::set(T(1));
    const V above = logit(w + 1), below = O::sub(zero, above);
    V small, power;  // of the less likely edge, beside one for the other
    exp_finite<O>(O::min(above, below), small, power);
    const V inverse = O::inverse(O::add(one, O::scale(small, power)));
    const auto second = O::greater(above, zero);
    small = O::mul(small, inverse);
    const Number<O> a = weighted(e, w, O::select(second, small, inverse), O::select(second, power, zero));
    const Number<O> b = weighted(e + 1, w + 1, O::select(second, inverse, small), O::select(second, zero, power));
    const V top = O::max(O::max(a.exponent, b.exponent), O::set(lowest<T>()));
    const V of_a = O::scale(a.mantissa, O::sub(a.exponent, top)), of_b = O::scale(b.mantissa, O::sub(b.exponent, top));
    const V scale = finish(s, O::add(of_a, of_b), top);
    O::store(share + N * w, O::mul(of_a, scale));
    O::store(share + N * (w + 1), O::mul(of_b, scale));
  }

  void many(int32_t s, int32_t e, int64_t w, int32_t fan_in) {
    V top = logit(w), total = O::set(T(0)), high = O::set(lowest<T>());
    for (int32_t i = 1; i < fan_in; ++i) top = O::max(top, logit(w + i));
    for (int32_t i = 0; i < fan_in; ++i) total = O::add(total, exp_negative<O>(O::sub(logit(w + i), top)));
    const V inverse = O::inverse(total);
    // exponents first, beside the mantissas: there may be any number of edges
    for (int32_t i = 0; i < fan_in; ++i) {
      V mantissa, exponent;
      exp_finite<O>(O::sub(logit(w + i), top), mantissa, exponent);
      high = O::max(high, weighted(e + i, w + i, O::mul(mantissa, inverse), exponent).exponent);
    }
    total = O::set(T(0));
    for (int32_t i = 0; i < fan_in; ++i) {
      V mantissa, exponent;
      exp_finite<O>(O::sub(logit(w + i), top), mantissa, exponent);
      const Number<O> part = weighted(e + i, w + i, O::mul(mantissa, inverse), exponent);
      const V value = O::scale(part.mantissa, O::sub(part.exponent, high));
      O::store(share + N * (w + i), value);
      total = O::add(total, value);
    }
    const V scale = finish(s, total, high);
    for (int64_t i = w; i < w + fan_in; ++i) O::store(share + N * i, O::mul(O::load(share + N * i), scale));
  }

  // Stores the value of a sum, total * 2^top, and returns the factor that turns its parts into shares.
  SEMPROLA_INLINE V finish(int32_t s, V total, V top) {
    V m, power;
    O::split(total, m, power);
    this->put(int64_t(c.num_leaves) + s, m, O::add(top, power));
    // an impossible sum has an exponent of minus infinity, and its parts are zero
    const V down = O::sub(O::set(T(0)), O::max(power, O::set(T(-120))));
    return O::scale(O::inverse(m), down);
  }

  void up() {
    for (int32_t s = 0; s < c.num_sums; ++s) {
      const int32_t begin = c.edge_start[s], fan_in = c.edge_start[s + 1] - begin;
      if (fan_in == 1)
        this->put_normal(int64_t(c.num_leaves) + s, this->product(begin));
      else if (fan_in == 2)
        pair(s, begin, c.first_weight[s]);
      else
        many(s, begin, c.first_weight[s], fan_in);
    }
  }

  void down() {
    std::memset(this->flow, 0, size_t(N * c.num_rows()) * sizeof(T));
    O::store(this->flow + N * int64_t(c.root_row), this->flow_of_root());
    for (int32_t s = c.num_sums - 1; s >= 0; --s) {
      const V arriving = O::load(this->flow + N * (int64_t(c.num_leaves) + s));
      const int32_t begin = c.edge_start[s], fan_in = c.edge_start[s + 1] - begin;
      if (fan_in == 1) {
        this->hand_on(begin, arriving);
        continue;
      }
      const int64_t w = c.first_weight[s];
      for (int32_t i = 0; i < fan_in; ++i) {
        const V own = O::load(share + N * (w + i));
        this->hand_on(begin + i, O::mul(arriving, own));
        if (job.is_zero(w + i)) continue;
        T* to = job.gradient + job.row_of(w + i) * job.components * job.batch + offset + first;
        store<O>(to, O::mul(arriving, O::sub(own, O::load(probability + N * (w + i)))), count);
      }
    }
  }
};

template <class O>
int64_t marginal_numbers(const Plan& c) {
  return O::N * (3 * c.num_rows() + 2 * int64_t(c.num_weights));
}

template <class O>
void marginal_tile(const MarginalJob<typename O::T>& job, int64_t component, int64_t first, int count,
                   typename O::T* scratch) {
  MarginalTile<O> tile(job, scratch, component, first, count);
  tile.leaves();
  tile.up();
  tile.root(job.value + component * job.batch, first, count);
  if (job.gradient) tile.down();
}
