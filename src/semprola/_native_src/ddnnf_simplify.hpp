// Preprocessing that keeps the set of models: units, failed literals, a satisfiability check, redundant clauses.
#pragma once

#include "ddnnf_solver.hpp"

namespace semprola::ddnnf {

struct Simplified {
  std::vector<Lit> units;         // literals true in every model
  std::vector<Clause> clauses;    // together with the units, equivalent to the input
  std::vector<Clause> redundant;  // entailed clauses, useful for propagation only
  std::vector<uint8_t> model;     // one model of the input, per variable
};

// Throws kUnsatisfiable if the clauses have no model.
Simplified simplify(Var num_vars, std::vector<Clause> clauses, Guard& guard);

}  // namespace semprola::ddnnf
