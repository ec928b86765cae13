"""The model-counting competition's CNFs: how many compile within a minute, and how long this takes next to a counter.

The top-down compiler is chosen by name; counting alone, as in `semprola count`, is measured too. All times are
processor seconds, so that other work on the machine does not count. Every count is compared with the published one.
Ganak only counts and makes no circuit; d4 compiles. Both run in their own processes. Writes
results/compile_competition.json and the table in docs/compile.md.

    python -m benchmarks.compile_competition FOLDER [--seconds 60] [--peers PYTHON] [--add-d4]

FOLDER holds mc2022/*.cnf.gz and mc2022_counts.json. PYTHON is an interpreter with pyganak and d4Solver (which are not
part of the project: the wheel bundles a part with a non-commercial licence).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import semprola as sp
from benchmarks.pages import put_between
from experiments.provenance import provenance, write_json
from semprola.circuit.weighted import weighted_count
from semprola.compiler.backends.topdown.backend import compile_to_count
from semprola.compiler.budget import Budget
from semprola.logic import Cnf

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "compile_competition.json"
PAGE = ROOT / "docs" / "compile.md"
PATIENCE = 1.5
"""Wall-clock seconds per processor second before a run is given up."""

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


D4 = """
import gzip, json, sys, time
import py_d4
lines = [line.split() for line in gzip.open(sys.argv[1], "rt") if line.strip()]
clauses = [[int(x) for x in line[:-1]] for line in lines if line[0] not in ("c", "p")]
count = int(next(line for line in lines if line[0] == "p")[2])
began = time.process_time()
made = py_d4.Solver(clauses, count).compile()
seconds = time.process_time() - began
print(json.dumps({"seconds": seconds, "nodes": made.getNbNodes(), "edges": made.getNbEdges()}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--peers", help="a Python that has pyganak and d4Solver")
    parser.add_argument(
        "--add-d4", action="store_true", help="measure only d4, beside the results that there are; resumes"
    )
    options = parser.parse_args()
    if options.add_d4:
        add_d4(options.folder, options.peers)
        return
    sp.compile("a | b", backend="topdown", cache=False)  # loads the native module
    entries = []
    for row in json.loads((options.folder / "mc2022_counts.json").read_text()):
        path = options.folder / "mc2022" / f"{row['name']}.cnf.gz"
        entry = {"name": row["name"], "weighted": row["weighted"], **compiled(path, row, options.seconds)}
        entry["count"] = counted(path, row, options.seconds)
        if options.peers:
            entry["ganak"] = ganak(options.peers, path, options.seconds)
            entry["d4"] = d4(options.peers, path, options.seconds)
        entries.append(entry)
        print(json.dumps(entry), flush=True)
    summary = summarized(entries)
    print(json.dumps(summary))
    write_json(RESULTS, {"provenance": provenance(), "limit": options.seconds, **summary, "entries": entries})
    update_page()


def add_d4(folder: Path, python: str) -> None:
    """Add the column of d4 to the results; earlier measurements are kept, so that the command can be repeated."""
    results = json.loads(RESULTS.read_text())
    for entry in results["entries"]:
        if "d4" in entry:
            continue
        entry["d4"] = d4(python, folder / "mc2022" / f"{entry['name']}.cnf.gz", results["limit"])
        print(entry["name"], entry["d4"], flush=True)
        write_json(RESULTS, results)
    write_json(RESULTS, {**results, **summarized(results["entries"])})
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
    """Seconds of counting without defined variables; None if it takes too long. A wrong count ends the program."""
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
        log10 = _log10(weighted_count(circuit, weights, exact=False))
    else:
        log10 = math.log10(circuit.model_count())
    return abs(log10 - float(row["published_log10"])) < 1e-6


def _log10(value: float | Decimal) -> float:
    return float(value.log10()) if isinstance(value, Decimal) else math.log10(value)


def ganak(python: str, path: Path, seconds: float) -> float | None:
    try:
        done = subprocess.run(
            [python, "-c", GANAK, str(path)], capture_output=True, text=True, timeout=PATIENCE * seconds
        )
        answer: float = json.loads(done.stdout.strip().splitlines()[-1])["seconds"]
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return None
    return round(answer, 4)


def d4(python: str, path: Path, seconds: float) -> dict[str, Any] | None:
    """Seconds, nodes and edges of d4; None if it needs more time."""
    command = [python, "-c", D4, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        while child.poll() is None:
            time.sleep(0.2)
            if processor_seconds(child.pid) > seconds + 2:
                child.kill()
        output = child.stdout.read() if child.stdout is not None else ""
    try:
        found: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return None
    return {**found, "seconds": round(found["seconds"], 4)} if found["seconds"] <= seconds else None


def processor_seconds(process: int) -> float:
    """Processor seconds that a process has used so far, on Linux; a limit set by `setrlimit` did not stop d4."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
        "compiled by d4": sum(entry.get("d4") is not None for entry in entries) if "d4" in entries[0] else None,
    }


def update_page() -> None:
    """Put the results into the page."""
    put_between(PAGE, "competition", table(json.loads(RESULTS.read_text())))


def table(results: dict[str, Any]) -> str:
    """The results in Markdown: a summary, and one line per instance."""
    limit = f"{results['limit']:g} s"
    measured = results.get("compiled by d4") is not None
    lines = [
        f"Of {results['instances']} CNFs of the model-counting competition 2022, {results['compiled']} compile within "
        f"{limit} of processor time each, and {results['right']} of these have the published (weighted) count. Of the "
        f"{results['counted by ganak within 5 s']} that ganak counts within 5 s, {results['of these compiled']} "
        "compile. In the median we take "
        f"{results['median ratio of seconds']:.2f} times as long as ganak. Like ganak, `semprola count` leaves out "
        f"variables that others determine. It counts {results['counted']} of the CNFs, all of them correctly. "
        "(`python -m benchmarks.compile_competition`)",
        *_about_d4(results),
        "",
        f"<details><summary>All {results['instances']} CNFs</summary>",
        "",
        f"| instance | nodes | edges | compile, s | count, s |{' d4, s (nodes) |' if measured else ''} ganak, s |",
        f"|---|---|---|---|---|{'---|' if measured else ''}---|",
    ]
    for entry in results["entries"]:
        name = entry["name"].removeprefix("mc2022_") + (" (weighted)" if entry["weighted"] else "")
        columns = [f"> {limit}" if spent is None else f"{spent:.2f}" for spent in (entry["seconds"], entry["count"])]
        peer = entry.get("d4")
        if measured:
            columns.append(f"> {limit}" if peer is None else _d4_cell(peer))
        columns.append(f"> {limit}" if entry.get("ganak") is None else f"{entry['ganak']:.2f}")
        seconds = " | ".join(columns)
        size = " | " if entry["seconds"] is None else f"{entry['nodes']:,} | {entry['edges']:,}"
        lines.append(f"| {name} | {size} | {seconds} |")
    return "\n".join([*lines, "", "</details>"]) + "\n"


def _about_d4(results: dict[str, Any]) -> list[str]:
    done = results.get("compiled by d4")
    if done is None:
        return []
    both = [
        entry["seconds"] / entry["d4"]["seconds"]
        for entry in results["entries"]
        if entry["seconds"] and entry.get("d4") and max(entry["seconds"], entry["d4"]["seconds"]) >= 1
    ]
    said = (
        f"d4 compiles {done} of them. (It is the wheel `d4Solver`, used for comparison only and in its own "
        "environment: a part of the wheel has a non-commercial licence.)"
    )
    if both:
        middle = statistics.median(both)
        said += f" Where either takes a second or more, in the median we take {middle:.2f} times as long as d4."
    return ["", said]


def _d4_cell(peer: dict[str, Any]) -> str:
    return f"{peer['seconds']:.2f} ({peer['nodes']:,})"


if __name__ == "__main__":
    main()
