"""Does `decode("hamming")` have a better Hamming score than the mode? Every row is a test row once (five folds).

The published split has few test rows, and the two decoders differ on few of them, so which one is ahead is a matter of
chance. This script uses all rows of the published data, and gives the standard error of the difference.

    python benchmarks/decoder.py [--data FOLDER] [--out results/decoder.json]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from experiments.data import Split
from experiments.jobs import TaskSettings
from experiments.methods import TITLES, Model
from experiments.provenance import provenance, write_json
from experiments.settings import best_known
from experiments.task import Task
from experiments.trainer import train
from semprola.errors import SemprolaError

FOLDS = 5
CASES = (
    ("preference", "paper", "paper"),
    ("simple-path", "paper", "wide"),
    ("simple-path", "given", "wide"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/decoder.json"))
    parser.add_argument("--data", type=str, help="folder with the published data (or SEMPROLA_DATA)")
    options = parser.parse_args()
    try:
        tasks = [TaskSettings(*names[:2], source="file", data=options.data).task() for names in CASES]
    except SemprolaError as error:
        parser.exit(2, f"error: {error}\n")
    found = []
    for task, (experiment, setting, net) in zip(tasks, CASES, strict=True):
        for method in ("spl", "product-spl"):
            gains = torch.cat([gain_by_row(part, method, net) for part in folds(task)])
            case = {"experiment": experiment, "setting": setting, "net": net, "method": method, **described(gains)}
            found.append(case)
            print(
                f"{experiment}, {setting}, {net} network, {TITLES[method]}: {case['gain']:+.3f} ± {case['error']:.3f} "
                f"points; {case['better']} of {case['rows']} rows better, {case['worse']} worse",
                flush=True,
            )
            write_json(options.out, {"provenance": provenance(), "folds": FOLDS, "cases": found})


def folds(task: Task) -> list[Task]:
    """The task with other splits: each time, another fifth of the rows is for testing, and the next for validation."""
    parts = np.array_split(np.random.RandomState(1).permutation(len(task.x)).astype(np.int64), FOLDS)
    made = []
    for i in range(FOLDS):
        test, valid, *rest = parts[i:] + parts[:i]
        made.append(replace(task, parts=Split(np.concatenate(rest), valid, test)))
    return made


def gain_by_row(task: Task, method: str, net: str) -> Tensor:
    """What the decoder adds to the Hamming score of each test row, in points [rows]."""
    torch.manual_seed(0)
    model_settings, training = best_known(task.name, task.setting, net, method)
    model = Model(method, task.x.shape[1], task.circuit_for(method), model_settings)
    train(model, task.rows("train"), task.rows("valid"), training)
    x, y, given = task.rows("test")
    with torch.no_grad():
        p = model(x, given)
        decoded, mode = p.decode("hamming"), p.mode
    return 100 * ((decoded == y).double().mean(-1) - (mode == y).double().mean(-1))


def described(gains: Tensor) -> dict[str, Any]:
    """Mean and standard error in points, and how many rows are better or worse."""
    return {
        "rows": len(gains),
        "gain": round(float(gains.mean()), 4),
        "error": round(float(gains.std()) / len(gains) ** 0.5, 4),
        "better": int((gains > 1e-9).sum()),
        "worse": int((gains < -1e-9).sum()),
    }


if __name__ == "__main__":
    main()
