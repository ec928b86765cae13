"""The measurements of `python -m benchmarks.engine` as tables, a page of the documentation, and a plot."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks import call_report
from benchmarks.ratios import against_klay, ratios, slope
from benchmarks.tasks import ENGINES, NARROW, TASKS
from semprola._files import write_atomically

_HEADING = "# How fast it is\n"
_INTRODUCTION = """
`make bench` writes this page from `results/bench.json` and `results/calls.json`. All candidates take turns in one
process, 20 ms at a time, or one call if that takes longer. Figures are milliseconds per call: medians of processor time
with one thread, and of wall time with several. "x" is how many times as long a candidate takes as the native engine. An
edge is one branch of a sum; `circuit.num_edges` also counts the factors of products. The end of the page says what a
peer cannot do, and on which machine this was measured.

![Time and memory against edges](../results/bench.svg)
"""


def page(result: dict[str, Any], gpu_cost: dict[str, Any] | None = None, calls: dict[str, Any] | None = None) -> str:
    """A page of the documentation, from the measurements and, if they were made, those of the two other programs."""
    machine = f"## The machine\n\n{_conditions(result['conditions'])}"
    parts = [
        _HEADING,
        sentences(result, calls),
        _INTRODUCTION,
        *([] if calls is None else [call_report.section(calls)]),
        tables(result),
        *([] if gpu_cost is None else [_on_a_gpu(gpu_cost)]),
        machine,
    ]
    return "\n".join(parts).rstrip() + "\n"


def sentences(result: dict[str, Any], calls: dict[str, Any] | None) -> str:
    """What matters most, in three sentences: the call of a layer, the bare engine, a step of training."""
    found = []
    if calls is not None:
        parts = []
        for task, words in (("log Z + gradient", "log Z"), ("log_prob + gradient", "`log_prob`")):
            gains = call_report.advantages(calls, task)
            if gains:
                parts.append(f"{words} with its gradient {_span(gains)} times")
        if parts:
            found.append(
                f"On one thread at batch {calls['conditions']['batch']}, from logits to numbers, the call of a layer "
                f"computes {' and '.join(parts)} as fast as "
                f"{call_report.best_mode(calls)}."
            )
    bare = against_klay(result, "log Z + gradient", "native")
    if bare:
        found.append(f"The bare native engine is {_span(bare)} times as fast as KLay's module, not compiled.")
    steps = call_report.steps(calls) if calls is not None else {}
    if steps:
        found.append(f"A training step of a small network takes {_span(steps)} times as long as with sigmoids.")
    return fill(" ".join(found), 120)


def _span(found: dict[str, float]) -> str:
    """The least and the most, and where."""
    least, most = min(found, key=lambda name: found[name]), max(found, key=lambda name: found[name])
    return f"{_figure(found[least])} ({least}) to {_figure(found[most])} ({most})"


def _figure(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def write_page(docs: Path, results: Path) -> None:
    """Write the page from what the folder of results has."""

    def read(name: str) -> dict[str, Any] | None:
        path = results / f"{name}.json"
        found: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        return found

    bench = read("bench")
    if bench is None:
        raise ValueError(f"{results} has no bench.json: run python -m benchmarks.engine first")
    docs.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(docs, page(bench, read("gpu_cost"), read("calls")).encode())


def tables(result: dict[str, Any]) -> str:
    """All tables, in Markdown."""
    rows = [row for row in result["rows"] if "task" in row]
    parts = [_ratios(result), "## Every task\n\nMilliseconds per call, by circuit and candidate."]
    first = result["conditions"]["threads"][0]
    for threads, batch in sorted({(row["threads"] != first, row["batch"]) for row in rows}):
        folded = []
        for task, meaning in TASKS.items():
            chosen = [
                row
                for row in rows
                if row["batch"] == batch and row["task"] == task and (row["threads"] != first) == threads
            ]
            for count in sorted({row["threads"] for row in chosen}):
                title = f"{task}, batch {batch}" + (f", {count} threads" if count > 1 else "")
                own = [row for row in chosen if row["threads"] == count]
                folded.append(f"**{title}**: {meaning}.\n\n{_table(own)}")
        parts.append(_folded(f"All tasks at batch {batch}" + (", several threads" if threads else ""), folded))
    if result["networks"]:
        parts.append(f"## A whole training step\n\n{_networks(result['networks'])}")
    if result.get("weak"):
        parts.append(f"## Half-observed labels\n\n{_weak(result['weak'])}")
    if "bound" in result:
        parts.append(f"## How close to what the cache allows\n\n{_bound(result['bound'])}")
    if result["mixtures"]:
        parts.append(f"## Components\n\n{_mixtures(result['mixtures'])}")
    if result["products"]:
        parts.append(f"## Products of two circuits\n\n{_products(result['products'])}")
    if "imports" in result:
        parts.append(f"## Importing\n\n{_imports(result['imports'])}")
    if result["growth"]:
        parts.append(f"## Time and memory against size\n\n{_growth(result)}")
    parts.append(_reasons(result["rows"]))
    return "\n\n".join(part for part in parts if part) + "\n"


def gpu_table(result: dict[str, Any]) -> str:
    """The result in Markdown."""
    lines = [
        "| circuit | edges | steps | torch: launches | MB | ms | triton: launches | MB | ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["rows"]:
        cells = [row["circuit"], row["edges"], row["steps"]]
        for name in ("torch", "triton"):
            cells += [row[name]["launches"], f"{row[name]['megabytes']:.3g}", f"{row[name]['ms']:.3g}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def plot(result: dict[str, Any], path: Path) -> None:
    """Time and memory against edges, on logarithmic axes; nothing where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    points = [point for point in result["growth"] if "cpu_ms" in point]
    if not points:
        return
    edges = [point["edges"] for point in points]
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    time, memory = figure.subplots(1, 2)
    times = [point["cpu_ms"] for point in points]
    time.loglog(edges, times, "o-", label="measured")
    time.loglog(edges, [times[-1] * n / edges[-1] for n in edges], ":", color="grey", label="proportional to edges")
    time.set(xlabel="edges", ylabel="ms", title="log Z with gradient, batch 128")
    time.legend()
    known = [point for point in points if point["grown_megabytes"] is not None]
    if known:
        edges = [point["edges"] for point in known]
        grown = [max(0.1, point["grown_megabytes"]) for point in known]
        memory.loglog(edges, [point["megabytes"] for point in known], "s-", label="process")
        memory.loglog(edges, grown, "o-", label="beyond the start")
        memory.loglog(edges, [grown[-1] * n / edges[-1] for n in edges], ":", color="grey")
        memory.legend()
    memory.set(xlabel="edges", ylabel="MB", title="peak memory")
    for axes in (time, memory):
        axes.grid(alpha=0.3)
    part = path.with_name(path.name + ".part")
    figure.savefig(part, format=path.suffix[1:] or "svg")
    part.replace(path)


def _folded(title: str, parts: list[str]) -> str:
    """Tables behind a line that opens them."""
    text = "\n\n".join(parts)
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>" if parts else ""


def _ratios(result: dict[str, Any]) -> str:
    found = ratios(result)
    if not found:
        return ""
    lines = [["what", "ratio"], *([ratio.what, ratio.found] for ratio in found)]
    return "## In short\n\nAt batch 128. Of several circuits, the worst ratio is shown.\n\n" + _markdown(lines)


def _table(rows: list[dict[str, Any]]) -> str:
    key = "cpu_ms" if all(row["threads"] == 1 for row in rows) else "ms"
    engines = [e for e in ENGINES if any(row["engine"] == e and key in row for row in rows)]
    others = [engine for engine in engines if engine != "native"]
    lines = [["circuit", "edges", *engines, *(f"{engine} x" for engine in others)]]
    for name in dict.fromkeys(row["circuit"] for row in rows):
        of = {row["engine"]: row for row in rows if row["circuit"] == name}
        times = {engine: of[engine].get(key) for engine in engines if engine in of}
        line = [name, str(next(iter(of.values()))["edges"])]
        line += [_number(times.get(engine)) for engine in engines]
        native = times.get("native")
        line += [_number(times[e] / native) if native and times.get(e) else "–" for e in others]
        lines.append(line)
    return _markdown(lines)


def _networks(networks: list[dict[str, Any]]) -> str:
    lines = [["circuit", "with sigmoids", "with the layer", "ratio", "narrow gate", "zeros"]]
    for row in networks:
        spl, fil, narrow, zeros = (row.get(kind, {}).get("cpu_ms") for kind in ("spl", "fil", "narrow", "zeros"))
        lines.append([row["circuit"], _number(fil), *map(_number, (spl, spl / fil, narrow, zeros))])
    return (
        "A backbone (77, 128, 128), a gate and the single-circuit layer, at batch 128. The layer knows the labels "
        "beforehand (`layer(z, scored=y)`), as in `sp.training.fit`, so that the gate computes only what they need. On "
        "large circuits, nearly all of the rest is the product of the gate and its gradients: it has tens of thousands "
        f"of outputs. A gate with a hidden layer of {NARROW} units (`gate=({NARROW},)`) has a smaller product; what "
        "that costs in accuracy was not measured. The last column is what no product avoids: making zeros for the "
        "gradient of the full gate's weights.\n\n" + _markdown(lines)
    )


def _weak(rows: list[dict[str, Any]]) -> str:
    times = {(row["layer"], row["engine"], row["batch"], row["labels"]): row["cpu_ms"] for row in rows}
    lines = [["layer", "engine", "batch", "full labels", "half observed", "x", "log Z with gradient", "x"]]
    for layer, engine, batch in dict.fromkeys((row["layer"], row["engine"], row["batch"]) for row in rows):
        full, half, dense = (times.get((layer, engine, batch, what)) for what in ("full", "half", "log Z"))
        beside = [_number(half / full) if half and full else "–", _number(half / dense) if half and dense else "–"]
        lines.append([layer, engine, str(batch), _number(full), _number(half), beside[0], _number(dense), beside[1]])
    return (
        "A training step on a hierarchy of 499 labels with four components, without the network before the gate's "
        "outputs. Each label is observed with probability 1/2. The log Z beside it is of the same circuit, with "
        "different scores in each row and the gradient of the logits. Each x is the time of the step on half-observed "
        "labels, divided by the time of the other.\n\n" + _markdown(lines)
    )


def _imports(times: dict[str, float]) -> str:
    return (
        f"Importing torch takes {times['torch']:.0f} ms, importing torch and semprola {times['semprola']:.0f} ms: "
        f"{times['semprola'] / times['torch']:.2f}× as long. These are medians of {times['rounds']:.0f} processes "
        "each, in processor time, less the time of a process that imports nothing."
    )


def _bound(bound: dict[str, float]) -> str:
    return (
        f"log Z of permutation-12 at batch 128 takes {bound['native_ms']:.2f} ms. Just reading 8 bytes per child and "
        f"row, at the measured {bound['gb_a_second']:.0f} GB/s, takes {bound['ms']:.2f} ms. So the engine runs at "
        f"{100 * bound['ms'] / bound['native_ms']:.0f} % of what the cache allows."
    )


def _mixtures(rows: list[dict[str, Any]]) -> str:
    single = next((row["cpu_ms"] for row in rows if row["mixtures"] == 1), None)
    lines = [["circuit", "components", "ms", "times as long as one"]]
    for row in rows:
        share = _number(row["cpu_ms"] / single) if single else "–"
        lines.append([row["circuit"], str(row["mixtures"]), _number(row["cpu_ms"]), share])
    return "log Z of a mixture of independent labels times the constraint, with gradient.\n\n" + _markdown(lines)


def _products(rows: list[dict[str, Any]]) -> str:
    lines = [["constraint", "q", "units", "edges of q", "of the constraint", "of the product", "ms", "ns per edge"]]
    for row in rows:
        each = row["cpu_ms"] * 1e6 / row["product_edges"] / row["batch"]
        sizes = [str(row[key]) for key in ("q_edges", "edges", "product_edges")]
        lines.append([row["circuit"], row["q"], str(row["units"]), *sizes, _number(row["cpu_ms"]), _number(each)])
    return "log Z of a circuit q times the constraint, with gradient, at batch 128.\n\n" + _markdown(lines)


def _growth(result: dict[str, Any]) -> str:
    lines = [["edges", "ms", "ns per edge and row", "MB (process)", "MB (beyond the start)"]]
    for point in result["growth"]:
        if "unable" in point:
            lines.append([str(point["wanted"]), point["unable"], "–", "–", "–"])
            continue
        each = point["cpu_ms"] * 1e6 / point["edges"] / point["batch"]
        memory = [_number(point["megabytes"]), _number(point["grown_megabytes"])]
        lines.append([str(point["edges"]), _number(point["cpu_ms"]), _number(each), *memory])
    text = "log Z with gradient, on one thread.\n\n" + _markdown(lines)
    exponents = slope(result, "cpu_ms"), slope(result, "grown_megabytes")
    named = [f"{x:.2f} ({what})" for x, what in zip(exponents, ("time", "memory"), strict=True) if x is not None]
    return text + (f"\n\nExponents of growth: {', '.join(named)}." if named else "")


def _reasons(rows: list[dict[str, Any]]) -> str:
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        if "unable" in row:
            found.setdefault(f"{row['engine']}, {row['task']}: {row['unable']}", {})[row["circuit"]] = None
        elif "skipped" in row:
            found.setdefault(row["skipped"], {})[row["circuit"]] = None
    every = len({row["circuit"] for row in rows})
    lines = [f"- {why}" + (f" ({', '.join(where)})" if len(where) < every else "") for why, where in found.items()]
    return "## What is missing, and why\n\n" + "\n".join(lines) if lines else ""


def _conditions(conditions: dict[str, Any]) -> str:
    return _markdown([["", ""], *([name, _text(value)] for name, value in conditions.items())])


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _markdown(lines: list[list[str]]) -> str:
    header, *rows = lines
    rule = ["---"] * len(header)
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *rows))


def _on_a_gpu(cost: dict[str, Any]) -> str:
    assumed = cost["assumed"]
    return f"""## On a GPU: computed, not measured

No GPU was at hand. If you have one, `make bench-gpu` compares its numbers with the CPU's, measures beside KLay, PyJuice
and cirkit, and writes `results/gpu.json`, which we would like to see.

`python -m benchmarks.gpu_cost` counts the launches of log Z with its gradient at batch {assumed["batch"]}, and the
megabytes that they would move if no cache kept anything. The milliseconds follow from assumptions:
{assumed["launch_s"] * 1e6:g} µs for a launch, {assumed["bytes_per_s"] / 1e9:g} GB/s, and
{assumed["latency_s"] * 1e6:g} µs for each load that a Triton program has to wait for. Other devices take other times.

{gpu_table(cost)}
"""
