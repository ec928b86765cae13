// Independent labels: from log-odds to log Z or the log-likelihood of states, their gradients, and best states, without
// literals' scores in between. Included once per instruction set, after engine_choose.hpp.

constexpr int32_t kBlock = 16;

// Copies a block of `rows` times `columns` numbers, at most kBlock each way, with rows and columns swapped.
template <class T>
SEMPROLA_INLINE void swap_block(const T* from, int64_t from_stride, int rows, int columns, T* to, int64_t to_stride) {
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) to[column * to_stride + row] = from[row * from_stride + column];
}

#if defined(SEMPROLA_AVX2)
// Eight by eight, in registers.
SEMPROLA_INLINE void swap_eight(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps(from + i * from_stride);
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
    a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
    a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_stride, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_stride, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
  }
}

SEMPROLA_INLINE void swap_block(const float* from, int64_t from_stride, int rows, int columns, float* to,
                                int64_t to_stride) {
  if (rows % 8 || columns % 8) return swap_block<float>(from, from_stride, rows, columns, to, to_stride);
  for (int row = 0; row < rows; row += 8)
    for (int column = 0; column < columns; column += 8)
      swap_eight(from + row * from_stride + column, from_stride, to + column * to_stride + row, to_stride);
}
#endif

// By blocks, so that what is read and what is written stays in the first-level cache.
template <class T>
void swap_all(const T* from, int64_t from_stride, int rows, int32_t columns, T* to, int64_t to_stride) {
  for (int32_t begin = 0; begin < columns; begin += kBlock)
    swap_block(from + begin, from_stride, rows, columns - begin < kBlock ? columns - begin : kBlock,
               to + begin * to_stride, to_stride);
}

// A tile of a matrix as [rows, N]; columns past the end repeat the last.
template <class O>
void load_tile(const Matrix<const typename O::T>& a, int64_t first, int count, int32_t rows, typename O::T* to) {
  if (a.row_stride != 1) {
    for (int32_t row = 0; row < rows; ++row) O::store(to + O::N * int64_t(row), load<O>(a, row, first, count));
    return;
  }
  swap_all(&a.at(0, first), a.column_stride, count, rows, to, int64_t(O::N));
  for (int i = count; i < O::N; ++i)
    for (int32_t row = 0; row < rows; ++row) to[O::N * int64_t(row) + i] = to[O::N * int64_t(row) + count - 1];
}

// The transposed tile: `count` columns of `rows` numbers each, one after another.
template <class O>
void store_columns(const typename O::T* tile, int32_t rows, int count, typename O::T* to) {
  for (int32_t begin = 0; begin < rows; begin += kBlock)
    swap_block(tile + O::N * int64_t(begin), int64_t(O::N), rows - begin < kBlock ? rows - begin : kBlock, count,
               to + begin, int64_t(rows));
}

template <class O>
int64_t independent_numbers(const Plan& c, bool flows) {
  return slot_numbers<O>(c, flows) + O::N * (int64_t(c.num_leaves) / 2);
}

template <class O>
struct IndependentTile : Tile<O, true> {
  using T = typename O::T;
  using V = typename O::V;
  static constexpr int N = O::N;
  using Tile<O, true>::c;

  IndependentTile(const IndependentJob<T>& j, int64_t first_, int count_, T* scratch)
      : Tile<O, true>(*j.plan, scratch),
        job(j),
        first(first_),
        count(count_),
        own(scratch + slot_numbers<O>(*j.plan, j.gradient != nullptr)) {}

  const IndependentJob<T>& job;
  const int64_t first;
  const int count;
  T* own;  // by variable: first the log-odds, in the end the gradient [variables, N]

  // 1 + m 2^x, divided by 2^top.
  static SEMPROLA_INLINE V one_plus(V m, V x, V top) {
    return O::add(O::scale(O::set(T(1)), O::sub(O::set(T(0)), top)), O::scale(m, O::sub(x, top)));
  }

  // Scores of the literals: 1 and the odds, or both probabilities where a branch may leave the variable open. Returns
  // the product of what is missing in the scores; with states, the product of the scores of their literals.
  Number<O> literals(const T* is_one) {
    const V zero = O::set(T(0)), one = O::set(T(1));
    V m = one, x = zero;  // of the result
    for (int32_t v = 0; v < c.num_leaves / 2; ++v) {
      Number<O> zeros{one, zero}, ones;
      exp_finite<O>(O::load(own + N * int64_t(v)), ones.mantissa, ones.exponent);
      const bool is_open = job.kinds[v] == kOpen;
      if (is_open || !is_one) {
        const V top = O::max(ones.exponent, zero), inverse = O::inverse(one_plus(ones.mantissa, ones.exponent, top));
        if (is_open) {
          zeros = {inverse, O::sub(zero, top)};
          ones = {O::mul(ones.mantissa, inverse), O::sub(ones.exponent, top)};
        } else {
          m = O::mul(m, inverse);
          x = O::sub(x, top);
        }
      }
      if (is_one) {
        const Word set = O::greater(O::load(is_one + N * int64_t(v)), O::set(T(0.5)));
        m = O::mul(m, O::select(set, ones.mantissa, zeros.mantissa));
        x = O::add(x, O::select(set, ones.exponent, zeros.exponent));
      }
      if ((v & 15) == 15) {  // far from the ends of the range
        V power;
        O::split(m, m, power);
        x = O::add(x, power);
      }
      this->put(2 * int64_t(v), zeros.mantissa, zeros.exponent);
      this->put(2 * int64_t(v) + 1, ones.mantissa, ones.exponent);
    }
    return {m, x};
  }

  void values(Number<O> all, Word holds) const {
    T m[N], x[N], outer_m[N], outer_x[N];
    const Number<O> root = this->at(this->root_place());
    O::store(m, root.mantissa);
    O::store(x, root.exponent);
    O::store(outer_m, all.mantissa);
    O::store(outer_x, all.exponent);
    const bool of_states = job.states.data;
    for (int i = 0; i < count; ++i) {
      const double ratio = of_states ? double(outer_m[i]) / double(m[i]) : double(outer_m[i]) * double(m[i]);
      const double power = of_states ? double(outer_x[i]) - double(x[i]) : double(outer_x[i]) + double(x[i]);
      const double value = std::log(ratio) + 0.69314718055994530942 * power;
      job.value[first + i] = !of_states || ((holds >> i) & 1) ? T(value) : -T(HUGE_VAL);
    }
  }

  // Of log Z by the log-odds: f1 (1 - p) - f0 p, with the flows into both literals and the probability p of one. Of the
  // log-likelihood of a state y: y - p less that.
  void gradients(const T* is_one, Word holds) {
    const V zero = O::set(T(0)), one = O::set(T(1));
    for (int32_t v = 0; v < c.num_leaves / 2; ++v) {
      const V f1 = O::load(this->flow + N * (2 * int64_t(v) + 1));
      // a branch that leaves out a zero-suppressed variable means zero
      const V f0 = job.kinds[v] == kSuppressed ? O::sub(one, f1) : O::load(this->flow + N * 2 * int64_t(v));
      V slope;
      if (is_one && job.kinds[v] != kOpen) {
        slope = choose(is_one, v, f0, O::sub(zero, f1));
      } else {
        const Number<O> zeros = this->at(2 * int64_t(v)), ones = this->at(2 * int64_t(v) + 1);
        V p, rest;
        if (job.kinds[v] == kOpen) {
          p = O::scale(ones.mantissa, ones.exponent);
          rest = O::scale(zeros.mantissa, zeros.exponent);
        } else {
          const V top = O::max(ones.exponent, zero), inverse = O::inverse(one_plus(ones.mantissa, ones.exponent, top));
          p = O::scale(O::mul(ones.mantissa, inverse), O::sub(ones.exponent, top));
          rest = O::scale(inverse, O::sub(zero, top));
        }
        // without differences of large numbers
        slope = is_one ? choose(is_one, v, O::fma(f0, p, O::mul(O::sub(one, f1), rest)),
                                O::sub(zero, O::fma(f1, rest, O::mul(O::sub(one, f0), p))))
                       : O::sub(O::mul(f1, rest), O::mul(f0, p));
      }
      O::store(own + N * int64_t(v), is_one ? O::select(holds, slope, zero) : slope);
    }
    store_columns<O>(own, c.num_leaves / 2, count, job.gradient + first * (c.num_leaves / 2));
  }

  static SEMPROLA_INLINE V choose(const T* is_one, int32_t v, V a, V b) {
    return O::select(O::greater(O::load(is_one + N * int64_t(v)), O::set(T(0.5))), a, b);
  }
};

// `holds`: in which of the columns the states are in the support; scratch has room for the states after the tile.
template <class O>
void independent_tile(const IndependentJob<typename O::T>& job, int64_t first, int count, typename O::T* scratch,
                      Word holds) {
  using T = typename O::T;
  const Plan& c = *job.plan;
  const int32_t variables = c.num_leaves / 2;
  IndependentTile<O> tile(job, first, count, scratch);
  T* is_one = nullptr;
  if (job.states.data) {
    is_one = tile.own + O::N * int64_t(variables);
    load_tile<O>(job.states, first, count, variables, is_one);
  }
  load_tile<O>(job.odds, first, count, variables, tile.own);
  const Matrix<const T> none{nullptr, 0, 0};
  const typename Tile<O, true>::View view{none, first, count, nullptr, 0};
  const Number<O> all = tile.literals(is_one);
  if (job.gradient)
    tile.up_with_shares(view);
  else
    tile.template up<false, false>(view);
  tile.values(all, holds);
  if (!job.gradient) return;
  tile.down_by_shares(view, nullptr, job.columns);
  tile.gradients(is_one, holds);
}

// Best states of independent labels [columns, variables]. The scores are those of `Literals` for a maximum, less what
// all states have in common.
template <class O>
void likeliest_tile(const IndependentJob<typename O::T>& job, int64_t first, int count, typename O::T* scratch,
                    uint32_t* used) {
  using T = typename O::T;
  using V = typename O::V;
  const Plan& c = *job.plan;
  const int32_t variables = c.num_leaves / 2;
  constexpr int N = O::N;
  T *leaves = scratch + N * c.num_rows(), *odds = leaves + N * int64_t(c.num_leaves),
    *states = odds + N * int64_t(variables);
  load_tile<O>(job.odds, first, count, variables, odds);
  const V zero = O::set(T(0));
  for (int32_t v = 0; v < variables; ++v) {
    const V own = O::load(odds + N * int64_t(v));
    O::store(leaves + 2 * N * int64_t(v), job.kinds[v] == kSuppressed ? zero : O::min(O::sub(zero, own), zero));
    O::store(leaves + 2 * N * int64_t(v) + N, job.kinds[v] == kSuppressed ? own : O::min(own, zero));
    O::store(odds + N * int64_t(v), O::select(O::greater(own, zero), O::set(T(1)), zero));
  }
  T value[N];
  const MaximizeJob<T> local{&c, {nullptr, 0, 0}, {leaves, N, 1}, odds, N, value, states, nullptr};
  maximize_tile<O>(local, 0, count, scratch, used);
  store_columns<O>(states, variables, count, job.value + first * variables);
}

// The largest Euclidean norm of a column of log-odds; infinite or NaN if some number is, or may be, no finite one.
template <class O>
double largest_norm(const typename O::T* numbers, int64_t columns, int64_t rows) {
  using T = typename O::T;
  double largest = 0.0;
  bool bad = false;
  for (int64_t column = 0; column < columns; ++column) {
    const T* p = numbers + column * rows;
    typename O::V sum = O::set(T(0)), other = O::set(T(0));
    int64_t i = 0;
    for (; i + 2 * O::N <= rows; i += 2 * O::N) {
      const typename O::V a = O::load(p + i), b = O::load(p + i + O::N);
      sum = O::fma(a, a, sum);
      other = O::fma(b, b, other);
    }
    T lanes[O::N];
    O::store(lanes, O::add(sum, other));
    double total = 0.0;
    for (int j = 0; j < O::N; ++j) total += double(lanes[j]);
    for (; i < rows; ++i) total += double(p[i]) * double(p[i]);
    bad |= !(total <= std::numeric_limits<T>::max());
    largest = total > largest ? total : largest;
  }
  return bad ? HUGE_VAL : std::sqrt(largest);
}
