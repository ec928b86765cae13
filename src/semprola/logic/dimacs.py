"""DIMACS CNF files: reading, with errors that name the line, and writing.

Three dialects are read: plain DIMACS, SATLIB (a ``%`` ends the clauses), and that of the model-counting competition
(``c p weight LITERAL WEIGHT 0`` and ``c p show VARIABLE ... 0``).
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from semprola._files import write_atomically
from semprola.errors import FormatError
from semprola.logic.cnf import MAX_VARIABLES, Cnf
from semprola.logic.messages import brief

# A compressed file can unpack to any size; anything larger is refused.
_MAX_BYTES = 1 << 31

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def from_dimacs(source: str | os.PathLike[str], *, strict: bool = True) -> Cnf:
    """Read a formula in conjunctive normal form.

    Args:
        source: a path (``.gz``, ``.xz`` and ``.bz2`` files are unpacked), or the text itself: an empty string, or one
            that contains a line break or begins with ``p cnf`` or ``c`` and a space.
        strict: whether it is an error if the number of clauses differs from the declared one.

    Returns:
        The formula; its labels are "1".."n" for all n declared variables, including those in no clause.

    Raises:
        FormatError: the file cannot be read, or its content is wrong; the message names the line.

    Example:
        >>> from_dimacs("p cnf 3 2\\n1 -2 0\\n2 3 0\\n").clauses
        [[1, -2], [2, 3]]
    """
    if isinstance(source, str) and _is_text(source):
        return _Reader("<text>", strict).read(io.StringIO(source))
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"from_dimacs: expected a path or a text, got {brief(source)}")
    path = os.fspath(source)
    return _Reader(_one_line(path), strict).read(_contents(path))


def to_dimacs(cnf: Cnf) -> str:
    """Return the formula as DIMACS text, with its weights and projection.

    Example:
        >>> print(to_dimacs(Cnf(3, [[1, -2], [2, 3]])), end="")
        p cnf 3 2
        1 -2 0
        2 3 0
    """
    if not isinstance(cnf, Cnf):
        raise TypeError(f"to_dimacs: expected a Cnf, got {brief(cnf)}; Cnf(n, clauses) makes one")
    lines = [f"p cnf {cnf.num_vars} {cnf.num_clauses}"]
    if cnf.show is not None:
        lines.append(" ".join(["c p show", *map(str, cnf.show), "0"]))
    lines += [f"c p weight {literal} {weight} 0" for literal, weight in cnf.weights.items()]
    lines += [" ".join([*map(str, clause), "0"]) for clause in cnf.clauses]
    return "\n".join(lines) + "\n"


def write_dimacs(cnf: Cnf, path: str | os.PathLike[str]) -> None:
    """Write the formula as a DIMACS file; the path never holds half a file.

    Args:
        cnf: what to write.
        path: where; compressed when it ends in ``.gz``, ``.xz`` or ``.bz2``.
    """
    text = to_dimacs(cnf).encode("ascii")
    suffix = Path(path).suffix
    if suffix not in _OPENERS:
        write_atomically(path, text)
        return

    def packed(file: IO[bytes]) -> None:
        with _OPENERS[suffix](file, "wb") as out:
            out.write(text)

    write_atomically(path, packed)


def _is_text(source: str) -> bool:
    return not source or "\n" in source or source.startswith(("p cnf", "c "))


def _contents(path: str) -> IO[str]:
    try:
        with _OPENERS.get(Path(path).suffix, open)(path, "rb") as file:
            data: bytes = file.read(_MAX_BYTES + 1)
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        raise FormatError(
            f"{_one_line(path)}: cannot be read ({_one_line(reason)}); give a DIMACS file, or a text with line breaks"
        ) from None
    if len(data) > _MAX_BYTES:
        raise FormatError(f"{_one_line(path)}: more than 2 GiB of text; no compiler would finish on it")
    # Comments may be in any encoding; everything else must be ASCII, which is checked.
    return io.StringIO(data.removeprefix(codecs.BOM_UTF8).decode("latin-1"))


def _one_line(text: str) -> str:
    return brief(text, width=200)[1:-1]


class _Reader:
    """Reads one source line by line, remembering where it is for the errors."""

    def __init__(self, source: str, strict: bool) -> None:
        self.source = source
        self.strict = strict
        self.line = 0
        self.header: tuple[int, int] | None = None
        self.literals: list[int] = []
        self.ends = [0]
        self.weights: dict[int, tuple[Fraction, int]] = {}
        self.show: dict[int, int] | None = None

    def read(self, file: IO[str]) -> Cnf:
        clause_line = 0
        for number, line in enumerate(file, start=1):
            words = line.split()
            if not words:
                continue
            self.line = number
            if words[0][0] == "c":
                self._read_comment(words)
            elif words[0] == "p":
                self._read_header(words)
            elif words[0][0] == "%":
                break
            else:
                if len(self.literals) == self.ends[-1]:
                    clause_line = number
                self._read_literals(line, words)
        return self._finish(clause_line)

    def _read_header(self, words: list[str]) -> None:
        if self.header is not None:
            self._fail("a second 'p' line; a file has only one")
        numbers = [int(word) for word in words[2:] if re.fullmatch(r"[0-9]{1,18}", word)]
        if words[1:2] != ["cnf"] or len(words) != 4 or len(numbers) != 2:
            self._fail(f"expected 'p cnf VARIABLES CLAUSES', got {brief(' '.join(words))}")
        if numbers[0] > MAX_VARIABLES:
            self._fail(f"{numbers[0]:,} variables declared; at most {MAX_VARIABLES:,} are supported")
        self.header = numbers[0], numbers[1]

    def _read_literals(self, line: str, words: list[str]) -> None:
        if self.header is None:
            self._fail(f"expected 'p cnf VARIABLES CLAUSES' before the first clause, got {brief(words[0])}")
        # int() alone would also take 1_000 and the digits of other scripts.
        if not line.isascii() or "_" in line:
            self._fail(f"expected integers, got {brief(line.strip())}")
        num_vars, num_clauses = self.header
        for word in words:
            try:
                literal = int(word)
            except ValueError:
                self._fail(f"expected an integer, got {brief(word)}")
            if literal == 0:
                self.ends.append(len(self.literals))
            elif -num_vars <= literal <= num_vars:
                self.literals.append(literal)
            else:
                self._fail(f"literal {_one_line(word)} is out of range; the header declares {num_vars} variables")
        if self.strict and len(self.ends) - 1 > num_clauses:
            self._fail(f"more clauses than the {num_clauses} that the header declares; strict=False allows it")

    def _read_comment(self, words: list[str]) -> None:
        if words[:3] == ["c", "p", "weight"]:
            self._read_weight(words)
        elif words[:3] == ["c", "p", "show"]:
            if words[-1] != "0":
                self._fail("a 'c p show' line must end in 0")
            self.show = {} if self.show is None else self.show
            for word in words[3:-1]:
                self.show.setdefault(self._variable_or_literal(word, signed=False), self.line)

    def _read_weight(self, words: list[str]) -> None:
        if len(words) != 6 or words[5] != "0":
            self._fail(f"expected 'c p weight LITERAL WEIGHT 0', got {brief(' '.join(words))}")
        literal, weight = self._variable_or_literal(words[3], signed=True), _rational(words[4])
        if weight is None:
            self._fail(f"weight {brief(words[4])} is not a rational number such as 0.25, 1e-3 or 1/3")
        if literal in self.weights and self.weights[literal][0] != weight:
            self._fail(
                f"literal {literal} has a second, different weight; the first is on line {self.weights[literal][1]}"
            )
        self.weights.setdefault(literal, (weight, self.line))

    def _variable_or_literal(self, word: str, signed: bool) -> int:
        if not re.fullmatch(r"-?[1-9][0-9]{0,17}" if signed else r"[1-9][0-9]{0,17}", word):
            self._fail(f"expected a {'literal' if signed else 'variable'}, got {brief(word)}")
        return int(word)

    def _finish(self, clause_line: int) -> Cnf:
        if self.header is None:
            self.line = max(self.line, 1)
            self._fail("no 'p cnf VARIABLES CLAUSES' line")
        num_vars, num_clauses = self.header
        if len(self.literals) != self.ends[-1]:
            self.line = clause_line
            self._fail("the clause that begins here does not end with 0")
        found = len(self.ends) - 1
        if self.strict and found != num_clauses:
            self._fail(f"the header declares {num_clauses} clauses, but there are {found}; strict=False allows it")
        # These lines may come before the header, so their range can only be checked now.
        for literal, line in [*((k, line) for k, (_, line) in self.weights.items()), *(self.show or {}).items()]:
            if abs(literal) > num_vars:
                self.line = line
                self._fail(f"literal {literal} is out of range; the header declares {num_vars} variables")
        return Cnf.from_arrays(
            num_vars,
            np.array(self.literals, dtype=np.int32),
            np.array(self.ends, dtype=np.int64),
            {literal: weight for literal, (weight, _) in self.weights.items()},
            self.show,
        )

    def _fail(self, message: str) -> NoReturn:
        raise FormatError(f"{self.source}:{self.line}: {message}")


# The bounds on digits keep a short text such as 1e999999999 from becoming a number that fills the memory.
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,1000}(?:\.[0-9]{0,1000})?|\.[0-9]{1,1000})(?:[eE][+-]?[0-9]{1,3})?")
_RATIO = re.compile(r"[+-]?[0-9]{1,4000}/[0-9]{1,4000}")


def _rational(word: str) -> Fraction | None:
    if not (_DECIMAL.fullmatch(word) or _RATIO.fullmatch(word)):
        return None
    try:
        return Fraction(word)
    except (ValueError, ZeroDivisionError):
        return None
