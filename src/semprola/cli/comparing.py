"""`semprola compare`."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Annotated

import typer

from semprola.cli.output import emit, keep, say, widths, words

_LEGEND = """\
exact: rows with every label right, %      Hamm.: labels right, %
cons.: predictions that obey the rules, %  NLL: negative log-likelihood per row
ECE: calibration error of the labels       PRC: area under precision and recall, %
s/ep.: seconds per epoch"""


def compare_command(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="a .csv, .arff, .parquet or .npz table")],
    labels: Annotated[str, typer.Option(help="comma-separated: the columns to predict, with values 0 and 1")],
    rules: Annotated[str, typer.Option(help="a file with one rule per line, or a formula")],
    methods: Annotated[
        str, typer.Option(help="comma-separated: the methods to compare, see above; by default all")
    ] = "",
    ignore: Annotated[str, typer.Option(help="comma-separated: columns not to learn from")] = "",
    hidden: Annotated[str, typer.Option(help="comma-separated: widths of the backbone's layers")] = "64,64",
    folds: Annotated[int, typer.Option(help="number of folds; each is held out once", min=2)] = 3,
    epochs: Annotated[int, typer.Option(help="largest number of passes over the rows", min=1)] = 60,
    components: Annotated[int, typer.Option(help="mixture components of the SPLs", min=1)] = 1,
    seed: Annotated[
        int, typer.Option(help="random seed for folds, parameters and the order of rows", min=0, max=2**32 - 1)
    ] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for the report and finished folds")] = Path(
        "compare"
    ),
    skip_inconsistent: Annotated[
        bool, typer.Option("--skip-inconsistent", help="leave out rows that break the rules")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Train several methods on your table and compare their scores.

    Every method has the same backbone, folds and budget. Finished folds are kept: repeat the command after an
    interruption. The report is a single HTML file.

    The methods are fil (independent labels), dl2, semantic-loss, nesy-entropy, ebm, multiplexnet, hmcnn, ccn, spl and
    product-spl.

    Example: semprola compare animals.csv --labels cat,dog,animal --rules rules.txt
    """
    say(f"reading {data}", data, quiet=as_json)
    import numpy as np

    from semprola.cli.inconsistent import without_broken
    from semprola.cli.inputs import Features
    from semprola.cli.tables import read_table
    from semprola.comparison import compare_methods
    from semprola.comparison.report import found_out, write_report
    from semprola.compiler.sources import as_constraint
    from semprola.errors import FormatError, LabelError
    from semprola.logic import Formula

    names = words(labels)
    if not names:
        raise LabelError("--labels names no column")
    table = read_table(data)
    table.require(names)
    table.require(words(ignore))
    formula = as_constraint(rules)
    if not isinstance(formula, Formula):
        raise FormatError("a comparison needs rules as formulas, not a compiled circuit")
    y = np.stack([table.binary(name) for name in names], axis=1)
    if np.isnan(y).any():
        raise FormatError(f"{data}: labels are missing; a comparison needs all of them")
    wrong = ~np.asarray(formula.evaluate(y, names), bool)
    table, y = without_broken(table, y, wrong, names, formula, skip=skip_inconsistent, quiet=as_json)
    used = [name for name in table.columns if name not in {*names, *words(ignore)}]
    keep(f"finished folds are in {out / 'folds'}; repeat the command to continue")
    result = compare_methods(
        Features.of(table, used).table(table),
        y,
        formula,
        labels=names,
        methods=words(methods) or None,
        hidden=widths(hidden),
        folds=folds,
        epochs=epochs,
        components=components,
        seed=seed,
        out=out / "folds",
        say=None if as_json else lambda line: print(line, file=sys.stderr, flush=True),
    )
    write_report(result, out / "report.html", command=f"semprola compare {data.name} --labels {labels} --rules {rules}")
    if as_json:
        emit({"about": result.about, "rows": result.rows}, True)
        return
    typer.echo(f"\n{result}\n\n{_LEGEND}\n")
    typer.echo(textwrap.fill(found_out(result), 80) + "\n")
    for row in result.rows:
        if "refused" in row:
            typer.echo(f"{row['title']}: {row['refused']}")
    typer.echo(f"report  {out / 'report.html'}")
