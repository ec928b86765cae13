"""Circuits of forests, and of hierarchies with exclusive siblings: linear in the number of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from semprola.circuit import Circuit, CircuitBuilder
from semprola.circuit.builder import FALSE
from semprola.circuit.vtree import VtreeBuilder
from semprola.compiler.budget import Budget


@dataclass(frozen=True)
class Siblings:
    """Conditions on the children of a label that is on, and on the roots.

    Attributes:
        nonempty: whether some root must be on.
        mandatory_leaf: whether a label that is on must have a child that is on, unless it is a leaf.
        exclusive: whether at most one of them may be on.
    """

    nonempty: bool = False
    mandatory_leaf: bool = False
    exclusive: bool = False


def forest_circuit(
    names: tuple[str, ...],
    parents_of: Sequence[Sequence[int]],
    children_of: Sequence[Sequence[int]],
    rules: Siblings,
    budget: Budget,
) -> Circuit:
    """The circuit of a forest, or of any hierarchy whose siblings exclude each other.

    If siblings exclude each other, the labels that are on form one path from a root. A label with several parents is
    then never on: its parents would both lie on that path, and the upper one would have two children that are on.
    """
    builder, tree = CircuitBuilder(names), VtreeBuilder(range(len(names)))
    own = [[c for c in children if len(parents_of[c]) == 1] for children in children_of]
    tops = [v for v, parents in enumerate(parents_of) if len(parents) != 1]
    on = [FALSE] * len(names)  # the node "this label is on", including everything below it
    home = list(range(len(names)))
    for v in _children_first(tops, own):
        if len(parents_of[v]) <= 1:
            below = _some_of(builder, [on[c] for c in own[v]], rules.exclusive, rules.mandatory_leaf)
            empty = FALSE if rules.mandatory_leaf and children_of[v] else builder.true()
            on[v] = builder.product([builder.literal(v, True), below if own[v] else empty])
        if own[v]:
            home[v] = tree.pair(v, tree.balanced([home[c] for c in own[v]]))
        budget.check(f"below label {names[v]!r}", len(builder))
    roots = [on[v] for v in tops]
    root = _some_of(builder, roots, rules.exclusive, rules.mandatory_leaf or rules.nonempty)
    vtree = tree.build(tree.balanced([home[v] for v in tops]))
    check = budget.checker("the finished circuit", len(builder))
    return builder.build(root, zero_suppressed=[True] * len(names), vtree=vtree, check=check)


def _some_of(builder: CircuitBuilder, on: list[int], exclusive: bool, at_least_one: bool) -> int:
    """The node that says which siblings may be on together; siblings that it does not mention are off.

    "At least one" is built along a balanced tree of the siblings, which is also their vtree: some of the left half and
    any of the right half, or none of the left and some of the right.
    """
    if exclusive:
        return builder.sum(on if at_least_one else [builder.true(), *on])
    either = [builder.sum([builder.true(), node]) for node in on]
    if not at_least_one:
        return builder.product(either)
    level = list(zip(on, either, strict=True))
    while len(level) > 1:
        joined = []
        for (some_left, any_left), (some_right, any_right) in zip(level[0::2], level[1::2], strict=False):
            some = builder.sum([builder.product([some_left, any_right]), some_right])
            joined.append((some, builder.product([any_left, any_right])))
        level = joined + level[len(joined) * 2 :]
    return level[0][0] if level else FALSE


def _children_first(tops: list[int], children_of: Sequence[Sequence[int]]) -> list[int]:
    order: list[int] = []
    stack = list(tops)
    while stack:
        v = stack.pop()
        order.append(v)
        stack.extend(children_of[v])
    return order[::-1]
