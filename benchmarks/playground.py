"""How long does the playground take to answer, as seen by its page?

Starts the server, compiles problems of growing size, and sends beliefs that change every time, as if a slider were
moved; half of the requests have evidence.

    python -m benchmarks.playground [--requests 200]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pages import put_between
from experiments.provenance import provenance, write_json

PROBLEMS = (
    ("hierarchy", {"structure": "none", "size": 0, "text": "cat -> animal\ndog -> animal\n~(cat & dog)"}),
    ("ranking of 5", {"structure": "ranking", "size": 5, "text": ""}),
    ("sudoku 4 × 4", {"structure": "sudoku", "size": 4, "text": ""}),
    ("grid 5 × 5", {"structure": "grid", "size": 5, "text": ""}),
    ("ranking of 7", {"structure": "ranking", "size": 7, "text": ""}),
    ("grid 6 × 6", {"structure": "grid", "size": 6, "text": ""}),
    (
        "60 of 120 labels",
        {"structure": "none", "size": 0, "text": f"exactly(60, {', '.join(f'v{i}' for i in range(120))})"},
    ),
)
RESULTS, PAGE = Path("results/playground.json"), Path("docs/playground.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200)
    options = parser.parse_args()
    command = [sys.executable, "-u", "-m", "semprola", "playground", "--no-open", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        found = re.search(r":(\d+)/", server.stdout.readline() if server.stdout else "")
        if found is None:
            raise SystemExit("the playground did not start")
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=120)
        rows = [measure(connection, name, problem, options.requests) for name, problem in PROBLEMS]
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
    write_json(
        RESULTS, {"provenance": provenance(), "requests": options.requests, "niceness": os.nice(0), "rows": rows}
    )
    update_page()


def update_page() -> None:
    """Put the results into the page."""
    put_between(PAGE, "speed", table(json.loads(RESULTS.read_text())))


def table(results: dict[str, Any]) -> str:
    """The results in Markdown."""
    lines = [
        "From a moved slider to the answer, with all predictions, in milliseconds (made by `python -m "
        f"benchmarks.playground`{', with raised priority on a busy machine' if results['niceness'] < 0 else ''}):",
        "",
        "| rules | labels | edges | median | 95th percentile |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in results["rows"]:
        lines.append(
            f"| {row['problem']} | {row['labels']} | {row['edges']:,} | {row['median_ms']:.0f} | {row['p95_ms']:.0f} |"
        )
    return "\n".join([*lines, ""])


def measure(
    connection: http.client.HTTPConnection, name: str, problem: dict[str, Any], requests: int
) -> dict[str, Any]:
    """Milliseconds for one answer: median, 95th percentile and longest."""
    rng = random.Random(0)
    source = {"problem": problem}
    began = time.perf_counter()
    described = ask(connection, "describe", {"source": source})
    first = 1000 * (time.perf_counter() - began)
    count = len(described["labels"])
    times = []
    for number in range(requests):
        beliefs = [round(rng.uniform(0.01, 0.99), 2) for _ in range(count)]
        evidence = ["-"] * count
        if number % 2:
            evidence[rng.randrange(count)] = "0"
        began = time.perf_counter()
        ask(connection, "answer", {"source": source, "beliefs": beliefs, "evidence": "".join(evidence)})
        times.append(1000 * (time.perf_counter() - began))
    low, high = np.percentile(times, [50, 95])
    row = {"problem": name, "labels": count, "nodes": described["nodes"], "edges": described["edges"]}
    row |= {"compile_ms": round(first, 1), "median_ms": round(low, 1), "p95_ms": round(high, 1)}
    row |= {"longest_ms": round(max(times), 1)}
    print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return row


def ask(connection: http.client.HTTPConnection, action: str, content: dict[str, Any]) -> dict[str, Any]:
    connection.request("POST", f"/api/{action}", json.dumps(content), {"Content-Type": "application/json"})
    result: dict[str, Any] = json.loads(connection.getresponse().read())["result"]
    return result


if __name__ == "__main__":
    main()
