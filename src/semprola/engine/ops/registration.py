"""How the engine's functions become torch operators, when they have to, and what these do under torch.func.vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from semprola.errors import SemprolaError

_PLAIN = (Tensor, torch.nn.Parameter)
_Function = TypeVar("_Function", bound=Callable[..., Any])


def define(name: str, schema: str) -> Callable[[_Function], Any]:
    """Register a function as the operator semprola::name, for all devices; returns what calls it.

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
    """Let an operator on columns work on a batch of them by putting the batches side by side."""
    operator = getattr(torch.ops.semprola, name)

    def batched(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> Any:
        return fold_batch(operator, info, in_dims, *arguments)

    torch.library.register_vmap(f"semprola::{name}", batched)


def fold_batch(function: Callable[..., Any], info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> Any:
    """Call a function of tensors [..., columns] on batches of them as on one tensor of batch * columns columns."""
    size = info.batch_size
    folded = [_fold(a, dim, size) if isinstance(a, Tensor) else a for a, dim in zip(arguments, in_dims, strict=True)]
    results = function(*folded)
    if isinstance(results, Tensor):
        return results.unflatten(-1, (size, -1)), results.dim() - 1
    return tuple(r.unflatten(-1, (size, -1)) for r in results), tuple(r.dim() - 1 for r in results)


def alias(*tensors: Tensor) -> list[Tensor]:
    """The same tensors as new inputs of a computation: a derivative by one does not reach through another's history."""
    return [t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in tensors]


def apply_of(function: type[torch.autograd.Function]) -> Any:
    """What applies an autograd function where no function transform is under way.

    `Function.apply` asks about transforms, unwraps what they left behind, and then calls this.
    """
    base: Any = super(torch.autograd.Function, function)
    return base.apply


def watched(*tensors: Tensor | None) -> bool:
    """Whether someone looks into a computation on these tensors, so that it has to go through registered operators.

    These are compilers and exporters, function transforms, dispatch modes and subclasses of tensors. Operators cost
    more than a back end takes for a small circuit.
    """
    if torch.compiler.is_compiling() or any(t is not None and type(t) not in _PLAIN for t in tensors) or traced():
        return True
    return torch._C._functorch.peek_interpreter_stack() is not None or bool(torch._C._len_torch_dispatch_stack())


def traced() -> bool:
    """Whether `torch.jit.trace` records what happens: it sees torch's operators, and nothing else of a back end.

    Raises:
        SemprolaError: the ONNX exporter that is built on it, and has no translation for these operators.
    """
    if torch.compiler.is_compiling() or not torch._C._is_tracing():
        return False
    if torch.onnx.is_in_onnx_export():
        raise SemprolaError("torch.onnx.export(dynamo=False) cannot follow a circuit: use semprola.export.onnx")
    return True


def transforming() -> bool:
    """Whether a function transform (torch.func) is under way; tracing compilers handle them in their own way."""
    return not torch.compiler.is_compiling() and torch._C._functorch.peek_interpreter_stack() is not None


def _fold(values: Tensor, dim: int | None, size: int) -> Tensor:
    batched = values.unsqueeze(-2).expand(*values.shape[:-1], size, -1) if dim is None else values.movedim(dim, -2)
    return batched.flatten(-2)
