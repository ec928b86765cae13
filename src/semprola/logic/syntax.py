"""The written form of formulas, shared by the parser and the printer: symbols, precedence, names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from semprola.errors import LabelError
from semprola.logic.formula import Kind
from semprola.logic.messages import brief

# From loosest to tightest; everything else binds like an atom.
PRECEDENCE = {Kind.IFF: 1, Kind.IMPLIES: 2, Kind.OR: 3, Kind.XOR: 4, Kind.AND: 5, Kind.NOT: 6}
ATOM_PRECEDENCE = 7

# How the printer writes each connective.
SYMBOL = {Kind.NOT: "~", Kind.AND: " & ", Kind.OR: " | ", Kind.XOR: " ^ ", Kind.IMPLIES: " -> ", Kind.IFF: " <-> "}

# What the parser reads.
NEGATIONS = frozenset({"!", "~", "not", "¬"})
CONNECTIVES = {
    **dict.fromkeys(("&", "&&", "and", "∧"), Kind.AND),
    **dict.fromkeys(("|", "||", "or", "∨"), Kind.OR),
    **dict.fromkeys(("^", "xor", "⊕"), Kind.XOR),
    **dict.fromkeys(("->", "=>", "implies", "→", "⇒"), Kind.IMPLIES),
    **dict.fromkeys(("<->", "<=>", "iff", "↔", "⇔"), Kind.IFF),
}
CONSTANTS = {"true": Kind.TRUE, "True": Kind.TRUE, "false": Kind.FALSE, "False": Kind.FALSE}
# The signs of textbooks.
LOGIC_SIGNS = "¬∧∨⊕→⇒↔⇔"
# How many numbers precede the formulas of each counting function.
FUNCTIONS = {"exactly": 1, "at_most": 1, "at_least": 1, "one_hot": 0, "count": 2}

# Endings of names that only files have.
TEXT_FILES = (".txt", ".formula", ".rules")
CLAUSE_FILES = (".cnf", ".dimacs", ".wcnf")
CIRCUIT_FILES = (".sp", ".nnf", ".sdd")
ONTOLOGY_FILES = (".obo", ".owl", ".ttl", ".rdf")
OTHER_FILES = (".csv", ".json", ".parquet", ".pl", ".xlsx")
PACKED_FILES = (".gz", ".xz", ".bz2")

_FILES = frozenset((*TEXT_FILES, *CLAUSE_FILES, *CIRCUIT_FILES, *ONTOLOGY_FILES, *OTHER_FILES))
_LONGEST_PATH = 4096
_IN_FORMULAS = frozenset("&|!<>=^()#\"'" + LOGIC_SIGNS)
_RESERVED = frozenset({"not", "and", "or", "xor", "iff", "implies", *CONSTANTS, *FUNCTIONS})
_NAME_START = re.compile(r"\w")
_NAME_REST = re.compile(r"[\w.:]*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# What may follow a backslash inside quotes.
UNESCAPES = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "r": "\r", "t": "\t"}


def name_end(text: str, start: int) -> int:
    """Return the end of the unquoted name that begins at ``start``, or ``start`` if there is none.

    A name is a letter, digit or underscore of any script, then more of these, dots, colons and combining marks.
    """
    if not _NAME_START.match(text, start):
        return start
    end = _match_end(text, start)
    # Python's \w leaves out the vowel signs and accents of many scripts, which are marks (category M).
    while end < len(text) and unicodedata.category(text[end]).startswith("M"):
        end = _match_end(text, end + 1)
    return end


def quote(name: str) -> str:
    """Return a label as the parser reads it: bare if possible, otherwise in double quotes."""
    if name not in _RESERVED and name_end(name, 0) == len(name) and not is_file_name(name):
        return name
    return '"' + "".join([_ESCAPES.get(character, character) for character in name]) + '"'


def checked_names(names: Iterable[Any], what: str) -> tuple[str, ...]:
    """Names as a tuple, if they are distinct, non-empty strings.

    Args:
        names: the names; a single string is refused, since it is most likely a mistake.
        what: what errors call them, such as "labels", or the family that they belong to.

    Example:
        >>> checked_names(["cat", "dog"], "labels")
        ('cat', 'dog')
        >>> checked_names(["cat", "cat"], "labels")
        Traceback (most recent call last):
        semprola.errors.LabelError: labels: 'cat' is listed twice
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise LabelError(f"{what}: expected a list of names, not {brief(names)}")
    listed = tuple(names)
    seen: set[str] = set()
    for name in listed:
        if not isinstance(name, str) or not name:
            raise LabelError(f"{what}: a name must be a non-empty string, not {brief(name)}")
        if name in seen:
            raise LabelError(f"{what}: {brief(name)} is listed twice")
        seen.add(name)
    return listed


def file_kind(name: str) -> str:
    """The ending of a file's name in lower case, without that of a compressed file.

    Example:
        >>> file_kind("a.CNF.gz")
        '.cnf'
    """
    endings = [ending.lower() for ending in PurePath(name).suffixes]
    return next((ending for ending in reversed(endings) if ending not in PACKED_FILES), "")


def is_file_name(text: str) -> bool:
    """Whether a text looks like the name of a file, not like a formula.

    It does if it is one word without operators, parentheses and quotes that contains ``/`` or ``\\``, or ends like a
    file with rules, a circuit, an ontology, a table or a program, such as ``.txt``. A label of such a name is
    written in quotes or parentheses.

    Example:
        >>> is_file_name("rules.txt"), is_file_name("data/animals"), is_file_name("v1.2"), is_file_name("a -> b.txt")
        (True, True, False, False)
    """
    word = text.strip()
    if not {".", "/", "\\"}.intersection(word) or len(word) > _LONGEST_PATH or len(word.split()) != 1:
        return False
    home, negated = word.startswith("~/"), word.startswith("~")
    if (negated and not home) or _IN_FORMULAS.intersection(word):
        return False
    return "/" in word or "\\" in word or file_kind(word) in _FILES


def _match_end(text: str, start: int) -> int:
    match = _NAME_REST.match(text, start)
    return match.end() if match else start
