"""The page of results, made from the results file."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from experiments.shortcuts.rows import TEST, TRAIN

METHODS = {
    ("independent", 0.0, 0.0): "independent digits",
    ("independent", 1.0, 0.0): "independent digits, with the entropy",
    ("independent", 0.0, 1.0): "independent digits, told that all digits occur",
    ("one-circuit", 0.0, 0.0): "one circuit, four components",
    ("one-circuit", 1.0, 0.0): "one circuit, four components, with the entropy",
    ("two-circuits", 0.0, 0.0): "two circuits, four components",
    ("two-circuits", 1.0, 0.0): "two circuits, four components, with the entropy",
}
TITLES = {
    "half": "Half: 0+0, 0+1, 2+3, 2+4",
    "even-odd": "Even-Odd: 0+6, 2+8, 4+6, 4+8, 1+5, 3+7, 1+9, 3+9",
}
PUBLISHED = {
    "half": "NeSyDM reads 79.4 ± 6.6 % of the digits, with a calibration error of 4.2; BEARS 43.3 % and 36.8",
    "even-odd": "NeSyDM reads 20.3 ± 1.3 % of the digits, with a calibration error of 2.7; BEARS 0.5 % and 28.8",
}
_HEAD = f"""# Right for the wrong reason

A network sees two handwritten digits and is told their sum, but only some pairs ever occur. Then other readings of the
digits explain every sum as well as the true one, and nothing in the data says which is meant. This page measures what
layers make of it: how many digits they read right, and whether they *know* that they do not know.

The *calibration error* is the mean difference between how sure a reader is of a digit and how often it is right (ten
bins); 0 is best, and a reader that is sure of a wrong reading has a large one. {TRAIN} rows per ordered pair train,
{TEST} per pair are tested, in two groups: pairs as in training, and all other pairs.
"""
_TABLE = """
| | sums, % | digits, % | calibration error | other pairs: sums, % | digits, % | calibration error |
|---|---:|---:|---:|---:|---:|---:|
"""
_METHODS = """
## How

All read both images with one LeNet, and are trained by the exact likelihood of the sum (Adam, 12 epochs, no digit
labelled). *Independent digits* have one softmax per image. *One circuit* is `sp.SPL` and *two circuits* is
`sp.ProductSPL`, on the features of both images. *With the entropy* means that the loss also has the exact entropy of
the digits given the sum, times -1: the network is rewarded for leaving open what the sum leaves open:

```text
loss = -p.log_prob_of({"sum": sums}).mean() - p.condition({"sum": sums}).entropy().mean()
```

*Told that all digits occur* means that the loss has the entropy of a batch's mean reading, times -1. This is knowledge
that the sums do not contain, and that the other rows, published ones among them, do not have. It decides Half, where
each wrong reading leaves one of the five digits unused. It cannot decide Even-Odd, where all even digits may be taken
for odd ones and the other way round.

```text
used = chances_of_digits(p.condition({"sum": sums})).mean((0, 1))
loss = -p.log_prob_of({"sum": sums}).mean() + (used * used.log()).sum()
```

Its factor, 1, was tried on two seeds that are not among those of the table. The factor of the other entropy was chosen
between 0.1 and 1 by the calibration error on rows of two trial runs, that is, with labelled
digits; everything else was fixed beforehand.
"""


def page(content: Mapping[str, Any]) -> str:
    """The page for a results file."""
    text = _HEAD
    for task, title in TITLES.items():
        count = content["wrong_readings"][task]
        text += f"\n## {title}\n\n[`sp.rules.shortcuts`](learn_from_sums.md#right-for-the-wrong-reason) counts {count} "
        text += f"wrong readings that explain every training sum.\n{_TABLE}{table(content, task)}\n\n"
        text += f"{_finding(content, task)} Published, with other networks and training: {PUBLISHED[task]}.\n"
    seeds = sorted({each["seed"] for each in content["runs"]})
    commands = sorted({each["provenance"]["command"] for each in content["runs"]})
    shown = "\n".join(commands)
    return (
        f"{text}\nMean ± standard deviation over {len(seeds)} seeds, which draw rows and starting weights; all count.\n"
        f"{_METHODS}\nThe command, which resumes after interruptions (`mnist` is a folder with MNIST's four files):\n\n"
        f"```bash\n{shown}\n```\n"
    )


def table(content: Mapping[str, Any], task: str) -> str:
    """The rows of the table of one task."""
    lines = []
    for method, title in METHODS.items():
        if runs := _of(content, task, method):
            cells = [
                _spread([each[part][figure] for each in runs])
                for part in ("seen", "unseen")
                for figure in ("sums", "digits", "calibration_error")
            ]
            lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _finding(content: Mapping[str, Any], task: str) -> str:
    """Which method reads most digits and which is best calibrated from sums alone; and what more knowledge does."""
    means = {
        method: [statistics.mean(each["seen"][figure] for each in runs) for figure in ("digits", "calibration_error")]
        for method in METHODS
        if (runs := _of(content, task, method))
    }
    plain = [method for method in means if not method[2]]
    most, calm = max(plain, key=lambda method: means[method][0]), min(plain, key=lambda method: means[method][1])
    told = "".join(
        f" {METHODS[method].capitalize()}: {means[method][0]:.1f} % of the digits, calibration error "
        f"{means[method][1]:.1f}."
        for method in means
        if method[2]
    )
    return (
        f"With the sums alone, most digits are read by: {METHODS[most]} ({means[most][0]:.1f} %); the smallest "
        f"calibration error has: {METHODS[calm]} ({means[calm][1]:.1f}).{told}"
    )


def _of(content: Mapping[str, Any], task: str, method: tuple[str, float, float]) -> list[Mapping[str, Any]]:
    return [
        each
        for each in content["runs"]
        if tuple(each["settings"][name] for name in ("task", "kind", "entropy", "usage")) == (task, *method)
    ]


def _spread(values: list[float]) -> str:
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"
