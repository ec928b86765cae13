"""Reasoning shortcuts: other readings of the concepts that explain everything that was observed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semprola.circuit import Circuit
from semprola.circuit.whole import whole_variables
from semprola.compiler import compile
from semprola.compiler.sources import Source
from semprola.constraints.numbers import value_table
from semprola.constraints.variables import Categorical
from semprola.errors import IntractableError, LabelError, UnsatisfiableError
from semprola.logic import And, Formula

_MOST_TUPLES = 200_000


@dataclass(frozen=True)
class Shortcuts:
    """What observations leave open about the meaning of concepts.

    Attributes:
        count: the number of wrong readings that explain all observations; 0 if they determine the concepts.
        readings: for each reader and each of its true values, the values that it may be read as.
        unseen: for each reader, the values that no observation has, about which nothing is known.
    """

    count: int
    readings: dict[str, dict[Any, tuple[Any, ...]]]
    unseen: dict[str, tuple[Any, ...]]

    @property
    def confused(self) -> dict[str, dict[Any, tuple[Any, ...]]]:
        """The readings, without the values that can only be read right."""
        found = {
            name: {value: others for value, others in values.items() if others != (value,)}
            for name, values in self.readings.items()
        }
        return {name: values for name, values in found.items() if values}

    def __str__(self) -> str:
        """A few lines for people."""
        if not self.count:
            return "The observations determine the concepts: there is no shortcut."
        lines = [f"{self.count:,} wrong readings explain all observations."]
        for name, values in self.confused.items():
            for value, others in values.items():
                lines.append(f"  {name}: {value!r} may be read as {', '.join(map(repr, others))}")
        return "\n".join(lines)


def shortcuts(
    rules: Source,
    observed: Iterable[Mapping[str, Any]],
    readers: Mapping[str, str] | None = None,
) -> Shortcuts:
    """Count the wrong readings of concepts that explain all observations.

    A network reads concepts, such as the digits of two images, and is trained only on what the rules derive from them,
    such as the sum. A *reading* maps every true value of a concept to the value that the network says. It explains an
    observation if the rules derive the same from it. Rules can thus be satisfied for the wrong reason.

    Args:
        rules: the rules; they determine the derived variables from the concepts.
        observed: the values of the concepts in the training rows, as in ``{"a": 3, "b": 4}``; repeated rows count once.
            All other variables of the rules are derived, and observed.
        readers: the name of the network that reads each concept; by default, all concepts with the same values are read
            by one.

    Raises:
        LabelError: rows have different concepts, a concept is not a variable or does not have a value, or the rules do
            not determine the derived variables.
        IntractableError: too many combinations of concepts have the same derived values.

    Example:
        >>> import semprola as sp
        >>> a, b, total = sp.Integer("a", 0, 4), sp.Integer("b", 0, 4), sp.Integer("sum", 0, 8)
        >>> half = [(0, 0), (0, 1), (2, 3), (2, 4)]
        >>> print(shortcuts(a + b == total, [{"a": x, "b": y} for x, y in half]))
        2 wrong readings explain all observations.
          a, b: 2 may be read as 2, 3, 4
          a, b: 3 may be read as 1, 2, 3
          a, b: 4 may be read as 2, 3, 4
    """
    circuit = compile(rules)
    rows = [_row(row) for row in observed]
    concepts = _concepts(circuit, rows)
    names = _reader_names(concepts, readers)
    seen = {tuple(row[name] for name in concepts): None for row in rows}
    reads = {
        (names[name], value): Categorical(f"{names[name]}({value})", concepts[name])
        for row in seen
        for name, value in zip(concepts, row, strict=True)
    }
    explained = [_explanations(circuit, concepts, row, names, reads) for row in seen]
    possible = compile(And([variable.rule for variable in reads.values()] + explained))
    domains = {names[name]: values for name, values in concepts.items()}
    readings: dict[str, dict[Any, tuple[Any, ...]]] = {
        reader: {v: _readings(possible, reads[reader, v]) for v in domains[reader] if (reader, v) in reads}
        for reader in sorted(domains)
    }
    unseen = {reader: tuple(v for v in values if (reader, v) not in reads) for reader, values in domains.items()}
    return Shortcuts(possible.model_count() - 1, readings, {name: values for name, values in unseen.items() if values})


def _row(row: Any) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        raise LabelError(
            f'shortcuts: observed= needs the values of the concepts, as in [{{"a": 3, "b": 4}}], not {row!r}'
        )
    return dict(row)


def _concepts(circuit: Circuit, rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """The values of each concept."""
    if not rows:
        raise LabelError("shortcuts: observed= has no rows")
    variables = whole_variables(circuit)
    concepts: dict[str, tuple[Any, ...]] = {}
    for name in rows[0]:
        if name in variables:
            concepts[name] = variables[name].values
        elif name in circuit.labels:
            concepts[name] = (0, 1)
        else:
            raise LabelError(f"shortcuts: {name!r} is not a variable of the rules")
    for i, row in enumerate(rows):
        if row.keys() != concepts.keys():
            raise LabelError(f"shortcuts: row {i} has other concepts than row 0: {', '.join(map(str, row))}")
        for name, value in row.items():
            if value not in concepts[name]:
                raise LabelError(f"shortcuts: row {i}: {name!r} has no value {value!r}")
    return concepts


def _reader_names(concepts: Mapping[str, tuple[Any, ...]], readers: Mapping[str, str] | None) -> dict[str, str]:
    """The name of the reader of each concept."""
    if readers is not None:
        missing = next((name for name in concepts if name not in readers), None)
        if missing is not None:
            raise LabelError(f"shortcuts: readers= does not say who reads {missing!r}")
        found = {name: str(readers[name]) for name in concepts}
        for name, other in found.items():
            first = next(n for n in found if found[n] == other)
            if concepts[first] != concepts[name]:
                raise LabelError(f"shortcuts: {other!r} reads {first!r} and {name!r}, which have different values")
        return found
    alike: dict[tuple[Any, ...], list[str]] = {}
    for name, values in concepts.items():
        alike.setdefault(values, []).append(name)
    return {name: ", ".join(names) for names in alike.values() for name in names}


def _explanations(
    circuit: Circuit,
    concepts: Mapping[str, tuple[Any, ...]],
    row: tuple[Any, ...],
    names: Mapping[str, str],
    reads: Mapping[tuple[str, Any], Categorical],
) -> Formula:
    """What may be read instead of one row of concepts: everything from which the rules derive the same."""
    own = {label for name in concepts for label in _labels(circuit, name)}
    derived = _derived(circuit, dict(zip(concepts, row, strict=True)), own)
    alike = circuit.condition(derived)
    if alike.model_count() > _MOST_TUPLES:
        raise IntractableError(
            f"shortcuts: {alike.model_count():,} combinations of concepts have the same derived values"
        )
    table = alike.enumerate()
    column = {label: v for v, label in enumerate(alike.labels)}
    tuples = [_values(table, column, name, values) for name, values in concepts.items()]
    keys = [(names[name], value) for name, value in zip(concepts, row, strict=True)]
    first = {key: place for place, key in reversed(list(enumerate(keys)))}
    # a value that the row has twice is read in the same way both times
    kept = [
        [values[place] for place in first.values()]
        for values in zip(*tuples, strict=True)
        if all(values[place] == values[first[key]] for place, key in enumerate(keys))
    ]
    return value_table(kept, [reads[key] for key in first])


def _derived(circuit: Circuit, row: Mapping[str, Any], own: set[str]) -> dict[str, int]:
    """The derived labels of one row of concepts."""
    fixed = {label: int(label == f"{name}={value}" if "=" in label else value)
             for name, value in row.items() for label in _labels(circuit, name)}  # fmt: skip
    try:
        rest = circuit.condition(fixed)
    except UnsatisfiableError:
        raise LabelError(f"shortcuts: the observed row {dict(row)} breaks the rules") from None
    if rest.model_count() != 1:
        raise LabelError(f"shortcuts: the rules do not determine the other variables of the row {dict(row)}")
    (values,) = rest.enumerate()
    return {label: int(on) for label, on in zip(rest.labels, values, strict=True) if label not in own}


def _labels(circuit: Circuit, name: str) -> list[str]:
    variable = whole_variables(circuit).get(name)
    return [name] if variable is None else [circuit.labels[v] for v in variable.places]


def _values(table: Any, column: Mapping[str, int], name: str, values: Sequence[Any]) -> list[Any]:
    """The values of a concept in a table of models."""
    if name in column:
        return [int(on) for on in table[:, column[name]]]
    places = [column[f"{name}={value}"] for value in values]
    return [values[place] for place in np.asarray(table)[:, places].argmax(axis=1)]


def _readings(possible: Circuit, variable: Categorical) -> tuple[Any, ...]:
    """The values that a variable can have."""
    found = []
    for value, label in zip(variable.values, variable.labels, strict=True):
        try:
            possible.condition({label: 1})
            found.append(value)
        except UnsatisfiableError:
            continue
    return tuple(found)
