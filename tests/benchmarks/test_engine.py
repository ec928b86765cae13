"""The benchmark on circuits so small that it takes a second: that it measures, says why it cannot, and reports."""

from __future__ import annotations

import importlib.util
import json
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import semprola as sp
from benchmarks import call_report, calls, gpu_cost, growth, report
from benchmarks.cases import Case, band, cases
from benchmarks.engine import bench
from benchmarks.measure import side_by_side
from benchmarks.peers import Peers
from benchmarks.products import compatible, mixtures, small_cardinality
from benchmarks.ratios import ratios, slope
from benchmarks.records import keep, measured
from benchmarks.tasks import network_step, tasks
from benchmarks.weak import weak_labels
from semprola.cli.app import reporting_errors
from semprola.engine import CircuitPlans, Plan

TINY = sp.compile(sp.one_hot(["a", "b", "c"]))


def run(*options: str) -> Any:
    application = typer.Typer()
    application.command()(reporting_errors(bench))
    return CliRunner().invoke(application, list(options))


def test_a_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.cases._CASES", [Case("tiny", lambda: TINY)])
    # those that they stand for take long to compile in an empty folder
    monkeypatch.setattr("benchmarks.imports._PROGRAMS", {"torch": "import json", "semprola": "import decimal"})
    page = tmp_path / "speed.md"
    few = ("--seconds", "0.01", "--rounds", "1", "--sizes", "200,2000", "--batch", "2,128")
    made = run(*few, "--out", str(tmp_path), "--docs", str(page), "--json")
    assert made.exit_code == 0, made.output
    result = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert json.loads(made.stdout) == result
    assert "[1/4] tiny" in made.stderr
    assert sorted(file.name for file in tmp_path.iterdir() if file.suffix == ".part") == []
    assert {(row["batch"], row["threads"]) for row in result["rows"]} == {(2, 1), (128, 1), (128, 2)}
    measured = {(row["task"], row["engine"]) for row in result["rows"] if "cpu_ms" in row}
    assert {("log Z", "torch"), ("log Z + gradient", "torch"), ("step", "torch"), ("step", "fil")} <= measured
    assert result["growth"][0]["edges"] > 100
    text = page.read_text(encoding="utf-8")
    assert "| tiny |" in text
    assert "Exponents of growth" in text
    assert (tmp_path / "bench.svg").exists() == (importlib.util.find_spec("matplotlib") is not None)


def test_bad_input_is_one_line() -> None:
    for options in (
        ["--circuits", "nonsense"],
        ["--batch", "x"],
        ["--batch", "0"],
        ["--threads", "-1"],
        ["--batch", "inf"],
    ):
        made = run(*options)
        assert made.exit_code == 2
        assert "error: " in made.output
        assert len(made.output.strip().splitlines()) == 1


def test_every_circuit_is_made_here() -> None:
    """A fresh clone has no data sets."""
    small = {case.name: case for case in cases()}
    assert len(small) == 8
    for name, labels in (("tree-399", 399), ("clauses-30-sdd", 30), ("warcraft-12x12", 264)):
        circuit = small[name].make()
        assert circuit.num_labels == labels
        assert circuit.is_decomposable


def test_a_run_that_did_less_does_not_replace_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def result(*engines: str) -> dict[str, Any]:
        rows = [{"circuit": "tree-399", "task": "log Z", "engine": engine, "cpu_ms": 1.0} for engine in engines]
        return {"rows": rows}

    path = tmp_path / "bench.json"
    assert keep(path, result("native", "klay"))
    assert not keep(path, result("native"))
    assert measured(json.loads(path.read_text(encoding="utf-8"))) == measured(result("native", "klay"))
    assert (tmp_path / "bench.partial.json").exists()
    said = capsys.readouterr().err
    assert "1 measurements that this run lacks, such as rows · circuit tree-399 · task log Z · engine klay" in said
    assert keep(path, result("native", "klay", "cirkit"))
    growth = {"growth": [{"wanted": 1000, "cpu_ms": 1.0}], "imports": {"torch": 1.0}}
    assert keep(path, result("native", "klay", "cirkit") | growth)
    assert not keep(path, result("native", "klay", "cirkit", "jax"))
    assert "2 measurements that this run lacks, such as growth · wanted 1000, imports" in capsys.readouterr().err
    gone = {"rows": [{"circuit": "a circuit of the past", "task": "log Z", "engine": "native", "cpu_ms": 1.0}]}
    assert keep(tmp_path / "other.json", gone)
    assert keep(tmp_path / "other.json", result("native"))


def test_the_calls_of_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task is measured; a peer that gives other numbers is left out, and the page says why."""

    class Wrong:
        def __init__(self, circuit: sp.Circuit, seconds: float) -> None:
            pass

        def budget(self, mode: str) -> Any:
            return nullcontext()

        def call(self, task: str, mode: str, ours: Any) -> Any:
            own = ours.call(task)
            return own if mode == "eager" else lambda: tuple(part + 1 for part in own())

    monkeypatch.setattr("benchmarks.calls.KlayCalls", Wrong)
    rows = calls.measure_circuit("tiny", TINY, 4, ["eager", "compiled"], 1, 0.01, 1.0, 5000)
    assert {row["task"] for row in rows if "cpu_ms" in row} == set(calls.TASKS)
    result = {"rows": rows, "conditions": {"batch": 4}}
    text = call_report.section(result)
    report_of = {
        "conditions": {"threads": [1]},
        "rows": [],
        "networks": [],
        "growth": [],
        "mixtures": [],
        "products": [],
    }
    said = " ".join(report.sentences(report_of, result).split())
    assert said.startswith(
        "On one thread at batch 4, from logits to numbers, the call of a layer computes log Z with its"
    )
    assert "A training step of a small network takes" in said
    assert "| tiny | 6 |" in text or "| tiny | 3 |" in text
    assert "klay compiled, step: its numbers are not ours (largest difference 1)" in text
    assert set(call_report.advantages(result, "step")) == {"tiny"}


def test_what_cannot_be_done_says_why() -> None:
    for key, made in tasks(TINY, Peers(TINY), 2).items():
        if isinstance(made, str):
            assert made, key
        else:
            made()
    for kind in ("spl", "fil", "narrow", "zeros"):
        network_step(TINY, 4, kind)()


def test_the_growing_circuit_has_the_size_asked_for() -> None:
    for edges in (10, 1000, 50_000):
        plan = Plan(band(edges))
        assert 0.5 * edges <= plan.num_edges <= 2 * edges
    assert "unable" in growth.measure(-1, 2)


def test_slow_candidates_do_not_hold_up_the_others() -> None:
    calls = {"quick": 0, "slow": 0}

    def count(name: str, seconds: float) -> None:
        calls[name] += 1
        time.sleep(seconds)

    runs = {"quick": lambda: count("quick", 0.0), "slow": lambda: count("slow", 0.05)}
    measured = side_by_side(runs, rounds=20, seconds=0.2)
    assert measured["slow"]["rounds"] == 3
    assert measured["quick"]["rounds"] == 20 or measured["quick"]["rounds"] >= 3
    assert measured["slow"]["ms"] >= 50
    assert calls["slow"] == 5


def test_two_circuits() -> None:
    """M mixtures cost no more than M passes for one, and q times the constraint has no more than |q| |c| edges."""
    circuit, _ = small_cardinality()
    rows = compatible(circuit, 4, 1, 0.1)
    assert {(row["q"], row["units"]) for row in rows} == {(q, units) for q in ("hmm", "vtree") for units in (1, 2, 4)}
    for row in rows:
        assert row["product_edges"] <= row["q_edges"] * row["edges"]
    times = {row["mixtures"]: row["cpu_ms"] for row in mixtures(circuit, 64, 9, 2.0)}
    assert times[8] <= 1.5 * 8 * times[1]  # a generous margin for a busy machine


def test_ratios_are_those_of_the_worst() -> None:
    def row(task: str, engine: str, ms: float) -> dict[str, Any]:
        size = {"circuit": "tree-499", "edges": 1, "batch": 128, "threads": 1}
        return {**size, "task": task, "engine": engine, "cpu_ms": ms}

    times = {("log Z", "native"): 1.0, ("mode", "native"): 1.4, ("sample", "native"): 2.1}
    times |= {("log Z + gradient", e): ms for e, ms in (("native", 2.0), ("torch", 10.0), ("klay", 50.0))}
    growth = [
        {"edges": 10**n, "cpu_ms": 10.0**n, "megabytes": 1.0, "grown_megabytes": 1.0, "batch": 1} for n in range(3, 8)
    ]
    result: dict[str, Any] = {
        "conditions": {"threads": [1, 2]},
        "rows": [row(*key, ms) for key, ms in times.items()],
        "networks": [{"circuit": "tree-499", "spl": {"cpu_ms": 3.0}, "fil": {"cpu_ms": 2.0}}],
        "mixtures": [{"mixtures": 1, "cpu_ms": 1.0}, {"mixtures": 4, "cpu_ms": 5.0}],
        "products": [],
        "growth": growth,
        "bound": {"ms": 0.5, "native_ms": 1.0, "gb_a_second": 50.0},
    }
    result["weak"] = [
        {"layer": "SPL", "labels": what, "engine": "torch", "batch": 64, "cpu_ms": ms}
        for what, ms in (("full", 1.0), ("half", 1.5), ("log Z", 3.0))
    ]
    result["imports"] = {"torch": 1000.0, "semprola": 1150.0, "rounds": 7}
    assert [ratio.found for ratio in ratios(result)] == [
        "25.0× (tree-499)",
        "5.0× (tree-499)",
        "50 %",
        "1.50× (tree-499)",
        "1.40× (tree-499)",
        "2.10× (tree-499)",
        "0.50× (batch 64)",
        "1.25× (m = 4)",
        "1.00",
        "0.00",
        "1 MB",
        "1.15×",
    ]
    assert slope(result, "nothing") is None
    tables = report.tables(result | {"mixtures": []})
    assert "| SPL | torch | 64 | 1.00 | 1.50 | 1.50 | 3.00 | 0.50 |" in tables
    assert "1.15×" in tables


def test_half_observed_labels_are_measured() -> None:
    rows = weak_labels(TINY, 4, 1, 0.1)
    assert [(row["layer"], row["labels"]) for row in rows if row["engine"] == "torch"] == [
        *(("SPL", what) for what in ("full", "half", "log Z")),
        *(("ProductSPL", what) for what in ("full", "half")),
    ]


def test_the_page_is_made_from_the_measurements(tmp_path: Path) -> None:
    """docs/speed.md and its files of results, where they exist, belong together."""
    root = Path(__file__).resolve().parents[2]
    page = root / "docs" / "speed.md"
    if not (page.is_file() and (root / "results" / "bench.json").is_file()):
        pytest.skip("no measurements are kept here")
    report.write_page(tmp_path / "speed.md", root / "results")
    assert page.read_text(encoding="utf-8") == (tmp_path / "speed.md").read_text(encoding="utf-8")


def test_costs_on_a_gpu_are_counted_from_the_plan() -> None:
    """A small circuit is one launch up and one down, besides two copies; torch has several per step."""
    plan = CircuitPlans(sp.compile(sp.constraints.permutation(3))).constraint
    cost = gpu_cost.costs(plan, 128)
    assert cost["triton"]["launches"] == 4
    assert cost["torch"]["launches"] > 4 * cost["steps"]
    assert 0 < cost["triton"]["megabytes"] < cost["torch"]["megabytes"]
