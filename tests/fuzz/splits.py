"""``python -m tests.fuzz.splits``: pools of random constraints, split at random, beside enumeration on every engine.

It resumes from results/split_checks.json, tries faults again, and writes what came out to docs/howto_splitting.md. Exit
status 1 if there was a fault.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp(prefix="semprola-fuzz-"))  # never the user's own cache

import torch

import semprola as sp
from benchmarks.pages import put_between
from experiments.provenance import provenance, read_json, write_json

from .cases import declared
from .drawing import PLAIN, Draw
from .meaning import TOOLS, Meant
from .split_checks import Findings, check_pool, random_setting, random_split

RESULTS, PAGE = Path("results/split_checks.json"), Path("docs/howto_splitting.md")
ENGINES = ("native", "torch")
_MOST_LABELS, _MOST_RULES = 8, 5
_SAVE_EVERY = 100


def draw_rules(rng: random.Random) -> tuple[list[sp.Formula], list[str], torch.Tensor]:
    """Random rules that do not contradict each other, their labels, and whether each state satisfies them all."""
    while True:
        draw = Draw(rng, PLAIN[: rng.randint(3, len(PLAIN))])
        texts = [draw.constraint() for _ in range(rng.randint(1, _MOST_RULES))]
        formulas = [eval(text, {"sp": sp, **TOOLS}) for text in texts]
        names = list(dict.fromkeys(name for formula in formulas for name in formula.labels))
        if not 0 < len(names) <= _MOST_LABELS or any(declared(formula) for formula in formulas):
            continue
        inside = torch.stack([Meant(text, names).table for text in texts]).all(0)
        if bool(inside.any()):
            return formulas, names, inside


def check(number: int, engine: str) -> Findings:
    """One constraint on one engine; a function of its number.

    Raises:
        AssertionError: an answer is wrong.
    """
    rng = random.Random(f"split {number}")
    torch.manual_seed(number)
    rules, names, inside = draw_rules(rng)
    with sp.engine.using(engine):
        return check_pool(random_setting(random_split(rules, names, rng), rng), inside, number)


def main() -> int:
    """Check what is missing, and write the page; returns the exit status."""
    parser = argparse.ArgumentParser("python -m tests.fuzz.splits", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="number of constraints")
    parser.add_argument("--out", type=Path, default=RESULTS, help="file for results")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    new = {"experiment": "split checks", "seeds": "the number of each constraint, from 0", "engines": {}}
    found: dict[str, Any] = read_json(args.out) if args.out.is_file() else new
    tallies = {engine: found["engines"].setdefault(engine, empty()) for engine in ENGINES}
    for engine, tally in tallies.items():
        again, tally["faults"] = tally["faults"], []
        for fault in again:
            tally["cases"] -= 1
            _add(tally, fault["number"], engine)
    while (fewest := min(tally["cases"] for tally in tallies.values())) < args.cases:
        for engine, tally in tallies.items():
            began = time.process_time()
            for number in range(tally["cases"], min(fewest + _SAVE_EVERY, args.cases)):
                _add(tally, number, engine)
            tally["seconds"] = round(tally["seconds"] + time.process_time() - began, 1)
            write_json(args.out, found | {"provenance": provenance()})
            print(f"{engine}: {tally['cases']:,} constraints, {len(tally['faults'])} faults", flush=True)
    if args.out == RESULTS:
        put_between(PAGE, "split checks", said(found))
    return int(any(tally["faults"] for tally in found["engines"].values()))


def empty() -> dict[str, Any]:
    """Nothing checked yet."""
    names = ("cases", "exact", "left_out", "modes", "proven", "tests", "p_below_1", "p_below_5", "hopeless")
    return dict.fromkeys((*names, "gradients", "beyond_2"), 0) | {"largest_error": 0.0, "seconds": 0.0, "faults": []}


def _add(tally: dict[str, Any], number: int, engine: str) -> None:
    tally["cases"] += 1
    try:
        found = check(number, engine)
    except Exception as error:
        tally["faults"].append({"number": number, "error": f"{type(error).__name__}: {error}".strip()[:300]})
        return
    for name, count in {
        "exact": found.circuits == 1 and not found.left_out,
        "left_out": found.left_out > 0,
        "modes": len(found.proven),
        "proven": sum(found.proven),
        "tests": len(found.p_values),
        "p_below_1": sum(p < 0.01 for p in found.p_values),
        "p_below_5": sum(p < 0.05 for p in found.p_values),
        "hopeless": found.hopeless,
        "gradients": len(found.errors),
        "beyond_2": sum(abs(error) > 1.96 for error in found.errors),
    }.items():
        tally[name] += int(count)
    tally["largest_error"] = max([tally["largest_error"], *(round(abs(error), 2) for error in found.errors)])


def said(found: dict[str, Any]) -> str:
    """The lines of the page."""
    lines = ["| | " + " | ".join(found["engines"]) + " |", "|---|" + "---:|" * len(found["engines"])]
    rows = {
        "constraints": lambda t: f"{t['cases']:,}",
        "of these, with rules left out": lambda t: f"{t['left_out']:,}",
        "wrong circuits, bounds, modes, samples or gradients": lambda t: f"{len(t['faults']):,}",
        "modes proven": lambda t: f"{t['proven']:,} of {t['modes']:,}",
        "χ² tests of samples": lambda t: f"{t['tests']:,}",
        "with p < 0.05": lambda t: f"{_percent(t['p_below_5'], t['tests'])}",
        "with p < 0.01": lambda t: f"{_percent(t['p_below_1'], t['tests'])}",
        "constraints where sampling was refused": lambda t: f"{t['hopeless']:,}",
        "estimated gradients": lambda t: f"{t['gradients']:,}",
        "further than 1.96 standard errors from the exact ones": lambda t: _percent(t["beyond_2"], t["gradients"]),
        "CPU minutes": lambda t: f"{t['seconds'] / 60:.0f}",
    }
    for name, shown in rows.items():
        lines.append(f"| {name} | {' | '.join(shown(tally) for tally in found['engines'].values())} |")
    return "\n".join(lines) + "\n"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.1f} %"


if __name__ == "__main__":
    sys.exit(main())
