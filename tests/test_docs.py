"""The code in README.md, CONTRIBUTING.md and docs/ runs, and the commands that the pages name exist.

All `python` blocks of a page run in order in one namespace. What a block prints is shown in an `output` block below it.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pages import Block, fenced, fences, python_blocks, rewritten, run_page

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if page.is_file()]


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
        lines = page.read_text(encoding="utf-8").splitlines()
        code = {number for block in fences("\n".join(lines)) for number in range(block.line, block.end)}
        text = "\n".join(line for number, line in enumerate(lines) if number not in code)
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


def test_command_blocks_can_be_pasted_whole() -> None:
    """What a shell should not read is behind a #."""
    command = re.compile(r"^\s*(?:python|semprola|make|pip|git)\b[^#]*\S {2,}[^#\\\-\s].*$", re.MULTILINE)
    for page in PAGES:
        for block in fenced(page.read_text(encoding="utf-8"), "text|bash"):
            assert command.findall(block.source) == [], page.name


def test_code_fits_a_screen() -> None:
    """Lines that a reader has to scroll for hide what they say."""
    for name in ("README.md", "docs/index.md", "docs/tutorial.md", "docs/coming_from.md"):
        for block in python_blocks((ROOT / name).read_text(encoding="utf-8")):
            assert [line for line in block.source.splitlines() if len(line) > 108] == [], name


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


def test_what_is_printed_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    for shown in ("", "\n```output\n3 rows, 50.1 %\n```\n"):
        page.write_text(f"```python\nprint('2 rows, 50.0 %')\n```\n{shown}")
        with pytest.raises(pytest.fail.Exception, match=r"(?s)page.md, code from line 2 on.*\+2 rows, 50.0 %"):
            run_page(page, monkeypatch)
    page.write_text(rewritten(page))
    assert page.read_text() == "```python\nprint('2 rows, 50.0 %')\n```\n\n```output\n2 rows, 50.0 %\n```\n"
    run_page(page, monkeypatch)
