"""Components restricted to a formula: the union of disjoint cases, each of which is evidence."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.distributions.domain import Domain
from semprola.distributions.evaluator import Components
from semprola.distributions.numeric import log_sum_exp, remembered
from semprola.engine.numbers import NEGATIVE_INFINITY


class Cases(Components):
    """The same functions f_c, but zero outside of some disjoint partial assignments.

    Sums over states are sums over the cases; the best state is that of the best case.

    Args:
        rows: the cases, 0, 1 and NaN where open [cases, labels]; no two agree on all labels.
    """

    def __init__(self, base: Components, rows: Tensor, domain: Domain) -> None:
        self.domain, self.count, self._base, self._rows = domain, base.count, base, rows
        self._parts: list[Components] = []
        possible = []
        for row in rows:
            narrowed, conflict = base.domain.observe(row[:, None].expand(-1, base.batch).clone())
            self._parts.append(base.within(narrowed))
            possible.append(~conflict)
        self._possible = torch.stack(possible)[:, None]

    @property
    def is_deterministic(self) -> bool:
        return self._base.is_deterministic

    @property
    def size(self) -> int:
        return len(self._parts) * self._base.size

    @property
    def log_z(self) -> Tensor:
        return log_sum_exp(self._log_parts, 0)

    @remembered
    def _log_parts(self) -> Tensor:
        """log Z of every case [cases, components, batch]."""
        return torch.stack([part.log_z for part in self._parts]).masked_fill(~self._possible, NEGATIVE_INFINITY)

    @property
    def _shares(self) -> Tensor:
        """The probability of every case [cases, components, batch]; zero if no case is possible."""
        total = self.log_z
        return torch.exp(self._log_parts - total.masked_fill(total == NEGATIVE_INFINITY, 0.0))

    def log_scores(self, y: Tensor) -> Tensor:
        differs = [((y != row[:, None, None]) & ~row.isnan()[:, None, None]).any(0) for row in self._rows]
        outside = torch.stack(differs).all(0)
        return self._base.log_scores(y).masked_fill(outside[:, None], NEGATIVE_INFINITY)

    def marginals(self) -> Tensor:
        return self._averaged([part.marginals() for part in self._parts])

    def best(self) -> tuple[Tensor, Tensor]:
        found = [part.best() for part in self._parts]
        bounds = torch.stack([bound for _, bound in found]).masked_fill(~self._possible, NEGATIVE_INFINITY)
        if self.count > 1 or not self.is_deterministic:
            return torch.cat([states for states, _ in found], dim=1), bounds.amax(0)
        states = torch.stack([states for states, _ in found])  # [cases, labels, 1, batch]
        place = bounds.argmax(0)[None, None].expand(1, states.shape[1], -1, -1)
        return states.gather(0, place)[0], bounds.amax(0)

    def ranked(self, k: int) -> tuple[Tensor, Tensor]:
        found = [part.ranked(k) for part in self._parts]
        least = torch.stack([bound for _, bound in found]).masked_fill(~self._possible, NEGATIVE_INFINITY)
        return torch.cat([states for states, _ in found], dim=1), least.amax(0)

    def sample(self, component: Tensor, generator: torch.Generator | None) -> Tensor:
        shares = self._shares.gather(1, component[None].expand(len(self._parts), -1, -1))
        # an impossible row is never drawn from, so any case will do
        shares = torch.where(shares.sum(0) > 0, shares, torch.ones_like(shares))
        drawn = torch.multinomial(shares.flatten(1).T, 1, generator=generator)[:, 0].view(component.shape)
        states = self._parts[0].sample(component, generator)
        for number, part in enumerate(self._parts[1:], start=1):
            states = torch.where(drawn == number, part.sample(component, generator), states)
        return states

    def entropies(self) -> Tensor:
        surprise: Tensor = torch.special.entr(self._shares)
        return self._averaged([part.entropies()[None] for part in self._parts])[0] + surprise.sum(0)

    def select(self, index: Tensor) -> Any:
        return Cases(self._base.select(index), self._rows, self.domain.select(index))

    def within(self, domain: Domain) -> Any:
        return Cases(self._base.within(domain.under(self._base.domain.plans)), self._rows, domain)

    def tilted(self, zeros: Tensor, ones: Tensor) -> Any:
        return Cases(self._base.tilted(zeros, ones), self._rows, self.domain)

    def tempered(self, temperature: Tensor) -> Any:
        return Cases(self._base.tempered(temperature), self._rows, self.domain)

    def _averaged(self, parts: list[Tensor]) -> Tensor:
        """The mean of [..., components, batch] over the cases; impossible cases count nothing."""
        total = torch.zeros_like(parts[0])
        for part, share in zip(parts, self._shares, strict=True):
            total = total + torch.where(share > 0, part * share, 0.0)
        return total
