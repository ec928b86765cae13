"""`python -m experiments decisions`: shortest paths with predicted costs, beside PyEPO's methods; resumable."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from experiments.decisions.report import page, table
from experiments.decisions.training import FIRST_SEED, METHODS, ROWS, Settings, generate, run
from experiments.provenance import read_json, write_json

PAGE = Path("docs/decisions.md")
RATES = (3e-3, 1e-2, 3e-2, 1e-1)
_SEARCH_SEEDS = range(FIRST_SEED - 3, FIRST_SEED)
_VALID = ROWS // 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, then print the table; returns the exit status."""
    options = _parser().parse_args(arguments)
    path: Path = options.out
    content: dict[str, Any] = (
        read_json(path) if path.is_file() else {"experiment": "decisions", "search": [], "runs": []}
    )
    if options.report:
        PAGE.write_text(page(content), encoding="utf-8")
        print(PAGE)
        return 0
    torch.set_num_threads(1)
    methods = options.methods.split(",") if options.methods else list(METHODS)
    if unknown := [name for name in methods if name not in METHODS]:
        raise SystemExit(f"unknown method {unknown[0]!r}: choose from {', '.join(METHODS)}")
    for method in methods:
        for rate in RATES:
            for seed in _SEARCH_SEEDS:
                _run(content, "search", path, Settings(method, lr=rate, valid=_VALID), seed)
    for seed in range(FIRST_SEED, FIRST_SEED + options.seeds):
        for method in methods:
            _run(content, "runs", path, Settings(method, lr=best_rate(content["search"], method)), seed)
    print(table(content))
    return 0


def best_rate(searched: Sequence[dict[str, Any]], method: str) -> float:
    """The learning rate with the least regret on validation rows, on average over data sets."""
    found: dict[float, list[float]] = {}
    for each in searched:
        if each["settings"]["method"] == method:
            found.setdefault(each["settings"]["lr"], []).append(each["regret"])
    return min(found, key=lambda rate: statistics.mean(found[rate]))


def _run(content: dict[str, Any], part: str, path: Path, settings: Settings, seed: int) -> None:
    if any(each["seed"] == seed and each["settings"] == asdict(settings) for each in content[part]):
        return
    if part == "runs":  # of a rate that was the best before
        content[part] = [e for e in content[part] if (e["seed"], e["settings"]["method"]) != (seed, settings.method)]
    content[part].append(run(settings, seed, generate(seed)))
    write_json(path, content)
    print(f"{settings}, seed {seed}: {content[part][-1]['regret']:.2f} %", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m experiments decisions", description=main.__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="data sets, each with one run per method")
    parser.add_argument("--methods", default="", help=f"comma-separated, all by default: {', '.join(METHODS)}")
    parser.add_argument("--report", action="store_true", help="only write the page from the results that are there")
    parser.add_argument("--out", type=Path, default=Path("results/decisions.json"), help="file for results")
    return parser
