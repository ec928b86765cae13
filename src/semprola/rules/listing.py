"""Rules as a list in which each has a text and a place, for reports about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from semprola.circuit import Circuit
from semprola.compiler.sources import rules_of
from semprola.logic import And, Formula, Kind, Leaf
from semprola.logic.messages import brief
from semprola.logic.rules import conjuncts, joined, placed, places_of, plain, stated, unstated, variables_of
from semprola.rules.reading import is_frame, read_frame

_WIDTH = 160


@dataclass(frozen=True, eq=False)
class Rule:
    """One rule, as reports name it. The same rule written twice makes two of them.

    Attributes:
        text: the rule as the user wrote it.
        place: the file, the line and the name of the rule, such as "rules.txt:3 cats"; empty if it is not from a file.
        formula: the rule over plain atoms.
    """

    text: str
    place: str
    formula: Formula

    def __str__(self) -> str:
        return f"{self.text} [{self.place}]" if self.place else self.text


@dataclass(frozen=True)
class RuleList:
    """Rules and what their variables bring along.

    Attributes:
        rules: the rules that a user wrote, in order.
        background: "exactly one value" for each variable with several values; nobody wrote it, and it always holds.
        labels: the labels of all rules, in order of first appearance.
        whole: the conjunction of all rules, with their places.
        variables: the labels of each variable with several values.
    """

    rules: tuple[Rule, ...]
    background: tuple[Rule, ...]
    labels: tuple[str, ...]
    whole: Formula
    variables: tuple[tuple[str, ...], ...] = ()


def listed(source: Any) -> RuleList:
    """The rules in any source that `semprola.rules` takes.

    A file or a text has one rule per line. A formula has one rule per operand of its conjunction; families that are
    conjunctions, such as hierarchies, are spelled out. A list may mix all of these.

    Args:
        source: a formula, a text, the path of a file, a data frame (see :func:`semprola.rules.read`), a circuit that
            knows its formula, or a list of these.
    """
    if isinstance(source, RuleList):
        return source
    if callable(own := getattr(source, "listed", None)):  # ontologies
        found: RuleList = own()
        return found
    parts = [rule for each in _sources(source) for rule in _parts(each)]
    made = [_rule(part) for part in parts]
    kept = tuple(rule for rule in made if rule is not None)
    whole = joined(parts) if parts else And()
    names = tuple(dict.fromkeys(name for part in parts for name in part.labels))
    said = list(conjuncts(stated(whole)))
    groups = said[len(list(conjuncts(unstated(whole)))) :]
    background = tuple(Rule(str(group), "", group) for group in groups)
    return RuleList(kept, background, names, whole, tuple(variables_of(whole)))


def _sources(source: Any) -> Iterable[Any]:
    if isinstance(source, Sequence) and not isinstance(source, str):
        return source
    return [source]


def _parts(source: Any) -> list[Formula]:
    """The rules of one source; those of a file as they are, those of a formula one per operand."""
    if is_frame(source):
        return _separate(read_frame(source))
    if isinstance(source, Circuit):
        if source.source is None:
            raise TypeError("this circuit does not know its rules: pass the formula that it was compiled from")
        return _separate(source.source)
    found = [rule for rule in rules_of(source) if not isinstance(rule, Circuit)]
    if not found:
        raise TypeError(f"a compiled circuit has no rules to look at, {source!r:.60}: pass formulas instead")
    return _separate(found[0]) if len(found) == 1 else found


def _separate(formula: Formula) -> list[Formula]:
    places, seen = places_of(formula), Counter[Formula]()
    found = []
    for rule in conjuncts(formula):
        for part in _spelled(rule):
            place = places.get(part, places.get(rule))
            if place is not None:
                places_of_part = (place, *getattr(place, "again", ()))
                place = places_of_part[min(seen[rule], len(places_of_part) - 1)]
            found.append(part if place is None else placed(part, place, getattr(place, "text", "")))
        seen[rule] += 1
    return found


def _spelled(rule: Formula) -> Iterable[Formula]:
    rules = rule.as_rules() if isinstance(rule, Leaf) else None
    return conjuncts(And(rules)) if rules else (rule,)


def _rule(part: Formula) -> Rule | None:
    if part.kind is Kind.TRUE:
        return None
    place = places_of(part).get(part, "")
    written = getattr(place, "text", "") if stated(part) is not part else ""  # labels of variables hide what was meant
    text = " ".join(written.split())
    text = text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
    return Rule(text or brief(part, _WIDTH), str(place), unstated(plain(part)))
