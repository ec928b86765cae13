// The top-down compiler and its parts.

#include <algorithm>
#include <map>
#include <string>

#include "cnf.hpp"
#include "ddnnf_cache.hpp"
#include "ddnnf_order.hpp"
#include "library.hpp"
#include "plans.hpp"
#include "testing.hpp"

using namespace semprola::ddnnf;

namespace {

const auto kKeepGoing = [] { return false; };

Graph random_graph(Var n, double density, std::mt19937& random) {
  std::vector<std::vector<Var>> sets;
  std::uniform_real_distribution<double> uniform(0, 1);
  for (Var u = 0; u < n; ++u) {
    for (Var w = 0; w < u; ++w) {
      if (uniform(random) < density) sets.push_back({u, w});
    }
  }
  return clique_graph(n, sets, 1'000'000);
}

// Eliminates in the given order and compares the bags.
void check_elimination(const Graph& graph, const Elimination& elimination) {
  std::vector<Var> sorted = elimination.order;
  std::sort(sorted.begin(), sorted.end());
  bool all = sorted.size() == graph.size();
  for (Var v = 0; all && v < sorted.size(); ++v) all = sorted[v] == v;
  CHECK(all);
  if (!all) return;
  std::vector<std::vector<bool>> linked(graph.size(), std::vector<bool>(graph.size(), false));
  for (Var u = 0; u < graph.size(); ++u) {
    for (const Var w : graph[u]) linked[u][w] = true;
  }
  std::vector<bool> gone(graph.size(), false);
  uint32_t width = 0;
  for (size_t i = 0; i < elimination.order.size(); ++i) {
    const Var v = elimination.order[i];
    gone[v] = true;
    std::vector<Var> bag;
    for (Var u = 0; u < graph.size(); ++u) {
      if (!gone[u] && linked[v][u]) bag.push_back(u);
    }
    for (const Var a : bag) {
      for (const Var b : bag) linked[a][b] = linked[a][b] || a != b;
    }
    std::vector<Var> found = elimination.bags[i];
    std::sort(found.begin(), found.end());
    CHECK(found == bag);
    width = std::max(width, uint32_t(bag.size()));
  }
  CHECK_EQUAL(elimination.width, width);
}

// What min-fill and min-degree would choose, computed anew before each step.
uint32_t greedy_width(const Graph& graph, Greedy method) {
  std::vector<std::vector<bool>> linked(graph.size(), std::vector<bool>(graph.size(), false));
  for (Var u = 0; u < graph.size(); ++u) {
    for (const Var w : graph[u]) linked[u][w] = true;
  }
  std::vector<bool> gone(graph.size(), false);
  uint32_t width = 0;
  for (size_t step = 0; step < graph.size(); ++step) {
    size_t best = SIZE_MAX;
    std::vector<Var> best_bag;
    Var chosen = 0;
    for (Var v = 0; v < graph.size(); ++v) {
      if (gone[v]) continue;
      std::vector<Var> bag;
      for (Var u = 0; u < graph.size(); ++u) {
        if (!gone[u] && linked[v][u]) bag.push_back(u);
      }
      size_t cost = bag.size();
      // fewer than two neighbours go first in either method
      if (method == Greedy::kMinFill && cost > 1) {
        cost = 2;
        for (size_t i = 0; i < bag.size(); ++i) {
          for (size_t j = 0; j < i; ++j) cost += linked[bag[i]][bag[j]] ? 0 : 1;
        }
      }
      if (cost >= best) continue;
      best = cost;
      chosen = v;
      best_bag = bag;
    }
    gone[chosen] = true;
    width = std::max(width, uint32_t(best_bag.size()));
    for (const Var a : best_bag) {
      for (const Var b : best_bag) linked[a][b] = linked[a][b] || a != b;
    }
  }
  return width;
}

}  // namespace

TEST(compiler_counts_models) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const int64_t n = 6 + seed % 9;
    const Cnf cnf = random_cnf(n, 1 + seed % 40, 1 + int(seed % 4), seed);
    const double expected = brute_count(cnf);
    const Compiled result = compile(cnf);
    CHECK_EQUAL(result.status, int32_t(expected > 0 ? kOk : kUnsatisfiable));
    if (result.status == kOk) CHECK_EQUAL(result.count(n), expected);
  }
}

TEST(compiler_checks_what_comes_in) {
  for (const int32_t bad : {0, 4, -4, INT32_MIN, INT32_MAX}) {
    CHECK_EQUAL(compile(Cnf{3, {{1, 2}, {bad}}}).status, int32_t(kBadInput));
  }
  CHECK_EQUAL(compile(Cnf{-1, {}}).status, int32_t(kBadInput));
  CHECK_EQUAL(compile(Cnf{0, {}}).status, int32_t(kOk));
  CHECK_EQUAL(compile(Cnf{2, {{}}}).status, int32_t(kUnsatisfiable));
}

// The cache gives way before the compilation does. Blocks of the cache that were too large for a small budget, and a
// cache that kept what it had when the circuit grew, once made this run out of memory.
TEST(compiler_forgets_before_it_gives_up) {
  const Cnf cnf = band_cnf(500, 1300, 12, 4);
  Shared unlimited{};
  const Compiled expected = compile(cnf, unlimited, int64_t{1} << 40);
  CHECK_EQUAL(expected.status, int32_t(kOk));
  for (const int64_t percent : {90, 80, 3}) {
    Shared shared{};
    const Compiled result = compile(cnf, shared, unlimited.bytes * percent / 100);
    CHECK_EQUAL(result.status, int32_t(percent > 50 ? kOk : kOutOfMemory));
    if (result.status == kOk) CHECK_EQUAL(result.count(500), expected.count(500));
    CHECK(shared.bytes <= unlimited.bytes * percent / 100);
  }
}

TEST(cache_holds_what_it_should_within_its_limit) {
  std::mt19937 random(9);
  for (const int64_t limit : {int64_t{0}, int64_t{30} << 10, int64_t{200} << 10, int64_t{4} << 20}) {
    Cache cache;
    cache.set_limit(limit);
    std::map<std::string, uint32_t> all;
    for (uint32_t i = 0; i < 20000; ++i) {
      std::string key = std::to_string(random() % 30000) + std::string(random() % 40, 'x');
      const auto* bytes = reinterpret_cast<const uint8_t*>(key.data());
      const uint64_t hash = Cache::hash(bytes, key.size());
      const uint32_t found = cache.find(bytes, key.size(), hash);
      const auto known = all.find(key);
      if (found != Cache::kMissing)
        CHECK(known != all.end() && known->second == found);
      else if (known == all.end())
        all[key] = i;
      cache.insert(bytes, key.size(), hash, all[key]);
      CHECK(cache.bytes() <= limit);
    }
    CHECK(cache.entries() > 0 || limit < 40000);
    cache.shrink(cache.bytes() / 4);
    CHECK(cache.bytes() <= limit / 4);
  }
}

TEST(order_eliminates_every_variable_with_its_neighbours) {
  std::mt19937 random(13);
  for (int round = 0; round < 60; ++round) {
    const Graph graph = random_graph(Var(1 + random() % 24), 0.02 * (round % 30), random);
    for (const Greedy method : {Greedy::kMinFill, Greedy::kMinDegree}) {
      for (const uint64_t seed : {0, 1, 2}) {
        check_elimination(graph, eliminate(graph, method, seed, UINT32_MAX, kKeepGoing));
      }
    }
  }
}

// Costs that are kept up to date are those that would be found anew; ties may be broken otherwise.
TEST(order_is_as_narrow_as_the_plain_greedy_one) {
  std::mt19937 random(17);
  for (const Greedy method : {Greedy::kMinFill, Greedy::kMinDegree}) {
    double kept = 0, anew = 0;
    for (int round = 0; round < 60; ++round) {
      const Graph graph = random_graph(20, 0.05 + 0.01 * (round % 20), random);
      kept += eliminate(graph, method, 0, UINT32_MAX, kKeepGoing).width;
      anew += greedy_width(graph, method);
    }
    CHECK(kept <= 1.02 * anew);
  }
}

TEST(order_gives_up_beyond_the_width) {
  std::mt19937 random(19);
  const Graph graph = random_graph(20, 0.5, random);
  const uint32_t width = eliminate(graph, Greedy::kMinFill, 0, UINT32_MAX, kKeepGoing).width;
  CHECK(!eliminate(graph, Greedy::kMinFill, 0, width, kKeepGoing).order.empty());
  CHECK(eliminate(graph, Greedy::kMinFill, 0, width - 1, kKeepGoing).order.empty());
  const Graph chain = clique_graph(4, {{0, 1}, {1, 2}, {2, 3}}, 100);
  CHECK_EQUAL(eliminate(chain, Greedy::kMinFill, 0, 1, kKeepGoing).width, 1u);
  CHECK(eliminate(chain, Greedy::kMinFill, 0, 0, kKeepGoing).order.empty());
}

TEST(order_depth_starts_at_the_middle_of_a_chain) {
  std::vector<std::vector<Var>> links;
  for (Var v = 0; v + 1 < 101; ++v) links.push_back({v, v + 1});
  const Graph chain = clique_graph(101, links, 1000);
  const Elimination elimination = eliminate(chain, Greedy::kMinFill, 0, UINT32_MAX, kKeepGoing);
  const std::vector<uint32_t> plain = branching_depth(elimination, false);
  const std::vector<uint32_t> balanced = branching_depth(elimination, true);
  CHECK(plain[50] <= 1);
  CHECK(plain[0] > 40 && plain[100] > 40);
  CHECK(*std::max_element(balanced.begin(), balanced.end()) < 8);
}
