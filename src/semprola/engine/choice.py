"""Which engine evaluates circuits: torch, on any device, or the native kernels, on CPU."""

from __future__ import annotations

import ctypes
import functools
import os

import torch
from torch import Tensor

from semprola._library import open_library
from semprola.errors import SemprolaError

_ENGINES = ("auto", "native", "torch")
_NATIVE_TYPES = (torch.float32, torch.float64)
_PLAIN = (Tensor, torch.nn.Parameter)
_INTERFACE = 5
"""Of the native functions' parameters; a library that was built from other sources has another."""


def set_engine(name: str) -> None:
    """Choose what evaluates circuits, for the whole process.

    The environment variable SEMPROLA_ENGINE sets the choice at the start.

    Args:
        name: "torch" works on every device; "native" uses compiled kernels for float32 and float64 tensors on CPU
            (others still go through torch); "auto" is "native" where the native module was built, else "torch".

    Raises:
        ValueError: another name.
        SemprolaError: "native" where there is no native module.

    Example:
        >>> import semprola as sp
        >>> sp.set_engine("torch")
        >>> sp.get_engine()
        'torch'
        >>> sp.set_engine("auto")
    """
    if name not in _ENGINES:
        raise ValueError(f"the engine must be one of {', '.join(map(repr, _ENGINES))}, not {name!r}")
    if name == "native" and library() is None:
        raise SemprolaError("the native module is missing: reinstall semprola where a C++17 compiler is at hand")
    _chosen[0] = name


def get_engine() -> str:
    """The choice made by :func:`set_engine`: "auto", "native" or "torch"."""
    return _chosen[0]


def use_native(*tensors: Tensor) -> bool:
    """Whether the native kernels are to work on these tensors."""
    if _chosen[0] == "torch" or library() is None:
        return False
    kind = tensors[0].dtype
    return kind in _NATIVE_TYPES and all(t.device.type == "cpu" and t.dtype == kind for t in tensors)


def use_directly(*tensors: Tensor) -> bool:
    """Whether the native kernels may be called on these tensors without going through a registered operator.

    Operators are for whoever looks into the computation: tracing compilers, function transforms, dispatch modes and
    subclasses of tensors. They cost more than the kernels on a small circuit.
    """
    if torch.compiler.is_compiling() or _chosen[0] == "torch" or library() is None:
        return False
    kind = tensors[0].dtype
    if kind not in _NATIVE_TYPES:
        return False
    for t in tensors:
        if t.dtype != kind or not t.is_cpu or type(t) not in _PLAIN:
            return False
    return torch._C._functorch.peek_interpreter_stack() is None and not torch._C._len_torch_dispatch_stack()


@functools.lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """The native module with the engine's functions declared, or None where there is none that fits this code."""
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
    loaded.semprola_plan_create.argtypes = [int32] * 5 + [pointer] * 5
    loaded.semprola_plan_create.restype = pointer
    loaded.semprola_plan_destroy.argtypes = [pointer]
    loaded.semprola_plan_destroy.restype = None
    loaded.semprola_engine_error.restype = ctypes.c_char_p
    loaded.semprola_engine_set_level.argtypes = [ctypes.c_int]
    loaded.semprola_engine_set_level.restype = None
    functions = {
        "evaluate": [pointer, *matrix, *matrix, int64, pointer, pointer, pointer, ctypes.c_int],
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
        "support": [pointer, *matrix, int64, ctypes.c_int, pointer, pointer, ctypes.c_int],
        "encode": [pointer, *matrix, int32, int64, pointer, int64, pointer],
        "scale": [pointer, int64, int64, pointer, int64],
        "is_binary": [pointer, int64],
    }
    for name, arguments in functions.items():
        for kind in ("float", "double"):
            function = getattr(loaded, f"semprola_{name}_{kind}")
            function.argtypes, function.restype = arguments, ctypes.c_int


_chosen = [os.environ.get("SEMPROLA_ENGINE", "auto")]
if _chosen[0] not in _ENGINES:
    _chosen[0] = "auto"
