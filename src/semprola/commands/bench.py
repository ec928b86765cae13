"""`semprola bench`: how fast circuits are evaluated, beside the packages that people would use otherwise."""

from __future__ import annotations

import json as json_format
import os
from pathlib import Path
from typing import Annotated, Any

import typer


def bench(
    circuits: Annotated[str, typer.Option(help="Names of circuits, with commas between; all by default.")] = "",
    batch: Annotated[str, typer.Option(help="Batch sizes, with commas between.")] = "1,128,1024",
    rounds: Annotated[int, typer.Option(help="Rounds of measurement.", min=1)] = 9,
    threads: Annotated[int, typer.Option(help="Threads of every candidate.", min=1)] = 1,
    sizes: Annotated[str, typer.Option(help="Edges of growing circuits, with commas between.")] = "1e3,1e4,1e5,1e6,1e7",
    data: Annotated[Path, typer.Option(help="Folder of published data sets.")] = Path("../shared/data"),
    out: Annotated[Path, typer.Option(help="Folder for bench.json and bench.svg.")] = Path("results"),
    docs: Annotated[Path | None, typer.Option(help="Page to write the tables to.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Measure log Z, training steps, modes and samples beside KLay, cirkit and a layer without constraint.

    All candidates take turns in one process; the figures are medians, of wall and of processor time.

    Example: semprola bench --circuits permutation-12,paths-8x8 --batch 128 --sizes ""
    """
    import torch

    from semprola.commands import bench_report
    from semprola.commands.bench_measure import conditions

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        result: dict[str, Any] = {"conditions": conditions(), "rows": [], "networks": [], "growth": []}
        batches = [_whole(part, "a batch size") for part in batch.split(",") if part.strip()]
        _circuits(
            result, [c.strip() for c in circuits.split(",") if c.strip()] or None, batches, rounds, data, not json
        )
        _growth(result, [_whole(part, "a number of edges") for part in sizes.split(",") if part.strip()], not json)
    finally:
        torch.set_num_threads(before)
    if not result["rows"] and not result["growth"]:
        raise ValueError("nothing to measure: name a batch size or a number of edges")
    out.mkdir(parents=True, exist_ok=True)
    text = json_format.dumps(result, indent=1)
    (out / "bench.json").write_text(text + "\n", encoding="utf-8")
    if result["growth"]:
        bench_report.plot(result, out / "bench.svg")
    if docs is not None:
        docs.parent.mkdir(parents=True, exist_ok=True)
        docs.write_text(bench_report.page(result), encoding="utf-8")
    typer.echo(text if json else bench_report.tables(result))


def _circuits(
    result: dict[str, Any], names: list[str] | None, batches: list[int], rounds: int, data: Path, show: bool
) -> None:
    from semprola.commands.bench_cases import cases
    from semprola.commands.bench_measure import cache_bandwidth, side_by_side
    from semprola.commands.bench_tasks import network_step, tasks
    from semprola.engine import Structure

    for case in cases(names):
        try:
            circuit = case.make(data)
        except OSError as error:
            result["rows"].append({"circuit": case.name, "skipped": f"needs published data: {error}"})
            continue
        plan = Structure(circuit).constraint
        size = {"edges": plan.num_edges, "children": len(plan.shape.factors), "labels": circuit.num_labels}
        for columns in batches:
            _say(show, f"{case.name}, batch {columns}")
            made = tasks(circuit, columns)
            measured = side_by_side({key: run for key, run in made.items() if not isinstance(run, str)}, rounds)
            for (task, engine), run in made.items():
                entry = {"circuit": case.name, **size, "batch": columns, "task": task, "engine": engine}
                result["rows"].append(entry | ({"unable": run} if isinstance(run, str) else measured[task, engine]))
            if case.name == "permutation-12" and columns == 128:
                # at best, every child's mantissa and exponent come from the second-level cache once
                bound = 8 * size["children"] * columns / cache_bandwidth()
                result["bound"] = {"ms": 1e3 * bound, "native_ms": measured["log Z", "native"]["cpu_ms"]}
        if 128 in batches and circuit.num_labels == circuit.num_variables:
            steps = side_by_side({kind: network_step(circuit, 128, kind) for kind in ("spl", "fil")}, rounds)
            result["networks"].append({"circuit": case.name, "batch": 128, **steps})


def _growth(result: dict[str, Any], sizes: list[int], show: bool) -> None:
    """Time and memory of log Z with its gradient against the size of the circuit, in a process of its own each."""
    from semprola.commands.bench_growth import measure

    for edges in sizes:
        _say(show, f"a circuit of about {edges} edges")
        result["growth"].append(measure(edges, 128))


def _whole(text: str, what: str) -> int:
    try:
        value = int(float(text))
    except ValueError:
        raise ValueError(f"{what} must be a positive whole number, not {text.strip()!r}") from None
    if value < 1:
        raise ValueError(f"{what} must be a positive whole number, not {text.strip()!r}")
    return value


def _say(show: bool, text: str) -> None:
    if show and os.isatty(2):
        typer.echo(text, err=True)
