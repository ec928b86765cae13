"""`python -m experiments shortcuts`: digits that sums leave open, ten seeds; resumable."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from experiments.mnist_add.images import load_mnist
from experiments.provenance import read_json, write_json
from experiments.shortcuts.report import METHODS, page, table
from experiments.shortcuts.rows import PAIRS, wrong_readings
from experiments.shortcuts.training import Settings, run

PAGE = Path("docs/shortcuts.md")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, then print the tables; returns the exit status."""
    options = _parser().parse_args(arguments)
    path: Path = options.out
    start = {"experiment": "shortcuts", "wrong_readings": {name: wrong_readings(name) for name in PAIRS}, "runs": []}
    content: dict[str, Any] = read_json(path) if path.is_file() else start
    if options.report:
        PAGE.write_text(page(content), encoding="utf-8")
        print(PAGE)
        return 0
    torch.set_num_threads(1)
    train, test = load_mnist(options.data)
    for seed in range(options.seeds):
        for task in PAIRS:
            for kind, entropy, usage in METHODS:
                settings = Settings(task, kind, entropy, usage)
                if any(each["seed"] == seed and each["settings"] == asdict(settings) for each in content["runs"]):
                    continue
                content["runs"].append(run(settings, seed, train, test))
                write_json(path, content)
                print(f"{settings}, seed {seed}: {content['runs'][-1]['seen']}", flush=True)
    for task in PAIRS:
        print(f"{task}\n{table(content, task)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m experiments shortcuts", description=main.__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="runs per method")
    parser.add_argument("--data", type=Path, help="folder with MNIST's four published files")
    parser.add_argument("--report", action="store_true", help="only write the page from the results that are there")
    parser.add_argument("--out", type=Path, default=Path("results/shortcuts.json"), help="file for results")
    return parser
