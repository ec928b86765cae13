"""Distributions over the same circuit: mixtures of them, divergences between them, and other temperatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import register_kl

from semprola.compiler.restructure import are_equivalent
from semprola.distributions.arguments import common_batch, flat_columns, normalized_mixing
from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.domain import Domain
from semprola.distributions.evaluator import Components, Evaluator
from semprola.distributions.information import divergence
from semprola.distributions.spl import weighted_branches
from semprola.distributions.tables import KnownStates, StateTable
from semprola.engine import CircuitPlans


class MixtureDistribution(ConstrainedDistribution):
    """Σ_i w_i p_i(y) for distributions p_i over the same circuit; made by :func:`mixture` and by layers.

    It answers the same queries as its parts. `mode` scores the best states of all parts under the whole mixture;
    `mode_is_exact` is true where a bound proves that no other state is more probable.
    """


def mixture(distributions: Sequence[Any], weights: Any = None) -> MixtureDistribution:
    """The mixture of several distributions, such as those of an ensemble of networks.

    Args:
        distributions: distributions that layers return, of any kind, over the same circuit, given inputs and evidence;
            their batch shapes are broadcast. A layer that rebuilds its circuit (``q="hmm"``, ``q="vtree"``) still
            belongs to the circuit that it was made from.
        weights: non-negative weights of the distributions [n] or [*batch, n]; equal by default. They are normalised.
            If they require gradients, a weight of zero counts as about 1e-31 (1e-292 in double precision), so that
            it has its true gradient; this is noticed only where its part is e^55 times as probable as the others.

    Returns:
        The mixture, itself a distribution over the same circuit.

    Raises:
        ValueError: if there are no distributions, their circuits or observations differ, or batches or weights do not
            fit.

    Example:
        >>> import torch, semprola as sp
        >>> rules = sp.compile(sp.one_hot(["a", "b", "c"]))
        >>> members = [sp.SPL(4, rules), sp.ProductSPL(4, rules)]
        >>> p = sp.distributions.mixture([member(torch.randn(5, 4)) for member in members])
        >>> p.mode.sum(-1)
        tensor([1., 1., 1., 1., 1.])
    """
    parts = list(distributions)
    if not parts:
        raise ValueError("a mixture needs at least one distribution")
    for part in parts:
        if not isinstance(part, ConstrainedDistribution):
            raise TypeError(f"expected distributions that layers return, not {type(part).__name__}")
        if not are_equivalent(part.circuit, parts[0].circuit):
            same = part.circuit.variables == parts[0].circuit.variables
            hint = ": if the rules are the same, pass one sp.compile(...) to all layers" if same else ""
            raise ValueError(f"a mixture needs distributions over the same circuit{hint}")
    shape = common_batch([part.batch_shape for part in parts], "a mixture")
    evaluators = [part.expand(shape).evaluator for part in parts]
    for evaluator in evaluators[1:]:
        _check_alike(evaluators[0], evaluator)
    log_weights = _log_weights(weights, len(parts), shape, evaluators[0])
    # p_i = Σ_c π_c f_c / Z_i, so its components have the weights w_i π_c / Z_i
    mixing = [e.log_mixing + w - e.log_partition for e, w in zip(evaluators, log_weights, strict=True)]
    components = Joined([evaluator.components for evaluator in evaluators])
    return MixtureDistribution(Evaluator(components, torch.cat(mixing)), shape)


def beside_known_states(
    plans: CircuitPlans,
    logits: Tensor,
    mixing_logits: Tensor,
    table: StateTable,
    odds: Tensor,
    bias: Tensor,
    given: Any = None,
) -> MixtureDistribution:
    """A mixture of circuits with their own weights and a softmax of θ·y + b_y over known states y.

    Args:
        logits: of the circuits' branches [*batch, components, logits].
        mixing_logits: of the circuits, then of the table [*batch, components + 1].
        odds: θ [*batch, labels].
        bias: b [states].
        given: values of the given variables [*batch, given].
    """
    *batch_shape, count, _ = logits.shape
    circuits = weighted_branches(plans, logits, given)
    known = KnownStates.of(circuits.domain, table, flat_columns(odds.unsqueeze(-2)), bias)
    log_mixing = normalized_mixing(mixing_logits, count + 1, batch_shape, circuits.logits)
    return MixtureDistribution(Evaluator(Joined([circuits, known]), log_mixing), batch_shape)


def _check_alike(first: Evaluator, other: Evaluator) -> None:
    a, b = first.domain, other.domain
    if (a.dtype, a.device) != (b.dtype, b.device):
        raise ValueError(
            f"a mixture needs one type and device, not {a.dtype} on {a.device} and {b.dtype} on {b.device}"
        )
    same = a.has_evidence == b.has_evidence and (a.observed is None) == (b.observed is None)
    if same and a.observed is not None and b.observed is not None:
        same = torch.equal(a.observed.nan_to_num(-1.0), b.observed.nan_to_num(-1.0))
    if not same:
        raise ValueError("a mixture needs distributions with the same given inputs and the same evidence")


def _log_weights(weights: Any, count: int, shape: torch.Size, like: Evaluator) -> Tensor:
    """Normalised log-weights [n, batch]."""
    mixing = like.log_mixing
    given = mixing.new_ones(count) if weights is None else torch.as_tensor(weights, device=mixing.device).to(mixing)
    if given.dim() == 0 or given.shape[-1] != count:
        raise ValueError(f"expected {count} weights, got shape {tuple(given.shape)}")
    total = given.sum(-1, keepdim=True)
    if not bool((given >= 0).all()) or not bool((total > 0).all()) or not bool(torch.isfinite(total).all()):
        raise ValueError("weights must be finite, not negative, and not all zero")
    try:
        rows = given.div(total).expand(*shape, count)
    except RuntimeError:
        raise ValueError(f"weights of shape {tuple(given.shape)} do not fit batch {tuple(shape)}") from None
    return _with_gradient(rows).reshape(like.batch, count).T.log()


def _with_gradient(weights: Tensor) -> Tensor:
    """The weights; if they require gradients, those of about zero are raised, since log(0) has no finite derivative.

    The factor 1 / eps leaves room for small gradients, as those of a mean over many rows.
    """
    if not weights.requires_grad:
        return weights
    info = torch.finfo(weights.dtype)
    least = info.tiny / info.eps
    return torch.where(weights < least, weights + least, weights)


class Joined(Components):
    """The components of all parts, in order."""

    def __init__(self, parts: Sequence[Components]) -> None:
        self._parts = tuple(parts)
        self.domain = self._parts[0].domain
        self.count = sum(part.count for part in self._parts)

    @property
    def is_deterministic(self) -> bool:
        return all(part.is_deterministic for part in self._parts)

    @property
    def size(self) -> int:
        return sum(part.size for part in self._parts)

    @property
    def is_normalized(self) -> bool:
        return all(part.is_normalized for part in self._parts)

    @property
    def log_z(self) -> Tensor:
        return torch.cat([part.log_z for part in self._parts])

    def log_scores(self, y: Tensor) -> Tensor:
        return torch.cat([part.log_scores(y) for part in self._parts], dim=1)

    def marginals(self) -> Tensor:
        return torch.cat([part.marginals() for part in self._parts], dim=1)

    def best(self) -> tuple[Tensor, Tensor]:
        states, bounds = zip(*(part.best() for part in self._parts), strict=True)
        return torch.cat(states, dim=1), torch.cat(bounds)

    def ranked(self, k: int) -> tuple[Tensor, Tensor]:
        states, least = zip(*(part.ranked(k) for part in self._parts), strict=True)
        return torch.cat(states, dim=1), torch.cat(least)

    def sample(self, component: Tensor, generator: torch.Generator | None) -> Tensor:
        drawn: Tensor | None = None
        first = 0
        for part in self._parts:
            own = (component - first).clamp(0, part.count - 1)
            states = part.sample(own, generator)
            drawn = states if drawn is None else torch.where(component >= first, states, drawn)
            first += part.count
        if drawn is None:
            raise ValueError("a mixture needs at least one component")
        return drawn

    def entropies(self) -> Tensor:
        return torch.cat([part.entropies() for part in self._parts])

    def select(self, index: Tensor) -> Any:
        return Joined([part.select(index) for part in self._parts])

    def within(self, domain: Domain) -> Any:
        return Joined([part.within(domain.under(part.domain.plans)) for part in self._parts])

    def tilted(self, zeros: Tensor, ones: Tensor) -> Any:
        parts, first = [], 0
        for part in self._parts:
            some = slice(None) if ones.shape[1] == 1 else slice(first, first + part.count)
            parts.append(part.tilted(zeros[:, some], ones[:, some]))
            first += part.count
        return Joined(parts)

    def tempered(self, temperature: Tensor) -> Any:
        own = temperature.split([part.count for part in self._parts])
        return Joined([part.tempered(some) for part, some in zip(self._parts, own, strict=True)])

    def greedy(self) -> Tensor:
        return torch.cat([part.greedy() for part in self._parts], dim=1)


def kl_divergence(p: ConstrainedDistribution, q: ConstrainedDistribution) -> Tensor:
    """KL(p || q) [*batch], exact; +inf where q excludes what p allows."""
    if p.circuit != q.circuit:
        raise ValueError("kl_divergence needs two distributions over the same circuit")
    shape = common_batch([p.batch_shape, q.batch_shape], "kl_divergence")
    return divergence(p.expand(shape).evaluator, q.expand(shape).evaluator).reshape(shape)


register_kl(ConstrainedDistribution, ConstrainedDistribution)(kl_divergence)


def tempered(p: ConstrainedDistribution, temperature: Tensor, mixing_temperature: Tensor | float = 1.0) -> Any:
    """The same distribution with the parameters of each component divided by a temperature.

    A temperature above 1 makes a component flatter, one below 1 makes it sharper. As the temperature grows, a component
    of `SPL` or of a factorised `ProductSPL` becomes uniform over the models of the constraint. Differentiable in the
    temperatures.

    Args:
        temperature: one positive number per component [components].
    """
    evaluator = p.evaluator
    log_mixing = torch.log_softmax(evaluator.log_mixing / mixing_temperature, 0)
    return p.over(Evaluator(evaluator.components.tempered(temperature), log_mixing))
