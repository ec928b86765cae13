"""`python -m experiments mnist-add`: digit readers trained from sums; several seeds, resumable."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from experiments.mnist_add.images import Images, load_mnist, load_small
from experiments.mnist_add.report import page, summary
from experiments.mnist_add.training import Settings, read, run, train, validate
from experiments.provenance import provenance, read_json, write_json

KNOWN = {
    1: Settings(1, epochs=10, batch=64),
    2: Settings(2, epochs=10, batch=32),
    4: Settings(4, epochs=15, batch=16),
    15: Settings(15, epochs=20, batch=10),
    50: Settings(50, epochs=20, batch=4),
    100: Settings(100, epochs=20, batch=2),
}
"""Settings per number of digits, but for what `--search` chooses on validation rows."""
MANY = Settings(1, epochs=30, batch=4)
"""Settings for sums of many single digits; nothing was searched."""
PAGE = Path("docs/mnist_add.md")
_VALIDATION = 10_000
_QUICK_SECONDS = 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, then print the table; returns the exit status."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(options.threads)
    if options.report:
        PAGE.write_text(page(options.out), encoding="utf-8")
        print(PAGE)
        return 0
    if options.quick:
        return _quick(options.digits or 2)
    train_images, test_images = load_mnist(options.data)
    if options.numbers:
        _runs(options.numbers, replace(MANY, numbers=options.numbers), train_images, test_images, options)
        return 0
    for digits in [options.digits] if options.digits else [15, 4, 2, 1]:
        if options.search:
            _search(digits, train_images, options)
        else:
            _runs(digits, _settings(digits, options.out), train_images, test_images, options)
    return 0


def _runs(
    size: int, settings: Settings, train_images: Images, test_images: Images, options: argparse.Namespace
) -> None:
    """Runs that are missing, for numbers of this many digits, or for the sum of this many digits."""
    path = options.out / f"{'n' if settings.numbers == 2 else 'sum'}{size}.json"
    content: dict[str, Any] = (
        read_json(path) if path.is_file() else {"experiment": "mnist-add", "digits": size, "runs": []}
    )
    for seed in range(options.seeds):
        same = [r for r in content["runs"] if r["seed"] == seed and r["settings"] == settings.record()]
        if same:
            continue
        checkpoint = options.work / f"{_key(settings)}-{seed}.pt"
        result = run(settings, seed, train_images, test_images, checkpoint=checkpoint)
        content["runs"] = sorted([*(r for r in content["runs"] if r["seed"] != seed), result], key=lambda r: r["seed"])
        write_json(path, content)
        checkpoint.unlink()
        print(summary(size, content["runs"]), flush=True)


def _search(digits: int, images: Images, options: argparse.Namespace) -> None:
    """Compare candidates on 10,000 of the training images, and keep the best settings."""
    path = options.out / f"search-n{digits}.json"
    content: dict[str, Any] = (
        read_json(path) if path.is_file() else {"experiment": "mnist-add", "digits": digits, "tried": []}
    )
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    valid, rest = images.take(order[:_VALIDATION]), images.take(order[_VALIDATION:])
    for settings in _candidates(KNOWN[digits], options.candidates):
        if any(tried["settings"] == settings.record() for tried in content["tried"]):
            continue
        checkpoint = options.work / f"search-{_key(settings)}.pt"
        model, figures = train(settings, 0, rest, checkpoint=checkpoint)
        score = validate(model, read(model, valid), valid, digits)
        content["tried"].append({"settings": settings.record(), "valid": score, **figures, "provenance": provenance()})
        write_json(path, content)
        checkpoint.unlink()
        print(f"N={digits}: {score:.2f} % of validation sums with {settings}", flush=True)


def _candidates(start: Settings, most: int) -> list[Settings]:
    """The known settings, and changes of one or two of them, the likeliest first."""
    changes: list[dict[str, Any]] = [
        {"weight_decay": 0.1},
        {},
        {"lr": 2e-3, "weight_decay": 0.1},
        {"lr": 4e-3, "weight_decay": 0.1},
        {"lr": 2e-3, "weight_decay": 1.0},
        {"lr": 2e-3, "weight_decay": 0.1, "batch": max(1, start.batch // 2)},
        {"lr": 2e-3, "weight_decay": 0.1, "batch": max(1, start.batch // 4)},
        {"lr": 2e-3, "weight_decay": 0.3, "batch": max(1, start.batch // 2)},
    ]
    return [replace(start, **change) for change in changes][:most]


def _settings(digits: int, out: Path) -> Settings:
    """The settings that did best on validation rows; the known ones if there was no search."""
    path = out / f"search-n{digits}.json"
    tried = read_json(path)["tried"] if path.is_file() else []
    return Settings(**max(tried, key=lambda each: each["valid"])["settings"]) if tried else KNOWN[digits]


def _quick(digits: int) -> int:
    train_images, test_images = load_small()
    settings = Settings(digits, epochs=40, batch=8, average=0.98)
    result = run(settings, 0, train_images, test_images, seconds=_QUICK_SECONDS, quiet=True)
    print(f"N={digits}, scikit-learn's digits: {result['test']['sums']:.1f} % of sums right, ", end="")
    print(f"{result['test']['digits']:.1f} % of digits; no digit was labelled")
    return 0


def _key(settings: Settings) -> str:
    return hashlib.sha256(json.dumps(settings.record(), sort_keys=True).encode()).hexdigest()[:16]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m experiments mnist-add", description=main.__doc__)
    parser.add_argument(
        "--digits", type=int, choices=sorted(KNOWN), help="digits per number; 15, 4, 2 and 1 by default"
    )
    parser.add_argument("--numbers", type=int, help="add this many single digits instead of two numbers")
    parser.add_argument("--seeds", type=int, default=10, help="runs")
    parser.add_argument("--data", type=Path, help="folder with MNIST's four published files")
    parser.add_argument("--search", action="store_true", help="choose settings on 10,000 training images instead")
    parser.add_argument("--candidates", type=int, default=8, help="settings to try with --search")
    parser.add_argument(
        "--quick", action="store_true", help="a minute on scikit-learn's digits, which need no download"
    )
    parser.add_argument("--report", action="store_true", help="only write the page from the results that are there")
    parser.add_argument("--threads", type=int, default=1, help="threads")
    parser.add_argument("--out", type=Path, default=Path("results/mnist_add"), help="folder for results")
    parser.add_argument("--work", type=Path, default=Path("out/mnist_add"), help="folder for checkpoints")
    return parser
