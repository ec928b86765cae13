"""`semprola predict` for a model over a split: predictions with lower bounds of their probabilities."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from semprola._files import write_atomically
from semprola.cli.output import keep
from semprola.cli.tables import Table
from semprola.errors import IntractableError
from semprola.sklearn import SPLClassifier

_CHUNK = 256
_NAMED = 5
_LEAST, _PROVEN = "probability at least", "proven"

Result = tuple[NDArray[np.int64], float, bool]
"""A predicted state [labels], a lower bound of its probability, and whether no other state is more probable."""


def print_pooled(
    model: SPLClassifier, table: Table, X: NDArray[np.float64], known: Tensor | None, out: Path | None, as_json: bool
) -> None:
    """Predict for the rows of a table and write the results.

    Args:
        model: over a split.
        table: the rows, which it names.
        X: their inputs [rows, features].
        known: evidence, 0, 1 and NaN [rows, labels], or None.
        out: a CSV file, or None for the terminal.
        as_json: print a JSON object per row.

    Raises:
        IntractableError: rows for which no state that obeys all rules was found; names them.
    """
    results = list(_predictions(model, table, X, known))
    if out is not None:
        write_atomically(out, _csv(model.labels_, results).encode())
        keep(f"the predictions are in {out}")
    if as_json:
        for place, (state, least, proven) in zip(table.places, results, strict=True):
            labels = [name for name, one in zip(model.labels_, state.tolist(), strict=True) if one]
            print(json.dumps({table.unit: place, "labels": labels, _LEAST: least, _PROVEN: proven}))
    elif out is None:
        print(_csv(model.labels_, results), end="")


def _predictions(model: SPLClassifier, table: Table, X: NDArray[np.float64], known: Tensor | None) -> Iterator[Result]:
    for first in range(0, len(X), _CHUNK):
        part = slice(first, first + _CHUNK)
        p = model.distribution(X[part])
        if known is not None:
            p = p.condition(known[part])
        with torch.no_grad():
            states = p.try_mode()
            missing = [table.place(first + row) for row in states.isnan().any(-1).nonzero().flatten().tolist()]
            if missing:
                shown = ", ".join([*missing[:_NAMED], *(["…"] if len(missing) > _NAMED else [])])
                raise IntractableError(
                    f"no state that obeys all rules{' and the evidence' * (known is not None)} was found for {shown}: "
                    "train with a larger --max-nodes, or leave these rows out"
                )
            least, proven = p.log_score(states).exp().tolist(), p.mode_is_exact.tolist()
        yield from zip(states.numpy().astype(np.int64), least, proven, strict=True)


def _csv(labels: tuple[str, ...], results: list[Result]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*labels, _LEAST, _PROVEN])
    writer.writerows([*state.tolist(), f"{least:.6g}", int(proven)] for state, least, proven in results)
    return text.getvalue()
