"""Sequences compared with pytorch-crf: training steps, predictions, equal likelihoods, and accuracy on made-up names.

BIO tags of three kinds of names: 20 tokens, 7 tags. A training step is the layer, the log-likelihood, and its
derivatives by logits and transition scores; a prediction is the best sequence of every row. Candidates take turns in
one process.

    python -m benchmarks.sequences [--seeds 5] [--out results/sequences.json] [--page docs/sequences.md]
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

import semprola as sp
from benchmarks.measure import side_by_side, threads
from benchmarks.pages import put_between
from benchmarks.peers import missing_peers
from experiments.provenance import provenance, write_json

TAGS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]
POSITIONS, BATCHES = 20, (16, 64, 256)
PEER = "pytorch-crf"
TITLES = {PEER: "pytorch-crf", "none": "`SequenceSPL`", "bio": "`SequenceSPL`, BIO rules"}
TASKS = {"step": "training step", "decode": "prediction"}


def main() -> None:
    """Measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--out", type=Path, default=Path("results/sequences.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/sequences.md"))
    options = parser.parse_args()
    missing = missing_peers("torchcrf")
    if missing:
        print(f"{missing[0]}; {options.out} and {options.page} are kept", file=sys.stderr)
        return
    with threads(1):
        rows = [row for batch in BATCHES for padded in (False, True) for row in speed(batch, padded, options.rounds)]
        runs = [run for seed in range(options.seeds) for run in accuracy(seed)]
    content = {"provenance": provenance(), "speed": rows, "difference": difference(), "accuracy": runs}
    write_json(options.out, content)
    if options.page.is_file():
        put_between(options.page, "sequences", tables(content))
    print(tables(content))


def speed(batch: int, padded: bool, rounds: int = 25) -> list[dict[str, Any]]:
    """Milliseconds of a step and of a prediction, for each candidate."""
    torch.manual_seed(0)
    logits = torch.randn(batch, POSITIONS, len(TAGS), requires_grad=True)
    lengths = torch.randint(5, POSITIONS + 1, (batch,)) if padded else torch.full((batch,), POSITIONS)
    mask = torch.arange(POSITIONS) < lengths[:, None]
    y = layer("bio")(logits.detach(), mask=mask).sample().clamp(min=0)
    runs: dict[tuple[str, str], Callable[[], Any]] = {}
    for name in ("none", "bio"):
        runs |= _ours(name, logits, y, mask if padded else None)
    runs |= _theirs(logits, y, mask)
    measured = side_by_side(runs, rounds, seconds=30.0)
    same = {"batch": batch, "padded": padded}
    return [{**same, "task": task, "candidate": name, **found} for (task, name), found in measured.items()]


def layer(rules: str) -> sp.SequenceSPL:
    """The layer without rules, or with the rules of BIO tags."""
    return sp.SequenceSPL(TAGS, None if rules == "none" else sp.constraints.bio(TAGS))


def difference(batch: int = 64) -> float:
    """The largest difference between log-likelihoods without rules."""
    torch.manual_seed(0)
    crf, ours = _crf(), layer("none")
    with torch.no_grad():
        pairs = {"start": crf.start_transitions, "transitions": crf.transitions, "end": crf.end_transitions}
        for name, theirs in pairs.items():
            getattr(ours, name).copy_(theirs.normal_())
        logits, y = 3 * torch.randn(batch, POSITIONS, len(TAGS)), torch.randint(len(TAGS), (batch, POSITIONS))
        mask = torch.arange(POSITIONS) < torch.randint(1, POSITIONS + 1, (batch, 1))
        found = ours(logits, mask=mask).log_prob(y) - crf(logits, y, mask=mask, reduction="none")
    return float(found.abs().max())


def accuracy(seed: int) -> list[dict[str, Any]]:
    """Training and prediction of `examples/tag_names.py` on one draw of the sentences."""
    example = _example()
    made: dict[str, Callable[[], Any]] = {
        PEER: _crf,
        "none": lambda: sp.SequenceSPL(example.TAGS),
        "bio": lambda: sp.SequenceSPL(example.TAGS, sp.constraints.bio(example.TAGS)),
    }
    train, test = example.parts(1500, random.Random(seed))
    found = []
    for name, make in made.items():
        right, valid, training, prediction = example.run(make(), train, test, seed, 6)
        found.append(
            {"seed": seed, "candidate": name, "right": right, "valid": valid, "seconds": training + prediction}
        )
        print(found[-1], flush=True)
    return found


def tables(content: dict[str, Any]) -> str:
    """The measurements as Markdown."""
    lines = ["| | batch | lengths | " + " | ".join(TITLES.values()) + " |", "|---|---|---|" + "---|" * len(TITLES)]
    for task, title in TASKS.items():
        for batch in BATCHES:
            for padded in (False, True):
                chosen = {"task": task, "batch": batch, "padded": padded}
                found = [row for row in content["speed"] if all(row[key] == value for key, value in chosen.items())]
                times = {row["candidate"]: row["cpu_ms"] for row in found}
                cells = [f"{times[PEER]:.2f}"]
                cells += [f"{times[name]:.2f} ({times[PEER] / times[name]:.1f} x)" for name in ("none", "bio")]
                lengths = "5 to 20" if padded else "20"
                lines.append(f"| {title} | {batch} | {lengths} | " + " | ".join(cells) + " |")
    lines += ["", "| | tags right, % | valid sequences, % |", "|---|---|---|"]
    for name, title in TITLES.items():
        runs = [run for run in content["accuracy"] if run["candidate"] == name]
        right, valid = (100 * sum(run[figure] for run in runs) / len(runs) for figure in ("right", "valid"))
        lines.append(f"| {title} | {right:.2f} | {valid:.2f} |")
    return "\n".join(lines) + "\n"


def _ours(name: str, logits: Tensor, y: Tensor, mask: Tensor | None) -> dict[tuple[str, str], Callable[[], Any]]:
    made = layer(name)

    def step() -> None:
        logits.grad = None
        made.zero_grad()
        (-made(logits, mask=mask).log_prob(y).sum()).backward()

    def decode() -> Any:
        with torch.no_grad():
            return made(logits, mask=mask).mode

    return {("step", name): step, ("decode", name): decode}


def _theirs(logits: Tensor, y: Tensor, mask: Tensor) -> dict[tuple[str, str], Callable[[], Any]]:
    crf = _crf()

    def step() -> None:
        logits.grad = None
        crf.zero_grad()
        (-crf(logits, y, mask=mask)).backward()

    def decode() -> Any:
        with torch.no_grad():
            return crf.decode(logits, mask=mask)

    return {("step", PEER): step, ("decode", PEER): decode}


def _crf() -> Any:
    from torchcrf import CRF

    return CRF(len(TAGS), batch_first=True)


def _example() -> ModuleType:
    path = Path(__file__).resolve().parent.parent / "examples" / "tag_names.py"
    spec = importlib.util.spec_from_file_location("tag_names", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
