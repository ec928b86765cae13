"""A mixture of components over a flat batch, without names or shapes. Every query is written in terms of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from semprola.distributions.arguments import is_hidden
from semprola.distributions.domain import Domain
from semprola.distributions.numeric import log_sum_exp, remembered
from semprola.engine.numbers import NEGATIVE_INFINITY


class Components(ABC):
    """Functions f_c(y) ≥ 0 over the states of a domain, for every element of a flat batch.

    A distribution is a mixture of them, p(y) = Σ_c π_c f_c(y) / Z. Every query is written once in terms of the methods
    below. To add a q that is a circuit, do not implement them; subclass
    :class:`semprola.distributions.circuits.CircuitComponents`, which needs little more than parameters and a plan.

    Attributes:
        domain: which states are allowed.
        count: number of components.
    """

    domain: Domain
    count: int

    @property
    def batch(self) -> int:
        """Number of elements of the batch."""
        return self.domain.batch

    @property
    @abstractmethod
    def is_deterministic(self) -> bool:
        """Whether `best` finds each component's exact maximum, and `entropies` are exact."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Roughly how many numbers it takes to evaluate all components for one element of the batch."""

    @property
    def is_normalized(self) -> bool:
        """Whether `log_z` is known to be zero."""
        return False

    @property
    @abstractmethod
    def log_z(self) -> Tensor:
        """log Σ_y f_c(y) [components, batch]."""

    @property
    def log_z_alone(self) -> Tensor:
        """log Z of the only component [batch]."""
        return self.log_z[0]

    def log_probs_alone(self, y: Tensor) -> Tensor | None:
        """log f(y) / Z [samples, batch] of the only component, for y [labels, samples, batch].

        None if there is no shorter way than through `log_scores` and `log_z`.
        """
        return None

    def best_alone(self) -> Tensor:
        """The most probable state of the only component, which is deterministic [labels, batch]."""
        return self.best()[0][:, 0]

    @abstractmethod
    def log_scores(self, y: Tensor) -> Tensor:
        """log f_c(y) [samples, components, batch] of y [labels, samples, batch]; -inf where y violates the constraint.

        The caller takes care of evidence.
        """

    @abstractmethod
    def marginals(self) -> Tensor:
        """P(Y_j = 1) in each component [labels, components, batch]."""

    @abstractmethod
    def best(self) -> tuple[Tensor, Tensor]:
        """Candidates for the mode [labels, candidates, batch], and upper bounds on max log f_c [components, batch]."""

    @abstractmethod
    def ranked(self, k: int) -> tuple[Tensor, Tensor]:
        """Candidates for the k best states [labels, candidates, batch], and log f_c of each component's k-th best.

        If components are deterministic, the candidates include the k best of each, so no other state has a larger value
        than the second result [components, batch].
        """

    @abstractmethod
    def sample(self, component: Tensor, generator: torch.Generator | None) -> Tensor:
        """One sample from each listed component [labels, samples, batch]; component is [samples, batch]."""

    @abstractmethod
    def entropies(self) -> Tensor:
        """Entropy of each component [components, batch]; an upper bound if components are not deterministic."""

    @abstractmethod
    def select(self, index: Tensor) -> Any:
        """The same components for some elements of the batch, by flat index."""

    @abstractmethod
    def within(self, domain: Domain) -> Any:
        """The same components with other observations."""

    @abstractmethod
    def tilted(self, zeros: Tensor, ones: Tensor) -> Any:
        """f_c(y) times Π_j exp(ones_j if y_j else zeros_j), for scores [labels, components or 1, batch].

        Results then have the type of the scores.
        """

    def expected_log_scores(self, other: Components) -> Tensor | None:
        """E[log f'(y)] under each component [components, batch], where f' is the only component of `other`.

        None if intractable.
        """
        return None

    def tempered(self, temperature: Tensor) -> Any:
        """The same with the parameters of each component divided by a positive number [components]."""
        raise TypeError(f"{type(self).__name__} has no temperature")

    def greedy(self) -> Tensor:
        """The states that the published decoder finds [labels, components, batch]."""
        raise ValueError("decode('greedy') is the published decoder of single-circuit layers; use 'mode'")


_LISTED = 256
"""If a mixture has at most this many states and its mode is not proven, all states are listed."""
_MOST_NUMBERS = 2**24
"""Largest tensor (in numbers) made to evaluate several samples at once; larger jobs are split."""
_RANKED = (4, 32)
"""Numbers of best states per component to try, one after the other, until the mode of a mixture is proven."""


class Evaluator:
    """p(y) = Σ_c π_c f_c(y) / Z over a flat batch, which comes last in every tensor.

    Args:
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

    def sample(self, count: int, generator: torch.Generator | None) -> Tensor:
        """Samples [labels, count, batch]."""
        domain = self.domain
        if count == 0:
            return torch.zeros((domain.circuit.num_labels, 0, self.batch), dtype=domain.dtype, device=domain.device)
        component = torch.zeros((count, self.batch), dtype=torch.int64, device=domain.device)
        if self.count > 1:
            component = torch.multinomial(self.responsibilities.T, count, replacement=True, generator=generator).T
        return self.components.sample(component, generator)

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
