"""The short tables of README.md and of the evidence pages, and the sentences beside them, are those of the results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from experiments import concept_pictures, evidence
from experiments.provenance import read_json
from semprola.errors import FormatError

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
LAYERS = ("spl", "product-spl")


def test_the_pages_show_the_results_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for place, _ in evidence.PARTS.values():
        (tmp_path / place).write_text((ROOT / place).read_text(encoding="utf-8"), encoding="utf-8")
    evidence.update_pages(RESULTS, tmp_path)
    for place, _ in evidence.PARTS.values():
        again = f"{place}: run python -m experiments evidence"
        assert (tmp_path / place).read_text(encoding="utf-8") == (ROOT / place).read_text(encoding="utf-8"), again


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(FormatError, match="page: expected one"):
        evidence.replaced("nothing", "paths", "table", "page")


def test_pictures_are_drawn_and_committed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for path in evidence.draw(RESULTS, tmp_path):
        assert path.read_bytes().startswith(b"<?xml")
        assert (ROOT / "docs" / "images" / path.name).is_file()


def test_methods_and_sets_without_an_exact_match_are_left_out(tmp_path: Path) -> None:
    """A campaign under way: no two circuits on one set, and SPL on another with the figures of AU(PRC) only."""
    folder = tmp_path / "results"
    shutil.copytree(RESULTS, folder)
    before = evidence.other_means(folder).splitlines()
    (folder / "hmlc" / "spo_product-spl.json").unlink()
    whole = evidence.other_means(folder).splitlines()
    assert before[:-1] == whole[:-1]
    *same, missing = whole[-1].split(" | ")
    assert before[-1].split(" | ")[:-1] == same
    assert missing == "not run |"

    file = folder / "hmlc" / "spo_spl.json"
    content = read_json(file)
    for run in content["runs"]:
        run["retrained"].pop("exact", None)
    file.write_text(json.dumps(content), encoding="utf-8")
    ours = evidence.other_means(folder).splitlines()[-1]
    assert "mean of 11 sets" in ours
    assert ours.split(" | ")[-1] != "not run |"


def test_what_is_said_of_simple_paths() -> None:
    """docs/paths.md: a quarter to three quarters of the others obey; ahead by 21 to 35."""
    ahead: dict[str, list[float]] = {}
    for name, files in evidence.PATHS.items():
        seen = evidence.figures(RESULTS, files)
        others = [seen[method] for method in seen if method not in LAYERS]
        assert all(seen[method][2] == 100 for method in LAYERS)
        assert all(25 <= figures[2] <= 75 for figures in others)
        best = max(figures[0] for figures in others)
        ahead[name] = [seen[method][0] - best for method in LAYERS]
    assert round(ahead["the same, scaled start and dropout"][1]) == 3
    wider = ahead["a wider network"] + ahead["wider, rows also mirrored"]
    assert (round(min(wider)), round(max(wider))) == (21, 35)


def test_what_is_said_of_speed() -> None:
    """docs/which_layer.md: on hierarchies, a step takes less than twice as long as with sigmoids."""
    networks = {row["circuit"]: row for row in read_json(RESULTS / "bench.json")["networks"]}
    for name in ("tree-499", "tree-399"):
        assert networks[name]["spl"]["cpu_ms"] < 2 * networks[name]["fil"]["cpu_ms"]


def test_the_pictures_of_the_concepts_are_those_that_the_library_draws(tmp_path: Path) -> None:
    for path in concept_pictures.draw(tmp_path):
        committed = ROOT / "docs" / "images" / path.name
        assert path.read_bytes() == committed.read_bytes(), f"{path.name}: run python -m experiments concepts"
