"""Rows of a table that break the rules: named in an error, or left out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.cli.frames import Frame
from semprola.distributions import violations
from semprola.errors import SemprolaError
from semprola.logic import Formula

_SHOWN = 3


def without_broken(
    frame: Frame,
    y: NDArray[np.float32],
    wrong: NDArray[np.bool_],
    labels: Sequence[str],
    rules: Sequence[Any],
    *,
    skip: bool,
    quiet: bool,
) -> tuple[Frame, NDArray[np.float32]]:
    """The rows that obey the rules; other rows are an error, unless they should be left out.

    Args:
        frame: the table.
        y: its labels, 0, 1 or NaN [rows, labels].
        wrong: which rows break the rules [rows].
        labels: names of the columns of y.
        rules: formulas, which explain what is wrong, and circuits.
        skip: leave out rows instead of raising an error.
        quiet: do not say which rows are left out.

    Raises:
        SemprolaError: rows break the rules; the message names the first few and says how to leave them out.
    """
    if not wrong.any():
        return frame, y
    first = np.flatnonzero(wrong)
    shown = "; ".join(_why(frame, int(row), y, labels, rules) for row in first[:_SHOWN])
    more = "; …" if len(first) > _SHOWN else ""
    message = f"{len(first)} of {len(frame)} rows break the rules: {shown}{more}"
    kept = kept_rows(wrong, message, f"{frame.path}: every row breaks the rules", skip=skip, quiet=quiet)
    return frame.take(kept), y[kept]


def kept_rows(wrong: NDArray[np.bool_], some: str, every: str, *, skip: bool, quiet: bool) -> NDArray[np.int64]:
    """The numbers of the rows that are not wrong; wrong rows are an error, unless they should be left out.

    Args:
        wrong: which rows are wrong [rows]; at least one.
        some: says which rows these are.
        every: says that all rows are wrong.
        skip: leave out rows instead of raising an error.
        quiet: do not say which rows are left out.

    Raises:
        SemprolaError: rows are wrong and should not be left out, or none is left.
    """
    if not skip:
        raise SemprolaError(f"{some} (--skip-inconsistent leaves them out)")
    if wrong.all():
        raise SemprolaError(every)
    if not quiet:
        print(f"left out: {some}", file=sys.stderr)
    return np.flatnonzero(~wrong)


def _why(frame: Frame, row: int, y: NDArray[np.float32], labels: Sequence[str], rules: Sequence[Any]) -> str:
    values = y[row]
    if np.isnan(values).any():
        return f"{frame.place(row)}: no completion is allowed"
    for rule in rules:
        if isinstance(rule, Formula):
            mentioned = [name for name in rule.labels() if name in labels]
            found = violations(rule, values[[labels.index(name) for name in mentioned]][None], mentioned)
            if found:
                return f"{frame.place(row)}: {str(found[0]).partition(': ')[2]}"
    return f"{frame.place(row)}"
