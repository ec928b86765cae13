"""How far the path constraint goes: larger grids, a bound on the length, and what the bound leaves out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import torch
from torch import nn

from experiments.provenance import provenance
from experiments.warcraft.dataset import generated_maps
from experiments.warcraft.runs import path_constraint
from semprola.circuit import Circuit
from semprola.errors import CompilationBudgetError
from semprola.nn import ProductSPL

SLACKS = {12: (0, 2, 4, 6, 8, 10), 18: (0, 2, 4, 6, 8), 24: (0, 2, 4, 6), 30: (0, 2, 4, 6)}
"""Edges beyond the shortest way that are tried, for each side."""
SIZES = {"train": 1, "val": 1, "test": 1000}
"""Generated maps on which the share of labels outside of a bound is counted."""
_BATCH = 128


def measure_grids(slacks: Mapping[int, Sequence[int]] = SLACKS, cache: Path | None = None) -> dict[str, Any]:
    """One row per side and slack: size of the circuit, seconds to compile, milliseconds of a step, labels left out.

    Args:
        slacks: which slacks to try for each side.
        cache: folder for generated maps.

    Returns:
        What JSON can hold. Seconds are processor seconds of one thread.
    """
    rows = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for side, tried in slacks.items():
            lengths = generated_maps("test", side=side, sizes=SIZES, cache=cache).labels.sum(1)
            for slack in tried:
                longest = 2 * (side - 1) + slack
                row: dict[str, Any] = {"side": side, "slack": slack, "longest": longest}
                row |= {"outside": round(100 * float((lengths > longest).mean()), 2), **_circuit(side, longest)}
                rows.append(row)
    finally:
        torch.set_num_threads(threads)
    return {"rows": rows, "maps": SIZES["test"], "batch": _BATCH, "provenance": provenance()}


def grids_markdown(result: Mapping[str, Any]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| cells | edges of a path | paths | nodes | edges | compile (s) | step (ms) | labels outside (%) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        start = f"| {row['side']} × {row['side']} | ≤ {row['longest']} | "
        if row["nodes"] is None:
            lines.append(f"{start}– | over budget | – | – | – | {row['outside']:g} |")
            continue
        lines.append(
            f"{start}{_short(int(row['models']))} | {row['nodes']:,} | {row['edges']:,} | {row['compile']:.1f} | "
            f"{1000 * row['step']:.0f} | {row['outside']:g} |"
        )
    return "\n".join(lines) + "\n"


def _circuit(side: int, longest: int) -> dict[str, Any]:
    began = time.process_time()
    try:
        circuit = path_constraint(side, longest, cache=False)
    except CompilationBudgetError:
        return {"models": None, "nodes": None, "edges": None, "compile": None, "step": None}
    spent = time.process_time() - began
    return {
        "models": str(circuit.model_count()),
        "nodes": circuit.num_nodes,
        "edges": circuit.num_edges,
        "compile": round(spent, 2),
        "step": round(_step(circuit), 5),
    }


def _step(circuit: Circuit, rounds: int = 3) -> float:
    """Least processor seconds of a loss and its gradient, for a batch of scores of edges."""
    labels = len(circuit.labels)
    layer = ProductSPL(labels, circuit, gate=nn.Identity())
    z = torch.randn(_BATCH, labels, requires_grad=True)
    y = layer(z).sample().detach()
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        (-layer(z).log_prob(y).mean()).backward()
        best = min(best, time.process_time() - began)
    return best


def _short(count: int) -> str:
    """A number of paths as a power of ten.

    Example:
        >>> _short(829808328), _short(6)
        ('8.3e8', '6')
    """
    if count < 10_000:
        return f"{count:,}"
    digits, power = f"{Decimal(count):.1e}".split("e+")
    return f"{digits}e{int(power)}"
