"""The circuits q that a two-circuit layer multiplies with the constraint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor

from semprola.circuit import Circuit
from semprola.compiler import restructure
from semprola.distributions import CompatibleDistribution, ConstrainedDistribution, ProductDistribution
from semprola.distributions.domain import Domain
from semprola.distributions.evaluator import Components
from semprola.distributions.independent import IndependentLabels
from semprola.distributions.product import CompatibleCircuits, product_evaluator
from semprola.engine import CircuitPlans, CompatiblePlans
from semprola.nn.gate import positive


class Q(ABC):
    """A circuit q over the labels, and its product with a constraint. To add one, pass a subclass as ``q=``.

    Args:
        circuit: the compiled constraint.
        units: the user's choice, or None.

    Attributes:
        plans: plans of the constraint, or of an equivalent circuit with another structure.
        num_parameters: number of parameters per component.
        units: number of hidden states; 1 for none.
        has_symmetry: whether units start equal and need noise to become different.
    """

    plans: CircuitPlans
    num_parameters: int
    units: int = 1
    has_symmetry: bool = False

    @abstractmethod
    def __init__(self, circuit: Circuit, units: int | None) -> None: ...

    @abstractmethod
    def components(self, domain: Domain, parameters: Tensor, count: int) -> Components:
        """q times the constraint, for parameters [parameters, components * batch]; zeros should make q uniform."""

    @abstractmethod
    def independent(self, odds: Tensor) -> Tensor:
        """Parameters [parameters] for which q is (close to) independent labels with these log-odds [labels]."""

    def distribution(self, parameters: Tensor, mixing: Tensor | None, given: Any) -> ConstrainedDistribution:
        """The distribution for parameters [*batch, components, parameters] and mixing logits [*batch, components]."""
        return ConstrainedDistribution(*product_evaluator(self.plans, parameters, mixing, given, self.components))


class Factorized(Q):
    """Independent labels."""

    def __init__(self, circuit: Circuit, units: int | None) -> None:
        if units is not None:
            raise ValueError("units= is for q='hmm' and q='vtree': a factorized q has no units, use components=")
        self.plans = CircuitPlans(circuit)
        self.plans.prepare_constraint()
        self.num_parameters = circuit.num_labels

    def components(self, domain: Domain, parameters: Tensor, count: int) -> Components:
        return IndependentLabels(domain, parameters, count)

    def independent(self, odds: Tensor) -> Tensor:
        return odds

    def distribution(self, parameters: Tensor, mixing: Tensor | None, given: Any) -> ProductDistribution:
        return ProductDistribution(self.plans, parameters, mixing, given)


class OverVtree(Q):
    """A circuit over the constraint's vtree."""

    kind = "vtree"
    has_symmetry = True

    def __init__(self, circuit: Circuit, units: int | None) -> None:
        self.units = 2 if units is None else positive(units, "units")
        self.compatible = CompatiblePlans(self._structured(circuit), self.units, self.kind)
        self.compatible.prepare_layer()
        self.plans, self.num_parameters = self.compatible, self.compatible.num_parameters

    def components(self, domain: Domain, parameters: Tensor, count: int) -> Components:
        return CompatibleCircuits(self.compatible, domain, parameters, count)

    def independent(self, odds: Tensor) -> Tensor:
        return self.compatible.independent(odds)

    def distribution(self, parameters: Tensor, mixing: Tensor | None, given: Any) -> CompatibleDistribution:
        return CompatibleDistribution(self.compatible, parameters, mixing, given)

    def _structured(self, circuit: Circuit) -> Circuit:
        """The circuit, rebuilt along a vtree if it does not respect one."""
        return circuit if circuit.is_structured else restructure(circuit, linear=False)


class HiddenMarkov(OverVtree):
    """A hidden Markov model along the circuit's variable order."""

    kind = "hmm"

    def _structured(self, circuit: Circuit) -> Circuit:
        linear = circuit.vtree is not None and circuit.vtree.is_right_linear and circuit.is_structured
        return circuit if linear else restructure(circuit, linear=True)


KINDS: dict[str, type[Q]] = {"factorized": Factorized, "hmm": HiddenMarkov, "vtree": OverVtree}
"""The names that ``q=`` accepts."""
