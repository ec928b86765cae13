"""A mixture of components over a flat batch, without names or shapes. Every query is written in terms of it."""

from __future__ import annotations

import torch
from torch import Tensor

from semprola.distributions.arguments import is_hidden
from semprola.distributions.components import Components
from semprola.distributions.domain import Domain
from semprola.distributions.numeric import log_sum_exp, remembered
from semprola.engine.numbers import NEGATIVE_INFINITY

_LISTED = 256
"""If a mixture has at most this many states and its mode is not proven, all states are listed."""
_MOST_NUMBERS = 2**24
"""Largest tensor (in numbers) made to evaluate several samples at once; larger jobs are split."""
_RANKED = (4, 32)
"""Numbers of best states per component to try, one after the other, until the mode of a mixture is proven."""


class Evaluator:
    """p(y) = Σ_c π_c f_c(y) / Z over a flat batch, which comes last in every tensor.

    Args:
        components: the functions f_c.
        log_mixing: log π_c [components, batch]; may be left out if there is only one component.
    """

    def __init__(self, components: Components, log_mixing: Tensor | None = None) -> None:
        self.components, self._log_mixing = components, log_mixing

    @property
    def log_mixing(self) -> Tensor:
        """log π_c [components, batch]."""
        if self._log_mixing is None:
            return self.domain.like.new_zeros((1, self.batch))
        return self._log_mixing

    @property
    def domain(self) -> Domain:
        """Which states are allowed."""
        return self.components.domain

    @property
    def count(self) -> int:
        """Number of components."""
        return self.components.count

    @property
    def batch(self) -> int:
        """Number of elements of the batch."""
        return self.components.batch

    @property
    def is_single(self) -> bool:
        """Whether there is a single, deterministic component; then every query is exact."""
        return self.count == 1 and self.components.is_deterministic

    @property
    def log_partition(self) -> Tensor:
        """log Z [batch]."""
        if self.components.is_normalized:
            return self.log_mixing.new_zeros(self.batch)
        if self._log_mixing is None:
            return self.components.log_z_alone
        if self.count == 1:
            return self._log_mixing[0] + self.components.log_z[0]
        return log_sum_exp(self.log_mixing + self.components.log_z, 0)

    @property
    def responsibilities(self) -> Tensor:
        """Posterior probability of each component [components, batch]."""
        if self.count == 1:
            return torch.ones_like(self.log_mixing)
        return torch.softmax(self.log_mixing + self.components.log_z, 0)

    @remembered
    def best(self) -> tuple[Tensor, Tensor]:
        """The most probable state found [labels, batch], and whether it is proven to be the most probable [batch].

        For a single deterministic circuit, the maximum is exact. For mixtures, the candidates are the components'
        maxima, scored under the whole mixture; Σ_c π_c max f_c bounds the score of any state.
        """
        with torch.no_grad():
            if self.is_single:
                state = self.components.best_alone()
                return state, torch.ones(self.batch, dtype=torch.bool, device=state.device)
            candidates, bounds = self.components.best()
            states, log_probs = self.best_of(candidates)
            proven = self._reaches(log_probs, bounds)
            # a program that is traced or mapped over a batch cannot branch on computed values
            traced = is_hidden(proven)
            if self.domain.can_be_listed(_LISTED) and (traced or not bool(proven.all())):
                return self.best_of(self.domain.candidates())[0], torch.ones_like(proven)
            if self.components.is_deterministic and not traced:
                for k in _RANKED:
                    rows = torch.nonzero(~proven)[:, 0]
                    if len(rows):
                        states[:, rows], proven[rows] = self.select(rows)._settled(states[:, rows], k)
            return states, proven

    def best_of(self, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """The most probable of candidates [labels, n, batch]: [labels, batch], and its log-probability [batch]."""
        log_prob, best = self.log_probs(candidates).max(0)
        return candidates.gather(1, best.expand(len(candidates), 1, -1))[:, 0], log_prob

    def log_probs(self, y: Tensor) -> Tensor:
        """Log-probabilities [samples, batch] of y [labels, samples, batch]; -inf outside the support."""
        if self.is_single and self._log_mixing is None:
            found = self.components.log_probs_alone(y)
            if found is not None:
                return found
        scores = self.components.log_scores(y)
        contradicted = self.domain.contradicts(y)
        if contradicted is not None:
            scores = scores.masked_fill(contradicted[:, None], NEGATIVE_INFINITY)
        total = log_sum_exp(scores + self.log_mixing, 1) if self.count > 1 else scores[:, 0] + self.log_mixing
        # an impossible y has no gradient, not even through the partition function
        return (total - self.log_partition).masked_fill(total == NEGATIVE_INFINITY, NEGATIVE_INFINITY)

    def log_marginals(self, evidence: Tensor) -> Tensor:
        """Log-probabilities [samples, batch] of evidence [labels, samples, batch], NaN where nothing is observed.

        Many samples are evaluated together, as further elements of the batch.
        """
        labels, samples, batch = evidence.shape
        step = max(1, samples)
        # a traced program must not depend on the batch size that it was traced with
        if not torch.compiler.is_compiling():
            step = max(1, _MOST_NUMBERS // max(1, self.components.size * batch))
        parts = []
        for some in evidence.split(step, dim=1):
            repeated = torch.arange(batch, device=evidence.device).repeat(some.shape[1])
            many = self if some.shape[1] == 1 else self.select(repeated)
            domain, conflict = many.domain.observe(some.reshape(labels, repeated.numel()))
            log_z = many.within(domain).log_partition.masked_fill(conflict, NEGATIVE_INFINITY)
            parts.append(log_z.unflatten(0, (some.shape[1], batch)) - self.log_partition)
        return torch.cat(parts)

    def marginals(self) -> Tensor:
        """P(Y_j = 1) [labels, batch]."""
        return (self.components.marginals() * self.responsibilities).sum(1).clamp(0.0, 1.0)

    def select(self, index: Tensor) -> Evaluator:
        """The same mixture for some elements of the batch, by flat index."""
        log_mixing = None if self._log_mixing is None else self._log_mixing[:, index]
        return Evaluator(self.components.select(index), log_mixing)

    def within(self, domain: Domain) -> Evaluator:
        """The same mixture with other observations."""
        return Evaluator(self.components.within(domain), self._log_mixing)

    def _settled(self, known: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The best of a known state [labels, batch] and of every component's k best, and whether it is proven.

        In each component, a state on none of the lists has at most the value of the list's last entry (the threshold
        algorithm of Fagin, Lotem and Naor).
        """
        candidates, least = self.components.ranked(k)
        states, log_probs = self.best_of(torch.cat([known[:, None], candidates], dim=1))
        return states, self._reaches(log_probs, least)

    def _reaches(self, log_probs: Tensor, values: Tensor) -> Tensor:
        """Whether log-probabilities [batch] reach that of a state with these log f_c [components, batch]."""
        upper = log_sum_exp(self.log_mixing + values, 0) - self.log_partition
        return upper <= log_probs + 64 * torch.finfo(log_probs.dtype).eps * (1 + log_probs.abs())
