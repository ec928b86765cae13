"""Registers the engine's functions as torch operators, says when these are needed, and makes them work under vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from semprola.engine.backends.base import Backend
from semprola.engine.torch_internals import is_dispatched, is_one_of_many, is_traced, is_transformed
from semprola.errors import SemprolaError

_PLAIN = (Tensor, torch.nn.Parameter)
_Function = TypeVar("_Function", bound=Callable[..., Any])


def define(name: str, schema: str) -> Callable[[_Function], Any]:
    """Register a function as the operator semprola::name, for all devices; the decorated name calls the operator.

    `torch.library.custom_op` does the same, but its first call imports the tracing compiler, which takes seconds.
    """

    def register(function: _Function) -> Any:
        torch.library.define(f"semprola::{name}", schema)
        torch.library.impl(f"semprola::{name}", "default", function)
        return getattr(torch.ops.semprola, name)

    return register


def register_meta(name: str) -> Callable[[_Function], _Function]:
    """Register the shapes and types of an operator's results."""

    def register(function: _Function) -> _Function:
        torch.library.register_fake(f"semprola::{name}", function)
        return function

    return register


def register_vmap(name: str) -> None:
    """Let an operator on columns work under vmap, by putting the batches of columns side by side."""
    operator = getattr(torch.ops.semprola, name)

    def batched(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> Any:
        return fold_batch(operator, info, in_dims, *arguments)

    torch.library.register_vmap(f"semprola::{name}", batched)


def fold_batch(function: Callable[..., Any], info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> Any:
    """Call a function of tensors [..., columns] on a batch of them, as one tensor with batch * columns columns."""
    size = info.batch_size
    folded = [_fold(a, dim, size) if isinstance(a, Tensor) else a for a, dim in zip(arguments, in_dims, strict=True)]
    results = function(*folded)
    if isinstance(results, Tensor):
        return results.unflatten(-1, (size, -1)), results.dim() - 1
    return tuple(r.unflatten(-1, (size, -1)) for r in results), tuple(r.dim() - 1 for r in results)


def alias(*tensors: Tensor) -> list[Tensor]:
    """The tensors as new inputs: the derivative by one does not include paths through the history of another."""
    return [t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in tensors]


def apply_of(function: type[torch.autograd.Function]) -> Any:
    """A faster `apply` of an autograd function, for use where no function transform is active.

    `Function.apply` checks for transforms, unwraps their leftovers, and then calls this.
    """
    base: Any = super(torch.autograd.Function, function)
    return base.apply


def watched(*tensors: Tensor | None) -> bool:
    """Whether something watches a computation on these tensors, so that it has to use registered operators.

    Compilers, exporters, function transforms, dispatch modes and tensor subclasses do. Otherwise operators are avoided:
    on a small circuit, they cost more than the back end itself.
    """
    if torch.compiler.is_compiling():
        return True
    for t in tensors:
        if t is not None and type(t) not in _PLAIN:
            return True
    return (is_traced() and traced()) or is_transformed() or is_dispatched()


def scaled(backend: Backend, numbers: Tensor, factors: Tensor) -> Tensor:
    """The product of numbers [rows, *columns], which may be overwritten, with a cotangent [*columns]."""
    return numbers * factors if mapped(factors) else backend.scale(numbers, factors)


def mapped(cotangent: Tensor) -> bool:
    """Whether a backward pass has to use torch operators: its cotangent is watched, or stands for a batch of them."""
    return watched(cotangent) or is_one_of_many(cotangent)


def traced() -> bool:
    """Whether `torch.jit.trace` is recording: it sees torch operators, and nothing else that a back end does."""
    if torch.compiler.is_compiling() or not is_traced():
        return False
    if torch.onnx.is_in_onnx_export():
        raise SemprolaError("torch.onnx.export(dynamo=False) cannot export a circuit: use semprola.export.onnx")
    return True


def transforming() -> bool:
    """Whether a function transform (torch.func) is active; tracing compilers handle transforms in their own way."""
    return not torch.compiler.is_compiling() and is_transformed()


def _fold(values: Tensor, dim: int | None, size: int) -> Tensor:
    batched = values.unsqueeze(-2).expand(*values.shape[:-1], size, -1) if dim is None else values.movedim(dim, -2)
    return batched.flatten(-2)
