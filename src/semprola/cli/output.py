"""Output of all commands: results as lines or JSON, and what to say after Ctrl-C."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import typer

_kept = ["nothing was written"]


def emit(result: Mapping[str, Any], as_json: bool) -> None:
    """Print a result: one JSON object for machines, or one line per entry.

    Args:
        result: names and values.
        as_json: whether to print JSON.
    """
    if as_json:
        typer.echo(json.dumps(dict(result), default=str))
        return
    width = max(map(len, result), default=0)
    for name, value in result.items():
        shown = f"{value:.3g} s" if name == "seconds" else value
        typer.echo(f"{name:<{width}}  {shown}")


def keep(text: str) -> None:
    """Set what Ctrl-C says from now on: what has been written, and how to continue."""
    _kept[0] = text


def kept() -> str:
    """What has been written so far, in words."""
    return _kept[0]
