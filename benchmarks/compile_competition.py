"""The model-counting competition's CNFs: how many compile within a minute, and how long beside a counter.

The top-down compiler is asked for by name; counting alone, as `semprola count` does it, is measured beside. Seconds are
those of the processor, so that other work on the machine does not count. Compares every count with the published one.
Ganak only counts, it makes no circuit; it runs in a process of its own. Writes results/compile_competition.json and the
table in docs/compile.md.

    python benchmarks/compile_competition.py FOLDER [--seconds 60] [--peers PYTHON]

FOLDER holds mc2022/*.cnf.gz and mc2022_counts.json; PYTHON is an interpreter that has pyganak (extra `bench`).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import semprola as sp
from experiments.provenance import provenance, write_json
from semprola.circuit.weighted import weighted_count
from semprola.compiler.budget import Budget
from semprola.compiler.clausal import compile_to_count
from semprola.logic import Cnf

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "compile_competition.json"
PAGE = ROOT / "docs" / "compile.md"
PATIENCE = 1.5
"""Seconds on the clock for each second of the processor, before a run is given up."""
MARKS = "<!-- competition: begin -->", "<!-- competition: end -->"

GANAK = """
import gzip, json, sys, time
from pyganak import Counter, WeightedCounter
lines = [line.split() for line in gzip.open(sys.argv[1], "rt") if line.strip()]
clauses = [[int(x) for x in line[:-1]] for line in lines if line[0] not in ("c", "p")]
count = int(next(line for line in lines if line[0] == "p")[2])
weights = [line for line in lines if line[:3] == ["c", "p", "weight"]]
began = time.process_time()
counter = WeightedCounter() if weights else Counter()
counter.new_vars(count)
for line in weights:
    counter.set_lit_weight(int(line[3]), float(line[4]))
counter.add_clauses(clauses)
counter.count()
print(json.dumps({"seconds": time.process_time() - began}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--peers", help="a Python that has pyganak")
    options = parser.parse_args()
    sp.compile("a | b", backend="topdown", cache=False)  # loads the native module
    entries = []
    for row in json.loads((options.folder / "mc2022_counts.json").read_text()):
        path = options.folder / "mc2022" / f"{row['name']}.cnf.gz"
        entry = {"name": row["name"], "weighted": row["weighted"], **compiled(path, row, options.seconds)}
        entry["count"] = counted(path, row, options.seconds)
        if options.peers:
            entry["ganak"] = ganak(options.peers, path, options.seconds)
        entries.append(entry)
        print(json.dumps(entry), flush=True)
    summary = summarized(entries)
    print(json.dumps(summary))
    write_json(RESULTS, {"provenance": provenance(), "limit": options.seconds, **summary, "entries": entries})
    update_page()


def compiled(path: Path, row: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Size and seconds of the circuit, and whether its count is the published one."""
    cnf = sp.from_dimacs(path)
    began = time.process_time()
    try:
        circuit = sp.compile(cnf, backend="topdown", timeout=PATIENCE * seconds, cache=False)
    except sp.CompilationBudgetError:
        return {"seconds": None}
    spent = time.process_time() - began
    if spent > seconds:
        return {"seconds": None}
    return {
        "seconds": round(spent, 4),
        "nodes": circuit.num_nodes,
        "edges": circuit.num_edges,
        "right": is_right(circuit, cnf, row),
    }


def counted(path: Path, row: dict[str, Any], seconds: float) -> float | None:
    """Seconds of counting without defined variables; None if it takes too long or, which must not be, is wrong."""
    cnf = sp.from_dimacs(path)
    keep = [v for v in range(1, cnf.num_vars + 1) if {cnf.weights.get(v, 1), cnf.weights.get(-v, 1)} != {1}]
    began = time.process_time()
    try:
        circuit = compile_to_count(cnf, Budget(PATIENCE * seconds), keep)
    except sp.CompilationBudgetError:
        return None
    spent = time.process_time() - began
    if not is_right(circuit, cnf, row):
        raise SystemExit(f"{row['name']}: a wrong count")
    return round(spent, 4) if spent <= seconds else None


def is_right(circuit: sp.Circuit, cnf: Cnf, row: dict[str, Any]) -> bool:
    """Whether a circuit has the published (weighted) count."""
    one = Fraction(1)
    if row["weighted"]:
        numbers = [int(name) for name in circuit.variables]
        weights = {str(v): (cnf.weights.get(-v, one), cnf.weights.get(v, one)) for v in numbers}
        log10 = math.log10(weighted_count(circuit, weights, exact=False))
    else:
        log10 = math.log10(circuit.model_count())
    return abs(log10 - float(row["published_log10"])) < 1e-6


def ganak(python: str, path: Path, seconds: float) -> float | None:
    try:
        done = subprocess.run(
            [python, "-c", GANAK, str(path)], capture_output=True, text=True, timeout=PATIENCE * seconds
        )
        answer: float = json.loads(done.stdout.strip().splitlines()[-1])["seconds"]
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return None
    return round(answer, 4)


def summarized(entries: list[dict[str, Any]]) -> dict[str, Any]:
    done = [entry for entry in entries if entry["seconds"] is not None]
    both = [entry["seconds"] / entry["ganak"] for entry in done if entry.get("ganak")]
    quick = [entry for entry in entries if (entry.get("ganak") or math.inf) <= 5]
    return {
        "instances": len(entries),
        "compiled": len(done),
        "right": sum(entry["right"] for entry in done),
        "counted by ganak within 5 s": len(quick),
        "of these compiled": sum(entry["seconds"] is not None for entry in quick),
        "median ratio of seconds": round(statistics.median(both), 3) if both else None,
        "counted": sum(entry["count"] is not None for entry in entries),
    }


def update_page() -> None:
    """Put the results into the page."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = (text.index(mark) for mark in MARKS)
    made = table(json.loads(RESULTS.read_text()))
    PAGE.write_text(f"{text[: begin + len(MARKS[0])]}\n{made}{text[end:]}", encoding="utf-8")


def table(results: dict[str, Any]) -> str:
    """The results in Markdown: what came out, and a line for each instance."""
    limit = f"{results['limit']:g} s"
    lines = [
        f"Of {results['instances']} CNFs of the model-counting competition 2022, {results['compiled']} compile within "
        f"{limit} (of the processor) each, and {results['right']} of these have the published (weighted) count. Of the "
        f"{results['counted by ganak within 5 s']} that ganak counts within 5 s, {results['of these compiled']} "
        "compile; "
        f"the median of our seconds over ganak's is {results['median ratio of seconds']}. `semprola count`, which like "
        "ganak leaves out variables that others define, and so counts where a circuit over all variables would be "
        f"too large, counts {results['counted']}, all of them right (made by "
        "`python benchmarks/compile_competition.py`).",
        "",
        "| instance | nodes | edges | compile, seconds | count, seconds | ganak, seconds (count) |",
        "|---|---|---|---|---|---|",
    ]
    for entry in results["entries"]:
        name = entry["name"].removeprefix("mc2022_") + (" (weighted)" if entry["weighted"] else "")
        columns = [entry["seconds"], entry["count"], entry.get("ganak")]
        seconds = " | ".join(f"> {limit}" if spent is None else f"{spent:.2f}" for spent in columns)
        size = " | " if entry["seconds"] is None else f"{entry['nodes']:,} | {entry['edges']:,}"
        lines.append(f"| {name} | {size} | {seconds} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
