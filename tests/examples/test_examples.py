"""The examples run, with fewer rows and epochs than a reader would take."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
QUICK = {
    "compare_digits": ["--epochs", "1", "--folds", "2"],
    "compare_smokers": ["--epochs", "1", "--folds", "2", "--rows", "60"],
    "tag_names": ["--epochs", "1", "--seeds", "1", "--rows", "200"],
}
SAYS = {"tag_names": "SequenceSPL"}
"""What the output of an example holds, if not a comparison of methods."""


def test_every_example_is_listed() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(QUICK)


@pytest.mark.parametrize("name", QUICK)
def test_example(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(sys, "argv", [name, *QUICK[name]])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert SAYS.get(name, "SPL, one circuit") in printed
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 100


def test_tags_obey_the_rules(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["tag_names", *QUICK["tag_names"]])
    runpy.run_path(str(EXAMPLES / "tag_names.py"), run_name="__main__")
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("SequenceSPL"))
    assert "100.00%" in line
