"""How long an epoch takes, method by method in one process: `python -m experiments.hmlc.timing`."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from experiments.hmlc.data import Phase, RawSet, load_raw, phase
from experiments.hmlc.models import Model, circuit_for, rule_for
from experiments.hmlc.settings import Settings, default_settings
from experiments.hmlc.training import train
from experiments.provenance import provenance, write_json


def epoch_seconds(raw: RawSet, cases: dict[str, Settings], rounds: int = 7) -> dict[str, list[float]]:
    """Processor seconds of single epochs, the cases by turns so that they share what the machine does meanwhile.

    Args:
        raw: the set.
        cases: settings by name.
        rounds: epochs of each case; one more goes first and does not count.
    """
    rows = phase(raw, 0)
    models = {name: _model(raw, rows, settings) for name, settings in cases.items()}
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, model in models.items():
            began = time.process_time()
            train(model, rows.train, cases[name], number, 1, lambda epoch, current: False)
            if number:
                seconds[name].append(time.process_time() - began)
    return seconds


def main(arguments: Sequence[str]) -> int:
    """Measure the methods on one set, print a table, and write a file of results."""
    parser = argparse.ArgumentParser(prog="python -m experiments.hmlc.timing", description=__doc__)
    parser.add_argument("--set", default="cellcycle")
    parser.add_argument("--data", default=None, help="folder with the published files (or SEMPROLA_DATA)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("results/hmlc/timing.json"))
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    raw = load_raw(asked.set, asked.data)
    cases = standard_cases(asked.set)
    seconds = epoch_seconds(raw, cases, asked.rounds)
    rows = []
    for name, values in seconds.items():
        typical = statistics.median(values)
        baseline = statistics.median(seconds["FIL, 128 features" if "128" in name else "FIL"])
        rows.append({"case": name, "seconds": round(typical, 4), "times_fil": round(typical / baseline, 3)})
        print(f"{name:34}{typical:8.3f} s{typical / baseline:8.2f} × FIL")
    content: dict[str, Any] = {"set": asked.set, "rounds": asked.rounds, "cases": rows}
    write_json(asked.out, content | {"provenance": provenance()})
    return 0


def standard_cases(name: str) -> dict[str, Settings]:
    """The methods with the network of the campaign and, marked so, with the paper's layer of 128 features."""
    cases: dict[str, Settings] = {}
    for mark, features in (("", None), (", 128 features", 128)):
        spl = replace(default_settings("spl", name), features=features)
        cases[f"FIL{mark}"] = replace(default_settings("fil", name), features=features)
        cases[f"HMCNN{mark}"] = replace(default_settings("hmcnn", name), features=features)
        cases[f"SPL, m = 1{mark}"] = replace(spl, components=1)
        cases[f"SPL, m = 4{mark}"] = replace(spl, components=4)
    return cases


def _model(raw: RawSet, rows: Phase, settings: Settings) -> Model:
    rule = rule_for(settings, raw.graph, rows.train.y)
    return Model(settings, rows.train.x.shape[1], rule, circuit_for(settings, rule), rows.train.y)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
