"""The work of `semprola train`: read, check, train, score on held-out rows, save."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from semprola.circuit import Circuit
from semprola.cli.inconsistent import without_broken
from semprola.cli.inputs import Features
from semprola.cli.tables import Table, read_table
from semprola.compiler import compile
from semprola.compiler.sources import as_constraint
from semprola.compiler.splitting import Split, split
from semprola.distributions.conflicts import impossible_in
from semprola.errors import FormatError, LabelError
from semprola.logic import TRUE, Formula
from semprola.logic.rules import conjuncts
from semprola.saving import save
from semprola.sklearn import SPLClassifier
from semprola.training.metrics import auprc, calibration_error, hamming, observed_exact

_SCORES = (
    "exact match",
    "labels right",
    "area under precision-recall",
    "calibration error of labels",
    "calibration error of predictions",
)


@dataclass(frozen=True)
class TrainRequest:
    """The arguments of `semprola train`; `options` are those of `SPLClassifier`, `budget` that of `compile`."""

    data: Path
    labels: tuple[str, ...]
    out: Path
    rules: str | None = None
    ignore: tuple[str, ...] = ()
    held_out: float = 0.2
    skip_inconsistent: bool = False
    checkpoint: Path | None = None
    resume: bool = False
    seed: int = 0
    quiet: bool = False
    split: bool = False
    budget: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def train_model(request: TrainRequest) -> dict[str, Any]:
    """Train and save a model; return what to print."""
    if not request.labels:
        raise LabelError("--labels names no column")
    if not 0 <= request.held_out < 1:
        raise ValueError(f"--held-out must be from 0 to below 1, not {request.held_out}")
    table = read_table(request.data)
    table.require(request.labels)
    table.require(request.ignore)
    rules = TRUE if request.rules is None else as_constraint(request.rules)
    _require_labels(request, table, rules)
    constraint = _compiled(request, rules)
    free = set(request.labels).difference(rules.labels)
    if free and not request.quiet and isinstance(rules, Formula) and rules is not TRUE:
        print(f"note: no rule mentions {', '.join(sorted(free)[:5])}", file=sys.stderr)
    y = np.stack([table.binary(name) for name in request.labels], axis=1)
    table, y = _consistent(request, table, y, constraint)
    used = [name for name in table.columns if name not in {*request.labels, *request.ignore}]
    features = Features.of(table, used)
    X = features.table(table)
    test = _held_out(len(X), request.held_out, request.seed)
    if request.checkpoint is not None and not request.resume:
        request.checkpoint.unlink(missing_ok=True)
    if not request.quiet:
        rows = f"training on {(~test).sum():,} rows with {X.shape[1]:,} inputs and {len(request.labels):,} labels"
        print(f"{rows}; {test.sum():,} more rows are held out", file=sys.stderr, flush=True)
    model = SPLClassifier(constraint, request.labels, random_state=request.seed, **request.options)
    model.verbose = not request.quiet
    model.fit(X[~test], y[~test], checkpoint=request.checkpoint)
    figures = _figures(model, X[test], y[test]) if test.any() else {}
    metadata = {
        "features": features.to_json(),
        "rules": [str(rule) for rule in conjuncts(rules)] if isinstance(rules, Formula) else [],
    }
    save(model, request.out, metadata={"table": metadata, "figures": figures})
    if request.checkpoint is not None:
        request.checkpoint.unlink(missing_ok=True)
    return {
        "rows": int((~test).sum()),
        "inputs": X.shape[1],
        "labels": len(request.labels),
        "epochs": model.n_iter_,
        **figures,
        "written": str(request.out),
    }


def _compiled(request: TrainRequest, rules: Formula | Circuit) -> Circuit | Split:
    """One circuit, or a split if the request allows it and one circuit does not suffice."""
    progress = not request.quiet
    if not request.split:
        return compile(rules, labels=request.labels, progress=progress, **request.budget)
    made = split(rules, labels=request.labels, progress=progress, **request.budget)
    if made.is_exact:
        return made.circuits[0]
    if not request.quiet:
        print(f"note: {made.notice}", file=sys.stderr)
    return made


def _require_labels(request: TrainRequest, table: Table, rules: Formula | Circuit) -> None:
    """Refuse rules about a column that is an input: the layer would not know it."""
    found = next((name for name in rules.labels if name not in request.labels and name in table.columns), None)
    if found is not None:
        raise LabelError(
            f"the rules mention {found!r}, a column that is not in --labels: add it there, and if you know it "
            f"when you predict, pass --evidence {found}"
        )


def _consistent(
    request: TrainRequest, table: Table, y: NDArray[np.float32], constraint: Circuit | Split
) -> tuple[Table, NDArray[np.float32]]:
    """The rows that obey the rules; other rows are an error, unless they should be left out."""
    wrong = impossible_in(constraint, y)
    return without_broken(
        table, y, wrong, constraint.labels, constraint, skip=request.skip_inconsistent, quiet=request.quiet
    )


def _held_out(rows: int, share: float, seed: int) -> NDArray[np.bool_]:
    chosen = np.zeros(rows, bool)
    size = int(share * rows)
    if size >= rows:
        raise FormatError("no row is left to train on: lower --held-out")
    chosen[np.random.default_rng(seed).permutation(rows)[:size]] = True
    return chosen


def _figures(model: SPLClassifier, X: NDArray[np.float64], y: NDArray[np.float32]) -> dict[str, Any]:
    """Scores of the predictions and of the probabilities on held-out rows, in percent; None where nothing is observed.

    A split has no probabilities of labels, so their scores are None, too.

    A row without any observed label says nothing about a prediction, so it is left out of the scores.
    """
    told = ~np.isnan(y).all(1)
    figures: dict[str, Any] = {"held-out rows": len(X), **dict.fromkeys(_SCORES)}
    if not told.any():
        return figures
    X, truth = X[told], torch.from_numpy(y[told])
    states = torch.from_numpy(model.predict(X)).float()
    seen = ~truth.isnan()
    if model.split_ is not None:
        own = (observed_exact(states, truth), hamming(states[seen], truth[seen]))
        return figures | {name: round(score, 2) for name, score in zip(_SCORES, own, strict=False)}
    marginals = torch.from_numpy(model.predict_proba(X))
    _, best = model.top_k(X, 1)
    right = ((states == truth) | ~seen).all(1)
    scores = (
        observed_exact(states, truth),
        hamming(states[seen], truth[seen]),
        auprc(marginals, truth),
        100 * calibration_error(marginals[seen], truth[seen]),
        100 * calibration_error(best[:, 0], right),
    )
    return figures | {
        name: None if score != score else round(score, 2) for name, score in zip(_SCORES, scores, strict=True)
    }
