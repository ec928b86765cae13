"""Decoders and samples; the mode is the evaluator's own."""

from __future__ import annotations

import torch
from torch import Tensor

from semprola.distributions import expected
from semprola.distributions.evaluator import Evaluator


def decode(p: Evaluator, utility: str | Tensor) -> Tensor:
    """The best state [labels, batch] for a named utility, or for gains [labels, batch] of a label being 1."""
    with torch.no_grad():
        if isinstance(utility, Tensor):
            return p.domain.best_total(utility)
        if utility == "mode":
            return p.best[0].clone()
        if utility == "hamming":
            # the expected number of right labels is Σ_j P(Y_j = y_j)
            return p.domain.best_total(2 * p.marginals() - 1)
        if utility in ("f1", "jaccard"):
            return expected.decode(p, utility)[0]
        if utility == "greedy":
            states = p.components.greedy()
            return states.gather(1, p.log_mixing.argmax(0).expand(len(states), 1, -1))[:, 0]
    raise ValueError(
        f"decode takes 'mode', 'hamming', 'f1', 'jaccard', 'greedy' or utilities by label, not {utility!r}"
    )


def sample(p: Evaluator, count: int, generator: torch.Generator | None) -> Tensor:
    """Samples [labels, count, batch]."""
    domain = p.domain
    if count == 0:
        return torch.zeros((domain.circuit.num_labels, 0, p.batch), dtype=domain.dtype, device=domain.device)
    component = torch.zeros((count, p.batch), dtype=torch.int64, device=domain.device)
    if p.count > 1:
        component = torch.multinomial(p.responsibilities.T, count, replacement=True, generator=generator).T
    return p.components.sample(component, generator)
