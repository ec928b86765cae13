"""A hash of a constraint's structure, which is the same in every process."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Hashable
from fractions import Fraction

import numpy as np

from semprola.logic import Formula, Leaf


def formula_digest(formula: Formula) -> str | None:
    """SHA-256 of the structure of a formula; None if a part of it has no stable description.

    An example is a family from outside this package: its code may change while its key stays the same.
    """
    sha = hashlib.sha256()
    number: dict[Formula, int] = {}
    for node in formula.nodes():
        if isinstance(node, Leaf):
            kind = type(node)
            key = _stable(node.key())
            if key is None or kind.__module__.split(".")[0] != "semprola":
                return None
            sha.update(b"leaf %s %s\n" % (f"{kind.__module__}.{kind.__qualname__}".encode(), key))
        else:
            name = node._name.encode("utf-8", "surrogatepass")
            head = (int(node.kind), len(node.args), *(number[arg] for arg in node.args), *node._bounds, len(name))
            sha.update(repr(head).encode() + name + b"\n")
        number[node] = len(number)
    return sha.hexdigest()


def _stable(value: Hashable) -> bytes | None:
    """A digest of the parts of a key and their types; None if the text of a part's type may vary."""
    # a pre-order walk with a count in front of every collection: no two keys give the same text
    pending: list[object] = [value]
    sha = hashlib.sha256()
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            sha.update(b"tuple %d " % len(item))
            pending.extend(reversed(item))
        elif dataclasses.is_dataclass(item) and type(item).__module__.split(".")[0] == "semprola":
            fields = [field.name for field in dataclasses.fields(item)]
            sha.update(f"object {type(item).__qualname__} {len(fields)} ".encode())
            pending.extend(getattr(item, name) for name in reversed(fields))
        elif isinstance(item, frozenset):
            parts = [_stable(part) for part in item]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            sha.update(b"set %d " % len(known) + b" ".join(sorted(known)))
        elif isinstance(item, str | bytes):
            data = item.encode("utf-8", "surrogatepass") if isinstance(item, str) else item
            sha.update(b"%s %d " % (type(item).__name__.encode(), len(data)) + data)
        elif item is None or isinstance(item, bool | int | float | Fraction | np.number | np.bool_):
            plain = item.item() if isinstance(item, np.generic) else item
            sha.update(f"{type(plain).__name__} {plain!r} ".encode())
        else:
            return None
    return sha.hexdigest().encode()
