// C interface of the top-down compiler and of the elimination orders; loaded by ctypes, knows nothing of Python.
#include <new>

#include "ddnnf_search.hpp"
#include "export.h"

namespace {

using namespace semprola::ddnnf;

std::vector<Clause> read_clauses(const int64_t* start, const int32_t* literals, int64_t count) {
  std::vector<Clause> clauses(static_cast<size_t>(count));
  for (int64_t c = 0; c < count; ++c) {
    Clause& clause = clauses[static_cast<size_t>(c)];
    for (int64_t i = start[c]; i < start[c + 1]; ++i) {
      const int32_t l = literals[i];
      clause.push_back(make_lit(static_cast<Var>((l < 0 ? -l : l) - 1), l < 0));
    }
  }
  return clauses;
}

}  // namespace

// Compiles a CNF in DIMACS literals, clause c being literals[start[c], start[c + 1]). Negative budgets mean none.
// On success `*result` owns the circuit until semprola_ddnnf_free, and sizes[0..1] are its nodes and edges.
SEMPROLA_EXPORT int32_t semprola_ddnnf_compile(int64_t num_vars, int64_t num_clauses, const int64_t* start,
                                               const int32_t* literals, const uint8_t* hidden, int32_t determined,
                                               double seconds, int64_t max_nodes, int64_t max_bytes, Shared* shared,
                                               void** result, int64_t* sizes) {
  *result = nullptr;
  try {
    Guard guard(shared, seconds, max_nodes, max_bytes);
    const Var n = static_cast<Var>(num_vars);
    shared->phase = kSimplify;
    const std::vector<uint8_t> hide(hidden, hidden + num_vars);
    const Simplified formula = simplify(n, read_clauses(start, literals, num_clauses), guard);
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

// Copies the circuit into arrays of the sizes that compile reported: nodes, nodes, nodes + 1, edges.
SEMPROLA_EXPORT void semprola_ddnnf_copy(const void* result, int8_t* kind, int32_t* literal, int64_t* child_start,
                                         int32_t* children) {
  static_cast<const Trace*>(result)->copy(kind, literal, child_start, children);
}

SEMPROLA_EXPORT void semprola_ddnnf_free(void* result) { delete static_cast<Trace*>(result); }

// The best greedy elimination order of the union of cliques, within `tries` attempts and `seconds` (at least one
// attempt is completed). Returns its width or a negative status.
SEMPROLA_EXPORT int64_t semprola_elimination_order(int64_t num_vars, int64_t num_cliques, const int64_t* start,
                                                   const int32_t* members, int32_t min_degree, int64_t tries,
                                                   double seconds, Shared* shared, int32_t* order) {
  try {
    Guard guard(shared, -1, -1, -1);
    std::vector<std::vector<Var>> sets(static_cast<size_t>(num_cliques));
    for (int64_t c = 0; c < num_cliques; ++c) {
      sets[static_cast<size_t>(c)].assign(members + start[c], members + start[c + 1]);
    }
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
    return best;
  } catch (const Abort& abort) {
    return -static_cast<int64_t>(abort.status);
  } catch (const std::bad_alloc&) {
    return -static_cast<int64_t>(kOutOfMemory);
  } catch (...) {
    return -static_cast<int64_t>(kInternalError);
  }
}
