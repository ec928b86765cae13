"""Contradictions of numbers: some rules ask for more labels than others allow, which a flow detects.

Rules that ask for at least some number of labels from disjoint groups are the demand. Rules that allow at most some
number of labels from groups, any two of which are disjoint or nested, are the supply. A label carries one unit from the
rule that asks for it through the rules that limit it. If the demand cannot get through, a minimum cut names rules whose
numbers contradict each other (Hall's condition). A clause solver would need exponentially many steps to see that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from semprola.compiler.counting import counted_literals
from semprola.logic import Formula, Kind, Leaf

_MOST_LABELS, _MOST_SPELLED = 50_000, 1_000
"""With more labels in all rules, or in a family that would be spelled out, numbers are not considered."""


@dataclass(frozen=True)
class Tally:
    """One rule, or a part of one, as a count of labels with two bounds.

    Attributes:
        rule: the number of the rule that it is part of.
        labels: the labels that are counted.
        lowest: at least this many are on.
        highest: at most this many are on.
    """

    rule: int
    labels: frozenset[str]
    lowest: int
    highest: int


def tallies(rules: Sequence[Formula]) -> list[Tally]:
    """The bounds that rules put on numbers of labels; other rules are skipped.

    Example:
        >>> from semprola.logic import parse
        >>> [(t.lowest, t.highest) for t in tallies([parse("exactly(2, a, b, c)"), parse("a | b"), parse("~(a & c)")])]
        [(2, 2), (1, 2), (0, 1)]
    """
    found = []
    for number, rule in enumerate(rules):
        for part in _parts(rule):
            counted = _counted(part)
            if counted is not None:
                names, lowest, highest = counted
                found.append(Tally(number, names, lowest, min(highest, len(names))))
    return found


def overdemand(listed: Sequence[Tally], check: Callable[[], None] | None = None) -> list[int] | None:
    """Rules whose numbers contradict each other; None if none are found.

    Args:
        listed: the tallies of the rules.
        check: called from time to time; may raise an exception to stop.

    Example:
        >>> from semprola.logic import parse
        >>> overdemand(tallies([parse("exactly(2, a, b)"), parse("a | c"), parse("at_most(1, a, b, c)")]))
        [0, 2]
    """
    if sum(len(tally.labels) for tally in listed) > _MOST_LABELS:
        return None
    for demand in _demands(listed):
        core = _Network(demand, listed, check).shortage()
        if core is not None:
            return core
    return None


def _parts(rule: Formula) -> Iterable[Formula]:
    if isinstance(rule, Leaf):
        return (rule.as_rules() or ()) if len(rule.labels()) <= _MOST_SPELLED else ()
    if rule.kind is Kind.AND:
        return rule.args
    return (rule,)


def _counted(rule: Formula) -> tuple[frozenset[str], int, int] | None:
    """The labels that a rule counts, and the bounds; None if it mixes labels and negated labels."""
    counted = counted_literals(rule)
    if counted is not None:
        names, signs = counted
        lowest, highest = rule.bounds
    elif (literals := _clause(rule)) is not None:
        names, signs = literals
        lowest, highest = 1, len(names)
    else:
        return None
    if len(set(signs)) != 1 or not names:
        return None
    if not signs[0]:
        lowest, highest = len(names) - highest, len(names) - lowest
    return frozenset(names), max(0, lowest), highest


def _clause(rule: Formula) -> tuple[tuple[str, ...], tuple[bool, ...]] | None:
    """The literals of a clause: a literal, a disjunction of them, or a negated conjunction of them."""
    sign = True
    if rule.kind is Kind.NOT and rule.args[0].kind is Kind.AND:
        rule, sign = rule.args[0], False
    parts = rule.args if rule.kind is (Kind.OR if sign else Kind.AND) else (rule,)
    names, signs = [], []
    for part in parts:
        atom = part.args[0] if part.kind is Kind.NOT else part
        if atom.kind is not Kind.ATOM:
            return None
        names.append(atom.name)
        signs.append((atom is part) == sign)
    return (tuple(names), tuple(signs)) if len(set(names)) == len(names) else None


def _demands(listed: Sequence[Tally]) -> Iterable[list[Tally]]:
    """Sets of disjoint tallies with a lower bound, chosen by largest share, as written, and by most labels."""
    asked = [tally for tally in listed if tally.lowest > 0]
    if not asked or all(tally.highest == len(tally.labels) for tally in listed):
        return
    tried = set()
    orders: list[Callable[[Tally], float]] = [
        lambda tally: -tally.lowest / len(tally.labels),
        lambda tally: 0,
        lambda tally: -len(tally.labels),
    ]
    for order in orders:
        taken: set[str] = set()
        chosen = []
        for tally in sorted(asked, key=order):
            if taken.isdisjoint(tally.labels):
                chosen.append(tally)
                taken |= tally.labels
        key = frozenset(id(tally) for tally in chosen)
        if key not in tried:
            tried.add(key)
            yield chosen


class _Network:
    """A flow from demands through labels and the limits around them to a sink, unit by unit.

    Nodes are demands, then limits, then labels, then the sink.
    """

    def __init__(self, demand: Sequence[Tally], listed: Sequence[Tally], check: Callable[[], None] | None) -> None:
        self.demand, self.check = demand, check
        self.limits, above, home = _nested(demand, listed)
        names = [name for tally in demand for name in sorted(tally.labels)]
        self.first_label = len(demand) + len(self.limits)
        self.sink = self.first_label + len(names)
        self.label = {name: self.first_label + v for v, name in enumerate(names)}
        # `room[a][b]`: how much more can flow from a to b, including what can be sent back
        self.room: list[dict[int, int]] = [{} for _ in range(self.sink + 1)]
        for d, tally in enumerate(demand):
            self.room[d].update({self.label[name]: 1 for name in sorted(tally.labels)})
        for name, node in self.label.items():
            self.room[node][len(demand) + home[name] if name in home else self.sink] = 1
        for number, (tally, outer) in enumerate(zip(self.limits, above, strict=True)):
            self.room[len(demand) + number][self.sink if outer is None else len(demand) + outer] = tally.highest

    def shortage(self) -> list[int] | None:
        """The rules of a cut that lets too little through."""
        for d, tally in enumerate(self.demand):
            if self.check is not None:
                self.check()
            for _ in range(tally.lowest):
                reached = self._carry(d)
                if reached is not None:
                    return self._rules(reached)
        return None

    def _carry(self, start: int) -> set[int] | None:
        """Send one more unit from a demand; if that is impossible, return the nodes that can be reached from it."""
        came = {start: start}
        stack = [start]
        while stack:
            node = stack.pop()
            if node == self.sink:
                while node != start:
                    before = came[node]
                    self.room[before][node] -= 1
                    self.room[node][before] = self.room[node].get(before, 0) + 1
                    node = before
                return None
            for after, room in self.room[node].items():
                if room and after not in came:
                    came[after] = node
                    stack.append(after)
        return set(came)

    def _rules(self, reached: set[int]) -> list[int]:
        """The rules of a few demands and limits that contradict each other."""
        count = len(self.demand)
        chosen = [d for d in range(count) if d in reached]
        # how much a demand asks for beyond the labels that no limit holds back
        asks = {d: self.demand[d].lowest - sum(node not in reached for node in self._labels(d)) for d in chosen}
        while True:
            limits = self._cut(chosen, reached)
            allowed = sum(self.limits[g].highest for g in limits)
            fewer: list[int] = []
            for d in sorted(chosen, key=lambda d: (-asks[d], d)):
                if sum(asks[e] for e in fewer) <= allowed:
                    fewer.append(d)
            if len(fewer) == len(chosen):
                return sorted({self.demand[d].rule for d in chosen} | {self.limits[g].rule for g in limits})
            chosen = fewer

    def _labels(self, d: int) -> list[int]:
        return [self.label[name] for name in self.demand[d].labels]

    def _cut(self, chosen: Sequence[int], reached: set[int]) -> set[int]:
        """The outermost limits among those reached around the labels of some demands."""
        count = len(self.demand)
        found = set()
        for d in chosen:
            for node in self._labels(d):
                while node in reached:
                    (after,) = (other for other in self.room[node] if self._is_outer(node, other))
                    if after not in reached:
                        found.add(node - count)
                    node = after
        return found

    def _is_outer(self, node: int, other: int) -> bool:
        """Whether the other node is the limit or sink into which a label or limit flows."""
        count = len(self.demand)
        if other == self.sink:
            return True
        return count <= other < self.first_label and (node >= self.first_label or other < node)


def _nested(demand: Sequence[Tally], listed: Sequence[Tally]) -> tuple[list[Tally], list[int | None], dict[str, int]]:
    """Limits that are pairwise disjoint or nested, the next limit around each, and the innermost around each label."""
    wanted = {tally.labels for tally in demand}
    asked = frozenset().union(*wanted)
    limits: list[Tally] = []
    above: list[int | None] = []
    home: dict[str, int] = {}
    binding = [tally for tally in listed if tally.highest < len(tally.labels & asked)]
    for tally in sorted(binding, key=lambda tally: -len(tally.labels)):
        if tally.highest and tally.labels in wanted:
            continue
        inside = tally.labels & asked
        around = {home.get(name) for name in inside}
        # largest first: it is nested if all its labels have the same innermost limit so far
        if len(around) == 1:
            above.append(next(iter(around)))
            limits.append(tally)
            home.update(dict.fromkeys(inside, len(limits) - 1))
    return limits, above, home
