// Arithmetic on a tile of columns, one register wide. Included once per instruction set, inside its own namespace; uses
// nothing of the standard library, so that no code for one processor is shared with another.
//
// A number is a mantissa and an exponent, both floating point: x = mantissa * 2^exponent. Zero has the exponent
// minus infinity and any finite mantissa.

// For any processor and compiler: loops of fixed length, which some compilers turn into vector instructions.
template <class Scalar, class Integer, int Lanes>
struct PlainOps {
  using T = Scalar;
  static constexpr int N = Lanes;
  struct V {
    T x[N];
  };
  static constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52;
  static constexpr Integer kBias = sizeof(T) == 4 ? 127 : 1023;

#define SEMPROLA_LANES for (int i = 0; i < N; ++i)
  static SEMPROLA_INLINE V load(const T* p) {
    V r;
    SEMPROLA_LANES r.x[i] = p[i];
    return r;
  }
  static SEMPROLA_INLINE void store(T* p, V a) { SEMPROLA_LANES p[i] = a.x[i]; }
  static SEMPROLA_INLINE V set(T a) {
    V r;
    SEMPROLA_LANES r.x[i] = a;
    return r;
  }
  static SEMPROLA_INLINE V add(V a, V b) {
    SEMPROLA_LANES a.x[i] += b.x[i];
    return a;
  }
  static SEMPROLA_INLINE V sub(V a, V b) {
    SEMPROLA_LANES a.x[i] -= b.x[i];
    return a;
  }
  static SEMPROLA_INLINE V mul(V a, V b) {
    SEMPROLA_LANES a.x[i] *= b.x[i];
    return a;
  }
  static SEMPROLA_INLINE V div(V a, V b) {
    SEMPROLA_LANES a.x[i] /= b.x[i];
    return a;
  }
  static SEMPROLA_INLINE V inverse(V a) {
    SEMPROLA_LANES a.x[i] = T(1) / a.x[i];
    return a;
  }
  static SEMPROLA_INLINE V fma(V a, V b, V c) {
    SEMPROLA_LANES a.x[i] = a.x[i] * b.x[i] + c.x[i];
    return a;
  }
  static SEMPROLA_INLINE V max(V a, V b) {
    SEMPROLA_LANES a.x[i] = a.x[i] > b.x[i] ? a.x[i] : b.x[i];
    return a;
  }
  static SEMPROLA_INLINE V min(V a, V b) {
    SEMPROLA_LANES a.x[i] = a.x[i] < b.x[i] ? a.x[i] : b.x[i];
    return a;
  }
  // Minus infinity where x is that, else a; and one where x is minus infinity, else a.
  static SEMPROLA_INLINE V unless_zero(V x, V a) {
    SEMPROLA_LANES a.x[i] = x.x[i] == -kInfinity ? -kInfinity : a.x[i];
    return a;
  }
  static SEMPROLA_INLINE V one_if_zero(V x, V a) {
    SEMPROLA_LANES a.x[i] = x.x[i] == -kInfinity ? T(1) : a.x[i];
    return a;
  }
  static SEMPROLA_INLINE V select(uint32_t mask, V a, V b) {
    SEMPROLA_LANES a.x[i] = (mask >> i) & 1 ? a.x[i] : b.x[i];
    return a;
  }
  static SEMPROLA_INLINE uint32_t greater(V a, V b) {
    uint32_t mask = 0;
    SEMPROLA_LANES mask |= uint32_t(a.x[i] > b.x[i]) << i;
    return mask;
  }
  static SEMPROLA_INLINE bool any(V a) {
    bool some = false;
    SEMPROLA_LANES some |= a.x[i] != T(0);
    return some;
  }
  static SEMPROLA_INLINE V round(V a) {
    // adding and subtracting 1.5 * 2^mantissa rounds to the nearest whole number
    const T big = T(1.5) * T(Integer(1) << kMantissa);
    SEMPROLA_LANES a.x[i] = (a.x[i] + big) - big;
    return a;
  }
  // a * 2^power for whole numbers power up to 100; zero where that is below the smallest normal number
  static SEMPROLA_INLINE V scale(V a, V power) {
    SEMPROLA_LANES {
      const bool tiny = !(power.x[i] > T(1 - kBias));
      // larger powers only scale zeros, and just have to be finite
      const T bounded = tiny ? T(0) : power.x[i] < T(kBias) ? power.x[i] : T(kBias);
      const Integer bits = (Integer(bounded) + kBias) << kMantissa;
      T factor;
      std::memcpy(&factor, &bits, sizeof(T));
      const T scaled = a.x[i] * factor;
      a.x[i] = power.x[i] != power.x[i] ? power.x[i] : tiny ? T(0) : scaled;
    }
    return a;
  }
  // Mantissa in [1, 2) and exponent; zero has the exponent minus infinity.
  static SEMPROLA_INLINE void split(V a, V& mantissa, V& exponent) {
    SEMPROLA_LANES {
      Integer bits;
      std::memcpy(&bits, &a.x[i], sizeof(T));
      const Integer power = ((bits >> kMantissa) & (2 * kBias + 1)) - kBias;
      const Integer one = (bits & ((Integer(1) << kMantissa) - 1)) | (kBias << kMantissa);
      T m;
      std::memcpy(&m, &one, sizeof(T));
      const bool good = a.x[i] > T(0);
      mantissa.x[i] = good ? m : a.x[i] != a.x[i] ? a.x[i] : T(1);
      exponent.x[i] = good ? T(power) : -kInfinity;
    }
  }
#undef SEMPROLA_LANES
  static constexpr T kInfinity = T(HUGE_VAL);
};

#if defined(__GNUC__)
// For any processor: vectors that GCC and Clang turn into NEON, SSE or scalar instructions.
template <class Scalar, class Integer, int Lanes>
struct VectorOps {
  using T = Scalar;
  static constexpr int N = Lanes;
  typedef Scalar V __attribute__((vector_size(Lanes * sizeof(Scalar))));
  typedef Integer I __attribute__((vector_size(Lanes * sizeof(Scalar))));
  static constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52;
  static constexpr Integer kBias = sizeof(T) == 4 ? 127 : 1023;
  static constexpr T kInfinity = T(HUGE_VAL);

  static SEMPROLA_INLINE V load(const T* p) {
    V r;
    std::memcpy(&r, p, sizeof(V));
    return r;
  }
  static SEMPROLA_INLINE void store(T* p, V a) { std::memcpy(p, &a, sizeof(V)); }
  static SEMPROLA_INLINE V set(T a) { return V{} + a; }
  static SEMPROLA_INLINE V add(V a, V b) { return a + b; }
  static SEMPROLA_INLINE V sub(V a, V b) { return a - b; }
  static SEMPROLA_INLINE V mul(V a, V b) { return a * b; }
  static SEMPROLA_INLINE V div(V a, V b) { return a / b; }
  static SEMPROLA_INLINE V inverse(V a) { return T(1) / a; }
  static SEMPROLA_INLINE V fma(V a, V b, V c) { return a * b + c; }
  static SEMPROLA_INLINE V choose(I mask, V a, V b) { return V((I(a) & mask) | (I(b) & ~mask)); }
  static SEMPROLA_INLINE V max(V a, V b) { return choose(a > b, a, b); }
  static SEMPROLA_INLINE V min(V a, V b) { return choose(a < b, a, b); }
  // Minus infinity where x is that, else a; and one where x is minus infinity, else a.
  static SEMPROLA_INLINE V unless_zero(V x, V a) { return choose(x == set(-kInfinity), set(-kInfinity), a); }
  static SEMPROLA_INLINE V one_if_zero(V x, V a) { return choose(x == set(-kInfinity), set(T(1)), a); }
  static SEMPROLA_INLINE V select(uint32_t mask, V a, V b) {
    I bit;
    for (int i = 0; i < N; ++i) bit[i] = Integer(1) << i;
    return choose((bit & Integer(mask)) != I{}, a, b);
  }
  static SEMPROLA_INLINE uint32_t greater(V a, V b) {
    const I above = a > b;
    uint32_t mask = 0;
    for (int i = 0; i < N; ++i) mask |= uint32_t(above[i] & 1) << i;
    return mask;
  }
  static SEMPROLA_INLINE bool any(V a) {
    const I other = a != V{};
    Integer some = 0;
    for (int i = 0; i < N; ++i) some |= other[i];
    return some != 0;
  }
  static SEMPROLA_INLINE V round(V a) {
    // adding and subtracting 1.5 * 2^mantissa rounds to the nearest whole number
    const T big = T(1.5) * T(Integer(1) << kMantissa);
    return (a + big) - big;
  }
  // a * 2^power for whole numbers power up to 100; zero where that is below the smallest normal number
  static SEMPROLA_INLINE V scale(V a, V power) {
    const I tiny = ~(power > set(T(1 - kBias)));
    const I bits = (__builtin_convertvector(choose(tiny, V{}, power), I) + kBias) << kMantissa;
    return choose(power != power, power, choose(tiny, V{}, a * V(bits)));
  }
  // Mantissa in [1, 2) and exponent; zero has the exponent minus infinity.
  static SEMPROLA_INLINE void split(V a, V& mantissa, V& exponent) {
    const I bits = I(a), good = a > V{};
    const V power = __builtin_convertvector(((bits >> kMantissa) & (2 * kBias + 1)) - kBias, V);
    const I one = (bits & ((Integer(1) << kMantissa) - 1)) | (kBias << kMantissa);
    mantissa = choose(good, V(one), choose(a != a, a, set(T(1))));
    exponent = choose(good, power, set(-kInfinity));
  }
};
#endif

// Two registers side by side: twice the work for every index read and every branch taken.
template <class O>
struct Twice {
  using T = typename O::T;
  static constexpr int N = 2 * O::N;
  struct V {
    typename O::V a, b;
  };
  static SEMPROLA_INLINE V load(const T* p) { return {O::load(p), O::load(p + O::N)}; }
  static SEMPROLA_INLINE void store(T* p, V x) {
    O::store(p, x.a);
    O::store(p + O::N, x.b);
  }
  static SEMPROLA_INLINE V set(T x) { return {O::set(x), O::set(x)}; }
  static SEMPROLA_INLINE V add(V x, V y) { return {O::add(x.a, y.a), O::add(x.b, y.b)}; }
  static SEMPROLA_INLINE V sub(V x, V y) { return {O::sub(x.a, y.a), O::sub(x.b, y.b)}; }
  static SEMPROLA_INLINE V mul(V x, V y) { return {O::mul(x.a, y.a), O::mul(x.b, y.b)}; }
  static SEMPROLA_INLINE V div(V x, V y) { return {O::div(x.a, y.a), O::div(x.b, y.b)}; }
  static SEMPROLA_INLINE V inverse(V x) { return {O::inverse(x.a), O::inverse(x.b)}; }
  static SEMPROLA_INLINE V fma(V x, V y, V z) { return {O::fma(x.a, y.a, z.a), O::fma(x.b, y.b, z.b)}; }
  static SEMPROLA_INLINE V max(V x, V y) { return {O::max(x.a, y.a), O::max(x.b, y.b)}; }
  static SEMPROLA_INLINE V min(V x, V y) { return {O::min(x.a, y.a), O::min(x.b, y.b)}; }
  static SEMPROLA_INLINE V unless_zero(V x, V y) { return {O::unless_zero(x.a, y.a), O::unless_zero(x.b, y.b)}; }
  static SEMPROLA_INLINE V one_if_zero(V x, V y) { return {O::one_if_zero(x.a, y.a), O::one_if_zero(x.b, y.b)}; }
  static SEMPROLA_INLINE V select(Word mask, V x, V y) {
    return {O::select(mask & ((Word(1) << O::N) - 1), x.a, y.a), O::select(mask >> O::N, x.b, y.b)};
  }
  static SEMPROLA_INLINE Word greater(V x, V y) {
    return Word(O::greater(x.a, y.a)) | Word(O::greater(x.b, y.b)) << O::N;
  }
  static SEMPROLA_INLINE bool any(V x) { return O::any(x.a) || O::any(x.b); }
  static SEMPROLA_INLINE V round(V x) { return {O::round(x.a), O::round(x.b)}; }
  static SEMPROLA_INLINE V scale(V x, V power) { return {O::scale(x.a, power.a), O::scale(x.b, power.b)}; }
  static SEMPROLA_INLINE void split(V x, V& mantissa, V& exponent) {
    O::split(x.a, mantissa.a, exponent.a);
    O::split(x.b, mantissa.b, exponent.b);
  }
};

#if defined(SEMPROLA_AVX2)
struct HalfFloat {
  using T = float;
  using V = __m256;
  static constexpr int N = 8;
  static SEMPROLA_INLINE V load(const T* p) { return _mm256_loadu_ps(p); }
  static SEMPROLA_INLINE void store(T* p, V a) { _mm256_storeu_ps(p, a); }
  static SEMPROLA_INLINE V set(T a) { return _mm256_set1_ps(a); }
  static SEMPROLA_INLINE V add(V a, V b) { return _mm256_add_ps(a, b); }
  static SEMPROLA_INLINE V sub(V a, V b) { return _mm256_sub_ps(a, b); }
  static SEMPROLA_INLINE V mul(V a, V b) { return _mm256_mul_ps(a, b); }
  static SEMPROLA_INLINE V div(V a, V b) { return _mm256_div_ps(a, b); }
  static SEMPROLA_INLINE V inverse(V a) { return _mm256_div_ps(set(T(1)), a); }
  static SEMPROLA_INLINE V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static SEMPROLA_INLINE V max(V a, V b) { return _mm256_max_ps(a, b); }
  static SEMPROLA_INLINE V min(V a, V b) { return _mm256_min_ps(a, b); }
  static SEMPROLA_INLINE V unless_zero(V x, V a) {
    const V low = set(-T(HUGE_VAL));
    return _mm256_blendv_ps(a, low, _mm256_cmp_ps(x, low, _CMP_EQ_OQ));
  }
  static SEMPROLA_INLINE V one_if_zero(V x, V a) {
    return _mm256_blendv_ps(a, set(T(1)), _mm256_cmp_ps(x, set(-T(HUGE_VAL)), _CMP_EQ_OQ));
  }
  static SEMPROLA_INLINE uint32_t greater(V a, V b) {
    return uint32_t(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)));
  }
  static SEMPROLA_INLINE bool any(V a) {
    return _mm256_movemask_ps(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_NEQ_UQ)) != 0;
  }
  static SEMPROLA_INLINE V round(V a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static SEMPROLA_INLINE V select(uint32_t mask, V a, V b) {
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i chosen = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(int(mask)), lane), lane);
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(chosen));
  }
  // the exponent field of a power of two is the power plus 127; at zero, the number is zero
  static SEMPROLA_INLINE V scale(V a, V power) {
    const __m256i field = _mm256_cvtps_epi32(add(max(power, set(-127.0f)), set(127.0f)));
    return mul(a, _mm256_castsi256_ps(_mm256_slli_epi32(field, 23)));
  }
  static SEMPROLA_INLINE void split(V a, V& mantissa, V& exponent) {
    const __m256i bits = _mm256_castps_si256(a);
    const V zero = _mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_EQ_OQ), nan = _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
    const V power = sub(_mm256_cvtepi32_ps(_mm256_srli_epi32(bits, 23)), set(127.0f));
    const __m256i digits = _mm256_and_si256(bits, _mm256_set1_epi32(0x007fffff));
    const V m = _mm256_castsi256_ps(_mm256_or_si256(digits, _mm256_set1_epi32(0x3f800000)));
    mantissa = _mm256_blendv_ps(m, a, nan);
    exponent = _mm256_blendv_ps(power, set(-T(HUGE_VAL)), zero);
  }
};

struct HalfDouble {
  using T = double;
  using V = __m256d;
  static constexpr int N = 4;
  static SEMPROLA_INLINE V load(const T* p) { return _mm256_loadu_pd(p); }
  static SEMPROLA_INLINE void store(T* p, V a) { _mm256_storeu_pd(p, a); }
  static SEMPROLA_INLINE V set(T a) { return _mm256_set1_pd(a); }
  static SEMPROLA_INLINE V add(V a, V b) { return _mm256_add_pd(a, b); }
  static SEMPROLA_INLINE V sub(V a, V b) { return _mm256_sub_pd(a, b); }
  static SEMPROLA_INLINE V mul(V a, V b) { return _mm256_mul_pd(a, b); }
  static SEMPROLA_INLINE V div(V a, V b) { return _mm256_div_pd(a, b); }
  static SEMPROLA_INLINE V inverse(V a) { return _mm256_div_pd(set(T(1)), a); }
  static SEMPROLA_INLINE V fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
  static SEMPROLA_INLINE V max(V a, V b) { return _mm256_max_pd(a, b); }
  static SEMPROLA_INLINE V min(V a, V b) { return _mm256_min_pd(a, b); }
  static SEMPROLA_INLINE V unless_zero(V x, V a) {
    const V low = set(-T(HUGE_VAL));
    return _mm256_blendv_pd(a, low, _mm256_cmp_pd(x, low, _CMP_EQ_OQ));
  }
  static SEMPROLA_INLINE V one_if_zero(V x, V a) {
    return _mm256_blendv_pd(a, set(T(1)), _mm256_cmp_pd(x, set(-T(HUGE_VAL)), _CMP_EQ_OQ));
  }
  static SEMPROLA_INLINE uint32_t greater(V a, V b) {
    return uint32_t(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_GT_OQ)));
  }
  static SEMPROLA_INLINE bool any(V a) {
    return _mm256_movemask_pd(_mm256_cmp_pd(a, _mm256_setzero_pd(), _CMP_NEQ_UQ)) != 0;
  }
  static SEMPROLA_INLINE V round(V a) { return _mm256_round_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static SEMPROLA_INLINE V select(uint32_t mask, V a, V b) {
    const __m256i lane = _mm256_setr_epi64x(1, 2, 4, 8);
    const __m256i chosen = _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(int64_t(mask)), lane), lane);
    return _mm256_blendv_pd(b, a, _mm256_castsi256_pd(chosen));
  }
  // adding 2^52 leaves a whole number in the low bits; the exponent field of a power of two is the power plus 1023
  static SEMPROLA_INLINE V scale(V a, V power) {
    const V shifted = add(add(max(power, set(-1023.0)), set(1023.0)), set(0x1p52));
    return mul(a, _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(shifted), 52)));
  }
  static SEMPROLA_INLINE void split(V a, V& mantissa, V& exponent) {
    const __m256i bits = _mm256_castpd_si256(a);
    const V zero = _mm256_cmp_pd(a, _mm256_setzero_pd(), _CMP_EQ_OQ), nan = _mm256_cmp_pd(a, a, _CMP_UNORD_Q);
    const __m256i field = _mm256_or_si256(_mm256_srli_epi64(bits, 52), _mm256_castpd_si256(set(0x1p52)));
    const V power = sub(_mm256_castsi256_pd(field), set(0x1p52 + 1023));
    const __m256i digits = _mm256_and_si256(bits, _mm256_set1_epi64x(0x000fffffffffffff));
    const V m = _mm256_castsi256_pd(_mm256_or_si256(digits, _mm256_set1_epi64x(0x3ff0000000000000)));
    mantissa = _mm256_blendv_pd(m, a, nan);
    exponent = _mm256_blendv_pd(power, set(-T(HUGE_VAL)), zero);
  }
};
#endif

#if defined(SEMPROLA_AVX512)
// AVX-512 has instructions for exactly this representation: scalef, getexp, getmant.
struct WideFloat {
  using T = float;
  using V = __m512;
  static constexpr int N = 16;
  static SEMPROLA_INLINE V load(const T* p) { return _mm512_loadu_ps(p); }
  static SEMPROLA_INLINE void store(T* p, V a) { _mm512_storeu_ps(p, a); }
  static SEMPROLA_INLINE V set(T a) { return _mm512_set1_ps(a); }
  static SEMPROLA_INLINE V add(V a, V b) { return _mm512_add_ps(a, b); }
  static SEMPROLA_INLINE V sub(V a, V b) { return _mm512_sub_ps(a, b); }
  static SEMPROLA_INLINE V mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static SEMPROLA_INLINE V div(V a, V b) { return _mm512_div_ps(a, b); }
  // for normal numbers: an estimate of 14 bits and one step of Newton's method, in a third of a division's time
  static SEMPROLA_INLINE V inverse(V a) {
    const V guess = _mm512_rcp14_ps(a);
    return _mm512_mul_ps(guess, _mm512_fnmadd_ps(a, guess, _mm512_set1_ps(2.0f)));
  }
  static SEMPROLA_INLINE V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static SEMPROLA_INLINE V max(V a, V b) { return _mm512_max_ps(a, b); }
  static SEMPROLA_INLINE V min(V a, V b) { return _mm512_min_ps(a, b); }
  static SEMPROLA_INLINE V unless_zero(V x, V a) {
    const V low = set(-float(HUGE_VAL));
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, low, _CMP_EQ_OQ), a, low);
  }
  static SEMPROLA_INLINE V one_if_zero(V x, V a) {
    const V low = set(-T(HUGE_VAL));
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, low, _CMP_EQ_OQ), a, set(T(1)));
  }
  static SEMPROLA_INLINE V select(uint32_t mask, V a, V b) { return _mm512_mask_blend_ps(__mmask16(mask), b, a); }
  static SEMPROLA_INLINE uint32_t greater(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
  static SEMPROLA_INLINE bool any(V a) { return _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_NEQ_UQ) != 0; }
  static SEMPROLA_INLINE V round(V a) { return _mm512_roundscale_ps(a, 0); }
  static SEMPROLA_INLINE V scale(V a, V power) { return _mm512_scalef_ps(a, power); }
  static SEMPROLA_INLINE void split(V a, V& mantissa, V& exponent) {
    mantissa = _mm512_getmant_ps(a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
    exponent = _mm512_getexp_ps(a);
  }
};

struct WideDouble {
  using T = double;
  using V = __m512d;
  static constexpr int N = 8;
  static SEMPROLA_INLINE V load(const T* p) { return _mm512_loadu_pd(p); }
  static SEMPROLA_INLINE void store(T* p, V a) { _mm512_storeu_pd(p, a); }
  static SEMPROLA_INLINE V set(T a) { return _mm512_set1_pd(a); }
  static SEMPROLA_INLINE V add(V a, V b) { return _mm512_add_pd(a, b); }
  static SEMPROLA_INLINE V sub(V a, V b) { return _mm512_sub_pd(a, b); }
  static SEMPROLA_INLINE V mul(V a, V b) { return _mm512_mul_pd(a, b); }
  static SEMPROLA_INLINE V div(V a, V b) { return _mm512_div_pd(a, b); }
  static SEMPROLA_INLINE V inverse(V a) { return _mm512_div_pd(set(T(1)), a); }
  static SEMPROLA_INLINE V fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
  static SEMPROLA_INLINE V max(V a, V b) { return _mm512_max_pd(a, b); }
  static SEMPROLA_INLINE V min(V a, V b) { return _mm512_min_pd(a, b); }
  static SEMPROLA_INLINE V unless_zero(V x, V a) {
    const V low = set(-HUGE_VAL);
    return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(x, low, _CMP_EQ_OQ), a, low);
  }
  static SEMPROLA_INLINE V one_if_zero(V x, V a) {
    const V low = set(-T(HUGE_VAL));
    return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(x, low, _CMP_EQ_OQ), a, set(T(1)));
  }
  static SEMPROLA_INLINE V select(uint32_t mask, V a, V b) { return _mm512_mask_blend_pd(__mmask8(mask), b, a); }
  static SEMPROLA_INLINE uint32_t greater(V a, V b) { return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ); }
  static SEMPROLA_INLINE bool any(V a) { return _mm512_cmp_pd_mask(a, _mm512_setzero_pd(), _CMP_NEQ_UQ) != 0; }
  static SEMPROLA_INLINE V round(V a) { return _mm512_roundscale_pd(a, 0); }
  static SEMPROLA_INLINE V scale(V a, V power) { return _mm512_scalef_pd(a, power); }
  static SEMPROLA_INLINE void split(V a, V& mantissa, V& exponent) {
    mantissa = _mm512_getmant_pd(a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
    exponent = _mm512_getexp_pd(a);
  }
};
using NarrowFloat = HalfFloat;
using NarrowDouble = HalfDouble;
#elif defined(SEMPROLA_AVX2)
using WideFloat = HalfFloat;
using WideDouble = HalfDouble;
using NarrowFloat = HalfFloat;
using NarrowDouble = HalfDouble;
#else
#if defined(__GNUC__)
using WideFloat = Twice<VectorOps<float, int32_t, 4> >;
using WideDouble = Twice<VectorOps<double, int64_t, 2> >;
#else
using WideFloat = PlainOps<float, int32_t, 8>;
using WideDouble = PlainOps<double, int64_t, 4>;
#endif
using NarrowFloat = WideFloat;
using NarrowDouble = WideDouble;
#endif
using OneFloat = PlainOps<float, int32_t, 1>;
using OneDouble = PlainOps<double, int64_t, 1>;

using BroadFloat = Twice<WideFloat>;
using BroadDouble = Twice<WideDouble>;
// Four side by side if there are enough registers: chains of dependent instructions leave room for others.
#if defined(SEMPROLA_AVX512)
using ChainFloat = Twice<BroadFloat>;
using ChainDouble = Twice<BroadDouble>;
#else
using ChainFloat = BroadFloat;
using ChainDouble = BroadDouble;
#endif

// Replaces minus infinity where a difference of two infinities would be NaN.
template <class T>
constexpr T lowest() {
  return std::numeric_limits<T>::lowest();
}

// exp(x) as mantissa * 2^exponent for finite x; the mantissa is between 0.7 and 1.42.
template <class O>
SEMPROLA_INLINE void exp_finite(typename O::V x, typename O::V& mantissa, typename O::V& exponent) {
  using T = typename O::T;
  using V = typename O::V;
  exponent = O::round(O::mul(x, O::set(T(1.44269504088896340736))));
  // log 2 in two parts; the first has few enough digits that its product with the exponent is exact
  V r = O::fma(exponent, O::set(T(-0.693145751953125)), x);
  r = O::fma(exponent, O::set(T(-1.42860682030941723212e-6)), r);
  // beyond what the digits of x can tell, rounding would leave any number here; NaN stays
  r = O::max(O::set(T(-0.35)), O::min(O::set(T(0.35)), r));
  // on |r| <= 0.35: for single precision 1 + r + r^2 q(r) with q fitted to a relative error of 3e-9, for double
  // precision 13 terms of the Taylor series
  constexpr double fitted[] = {1.0,
                               1.0,
                               0.4999999344683955,
                               0.16666520620537945,
                               0.04166838822378951,
                               0.008368717992153465,
                               0.0013814591426863057};
  constexpr double taylor[] = {
      1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
      1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  constexpr int terms = sizeof(T) == 4 ? 6 : 13;
  const double* coefficients = sizeof(T) == 4 ? fitted : taylor;
  V sum = O::set(T(coefficients[terms]));
  for (int i = terms - 1; i >= 0; --i) sum = O::fma(sum, r, O::set(T(coefficients[i])));
  mantissa = sum;
}

// The same for any x that is not plus infinity; zero has the exponent minus infinity.
template <class O>
SEMPROLA_INLINE void exp_parts(typename O::V x, typename O::V& mantissa, typename O::V& exponent) {
  typename O::V m, n;
  exp_finite<O>(x, m, n);
  // minus infinity has made the mantissa NaN
  mantissa = O::one_if_zero(x, m);
  exponent = O::unless_zero(x, n);
}

// exp(x) for x <= 0 (zero far below).
template <class O>
SEMPROLA_INLINE typename O::V exp_negative(typename O::V x) {
  using T = typename O::T;
  // smaller numbers round to zero; NaN stays
  x = O::max(O::set(sizeof(T) == 4 ? T(-150) : T(-800)), x);
  typename O::V n, m;
  exp_finite<O>(x, m, n);
  return O::scale(m, n);
}

// log(x) for normal x > 0.
template <class O>
SEMPROLA_INLINE typename O::V log_positive(typename O::V x) {
  using T = typename O::T;
  using V = typename O::V;
  V m, e;
  O::split(x, m, e);
  // to [1/sqrt 2, sqrt 2), where log m = 2 artanh((m - 1) / (m + 1))
  const Word high = O::greater(m, O::set(T(1.41421356237309504880)));
  m = O::select(high, O::mul(m, O::set(T(0.5))), m);
  e = O::select(high, O::add(e, O::set(T(1))), e);
  const V s = O::div(O::sub(m, O::set(T(1))), O::add(m, O::set(T(1))));
  const V q = O::mul(s, s);
  constexpr int terms = sizeof(T) == 4 ? 5 : 11;
  V sum = O::set(T(1) / T(2 * terms + 1));
  for (int i = terms - 1; i >= 0; --i) sum = O::fma(sum, q, O::set(T(1) / T(2 * i + 1)));
  const V small = O::fma(e, O::set(T(1.42860682030941723212e-6)), O::mul(O::add(s, s), sum));
  return O::fma(e, O::set(T(0.693145751953125)), small);
}
