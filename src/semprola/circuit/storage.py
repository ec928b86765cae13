"""Circuits on disk: a plain zip of arrays and a JSON header; everything in it is checked before it is used."""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semprola._files import write_atomically
from semprola.circuit.circuit import Circuit
from semprola.circuit.vtree import Vtree
from semprola.errors import FormatError, SemprolaError

FORMAT = "semprola circuit"
VERSION = 1

_ARRAYS = {"kind": "|i1", "literal": "<i4", "child_start": "<i8", "children": "<i4", "zero_suppressed": "|b1"}
_VTREE_ARRAYS = {"vtree_left": "<i4", "vtree_right": "<i4", "vtree_variable": "<i4"}
_HEADER = "header.json"
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<|][ib][148])', 'fortran_order': False, 'shape': \(.*?,\), \} *\n", re.S
)


def save(circuit: Circuit, path: str | Path) -> None:
    """Write a circuit to a file, completely or not at all."""
    write_atomically(path, dumps(circuit))


def load(path: str | Path) -> Circuit:
    """Read a circuit written by `save`."""
    return loads(Path(path).read_bytes(), str(path))


def dumps(circuit: Circuit) -> bytes:
    """The bytes that `save` writes; equal circuits with equal `info` give equal bytes."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "labels": circuit.labels,
        "given": circuit.given,
        "digest": circuit.digest,
        "info": dict(circuit.info),
    }
    members = {_HEADER: json.dumps(header, default=_plain).encode()}
    for name, dtype in _ARRAYS.items():
        members[f"{name}.npy"] = _npy(getattr(circuit, name), dtype)
    if circuit.vtree is not None:
        for name, dtype in _VTREE_ARRAYS.items():
            members[f"{name}.npy"] = _npy(getattr(circuit.vtree, name.removeprefix("vtree_")), dtype)
    buffer = io.BytesIO()
    # stored, not deflated: a file can then never demand more memory than it has bytes
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0)), data)
    return buffer.getvalue()


def loads(data: bytes, name: str = "circuit") -> Circuit:
    """The circuit in bytes made by `dumps`.

    Args:
        name: what error messages call them, such as the path they came from.
    """
    try:
        members = _members(data)
        header = _header(members)
        arrays = {key: _array(members, key, dtype) for key, dtype in _ARRAYS.items()}
        vtree = None
        if any(f"{key}.npy" in members for key in _VTREE_ARRAYS):
            vtree = Vtree(*(_array(members, key, dtype) for key, dtype in _VTREE_ARRAYS.items()))
        circuit = Circuit(header["labels"], header["given"], **arrays, vtree=vtree, info=header["info"])
    except (SemprolaError, ValueError) as error:
        raise FormatError(f"{name}: {error}") from None
    if circuit.digest != header["digest"]:
        raise FormatError(f"{name}: damaged: the digest in its header is not that of its contents")
    return circuit


class TextFile:
    """The lines of a text file, split into words, without comments and blank lines; its errors name the line."""

    def __init__(self, path: str | Path, comment: str = "c") -> None:
        self.path, self.comment, self.line = path, comment, 0

    def __iter__(self) -> Iterator[list[str]]:
        with open(self.path, encoding="ascii", errors="replace") as file:
            for self.line, text in enumerate(file, start=1):
                if not text.startswith(self.comment) and (words := text.split()):
                    yield words

    def error(self, message: str, line: int | None = None) -> FormatError:
        """An error about the current line, or another one."""
        return FormatError(f"{self.path}:{line or self.line}: {message}")

    def whole(self, word: str, what: str, low: int = 0, high: int = 2**31 - 1) -> int:
        """A word as a whole number between `low` and `high`, both included."""
        if not re.fullmatch(r"-?[0-9]{1,18}", word):
            raise self.error(f"{what} must be a whole number, not {_shortened(word)!r}")
        value = int(word)
        if not low <= value <= high:
            raise self.error(f"{what} must be between {low} and {high}, not {value}")
        return value


def _plain(value: Any) -> Any:
    """A value that JSON cannot write, as one that it can."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _npy(array: npt.NDArray[Any], dtype: str) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array.astype(dtype), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _members(data: bytes) -> dict[str, bytes]:
    """The members of the zip, which may not have more bytes in total than the zip itself."""
    known = {_HEADER, *(f"{name}.npy" for name in (*_ARRAYS, *_VTREE_ARRAYS))}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            if _HEADER not in names:
                raise FormatError(f"not a circuit file: a zip without {_HEADER}")
            if len(set(names)) < len(names) or not set(names) <= known:
                raise FormatError("not a circuit file: the zip has members that do not belong there")
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise FormatError("not a circuit file: its members are compressed")
            if sum(entry.file_size for entry in entries) > len(data):
                raise FormatError("damaged: its members are larger than the file")
            return {name: archive.read(name) for name in names}
    except FormatError:
        raise
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError) as error:
        # RuntimeError: an entry marked as encrypted, or with a method that this Python does not know
        raise FormatError(f"not a circuit file, or damaged: {str(error) or type(error).__name__}") from None


def _header(members: dict[str, bytes]) -> dict[str, Any]:
    try:
        header = json.loads(members[_HEADER])
    except (ValueError, RecursionError):
        raise FormatError(f"{_HEADER} is not JSON") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FormatError(f"not a circuit file: {_HEADER} does not say {FORMAT!r}")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise FormatError(f"{_HEADER} has no valid version")
    if version > VERSION:
        raise FormatError(f"format version {version} is newer than {VERSION}, the latest one known: upgrade semprola")
    for key, kind in (("labels", list), ("given", list), ("digest", str), ("info", dict)):
        if not isinstance(header.get(key), kind):
            raise FormatError(f"{_HEADER} has no valid {key!r}")
    return header


def _array(members: dict[str, bytes], name: str, dtype: str) -> npt.NDArray[Any]:
    """One array; its header is matched, never evaluated, and must state the length of the bytes that follow."""
    data = members.get(f"{name}.npy")
    if data is None:
        raise FormatError(f"damaged: {name}.npy is missing")
    match = _NPY.match(data)
    if match is None or match[1] != dtype.encode():
        raise FormatError(f"damaged: {name}.npy is not a one-dimensional array of type {dtype}")
    body = data[match.end() :]
    count, rest = divmod(len(body), np.dtype(dtype).itemsize)
    if rest or f"'shape': ({count},)".encode() not in match[0]:
        raise FormatError(f"damaged: {name}.npy does not have the length stated in its header")
    if dtype == "|b1" and np.any(np.frombuffer(body, np.uint8) > 1):
        raise FormatError(f"damaged: {name}.npy has values that are not bools")
    return np.frombuffer(body, dtype)


def _shortened(word: str) -> str:
    return word if len(word) <= 24 else word[:23] + "…"
