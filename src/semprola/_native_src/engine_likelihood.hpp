// The likelihood of states: log-softmax terms of the sums that they reach. Included once per instruction set,
// after engine_kernels.hpp.

// Transposes a matrix of 64 by 64 bits: swaps halves, then quarters, and so on.
SEMPROLA_INLINE void transpose(Word* words) {
  Word mask = 0x00000000ffffffffu;
  for (int width = 32; width; width >>= 1, mask ^= mask << width)
    for (int block = 0; block < kWordBits; block += 2 * width)
      for (int i = block; i < block + width; ++i) {
        const Word moved = ((words[i] >> width) ^ words[i + width]) & mask;
        words[i] ^= moved << width;
        words[i + width] ^= moved;
      }
}

// Which of up to 64 contiguous numbers are ones.
template <class O>
SEMPROLA_INLINE Word ones_of(const typename O::T* p, int count) {
  using T = typename O::T;
  const typename O::V half = O::set(T(0.5));
  Word word = 0;
  int i = 0;
  for (; i + O::N <= count; i += O::N) word |= Word(O::greater(O::load(p + i), half)) << i;
  for (; i < count; ++i) word |= Word(p[i] > T(0.5)) << i;
  return word;
}

// For each variable, in which of up to 64 states it is one.
template <class O>
void ones(const Matrix<const typename O::T>& rows, int64_t first, int count, int32_t from, int32_t variables,
          Word* result) {
  using T = typename O::T;
  if (rows.column_stride == 1) {
    for (int32_t v = from; v < variables; ++v) result[v] = ones_of<O>(&rows.at(v, first), count);
    return;
  }
  // gathers one word per state and transposes: whole words in the result itself, the rest in a separate buffer
  const int32_t whole = from + (variables - from) / kWordBits * kWordBits;
  const int rest = variables - whole;
  Word last[kWordBits] = {};
  for (int i = 0; i < count; ++i) {
    const auto word = [&](int32_t v, int width) {
      const T* state = &rows.at(v, first + i);
      if (rows.row_stride == 1) return ones_of<O>(state, width);
      Word bits = 0;
      for (int j = 0; j < width; ++j) bits |= Word(state[j * rows.row_stride] > T(0.5)) << j;
      return bits;
    };
    for (int32_t v = from; v < whole; v += kWordBits) result[v + i] = word(v, kWordBits);
    if (rest) last[i] = word(whole, rest);
  }
  for (int32_t v = from; v < whole; v += kWordBits) {
    for (int i = count; i < kWordBits; ++i) result[v + i] = 0;
    transpose(result + v);
  }
  transpose(last);
  for (int j = 0; j < rest; ++j) result[whole + j] = last[j];
}

// Logarithms cost more than everything else, so one is taken of the product of all sums' partition functions.
template <class O>
struct LogProduct {
  using T = typename O::T;
  using V = typename O::V;
  V added = O::set(T(0)), mantissa = O::set(T(1)), exponent = O::set(T(0));

  SEMPROLA_INLINE void normalize() {
    V m, power;
    O::split(mantissa, m, power);
    mantissa = m;
    exponent = O::add(exponent, power);
  }

  V value() {
    normalize();
    return O::sub(added, O::fma(exponent, O::set(T(0.69314718055994530942)), log_positive<O>(mantissa)));
  }
};

// All sums that up to 64 states reach, for one component. Works sum by sum, since a sum's logits are contiguous.
// Given: some variables are not labels. Full: whole, contiguous tiles. Slopes: with the gradient.
template <class O, bool Given, bool Full, bool Slopes>
struct WordOfStates {
  using T = typename O::T;
  using V = typename O::V;
  static constexpr int N = O::N;

  const LikelihoodJob<T>& job;
  const Word *used, *open;
  const int64_t first;
  const int count;
  const T* cotangent;  // null: ones
  const int64_t columns;
  const bool alone;  // one sample: gradients are written, not added
  LogProduct<O> total[kWordBits / N];

  SEMPROLA_INLINE void add(const Reached& reached, int32_t fan_in, int64_t w) {
    for (int shift = 0; shift < count; shift += N) {
      const Word lanes = (reached.states >> shift) & (~Word(0) >> (kWordBits - N));
      if (fan_in == 2 && !Given)
        pair(w, lanes, shift);
      else
        many(w, fan_in, lanes, shift);
    }
  }

  void normalize() {
    for (LogProduct<O>& part : total) part.normalize();
  }

  SEMPROLA_INLINE int width(int shift) const { return Full || count - shift >= N ? N : count - shift; }

  SEMPROLA_INLINE V row(int64_t r, int shift) const {
    return Full ? O::load(job.logits.data + r * job.logits.row_stride + first + shift)
                : load<O>(job.logits, r, first + shift, width(shift));
  }

  SEMPROLA_INLINE V logit(int64_t w, int shift) const {
    if (!Given) return row(w - job.pairs, shift);
    const V x = job.is_zero(w) ? O::set(T(0)) : row(job.row_of(w), shift);
    return O::select(open[w] >> shift, x, O::set(-T(HUGE_VAL)));
  }

  SEMPROLA_INLINE V times(V part, int shift) const {
    return cotangent ? O::mul(part, O::load(cotangent + shift)) : part;
  }

  SEMPROLA_INLINE void slope(int64_t r, int shift, V part) const {
    T* p = job.gradient + r * columns + first + shift;
    if (alone) return store<O>(p, part, width(shift));
    T numbers[N];
    O::store(numbers, part);
    for (int j = 0; j < width(shift); ++j) p[j] += numbers[j];
  }

  // log p = min(lead, 0) - log(1 + exp(-|lead|)) for the lead of the chosen edge over the other.
  SEMPROLA_INLINE void pair(int64_t w, Word lanes, int shift) {
    const V zero = O::set(T(0)), one = O::set(T(1));
    const Word second = used[w + 1] >> shift;
    const V above = row(w / 2, shift);
    const V below = O::sub(zero, above);
    const V lead = O::select(second, above, below);
    const V small = exp_negative<O>(O::min(above, below));
    const V sum = O::add(one, small);
    LogProduct<O>& all = total[shift / N];
    all.added = O::add(all.added, O::select(lanes, O::min(lead, zero), zero));
    all.mantissa = O::mul(all.mantissa, O::select(lanes, sum, one));
    if (!Slopes) return;
    // the other's probability is what the chosen edge gains and the other loses
    const V other = O::mul(O::select(O::greater(lead, zero), small, one), O::inverse(sum));
    const V gain = O::select(lanes, times(other, shift), zero), loss = O::sub(zero, gain);
    slope(w / 2, shift, O::select(second, gain, loss));
  }

  SEMPROLA_INLINE void many(int64_t w, int32_t fan_in, Word lanes, int shift) {
    const V zero = O::set(T(0)), one = O::set(T(1));
    V top = logit(w, shift), chosen = top, sum = zero;
    for (int32_t i = 1; i < fan_in; ++i) {
      const V x = logit(w + i, shift);
      top = O::max(x, top);
      chosen = O::select(used[w + i] >> shift, x, chosen);
    }
    for (int32_t i = 0; i < fan_in; ++i) sum = O::add(sum, exp_negative<O>(O::sub(logit(w + i, shift), top)));
    LogProduct<O>& all = total[shift / N];
    all.added = O::add(all.added, O::select(lanes, O::sub(chosen, top), zero));
    all.mantissa = O::mul(all.mantissa, O::select(lanes, sum, one));
    if (!Slopes) return;
    const V scale = O::div(O::set(T(-1)), sum);
    for (int32_t i = 0; i < fan_in; ++i) {
      V part = O::mul(exp_negative<O>(O::sub(logit(w + i, shift), top)), scale);
      part = O::select(used[w + i] >> shift, O::add(part, one), part);
      if (!Given || !job.is_zero(w + i)) slope(job.row_of(w + i), shift, O::select(lanes, times(part, shift), zero));
    }
  }
};

// Works sum by sum for all words, so that memory is read in order.
template <class O, bool Given, bool Full, bool Slopes, int Words>
void likelihood_of(const LikelihoodJob<typename O::T>& job, const LikelihoodWord<typename O::T>* words, int64_t number,
                   const Word* open) {
  using States = WordOfStates<O, Given, Full, Slopes>;
  const Plan& c = *job.plan;
  const auto make = [&](const LikelihoodWord<typename O::T>& word) {
    return States{
        job, word.used, open, word.first, word.count, word.cotangent, job.components * job.batch, job.samples == 1, {}};
  };
  States states[2] = {make(words[0]), make(words[Words - 1])};
  int bits = 0;  // by how much the mantissas may have grown
  for (int64_t i = 0; i < number; ++i) {
    const int32_t s = words[0].reached[i].sum, fan_in = c.edge_start[s + 1] - c.edge_start[s];
    for (int k = 0; k < Words; ++k) states[k].add(words[k].reached[i], fan_in, c.first_weight[s]);
    bits += fan_in == 2 ? 1 : 31;
    if (bits < 90) continue;
    for (int k = 0; k < Words; ++k) states[k].normalize();
    bits = 0;
  }
  for (int k = 0; k < Words; ++k)
    for (int shift = 0; words[k].total && shift < words[k].count; shift += O::N)
      O::store(words[k].total + shift, states[k].total[shift / O::N].value());
}

// Several registers side by side (Chain) where they fit.
template <class O, class Chain>
void likelihood_of_words(const LikelihoodJob<typename O::T>& job, const LikelihoodWord<typename O::T>* words, int count,
                         int64_t number, const Word* open) {
  bool full = job.logits.column_stride == 1 && !open;
  for (int k = 0; k < count; ++k) full = full && words[k].count % Chain::N == 0;
  if (full && count == 2)
    return job.gradient ? likelihood_of<Chain, false, true, true, 2>(job, words, number, open)
                        : likelihood_of<Chain, false, true, false, 2>(job, words, number, open);
  if (full)
    return job.gradient ? likelihood_of<Chain, false, true, true, 1>(job, words, number, open)
                        : likelihood_of<Chain, false, true, false, 1>(job, words, number, open);
  if (count == 2) {
    for (int k = 0; k < 2; ++k) likelihood_of_words<O, Chain>(job, words + k, 1, number, open);
    return;
  }
  if (open)
    return job.gradient ? likelihood_of<O, true, false, true, 1>(job, words, number, open)
                        : likelihood_of<O, true, false, false, 1>(job, words, number, open);
  return job.gradient ? likelihood_of<O, false, false, true, 1>(job, words, number, open)
                      : likelihood_of<O, false, false, false, 1>(job, words, number, open);
}

template <class O>
void scale_columns(typename O::T* numbers, int64_t rows, int64_t columns, const typename O::T* factors) {
  for (int64_t row = 0; row < rows; ++row) {
    typename O::T* p = numbers + row * columns;
    int64_t i = 0;
    for (; i + O::N <= columns; i += O::N) O::store(p + i, O::mul(O::load(p + i), O::load(factors + i)));
    for (; i < columns; ++i) p[i] *= factors[i];
  }
}

template <class O>
typename O::T dot(const typename O::T* a, const typename O::T* b, int64_t length) {
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

template <class O>
void add_scaled(typename O::T* to, const typename O::T* a, typename O::T factor, int64_t length) {
  int64_t i = 0;
  const typename O::V f = O::set(factor);
  for (; i + O::N <= length; i += O::N) O::store(to + i, O::fma(f, O::load(a + i), O::load(to + i)));
  for (; i < length; ++i) to[i] += factor * a[i];
}

// Kernels that work on tiles exist for every width of tile, the others once.
template <class O, class Wide, class Chain>
constexpr Kernels<typename O::T> kernels_of() {
  return {O::N,
          scratch_numbers<O>,
          slot_numbers<O>,
          evaluate_tile<O>,
          maximize_tile<O>,
          sample_tile<O>,
          ones<Wide>,
          likelihood_of_words<Wide, Chain>,
          scale_columns<Wide>,
          dot<Wide>,
          add_scaled<Wide>,
          marginal_numbers<O>,
          marginal_tile<O>,
          tangent_numbers<O>,
          tangent_tile<O>,
          independent_numbers<O>,
          independent_tile<O>,
          likeliest_tile<O>,
          largest_norm<Wide>};
}

template <class O>
constexpr Kernels<float> for_float() {
  return kernels_of<O, WideFloat, ChainFloat>();
}
template <class O>
constexpr Kernels<double> for_double() {
  return kernels_of<O, WideDouble, ChainDouble>();
}

const KernelSet set = {for_float<WideFloat>(),   for_float<BroadFloat>(),   for_float<OneFloat>(),
                       for_float<NarrowFloat>(), for_double<WideDouble>(),  for_double<BroadDouble>(),
                       for_double<OneDouble>(),  for_double<NarrowDouble>()};
