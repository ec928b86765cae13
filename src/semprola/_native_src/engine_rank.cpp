// Functions for Python: the k best paths of a plan. The max-product kernel first finds the best values of all rows.
// After that, only rows that a path needs are visited: a row is asked for its next best path when that may be part of
// a result.

#include <algorithm>
#include <limits>
#include <vector>

#include "engine_dispatch.hpp"

namespace semprola {
namespace {

// One column. No recursion: plans may be deep.
template <class T>
class Ranking {
 public:
  explicit Ranking(const Plan& plan) : c_(plan), place_(plan.num_sums, -1) {}

  // Best values of rows, `stride` apart; weights may be null.
  void start(const T* best, int64_t stride, const Matrix<const T>& weights, int64_t column) {
    for (const List& list : lists_) place_[list.sum] = -1;
    lists_.clear();
    ranks_.clear();
    best_ = best;
    stride_ = stride;
    weights_ = weights;
    column_ = column;
  }

  // The value of a path of the root, the best being number 0; minus infinity where there is none.
  T value(int32_t number) {
    const int32_t root = c_.root_row - c_.num_leaves;
    find(root, number);
    const std::vector<Path>& found = lists_[place_[root]].found;
    return number < int32_t(found.size()) ? found[number].value : -std::numeric_limits<T>::infinity();
  }

  // Calls visit(literal) for the literals of a path that value() has found.
  template <class Visit>
  void trace(int32_t number, Visit visit) {
    wanted_.push_back({c_.root_row - c_.num_leaves, number});
    while (!wanted_.empty()) {
      const Want want = wanted_.back();
      wanted_.pop_back();
      find(want.sum, want.number, wanted_.size());  // the best path of a row may never have been asked for
      const std::vector<Path>& found = lists_[place_[want.sum]].found;
      if (want.number >= int32_t(found.size())) continue;  // sums of huge numbers, added up in another order
      const Path path = found[want.number];
      int32_t i = 0;
      for (int32_t f = c_.factor_start[path.edge]; f < c_.factor_start[path.edge + 1]; ++f) {
        const int32_t row = c_.factors[f];
        if (row < c_.num_leaves)
          visit(row);
        else
          wanted_.push_back({row - c_.num_leaves, rank(path, i++)});
      }
    }
  }

 private:
  // An edge and, for each sum among its factors, which of its paths. Ranks that are all zero are not stored.
  struct Path {
    T value;
    int32_t edge, last;  // last: before it, none may be raised any more
    int64_t ranks;       // where they start, or -1

    bool operator<(const Path& other) const { return value < other.value; }
  };

  struct List {
    int32_t sum;
    std::vector<Path> found, candidates;  // best first; a heap
    int32_t raised;                       // next of the last found path's ranks to be raised, -1 when all were
  };

  struct Want {
    int32_t sum, number;
  };

  int32_t rank(const Path& path, int32_t i) const { return path.ranks < 0 ? 0 : ranks_[size_t(path.ranks + i)]; }

  T weight(int32_t s, int32_t e) const {
    if (!weights_.data || c_.first_weight[s] < 0) return T(0);
    return weights_.at(c_.first_weight[s] + (e - c_.edge_start[s]), column_);
  }

  void open(int32_t s) {
    place_[s] = int32_t(lists_.size());
    lists_.push_back({s, {}, {}, -1});
    std::vector<Path>& heap = lists_.back().candidates;
    for (int32_t e = c_.edge_start[s]; e < c_.edge_start[s + 1]; ++e) {
      T sum = weight(s, e);
      for (int32_t f = c_.factor_start[e]; f < c_.factor_start[e + 1]; ++f) sum += best_[c_.factors[f] * stride_];
      if (sum > -std::numeric_limits<T>::infinity()) heap.push_back({sum, e, 0, -1});
    }
    std::make_heap(heap.begin(), heap.end());
  }

  // Whether a sum's list is as long as it needs to be, or complete.
  bool has(int32_t s, int32_t number) const {
    if (place_[s] < 0) return false;
    const List& list = lists_[place_[s]];
    return number < int32_t(list.found.size()) || (list.candidates.empty() && list.raised < 0);
  }

  // Makes a sum's list long enough; entries on the stack below `bottom` belong to other calls.
  void find(int32_t sum, int32_t number, size_t bottom = 0) {
    if (has(sum, number)) return;
    wanted_.push_back({sum, number});
    while (wanted_.size() > bottom) {
      const Want want = wanted_.back();
      if (place_[want.sum] < 0) open(want.sum);
      if (has(want.sum, want.number))
        wanted_.pop_back();
      else
        extend(want.sum);
    }
  }

  // One step: raise the ranks of the last found path, one by one, or take the next best candidate. If the next path of
  // another sum is needed first, that sum is pushed onto the stack.
  void extend(int32_t s) {
    List& list = lists_[place_[s]];
    if (list.raised >= 0) {
      const Path path = list.found.back();
      int32_t i = 0;
      for (int32_t f = c_.factor_start[path.edge]; f < c_.factor_start[path.edge + 1]; ++f) {
        if (c_.factors[f] < c_.num_leaves || i++ < list.raised) continue;
        const int32_t child = c_.factors[f] - c_.num_leaves, next = rank(path, i - 1) + 1;
        if (!has(child, next)) return wanted_.push_back({child, next});
        if (next < int32_t(lists_[place_[child]].found.size())) raise(list, path, i - 1);
        list.raised = i;
      }
      list.raised = -1;
    }
    if (list.candidates.empty()) return;
    std::pop_heap(list.candidates.begin(), list.candidates.end());
    list.found.push_back(list.candidates.back());
    list.candidates.pop_back();
    list.raised = list.found.back().last;
  }

  // Each combination of ranks comes from exactly one other, by raising the last nonzero rank or one after it, so that
  // none is found twice.
  void raise(List& list, const Path& path, int32_t which) {
    const int64_t start = int64_t(ranks_.size());
    T sum = weight(list.sum, path.edge);
    int32_t i = 0;
    for (int32_t f = c_.factor_start[path.edge]; f < c_.factor_start[path.edge + 1]; ++f) {
      const int32_t row = c_.factors[f];
      if (row < c_.num_leaves) {
        sum += best_[row * stride_];
        continue;
      }
      const int32_t number = rank(path, i) + (i == which);
      ranks_.push_back(number);
      sum += number ? lists_[place_[row - c_.num_leaves]].found[number].value : best_[row * stride_];
      ++i;
    }
    list.candidates.push_back({sum, path.edge, which, start});
    std::push_heap(list.candidates.begin(), list.candidates.end());
  }

  const Plan& c_;
  std::vector<int32_t> place_;  // of each sum's list, -1 for none
  std::vector<List> lists_;
  std::vector<int32_t> ranks_;
  std::vector<Want> wanted_;
  const T* best_ = nullptr;
  int64_t stride_ = 0, column_ = 0;
  Matrix<const T> weights_{};
};

// Fills values [k, columns] and states [variables, k, columns], which must be zero before.
template <class T>
void rank(const Plan& c, const Matrix<const T>& weights, const Matrix<const T>& leaves, int64_t columns, int32_t k,
          T* values, T* states, int threads) {
  require(columns >= 0 && k >= 0, "rank: a negative number of columns or states");
  const Kernels<T>& kernels = kernels_for(leaves.data, c, columns);
  std::vector<T> tops(columns);
  const MaximizeJob<T> job{&c, weights, leaves, nullptr, columns, tops.data(), nullptr, nullptr};
  const int lanes = kernels.lanes;
  run_tiles(useful_threads(threads, c, columns), (columns + lanes - 1) / lanes, [&](const auto& next) {
    Scratch scratch(lanes * c.num_rows() * int64_t(sizeof(T))), used(c.num_rows() * int64_t(sizeof(uint32_t)));
    Ranking<T> ranking(c);
    for (int64_t tile = next(); tile >= 0; tile = next()) {
      const int64_t first = tile * lanes, end = std::min(columns, first + lanes);
      kernels.maximize(job, first, int(end - first), scratch.as<T>(), used.as<uint32_t>());
      for (int64_t column = first; column < end; ++column) {
        ranking.start(scratch.as<T>() + (column - first), lanes, weights, column);
        for (int32_t i = 0; i < k; ++i) {
          T* state = states + i * columns + column;
          const T value = values[i * columns + column] = ranking.value(i);
          if (value == -std::numeric_limits<T>::infinity()) continue;
          ranking.trace(i, [&](int32_t literal) { state[int64_t(literal / 2) * k * columns] = T(literal % 2); });
        }
      }
    }
  });
}

}  // namespace
}  // namespace semprola

using namespace semprola;

#define SEMPROLA_ENGINE(T_, suffix)                                                                                 \
  SEMPROLA_EXPORT int semprola_rank_##suffix(const void* plan, SEMPROLA_M(T_, weights), SEMPROLA_M(T_, leaves),     \
                                             int64_t columns, int32_t k, T_* values, T_* states, int threads) {     \
    return guarded([&] {                                                                                            \
      rank<T_>(plan_of(plan, weights), SEMPROLA_AS_MATRIX(weights), SEMPROLA_AS_MATRIX(leaves), columns, k, values, \
               states, threads);                                                                                    \
    });                                                                                                             \
  }

SEMPROLA_ENGINE(float, float)
SEMPROLA_ENGINE(double, double)
