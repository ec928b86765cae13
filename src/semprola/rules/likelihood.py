"""How much the likelihood of data changes when a rule is dropped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from semprola.compiler import compile
from semprola.compiler.budget import Budget
from semprola.errors import CompilationBudgetError
from semprola.logic import And, Formula


def likelihoods_without(
    rules: Sequence[Formula], labels: Sequence[str], rows: NDArray[np.float32], order: Sequence[int], budget: Budget
) -> dict[int, float]:
    """For each rule, by how much the mean log-likelihood of rows changes if the rule is dropped.

    The likelihood is that of a single circuit with the best weights for the rows, which have a closed form. A rule that
    is dropped lets in states that the rows do not have; they take probability away unless the weights can avoid them.

    Args:
        rows: rows that obey all rules, without empty cells [rows, labels].

    Returns:
        Nats per row.

    Example:
        >>> rows = np.array([[1, 1], [0, 1], [0, 0]], np.float32)
        >>> from semprola.logic import parse
        >>> found = likelihoods_without([parse("a -> b"), parse("a | ~a")], ["a", "b"], rows, [0, 1], Budget())
        >>> {rule: round(change, 3) for rule, change in found.items()}
        {0: -0.182, 1: 0.0}
    """
    found: dict[int, float] = {}
    try:
        whole = _likelihood(rules, labels, rows, budget)
        for number in order:
            rest = [rule for other, rule in enumerate(rules) if other != number]
            found[number] = _likelihood(rest, labels, rows, budget) - whole
    except CompilationBudgetError:
        pass
    return found


def _likelihood(rules: Sequence[Formula], labels: Sequence[str], rows: NDArray[np.float32], budget: Budget) -> float:
    import torch

    from semprola.nn import SPL

    budget.check("comparing likelihoods")
    circuit = compile(And(list(rules)), labels=labels, given=[], timeout=budget.seconds_left, progress=False)
    layer = SPL(1, circuit).double()
    y = torch.from_numpy(rows)
    layer.start_at(y)
    with torch.no_grad():
        p = layer(torch.zeros(1, dtype=torch.float64))
        return float(p.log_prob(y.double()).mean())
