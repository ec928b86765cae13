"""The steps of the PySDD back end, one by one: for teaching, and to find out why a circuit is large."""

from __future__ import annotations

from dataclasses import dataclass

from semprola.circuit import Circuit
from semprola.compiler.backends.sdd.backend import translated
from semprola.compiler.backends.sdd.diagrams import run
from semprola.compiler.backends.sdd.program import Program
from semprola.compiler.backends.sdd.worker import AND, CONSTANT, ITE, LITERAL, NOT, OR
from semprola.compiler.budget import Budget
from semprola.compiler.parts import conjuncts_of
from semprola.compiler.sources import formula_of
from semprola.errors import UnsatisfiableError
from semprola.logic import Formula

_SIGNS = {AND: " ∧ ", OR: " ∨ "}


@dataclass(frozen=True)
class Step:
    """One step of a compilation.

    Attributes:
        text: the function that this step computes, in terms of the labels.
        circuit: the circuit of this function.
    """

    text: str
    circuit: Circuit


def trace(rules: Formula | str) -> list[Step]:
    """Every conjunction, disjunction and negation that the PySDD back end computes, in its own order.

    The last step is the whole constraint. All circuits have the same labels and vtree.

    Args:
        rules: a formula or its text.

    Raises:
        UnsatisfiableError: the rules have no model.

    Example:
        >>> for step in trace("(cat -> animal) & (dog -> animal)"):
        ...     print(step.text, step.circuit.model_count())
        ¬cat ∨ animal 6
        animal ∨ ¬dog 6
        (¬cat ∨ animal) ∧ (animal ∨ ¬dog) 5
    """
    formula = formula_of(rules, "a trace")
    program, roots, vtree, labels = translated([conjuncts_of(formula)], Budget(progress=False))
    steps = []
    for step in _needed(program, roots[0]):
        try:
            circuit = run(program, [step], vtree, labels)
        except UnsatisfiableError:
            if step == roots[0]:
                raise
            continue
        steps.append(Step(_text(program, step, labels), circuit))
    return steps


def _needed(program: Program, root: int) -> list[int]:
    """The steps that compute something, in order: not literals or constants."""
    wanted = {root}
    for number in range(root, -1, -1):
        if number in wanted:
            wanted.update(_parts(program, number))
    return [
        number for number in sorted(wanted) if number == root or program.steps[number][0] not in (CONSTANT, LITERAL)
    ]


def _parts(program: Program, number: int) -> list[int]:
    kind, *arguments = program.steps[number]
    return arguments[: {AND: 2, OR: 2, NOT: 1, ITE: 3}.get(kind, 0)]


def _text(program: Program, number: int, labels: tuple[str, ...]) -> str:
    """The function of a step, with parentheses around everything but literals."""
    kind, first = program.steps[number][:2]
    if kind == CONSTANT:
        return "true" if first else "false"
    if kind == LITERAL:
        return ("" if first > 0 else "¬") + labels[abs(first) - 1]
    parts = [_text(program, part, labels) for part in _parts(program, number)]
    parts = [part if " " not in part else f"({part})" for part in parts]
    if kind == NOT:
        return f"¬{parts[0]}"
    return _SIGNS[kind].join(parts) if kind in _SIGNS else f"if {parts[0]} then {parts[1]} else {parts[2]}"
