"""The back end for mixtures of rules: each is a state machine, and all read the variables together in one order."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from semprola.circuit import Circuit
from semprola.compiler.backends import Components
from semprola.compiler.backends.automata.machine import Machine, Product, TooWideError, conjoined, growing
from semprola.compiler.backends.automata.order import candidate_orders, scope_of
from semprola.compiler.backends.automata.rules import Machines
from semprola.compiler.budget import Budget
from semprola.compiler.diagram import smallest_diagram
from semprola.compiler.join import join_circuits
from semprola.errors import UnsatisfiableError
from semprola.logic import Formula

MOST_STATES = 8_000_000
"""The most joint states, unless the budget allows fewer."""
_FREE = 20_000
"""This many joint states take no time and are allowed whatever the limit on nodes."""
_MANY = 600_000
"""There may be eight times as many joint states as nodes, but no more than twice as many plus this number."""
_MOST_RULE = 20_000
"""The most states that one rule may have."""
_TRIED = 3
_CLEAR = 3000
"""With at most this many joint states, no other order is tried."""
_GROWTH, _FEW = 8, 200
"""Joining shorter rules to a rule may multiply its states by this factor, plus a few."""
_MARGIN = 6.0
"""Orders whose cost (a logarithm to base 2) exceeds the best by more than this are not tried."""


def compile_automata(components: Components, budget: Budget, given: Collection[str] = ()) -> Circuit:
    """A circuit that is a decision diagram, binary or zero-suppressed, whichever is smaller; see `Backend`.

    It is structured by a variable order, without the variables that do not matter.
    """
    parts = [Joint(component, budget, given).compile(budget.max_nodes) for component in components]
    names = tuple(dict.fromkeys(name for part in parts for name in part.variables))
    return parts[0] if len(parts) == 1 else join_circuits(parts, {}, names)


class Joint:
    """One group of rules that share variables."""

    def __init__(self, conjuncts: Sequence[Formula], budget: Budget, given: Collection[str] = ()) -> None:
        self.budget, self.given = budget, frozenset(given)
        self.rules = list(dict.fromkeys(conjuncts))
        self.names = tuple(dict.fromkeys(name for rule in self.rules for name in rule.labels))
        self.index = {name: v for v, name in enumerate(self.names)}
        self.scopes = [scope_of(rule, [self.index[name] for name in rule.labels]) for rule in self.rules]
        self._circuits: dict[Formula, Circuit | None] = {}
        self._orders: list[tuple[float, list[int]]] | None = None
        self._products: dict[int, Product] = {}
        self._machines: Machines | None = None
        self._failed = False

    @property
    def orders(self) -> list[tuple[float, list[int]]]:
        """Orders worth trying, the best first, each with its cost (see `candidate_orders`)."""
        if self._orders is None:
            check = self.budget.checker("choosing a variable order")
            self._orders = candidate_orders(len(self.names), self.scopes, check)
        return self._orders

    def compile(self, max_nodes: int | None, final: bool = True) -> Circuit:
        """The circuit, if it has at most this many nodes; another call with a higher limit goes on where this stopped.

        Args:
            final: whether this is the last call, so that every order must be tried now.
        """
        most = MOST_STATES
        if max_nodes is not None:
            most = min(MOST_STATES, max(_FREE, 8 * max_nodes), 2 * max_nodes + _MANY)
        self._failed |= final
        try:
            return self._circuit(self._expanded(most))
        except TooWideError:
            raise self.budget.limited(max_nodes or MOST_STATES).error("nodes", most) from None

    def has_no_model(self, rules: Sequence[Formula], most: int) -> bool | None:
        """Whether these rules contradict each other; None if there are more joint states than `most`."""
        if self._machines is None:
            self._machines = self._reader(self.orders[0][1])
        try:
            found = [self._machines.of(rule) for rule in rules]
            alive = [machine for machine in found if machine is not None]
            if len(alive) < len(found):
                return True
            return conjoined(absorbed(alive, self._machines.place), self._machines.place, most) is None
        except TooWideError:
            return None
        except UnsatisfiableError:
            return True

    def _expanded(self, most: int) -> Product:
        """The joint states of all rules along the best of a few orders."""
        least = self.orders[0][0]
        limit = most
        best: Product | None = None
        for number, (cost, order) in enumerate(self.orders[:_TRIED]):
            if cost > least + _MARGIN:
                break
            try:
                if number not in self._products:
                    self._products[number] = self._product(order)
                product = self._products[number]
                for size in growing(product, limit):
                    self.budget.watch("following all rules along an order", size)
            except TooWideError:
                if not self._failed:
                    # other back ends may be quicker than a second order; if not, there will be another call
                    self._failed = True
                    break
                continue
            best, limit = product, product.size - 1
            if limit <= _CLEAR:
                break
        if best is None:
            raise TooWideError
        return best

    def _circuit(self, product: Product) -> Circuit:
        """The reduced diagram of joint states as a circuit over the variables that matter."""
        if not product.variables:
            return join_circuits([], {}, ())
        levels = product.levels()
        if not len(levels.low[-1]):
            raise UnsatisfiableError("the constraint has no model")
        names = [self.names[v] for v in product.variables]
        return smallest_diagram(levels, names, self.budget.part("the diagram of all rules", most=None), self.given)

    def _reader(self, order: list[int]) -> Machines:
        place = [0] * len(order)
        for position, v in enumerate(order):
            place[v] = position
        return Machines(self.index, place, _MOST_RULE, self.budget, self._circuits)

    def _product(self, order: list[int]) -> Product:
        machines = self._reader(order)
        found = []
        for rule in self.rules:
            machine = machines.of(rule)
            if machine is None:
                raise UnsatisfiableError("the constraint has no model")
            found.append(machine)
            self.budget.check("following the rules along an order")
        return Product(absorbed(found, machines.place), machines.place)


def absorbed(machines: Sequence[Machine], place: Sequence[int]) -> list[Machine]:
    """Fewer machines with the same conjunction.

    A rule whose variables are among those of a longer rule is joined to it: that rules out some of its states. A longer
    rule that follows from the shorter ones is dropped.
    """
    ordered = sorted((machine for machine in machines if machine.variables), key=lambda m: len(m.variables))
    kept: list[Machine | None] = []
    holding: dict[int, list[int]] = {}
    for machine in ordered:
        own = set(machine.variables)
        near = dict.fromkeys(i for v in machine.variables for i in holding.get(v, ()))
        inside = [i for i in near if (other := kept[i]) is not None and own.issuperset(other.variables)]
        if inside:
            merged = _merged(machine, [other for i in inside if (other := kept[i]) is not None], place)
            if merged is None:
                continue
            if merged is not machine:
                for i in inside:
                    kept[i] = None
                machine = merged
        for v in machine.variables:
            holding.setdefault(v, []).append(len(kept))
        kept.append(machine)
    return [machine for machine in kept if machine is not None]


def _merged(machine: Machine, inside: Sequence[Machine], place: Sequence[int]) -> Machine | None:
    """A machine joined with some over a part of its variables; None if they imply it, itself if they get too large."""
    most = _GROWTH * machine.size + _FEW
    try:
        without = conjoined(inside, place, most)
        if without is None:
            raise UnsatisfiableError("the constraint has no model")
        both = conjoined([without, machine], place, most)
    except TooWideError:
        return machine
    if both is None:
        raise UnsatisfiableError("the constraint has no model")
    return None if both.same_as(without) else both
