"""What splitting costs is measured on splits that state the task, and the page has the table of the results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments import split_costs

ROOT = Path(__file__).resolve().parents[2]


def test_a_small_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--rows", "20", "--tests", "3", "--epochs", "1", "--seeds", "1"]
    assert split_costs.main(["--only", "hierarchy of 14", "--out", str(tmp_path / "split.json"), *few]) == 0
    results = json.loads((tmp_path / "split.json").read_text())["results"]
    assert results[0]["circuits"] == 1
    assert len(results) > 1
    for row in results:
        assert row["bound"] <= row["log-likelihood"] + 1e-5
    assert results[0]["bound"] == pytest.approx(results[0]["log-likelihood"], abs=1e-4)
    assert capsys.readouterr().out.strip() == split_costs.table(results)


def test_the_page_has_the_results() -> None:
    results = json.loads((ROOT / "results" / "split.json").read_text())["results"]
    assert split_costs.table(results) in (ROOT / "docs" / "howto_splitting.md").read_text(encoding="utf-8")
