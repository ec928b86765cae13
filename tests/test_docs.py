"""The code in README.md, CONTRIBUTING.md and docs/ runs, and the commands that the pages name exist.

All `python` blocks of a page run in order in one namespace. A block with `>>>` prompts has its output checked too.
"""

from __future__ import annotations

import doctest
import re
import sys
import textwrap
import types
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if page.is_file()]
FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
CHECKS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A piece of Python in a page, and the line on which it starts, counted from 0."""

    source: str
    line: int


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, monkeypatch)


def test_make_targets_exist() -> None:
    makefile = ROOT.joinpath("Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = set(re.findall(r"(?:`|^\s*\$?\s*)make ([a-z][a-z-]*)", text, re.MULTILINE))
        assert named <= targets, f"{page.name} names make targets that do not exist: {sorted(named - targets)}"


def test_contributing_explains_how_to_run_what() -> None:
    listed = re.findall(r"^([a-z-]+):.*## ", ROOT.joinpath("Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    text = ROOT.joinpath("CONTRIBUTING.md").read_text(encoding="utf-8")
    checks = {name for name in listed if name.startswith("test") or name in ("lint", "mutants", "sanitize", "wheel")}
    assert {"test", "test-all"} <= checks
    assert [name for name in checks if f"`make {name}" not in text] == []


def test_links_to_files_lead_somewhere() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if not re.match(r"[a-z]+:", link):
                assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_commands_exist() -> None:
    """Of commands that pages show: modules and files are there, and `semprola` has the command and its options."""
    known = _options()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for module in re.findall(r"python -m ((?:experiments|benchmarks|semprola)[\w.]*)", text):
            path = ROOT.joinpath(*module.rstrip(".").split("."))
            assert path.with_suffix(".py").is_file() or path.is_dir(), f"{page.name}: python -m {module}"
        for script in re.findall(r"python ((?:examples|benchmarks)/\w+\.py)", text):
            assert (ROOT / script).is_file(), f"{page.name}: {script}"
        shown = "".join(block.source for block in fenced(text, "text|bash"))
        for command, words in re.findall(r"^semprola (\w+)(.*)$", shown, re.MULTILINE):
            assert command in known, f"{page.name}: semprola {command}"
            used = set(re.findall(r" (--[a-z-]+)", words.split("#")[0]))
            assert used <= known[command], f"{page.name}: semprola {command} has no {sorted(used - known[command])}"


def _options() -> dict[str, set[str]]:
    """The commands of the command line, and the options of each."""
    typer = pytest.importorskip("typer")
    from typer.main import get_command

    from semprola.cli.app import build

    commands: Any = get_command(build(typer)).commands  # type: ignore[attr-defined]
    return {name: {text for option in command.params for text in option.opts} for name, command in commands.items()}


def test_fences_are_found() -> None:
    page = textwrap.dedent(
        """\
        ```python
        a = 1
        ```
        ```text
        not code
        ```
        ````markdown
        ```python
        an example of a block, not a block
        ```
        ````
        - in a list

          ~~~python title="b.py"
          if a:
              b = 2
          ~~~
        """
    )
    assert python_blocks(page) == [Block("a = 1\n", 1), Block("if a:\n    b = 2\n", 14)]


def test_fence_left_open_is_an_error() -> None:
    with pytest.raises(ValueError, match="line 2"):
        python_blocks("text\n```python\na = 1\n")


def test_blocks_share_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\na = 1\n```\n```python\n>>> b = a + 1\n>>> b\n2\n```\n```python\nassert b == 2\n```\n")
    run_page(page, monkeypatch)


def test_error_names_the_line_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\na = 1\na / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(page, monkeypatch)
    last = caught.traceback[-1]
    assert (Path(last.path), last.lineno + 1) == (page, 5)


def test_wrong_output_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(pytest.fail.Exception, match=r"(?s)page.md.*line 4.*Expected:\s+3\s+Got:\s+2"):
        run_page(page, monkeypatch)


def run_page(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the Python blocks of a page in order, in one module."""
    # A real, registered module: dataclasses and pickle look up the module in which a class is defined.
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in python_blocks(page.read_text(encoding="utf-8")):
        if block.source.lstrip().startswith(">>>"):
            _run_session(block, page, module.__dict__)
        else:
            # The empty lines make the line numbers of a traceback those of the page.
            exec(compile("\n" * block.line + block.source, str(page), "exec"), module.__dict__)


def python_blocks(text: str) -> list[Block]:
    """The fenced blocks of a Markdown text that are marked `python` or `pycon`."""
    return fenced(text, "python|pycon")


def fenced(text: str, kinds: str) -> list[Block]:
    """The fenced blocks of a Markdown text that are marked as one of some kinds, separated by bars.

    Raises:
        ValueError: if a fence is left open.
    """
    blocks = []
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
            if re.match(rf"({kinds})\b", opening["info"]):
                blocks.append(Block(textwrap.dedent("\n".join(lines[start:number])) + "\n", start))
            opening = None
    if opening is not None:
        raise ValueError(f"the fence opened on line {start} is never closed")
    return blocks


def _run_session(block: Block, page: Path, names: dict[str, Any]) -> None:
    session = doctest.DocTestParser().get_doctest(block.source, names, page.name, str(page), block.line)
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=CHECKS)
    runner.run(session, out=report.append, clear_globs=False)
    names.update(session.globs)
    if runner.failures:
        pytest.fail("".join(report), pytrace=False)
