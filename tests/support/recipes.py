"""CONTRIBUTING.md's recipes, followed: a pytest plugin that adds one thing of each kind, and lists it once.

`tests/test_recipes.py` runs other test files with ``-p recipes`` and looks whether what is new is tested there.
Whatever is called wrong has a mistake that has to be found.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import worlds
import zoo
from numpy.typing import NDArray
from torch import Tensor

from semprola.circuit import Circuit
from semprola.compiler import portfolio
from semprola.compiler.backends import Components
from semprola.compiler.budget import Budget
from semprola.compiler.diagram import decision_diagram
from semprola.constraints.family import Family, label_names
from semprola.distributions.circuits import CircuitComponents
from semprola.distributions.domain import Domain
from semprola.engine import CircuitPlans, Plan
from semprola.engine.backends import BACKENDS
from semprola.engine.backends.torch import TorchBackend
from semprola.logic import And
from semprola.nn import Q

# a constraint family --------------------------------------------------------------------------------------------------


class Odd(Family):
    """An odd number of labels is true."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.names = label_names(labels, "odd")

    def key(self) -> Hashable:
        return self.names

    def describe(self) -> str:
        return f"recipe_family({len(self.names)} labels)"

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        return sum((columns[name].astype(int) for name in self.names), np.zeros(rows, int)) % 2 == 1

    def _build(self, budget: Budget) -> Circuit:
        return decision_diagram(self.names, 0, self._step, lambda ones: ones == 1, zero_suppressed=False, budget=budget)

    def _step(self, ones: int, _position: int, value: int) -> int:
        return (ones + value) % 2


class WrongOdd(Odd):
    """Says odd, and builds even."""

    def describe(self) -> str:
        return "recipe_family_wrong"

    def _step(self, ones: int, position: int, value: int) -> int:
        return 1 - value if position == 0 else super()._step(ones, position, value)


# a compiler back end --------------------------------------------------------------------------------------------------


def compile_states(components: Components, budget: Budget, given: Collection[str] = ()) -> Circuit:
    """A diagram of all assignments, before its reduction."""
    whole = And([rule for component in components for rule in component])
    names = whole.labels

    def accept(bits: tuple[int, ...]) -> bool:
        return bool(whole.evaluate(dict(zip(names, bits, strict=True))))

    return decision_diagram(
        names, (), lambda bits, _, value: (*bits, value), accept, zero_suppressed=False, budget=budget
    )


def compile_wrong(components: Components, budget: Budget, given: Collection[str] = ()) -> Circuit:
    """Forgets rules."""
    return compile_states([component[:1] for component in components], budget, given)


# an engine back end ---------------------------------------------------------------------------------------------------


class Engine(TorchBackend):
    """Does one thing in a way of its own."""

    name = "recipe_engine"

    def takes(self, tensors: Sequence[Tensor]) -> bool:
        return all(t.is_cpu and t.dtype in (torch.float32, torch.float64) for t in tensors)

    def maximize(self, plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor]:
        parts = [
            super(Engine, self).maximize(plan, None if weights is None else weights[:, c : c + 1], leaves[:, c : c + 1])
            for c in range(leaves.shape[1])
        ]
        if not parts:
            return super().maximize(plan, weights, leaves)
        return torch.cat([value for value, _ in parts]), torch.cat([literals for _, literals in parts], 1)


class WrongEngine(Engine):
    """Forgets the weights."""

    name = "recipe_engine_wrong"

    def maximize(self, plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor]:
        return super().maximize(plan, None, leaves)


# a q circuit ----------------------------------------------------------------------------------------------------------


class TwoOdds(CircuitComponents):
    """The labels of the first half share their log-odds, and those of the second half theirs."""

    def __init__(self, domain: Domain, parameters: Tensor, count: int) -> None:
        self.domain, self.parameters, self.count = domain, parameters, count

    @property
    def is_deterministic(self) -> bool:
        return True

    @property
    def weights(self) -> None:
        return None

    def plan(self, *, explicit: bool) -> Plan:
        return self.domain.plans.constraint_explicit if explicit else self.domain.plans.constraint

    def scores(self) -> tuple[Tensor, Tensor]:
        labels = self.domain.circuit.num_labels
        odds = self.parameters[torch.arange(labels) * 2 // labels]
        given = odds.new_zeros((len(self.domain.circuit.given), odds.shape[1]))
        zeros, ones = (torch.nn.functional.logsigmoid(sign * odds) for sign in (-1, 1))
        return torch.cat([zeros, given]), torch.cat([ones, given])

    def log_scores(self, y: Tensor, codes: Tensor | None = None) -> Tensor:
        zeros, ones = (part[: len(y)].view(len(y), 1, self.count, self.batch) for part in self.scores())
        scores = torch.where(y[:, :, None] > 0.5, ones, zeros).sum(0)
        return scores.masked_fill(~self.domain.satisfied(y)[:, None], -torch.inf)

    def _taken(self, index: Tensor) -> Any:
        return type(self)(self.domain, self.columns(self.parameters, index), self.count)


class TwoOddsQ(Q):
    """Two parameters."""

    made: type[TwoOdds] = TwoOdds

    def __init__(self, circuit: Circuit, units: int | None) -> None:
        self.plans, self.num_parameters = CircuitPlans(circuit), 2

    def components(self, domain: Domain, parameters: Tensor, count: int) -> TwoOdds:
        return self.made(domain, parameters, count)

    def independent(self, odds: Tensor) -> Tensor:
        return odds.mean().expand(2)


class WrongTwoOdds(TwoOdds):
    """Does not know the constraint."""

    def log_scores(self, y: Tensor, codes: Tensor | None = None) -> Tensor:
        return super().log_scores(y, codes).clamp(min=-100.0)


class WrongQ(TwoOddsQ):
    """Made of them."""

    made = WrongTwoOdds


def pytest_configure() -> None:
    """List everything, in the one place that its recipe names; only as a plugin, not where this file is imported."""
    zoo.FAMILIES.append(zoo.Case("recipe_family", lambda: Odd(zoo.names(5))))
    zoo.FAMILIES.append(zoo.Case("recipe_family_wrong", lambda: WrongOdd(zoo.names(3))))
    zoo.CASES.extend(zoo.FAMILIES[-2:])
    portfolio.BACKENDS["recipe_compiler"] = compile_states
    portfolio.BACKENDS["recipe_compiler_wrong"] = compile_wrong
    BACKENDS[-1:-1] = [Engine(), WrongEngine()]
    worlds.LAYERS["recipe_q"] = {"q": TwoOddsQ, "components": 2}
    worlds.LAYERS["recipe_q_wrong"] = {"q": WrongQ}
