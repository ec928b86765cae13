// C interface of the top-down compiler and of the elimination orders; loaded by ctypes, independent of Python.
#include <algorithm>
#include <memory>
#include <new>

#include "ddnnf_search.hpp"
#include "export.h"

namespace {

using namespace semprola::ddnnf;

constexpr int64_t kMaxVars = int64_t{1} << 30;  // there are twice as many literals, and they must fit into 32 bits

void require(bool condition) {
  if (!condition) throw Abort{kBadInput};
}

// Reads `count` lists, list i being items[start[i], start[i + 1]), through `read`.
template <typename Item, typename Read>
std::vector<std::vector<uint32_t>> read_lists(const int64_t* start, const Item* items, int64_t count, Read read) {
  require(count >= 0 && start[0] == 0);
  std::vector<std::vector<uint32_t>> lists(static_cast<size_t>(count));
  for (int64_t c = 0; c < count; ++c) {
    require(start[c] <= start[c + 1]);
    std::vector<uint32_t>& list = lists[static_cast<size_t>(c)];
    list.reserve(static_cast<size_t>(start[c + 1] - start[c]));
    for (int64_t i = start[c]; i < start[c + 1]; ++i) list.push_back(read(items[i]));
  }
  return lists;
}

std::vector<Clause> read_clauses(int64_t num_vars, const int64_t* start, const int32_t* literals, int64_t count) {
  return read_lists(start, literals, count, [&](int32_t l) {
    const int64_t v = l < 0 ? -int64_t{l} : int64_t{l};
    require(v >= 1 && v <= num_vars);
    return make_lit(static_cast<Var>(v - 1), l < 0);
  });
}

std::vector<std::vector<Var>> read_sets(int64_t num_vars, const int64_t* start, const int32_t* members, int64_t count) {
  return read_lists(start, members, count, [&](int32_t v) {
    require(v >= 0 && v < num_vars);
    return static_cast<Var>(v);
  });
}

}  // namespace

// Compiles a CNF in DIMACS literals; clause c is literals[start[c], start[c + 1]). A negative budget means no limit.
// On success `*result` owns the circuit until semprola_ddnnf_free, and sizes[0..1] are its numbers of nodes and edges.
SEMPROLA_EXPORT int32_t semprola_ddnnf_compile(int64_t num_vars, int64_t num_clauses, const int64_t* start,
                                               const int32_t* literals, const uint8_t* hidden, int32_t determined,
                                               double seconds, int64_t max_nodes, int64_t max_bytes, Shared* shared,
                                               void** result, int64_t* sizes) {
  *result = nullptr;
  try {
    require(num_vars >= 0 && num_vars < kMaxVars);
    Guard guard(shared, seconds, max_nodes, max_bytes);
    const Var n = static_cast<Var>(num_vars);
    shared->phase = kSimplify;
    const std::vector<uint8_t> hide(hidden, hidden + num_vars);
    const Simplified formula = simplify(n, read_clauses(num_vars, start, literals, num_clauses), guard);
    Search search(n, formula, hide, determined != 0, guard);
    std::unique_ptr<Trace> trace = search.run();
    sizes[0] = trace->num_nodes();
    sizes[1] = trace->num_edges();
    *result = trace.release();
    return kOk;
  } catch (const Abort& abort) {
    return abort.status;
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  } catch (...) {
    return kInternalError;
  }
}

// Copies the circuit into arrays of the sizes that semprola_ddnnf_compile reported: nodes, nodes, nodes + 1, edges.
SEMPROLA_EXPORT void semprola_ddnnf_copy(const void* result, int8_t* kind, int32_t* literal, int64_t* child_start,
                                         int32_t* children) {
  static_cast<const Trace*>(result)->copy(kind, literal, child_start, children);
}

SEMPROLA_EXPORT void semprola_ddnnf_free(void* result) { delete static_cast<Trace*>(result); }

// Finds the best greedy elimination order of the union of cliques within `tries` attempts and `seconds`; at least one
// attempt is completed. Returns its width or a negative status.
SEMPROLA_EXPORT int64_t semprola_elimination_order(int64_t num_vars, int64_t num_cliques, const int64_t* start,
                                                   const int32_t* members, int32_t min_degree, int64_t tries,
                                                   double seconds, Shared* shared, int32_t* order) {
  try {
    require(num_vars >= 0 && num_vars < kMaxVars);
    Guard guard(shared, -1, -1, -1);
    const std::vector<std::vector<Var>> sets = read_sets(num_vars, start, members, num_cliques);
    const Graph graph = clique_graph(static_cast<Var>(num_vars), sets, size_t{200'000'000});
    uint32_t best = UINT32_MAX;
    auto expired = [&] {
      guard.tick();
      return best != UINT32_MAX && guard.elapsed() > seconds;
    };
    for (int64_t i = 0; i < tries && best > 0 && !(i > 0 && guard.elapsed() > seconds); ++i) {
      const Elimination next = eliminate(graph, min_degree != 0 ? Greedy::kMinDegree : Greedy::kMinFill,
                                         static_cast<uint64_t>(i), best == UINT32_MAX ? best : best - 1, expired);
      if (next.order.empty() && !graph.empty()) continue;
      best = next.width;
      std::copy(next.order.begin(), next.order.end(), order);
    }
    if (best == UINT32_MAX) throw Abort{kOutOfMemory};
    return best;
  } catch (const Abort& abort) {
    return -static_cast<int64_t>(abort.status);
  } catch (const std::bad_alloc&) {
    return -static_cast<int64_t>(kOutOfMemory);
  } catch (...) {
    return -static_cast<int64_t>(kInternalError);
  }
}
