"""Tables with any columns, from CSV, ARFF, Parquet and npz files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola._file_kinds import guess_beginning, read_beginning
from semprola.cli.arff import read_arff
from semprola.cli.formats import find_columns, read_array, read_csv, require_width
from semprola.errors import FormatError, SemprolaError

MISSING = ("", "?", "na", "nan", "null", "none")
"""Words that stand for a missing value, in upper or lower case."""
_KINDS = ".csv, .arff, .parquet or .npz"


@dataclass
class Table:
    """A table: columns of numbers or texts, and where its rows are in the file.

    Args:
        columns: the columns by name, in the order of the file; float64, or objects that are str.
        places: the line of each row in a text file (the first line is 1), or its position in another (the first is 0).
    """

    path: Path
    columns: dict[str, NDArray[Any]]
    places: list[int]
    unit: str

    def __len__(self) -> int:
        return len(self.places)

    def place(self, row: int) -> str:
        """Where a row is, for messages: "data.csv:17" or "data.parquet, row 17"."""
        return f"{self.path}:{self.places[row]}" if self.unit == "line" else f"{self.path}, row {self.places[row]}"

    def require(self, names: Sequence[str]) -> None:
        """Refuse a file that lacks a column."""
        find_columns(self.path, list(self.columns), names)

    def binary(self, name: str) -> NDArray[np.float32]:
        """A column of 0 and 1, with NaN for missing values."""
        numbers, wrong = as_numbers(self.columns[name])
        bad = wrong | ~(np.isnan(numbers) | (numbers == 0) | (numbers == 1))
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            value = str(self.columns[name][row])[:24]
            raise FormatError(f"{self.place(row)}: label {name!r} must be 0, 1 or empty (not observed), not {value!r}")
        return numbers.astype(np.float32)

    def take(self, rows: NDArray[Any]) -> Table:
        """Some of the rows."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Table(self.path, columns, np.asarray(self.places)[rows].tolist(), self.unit)


def read_table(path: Path) -> Table:
    """Read a table; the suffix says in which format."""
    suffix = path.suffix.lower()
    readers = {".csv": _read_csv, ".arff": _read_arff, ".parquet": _read_parquet, ".npz": _read_npz}
    if suffix not in readers:
        raise FormatError(f"{path}: unknown kind of table; give a {_KINDS} file")
    table = readers[suffix](path)
    if len(table) == 0:
        raise FormatError(f"{path}: the table has no rows")
    return table


def read_labels(path: Path, names: Sequence[str]) -> tuple[Table, NDArray[np.float32]]:
    """The columns with these names, as a table and as 0, 1 and NaN (empty) [rows, names].

    Args:
        path: a table in a format of :func:`read_table`, or a .npy array with one column per name; other suffixes are
            read as CSV.
    """
    suffix = path.suffix.lower()
    if suffix == ".npy":
        array = read_array(path, len(names))
        table = Table(path, dict(zip(names, array.T.astype(np.float64), strict=True)), list(range(len(array))), "row")
    elif suffix in (".arff", ".parquet", ".npz"):
        table = read_table(path)
        table.require(names)
    else:
        header, lines = read_csv(path)
        places = find_columns(path, header, names)
        require_width(path, len(header), lines)
        columns = {name: _texts([line[at] for _, line in lines]) for name, at in zip(names, places, strict=True)}
        table = Table(path, columns, [number for number, _ in lines], "line")
    return table, np.stack([table.binary(name) for name in names], axis=1)


def as_numbers(column: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A column as numbers, with NaN for missing values; and where it holds something else."""
    if column.dtype != object:
        return column.astype(np.float64), np.zeros(len(column), bool)
    numbers, wrong = np.full(len(column), np.nan), np.zeros(len(column), bool)
    for row, word in enumerate(column):
        if word.lower() in MISSING:
            continue
        try:
            numbers[row] = float(word)
        except ValueError:
            wrong[row] = word.lower() not in ("true", "false")
            numbers[row] = word.lower() == "true"
    return numbers, wrong


def _read_csv(path: Path) -> Table:
    header, lines = read_csv(path)
    unnamed = [i + 1 for i, name in enumerate(header) if not name]
    if unnamed:
        raise FormatError(f"{path}:1: column {unnamed[0]} has no name; the first line must name the columns")
    require_width(path, len(header), lines)
    columns = {name: _texts([line[i] for _, line in lines]) for i, name in enumerate(header)}
    return Table(path, columns, [number for number, _ in lines], "line")


def _read_arff(path: Path) -> Table:
    names, rows, places = read_arff(path)
    return Table(path, {name: _texts([row[i] for row in rows]) for i, name in enumerate(names)}, places, "line")


def _read_parquet(path: Path) -> Table:
    try:
        from pyarrow import parquet
    except ImportError:
        raise SemprolaError("Parquet files need pyarrow: pip install 'semprola[parquet]'") from None
    if not path.is_file():
        raise FileNotFoundError(2, "No such file", str(path))
    try:
        table = parquet.read_table(path)
    except Exception as error:  # pyarrow raises many kinds of errors
        raise FormatError(f"{path}: not a Parquet file: {(str(error).splitlines() or [''])[0][:120]}") from None
    if len(set(table.column_names)) < len(table.column_names):
        raise FormatError(f"{path}: two columns have the same name")
    columns = {name: _plain(table.column(name).to_pylist()) for name in table.column_names}
    return Table(path, columns, list(range(table.num_rows)), "row")


def _read_npz(path: Path) -> Table:
    beginning = read_beginning(path)
    if beginning and not beginning.startswith((b"PK", b"\x93NUMPY")):
        raise FormatError(f"{path}: not an npz archive; {guess_beginning(beginning)}")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except OSError as error:
        if error.errno is not None:
            raise
        raise FormatError(f"{path}: not an npz archive") from None
    except Exception as error:  # a damaged archive can raise many kinds of errors
        raise FormatError(f"{path}: not an npz archive: {(str(error).splitlines() or [''])[0][:120]}") from None
    columns: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        if array.ndim not in (1, 2) or array.dtype.kind not in "biufU":
            raise FormatError(f"{path}: array {name!r} has shape {list(array.shape)} and type {array.dtype}")
        parts = {name: array} if array.ndim == 1 else {f"{name}{i}": array[:, i] for i in range(array.shape[1])}
        columns |= {key: _plain(part.tolist()) for key, part in parts.items()}
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise FormatError(f"{path}: the arrays have different numbers of rows: {sorted(lengths)[:4]}")
    return Table(path, columns, list(range(lengths.pop() if lengths else 0)), "row")


def _plain(values: list[Any]) -> NDArray[Any]:
    """Numbers as numbers, anything else as text."""
    if all(value is None or isinstance(value, bool | int | float) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values], np.float64)
    return _texts(["" if value is None else str(value) for value in values])


def _texts(words: list[str]) -> NDArray[Any]:
    column = np.empty(len(words), dtype=object)
    column[:] = [word.strip() for word in words]
    return column
