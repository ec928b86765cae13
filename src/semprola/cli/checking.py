"""The rows of `semprola check`: which break the constraint, and why. Torch is imported only where it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from semprola.circuit import Circuit
from semprola.cli.tables import read_labels
from semprola.errors import FormatError

_MOST_SHOWN = 5


def row_report(circuit: Circuit, path: Path) -> dict[str, Any]:
    """How many rows of a table no completion of their empty cells makes valid; where the first are, and why.

    Raises:
        FormatError: the file does not have the format of its suffix, a column is missing, a label is not 0, 1 or empty,
            or an input is not 0 or 1.
        OSError: the file cannot be read.
    """
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
