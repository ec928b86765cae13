"""The tables of docs/comparing.md are those of the results."""

from __future__ import annotations

from pathlib import Path

import pytest

from semprola.comparison.report import markdown, read_report

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["digits", "smokers"])
def test_the_page_shows_the_results(name: str) -> None:
    result = read_report(ROOT / "results" / f"compare_{name}.json")
    page = (ROOT / "docs" / "comparing.md").read_text(encoding="utf-8")
    assert markdown(result) in page
    for method in ("spl", "product-spl"):
        assert result.mean(method, "consistent") == 100.0
