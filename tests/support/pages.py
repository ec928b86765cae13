"""The Python blocks of the pages: found, run, and what they print compared with the `output` block below them.

``python -m tests.support.pages README.md docs/*.md`` runs pages, writes what their code prints below it, and keeps
the pictures that the code draws and the page shows.
"""

from __future__ import annotations

import contextlib
import difflib
import doctest
import io
import itertools
import os
import re
import shutil
import sys
import tempfile
import textwrap
import types
from pathlib import Path
from typing import Any, NamedTuple

import pytest

FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
CHECKS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?P<percent> ?%)?")


class Block(NamedTuple):
    """A piece of Python in a page, and the line on which it starts, counted from 0."""

    source: str
    line: int


class Fence(NamedTuple):
    """A fenced block: what follows the opening fence, its text, its first line and that of the closing fence."""

    info: str
    source: str
    line: int
    end: int
    indent: str


def fences(text: str) -> list[Fence]:
    """All fenced blocks of a Markdown text.

    Raises:
        ValueError: if a fence is left open.
    """
    found = []
    lines = text.splitlines()
    opening: re.Match[str] | None = None
    start = 0
    for number, line in enumerate(lines):
        match = FENCE.match(line)
        if match is None:
            continue
        if opening is None:
            opening, start = match, number + 1
        elif match["fence"].startswith(opening["fence"]) and not match["info"].strip():
            source = textwrap.dedent("\n".join(lines[start:number])) + "\n"
            found.append(Fence(opening["info"], source, start, number, opening["indent"]))
            opening = None
    if opening is not None:
        raise ValueError(f"the fence opened on line {start} is never closed")
    return found


def fenced(text: str, kinds: str) -> list[Block]:
    """The fenced blocks of a Markdown text that are marked as one of some kinds, separated by bars."""
    return [Block(block.source, block.line) for block in fences(text) if re.match(rf"({kinds})\b", block.info)]


def python_blocks(text: str) -> list[Block]:
    """The fenced blocks of a Markdown text that are marked `python` or `pycon`."""
    return fenced(text, "python|pycon")


def run_page(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the Python blocks of a page in order, in one module, and compare what they print with what the page shows."""
    # A real, registered module: dataclasses and pickle look up the module in which a class is defined.
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    text = page.read_text(encoding="utf-8")
    shown = outputs(text)
    for block in python_blocks(text):
        below = shown.get(block.line)
        expected = below.source if below else ""
        printed = _run(block, page, module.__dict__)
        if not same(expected, printed, varies=_varies(below)):
            pytest.fail(_complaint(page, block, expected, printed), pytrace=False)


def outputs(text: str) -> dict[int, Fence]:
    """The `output` blocks that directly follow a Python block, by the line of that block."""
    found = fences(text)
    lines = text.splitlines()
    pairs = {}
    for block, after in itertools.pairwise(found):
        between = "".join(lines[block.end + 1 : after.line - 1])
        if re.match(r"(python|pycon)\b", block.info) and after.info.split()[0:1] == ["output"] and not between.strip():
            pairs[block.line] = after
    return pairs


def same(expected: str, printed: str, varies: bool = False) -> bool:
    """Whether a page shows what its code prints. Fractions and percentages may differ a little, as processors round
    differently and training amplifies it; whole numbers and words may not. With `varies` (a block marked
    `output varies`, say with times), numbers are not compared.

    Example:
        >>> same("91.0 % of 5 rows", "90.2 % of 5 rows"), same("91.0 % of 5 rows", "90.2 % of 6 rows")
        (True, False)
    """
    if _words(expected) != _words(printed):
        return False
    pairs = zip(NUMBER.finditer(expected), NUMBER.finditer(printed), strict=True)
    return varies or all(_close(ours, theirs) for ours, theirs in pairs)


def _words(text: str) -> list[list[str]]:
    return [line.split() for line in NUMBER.sub("#", text).rstrip().splitlines()]


def _varies(block: Fence | None) -> bool:
    return block is not None and "varies" in block.info


def _close(ours: re.Match[str], theirs: re.Match[str]) -> bool:
    if not (ours["percent"] or "." in ours[0] or "e" in ours[0]):
        return ours[0] == theirs[0]
    first, second = (float(found[0].removesuffix("%")) for found in (ours, theirs))
    places = len(ours[0].partition(".")[2].rstrip(" %"))
    return abs(first - second) <= 0.05 * max(abs(first), abs(second)) + 1.01 * 10.0**-places


def _complaint(page: Path, block: Block, expected: str, printed: str) -> str:
    lines = difflib.unified_diff(expected.splitlines(), printed.splitlines(), "the page", "the code", lineterm="")
    return (
        f"{page.name}, code from line {block.line + 1} on: the page does not show what the code prints. "
        f"`python -m tests.support.pages {page.name}` writes it.\n" + "\n".join(lines)
    )


def _run(block: Block, page: Path, names: dict[str, Any]) -> str:
    """What a block prints; a block with `>>>` prompts is checked by doctest and prints nothing."""
    if block.source.lstrip().startswith(">>>"):
        _run_session(block, page, names)
        return ""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        # The empty lines make the line numbers of a traceback those of the page.
        exec(compile("\n" * block.line + block.source, str(page), "exec"), names)
    return printed.getvalue()


def _run_session(block: Block, page: Path, names: dict[str, Any]) -> None:
    session = doctest.DocTestParser().get_doctest(block.source, names, page.name, str(page), block.line)
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=CHECKS)
    runner.run(session, out=report.append, clear_globs=False)
    names.update(session.globs)
    if runner.failures:
        pytest.fail("".join(report), pytrace=False)


def rewritten(page: Path) -> str:
    """The text of a page with an `output` block below every block that prints; what still holds is left as it is."""
    text = page.read_text(encoding="utf-8")
    lines, shown = text.splitlines(), outputs(text)
    module = types.ModuleType("page")
    sys.modules[module.__name__] = module
    changes: list[tuple[int, int, list[str]]] = []
    for block in (fence for fence in fences(text) if re.match(r"(python|pycon)\b", fence.info)):
        printed = _run(Block(block.source, block.line), page, module.__dict__)
        old = shown.get(block.line)
        if same(old.source if old else "", printed, varies=_varies(old)):
            continue
        new = [
            block.indent + line.rstrip()
            for line in [f"```{old.info}" if old else "```output", *printed.rstrip("\n").split("\n"), "```"]
        ]
        changes.append((block.end + 1, old.end + 1 if old else block.end + 1, ["", *new] if printed else []))
    for start, end, new in reversed(changes):
        lines[start:end] = new
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> int:
    """Rewrite the pages named, each run in an empty folder."""
    for page in [Path(name).resolve() for name in names]:
        home = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                text = rewritten(page)
                for name in re.findall(r"\]\(images/([\w.]+)\)", text):
                    if Path(name).is_file():  # a picture that the code of the page draws
                        shutil.copy(name, page.parent / "images" / name)
            finally:
                os.chdir(home)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(page.name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
