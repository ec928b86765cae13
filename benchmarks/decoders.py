"""Which layer, which decoder? Independent labels and both layers on a generated hierarchy, with four decoders.

The data have a directed acyclic graph of 60 labels, features that depend on its leaves, and noise, so that no
prediction is certain. Every method has the same network, rows and early stopping; figures are means over seeds.

    python -m benchmarks.decoders [--seeds 3] [--out results/decoders.json] [--page docs/howto_decoding.md]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import semprola as sp
from experiments.provenance import provenance, write_json
from semprola.training import calibration_report, fit

LABELS, FEATURES, HIDDEN = 60, 40, 64
ROWS = {"train": 1200, "valid": 400, "test": 1000}
NAMES = [f"n{i}" for i in range(LABELS)]
DECODERS = ("mode", "hamming", "f1", "jaccard")
MARKS = ("<!-- decoders: begin -->", "<!-- decoders: end -->")
TITLES = {
    "independent": "independent labels",
    "constrained": "the same network, `sp.constrain` at prediction",
    "product": "`ProductSPL`, 1 component",
    "mixture": "`ProductSPL`, 4 components",
    "single": "`SPL`",
}


def main() -> None:
    """Train, decode, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/decoders.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/howto_decoding.md"))
    options = parser.parse_args()
    runs = [run for seed in range(options.seeds) for run in measure(seed)]
    content = {"provenance": provenance(), "rows": ROWS, "labels": LABELS, "seeds": options.seeds, "runs": runs}
    write_json(options.out, content)
    if options.page.is_file():
        update_page(options.page, content)
    print(table(content))


def graph() -> list[tuple[str, str]]:
    """(child, parent) pairs: every label except the first six has one or two parents among those before it."""
    rng = np.random.default_rng(0)
    edges = []
    for i in range(6, LABELS):
        for parent in rng.choice(i // 2 + 1, size=1 + int(rng.random() < 0.3), replace=False):
            edges.append((NAMES[i], NAMES[parent]))
    return edges


def data(seed: int, rows: dict[str, int]) -> dict[str, tuple[Tensor, Tensor]]:
    """Features and labels: a row has some leaves, drawn by noisy scores of its features, and all their ancestors."""
    generator = torch.Generator().manual_seed(seed)
    edges = [(int(child[1:]), int(parent[1:])) for child, parent in graph()]
    leaves = sorted(set(range(LABELS)) - {parent for _, parent in edges})
    weights = torch.randn(FEATURES, len(leaves), generator=torch.Generator().manual_seed(0)) / FEATURES**0.5
    made = {}
    for part, count in rows.items():
        x = torch.randn(count, FEATURES, generator=generator)
        score = 5.0 * x @ weights - 7.0
        y = torch.zeros(count, LABELS)
        y[:, leaves] = torch.bernoulli(score.sigmoid(), generator=generator)
        for child, parent in reversed(edges):
            y[:, parent] = torch.maximum(y[:, parent], y[:, child])
        made[part] = x, y
    return made


def measure(seed: int, rows: dict[str, int] | None = None, epochs: int = 60) -> list[dict[str, Any]]:
    """Every method and decoder on one draw of the data."""
    parts = data(seed, rows or ROWS)
    circuit = sp.compile(sp.constraints.hierarchy(graph()), labels=NAMES)
    found = []
    for method, make in models(circuit).items():
        torch.manual_seed(seed)
        model = make()
        if isinstance(model[-1], sp.SPL | sp.ProductSPL):
            model[-1].start_at(parts["train"][1])
        began = time.perf_counter()
        fit(model, parts["train"], parts["valid"], epochs=epochs, lr=3e-3, patience=6, seed=seed)
        seconds = time.perf_counter() - began
        x, y = parts["test"]
        model.eval()
        with torch.no_grad():
            p = model(x)
            found += _figures(method, seed, seconds, p, y, circuit)
            if method == "independent":
                found += _figures("constrained", seed, 0.0, sp.constrain(p.logits[:, 0], circuit), y, circuit)
    return found


def models(circuit: sp.Circuit) -> dict[str, Callable[[], nn.Sequential]]:
    """The same network, each time with another last layer."""

    def network(last: Callable[[], nn.Module]) -> Callable[[], nn.Sequential]:
        return lambda: nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Dropout(0.2), last())

    return {
        "independent": network(lambda: sp.baselines.FIL(HIDDEN, NAMES)),
        "product": network(lambda: sp.ProductSPL(HIDDEN, circuit)),
        "mixture": network(lambda: sp.ProductSPL(HIDDEN, circuit, components=4)),
        "single": network(lambda: sp.SPL(HIDDEN, circuit)),
    }


def _figures(method: str, seed: int, seconds: float, p: Any, y: Tensor, circuit: sp.Circuit) -> list[dict[str, Any]]:
    likelihood = float(p.log_prob(y).mean())
    error = calibration_report(p, y)["marginals"]["error"][0]
    found = []
    for decoder in DECODERS:
        began = time.perf_counter()
        predicted = p.decode(decoder)
        figures = {
            "f1": 100 * float(_f1(predicted, y).mean()),
            "jaccard": 100 * float(_jaccard(predicted, y).mean()),
            "hamming": 100 * float((predicted == y).double().mean()),
            "exact": 100 * float((predicted == y).all(-1).double().mean()),
            "obeys": 100 * float(torch.as_tensor(circuit.satisfied(predicted)).double().mean()),
            "log_likelihood": likelihood,
            "calibration_error": 100 * error,
            "decode_ms": 1000 * (time.perf_counter() - began) / len(y),
        }
        rounded = {name: round(value, 3) for name, value in figures.items()}
        found.append({"method": method, "seed": seed, "decoder": decoder, "seconds": round(seconds, 1), **rounded})
        print(method, decoder, rounded, flush=True)
    return found


def _f1(predicted: Tensor, y: Tensor) -> Tensor:
    """F1 of each row; 1 if both are empty."""
    size = predicted.sum(-1) + y.sum(-1)
    return torch.where(size == 0, 1.0, 2 * (predicted * y).sum(-1) / size.clamp(min=1))


def _jaccard(predicted: Tensor, y: Tensor) -> Tensor:
    either = torch.maximum(predicted, y).sum(-1)
    return torch.where(either == 0, 1.0, (predicted * y).sum(-1) / either.clamp(min=1))


def table(content: dict[str, Any]) -> str:
    """The results as Markdown: means over the seeds."""
    lines = [
        "| layer | log-likelihood | decoder | F1 | Jaccard | labels right | all right | obeys |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for method, title in TITLES.items():
        for decoder in DECODERS:
            runs = [run for run in content["runs"] if (run["method"], run["decoder"]) == (method, decoder)]
            if not runs:
                continue
            mean = {
                name: float(np.mean([run[name] for run in runs]))
                for name in ("f1", "jaccard", "hamming", "exact", "obeys", "log_likelihood")
            }
            first = f"{title} | {mean['log_likelihood']:.2f}" if decoder == "mode" else " | "
            figures = " | ".join(f"{mean[name]:.1f}" for name in ("f1", "jaccard", "hamming", "exact", "obeys"))
            lines.append(f"| {first} | {decoder} | {figures} |")
    return "\n".join(lines)


def update_page(page: Path, content: dict[str, Any]) -> None:
    """Put the table between the marks of a page."""
    text = page.read_text(encoding="utf-8")
    begin, end = MARKS
    before, _, rest = text.partition(begin)
    page.write_text(f"{before}{begin}\n{table(content)}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
