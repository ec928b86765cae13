"""The examples of functions inside the library, which tests/inside.txt holds so that their docstrings stay short."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

TEXT = Path(__file__).with_name("inside.txt").read_text(encoding="utf-8")
PARTS = dict(re.findall(r"^# ([\w.]+)\n((?:(?!# ).*\n)+)", TEXT, re.MULTILINE))
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def module_of(name: str) -> Any:
    """The module that a function, a class or a method is in."""
    while True:
        name = name.rpartition(".")[0]
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue


def test_every_part_is_read() -> None:
    assert sum(text.count(">>> ") for text in PARTS.values()) == TEXT.count(">>> ") > 0
    assert len(PARTS) == len(re.findall(r"^# ", TEXT, re.MULTILINE))


@pytest.mark.parametrize("name", PARTS)
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = module_of(name)
    thing = module
    for part in name.removeprefix(f"{module.__name__}.").split("."):
        thing = getattr(thing, part)  # an example of something that is gone has no place here
    example = doctest.DocTestParser().get_doctest(PARTS[name], dict(vars(module)), name, "inside.txt", 0)
    runner, said = doctest.DocTestRunner(optionflags=FLAGS), []
    runner.run(example, out=said.append)
    assert not runner.failures, "".join(said)
