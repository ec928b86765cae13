// Passes that make choices: best states and samples. Included once per instruction set, after engine_kernels.hpp.

template <class T>
constexpr T largest() {
  return sizeof(T) == 4 ? T(0x1.fffffep127) : T(0x1.fffffffffffffp1023);
}

SEMPROLA_INLINE uint32_t first_lanes(int count) { return uint32_t((Word(1) << count) - 1); }

// Max-product in log space: sums and comparisons only.
template <class O>
struct BestTile {
  using T = typename O::T;
  using V = typename O::V;
  static constexpr int N = O::N;

  const MaximizeJob<T>& job;
  const int64_t first;
  const int count;
  T* value;        // [rows, N]
  uint32_t* used;  // [rows]: the lanes whose best state uses it

  SEMPROLA_INLINE V edge(int32_t e, int32_t w) const {
    const Plan& c = *job.plan;
    const int32_t *f = c.factors + c.factor_start[e], *end = c.factors + c.factor_start[e + 1];
    V sum = f < end ? O::load(value + N * int64_t(*f++)) : O::set(T(0));
    while (f < end) sum = O::add(sum, O::load(value + N * int64_t(*f++)));
    return w >= 0 ? O::add(sum, load<O>(job.weights, w, first, count)) : sum;
  }

  void up() {
    const Plan& c = *job.plan;
    for (int32_t i = 0; i < c.num_used_leaves; ++i)
      O::store(value + N * int64_t(c.used_leaves[i]), load<O>(job.leaves, c.used_leaves[i], first, count));
    for (int32_t s = 0; s < c.num_sums; ++s) {
      const int32_t begin = c.edge_start[s], fan_in = c.edge_start[s + 1] - begin;
      const int32_t w = job.weights.data ? c.first_weight[s] : -1;
      V best = edge(begin, w);
      for (int32_t i = 1; i < fan_in; ++i) best = O::max(edge(begin + i, w < 0 ? w : w + i), best);
      O::store(value + N * int64_t(c.num_leaves + s), best);
    }
  }

  // From the root downward, takes the first of each sum's largest edges, like argmax.
  void down() {
    const Plan& c = *job.plan;
    std::memset(used, 0, size_t(c.num_rows()) * sizeof(uint32_t));
    used[c.root_row] = first_lanes(count);
    for (int32_t s = c.num_sums - 1; s >= 0; --s) {
      uint32_t open = used[c.num_leaves + s];
      if (!open) continue;
      const int32_t begin = c.edge_start[s], end = c.edge_start[s + 1];
      const int32_t w = job.weights.data ? c.first_weight[s] : -1;
      const V best = O::load(value + N * int64_t(c.num_leaves + s));
      for (int32_t e = begin; e < end && open; ++e) {
        uint32_t take = open;
        if (e + 1 < end) take &= ~O::greater(best, edge(e, w < 0 ? w : w + (e - begin)));
        open &= ~take;
        if (!take) continue;
        for (int32_t f = c.factor_start[e]; f < c.factor_start[e + 1]; ++f) used[c.factors[f]] |= take;
      }
    }
  }

  // Lanes in which a literal is impossible.
  SEMPROLA_INLINE uint32_t excluded(int64_t row) const {
    return O::greater(O::set(-largest<T>()), load<O>(job.leaves, row, first, count));
  }

  void write() const {
    const Plan& c = *job.plan;
    const V zero = O::set(T(0)), one = O::set(T(1)), half = O::set(T(0.5));
    const uint32_t all = first_lanes(count);
    const Matrix<const T> defaults{job.defaults, job.columns, 1};
    const V top = O::load(value + N * int64_t(c.root_row));
    const uint32_t impossible = ~O::greater(top, O::set(-T(HUGE_VAL))) & all;
    for (int32_t v = 0; v < c.num_leaves / 2; ++v) {
      uint32_t ones = used[2 * v + 1];
      const uint32_t absent = all & ~(ones | used[2 * v]);
      if (absent && c.has_default[v]) ones |= absent & O::greater(load<O>(defaults, v, first, count), half);
      // a certain value stays certain where a branch leaves the variable out
      if (absent | impossible) ones = (ones | excluded(2 * v)) & ~excluded(2 * v + 1);
      store<O>(job.states + v * job.columns + first, O::select(ones, one, zero), count);
    }
  }
};

template <class O>
void maximize_tile(const MaximizeJob<typename O::T>& job, int64_t first, int count, typename O::T* scratch,
                   uint32_t* used) {
  BestTile<O> tile{job, first, count, scratch, used};
  tile.up();
  const typename O::T* top = scratch + O::N * int64_t(job.plan->root_row);
  for (int i = 0; i < count; ++i) job.value[first + i] = top[i];
  tile.down();
  if (job.states) tile.write();
  for (int64_t row = 0; job.literals && row < job.plan->num_leaves; ++row)
    store<O>(job.literals + row * job.columns + first,
             O::select(used[row], O::set(typename O::T(1)), O::set(typename O::T(0))), count);
}

SEMPROLA_INLINE uint32_t mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// Random numbers that depend only on the seed, the sample and the row, however the work is divided among threads.
template <class O>
struct Random {
  using T = typename O::T;
  uint32_t low[O::N], high[O::N];

  void start(int lane, uint64_t seed, uint64_t sample) {
    uint64_t z = seed + 0x9e3779b97f4a7c15u * (sample + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    low[lane] = uint32_t(z);
    high[lane] = uint32_t(z >> 32);
  }

  // In [0, 1), for every lane.
  SEMPROLA_INLINE typename O::V uniform(uint32_t row) const {
    T numbers[O::N];
    for (int i = 0; i < O::N; ++i) {
      const uint32_t x = mix(mix(low[i] + row * 0x9e3779b9u) + high[i]);
      if (sizeof(T) == 4) {
        numbers[i] = T(int32_t(x >> 8)) * T(0x1p-24);
      } else {
        const uint32_t y = mix(x + high[i] + 0x85ebca6bu);
        numbers[i] = (T(int32_t(x >> 5)) * T(0x1p26) + T(int32_t(y >> 6))) * T(0x1p-53);
      }
    }
    return O::load(numbers);
  }
};

template <class O>
struct SampleTile {
  using T = typename O::T;
  using V = typename O::V;
  static constexpr int N = O::N;

  const SampleJob<T>& job;
  const Tile<O>& tile;
  const int64_t first;
  const int count;
  uint32_t* used;  // [rows]: the lanes whose sample uses it
  int64_t sample[N];
  Random<O> random;

  SEMPROLA_INLINE void take(int32_t e, uint32_t lanes) {
    const Plan& c = tile.c;
    for (int32_t f = c.factor_start[e]; f < c.factor_start[e + 1]; ++f) used[c.factors[f]] |= lanes;
  }

  // Draws an edge of one sum for the lanes that use it.
  SEMPROLA_INLINE void draw(int32_t s, const typename Tile<O>::View& view) {
    const Plan& c = tile.c;
    const int64_t row = int64_t(c.num_leaves) + s;
    const int32_t begin = c.edge_start[s], fan_in = c.edge_start[s + 1] - begin;
    uint32_t open = used[row];
    if (fan_in == 1) return take(begin, open);
    if (fan_in == 2 && c.keeps_shares()) {
      const T* shares = tile.shares + 2 * N * int64_t(s);
      const V left = O::sub(O::load(shares), random.uniform(uint32_t(row)));
      const V none = O::set(T(0));
      // the second edge takes the rest, unless it is impossible and the rest is only a rounding error
      const uint32_t chosen = open & (O::greater(left, none) | ~O::greater(O::load(shares + N), none));
      take(begin, chosen);
      return take(begin + 1, open & ~chosen);
    }
    const int32_t w = job.weights.data ? c.first_weight[s] : -1;
    // the exponent of a sum is minus infinity only if nothing is drawn from it
    const Number<O> sum = tile.at(row);
    const V top = O::max(sum.exponent, O::set(lowest<T>()));
    V left = O::mul(random.uniform(uint32_t(row)), sum.mantissa);
    for (int32_t i = 0; i + 1 < fan_in && open; ++i) {
      const Number<O> part = tile.template edge<false>(view, row, begin + i, w < 0 ? w : w + i);
      const V share = O::scale(part.mantissa, O::sub(part.exponent, top));
      const uint32_t here = open & O::greater(share, left);
      left = O::sub(left, share);
      open &= ~here;
      if (here) take(begin + i, here);
    }
    if (!open) return;
    // the last edge takes the rest, unless it is impossible and the rest is only a rounding error
    const Number<O> part = tile.template edge<false>(view, row, begin + fan_in - 1, w < 0 ? w : w + fan_in - 1);
    const uint32_t good = open & O::greater(part.exponent, O::set(-T(HUGE_VAL)));
    if (good) take(begin + fan_in - 1, good);
    for (uint32_t bad = open & ~good, lane = 0; bad; bad >>= 1, ++lane)
      if (bad & 1) take(last_possible(s, view, int(lane)), uint32_t(1) << lane);
  }

  int32_t last_possible(int32_t s, const typename Tile<O>::View& view, int lane) const {
    const Plan& c = tile.c;
    const int32_t w = job.weights.data ? c.first_weight[s] : -1;
    int32_t i = c.edge_start[s + 1] - c.edge_start[s] - 2;
    for (; i > 0; --i) {
      T exponent[N];
      O::store(exponent, tile.template edge<false>(view, 0, c.edge_start[s] + i, w < 0 ? w : w + i).exponent);
      if (exponent[lane] > -T(HUGE_VAL)) break;
    }
    return c.edge_start[s] + i;
  }

  void write(uint32_t lanes) const {
    const Plan& c = tile.c;
    const Matrix<const T> defaults{job.defaults, job.columns, 1};
    bool together = lanes == first_lanes(count);
    for (int i = 1; i < count; ++i) together = together && sample[i] == sample[0] + i;
    for (int32_t v = 0; v < c.num_leaves / 2; ++v) {
      uint32_t ones = used[2 * v + 1];
      const uint32_t absent = lanes & ~(ones | used[2 * v]);
      if (absent && c.has_default[v])
        ones |= absent & O::greater(load<O>(defaults, v, first, count), random.uniform(uint32_t(c.num_rows() + v)));
      T* out = job.states + v * job.samples;
      if (together) {
        store<O>(out + sample[0], O::select(ones, O::set(T(1)), O::set(T(0))), count);
        continue;
      }
      for (int lane = 0; lane < count; ++lane)
        if ((lanes >> lane) & 1) out[sample[lane]] = T((ones >> lane) & 1);
    }
  }
};

// Upward once; then, for one sample of every column at a time, downward through the sums that the samples use.
template <class O>
void sample_tile(const SampleJob<typename O::T>& job, int64_t first, int count, typename O::T* scratch,
                 uint32_t* used) {
  const Plan& c = *job.plan;
  Tile<O> tile(c, scratch);
  const typename Tile<O>::View view{job.weights, first, count, nullptr, 0};
  tile.leaves(job.leaves, first, count);
  if (c.keeps_shares())
    tile.template up<false, true>(view);
  else
    tile.template up<false, false>(view);
  SampleTile<O> drawing{job, tile, first, count, used, {}, {}};
  for (int64_t turn = 0;; ++turn) {
    uint32_t lanes = 0;
    for (int lane = 0; lane < count; ++lane) {
      const int64_t i = job.sample_start[first + lane] + turn;
      if (i >= job.sample_start[first + lane + 1]) continue;
      drawing.sample[lane] = job.sample[i];
      drawing.random.start(lane, job.seed, uint64_t(job.sample[i]));
      lanes |= uint32_t(1) << lane;
    }
    if (!lanes) return;
    std::memset(used, 0, size_t(c.num_rows()) * sizeof(uint32_t));
    used[c.root_row] = lanes;
    for (int32_t s = c.num_sums - 1; s >= 0; --s)
      if (used[c.num_leaves + s]) drawing.draw(s, view);
    drawing.write(lanes);
  }
}
