"""The tables in the docs are those of the results, and the scripts that make both still run."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = ROOT / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["compile_families", "compile_competition"])
def test_the_page_shows_the_results(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = script(name, monkeypatch)
    page = (ROOT / "docs" / "compile.md").read_text(encoding="utf-8")
    begin, end = module.MARKS
    shown = page.partition(begin)[2].partition(end)[0].strip()
    path = ROOT / "results" / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"there are no results yet: run benchmarks/{name}.py")
    results = json.loads(path.read_text())
    assert shown == module.table(results).strip(), f"run `python benchmarks/{name}.py`, or its update_page()"


def test_every_tool_counts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = script("compile_families", monkeypatch)
    cases = module.cases()
    assert len({(case.family, case.size) for case in cases}) == len(cases)
    made = module.measure("semprola", 0)
    assert made["models"] == "720"
    assert module.pysdd(cases[0].plain())["models"] == "720"
    pytest.importorskip("oxidd")
    assert module.measure("oxidd", 0)["models"] == "720"
