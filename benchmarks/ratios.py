"""The ratios that the measurements of `make bench` come down to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_MANY_EDGES = 40_000
_TREES = ("tree-499", "tree-399", "cellcycle", "diatoms")
"""Hierarchies; the last two names are of records before the circuits were made here."""


@dataclass(frozen=True)
class Ratio:
    """The ratio of two figures of the same run.

    Attributes:
        what: what is compared, in words.
        found: the ratio (the worst of several), in words.
    """

    what: str
    found: str


def ratios(result: dict[str, Any]) -> list[Ratio]:
    """All ratios for which there are measurements; at batch 128, with the first number of threads."""
    return [
        *_against_klay(result, "log Z + gradient", "native"),
        *_against_klay(result, "log Z + gradient", "torch"),
        *_against_klay(result, "step", "native"),
        *_against_klay(result, "step, encoded", "native"),
        *_branches(result),
        *_bound(result),
        *_networks(result),
        *_within(result, "mode", "native"),
        *_within(result, "sample", "native"),
        *_weak(result),
        *_mixtures(result),
        *_products(result),
        *_growth(result),
        *_imports(result),
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


def _sizes(result: dict[str, Any]) -> dict[str, int]:
    """Edges of every circuit that was measured."""
    return {row["circuit"]: row["edges"] for row in result["rows"] if "edges" in row}


def against_klay(result: dict[str, Any], task: str, engine: str) -> dict[str, float]:
    """The time of KLay's module divided by ours, by circuit."""
    theirs_of = task.removesuffix(", encoded")
    found = {}
    for circuit in _sizes(result):
        ours, theirs = time_of(result, circuit, task, engine), time_of(result, circuit, theirs_of, "klay")
        if ours and theirs:
            found[circuit] = theirs / ours
    return found


def _against_klay(result: dict[str, Any], task: str, engine: str) -> Iterator[Ratio]:
    found = against_klay(result, task, engine)
    if found:
        where = f"each of {len(found)} circuits" if len(found) > 1 else "one circuit"
        worst = min(found, key=lambda name: found[name])
        what = f"{task} on {where}: time of KLay's module, not compiled / that of the bare {engine} engine"
        yield Ratio(what, f"{found[worst]:.1f}× ({worst})")


def _branches(result: dict[str, Any]) -> Iterator[Ratio]:
    """How much longer a branch takes than where it takes least."""
    found = {}
    for circuit, edges in _sizes(result).items():
        ours = time_of(result, circuit, "log Z + gradient", "native")
        if ours:
            found[circuit] = ours / edges
    if len(found) > 1:
        least = min(found, key=lambda name: found[name])
        what = f"native log Z + gradient: time of a branch / that on {least}, where it is least"
        yield _largest(what, {circuit: time / found[least] for circuit, time in found.items()})


def _bound(result: dict[str, Any]) -> Iterator[Ratio]:
    if "bound" in result:
        share = 100 * result["bound"]["ms"] / result["bound"]["native_ms"]
        what = "native log Z of permutation-12: speed / the speed at which the second-level cache can be read"
        yield Ratio(what, f"{share:.0f} %")


def _networks(result: dict[str, Any]) -> Iterator[Ratio]:
    found = {row["circuit"]: row["spl"]["cpu_ms"] / row["fil"]["cpu_ms"] for row in result["networks"]}
    sizes = _sizes(result)
    trees = {name: ratio for name, ratio in found.items() if name in _TREES}
    large = {name: ratio for name, ratio in found.items() if sizes.get(name, 0) > _MANY_EDGES}
    if trees:
        yield _largest("a whole training step on a hierarchy: time / time with sigmoids", trees)
    if large:
        yield _largest("the same on circuits of more than 40,000 edges", large)


def _within(result: dict[str, Any], task: str, engine: str) -> Iterator[Ratio]:
    found = {}
    for circuit in _sizes(result):
        own, forward = time_of(result, circuit, task, engine), time_of(result, circuit, "log Z", engine)
        if own and forward:
            found[circuit] = own / forward
    if found:
        yield _largest(f"{engine} {task} of a batch: time / time of log Z", found)


def _weak(result: dict[str, Any]) -> Iterator[Ratio]:
    measured = result.get("weak", [])
    rows = {(row["layer"], row["labels"], row["batch"], row["engine"]): row["cpu_ms"] for row in measured}
    beside = {"SPL": ("log Z", "time of log Z with gradient"), "ProductSPL": ("full", "time on full labels")}
    for layer, (other, words) in beside.items():
        for engine in dict.fromkeys(row["engine"] for row in measured):
            found = {
                f"batch {batch}": ms / rows[layer, other, batch, engine]
                for (kind, what, batch, where), ms in rows.items()
                if (kind, what, where) == (layer, "half", engine) and (layer, other, batch, engine) in rows
            }
            if found:
                yield _largest(f"{engine} step of {layer} on half-observed labels: time / {words}", found)


def _mixtures(result: dict[str, Any]) -> Iterator[Ratio]:
    rows = result["mixtures"]
    single = next((row["cpu_ms"] for row in rows if row["mixtures"] == 1), None)
    found = {str(row["mixtures"]): row["cpu_ms"] / single / row["mixtures"] for row in rows if single}
    if len(found) > 1:
        found.pop("1")
        worst = max(found, key=lambda count: found[count])
        yield Ratio("m components: time / m times that of one", f"{found[worst]:.2f}× (m = {worst})")


def _products(result: dict[str, Any]) -> Iterator[Ratio]:
    for kind in ("hmm", "vtree"):
        rows = [row for row in result["products"] if row["q"] == kind]
        if len(rows) > 1:
            share = max(row["product_edges"] / row["q_edges"] / row["edges"] for row in rows)
            what = f"q = {kind} times the constraint: edges / (edges of q × edges of the constraint)"
            yield Ratio(what, f"{share:.3f}×")


def _growth(result: dict[str, Any]) -> Iterator[Ratio]:
    for what, name in (("cpu_ms", "time"), ("grown_megabytes", "memory beyond the start")):
        exponent = slope(result, what)
        if exponent is not None:
            yield Ratio(f"exponent with which {name} grows with the number of edges", f"{exponent:.2f}")
    for point in result["growth"]:
        if point.get("edges", 0) >= 9e6 and point.get("megabytes"):
            yield Ratio("memory of the process with 10⁷ edges", f"{point['megabytes']:.0f} MB")


def _imports(result: dict[str, Any]) -> Iterator[Ratio]:
    if "imports" in result:
        times = result["imports"]
        yield Ratio("`import semprola`: time / time of `import torch`", f"{times['semprola'] / times['torch']:.2f}×")


def _largest(what: str, found: dict[str, float]) -> Ratio:
    worst = max(found, key=lambda name: found[name])
    return Ratio(what, f"{found[worst]:.2f}× ({worst})")
