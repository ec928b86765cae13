"""Formulas in notebooks: one rule per line, and each label in its colour."""

from __future__ import annotations

import re
from itertools import islice

from semprola._notebook import COLOURS, heading, more, text
from semprola.logic.formula import Formula
from semprola.logic.printing import abbreviated_text
from semprola.logic.rules import conjuncts
from semprola.logic.syntax import quote

_SHOWN = 40
_COUNTED = 10_000
_LARGE = 2_000
"""Rules with more nodes are shown without colours, because it takes time to list their labels."""
_WORDS = re.compile(r'"(?:\\.|[^"\\])*"|[\w][\w.:]*')


def html(formula: Formula) -> str:
    """The rules of a formula.

    Example:
        >>> from semprola.logic import parse
        >>> page = html(parse("cat -> animal\\ndog -> animal"))
        >>> page.count(f'color:{COLOURS[1]}">animal<'), "2 rules" in page
        (2, True)
    """
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
