"""Tells layers beforehand which labels will be scored, which makes training on a large circuit much faster."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from semprola.distributions import EncodedStates, SPLDistribution
from semprola.distributions.evaluator import Evaluator
from semprola.distributions.numeric import log_sum_exp
from semprola.distributions.scored import Announced, ScoredDistribution
from semprola.engine import CircuitPlans, Plan, encode, gate_likelihood, is_binary, uses_few_rows, watched
from semprola.engine.torch_internals import has_global_hooks, has_saved_tensor_hooks
from semprola.errors import SemprolaError
from semprola.nn.base import GatedLayer
from semprola.nn.gate import ColumnLinear, Gate, split_outputs

_announced: ContextVar[Announced | None] = ContextVar("labels announced to layers", default=None)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_TYPES = (torch.float32, torch.float64)


@contextmanager
def scoring(y: Any) -> Iterator[None]:
    """Tell the layers that are called inside a ``with`` block which labels will be scored.

    A label vector uses few of the weights of a large circuit. An :class:`SPL` that knows y computes only those rows of
    its gate, which makes a training step on large circuits several times faster. Values and gradients are the same.

    Inside the block, the distribution answers every query, though queries other than ``log_prob(y)`` need the whole
    gate. After the block, it still knows the log-probabilities of y and refuses other queries: call the layer again.
    Layers work as usual if the gate is your own module other than an `nn.Linear`, if it has hooks, parametrizations or
    pruned weights, in inference mode, and under autocast, compilers and function transforms.

    A change of parameters or labels through ``.data`` is not noticed, because torch does not count it: do not make one
    inside the block.

    :func:`semprola.training.fit` uses this automatically.

    Args:
        y: the label vectors [*batch, labels] that will be passed to `log_prob` (the same object), possibly encoded by a
            layer's `encode`; None to announce nothing.

    Example:
        >>> import torch, semprola as sp
        >>> layer, y = sp.SPL(8, sp.constraints.permutation(3)), torch.eye(3).flatten()[None]
        >>> with sp.nn.scoring(y):
        ...     loss = -layer(torch.zeros(1, 8)).log_prob(y).mean()
        >>> round(loss.exp().item(), 4)
        6.0
    """
    announced = Announced(y) if isinstance(y, Tensor | EncodedStates) else None
    token = _announced.set(announced)
    try:
        yield
    finally:
        _announced.reset(token)
        if announced is not None:
            announced.is_over = True


def scored(layer: GatedLayer, z: Tensor) -> ScoredDistribution | None:
    """The distribution for features z, from the gate's rows that the announced labels use; None if this is unsuitable.

    Args:
        layer: the single-circuit layer that is called.
        z: features [*batch, in_features].
    """
    if torch.compiler.is_compiling() or not isinstance(z, Tensor):
        return None
    announced, plans = _announced.get(), layer.plans
    if announced is None or _is_observed(z) or plans.circuit.given or not plans.is_deterministic:
        return None
    plan, last = plans.layer_explicit, _last_layer(layer)
    if last is None or z.shape[-1:] != (layer.in_features,) or not uses_few_rows(plan):
        return None
    if z.dtype != last.weight.dtype or z.device != last.weight.device:
        return None
    if _is_untracked(z, last.weight, last.bias, announced.y):
        return None
    codes = _codes(plan, plans, announced.y, z)
    if codes is None:
        return None
    rows = _Rows(layer.gate, last, z)
    log_probs = rows.log_probs(plan, codes, layer.components)
    if not bool(torch.isfinite(rows.features.detach().sum())) or bool(log_probs.detach().isnan().any()):
        return None  # the usual way raises an error that names the rows

    def whole() -> Evaluator:
        if announced.is_over or not rows.are_unchanged():
            raise SemprolaError(
                "this distribution was made inside scoring(y), for the log-probability of y only: call the layer "
                "outside the block, or make the query inside it, before parameters change"
            )
        return SPLDistribution(plans, *rows.parameters(layer.components, plan.num_logits)).evaluator

    return ScoredDistribution(plans.circuit, announced, log_probs.reshape(z.shape[:-1]), whole)


class _Rows:
    """The last layer of a gate and its input, as of a call."""

    def __init__(self, gate: nn.Module, last: nn.Linear, z: Tensor) -> None:
        features: Tensor = gate.hidden(z) if isinstance(gate, Gate) else z
        self.batch_shape = z.shape[:-1]
        self.features = features.reshape(math.prod(self.batch_shape), features.shape[-1])
        self.weight, self.bias = last.weight, last.bias
        self._grad, self._versions = torch.is_grad_enabled(), self._current()

    def log_probs(self, plan: Plan, codes: Tensor, components: int) -> Tensor:
        """Log-probabilities [batch] of encoded states."""
        values, mixing = gate_likelihood(plan, self.weight, self.bias, self.features, codes, components)
        if components == 1:
            return values[0]
        return log_sum_exp(values + torch.log_softmax(mixing, 0), 0)

    def parameters(self, components: int, logits: int) -> tuple[Tensor, Tensor | None]:
        """The gate's whole output, split into parameters and mixing logits."""
        with torch.set_grad_enabled(self._grad):
            columns = torch.addmm(self.bias[:, None], self.weight, self.features.T)
            return split_outputs(columns.T.reshape(*self.batch_shape, len(self.weight)), components, logits)

    def are_unchanged(self) -> bool:
        """Whether parameters and features have not been modified since."""
        return self._current() == self._versions

    def _current(self) -> list[tuple[int, int]]:
        tensors = (self.weight, self.bias, self.features)
        return [(t._version, t.data_ptr()) for t in tensors]


def _last_layer(layer: GatedLayer) -> nn.Linear | None:
    """The gate's last linear layer, if its output depends on nothing but its matrix and bias."""
    gate = layer.gate
    last = gate.output if type(gate) is Gate else gate
    if not isinstance(last, nn.Linear) or type(last) not in (nn.Linear, ColumnLinear):
        return None
    modules = (layer, gate, last)
    if has_global_hooks() or any(getattr(m, name) for m in modules for name in _HOOKS):
        return None
    if any("forward" in module.__dict__ for module in modules):
        return None
    # exclude what parametrizations, sharding or functional calls put in their place
    if type(last.weight) is not nn.Parameter or type(last.bias) is not nn.Parameter:
        return None
    return last


def _is_observed(z: Tensor) -> bool:
    """Whether something besides torch's own autograd is involved, or the numbers are not plain floats."""
    if watched(z) or z.is_meta or z.dtype not in _TYPES or torch.is_autocast_enabled(z.device.type):
        return True
    # checkpoints run a layer twice, the second time outside the block
    return has_saved_tensor_hooks()


def _is_untracked(*tensors: Tensor | EncodedStates) -> bool:
    """Whether torch does not count the changes of a tensor, because it was made in inference mode."""
    return any((t.states if isinstance(t, EncodedStates) else t).is_inference() for t in tensors)


def _codes(plan: Plan, plans: CircuitPlans, y: Tensor | EncodedStates, z: Tensor) -> Tensor | None:
    """The codes of y [batch, most], if y has one label vector per row of z; None if it is unsuitable."""
    states = y.states if isinstance(y, EncodedStates) else y
    if states.shape != (*z.shape[:-1], plans.circuit.num_labels) or states.device != z.device:
        return None
    if isinstance(y, EncodedStates):
        return None if y.codes is None or not y.is_of(plans) else y.codes.reshape(-1, y.codes.shape[-1])
    if watched(y) or y.is_complex() or (y.dtype != torch.bool and not is_binary(y)):
        return None
    with torch.no_grad():
        return encode(plan, y.to(z.dtype).reshape(-1, states.shape[-1]).T)
