"""Components of several kinds in one mixture, as in an ensemble, or a circuit together with a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from semprola.distributions.components import Components
from semprola.distributions.domain import Domain


class Joined(Components):
    """The components of all parts, in order.

    Args:
        parts: over the same constraint, batch and observations.
    """

    def __init__(self, parts: Sequence[Components]) -> None:
        self._parts = tuple(parts)
        self.domain = self._parts[0].domain
        self.count = sum(part.count for part in self._parts)

    @property
    def is_deterministic(self) -> bool:
        return all(part.is_deterministic for part in self._parts)

    @property
    def size(self) -> int:
        return sum(part.size for part in self._parts)

    @property
    def is_normalized(self) -> bool:
        return all(part.is_normalized for part in self._parts)

    @property
    def log_z(self) -> Tensor:
        return torch.cat([part.log_z for part in self._parts])

    def log_scores(self, y: Tensor, codes: Tensor | None = None) -> Tensor:
        # codes are indices of the first part's weights
        first, *others = self._parts
        return torch.cat([first.log_scores(y, codes), *(part.log_scores(y) for part in others)], dim=1)

    def marginals(self) -> Tensor:
        return torch.cat([part.marginals() for part in self._parts], dim=1)

    def best(self) -> tuple[Tensor, Tensor]:
        states, bounds = zip(*(part.best() for part in self._parts), strict=True)
        return torch.cat(states, dim=1), torch.cat(bounds)

    def ranked(self, k: int) -> tuple[Tensor, Tensor]:
        states, least = zip(*(part.ranked(k) for part in self._parts), strict=True)
        return torch.cat(states, dim=1), torch.cat(least)

    def sample(self, component: Tensor, generator: torch.Generator | None) -> Tensor:
        drawn: Tensor | None = None
        first = 0
        for part in self._parts:
            own = (component - first).clamp(0, part.count - 1)
            states = part.sample(own, generator)
            drawn = states if drawn is None else torch.where(component >= first, states, drawn)
            first += part.count
        if drawn is None:
            raise ValueError("a mixture needs at least one component")
        return drawn

    def entropies(self) -> Tensor:
        return torch.cat([part.entropies() for part in self._parts])

    def select(self, index: Tensor) -> Any:
        return Joined([part.select(index) for part in self._parts])

    def within(self, domain: Domain) -> Any:
        return Joined([part.within(domain.under(part.domain.plans)) for part in self._parts])

    def tilted(self, zeros: Tensor, ones: Tensor) -> Any:
        parts, first = [], 0
        for part in self._parts:
            some = slice(None) if ones.shape[1] == 1 else slice(first, first + part.count)
            parts.append(part.tilted(zeros[:, some], ones[:, some]))
            first += part.count
        return Joined(parts)

    def tempered(self, temperature: Tensor) -> Any:
        own = temperature.split([part.count for part in self._parts])
        return Joined([part.tempered(some) for part, some in zip(self._parts, own, strict=True)])

    def greedy(self) -> Tensor:
        return torch.cat([part.greedy() for part in self._parts], dim=1)
