"""Regular expressions over tag names, as text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import NoReturn

from semprola.errors import ParseError
from semprola.logic.messages import brief
from semprola.sequences.expressions import Term, Terms
from semprola.sequences.machines import MOST_STATES, TagMachine

_OPERATOR = re.compile(r"\{\s*\d*\s*,?\s*\d*\s*\}|\[\^|[()\[\]|&!~*+?.]")
_WORD = re.compile(r"[^\s()\[\]|&!~*+?.{}\"]+")
_TIMES: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_DEEPEST = 50


def pattern_machine(text: str, tags: Sequence[str]) -> TagMachine:
    """The automaton of a pattern, which whole sequences must match.

    From the weakest to the strongest: ``|`` (or), ``&`` (and), one after the other, ``* + ? {2,3}``. ``!( … )``, or
    ``~( … )``, matches every sequence that the pattern inside does not. ``.`` is any tag, ``[B I]`` one of these
    tags, ``[^O]`` any other tag. Tags are found by their names, the longest first, and may be separated by spaces. A
    name that contains characters of the syntax needs double quotes.

    Example:
        >>> never_after = pattern_machine("!(.* O .* B .*)", ["O", "B"])
        >>> never_after.accepts([1, 1, 0]), never_after.accepts([0, 1])
        (True, False)
    """
    terms = Terms(len(tags))
    return terms.machine(_Pattern(text, tags, terms).read())


class _Pattern:
    """Recursive descent over the tokens of a pattern: operators, numbers of tags, and their positions."""

    def __init__(self, text: str, tags: Sequence[str], terms: Terms) -> None:
        self.text, self.terms, self.count = text, terms, len(tags)
        self.tokens = [*_tokens(text, tags), ("", len(text))]
        self.index = self.depth = 0

    def read(self) -> Term:
        term = self._either()
        if self._next != "":
            self._fail(f"{self._next!r} without its opening")
        return term

    @property
    def _next(self) -> str | int:
        return self.tokens[self.index][0]

    def _taken(self, *wanted: str) -> bool:
        """Whether the next token is one of these; if so, go on to the one after it."""
        found = self._next in wanted
        self.index += found
        return found

    def _either(self) -> Term:
        parts = [self._both()]
        while self._taken("|"):
            parts.append(self._both())
        return self.terms.either(parts)

    def _both(self) -> Term:
        parts = [self._row()]
        while self._taken("&"):
            parts.append(self._row())
        return self.terms.both(parts)

    def _row(self) -> Term:
        parts = []
        while self._next not in ("", "|", "&", ")", "]"):
            parts.append(self._repeated())
        return self.terms.then(parts)

    def _repeated(self) -> Term:
        term = self._item()
        while isinstance(self._next, str) and self._next[:1] in ("*", "+", "?", "{"):
            least, most = _TIMES.get(self._next) or self._times(self._next)
            term = self.terms.repeat(term, least, most)
            self.index += 1
        return term

    def _times(self, braces: str) -> tuple[int, int | None]:
        low, comma, high = "".join(braces[1:-1].split()).partition(",")
        least = int(low[:9] or 0)
        most = (int(high[:9]) if high else None) if comma else least
        if (not low and not high) or (most is not None and most < least):
            self._fail(f"{braces} is not a number of repetitions")
        if max(least, most or 0) > MOST_STATES:
            self._fail(f"{braces} is too many repetitions")
        return least, most

    def _item(self) -> Term:
        token = self._next
        if isinstance(token, int):
            self.index += 1
            return self.terms.one([token])
        if self._taken("."):
            return self.terms.one(range(self.count))
        if self._taken("[", "[^"):
            return self._class(others=token == "[^")
        if self._taken("!", "~"):
            if self._next != "(":
                self._fail(f"{token} needs parentheses: write {token}(…), or [^…] for any other tag")
            return self.terms.negation(self._group())
        if token == "(":
            return self._group()
        self._fail(f"{token} has nothing to repeat")

    def _group(self) -> Term:
        start = self.index
        self.index += 1
        self.depth += 1
        if self.depth > _DEEPEST:
            self._fail(f"more than {_DEEPEST} parentheses are nested")
        term = self._either()
        if not self._taken(")"):
            self.index = start
            self._fail("this '(' is never closed")
        self.depth -= 1
        return term

    def _class(self, others: bool) -> Term:
        start, named = self.index - 1, set()
        while isinstance(self._next, int):
            named.add(self._next)
            self.index += 1
        if not self._taken("]"):
            self.index = start
            self._fail("'[' needs tags and a ']'")
        return self.terms.one(set(range(self.count)) - named if others else named)

    def _fail(self, reason: str) -> NoReturn:
        position = self.tokens[self.index][1]
        raise ParseError(
            f"rules: {brief(self.text)} is not a regular expression: at position {position}: {reason}"
        ) from None


def _tokens(text: str, tags: Sequence[str]) -> list[tuple[str | int, int]]:
    number = {tag: i for i, tag in enumerate(tags)}
    by_length = sorted(tags, key=len, reverse=True)
    tokens: list[tuple[str | int, int]] = []
    position = 0
    while position < len(text):
        start = position
        if text[position].isspace():
            position += 1
            continue
        if text[position] == '"':
            end = text.find('"', position + 1)
            name = text[position + 1 : end if end > 0 else len(text)]
            if end < 0 or name not in number:
                raise _unknown(text, position, name, tags)
            tokens.append((number[name], start))
            position = end + 1
            continue
        found = next((tag for tag in by_length if text.startswith(tag, position)), None)
        operator = _OPERATOR.match(text, position)
        if found is not None:
            tokens.append((number[found], start))
            position += len(found)
        elif operator is not None:
            tokens.append((operator.group(), start))
            position = operator.end()
        else:
            word = _WORD.match(text, position)
            raise _unknown(text, position, word.group() if word else text[position], tags)
    return tokens


def _unknown(text: str, position: int, word: str, tags: Sequence[str]) -> ParseError:
    close = difflib.get_close_matches(word, tags, 1)
    if word[:2] in ("->", "=>", "<-"):
        hint = "for a formula over neighbouring tags, pass sp.parse(...)"
    elif close:
        hint = f"did you mean {close[0]!r}?"
    else:
        hint = "the tags are " + ", ".join(tags[:6]) + (", …" if len(tags) > 6 else "")
    return ParseError(f"rules: {brief(word)} at position {position} of {brief(text)} is not a tag: {hint}")
