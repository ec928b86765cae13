"""How much of a training step the layer takes, beside the network in front of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from experiments.provenance import provenance
from experiments.warcraft.dataset import generated_maps
from experiments.warcraft.models import METHODS, ModelSettings, PathModel
from experiments.warcraft.runs import path_constraint
from experiments.warcraft.tables import NETS

MODELS = (
    ("resnet18", "product-spl", 4),
    ("grid", "product-spl", 1),
    ("grid", "product-spl", 4),
    ("grid", "spl", 1),
    ("grid", "hmm", 1),
    ("costs", "product-spl", 1),
)
"""Network, method, components."""
_BATCH = 128
_SIDE, _LONGEST = 12, 28


def measure_shares(
    precisions: Mapping[str, str],
    models: Sequence[tuple[str, str, int]] = MODELS,
    *,
    batch: int = _BATCH,
    rounds: int = 5,
    cache: Path | None = None,
) -> dict[str, Any]:
    """Processor seconds of a training step (loss and gradient), and of the layer and the loss within it.

    The layer is measured by itself, on outputs of the network that are kept, because the difference of two long times
    says little about a short one.

    Args:
        precisions: the precision in which each network is trained.
        models: network, method and components of each row.
        batch: maps of a step.
        rounds: measurements, of which the least counts.
        cache: folder for generated maps.

    Returns:
        What JSON can hold.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        maps = generated_maps("train", side=_SIDE, sizes={"train": 2 * batch, "val": 1, "test": 1}, cache=cache)
        kept = np.flatnonzero(maps.labels.sum(1) <= _LONGEST)[:batch]
        x = torch.from_numpy(np.array(maps.pictures[kept])).flatten(1)
        y = torch.from_numpy(maps.labels[kept])
        rows = []
        for net, method, components in models:
            torch.manual_seed(0)
            model = PathModel(ModelSettings(method, net, components), path_constraint(_SIDE, _LONGEST), _SIDE)
            with torch.autocast("cpu", torch.bfloat16, enabled=precisions[net] == "bfloat16"):
                whole, alone = _seconds(model, x, y, rounds)
            row = {"net": net, "method": method, "components": components, "precision": precisions[net]}
            rows.append(row | {"step": round(whole, 5), "layer": round(alone, 5)})
    finally:
        torch.set_num_threads(threads)
    return {"rows": rows, "batch": batch, "provenance": provenance()}


def shares_markdown(result: Mapping[str, Any]) -> str:
    """The rows as a Markdown table."""
    lines = ["| network | layer | step (ms) | layer (ms) | share |", "|---|---|---:|---:|---:|"]
    for row in result["rows"]:
        many = f", m = {row['components']}" if row["method"] == "product-spl" else ""
        share = 100 * row["layer"] / row["step"]
        lines.append(
            f"| {NETS[row['net']]}, {row['precision']} | {METHODS[row['method']]}{many} | {1000 * row['step']:.0f} | "
            f"{1000 * row['layer']:.1f} | {share:.1f} % |"
        )
    return "\n".join(lines) + f"\n\nA batch of {result['batch']} maps, one thread, processor time.\n"


class _Kept(nn.Module):
    """Returns what another module has returned before."""

    def __init__(self, outputs: Tensor) -> None:
        super().__init__()
        self.outputs = nn.Parameter(outputs)

    def forward(self, z: Tensor) -> Tensor:
        return self.outputs


def _seconds(model: PathModel, x: Tensor, y: Tensor, rounds: int) -> tuple[float, float]:
    """Least processor seconds of a step, and of the layer's part in it."""
    model.views = False  # a view is chosen at random, and is no work of the layer
    model.train()
    head: Any = model.head
    pictures = torch.cat([x, torch.zeros(len(x), 1)], 1) if head.in_features > x.shape[1] else x

    def step() -> None:
        model.zero_grad()
        (-head(pictures).log_prob(y).mean()).backward()

    whole = _least(step, rounds)
    head.gate = _Kept(head.gate(pictures).detach())
    return whole, _least(step, rounds)


def _least(work: Callable[[], None], rounds: int) -> float:
    work()
    seconds = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds)
