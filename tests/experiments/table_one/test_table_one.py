"""The marks of a few systems, and the page that shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.provenance import read_json
from experiments.table_one import app, measures
from experiments.table_one.report import markdown, print_table
from experiments.table_one.systems import PUBLISHED, SYSTEMS, published

ROOT = Path(__file__).resolve().parents[3]


def test_published_marks_name_every_system() -> None:
    for line in PUBLISHED.values():
        assert line.split()[::2] == list(SYSTEMS)


def test_spl_is_probabilistic_and_consistent() -> None:
    assert measures.probabilistic("spl")["mark"]
    assert measures.consistent("product-spl") == {"random": 0, "adversarial": 0, "of": 2000, "mark": True}


def test_independent_labels_break_rules_and_dl2_depends_on_the_form() -> None:
    assert measures.consistent("fil")["adversarial"] > 1000
    assert not measures.probabilistic("dl2")["loss depends on meaning alone"]


def test_what_a_method_refuses_is_named() -> None:
    found = measures.general("multiplexnet")
    assert set(found["refused"]) == {"CNF, 2^40 terms"}
    assert "10^12 terms" in found["refused"]["CNF, 2^40 terms"]


def test_the_page_shows_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "results" / "table_one.json"
    results = read_json(path)["results"]
    page = (ROOT / "docs" / "table_one.md").read_text(encoding="utf-8")
    assert markdown(results) in page, f"run: python -m experiments table-one --out {path.name} --page docs/table_one.md"
    assert all(found["mark"] for found in results["spl"].values())
    assert published("D2", "spl")
    print_table(results)
    assert all(len(line) <= 80 for line in capsys.readouterr().out.splitlines())
    assert set(app.DESIDERATA) == set(PUBLISHED)
