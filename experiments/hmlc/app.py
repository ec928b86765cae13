"""`python -m experiments hmlc`: hierarchical multi-label classification."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from semprola.cli.output import keep
from semprola.errors import SemprolaError

RESULTS = Path("results/hmlc")
QUICK_SETS = "enron,eisen"
MAIN_METHODS = "spl,spl-known,hmcnn,fil"
_QUICK = {"epochs": 30, "every": 3, "patience": 5}


def hmlc(
    sets: Annotated[str, typer.Option(help="comma-separated  [default: the twelve of the paper]")] = "",
    methods: Annotated[str, typer.Option(help="comma-separated, or all")] = MAIN_METHODS,
    seeds: Annotated[int, typer.Option(help="runs per set and method; 0 with --tune to choose only", min=0)] = 10,
    first_seed: Annotated[int, typer.Option(help="number of the first run", min=0)] = 0,
    train_only: Annotated[
        int | None, typer.Option(help="seeds below this are also trained on train rows only  [default: all]", min=0)
    ] = None,
    figures: Annotated[
        str, typer.Option(help="only settings chosen for these: exact, hamming, auprc  [default: all three]")
    ] = "",
    data: Annotated[Path | None, typer.Option(help="folder with the published files (or SEMPROLA_DATA)")] = None,
    jobs: Annotated[int, typer.Option(help="processes", min=1)] = 1,
    ray: Annotated[bool, typer.Option("--ray", help="let Ray do the runs, on its cluster (extra `tune`)")] = False,
    out: Annotated[Path, typer.Option(help="folder for results  [default: results/hmlc; out/hmlc-quick]")] = RESULTS,
    marginals: Annotated[Path, typer.Option(help="folder for marginals, for ensembles")] = Path("out/hmlc-marginals"),
    quick: Annotated[bool, typer.Option("--quick", help="two sets, one seed, few epochs: two minutes")] = False,
    tune: Annotated[bool, typer.Option("--tune", help="first choose settings on validation rows")] = False,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="only try components, units and gates of SPL on validation rows")
    ] = False,
    paper_grid: Annotated[
        bool, typer.Option("--paper-grid", help="with --ablation: the paper's m, k and gates")
    ] = False,
    cross: Annotated[str, typer.Option(help="sets for which --ablation also multiplies units crosswise")] = "",
    circuit: Annotated[str, typer.Option(help="tree, or sdd: the kind that the paper uses")] = "",
    components: Annotated[int | None, typer.Option(help="m of the paper", min=1)] = None,
    units: Annotated[int | None, typer.Option(help="k of the paper", min=1)] = None,
    mixing: Annotated[str, typer.Option(help="of units: elementwise, or cross")] = "",
    gates: Annotated[int | None, typer.Option(help="hidden layers of the gate, of width 256", min=0)] = None,
    marginal_weight: Annotated[float | None, typer.Option(help="of the cross-entropy of marginals, for SPL")] = None,
    options: Annotated[bool | None, typer.Option(help="add what all training rows obey to the hierarchy")] = None,
    impute: Annotated[str, typer.Option(help="train, or file: as the released code, with means of test rows")] = "",
    variant: Annotated[
        str, typer.Option(help="hierarchy: SPL without further rules; rules: the semantic loss with them; set by set")
    ] = "",
    report: Annotated[bool, typer.Option("--report", help="only make tables, picture and docs/hmlc.md")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the results as JSON")] = False,
) -> None:
    """Compare methods on twelve data sets with hierarchies of labels.

    Runs resume: repeat the command after an interruption.

    Example: python -m experiments hmlc --quick
    """
    # here and not above: --help need not wait for torch
    from experiments.evidence import update_pages
    from experiments.hmlc.campaign import plan_jobs, work
    from experiments.hmlc.report import write_report
    from experiments.hmlc.sets import TWELVE, find_set
    from experiments.hmlc.tables import print_summary
    from experiments.hmlc.tuning import ablate
    from experiments.hmlc.tuning import tune as tune_settings
    from experiments.hmlc.variants import work_through

    if report:
        for path in write_report(out, marginals, None if data is None else str(data)):
            print(path)
        if out == RESULTS:
            for path in update_pages(RESULTS.parent, Path()):
                print(path)
        return
    if not (seeds or tune or ablation or quick):
        raise SemprolaError("--seeds 0 runs nothing: give a number of seeds, or add --tune to choose settings only")
    names = [find_set(name).name for name in _words(sets) or (_words(QUICK_SETS) if quick else TWELVE)]
    changes = _changes(circuit, components, units, mixing, gates, options, impute)
    changes |= {} if marginal_weight is None else {"marginal_weight": marginal_weight}
    chosen = _methods(methods)
    folder = None if data is None else str(data)
    if quick:
        out = Path("out/hmlc-quick") if out == RESULTS else out
        seeds, changes = 1, {**_QUICK, **changes}
    numbers = range(first_seed, first_seed + seeds)
    keep(f"finished runs are in {out}; repeat the command to go on")
    if ablation:
        crosswise = [find_set(name).name for name in _words(cross)]
        ablate(names, out, cross=crosswise, paper=paper_grid, data=folder, processes=jobs, ray=ray)
        return
    if variant:
        results = work_through(names, variant, numbers, out, folder, jobs)
        print(json.dumps(results)) if as_json else print_summary(results)
        return
    if tune:
        tune_settings(names, chosen, out, data=folder, processes=jobs, ray=ray)
        if not seeds:
            return
    jobs_to_do = plan_jobs(names, chosen, numbers, changes, out, train_only, _figures(figures))
    results = work(jobs_to_do, out, data=folder, processes=jobs, ray=ray, marginals=None if quick else marginals)
    print(json.dumps(results)) if as_json else print_summary(results)


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    application.command()(hmlc)
    application(list(arguments), prog_name="python -m experiments hmlc", standalone_mode=True)
    return 0


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _methods(text: str) -> list[str]:
    from experiments.hmlc.settings import METHODS

    chosen = list(METHODS) if text == "all" else _words(text)
    unknown = [name for name in chosen if name not in METHODS]
    if unknown or not chosen:
        raise SemprolaError(f"no method {(unknown or [''])[0]!r}: choose from {', '.join(METHODS)}")
    return chosen


def _figures(text: str) -> list[str]:
    from experiments.hmlc.settings import FIGURES

    chosen = _words(text) or list(FIGURES)
    unknown = [name for name in chosen if name not in FIGURES]
    if unknown:
        raise SemprolaError(f"no figure {unknown[0]!r}: choose from {', '.join(FIGURES)}")
    return chosen


def _changes(
    circuit: str,
    components: int | None,
    units: int | None,
    mixing: str,
    gates: int | None,
    options: bool | None,
    impute: str,
) -> dict[str, Any]:
    from experiments.hmlc.settings import CIRCUITS

    for value, allowed, name in (
        (circuit, CIRCUITS, "circuit"),
        (mixing, ("elementwise", "cross"), "mixing"),
        (impute, ("train", "file"), "impute"),
    ):
        if value and value not in allowed:
            raise SemprolaError(f"--{name} must be {' or '.join(allowed)}, not {value!r}")
    asked: dict[str, Any] = {
        "circuit": circuit or None,
        "components": components,
        "units": units,
        "mixing": mixing or None,
        "gate": None if gates is None else (256,) * gates,
        "options": options,
        "impute": impute or None,
    }
    return {name: value for name, value in asked.items() if value is not None}
