"""Reads ARFF files, dense and sparse; errors name the file and the line."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from semprola._file_kinds import read_text
from semprola.errors import FormatError

_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s+(\S.*)", re.IGNORECASE)


def read_arff(path: Path) -> tuple[list[str], list[list[str]], list[int]]:
    """The names of the attributes, the rows as words, and the line of each row.

    A value that a sparse row (``{0 1.5, 3 red}``) leaves out is 0, or the first value that a nominal attribute lists.
    """
    names: list[str] = []
    zeros: list[str] = []
    rows: list[list[str]] = []
    places: list[int] = []
    in_data = False
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        text, place = line.strip(), f"{path}:{number}"
        if not text or text.startswith("%"):
            continue
        if in_data:
            rows.append(_sparse(text, zeros, place) if text.startswith("{") else _dense(text, len(names), place))
            places.append(number)
        elif found := _ATTRIBUTE.match(text):
            names.append(found[1].strip("'\""))
            zeros.append(_zero(found[2], place))
        elif re.match(r"@data\b", text, re.IGNORECASE):
            in_data = True
        elif not re.match(r"@relation\b", text, re.IGNORECASE):
            raise FormatError(f"{place}: not ARFF: expected @attribute or @data, found {text[:40]!r}")
    if not in_data:
        raise FormatError(f"{path}: not ARFF: there is no @data line")
    if len(set(names)) < len(names):
        raise FormatError(f"{path}: attribute {next(n for n in names if names.count(n) > 1)!r} occurs twice")
    return names, rows, places


def _words(text: str, place: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(text), quotechar="'", skipinitialspace=True), [])
    except csv.Error:
        limit = csv.field_size_limit()
        raise FormatError(f"{place}: a value has more than {limit} characters: is a quote not closed?") from None


def _zero(kind: str, place: str) -> str:
    """The value of an attribute that a sparse row leaves out."""
    if not kind.startswith("{"):
        return "0"
    values = _words(kind.strip().strip("{}"), place)
    if not any(value.strip() for value in values):
        raise FormatError(f"{place}: a nominal attribute lists its values, as in {{0, 1}}, but {{}} lists none")
    return values[0].strip()


def _dense(text: str, count: int, place: str) -> list[str]:
    row = _words(text, place)
    if len(row) != count:
        raise FormatError(f"{place}: has {len(row)} values, but there are {count} attributes")
    return row


def _sparse(text: str, zeros: list[str], place: str) -> list[str]:
    if not text.endswith("}"):
        raise FormatError(f"{place}: this sparse row does not end in }}")
    row = list(zeros)
    seen: set[int] = set()
    for entry in filter(None, (part.strip() for part in re.findall(r"(?:'[^']*'|[^,'])+", text[1:-1]))):
        index, _, value = entry.partition(" ")
        if not (index.isascii() and index.isdigit()) or not value.strip():
            raise FormatError(f"{place}: a sparse row has entries such as '3 1.5', not {entry[:24]!r}")
        at = int(index)
        if at >= len(zeros):
            raise FormatError(f"{place}: entry {entry[:24]!r}: there are {len(zeros)} attributes, counted from 0")
        if at in seen:
            raise FormatError(f"{place}: attribute {at} occurs twice")
        seen.add(at)
        row[at] = value.strip().strip("'")
    return row
