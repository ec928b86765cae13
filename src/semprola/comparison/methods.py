"""All methods on the same kind of backbone: their last layers and their losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from semprola.baselines import CCN, EBM, FIL, HMCNN, MultiplexNet
from semprola.baselines.ccn import normal_rules
from semprola.circuit import Circuit
from semprola.constraints import hierarchy
from semprola.constraints.hierarchy.family import Hierarchy
from semprola.errors import PropertyError, SemprolaError
from semprola.logic import Formula
from semprola.losses import DL2, NeSyEntropy, SemanticLoss
from semprola.nn import SPL, ProductSPL

METHODS = {
    "fil": "independent labels (FIL)",
    "dl2": "FIL + DL2",
    "semantic-loss": "FIL + semantic loss",
    "nesy-entropy": "FIL + neuro-symbolic entropy",
    "ebm": "pairwise energy (EBM)",
    "multiplexnet": "MultiplexNet",
    "hmcnn": "HMCNN",
    "ccn": "CCN",
    "spl": "SPL",
    "product-spl": "ProductSPL",
}
"""Names of the methods, and their titles in tables."""
PENALISED = ("dl2", "semantic-loss", "nesy-entropy")
"""Methods that add a loss, whose weight has to be chosen."""
_PENALTY = 0.1
"""Default weight of an added loss."""


class MethodModel(nn.Module):
    """A backbone with the last layer and the loss of one method.

    Args:
        backbone: from x to features.
        head: the last layer.
        penalties: losses of the label log-odds that the method adds, with their weights.
    """

    def __init__(self, backbone: nn.Module, head: nn.Module, penalties: Sequence[tuple[float, nn.Module]] = ()) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head
        self.weights = [weight for weight, _ in penalties]
        self.penalties = nn.ModuleList(penalty for _, penalty in penalties)

    def forward(self, x: Tensor, given: Tensor | None = None) -> Any:
        """The prediction for inputs x [rows, …]."""
        return self.head(self.backbone(x))

    def loss(self, x: Tensor, y: Tensor, given: Tensor | None = None, *, penalize: bool = True) -> Tensor:
        """The mean loss of labels y [rows, labels]."""
        p = self(x)
        if hasattr(p, "loss"):  # a method without a likelihood has its own loss
            own: Tensor = p.loss(y).mean()
            return own
        total: Tensor = -p.log_prob(y).mean()
        if penalize:
            for weight, penalty in zip(self.weights, self.penalties, strict=True):
                total = total + weight * penalty(p.logits.squeeze(-2))
        return total


def build_method(
    method: str,
    backbone: nn.Module,
    width: int,
    constraint: Formula,
    circuit: Circuit,
    *,
    penalty: float | None = None,
    components: int = 1,
) -> MethodModel:
    """One method on a backbone.

    Args:
        method: one of `METHODS`.
        backbone: from x to features.
        width: number of features.
        constraint: the formula, for methods that read it.
        circuit: the compiled constraint, whose labels are the columns of y.
        penalty: weight of an added loss, for the methods that have one; 0.1 by default.
        components: number of mixture components of the SPLs.

    Raises:
        SemprolaError: if the method is unknown, or cannot handle the constraint; the message says why.

    Example:
        >>> import torch, semprola as sp
        >>> rules = sp.parse("(cat -> animal) & (dog -> animal)")
        >>> model = build_method("ccn", torch.nn.Identity(), 4, rules, sp.compile(rules))
        >>> model(torch.zeros(2, 4)).mode.shape
        torch.Size([2, 3])
    """
    if method not in METHODS:
        raise SemprolaError(f"no method {method!r}: choose from {', '.join(METHODS)}")
    weight = _PENALTY if penalty is None else penalty
    labels = circuit.labels
    heads: dict[str, Callable[[], nn.Module]] = {
        "ebm": lambda: EBM(width, labels),
        "multiplexnet": lambda: MultiplexNet(width, constraint, labels=labels),
        "hmcnn": lambda: HMCNN(width, _as_hierarchy(constraint), labels=labels),
        "ccn": lambda: CCN(width, constraint, labels=labels),
        "spl": lambda: SPL(width, circuit, components=components),
        "product-spl": lambda: ProductSPL(width, circuit, components=components),
    }
    added: list[tuple[float, nn.Module]] = []
    if method == "dl2":
        added.append((weight, DL2(constraint, labels=labels)))
    if method in ("semantic-loss", "nesy-entropy"):
        added.append((weight, SemanticLoss(circuit)))
    if method == "nesy-entropy":
        added.append((weight, NeSyEntropy(circuit)))
    make = heads.get(method, lambda: FIL(width, labels))
    return MethodModel(backbone, make(), added)


def _as_hierarchy(constraint: Formula) -> Hierarchy:
    """The constraint as a hierarchy: a family, or a conjunction of implications between labels."""
    if isinstance(constraint, Hierarchy):
        return constraint
    taker = "HMCNN takes hierarchies only, rules of the form 'a -> b'"
    rules = normal_rules(constraint, taker=taker)
    for rule in rules:
        if len(rule.positive) != 1 or rule.negative:
            raise PropertyError(f"{taker}, but {rule.text!r} is not one")
    return hierarchy([(rule.positive[0], rule.head) for rule in rules])
