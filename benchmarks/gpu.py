"""The calls that users make on a GPU, beside KLay, PyJuice and cirkit: `make bench-gpu`, `python -m benchmarks.gpu`.

First, the numbers of every candidate are compared with ours on CPU; what differs is not timed. Times are wall time and
include waiting for the device. Without a GPU, TRITON_INTERPRET=1 interprets our kernels on CPU: good for a test of
this program, and for nothing else.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

import semprola as sp
from benchmarks.calls import OurCalls
from benchmarks.cases import Case, cases
from benchmarks.klay_calls import KlayCalls
from benchmarks.measure import conditions, side_by_side
from benchmarks.peers import Peers, Unable, missing_peers
from benchmarks.records import keep
from benchmarks.tasks import gradient, with_engine
from experiments.provenance import provenance
from semprola.cli.app import reporting_errors
from semprola.engine.backends.triton_layout import interpreted
from semprola.errors import SemprolaError

_TASKS = ("log Z + gradient", "log_prob + gradient", "step", "mode")
_LIKELIHOOD = "likelihood, same weights for all rows + gradient"
_OURS = ("triton", "torch")
_TINY = Case("tiny", lambda: sp.compile(sp.constraints.permutation(3)))
"""Small enough for interpreted kernels."""
Answer = Callable[[], tuple[Tensor, ...]]


def measure(
    circuits: Annotated[str, typer.Option(help="Names of circuits, comma-separated, or tiny; all by default.")] = "",
    batch: Annotated[str, typer.Option(help="Batch sizes, comma-separated.")] = "128,1024",
    rounds: Annotated[int, typer.Option(help="Most rounds of measurement.", min=1)] = 25,
    seconds: Annotated[float, typer.Option(help="Approximate seconds per circuit and task.", min=0)] = 5.0,
    compiling: Annotated[float, typer.Option(help="Most seconds until a compiled candidate is ready.", min=0)] = 300.0,
    out: Annotated[Path, typer.Option(help="Folder for gpu.json.")] = Path("results"),
) -> None:
    """Check the numbers of a GPU against those of the CPU, then measure. Please send in the file that it writes.

    Example: python -m benchmarks.gpu --circuits paths-8x8,permutation-12
    """
    if not torch.cuda.is_available() and not interpreted():
        raise SemprolaError("there is no GPU that torch can use: TRITON_INTERPRET=1 tries --circuits tiny without one")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    names = [name.strip() for name in circuits.split(",") if name.strip()]
    chosen = [_TINY] if names == ["tiny"] else cases(names or None)
    sizes = [int(size) for size in batch.split(",")]
    for line in missing_peers("klay", "cirkit", "pyjuice"):
        typer.echo(line, err=True)
    rows: list[dict[str, Any]] = []
    for number, case in enumerate(chosen):
        typer.echo(f"[{number + 1}/{len(chosen)}] {case.name}", err=True)
        for size in sizes:
            rows += measure_circuit(case.name, case.make(), size, device, rounds, seconds, compiling)
    result = {"provenance": provenance(), "conditions": conditions() | _device(device), "rows": rows}
    keep(out / "gpu.json", result)
    typer.echo(table(result))


def measure_circuit(
    name: str, circuit: sp.Circuit, batch: int, device: torch.device, rounds: int, seconds: float, compiling: float
) -> list[dict[str, Any]]:
    """All measurements of one circuit, one row per task and candidate; a row without times says why."""
    here, there = OurCalls(circuit, batch), OurCalls(circuit, batch, device)
    klay = KlayCalls(circuit, compiling, device)
    size = {"circuit": name, "edges": here.plan.num_edges, "batch": batch}
    rows: list[dict[str, Any]] = []
    for task in _TASKS:
        expected = _answer(here, task)
        runs: dict[str, Callable[[], Any]] = {}
        entries: dict[str, dict[str, Any]] = {}
        for key, make, budget in _candidates(task, there, klay):
            try:
                with budget:
                    run = make()
                    entries[key] = {"largest difference": _difference(_answer(there, task, run), expected)}
                runs[key] = waiting(run, device)
            except Exception as why:  # whatever a device, a compiler or a package raises; the row says it
                entries[key] = {"unable": _line(why)}
        rows += _rows(size | {"task": task}, entries, side_by_side(runs, rounds, seconds))
    return rows + _fixed_weights(size, circuit, there.y, device, rounds, seconds)


def table(result: dict[str, Any]) -> str:
    """The measurements in Markdown."""
    rows = result["rows"]
    engines = list(dict.fromkeys(row["engine"] for row in rows if "ms" in row))
    lines = [f"| circuit | edges | batch | task | {' | '.join(engines)} |", "| --- " * (4 + len(engines)) + "|"]
    places = dict.fromkeys((row["circuit"], row["edges"], row["batch"], row["task"]) for row in rows)
    for place in places:
        same = {r["engine"]: r for r in rows if (r["circuit"], r["edges"], r["batch"], r["task"]) == place}
        cells = [f"{same[e]['ms']:.3g}" if "ms" in same.get(e, {}) else "–" for e in engines]
        lines.append("| " + " | ".join([*map(str, place), *cells]) + " |")
    reasons = dict.fromkeys(f"- {row['engine']}, {row['task']}: {row['unable']}" for row in rows if "unable" in row)
    return "\n".join(["Milliseconds per call.", "", *lines, "", *reasons])


def waiting(run: Callable[[], Any], device: torch.device) -> Callable[[], Any]:
    """The same, until the device has done all of it."""
    if device.type != "cuda":
        return run

    def call() -> None:
        run()
        torch.cuda.synchronize(device)

    return call


def _candidates(task: str, ours: OurCalls, klay: KlayCalls) -> Iterator[tuple[str, Callable[[], Answer], Any]]:
    """Names, functions that make the calls, and the context in which their first answer has to come."""
    for engine in _OURS:
        yield f"semprola {engine}", partial(_chosen, engine, ours.call(task)), nullcontext()
    if task != "mode":
        for mode in ("eager", "compiled"):
            yield f"klay {mode}", partial(klay.call, task, mode, ours), klay.budget(mode)


def _chosen(engine: str, call: Answer) -> Answer:
    made = with_engine(engine, call)
    if isinstance(made, str):
        raise Unable(made)
    return made


def _answer(ours: OurCalls, task: str, run: Answer | None = None) -> tuple[Tensor, ...]:
    """What a call comes to, on CPU; of the best states, which may be tied, the likelihoods."""
    found = tuple(part.detach().cpu() for part in (run or ours.call(task))())
    if task != "mode":
        return found
    return (ours.layer(ours.logits.detach().cpu()).log_prob(found[0]),)


def _difference(found: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> float:
    """The largest difference.

    Raises:
        Unable: if it is too large.
    """
    largest = 0.0
    for one, other in zip(found, expected, strict=True):
        gap = float((one - other).abs().max()) if one.shape == other.shape else float("nan")
        if not torch.allclose(one, other, rtol=1e-3, atol=1e-3):
            raise Unable(f"its numbers are not those of the CPU (largest difference {gap:.2g})")
        largest = max(largest, gap)
    return largest


def _fixed_weights(
    size: dict[str, Any], circuit: sp.Circuit, y: Tensor, device: torch.device, rounds: int, seconds: float
) -> list[dict[str, Any]]:
    """The likelihood of states where all rows have the same weights, which is what PyJuice and cirkit compute."""
    peers = Peers(circuit, device)
    runs: dict[str, Callable[[], Any]] = {}
    entries: dict[str, dict[str, Any]] = {}

    def cirkit() -> Callable[[], Any]:
        return gradient(*peers.cirkit_step(y))

    def pyjuice() -> Callable[[], Any]:
        return peers.pyjuice_step(y)[1]

    for key, make in {"cirkit": cirkit, "pyjuice": pyjuice}.items():
        try:
            runs[key], entries[key] = waiting(make(), device), {}
        except Exception as why:  # see above
            entries[key] = {"unable": _line(why)}
    return _rows(size | {"task": _LIKELIHOOD}, entries, side_by_side(runs, rounds, seconds))


def _rows(
    size: dict[str, Any], entries: dict[str, dict[str, Any]], measured: dict[str, dict[str, float]]
) -> list[dict[str, Any]]:
    return [{**size, "engine": key, **entry, **measured.get(key, {})} for key, entry in entries.items()]


def _line(why: Exception) -> str:
    text = str(why).strip() or type(why).__name__
    return text.splitlines()[0]


def _device(device: torch.device) -> dict[str, Any]:
    found: dict[str, Any] = {"triton": _version("triton"), "interpreted": interpreted()}
    if device.type != "cuda":
        return found | {"device": "none"}
    facts = torch.cuda.get_device_properties(device)
    memory = f"{facts.total_memory / 2**30:.0f} GB"
    return found | {"device": facts.name, "memory": memory, "cuda": torch.version.cuda, "hip": torch.version.hip}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    typer.run(reporting_errors(measure))
