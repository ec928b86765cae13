"""`python -m experiments campaign`: the runs that compare like with like, in the order in which they are needed.

Each step leaves its figures in `results/` when it ends. Steps that are complete are skipped, so the command can be
stopped at any time and repeated, also in another checkout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from experiments.hmlc.campaign import BY_COST, find_result
from experiments.hmlc.tuning import PAPER_ABLATION, PAPER_ABLATION_FILE, ablate, tried_settings
from experiments.hmlc.variants import VARIANTS, known_jobs, work_through
from experiments.jobs import TaskSettings
from experiments.provenance import read_json, write_json
from experiments.reproduce import Plan, reproduce
from experiments.restore import collect, restore

RESULTS, OUT = Path("results"), Path("out/campaign")
SEEDS = 10
_LOSSES, _LAYERS = ("fil", "semantic-loss", "nesy-entropy"), ("spl", "product-spl")


class Step(Protocol):
    """A part of the campaign that leaves results when it ends."""

    @property
    def name(self) -> str:
        """What it is, in a line."""

    def missing(self, results: Path = RESULTS) -> int:
        """How many of its runs are not in the results yet."""

    def work(self, data: str | None) -> None:
        """Do them."""


@dataclass(frozen=True)
class Comparison:
    """A plan for simple paths or preferences."""

    plan: Plan

    @property
    def name(self) -> str:
        """The command that does the same."""
        return self.plan.command

    def missing(self, results: Path = RESULTS) -> int:
        """Runs of this plan that are not in its results file."""
        path = results / f"{self.plan.name}.json"
        there = {(run["method"], run["seed"]) for run in read_json(path)["results"]} if path.is_file() else set()
        return len({(method, seed) for method in self.plan.methods for seed in range(self.plan.seeds)} - there)

    def work(self, data: str | None) -> None:
        """Do what is missing, and write the results file anew."""
        plan = replace(self.plan, task=replace(self.plan.task, data=data))
        path = RESULTS / f"{plan.name}.json"
        before = read_json(path) if path.is_file() else None
        if before:
            restore(plan, before, OUT)
        reproduce(plan, OUT, before, keep=lambda: self._keep(before))
        self._keep(before)

    def _keep(self, before: Mapping[str, Any] | None) -> None:
        """Write the runs that are done, with those that an earlier file has: it may be of more seeds."""
        write_json(RESULTS / f"{self.plan.name}.json", collect(replace(self.plan, seeds=SEEDS), OUT, before))


@dataclass(frozen=True)
class Hierarchy:
    """A variant on a set of hierarchies."""

    set: str
    variant: str

    @property
    def name(self) -> str:
        """The command that does the same."""
        return f"python -m experiments hmlc --variant {self.variant} --sets {self.set} --seeds {SEEDS}"

    def missing(self, results: Path = RESULTS) -> int:
        """Runs that are not on file; all, if their epoch is not chosen yet."""
        folder = results / "hmlc"
        jobs = known_jobs(self.set, self.variant, range(SEEDS), folder)
        return len(VARIANTS[self.variant][0]) * SEEDS - sum(find_result(job, folder) is not None for job in jobs)

    def work(self, data: str | None) -> None:
        """Do them."""
        work_through([self.set], self.variant, range(SEEDS), RESULTS / "hmlc", data, command=self.name)


@dataclass(frozen=True)
class Ablation:
    """The paper's grid of m, k and gates on a set of hierarchies."""

    set: str

    @property
    def name(self) -> str:
        """The command that does the same."""
        return f"python -m experiments hmlc --ablation --paper-grid --sets {self.set}"

    def missing(self, results: Path = RESULTS) -> int:
        """Trainings that are not on file."""
        path = results / "hmlc" / PAPER_ABLATION_FILE
        tried = {name: len(seen) for name, _, seen in tried_settings(path)}
        return len(PAPER_ABLATION) - tried.get(self.set, 0)

    def work(self, data: str | None) -> None:
        """Do them."""
        ablate([self.set], RESULTS / "hmlc", paper=True, data=data, command=self.name)


@dataclass(frozen=True)
class Terrain:
    """A network on generated maps until validation stops improving, with weights of the semantic loss to try."""

    arguments: str
    methods: tuple[str, ...]

    @property
    def name(self) -> str:
        """The command that does the same."""
        return f"python -m experiments warcraft {self.arguments}"

    def missing(self, results: Path = RESULTS) -> int:
        """Methods whose run was not trained with patience."""
        net = self.arguments.split()[1]
        runs = [read_json(path) for path in (results / "warcraft").glob(f"{net}-*-seed0.json")]
        done = {run["model"]["method"] for run in runs if run["training"]["patience"] is not None}
        return len(set(self.methods) - done)

    def work(self, data: str | None) -> None:
        """Choose settings on validation maps, then train; both resume."""
        import_module("experiments.warcraft.app").main(self.arguments.split())  # it draws the pages, which count steps


def steps() -> list[Step]:
    """The steps, in order."""
    paths = Plan(TaskSettings(setting="ends", source="file", ends="first"), net="paper", grid="public")
    early = replace(paths.task, ends="early")
    rankings = Plan(TaskSettings("preference", source="file"), seeds=SEEDS)
    small, large = BY_COST[:7], BY_COST[7:-1]
    found: list[Step] = [Hierarchy(name, "hierarchy") for name in BY_COST[:2]]
    found += [Comparison(replace(paths, seeds=1))]
    found += [
        Comparison(replace(rankings, net=net, methods=methods, choose=rule, search_seeds=tries))
        for net in ("released", "text")
        for methods, rule, tries in ((_LOSSES, "exact", 1), (_LAYERS, "likelihood", 3))
    ]
    found += [Comparison(replace(paths, seeds=seeds)) for seeds in (3, 5, SEEDS)]
    found += [Hierarchy(name, "hierarchy") for name in small[2:]]
    found += [Comparison(replace(paths, task=early, net=net, grid="small", seeds=SEEDS)) for net in ("scaled", "wide")]
    found += [Comparison(replace(paths, grid="weights", seeds=SEEDS))]
    found += [Hierarchy(name, "hierarchy") for name in large]
    found += [Hierarchy(name, "rules") for name in BY_COST[:-1]]
    sizes = Plan(TaskSettings(source="file"), net="scaled", grid="sizes", methods=("spl",), seeds=SEEDS)
    found += [Comparison(sizes), *(Ablation(name) for name in BY_COST[:-1])]
    maps = "--patience 10 --epochs 100 --tune --threads 1 --cache out/maps --out results/warcraft"
    return [*found, Terrain(f"--net resnet18 --components 4 {maps}", ("fil", "semantic-loss", "product-spl"))]


def campaign(
    data: Annotated[Path | None, typer.Option(help="folder with the published data (or SEMPROLA_DATA)")] = None,
    show: Annotated[bool, typer.Option("--list", help="only list the steps, and how many runs each lacks")] = False,
) -> None:
    """Do the runs that compare like with like; repeat the command to resume.

    Example: python -m experiments campaign --list
    """
    for step in steps():
        missing = step.missing()
        print(f"{f'{missing} to do' if missing else 'complete':>10}  {step.name}", flush=True)
        if missing and not show:
            step.work(None if data is None else str(data))


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    application.command()(campaign)
    application(list(arguments), prog_name="python -m experiments campaign", standalone_mode=True)
    return 0
