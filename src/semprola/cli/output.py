"""What commands share: results as lines or JSON, and a progress line on the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import typer


def emit(result: Mapping[str, Any], as_json: bool) -> None:
    """Print a result: one JSON object for machines, or a line for each entry.

    Args:
        result: names and values.
        as_json: which of the two.
    """
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)  # counts may have any number of digits
    if as_json:
        typer.echo(json.dumps(dict(result), default=str))
        return
    width = max(map(len, result), default=0)
    for name, value in result.items():
        shown = f"{value:.3g} s" if name == "seconds" else value
        typer.echo(f"{name:<{width}}  {shown}")
