"""Softmax heads: one softmax per variable, or a sigmoid for a label, given that the values satisfy the rules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.circuit import Circuit
from semprola.circuit.whole import WholeVariable, whole_variables
from semprola.distributions.arguments import check_finite, given_rows, is_hidden
from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.derived import check_derived
from semprola.distributions.domain import Domain
from semprola.distributions.evaluator import Evaluator
from semprola.distributions.independent import IndependentLabels
from semprola.engine import CircuitPlans, Literals, Plan, log_value
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import LabelError

_KEPT = "_heads"


class Heads:
    """Which variables and labels of a circuit have logits, and where they are in one row of scores.

    Attributes:
        total_is_one: whether the rules only define derived variables: then probabilities need no normalisation.
    """

    def __init__(self, circuit: Circuit, names: Sequence[str]) -> None:
        variables, label = whole_variables(circuit), {name: v for v, name in enumerate(circuit.labels)}
        inside = {v for variable in variables.values() for v in variable.places}
        self.circuit, self.names = circuit, tuple(names)
        self.parts: list[WholeVariable | int] = []
        for name in names:
            if name in variables:
                self.parts.append(variables[name])
            elif name in label and label[name] not in inside:
                self.parts.append(label[name])
            else:
                known = ", ".join([*variables, *(n for n, v in label.items() if v not in inside)][:6])
                raise LabelError(
                    f"there are logits for {name!r}, which is not a variable of the rules: they have {known}"
                )
        places = [[part] if isinstance(part, int) else list(part.places) for part in self.parts]
        used = {v for part in places for v in part}
        derived = [(n, v.places) for n, v in variables.items() if n not in self.names]
        derived += [(n, (v,)) for n, v in label.items() if v not in inside and n not in self.names]
        proved = check_derived(circuit, places, derived)
        size = 1
        for part in self.parts:
            size *= 2 if isinstance(part, int) else len(part.values)
        self.total_is_one = proved and not circuit.given and circuit.model_count() == size
        by_width: dict[int, list[int]] = {}
        for number, part in enumerate(self.parts):
            by_width.setdefault(0 if isinstance(part, int) else len(part.values), []).append(number)
        self.stacks = list(by_width.items())
        order = [v for _, numbers in self.stacks for n in numbers for v in places[n]]
        order += [v for v in range(circuit.num_labels) if v not in used]
        self.rest = circuit.num_labels - len(used)
        self.column = torch.empty(circuit.num_labels, dtype=torch.int64)
        self.column[torch.tensor(order, dtype=torch.int64)] = torch.arange(circuit.num_labels)

    @classmethod
    def of(cls, circuit: Circuit, names: Sequence[str]) -> Heads:
        """The same object for later calls with the same circuit and names."""
        known: dict[tuple[str, ...], Heads] = circuit.__dict__.setdefault(_KEPT, {})
        key = tuple(names)
        if key not in known:
            known[key] = cls(circuit, key)
        return known[key]

    def scores(self, logits: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, torch.Size]:
        """Log-scores of "label is 0" and "is 1" [labels, batch], and the shape of the batch."""
        rows = [_checked(name, part, logits[name]) for name, part in zip(self.names, self.parts, strict=True)]
        shape = self._shape(rows)
        zeros: list[Tensor] = []
        ones: list[Tensor] = []
        for width, numbers in self.stacks:
            parts = [rows[n] if rows[n].shape[: len(shape)] == shape else rows[n].expand(*shape, -1) for n in numbers]
            table = torch.stack(parts, -2)  # [*batch, heads, width]
            self._check_finite(table, numbers, shape)
            on = torch.log_softmax(table, -1) if width else F.logsigmoid(table)
            off = torch.zeros_like(on) if width else F.logsigmoid(-table)
            ones.append(on.flatten(-2))
            zeros.append(off.flatten(-2))
        if self.rest:
            ones.append(ones[0].new_zeros(*shape, self.rest))
            zeros.append(ones[-1])
        column, size = self.column.to(ones[0].device), (shape.numel(), len(self.column))
        made = [torch.cat(parts, -1).reshape(size).T[column] for parts in (zeros, ones)]
        return made[0], made[1], shape

    @property
    def only_variables(self) -> bool:
        """Whether all labels with logits are values of variables."""
        return all(isinstance(part, WholeVariable) for part in self.parts)

    def _shape(self, rows: Sequence[Tensor]) -> torch.Size:
        try:
            shape: torch.Size = torch.broadcast_shapes(*(row.shape[:-1] for row in rows))
        except RuntimeError:
            shown = ", ".join(f"{name!r} {tuple(r.shape[:-1])}" for name, r in zip(self.names[:4], rows, strict=False))
            raise LabelError(f"the logits must have the same batch: {shown}") from None
        return shape

    def _check_finite(self, table: Tensor, numbers: Sequence[int], shape: torch.Size) -> None:
        if not is_hidden(table) and not math.isfinite(table.detach().sum()):
            for place, n in enumerate(numbers):
                check_finite(table[..., place, :], shape, f"the logits of {self.names[n]!r}")


def _checked(name: str, part: WholeVariable | int, logits: Any) -> Tensor:
    """The logits of one head [*batch, values], or [*batch, 1] for a label."""
    if not isinstance(logits, Tensor):
        raise TypeError(f"the logits of {name!r} must be a tensor, not {type(logits).__name__}: use torch.as_tensor")
    if not logits.is_floating_point():
        raise TypeError(f"the logits of {name!r} must be floating point, not {logits.dtype}")
    row = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    if isinstance(part, int):
        return row.unsqueeze(-1)
    width = len(part.values)
    if row.dim() == 0 or row.shape[-1] != width:
        shown = f"[*batch, {width}], one column for each of {part.values[0]!r} to {part.values[-1]!r}"
        raise LabelError(f"the logits of {name!r} must be {shown}; not {tuple(row.shape)}")
    return row


class HeadScores(IndependentLabels):
    """Labels with any two log-scores, "is 0" and "is 1", times the constraint.

    Args:
        zeros, ones: the log-scores [labels, batch].
    """

    def __init__(self, domain: Domain, zeros: Tensor, ones: Tensor, *, total_is_one: bool, no_zeros: bool) -> None:
        super().__init__(domain, ones if no_zeros else ones - zeros, 1)
        self._zeros, self._ones, self._total_is_one, self._no_zeros = zeros, ones, total_is_one, no_zeros

    @property
    def is_normalized(self) -> bool:
        return self._total_is_one and not self.domain.has_evidence and self._tilt is None

    @property
    def _is_bare(self) -> bool:
        return False  # scores are not made from log-odds

    def scores(self) -> tuple[Tensor, Tensor]:
        blank = self._ones.new_zeros((len(self.domain.circuit.given), self._ones.shape[1]))
        return torch.cat([self._zeros, blank]), torch.cat([self._ones, blank])

    def evaluation(self) -> tuple[Plan, Literals]:
        plan = self.plan(explicit=self.domain.needs_explicit)
        if self.domain.observed is None and self._tilt is None:
            return plan, self._literals(plan, self._ones)
        return plan, Literals.of(plan, *self.observed_scores())

    def log_value_without(self, excluded: Tensor) -> Tensor:
        if self.domain.observed is not None:
            return super().log_value_without(excluded)
        plan = self.plan(explicit=False)
        literals = self._literals(plan, self._ones.masked_fill(excluded, NEGATIVE_INFINITY))
        return log_value(plan, None, literals.leaves) + literals.constant

    def _literals(self, plan: Plan, ones: Tensor) -> Literals:
        if not (plan.all_suppressed and self._no_zeros):
            return Literals.of(plan, self._zeros, ones)
        return Literals(
            torch.stack([self._zeros, ones], dim=1).flatten(0, 1), ones.new_zeros(ones.shape[1]), self._zeros
        )

    def _log_q(self, y: Tensor) -> Tensor:
        labels, _, batch = y.shape
        zeros, ones = (part[:labels].view(labels, 1, 1, batch) for part in self.scores())
        return torch.where(y[:, :, None] > 0.5, ones, zeros).sum(0)

    def under(self, plans: CircuitPlans) -> HeadScores:
        return self._with(self.domain.under(plans), self._zeros, self._ones, total_is_one=False)

    def tempered(self, temperature: Tensor) -> Any:
        scale = temperature.to(self._ones)
        return self._with(self.domain, self._zeros / scale, self._ones / scale, total_is_one=False)

    def _taken(self, index: Tensor) -> Any:
        taken = self._zeros[:, index], self._ones[:, index]
        return self._with(self.domain, *taken, total_is_one=self._total_is_one)

    def _with(self, domain: Domain, zeros: Tensor, ones: Tensor, *, total_is_one: bool) -> HeadScores:
        return HeadScores(domain, zeros, ones, total_is_one=total_is_one, no_zeros=self._no_zeros)


class HeadsDistribution(ConstrainedDistribution):
    """Independent softmaxes, one per variable, given that the values satisfy the rules.

    Variables without logits are derived: the rules determine them from the others.

    Args:
        logits: a tensor [*batch, values] for each variable, or [*batch] for a label.
        given: values of the given variables [*batch, given].
    """

    def __init__(self, plans: CircuitPlans, logits: Mapping[str, Tensor], given: Any = None) -> None:
        heads = Heads.of(plans.circuit, tuple(logits))
        zeros, ones, shape = heads.scores(logits)
        domain = Domain(plans, ones, ones.shape[1], given_rows(plans.circuit, given, shape, ones))
        made = {"total_is_one": heads.total_is_one, "no_zeros": heads.only_variables}
        components = HeadScores(domain, zeros, ones, **made)
        super().__init__(Evaluator(components, ones.new_zeros((1, ones.shape[1]))), shape)
