"""The names of labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from semprola.errors import LabelError
from semprola.logic.messages import brief


class Labels(tuple[str, ...]):
    """The names of the labels of a formula. Calling them, as in version 0.1, warns and returns them."""

    def __call__(self) -> Labels:
        """The old form of `formula.labels`, which goes with the next release."""
        warnings.warn("labels is a property now: leave out the parentheses", DeprecationWarning, stacklevel=2)
        return self


def checked_names(names: Iterable[Any], what: str) -> tuple[str, ...]:
    """Names as a tuple, if they are distinct, non-empty strings.

    Args:
        names: the names; a single string is refused, since it is most likely a mistake.
        what: what errors call them, such as "labels", or the family that they belong to.

    Raises:
        LabelError: a name is not a string, is empty, or is listed twice; or this is no list.

    Example:
        >>> checked_names(["cat", "dog"], "labels")
        ('cat', 'dog')
        >>> checked_names(["cat", "cat"], "labels")
        Traceback (most recent call last):
        semprola.errors.LabelError: labels: 'cat' is listed twice
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise LabelError(f"{what}: expected a list of names, not {brief(names)}")
    listed = tuple(names)
    seen: set[str] = set()
    for name in listed:
        if not isinstance(name, str) or not name:
            raise LabelError(f"{what}: a name must be a non-empty string, not {brief(name)}")
        if name in seen:
            raise LabelError(f"{what}: {brief(name)} is listed twice")
        seen.add(name)
    return listed
