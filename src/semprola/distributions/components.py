"""The components of a mixture, and the one interface through which all queries use them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from semprola.distributions.domain import Domain


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
