"""`python -m experiments`: the experiments of the paper, run from a checkout."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from semprola.cli.app import reporting_errors
from semprola.cli.output import keep

COMMANDS = {
    "campaign": "experiments.campaign",
    "concepts": "experiments.concept_pictures",
    "decisions": "experiments.decisions.app",
    "demo": "experiments.demo",
    "evidence": "experiments.evidence",
    "examples": "experiments.example_pages",
    "hmlc": "experiments.hmlc.app",
    "large": "experiments.large.app",
    "mnist-add": "experiments.mnist_add.app",
    "shortcuts": "experiments.shortcuts.app",
    "split": "experiments.split_costs",
    "table-one": "experiments.table_one.app",
    "warcraft": "experiments.warcraft.app",
}
"""Experiments with their own options: each module has a function `main` that takes the arguments."""

_QUICK_SECONDS = 80.0
"""Time for training. Start-up, measuring and the report are extra, and the machine may be busy; the limit is 2 min."""


def compare(
    experiment: Annotated[
        str, typer.Argument(help=f"simple-path or preference; these have their own --help: {', '.join(COMMANDS)}")
    ],
    setting: Annotated[
        str, typer.Option(help="paper; given, ends: (some) inputs are part of the constraint")
    ] = "paper",
    split: Annotated[str, typer.Option(help="published, or graph: no group of rows in two parts")] = "published",
    source: Annotated[str, typer.Option(help="generated, or file: the published data")] = "generated",
    data: Annotated[Path | None, typer.Option(help="folder with the published data (or SEMPROLA_DATA)")] = None,
    data_seed: Annotated[int, typer.Option(help="seed of generated data")] = 0,
    multiplicity: Annotated[bool, typer.Option(help="preference: one row per person")] = False,
    ends: Annotated[str, typer.Option(help="simple-path: the circuit reads end points early or first")] = "early",
    turned: Annotated[bool, typer.Option(help="simple-path: train with turned and mirrored rows too")] = False,
    net: Annotated[
        str,
        typer.Option(
            help="paper; scaled: with a better start (default for simple-path); wide; preference: text, released"
        ),
    ] = "",
    methods: Annotated[str, typer.Option(help="comma-separated; all by default")] = "",
    seeds: Annotated[int | None, typer.Option(help="runs per method  [default: 5; 1 if quick]", min=1)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="a first look: one seed, two minutes at most")] = False,
    known: Annotated[bool, typer.Option("--known", help="use the best known settings instead of a search")] = False,
    grid: Annotated[
        str, typer.Option(help="what to search: small, public, weights, sizes, released or published")
    ] = "small",
    search_seeds: Annotated[int, typer.Option(help="runs per candidate of the search", min=1)] = 1,
    choose: Annotated[str, typer.Option(help="criterion on validation rows: exact or likelihood")] = "exact",
    jobs: Annotated[int, typer.Option(help="processes", min=1)] = 1,
    ray: Annotated[bool, typer.Option(help="search with Ray Tune (extra `tune`)")] = False,
    out: Annotated[Path, typer.Option(help="folder for results and reports")] = Path("out/reproduce"),
    resume: Annotated[bool, typer.Option(help="resume from what an earlier call left in the folder")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="print the results as JSON")] = False,
) -> None:
    """Run one of the paper's comparisons and print our figures next to the published ones.

    Example: python -m experiments simple-path --setting given --net wide --quick
    """
    task = {
        "experiment": experiment,
        "setting": setting,
        "split": split,
        "source": source,
        "data_seed": data_seed,
        "multiplicity": multiplicity,
        "ends": ends,
        "turned": turned,
        "data": None if data is None else str(data),
    }
    options: dict[str, Any] = {"net": net, "known": known or quick, "grid": grid, "search_seeds": search_seeds}
    options |= {"choose": choose, "processes": jobs, "ray": ray}
    options["seeds"] = seeds or (1 if quick else 5)
    options["seconds"] = _QUICK_SECONDS / options["seeds"] if quick else None
    _reproduce(task, {**options, "quiet": as_json}, methods, out, resume, as_json)


def _reproduce(
    task: dict[str, Any], options: dict[str, Any], methods: str, out: Path, resume: bool, as_json: bool
) -> None:
    # imported here, so that --help need not wait for torch
    from experiments.jobs import TaskSettings
    from experiments.methods import METHODS
    from experiments.reproduce import Plan, reproduce
    from experiments.settings import default_net
    from experiments.tables import print_table, summary

    chosen = tuple(name.strip() for name in methods.split(",") if name.strip()) or METHODS
    options["net"] = options["net"] or default_net(task["experiment"])
    plan = Plan(TaskSettings(**task), methods=chosen, **options)
    if not resume:
        _forget(out / "runs" / plan.name)
    runs = out / "runs" / plan.name
    keep(f"finished runs and checkpoints are in {runs}; repeat the command to resume")
    content = reproduce(plan, out)
    if as_json:
        print(json.dumps(content))
        return
    beside = plan.task.setting != "given"
    print_table(summary(content["results"], plan.task.experiment, paper=beside), content["title"])
    print("Percent of test rows. Hamming*: with the decoder made for that score.")
    if beside:
        print("Paper: exact / Hamming / consistent.")
    for suffix in ("md", "html", "json"):
        print(f"  {out / plan.name}.{suffix}")


def _forget(folder: Path) -> None:
    """Remove the results and checkpoints of earlier runs of the same plan."""
    for path in [*folder.glob("*.json"), *folder.glob("*.pt")]:
        os.unlink(path)


def main() -> None:
    """Entry point: exit status 0, or 2 for bad input."""
    if module := COMMANDS.get("".join(sys.argv[1:2])):
        reporting_errors(_run)(module)
        return
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    application.command()(reporting_errors(compare))
    application()


def _run(module: str) -> None:
    raise SystemExit(import_module(module).main(sys.argv[2:]))


if __name__ == "__main__":
    main()
