"""`semprola train` and `semprola predict`."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from semprola._words import count
from semprola.cli.compiling import MaxNodes, Memory, Timeout
from semprola.cli.output import emit, keep, painted, say, table, widths, words
from semprola.errors import FormatError

Json = Annotated[bool, typer.Option("--json", help="print one JSON object")]
JsonLines = Annotated[bool, typer.Option("--json", help="print one JSON object per row, each on its own line")]
Skip = Annotated[bool, typer.Option("--skip-inconsistent", help="leave out rows that break the rules")]

_COUNTS = ("rows", "inputs", "labels", "epochs", "held-out rows", "written")


class _Choice(str, Enum):
    def __str__(self) -> str:
        return str(self.value)


class Layer(_Choice):
    """The layers that `train` can end a network with."""

    PRODUCT_SPL = "product-spl"
    SPL = "spl"


class Decode(_Choice):
    """What `predict` answers with."""

    MODE = "mode"
    HAMMING = "hamming"
    F1 = "f1"
    JACCARD = "jaccard"


def train_command(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="a .csv, .arff, .parquet or .npz table")],
    labels: Annotated[str, typer.Option(help="comma-separated: the columns to predict, with values 0, 1 or empty")],
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for the model")],
    rules: Annotated[str | None, typer.Option(help="a file with one rule per line, or a formula")] = None,
    ignore: Annotated[str, typer.Option(help="comma-separated: columns not to learn from")] = "",
    hidden: Annotated[str, typer.Option(help="comma-separated: widths of the hidden layers, or none")] = "64",
    layer: Annotated[
        Layer, typer.Option(metavar="<str>", help="product-spl (`sp.ProductSPL`) or spl (`sp.SPL`)")
    ] = Layer.PRODUCT_SPL,
    components: Annotated[int, typer.Option(help="number of mixture components", min=1)] = 1,
    units: Annotated[int, typer.Option(help="units per sum, for --layer spl", min=1)] = 1,
    decode: Annotated[
        Decode, typer.Option(metavar="<str>", help="what to predict: mode, hamming, f1 or jaccard")
    ] = Decode.MODE,
    epochs: Annotated[int, typer.Option(help="largest number of passes over the rows", min=1)] = 200,
    batch_size: Annotated[int, typer.Option(help="rows per gradient step", min=1)] = 64,
    lr: Annotated[float, typer.Option(help="learning rate")] = 1e-2,
    dropout: Annotated[float, typer.Option(help="fraction of hidden units dropped in training")] = 0.0,
    patience: Annotated[int, typer.Option(help="epochs without progress before training stops", min=1)] = 15,
    held_out: Annotated[float, typer.Option(help="fraction of rows held out for scoring")] = 0.2,
    seed: Annotated[
        int, typer.Option(help="random seed for parameters and the order of rows", min=0, max=2**32 - 1)
    ] = 0,
    device: Annotated[str | None, typer.Option(help="device to train on, such as cuda")] = None,
    split: Annotated[bool, typer.Option("--split", help="split rules that do not compile as one circuit")] = False,
    timeout: Timeout = None,
    max_nodes: MaxNodes = None,
    memory: Memory = None,
    force: Annotated[bool, typer.Option("--force", help="replace a model that is in the folder")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="continue where an interrupted call stopped")] = False,
    skip_inconsistent: Skip = False,
    as_json: Json = False,
) -> None:
    """Train a model whose predictions obey rules, from a table.

    Every column that is neither a label nor ignored is an input: numbers as they are, texts by category. An empty label
    means "not observed".

    With --split, rules that do not compile as one circuit become several. Every prediction still obeys every rule, but
    probabilities are lower bounds. --timeout, --max-nodes (of each circuit) and --memory limit the compilation.

    Example: semprola train animals.csv --labels cat,dog,animal --rules rules.txt --out model
    """
    _require_place(out, force)
    say(f"reading {data}", data, quiet=as_json)
    from semprola.cli.training import TrainRequest, train_model

    checkpoint = out.with_name(f"{out.name}.checkpoint")
    keep(f"training can continue from {checkpoint} with --resume, if the first epoch was finished")
    request = TrainRequest(
        data=data,
        labels=tuple(words(labels)),
        out=out,
        rules=rules,
        ignore=tuple(words(ignore)),
        held_out=held_out,
        skip_inconsistent=skip_inconsistent,
        checkpoint=checkpoint,
        resume=resume,
        seed=seed,
        quiet=as_json,
        split=split,
        budget={"timeout": timeout, "max_nodes": max_nodes, "memory": memory},
        options={
            "hidden": widths(hidden),
            "layer": layer.value,
            "components": components,
            "units": units,
            "decode": decode.value,
            "epochs": epochs,
            "batch_size": batch_size,
            "lr": lr,
            "dropout": dropout,
            "patience": patience,
            "device": device,
        },
    )
    found = train_model(request)
    if as_json:
        emit(found, True)
        return
    scores = {name: value for name, value in found.items() if name not in _COUNTS}
    print(f"trained on {found['rows']:,} rows in {count(found['epochs'], 'epoch')}; model written to {out}")
    if scores:
        print(f"on {count(found['held-out rows'], 'held-out row')}, in percent:")
        print("\n".join(table(scores, "  ")))
    print(painted("next:", "bold", sys.stdout), f"semprola predict {out} NEW.csv --out predictions.csv")
    print(f"      semprola playground --model {out} --data {data}")


def _require_place(out: Path, force: bool) -> None:
    """Refuse to train what could not be written, or would replace a model that somebody may need."""
    if out.is_file():
        raise FormatError(f"{out}: this is a file, but a model is saved to a folder: choose another --out")
    if (out / "model.json").is_file() and not force:
        raise FormatError(f"{out}: there is a model already: choose another --out, or replace it with --force")


def predict_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="the folder of a model")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="a .csv, .arff, .parquet or .npz table")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="a CSV file; by default the terminal")] = None,
    evidence: Annotated[str, typer.Option(help="comma-separated: label columns whose values are known")] = "",
    explain: Annotated[bool, typer.Option("--explain", help="say what follows if each label is flipped")] = False,
    skip_inconsistent: Skip = False,
    as_json: JsonLines = False,
) -> None:
    """Predict labels; every prediction obeys the rules.

    The columns of the result are the labels, p(label) for each label, and the probability of the whole prediction. Of a
    model over a split, they are the labels, a lower bound of the probability, and whether the prediction is proven to
    be the most probable one.

    Example: semprola predict model new.csv --out predictions.csv
    """
    from semprola.cli.predicting import predict_rows

    known = tuple(words(evidence))
    predict_rows(model, data, out, known, explain, skip_inconsistent, as_json)
