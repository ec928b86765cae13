"""The marks of a few systems, and the page that shows them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from experiments.provenance import read_json
from experiments.table_one import app
from experiments.table_one.efficient import _slope
from experiments.table_one.expressive import expressive, toys
from experiments.table_one.general import general
from experiments.table_one.measures import consistent, probabilistic
from experiments.table_one.report import TITLES, markdown, print_table
from experiments.table_one.systems import PUBLISHED, SYSTEMS, published

ROOT = Path(__file__).resolve().parents[3]


def test_published_marks_name_every_system() -> None:
    for line in PUBLISHED.values():
        assert line.split()[::2] == list(SYSTEMS)


def test_sums_and_writings() -> None:
    assert probabilistic("spl")["mark"]
    found = probabilistic("dl2")
    assert found["sum off by"] < 1e-6
    assert found["writings differ by"] > 0.1
    assert probabilistic("ccn") == {"sum off by": None, "cases": 0, "writings differ by": None, "mark": False}


def test_consistency() -> None:
    assert consistent("product-spl") == {"random": 0, "adversarial": 0, "of": 2000, "mark": True}
    assert consistent("fil")["adversarial"] > 1000


def test_toys_are_what_they_are_called() -> None:
    made = toys()
    a, b, c = made["xor"][:, 0], made["xor"][:, 1], made["parity"]
    assert bool((a != b).all())
    assert bool(((c[:, 0] != c[:, 1]) == c[:, 2].bool()).all())
    near = [(made["mixture"][:, :4] == torch.tensor(row)).float().mean(1) for row in ([0, 0, 1, 1], [1, 1, 0, 0])]
    assert float(torch.stack(near).max(0).values.mean()) > 0.85


def test_fits_lie_between_independent_labels_and_the_truth() -> None:
    found = {system: expressive(system) for system in ("fil", "ebm", "spl")}
    for toy in ("xor", "mixture", "parity"):
        assert abs(found["fil"][toy]["fit"]) < 2
        assert found["spl"][toy]["fit"] > 90
        assert found["spl"][toy]["nll"] > found["spl"][toy]["true entropy"]
    assert found["ebm"]["mark"]
    assert found["ebm"]["parity"]["fit"] < 10  # pairs say nothing about the parity of three labels
    assert not found["fil"]["mark"]


def test_what_a_method_refuses_is_named() -> None:
    kinds = general("multiplexnet")["kinds"]
    assert [name for name, kind in kinds.items() if not kind["taken"]] == ["CNF, 2^40 terms"]
    assert "10^12 terms" in kinds["CNF, 2^40 terms"]["refused"]


def test_a_constraint_that_changes_nothing_is_not_taken() -> None:
    found = general("ebm")
    assert (found["taken"], found["mark"]) == (0, False)
    for kind in found["kinds"].values():
        assert kind["violations"][0] == kind["violations"][1] > 0
        assert kind["added loss"] == [0.0, 0.0]


def test_exponents() -> None:
    assert _slope({size: 3e-4 * size**2 for size in (2, 4, 8, 16, 32)}) == 2.0
    assert _slope({2: 1.0, 4: 1.0, 8: 1.0, 16: 2.0, 32: 4.0, 64: 8.0}) == 1.0


def test_unknown_systems_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app.main(["--systems", "svm"])
    assert "no system 'svm': choose from dl2" in capsys.readouterr().err


def test_the_page_shows_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "results" / "table_one.json"
    results = read_json(path)["results"]
    page = (ROOT / "docs" / "table_one.md").read_text(encoding="utf-8")
    assert markdown(results) in page, f"run: python -m experiments table-one --out {path.name} --page docs/table_one.md"
    assert all(found["mark"] for found in results["spl"].values())
    assert published("D2", "spl")
    print_table(results)
    assert all(len(line) <= 80 for line in capsys.readouterr().out.splitlines())
    assert list(app.DESIDERATA) == list(TITLES) == list(PUBLISHED)
