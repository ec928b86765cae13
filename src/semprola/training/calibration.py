"""Calibration: temperatures fitted on validation rows, and how far stated probabilities are from frequencies."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from semprola.circuit import CircuitBuilder
from semprola.distributions import ConstrainedDistribution
from semprola.distributions.mixtures import tempered
from semprola.distributions.names import as_rows
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import SemprolaError
from semprola.nn import constrain
from semprola.training.data import Batch, as_batch
from semprola.training.metrics import reliability
from semprola.training.objective import log_likelihood, predict
from semprola.training.targets import by_name

_MOST_ROWS = 1024
"""Number of rows whose distributions are made at once."""
_LARGEST = 5.0
"""Log-temperatures are kept within this bound: larger ones mean that the validation rows do not determine them."""


def calibrate(model: nn.Module | Tensor, valid: Any, constraint: Any = None) -> Calibrated | Temperature:
    """Fit temperatures to validation rows by maximum likelihood.

    A network that was trained for long is overconfident. One temperature per mixture component, and one for the weights
    of the components, correct this without changing what was learnt. On the validation rows, the result is never worse
    than the original model.

    Args:
        model: a layer, or a network that ends in one; or logits [rows, labels] of independent labels.
        valid: validation rows (x, y), (x, y, given) or (x, y, given, weight), for a layer or network; or y
            [rows, labels], for logits. Labels may be NaN where they were not observed.
        constraint: for logits, the constraint under which the likelihood is taken; by default labels are independent.

    Returns:
        For a layer, a module that is called in the same way and returns calibrated distributions. For logits, a module
        that turns logits into calibrated ones, which you can pass to :func:`semprola.constrain`.

    Raises:
        ViolationError: if a validation row violates the constraint.

    Example:
        >>> import torch, semprola as sp
        >>> torch.manual_seed(0)
        <...>
        >>> x = torch.randn(400, 2)
        >>> y = (x + torch.randn(400, 2) > 0).float()
        >>> scaled = calibrate(10 * x, y)  # overconfident logits
        >>> bool(3 < scaled.temperature < 10)
        True
    """
    if isinstance(model, Tensor):
        return _calibrate_logits(model, valid, constraint)
    if constraint is not None:
        raise ValueError("constraint= is for logits: a layer already has a constraint")
    batch = as_batch(by_name(model, valid))
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            parts = [batch.take(slice(first, first + _MOST_ROWS)) for first in range(0, len(batch.y), _MOST_ROWS)]
            distributions = [predict(model, part) for part in parts]
    finally:
        model.train(was_training)
    return Calibrated(model, *_fitted(distributions, parts))


class Calibrated(nn.Module):
    """A layer, or a network that ends in one, whose distributions are tempered.

    Args:
        model: the model to calibrate; its parameters are unchanged.
        temperature: temperature of each component [components].
        mixing_temperature: temperature of the weights of the components.
    """

    temperature: Tensor
    mixing_temperature: Tensor

    def __init__(self, model: nn.Module, temperature: Tensor, mixing_temperature: Tensor) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("temperature", temperature)
        self.register_buffer("mixing_temperature", mixing_temperature)

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """The distribution of the model, tempered."""
        return tempered(self.model(*inputs, **options), self.temperature, self.mixing_temperature)

    def extra_repr(self) -> str:
        """What `repr` shows besides the model."""
        return f"temperature={[round(value, 3) for value in self.temperature.tolist()]}"


class Temperature(nn.Module):
    """Divides logits by a temperature.

    Args:
        temperature: the temperature.
    """

    temperature: Tensor

    def __init__(self, temperature: Tensor) -> None:
        super().__init__()
        self.register_buffer("temperature", temperature)

    def forward(self, logits: Tensor) -> Tensor:
        """Calibrated logits, of the same shape."""
        return logits / self.temperature.to(logits)

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"temperature={float(self.temperature):.3f}"


def calibration_report(p: ConstrainedDistribution, y: Any, bins: int = 10) -> dict[str, dict[str, list[float]]]:
    """How far stated probabilities are from observed frequencies.

    Args:
        p: distributions for some rows, batch shape [rows].
        y: the true labels [rows, labels], or by name; NaN where unknown.
        bins: number of probability intervals of equal width.

    Returns:
        For "marginals" (the probability that each label holds) and "mode" (the probability that the whole prediction
        is right): "confidence", "accuracy" and "rows" of each interval, and the expected calibration error in "error";
        see :func:`semprola.training.metrics.reliability`. Rows with an unknown label are left out of "mode".

    Example:
        >>> import torch, semprola as sp
        >>> p = sp.constrain(torch.zeros(3, 2), sp.one_hot(["a", "b"]))
        >>> report = calibration_report(p, torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
        >>> [round(report[what]["error"][0], 3) for what in ("marginals", "mode")]
        [0.0, 0.167]
    """
    truth = as_rows(y, p.labels, "y", p.log_mixing, missing=float("nan")).to(p.log_mixing).reshape(-1, len(p.labels))
    with torch.no_grad():
        stated, mode = p.mean.reshape(truth.shape), p.mode
        sure = p.log_prob(mode).reshape(-1).exp()
    known = ~truth.isnan()
    whole = known.all(1)
    right = (mode.reshape(truth.shape) == truth).all(1)
    return {
        "marginals": reliability(stated[known].cpu(), truth[known].cpu(), bins),
        "mode": reliability(sure[whole].cpu(), right[whole].cpu(), bins),
    }


def _calibrate_logits(logits: Tensor, valid: Any, constraint: Any) -> Temperature:
    y = torch.as_tensor(valid)
    if logits.shape != y.shape or logits.dim() != 2:
        raise ValueError(f"logits {tuple(logits.shape)} and y {tuple(y.shape)} must both be [rows, labels]")
    batch = Batch(logits.detach(), y)
    parts = [batch.take(slice(first, first + _MOST_ROWS)) for first in range(0, len(y), _MOST_ROWS)]
    rules = _free(logits.shape[1]) if constraint is None else constraint
    temperature, _ = _fitted([constrain(part.x, rules) for part in parts], parts)
    return Temperature(temperature[0])


def _free(labels: int) -> Any:
    """The circuit that allows every label vector."""
    builder = CircuitBuilder([str(i + 1) for i in range(labels)])
    return builder.build(builder.true())


def _fitted(distributions: list[ConstrainedDistribution], parts: list[Batch]) -> tuple[Tensor, Tensor]:
    """Temperatures [components] and the temperature of the mixture."""
    if not distributions:
        raise ValueError("there are no validation rows")
    _check_possible(distributions, parts)
    like = distributions[0].log_mixing
    components = like.shape[-1]
    logarithm = torch.zeros(components + 1, dtype=torch.float64, device=like.device, requires_grad=True)
    optimizer = torch.optim.LBFGS([logarithm], max_iter=60, line_search_fn="strong_wolfe", tolerance_grad=1e-8)

    def loss() -> Tensor:
        chosen = logarithm.clamp(-_LARGEST, _LARGEST).exp()
        return _mean_loss(distributions, parts, chosen[:-1], chosen[-1])

    def closure() -> float:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return float(value.detach())

    with torch.enable_grad():
        optimizer.step(closure)
    found = logarithm.detach().clamp(-_LARGEST, _LARGEST)
    with torch.no_grad():
        one = torch.ones_like(found)
        before = _mean_loss(distributions, parts, one[:-1], one[-1])
        after = _mean_loss(distributions, parts, found.exp()[:-1], found.exp()[-1])
        if not bool(after <= before):
            found = torch.zeros_like(found)
    chosen = found.exp().to(like.dtype)
    return chosen[:-1], chosen[-1] if components > 1 else torch.ones_like(chosen[-1])


def _mean_loss(
    distributions: list[ConstrainedDistribution], parts: list[Batch], temperature: Tensor, mixing: Tensor
) -> Tensor:
    total, weight = temperature.new_zeros(()), temperature.new_zeros(())
    for p, part in zip(distributions, parts, strict=True):
        rows = -log_likelihood(tempered(p, temperature, mixing.to(p.log_mixing)), part.y.to(p.log_mixing.device))
        own = torch.ones_like(rows) if part.weight is None else part.weight.to(rows)
        total = total + (rows * own).sum().double()
        weight = weight + own.sum().double()
    return total / weight


def _check_possible(distributions: list[ConstrainedDistribution], parts: list[Batch]) -> None:
    first = 0
    for p, part in zip(distributions, parts, strict=True):
        if not isinstance(p, ConstrainedDistribution):
            raise TypeError(f"the model must return a distribution of semprola, not {type(p).__name__}")
        y = part.y.to(p.log_mixing.device)
        if not (y.is_floating_point() and bool(y.isnan().any())):
            p.log_prob(y, on_violation="raise")
        elif bool((impossible := p.log_marginal(y) == NEGATIVE_INFINITY).any()):
            row = first + int(torch.nonzero(impossible)[0, 0])
            raise SemprolaError(f"validation row {row} has probability zero: its labels violate the constraint")
        first += len(y)
