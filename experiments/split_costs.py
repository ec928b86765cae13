"""`python -m experiments split`: what it costs to split a constraint that would compile as one circuit.

Each task has few enough states to list them, so the likelihood of a pool is exact, too. The inputs are a random state
plus noise, the model is one linear `ProductSPL`, trained by the likelihood (one circuit) or its lower bound (several).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import torch
from torch import Tensor

import semprola as sp
from experiments.provenance import provenance, write_json
from semprola.compiler.splitting import Split

NOISE = 0.7
"""Standard deviation of what is added to the labels to make the inputs."""
LIMITS = (1000, 500, 300, 200, 150, 100, 60, 30, 20)
"""Budgets in nodes; the first that gives another number of circuits is used."""
_SECONDS = 0.2
"""Most time per row of the search for a mode."""
_COLUMNS = ("task", "circuits", "edges", "left out", "exact match", "log-likelihood", "bound", "training", "modes")


def sudoku() -> sp.Formula:
    """The 288 sudokus of 4 × 4 cells, as rules."""
    digits = range(1, 5)
    labels = [f"r{row}c{column}={digit}" for row in digits for column in digits for digit in digits]
    cells = torch.arange(64).view(2, 2, 2, 2, 4)  # box and row in it, box and column in it, digit
    orders = ((0, 1, 2, 3, 4), (0, 1, 4, 2, 3), (2, 3, 4, 0, 1), (0, 2, 4, 1, 3))
    groups = [cells.permute(order).reshape(-1, 4) for order in orders]
    return sp.And([sp.one_hot([labels[i] for i in group]) for part in groups for group in part.tolist()])


def hierarchy() -> sp.Formula:
    """Fourteen terms, some with two parents."""
    edges = [(f"n{i}", f"n{(i - 1) // 2}") for i in range(1, 14)] + [(f"n{i}", f"n{i - 6}") for i in range(9, 14, 2)]
    return sp.And([sp.Bool(child) >> sp.Bool(parent) for child, parent in edges])


TASKS: dict[str, Callable[[], sp.Formula]] = {
    "sudoku of 4 × 4": sudoku,
    "permutation of 6": lambda: sp.constraints.permutation(6),
    "hierarchy of 14": hierarchy,
    "paths of 4 × 4": lambda: sp.constraints.simple_paths(nx.grid_2d_graph(4, 4), source=(0, 0), target=(3, 3)),
}


def splits(rules: sp.Formula) -> list[Any]:
    """One circuit, and splits of different numbers of circuits, found with smaller and smaller budgets."""
    circuit = sp.compile(rules)
    found: dict[tuple[int, bool], Any] = {(1, True): circuit}
    for limit in LIMITS:
        if limit < circuit.num_nodes:
            made = sp.split(rules, labels=circuit.labels, max_nodes=limit)
            if not made.is_exact:
                found.setdefault((len(made.circuits), False), made)
    return list(found.values())


def run(constraint: Any, states: Tensor, rows: int, tests: int, epochs: int, seed: int) -> dict[str, float]:
    """Train and judge one layer; seconds are of the processor.

    Args:
        constraint: a circuit or a split.
        states: all states of the rules [states, labels].
        rows: training rows.
        tests: test rows.
        epochs: passes over the training rows.
        seed: of the data, the start and the order of rows.
    """
    torch.manual_seed(seed)
    y = states[torch.randint(len(states), (rows + tests,))]
    x = y + NOISE * torch.randn(y.shape)
    layer = sp.ProductSPL(states.shape[1], constraint)
    began = time.process_time()
    sp.training.fit(layer, (x[:rows], y[:rows]), epochs=epochs, lr=0.02, seed=seed)
    trained = time.process_time()
    with torch.no_grad():
        p, truth = layer(x[rows:]), y[rows:]
        began_modes = time.process_time()
        mode = p.within(seconds=_SECONDS).try_mode() if isinstance(constraint, Split) else p.mode
        seconds = time.process_time() - began_modes
        score = p.log_score if isinstance(constraint, Split) else p.log_prob
        bound = score(truth)
        total = score(states[:, None].expand(-1, tests, -1)).logsumexp(0)
    return {
        "exact match": 100 * float((mode == truth).all(1).float().mean()),
        "log-likelihood": float((bound - total).mean()),
        "bound": float(bound.mean()),
        "training": trained - began,
        "modes": 1000 * seconds / tests,
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    """The results as a table in Markdown."""
    lines = [f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
    for row in results:
        cells = [row["task"], *(f"{row[name]:,}" for name in ("circuits", "edges", "left out"))]
        cells += [f"{row['exact match']:.1f} %", f"{row['log-likelihood']:.3f}", f"{row['bound']:.3f}"]
        cells += [f"{row['training']:.1f} s", f"{row['modes']:.2f} ms"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all tasks; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m experiments split", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/split.json"))
    parser.add_argument("--only", default=",".join(TASKS), help="comma-separated: tasks to run")
    for name, default in {"rows": 300, "tests": 50, "epochs": 30, "seeds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    results: list[dict[str, Any]] = []
    for task in options.only.split(","):
        rules = TASKS[task]()
        states = torch.from_numpy(sp.compile(rules).enumerate()).float()
        for constraint in splits(rules):
            run(constraint, states, 20, 1, 1, 0)  # so that no time includes what is made once
            runs = [
                run(constraint, states, options.rows, options.tests, options.epochs, seed)
                for seed in range(options.seeds)
            ]
            is_split = isinstance(constraint, Split)
            size = {
                "circuits": len(constraint.circuits) if is_split else 1,
                "edges": constraint.num_edges,
                "left out": len(constraint.left_out) if is_split else 0,
            }
            means = {name: statistics.fmean(one[name] for one in runs) for name in runs[0]}
            results.append({"task": task, **size, **means})
            write_json(options.out, {"provenance": provenance(), "options": _plain(options), "results": results})
    print(table(results))
    return 0


def _plain(options: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name, value in vars(options).items() if name != "out"}
