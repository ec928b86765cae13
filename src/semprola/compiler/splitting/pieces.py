"""Takes rules apart into the pieces that circuits are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from semprola.compiler.contradiction import written_rules
from semprola.errors import UnsatisfiableError
from semprola.logic import FALSE, TRUE, Cnf, Formula, Leaf
from semprola.logic.rewrite import simplify, substitute
from semprola.logic.rules import conjuncts, literal_of

_MOST_NODES = 20_000
"""A formula with more nodes is not taken apart for the sake of a message."""


@dataclass(frozen=True)
class Piece:
    """A part of a rule.

    Attributes:
        formula: what it says.
        rule: the number of the rule that it is part of.
        closed: whether it is a block as it is, because its family chose it as one.
    """

    formula: Formula
    rule: int
    closed: bool = False


def can_split(constraint: Formula) -> bool:
    """Whether a constraint has several pieces and no inputs, so that `semprola.split` can make circuits of them.

    Example:
        >>> from semprola.logic import parse
        >>> can_split(parse("(a -> b) & (b -> c)")), can_split(parse("a ^ b ^ c"))
        (True, False)
    """
    if isinstance(constraint, Cnf):
        return constraint.num_clauses > 1
    nodes = constraint.nodes()
    if len(nodes) > _MOST_NODES:
        return True
    if any(isinstance(node, Leaf) and node.given for node in nodes):
        return False
    rules = written_rules(constraint)
    return len(rules) > 1 or sum(len(_parts(rule, 0)) for rule in rules) > 1


def pieces_of(rules: Sequence[Formula]) -> tuple[list[Piece], dict[str, bool]]:
    """The parts of rules, without the labels that rules fix, and these labels."""
    pieces = [piece for number, rule in enumerate(rules) for piece in _parts(rule, number)]
    facts: dict[str, bool] = {}
    while True:
        found = dict(fact for piece in pieces if (fact := literal_of(piece.formula)) is not None)
        if any(literal_of(piece.formula) not in (None, *found.items()) for piece in pieces):
            raise UnsatisfiableError("the constraint has no model")
        facts |= found
        kept = [piece for piece in pieces if literal_of(piece.formula) is None]
        if not found:
            return kept, facts
        pieces = [piece for old in kept for piece in _fixed(old, found)]


def _fixed(piece: Piece, facts: dict[str, bool]) -> list[Piece]:
    """A piece once some labels are known; families keep them as variables."""
    known = {name: int(facts[name]) for name in piece.formula.labels if name in facts}
    if not known or any(isinstance(node, Leaf) for node in piece.formula.nodes()):
        return [piece]
    formula = simplify(substitute(piece.formula, known))
    if formula is FALSE:
        raise UnsatisfiableError("the constraint has no model")
    return [Piece(part, piece.rule) for part in conjuncts(formula) if part is not TRUE]


def spelled_out(formula: Formula) -> Sequence[Formula]:
    rules = formula.as_rules() if isinstance(formula, Leaf) else None
    return [formula] if rules is None else rules


def _parts(rule: Formula, number: int) -> list[Piece]:
    """The pieces of a rule: those that its family chose, its own conjuncts, or the rule itself."""
    if isinstance(rule, Leaf):
        parts = rule.as_parts()
        if parts is not None:
            return [Piece(part, number, closed=True) for part in parts]
        spelled = rule.as_rules()
        return [Piece(part, number) for part in (spelled or [rule])]
    return [Piece(part, number) for part in conjuncts(simplify(rule)) if part is not TRUE]
