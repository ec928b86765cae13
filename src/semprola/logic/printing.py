"""Formulas as text, with only the parentheses that the parser needs to read the same structure back, and as HTML."""

from __future__ import annotations

import re
from itertools import islice
from typing import TypeAlias

from semprola._notebook import COLOURS, heading, more, text
from semprola.logic.formula import MAX_BOUND, Formula, Kind
from semprola.logic.rules import conjuncts
from semprola.logic.syntax import ATOM_PRECEDENCE, PRECEDENCE, SYMBOL, quote

REPR_CHARACTERS = 2_000
# A formula shares its parts but its text cannot: n nodes can need 2^n tokens.
MAX_TOKENS = 1_000_000

# Text still to be written: a literal piece, or a formula with the lowest precedence that needs no parentheses.
_Pending: TypeAlias = str | tuple[Formula, int]


def full_text(formula: Formula) -> str:
    """Return the whole text; beyond a million tokens, cut it off with ``…`` and the number of nodes."""
    return _write(formula, max_characters=None)


def abbreviated_text(formula: Formula) -> str:
    """Return the text; beyond about 2,000 characters, cut it off with ``…`` and the number of nodes."""
    return _write(formula, max_characters=REPR_CHARACTERS)


def _write(formula: Formula, max_characters: int | None) -> str:
    pieces: list[str] = []
    length = 0
    pending: list[_Pending] = [(formula, 0)]
    while pending:
        item = pending.pop()
        if not isinstance(item, str):
            node, least = item
            parts = _parts(node)
            if PRECEDENCE.get(node._kind, ATOM_PRECEDENCE) < least:
                parts = ["(", *parts, ")"]
            pending.extend(reversed(parts))
            continue
        pieces.append(item)
        length += len(item)
        if len(pieces) > MAX_TOKENS or (max_characters is not None and length > max_characters):
            return f"{''.join(pieces)[:max_characters]}… ({formula.size:,} nodes)"
    return "".join(pieces)


def _parts(node: Formula) -> list[_Pending]:
    kind = node._kind
    if kind is Kind.ATOM:
        return [quote(node._name)]
    if kind is Kind.TRUE or kind is Kind.FALSE:
        return [kind.name.lower()]
    if kind is Kind.CARDINALITY:
        return [*_counting_head(node), *[part for arg in node._args for part in (", ", (arg, 0))], ")"]
    if kind is Kind.CUSTOM:
        return [_describe(node)]
    precedence = PRECEDENCE[kind]
    if kind is Kind.NOT:
        return [SYMBOL[kind], (node._args[0], precedence)]
    # The parser groups `->` to the right and all others to the left; an operand on the other side needs parentheses.
    parts: list[_Pending] = []
    bare = len(node._args) - 1 if kind is Kind.IMPLIES else 0
    for index, arg in enumerate(node._args):
        if index:
            parts.append(SYMBOL[kind])
        parts.append((arg, precedence if index == bare else precedence + 1))
    return parts


def _counting_head(node: Formula) -> list[str]:
    lo, hi = node._bounds
    if lo == hi:
        return [f"exactly({lo}"]
    if hi == MAX_BOUND:
        return [f"at_least({lo}"]
    if lo == 0:
        return [f"at_most({hi}"]
    return [f"count({lo}, {hi}"]


def _describe(node: Formula) -> str:
    from semprola.logic.leaf import Leaf

    return node.describe() if isinstance(node, Leaf) else node._kind.name.lower()


_SHOWN = 40
_COUNTED = 10_000
_LARGE = 2_000
"""Rules with more nodes are shown without colours, because it takes time to list their labels."""
_WORDS = re.compile(r'"(?:\\.|[^"\\])*"|[\w][\w.:]*')


def html(formula: Formula) -> str:
    """The rules of a formula."""
    rules = list(islice(conjuncts(formula), _COUNTED))
    colours: dict[str, str] = {}
    lines = "".join(f"<div>{_line(rule, colours)}</div>" for rule in rules[:_SHOWN])
    at_least = "more than " if len(rules) == _COUNTED else ""
    count = heading(f"{at_least}{len(rules):,} rules") if len(rules) > 1 else ""
    return f'{count}<div style="font-family:monospace">{lines}</div>{more(len(rules) - _SHOWN, "rules")}'


def _line(rule: Formula, colours: dict[str, str]) -> str:
    """One rule; `colours` remembers the colour of each label."""
    words = abbreviated_text(rule)
    if rule.size > _LARGE:
        return text(words)
    labels = {quote(name) for name in rule.labels}
    made, end, words = [], 0, words[:400] + "…" * (len(words) > 400)
    for found in _WORDS.finditer(words):
        name = found.group()
        if name not in labels:
            continue
        colour = colours.setdefault(name, COLOURS[len(colours) % len(COLOURS)])
        made += [text(words[end : found.start()]), f'<span style="color:{colour}">{text(name)}</span>']
        end = found.end()
    return "".join([*made, text(words[end:])])
