"""What torch has no public name for, each with an answer that is right, if slower, should torch no longer have it.

Nothing else in semprola uses torch's private names. None of these functions may be called while `torch.compile` records
a program: ask `torch.compiler.is_compiling()` first.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn


def _private(path: str) -> Any:
    """A private function of torch; None if this release does not have it."""
    try:
        return reduce(getattr, path.split("."), torch)
    except AttributeError:
        return None


_IS_TRACING = _private("_C._is_tracing")
_INTERPRETERS = _private("_C._functorch.peek_interpreter_stack")
_DISPATCH_MODES = _private("_C._len_torch_dispatch_stack")
_IS_WRAPPED = _private("_C._functorch.is_functorch_wrapped_tensor")
_IS_BATCHED = _private("_C._functorch.is_batchedtensor")
_IS_GRADS_BATCHED = _private("_C._functorch.is_legacy_batchedtensor")
_UNWRAPPED = _private("_C._functorch.get_unwrapped")
_GLOBAL_HOOKS = _private("nn.modules.module._has_any_global_hook")
_SAVED_TENSOR_HOOKS = _private("_C._autograd._top_saved_tensors_default_hooks")


def is_traced() -> bool:
    """Whether `torch.jit.trace` is recording."""
    if _IS_TRACING is None:
        return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]
    return bool(_IS_TRACING())


def is_transformed() -> bool:
    """Whether a function transform (torch.func) is active; if unknown, yes."""
    return _INTERPRETERS is None or _INTERPRETERS() is not None


def is_dispatched() -> bool:
    """Whether a dispatch mode sees every operator; if unknown, yes."""
    return _DISPATCH_MODES is None or bool(_DISPATCH_MODES())


def unwrapped(value: Tensor) -> Tensor | None:
    """The tensor inside the wrappers of function transforms; None if it is mapped over a batch, or that is unknown."""
    if _IS_WRAPPED is None or _IS_BATCHED is None or _UNWRAPPED is None:
        return None
    while _IS_WRAPPED(value):
        if _IS_BATCHED(value):
            return None
        value = _UNWRAPPED(value)
    return value


def is_one_of_many(cotangent: Tensor) -> bool:
    """Whether a cotangent stands for a batch of them, as under `torch.autograd.grad(..., is_grads_batched=True)`."""
    return _IS_GRADS_BATCHED is not None and bool(_IS_GRADS_BATCHED(cotangent))


def has_global_hooks() -> bool:
    """Whether hooks are set for the modules of the whole process; if unknown, yes."""
    return _GLOBAL_HOOKS is None or bool(_GLOBAL_HOOKS())


def has_saved_tensor_hooks() -> bool:
    """Whether tensors that autograd saves go through hooks, as under checkpoints; if unknown, yes."""
    return _SAVED_TENSOR_HOOKS is None or _SAVED_TENSOR_HOOKS(True) is not None


def is_compiled(model: nn.Module) -> bool:
    """Whether `torch.compile` has wrapped a module, or one inside it."""
    return any(
        hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None
        for module in model.modules()
    )
