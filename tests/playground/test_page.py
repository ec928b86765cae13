"""The page about the playground shows what was measured."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.playground import table

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_page_shows_the_results() -> None:
    page = (ROOT / "docs" / "playground.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- speed: begin -->")[2].partition("<!-- speed: end -->")[0].strip()
    results = json.loads((ROOT / "results" / "playground.json").read_text(encoding="utf-8"))
    assert shown == table(results).strip(), "run `python -m benchmarks.playground`, or its update_page()"
