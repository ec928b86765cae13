"""The referee: every query answered by listing all 2^L label vectors. Knows nothing of circuits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

INF = float("inf")


def all_states(labels: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """All 0/1 vectors in the order of counting, the first label being the highest digit; [2^labels, labels]."""
    index = torch.arange(2**labels)
    return (index[:, None] >> torch.arange(labels - 1, -1, -1) & 1).to(dtype)


def state_index(y: Tensor) -> Tensor:
    """Row of ``all_states`` that equals y; [*] for y of shape [*, labels]."""
    labels = y.shape[-1]
    return (y.to(torch.int64) << torch.arange(labels - 1, -1, -1)).sum(-1)


def allowed(case: Any, x: Tensor | None = None) -> Tensor:
    """Which of all states satisfy the case's formula, for each row of inputs x; bool [*batch, 2^labels]."""
    states = all_states(len(case.columns))
    if x is None:
        return torch.as_tensor(case.formula.evaluate(states, labels=list(case.columns)))
    batch = x.shape[:-1]
    rows = torch.cat(
        [
            states.expand(*batch, *states.shape),
            x.to(states.dtype).unsqueeze(-2).expand(*batch, len(states), x.shape[-1]),
        ],
        dim=-1,
    )
    return torch.as_tensor(case.formula.evaluate(rows, labels=[*case.columns, *case.given]))


def inputs(case: Any, *, live: bool = True) -> Tensor:
    """The inputs x that leave at least one model (or, not live, none); [n, given]."""
    x = all_states(len(case.given))
    return x[allowed(case, x).any(-1) == live]


class Table:
    """A distribution over label vectors as the list of its log-probabilities, in float64.

    Args:
        log_probs: of the rows of ``all_states``; [*batch, 2^labels]. Need not be normalised: they are divided by
            their sum, whose logarithm is ``log_partition`` [*batch].
    """

    def __init__(self, log_probs: Tensor) -> None:
        weights = log_probs.detach().to(torch.float64)
        self.log_partition = torch.logsumexp(weights, -1)
        self.log_probs = weights - self.log_partition.unsqueeze(-1)
        self.labels = weights.shape[-1].bit_length() - 1
        self.states = all_states(self.labels)

    @classmethod
    def of(cls, p: Any) -> Table:
        """The table of a distribution, through nothing but its ``log_prob``; not trusted to be normalised."""
        return cls(log_probs_of_all(p))

    @classmethod
    def of_mixture(cls, log_mixing: Tensor, logits: Tensor, keep: Tensor) -> Table:
        """Mixture of independent Bernoullis cut down to the states to keep: p(y) ∝ Σ_i π_i Π_j σ(±θ_ij) [y ⊨ K].

        Args:
            log_mixing: log π, [*batch, mixtures].
            logits: θ, [*batch, mixtures, labels].
            keep: which states satisfy K, bool [*batch or nothing, 2^labels].
        """
        theta = logits.detach().to(torch.float64).unsqueeze(-2)
        signs = 2 * all_states(logits.shape[-1]) - 1
        per_component = torch.nn.functional.logsigmoid(signs * theta).sum(-1)
        mixed = torch.logsumexp(log_mixing.detach().to(torch.float64).unsqueeze(-1) + per_component, dim=-2)
        return cls(mixed.masked_fill(~keep, -INF))

    @property
    def batch_shape(self) -> torch.Size:
        return self.log_probs.shape[:-1]

    @property
    def probs(self) -> Tensor:
        return self.log_probs.exp()

    @property
    def support(self) -> Tensor:
        """Which states have a probability; bool [*batch, 2^labels]."""
        return self.log_probs > -INF

    def log_prob(self, y: Tensor) -> Tensor:
        """[*sample, *batch] for y of shape [*sample, *batch, labels]."""
        index = state_index(y)
        index = index + torch.zeros(self.batch_shape, dtype=torch.int64)
        table = self.log_probs.expand(*index.shape, self.log_probs.shape[-1])
        return table.gather(-1, index.unsqueeze(-1)).squeeze(-1)

    @property
    def max_log_prob(self) -> Tensor:
        """[*batch]"""
        return self.log_probs.amax(-1)

    def is_mode(self, y: Tensor, tolerance: float) -> Tensor:
        """Whether y [*batch, labels] is a maximiser; there may be several."""
        return self.log_prob(y) >= self.max_log_prob - tolerance

    @property
    def mean(self) -> Tensor:
        """[*batch, labels]"""
        return self.probs @ self.states

    def agrees(self, evidence: Tensor) -> Tensor:
        """Which states agree with a partial assignment [*, labels], NaN being unobserved; bool [*, 2^labels]."""
        wanted = evidence.to(torch.float64).unsqueeze(-2)
        return (wanted.isnan() | (wanted == self.states)).all(-1)

    def log_marginal(self, evidence: Tensor) -> Tensor:
        """[*sample, *batch] for evidence of shape [*sample, *batch, labels]."""
        return torch.logsumexp(self.log_probs.masked_fill(~self.agrees(evidence), -INF), -1)

    def condition(self, evidence: Tensor) -> Table:
        return Table(self.log_probs.masked_fill(~self.agrees(evidence), -INF))

    @property
    def entropy(self) -> Tensor:
        """In nats; [*batch]."""
        terms: Tensor = torch.special.entr(self.probs)
        return terms.sum(-1)

    def top_k(self, k: int) -> Tensor:
        """The k largest log-probabilities, −inf past the end of the support; [*batch, k]."""
        short = max(0, k - self.log_probs.shape[-1])
        longer: Tensor = torch.nn.functional.pad(self.log_probs, (0, short), value=-INF)
        values: Tensor = longer.topk(k, -1).values
        return values

    def kl(self, other: Table) -> Tensor:
        """KL(self ‖ other); [*batch]."""
        terms = self.probs * (self.log_probs - other.log_probs)
        return torch.where(self.support, terms, 0.0).sum(-1)

    def best_utility(self, utilities: Tensor) -> Tensor:
        """max over the support of Σ_j u_j y_j; [*batch] for utilities [*batch, labels]."""
        scores = utilities.to(torch.float64) @ self.states.T
        return scores.masked_fill(~self.support, -INF).amax(-1)

    def hamming_loss(self, y: Tensor) -> Tensor:
        """Expected number of labels in which y [*batch, labels] differs from a draw; [*batch]."""
        differing = (y.to(torch.float64).unsqueeze(-2) != self.states).sum(-1)
        return (self.probs * differing).sum(-1)

    @property
    def least_hamming_loss(self) -> Tensor:
        """min over y in the support of the expected Hamming loss, by comparing all pairs; [*batch]."""
        pairs = (self.states.unsqueeze(1) != self.states.unsqueeze(0)).sum(-1).to(torch.float64)
        return (self.probs @ pairs).masked_fill(~self.support, INF).amin(-1)


def log_probs_of_all(p: Any) -> Tensor:
    """log_prob of every state; [*batch, 2^labels], in the dtype of p."""
    batch, labels = tuple(p.batch_shape), p.event_shape[-1]
    dtype = p.mean.dtype
    states = all_states(labels, dtype).reshape(-1, *[1] * len(batch), labels).expand(-1, *batch, labels)
    result: Tensor = p.log_prob(states)
    return result.movedim(0, -1).detach()


def chi_square_z(counts: Tensor, probs: Tensor) -> float:
    """How far counts [n] lie from what probs [n] predict, as a standard normal score (Wilson–Hilferty)."""
    expected = probs * counts.sum()
    rare = expected < 5
    seen, wanted = counts[~rare].to(torch.float64), expected[~rare]
    if rare.any():
        seen = torch.cat([seen, counts[rare].sum().reshape(1).to(torch.float64)])
        wanted = torch.cat([wanted, expected[rare].sum().reshape(1)])
    cells = wanted > 1e-9
    freedom = int(cells.sum()) - 1
    if seen[~cells].sum() > 0:
        return INF
    if freedom < 1:
        return 0.0
    statistic = float(((seen - wanted)[cells] ** 2 / wanted[cells]).sum())
    spread = 2 / (9 * freedom)
    return float(((statistic / freedom) ** (1 / 3) - (1 - spread)) / spread**0.5)
