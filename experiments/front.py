"""The small tables and sentences of the front pages: why not a penalty, and what a training step costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, variance
from textwrap import fill
from typing import Any

from benchmarks.call_report import advantages, best_mode
from experiments.provenance import read_json

COLUMNS = {"fil": "independent labels", "semantic-loss": "with a penalty", "product-spl": "with the layer"}
"""The methods compared, and their headings."""
TASKS = {
    "[digits and facts about them](comparing.md)": "compare_digits",
    "[smokers and friends](comparing.md)": "compare_smokers",
    "[orders of sushi](preferences.md)": "preference",
    "[paths on a grid, mirrored rows too](paths.md)": "simple-path-paper-published-wide-turned-small-search",
    "[paths on generated maps](warcraft.md)": "warcraft",
}
"""Where the figures of each task are."""
MAPS = 1000
"""Maps to test on, see `experiments.warcraft`."""
_ORDERS = tuple(f"preference-paper-published-paper-small-search{end}" for end in ("", "-by-likelihood"))


def penalty_table(results: Path) -> str:
    """For each task, how many test rows are all right and how many predictions obey the rules, in percent."""
    heads = [f"{group}: {name}" for group in ("all labels right, %", "obey the rules, %") for name in COLUMNS.values()]
    lines = ["| task | " + " | ".join(heads) + " |", "|---" + "|---:" * len(heads) + "|"]
    for title, name in TASKS.items():
        tests = _tests(results, name)
        right, obey = ([_mean(tests[method], key) for method in COLUMNS] for key in ("exact", "consistent"))
        exact = {method: [test["exact"] for test in tests[method]] for method in COLUMNS}
        bold = clear_lead(list(exact.values()), rows_tested(results, name))
        shown = [f"**{value:.1f}**" if bold and value == max(right) else f"{value:.1f}" for value in right]
        lines.append(f"| {title} | " + " | ".join([*shown, *(f"{value:.1f}" for value in obey)]) + " |")
    return "\n".join(lines)


def clear_lead(methods: Sequence[Sequence[float]], rows: int) -> bool:
    """Whether the best mean is ahead of the second best by more than twice the standard error of the difference.

    The error is that of test rows, as if both had separate ones, and that of seeds or folds, in pairs.

    Args:
        methods: for each method, a percentage of test rows by seed or fold.
        rows: how many test rows there are.

    Example:
        >>> clear_lead([[10.0, 12.0], [50.0, 51.0]], 1000), clear_lead([[19.0, 20.0], [20.5, 21.0]], 986)
        (True, False)
    """
    second, best = sorted(methods, key=mean)[-2:]
    gaps = [one - other for one, other in zip(best, second, strict=True)]
    of_rows = sum(mean(values) * (100 - mean(values)) for values in (second, best)) / rows
    return mean(gaps) > 2 * math.sqrt(of_rows + variance(gaps) / len(gaps))


def rows_tested(results: Path, name: str) -> int:
    """How many test rows a task has, over all folds."""
    if name.startswith("compare"):
        return int(read_json(results / f"{name}.json")["about"]["rows"])
    if name == "warcraft":
        return MAPS
    file = _ORDERS[0] if name == "preference" else name
    return int(read_json(results / f"{file}.json")["results"][0]["test"]["rows"])


def step_sentence(results: Path) -> str:
    """How fast the call of a layer is, and what a training step costs."""
    bench = read_json(results / "bench.json")
    trees, as_sdd, others = step_factors(bench)
    batch = bench["networks"][0]["batch"]
    _, four = epoch_factors(results)
    calls = read_json(results / "calls.json")
    gains = sorted(advantages(calls, "log Z + gradient").values())
    return fill(
        f"On one processor thread at batch {batch}, a `ConstraintLayer` computes log Z and its gradient {gains[0]:.0f} "
        f"to {gains[-1]:.0f} times as fast as {best_mode(calls)}, on {len(gains)} circuits. With one component "
        f"(m = 1), a training step with `SPL` takes {trees} times as long as with independent labels on two "
        f"hierarchies ({as_sdd} times on one of them with a less compact circuit), and {others} times on five other "
        f"circuits. With four components, an epoch on another hierarchy takes {four[0]:.1f} to {four[1]:.1f} times as "
        "long ([all timings](docs/speed.md)).",
        120,
    )


def epoch_factors(results: Path) -> tuple[Sequence[float], Sequence[float]]:
    """How many times as long an epoch takes as with sigmoids: SPL with m = 1 and with m = 4, two networks each."""
    cases = read_json(results / "hmlc" / "timing.json")["cases"]
    one, four = (sorted(c["times_fil"] for c in cases if c["case"].startswith(f"SPL, m = {m}")) for m in (1, 4))
    return one, four


def step_factors(bench: Mapping[str, Any]) -> tuple[str, str, str]:
    """How many times as long a step takes as with sigmoids: two hierarchies, an SDD of one of them, other circuits."""
    steps = {row["circuit"]: row["spl"]["cpu_ms"] / row["fil"]["cpu_ms"] for row in bench["networks"]}
    trees = [steps.pop(name) for name in ("tree-499", "tree-399")]
    as_sdd = steps.pop("tree-499-sdd")
    return _range(trees), f"{as_sdd:.1f}", _range([*steps.values()])


def _range(values: Sequence[float]) -> str:
    least, most = f"{min(values):.1f}", f"{max(values):.1f}"
    return least if least == most else f"{least} to {most}"


def _tests(results: Path, name: str) -> dict[str, list[Mapping[str, float]]]:
    """The figures on test rows of all runs, by method."""
    found: dict[str, list[Mapping[str, float]]] = {}
    if name.startswith("compare"):
        for row in read_json(results / f"{name}.json")["rows"]:
            found[row["method"]] = row.get("folds", [])
    elif name == "warcraft":
        for method in COLUMNS:
            paths = sorted((results / name).glob(f"grid-{method}-seed?.json"))
            found[method] = [read_json(path)["test"] for path in paths]
    else:
        for file in _ORDERS if name == "preference" else (name,):
            for run in read_json(results / f"{file}.json")["results"]:
                found.setdefault(run["method"], []).append(run["test"])
    return found


def _mean(tests: Sequence[Mapping[str, float]], key: str) -> float:
    return sum(test[key] for test in tests) / len(tests)
