"""MultiplexNet: a mixture over the terms of a disjunctive normal form (Hoernle et al., AAAI 2022)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.baselines.common import LabelScores, ScoringLayer, binary
from semprola.compiler.families import FamilyReader
from semprola.compiler.sources import formula_of
from semprola.distributions.arguments import check_evidence
from semprola.distributions.names import as_rows
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import CompilationBudgetError, IntractableError, LabelError, UnsatisfiableError
from semprola.logic import Formula
from semprola.logic.algebra import read
from semprola.logic.syntax import checked_names
from semprola.nn.gate import positive


class MultiplexNet(ScoringLayer):
    """A categorical distribution over the terms of the constraint's disjunctive normal form.

    Each term fixes some labels; the others are independent sigmoids, shared by all terms. The probability of y is a sum
    over terms, so any y that satisfies no term has probability zero.

    Args:
        in_features: width of the features z.
        constraint: a formula, its text or the path of a file; families in it are expanded through their circuits.
        labels: the columns of y; by default the constraint's own labels.
        gate: widths of hidden layers (ReLU).
        max_terms: most terms that the normal form may have.

    Raises:
        CompilationBudgetError: if the normal form has more terms; the message says how many.

    Example:
        >>> import torch, semprola as sp
        >>> layer = sp.baselines.MultiplexNet(8, "(cat -> animal) & (dog -> animal)")
        >>> len(layer.terms)
        2
        >>> layer(torch.zeros(8)).log_prob(torch.tensor([1.0, 0.0, 0.0])).item()  # a cat that is not an animal
        -inf
    """

    fixed: Tensor

    def __init__(
        self,
        in_features: int,
        constraint: Formula | str | os.PathLike[str],
        *,
        labels: Iterable[str] | None = None,
        gate: Iterable[int] | int = (),
        max_terms: int = 1024,
    ) -> None:
        formula = formula_of(constraint, "MultiplexNet")
        terms = terms_of(formula, positive(max_terms, "max_terms"))
        names = tuple(formula.labels) if labels is None else checked_names(labels, "labels")
        column = {name: number for number, name in enumerate(names)}
        unknown = [name for name in formula.labels if name not in column]
        if unknown:
            raise LabelError(f"the constraint mentions {unknown[0]!r}, which is not among the labels")
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
        return MultiplexDistribution(logits, choice, self.fixed, self.labels)

    def extra_repr(self) -> str:
        """What `repr` shows besides the gate."""
        return f"{len(self.terms)} terms over {len(self.labels)} labels"


class MultiplexDistribution(LabelScores):
    """A mixture with one component per term: the term fixes some labels, the others are independent sigmoids.

    Args:
        logits: log-odds of the labels [*batch, labels].
        choice: logits of the terms [*batch, terms].
        fixed: 0 or 1 where a term fixes a label, NaN elsewhere [terms, labels].
        labels: names of the columns.
        observed: 0 or 1 where a label is observed, NaN elsewhere [*batch, labels]; by default none is.
    """

    method = "MultiplexNet"
    reason = "its terms overlap, so there is no closed form"

    def __init__(
        self, logits: Tensor, choice: Tensor, fixed: Tensor, labels: Sequence[str] = (), observed: Tensor | None = None
    ) -> None:
        self.logits, self.log_choice = logits, torch.log_softmax(choice, -1)
        self.labels = tuple(labels)
        self._fixed = fixed.to(logits.dtype)
        self._observed = torch.full_like(logits, float("nan")) if observed is None else observed

    def log_prob(self, y: Tensor) -> Tensor:
        """Log-probability of y [*sample, *batch, labels]; exactly -inf where y satisfies no term."""
        return self._log_mass(binary(y, self.logits.shape).to(self.logits.dtype))

    def log_marginal(self, evidence: Any) -> Tensor:
        """Log-probability of some labels: 0, 1, or NaN where not observed [*sample, *batch, labels]; or a dict."""
        return self._log_mass(self._rows(evidence))

    def condition(self, evidence: Any) -> MultiplexDistribution:
        """The distribution given some labels: 0, 1, or NaN where not observed [*batch, labels]; or a dict.

        Raises:
            UnsatisfiableError: if the evidence has probability zero; the message names the rows.
        """
        seen = self._rows(evidence).expand_as(self.logits)
        log_terms, fits = self._log_terms(seen)
        impossible = ~fits.any(-1)
        if bool(impossible.any()):
            rows = impossible.reshape(-1).nonzero()[:3, 0].tolist()
            raise UnsatisfiableError(f"the evidence has probability zero in {int(impossible.sum())} rows, first {rows}")
        choice = (self.log_choice + log_terms).masked_fill(~fits, NEGATIVE_INFINITY)
        observed = torch.where(self._observed.isnan(), seen, self._observed)
        return MultiplexDistribution(self.logits, choice, self._fixed, self.labels, observed)

    @property
    def mean(self) -> Tensor:
        """Marginals P(Y_j = 1) [*batch, labels]."""
        chosen = torch.where(self._fixed.isnan(), torch.sigmoid(self.logits).unsqueeze(-2), self._fixed)
        return self._known((self.log_choice.exp().unsqueeze(-1) * chosen).sum(-2))

    @property
    def mode(self) -> Tensor:
        """The best of the terms' own best states, scored under the whole mixture [*batch, labels].

        The mode of a mixture need not be the mode of any component, so this is a good state, not a proven maximum.
        """
        with torch.no_grad():
            likely = (self.logits > 0).to(self.logits.dtype).unsqueeze(-2)
            states = self._known(torch.where(self._fixed.isnan(), likely, self._fixed).movedim(-2, 0))
            best = self.log_prob(states).argmax(0)
            return states.gather(0, best[None, ..., None].expand(1, *states.shape[1:]))[0]

    def decode(self, utility: str) -> Tensor:
        """Supports only "mode": the smallest expected Hamming loss within the constraint has no closed form here."""
        if utility != "mode":
            raise IntractableError(f"MultiplexNet decodes by 'mode' only, not by {utility!r}: use sp.SPL instead")
        return self.mode

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        """Draw a term, then the labels that it leaves free: [*sample_shape, *batch, labels]."""
        shape = (*sample_shape, *self.batch_shape)
        with torch.no_grad():
            weights = self.log_choice.exp().expand(*shape, -1)
            term = torch.distributions.Categorical(weights).sample()
            fixed = self._fixed[term]
            drawn = torch.bernoulli(torch.sigmoid(self.logits).expand(*shape, -1))
            return self._known(torch.where(fixed.isnan(), drawn, fixed))

    def _log_mass(self, values: Tensor) -> Tensor:
        """Log-probability of values 0, 1, or NaN where both are possible."""
        log_terms, fits = self._log_terms(values)
        possible = fits.any(-1)
        # rows that satisfy no term get a placeholder, so that no gradient flows through an empty sum
        total = (log_terms + self.log_choice).masked_fill(~fits & possible.unsqueeze(-1), NEGATIVE_INFINITY)
        total = total.masked_fill(~possible.unsqueeze(-1), 0.0)
        return torch.logsumexp(total, -1).masked_fill(~possible, NEGATIVE_INFINITY)

    def _log_terms(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probability of values given each term, and whether they fit it: both [*sample, *batch, terms].

        Computed by products with 0/1 matrices, so that no batched tensor has both labels and terms.
        """
        on, off = (values == 1).to(self.logits), (values == 0).to(self.logits)
        fixed_on, fixed_off = (self._fixed == 1).to(on), (self._fixed == 0).to(on)
        against = on * (self._observed == 0) + off * (self._observed == 1)
        wrong = on @ fixed_off.T + off @ fixed_on.T + against.sum(-1, keepdim=True)
        each = -F.softplus(torch.where(values == 1, -self.logits, self.logits))
        each = each * (on + off) * self._observed.isnan()
        return each @ self._fixed.isnan().to(on).T, wrong < 0.5

    def _known(self, values: Tensor) -> Tensor:
        return torch.where(self._observed.isnan(), values, self._observed)

    def _rows(self, evidence: Any) -> Tensor:
        rows = torch.as_tensor(as_rows(evidence, self.labels, "evidence", self.logits, missing=float("nan")))
        check_evidence(rows)
        if rows.shape[-1:] != self.event_shape:
            raise ValueError(f"expected evidence of {self.event_shape[0]} labels, got shape {tuple(rows.shape)}")
        return rows.to(self.logits)


Term = frozenset[tuple[str, bool]]
"""A conjunction of literals: names and signs."""


def terms_of(formula: Formula, most: int) -> list[Term]:
    """The terms of a disjunctive normal form, sorted, without those that another term subsumes."""
    families, counting, writing = FamilyReader(), _Counting(), _Writing(most)
    try:
        terms = read(formula, writing, families.through(writing))
    except _TooMany:
        count = read(formula, counting, families.through(counting))
        shown = f"{count:,}" if count < 10**12 else f"about 10^{len(str(count)) - 1}"
        raise CompilationBudgetError(
            f"the constraint's disjunctive normal form has up to {shown} terms, more than {most:,}: "
            "raise max_terms, or use sp.SPL, which does not need it",
            resource="terms",
            limit=most,
            spent=float(count) if count < 10**300 else float("inf"),
            phase="disjunctive normal form",
        ) from None
    if not terms:
        raise UnsatisfiableError("the constraint has no model: no term of its disjunctive normal form is possible")
    return sorted(terms, key=lambda term: (len(term), sorted(term)))


class _Counting:
    """The largest possible number of terms, before any is dropped."""

    true, false = 1, 0

    def literal(self, name: str, positive: bool) -> int:
        return 1

    def both(self, parts: Sequence[int]) -> int:
        return prod(parts)

    def either(self, parts: Sequence[int]) -> int:
        return sum(parts)


class _TooMany(Exception):
    """There are more terms than allowed."""


class _Writing:
    """The terms themselves, as long as they are few."""

    true: frozenset[Term] = frozenset([frozenset()])
    false: frozenset[Term] = frozenset()

    def __init__(self, most: int) -> None:
        self.most = most

    def literal(self, name: str, positive: bool) -> frozenset[Term]:
        return frozenset([frozenset([(name, positive)])])

    def both(self, parts: Sequence[frozenset[Term]]) -> frozenset[Term]:
        product = self.true
        for part in parts:
            joined = (a | b for a in product for b in part)
            product = self._few(term for term in joined if not any((name, not on) in term for name, on in term))
        return product

    def either(self, parts: Sequence[frozenset[Term]]) -> frozenset[Term]:
        return self._few(frozenset().union(*parts))

    def _few(self, terms: Iterable[Term]) -> frozenset[Term]:
        """The terms that no other subsumes."""
        kept: set[Term] = set()
        for term in sorted(set(terms), key=len):
            if not any(other <= term for other in kept):
                kept.add(term)
                if len(kept) > self.most:
                    raise _TooMany
        return frozenset(kept)
