"""Constrains the logits of an existing network: no new parameters, no training."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from torch import Tensor, nn

from semprola._names import is_named
from semprola.circuit import Circuit
from semprola.compiler import compile
from semprola.compiler.sources import Source, as_constraint
from semprola.compiler.splitting import Split
from semprola.distributions import PoolDistribution, ProductDistribution
from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.domain import plans_of
from semprola.distributions.heads import HeadsDistribution
from semprola.distributions.pool import independent
from semprola.engine import CircuitPlans
from semprola.errors import LabelError
from semprola.logic import Formula
from semprola.logic.syntax import checked_names
from semprola.nn.base import as_circuit
from semprola.nn.showing import Shown


@overload
def constrain(
    logits: Tensor | Mapping[str, Tensor],
    constraint: Source,
    given: Any = None,
    *,
    labels: Iterable[str] | None = None,
    timeout: float | None = None,
    max_nodes: int | None = None,
    memory: int | str | None = None,
) -> ConstrainedDistribution: ...


@overload
def constrain(
    logits: Tensor, constraint: Split, given: Any = None, *, labels: Iterable[str] | None = None
) -> ConstrainedDistribution | PoolDistribution: ...


def constrain(
    logits: Tensor | Mapping[str, Tensor],
    constraint: Source | Split,
    given: Any = None,
    *,
    labels: Iterable[str] | None = None,
    timeout: float | None = None,
    max_nodes: int | None = None,
    memory: int | str | None = None,
) -> ConstrainedDistribution | PoolDistribution:
    """The distribution of independent labels with these log-odds, given that they satisfy the constraint.

    p(y) ∝ Π_j σ(±logits_j) for every y that satisfies the constraint, 0 for all others. It needs no training: pass the
    logits of any multi-label network. Later calls with the same constraint reuse its circuit and plans.

    Args:
        logits: log-odds of the labels [*batch, labels], before any sigmoid; or one softmax head per variable, as in
            ``{"n": logits [*batch, values]}``, see :class:`ConstraintLayer`.
        constraint: a formula, its text, a family, a compiled circuit, the path of a file, or a split (see
            :func:`semprola.split`).
        given: values of the input variables [*batch, given], or by name. If the constraint is a formula, the variables
            that `given` names are its inputs.
        labels: names of the columns of the logits; by default all variables of the constraint that are not inputs, in
            order of first appearance.
        timeout, max_nodes, memory: the budget of a compilation, see :func:`semprola.compile`.

    Raises:
        ValueError: if logits have the wrong width, or are NaN or infinite; the message names the rows.
        LabelError: if a name is unknown or missing.
        UnsatisfiableError: if the constraint, or a row of given inputs, leaves no model.

    Example:
        >>> import torch, semprola as sp
        >>> p = sp.constrain(torch.tensor([2.0, -1.0]), "cat -> animal")
        >>> p.to_dict()
        {'cat': 1, 'animal': 1}
    """
    if isinstance(constraint, Split):
        constraint = refuse_options(constraint, labels, given)
    if isinstance(constraint, Split):
        return _pooled(constraint, logits)
    if isinstance(logits, Mapping) and labels is not None:
        raise LabelError("labels= names the columns of one tensor: logits by variable carry their own names")
    budget = {"timeout": timeout, "max_nodes": max_nodes, "memory": memory}
    circuit = _compiled(constraint, labels, given, budget)
    return _distribution(plans_of(circuit), logits, given)


class ConstraintLayer(Shown, nn.Module):
    """A last layer without parameters, for a network that already returns one logit per label.

    A network with one softmax per variable passes one tensor [*batch, values] per variable, by name (and a tensor
    [*batch] for a label that is not a value of a variable). The distribution is that of the softmaxes, given that the
    rules hold. Variables of the rules without logits are derived: the rules must determine them from the others.
    ``p.log_prob_of({"sum": sums})`` is the log-likelihood of observed sums.

    Args:
        constraint: a formula, its text, a family, a compiled circuit, the path of a file, or a split (see
            :func:`semprola.split`).
        labels: names of the columns of the logits; see :func:`constrain`.
        given: names of the input variables, if any.
        timeout, max_nodes, memory: the budget of a compilation, see :func:`semprola.compile`.

    Raises:
        LabelError: if a name is unknown or missing, or `given` or `labels` is no list of names.

    Example:
        >>> import torch, semprola as sp
        >>> net = torch.nn.Sequential(torch.nn.Linear(8, 2), sp.ConstraintLayer("cat -> animal"))
        >>> net(torch.randn(5, 8)).mode.shape
        torch.Size([5, 2])
        >>> a, b, total = sp.Integer("a", 0, 9), sp.Integer("b", 0, 9), sp.Integer("sum", 0, 18)
        >>> layer = sp.ConstraintLayer(a + b == total)
        >>> p = layer({"a": torch.zeros(10), "b": torch.zeros(10)})
        >>> round(p.log_prob_of({"sum": 17}).exp().item(), 4), p.condition({"sum": 18}).to_dict()
        (0.02, {'a': 9, 'b': 9, 'sum': 18})
    """

    def __init__(
        self,
        constraint: Source | Split,
        *,
        labels: Iterable[str] | None = None,
        given: Iterable[str] = (),
        timeout: float | None = None,
        max_nodes: int | None = None,
        memory: int | str | None = None,
    ) -> None:
        super().__init__()
        names = checked_names(given, "given")
        if isinstance(constraint, Split):
            constraint = refuse_options(constraint, labels, names or None)
        self.split = constraint if isinstance(constraint, Split) else None
        if isinstance(constraint, Split):
            self.plans = plans_of(constraint.circuits[0])
            for circuit in constraint.circuits:
                plans_of(circuit).prepare_constraint()
            announce(constraint)
            return
        budget: Any = {"timeout": timeout, "max_nodes": max_nodes, "memory": memory}
        if labels is not None or names:
            constraint = compile(constraint, labels=labels, given=names, **budget)
        self.plans = plans_of(as_circuit(constraint, **budget))
        self.plans.prepare_constraint()

    @property
    def circuit(self) -> Circuit:
        """The compiled constraint; of a split, its first circuit."""
        return self.plans.circuit

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of the logits and of y."""
        return self.circuit.labels

    def forward(
        self, logits: Tensor | Mapping[str, Tensor], given: Any = None
    ) -> ConstrainedDistribution | PoolDistribution:
        """The distribution over y.

        Args:
            logits: [*batch, labels]; or by variable, [*batch, values] each.
            given: values of the input variables [*batch, given], or by name.
        """
        if self.split is not None:
            refuse_options(self.split, None, given)
            return _pooled(self.split, logits)
        return _distribution(self.plans, logits, given)

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return repr(self.circuit if self.split is None else self.split)


def announce(split: Split) -> None:
    """Log once per layer that its answers are pooled: a warning if rules are left out, else an info."""
    level = logging.WARNING if split.rules_left_out else logging.INFO
    logging.getLogger("semprola").log(level, split.notice)


def refuse_options(split: Split, labels: Any, given: Any) -> Split | Circuit:
    """The split, or its circuit if it is exact; a split is made with its labels, and has no inputs."""
    if labels is not None:
        raise LabelError("the labels of a split are fixed when it is made: sp.split(rules, labels=…)")
    if given is not None:
        raise LabelError("a split has no inputs: leave given= out")
    return split.circuits[0] if split.is_exact else split


def _pooled(split: Split, logits: Any) -> PoolDistribution:
    if isinstance(logits, Mapping):
        raise LabelError("logits by variable need one circuit: for a split, pass one tensor [*batch, labels]")
    check_logits(logits, split.labels)
    return independent(split, logits.clone())


def check_logits(logits: Any, labels: Sequence[str]) -> None:
    """Refuse logits that are no tensor [*batch, labels]."""
    count = len(labels)
    if not isinstance(logits, Tensor):
        raise TypeError(f"logits must be a tensor [*batch, {count}], not {type(logits).__name__}: use torch.as_tensor")
    if logits.dim() == 0 or logits.shape[-1] != count:
        names = ", ".join(labels[:4]) + (", …" if count > 4 else "")
        raise LabelError(f"logits must be [*batch, {count}], one column for each of {names}; not {tuple(logits.shape)}")


def _compiled(constraint: Source, labels: Iterable[str] | None, given: Any, budget: Mapping[str, Any]) -> Circuit:
    constraint = as_constraint(constraint)
    if isinstance(constraint, Formula) and given is not None and is_named(given):
        mentioned = set(constraint.labels)
        inputs = [name for name in _names(given) if name in mentioned]
        return as_circuit(compile(constraint, labels=labels, given=inputs, **budget))
    return as_circuit(constraint if labels is None else compile(constraint, labels=labels, **budget), **budget)


def _names(given: Any) -> list[str]:
    names = getattr(given, "columns", None)
    return [str(name) for name in (given if names is None else names)]


def _distribution(plans: CircuitPlans, logits: Tensor | Mapping[str, Tensor], given: Any) -> ConstrainedDistribution:
    if isinstance(logits, Mapping):
        return HeadsDistribution(plans, logits, given)
    check_logits(logits, plans.circuit.labels)
    # a distribution is a value: later changes of the caller's tensor must not affect it
    return ProductDistribution.of_rows(plans, logits.clone(), given)
