"""Which further rules all rows obey, by the rows that are asked: `python -m experiments.hmlc.mined_rules`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.hmlc.data import RawSet, load_raw
from experiments.hmlc.models import plain_rule
from experiments.hmlc.sets import TWELVE
from experiments.provenance import provenance, write_json
from semprola.constraints import suggest


def mined(raw: RawSet, seed: int) -> dict[str, Any]:
    """The rules that all train rows obey, all train and validation rows, and whether all test rows obey the former.

    Args:
        raw: the set.
        seed: of the drawn validation rows, for sets without a validation file.
    """
    parts, plain = raw.parts(seed), plain_rule(raw.graph)

    def rules(rows: Any) -> list[str]:
        return [name for name, holds in suggest(torch.tensor(raw.y[rows], dtype=torch.float32), plain).items() if holds]

    train, both = rules(parts["train"]), rules(np.concatenate([parts["train"], parts["valid"]]))
    test = set(train) <= set(rules(parts["test"]))
    return {"set": raw.name, "seed": seed, "train": train, "train and valid": both, "test rows obey": test}


def main(arguments: Sequence[str]) -> int:
    """Ask for all sets and ten seeds, print a line per set, and write a file of results."""
    parser = argparse.ArgumentParser(prog="python -m experiments.hmlc.mined_rules", description=__doc__)
    parser.add_argument("--data", default=None, help="folder with the published files (or SEMPROLA_DATA)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("results/hmlc/rules.json"))
    asked = parser.parse_args(arguments)
    runs = []
    for name in TWELVE:
        raw = load_raw(name, asked.data)
        found = [mined(raw, seed) for seed in range(asked.seeds)]
        same = "the same" if all(run["train"] == run["train and valid"] for run in found) else "not the same"
        print(f"{name:12}{', '.join(found[0]['train']):45}{same} with validation rows")
        runs += found
    write_json(asked.out, {"runs": runs, "provenance": provenance()})
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
