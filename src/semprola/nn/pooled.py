"""The layer over a split: one layer per circuit, pooled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from semprola.circuit import Circuit
from semprola.compiler.splitting import Split
from semprola.distributions import PoolDistribution
from semprola.nn.constraint import announce, refuse_options
from semprola.nn.showing import Shown

_LEAST = 1e-4
"""A learnt weight is at least so large, so that no circuit is forgotten."""


class PooledLayer(Shown, nn.Module):
    """What `SPL` and `ProductSPL` return for a split: a layer per circuit, and the weights of the circuits.

    Args:
        split: the circuits, and the rules that they leave out.
        members: one layer per circuit, all for the same features.
        pool_weights: the weights of the circuits, positive; None to learn them (a softmax, equal at the start).

    Example:
        >>> import torch, semprola as sp
        >>> S = sp.split(sp.constraints.permutation(4), max_nodes=30)
        >>> layer = sp.ProductSPL(8, S)
        >>> p = layer(torch.randn(5, 8))
        >>> bool(S.satisfied(p.mode).all())
        True
    """

    _others = "another split: save and load the split along with them"

    def __init__(self, split: Split, members: Sequence[nn.Module], pool_weights: Any = None) -> None:
        super().__init__()
        self.split, self.members = split, nn.ModuleList(members)
        announce(split)
        if pool_weights is None:
            like = next(self.members.parameters(), torch.empty(0))
            self.weight_logits: Tensor = nn.Parameter(like.new_zeros(len(self.members)))
            return
        weights = torch.as_tensor(pool_weights, dtype=torch.get_default_dtype())
        if weights.shape != (len(self.members),) or not bool((weights > 0).all() & weights.isfinite().all()):
            raise ValueError(f"pool_weights must be {len(self.members)} numbers above 0, one for each circuit")
        self.register_buffer("weight_logits", weights.log())

    @property
    def circuit(self) -> Circuit:
        """The first circuit; `split` has all of them."""
        return self.split.circuits[0]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of y."""
        return self.split.labels

    @property
    def in_features(self) -> int:
        """Width of the features z."""
        width: Any = self.members[0].in_features
        return int(width)

    @property
    def weights(self) -> Tensor:
        """The weights of the circuits in the pool [circuits]; they sum to one."""
        shares = torch.softmax(self.weight_logits, 0)
        return (1 - _LEAST * len(shares)) * shares + _LEAST if self.has_learnt_weights else shares

    @property
    def has_learnt_weights(self) -> bool:
        """Whether the weights of the circuits are parameters."""
        return isinstance(self.weight_logits, nn.Parameter)

    @property
    def is_new(self) -> bool:
        """Whether all layers still have their first start."""
        return all(bool(member.is_new) for member in self.members)

    def forward(self, z: Tensor, given: Any = None) -> PoolDistribution:
        """The distribution over y for features z [*batch, in_features]."""
        refuse_options(self.split, None, given)
        return PoolDistribution(self.split, [member(z) for member in self.members], self.weights)

    def start_at(self, y: Any, given: Any = None, **options: Any) -> PooledLayer:
        """Start every layer at the frequencies of training labels; see :meth:`semprola.SPL.start_at`."""
        refuse_options(self.split, None, given)
        for member in self.members:
            start: Any = member.start_at
            start(y, **options)
        return self

    def reset_parameters(self) -> None:
        """Draw new parameters for every layer; learnt weights become equal."""
        for member in self.members:
            reset: Any = member.reset_parameters
            reset()
        if self.has_learnt_weights:
            nn.init.zeros_(self.weight_logits)

    def extra_repr(self) -> str:
        """What `repr` shows besides the layers."""
        return f"{self.split!r}, {'learnt' if self.has_learnt_weights else 'given'} weights"


def pooled(kind: type[nn.Module], args: tuple[Any, ...], options: dict[str, Any]) -> PooledLayer | None:
    """The layer over a split for the arguments of another layer; None if these have no split, or an exact one."""
    named = dict(zip(("in_features", "constraint"), args, strict=False)) | options
    split = named.pop("constraint", None)
    if not isinstance(split, Split) or split.is_exact:
        return None
    refuse_options(split, named.pop("labels", None), None)
    for name, instead in (("known_states", "one circuit"), ("q", "q='factorized'")):
        if named.get(name, "factorized") not in (None, "factorized"):
            raise ValueError(f"a layer over a split has no {name}={named[name]!r:.40}: use {instead}")
    if isinstance(named.get("gate"), nn.Module):
        raise ValueError("a layer over a split has a gate per circuit: pass widths, or a function that makes one")
    weights = named.pop("pool_weights", None)
    return PooledLayer(split, [kind(constraint=circuit, **named) for circuit in split.circuits], weights)
