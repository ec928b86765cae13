"""Rows that violate a constraint, and the rule that each breaks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola._names import binary_rows, is_named, row_names
from semprola._notebook import code, heading, more, shown, table, text
from semprola.circuit import Circuit
from semprola.compiler import compile
from semprola.compiler.sources import as_constraint
from semprola.compiler.splitting import Split
from semprola.distributions.conflicts import (
    SECONDS,
    Rows,
    cores,
    impossible_for,
    impossible_rows,
    is_small,
    rules_against,
)
from semprola.errors import CompilationBudgetError, LabelError, UnsatisfiableError
from semprola.logic import And, Formula, Leaf
from semprola.logic.rules import conjuncts, located, places_of

_SHOWN = 20


class Violations(list["Violation"]):
    """A list of violations, which notebooks show as a table."""

    @shown
    def _repr_html_(self) -> str | None:
        if not self:
            return heading("no row breaks a rule")
        rows = []
        for each in self[:_SHOWN]:
            values = ", ".join(f"{name}={value}" for name, value in each.values.items())
            rows.append([text(each.row), code(each.rule), code(values)])
        return table(["row", "breaks", "because of"], rows, numbers=[0]) + more(len(self) - _SHOWN, "violations")


_Found = tuple[int, str, dict[str, int]]
"""The number of a row, the rule that it breaks, and the values that break it."""


@dataclass(frozen=True)
class Violation:
    """One rule that one row breaks.

    Attributes:
        row: the position of the row in y, from 0; a tuple if y has more than two dimensions. If y is a pandas data
            frame, the row's label in the frame's index.
        rule: the rule as the user wrote it, with the file and line that it was read from, or the name of a family;
            several rules joined by ``&`` if only together they leave no completion of the row; for a circuit whose
            formula is unknown, the values that cannot hold together.
        values: the observed values of the labels of this row that break the rule.
    """

    row: Any
    rule: str
    values: dict[str, int]

    @property
    def reason(self) -> str:
        """The rule and the values, as text."""
        values = ", ".join(f"{name}={value}" for name, value in self.values.items())
        return f"{self.rule} ({values})" if values and self.rule != _together(self.values) else self.rule

    def __str__(self) -> str:
        return f"row {self.row}: {self.reason}"


def violations(
    constraint: Any,
    y: Any,
    labels: Iterable[str] | None = None,
    given: Any = None,
) -> Violations:
    """List the rows that violate a constraint, with every rule that each breaks.

    The rules are the operands of the constraint's conjunction: ``(cat -> animal) & (dog -> animal)`` has two. A row
    with missing labels (NaN) violates the constraint if no completion of it obeys all rules, and breaks a rule if no
    completion obeys that rule. If it breaks no single rule, its entry has the rules that together leave no completion.

    Args:
        constraint: a formula, its text, a family, a compiled circuit, the path of a file, a split, or a layer or
            distribution over one, also over sequences of tags. Rules of a file are followed by its name and the line.
        y: 0, 1, and NaN where not observed [*batch, labels], as a tensor, an array, or by name.
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
        >>> nan = float("nan")
        >>> for violation in violations("(cat -> pet) & (pet -> animal)", [[1, nan, nan], [1, nan, 0]]):
        ...     print(violation)
        row 1: (cat -> pet) & (pet -> animal) (cat=1, animal=0)
    """
    if callable(own := getattr(constraint, "violations", None)):  # sequences
        if labels is not None or given is not None:
            raise TypeError("violations of sequences take tags only, not labels or given inputs")
        return Violations(own(y))
    split = getattr(constraint, "split", constraint)
    constraint = split.circuits[0] if isinstance(split, Split) else getattr(constraint, "circuit", constraint)
    constraint = as_constraint(constraint)
    own, inputs = _variables(constraint, labels, given)
    rows, batch = _table(y, own, inputs, given)
    names = [*own, *inputs]
    found = _of_split(split, rows, names) if isinstance(split, Split) else _of_constraint(constraint, rows, names)
    index = row_names(y)
    return Violations(Violation(_place(row, batch, index), text, values) for row, text, values in found)


def _of_split(split: Split, rows: Rows, names: Sequence[str]) -> list[_Found]:
    """What each circuit says; rules that are left out are looked at where a row has all their labels."""
    found = [each for circuit in split.circuits for each in _of_constraint(circuit, rows, names)]
    position = {name: i for i, name in enumerate(names)}
    for rule in split.rules_left_out:
        part = rows[:, [position[name] for name in rule.labels]]
        whole = np.flatnonzero(~np.isnan(part).any(1))
        broken = whole[impossible_for(rule, part[whole])]
        shown = [dict(zip(rule.labels, row.astype(int).tolist(), strict=True)) for row in part[broken]]
        text = located(rule, split.places)
        found += [(int(i), text, values) for i, values in zip(broken, shown, strict=True)]
    each_once = {(row, text): (row, text, values) for row, text, values in found}
    return sorted(each_once.values(), key=lambda item: item[0])


def _of_constraint(constraint: Formula | Circuit, rows: Rows, names: Sequence[str]) -> list[_Found]:
    rule = constraint.source if isinstance(constraint, Circuit) else constraint
    if isinstance(rule, Formula):
        return _of_formula(rule, rows, names, constraint if isinstance(constraint, Circuit) else None)
    return _of_circuit(constraint, rows, names) if isinstance(constraint, Circuit) else []


def _of_formula(formula: Formula, rows: Rows, names: Sequence[str], circuit: Circuit | None) -> list[_Found]:
    position = {name: i for i, name in enumerate(names)}
    rows = rows[:, [position[name] for name in formula.labels]]
    position = {name: i for i, name in enumerate(formula.labels)}
    if circuit is not None and np.isnan(rows).any():
        bad = np.flatnonzero(impossible_rows(circuit, _columns(rows, formula.labels, circuit)))
    else:
        bad = np.flatnonzero(impossible_for(formula, rows))
    found: list[_Found] = []
    places = places_of(formula)
    for rule in conjuncts(formula) if len(bad) else ():
        part = rows[bad][:, [position[name] for name in rule.labels]]
        broken = np.flatnonzero(_breaks(rule, part))
        shown = _reasons(rule, part[broken]) if len(broken) else []
        found += [(int(bad[i]), located(rule, places), values) for i, values in zip(broken, shown, strict=True)]
    rest = np.setdiff1d(bad, [row for row, _, _ in found])
    found += _together_broken(formula, rows, rest, circuit) if len(rest) else []
    return sorted(found, key=lambda item: item[0])


def _breaks(rule: Formula, rows: Rows) -> NDArray[np.bool_]:
    try:
        return impossible_for(rule, rows, SECONDS)
    except CompilationBudgetError:
        return np.zeros(len(rows), bool)  # such a row is explained by all rules together


def _together_broken(formula: Formula, rows: Rows, bad: NDArray[Any], circuit: Circuit | None) -> list[_Found]:
    """Rows that break no single rule, but have no completion that obeys all rules."""
    try:
        circuit = circuit or compile(formula, labels=formula.labels, given=[])
        values = cores(circuit, _columns(rows[bad], formula.labels, circuit))
    except UnsatisfiableError:
        values = [{} for _ in bad]
    found = zip(bad, rules_against(formula, values), values, strict=True)
    return [(int(row), str(And(rules)) if rules else _together(core), core) for row, rules, core in found]


def _reasons(rule: Formula, rows: Rows) -> list[dict[str, int]]:
    """For each row [rows, labels of the rule], the values of labels that break the rule."""
    names = rule.labels
    if is_small(rule):
        return [{name: int(v) for name, v in zip(names, row, strict=True) if not np.isnan(v)} for row in rows]
    try:
        circuit = compile(rule, labels=names, given=[], timeout=SECONDS)
    except (CompilationBudgetError, UnsatisfiableError):
        return [{} for _ in rows]
    return cores(circuit, rows)


def _of_circuit(circuit: Circuit, rows: Rows, names: Sequence[str]) -> list[_Found]:
    rows = _columns(rows, names, circuit)
    bad = np.flatnonzero(impossible_rows(circuit, rows))
    found = cores(circuit, rows[bad]) if len(bad) else []
    return [(int(row), _together(core), core) for row, core in zip(bad, found, strict=True)]


def _columns(rows: Rows, names: Sequence[str], circuit: Circuit) -> Rows:
    """The columns of the circuit's variables, with NaN for those that have none."""
    position = {name: i for i, name in enumerate(names)}
    padded = np.concatenate([rows, np.full((len(rows), 1), np.nan, np.float32)], axis=1)
    return padded[:, [position.get(name, len(names)) for name in circuit.variables]]


def _together(values: dict[str, int]) -> str:
    return f"{' and '.join(f'{name}={value}' for name, value in values.items())} cannot hold together"


def _variables(
    constraint: Formula | Circuit, labels: Iterable[str] | None, given: Any
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the columns of y and of the given inputs."""
    if isinstance(constraint, Circuit):
        inputs: tuple[str, ...] = constraint.given
        mentioned = constraint.variables
    else:
        mentioned = constraint.labels
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


def _table(y: Any, labels: tuple[str, ...], inputs: tuple[str, ...], given: Any) -> tuple[Rows, tuple[int, ...]]:
    """All values as one table [rows, labels and inputs], and the shape that the rows had."""
    values = binary_rows(y, labels, "y", partial=True)
    batch = values.shape[:-1]
    if inputs:
        if given is None:
            raise LabelError(f"the constraint has inputs ({', '.join(inputs[:4])}): pass given=")
        x = binary_rows(given, inputs, "given")
        batch = np.broadcast_shapes(batch, x.shape[:-1])
        values = np.concatenate(
            [np.broadcast_to(values, (*batch, len(labels))), np.broadcast_to(x, (*batch, len(inputs)))], axis=-1
        )
    return values.reshape(-1, len(labels) + len(inputs)), batch


def _place(row: int, batch: tuple[int, ...], index: list[Any] | None) -> Any:
    if len(batch) <= 1:
        return row if index is None or batch != (len(index),) else index[row]
    return tuple(int(i) for i in np.unravel_index(row, batch))
