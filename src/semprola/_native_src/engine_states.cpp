// Functions for Python: what states use of a plan, and their likelihood. All return a Status (engine_dispatch.hpp).

#include <algorithm>
#include <vector>

#include "engine_bits.hpp"
#include "engine_dispatch.hpp"

namespace semprola {
namespace {

Word all_of(int count) { return count == kWordBits ? ~Word(0) : (Word(1) << count) - 1; }

// Literals' bits from the variables' values. Those before `labels` may be left open: then both literals are possible.
template <class T>
void bits_of_rows(const Kernels<T>& k, const Matrix<const T>& rows, int64_t first, int count, int32_t labels, bool open,
                  Bits& bits) {
  const Word all = all_of(count);
  const int32_t variables = bits.c->num_leaves / 2, from = open ? labels : 0;
  Word* ones = bits.reach;  // not needed yet
  k.ones(rows, first, count, from, variables, ones);
  for (int32_t v = 0; v < variables; ++v) {
    bits.alive[2 * v] = v < from ? all : all & ~ones[v];
    bits.alive[2 * v + 1] = v < from ? all : ones[v];
  }
}

// The states of one or two words of columns, and what they use of the plan.
template <class T>
class Likelihood {
 public:
  // two words are processed together if literals decide, since each index serves both, unless memory is the limit
  static constexpr int kWords = 2;
  static constexpr int32_t kMostSums = 4096;

  Likelihood(const LikelihoodJob<T>& job, const Kernels<T>& k)
      : job_(job),
        k_(k),
        c_(*job.plan),
        together_(c_.decides && !job.codes && c_.num_sums <= kMostSums),
        memory_((together_ ? kWords : 1) * memory_of_word()),
        total_(job.components * kWords * kWordBits),
        cotangent_(job.cotangent ? job.components * kWords * kWordBits : 0) {
    for (int i = 0; i < (together_ ? kWords : 1); ++i) {
      char* const p = memory_.template as<char>() + i * memory_of_word();
      Word* const words = reinterpret_cast<Word*>(p + c_.num_sums * int64_t(sizeof(Reached)));
      const Bits bits{&c_, words, words + c_.num_rows()};
      found_[i] = {bits, reinterpret_cast<Reached*>(p), words + 2 * c_.num_rows(), 0};
    }
    has_given_ = 2 * job.labels < c_.num_leaves;
    if (has_given_) {
      open_memory_.resize(2 * c_.num_rows());
      open_ = {&c_, open_memory_.data(), open_memory_.data() + c_.num_rows()};
      open_words_.resize(c_.num_weights);
    }
    if (job.codes) states_.resize(c_.num_sums);
  }

  // Columns that are worked on together.
  int step() const { return together_ && !has_given_ ? kWords * kWordBits : kWordBits; }

  void run(int64_t sample, int64_t first, int count) {
    first_ = first;
    count_ = count;
    const int64_t column = sample * job_.batch + first;
    if (has_given_) {
      bits_of_rows(k_, job_.rows, column, count, job_.labels, true, open_);
      bits_up(open_);
    }
    number_ = 0;
    if (job_.codes)
      from_codes(column);
    else
      from_rows(column);
    const int words = (count + kWordBits - 1) / kWordBits;
    load_cotangent(sample);
    for (int64_t component = 0; component < job_.components; ++component) {
      LikelihoodWord<T> word[kWords];
      for (int i = 0; i < words; ++i) {
        const int64_t from = i * kWordBits, place = component * kWords * kWordBits + from;
        word[i] = {found_[i].reached,
                   found_[i].used,
                   component * job_.batch + first + from,
                   std::min(kWordBits, count - int(from)),
                   job_.value ? total_.data() + place : nullptr,
                   job_.cotangent ? cotangent_.data() + place : nullptr};
      }
      k_.likelihood(job_, word, words, number_, has_given_ ? open_words_.data() : nullptr);
    }
    if (job_.value) store(sample);
  }

 private:
  // For the sums that any state reaches: which states of one word reach them, and which use their weights.
  struct Found {
    Bits bits;
    Reached* reached;  // the first number_ of them
    Word* used;        // by weight, where its sum is reached
    Word possible;
  };

  // Not cleared: everything is written before it is read.
  int64_t memory_of_word() const {
    return c_.num_sums * int64_t(sizeof(Reached)) + (2 * c_.num_rows() + c_.num_weights) * int64_t(sizeof(Word));
  }

  void store(int64_t sample) const {
    for (int64_t component = 0; component < job_.components; ++component)
      for (int i = 0; i < count_; ++i)
        job_.value[(sample * job_.components + component) * job_.batch + first_ + i] =
            (found_[i / kWordBits].possible >> (i % kWordBits)) & 1 ? total_[component * kWords * kWordBits + i]
                                                                    : -std::numeric_limits<T>::infinity();
  }

  void from_rows(int64_t column) {
    for (int word = 0; word * kWordBits < count_; ++word)
      bits_of_rows(k_, job_.rows, column + word * kWordBits, std::min(kWordBits, count_ - word * kWordBits),
                   job_.labels, false, found_[word].bits);
    if (!c_.decides)
      search();
    else if (count_ > kWordBits)
      decide<2>();
    else
      decide<1>();
  }

  // Literals tell which edge of a sum is used: one pass downward. A state is impossible if they rule out all edges of
  // a sum that it reaches.
  template <int Words>
  void decide() {
    const Word* alive[Words];
    Word *reach[Words], *used[Words], possible[Words];
    for (int i = 0; i < Words; ++i) {
      alive[i] = found_[i].bits.alive;
      reach[i] = found_[i].bits.reach;
      used[i] = found_[i].used;
      std::fill(reach[i] + c_.num_leaves, reach[i] + c_.num_rows(), Word(0));
      possible[i] = reach[i][c_.root_row] = all_of(std::min(kWordBits, count_ - i * kWordBits));
    }
    for (int32_t s = c_.num_sums - 1; s >= 0; --s) {
      Word here[Words], left[Words], some = 0;
      for (int i = 0; i < Words; ++i) some |= left[i] = here[i] = reach[i][c_.num_leaves + s];
      if (!some) {
        clear(s);
        continue;
      }
      const int32_t w = c_.first_weight[s], begin = c_.edge_start[s], end = c_.edge_start[s + 1];
      if (w >= 0) {
        for (int i = 0; i < Words; ++i) found_[i].reached[number_] = {s, here[i]};
        leave_open(s);
        ++number_;
      }
      for (int32_t e = begin; e < end; ++e) {
        const int32_t from = c_.factor_start[e], to = c_.factor_start[e + 1];
        Word through[Words];
        for (int i = 0; i < Words; ++i) through[i] = here[i];
        for (int32_t f = from; f < to; ++f) {
          const int32_t row = c_.factors[f];
          for (int i = 0; row < c_.num_leaves && i < Words; ++i) through[i] &= alive[i][row];
        }
        for (int i = 0; i < Words; ++i) {
          left[i] &= ~through[i];
          if (w >= 0) used[i][w + (e - begin)] = through[i];
        }
        for (int32_t f = from; f < to; ++f)
          for (int i = 0; i < Words; ++i) reach[i][c_.factors[f]] |= through[i];
      }
      for (int i = 0; i < Words; ++i) possible[i] &= ~left[i];
    }
    for (int i = 0; i < Words; ++i) {
      found_[i].possible = possible[i];
      if (possible[i] == all_of(std::min(kWordBits, count_ - i * kWordBits))) continue;
      for (int64_t j = 0; j < number_; ++j) found_[i].reached[j].states &= possible[i];
    }
  }

  // A state uses exactly one edge of each sum that it reaches, so the last edge gets the states that the others leave.
  void search() {
    Bits& bits = found_[0].bits;
    bits_up(bits);
    Word *used = found_[0].used, *reach = bits.reach;
    std::fill(reach + c_.num_leaves, reach + c_.num_rows(), Word(0));
    found_[0].possible = reach[c_.root_row] = bits.alive[c_.root_row];
    for (int32_t s = c_.num_sums - 1; s >= 0; --s) {
      Word left = reach[c_.num_leaves + s];
      if (!left) {
        clear(s);
        continue;
      }
      const int32_t w = c_.first_weight[s], begin = c_.edge_start[s], end = c_.edge_start[s + 1];
      if (w >= 0) add(s, left);
      for (int32_t e = begin; e < end; ++e) {
        const Word through = e + 1 < end ? left & bits.edge(e) : left;
        left &= ~through;
        if (w >= 0) used[w + (e - begin)] = through;
        for (int32_t f = c_.factor_start[e]; f < c_.factor_start[e + 1]; ++f) reach[c_.factors[f]] |= through;
      }
    }
  }

  void from_codes(int64_t column) {
    Word possible = all_of(count_), *used = found_[0].used;
    for (int i = 0; i < count_; ++i) {
      const int32_t* code = job_.codes + (column + i) * job_.width;
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
    found_[0].possible = possible;
    for (int64_t i = 0; i < number_; ++i) {
      Reached& reached = found_[0].reached[i];
      reached.states = states_[reached.sum] & possible;
    }
    for (int32_t s = 0; job_.gradient && s < c_.num_sums; ++s)
      if (!states_[s]) clear(s);
    for (int64_t i = 0; i < number_; ++i) states_[found_[0].reached[i].sum] = 0;
  }

  void add(int32_t s, Word states) {
    found_[0].reached[number_++] = {s, states};
    leave_open(s);
  }

  void leave_open(int32_t s) {
    if (!has_given_) return;
    const int32_t w = c_.first_weight[s];
    for (int32_t e = c_.edge_start[s]; e < c_.edge_start[s + 1]; ++e)
      open_words_[w + (e - c_.edge_start[s])] = open_.edge(e);
  }

  // Sets the gradients of unused logits, which the kernel does not write.
  void clear(int32_t s) {
    const int32_t w = c_.first_weight[s], fan_in = c_.edge_start[s + 1] - c_.edge_start[s];
    if (w < 0 || !job_.gradient || job_.samples > 1) return;
    const int64_t from = job_.row_of(w), to = job_.row_of(w + fan_in - 1) + 1;
    for (int64_t row = from * job_.components; row < to * job_.components; ++row)
      std::fill_n(job_.gradient + row * job_.batch + first_, count_, T(0));
  }

  void load_cotangent(int64_t sample) {
    if (!job_.cotangent) return;
    for (int64_t component = 0; component < job_.components; ++component)
      std::copy_n(job_.cotangent + (sample * job_.components + component) * job_.batch + first_, count_,
                  cotangent_.data() + component * kWords * kWordBits);
  }

  const LikelihoodJob<T>& job_;
  const Kernels<T>& k_;
  const Plan& c_;
  const bool together_;
  Scratch memory_;
  Found found_[kWords] = {};
  std::vector<Word> open_memory_, open_words_;  // for each weight, the states whose given values leave it possible
  std::vector<Word> states_;                    // for each sum, the states that use it, while codes are read; else zero
  std::vector<T> total_, cotangent_;
  Bits open_{};
  bool has_given_ = false;
  int64_t number_ = 0, first_ = 0;
  int count_ = 0;
};

template <class T>
void likelihood(const LikelihoodJob<T>& job, int threads) {
  const Plan& c = *job.plan;
  require(job.samples >= 0 && job.components >= 0 && job.batch >= 0 && job.width >= 0,
          "likelihood: a negative number of samples, components, rows or codes");
  require(job.labels >= 0 && 2 * int64_t(job.labels) <= c.num_leaves, "likelihood: more labels than variables");
  require(job.pairs >= 0 && 2 * job.pairs <= c.num_weights, "likelihood: more pairs of weights than there are");
  const Kernels<T>& k = wide_kernels(job.logits.data);
  const int step = job.batch > kWordBits ? 2 * kWordBits : kWordBits;
  run_tiles(useful_threads(threads, *job.plan, job.samples * job.batch), (job.batch + step - 1) / step,
            [&](const auto& next) {
              Likelihood<T> worker(job, k);
              for (int64_t tile = next(); tile >= 0; tile = next()) {
                const int64_t end = std::min(job.batch, (tile + 1) * step);
                for (int64_t s = 0; s < job.samples; ++s)
                  for (int64_t first = tile * step; first < end; first += worker.step())
                    worker.run(s, first, int(std::min<int64_t>(worker.step(), end - first)));
              }
            });
}

// Which edges are possible (edges: 1) or used by a state (edges: 2), for bits from leaves.
template <class T>
void support(const Plan& c, const Matrix<const T>& leaves, int64_t columns, int edges, uint8_t* some, uint8_t* flags,
             int threads) {
  require(columns >= 0, "support: a negative number of columns");
  const int64_t tiles = (columns + kWordBits - 1) / kWordBits;
  run_tiles(useful_threads(threads, c, columns / 8), tiles, [&](const auto& next) {
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
          uint8_t* out = flags + (w + (e - c.edge_start[s])) * columns + first;
          for (int i = 0; i < count; ++i) out[i] = (word >> i) & 1;
        }
      }
    }
  });
}

// The active weights of each state as lists [columns, width]; if lists is null, only the length of the longest.
template <class T>
int64_t encode(const Plan& c, const Matrix<const T>& rows, int32_t labels, int64_t columns, int32_t* codes,
               int64_t width) {
  require(columns >= 0 && width >= 0, "encode: a negative number of columns or codes");
  const Kernels<T>& k = wide_kernels(rows.data);
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
template <class T>
bool is_binary(const T* numbers, int64_t length) {
  constexpr int64_t kBlock = 1024;
  for (int64_t first = 0; first < length; first += kBlock) {
    int wrong = 0;  // no branch inside, so that compilers vectorise the loop
    for (int64_t i = first; i < std::min(length, first + kBlock); ++i) wrong |= (numbers[i] != 0) & (numbers[i] != 1);
    if (wrong) return false;
  }
  return true;
}

// Multiplies columns by factors; with a stride of zero, all by the same factor.
template <class T>
void scale(T* numbers, int64_t rows, int64_t columns, const T* factors, int64_t stride) {
  if (!rows || !columns) return;
  bool ones = true;
  for (int64_t i = 0; i < (stride ? columns : 1); ++i) ones = ones && factors[i] == T(1);
  if (ones) return;
  if (stride) return wide_kernels(factors).scale_columns(numbers, rows, columns, factors);
  for (int64_t i = 0; i < rows * columns; ++i) numbers[i] *= *factors;
}

}  // namespace
}  // namespace semprola

using namespace semprola;

#define SEMPROLA_ENGINE(T_, suffix)                                                                                    \
  SEMPROLA_EXPORT int semprola_likelihood_##suffix(const void* plan, SEMPROLA_M(T_, logits), SEMPROLA_M(T_, rows),     \
                                                   const int32_t* codes, int64_t width, int32_t labels, int64_t pairs, \
                                                   int64_t samples, int64_t components, int64_t batch, T_* value,      \
                                                   const T_* cotangent, T_* gradient, int threads) {                   \
    return guarded([&] {                                                                                               \
      likelihood<T_>({&plan_of(plan, true), SEMPROLA_AS_MATRIX(logits), SEMPROLA_AS_MATRIX(rows), codes, width,        \
                      labels, pairs, samples, components, batch, value, cotangent, gradient},                          \
                     threads);                                                                                         \
    });                                                                                                                \
  }                                                                                                                    \
  SEMPROLA_EXPORT int semprola_support_##suffix(const void* plan, SEMPROLA_M(T_, leaves), int64_t columns, int edges,  \
                                                uint8_t* some, uint8_t* flags, int threads) {                          \
    return guarded([&] {                                                                                               \
      support<T_>(plan_of(plan, edges != 0), SEMPROLA_AS_MATRIX(leaves), columns, edges, some, flags, threads);        \
    });                                                                                                                \
  }                                                                                                                    \
  SEMPROLA_EXPORT int semprola_encode_##suffix(const void* plan, SEMPROLA_M(T_, rows), int32_t labels,                 \
                                               int64_t columns, int32_t* codes, int64_t width, int64_t* longest) {     \
    return guarded(                                                                                                    \
        [&] { *longest = encode<T_>(plan_of(plan, true), SEMPROLA_AS_MATRIX(rows), labels, columns, codes, width); }); \
  }                                                                                                                    \
  SEMPROLA_EXPORT int semprola_scale_##suffix(T_* numbers, int64_t rows, int64_t columns, const T_* factors,           \
                                              int64_t stride) {                                                        \
    return guarded([&] { scale<T_>(numbers, rows, columns, factors, stride); });                                       \
  }                                                                                                                    \
  SEMPROLA_EXPORT int semprola_is_binary_##suffix(const T_* numbers, int64_t length) {                                 \
    return is_binary<T_>(numbers, length);                                                                             \
  }

SEMPROLA_ENGINE(float, float)
SEMPROLA_ENGINE(double, double)
