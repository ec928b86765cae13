"""Shortest paths with predicted costs: generated here, as PyEPO is not installed everywhere."""

import itertools

import pytest
import torch

from experiments.decisions.app import best_rate, main
from experiments.decisions.report import page
from experiments.decisions.training import OURS, ROWS, TEST, Paths, Settings, normalised_regret, run
from experiments.provenance import write_json


@pytest.fixture(scope="module")
def paths():
    return Paths()


def _all_paths(edges):
    """Every way of four steps right and four down, as rows of edges."""
    place = {edge: i for i, edge in enumerate(edges)}
    rows = []
    for down in itertools.combinations(range(8), 4):
        row, node = torch.zeros(len(edges)), 0
        for step in range(8):
            further = node + (5 if step in down else 1)
            row[place[node, further]] = 1
            node = further
        rows.append(row)
    return torch.stack(rows)


def test_the_cheapest_of_seventy_paths(paths):
    every = _all_paths(paths.edges)
    costs = torch.rand(20, 40, generator=torch.Generator().manual_seed(0))
    assert torch.equal(paths.best(costs), every[(costs @ every.T).argmin(1)])
    assert normalised_regret(paths, costs, costs) == 0
    worst = normalised_regret(paths, -costs, costs)
    totals = costs.double() @ every.double().T
    assert worst == pytest.approx(
        100 * float((totals.max(1).values - totals.min(1).values).sum() / totals.min(1).values.sum())
    )


def test_ours_learn(paths, monkeypatch):
    monkeypatch.setattr("experiments.decisions.training._version", lambda: "none")
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS + TEST, 5, generator=generator)
    costs = (x @ torch.randn(5, 40, generator=generator)).abs() + 0.1
    before = normalised_regret(paths, torch.ones(TEST, 40), costs[ROWS:])
    for method in OURS:
        found = run(Settings(method, epochs=2), 0, (x, costs))
        assert found["regret"] < 0.8 * before
        assert found["settings"]["method"] == method


def test_page(tmp_path, monkeypatch, capsys):
    provenance = {"pyepo": "2.2.7", "command": "python -m experiments decisions"}

    def entry(method, seed, regret):
        return {
            "seed": seed, "settings": {"method": method, "lr": 0.01}, "regret": regret, "milliseconds_per_step": 5.0,
            "provenance": provenance,
        }  # fmt: skip

    runs = [entry(m, seed, r + seed / 100) for m, r in [("spo+", 8.0), ("likelihood", 7.0)] for seed in (42, 43)]
    content = {
        "search": [entry("spo+", 41, 9.0), entry("spo+", 41, 8.0) | {"settings": {"method": "spo+", "lr": 0.1}}],
        "runs": runs,
    }
    text = page(content)
    assert "| PyEPO: SPO+ | 8.43 ± 0.01 | 5.0 | 7.6 |" in text
    assert "is 1.00 ± 0.00 points lower than that of SPO+" in text
    assert "lower on 2 of 2" in text
    assert best_rate(content["search"], "spo+") == 0.1
    write_json(tmp_path / "decisions.json", content)
    monkeypatch.setattr("experiments.decisions.app.PAGE", tmp_path / "page.md")
    assert main(["--report", "--out", str(tmp_path / "decisions.json")]) == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text
    with pytest.raises(SystemExit, match="unknown method 'x': choose from costs"):
        main(["--methods", "x", "--out", str(tmp_path / "decisions.json")])
