"""Reads CSV files and NumPy arrays; errors name the file, the line and the column."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola._file_kinds import guess_beginning, guess_separator, read_beginning, read_text
from semprola.errors import FormatError


def read_csv(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The names in the first line of a CSV file, and all further lines that are not blank, with their numbers."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""))
    lines: list[tuple[int, list[str]]] = []
    try:
        for line in reader:
            if any(word.strip() for word in line):
                lines.append((reader.line_num, line))
    except csv.Error as error:
        reason = "a field has more than 131072 characters: is a quote not closed?" if "limit" in str(error) else error
        raise FormatError(f"{path}:{reader.line_num}: not CSV: {reason}") from None
    header = [name.strip() for name in lines[0][1]] if lines else []
    seen: dict[str, int] = {}
    for at, name in enumerate(header):
        if name and name in seen:
            raise FormatError(f"{path}:1: column {name[:40]!r} occurs twice (columns {seen[name] + 1} and {at + 1})")
        seen[name] = at
    return header, lines[1:]


def find_columns(path: Path, header: Sequence[str], names: Sequence[str]) -> list[int]:
    """The positions of the named columns."""
    place = {name: at for at, name in enumerate(header)}
    missing = [name for name in names if name not in place]
    if not missing:
        return [place[name] for name in names]
    separator = guess_separator(",".join(header)) if len(header) < max(2, len(names)) else None
    if separator is not None:
        shown = "tabs" if separator == "\t" else "spaces" if separator == " " else repr(separator)
        raise FormatError(f"{path}:1: the columns seem to be separated by {shown}: use commas")
    has = ", ".join(header[:5]) + (", …" if len(header) > 5 else "")
    close = difflib.get_close_matches(missing[0], header, 1)
    hint = f": did you mean {close[0]!r}?" if close else f"; the file has {has[:120]}"
    raise FormatError(f"{path}:1: there is no column {missing[0]!r}{hint}")


def require_width(path: Path, width: int, lines: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Refuse lines that have more or fewer values than the first line has names."""
    for number, line in lines:
        if len(line) != width:
            raise FormatError(f"{path}:{number}: has {len(line)} values, but line 1 names {width} columns")


def read_array(path: Path, columns: int) -> NDArray[Any]:
    """A .npy array of numbers [rows, columns]."""
    if path.stat().st_size == 0:
        raise FormatError(f"{path}: the file is empty")
    beginning = read_beginning(path)
    if not beginning.startswith((b"\x93NUMPY", b"PK")):
        raise FormatError(f"{path}: not a NumPy array; {guess_beginning(beginning)}")
    try:
        # a memory map, so that a header that promises terabytes is noticed before memory is allocated
        table = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        if error.errno is not None:
            raise
        raise FormatError(f"{path}: not a NumPy array: {_first_line(error)}") from None
    except Exception as error:  # a damaged header can raise many kinds of errors
        raise FormatError(f"{path}: not a NumPy array: {_first_line(error)}") from None
    if not isinstance(table, np.ndarray):
        raise FormatError(f"{path}: an archive of several arrays: save the one with the labels as .npy")
    if table.dtype.kind not in "biuf":
        raise FormatError(f"{path}: holds {str(table.dtype)[:60]}, expected numbers")
    if table.ndim != 2 or table.shape[1] != columns:
        raise FormatError(f"{path}: has shape {list(table.shape)}, expected [rows, {columns}]")
    return table


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]
