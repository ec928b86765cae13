"""Which functions of semprola each test calls: a pytest plugin, ``-p reached`` with ``REACHED=file.json``.

A mutant is then tried on the tests that call the function it is in, and on no others. What tests share and make only once
(circuits of the zoo, what has been compiled) is forgotten before each test, so that each is seen to call what it needs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from cpu_times import cpu

_codes: dict[int, CodeType] = {}
_functions: dict[tuple[str, int], int] = {}
_tests: dict[str, dict[str, Any]] = {}
_package = ""


def pytest_configure() -> None:
    import semprola

    global _package
    _package = str(Path(semprola.__file__ or "").parent) + os.sep


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    _forget()
    _codes.clear()
    began = cpu()
    threading = sys.modules["threading"]
    threading.settrace(_called)
    sys.settrace(_called)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        found = {
            (code.co_filename[len(_package) :], code.co_firstlineno)
            for code in _codes.values()
            if code.co_filename.startswith(_package) and not code.co_name.startswith("<")
        }
        entry = _tests.setdefault(item.nodeid, {"passed": False})
        entry["seconds"] = round(cpu() - began, 3)
        entry["extensive"] = item.get_closest_marker("extensive") is not None
        entry["calls"] = sorted(_functions.setdefault(place, len(_functions)) for place in found)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call":
        _tests.setdefault(report.nodeid, {})["passed"] = report.passed


def pytest_unconfigure() -> None:
    if path := os.environ.get("REACHED"):
        functions = [f"{name}:{line}" for name, line in _functions]
        Path(path).write_text(json.dumps({"functions": functions, "tests": _tests}), encoding="utf-8")


def _called(frame: FrameType, event: str, argument: Any) -> None:
    code = frame.f_code
    if id(code) not in _codes:
        _codes[id(code)] = code


def _forget() -> None:
    for name, function in (("zoo", "_circuit"), ("zoo", "_formula"), ("worlds", "world")):
        if name in sys.modules:
            getattr(sys.modules[name], function).cache_clear()
