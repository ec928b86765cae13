"""The top-down back end: from clauses to a decision-DNNF."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from semprola.circuit import Circuit
from semprola.compiler.backends import Components
from semprola.compiler.backends.topdown.definitions import defined_variables, without
from semprola.compiler.backends.topdown.search import Clauses, Ddnnf, compile_cnf
from semprola.compiler.backends.topdown.tseitin import Encoding, encode_apart, encode_clauses
from semprola.compiler.budget import Budget
from semprola.compiler.parts import leaf_circuits
from semprola.logic import And, Cnf, Formula, Leaf


def compile_topdown(components: Components, budget: Budget, given: Collection[str] = ()) -> Circuit:
    """A decomposable, deterministic circuit, without a vtree, for a conjunction; see `Backend`."""
    encoding = encoded(components, budget)
    made = compile_clauses(encoding.num_vars, encoding.clauses, budget, projected_out=encoding.auxiliary)
    return circuit_of(made, encoding.names)


def encoded(components: Components, budget: Budget) -> Encoding:
    """The clauses of a conjunction."""
    conjuncts = [conjunct for component in components for conjunct in component]
    budget.check("writing clauses")
    return encode_clauses(conjuncts, _needed_circuits(conjuncts, budget), budget)


def assertions(rules: Sequence[Formula], budget: Budget) -> tuple[Encoding, list[list[tuple[int, ...]]]]:
    """Shared definitions, and the clauses of each rule; families are spelled out where possible."""
    spelled = [_spelled_out(rule) for rule in rules]
    return encode_apart(spelled, _needed_circuits(spelled, budget), budget)


def refute(components: Components, budget: Budget) -> None:
    """Raise an error if a conjunction has no model, or the budget is too small to know: far easier than compiling."""
    encoding = encoded(components, budget)
    everything = range(1, encoding.num_vars + 1)
    compile_cnf(encoding.num_vars, encoding.clauses, budget, projected_out=everything, determined=False)


def _needed_circuits(conjuncts: Sequence[Formula], budget: Budget) -> dict[Formula, Circuit | None]:
    """The circuits of families, except for conjuncts that are just a few clauses."""
    short = (isinstance(conjunct, Leaf) and conjunct.as_clauses() is not None for conjunct in conjuncts)
    return leaf_circuits(itertools.compress(conjuncts, (not is_short for is_short in short)), budget)


def _spelled_out(rule: Formula) -> Formula:
    rules = rule.as_rules() if isinstance(rule, Leaf) else None
    return rule if rules is None else And(rules)


def compile_clauses(num_vars: int, clauses: Clauses, budget: Budget, projected_out: Sequence[int] = ()) -> Ddnnf:
    """A decision-DNNF of clauses within a budget.

    Auxiliary variables are quantified, not decided. Every sum of the circuit then shows the label that it decides on,
    so its determinism can be checked without knowing how the circuit was made.
    """
    return compile_cnf(num_vars, clauses, budget, projected_out=projected_out, determined=False)


def circuit_of(made: Ddnnf, names: Sequence[str], variables: npt.NDArray[np.int64] | None = None) -> Circuit:
    """A decision-DNNF as a circuit.

    Args:
        variables: the label of each variable; by default variable v is label v - 1.
    """
    literal = made.literal
    if variables is not None and len(variables):
        literal = (np.sign(literal) * (variables[np.maximum(np.abs(literal), 1) - 1] + 1)).astype(np.int32)
    return Circuit(names, (), made.kind, literal, made.child_start, made.children)


def compile_to_count(cnf: Cnf, budget: Budget, keep: Iterable[int] = ()) -> Circuit:
    """A circuit with as many models as the CNF, over some of its variables.

    Variables that are a conjunction or disjunction of others are left out: they do not change the count, and a circuit
    that includes them can be exponentially larger.

    Args:
        keep: variables that must stay because their value matters, such as those with a weight.
    """
    kept = set(keep)
    candidates = [v for v in range(cnf.num_vars, 0, -1) if v not in kept]
    check = budget.checker("looking for definitions")
    return compile_without(cnf, defined_variables(cnf.clauses, candidates, check), budget)


def are_defined(cnf: Cnf, variables: Iterable[int]) -> bool:
    """Whether the other variables determine these: each is a conjunction or disjunction, without circular definitions.

    Example:
        >>> are_defined(Cnf(3, [[-3, 1], [-3, 2], [3, -1, -2]]), [3]), are_defined(Cnf(2, [[1, 2]]), [2])
        (True, False)
    """
    wanted = sorted(variables, reverse=True)
    return len(defined_variables(cnf.clauses, wanted)) == len(wanted)


def compile_without(cnf: Cnf, hidden: Iterable[int], budget: Budget) -> Circuit:
    """A circuit of a CNF without some variables, which the others must determine.

    Example:
        >>> compile_without(Cnf(3, [[-3, 1], [-3, 2], [3, -1, -2]]), [3], Budget()).variables
        ('1', '2')
    """
    gone = sorted(set(hidden), reverse=True)
    clauses, left = without(cnf.clauses, gone, budget.checker("looking for definitions"))
    shown = sorted(set(range(1, cnf.num_vars + 1)) - set(gone))
    made = compile_clauses(cnf.num_vars, clauses, budget, projected_out=left)
    return _over(made, cnf.num_vars, shown)


def compile_projected(cnf: Cnf, budget: Budget) -> Circuit:
    """The circuit over the variables that a DIMACS file shows; the others are existentially quantified.

    Args:
        cnf: the clauses; without a `c p show` line, all variables are kept.
    """
    shown = sorted(set(cnf.show)) if cnf.show is not None else list(range(1, cnf.num_vars + 1))
    hidden = sorted(set(range(1, cnf.num_vars + 1)) - set(shown))
    made = compile_clauses(cnf.num_vars, (cnf.offsets, cnf.literals), budget, projected_out=hidden)
    return _over(made, cnf.num_vars, shown)


def _over(made: Ddnnf, num_vars: int, shown: Sequence[int]) -> Circuit:
    place = np.zeros(num_vars, dtype=np.int64)
    place[np.array(shown, dtype=np.int64) - 1] = np.arange(len(shown))
    return circuit_of(made, [str(v) for v in shown], place)
