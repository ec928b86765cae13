"""Times measured side by side: every candidate once per round, so that a busy machine slows all of them alike."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

import semprola as sp
from semprola.engine.backends.library import library

_Key = TypeVar("_Key", bound=Hashable)
_FEWEST = 3
"""Fewest measurements of a candidate, however long they take..."""
_SLOW = 5.0
"""...unless a single call takes more seconds than this; then the first call counts."""


def side_by_side(
    runs: Mapping[_Key, Callable[[], Any]], rounds: int = 15, seconds: float = 10.0, least: float = 2e-2
) -> dict[_Key, dict[str, float]]:
    """Median wall and processor milliseconds of each candidate.

    Args:
        runs: the candidates.
        rounds: largest number of measurements of each.
        seconds: approximate time for all of them together; no candidate takes more than a quarter of it, unless it
            needs more for the fewest measurements.
        least: a measurement repeats its candidate until it takes this many seconds.
    """
    timers = {key: _Timer(run, least) for key, run in runs.items()}
    started = time.perf_counter()
    for _ in range(rounds):
        over = time.perf_counter() - started > seconds
        for timer in timers.values():
            if not timer.is_slow and (len(timer.wall) < _FEWEST or not (over or timer.spent > seconds / 4)):
                timer.measure()
    return {key: timer.result() for key, timer in timers.items()}


class _Timer:
    def __init__(self, run: Callable[[], Any], least: float) -> None:
        self.run, self.repeats = run, 1
        self.wall: list[float] = []
        self.processor: list[float] = []
        self.measure()
        self.is_slow = self.wall[0] > _SLOW
        if self.is_slow:
            return
        self.measure()
        self.repeats = max(1, min(1000, int(least / max(1e-7, self.wall[-1]))))
        self.wall, self.processor = [], []

    @property
    def spent(self) -> float:
        return sum(self.wall) * self.repeats

    def measure(self) -> None:
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(self.repeats):
            self.run()
        self.processor.append((time.process_time() - processor) / self.repeats)
        self.wall.append((time.perf_counter() - wall) / self.repeats)

    def result(self) -> dict[str, float]:
        return {
            "ms": 1e3 * statistics.median(self.wall),
            "cpu_ms": 1e3 * statistics.median(self.processor),
            "rounds": len(self.wall),
        }


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch, and with it the native kernels, use this many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def cache_bandwidth(kilobytes: int = 512) -> float:
    """Bytes per second that this core reads from its second-level cache, by the faster of two ways to read a buffer."""
    buffer = torch.ones(kilobytes * 256)
    left, right = buffer.chunk(2)
    ways = side_by_side({"sum": buffer.sum, "dot": lambda: torch.dot(left, right)})
    return kilobytes * 1024 / (min(way["cpu_ms"] for way in ways.values()) / 1e3)


def conditions() -> dict[str, Any]:
    """What the numbers depend on: versions, processor, load."""
    native = library()
    level = None
    if native is not None:
        number = native.semprola_engine_level()
        level = {0: "plain", 1: "AVX2", 2: "AVX-512"}.get(number, f"level {number}")
    return {
        "semprola": sp.__version__,
        "native": level,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "klaycircuits": _version("klaycircuits"),
        "libcirkit": _version("libcirkit"),
        "pyjuice": _version("pyjuice"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load before": load(),
    }


def load() -> float | None:
    """The average number of processes that were ready to run in the last minute; None if the system does not say."""
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):
        return None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
