"""A pairwise energy-based model over the labels: dependent labels without a circuit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semprola.baselines.common import LabelScores, ScoringLayer, binary, column_names
from semprola.nn.gate import positive

_TRAINING = ("pseudo-likelihood", "contrastive")
_INFERENCE = ("mean-field", "gibbs")


class EBM(ScoringLayer):
    """A factor graph with one factor per label, from the network, and one per pair of labels, the same for all inputs.

    p(y | z) ∝ exp(−E(y)), with E(y) = −Σ_j θ_j(z) y_j − Σ_{j<k} W_jk y_j y_k. The sum over all y is intractable, so the
    model is trained by pseudo-likelihood or contrastive divergence, and queried by mean-field or Gibbs sampling.
    Nothing keeps its predictions within a constraint.

    Args:
        in_features: width of the features z.
        labels: number of labels, or their names.
        gate: widths of hidden layers (ReLU).
        training: "pseudo-likelihood" (each label given the others) or "contrastive" (`steps` of Gibbs sampling from y).
        inference: "mean-field" or "gibbs", for marginals and modes.
        steps: number of sweeps, for mean-field and for Gibbs sampling.

    Example:
        >>> import torch, semprola as sp
        >>> p = sp.baselines.EBM(8, ["a", "b", "c"])(torch.zeros(2, 8))
        >>> p.mean.shape, p.energy(torch.zeros(2, 3)).shape
        (torch.Size([2, 3]), torch.Size([2]))
    """

    def __init__(
        self,
        in_features: int,
        labels: int | Iterable[str],
        *,
        gate: Iterable[int] | int = (),
        training: str = "pseudo-likelihood",
        inference: str = "mean-field",
        steps: int = 20,
    ) -> None:
        names = column_names(labels)
        if training not in _TRAINING:
            raise ValueError(f"training must be {' or '.join(map(repr, _TRAINING))}, not {training!r}")
        if inference not in _INFERENCE:
            raise ValueError(f"inference must be {' or '.join(map(repr, _INFERENCE))}, not {inference!r}")
        super().__init__(in_features, gate, len(names))
        self.labels, self.method, self.inference = names, training, inference
        self.steps = positive(steps, "steps")
        self.pairs = nn.Parameter(torch.zeros(len(names), len(names)))

    def forward(self, z: Tensor) -> EBMScores:
        """The unnormalised model of y for features z [*batch, in_features]."""
        coupling = torch.triu(self.pairs, 1)
        return EBMScores(self.scores(z), coupling + coupling.T, self.method, self.inference, self.steps, self.labels)

    def extra_repr(self) -> str:
        """What `repr` shows besides the gate."""
        return f"{len(self.labels)} labels, training={self.method!r}, inference={self.inference!r}, steps={self.steps}"


class EBMScores(LabelScores):
    """An unnormalised distribution: energies, conditionals, and estimates from them.

    Args:
        logits: θ [*batch, labels].
        coupling: symmetric W with a diagonal of zeros [labels, labels].
        training, inference, steps: as in `EBM`.
        labels: names of the columns.
    """

    method = "an EBM"
    reason = "it is not normalised, since its partition function sums over all label vectors (train it with p.loss(y))"

    def __init__(
        self, logits: Tensor, coupling: Tensor, training: str, inference: str, steps: int, labels: Sequence[str] = ()
    ) -> None:
        self.logits, self.coupling, self.labels = logits, coupling.to(logits.dtype), tuple(labels)
        self._training, self._inference, self._steps = training, inference, steps

    def energy(self, y: Tensor) -> Tensor:
        """E(y) of label vectors y [*sample, *batch, labels]; lower is more probable."""
        y = binary(y, self.logits.shape).to(self.logits.dtype)
        return -(self.logits * y).sum(-1) - 0.5 * ((y @ self.coupling) * y).sum(-1)

    def conditional(self, y: Tensor) -> Tensor:
        """Log-odds of each label given all others [*batch, labels]."""
        return self.logits + y @ self.coupling

    @property
    def mean(self) -> Tensor:
        """Approximate marginals [*batch, labels]; differentiable for mean-field."""
        if self._inference == "gibbs":
            return self._gibbs_sums().clamp(0, 1)
        return self._mean_field()

    @property
    def mode(self) -> Tensor:
        """A state of low energy [*batch, labels]: rounded marginals, improved by single flips while they help."""
        with torch.no_grad():
            y = (self.mean > 0.5).to(self.logits.dtype)
            for _ in range(4 * y.shape[-1]):
                gain = self.conditional(y) * (1 - 2 * y)
                best, place = gain.max(-1, keepdim=True)
                flip = best > 0
                if not bool(flip.any()):
                    break
                y = torch.where(flip & (torch.arange(y.shape[-1], device=y.device) == place), 1 - y, y)
            return y

    def decode(self, utility: str) -> Tensor:
        """`mode` for "mode"; the labels with marginals above one half for "hamming"."""
        if utility not in ("mode", "hamming"):
            raise ValueError(f"an EBM decodes by 'mode' or 'hamming', not by {utility!r}")
        return self.mode if utility == "mode" else (self.mean.detach() > 0.5).to(self.logits.dtype)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        """Approximate samples [*sample_shape, *batch, labels], each after `steps` sweeps of Gibbs sampling."""
        shape = (*sample_shape, *self.logits.shape)
        with torch.no_grad():
            y = torch.bernoulli(torch.sigmoid(self.logits).expand(shape))
            for _ in range(self._steps):
                y = self._sweep(y)
            return y

    def loss(self, y: Tensor) -> Tensor:
        """Pseudo-likelihood or contrastive loss of label vectors y [*batch, labels]: [*batch]."""
        on = binary(y, self.logits.shape)
        states = on.to(self.logits.dtype)
        if self._training == "pseudo-likelihood":
            odds = self.conditional(states)
            return F.softplus(torch.where(on, -odds, odds)).sum(-1)
        with torch.no_grad():
            fantasy = states
            for _ in range(self._steps):
                fantasy = self._sweep(fantasy)
        return self.energy(states) - self.energy(fantasy)

    def _mean_field(self) -> Tensor:
        """The fixed point of μ = σ(θ + Wμ), by damped steps."""
        mean = torch.sigmoid(self.logits)
        for _ in range(self._steps):
            mean = 0.5 * mean + 0.5 * torch.sigmoid(self.logits + mean @ self.coupling)
        return mean

    def _gibbs_sums(self, chains: int = 16) -> Tensor:
        """Mean of the conditional probabilities along several chains, without the first half of each."""
        with torch.no_grad():
            y = torch.bernoulli(torch.sigmoid(self.logits).expand(chains, *self.logits.shape))
            total, kept = torch.zeros_like(self.logits), 0
            for step in range(2 * self._steps):
                y = self._sweep(y)
                if step >= self._steps:
                    total, kept = total + torch.sigmoid(self.conditional(y)).mean(0), kept + 1
            return total / kept

    def _sweep(self, y: Tensor) -> Tensor:
        """Draw every label again given the others, one after the other."""
        y = y.clone()
        for label in range(y.shape[-1]):
            odds = self.logits[..., label] + y @ self.coupling[:, label]
            y[..., label] = torch.bernoulli(torch.sigmoid(odds))
        return y
