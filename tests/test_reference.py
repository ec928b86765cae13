"""The reference pages name everything that there is: commands and options, errors, kinds of files, public names."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import semprola as sp
from semprola import errors
from semprola.cli import compiling, tables
from semprola.logic import syntax

DOCS = Path(__file__).resolve().parent.parent / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def commands() -> dict[str, Any]:
    typer = pytest.importorskip("typer")
    from typer.main import get_command

    from semprola.cli.app import build

    found: dict[str, Any] = get_command(build(typer)).commands  # type: ignore[attr-defined]
    return found


def option_table(command: Any) -> str:
    """The options of a command as they stand in docs/command_line.md."""
    lines = ["| option | meaning | default |", "|---|---|---|"]
    for option in command.params:
        if option.param_type_name == "option":
            names = ", ".join(f"`{name}`" for name in sorted(option.opts, key=len, reverse=True))
            default = option.default
            shown = "" if default in (None, False, "") or callable(default) else str(default)
            lines.append(f"| {names} | {(option.help or '').replace('|', chr(92) + '|')} | {shown} |")
    return "\n".join(lines)


def test_every_command_and_option_is_listed() -> None:
    text = page("command_line.md")
    for name, command in commands().items():
        assert f"`semprola {name}" in text, name
        table = option_table(command)
        assert table in text, f"put this under `semprola {name}` in docs/command_line.md:\n\n{table}"


def test_every_error_has_a_cause_and_a_remedy() -> None:
    text = page("errors.md")
    classes = [thing for thing in vars(errors).values() if isinstance(thing, type) and issubclass(thing, Exception)]
    for kind in classes:
        if kind is not errors.SemprolaError:
            row = re.search(rf"^\| `{kind.__name__}` \| .+ \| .+ \|$", text, re.MULTILINE)
            assert row, f"docs/errors.md has no row for {kind.__name__}"


def test_every_kind_of_file_is_listed() -> None:
    text = page("files.md")
    for code in (compiling.__file__, syntax.__file__, tables.__file__):
        for suffix in set(re.findall(r'"(\.[a-z0-9]+)"', Path(code).read_text(encoding="utf-8"))):
            assert f"`{suffix}`" in text, f"docs/files.md does not name {suffix}"


def test_every_environment_variable_is_listed() -> None:
    source = DOCS.parent / "src" / "semprola"
    text = page("files.md")
    for path in source.rglob("*.py"):
        for name in re.findall(r'"(SEMPROLA_[A-Z_]+)"', path.read_text(encoding="utf-8")):
            assert f"`{name}`" in text, f"docs/files.md does not name {name}, which {path.name} reads"


def test_every_public_name_is_in_the_api_pages() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("api_*.md"))
    listed = set(re.findall(r"auto(?:function|class):: semprola\.([\w.]+)", text))
    named = {name.split(".")[-1] for name in listed}
    for name in sp.__all__:
        value = getattr(sp, name)
        if isinstance(value, type) or inspect.isfunction(value):
            assert name in named, f"no page docs/api_*.md names sp.{name}"
    for module in (
        "constraints",
        "distributions",
        "nn",
        "rules",
        "training",
        "saving",
        "losses",
        "baselines",
        "errors",
    ):
        for name in getattr(importlib.import_module(f"semprola.{module}"), "__all__", ()):
            families = module == "constraints" and name[0].isupper()  # made by functions of the same name
            assert name in named or families, f"docs/api_{module}.md does not name {name}"
