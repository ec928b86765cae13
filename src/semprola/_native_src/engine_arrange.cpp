// Removes rows that are not needed and orders the others. No recursion: plans may be deep.

#include "engine_arrange.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace semprola {
namespace {

constexpr int32_t kNone = -1;

// Lists of numbers, one after another.
struct Lists {
  std::vector<int32_t> start{0}, items;

  void close() { start.push_back(int32_t(items.size())); }
  // Vectors that grow step by step take up to three times the memory of their final contents.
  void reserve(int32_t lists, int32_t numbers) {
    start.reserve(size_t(lists) + 1);
    items.reserve(numbers);
  }
  int32_t length(int32_t i) const { return start[i + 1] - start[i]; }
};

class Arranger {
 public:
  explicit Arranger(const GivenPlan& given) : c_(given), weighted_(given.first_weight != nullptr) {}

  OwnedPlan run() {
    skip_aliases();
    count_parents();
    decide();
    expand();
    stands_for_ = {};
    return renumber();
  }

 private:
  int64_t num_rows() const { return int64_t(c_.num_leaves) + c_.num_sums; }
  // From here on, sums are numbered by their place in the order.
  int32_t begin(int32_t s) const { return c_.edge_start[c_.order[s]]; }
  int32_t end(int32_t s) const { return c_.edge_start[c_.order[s] + 1]; }
  int32_t fan_in(int32_t s) const { return end(s) - begin(s); }
  int32_t weight(int32_t s) const { return weighted_ ? c_.first_weight[c_.order[s]] : -1; }
  // nothing uses it; with weights it is kept, because flows are returned for all weights, reached or not
  bool is_dead(int32_t s) const { return !parents_[s] && !weighted_; }
  bool is_sum(int32_t row) const { return row >= c_.num_leaves; }

  // Calls visit(row) for each factor of an edge, from the last to the first, with aliases resolved.
  template <class Visit>
  void each_row(int32_t e, const Visit& visit) const {
    for (int32_t f = c_.factor_start[e + 1] - 1; f >= c_.factor_start[e]; --f) {
      const int32_t row = stands_for_[c_.row_of(c_.factors[f])];
      if (row != kNone) visit(row);
    }
  }

  // How many rows an edge has, and the first of them (kNone if there are none).
  std::pair<int32_t, int32_t> rows_of(int32_t e) const {
    int32_t count = 0, first = kNone;
    each_row(e, [&](int32_t row) {
      ++count;
      first = row;
    });
    return {count, first};
  }

  // A sum that consists of a single row is an alias of that row; a sum that is always true is an alias of nothing.
  void skip_aliases() {
    stands_for_.resize(num_rows());
    std::iota(stands_for_.begin(), stands_for_.end(), 0);
    for (int32_t s = 0; s < c_.num_sums; ++s) {
      const int32_t row = c_.num_leaves + s;
      if (fan_in(s) != 1 || weight(s) >= 0 || row == c_.root_row) continue;
      const auto [count, first] = rows_of(begin(s));
      if (count <= 1) stands_for_[row] = first;
    }
  }

  void count_parents() {
    parents_.assign(c_.num_sums, 0);
    alone_.assign(c_.num_sums, 0);
    parents_[c_.root_row - c_.num_leaves] = 2;  // never merged into another sum
    for (int32_t s = c_.num_sums - 1; s >= 0; --s) {
      if (is_dead(s)) continue;
      for (int32_t e = begin(s); e < end(s); ++e) {
        const bool single = rows_of(e).first == 1;
        each_row(e, [&](int32_t row) {
          if (!is_sum(row)) return;
          const int32_t child = row - c_.num_leaves;
          parents_[child] = parents_[child] ? 2 : 1;
          alone_[child] = single;
        });
      }
    }
  }

  void decide() {
    kind_.assign(c_.num_sums, kKept);
    for (int32_t s = 0; s < c_.num_sums; ++s) {
      if (is_dead(s))
        kind_[s] = kDead;
      else if (parents_[s] == 1 && fan_in(s) == 1 && weight(s) < 0)
        kind_[s] = kProduct;
      else if (parents_[s] == 1 && alone_[s] && !weighted_)
        kind_[s] = kBranches;
    }
  }

  // The edges of every kept sum, in which the other sums are replaced by their edges.
  void expand() {
    factors_.reserve(c_.num_edges, c_.factor_start[c_.num_edges]);
    std::vector<int32_t> edges, rows;  // what remains to be done, last first
    for (int32_t s = 0; s < c_.num_sums; ++s) {
      if (kind_[s] != kKept) continue;
      kept_.push_back(s);
      push_edges(s, edges);
      while (!edges.empty()) {
        const int32_t e = edges.back();
        edges.pop_back();
        const auto [count, first] = rows_of(e);
        if (count == 1 && is(first, kBranches)) {
          push_edges(first - c_.num_leaves, edges);
          continue;
        }
        expand_edge(e, rows);
        factors_.close();
      }
      edge_start_.push_back(int32_t(factors_.start.size()) - 1);
    }
  }

  void push_edges(int32_t s, std::vector<int32_t>& edges) const {
    for (int32_t e = end(s) - 1; e >= begin(s); --e) edges.push_back(e);
  }

  void expand_edge(int32_t e, std::vector<int32_t>& rows) {
    push_rows(e, rows);
    while (!rows.empty()) {
      const int32_t row = rows.back();
      rows.pop_back();
      if (is(row, kProduct))
        push_rows(begin(row - c_.num_leaves), rows);
      else
        factors_.items.push_back(row);
    }
  }

  void push_rows(int32_t e, std::vector<int32_t>& rows) const {
    each_row(e, [&](int32_t row) { rows.push_back(row); });
  }

  // Sorted by level, number of edges, and numbers of factors.
  OwnedPlan renumber() const {
    const int32_t sums = int32_t(kept_.size());
    std::vector<int32_t> level(num_rows(), 0), order(sums), row_of(num_rows());
    for (int32_t i = 0; i < sums; ++i)
      for (int32_t f = factors_.start[edge_start_[i]]; f < factors_.start[edge_start_[i + 1]]; ++f)
        level[c_.num_leaves + kept_[i]] = std::max(level[c_.num_leaves + kept_[i]], 1 + level[factors_.items[f]]);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      const int32_t la = level[c_.num_leaves + kept_[a]], lb = level[c_.num_leaves + kept_[b]];
      return la != lb ? la < lb : is_before(a, b);
    });
    std::iota(row_of.begin(), row_of.begin() + c_.num_leaves, 0);
    for (int32_t i = 0; i < sums; ++i) row_of[c_.num_leaves + kept_[order[i]]] = c_.num_leaves + i;
    OwnedPlan made;
    made.edge_start.reserve(size_t(sums) + 1);
    if (weighted_) made.first_weight.reserve(sums);
    made.factor_start.reserve(factors_.start.size());
    made.factors.reserve(factors_.items.size());
    made.edge_start.push_back(0);
    made.factor_start.push_back(0);
    for (const int32_t i : order) {
      for (int32_t e = edge_start_[i]; e < edge_start_[i + 1]; ++e) {
        for (int32_t f = factors_.start[e]; f < factors_.start[e + 1]; ++f)
          made.factors.push_back(row_of[factors_.items[f]]);
        made.factor_start.push_back(int32_t(made.factors.size()));
      }
      made.edge_start.push_back(int32_t(made.factor_start.size()) - 1);
      if (weighted_) made.first_weight.push_back(weight(kept_[i]));
    }
    made.view.num_leaves = c_.num_leaves;
    made.view.num_weights = weighted_ ? c_.num_weights : 0;
    made.has_weights = weighted_;
    made.view.root_row = row_of[c_.root_row];
    made.has_default.assign(c_.has_default, c_.has_default + c_.num_leaves / 2);
    made.look();
    return made;
  }

  bool is_before(int32_t a, int32_t b) const {
    const int32_t edges_a = edge_start_[a + 1] - edge_start_[a], edges_b = edge_start_[b + 1] - edge_start_[b];
    if (edges_a != edges_b) return edges_a < edges_b;
    for (int32_t e = 0; e < edges_a; ++e) {
      const int32_t x = factors_.length(edge_start_[a] + e), y = factors_.length(edge_start_[b] + e);
      if (x != y) return x < y;
    }
    return false;
  }

  enum Kind : uint8_t { kKept, kDead, kProduct, kBranches };
  bool is(int32_t row, Kind kind) const { return is_sum(row) && kind_[row - c_.num_leaves] == kind; }

  const GivenPlan& c_;
  const bool weighted_;
  std::vector<int32_t> stands_for_;     // for each row, the row to use instead, or kNone
  std::vector<uint8_t> parents_;        // of each sum: none, one, or more (2)
  std::vector<uint8_t> alone_;          // whether the sum is the only factor of the (last) edge above it
  std::vector<Kind> kind_;              // of each sum
  std::vector<int32_t> kept_;           // sums
  std::vector<int32_t> edge_start_{0};  // of each kept sum
  Lists factors_;                       // of each of these edges
};

// Whether two edges have opposite literals among their factors; literals 2 v and 2 v + 1 are opposite.
bool are_opposed(const Plan& c, int32_t a, int32_t b) {
  for (int32_t f = c.factor_start[a]; f < c.factor_start[a + 1]; ++f)
    for (int32_t g = c.factor_start[b]; c.factors[f] < c.num_leaves && g < c.factor_start[b + 1]; ++g)
      if (c.factors[g] == (c.factors[f] ^ 1)) return true;
  return false;
}

bool decides(const Plan& c) {
  constexpr int32_t kMostEdges = 8, kMostFactors = 256;  // beyond these, the check takes longer than it saves
  for (int32_t s = 0; s < c.num_sums; ++s) {
    const int32_t begin = c.edge_start[s], end = c.edge_start[s + 1];
    if (end - begin > kMostEdges || c.factor_start[end] - c.factor_start[begin] > kMostFactors) return false;
    for (int32_t a = begin; a < end; ++a)
      for (int32_t b = a + 1; b < end; ++b)
        if (!are_opposed(c, a, b)) return false;
  }
  return true;
}

}  // namespace

void OwnedPlan::look() {
  Plan& c = view;
  c.num_sums = int32_t(edge_start.size()) - 1;
  c.num_edges = int32_t(factor_start.size()) - 1;
  c.max_fan_in = 1;
  sum_of_weight.assign(c.num_weights, 0);
  for (int32_t s = 0; s < c.num_sums; ++s) {
    const int32_t fan_in = edge_start[s + 1] - edge_start[s];
    c.max_fan_in = std::max(c.max_fan_in, fan_in);
    if (has_weights && first_weight[s] >= 0) std::fill_n(sum_of_weight.begin() + first_weight[s], fan_in, s);
  }
  std::vector<bool> used(c.num_leaves, false);
  for (const int32_t factor : factors)
    if (factor < c.num_leaves) used[factor] = true;
  used_leaves.clear();
  for (int32_t leaf = 0; leaf < c.num_leaves; ++leaf)
    if (used[leaf]) used_leaves.push_back(leaf);
  c.num_used_leaves = int32_t(used_leaves.size());
  c.edge_start = edge_start.data();
  c.first_weight = first_weight.data();
  c.factor_start = factor_start.data();
  c.factors = factors.data();
  c.sum_of_weight = sum_of_weight.data();
  c.used_leaves = used_leaves.data();
  c.has_default = has_default.data();
  c.decides = decides(c);
  give_slots();
}

// A sum has a slot from its place in the order to the last sum that uses it. A pass downward goes the same way back:
// flow arrives from the last sum that uses a sum on, until the sum hands it on. A slot that is free again is taken
// first, since it is in the cache.
void OwnedPlan::give_slots() {
  Plan& c = view;
  std::vector<int32_t> last(c.num_sums), free;
  std::iota(last.begin(), last.end(), 0);
  const auto each_sum = [&](int32_t s, const auto& visit) {
    for (int32_t f = factor_start[edge_start[s]]; f < factor_start[edge_start[s + 1]]; ++f)
      if (factors[f] >= c.num_leaves) visit(factors[f] - c.num_leaves);
  };
  for (int32_t s = 0; s < c.num_sums; ++s) each_sum(s, [&](int32_t below) { last[below] = s; });
  last[c.root_row - c.num_leaves] = c.num_sums;
  slot_of_sum.resize(c.num_sums);
  c.num_slots = c.num_leaves;
  c.num_shares = 0;
  for (int32_t s = 0; s < c.num_sums; ++s) {
    each_sum(s, [&](int32_t below) {
      if (last[below] != s) return;
      last[below] = -1;  // once
      free.push_back(slot_of_sum[below]);
    });
    if (free.empty()) free.push_back(c.num_slots++);
    slot_of_sum[s] = free.back();
    free.pop_back();
    if (last[s] == s) free.push_back(slot_of_sum[s]);  // nothing uses it
    const int32_t fan_in = edge_start[s + 1] - edge_start[s];
    c.num_shares += fan_in > 1 ? fan_in : 0;
  }
  slot_factors.resize(factors.size());
  for (size_t f = 0; f < factors.size(); ++f)
    slot_factors[f] = factors[f] < c.num_leaves ? factors[f] : slot_of_sum[factors[f] - c.num_leaves];
  c.slot_of_sum = slot_of_sum.data();
  c.slot_factors = slot_factors.data();
}

OwnedPlan arrange(const GivenPlan& given) {
  OwnedPlan made = Arranger(given).run();
#if defined(__GLIBC__)
  // temporary memory lies below what is kept, so free() alone does not return it to the system
  if (given.num_edges > 1000000) malloc_trim(0);
#endif
  return made;
}

}  // namespace semprola
