"""Output of all commands: results as lines or JSON, and what to say after Ctrl-C."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import typer

_kept = ["nothing was written"]


def emit(result: Mapping[str, Any], as_json: bool) -> None:
    """Print a result: one JSON object for machines, or one line per entry.

    What is not known (None or NaN) is null in JSON, which has no NaN and no infinity, and "not known" in a line.

    Args:
        result: names and values.
        as_json: whether to print JSON.
    """
    if as_json:
        typer.echo(json.dumps(_finite(dict(result)), default=str, allow_nan=False))
        return
    width = max(map(len, result), default=0)
    for name, value in result.items():
        typer.echo(f"{name:<{width}}  {_shown(name, value)}")


def words(text: str) -> list[str]:
    """The parts of a comma-separated option."""
    return [word.strip() for word in text.split(",") if word.strip()]


def widths(text: str) -> tuple[int, ...]:
    """The widths of layers in a comma-separated option; "none" for no layers.

    Raises:
        ValueError: a part is not a positive whole number.
    """
    parts = [] if text.strip() == "none" else words(text)
    if not all(word.isdigit() and int(word) > 0 for word in parts):
        raise ValueError(f"--hidden takes widths such as 64 or 128,64, or none; not {text!r}")
    return tuple(map(int, parts))


def keep(text: str) -> None:
    """Set what Ctrl-C says from now on: what has been written, and how to continue."""
    _kept[0] = text


def kept() -> str:
    """What has been written so far, in words."""
    return _kept[0]


def _finite(value: Any) -> Any:
    """The value with None in place of every NaN and infinity in it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def _shown(name: str, value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "not known"
    if isinstance(value, list):
        return "; ".join(map(str, value)) or "none"
    return f"{value:.3g} s" if name == "seconds" else value
