"""Rules for taggers: which tags may follow each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from semprola.constraints.family import as_whole, label_names
from semprola.errors import LabelError
from semprola.logic import TRUE, And, Bool, Formula, Or
from semprola.logic.messages import brief

_CONTINUING = {"BIO": "I", "BIOES": "IE", "BILOU": "IL"}
"""Prefixes of tags that continue an entity after B or I; in the last two schemes, B and I must be continued."""


def bio(tags: Iterable[str], scheme: str = "BIO") -> Formula:
    """Tags of entities follow each other according to a scheme; rules for :class:`semprola.SequenceSPL`.

    A tag is a prefix and the kind of an entity, such as ``B-PER``; all others, such as ``O``, are free. In every
    scheme, ``I-PER`` needs ``B-PER`` or ``I-PER`` before it. In BIOES (BILOU), so does ``E-PER`` (``L-PER``), and
    ``B-PER`` and ``I-PER`` must be followed by ``I-PER`` or ``E-PER`` (``L-PER``).

    Args:
        tags: names of the tags.
        scheme: "BIO", "BIOES" or "BILOU".

    Returns:
        A formula over neighbouring tags.

    Raises:
        LabelError: the tags are invalid, or none begins with B or I.
        ValueError: the scheme is unknown.

    Example:
        >>> bio(["O", "B-PER", "I-PER"])
        "I-PER" -> "prev=B-PER" | "prev=I-PER"
    """
    if scheme not in _CONTINUING:
        raise ValueError(f"scheme must be 'BIO', 'BIOES' or 'BILOU', not {scheme!r}")
    names = tag_names(tags)
    known = set(names)
    rules: list[Formula] = []
    for name in names:
        prefix, kind = name[0], name[1:]
        if prefix in _CONTINUING[scheme]:
            rules.append(Bool(name) >> Or(*_among("prev", [f"{p}{kind}" for p in "BI"], known)))
        if prefix in "BI" and scheme != "BIO":
            rules.append(Bool(name) >> Or(*_among("next", [f"{p}{kind}" for p in _CONTINUING[scheme]], known)))
    if not any(name[0] in "BI" for name in names):
        raise LabelError(f"no tag begins with B or I, as in {scheme}: the tags are {', '.join(names[:6])}")
    return And(*rules) if rules else TRUE


def _among(place: str, names: list[str], known: set[str]) -> list[Formula]:
    return [Bool(f"{place}={name}") for name in names if name in known]


def tag_names(tags: Any) -> tuple[str, ...]:
    """Check the names of tags; a number n stands for the names "0" to "n-1"."""
    number = as_whole(tags)
    if number is not None:
        if number < 1:
            raise LabelError(f"tags must be a positive whole number or a list of names, not {number}")
        return tuple(str(i) for i in range(number))
    if isinstance(tags, bool | str) or not hasattr(tags, "__iter__"):
        raise LabelError(f"tags must be a positive whole number or a list of names, not {brief(tags)}")
    return label_names(list(tags), "tags")
