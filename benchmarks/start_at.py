"""How much does it help to start at the frequencies of the training labels?

Trains the same network on three tasks that it generates (labels in a tree, simple paths, rankings), with one circuit
and with two, from a start that is uniform over the models and from `start_at`, and compares losses on validation rows.

    python -m benchmarks.start_at [--out results/start_at.json]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import semprola as sp
from experiments.preference import preference_task
from experiments.provenance import provenance, write_json
from experiments.simple_path import simple_path_task
from experiments.task import Task
from semprola.circuit import Circuit

STEPS, LOOKS, BATCH, WIDTH = 600, (0, 60, 600), 64, 128
Rows = dict[str, tuple[Tensor, Tensor]]
LAYERS: dict[str, Callable[[Circuit], Any]] = {
    "SPL": lambda circuit: sp.SPL(WIDTH, circuit),
    "SPL, m = 4": lambda circuit: sp.SPL(WIDTH, circuit, components=4),
    "ProductSPL": lambda circuit: sp.ProductSPL(WIDTH, circuit),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/start_at.json"))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    made_by = provenance()  # now: the source may change while it runs
    runs = []
    for task, (circuit, rows) in tasks().items():
        for layer in LAYERS:
            for start in ("uniform", "labels"):
                for seed in range(options.seeds):
                    curve = train(circuit, rows, layer, start, seed, STEPS)
                    runs.append({"task": task, "layer": layer, "start": start, "seed": seed, "curve": curve})
                    shown = "  ".join(f"{point['loss']:.2f}/{point['exact']:.1f}" for point in curve)
                    print(f"{task:9} {layer:11} {start:8} seed {seed}: {shown}", flush=True)
    write_json(options.out, {"provenance": made_by, "batch": BATCH, "width": WIDTH, "runs": runs})


def tasks() -> dict[str, tuple[Circuit, Rows]]:
    """The circuit, and x and y of train and validation rows."""
    return {
        "tree": labels_in_a_tree(),
        "paths": _rows(simple_path_task("paper")),
        "rankings": _rows(preference_task("paper")),
    }


def labels_in_a_tree(rows: int = 2000, seed: int = 0) -> tuple[Circuit, Rows]:
    """A tree of 8 × 5 × 5 leaves; a row has one to three of them, and what they imply, by a linear function of x."""
    rng = np.random.default_rng(seed)
    tops = [f"{a}" for a in range(8)]
    middles = [f"{a}.{b}" for a in tops for b in range(5)]
    leaves = [f"{m}.{c}" for m in middles for c in range(5)]
    pairs = [(name, name.rpartition(".")[0]) for name in (*middles, *leaves)]
    circuit = sp.compile(sp.constraints.hierarchy(pairs))
    column = {name: number for number, name in enumerate(circuit.labels)}
    x = rng.normal(size=(rows, 20)).astype(np.float32)
    popularity = rng.normal(scale=1.5, size=len(leaves))
    scores = x @ rng.normal(size=(20, len(leaves))) + popularity + rng.gumbel(size=(rows, len(leaves)))
    y = np.zeros((rows, circuit.num_labels), dtype=np.float32)
    for row, (order, count) in enumerate(zip(np.argsort(-scores), rng.integers(1, 4, rows), strict=True)):
        for name in (leaves[leaf] for leaf in order[:count]):
            while name:
                y[row, column[name]] = 1
                name = name.rpartition(".")[0]
    parts = {"train": slice(0, rows * 3 // 4), "valid": slice(rows * 3 // 4, rows)}
    return circuit, {part: (torch.tensor(x[own]), torch.tensor(y[own])) for part, own in parts.items()}


def train(circuit: Circuit, rows: Rows, layer: str, start: str, seed: int, steps: int) -> list[dict[str, float]]:
    """Loss (nats) and exact match (percent) on validation rows after some steps."""
    torch.manual_seed(seed)
    x, y = rows["train"]
    last = LAYERS[layer](circuit)
    if start == "labels":
        last.start_at(y, scale=1.0)
    net = nn.Sequential(nn.Linear(x.shape[1], WIDTH), nn.ReLU(), last)
    optimizer = torch.optim.Adam(net.parameters(), 2e-3)
    curve = []
    for step in range(steps + 1):
        if step in LOOKS:
            curve.append({"step": step, **_look(net, *rows["valid"])})
        chosen = torch.randint(len(x), (BATCH,))
        loss = -net(x[chosen]).log_prob(y[chosen]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return curve


@torch.no_grad()
def _look(net: nn.Module, x: Tensor, y: Tensor) -> dict[str, float]:
    p = net(x)
    exact = (p.mode == y).all(-1).double().mean()
    return {"loss": round(float(-p.log_prob(y).mean()), 4), "exact": round(100 * float(exact), 2)}


def _rows(task: Task) -> tuple[Circuit, Rows]:
    parts = {part: task.rows(part)[:2] for part in ("train", "valid")}
    return task.circuit, {part: (torch.as_tensor(x), torch.as_tensor(y)) for part, (x, y) in parts.items()}


if __name__ == "__main__":
    main()
