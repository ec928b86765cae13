"""The page of results, made from the results files."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.provenance import read_json

PUBLISHED = {
    1: "DeepProbLog 97.2",
    2: "DeepProbLog 95.2",
    4: "DeepSoftLog 93.5 ± 0.6, NeSyDM 92.5, PLIA 91.8, Scallop 90.9",
    15: "PLIA 79.0 ± 0.7, NeSyDM 77.3 ± 1.4, DeepSoftLog 77.1, A-NeSI 76.8",
}
_HEAD = """# Sums of MNIST digits

Two numbers of N digits each, one image per digit; the only label is the sum. LeNet reads all images, and the layer
gives the exact probability of the sum ([how it works](learn_from_sums.md)). The protocol is the field's: each training
image is in one row, no digit is labelled, nothing is augmented, and test sums are made from test images. All 60,000
training images train.
SEARCHED

A sum counts as right if all its digits are. It is read from the most probable digit of every image.

| N | seeds | sums right, % | digits right, % | seconds per epoch | share of the layer | published, sums right, % |
|---:|---:|---:|---:|---:|---:|---|
"""

_NOTE = """
Mean ± standard deviation over seeds; all seeds count. The published figures are those that we know of, quoted from the
papers and measured on other machines. Times are those of one thread of a machine that did other work, too. Sums of
1,024 single digits (`--numbers 1024`) end in a `CompilationBudgetError` at 8,000,000 nodes.
"""


def page(folder: Path) -> str:
    """The page for the results files in a folder."""
    found = {int(path.stem[1:]): read_json(path) for path in folder.glob("n*.json")}
    lines = [_row(digits, content["runs"]) for digits, content in sorted(found.items())]
    many = [read_json(path) for path in folder.glob("sum*.json")]
    commands = sorted({run["provenance"]["command"] for part in (*found.values(), *many) for run in part["runs"]})
    text = _HEAD.replace("SEARCHED", _searched(folder)) + "\n".join(lines) + "\n" + _NOTE
    for digits, content in sorted(found.items()):
        if digits <= 2:
            likely = [run["test"]["most_probable_sum"] for run in content["runs"]]
            text += f"\nFor N = {digits}, {_spread(likely)} % are right if the most probable sum is taken instead.\n"
    shown = "\n".join(commands)
    text += _many(folder)
    return f"{text}\nThe commands, which resume after interruptions:\n\n```bash\n{shown}\n```\n\n{_settings(found)}"


def _searched(folder: Path) -> str:
    """For which N settings were compared, and on what."""
    tried = {int(path.stem[8:]): len(read_json(path)["tried"]) for path in folder.glob("search-n*.json")}
    if not tried:
        return "Nothing was tuned."
    sizes = " and ".join(f"N = {digits} ({tried[digits]} candidates)" for digits in sorted(tried))
    return (
        "Learning rate, weight decay and batch size were compared on sums of 10,000 images that were left out of the\n"
        f"training images, for {sizes}; the settings of the others were fixed beforehand."
    )


def _many(folder: Path) -> str:
    """Sums of many single digits, one sentence each."""
    text = ""
    for size, content in sorted((int(path.stem[3:]), read_json(path)) for path in folder.glob("sum*.json")):
        runs = content["runs"]
        text += (
            f"\nFrom sums of {size} single digits, of which there are {60_000 // size:,} to train on, "
            f"{_spread([run['test']['digits'] for run in runs])} % of the digits are read right ({_count(runs)}; "
            f"{statistics.median(run['seconds_per_epoch'] for run in runs):.0f} s per epoch). "
            f"Nothing was tuned.\n"
        )
    return text


def _count(runs: Sequence[Any]) -> str:
    return f"{len(runs)} seed{'s' if len(runs) > 1 else ''}"


def summary(digits: int, runs: Sequence[Mapping[str, Any]]) -> str:
    """The figures in one line."""
    sums, read = [run["test"]["sums"] for run in runs], [run["test"]["digits"] for run in runs]
    line = f"N={digits}: {_spread(sums)} % of sums over {_count(runs)}, {_spread(read)} % of digits"
    if runs[0]["settings"].get("numbers", 2) > 2:
        return line.replace("N=", "single digits, ")
    return f"{line}; published: {PUBLISHED.get(digits, 'nothing')}"


def _row(digits: int, runs: Sequence[Mapping[str, Any]]) -> str:
    cells = [
        str(digits),
        str(len(runs)),
        _spread([run["test"]["sums"] for run in runs]),
        _spread([run["test"]["digits"] for run in runs]),
        f"{statistics.median(run['seconds_per_epoch'] for run in runs):.1f}",
        f"{100 * statistics.median(run['share_of_time_in_layer'] for run in runs):.0f} %",
        PUBLISHED.get(digits, "–"),
    ]
    return f"| {' | '.join(cells)} |"


def _settings(found: Mapping[int, Mapping[str, Any]]) -> str:
    lines = []
    for digits, content in sorted(found.items()):
        chosen = content["runs"][0]["settings"]
        shown = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in chosen.items() if name != "digits")
        lines.append(f"- N = {digits}: {shown}")
    return "Settings:\n\n" + "\n".join(lines) + "\n"


def _spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation; the mean alone of a single value."""
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"
