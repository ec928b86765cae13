"""MultiplexNet: one way to obey per term of a disjunctive normal form (Hoernle et al., AAAI 2022)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.baselines.common import LabelScores, ScoringLayer, binary
from semprola.baselines.dnf import terms_of
from semprola.errors import IntractableError, LabelError
from semprola.logic import Formula, parse
from semprola.nn.gate import positive


class MultiplexNet(ScoringLayer):
    """A categorical distribution over the terms of the constraint's disjunctive normal form.

    Each term fixes some labels; the others are independent sigmoids, shared by all terms. The probability of y is the
    sum over terms, so y that satisfies no term has probability zero.

    Args:
        in_features: width of the features z.
        constraint: a formula or its text; families are read through their circuits.
        labels: the columns of y; by default the constraint's own labels.
        gate: widths of hidden layers (ReLU).
        max_terms: most terms that the normal form may have.

    Raises:
        CompilationBudgetError: the normal form has more terms; says how many.

    Example:
        >>> import torch, semprola as sp
        >>> layer = sp.baselines.MultiplexNet(8, "(cat -> animal) & (dog -> animal)")
        >>> len(layer.terms)
        2
        >>> layer(torch.zeros(8)).log_prob(torch.tensor([1.0, 0.0, 0.0])).item()  # a cat that is no animal
        -inf
    """

    fixed: Tensor

    def __init__(
        self,
        in_features: int,
        constraint: Formula | str,
        *,
        labels: Iterable[str] | None = None,
        gate: Iterable[int] | int = (),
        max_terms: int = 1024,
    ) -> None:
        formula = parse(constraint) if isinstance(constraint, str) else constraint
        terms = terms_of(formula, positive(max_terms, "max_terms"))
        names = tuple(formula.labels() if labels is None else labels)
        column = {name: number for number, name in enumerate(names)}
        unknown = [name for name in formula.labels() if name not in column]
        if unknown:
            raise LabelError(f"the constraint speaks of {unknown[0]!r}, which is not among the labels")
        fixed = torch.full((len(terms), len(names)), float("nan"))
        for row, term in enumerate(terms):
            for name, on in term:
                fixed[row, column[name]] = float(on)
        super().__init__(in_features, gate, len(names) + len(terms))
        self.terms, self.labels = terms, names
        self.register_buffer("fixed", fixed, persistent=False)

    def forward(self, z: Tensor) -> MultiplexDistribution:
        """The distribution over y for features z [*batch, in_features]."""
        logits, choice = self.scores(z).split([len(self.labels), len(self.terms)], -1)
        return MultiplexDistribution(logits, choice, self.fixed)

    def extra_repr(self) -> str:
        """What `repr` shows beside the gate."""
        return f"{len(self.terms)} terms over {len(self.labels)} labels"


class MultiplexDistribution(LabelScores):
    """A mixture with one component per term: labels that the term fixes, independent sigmoids for the others.

    Args:
        logits: log-odds of the labels [*batch, labels].
        choice: logits of the terms [*batch, terms].
        fixed: 0 or 1 where a term fixes a label, NaN elsewhere [terms, labels].
    """

    method = "MultiplexNet"
    reason = "its terms overlap, so it is a mixture without a closed form for that"

    def __init__(self, logits: Tensor, choice: Tensor, fixed: Tensor) -> None:
        self.logits, self.log_choice = logits, torch.log_softmax(choice, -1)
        self._fixed = fixed.to(logits.dtype)

    def log_prob(self, y: Tensor) -> Tensor:
        """Log-probability of y [*sample, *batch, labels]: exactly -inf where y satisfies no term."""
        y = binary(y, self.logits.shape).to(self.logits.dtype)
        each = -F.softplus(torch.where(y > 0.5, -self.logits, self.logits)).unsqueeze(-2)
        free = self._fixed.isnan()
        fits = (free | (self._fixed == y.unsqueeze(-2))).all(-1)
        total = torch.where(free, each, torch.zeros_like(each)).sum(-1) + self.log_choice
        possible = fits.any(-1)
        # rows that satisfy no term get a value and no gradient through a sum of nothing
        total = total.masked_fill(~fits & possible.unsqueeze(-1), float("-inf"))
        return torch.logsumexp(total, -1).masked_fill(~possible, float("-inf"))

    @property
    def mean(self) -> Tensor:
        """Marginals P(Y_j = 1) [*batch, labels]."""
        chosen = torch.where(self._fixed.isnan(), torch.sigmoid(self.logits).unsqueeze(-2), self._fixed)
        return (self.log_choice.exp().unsqueeze(-1) * chosen).sum(-2)

    @property
    def mode(self) -> Tensor:
        """The best of every term's own best state, by the probability of the whole mixture [*batch, labels].

        A mixture's mode need not be any component's, so this is a good state, not a proven maximum.
        """
        with torch.no_grad():
            likely = (self.logits > 0).to(self.logits.dtype).unsqueeze(-2)
            states = torch.where(self._fixed.isnan(), likely, self._fixed).movedim(-2, 0)
            best = self.log_prob(states).argmax(0)
            return states.gather(0, best[None, ..., None].expand(1, *states.shape[1:]))[0]

    def decode(self, utility: str) -> Tensor:
        """Only "mode": the least expected Hamming loss within the constraint has no closed form here."""
        if utility != "mode":
            raise IntractableError(f"MultiplexNet decodes by its mode only, not for {utility!r}: use sp.SPL")
        return self.mode

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        """Draw a term, then the labels that it leaves free: [*sample_shape, *batch, labels]."""
        shape = (*sample_shape, *self.batch_shape)
        with torch.no_grad():
            weights = self.log_choice.exp().expand(*shape, -1)
            term = torch.distributions.Categorical(weights).sample()
            fixed = self._fixed[term]
            drawn = torch.bernoulli(torch.sigmoid(self.logits).expand(*shape, -1))
            return torch.where(fixed.isnan(), drawn, fixed)
