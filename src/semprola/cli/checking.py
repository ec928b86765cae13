"""The work of `semprola check`: a review of rules, or the properties of a circuit. Torch is imported only if needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit
from semprola.cli.tables import MISSING, read_labels, read_table
from semprola.errors import FormatError
from semprola.rules import Review, review
from semprola.rules.listing import RuleList, listed
from semprola.rules.tables import Rows
from semprola.rules.variables import Variables

_MOST_SHOWN = 5


def check_rules(source: str, path: Path | None, timeout: float | None) -> Review:
    """The review of rules, and of the rows in a file."""
    rules = listed(source)
    return review(rules, None if path is None else rows_of(path, rules), timeout=timeout, progress=True)


def rows_of(path: Path, rules: RuleList) -> Rows:
    """The labels of a table; a variable with several values may be one column."""
    variables = Variables(rules.variables)
    whole = Variables(())
    if rules.variables and path.suffix.lower() != ".npy":
        frame = read_table(path)
        whole = variables.given(frame.columns)
    if not whole.labels:
        frame, table = read_labels(path, rules.labels)
    else:
        frame.require([name for name in rules.labels if name not in whole.home])

        def fail(message: str, row: int) -> None:
            raise FormatError(f"{frame.place(row)}: {message}")

        columns = {name: frame.binary(name) for name in rules.labels if name not in whole.home}
        columns |= whole.spelled({name: _entries(frame.columns[name]) for name in whole.labels}, fail)
        table = np.stack([columns[name] for name in rules.labels], axis=1).astype(np.float32)
    places = [frame.place(row) for row in range(len(frame))]
    return Rows(rules.labels, table, frame.places, places, whole)


def _entries(column: NDArray[Any]) -> list[Any]:
    """The values of a variable; words for missing ones are None."""
    return [None if isinstance(v, str) and v.lower() in MISSING else v for v in column.tolist()]


def check_circuit(circuit: Circuit, path: Path | None) -> dict[str, Any]:
    """The properties of a circuit, and the rows in a file that are not among its models."""
    names = ("decomposable", "deterministic", "smooth", "structured")
    properties = {name: getattr(circuit, f"is_{name}") for name in names}
    rows = {} if path is None else row_report(circuit, path)
    return {"satisfiable": True, "labels": circuit.num_labels, **properties, **rows}


def row_report(circuit: Circuit, path: Path) -> dict[str, Any]:
    """How many rows of a table no completion of their empty cells makes valid; where the first are, and why."""
    table, values = read_labels(path, circuit.variables)
    empty = np.argwhere(np.isnan(values))
    unknown = empty[empty[:, 1] >= circuit.num_labels]
    if len(unknown):
        row, column = unknown[0].tolist()
        raise FormatError(f"{table.place(row)}: input {circuit.variables[column]!r} is empty, but inputs must be known")
    y, x = np.split(values, [circuit.num_labels], axis=1)
    if len(empty):
        from semprola.distributions.conflicts import impossible_rows

        wrong = impossible_rows(circuit, values)
    else:
        wrong = ~np.asarray(circuit.satisfied(y.astype(np.uint8), x.astype(np.uint8) if circuit.given else None), bool)
    first = np.flatnonzero(wrong)[:_MOST_SHOWN].tolist()
    report = {"rows": len(table), "broken": int(wrong.sum()), "first broken": [table.places[row] for row in first]}
    if first:
        from semprola.cli.inconsistent import reasons

        report["why"] = reasons(table, first, y, circuit.labels, circuit, x if circuit.given else None)
    return report
