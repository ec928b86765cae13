"""The page on decoders shows what was measured, and the script that measures still runs."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks import decoders
from experiments.provenance import read_json

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_page_shows_the_results(tmp_path: Path) -> None:
    page = ROOT / "docs" / "howto_decoding.md"
    content = read_json(ROOT / "results" / "decoders.json")
    copy = tmp_path / "page.md"
    copy.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    decoders.update_page(copy, content)
    assert copy.read_text(encoding="utf-8") == page.read_text(encoding="utf-8"), "run benchmarks.decoders.update_page"


def test_what_the_page_says_of_the_results() -> None:
    runs = read_json(ROOT / "results" / "decoders.json")["runs"]

    def mean(method: str, decoder: str, figure: str) -> float:
        seen = [run[figure] for run in runs if (run["method"], run["decoder"]) == (method, decoder)]
        return sum(seen) / len(seen)

    layers = ("product", "mixture", "single")
    for layer in layers:
        assert mean(layer, "mode", "f1") < mean("independent", "mode", "f1")
        assert mean(layer, "f1", "f1") > mean("independent", "mode", "f1")
        assert mean(layer, "mode", "exact") > 5 * mean("independent", "mode", "exact")
        assert all(mean(layer, "mode", "exact") > mean(layer, other, "exact") for other in decoders.DECODERS[1:])
        assert mean(layer, "f1", "obeys") == mean(layer, "mode", "obeys") == 100
        assert mean(layer, "mode", "log_likelihood") > mean("constrained", "mode", "log_likelihood")
        assert mean(layer, "mode", "calibration_error") < mean("constrained", "mode", "calibration_error")
    assert 50 < mean("independent", "f1", "obeys") < 60
    by_f1 = {method: mean(method, "f1", "f1") for method in decoders.TITLES}
    assert by_f1["product"] > by_f1["independent"] > by_f1["single"] > by_f1["independent"] - 2
    assert by_f1["independent"] > by_f1["mixture"] > by_f1["independent"] - 2


def test_the_labels_obey_the_graph() -> None:
    import semprola as sp

    parts = decoders.data(1, {"train": 50, "valid": 20})
    rules = sp.constraints.hierarchy(decoders.graph())
    for _, y in parts.values():
        assert torch.as_tensor(rules.evaluate(y, labels=decoders.NAMES)).all()


def test_a_short_run() -> None:
    runs = decoders.measure(0, {"train": 30, "valid": 20, "test": 5}, epochs=1)
    assert {run["method"] for run in runs} == set(decoders.TITLES)
    assert {run["decoder"] for run in runs} == set(decoders.DECODERS)
    text = decoders.table({"runs": runs})
    assert len(text.splitlines()) == 2 + len(decoders.TITLES) * len(decoders.DECODERS)
