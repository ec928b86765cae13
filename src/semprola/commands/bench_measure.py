"""Times measured side by side: every candidate once a round, so that a busy machine slows all of them alike."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import torch

import semprola as sp
from semprola.engine import choice

_Key = TypeVar("_Key", bound=Hashable)


def side_by_side(
    runs: Mapping[_Key, Callable[[], Any]], rounds: int, seconds: float = 20.0, least: float = 2e-3
) -> dict[_Key, dict[str, float]]:
    """Median wall and processor milliseconds of each candidate.

    Args:
        runs: the candidates.
        rounds: how often each is measured; fewer, but at least three times, if that takes too long.
        seconds: budget for all of them together.
        least: a measurement repeats its candidate until it takes this many seconds.
    """
    repeats = {key: _repeats(run, least) for key, run in runs.items()}
    wall: dict[_Key, list[float]] = {key: [] for key in runs}
    processor: dict[_Key, list[float]] = {key: [] for key in runs}
    started = time.perf_counter()
    for done in range(rounds):
        if done >= 3 and time.perf_counter() - started > seconds:
            break
        for key, run in runs.items():
            first, first_processor = time.perf_counter(), time.process_time()
            for _ in range(repeats[key]):
                run()
            processor[key].append((time.process_time() - first_processor) / repeats[key])
            wall[key].append((time.perf_counter() - first) / repeats[key])
    return {
        key: {
            "ms": 1e3 * statistics.median(wall[key]),
            "cpu_ms": 1e3 * statistics.median(processor[key]),
            "rounds": len(wall[key]),
        }
        for key in runs
    }


def _repeats(run: Callable[[], Any], least: float) -> int:
    run()
    started = time.perf_counter()
    run()
    return max(1, min(1000, int(least / max(1e-7, time.perf_counter() - started))))


def cache_bandwidth(kilobytes: int = 512) -> float:
    """Bytes a second that this core reads from its second-level cache: the fastest of two ways to read a buffer."""
    buffer = torch.ones(kilobytes * 256)
    left, right = buffer.chunk(2)
    ways = side_by_side({"sum": buffer.sum, "dot": lambda: torch.dot(left, right)}, rounds=15)
    return kilobytes * 1024 / (min(way["cpu_ms"] for way in ways.values()) / 1e3)


def conditions() -> dict[str, Any]:
    """What the numbers depend on: versions, processor, threads."""
    native = choice.library()
    level = None if native is None else ("plain", "AVX2", "AVX-512")[native.semprola_engine_level()]
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
        "threads": torch.get_num_threads(),
    }


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
