"""`python -m experiments warcraft`: methods on maps, one small results file per run, a table and pictures."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from experiments.provenance import read_json, write_json
from experiments.warcraft.dataset import PARTS, generated_maps, load_maps
from experiments.warcraft.gallery import draw_gallery
from experiments.warcraft.larger import measure_grids
from experiments.warcraft.models import METHODS, ModelSettings
from experiments.warcraft.nets import NETS
from experiments.warcraft.paths import NEIGHBOURS
from experiments.warcraft.report import GRIDS, SHARES, write_report
from experiments.warcraft.runs import Task, path_constraint, run
from experiments.warcraft.shares import measure_shares
from experiments.warcraft.tables import print_summary
from experiments.warcraft.tuning import chosen_settings, tune, tuned_methods
from semprola.training import FitSettings

DEFAULT_METHODS = {
    "grid": ("fil", "semantic-loss", "nesy-entropy", "product-spl", "spl", "hmm"),
    "costs": ("product-spl", "perturbed"),
    "resnet18": ("fil", "semantic-loss", "product-spl"),
}
TRAINING = {
    "grid": FitSettings(
        epochs=20, batch_size=64, lr=6e-3, weight_decay=1e-2, schedule="cosine", warmup=200, clip=10.0,
        precision="bfloat16", choose="exact",
    ),
    "costs": FitSettings(epochs=20, batch_size=64, lr=3e-2, schedule="cosine", warmup=50, clip=10.0),
    "resnet18": FitSettings(
        epochs=10, batch_size=128, lr=1e-3, weight_decay=1e-4, schedule="cosine", warmup=100, clip=10.0,
        precision="bfloat16", choose="exact",
    ),
}  # fmt: skip
"""How each network is trained, for all methods alike, but for what `--tune` chooses on validation maps."""
IMAGES = Path("docs/images")
QUICK = {"train": 1000, "val": 200, "test": 200}
SHORT = "1,000 maps, grid net, a few epochs: a first look of a few minutes"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, then print the table of everything in the folder; returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.grids:
        write_json(options.out / GRIDS, measure_grids(cache=options.cache))
    if options.shares:
        precisions = {net: training.precision for net, training in TRAINING.items()}
        write_json(options.out / SHARES, measure_shares(precisions, cache=options.cache))
    if options.report or options.grids or options.shares:
        print(write_report(options.out))
        return 0
    methods = tuple(options.methods.split(",")) if options.methods else DEFAULT_METHODS[options.net]
    sizes = QUICK if options.quick else PARTS
    task = _task(options, sizes)
    training = TRAINING[options.net]
    if options.quick:
        training = replace(training, epochs=8, warmup=20)
    if options.epochs:
        training = replace(training, epochs=options.epochs)
    if options.patience:  # a schedule that ends at the last epoch would stop learning by itself
        training = replace(training, patience=options.patience, schedule="constant")
    if options.precision:
        training = replace(training, precision=options.precision)
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.tune:
        for method in tuned_methods(methods):
            tune(task, options.net, method, TRAINING[options.net], options.out)
    if options.gallery:
        _gallery(task, options, methods, training)
        return 0
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for method in methods:
            for components in options.components if method == "product-spl" and options.net != "costs" else (1,):
                settings = ModelSettings(method, options.net, components, views=options.views, biased=options.biased)
                settings, chosen = chosen_settings(options.out, settings, training, options.neighbours)
                _one(task, settings, chosen, seed, options.out, options.checkpoints)
    if os.environ.get("RANK", "0") == "0":
        print_summary(results_in(options.out))
    return 0


def _gallery(task: Task, options: argparse.Namespace, methods: Sequence[str], training: FitSettings) -> None:
    """Pictures of the first seed's models; those that are not trained yet are trained."""
    models = {}
    for method in methods:
        components = options.components[0] if method == "product-spl" else 1
        settings = ModelSettings(method, options.net, components, views=options.views)
        settings, chosen = chosen_settings(options.out, settings, training, options.neighbours)
        path = options.checkpoints / f"{_name(task, settings, options.first_seed)}.pt"
        models[METHODS[method]] = run(task, settings, chosen, options.first_seed, checkpoint=path)[1]
    for path in draw_gallery(task.test, models, IMAGES):
        print(path)


def results_in(folder: Path) -> list[dict[str, Any]]:
    """All results of a folder, in the order of their names."""
    return [read_json(path) for path in sorted(folder.glob("*-seed*.json"))]


def _one(task: Task, settings: ModelSettings, training: FitSettings, seed: int, out: Path, checkpoints: Path) -> None:
    name = _name(task, settings, seed)
    path = out / f"{name}.json"
    if path.is_file() and _same(read_json(path), settings, training, task):
        return
    result, _ = run(task, settings, training, seed, checkpoint=checkpoints / f"{name}.pt")
    if os.environ.get("RANK", "0") != "0":
        return  # of several processes the first one writes
    write_json(path, result)
    test = result["test"]
    print(f"{name}: exact {test['exact']:.1f}, optimal {test['optimal']:.1f}, {result['history']['seconds']:.0f} s")


def _name(task: Task, settings: ModelSettings, seed: int) -> str:
    """What the files of a run are called."""
    name = f"{settings.net}-{settings.method}{settings.components if settings.components > 1 else ''}"
    return name + ("-biased" if settings.biased else "") + ("-8" if task.neighbours == 8 else "") + f"-seed{seed}"


def _same(found: Mapping[str, Any], settings: ModelSettings, training: FitSettings, task: Task) -> bool:
    """Whether a result is of these settings."""
    wanted = json.loads(json.dumps([asdict(settings), asdict(training), task.source, task.longest, task.neighbours]))
    return bool([found[key] for key in ("model", "training", "maps", "longest", "neighbours")] == wanted)


def _task(options: argparse.Namespace, sizes: Mapping[str, int]) -> Task:
    if options.data is not None:
        parts = [load_maps(options.data, part, side=options.side, neighbours=options.neighbours) for part in PARTS]
        source = f"published maps, {options.side} × {options.side}"
    else:
        parts = [
            generated_maps(
                part,
                side=options.side,
                seed=options.map_seed,
                sizes=sizes,
                cache=options.cache,
                neighbours=options.neighbours,
            )
            for part in PARTS
        ]
        counts = " / ".join(f"{sizes[part]:,}" for part in PARTS)
        source = f"generated maps, {options.side} × {options.side}, seed {options.map_seed}, {counts}"
    shortest = (options.side - 1) * (2 if options.neighbours == 4 else 1)
    longest = options.longest or shortest + (6 if options.neighbours == 4 else 8)
    train, valid, test = parts
    circuit = path_constraint(options.side, longest, options.neighbours)
    return Task(train, valid, test, circuit, longest, source, options.neighbours)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments warcraft",
        description="Least-cost paths on terrain maps: methods with the same network, on generated or published maps.",
        epilog="Example: python -m experiments warcraft --net grid --quick",
    )
    parser.add_argument("--net", choices=NETS, default="grid", help="the network in front of all methods")
    parser.add_argument("--methods", default="", help=f"comma-separated, from {', '.join(METHODS)}")
    parser.add_argument("--components", type=_wholes, default=(1,), help="of product-spl, comma-separated: 1,2,4,8")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each method")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=0, help="passes over the maps; the network's own by default")
    parser.add_argument("--patience", type=int, default=0, help="epochs without a better figure before training ends")
    parser.add_argument("--no-views", dest="views", action="store_false", help="train on maps as they are only")
    parser.add_argument("--biased", action="store_true", help="with --net costs, learn a bias per edge")
    parser.add_argument("--side", type=int, default=12, help="cells along a side: 12, 18, 24 or 30")
    parser.add_argument("--neighbours", type=int, choices=NEIGHBOURS, default=4, help="of a cell; 8 needs --net costs")
    parser.add_argument(
        "--longest",
        type=int,
        default=0,
        help="most edges of a path; for 12 × 12 cells 28 by default, 19 with 8 neighbours",
    )
    parser.add_argument("--data", type=Path, default=None, help="folder with the published maps")
    parser.add_argument("--map-seed", type=int, default=0, help="of generated maps")
    parser.add_argument("--cache", type=Path, default=None, help="folder for generated maps")
    parser.add_argument("--grids", action="store_true", help="only measure how far the constraint goes")
    parser.add_argument("--shares", action="store_true", help="only measure the layer's share of a training step")
    parser.add_argument("--gallery", action="store_true", help="only draw pictures: FIL first, a layer last")
    parser.add_argument("--report", action="store_true", help="only rewrite the tables of docs/warcraft.md")
    parser.add_argument("--quick", action="store_true", help=SHORT)
    parser.add_argument("--precision", default="", help="of the network: float32 or bfloat16; its own by default")
    parser.add_argument("--threads", type=int, default=0, help="of torch; all by default")
    parser.add_argument("--tune", action="store_true", help="first choose settings on validation maps")
    parser.add_argument("--out", type=Path, default=Path("out/warcraft"), help="folder for results")
    parser.add_argument(
        "--checkpoints", type=Path, default=Path("out/warcraft/checkpoints"), help="folder to resume from"
    )
    return parser


def _wholes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))
