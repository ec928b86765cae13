"""The small tables and sentences of the front pages: why not a penalty, and what a training step costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.provenance import read_json

COLUMNS = {"fil": "independent labels", "semantic-loss": "with a penalty", "product-spl": "with the layer"}
"""The methods compared, and their headings."""
TASKS = {
    "[digits and facts about them](comparing.md)": "compare_digits",
    "[smokers and friends](comparing.md)": "compare_smokers",
    "[orders of sushi](preferences.md)": "preference",
    "[paths on a grid](paths.md)": "simple-path-paper-published-wide-turned-small-search",
    "[paths on maps](warcraft.md)": "warcraft",
}
"""Where the figures of each task are."""
_ORDERS = tuple(f"preference-paper-published-paper-small-search{end}" for end in ("", "-by-likelihood"))


def penalty_table(results: Path) -> str:
    """For each task, how many test rows are all right and how many predictions obey the rules, in percent."""
    heads = [f"{group}: {name}" for group in ("all labels right, %", "obey the rules, %") for name in COLUMNS.values()]
    lines = ["| task | " + " | ".join(heads) + " |", "|---" + "|---:" * len(heads) + "|"]
    for title, name in TASKS.items():
        tests = _tests(results, name)
        right, obey = ([_mean(tests[method], key) for method in COLUMNS] for key in ("exact", "consistent"))
        shown = [f"**{value:.1f}**" if value == max(right) else f"{value:.1f}" for value in right]
        lines.append(f"| {title} | " + " | ".join([*shown, *(f"{value:.1f}" for value in obey)]) + " |")
    return "\n".join(lines)


def step_sentence(results: Path) -> str:
    """What a training step with the layer costs, in one sentence."""
    trees, as_sdd, others = step_factors(read_json(results / "bench.json"))
    return (
        f"With `SPL`, a training step takes {trees} times as long as with independent labels on two hierarchies\n"
        f"({as_sdd} times on one of them with a less compact circuit), and {others} times on five other circuits "
        "([all\ntimings](docs/speed.md))."
    )


def step_factors(bench: Mapping[str, Any]) -> tuple[str, str, str]:
    """How many times as long a step takes as with sigmoids: two hierarchies, an SDD of one of them, other circuits."""
    steps = {row["circuit"]: row["spl"]["cpu_ms"] / row["fil"]["cpu_ms"] for row in bench["networks"]}
    trees = [steps.pop(name) for name in ("cellcycle", "diatoms")]
    as_sdd = steps.pop("cellcycle-sdd")
    return _range(trees), f"{as_sdd:.1f}", _range([*steps.values()])


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


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
