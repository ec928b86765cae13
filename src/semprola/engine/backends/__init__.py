"""The back ends that evaluate circuits, and the choice between them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor
from torch.autograd import forward_ad

from semprola.engine.backends.base import Backend
from semprola.engine.backends.native import NativeBackend
from semprola.engine.backends.torch import TorchBackend
from semprola.engine.backends.triton import TritonBackend
from semprola.errors import SemprolaError

BACKENDS: list[Backend] = [NativeBackend(), TritonBackend(), TorchBackend()]
"""All back ends, fastest first; the last one takes any tensors. To add a back end, add an entry."""


def set_engine(name: str) -> None:
    """Choose what evaluates circuits, for the whole process.

    The environment variable SEMPROLA_ENGINE sets the initial choice. Use :func:`using` to choose for a few lines only.

    Args:
        name: "torch" works on every device; "native" uses compiled kernels for float32 and float64 tensors on CPU, and
            "triton" kernels for those on a GPU, each with torch for all others; "auto" uses whatever is there.

    Raises:
        ValueError: if the name is unknown.
        SemprolaError: if this engine cannot be used here.

    Example:
        >>> import semprola as sp
        >>> sp.engine.set_engine("torch")
        >>> sp.engine.get_engine()
        'torch'
        >>> sp.engine.set_engine("auto")
    """
    global _everywhere
    _check(name)
    _everywhere = name


def get_engine() -> str:
    """The current choice, made by :func:`using` or :func:`set_engine`."""
    return _here.get() or _everywhere


@contextmanager
def using(name: str) -> Iterator[None]:
    """Choose what evaluates circuits inside a ``with`` block.

    The choice applies only to this thread (and asyncio task); other threads keep theirs.

    Args:
        name: as for :func:`set_engine`.

    Raises:
        ValueError: if the name is unknown.
        SemprolaError: if this engine cannot be used here.

    Example:
        >>> import semprola as sp
        >>> with sp.engine.using("torch"):
        ...     sp.engine.get_engine()
        'torch'
    """
    _check(name)
    token = _here.set(name)
    try:
        yield
    finally:
        _here.reset(token)


def select(*tensors: Tensor | None) -> Backend:
    """The back end for a computation on these tensors: the first that fits the choice and takes all of them."""
    name = _here.get() or _everywhere
    given = [tensor for tensor in tensors if tensor is not None]
    if forward_ad._current_level >= 0:
        _refuse_tangents(given)
    for backend in BACKENDS[:-1]:
        if name in ("auto", backend.name) and backend.takes(given):
            return backend
    return BACKENDS[-1]


def _refuse_tangents(tensors: list[Tensor]) -> None:
    for tensor in tensors:
        if tensor.is_floating_point() and forward_ad.unpack_dual(tensor).tangent is not None:
            raise SemprolaError("no forward-mode derivatives here: use torch.func.jvp, or reverse mode")


def _check(name: str) -> None:
    known = {backend.name: backend for backend in BACKENDS}
    if name != "auto" and name not in known:
        names = ", ".join(map(repr, ["auto", *known]))
        raise ValueError(f"the engine must be one of {names}, not {name!r}")
    if name != "auto" and not known[name].is_present():
        raise SemprolaError(f"the {name} engine cannot be used here: {known[name].remedy}")


_here: ContextVar[str | None] = ContextVar("semprola engine", default=None)
_everywhere = os.environ.get("SEMPROLA_ENGINE", "auto")
if _everywhere not in ("auto", *(backend.name for backend in BACKENDS)):
    _everywhere = "auto"
