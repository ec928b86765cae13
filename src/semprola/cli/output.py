"""Output of all commands: results as lines or JSON, colour, and what to say after Ctrl-C."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TextIO

_kept = ["nothing was written"]
_CODES = {"bold": "1", "red": "1;31", "green": "32", "quiet": "2"}


def emit(result: Mapping[str, Any], as_json: bool) -> None:
    """Print a result: one JSON object for machines, or one line per entry.

    What is not known (None or NaN) is null in JSON, which has no NaN and no infinity, and "not known" in a line.
    """
    if as_json:
        print(json.dumps(_finite(dict(result)), default=str, allow_nan=False))
        return
    print("\n".join(table(result)))


def table(result: Mapping[str, Any], indent: str = "") -> list[str]:
    """One line per entry, with the values below each other."""
    width = max(map(len, result), default=0)
    return [f"{indent}{name:<{width}}  {_shown(value)}" for name, value in result.items()]


def painted(text: str, colour: Literal["bold", "red", "green", "quiet"], stream: TextIO | None) -> str:
    """The text in colour, if the stream is a terminal that has any; see no-color.org."""
    plain = stream is None or not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


def say(text: str, data: Path, *, quiet: bool) -> None:
    """Say in a terminal what begins now, because loading torch takes seconds; a missing file is reported at once."""
    data.stat()
    if not quiet and sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)


def listed(parts: Iterable[str]) -> str:
    """Words with commas, and "and" before the last."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def folded(line: str) -> str:
    """A line as several, further to the right, if the terminal is too narrow for it; in a file, it stays as it is."""
    if not sys.stdout.isatty():
        return line
    indent = line[: len(line) - len(line.lstrip())] + "    "
    width = max(40, shutil.get_terminal_size().columns)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def words(text: str) -> list[str]:
    """The parts of a comma-separated option."""
    return [word.strip() for word in text.split(",") if word.strip()]


def widths(text: str) -> tuple[int, ...]:
    """The widths of layers in a comma-separated option; "none" for no layers."""
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


def _shown(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "; ".join(map(str, value)) or "none"
    return value
