"""`python -m experiments table-one`: measure, compare with the published table, write the page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.provenance import provenance, read_json, write_json
from experiments.table_one.efficient import efficient
from experiments.table_one.expressive import expressive
from experiments.table_one.general import general
from experiments.table_one.measures import consistent, modular, probabilistic
from experiments.table_one.report import MEASURED, figures, markdown, picture, print_table
from experiments.table_one.systems import SYSTEMS
from semprola._files import write_atomically
from semprola.errors import FormatError

DESIDERATA = {
    "D1": probabilistic,
    "D2": expressive,
    "D3": consistent,
    "D4": general,
    "D5": modular,
    "D6": efficient,
}
BEGIN, END = "<!-- table one: begin -->", "<!-- table one: end -->"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every system on every desideratum; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m experiments table-one", description=__doc__)
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="comma-separated")
    parser.add_argument("--out", type=Path, default=Path("out/table_one.json"), help="file for the results")
    parser.add_argument("--page", type=Path, default=None, help="page to rewrite, such as docs/table_one.md")
    options = parser.parse_args(arguments)
    results: dict[str, dict[str, Any]] = {}
    systems = options.systems.split(",")
    unknown = [system for system in systems if system not in SYSTEMS]
    if unknown:
        parser.error(f"no system {unknown[0]!r}: choose from {', '.join(SYSTEMS)}")
    for system in systems:
        results[system] = {}
        for key, measure in DESIDERATA.items():
            found = results[system][key] = measure(system)
            said = f"{'yes' if found['mark'] else 'no'} ({MEASURED[key]}: {figures(key, found)})"
            print(f"{SYSTEMS[system]}: {key} {said}", flush=True)
    write_json(options.out, {"provenance": provenance(), "results": results})
    print_table(results)
    if options.page is not None:
        update_page(options.out, options.page)
        picture(results, options.page.parent / "images" / "table_one_time.png")
    return 0


def update_page(results: Path, page: Path) -> None:
    """Rewrite the tables of a page from a results file."""
    text = page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise FormatError(f"{page}: expected one line {BEGIN!r} and one {END!r}")
    head, tail = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    table = markdown(read_json(results)["results"])
    write_atomically(page, f"{head}\n\n{table}\n{tail}".encode())
