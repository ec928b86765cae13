"""The compiler's view of the native module: declarations of its functions, and calls that can be interrupted."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any

from semprola._library import open_library

_POLL_SECONDS = 0.05


@functools.lru_cache(maxsize=1)
def native_library() -> ctypes.CDLL | None:
    """The native module with the compiler's functions declared, or None if there is none that matches this code."""
    library = open_library()
    if library is None:
        return None
    try:
        _declare(library)
    except AttributeError:
        return None  # built before these functions existed
    return library


class Shared(ctypes.Structure):
    """Memory shared with a running native call; mirrors `struct Shared` in ddnnf_common.hpp."""

    _fields_ = (
        ("stop", ctypes.c_int32),
        ("phase", ctypes.c_int32),
        ("nodes", ctypes.c_int64),
        ("edges", ctypes.c_int64),
        ("decisions", ctypes.c_int64),
        ("conflicts", ctypes.c_int64),
        ("cache_entries", ctypes.c_int64),
        ("cache_hits", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("width", ctypes.c_int64),
    )


def call_interruptibly(function: Callable[..., int], shared: Shared, *args: Any, poll: Callable[[], None]) -> int:
    """Run a native function in another thread while this one polls; any exception here, such as Ctrl-C, stops it."""
    result: list[int] = []
    worker = threading.Thread(target=lambda: result.append(function(*args)), daemon=True)
    worker.start()
    try:
        worker.join(_POLL_SECONDS)
        while worker.is_alive():
            poll()
            worker.join(_POLL_SECONDS)
    except BaseException:
        shared.stop = 1
        worker.join()
        raise
    return result[0]


def _declare(library: ctypes.CDLL) -> None:
    pointer, i64, i32, f64 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_double
    compile_ = library.semprola_ddnnf_compile
    compile_.argtypes = [i64, i64, pointer, pointer, pointer, i32, f64, i64, i64, pointer, pointer, pointer]
    compile_.restype = i32
    library.semprola_ddnnf_copy.argtypes = [pointer] * 5
    library.semprola_ddnnf_copy.restype = None
    library.semprola_ddnnf_free.argtypes = [pointer]
    library.semprola_ddnnf_free.restype = None
