"""The benchmark on circuits so small that it takes a second: that it measures, says why it cannot, and reports."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import semprola as sp
from semprola import cli
from semprola.commands import bench_growth, bench_report
from semprola.commands.bench_cases import Case, band
from semprola.commands.bench_tasks import network_step, tasks
from semprola.engine import Plan

TINY = sp.compile(sp.one_hot(["a", "b", "c"]))


def run(*options: str) -> Any:
    return CliRunner().invoke(cli.build(typer), ["bench", *options])


def test_a_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semprola.commands.bench_cases._CASES", [Case("tiny", lambda _: TINY)])
    page = tmp_path / "speed.md"
    made = run("--batch", "2", "--rounds", "1", "--sizes", "200", "--out", str(tmp_path), "--docs", str(page), "--json")
    assert made.exit_code == 0, made.output
    result = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert json.loads(made.output) == result
    measured = {(row["task"], row["engine"]) for row in result["rows"] if "cpu_ms" in row}
    assert {("log Z", "torch"), ("log Z + gradient", "torch"), ("step", "torch"), ("step", "fil")} <= measured
    assert result["growth"][0]["edges"] > 100
    assert "| tiny |" in page.read_text(encoding="utf-8")
    assert (tmp_path / "bench.svg").exists() == (importlib.util.find_spec("matplotlib") is not None)


def test_bad_input_is_one_line() -> None:
    for options in (["--circuits", "nonsense"], ["--batch", "x"], ["--batch", "0"]):
        made = run(*options)
        assert made.exit_code == 2
        assert "error: " in made.output
        assert len(made.output.strip().splitlines()) == 1


def test_missing_data_is_said(tmp_path: Path) -> None:
    made = run("--circuits", "cellcycle", "--data", str(tmp_path), "--sizes", "", "--out", str(tmp_path))
    assert made.exit_code == 0
    assert "needs published data" in made.output


def test_what_cannot_be_done_says_why() -> None:
    for key, made in tasks(TINY, 2).items():
        if isinstance(made, str):
            assert made, key
        else:
            made()
    for kind in ("spl", "fil"):
        network_step(TINY, 4, kind)()


def test_the_growing_circuit_has_the_size_asked_for() -> None:
    for edges in (10, 1000, 50_000):
        plan = Plan(band(edges))
        assert 0.5 * edges <= plan.num_edges <= 2 * edges
    assert "unable" in bench_growth.measure(-1, 2)


def test_the_page_is_made_from_the_measurements() -> None:
    """docs/speed.md and results/bench.json, where both exist, belong together."""
    root = Path(__file__).resolve().parents[2]
    page, source = root / "docs" / "speed.md", root / "results" / "bench.json"
    if not (page.is_file() and source.is_file()):
        pytest.skip("no measurements are kept here")
    assert page.read_text(encoding="utf-8") == bench_report.page(json.loads(source.read_text(encoding="utf-8")))
