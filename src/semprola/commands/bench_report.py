"""The measurements of `semprola bench` as tables, a page of the documentation, and a plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from semprola.commands.bench_tasks import ENGINES, TASKS

_INTRODUCTION = """# How fast it is

This page is written by `make bench` from `results/bench.json`. All candidates take turns in one process; figures are
medians of the processor time of one call, in milliseconds; "x" is how many times longer a peer takes than the native
engine. What a peer cannot do is said below the tables.
"""


def page(result: dict[str, Any]) -> str:
    """A page of the documentation."""
    parts = [_INTRODUCTION, _conditions(result["conditions"]), tables(result)]
    return "\n".join(parts).rstrip() + "\n"


def tables(result: dict[str, Any]) -> str:
    """All tables, in Markdown."""
    rows = [row for row in result["rows"] if "task" in row]
    parts: list[str] = []
    for batch in sorted({row["batch"] for row in rows}):
        for task, meaning in TASKS.items():
            chosen = [row for row in rows if row["batch"] == batch and row["task"] == task]
            if chosen:
                parts.append(f"## {task}, batch {batch}\n\n{meaning[0].upper()}{meaning[1:]}.\n\n{_table(chosen)}")
    if result["networks"]:
        parts.append(f"## A whole training step\n\n{_networks(result['networks'])}")
    if "bound" in result:
        share = result["bound"]["ms"] / result["bound"]["native_ms"]
        parts.append(
            "## Against the bound of the second-level cache\n\n"
            f"log Z of permutation-12 at batch 128 takes {result['bound']['native_ms']:.2f} ms; reading 8 bytes for "
            f"every child and sample at the measured bandwidth takes {result['bound']['ms']:.2f} ms: "
            f"{100 * share:.0f} %."
        )
    if result["growth"]:
        parts.append(f"## Time and memory against size\n\n{_growth(result['growth'])}")
    parts.append(_reasons(result["rows"]))
    return "\n\n".join(part for part in parts if part) + "\n"


def plot(result: dict[str, Any], path: Path) -> None:
    """Time and memory against edges, on logarithmic axes; nothing where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    points = [point for point in result["growth"] if "cpu_ms" in point]
    edges = [point["edges"] for point in points]
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    time, memory = figure.subplots(1, 2)
    time.loglog(edges, [point["cpu_ms"] for point in points], "o-")
    time.set(xlabel="edges", ylabel="ms", title="log Z with gradient, batch 128")
    memory.loglog(edges, [point["megabytes"] for point in points], "o-", label="process")
    grown = [point["megabytes"] - point["megabytes_before"] for point in points]
    memory.loglog(edges, grown, "o--", label="beyond the start")
    memory.set(xlabel="edges", ylabel="MB", title="peak memory")
    memory.legend()
    figure.savefig(path)


def _table(rows: list[dict[str, Any]]) -> str:
    engines = [e for e in ENGINES if any(row["engine"] == e and "cpu_ms" in row for row in rows)]
    others = [engine for engine in engines if engine != "native"]
    lines = [["circuit", "edges", *engines, *(f"{engine} x" for engine in others)]]
    for name in dict.fromkeys(row["circuit"] for row in rows):
        of = {row["engine"]: row for row in rows if row["circuit"] == name}
        times = {engine: of[engine].get("cpu_ms") for engine in engines if engine in of}
        line = [name, str(next(iter(of.values()))["edges"])]
        line += [_number(times.get(engine)) for engine in engines]
        native = times.get("native")
        line += [_number(times[e] / native) if native and times.get(e) else "–" for e in others]
        lines.append(line)
    return _markdown(lines)


def _networks(networks: list[dict[str, Any]]) -> str:
    lines = [["circuit", "network with the layer", "with sigmoids", "ratio"]]
    for row in networks:
        spl, fil = row["spl"]["cpu_ms"], row["fil"]["cpu_ms"]
        lines.append([row["circuit"], _number(spl), _number(fil), _number(spl / fil)])
    return "Backbone, gate and single-circuit layer, batch 128.\n\n" + _markdown(lines)


def _growth(points: list[dict[str, Any]]) -> str:
    lines = [["edges", "ms", "ns an edge and sample", "MB (process)", "MB (before)"]]
    for point in points:
        if "unable" in point:
            lines.append([str(point["wanted"]), point["unable"], "–", "–", "–"])
            continue
        each = point["cpu_ms"] * 1e6 / point["edges"] / point["batch"]
        memory = [_number(point["megabytes"]), _number(point["megabytes_before"])]
        lines.append([str(point["edges"]), _number(point["cpu_ms"]), _number(each), *memory])
    return "log Z with its gradient, one thread.\n\n" + _markdown(lines)


def _reasons(rows: list[dict[str, Any]]) -> str:
    found = [f"- {row['engine']}, {row['task']}: {row['unable']}" for row in rows if "unable" in row]
    found += [f"- {row['circuit']}: {row['skipped']}" for row in rows if "skipped" in row]
    return "## What is missing, and why\n\n" + "\n".join(dict.fromkeys(found)) if found else ""


def _conditions(conditions: dict[str, Any]) -> str:
    return _markdown([["", ""], *([name, str(value)] for name, value in conditions.items())])


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _markdown(lines: list[list[str]]) -> str:
    header, *rows = lines
    rule = ["---"] * len(header)
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *rows))
