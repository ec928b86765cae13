"""How much of a training step the gate takes, for layers with several units: python -m benchmarks.units."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import nn

import semprola as sp
from benchmarks.cases import cases

FEATURES, BATCH = 128, 128
CASES = [("tree-499", 2), ("tree-499", 4), ("clauses-30-sdd", 2), ("permutation-12", 2)]


def milliseconds(run: Callable[[], None], repeats: int = 5) -> float:
    """The shortest processor time of a few runs."""
    run()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    return 1e3 * min(times)


def main() -> None:
    """Print, for each circuit, a step of the layer and a linear map to as many numbers, forward and backward."""
    torch.set_num_threads(1)
    z = torch.randn(BATCH, FEATURES)
    for name, units in CASES:
        layer = sp.SPL(FEATURES, cases([name])[0].make(), units=units)
        with torch.no_grad():
            y = layer(z).sample()
        logits = layer.plans.layer_explicit.num_logits
        gate = nn.Linear(FEATURES, logits)

        def multiply(gate: nn.Linear = gate) -> None:
            gate.zero_grad()
            gate(z.clone().requires_grad_()).sum().backward()

        def step(layer: sp.SPL = layer, y: torch.Tensor = y) -> None:
            layer.zero_grad()
            (-layer(z.clone().requires_grad_()).log_prob(y).mean()).backward()

        alone, whole = milliseconds(multiply), milliseconds(step)
        print(
            f"{name}, k = {units}: {logits:,} logits; gate {alone:.1f} ms, step {whole:.1f} ms, {whole / alone:.2f} x"
        )


if __name__ == "__main__":
    main()
