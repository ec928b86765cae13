"""Which functions of semprola each test calls: a pytest plugin, ``-p reached`` with ``REACHED=file.json``.

A mutant is tried on the tests that call the function it is in, and on no others. What tests share and make only once
(the circuits of the zoo) is forgotten before each test, so that each is seen to call what it needs.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from cpu_times import cpu

_codes: dict[int, CodeType] = {}
_functions: dict[str, int] = {}
_tests: dict[str, dict[str, Any]] = {}
_left_out: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    _forget()
    _codes.clear()
    began = cpu()
    threading.settrace(_called)
    sys.settrace(_called)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        package = str(Path(sys.modules["semprola"].__file__ or "").parent) + os.sep
        found = {
            f"{code.co_filename[len(package) :]}:{code.co_firstlineno}"
            for code in _codes.values()
            if code.co_filename.startswith(package) and not code.co_name.startswith("<")
        }
        entry = _tests.setdefault(item.nodeid, {"passed": False})
        entry["seconds"] = round(cpu() - began, 3)
        entry["calls"] = sorted(_functions.setdefault(place, len(_functions)) for place in found)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call":
        _tests.setdefault(report.nodeid, {})["passed"] = report.passed


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Those that are left to `make test-all`."""
    _left_out.extend(item.nodeid for item in items)


def pytest_unconfigure() -> None:
    if path := os.environ.get("REACHED"):
        found = {"functions": list(_functions), "tests": _tests, "extensive": _left_out}
        Path(path).write_text(json.dumps(found), encoding="utf-8")


def _called(frame: FrameType, event: str, argument: Any) -> None:
    code = frame.f_code
    if id(code) not in _codes:
        _codes[id(code)] = code


def _forget() -> None:
    for name, function in (("zoo", "_circuit"), ("zoo", "_formula"), ("worlds", "world")):
        if name in sys.modules:
            getattr(sys.modules[name], function).cache_clear()
