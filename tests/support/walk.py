"""Which files of semprola a call runs through: what `docs/design.md` walks, and what a reader has to open.

Counted are the files in which a Python function, method or comprehension of the package is entered during the call, and
the number of times that control passes from one of these files to another. What runs on import does not count, so the
call is made once before it is watched; a compiled circuit is forgotten in between.

    python -m tests.support.walk
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import semprola as sp
from semprola.compiler import cache

PACKAGE = Path(sp.__file__).parent
RULES = "(cat -> animal) & (dog -> animal)"


def parse_and_compile() -> None:
    """The first two lines of `docs/design.md`, without a cache."""
    cache.memory.forget()
    sp.compile(sp.parse(RULES))


def walk(call: Callable[[], Any]) -> tuple[list[str], int]:
    """The files that a call runs through, in order of first entry, and the number of changes from file to file."""
    visited: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            visited.append(Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix())

    call()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    changes = sum(a != b for a, b in itertools.pairwise(visited))
    return list(dict.fromkeys(visited)), changes


if __name__ == "__main__":
    files, changes = walk(parse_and_compile)
    print("\n".join(files))
    print(f"{len(files)} files, {changes} changes of file")
