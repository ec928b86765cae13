// Splits the residual formula into connected components and packs each into a cache key.
#pragma once

#include "ddnnf_solver.hpp"

namespace semprola::ddnnf {

// One connected component: ranges of the analyzer's stacks. All its variables were unassigned when it was found.
struct Component {
  uint32_t vars_begin, vars_end;
  uint32_t key_begin, key_end;
  uint64_t hash;
};

// Works on the irredundant clauses only. A component is determined by its variables and by its long clauses that have
// already lost a literal: binary clauses and untouched long clauses between open variables are always active.
class Analyzer {
 public:
  Analyzer(Var num_vars, const std::vector<Clause>& clauses);

  // Splits the sorted variables vars[begin, end): calls on_literal for each assigned one, on_free for each open one
  // without active clauses, on_clause with the open literals of each active clause that shares no open variable,
  // and pushes a component for each larger group of open variables that share active clauses.
  template <typename OnLiteral, typename OnFree, typename OnClause>
  void split(const Solver& solver, uint32_t begin, uint32_t end, OnLiteral on_literal, OnFree on_free,
             OnClause on_clause);

  int64_t bytes() const {
    return static_cast<int64_t>(vars.capacity() * sizeof(Var) + keys.capacity() +
                                clause_lits_.size() * 2 * sizeof(Lit) + var_stamp_.size() * 32);
  }

  std::vector<Var> vars;            // stack: variables of components, sorted within each
  std::vector<uint8_t> keys;        // stack: packed keys
  std::vector<Component> found;     // stack: components
  std::vector<uint32_t> frequency;  // active clauses of each variable, as of the last split that saw it

 private:
  void explore(const Solver& solver, Var start, uint32_t label);
  void push_components(const Solver& solver, uint32_t begin, uint32_t end);
  void only_clause(const Solver& solver);
  void pack(uint32_t label, Component& component);

  // Clauses and occurrence lists as flat arrays with offsets.
  std::vector<uint32_t> clause_start_;
  std::vector<Lit> clause_lits_;
  std::vector<uint32_t> long_start_, long_clauses_;
  std::vector<uint32_t> binary_start_;
  std::vector<Lit> binary_own_, binary_other_;  // the two literals of a binary clause, as seen from one of them

  uint64_t stamp_ = 0;
  std::vector<uint64_t> var_stamp_;
  std::vector<uint32_t> label_;
  std::vector<uint64_t> clause_stamp_;  // 2 * stamp + (clause is active)
  std::vector<Var> queue_;
  struct Group {
    uint32_t size;  // of a component to be pushed, otherwise 0
    uint32_t partial_begin, partial_end;
    uint32_t next;
  };
  std::vector<Group> groups_;
  bool is_single_clause(const Group& group) const {
    return long_active_ == 1 ? binary_active_ == 0 : long_active_ == 0 && group.size == 2 && binary_active_ == 2;
  }
  // For the group explored last: the number of active long clauses, and the last of them; the number of active binary
  // clauses, each counted from both sides, and the last of them; the open literals if there is only one clause.
  uint32_t long_active_ = 0, last_long_ = 0;
  uint32_t binary_active_ = 0, last_binary_ = 0;
  Clause clause_;
  std::vector<uint32_t> partial_;  // active long clauses with a false literal, by group
};

template <typename OnLiteral, typename OnFree, typename OnClause>
void Analyzer::split(const Solver& solver, uint32_t begin, uint32_t end, OnLiteral on_literal, OnFree on_free,
                     OnClause on_clause) {
  ++stamp_;
  groups_.clear();
  partial_.clear();
  for (uint32_t i = begin; i < end; ++i) {
    const Var v = vars[i];
    const int8_t value = solver.value(make_lit(v, false));
    if (value != 0) {
      on_literal(make_lit(v, value < 0));
    } else if (var_stamp_[v] != stamp_) {
      explore(solver, v, static_cast<uint32_t>(groups_.size()));
      Group& group = groups_.back();
      if (group.size > 1 && !is_single_clause(group)) continue;
      if (group.size == 1) {
        on_free(v);
      } else {
        only_clause(solver);
        on_clause(clause_);
      }
      group.size = 0;
    }
  }
  push_components(solver, begin, end);
}

}  // namespace semprola::ddnnf
