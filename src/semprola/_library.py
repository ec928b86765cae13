"""The native module as a library of C functions, if it was built."""

from __future__ import annotations

import ctypes
import importlib.util
import os

from semprola._version import __version__


def open_library() -> ctypes.CDLL | None:
    """The native module, or None if it is absent, cannot be loaded, or belongs to another version.

    The environment variable SEMPROLA_NATIVE_LIBRARY names a file to use instead of `semprola._native`. Callers declare
    the types of the functions that they use.
    """
    path = os.environ.get("SEMPROLA_NATIVE_LIBRARY")
    if path is None:
        spec = importlib.util.find_spec("semprola._native")
        path = spec.origin if spec is not None else None
    if path is None:
        return None
    try:
        library = ctypes.CDLL(path)
        library.semprola_native_version.restype = ctypes.c_char_p
        matches = library.semprola_native_version() == __version__.encode()
    except (OSError, AttributeError):
        return None
    return library if matches else None
