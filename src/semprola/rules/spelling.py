"""Names of labels that may be one name, spelt in two ways."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

_SHORTEST, _LONGEST = 5, 80
"""Names with fewer letters may differ by one and mean different things; longer ones take too much memory."""
_LOOKALIKES = str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0408"
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u03bf\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7",
    "ABEKMHOPCTXIJaeopcyxijoABEZHIKMNOPTX",
)


def similar_names(names: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of names that differ only in case, separators or a plural ending, or by one letter of a longer name.

    Cyrillic and Greek letters are taken for the Latin ones that look the same. Names with different digits, such as
    "x1" and "x2", are not similar.
    """
    place = {name: i for i, name in enumerate(names)}
    pairs: dict[tuple[str, str], None] = {}
    plain = {name: _plain(name) for name in names}
    for group in _groups((_singular(text), name) for name, text in plain.items()):
        pairs.update(dict.fromkeys((group[0], other) for other in group[1:]))
    letters = {name: sum(not c.isdigit() for c in text) for name, text in plain.items()}
    long = {name: text for name, text in plain.items() if letters[name] >= _SHORTEST and len(text) <= _LONGEST}
    for group in _groups((key, name) for name, text in long.items() for key in _one_letter_less(text, _digits(name))):
        for i, first in enumerate(group):
            for second in group[i + 1 :]:
                if _one_edit(long[first], long[second]):
                    pairs[first, second] = None
    return sorted(pairs, key=lambda pair: (place[pair[0]], place[pair[1]]))


def _groups(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Names with the same key, if there are several, in the order of the names."""
    first: dict[str, str] = {}
    groups: dict[str, dict[str, None]] = {}
    for key, name in pairs:
        other = first.setdefault(key, name)
        if other != name:
            groups.setdefault(key, {other: None})[name] = None
    return [[*group] for group in groups.values()]


def _plain(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).translate(_LOOKALIKES).casefold()
    return re.sub(r"[\s_\-.:/]+", "", plain)


def _singular(text: str) -> str:
    return text[:-1] if len(text) > 3 and text.endswith("s") and not text.endswith("ss") else text


def _digits(name: str) -> str:
    return re.sub(r"\D+", " ", name).strip()


def _one_letter_less(text: str, digits: str) -> list[str]:
    """Keys that two texts share if one letter makes the difference; texts with different digits share none."""
    return [f"{each}|{digits}" for each in (text, *(text[:i] + text[i + 1 :] for i in range(len(text))))]


def _one_edit(first: str, second: str) -> bool:
    """Whether one letter is changed, added or left out, or two neighbours are exchanged."""
    if len(first) > len(second):
        first, second = second, first
    if len(second) - len(first) > 1 or first == second:
        return False
    start = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(first))
    if len(first) < len(second):
        return first[start:] == second[start + 1 :]
    if first[start + 1 :] == second[start + 1 :]:
        return True
    swapped = first[start + 1 : start + 2] + first[start : start + 1]
    return second[start : start + 2] == swapped and first[start + 2 :] == second[start + 2 :]
