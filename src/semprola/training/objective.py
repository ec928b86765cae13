"""What training minimises: the negative log-likelihood, or the marginal one where labels are not observed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from semprola.distributions import PoolDistribution
from semprola.engine.torch_internals import is_compiled
from semprola.errors import SemprolaError
from semprola.nn import SPL
from semprola.training.data import Batch


class Objective(nn.Module):
    """A model and its loss as one module, so that data-parallel training sees one forward pass.

    Args:
        model: returns a distribution for inputs x (and inputs of the constraint). If it has a method
            ``loss(x, y, given, penalize=)``, that is minimised instead.
        label_weight: weights of the individual labels' log losses [labels], or None.
        pool_samples: see :class:`FitSettings`.
    """

    def __init__(self, model: nn.Module, label_weight: Tensor | None = None, pool_samples: int = 0) -> None:
        super().__init__()
        self.model, self.pool_samples = model, pool_samples
        self.label_weight: Tensor | None
        self.register_buffer("label_weight", label_weight, persistent=False)
        self._layers = () if is_compiled(model) else tuple(m for m in model.modules() if isinstance(m, SPL))

    def forward(self, batch: Batch, penalize: bool = True) -> Tensor:
        """The mean loss over the rows of a batch, weighted if they have weights."""
        own = getattr(self.model, "loss", None)
        if inspect.ismethod(own):
            if batch.weight is not None or self.label_weight is not None:
                raise ValueError(f"{type(self.model).__name__} has its own loss, which does not support weights")
            loss: Tensor = own(batch.x, batch.y, batch.given, penalize=penalize)
            return loss
        with _told(self._layers, batch.y if self.label_weight is None and not self.pool_samples else None):
            p = predict(self.model, batch)
        rows = -log_likelihood(p, batch.y)
        if self.pool_samples:
            rows = rows + _log_partition_gradient(p, self.pool_samples)
        if self.label_weight is not None:
            count, labels = self.label_weight.numel(), p.event_shape[-1]
            if self.label_weight.dim() and count != labels:
                raise ValueError(f"label_weight has {count} numbers, but there are {labels} labels: give one for each")
            rows = rows + (_label_losses(p, batch.y) * self.label_weight).sum(-1)
        if batch.weight is None:
            return rows.mean()
        weight = batch.weight.to(rows)
        # a row of weight zero may be impossible, and infinity times zero is NaN
        return torch.where(weight == 0, 0.0, rows * weight).sum() / weight.sum().clamp_min(1e-30)


@contextmanager
def _told(layers: Sequence[SPL], y: Tensor | None) -> Iterator[None]:
    """Call layers inside a model with ``scored=y``, wherever the model calls them."""

    def add(_: nn.Module, args: Any, options: dict[str, Any]) -> Any:
        return args, {"scored": y, **options}

    hooks = [] if y is None else [layer.register_forward_pre_hook(add, with_kwargs=True) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def predict(model: Any, batch: Batch) -> Any:
    """The distribution that a model returns for a batch.

    Raises:
        TypeError: if it returns something else.
    """
    p = model(batch.x) if batch.given is None else model(batch.x, batch.given)
    if not _has_queries(p):
        raise TypeError(
            f"the model must return a distribution, not {type(p).__name__}: end it in a layer such as sp.SPL"
        )
    return p


def log_likelihood(p: Any, y: Tensor) -> Tensor:
    """Log-probability of the labels [rows], of a pool a lower bound; where some are NaN, of the observed ones."""
    if y.is_floating_point() and bool(y.isnan().any()):
        value: Tensor = p.log_marginal(y)
        return value
    value = p.log_score(y) if isinstance(p, PoolDistribution) else p.log_prob(y)
    return value


def _log_partition_gradient(p: Any, samples: int) -> Tensor:
    """Zeros [rows] with an unbiased gradient of log Z of a pool; see `PoolDistribution.log_prob_gradient`."""
    if not isinstance(p, PoolDistribution):
        raise ValueError("pool_samples is for a layer over a split: leave it out, other layers train by the likelihood")
    with torch.no_grad():
        drawn = p.sample(torch.Size([samples]))
    scores = p.log_score(drawn).mean(0)
    return scores - scores.detach()


def _has_queries(p: Any) -> bool:
    try:
        return hasattr(p, "log_prob")
    except SemprolaError:  # a baseline without a likelihood says so itself
        return True


def _label_losses(p: Any, y: Tensor) -> Tensor:
    """Log loss of each label's marginal [rows, labels]; 0 where the label is not observed."""
    mean = p.mean
    tiny = torch.finfo(mean.dtype).tiny
    right = torch.where(y.to(mean) > 0.5, mean, 1 - mean)
    observed = ~y.isnan() if y.is_floating_point() else torch.ones_like(y, dtype=torch.bool)
    return torch.where(observed, -right.clamp_min(tiny).log(), 0.0)
