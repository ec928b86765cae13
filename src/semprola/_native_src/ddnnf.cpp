// C interface of the top-down compiler; loaded by ctypes, independent of Python.
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

// Clause c is literals[start[c], start[c + 1]).
std::vector<Clause> read_clauses(int64_t num_vars, const int64_t* start, const int32_t* literals, int64_t count) {
  require(count >= 0 && start[0] == 0);
  std::vector<Clause> clauses(static_cast<size_t>(count));
  for (int64_t c = 0; c < count; ++c) {
    require(start[c] <= start[c + 1]);
    Clause& clause = clauses[static_cast<size_t>(c)];
    clause.reserve(static_cast<size_t>(start[c + 1] - start[c]));
    for (int64_t i = start[c]; i < start[c + 1]; ++i) {
      const int64_t v = literals[i] < 0 ? -int64_t{literals[i]} : int64_t{literals[i]};
      require(v >= 1 && v <= num_vars);
      clause.push_back(make_lit(static_cast<Var>(v - 1), literals[i] < 0));
    }
  }
  return clauses;
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
