"""Reads rules from files and data frames."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from semprola._file_kinds import read_text
from semprola._names import is_absent
from semprola.circuit import Circuit
from semprola.compiler.sources import as_constraint
from semprola.errors import FormatError, ParseError
from semprola.logic import Formula, parse
from semprola.logic.arithmetic import read_declarations
from semprola.logic.messages import brief
from semprola.logic.parser import parse_error
from semprola.logic.rules import joined, placed
from semprola.logic.syntax import is_file_name

_RULE, _NAME = "rule", "name"


def read(path: Any, vtree: str | os.PathLike[str] | None = None, *, variables: Iterable[Any] = ()) -> Formula | Circuit:
    """Read the rules in a file or a data frame.

    A text file (.txt, .rules, .formula, or no suffix) has one rule per line, and all must hold. A rule may have a name,
    as in ``cats: cat -> animal``, and ``#`` starts a comment; see :func:`semprola.parse`. Numbers are declared in lines
    such as ``variable n, m: 0..9``, and compared as in ``2*n + m <= 7 -> late``. Later messages about a rule, for
    example in :func:`semprola.violations`, name the file and the line. Other files contain clauses (.cnf, .dimacs,
    .wcnf, also packed as .gz, .xz or .bz2) or circuits (.sp, .nnf, .sdd).

    A data frame has one rule per row, in its column "rule" or its only column; a column "name" is used if there is one.
    Messages name the row by the index of the data frame.

    Layers, losses, ``compile`` and all others that take rules also take the path itself.

    Args:
        path: the file, or a data frame.
        vtree: the vtree of an .sdd file; by default the file of the same name with suffix .vtree.
        variables: integers and categoricals that the rules speak of and that the file does not declare.

    Returns:
        A formula, or the circuit in the file.

    Raises:
        FormatError: there is no such file, or it does not have the format of its name.
        ParseError: a rule is not a formula; the message names the file, the line and the column.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "rules.txt")
        ...     _ = path.write_text("cats: cat -> animal\\n# a comment\\ndog -> animal\\n")
        ...     read(path)
        (cat -> animal) & (dog -> animal)
    """
    if is_frame(path):
        return read_frame(path, variables)
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"read takes the path of a file or a data frame, not {brief(path)}")
    return as_constraint(Path(path), None if vtree is None else Path(vtree), variables)


def read_frame(frame: Any, variables: Iterable[Any] = ()) -> Formula:
    """The rules in a data frame, one per row: column "rule", and if it is there, column "name"; see `read`."""
    columns = {str(name): frame[name] for name in frame.columns}
    if _RULE not in columns and len(columns) != 1:
        raise ParseError(f"a data frame of rules needs a column 'rule', not only {', '.join(columns)[:80] or 'none'}")
    texts = list(columns.get(_RULE, next(iter(columns.values()))))
    names = list(columns[_NAME]) if _NAME in columns else [""] * len(texts)
    index = frame.index.tolist() if hasattr(frame, "index") else range(len(texts))
    known, lines = [*variables], []
    for row, text, name in zip(index, texts, names, strict=True):
        if is_absent(text):
            continue
        named = "" if is_absent(name) else str(name)
        with _at(row):
            if not isinstance(text, str):
                raise ParseError(f"a rule must be a text, not {brief(text)}")
            rest, declared = read_declarations(text, parse_error)
        known += declared
        if rest.strip():
            lines.append((row, named, rest))
    rules = []
    for row, named, text in lines:
        with _at(row):
            rules.append(placed(parse(text, known), f"row {row} {named}".rstrip(), text.strip()))
    if not rules:
        raise ParseError("there is no rule in the data frame")
    return joined(rules)


@contextlib.contextmanager
def _at(row: Any) -> Iterator[None]:
    """Errors name the row."""
    try:
        yield
    except ParseError as error:
        raise ParseError(f"row {row}: {error}", line=error.line, column=error.column) from None


def text_of(source: str | os.PathLike[str]) -> str:
    """A text, or the contents of the file that it names."""
    if isinstance(source, str) and not is_file_name(source):
        return source
    if not Path(source).is_file():
        raise FormatError(f"{source}: no such file")
    return read_text(Path(source))


def is_frame(source: Any) -> bool:
    """Whether this is a data frame, of pandas or polars."""
    return hasattr(source, "columns") and hasattr(source, "to_numpy")
