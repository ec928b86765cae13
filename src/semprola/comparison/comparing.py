"""`compare_methods`: every method with the same backbone, folds and budget, measured in one table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from semprola._notebook import shown, table, text
from semprola._version import __version__
from semprola.comparison.folds import Say, Store, Task, compare_one
from semprola.comparison.methods import METHODS
from semprola.compiler import compile
from semprola.compiler.sources import formula_of
from semprola.distributions import violations
from semprola.errors import SemprolaError, ViolationError
from semprola.logic import Formula
from semprola.training import FitSettings

METRICS = {
    "exact": "exact match",
    "hamming": "Hamming",
    "consistent": "consistent",
    "nll": "NLL",
    "ece": "calibration error",
    "auprc": "AU(PRC)",
    "seconds": "s per epoch",
}
"""What is measured on held-out rows, and its name in tables."""
_SHORT = ("exact", "Hamm.", "cons.", "NLL", "ECE", "PRC", "s/ep.")
_SHOWN = 3


@dataclass(frozen=True)
class Comparison:
    """The results of every method.

    Attributes:
        rows: for each method, "method", "title", and either "folds" (one dict of metrics per fold, with the chosen
            "penalty" for methods that add a loss) or "refused" (why the method cannot handle the constraint).
        about: the constraint, the number of rows, features and labels, and the settings.
    """

    rows: list[dict[str, Any]]
    about: dict[str, Any]

    def mean(self, method: str, metric: str) -> float:
        """Mean of a metric over the folds; NaN where the method does not define it."""
        row = next(row for row in self.rows if row["method"] == method)
        values = [fold[metric] for fold in row.get("folds", []) if fold[metric] is not None]
        return mean(values) if values else float("nan")

    def __str__(self) -> str:
        lines = [f"{'':<29}" + "".join(f"{short:>7}" for short in _SHORT)]
        for row in self.rows:
            if "refused" in row:
                lines.append(f"{row['title']:<29}  cannot handle these rules")
                continue
            cells = [_number(self.mean(row["method"], metric), metric) for metric in METRICS]
            lines.append(f"{row['title']:<29}" + "".join(f"{cell:>7}" for cell in cells))
        return "\n".join(lines)

    @shown
    def _repr_html_(self) -> str | None:
        header, *rows = self.table()
        cells = [[text(cell) for cell in row] for row in rows]
        return table(header, cells, numbers=range(1, len(header)))

    def table(self) -> list[list[str]]:
        """The table for reports, with cells "mean ± standard deviation"; the first row is the header."""
        made = [["method", *METRICS.values()]]
        for row in self.rows:
            if "refused" in row:
                made.append([row["title"], row["refused"], *[""] * (len(METRICS) - 1)])
                continue
            made.append([row["title"], *(_spread([fold[m] for fold in row["folds"]], m) for m in METRICS)])
        return made


def compare_methods(
    x: Any,
    y: Any,
    constraint: Formula | str | os.PathLike[str],
    *,
    labels: Sequence[str] | None = None,
    methods: Iterable[str] | None = None,
    hidden: Sequence[int] = (64, 64),
    folds: int = 3,
    epochs: int = 60,
    patience: int = 10,
    lr: float = 3e-3,
    batch_size: int = 64,
    components: int = 1,
    penalties: Sequence[float] = (0.001, 0.01, 0.1, 1.0),
    seed: int = 0,
    skip_inconsistent: bool = False,
    out: str | Path | None = None,
    say: Say | None = None,
) -> Comparison:
    """Train every method with the same backbone, folds and budget, and measure it on held-out rows.

    Inputs are standardised on the training rows of each fold. A fifth of the rows that are not held out are validation
    rows, which determine the best epoch (by exact match) and, for methods that add a loss, its weight.

    Args:
        x: numbers [rows, features].
        y: 0/1 [rows, labels].
        constraint: a formula, its text, a family, or the path of a file.
        labels: names of the columns of y; by default all labels of the constraint.
        methods: names from ``comparison.METHODS``; all by default.
        hidden: widths of the backbone's layers.
        folds: number of parts of the rows; each is held out once.
        epochs: largest number of passes over the training rows.
        patience: evaluations without improvement before training stops.
        lr: learning rate.
        batch_size: rows per step.
        components: number of mixture components of the SPLs.
        penalties: weights of an added loss to try in every fold (DL2, semantic loss, neuro-symbolic entropy).
        seed: seed of folds, parameters and the order of rows.
        skip_inconsistent: leave out rows whose labels break the rules, instead of raising an error.
        out: a folder for finished folds; a repeated call resumes where the last one stopped.
        say: called with a line of text whenever a fold is finished.

    Raises:
        ViolationError: if rows of y violate the constraint; the message names the first.
        SemprolaError: if a method is unknown.
        ValueError: if shapes do not fit, or there is no positive weight to try.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(60, 2))
        >>> y = np.stack([x[:, 0] > 0.5, x[:, 0] > 0], 1)
        >>> result = compare_methods(x, y, "cat -> animal", methods=["fil", "spl"], folds=2, epochs=3)
        >>> result.mean("spl", "consistent")
        100.0
    """
    formula = formula_of(constraint, "a comparison")
    names = list(formula.labels if labels is None else labels)
    chosen = list(METHODS if methods is None else methods)
    unknown = [name for name in chosen if name not in METHODS]
    if unknown:
        raise SemprolaError(f"no method {unknown[0]!r}: choose from {', '.join(METHODS)}")
    if not penalties or min(penalties) <= 0:
        raise ValueError(f"penalties must be positive weights, at least one, not {list(penalties)}")
    inputs, targets = _checked(x, y, names, folds)
    inputs, targets = _obeying(inputs, targets, formula, names, skip_inconsistent)
    settings = FitSettings(epochs=epochs, patience=patience, lr=lr, batch_size=batch_size, choose="exact")
    about = {
        "rules": str(formula)[:2000],
        "rows": len(inputs),
        "features": inputs.shape[1],
        "labels": names,
        "hidden": list(hidden),
        "folds": folds,
        "epochs": epochs,
        "patience": patience,
        "lr": lr,
        "batch_size": batch_size,
        "components": components,
        "penalties": list(penalties),
        "seed": seed,
        "versions": {"semprola": __version__, "torch": torch.__version__, "numpy": np.__version__},
        "data": hashlib.sha256(inputs.tobytes() + targets.tobytes()).hexdigest()[:16],
    }
    circuit = compile(formula, labels=names)
    task = Task(inputs, targets, formula, circuit, tuple(hidden), settings, components, seed, tuple(penalties))
    store = Store(None if out is None else Path(out), about)
    rows = [compare_one(task, method, folds, store, say or (lambda line: None)) for method in chosen]
    return Comparison(rows, about)


def _checked(x: Any, y: Any, names: Sequence[str], folds: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    inputs, targets = np.asarray(x, np.float32), np.asarray(y, np.float32)
    if inputs.ndim != 2 or targets.shape != (len(inputs), len(names)):
        raise ValueError(
            f"expected x [rows, features] and y [rows, {len(names)}], "
            f"got {list(inputs.shape)} and {list(targets.shape)}"
        )
    if not np.isfinite(inputs).all():
        raise ValueError("x has infinities or NaN: fill them in first")
    if not np.isin(targets, (0, 1)).all():
        raise ValueError("y must contain only 0 and 1")
    if not 2 <= folds <= len(inputs) // 2:
        raise ValueError(f"folds must be from 2 to half the number of rows, not {folds}")
    return inputs, targets


def _obeying(
    x: NDArray[np.float32], y: NDArray[np.float32], formula: Formula, names: Sequence[str], skip: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    wrong = ~np.asarray(formula.evaluate(y, list(names)), bool)
    if not wrong.any():
        return x, y
    if not skip:
        shown = "; ".join(str(each) for each in violations(formula, y, labels=list(names))[:_SHOWN])
        raise ViolationError(
            f"{int(wrong.sum())} of {len(y)} rows break the rules ({shown}): fix them, or pass skip_inconsistent=True"
        )
    return x[~wrong], y[~wrong]


def _number(value: float, metric: str) -> str:
    if value != value:
        return "–"
    return f"{value:.3f}" if metric in ("ece", "seconds") else f"{value:.2f}" if metric == "nll" else f"{value:.1f}"


def _spread(values: Sequence[float | None], metric: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    text = _number(mean(known), metric)
    return f"{text} ± {_number(stdev(known), metric)}" if len(known) > 1 else text
