"""Likelihoods of labels that a layer knows beforehand: only the rows of the gate that they use are multiplied."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from semprola.distributions.evaluator import Evaluator
from semprola.distributions.numeric import log_sum_exp
from semprola.distributions.spl import ScoredDistribution, SPLDistribution
from semprola.engine import Plan, encode, gate_likelihood, is_binary, uses_few_rows, watched
from semprola.engine.torch_internals import has_global_hooks, has_saved_tensor_hooks
from semprola.errors import SemprolaError
from semprola.nn.base import GatedLayer
from semprola.nn.gate import ColumnLinear, Gate, split_outputs

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_TYPES = (torch.float32, torch.float64)


def scored_distribution(layer: GatedLayer, z: Tensor, y: Tensor) -> ScoredDistribution | None:
    """The distribution for features z that knows log p(y); None where that is not possible or does not pay.

    Gates of another kind, with hooks, parametrizations or pruned weights, inference mode, autocast, compilers and
    function transforms are left to the usual way.

    Args:
        z: features [*batch, in_features].
        y: label vectors [*batch, labels].
    """
    if not isinstance(y, Tensor):
        raise TypeError(f"scored must be a tensor of label vectors, not {type(y).__name__}")
    plans = layer.plans
    if torch.compiler.is_compiling() or plans.circuit.given or not plans.is_deterministic:
        return None
    plan, last = plans.layer_explicit, _last_layer(layer)
    if last is None or not _are_plain(layer, last, z, y) or not uses_few_rows(plan):
        return None
    with torch.no_grad():
        codes = encode(plan, y.to(z.dtype).reshape(-1, y.shape[-1]).T)
    rows = _Rows(layer.gate, last, z)
    log_probs = rows.log_probs(plan, codes, layer.components)
    if not bool(torch.isfinite(rows.features.detach().sum())) or bool(log_probs.detach().isnan().any()):
        return None  # the usual way raises an error that names the rows

    def whole() -> Evaluator:
        if not rows.are_unchanged():
            raise SemprolaError(
                "this distribution was made with scored=y, and parameters have changed since, so that it only knows "
                "the log-probabilities of y: call the layer again"
            )
        return SPLDistribution(plans, *rows.parameters(layer.components, plan.num_logits)).evaluator

    return ScoredDistribution(plans.circuit, y, log_probs.reshape(z.shape[:-1]), whole)


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
    modules = (gate, last)
    if has_global_hooks() or any(getattr(m, name) for m in modules for name in _HOOKS):
        return None
    if any("forward" in module.__dict__ for module in modules):
        return None
    # exclude what parametrizations, sharding or functional calls put in their place
    if type(last.weight) is not nn.Parameter or type(last.bias) is not nn.Parameter:
        return None
    return last


def _are_plain(layer: GatedLayer, last: nn.Linear, z: Tensor, y: Tensor) -> bool:
    """Whether features and labels fit, and nothing besides torch's own autograd looks into the computation."""
    if not isinstance(z, Tensor) or z.shape[-1:] != (layer.in_features,):
        return False
    if y.shape != (*z.shape[:-1], layer.circuit.num_labels) or not y.device == z.device == last.weight.device:
        return False
    if watched(z) or watched(y) or z.is_meta or z.dtype not in _TYPES or z.dtype != last.weight.dtype:
        return False
    # torch does not count the changes of tensors that were made in inference mode
    if any(tensor.is_inference() for tensor in (z, last.weight, last.bias, y)):
        return False
    # checkpoints run a layer twice, the second time without the labels
    if torch.is_autocast_enabled(z.device.type) or has_saved_tensor_hooks():
        return False
    return not y.is_complex() and (y.dtype == torch.bool or is_binary(y))
