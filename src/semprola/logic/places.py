"""Where rules were read: a formula from a file knows the file and the line of each rule, for messages about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from semprola.logic.connectives import And
from semprola.logic.formula import Formula, Kind, Operand, as_formula, intern_node
from semprola.logic.rewrite import stated, unstated
from semprola.logic.rules import conjuncts


class PlacedFormula(Formula):
    """A formula with the places of its rules. It equals the same formula without them."""

    __slots__ = ("places", "plain")

    plain: Formula
    places: Mapping[Formula, str]

    def __and__(self, other: Operand) -> Formula:
        """The conjunction; it keeps the places."""
        operand = as_formula(other)
        return NotImplemented if operand is None else joined([self, operand])

    def __eq__(self, other: object) -> bool:
        return self.plain == (other.plain if isinstance(other, PlacedFormula) else other)

    def __hash__(self) -> int:
        return hash(self.plain)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle without the places."""
        return self.plain.__reduce__()


class Place(str):
    """Where a rule was read, and the words in which it was written there."""

    text = ""


def placed(rule: Formula, place: str, text: str = "") -> Formula:
    """A rule that knows where it was read.

    Args:
        rule: the rule.
        place: the file and the line, such as "rules.txt:3".
        text: how it was written; by default, messages print the formula.

    Example:
        >>> from semprola.logic import parse
        >>> rule = placed(parse("cat -> animal"), "rules.txt:3")
        >>> located(rule, places_of(rule))
        'cat -> animal [rules.txt:3]'
    """
    whole = Place(place)
    whole.text = text
    return _with_places(rule, {**dict.fromkeys(conjuncts(rule), place), rule: whole})


def joined(rules: Sequence[Formula]) -> Formula:
    """The conjunction of rules, which keeps their places."""
    places = {part: place for rule in rules for part, place in places_of(rule).items()}
    return _with_places(And([plain(rule) for rule in rules]), places)


def plain(rule: Formula) -> Formula:
    """The formula without places."""
    if not isinstance(rule, PlacedFormula):
        return rule
    return rule.plain.args[0] if _is_wrapped(rule.plain) else rule.plain


def stated_in_place(formula: Formula) -> Formula:
    """The formula with the rules of its variables, see :func:`semprola.logic.rewrite.stated`; it keeps the places."""
    made = stated(plain(formula))
    if made is plain(formula):
        return formula
    return _with_places(made, {unstated(rule): place for rule, place in places_of(formula).items()})


def places_of(formula: Formula) -> Mapping[Formula, str]:
    """The places of the rules of a formula, as far as it was read from a file."""
    return formula.places if isinstance(formula, PlacedFormula) else {}


def located(rule: Formula, places: Mapping[Formula, str], text: str | None = None) -> str:
    """The text of a rule, and the place where it was read."""
    text = str(rule) if text is None else text
    return f"{text} [{places[rule]}]" if places.get(rule) else text


def _with_places(formula: Formula, places: Mapping[Formula, str]) -> Formula:
    if not places or formula.kind in (Kind.TRUE, Kind.FALSE):
        return formula
    node = object.__new__(PlacedFormula)
    shape = formula
    if formula.kind is Kind.CUSTOM:  # a family is more than its kind and operands, so it becomes the only operand
        shape = intern_node(Kind.AND, (formula,))
        places = {**places, shape: places[formula]} if formula in places else places
    node._kind, node._args, node._name = shape._kind, shape._args, shape._name
    node._bounds, node._group, node._labels = shape._bounds, shape._group, None
    node.plain, node.places = shape, places
    return node


def _is_wrapped(formula: Formula) -> bool:
    return formula.kind is Kind.AND and len(formula.args) == 1
