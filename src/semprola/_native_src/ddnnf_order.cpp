#include "ddnnf_order.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

namespace semprola::ddnnf {

namespace {

constexpr size_t kMaxMembers = 200'000'000;  // in all bags together

// The remaining graph during elimination; the cost of each variable is kept up to date.
class Eliminator {
 public:
  struct Expired {};

  Eliminator(const Graph& graph, const std::vector<uint8_t>& gone, Greedy method, uint64_t seed,
             const std::function<bool()>& expired)
      : neighbours_(graph.size()),
        method_(method),
        state_(seed),
        expired_(expired),
        mark_(graph.size(), 0),
        cost_(graph.size(), 0),
        tie_(graph.size(), 0),
        gone_(gone) {
    for (Var v = 0; v < graph.size(); ++v) {
      if (gone_[v]) continue;
      for (Var u : graph[v]) {
        if (!gone_[u]) neighbours_[v].push_back(u);
      }
    }
    for (Var v = 0; v < graph.size(); ++v) {
      if (gone_[v]) continue;
      tie_[v] = seed == 0 ? v : static_cast<uint32_t>(mix(++state_ + seed));
      refresh(v);
    }
  }

  Var pop() {
    for (;;) {
      const Entry top = heap_.top();
      heap_.pop();
      if (!gone_[top.v] && top.cost == cost_[top.v]) return top.v;
    }
  }

  // Removes v, makes its neighbours a clique and returns them.
  std::vector<Var> remove(Var v) {
    gone_[v] = 1;
    std::vector<Var> bag = std::move(neighbours_[v]);
    neighbours_[v].clear();
    for (Var u : bag) {
      std::vector<Var>& list = neighbours_[u];
      list.erase(std::lower_bound(list.begin(), list.end(), v));
      spend(list.size());
    }
    if (method_ != Greedy::kMinFill || cost_[v] > 0) connect(bag);
    for (Var u : bag) refresh(u);
    return bag;
  }

 private:
  struct Entry {
    int64_t cost;
    uint32_t tie;
    Var v;
    bool operator<(const Entry& other) const {  // std::priority_queue pops the greatest
      return cost != other.cost ? cost > other.cost : tie > other.tie;
    }
  };

  // A single step can take long in a dense graph, so the caller is asked after each slice of work, even within a step.
  void spend(size_t work) {
    work_ += work + 1;
    if (work_ < (size_t{1} << 18)) return;
    work_ = 0;
    if (expired_()) throw Expired{};
  }

  void push(Var v) { heap_.push(Entry{cost_[v], tie_[v], v}); }

  void refresh(Var v) {
    const int64_t degree = static_cast<int64_t>(neighbours_[v].size());
    cost_[v] = degree;
    if (method_ == Greedy::kMinFill) {
      ++now_;
      for (Var u : neighbours_[v]) mark_[u] = now_;
      int64_t inside = 0;
      for (Var u : neighbours_[v]) {
        for (Var w : neighbours_[u]) inside += mark_[w] == now_ ? 1 : 0;
        spend(neighbours_[u].size());
      }
      cost_[v] = (degree * (degree - 1) - inside) / 2;
    }
    push(v);
  }

  void connect(const std::vector<Var>& bag) {
    std::vector<Var> merged;
    std::vector<std::pair<Var, Var>> added;
    for (Var u : bag) {
      std::vector<Var>& list = neighbours_[u];
      spend(list.size() + bag.size());
      merged.clear();
      std::set_union(list.begin(), list.end(), bag.begin(), bag.end(), std::back_inserter(merged));
      if (merged.size() == list.size() + 1) continue;  // only u itself was new
      merged.erase(std::lower_bound(merged.begin(), merged.end(), u));
      if (method_ == Greedy::kMinFill) {
        for (Var w : bag) {
          if (w > u && !std::binary_search(list.begin(), list.end(), w)) added.emplace_back(u, w);
        }
      }
      list.swap(merged);
    }
    // A variable outside the bag that sees both ends of a new edge needs one fill edge less.
    if (added.empty()) return;
    ++now_;
    for (Var u : bag) mark_[u] = now_;
    const uint64_t in_bag = now_;
    for (const auto& [a, b] : added) {
      const std::vector<Var>& left = neighbours_[a];
      const std::vector<Var>& right = neighbours_[b];
      spend(left.size() + right.size());
      for (size_t i = 0, j = 0; i < left.size() && j < right.size();) {
        if (left[i] < right[j]) {
          ++i;
        } else if (left[i] > right[j]) {
          ++j;
        } else {
          const Var w = left[i];
          if (mark_[w] != in_bag) {
            --cost_[w];
            push(w);
          }
          ++i;
          ++j;
        }
      }
    }
  }

  Graph neighbours_;
  Greedy method_;
  uint64_t state_;
  const std::function<bool()>& expired_;
  size_t work_ = 0;
  std::vector<uint64_t> mark_;
  uint64_t now_ = 0;
  std::vector<int64_t> cost_;
  std::vector<uint32_t> tie_;
  std::vector<uint8_t> gone_;
  std::priority_queue<Entry> heap_;
};

// Eliminates variables with no neighbour or one, as long as there are any: both heuristics begin with these, and this
// way even hubs with a hundred thousand neighbours cost nothing. Returns which variables are gone.
std::vector<uint8_t> peel(const Graph& graph, Elimination& result) {
  std::vector<uint8_t> gone(graph.size(), 0);
  std::vector<size_t> degree(graph.size());
  std::vector<Var> ready[2];
  for (Var v = 0; v < graph.size(); ++v) {
    degree[v] = graph[v].size();
    if (degree[v] < 2) ready[degree[v]].push_back(v);
  }
  // The lowest number comes first, as if ties were broken by number.
  for (std::vector<Var>& list : ready) std::reverse(list.begin(), list.end());
  while (!ready[0].empty() || !ready[1].empty()) {
    std::vector<Var>& list = ready[0].empty() ? ready[1] : ready[0];
    const Var v = list.back();
    list.pop_back();
    if (gone[v]) continue;  // listed with one neighbour, and again after losing it
    gone[v] = 1;
    std::vector<Var> bag;
    if (degree[v] > 0) {
      for (Var u : graph[v]) {
        if (gone[u]) continue;
        bag.assign(1, u);
        if (--degree[u] < 2) ready[degree[u]].push_back(u);
        break;
      }
      result.width = 1;
    }
    result.order.push_back(v);
    result.bags.push_back(std::move(bag));
  }
  return gone;
}

// Only the last bag is left, and it is a clique now: its members go in any order. Each of their bags is a subset of the
// one before, so together they do not add to the width, and add no more to the cost than the last bag did.
void finish_clique(Elimination& result) {
  std::vector<Var> rest = result.bags.back();
  while (!rest.empty()) {
    result.order.push_back(rest.back());
    rest.pop_back();
    result.bags.push_back(rest);
  }
}

// The bags as a forest: a bag is below the bag of its first eliminated member; a bag inside a neighbour is merged.
struct Forest {
  std::vector<std::vector<uint32_t>> links;
  std::vector<std::vector<Var>> members;
};

Forest bag_forest(const Elimination& elimination) {
  const size_t n = elimination.order.size();
  std::vector<uint32_t> position(n), node_of_bag(n);
  for (uint32_t i = 0; i < n; ++i) position[elimination.order[i]] = i;
  Forest forest;
  // Start with the last one eliminated, so that a parent's bag has its node before its children need it.
  for (size_t i = n; i-- > 0;) {
    const std::vector<Var>& bag = elimination.bags[i];
    uint32_t parent = UINT32_MAX;
    for (Var u : bag) parent = std::min(parent, position[u]);
    if (parent != UINT32_MAX) {
      const uint32_t node = node_of_bag[parent];
      if (bag.size() == elimination.bags[parent].size() + 1 && forest.members[node].size() == bag.size()) {
        forest.members[node].push_back(elimination.order[i]);
        node_of_bag[i] = node;
        continue;
      }
    }
    const uint32_t node = static_cast<uint32_t>(forest.members.size());
    node_of_bag[i] = node;
    forest.members.push_back(bag);
    forest.members.back().push_back(elimination.order[i]);
    forest.links.emplace_back();
    if (parent != UINT32_MAX) {
      forest.links[node].push_back(node_of_bag[parent]);
      forest.links[node_of_bag[parent]].push_back(node);
    }
  }
  return forest;
}

// Among the nodes reachable from `start` without `blocked` ones, the node whose removal minimizes the largest part.
// `parent` and `weight` are scratch memory for all nodes; `visited` becomes the list of reached nodes.
uint32_t centroid(const Forest& forest, uint32_t start, const std::vector<uint8_t>& blocked,
                  std::vector<uint32_t>& parent, std::vector<uint32_t>& weight, std::vector<uint32_t>& visited) {
  visited.assign(1, start);
  parent[start] = UINT32_MAX;
  for (size_t i = 0; i < visited.size(); ++i) {
    const uint32_t node = visited[i];
    weight[node] = static_cast<uint32_t>(forest.members[node].size());
    for (uint32_t next : forest.links[node]) {
      if (next == parent[node] || blocked[next]) continue;
      parent[next] = node;
      visited.push_back(next);
    }
  }
  for (size_t i = visited.size(); i-- > 1;) weight[parent[visited[i]]] += weight[visited[i]];
  const uint32_t total = weight[start];
  // Subtree weights decrease along every path from the start: the deepest node that still holds half is the centroid.
  uint32_t best = start;
  for (uint32_t node : visited) {
    if (2 * static_cast<uint64_t>(weight[node]) >= total && weight[node] <= weight[best]) best = node;
  }
  return best;
}

}  // namespace

Graph clique_graph(Var num_vars, const std::vector<std::vector<Var>>& sets, size_t max_edges) {
  Graph graph(num_vars);
  size_t edges = 0;
  for (const std::vector<Var>& set : sets) {
    edges += set.size() * set.size();
    if (edges > max_edges) throw Abort{kOutOfMemory};
    for (Var u : set) {
      for (Var w : set) {
        if (u != w) graph[u].push_back(w);
      }
    }
  }
  for (std::vector<Var>& list : graph) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return graph;
}

Elimination eliminate(const Graph& graph, Greedy method, uint64_t seed, uint32_t width_limit,
                      const std::function<bool()>& expired) try {
  Elimination result;
  const std::vector<uint8_t> peeled = peel(graph, result);
  if (result.width > width_limit) return Elimination{};
  size_t members = 0;
  Eliminator eliminator(graph, peeled, method, seed, expired);
  while (result.order.size() < graph.size()) {
    const Var v = eliminator.pop();
    std::vector<Var> bag = eliminator.remove(v);
    result.width = std::max(result.width, static_cast<uint32_t>(bag.size()));
    result.cost += std::exp2(static_cast<double>(bag.size()));
    members += bag.size();
    if (result.width > width_limit || members > kMaxMembers) return Elimination{};
    result.order.push_back(v);
    result.bags.push_back(std::move(bag));
    const size_t last = result.bags.back().size();
    if (result.order.size() + last < graph.size()) continue;
    if (members + last * last / 2 > kMaxMembers) return Elimination{};
    finish_clique(result);
  }
  return result;
} catch (const Eliminator::Expired&) {
  return Elimination{};
}

std::vector<uint32_t> branching_depth(const Elimination& elimination, bool balanced) {
  const Forest forest = bag_forest(elimination);
  const size_t nodes = forest.members.size();
  std::vector<uint32_t> depth(elimination.order.size(), UINT32_MAX);
  std::vector<uint32_t> parent(nodes), weight(nodes), visited;
  std::vector<uint8_t> blocked(nodes, 0);
  auto assign = [&](uint32_t node, uint32_t value) {
    for (Var v : forest.members[node]) depth[v] = std::min(depth[v], value);
  };
  std::vector<std::pair<uint32_t, uint32_t>> work;  // node of an untouched part, round
  std::vector<uint8_t> reached(nodes, 0);
  for (uint32_t start = 0; start < nodes; ++start) {
    if (reached[start]) continue;
    work.assign(1, {start, 0});
    while (!work.empty()) {
      const auto [from, round] = work.back();
      work.pop_back();
      const uint32_t root = centroid(forest, from, blocked, parent, weight, visited);
      for (uint32_t node : visited) reached[node] = 1;
      if (balanced) {
        assign(root, round);
        blocked[root] = 1;
        for (uint32_t next : forest.links[root]) {
          if (!blocked[next]) work.emplace_back(next, round + 1);
        }
        continue;
      }
      std::vector<std::pair<uint32_t, uint32_t>> queue{{root, 0}};  // node, distance; `blocked` marks visited ones
      blocked[root] = 1;
      for (size_t i = 0; i < queue.size(); ++i) {
        const auto [node, distance] = queue[i];
        assign(node, distance);
        for (uint32_t next : forest.links[node]) {
          if (blocked[next]) continue;
          blocked[next] = 1;
          queue.emplace_back(next, distance + 1);
        }
      }
    }
  }
  return depth;
}

}  // namespace semprola::ddnnf
