"""How long it takes to refuse a constraint without a model, and how few rules the error names.

Each constraint is refused several times in this process; times are processor seconds, and the best time counts.
Writes results/compile_contradictions.json and the table in docs/compile.md.

    python -m benchmarks.compile_contradictions [--tries 3] [--only roster]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import semprola as sp
from benchmarks.contradiction_cases import Contradictory, cases
from benchmarks.pages import put_between
from experiments.provenance import provenance, write_json
from semprola.compiler.contradiction import written_rules

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "compile_contradictions.json"
PAGE = ROOT / "docs" / "compile.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--only", default="", help="constraints whose name contains this; nothing is written then")
    options = parser.parse_args()
    entries = []
    for case in cases():
        if options.only in case.name:
            entries.append(measured(case, options.tries))
            print(json.dumps(entries[-1]), flush=True)
    if not options.only:
        write_json(RESULTS, {"provenance": provenance(), "tries": options.tries, "entries": entries})
        update_page()


def measured(case: Contradictory, tries: int) -> dict[str, Any]:
    """Numbers of rules, of rules that the error names, and of rules of a smallest contradiction; and the best time."""
    constraint = case.build()
    named, seconds = 0, []
    for _ in range(tries):
        began = time.process_time()
        try:
            sp.compile(constraint, cache=False, progress=False)
        except sp.UnsatisfiableError as error:
            named = len(error.rules)
        else:
            raise SystemExit(f"{case.name}: there is a model")
        seconds.append(time.process_time() - began)
    rules = len(written_rules(constraint))
    return {
        "name": case.name,
        "rules": rules,
        "named": named,
        "fewest": case.fewest,
        "seconds": round(min(seconds), 3),
    }


def update_page() -> None:
    """Put the results into the page."""
    put_between(PAGE, "contradictions", table(json.loads(RESULTS.read_text())))


def table(results: dict[str, Any]) -> str:
    """The results in Markdown."""
    entries = results["entries"]
    slowest = max(entry["seconds"] for entry in entries)
    smallest = sum(entry["named"] == entry["fewest"] for entry in entries)
    lines = [
        f"Of {len(entries)} constraints without a model, the error names a smallest contradiction for {smallest}. The "
        f"slowest takes {slowest:.2f} s of processor time. (`python -m benchmarks.compile_contradictions`)",
        "",
        "| constraint | rules | named | fewest | seconds |",
        "|---|---|---|---|---|",
    ]
    for entry in entries:
        numbers = " | ".join(f"{entry[column]:,}" for column in ("rules", "named", "fewest"))
        lines.append(f"| {entry['name']} | {numbers} | {entry['seconds']:.2f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
