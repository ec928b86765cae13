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
}


def test_every_example_is_listed() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(QUICK)


@pytest.mark.parametrize("name", QUICK)
def test_example(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(sys, "argv", [name, *QUICK[name]])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "SPL, one circuit" in printed
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 100
