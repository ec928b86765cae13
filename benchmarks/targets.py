"""What the engine is meant to reach, and whether the measurements of `make bench` show that it does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_CIRCUITS = (
    "cellcycle",
    "diatoms",
    "grid-4x4-sdd",
    "permutation-12",
    "exactly-50-of-500",
    "paths-8x8",
    "warcraft-12x12",
)
_HIERARCHIES = ("cellcycle", "diatoms")


@dataclass(frozen=True)
class Target:
    """A figure and what it should be.

    Attributes:
        what: in words.
        wanted: the limit, in words.
        found: the figure (the worst of several), in words.
        met: whether it is within the limit.
    """

    what: str
    wanted: str
    found: str
    met: bool


def targets(result: dict[str, Any]) -> list[Target]:
    """All targets for which there are measurements; at batch 128, with the first number of threads."""
    return [
        *_against_klay(result, "log Z + gradient", "native", _CIRCUITS, 20),
        *_against_klay(result, "log Z + gradient", "torch", _CIRCUITS, 3),
        *_against_klay(result, "step", "native", ("cellcycle",), 80),
        *_against_klay(result, "step, encoded", "native", ("cellcycle",), 80),
        *_bound(result),
        *_networks(result),
        *_within(result, "mode", "native", 1.5),
        *_within(result, "sample", "native", 2.0),
        *_mixtures(result),
        *_products(result),
        *_growth(result),
    ]


def time_of(result: dict[str, Any], circuit: str, task: str, engine: str) -> float | None:
    """Processor milliseconds at batch 128, with the first number of threads."""
    threads = result["conditions"]["threads"][0]
    wanted = {"circuit": circuit, "task": task, "engine": engine, "batch": 128, "threads": threads}
    for row in result["rows"]:
        if all(row.get(key) == value for key, value in wanted.items()):
            found: float | None = row.get("cpu_ms")
            return found
    return None


def slope(result: dict[str, Any], what: str) -> float | None:
    """The exponent with which a figure grows with the number of edges, by least squares on logarithms."""
    points = [point for point in result["growth"] if what in point and point[what] is not None and point[what] > 0]
    if len(points) < 2:
        return None
    x = [math.log(point["edges"]) for point in points]
    y = [math.log(point[what]) for point in points]
    middle, level = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - middle) ** 2 for a in x)
    return sum((a - middle) * (b - level) for a, b in zip(x, y, strict=True)) / spread if spread else None


def _against_klay(
    result: dict[str, Any], task: str, engine: str, circuits: tuple[str, ...], least: float
) -> Iterator[Target]:
    theirs_of = task.removesuffix(", encoded")
    ratios = {}
    for circuit in circuits:
        ours, theirs = time_of(result, circuit, task, engine), time_of(result, circuit, theirs_of, "klay")
        if ours and theirs:
            ratios[circuit] = theirs / ours
    if ratios:
        where = f"each of {len(ratios)} circuits" if len(circuits) > 1 else circuits[0]
        worst = min(ratios, key=lambda name: ratios[name])
        yield Target(
            f"{task} on {where}: {engine} faster than KLay",
            f"≥ {least:g}×",
            f"{ratios[worst]:.1f}× ({worst})" if len(circuits) > 1 else f"{ratios[worst]:.1f}×",
            ratios[worst] >= least,
        )


def _bound(result: dict[str, Any]) -> Iterator[Target]:
    if "bound" in result:
        share = 100 * result["bound"]["ms"] / result["bound"]["native_ms"]
        what = "native log Z of permutation-12: share of the speed that reading from the second-level cache allows"
        yield Target(what, "≥ 60 %", f"{share:.0f} %", share >= 60)


def _networks(result: dict[str, Any]) -> Iterator[Target]:
    ratios = {
        row["circuit"]: row["spl"]["cpu_ms"] / row["fil"]["cpu_ms"]
        for row in result["networks"]
        if row["circuit"] in _HIERARCHIES
    }
    if ratios:
        yield _largest("a whole training step of a hierarchical classifier beside one with sigmoids", ratios, 1.5)


def _within(result: dict[str, Any], task: str, engine: str, most: float) -> Iterator[Target]:
    ratios = {}
    for circuit in _CIRCUITS:
        own, forward = time_of(result, circuit, task, engine), time_of(result, circuit, "log Z", engine)
        if own and forward:
            ratios[circuit] = own / forward
    if ratios:
        yield _largest(f"{engine} {task} of a batch beside log Z", ratios, most)


def _mixtures(result: dict[str, Any]) -> Iterator[Target]:
    rows = result["mixtures"]
    single = next((row["cpu_ms"] for row in rows if row["mixtures"] == 1), None)
    ratios = {str(row["mixtures"]): row["cpu_ms"] / single / row["mixtures"] for row in rows if single}
    if len(ratios) > 1:
        ratios.pop("1")
        worst = max(ratios, key=lambda count: ratios[count])
        what = "M mixtures beside M single passes"
        yield Target(what, "≤ 1×", f"{ratios[worst]:.2f}× (M = {worst})", ratios[worst] <= 1.0)


def _products(result: dict[str, Any]) -> Iterator[Target]:
    for kind in ("hmm", "vtree"):
        rows = [row for row in result["products"] if row["q"] == kind]
        if len(rows) < 2:
            continue
        share = max(row["product_edges"] / row["q_edges"] / row["edges"] for row in rows)
        yield Target(
            f"edges of q = {kind} times the constraint, beside the product of their edges",
            "≤ 1×",
            f"{share:.3f}×",
            share <= 1.0,
        )


def _growth(result: dict[str, Any]) -> Iterator[Target]:
    for what, name in (("cpu_ms", "time"), ("grown_megabytes", "memory beyond the start")):
        exponent = slope(result, what)
        if exponent is not None:
            yield Target(f"growth of {name} with edges: exponent", "≤ 1.1", f"{exponent:.2f}", exponent <= 1.1)
    large = [point for point in result["growth"] if point.get("edges", 0) >= 9e6 and point.get("megabytes")]
    for point in large:
        size = point["megabytes"]
        yield Target("10⁷ edges at batch 128: memory of the process", "≤ 2048 MB", f"{size:.0f} MB", size <= 2048)


def _largest(what: str, ratios: dict[str, float], most: float) -> Target:
    worst = max(ratios, key=lambda name: ratios[name])
    return Target(what, f"≤ {most:g}×", f"{ratios[worst]:.2f}× ({worst})", ratios[worst] <= most)
