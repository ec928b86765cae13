"""Regular expressions over tag names: each tag becomes one character that automata-lib can read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from semprola.errors import ParseError
from semprola.logic.messages import brief

_FIRST = 0xE000
"""The first private character of Unicode; these mean nothing in a pattern."""
_OPERATOR = re.compile(r"\{\d*,?\d*\}|\[\^|[()\[\]|&*+?.]")
_WORD = re.compile(r"[^\s()\[\]|&*+?.{}\"]+")


def as_pattern(text: str, tags: Sequence[str]) -> tuple[str, list[str]]:
    """A pattern over characters, and the character of each tag.

    Tags are found by their names, the longest first, and may be separated by spaces. A name that contains characters of
    the syntax needs double quotes.

    Args:
        text: a pattern such as ``"(B-PER I-PER* | O)*"``, with the usual ``* + ? | & . ( ) [B I] [^O] {2,3}``.
        tags: the names of the tags.

    Raises:
        ParseError: something in the text is neither a tag nor an operator; the message points at it.

    Example:
        >>> pattern, symbols = as_pattern("(B-PER I-PER* | O)*", ["O", "B-PER", "I-PER"])
        >>> pattern == f"({symbols[1]}{symbols[2]}*|{symbols[0]})*"
        True
    """
    symbols = [chr(_FIRST + i) for i in range(len(tags))]
    symbol_of = dict(zip(tags, symbols, strict=True))
    by_length = sorted(tags, key=len, reverse=True)
    parts: list[str] = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        if text[position] == '"':
            end = text.find('"', position + 1)
            name = text[position + 1 : end if end > 0 else len(text)]
            if end < 0 or name not in symbol_of:
                raise _unknown(text, position, name, tags)
            parts.append(symbol_of[name])
            position = end + 1
            continue
        found = next((tag for tag in by_length if text.startswith(tag, position)), None)
        if found is not None:
            parts.append(symbol_of[found])
            position += len(found)
            continue
        operator = _OPERATOR.match(text, position)
        if operator is None:
            word = _WORD.match(text, position)
            raise _unknown(text, position, word.group() if word else text[position], tags)
        parts.append(operator.group())
        position = operator.end()
    return "".join(parts), symbols


def as_written(text: str, symbols: Sequence[str], tags: Sequence[str]) -> str:
    """A message about a pattern, with tags in place of their characters."""
    for symbol, tag in zip(symbols, tags, strict=True):
        text = text.replace(symbol, tag)
    return text


def _unknown(text: str, position: int, word: str, tags: Sequence[str]) -> ParseError:
    close = difflib.get_close_matches(word, tags, 1)
    if word[:2] in ("->", "=>", "<-", "~", "!"):
        hint = "for a formula over neighbouring tags, pass sp.parse(...)"
    elif close:
        hint = f"did you mean {close[0]!r}?"
    else:
        hint = "the tags are " + ", ".join(tags[:6]) + (", …" if len(tags) > 6 else "")
    return ParseError(f"rules: {brief(word)} at position {position} of {brief(text)} is not a tag: {hint}")
