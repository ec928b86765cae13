"""Where should a single-circuit layer start: uniform over the models, or over each local choice?

Trains the same network on the generated simple-path task from both starts, and compares validation likelihood and exact
match.

    python benchmarks/start.py [--out results/start.json]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

import semprola as sp
from experiments.provenance import provenance, write_json
from experiments.simple_path import simple_path_task
from semprola.engine import logits_of
from semprola.nn import Gate

STEPS, EVERY, BATCH = 600, 150, 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/start.json"))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    task = simple_path_task("paper")
    runs = [
        train(task, start, replicas, seed)
        for replicas in (1, 4)
        for start in ("models", "choices")
        for seed in range(options.seeds)
    ]
    write_json(options.out, {"provenance": provenance(), "steps": STEPS, "batch": BATCH, "runs": runs})
    for run in runs:
        shown = "  ".join(f"{point['loss']:.2f}/{point['exact']:.1f}" for point in run["curve"])
        print(f"m={run['replicas']} {run['start']:8} seed {run['seed']}: {shown}")


def train(task: Any, start: str, replicas: int, seed: int) -> dict[str, Any]:
    """Validation loss and exact match (percent) every `EVERY` steps."""
    torch.manual_seed(seed)
    x, y = (torch.as_tensor(part) for part in task.rows("train")[:2])
    x_valid, y_valid = (torch.as_tensor(part) for part in task.rows("valid")[:2])
    layer = sp.SPL(256, task.circuit, components=replicas)
    if start == "choices" and isinstance(layer.gate, Gate):
        # the layer starts at the log-counts of models; without them, every branch is equally likely
        counts = logits_of(layer.plans.layer, layer.plans.log_counts).to(torch.float32)
        layer.gate.output.bias.data[: replicas * len(counts)] -= counts.repeat_interleave(replicas)
    net = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(), layer
    )
    optimizer = torch.optim.Adam(net.parameters(), 2e-3)
    curve = []
    for step in range(STEPS + 1):
        if step % EVERY == 0:
            with torch.no_grad():
                p = net(x_valid)
                loss = -p.log_prob(y_valid).mean().item()
                exact = 100 * (p.mode == y_valid).all(-1).float().mean().item()
            curve.append({"step": step, "loss": loss, "exact": exact})
        rows = torch.randint(len(x), (BATCH,))
        loss = -net(x[rows]).log_prob(y[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {"start": start, "replicas": replicas, "seed": seed, "curve": curve}


if __name__ == "__main__":
    main()
