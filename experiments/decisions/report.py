"""The page of results, made from the results file."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from experiments.decisions.training import METHODS, OURS, PYEPO, ROWS, TEST

PUBLISHED = {"spo+": "7.6", "pfyl": "7.29", "aimle": "7.24"}
_HEAD = """# Decisions with predicted costs

What does a wrong prediction cost? A linear model predicts the cost of each of 40 edges from five features, and the
cheapest path through a 5 × 5 grid by these predictions is taken. The score is the *normalised regret*: how much more
the paths taken cost than the cheapest ones, in percent of the latter's cost. The task, the network and the training are
those of the notebook of [PyEPO](https://github.com/khalil-research/PyEPO), which trains through a solver: 1,000 rows,
degree 4, noise 0.5, Adam, 20 epochs, batches of 32.

The layer needs no solver: `sp.ConstraintLayer` knows all 70 paths, so the chance of the best path and the expected
regret ([`sp.losses.ExpectedRegret`](learn_from_sums.md#decisions)) are exact, with exact gradients.

| trained by | regret, % | milliseconds per step | PyEPO's notebook (one run), % |
|---|---:|---:|---:|
"""


def page(content: Mapping[str, Any]) -> str:
    """The page for a results file."""
    runs = content["runs"]
    seeds = sorted({each["seed"] for each in runs})
    versions = sorted({each["provenance"]["pyepo"] for each in runs})
    commands = sorted({each["provenance"]["command"] for each in [*content["search"], *runs]})
    rates = {name: f"{_of(runs, name)[0]['settings']['lr']:g}" for name in METHODS if _of(runs, name)}
    return (
        f"{_HEAD}{table(content)}\n\n{_finding(runs)}\n\n"
        f"Mean ± standard deviation over {len(seeds)} data sets (seeds {seeds[0]} to {seeds[-1]} of PyEPO's generator; "
        f"{seeds[0]} is its notebook's), each with {TEST:,} test rows. The learning rate of each method is the best "
        f"of four on {ROWS // 5} validation rows of each of three other data sets: "
        f"{', '.join(f'{METHODS[name]} {rate}' for name, rate in rates.items())}. Times are medians over all runs on "
        "one thread of a machine that did other work, too. "
        f"PyEPO {', '.join(versions)} solves with OR-Tools' GLOP, one process.\n\n"
        "The commands, which resume after interruptions and need `pip install pyepo ortools`:\n\n"
        "```bash\n" + "\n".join(commands) + "\n```\n"
    )


def table(content: Mapping[str, Any]) -> str:
    """The rows of the table."""
    lines = []
    for name, title in METHODS.items():
        if not (runs := _of(content["runs"], name)):
            continue
        regrets = [each["regret"] for each in runs]
        time = statistics.median(each["milliseconds_per_step"] for each in runs)
        who = "PyEPO: " if name in PYEPO else "ours: " if name in OURS else ""
        lines.append(f"| {who}{title} | {_spread(regrets)} | {time:.1f} | {PUBLISHED.get(name, '–')} |")
    return "\n".join(lines)


def _finding(runs: list[Mapping[str, Any]]) -> str:
    """One sentence that compares the best of ours with the best of PyEPO's, data set by data set."""
    ours, theirs = (min((m for m in group if _of(runs, m)), key=lambda m: _mean(runs, m)) for group in (OURS, PYEPO))
    mine, other = ({each["seed"]: each["regret"] for each in _of(runs, name)} for name in (ours, theirs))
    differences = [mine[seed] - other[seed] for seed in sorted(mine.keys() & other.keys())]
    mean = statistics.mean(differences)
    error = statistics.stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else float("inf")
    lower = sum(each < 0 for each in differences)
    said = f"{abs(mean):.2f} ± {error:.2f} points {'lower' if mean < 0 else 'higher'}"
    verdict = "" if abs(mean) > 2 * error else ", which is no difference that these runs can tell"
    return (
        f"The regret of training by the {METHODS[ours]} is {said} than that of {METHODS[theirs]}, the best of PyEPO's "
        f"methods here (mean ± standard error over data sets; lower on {lower} of {len(differences)}){verdict}."
    )


def _of(runs: list[Mapping[str, Any]], method: str) -> list[Mapping[str, Any]]:
    return [each for each in runs if each["settings"]["method"] == method]


def _mean(runs: list[Mapping[str, Any]], method: str) -> float:
    return statistics.mean(float(each["regret"]) for each in _of(runs, method))


def _spread(values: list[float]) -> str:
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"
