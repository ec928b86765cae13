"""How fast circuits are evaluated, compared with other packages: `make bench`."""

from __future__ import annotations

import json as json_format
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semprola.cli.app import reporting_errors

if TYPE_CHECKING:
    from semprola.circuit import Circuit

_TOO_LONG = 8.0
"""A candidate is left out at a batch size if one call would take more seconds than this."""
_PARTS = ("rows", "networks", "weak", "mixtures", "products", "growth")
"""The lists that the results consist of."""


def bench(
    circuits: Annotated[str, typer.Option(help="Names of circuits, comma-separated; all by default.")] = "",
    batch: Annotated[str, typer.Option(help="Batch sizes, comma-separated.")] = "1,128,1024",
    rounds: Annotated[int, typer.Option(help="Most rounds of measurement.", min=1)] = 15,
    seconds: Annotated[float, typer.Option(help="Approximate seconds per circuit and batch size.", min=0)] = 10.0,
    threads: Annotated[str, typer.Option(help="Numbers of threads; all but the first only for batch 128.")] = "1,2",
    sizes: Annotated[str, typer.Option(help="Edges of growing circuits, comma-separated.")] = "1e3,1e4,1e5,1e6,1e7",
    out: Annotated[Path, typer.Option(help="Folder for bench.json and bench.svg.")] = Path("results"),
    docs: Annotated[Path | None, typer.Option(help="Page to write the tables to.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Measure log Z, training steps, modes and samples, compared with KLay, cirkit and a layer without a constraint.

    All candidates take turns in one process; the figures are medians, of wall and of processor time. By default this
    takes about a quarter of an hour.

    Example: python -m benchmarks.engine --circuits permutation-12,paths-8x8 --batch 128 --sizes ""
    """
    from benchmarks import imports, report
    from benchmarks.cases import cases
    from benchmarks.measure import conditions, load
    from benchmarks.peers import missing_peers
    from benchmarks.records import keep
    from experiments.provenance import provenance

    started = time.monotonic()
    chosen = cases([c.strip() for c in circuits.split(",") if c.strip()] or None)
    edges = _wholes(sizes, "a number of edges")
    session = _Session(
        sorted(set(_wholes(batch, "a batch size"))), _wholes(threads, "a number of threads") or [1], rounds, seconds
    )
    for absent in missing_peers("klay", "cirkit", "jax", "torchcrf"):
        typer.echo(absent, err=True)
    session.result["provenance"] = provenance()
    session.result["conditions"] = conditions() | {"threads": session.threads}
    session.total = len(chosen) + len(edges) + bool(edges)
    for case in chosen:
        session.say(case.name)
        session.circuit(case.name, case.make())
    for wanted in edges:
        session.say(f"a circuit of about {wanted} edges")
        session.growth(wanted)
    result = session.result
    if edges:
        session.say("imports")
        result["imports"] = imports.measure(min(rounds, 7))
    if not result["rows"] and not result["growth"]:
        raise ValueError("nothing to measure: name a batch size or a number of edges")
    result["conditions"] |= {"load after": load(), "minutes": round((time.monotonic() - started) / 60, 1)}
    kept = keep(out / "bench.json", result)
    if kept and result["growth"]:
        report.plot(result, out / "bench.svg")
    if kept and docs is not None:
        report.write_page(docs, out)
    typer.echo(json_format.dumps(result, indent=1) if json else report.tables(result))


class _Session:
    """What has been measured so far."""

    def __init__(self, batches: list[int], threads: list[int], rounds: int, seconds: float) -> None:
        self.batches, self.threads, self.rounds, self.seconds = batches, threads, rounds, seconds
        self.result: dict[str, Any] = {name: [] for name in _PARTS}
        self.total = self.done = 0

    def circuit(self, name: str, circuit: Circuit) -> None:
        """All measurements of one circuit."""
        from benchmarks import products
        from benchmarks.measure import side_by_side, threads
        from benchmarks.peers import Peers
        from benchmarks.tasks import network_step
        from benchmarks.weak import weak_labels

        peers = Peers(circuit)
        for batch in self.batches:
            with threads(self.threads[0]):
                self._tasks(name, circuit, peers, batch, self.threads[0])
            for more in self.threads[1:] if batch == 128 else []:
                with threads(more):
                    self._tasks(name, circuit, peers, batch, more)
        if 128 not in self.batches or circuit.given:
            return
        with threads(self.threads[0]):
            kinds = ("spl", "fil", "narrow", "zeros")
            steps = side_by_side(
                {kind: network_step(circuit, 128, kind) for kind in kinds}, self.rounds, self.seconds / 3
            )
            self.result["networks"].append({"circuit": name, "batch": 128, **steps})
            if name == "tree-499":
                for batch in (64, 128):
                    self.result["weak"] += weak_labels(circuit, batch, self.rounds, self.seconds / 2)
            if name == "permutation-12":
                rows = products.mixtures(circuit, 128, self.rounds, self.seconds)
                self.result["mixtures"] += [{"circuit": name, **row} for row in rows]
            if name == "exactly-50-of-500":
                small, label = products.small_cardinality()
                rows = products.compatible(small, 128, self.rounds, self.seconds)
                self.result["products"] += [{"circuit": label, **row} for row in rows]

    def _tasks(self, name: str, circuit: Circuit, peers: Any, batch: int, count: int) -> None:
        from benchmarks.measure import side_by_side
        from benchmarks.tasks import tasks
        from semprola.engine import CircuitPlans

        plan = CircuitPlans(circuit).constraint
        size = {"edges": plan.num_edges, "children": len(plan.shape.factors), "labels": circuit.num_labels}
        made = tasks(circuit, peers, batch)
        for key, run in made.items():
            expected = self._expected(name, *key, batch)
            if not isinstance(run, str) and expected > _TOO_LONG:
                made[key] = f"would take {expected:.0f} s per call at batch {batch}"
        runs = {key: run for key, run in made.items() if not isinstance(run, str)}
        measured = side_by_side(runs, self.rounds, self.seconds)
        for (task, engine), run in made.items():
            entry = {"circuit": name, **size, "batch": batch, "threads": count, "task": task, "engine": engine}
            answer = {"unable": run} if isinstance(run, str) else measured[task, engine]
            self.result["rows"].append(entry | answer)
        if (name, batch, count) == ("permutation-12", 128, self.threads[0]) and ("log Z", "native") in measured:
            self._bound(size["children"], batch, measured["log Z", "native"]["cpu_ms"])

    def _bound(self, children: int, batch: int, native: float) -> None:
        """A bound: every child's mantissa and exponent must come from the second-level cache once."""
        from benchmarks.measure import cache_bandwidth

        speed = cache_bandwidth()
        self.result["bound"] = {"gb_a_second": speed / 1e9, "ms": 8e3 * children * batch / speed, "native_ms": native}

    def _expected(self, circuit: str, task: str, engine: str, batch: int) -> float:
        """Expected processor seconds of a call, from the time at the largest smaller batch size."""
        same = {"circuit": circuit, "task": task, "engine": engine, "threads": self.threads[0]}
        found = [
            row
            for row in self.result["rows"]
            if all(row.get(key) == value for key, value in same.items()) and row["batch"] < batch and "cpu_ms" in row
        ]
        return max((row["cpu_ms"] / 1e3 * batch / row["batch"] for row in found if row["batch"] >= 16), default=0.0)

    def growth(self, edges: int) -> None:
        """Time and memory of log Z with its gradient at some size, in its own process."""
        from benchmarks.growth import measure

        self.result["growth"].append(measure(edges, 128))

    def say(self, what: str) -> None:
        """Print a line of progress on standard error."""
        self.done += 1
        typer.echo(f"[{self.done}/{self.total}] {what}", err=True)


def _wholes(text: str, what: str) -> list[int]:
    return [_whole(part, what) for part in text.split(",") if part.strip()]


def _whole(text: str, what: str) -> int:
    try:
        value = int(float(text))
    except (ValueError, OverflowError):
        raise ValueError(f"{what} must be a positive whole number, not {text.strip()!r}") from None
    if value < 1:
        raise ValueError(f"{what} must be a positive whole number, not {text.strip()!r}")
    return value


if __name__ == "__main__":
    typer.run(reporting_errors(bench))
