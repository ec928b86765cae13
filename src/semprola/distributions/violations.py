"""Rows that violate a constraint, and the rule that each breaks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from semprola._names import is_named, named_rows
from semprola.circuit import Circuit
from semprola.compiler import compile
from semprola.compiler.sources import as_constraint
from semprola.distributions.cached import plans_of
from semprola.engine import CircuitPlans, indicators, supported
from semprola.errors import CompilationBudgetError, LabelError, UnsatisfiableError
from semprola.logic import Formula, Leaf
from semprola.logic.places import located, places_of
from semprola.logic.rules import conjuncts

_SHOWN = 8
"""For rules with at most this many labels, all values are reported; for larger ones, a part that contradicts them."""
_SECONDS = 10.0
"""Most time to spend on compiling a family just to say which of its labels conflict."""


@dataclass(frozen=True)
class Violation:
    """One rule that one row breaks.

    Attributes:
        row: the index of the row in y without its last dimension; a tuple if there are several dimensions.
        rule: the rule as the user wrote it, with the file and line that it was read from, or the name of a family; for
            a circuit whose formula is unknown, the values that cannot hold together.
        values: the values of the labels of this row that break the rule.
    """

    row: int | tuple[int, ...]
    rule: str
    values: dict[str, int]

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.values.items())
        return f"row {self.row}: {self.rule}" + (
            f" ({values})" if values and self.rule != _together(self.values) else ""
        )


def violations(
    constraint: Any,
    y: Any,
    labels: Iterable[str] | None = None,
    given: Any = None,
) -> list[Violation]:
    """List the rows that violate a constraint, with every rule that each breaks.

    The rules are the operands of the constraint's conjunction: ``(cat -> animal) & (dog -> animal)`` has two.

    Args:
        constraint: a formula, its text, a family, a compiled circuit, the path of a file, or a layer or distribution
            over one, also over sequences of tags. Rules of a file are followed by its name and the line.
        y: 0/1 [*batch, labels], as a tensor, an array, or by name.
        labels: names of the columns of y; by default the circuit's labels, or all variables of the formula that are
            not inputs. Columns that the constraint does not mention are ignored.
        given: values of the input variables [*batch, given], or by name.

    Returns:
        One entry per row and broken rule, in the order of the rows; empty if all rows satisfy the constraint.

    Raises:
        LabelError: if a column is unknown or missing.

    Example:
        >>> import torch
        >>> rules = "(cat -> animal) & (dog -> animal)"
        >>> for violation in violations(rules, torch.tensor([[1, 1, 0], [1, 0, 1]])):
        ...     print(violation)
        row 1: cat -> animal (cat=1, animal=0)
        row 1: dog -> animal (dog=1, animal=0)
    """
    if callable(own := getattr(constraint, "violations", None)):  # sequences
        if labels is not None or given is not None:
            raise TypeError("violations of sequences take tags only, not labels or given inputs")
        found_by_it: list[Violation] = own(y)
        return found_by_it
    constraint = getattr(constraint, "circuit", constraint)
    constraint = as_constraint(constraint)
    own, inputs = _variables(constraint, labels, given)
    rows, batch = _table(y, own, inputs, given)
    names = [*own, *inputs]
    rule: Formula | Circuit = constraint
    if isinstance(constraint, Circuit) and constraint.source is not None:
        rule = constraint.source
    found = _of_formula(rule, rows, names) if isinstance(rule, Formula) else _of_circuit(rule, rows, names)
    return [Violation(_place(row, batch), text, values) for row, text, values in found]


def _of_formula(
    formula: Formula, rows: NDArray[np.bool_], names: Sequence[str]
) -> list[tuple[int, str, dict[str, int]]]:
    bad = np.flatnonzero(~np.asarray(formula.evaluate(rows, labels=names)))
    position = {name: i for i, name in enumerate(names)}
    found: list[tuple[int, str, dict[str, int]]] = []
    if not len(bad):
        return found
    places = places_of(formula)
    for rule in conjuncts(formula):
        columns = [position[name] for name in rule.labels()]
        part = rows[bad][:, columns]
        broken = np.flatnonzero(~np.asarray(rule.evaluate(part, labels=list(rule.labels()))))
        if not len(broken):
            continue
        shown = _reasons(rule, part[broken])
        found += [(int(bad[i]), located(rule, places), values) for i, values in zip(broken, shown, strict=True)]
    return sorted(found, key=lambda item: item[0])


def _reasons(rule: Formula, rows: NDArray[np.bool_]) -> list[dict[str, int]]:
    """For each row [rows, labels of the rule], the values of labels that break the rule."""
    names = rule.labels()
    if len(names) <= _SHOWN and not isinstance(rule, Leaf):
        return [{name: int(value) for name, value in zip(names, row, strict=True)} for row in rows]
    try:
        circuit = compile(rule, labels=names, given=[], timeout=_SECONDS)
    except (CompilationBudgetError, UnsatisfiableError):
        return [{} for _ in rows]
    return _cores(circuit, rows)


def _of_circuit(
    circuit: Circuit, rows: NDArray[np.bool_], names: Sequence[str]
) -> list[tuple[int, str, dict[str, int]]]:
    position = {name: i for i, name in enumerate(names)}
    rows = rows[:, [position[name] for name in circuit.variables]]
    y, x = rows[:, : circuit.num_labels], rows[:, circuit.num_labels :]
    bad = np.flatnonzero(~np.asarray(circuit.satisfied(y, given=x if circuit.given else None)))
    cores = _cores(circuit, rows[bad]) if len(bad) else []
    return [(int(row), _together(core), core) for row, core in zip(bad, cores, strict=True)]


def _together(values: dict[str, int]) -> str:
    return f"{' and '.join(f'{name}={value}' for name, value in values.items())} cannot hold together"


def _cores(circuit: Circuit, rows: NDArray[np.bool_]) -> list[dict[str, int]]:
    """For each violating row [rows, variables], a minimal set of values that contradicts the constraint."""
    plans = plans_of(circuit)
    values = torch.from_numpy(rows.T.astype(np.float32))
    kept = torch.zeros_like(values, dtype=torch.bool)
    width, count = values.shape
    index = torch.arange(width)[:, None]
    open_rows = ~_impossible(plans, values, kept)
    # the kept variables and the first `last` ones contradict the constraint; bisection finds the fewest first ones that
    # do, and the last of these is kept
    last = torch.full((count,), width)
    while bool(open_rows.any()):
        low, high = torch.zeros(count, dtype=torch.int64), last.clone()
        while bool((low < high).any()):
            middle = (low + high) // 2
            enough = _impossible(plans, values, kept | (index < middle))
            high, low = torch.where(enough, middle, high), torch.where(enough, low, torch.minimum(middle + 1, high))
        kept |= (index == high - 1) & open_rows
        last = high - 1
        open_rows &= ~_impossible(plans, values, kept)
    return [
        {circuit.variables[v]: int(rows[r, v]) for v in torch.nonzero(kept[:, r])[:, 0].tolist()} for r in range(count)
    ]


def _impossible(plans: CircuitPlans, values: Tensor, kept: Tensor) -> Tensor:
    """Whether no model has the values [variables, columns] that are kept: bool [columns]."""
    observed = values.masked_fill(~kept, float("nan"))
    leaves = torch.stack(indicators(observed, values.dtype), dim=1).flatten(0, 1)
    return ~supported(plans.constraint_explicit, leaves)


def _variables(
    constraint: Formula | Circuit, labels: Iterable[str] | None, given: Any
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the columns of y and of the given inputs."""
    if isinstance(constraint, Circuit):
        inputs: tuple[str, ...] = constraint.given
        mentioned = constraint.variables
    else:
        mentioned = constraint.labels()
        inputs = tuple(dict.fromkeys(n for node in constraint.nodes() if isinstance(node, Leaf) for n in node.given))
        if given is not None and is_named(given):
            inputs = tuple(getattr(given, "columns", given))
    if labels is not None:
        own = tuple(labels)
        inputs = tuple(name for name in inputs if name not in own)
    else:
        own = tuple(name for name in mentioned if name not in inputs)
    missing = [name for name in mentioned if name not in own and name not in inputs]
    if missing:
        raise LabelError(f"no column for {missing[0]!r}, which the constraint mentions: add it to labels=")
    return own, inputs


def _table(
    y: Any, labels: tuple[str, ...], inputs: tuple[str, ...], given: Any
) -> tuple[NDArray[np.bool_], tuple[int, ...]]:
    """All values as one table [rows, labels and inputs], and the shape that the rows had."""
    values = _bits(y, labels, "y")
    batch = values.shape[:-1]
    if inputs:
        if given is None:
            raise LabelError(f"the constraint has inputs ({', '.join(inputs[:4])}): pass given=")
        x = _bits(given, inputs, "given")
        batch = np.broadcast_shapes(batch, x.shape[:-1])
        values = np.concatenate(
            [np.broadcast_to(values, (*batch, len(labels))), np.broadcast_to(x, (*batch, len(inputs)))], axis=-1
        )
    return values.reshape(-1, len(labels) + len(inputs)), batch


def _bits(values: Any, names: tuple[str, ...], what: str) -> NDArray[np.bool_]:
    if is_named(values):
        values = named_rows(values, names, what)
    array = np.asarray(values.detach().cpu().float() if isinstance(values, Tensor) else values)
    if array.ndim == 0 or array.shape[-1] != len(names):
        raise LabelError(f"{what} has shape {array.shape}, expected [*batch, {len(names)}]")
    wrong = np.argwhere((array != 0) & (array != 1))
    if len(wrong):
        *row, column = wrong[0].tolist()
        place = f"row {_place_text(row)}, " if row else ""
        raise ValueError(f"{what} must hold 0 and 1 only: {place}label {names[column]!r} is {array[tuple(wrong[0])]}")
    ones: NDArray[np.bool_] = array == 1
    return ones


def _place(row: int, batch: tuple[int, ...]) -> int | tuple[int, ...]:
    if len(batch) <= 1:
        return row
    return tuple(int(i) for i in np.unravel_index(row, batch))


def _place_text(row: Sequence[int]) -> str:
    return str(row[0]) if len(row) == 1 else str(tuple(row))
