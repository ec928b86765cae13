"""The work of `semprola predict`: read, predict, explain."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from semprola._files import write_atomically
from semprola.cli.inconsistent import first_reasons, kept_rows
from semprola.cli.inputs import Features
from semprola.cli.output import keep
from semprola.cli.tables import Table, read_table
from semprola.distributions.conflicts import impossible_in, impossible_rows
from semprola.errors import FormatError, IntractableError, LabelError, ParseError
from semprola.logic import Formula, parse
from semprola.saving import load
from semprola.saving.folders import read_metadata
from semprola.sklearn import SPLClassifier

_CHUNK, _NAMED = 1024, 5


@torch.no_grad()
def predict_rows(
    folder: Path, data: Path, out: Path | None, evidence: tuple[str, ...], explain: bool, skip: bool, as_json: bool
) -> None:
    """Predict for the rows of a table and write the results."""
    model, features, rules = _model(folder)
    unknown = [name for name in evidence if name not in model.labels_]
    if unknown:
        raise LabelError(
            f"--evidence names {unknown[0]!r}, which is not a label of the model: {', '.join(model.labels_)}"
        )
    table = read_table(data)
    table.require(evidence)
    X = features.table(table)
    known = _evidence(table, evidence, model.labels_)
    table, X, known = _possible(model, table, X, known, skip, as_json)
    if model.split_ is not None and explain:
        raise IntractableError("--explain needs exact probabilities, but this model is over a split: leave it out")
    results = list(_predictions(model, X, known) if model.split_ is None else _bounded(model, table, X, known))
    if out is not None:
        write_atomically(out, _csv(model.labels_, results).encode())
        keep(f"the predictions are in {out}")
    if as_json:
        explained = _explanations(model, X, known, results, rules) if explain else [None] * len(results)
        for row, (result, why) in enumerate(zip(results, explained, strict=True)):
            place = {table.unit: table.places[row]}
            said = {"labels": _ones(result[0], model.labels_), **result[1], **({} if why is None else {"if": why})}
            print(json.dumps({**place, **said}))
    elif explain:
        for row, why in enumerate(_explanations(model, X, known, results, rules)):
            print("\n".join(_told(table, row, model.labels_, results[row], why)))
    elif out is None:
        print(_csv(model.labels_, results), end="")


def _model(folder: Path) -> tuple[SPLClassifier, Features, list[Formula]]:
    model = load(folder)
    table = read_metadata(folder)[0].get("table")
    if not isinstance(model, SPLClassifier) or not isinstance(table, dict):
        raise FormatError(f"{folder}: not a model made by `semprola train`: load it with semprola.load")
    rules = []
    for text in table["rules"]:
        try:
            rules.append(parse(text))
        except ParseError:  # the text of a family
            continue
    return model, Features.from_json(table["features"]), rules


def _evidence(table: Table, names: tuple[str, ...], labels: tuple[str, ...]) -> Tensor | None:
    """The known labels as 0, 1 and NaN [rows, labels]; None without evidence."""
    if not names:
        return None
    known = np.full((len(table), len(labels)), np.nan)
    for name in names:
        known[:, labels.index(name)] = table.binary(name)
    return torch.from_numpy(known)


def _possible(
    model: SPLClassifier, table: Table, X: NDArray[np.float64], known: Tensor | None, skip: bool, quiet: bool
) -> tuple[Table, NDArray[np.float64], Tensor | None]:
    """The rows whose evidence the rules allow; other rows are an error, unless they should be left out."""
    if known is None:
        return table, X, None
    rules = model.split_ or model.circuit_
    wrong = impossible_in(rules, known.float().numpy())
    if not wrong.any():
        return table, X, known
    shown = first_reasons(table, wrong, known, model.labels_, rules)
    message = f"{int(wrong.sum())} of {len(table)} rows have evidence that breaks the rules: {shown}"
    every = f"{table.path}: the evidence of every row breaks the rules"
    rows = kept_rows(wrong, message, every, skip=skip, quiet=quiet)
    return table.take(rows), X[rows], known[torch.from_numpy(rows)]


Result = tuple[NDArray[np.int64], dict[str, Any]]
"""A predicted state [labels], and what is known about its probability and those of the labels."""


def _predictions(model: SPLClassifier, X: NDArray[np.float64], known: Tensor | None) -> Iterator[Result]:
    for _, p in _parts(model, X, known):
        states = p.decode(model.decode)
        values = p.log_prob(states).exp().tolist()
        for state, mean, value in zip(states.numpy(), p.mean.tolist(), values, strict=True):
            marginals = dict(zip(model.labels_, mean, strict=True))
            yield state.astype(np.int64), {"marginals": marginals, "probability": value}


def _bounded(model: SPLClassifier, table: Table, X: NDArray[np.float64], known: Tensor | None) -> Iterator[Result]:
    """Predictions of a model over a split, with lower bounds of their probabilities."""
    for first, p in _parts(model, X, known):
        states = p.try_mode()
        missing = [table.place(first + row) for row in states.isnan().any(-1).nonzero().flatten().tolist()]
        if missing:
            shown = ", ".join([*missing[:_NAMED], *(["…"] if len(missing) > _NAMED else [])])
            raise IntractableError(
                f"no state that obeys all rules{' and the evidence' * (known is not None)} was found for {shown}: "
                "train with a larger --max-nodes, or leave these rows out"
            )
        bounds = zip(p.log_score(states).exp().tolist(), p.mode_is_exact.tolist(), strict=True)
        for state, (least, proven) in zip(states.numpy().astype(np.int64), bounds, strict=True):
            yield state, {"probability at least": least, "proven": proven}


def _parts(model: SPLClassifier, X: NDArray[np.float64], known: Tensor | None) -> Iterator[tuple[int, Any]]:
    """The distributions of some rows after the other, and the number of the first."""
    size = _CHUNK if model.split_ is None else _CHUNK // 4
    for first in range(0, len(X), size):
        p = model.distribution(X[first : first + size])
        yield first, p if known is None else p.condition(known[first : first + size])


def _explanations(
    model: SPLClassifier, X: NDArray[np.float64], known: Tensor | None, results: list[Result], rules: list[Formula]
) -> list[list[dict[str, Any]]]:
    """For each row and label, the rules that break if only that label is flipped, and the best state with it."""
    explained: list[list[dict[str, Any]]] = [[] for _ in results]
    states = np.stack([state for state, _ in results])
    for j, label in enumerate(model.labels_):
        flipped = states.copy()
        flipped[:, j] = 1 - flipped[:, j]
        wanted = torch.full((len(X), len(model.labels_)), float("nan"), dtype=torch.float64) if known is None else known
        wanted = wanted.clone()
        fixed = ~wanted[:, j].isnan()
        wanted[:, j] = torch.from_numpy(flipped[:, j]).double()
        possible = ~torch.from_numpy(impossible_rows(model.circuit_, wanted.float().numpy())) & ~fixed
        best: dict[int, tuple[Result, float]] = {}
        rows = possible.nonzero().flatten()
        if len(rows):
            p = model.distribution(X[rows.numpy()])
            p = p if known is None else p.condition(known[rows])
            chances = p.log_marginal(wanted[rows]).exp().tolist()
            found = _predictions(model, X[rows.numpy()], wanted[rows])
            best = dict(zip(rows.tolist(), zip(found, chances, strict=True), strict=True))
        for row in range(len(results)):
            if bool(fixed[row]):
                continue
            values = dict(zip(model.labels_, flipped[row].tolist(), strict=True))
            entry: dict[str, Any] = {label: int(flipped[row, j])}
            entry["breaks"] = [str(rule) for rule in rules if not rule.evaluate(values)]
            entry["probability"] = best[row][1] if row in best else 0.0
            entry["best"] = _ones(best[row][0][0], model.labels_) if row in best else None
            explained[row].append(entry)
    return explained


def _told(table: Table, row: int, labels: tuple[str, ...], result: Result, why: list[dict[str, Any]]) -> list[str]:
    shown = ", ".join(_ones(result[0], labels)) or "no label"
    lines = [f"{table.unit} {table.places[row]}: {shown} (p = {result[1]['probability']:.3f})"]
    for entry in why:
        label, flipped = next(iter(entry.items()))
        change = f"with {label}" if flipped else f"without {label}"
        broken = f"alone it breaks {'; '.join(entry['breaks'])}" if entry["breaks"] else "alone it breaks no rule"
        if entry["best"] is None:
            lines.append(f"  {change}: never ({broken})")
        else:
            best = ", ".join(entry["best"]) or "no label"
            lines.append(f"  {change} (p = {entry['probability']:.3f}): {broken}; best: {best}")
    return lines


def _csv(labels: tuple[str, ...], results: list[Result]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row, (state, known) in enumerate(results):
        columns = {f"p({label})": chance for label, chance in known.get("marginals", {}).items()}
        columns |= {name: value for name, value in known.items() if name != "marginals"}
        if row == 0:
            writer.writerow([*labels, *columns])
        writer.writerow([*state.tolist(), *(f"{value:.6g}" for value in columns.values())])
    return text.getvalue()


def _ones(state: NDArray[np.int64], labels: tuple[str, ...]) -> list[str]:
    return [label for label, one in zip(labels, state.tolist(), strict=True) if one]
