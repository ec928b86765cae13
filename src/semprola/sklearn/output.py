"""Predictions as named data frames, for estimators whose `set_output` asks for them."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from semprola.errors import SemprolaError

KINDS = ("default", "pandas", "polars")


def check_kind(kind: Any) -> None:
    """Refuse a kind of output that is unknown, or whose library is not installed."""
    if kind not in KINDS:
        raise ValueError(f"transform must be one of {', '.join(map(repr, KINDS))}, not {kind!r}")
    _library(kind)


def as_output(values: NDArray[Any], columns: Sequence[Any] | None, X: Any, kind: str) -> Any:
    """Predictions as an array, or as a data frame with one row per row of X.

    Args:
        values: [rows, columns], or [rows] for a series.
        X: the inputs; if they are a pandas data frame, a pandas result has the same index.
    """
    library = _library(kind)
    if library is None:
        return values
    if kind == "polars":
        return library.Series(values) if columns is None else library.DataFrame(values, schema=list(columns))
    index = X.index if isinstance(X, library.DataFrame) else None
    if columns is None:
        return library.Series(values, index=index)
    return library.DataFrame(values, columns=list(columns), index=index)


def _library(kind: str) -> Any:
    if kind == "default":
        return None
    try:
        return importlib.import_module(kind)
    except ModuleNotFoundError:
        raise SemprolaError(f"set_output(transform={kind!r}) needs {kind}: pip install {kind}") from None
