#include "ddnnf_simplify.hpp"

#include <algorithm>
#include <numeric>

namespace semprola::ddnnf {

namespace {

// Work is limited by counting steps, not by the clock, so the same input always gives the same circuit.
constexpr int64_t kProbingSteps = 4'000'000;
constexpr int64_t kVivificationSteps = 6'000'000;

// Sorts, and removes repeated literals, repeated clauses and tautologies.
void normalize(std::vector<Clause>& clauses) {
  size_t kept = 0;
  for (Clause& c : clauses) {
    std::sort(c.begin(), c.end());
    c.erase(std::unique(c.begin(), c.end()), c.end());
    bool tautology = false;
    for (size_t i = 1; i < c.size(); ++i) tautology = tautology || c[i] == negate(c[i - 1]);
    if (tautology) continue;
    if (&clauses[kept] != &c) clauses[kept] = std::move(c);
    ++kept;
  }
  clauses.resize(kept);
  std::sort(clauses.begin(), clauses.end(),
            [](const Clause& a, const Clause& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });
  clauses.erase(std::unique(clauses.begin(), clauses.end()), clauses.end());
}

void load(Solver& solver, const std::vector<Clause>& clauses) {
  for (const Clause& c : clauses) {
    if (c.empty() || (c.size() == 1 && !solver.add_unit(c[0]))) throw Abort{kUnsatisfiable};
    if (c.size() > 1) solver.add_clause(c, false);
  }
  if (solver.propagate() != Solver::kNoClause) throw Abort{kUnsatisfiable};
}

// Failed literals: if assuming a literal leads to a conflict by propagation alone, it is false in every model.
void probe(Solver& solver, Var num_vars, Guard& guard) {
  int64_t steps = kProbingSteps;
  for (Lit l = 0; l < 2 * num_vars && steps > 0; ++l) {
    if (solver.value(l) != 0) continue;
    guard.tick();
    const size_t before = solver.trail().size();
    solver.decide(l);
    const uint32_t conflict = solver.propagate();
    steps -= static_cast<int64_t>(solver.trail().size() - before) * 4 + 4;
    if (conflict == Solver::kNoClause) {
      solver.backtrack(0);
      continue;
    }
    solver.learn_and_backtrack(conflict, 0);
    if (solver.propagate() != Solver::kNoClause) throw Abort{kUnsatisfiable};
  }
}

// Drops satisfied clauses and false literals under the assignment of level 0.
std::vector<Clause> reduce(const Solver& solver, const std::vector<Clause>& clauses) {
  std::vector<Clause> reduced;
  for (const Clause& c : clauses) {
    Clause open;
    bool satisfied = false;
    for (Lit l : c) {
      satisfied = satisfied || solver.value(l) > 0;
      if (solver.value(l) == 0) open.push_back(l);
    }
    if (!satisfied) reduced.push_back(std::move(open));
  }
  return reduced;
}

// Assumes the negation of one clause, literal by literal, without using the clause itself. A conflict shows that the
// clause follows from the others; a literal that becomes false on the way is superfluous.
enum class Verdict { kKeep, kShorter, kRedundant };

Verdict examine(Solver& solver, uint32_t clause, const Clause& lits, Clause& shorter, int64_t& steps) {
  const size_t before = solver.trail().size();
  shorter.clear();
  Verdict verdict = Verdict::kKeep;
  for (Lit l : lits) {
    if (solver.value(l) < 0) {
      verdict = Verdict::kShorter;
      continue;
    }
    shorter.push_back(l);
    if (solver.value(l) > 0) {
      verdict = Verdict::kRedundant;
      break;
    }
    solver.decide(negate(l));
    if (solver.propagate(clause) != Solver::kNoClause) {
      verdict = Verdict::kRedundant;
      break;
    }
  }
  steps -= static_cast<int64_t>(solver.trail().size() - before) * 4 + 8;
  solver.backtrack(0);
  return verdict;
}

void vivify(Var num_vars, Simplified& result, Guard& guard) {
  Solver solver(num_vars, guard);
  std::vector<uint32_t> handle(result.clauses.size());
  for (size_t i = 0; i < handle.size(); ++i) handle[i] = solver.add_clause(result.clauses[i], false);
  std::vector<size_t> longest_first(handle.size());
  std::iota(longest_first.begin(), longest_first.end(), size_t{0});
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](size_t a, size_t b) { return result.clauses[a].size() > result.clauses[b].size(); });
  int64_t steps = kVivificationSteps;
  Clause shorter;
  for (size_t i : longest_first) {
    if (steps <= 0) break;
    guard.tick();
    Clause& clause = result.clauses[i];
    const Verdict verdict = examine(solver, handle[i], clause, shorter, steps);
    if (verdict == Verdict::kKeep) continue;
    // There are no failed literals left, so no clause shrinks to a unit unless probing ran out of steps.
    if (shorter.size() < 2) continue;
    solver.detach(handle[i]);
    if (verdict == Verdict::kShorter) {
      clause = shorter;
      handle[i] = solver.add_clause(clause, false);
    } else {
      result.redundant.push_back(shorter);
      clause.clear();
    }
  }
  auto& all = result.clauses;
  all.erase(std::remove_if(all.begin(), all.end(), [](const Clause& c) { return c.empty(); }), all.end());
}

}  // namespace

Simplified simplify(Var num_vars, std::vector<Clause> clauses, Guard& guard) {
  Simplified result;
  normalize(clauses);
  guard.check_clock();
  Solver solver(num_vars, guard);
  load(solver, clauses);
  std::vector<Var> all(num_vars);
  std::iota(all.begin(), all.end(), 0U);
  uint32_t conflict = Solver::kNoClause;
  if (!solver.satisfy(all.data(), all.data() + all.size(), conflict)) throw Abort{kUnsatisfiable};
  probe(solver, num_vars, guard);
  result.model = solver.phase;
  result.units = solver.trail();
  result.clauses = reduce(solver, clauses);
  normalize(result.clauses);
  vivify(num_vars, result, guard);
  return result;
}

}  // namespace semprola::ddnnf
