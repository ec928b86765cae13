"""`python -m experiments`: choose settings on validation rows, run every method with several seeds, report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.jobs import Job, TaskSettings, execute_all
from experiments.methods import METHODS, SHORT_TITLES
from experiments.provenance import write_json
from experiments.quick import fit_into
from experiments.report import write_report
from experiments.search import recall, search
from experiments.settings import EXPERIMENTS, NETS, Candidate, best_known, candidates
from experiments.trainer import CHOICES
from semprola.errors import SemprolaError


@dataclass(frozen=True)
class Plan:
    """What to reproduce and how thoroughly: the options of the command."""

    task: TaskSettings
    net: str = "paper"
    methods: tuple[str, ...] = METHODS
    seeds: int = 5
    known: bool = False
    grid: str = "small"
    search_seeds: int = 1
    choose: str = "exact"
    processes: int = 1
    ray: bool = False
    quiet: bool = False
    seconds: float | None = None
    """Shorten the training so that everything takes about this long; None for full training."""

    @property
    def name(self) -> str:
        """The name of the files that it writes."""
        task = self.task
        data = "" if task.source == "file" else "-generated"
        variant = ("-people" if task.multiplicity else "") + ("" if task.ends == "early" else f"-ends-{task.ends}")
        variant += "-turned" if task.turned else ""
        searched = "-quick" if self.seconds else "" if self.known else f"-{self.grid}-search"
        rule = "" if self.choose == "exact" else f"-by-{self.choose}"
        return f"{task.experiment}-{task.setting}-{task.split}-{self.net}{data}{variant}{searched}{rule}"

    @property
    def command(self) -> str:
        """The command that repeats this plan; SEMPROLA_DATA names the data folder, if there is one."""
        task = self.task
        words = ["python", "-m", "experiments", task.experiment, "--setting", task.setting, "--split", task.split]
        words += ["--source", task.source, "--net", self.net, "--seeds", str(self.seeds)]
        if task.multiplicity:
            words.append("--multiplicity")
        if task.ends != "early":
            words += ["--ends", task.ends]
        if task.turned:
            words.append("--turned")
        if task.data_seed:
            words += ["--data-seed", str(task.data_seed)]
        if self.methods != METHODS:
            words += ["--methods", ",".join(self.methods)]
        words += ["--quick"] if self.seconds else ["--known"] if self.known else ["--grid", self.grid]
        if not self.known and self.search_seeds != 1:
            words += ["--search-seeds", str(self.search_seeds)]
        if self.choose != "exact":
            words += ["--choose", self.choose]
        return " ".join(words)


def reproduce(
    plan: Plan, out: str | Path, before: Mapping[str, Any] | None = None, keep: Callable[[], None] | None = None
) -> dict[str, Any]:
    """Carry out a plan; finished runs are not repeated.

    Args:
        plan: the plan.
        out: a folder; results and checkpoints of runs go to ``out/runs``, the summary and reports to ``out``.
        before: content of an earlier summary, whose searches are not repeated.
        keep: called after every run with settings that were chosen.

    Returns:
        The content of the summary: "title", "command", "results", and "search" (what was tried on validation rows).

    Raises:
        SemprolaError: if the plan is invalid, or data is not available.
    """
    _check(plan)
    runs = Path(out) / "runs" / plan.name
    results: list[dict[str, Any]] = []
    searched: list[dict[str, Any]] = []
    cut = {} if plan.seconds is None else _cut(plan, plan.seconds)
    for method in plan.methods:
        (model, training), tried = (cut[method], []) if cut else _chosen(plan, method, runs, before or {})
        searched += [{"method": method, **entry} for entry in tried]
        jobs = [Job(plan.task, method, model, training, seed) for seed in range(plan.seeds)]
        results += execute_all(
            jobs, runs, processes=plan.processes, quiet=plan.quiet, command=plan.command,
            done=lambda job, result: keep() if keep else None,
        )  # fmt: skip
    content = summary_of(plan, searched, results)
    write_json(Path(out) / f"{plan.name}.json", content)
    write_report(content, Path(out) / plan.name)
    return content


def summary_of(plan: Plan, searched: list[dict[str, Any]], results: list[dict[str, Any]]) -> dict[str, Any]:
    """The content of a results file."""
    return {"title": _title(plan), "command": plan.command, "search": searched, "results": results}


def _check(plan: Plan) -> None:
    if plan.task.experiment not in EXPERIMENTS:
        raise SemprolaError(f"no experiment {plan.task.experiment!r}: choose from {', '.join(EXPERIMENTS)}")
    if plan.net not in NETS:
        raise SemprolaError(f"no network {plan.net!r}: choose from {', '.join(NETS)}")
    if plan.seeds < 1:
        raise SemprolaError(f"at least one seed is needed, not {plan.seeds}")
    if plan.search_seeds < 1:
        raise SemprolaError(f"a search needs at least one seed, not {plan.search_seeds}")
    if plan.choose not in CHOICES:
        raise SemprolaError(f"no choice by {plan.choose!r}: choose from {', '.join(CHOICES)}")
    if plan.task.source not in ("generated", "file"):
        raise SemprolaError(f"no source {plan.task.source!r}: choose from generated, file")
    if plan.task.multiplicity and plan.task.experiment != "preference":
        raise SemprolaError("multiplicity (one row per person) is for preference: leave it out")
    if (plan.task.turned or plan.task.ends != "early") and plan.task.experiment != "simple-path":
        raise SemprolaError("turned rows and ends='first' are for simple-path: leave them out")
    unknown = [method for method in plan.methods if method not in METHODS]
    if unknown or not plan.methods:
        named = ", ".join(unknown) or "none"
        raise SemprolaError(f"no such method: {named}; choose from {', '.join(METHODS)}")
    plan.task.task()  # find a missing file or an unknown setting before hours of work


def _chosen(plan: Plan, method: str, runs: Path, before: Mapping[str, Any]) -> tuple[Candidate, list[dict[str, Any]]]:
    """The settings of a method, and what was tried to find them."""
    if plan.known:
        return _known(plan, method), []
    tried = plan_candidates(plan, method)
    if found := recall(method, tried, plan.search_seeds, before.get("search", ())):
        return found
    return search(
        plan.task, method, tried, runs, seeds=plan.search_seeds,
        processes=plan.processes, ray=plan.ray, quiet=plan.quiet, command=plan.command,
    )  # fmt: skip


def plan_candidates(plan: Plan, method: str) -> list[Candidate]:
    """What the search of a plan tries for a method."""
    grid = candidates(plan.task.experiment, plan.net, method, plan.grid)
    return [(model, replace(training, choose=plan.choose)) for model, training in grid]


def _cut(plan: Plan, seconds: float) -> dict[str, Candidate]:
    """The best known settings with as many steps as fit into the time; prints how long that will take."""
    cut, expected = fit_into(plan.task.task(), {method: _known(plan, method) for method in plan.methods}, seconds)
    if not plan.quiet:
        steps = ", ".join(f"{SHORT_TITLES[method]} {training.steps}" for method, (_, training) in cut.items())
        print(f"a quick look: about {expected:.0f} s for these steps: {steps}", file=sys.stderr, flush=True)
    return cut


def _known(plan: Plan, method: str) -> Candidate:
    model, training = best_known(plan.task.experiment, plan.task.setting, plan.net, method)
    # the best known settings have their own criterion, unless likelihood is requested
    return model, training if plan.choose == "exact" else replace(training, choose=plan.choose)


def _title(plan: Plan) -> str:
    task = plan.task
    name = {"simple-path": "Simple paths", "preference": "Preferences"}[task.experiment]
    data = "published data" if task.source == "file" else "generated data"
    if task.multiplicity:
        data += ", a row for each person"
    if task.turned:
        data += ", training rows also turned"
    group = "graph" if task.experiment == "simple-path" else "ranking"
    split = "published split" if task.split == "published" else f"split by {group}"
    net = NETS[plan.net]
    how = "a quick look" if plan.seconds else "best known settings" if plan.known else f"{plan.grid} grid searched"
    if task.ends == "first":
        net += ", end points first in the circuit"
    if plan.choose == "likelihood":
        how += ", chosen by likelihood"
    return f"{name}, setting “{task.setting}”, {data}, {split}, {net}, {how}"
