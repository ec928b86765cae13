"""`python -m experiments large`: constraints that no single circuit takes; resumable, case by case.

A hidden state obeys the rules, and each label's log-odds are ±a plus Gaussian noise of standard deviation 1: `a` = 2 if
the labels are read well ("clear"), 1 if not ("noisy"). Splits and solver get the same log-odds and limit per row, in
processor time: other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import semprola as sp
from experiments.large import wall
from experiments.large.cases import Case, chosen
from experiments.large.clock import on_processor_time
from experiments.large.estimates import section
from experiments.large.pictures import BOARDS, run
from experiments.large.report import boards, page, table
from experiments.large.solver import Solver
from experiments.mnist_add.images import load_mnist
from experiments.provenance import provenance, read_json, write_json
from semprola.compiler.splitting import Split
from semprola.distributions.pool import PoolDistribution
from semprola.errors import SemprolaError

PAGE = Path("docs/large.md")
STRENGTHS = {"clear": 2.0, "noisy": 1.0}
_SPLIT_SECONDS, _NODES = 300, 10**6
_NOISE_SEED = 1
_DRAW_SECONDS = 0.15
"""For the hidden state of a row: the best for random log-odds that the solver finds in this time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, then print the table; returns the exit status."""
    options = _parser().parse_args(arguments)
    path: Path = options.out
    content: dict[str, Any] = read_json(path) if path.is_file() else {"experiment": "large", "runs": []}
    if options.report:
        PAGE.write_text(f"{page(content)}{section()}", encoding="utf-8")
        print(PAGE)
        return 0
    torch.set_num_threads(1)
    if options.wall:
        known = content.get("wall", [])
        content["wall"] = []
        for found in wall.attempts(known):
            content["wall"].append(found)
            write_json(path, content)
            print(found["title"], found["backend"], found.get("nodes", found.get("ran_out")), flush=True)
        return 0
    if options.data is not None:
        _pictures(content, options)
        return 0
    for name, case in chosen(options.cases, options.cnf).items():
        done = {each["strength"] for each in content["runs"] if each["case"] == name}
        if missing := [strength for strength in STRENGTHS if strength not in done]:
            for found in measure(name, case, missing, options.rows, options.seconds):
                content["runs"].append(found)
                write_json(path, content)
                print(table({"runs": [found]}), flush=True)
    return 0


def _pictures(content: dict[str, Any], options: argparse.Namespace) -> None:
    """Sudokus from pictures of digits, for each number of training boards and each seed."""
    done = {(each["boards"], each["seed"]) for each in content.setdefault("pictures", [])}
    train, test = load_mnist(options.data)
    for seed in range(options.seeds):
        for count in BOARDS:
            if (count, seed) not in done:
                content["pictures"].append(run(count, seed, train, test))
                write_json(options.out, content)
                print(boards({"pictures": content["pictures"][-1:]}), flush=True)


def measure(name: str, case: Case, strengths: Sequence[str], rows: int, seconds: float) -> list[dict[str, Any]]:
    """Split the rules, then find the modes of noisy rows with the pool and with the solver.

    Args:
        name: of the case.
        case: the rules.
        strengths: how clear the rows are.
        rows: number of rows.
        seconds: limit per row, for either.
    """
    began = time.perf_counter()
    split = sp.split(case.formula(), labels=case.labels, max_nodes=case.max_nodes, timeout=_SPLIT_SECONDS)
    _independent(torch.zeros(case.size), split).within(rounds=0, nodes=0, seconds=0).try_mode()  # makes the plans
    made = time.perf_counter() - began
    solver = Solver(case)
    truth = _hidden(case, solver, rows)
    facts = {
        "case": name,
        "title": case.title,
        "labels": case.size,
        "rules": len(case.rules),
        "circuits": len(split.circuits),
        "edges": sum(circuit.num_edges for circuit in split.circuits),
        "left_out": len(split.left_out),
        "seconds_to_split": round(made, 2),
        "limit": seconds,
        "seed": _NOISE_SEED,
    }
    results = []
    for strength in strengths:
        noise = torch.randn(truth.shape, generator=torch.Generator().manual_seed(_NOISE_SEED))
        log_odds = STRENGTHS[strength] * (2 * truth - 1) + noise
        found: dict[str, list[Row]] = {"pool": [], "solver": [], "both": []}
        for odds, state in zip(log_odds, truth, strict=True):  # side by side, so that all see the same machine
            alone = _pool(split, odds, state, seconds)
            found["pool"].append(alone)
            found["solver"].append(_solve(solver, odds, state, seconds))
            found["both"].append(alone if alone.proven else _pool(split, odds, state, seconds, "cp-sat"))
        figures = {way: _figures(each) for way, each in found.items()}
        results.append({**facts, "strength": strength, "rows": rows, **figures, "provenance": provenance()})
    return results


@dataclass(frozen=True)
class Row:
    """One answer: seconds of processor time, whether there is a state, whether it is proven, obeys and is right."""

    seconds: float
    found: bool
    proven: bool
    obeys: bool
    right: bool
    gap: float | None = None


def _hidden(case: Case, solver: Solver, rows: int) -> Tensor:
    """States that obey the rules [rows, labels]; each is good for some random log-odds."""
    generator = torch.Generator().manual_seed(0)
    if case.family is not None:
        place = [int(name.removeprefix("x")) - 1 for name in case.family.labels]
        states = torch.zeros(rows, case.size)
        states[:, place] = sp.constraints.hierarchy_mode(torch.randn(rows, case.size, generator=generator), case.family)
        return states
    found: list[list[int]] = []
    while len(found) < rows:
        answer = solver.solve(torch.randn(case.size, generator=generator).tolist(), _DRAW_SECONDS, seed=len(found))
        if answer.state is not None:
            found.append(answer.state)
    return torch.tensor(found, dtype=torch.float32)


def _pool(split: Split, odds: Tensor, truth: Tensor, seconds: float, finisher: str | None = None) -> Row:
    """The mode of one row."""
    with on_processor_time():
        began = time.process_time()
        p = _independent(odds, split).within(seconds=seconds, nodes=_NODES, solver=finisher)
        state = p.try_mode()
        spent = time.process_time() - began
    if bool(state.isnan().any()):
        return Row(spent, found=False, proven=False, obeys=True, right=False)
    lower, upper = p.log_partition_bounds
    right = bool((state == truth).all())
    return Row(spent, True, bool(p.mode_is_exact), bool(split.satisfied(state)), right, float(upper - lower))


def _independent(odds: Tensor, split: Split) -> PoolDistribution:
    p = sp.constrain(odds, split)
    if not isinstance(p, PoolDistribution):
        raise SemprolaError("one circuit suffices for this constraint: it is not a large one")
    return p


def _solve(solver: Solver, odds: Tensor, truth: Tensor, seconds: float) -> Row:
    """Independent labels, repaired."""
    answer = solver.solve(odds.tolist(), seconds)
    found = answer.state is not None
    return Row(answer.seconds, found, answer.proven, obeys=found, right=answer.state == truth.int().tolist())


def _figures(rows: Sequence[Row]) -> dict[str, Any]:
    gaps = [row.gap for row in rows if row.gap is not None]
    return {
        "median": round(statistics.median(row.seconds for row in rows), 4),
        "worst": round(max(row.seconds for row in rows), 4),
        "proven": statistics.mean(row.proven for row in rows),
        "found": statistics.mean(row.found for row in rows),
        "obey": all(row.obeys for row in rows),
        "right": statistics.mean(row.right for row in rows),
        "gap": statistics.median(gaps) if gaps else None,
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m experiments large", description=main.__doc__)
    parser.add_argument("--cases", default="", help="comma-separated, all by default")
    parser.add_argument("--cnf", type=Path, nargs="*", default=[], help="CNF files to add")
    parser.add_argument("--rows", type=int, default=50, help="rows per case")
    parser.add_argument("--seconds", type=float, default=1.0, help="limit per row, of processor time, for each way")
    parser.add_argument("--data", type=Path, help="folder with MNIST's files: sudokus from pictures instead")
    parser.add_argument("--seeds", type=int, default=5, help="runs on pictures")
    parser.add_argument("--wall", action="store_true", help="try single circuits instead, larger and larger")
    parser.add_argument("--report", action="store_true", help="only write the page from the results that are there")
    parser.add_argument("--out", type=Path, default=Path("results/large.json"), help="file for results")
    return parser
