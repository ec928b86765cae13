"""The page on sequences shows what was measured, what it says holds, and the script that measures still runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import sequences
from benchmarks.pages import put_between
from experiments.provenance import read_json

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_page_shows_the_results(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "sequences.md").read_text(encoding="utf-8")
    copy = tmp_path / "page.md"
    copy.write_text(page, encoding="utf-8")
    put_between(copy, "sequences", sequences.tables(read_json(ROOT / "results" / "sequences.json")))
    assert copy.read_text(encoding="utf-8") == page, "run `python -m benchmarks.sequences`"


def test_what_was_measured() -> None:
    """Faster than pytorch-crf at every size, the same likelihood, tags no worse, nothing invalid."""
    content = read_json(ROOT / "results" / "sequences.json")
    times = {(row["task"], row["batch"], row["padded"], row["candidate"]): row["cpu_ms"] for row in content["speed"]}
    assert len(times) == 2 * len(sequences.BATCHES) * 2 * 3
    for (*case, candidate), time in times.items():
        assert candidate == sequences.PEER or time < times[(*case, sequences.PEER)]
    assert content["difference"] < 1e-4

    def mean(candidate: str, figure: str) -> float:
        runs = [run[figure] for run in content["accuracy"] if run["candidate"] == candidate]
        return sum(runs) / len(runs)

    assert mean("bio", "right") >= mean(sequences.PEER, "right")
    assert mean("bio", "valid") == 1


def test_a_short_run() -> None:
    pytest.importorskip("torchcrf")
    rows = sequences.speed(2, True, rounds=1)
    assert {(row["task"], row["candidate"]) for row in rows} == {
        (task, name) for task in sequences.TASKS for name in sequences.TITLES
    }
    assert sequences.difference(4) < 1e-4
