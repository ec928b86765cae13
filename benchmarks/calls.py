"""The calls that users make, beside KLay in every mode that it offers: `python -m benchmarks.calls`.

Every candidate starts from the same logits [batch, labels] and ends with the same numbers, which is checked before
anything is timed. The calls include everything that Python does on the way: checks, objects, automatic differentiation.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor, nn
from torch.nn import functional as F

import semprola as sp
from benchmarks import call_report, report
from benchmarks.cases import cases
from benchmarks.klay_calls import MODES, KlayCalls
from benchmarks.measure import conditions, load, side_by_side, threads
from benchmarks.peers import Unable, check, missing_peers
from benchmarks.records import keep
from benchmarks.tasks import gradient
from experiments.provenance import provenance
from semprola.cli.app import reporting_errors
from semprola.engine import Literals, log_value

TASKS = ("log Z + gradient", "log_prob + gradient", "step", "mode")
Answer = Callable[[], tuple[Tensor, ...]]
"""A call, and the tensors that it comes to."""


def measure(
    circuits: Annotated[str, typer.Option(help="Names of circuits, comma-separated; all by default.")] = "",
    batch: Annotated[int, typer.Option(help="Rows of a batch.", min=1)] = 128,
    rounds: Annotated[int, typer.Option(help="Most rounds of measurement.", min=1)] = 25,
    seconds: Annotated[float, typer.Option(help="Approximate seconds per circuit and task.", min=0)] = 5.0,
    compiling: Annotated[float, typer.Option(help="Most seconds until a compiled candidate is ready.", min=0)] = 900.0,
    most: Annotated[int, typer.Option(help="Most edges of a circuit that KLay's compilers get.", min=0)] = 5000,
    modes: Annotated[str, typer.Option(help="Modes of KLay, comma-separated.")] = ",".join(MODES),
    cold: Annotated[
        Path | None,
        typer.Option(help="An earlier calls.json, of a run without compiled kernels on disk: for first calls."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for calls.json.")] = Path("results"),
    docs: Annotated[Path | None, typer.Option(help="Page to write again.")] = None,
) -> None:
    """Measure the calls of a layer beside KLay's module: eager, compiled, and as a JAX function.

    Example: python -m benchmarks.calls --circuits paths-8x8 --modes eager
    """
    chosen = cases([c.strip() for c in circuits.split(",") if c.strip()] or None)
    wanted = [mode.strip() for mode in modes.split(",") if mode.strip()]
    unknown = [mode for mode in wanted if mode not in MODES]
    if unknown:
        raise ValueError(f"KLay has no mode {unknown[0]!r}: choose from {', '.join(MODES)}")
    for line in missing_peers("klay", "jax"):
        typer.echo(line, err=True)
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    result: dict[str, Any] = {"provenance": provenance(), "conditions": conditions() | {"batch": batch}, "rows": rows}
    with threads(1):
        for number, case in enumerate(chosen):
            typer.echo(f"[{number + 1}/{len(chosen)}] {case.name}", err=True)
            rows += measure_circuit(case.name, case.make(), batch, wanted, rounds, seconds, compiling, most)
    if cold is not None:
        _take_first_calls(rows, json.loads(cold.read_text(encoding="utf-8"))["rows"])
    result["conditions"] |= {"load after": load(), "minutes": round((time.monotonic() - started) / 60, 1)}
    if keep(out / "calls.json", result) and docs is not None:
        report.write_page(docs, out)
    typer.echo(call_report.section(result))


def measure_circuit(
    name: str,
    circuit: sp.Circuit,
    batch: int,
    modes: list[str],
    rounds: int,
    seconds: float,
    compiling: float,
    most: int,
) -> list[dict[str, Any]]:
    """All measurements of one circuit, one row per task and candidate; for the arguments, see `measure`."""
    ours, klay = OurCalls(circuit, batch), KlayCalls(circuit, compiling)
    size = {"circuit": name, "edges": ours.plan.num_edges, "labels": circuit.num_labels, "batch": batch}
    rows: list[dict[str, Any]] = []
    for task in TASKS:
        expected = ours.call(task)
        entries: dict[str, dict[str, Any]]
        runs, entries = {"semprola": expected}, {"semprola": {"first_s": _seconds(expected)}}
        if task == "log Z + gradient":
            runs["bare engine"], entries["bare engine"] = ours.bare(), {}
        if task == "step":
            runs["sigmoids"], entries["sigmoids"] = ours.sigmoids(), {}
        for mode in modes:
            key = f"klay {mode}"
            try:
                if mode != "eager" and ours.plan.num_edges > most:
                    raise Unable(f"not tried above {most} edges, where compiling takes minutes")
                runs[key], entries[key] = _checked(klay.call(task, mode, ours), expected, klay.budget(mode))
            except Unable as why:
                entries[key] = {"unable": str(why)}
        measured = side_by_side(runs, rounds, seconds)
        rows += [
            {**size, "task": task, "engine": key, **entry, **measured.get(key, {})} for key, entry in entries.items()
        ]
    return rows


def _checked(call: Answer, expected: Answer, budget: Any) -> tuple[Answer, dict[str, Any]]:
    """A call that was seen to give the same numbers, and how long its first time took.

    Raises:
        Unable: if it gives others, or is not ready in time.
    """
    with budget:
        first = _seconds(call)
    for found, own in zip(call(), expected(), strict=True):
        check(found, own)
    return call, {"first_s": first}


def _seconds(call: Callable[[], Any]) -> float:
    """Processor seconds, also those of compilers that are started."""
    started = sum(os.times()[:4])
    call()
    return sum(os.times()[:4]) - started


def _take_first_calls(rows: list[dict[str, Any]], earlier: list[dict[str, Any]]) -> None:
    """Replace the seconds of first calls by those of an earlier run, where it has them."""
    names = ("circuit", "task", "engine", "batch")
    known = {tuple(row[name] for name in names): row["first_s"] for row in earlier if "first_s" in row}
    for row in rows:
        key = tuple(row[name] for name in names)
        if "first_s" in row and key in known:
            row["first_s"] = known[key]


class OurCalls:
    """What a user writes, for random logits; states are drawn from the layer.

    Args:
        circuit: the rules.
        batch: number of rows.
        device: where to evaluate. The numbers are the same on every device.
    """

    def __init__(self, circuit: sp.Circuit, batch: int, device: torch.device | str = "cpu") -> None:
        generator = torch.Generator().manual_seed(0)
        self.layer = sp.ConstraintLayer(circuit)
        self.plan = self.layer.plans.constraint
        logits = torch.randn((batch, circuit.num_labels), generator=generator)
        self.logits = logits.to(device).requires_grad_()
        self.y = self.layer(logits).sample(generator=generator).to(device)
        self.features = torch.randn((batch, 64), generator=generator).to(device)
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, circuit.num_labels))
        self.network = network.to(device)

    def call(self, task: str) -> Answer:
        """The call for a task: it returns values and gradients, or states."""
        if task == "mode":
            return lambda: (self.layer(self.logits.detach()).mode,)
        if task == "step":
            return self.step(lambda logits: self.layer(logits).log_prob(self.y).mean())
        if task == "log_prob + gradient":
            return self.with_gradient(lambda: self.layer(self.logits).log_prob(self.y))
        return self.with_gradient(lambda: self.layer(self.logits).log_partition)

    def with_gradient(self, value: Callable[[], Tensor]) -> Answer:
        """A value [batch], and the gradient of its sum by the logits."""

        def call() -> tuple[Tensor, Tensor]:
            self.logits.grad = None
            found = value()
            found.sum().backward()
            assert self.logits.grad is not None
            return found.detach(), self.logits.grad

        return call

    def step(self, likelihood: Callable[[Tensor], Tensor]) -> Answer:
        """A training step of a small network whose logits enter a likelihood."""

        def call() -> tuple[Tensor, Tensor]:
            self.network.zero_grad()
            loss = -likelihood(self.network(self.features))
            loss.backward()
            first = next(self.network.parameters()).grad
            assert first is not None
            return loss.detach(), first

        return call

    def sigmoids(self) -> Answer:
        """The step with independent sigmoids."""
        return self.step(
            lambda logits: -F.binary_cross_entropy_with_logits(logits, self.y, reduction="none").sum(-1).mean()
        )

    def bare(self) -> Answer:
        """log Z with its gradient by the engine alone, from scores of the literals that are there already."""
        leaves = Literals.of_odds(self.plan, self.logits.detach().T.contiguous()).leaves.requires_grad_()
        run = gradient(lambda: log_value(self.plan, None, leaves).sum(), [leaves])
        return lambda: tuple(run())


if __name__ == "__main__":
    typer.run(reporting_errors(measure))
