"""Derived variables: those without logits, which the rules must determine from the variables that have them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

import numpy as np

from semprola.circuit import LITERAL, PRODUCT, SUM, Circuit
from semprola.compiler.backends.topdown.backend import refute
from semprola.compiler.budget import Budget
from semprola.distributions.formulas import CompiledRules
from semprola.errors import CompilationBudgetError, LabelError, UnsatisfiableError
from semprola.logic import Bool, Formula, Or

_SECONDS, _NODES = 10.0, 200_000
_MOST_ALTERNATIVES = 2_000
Places = Sequence[int]


def check_derived(circuit: Circuit, observed: Sequence[Places], derived: Sequence[tuple[str, Places]]) -> bool:
    """Check that the rules determine derived variables.

    Returns:
        Whether it is proved; false if that takes too long.
    """
    if not derived or most_completions(circuit, observed) == 1:
        return True
    hidden = {v for _, places in derived for v in places}
    other = _renamed(circuit, hidden)
    both: list[Formula] = [CompiledRules(circuit), CompiledRules(other)]
    try:
        for name, places in derived:
            pairs = [(Bool(circuit.labels[v]), Bool(other.labels[v])) for v in places]
            if _has_model([*both, Or([mine ^ other for mine, other in pairs])]):
                raise LabelError(
                    f"{name!r} has no logits, and the rules leave it open: give logits for it, or a rule that says "
                    "what it is"
                )
    except CompilationBudgetError:
        return False
    return True


def most_completions(circuit: Circuit, observed: Sequence[Places]) -> int:
    """A bound on how many models agree on the observed variables; 1 proves that they determine the others.

    It follows the circuit: a sum has as many as its parts together, unless each part asks for another value of the same
    observed variable.
    """
    home: dict[int, tuple[int, int]] = {v: (n, i) for n, places in enumerate(observed) for i, v in enumerate(places)}
    start, children = circuit.child_start.tolist(), circuit.children.tolist()
    kind, literal = circuit.kind.tolist(), circuit.literal.tolist()
    bound = [1] * circuit.num_nodes
    asked: list[dict[Hashable, frozenset[Hashable]]] = []
    for node in range(circuit.num_nodes):
        below = children[start[node] : start[node + 1]]
        wants: dict[Hashable, frozenset[Hashable]] = {}
        if kind[node] == LITERAL:
            variable = abs(literal[node]) - 1
            if variable in home:
                number, place = home[variable]
                if len(observed[number]) == 1:
                    wants[number] = frozenset([literal[node] > 0])
                elif literal[node] > 0:
                    wants[number] = frozenset([place])
        elif kind[node] == PRODUCT:
            for child in below:
                bound[node] *= bound[child]
                if kind[child] != PRODUCT:
                    wants |= asked[child]
        else:
            parts = _alternatives(node, kind, start, children)
            shared = set(asked[parts[0]]).intersection(*(asked[part] for part in parts[1:])) if parts else set()
            apart = any(_are_disjoint([asked[part][key] for part in parts]) for key in shared)
            bound[node] = max(bound[part] for part in parts) if apart else sum(bound[child] for child in below)
            if all(kind[part] == LITERAL for part in parts):
                wants = {key: frozenset().union(*(asked[part][key] for part in parts)) for key in shared}
        asked.append(wants)
    free = ~circuit.zero_suppressed & ~_mentioned(circuit)
    still_open = int(free[[v for v in range(circuit.num_labels) if v not in home]].sum())
    return bound[-1] << still_open


def _alternatives(node: int, kind: list[int], start: list[int], children: list[int]) -> list[int]:
    """The parts of a sum, and of the sums among them."""
    found: list[int] = []
    stack = [node]
    while stack and len(found) < _MOST_ALTERNATIVES:
        top = stack.pop()
        for child in children[start[top] : start[top + 1]]:
            (stack if kind[child] == SUM else found).append(child)
    return found + stack


def _are_disjoint(sets: Sequence[frozenset[Hashable]]) -> bool:
    return sum(map(len, sets)) == len(frozenset().union(*sets))


def _mentioned(circuit: Circuit) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    mentioned = np.zeros(circuit.num_variables, bool)
    mentioned[np.abs(circuit.literal[circuit.literal != 0]) - 1] = True
    return mentioned


def _renamed(circuit: Circuit, hidden: Collection[int]) -> Circuit:
    """The circuit with other names for some labels."""
    labels = [f"{label}'" if v in hidden else label for v, label in enumerate(circuit.labels)]
    return Circuit(
        labels,
        circuit.given,
        circuit.kind,
        circuit.literal,
        circuit.child_start,
        circuit.children,
        zero_suppressed=circuit.zero_suppressed,
        vtree=circuit.vtree,
    )


def _has_model(conjuncts: Sequence[Formula]) -> bool:
    try:
        refute([conjuncts], Budget(_SECONDS, _NODES, progress=False))
    except UnsatisfiableError:
        return False
    return True
