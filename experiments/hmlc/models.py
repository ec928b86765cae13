"""The methods as modules: one network, and a last layer that treats the hierarchy in its own way."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import semprola as sp
from experiments.hmlc.settings import CIRCUITS, CONSTRAINED, METHODS, Settings
from experiments.hmlc.sparse import Dropout, with_sparse_inputs
from semprola.baselines import FIL, HMCNN
from semprola.circuit import Circuit
from semprola.constraints import Hierarchy, hierarchy, suggest
from semprola.errors import SemprolaError
from semprola.losses import SemanticLoss
from semprola.nn import SPL, ProductSPL

_EDGE = 1e-6
"""Marginals are kept this far from 0 and 1 in a loss."""

_MOST_WEIGHTS = 500_000_000
"""Of a gate, 2 GB."""


class Model(nn.Module):
    """A network for a set; what it returns has `mean`, `mode` and `decode`.

    Args:
        settings: see `Settings`.
        in_features: width of the inputs.
        rule: the hierarchy, with options for the methods that use them.
        circuit: the compiled rule; HMCNN needs none.
        y: labels of the training rows, to start at [rows, labels].

    Raises:
        SemprolaError: there is no such method.
    """

    def __init__(
        self, settings: Settings, in_features: int, rule: Hierarchy, circuit: Circuit | None, y: Tensor
    ) -> None:
        super().__init__()
        self.settings = settings
        self.net = network(in_features, settings.width, settings.features, settings.dropout)
        self.head = _head(settings, settings.features or settings.width, rule, circuit, y)
        self.penalty = SemanticLoss(circuit) if settings.method == "semantic-loss" and circuit is not None else None
        if settings.start:
            self.head.start_at(y)
        if settings.dropout:
            with_sparse_inputs(self.net, self.head)

    def forward(self, x: Tensor) -> Any:
        """The prediction for inputs x [rows, inputs]."""
        return self.head(self.net(x))

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """What the method minimises, a mean over rows."""
        p = self(x)
        if isinstance(self.head, HMCNN):
            return torch.mean(p.loss(y))
        total: Tensor = -p.log_prob(y).mean()
        if self.settings.marginal_weight:
            total = total + self.settings.marginal_weight * marginal_loss(p.mean, y)
        if self.penalty is not None:
            total = total + self.settings.semantic_weight * self.penalty(p.logits.squeeze(-2))
        return total


def marginal_loss(mean: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of labels y under marginals, both [rows, labels]: summed over labels, a mean over rows."""
    inside = mean.clamp(_EDGE, 1 - _EDGE)
    return F.binary_cross_entropy(inside, y.to(inside), reduction="none").sum(-1).mean()


def network(in_features: int, width: int, features: int | None, dropout: float) -> nn.Sequential:
    """Two hidden layers with ReLU and dropout, then one linear layer if `features` says how wide it is."""
    layers: list[nn.Module] = []
    for size_in in (in_features, width):
        layers += [nn.Linear(size_in, width), nn.ReLU(), Dropout(dropout)]
    if features is not None:
        layers.append(nn.Linear(width, features))
    return nn.Sequential(*layers)


def plain_rule(graph: Any) -> Hierarchy:
    """The hierarchy of a set, without options."""
    return hierarchy(graph, edges="child-parent")


def rule_for(settings: Settings, graph: Any, y: Tensor) -> Hierarchy:
    """The constraint of a method: the hierarchy, with the options that all rows y obey if the method uses them."""
    plain = plain_rule(graph)
    if not (settings.further_rules or (settings.method in CONSTRAINED and settings.options)):
        return plain
    options: dict[str, Any] = dict(suggest(y, plain))
    return hierarchy(graph, edges="child-parent", **options)


def circuit_for(settings: Settings, rule: Hierarchy) -> Circuit | None:
    """The circuit of a rule, of the kind that the settings ask for.

    Raises:
        SemprolaError: there is no such kind, or it cannot express the rule.
    """
    if settings.circuit not in CIRCUITS:
        raise SemprolaError(f"no circuit {settings.circuit!r}: choose from {', '.join(CIRCUITS)}")
    if settings.method in ("hmcnn", "hmcnn-published"):
        return None
    if settings.circuit == "tree":
        return sp.compile(rule)
    return sp.compile(clauses(rule), labels=list(rule.names), backend="sdd")


def clauses(rule: Hierarchy) -> Any:
    """The rule as a formula that knows nothing of trees, for compilers of clauses."""
    parts: list[Any] = [sp.Bool(child) >> sp.Bool(parent) for child, parent in rule.edges]
    if rule.nonempty:
        parts.append(sp.Or(*(sp.Bool(name) for name in rule.names)))
    for parent, below in rule.sibling_groups:
        children = [sp.Bool(rule.names[v]) for v in below]
        if rule.exclusive_siblings and len(children) > 1:
            parts.append(sp.at_most(1, children))
        if rule.mandatory_leaf:
            some = sp.Or(*children)
            parts.append(some if parent is None else sp.Bool(rule.names[parent]) >> some)
    return sp.And(*parts)


def _head(settings: Settings, width: int, rule: Hierarchy, circuit: Circuit | None, y: Tensor) -> Any:
    method, m = settings.method, settings.components
    if method in ("hmcnn", "hmcnn-published"):
        return HMCNN(width, rule, gate=settings.gate)
    if method in ("fil", "semantic-loss"):
        return FIL(width, list(rule.names), gate=settings.gate)
    if method not in METHODS or circuit is None:
        raise SemprolaError(f"no method {method!r}: choose from {', '.join(METHODS)}")
    if method == "product-spl":
        return ProductSPL(width, circuit, mixtures=m, gate=settings.gate)
    size = m * (settings.gate[-1] if settings.gate else width) * circuit.num_edges
    if settings.units == 1 and size > _MOST_WEIGHTS:
        raise SemprolaError(
            f"the gate of a circuit with {circuit.num_edges:,} edges would have some {size:.0e} weights: "
            "use product-spl or hmcnn, whose gates have one output per label"
        )
    known: dict[str, Any] = {"known_states": y} if method == "spl-known" else {}
    return SPL(width, circuit, replicas=m, units=settings.units, gate=settings.gate, mixing=settings.mixing, **known)
