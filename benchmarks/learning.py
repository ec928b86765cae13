"""Can the hierarchy of a data set be learnt from its labels alone?

Learns rules of two labels from all rows of the twelve HMLC sets and compares the implications with the hierarchy.
Precision: the share of learnt implications that the hierarchy implies. Recall: the share of the hierarchy's edges that
follow from the learnt implications; labels that no row has cannot be learnt, so it is also given without their edges.

    python -m benchmarks.learning [--data FOLDER] [--out results/learning.json]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import semprola as sp
from benchmarks.pages import put_between
from experiments.hmlc.data import load_raw
from experiments.hmlc.sets import TWELVE
from experiments.provenance import provenance, write_json

PAGE = Path("docs/howto_rules.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the folder of the data sets; they are downloaded by default")
    parser.add_argument("--out", type=Path, default=Path("results/learning.json"))
    options = parser.parse_args()
    made_by = provenance()
    sets = []
    for name in TWELVE:
        sets.append(measure(name, options.data))
        print(sets[-1], flush=True)
    write_json(options.out, {"provenance": made_by, "sets": sets})
    if options.out.resolve() == Path("results/learning.json").resolve():
        put_between(PAGE, "learning", table(sets))


def measure(name: str, data: str | None) -> dict[str, Any]:
    """Rules of two labels learnt from all rows of a set, and how they agree with its hierarchy."""
    raw = load_raw(name, data)
    labels = [str(label) for label in raw.graph]
    start = time.process_time()
    learnt = sp.rules.learn(raw.y.astype(np.float32), labels=labels, literals=2, timeout=None)
    seconds = time.process_time() - start
    found = nx.DiGraph()
    found.add_nodes_from(labels)
    for rule in learnt.rules:
        one, other = (rule.formula.labels * 2)[:2]
        if rule.kind in ("implication", "equivalence"):
            found.add_edge(one, other)
        if rule.kind == "equivalence":
            found.add_edge(other, one)
    stated = nx.relabel_nodes(raw.graph, str)
    implied, true = nx.transitive_closure(found, None), nx.transitive_closure(stated)
    occurring = {label for label, count in zip(labels, raw.y.sum(0).tolist(), strict=True) if count}
    recalled = [edge for edge in stated.edges if implied.has_edge(*edge)]
    seen = [edge for edge in stated.edges if edge[0] in occurring and edge[1] not in learnt.constant]
    return {
        "set": name,
        "rows": learnt.rows,
        "labels": len(labels),
        "edges": stated.number_of_edges(),
        "edges_seen": len(seen),
        "rules": len(learnt.rules),
        "implications": found.number_of_edges(),
        "right": sum(true.has_edge(*edge) for edge in found.edges),
        "recalled": len(recalled),
        "recalled_seen": sum(implied.has_edge(*edge) for edge in seen),
        "cpu_seconds": round(seconds, 1),
    }


def table(sets: list[dict[str, Any]]) -> str:
    """The results as a table of the page."""
    lines = ["| set | labels | rows | edges | learnt implications | precision | recall | recall, labels that occur |"]
    lines.append("|---|--:|--:|--:|--:|--:|--:|--:|")
    for each in sets:
        shares = (
            _percent(each["right"], each["implications"]),
            _percent(each["recalled"], each["edges"]),
            _percent(each["recalled_seen"], each["edges_seen"]),
        )
        counts = [f"{each[key]:,}" for key in ("labels", "rows", "edges", "implications")]
        lines.append(f"| {' | '.join([each['set'], *counts, *shares])} |")
    return "\n".join(lines) + "\n"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


if __name__ == "__main__":
    main()
