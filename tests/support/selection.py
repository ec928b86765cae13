"""Which parameters of a test are for `make test`, and which are left to `make test-all`: marked `extensive`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def spread(values: Iterable[Any], count: int, first: int = 0) -> list[Any]:
    """All values as parameters of a test; all but `count` of them, evenly spread, are extensive.

    Tests that share a list of cases give another `first` each, so that together they see more of them.
    """
    every = list(values)
    chosen = {(first + i * len(every) // count) % len(every) for i in range(min(count, len(every)))}
    return [value if i in chosen else extensive(value) for i, value in enumerate(every)]


def only(values: Sequence[Any], wanted: Callable[[Any], bool]) -> list[Any]:
    """All values as parameters of a test; those that are not wanted in every run are extensive."""
    return [value if wanted(value) else extensive(value) for value in values]


def extensive(value: Any, **options: Any) -> Any:
    """One parameter that is left to `make test-all`."""
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.extensive, **options)
