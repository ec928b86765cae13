"""Can the size of a circuit be told before it is compiled? Tried on the constraints of `benchmarks.compile_suite`.

Known beforehand are the number of variables and the joint states of all rules along the best order, if rules were
independent. A line through the logarithms is fitted to all kinds of constraints but one, and tried on that one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

SUITE = Path("results/compile_suite.json")
_WITHIN = 10


def section(path: Path = SUITE) -> str:
    """What came out, for the page."""
    known, kinds, nodes = _read(json.loads(path.read_text(encoding="utf-8"))["entries"])
    ways = {"nothing": [], "the number of variables": [0], "the joint states": [1], "both": [0, 1]}
    lines = [f"| {name} | {_right(known[:, columns], kinds, nodes)} |" for name, columns in ways.items()]
    above = int((known[:, 1] > nodes + math.log10(_WITHIN)).sum())
    below = int((known[:, 1] < nodes - math.log10(_WITHIN)).sum())
    return (
        "\n## Sizes are not known beforehand\n\n"
        "`sp.compile` gives no estimate of a circuit's size, because the ones that were tried are of no use. On the "
        f"{len(nodes)} constraints of `python -m benchmarks.compile_suite` that `auto` searches for, a line fitted to "
        "all other kinds of constraints tells the number of nodes of each:\n\n"
        f"| known beforehand | right within a factor of {_WITHIN}, of {len(nodes)} |\n|---|---:|\n"
        + "\n".join(lines)
        + "\n\nWhat is known makes no estimate better than the same number for all. The joint states of all rules, "
        'which `circuit.info["reason"]` names, are a bound rather than an estimate: they exceed the nodes by more than '
        f"{_WITHIN} times for {above} constraints, and fall short of them by as much for {below}. Budgets and progress "
        "lines (`progress=True`, `semprola compile -v`) tell how far a compilation has got.\n"
    )


def _read(entries: Sequence[dict[str, object]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logarithms (base 10) of variables and joint states [rows, 2], the kinds, and the logarithms of nodes."""
    rows = []
    for entry in entries:
        made = entry.get("auto")
        reason = str(made.get("reason", "")) if isinstance(made, dict) else ""
        bits, variables = re.search(r"rules up to 2\^(\d+)", reason), re.search(r"([\d,]+) variables", reason)
        if isinstance(made, dict) and bits and variables:
            count = int(variables[1].replace(",", ""))
            rows.append((math.log10(count), int(bits[1]) * math.log10(2), entry["kind"], math.log10(made["nodes"])))
    return np.array([row[:2] for row in rows]), np.array([row[2] for row in rows]), np.array([row[3] for row in rows])


def _right(known: np.ndarray, kinds: np.ndarray, nodes: np.ndarray) -> int:
    """How many sizes are within the factor, by the line that fits all other kinds best."""
    columns = np.concatenate([np.ones((len(nodes), 1)), known], axis=1)
    right = 0
    for kind in np.unique(kinds):
        own = kinds == kind
        line = np.linalg.lstsq(columns[~own], nodes[~own], rcond=None)[0]
        right += int((np.abs(columns[own] @ line - nodes[own]) <= math.log10(_WITHIN)).sum())
    return right
