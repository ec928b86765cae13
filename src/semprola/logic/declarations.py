"""Lines that declare variables in a text of rules, such as ``variable n: 0..9``."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

MAKERS: dict[str, Callable[..., Any]] = {}
"""Make an integer from its name and bounds, and a categorical from its name and values; `constraints` fills this in."""

EXAMPLE = "variable n: 0..9"
_NAME = r"\"[^\"\n]+\"|'[^'\n]+'|[^\s,:\"'#()&|!~<>=]+"
_DECLARATION = re.compile(
    rf"^[ \t]*variables?[ \t]+(?P<names>(?:{_NAME})(?:[ \t]*,[ \t]*(?:{_NAME}))*)[ \t]*:"
    r"(?P<values>[^\n#]*)(?:#[^\n]*)?$",
    re.MULTILINE,
)
_RANGE = re.compile(r"\s*(-?\d{1,18})\s*\.\.\s*(-?\d{1,18})\s*")


def read_declarations(text: str, error: Callable[[str, int, str], Exception]) -> tuple[str, list[Any]]:
    """The text without its declarations, whose places become blank, and the variables that they declare.

    A declaration is a line of its own: ``variable n, m: 0..9`` or ``variable colour: red, green, blue``.

    Args:
        text: one rule per line.
        error: makes the error that something is wrong at a position of the text.

    Example:
        >>> read_declarations("variable n: 0..2\\nn > 0 -> x", Exception)
        ('                \\nn > 0 -> x', [Integer('n', 0, 2)])
    """
    variables: list[Any] = []
    if "variable" not in text:
        return text, variables
    for found in _DECLARATION.finditer(text):
        names = [(name.group().strip("\"'"), name.start()) for name in re.finditer(_NAME, found["names"])]
        for name, place in names:
            at = found.start("names") + place
            if name in {variable.name for variable in variables}:
                raise error(text, at, f"variable {name!r} is declared twice")
            try:
                made = _made(name, found["values"])
            except ValueError as reason:
                raise error(text, at, str(reason)) from None
            if made is None:
                why = f"expected a range or values, as in {EXAMPLE} or variable colour: red, green"
                raise error(text, found.start("values"), why)
            variables.append(made)
    return _DECLARATION.sub(lambda match: " " * len(match.group()), text), variables


def _made(name: str, values: str) -> Any:
    """The variable; None if its values cannot be read."""
    if not MAKERS:
        importlib.import_module("semprola.constraints.variables")  # for those who use only this package
    bounds = _RANGE.fullmatch(values)
    if bounds:
        return MAKERS["integer"](name, int(bounds[1]), int(bounds[2]))
    listed = [value.strip().strip("\"'") for value in values.split(",")]
    if not all(listed) or (len(listed) == 1 and ".." in listed[0]):
        return None
    whole = [int(value) if re.fullmatch(r"-?\d{1,18}", value) else value for value in listed]
    return MAKERS["categorical"](name, whole)
