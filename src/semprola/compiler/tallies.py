"""Contradictions of numbers: some rules ask for more labels than others allow, which a flow detects.

Rules that ask for at least some number of labels from disjoint groups are the demand. Rules that allow at most some
number of labels from groups, any two of which are disjoint or nested, are the supply. A label carries one unit from the
rule that asks for it through the rules that limit it. If the demand cannot get through, a minimum cut names rules whose
numbers contradict each other (Hall's condition). A clause solver would need exponentially many steps to see that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import networkx as nx

from semprola.compiler.parts import counted_literals
from semprola.logic import Formula, Kind, Leaf
from semprola.logic.rules import literals_of

_SOURCE, _SINK = ("source",), ("sink",)
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
    """The bounds that rules put on numbers of labels; other rules are skipped."""
    found = []
    for number, rule in enumerate(rules):
        for part in _parts(rule):
            counted = _counted(part)
            if counted is not None:
                names, lowest, highest = counted
                found.append(Tally(number, names, lowest, min(highest, len(names))))
    return found


def overdemand(listed: Sequence[Tally]) -> list[int] | None:
    """Rules whose numbers contradict each other; None if none are found."""
    if sum(len(tally.labels) for tally in listed) > _MOST_LABELS:
        return None
    for demand in _demands(listed):
        core = _shortage(demand, listed)
        if core is not None:
            return core
    return None


def _parts(rule: Formula) -> Iterable[Formula]:
    if isinstance(rule, Leaf):
        return (rule.as_rules() or ()) if len(rule.labels) <= _MOST_SPELLED else ()
    if rule.kind is Kind.AND:
        return rule.args
    return (rule,)


def _counted(rule: Formula) -> tuple[frozenset[str], int, int] | None:
    """The labels that a rule counts, and the bounds; None if it mixes labels and negated labels."""
    counted = counted_literals(rule)
    literals = _clause(rule) if counted is None else dict(zip(*counted, strict=True))
    if not literals or len({*literals.values()}) != 1:
        return None
    lowest, highest = (1, len(literals)) if counted is None else rule.bounds
    if not next(iter(literals.values())):
        lowest, highest = len(literals) - highest, len(literals) - lowest
    return frozenset(literals), max(0, lowest), highest


def _clause(rule: Formula) -> dict[str, bool] | None:
    """The literals of a clause: a literal, a disjunction of them, or a negated conjunction of them."""
    if rule.kind is Kind.NOT and rule.args[0].kind is Kind.AND:
        found = literals_of(rule.args[0].args)
        return None if found is None else {name: not sign for name, sign in found.items()}
    return literals_of(rule.args if rule.kind is Kind.OR else (rule,))


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


def _shortage(demand: Sequence[Tally], listed: Sequence[Tally]) -> list[int] | None:
    """The rules of a minimum cut between demands and what the limits let through; None if all demands are met."""
    limits, above, home = _nested(demand, listed)
    graph = nx.DiGraph()
    graph.add_nodes_from([_SOURCE, _SINK])
    for d, tally in enumerate(demand):
        graph.add_edge(_SOURCE, ("demand", d), capacity=tally.lowest)
        for inner, labels in Counter(home.get(name) for name in tally.labels).items():
            graph.add_edge(("demand", d), _SINK if inner is None else ("limit", inner), capacity=labels)
    outer = [_SINK if around is None else ("limit", around) for around in above]
    for g, tally in enumerate(limits):
        graph.add_edge(("limit", g), outer[g], capacity=tally.highest)
    value, (reached, _) = nx.minimum_cut(graph, _SOURCE, _SINK)
    if value == sum(tally.lowest for tally in demand):
        return None
    full = [tally for g, tally in enumerate(limits) if ("limit", g) in reached and outer[g] not in reached]
    allowed = sum(tally.highest for tally in full)
    # how much each demand asks for beyond the labels that no limit holds back; a few may already ask for too much
    held = {name for name, inner in home.items() if ("limit", inner) in reached}
    asks = [
        (tally.lowest - len(tally.labels - held), tally.rule)
        for d, tally in enumerate(demand)
        if ("demand", d) in reached
    ]
    rules = {tally.rule for tally in full}
    for ask, rule in sorted(asks, key=lambda pair: -pair[0]):
        if allowed >= 0:
            rules.add(rule)
            allowed -= ask
    return sorted(rules)


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
