"""Guesses what a file is, for errors about files of the wrong kind."""

from __future__ import annotations

import codecs
from pathlib import Path

from semprola.errors import FormatError

_BEGINNINGS = (
    (b"\x1f\x8b", "a gzip archive: unpack it first"),
    (b"BZh", "a bzip2 archive: unpack it first"),
    (b"\xfd7zXZ", "an xz archive: unpack it first"),
    (b"\x93NUMPY", "a NumPy array: name it .npy"),
    (b"PAR1", "a Parquet file: name it .parquet"),
    (b"PK\x03\x04", "a zip archive, such as .npz or .xlsx: a spreadsheet can be saved as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file: save it as CSV"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"SQLite format 3", "a SQLite database: export the table as CSV"),
    (b"\x7fELF", "a program"),
    (b"\xff\xfe", "UTF-16 text: save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text: save it as UTF-8"),
)
_ENOUGH = 4096
"""Number of bytes at the beginning of a file that tell what it is."""


def read_text(path: str | Path) -> str:
    """The contents of a UTF-8 text file, with or without a byte-order mark."""
    content = Path(path).read_bytes()
    if not content.strip():
        raise FormatError(f"{path}: the file is empty")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not UTF-8 text ({_at(content, error.start)}); {guess(content)}") from None
    if "\0" in text:
        at = content.index(b"\0")
        raise FormatError(f"{path}: not text ({_at(content, at)}); {guess(content)}")
    return text


def read_beginning(path: Path) -> bytes:
    """The first bytes of a file, which tell what it is."""
    with open(path, "rb") as file:
        return file.read(_ENOUGH)


def guess_beginning(beginning: bytes) -> str:
    """What a file that should not be text seems to be, from its first bytes.

    Example:
        >>> guess_beginning(b"a,b\\n1,0\\n")
        'it looks like text, such as CSV'
    """
    return "it looks like text, such as CSV" if _is_text(beginning) else guess(beginning)


def guess(content: bytes) -> str:
    """What a file that is not text seems to be.

    Example:
        >>> guess(b"\\x93NUMPY\\x01")
        'it looks like a NumPy array: name it .npy'
    """
    for beginning, kind in _BEGINNINGS:
        if content.startswith(beginning):
            return f"it looks like {kind}"
    if content[1:2] == b"\0" or content[:1] == b"\0":
        return "it looks like UTF-16 text without a mark, or like binary data"
    high = sum(byte >= 0x80 for byte in content[:_ENOUGH])
    if b"\0" not in content[:_ENOUGH] and high < 0.3 * len(content[:_ENOUGH]):
        return "it looks like Latin-1 or Windows text: save it as UTF-8"
    return "it looks like binary data"


def guess_separator(line: str) -> str | None:
    """The separator that a line of a table seems to use in place of commas, or None.

    Example:
        >>> guess_separator("a;b;c")
        ';'
    """
    counts = {separator: line.count(separator) for separator in (";", "\t", "|", " ")}
    best = max(counts, key=lambda separator: counts[separator])
    return best if counts[best] > line.count(",") else None


def _is_text(content: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content)  # the last character may be cut off
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def _at(content: bytes, place: int) -> str:
    return f"byte 0x{content[place]:02x} at {place}"
