"""Counting over whole sequences of tags: formulas such as ``at_most(2, ["B-PER"])``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from semprola.errors import LabelError
from semprola.logic import Formula, Kind, Leaf
from semprola.logic.evaluate import evaluate_columns
from semprola.logic.messages import brief
from semprola.sequences.machines import TagMachine


def counts_in(rule: Formula, tags: Sequence[str]) -> list[Formula]:
    """The parts of a rule that count over a whole sequence: counts of nothing but tags.

    Example:
        >>> from semprola.logic import parse
        >>> counts_in(parse("at_most(2, B) | exactly(1, I)"), ["B", "I", "O"])
        [at_most(2, B), exactly(1, I)]
        >>> counts_in(parse('exactly(1, "prev=B", "next=B")'), ["B", "I", "O"])
        []
    """
    known = set(tags)
    found: list[Formula] = []
    outside = False
    pending, seen = [rule], {rule}
    while pending:
        node = pending.pop()
        if isinstance(node, Leaf) and known.intersection(node.labels):
            raise LabelError(
                f"a family over tags is unclear for sequences: write {brief(node)} with sp.at_most and others"
            )
        if _counts(node, known):
            found.append(node)
        elif node.kind is Kind.ATOM:
            outside = True
        else:
            new = [part for part in node.args if part not in seen]
            seen.update(new)
            pending += reversed(new)
    if found and outside:
        raise LabelError(
            f"{brief(rule)} is unclear: {brief(found[0])} counts over the whole sequence, the rest is per position"
        )
    return found


def count_machine(rule: Formula, counts: Sequence[Formula], tags: Sequence[str]) -> TagMachine:
    """The automaton of a rule about counts; a state has the numbers so far, as far as they matter."""
    least_most = [(count.bounds[0], None if count.is_at_least else count.bounds[1]) for count in counts]
    caps = [least if most is None else most + 1 for least, most in least_most]
    gains = [
        [sum(bool(part.evaluate({name: name == tag for name in tags})) for part in count.args) for count in counts]
        for tag in tags
    ]

    nothing = dict.fromkeys(rule.labels, np.zeros(1, bool))  # inside of a count, nothing is asked

    def step(state: tuple[int, ...], tag: int) -> tuple[int, ...]:
        return tuple(min(n + gain, cap) for n, gain, cap in zip(state, gains[tag], caps, strict=True))

    def accepts(state: tuple[int, ...]) -> bool:
        holds = [n >= least and (most is None or n <= most) for n, (least, most) in zip(state, least_most, strict=True)]
        known = {count: np.array([holds_it]) for count, holds_it in zip(counts, holds, strict=True)}
        return bool(evaluate_columns(rule, nothing, 1, known)[0])

    return TagMachine.explored((0,) * len(counts), step, accepts, len(tags))


def _counts(node: Formula, tags: set[str]) -> bool:
    """Whether a node counts tags, and not other counts or tags of neighbours."""
    if node.kind is not Kind.CARDINALITY or not node.args or not tags.issuperset(node.labels):
        return False
    return not any(part.kind is Kind.CARDINALITY for arg in node.args for part in arg.nodes())
