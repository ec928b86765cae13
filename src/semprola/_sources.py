"""Tells the name of a file from a formula; commands and estimators take both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from semprola.errors import FormatError

TEXTS = (".txt", ".formula")
CLAUSES = (".cnf", ".dimacs", ".wcnf")
PACKED = (".gz", ".xz", ".bz2")
_OPERATORS = frozenset("&|~!<>=^")


def find_file(source: str, kinds: Sequence[str]) -> Path | None:
    """The file that a text names, or None if the text is a formula.

    Args:
        source: the text of a formula, or the path of a file.
        kinds: endings of names that only files have, such as ".txt".

    Raises:
        FormatError: it is a folder, or there is no such file.

    Example:
        >>> find_file("cat -> animal", [".txt"]) is None
        True
    """
    path = Path(source)
    try:
        if path.is_file():
            return path
        is_folder = bool(source) and path.is_dir()
    except (OSError, ValueError):  # too long for a path, or with characters that no path has
        return None
    if is_folder:
        raise FormatError(
            f"{source}: this is a folder, not a file with rules; for a label of this name write ({source})"
        )
    if file_kind(path) in kinds and len(source.split()) == 1 and not _OPERATORS.intersection(source):
        raise FormatError(f"{source}: there is no such file")
    return None


def file_kind(path: Path) -> str:
    """The ending of a name in lower case, without that of a compressed file.

    Example:
        >>> file_kind(Path("a.CNF.gz"))
        '.cnf'
    """
    return next((s for s in (suffix.lower() for suffix in reversed(path.suffixes)) if s not in PACKED), "")
