"""The native module, with the engine's functions declared."""

from __future__ import annotations

import ctypes
import functools

from semprola._library import open_library

_INTERFACE = 10
"""Version of the native functions' parameters; a library built from other sources may have another."""


@functools.lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """The native module with the engine's functions declared, or None if there is none that fits this code."""
    loaded = open_library()
    if loaded is None:
        return None
    try:
        _declare(loaded)
        matches = loaded.semprola_engine_interface() == _INTERFACE
    except AttributeError:
        return None  # built before these functions existed
    return loaded if matches else None


def _declare(loaded: ctypes.CDLL) -> None:
    pointer, int32, int64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
    matrix = [pointer, int64, int64]
    loaded.semprola_plan_create.argtypes = [int32] * 5 + [pointer] * 7
    loaded.semprola_plan_create.restype = pointer
    loaded.semprola_plan_destroy.argtypes = [pointer]
    loaded.semprola_plan_destroy.restype = None
    loaded.semprola_engine_error.restype = ctypes.c_char_p
    loaded.semprola_engine_set_level.argtypes = [ctypes.c_int]
    loaded.semprola_engine_set_level.restype = None
    functions = {
        "evaluate": [pointer, *matrix, *matrix, int64, pointer, pointer, pointer, ctypes.c_int],
        "tangent": [pointer, *matrix, *matrix, *matrix, *matrix, int64, pointer, pointer, ctypes.c_int],
        "maximize": [pointer, *matrix, *matrix, pointer, int64, pointer, pointer, pointer, ctypes.c_int],
        "rank": [pointer, *matrix, *matrix, int64, int32, pointer, pointer, ctypes.c_int],
        "sample": [
            *[pointer, *matrix, *matrix, pointer, int64, pointer, int64],
            *[ctypes.c_uint64, pointer, ctypes.c_int],
        ],
        "likelihood": [
            *[pointer, *matrix, *matrix, pointer, int64, int32, int64, int64, int64, int64],
            *[pointer, pointer, pointer, ctypes.c_int],
        ],
        "gate": [
            *[pointer, *matrix, pointer, *matrix, int64, pointer, int64, int64, int64, int64],
            *[pointer, pointer, pointer, pointer, pointer, ctypes.c_int],
        ],
        "marginal": [pointer, *matrix, *matrix, int64, int64, int64, pointer, pointer, ctypes.c_int],
        "support": [pointer, *matrix, int64, ctypes.c_int, pointer, pointer, ctypes.c_int],
        "encode": [pointer, *matrix, int32, int64, pointer, int64, pointer],
        "scale": [pointer, int64, int64, pointer, int64],
        "is_binary": [pointer, int64],
        "independent": [pointer, pointer, pointer, *matrix, *matrix, int64, pointer, pointer, ctypes.c_int],
        "likeliest": [pointer, pointer, *matrix, int64, pointer, ctypes.c_int],
        "scale_rows": [pointer, int64, int64, pointer, int64, pointer],
        "largest_norm": [pointer, int64, int64],
    }
    for name, arguments in functions.items():
        for kind in ("float", "double"):
            function = getattr(loaded, f"semprola_{name}_{kind}")
            function.argtypes = arguments
            function.restype = ctypes.c_double if name == "largest_norm" else ctypes.c_int
