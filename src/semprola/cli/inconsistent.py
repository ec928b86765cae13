"""Rows of a table that break the rules: named in an error, or left out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit
from semprola.cli.tables import Table
from semprola.compiler.splitting import Split
from semprola.distributions import violations
from semprola.errors import SemprolaError
from semprola.logic import Formula

_SHOWN = 3


def without_broken(
    table: Table,
    y: NDArray[np.float32],
    wrong: NDArray[np.bool_],
    labels: Sequence[str],
    rules: Circuit | Formula | Split,
    *,
    skip: bool,
    quiet: bool,
) -> tuple[Table, NDArray[np.float32]]:
    """The rows that obey the rules; other rows are an error, unless they should be left out.

    Args:
        y: its labels, 0, 1 or NaN [rows, labels].
        wrong: which rows break the rules [rows].
    """
    if not wrong.any():
        return table, y
    shown = first_reasons(table, wrong, y, labels, rules)
    message = f"{int(wrong.sum())} of {len(table)} rows break the rules: {shown}"
    kept = kept_rows(wrong, message, f"{table.path}: every row breaks the rules", skip=skip, quiet=quiet)
    return table.take(kept), y[kept]


def kept_rows(wrong: NDArray[np.bool_], some: str, every: str, *, skip: bool, quiet: bool) -> NDArray[np.int64]:
    """The numbers of the rows that are not wrong; wrong rows are an error, unless they should be left out.

    Args:
        wrong: which rows are wrong [rows]; at least one.
    """
    if not skip:
        raise SemprolaError(f"{some} (--skip-inconsistent leaves them out)")
    if wrong.all():
        raise SemprolaError(every)
    if not quiet:
        print(f"left out: {some}", file=sys.stderr)
    return np.flatnonzero(~wrong)


def reasons(
    table: Table,
    rows: Sequence[int],
    y: Any,
    labels: Sequence[str],
    rules: Circuit | Formula | Split,
    given: Any = None,
) -> list[str]:
    """Where each of these rows is, and the first rule that it breaks.

    Args:
        y: the labels of all rows, 0, 1 or NaN [rows, labels].
        given: the inputs of all rows [rows, given], if the rules have any.
    """
    found = violations(rules, y[rows], labels, None if given is None else given[rows])
    first = {each.row: each.reason for each in reversed(found)}
    return [f"{table.place(row)}: {first[i]}" for i, row in enumerate(rows)]


def first_reasons(
    table: Table, wrong: NDArray[np.bool_], y: Any, labels: Sequence[str], rules: Circuit | Formula | Split
) -> str:
    """The first rows that break the rules, each with a reason, as one text."""
    rows = np.flatnonzero(wrong).tolist()
    more = ["…"] if len(rows) > _SHOWN else []
    return "; ".join([*reasons(table, rows[:_SHOWN], y, labels, rules), *more])
