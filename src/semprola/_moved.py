"""Names that have moved: they work in this release, with a warning that says where they are now."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def moved(module: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names have moved."""

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        old, new = (place.replace("semprola.", "sp.", 1) for place in (f"{module}.{name}", places[name]))
        warnings.warn(f"{old} is now {new}; the old name goes with the next release", DeprecationWarning, stacklevel=2)
        return pkgutil.resolve_name(places[name])

    return find
