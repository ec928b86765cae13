"""Finds the distinct keys of a large array piece by piece, so that a budget can stop it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.int64]

_AT_ONCE = 1 << 18
"""Keys that are sorted in one go: about twenty milliseconds."""
_PARTS = 256


def distinct(keys: Keys, check: Callable[[], None]) -> tuple[Keys, Keys, Keys]:
    """The distinct keys in ascending order, the index of each key among them, and how often each occurs.

    The result equals that of ``numpy.unique``, which cannot be stopped while it sorts millions of keys.

    Args:
        keys: any integers.
        check: called between pieces of work; may raise an exception to stop.

    Example:
        >>> values, place, times = distinct(np.array([7, 3, 7]), lambda: None)
        >>> values.tolist(), place.tolist(), times.tolist()
        ([3, 7], [1, 0, 1], [1, 2])
    """
    if len(keys) <= _AT_ONCE:
        return np.unique(keys, return_inverse=True, return_counts=True)
    check()
    sample = np.sort(keys[:: max(1, len(keys) // (16 * _PARTS))])
    bounds = sample[:: max(1, len(sample) // (_PARTS - 1))][1:_PARTS]
    part = np.empty(len(keys), np.uint8)
    for first in range(0, len(keys), _AT_ONCE):
        part[first : first + _AT_ONCE] = np.searchsorted(bounds, keys[first : first + _AT_ONCE], side="right")
        check()
    order = np.argsort(part, kind="stable")
    check()
    ends = np.cumsum(np.bincount(part, minlength=_PARTS)).tolist()
    place = np.empty(len(keys), np.int64)
    values, times, found, first = [], [], 0, 0
    for end in ends:
        check()
        members = order[first:end]
        own, inverse, count = np.unique(keys[members], return_inverse=True, return_counts=True)
        place[members] = inverse + found
        values.append(own)
        times.append(count)
        found, first = found + len(own), end
    return np.concatenate(values), place, np.concatenate(times)
