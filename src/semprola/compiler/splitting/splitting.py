"""`split`: from a constraint that does not compile as one to several circuits that together state it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from semprola.circuit import Circuit
from semprola.compiler.backends.topdown.backend import refute
from semprola.compiler.budget import Budget, Progress
from semprola.compiler.contradiction import explained, refuted_early, written_rules
from semprola.compiler.pipeline import compile
from semprola.compiler.sources import Source, as_constraint
from semprola.compiler.splitting.blocks import Blocks, conjoined, joined
from semprola.compiler.splitting.pieces import pieces_of, spelled_out
from semprola.compiler.splitting.split import Split
from semprola.errors import CompilationBudgetError, LabelError, UnsatisfiableError
from semprola.logic import Cnf, Formula, Leaf
from semprola.logic.rules import places_of, stated_in_place
from semprola.logic.syntax import checked_names

_WHOLE_NODES, _BLOCK_NODES = 50_000, 5_000
"""By default, the most nodes of one circuit of everything, and of a block."""
_STEPS = 5
"""Steps per node that the search for one circuit of everything may take."""
_SMALL = 150
"""With at most so many labels, all back ends try to compile everything."""
_SHARE = 0.4
"""The share of the time that is spent on one circuit of everything."""
_REFUTE_SECONDS = 2.0


def split(
    constraint: Source,
    labels: Iterable[str] | None = None,
    *,
    timeout: float | None = None,
    max_nodes: int | None = None,
    memory: int | str | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
) -> Split:
    """Split a constraint that does not compile as one into circuits that each compile and together state it.

    Layers take the result like a circuit. Their distribution is pooled from one distribution per circuit: every
    prediction obeys every rule, modes are proven, and log-likelihoods have certified bounds.

    Rules are grouped into circuits by the structure of their families (rows and columns of a grid, forests of a
    hierarchy), and otherwise by the variables that they share. The same rules and the same `max_nodes` give the same
    split, unless `timeout` or `memory` run out.

    Args:
        constraint: a formula, its text, a family, a compiled circuit, or the path of a file.
        labels: names of the columns of y; by default all variables of the constraint in order of first appearance.
        timeout: the most seconds that it may take. When they are over, rules without a circuit are left out.
        max_nodes: the most nodes of each circuit.
        memory: the most bytes that the compiler may use, or a text such as "2GB".
        progress: as for :func:`semprola.compile`.

    Returns:
        The split; ``is_exact`` if one circuit sufficed.

    Raises:
        UnsatisfiableError: rules contradict each other; the error names them.
        LabelError: the constraint depends on inputs, or `labels` lacks one of its variables.

    Example:
        >>> import semprola as sp
        >>> S = sp.split(sp.constraints.permutation(6), max_nodes=100)  # rows and columns
        >>> len(S.circuits) > 1, S.left_out
        (True, ())
    """
    budget = Budget(timeout, max_nodes, memory, progress)
    source = as_constraint(constraint)
    if isinstance(source, Circuit):
        return Split((source if labels is None else compile(source, labels=labels),))
    source = stated_in_place(source)
    names = _columns(source, labels)
    try:
        whole = _as_one(source, names, budget)
        if whole is None:
            return _split(source, names, budget)
        return Split((whole,), info={"seconds": budget.seconds}, source=source)
    except UnsatisfiableError as error:
        if error.rules:
            raise
        raise explained(source, budget) from None
    finally:
        budget.close()


def _columns(source: Formula, labels: Iterable[str] | None) -> tuple[str, ...]:
    """The labels, checked against the constraint's variables."""
    inputs = [name for node in source.nodes() if isinstance(node, Leaf) for name in node.given]
    if inputs:
        raise LabelError(
            f"a split cannot have inputs, but {inputs[0]!r} is one: compile the constraint, or make it a label"
        )
    names = source.labels if labels is None else checked_names(labels, "labels")
    listed = set(names)
    missing = next((name for name in source.labels if name not in listed), None)
    if missing is not None:
        raise LabelError(f"the constraint mentions {missing!r}, which is not listed: add it to labels=")
    return names


def _as_one(source: Formula, names: tuple[str, ...], budget: Budget) -> Circuit | None:
    """One circuit of everything; None if it would take more than its share of the budget."""
    try:
        refuted = refuted_early(source, budget)
    except CompilationBudgetError:  # no time is left; rules are left out
        return None
    if refuted is not None:
        raise refuted
    own = budget if budget.seconds_left is None else budget.within(_SHARE * budget.seconds_left)
    most = _WHOLE_NODES if budget.max_nodes is None else budget.max_nodes
    is_family = isinstance(source, Leaf) and not isinstance(source, Cnf)
    try:
        if is_family or len(source.labels) <= _SMALL:
            seconds = own.seconds_left
            return compile(source, labels=names, timeout=seconds, max_nodes=most, memory=budget.memory, progress=False)
        made = conjoined(source, own.limited(most, _STEPS * most))
        return None if made.num_nodes > most else compile(made, labels=names)
    except CompilationBudgetError:
        return None


def _split(source: Formula, names: tuple[str, ...], budget: Budget) -> Split:
    rules = written_rules(source)
    pieces, facts = pieces_of(rules)
    with contextlib.suppress(CompilationBudgetError):
        spelled = [part for piece in pieces for part in spelled_out(piece.formula)]
        refute([spelled], budget.within(_REFUTE_SECONDS))
    most = _BLOCK_NODES if budget.max_nodes is None else budget.max_nodes
    groups, hard = Blocks(pieces, facts, budget, most).find()
    circuits = [joined(group, facts, names) for group in groups or [[]]]
    left_out = dict.fromkeys(rules[pieces[number].rule] for number in hard)
    info = {"seconds": budget.seconds, "pieces": len(pieces), "blocks": sum(map(len, groups))}
    places = places_of(source)
    kept = {rule: places[rule] for rule in left_out if rule in places}
    return Split(tuple(circuits), tuple(left_out), kept, info, source)
