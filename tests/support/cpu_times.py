"""Where the CPU time of a test run goes: a pytest plugin, ``python -m pytest -p cpu_times``.

Prints the most expensive files and tests at the end. Counts the CPU time of the test's process and of the processes
that it starts and waits for, so the table hardly depends on what else the machine does. ``CPU_TIMES=file.json`` writes
all of them as well. It works with xdist, too; the imports of a file are then not counted.
"""

from __future__ import annotations

import json
import os
import resource
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

_SHOWN = 25
_files: Counter[str] = Counter()
_tests: Counter[str] = Counter()
_counts: Counter[str] = Counter()
_mark = 0.0


def cpu() -> float:
    """Seconds of this process and of its finished children, in user and system mode."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    began = cpu()
    report = yield
    if isinstance(collector, pytest.Module):
        _files[collector.nodeid] += cpu() - began
    return report


def pytest_runtest_logstart() -> None:
    global _mark
    _mark = cpu()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Each phase of a test takes its time along in its report, from a worker to the main process, too."""
    global _mark
    report = yield
    report.cpu_seconds, _mark = cpu() - _mark, cpu()
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seconds = getattr(report, "cpu_seconds", 0.0)
    _files[report.nodeid.partition("::")[0]] += seconds
    _tests[report.nodeid] += seconds
    _counts[report.nodeid.partition("::")[0]] += report.when == "call"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section(f"CPU seconds: {sum(_files.values()):.0f} in tests")
    for name, seconds in _files.most_common(_SHOWN):
        terminalreporter.write_line(f"{seconds:8.1f}  {_counts[name]:5d} tests  {name}")
    for name, seconds in _tests.most_common(_SHOWN):
        terminalreporter.write_line(f"{seconds:8.1f}  {name}")
    if path := os.environ.get("CPU_TIMES"):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"files": _files, "tests": _tests, "counts": _counts}, file)
