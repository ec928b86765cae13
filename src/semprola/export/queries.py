"""The queries that can be exported, as plain operations: mode, mean, log_prob and the decoder for Hamming loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semprola.engine import CircuitPlans, Literals, indicators, log_softmax
from semprola.errors import SemprolaError
from semprola.export.evaluation import PlainPlan
from semprola.nn import SPL, ConstraintLayer, ProductSPL

QUERIES = ("mode", "mean", "log_prob", "hamming")
_LISTED = 2**12
"""If a constraint has at most this many models, a mixture's mode is found by listing them."""


class Query(nn.Module):
    """Answers a query from the parameters of a layer.

    Args:
        layer: SPL with one unit per sum, ProductSPL with a factorised q, or ConstraintLayer.
    """

    def __init__(self, layer: nn.Module, what: str) -> None:
        super().__init__()
        if what not in QUERIES:
            raise SemprolaError(f"what must be one of {', '.join(map(repr, QUERIES))}, not {what!r}")
        self.what, self.is_local = what, isinstance(layer, SPL)
        self.plans = _plans(layer)
        self.components = layer.components if isinstance(layer, SPL | ProductSPL) else 1
        self.labels = self.plans.circuit.num_labels
        self.constraint_plan = self.plans.constraint_explicit
        self.layer_plan = self.plans.layer_explicit if self.is_local else self.constraint_plan
        self.constraint = PlainPlan(self.constraint_plan)
        self.weighted = PlainPlan(self.layer_plan) if self.is_local else self.constraint
        self._list_states()

    def forward(self, parameters: Tensor, mixing: Tensor | None, y: Tensor | None = None) -> Tensor:
        """The answer for parameters [batch, components, parameters] and mixing logits [batch, components].

        Args:
            y: the label vectors [batch, labels], for log_prob.

        Returns:
            [batch, labels], or [batch] for log_prob
        """
        columns = _columns(parameters)
        log_mixing = parameters.new_zeros(1, 1) if mixing is None else torch.log_softmax(mixing.T, 0)
        if self.what == "log_prob":
            if y is None:
                raise SemprolaError("log_prob needs y")
            return self._log_prob(columns, log_mixing, y.to(parameters.dtype).T)
        if self.what == "mode":
            return self._mode(columns, log_mixing).T
        mean = self._mean(columns, log_mixing)
        return mean.T if self.what == "mean" else self._best_total(2 * mean - 1).T

    # probabilities ----------------------------------------------------------------------------------------------------

    def _weights(self, columns: Tensor) -> Tensor:
        return log_softmax(self.plans.layer, columns)

    def _odds(self, columns: Tensor, maximize: bool = False) -> Literals:
        return Literals.of(self.constraint_plan, F.logsigmoid(-columns), F.logsigmoid(columns), maximize=maximize)

    def _log_z(self, columns: Tensor) -> Tensor:
        """log Z of each component [components, batch]."""
        literals = self._odds(columns)
        value, _ = self.constraint.upward(None, literals.leaves, False)
        return (value + literals.constant).reshape(self.components, -1)

    def _mean(self, columns: Tensor, log_mixing: Tensor) -> Tensor:
        """Marginals [labels, batch]."""
        if self.is_local:
            # the local softmaxes are the posterior shares, because the circuit below every sum is normalised
            flows, _ = self.weighted.downward(self._local_shares(columns))
            mean, weight = flows[1::2], log_mixing
        else:
            literals = self._odds(columns)
            value, shares = self.constraint.upward(None, literals.leaves, False)
            flows, _ = self.constraint.downward(shares)
            mean = literals.probability_of_one(flows)
            weight = log_mixing + (value + literals.constant).reshape(self.components, -1)
        mean = mean[: self.labels]
        if self.components == 1:
            return mean.clamp(0.0, 1.0)
        mean = mean.reshape(self.labels, self.components, -1)
        return (mean * torch.softmax(weight, 0)).sum(1).clamp(0.0, 1.0)

    def _local_shares(self, columns: Tensor) -> list[Tensor]:
        weights, sure = self._weights(columns).exp(), 1 + _blank_row(columns)
        shares = []
        for count, fan_in, first in self.weighted.steps:
            start = first - self.weighted.num_fixed
            if start < 0:
                shares.append(sure.expand(count * fan_in, -1).reshape(count, fan_in, -1))
            else:
                shares.append(weights[start : start + count * fan_in].reshape(count, fan_in, -1))
        return shares

    def _scores(self, columns: Tensor, y: Tensor) -> Tensor:
        """Log of each component's unnormalised value at y [labels, batch]: [components, batch]."""
        repeated = y.repeat(1, self.components)
        leaves = torch.stack(indicators(repeated, columns.dtype), dim=1).flatten(0, 1)
        if self.is_local:
            value, _ = self.weighted.upward(self._weights(columns), leaves, True)
        else:
            allowed, _ = self.constraint.upward(None, leaves, True)
            value = allowed + F.logsigmoid(torch.where(repeated > 0.5, columns, -columns)).sum(0)
        return value.reshape(self.components, -1)

    def _log_prob(self, columns: Tensor, log_mixing: Tensor, y: Tensor) -> Tensor:
        scores = self._scores(columns, y)
        log_z = torch.zeros_like(scores) if self.is_local else self._log_z(columns)
        total = _log_sum_exp(scores + log_mixing) - _log_sum_exp(log_z + log_mixing)
        return total

    # states -----------------------------------------------------------------------------------------------------------

    def _mode(self, columns: Tensor, log_mixing: Tensor) -> Tensor:
        """The most probable state [labels, batch]."""
        if self.components == 1:
            return self._component_modes(columns)
        return self._best_listed(columns, log_mixing)

    def _component_modes(self, columns: Tensor) -> Tensor:
        """Each component's most probable state [labels, components * batch]."""
        if self.is_local:
            leaves = _blank_row(columns).expand(self.weighted.num_leaves, -1)
            _, shares = self.weighted.upward(self._weights(columns), leaves, True)
            flows, _ = self.weighted.downward(shares)
            return flows[1::2][: self.labels]
        return self._best_state(self._odds(columns, maximize=True))

    def _best_total(self, gains: Tensor) -> Tensor:
        """The state in the constraint with the largest sum of gains [labels, batch]."""
        blank = torch.zeros_like(gains)
        return self._best_state(Literals.of(self.constraint_plan, blank, gains, maximize=True))

    def _best_state(self, literals: Literals) -> Tensor:
        _, shares = self.constraint.upward(None, literals.leaves, True)
        flows, _ = self.constraint.downward(shares)
        zero, one = flows[0::2], flows[1::2]
        return torch.where(zero + one < 0.5, literals.default, one)[: self.labels]

    def _list_states(self) -> None:
        """For a mixture's mode: all states [labels, states], and the parameters that they use [parameters, states]."""
        if self.what != "mode" or self.components == 1:
            return
        circuit = self.plans.circuit
        if circuit.model_count() > _LISTED:
            raise SemprolaError(
                f"the mode of a mixture over more than {_LISTED} models cannot be exported: use components=1, or "
                "what='hamming'"
            )
        states = torch.from_numpy(circuit.enumerate().copy()).to(torch.float32).T
        uses = states
        if self.is_local:
            leaves = torch.stack(indicators(states, torch.float32), dim=1).flatten(0, 1)
            weights = torch.zeros(self.layer_plan.num_weights, states.shape[1])
            _, shares = self.weighted.upward(weights, leaves, True)
            _, uses = self.weighted.downward(shares)
        self.register_buffer("states", states, persistent=False)
        self.register_buffer("uses", uses.contiguous(), persistent=False)

    def _best_listed(self, columns: Tensor, log_mixing: Tensor) -> Tensor:
        states, uses = (self.get_buffer(name).to(columns.dtype) for name in ("states", "uses"))
        # for independent labels, log σ(odds) - log σ(-odds) = odds
        scores = uses.T @ (self._weights(columns) if self.is_local else columns)
        if not self.is_local:
            scores = scores + F.logsigmoid(-columns).sum(0)
        scores = scores.reshape(states.shape[1], self.components, -1)
        top = (scores + log_mixing).amax(1)
        total = top + (scores + log_mixing - top[:, None]).exp().sum(1).log()
        return states.index_select(1, total.argmax(0))


def _columns(parameters: Tensor) -> Tensor:
    """Parameters [parameters, components * batch]; ONNX Runtime reshapes no tensor without parameters."""
    if parameters.shape[2] == 0:
        return parameters.sum(2).T.flatten().unsqueeze(0)[:0]
    return parameters.permute(2, 1, 0).flatten(1)


def _blank_row(columns: Tensor) -> Tensor:
    """Zeros [1, columns]; works without parameters, as for a constraint with a single model."""
    return torch.zeros_like(columns.sum(0, keepdim=True))


def _log_sum_exp(values: Tensor) -> Tensor:
    """log-sum-exp over components [components, batch]; -inf where all are."""
    if len(values) == 1:
        return values[0]
    top = values.amax(0)
    finite = torch.where(top == float("-inf"), torch.zeros_like(top), top)
    return finite + (values - finite).exp().sum(0).log()


def _plans(layer: nn.Module) -> CircuitPlans:
    if isinstance(layer, SPL):
        if layer.units > 1:
            raise SemprolaError("a layer with units > 1 cannot be exported yet: use components= instead")
        if layer.known is not None:
            raise SemprolaError("a layer with known_states cannot be exported yet: train one without them")
    elif isinstance(layer, ProductSPL):
        if layer.q != "factorized":
            raise SemprolaError(f"a layer with q={layer.q!r} cannot be exported yet: use q='factorized'")
    elif not isinstance(layer, ConstraintLayer):
        raise SemprolaError(f"a {type(layer).__name__} cannot be exported")
    if layer.circuit.given:
        raise SemprolaError("a constraint with given inputs cannot be exported yet")
    plans: CircuitPlans = layer.plans
    return plans
