"""What an estimator learns to predict: the columns of y or one class per row, and the circuit over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from semprola._names import row_names
from semprola.circuit import Circuit
from semprola.compiler import compile
from semprola.compiler.sources import as_constraint
from semprola.compiler.splitting import Split
from semprola.constraints import hierarchy
from semprola.distributions import violations
from semprola.distributions.conflicts import impossible_in
from semprola.errors import LabelError, SemprolaError
from semprola.logic import TRUE, Formula, one_hot
from semprola.training.targets import label_table

_NAMED = 3
"""Number of rows that an error names."""


@dataclass(frozen=True)
class Targets:
    """The labels of an estimator.

    Args:
        classes: the classes, or one array [0, 1] per label.
    """

    labels: tuple[str, ...]
    classes: Any
    circuit: Circuit | Split
    is_multilabel: bool

    def table(self, y: Any) -> NDArray[np.float32]:
        """y as a table of 0, 1 and NaN [rows, labels]."""
        y = _with_shape(y)
        if not _is_one_class(y, self.is_multilabel):
            return label_table(y, self.labels)[0]
        if self.is_multilabel:
            raise LabelError("y has one class per row, but the constraint needs one column per label")
        y = _column(y, warn=True)
        unknown = np.setdiff1d(y, self.classes)
        if len(unknown):
            raise ValueError(f"y has the class {unknown[0]!r}, which is not one of the known classes")
        table: NDArray[np.float32] = (y[:, None] == self.classes[None, :]).astype(np.float32)
        return table

    def rows(
        self, X: NDArray[np.float64], y: Any, weight: NDArray[np.float32] | None, *, are_named: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Inputs, labels and weights of the rows whose weight is not zero, as tensors.

        Args:
            X: inputs [rows, features].
            weight: weights of the rows [rows].
        """
        table = self.table(y)
        if len(table) != len(X):
            raise ValueError(f"X has {len(X)} rows, but y has {len(table)}")
        if weight is not None and weight.min() < 0:
            raise ValueError("sample_weight must not be negative")
        counted = np.full(len(X), True) if weight is None else weight > 0
        if not counted.any():
            raise ValueError("every row has sample_weight 0")
        wrong = impossible_in(self.circuit, table) & counted
        if wrong.any():
            shown = ", ".join(self.labels[:6]) + (", …" if len(self.labels) > 6 else "")
            hint = "" if are_named else f"; the columns of y are taken as {shown}: if they are others, pass labels="
            raise SemprolaError(_broken_text(self.circuit, table, wrong, row_names(y)) + hint)
        x = torch.from_numpy(X[counted].astype(np.float32))
        return x, torch.from_numpy(table[counted]), None if weight is None else torch.from_numpy(weight[counted])


def new_targets(y: Any, constraint: Any, labels: Any, classes: Any, budget: Mapping[str, Any]) -> Targets:
    """What y and the parameters of an estimator ask for."""
    y = _with_shape(y)
    if _is_one_class(y, labels is not None or constraint is not None):
        if constraint is not None:
            raise LabelError("y has one class per row, but the constraint needs one column per label")
        if labels is not None:
            raise LabelError(
                "y has one class per row, so its classes are the labels: leave out labels=, or pass a column per label"
            )
        column = _column(y, warn=False)  # `table` warns
        known = np.unique(column if classes is None else classes)
        names = tuple(str(name) for name in known)
        return Targets(names, known, compile(one_hot(names), labels=names), False)
    table, found = label_table(y, None if labels is None else [str(name) for name in labels])
    if isinstance(constraint, Split) and not constraint.is_exact:
        return _over_split(table, found, constraint)
    rules = constraint_of(constraint)
    if found is None and rules is TRUE:
        found = tuple(str(i) for i in range(table.shape[1]))
    circuit = compile(rules, labels=found, **budget)
    return Targets(circuit.labels, [np.array([0, 1]) for _ in circuit.labels], circuit, True)


def _over_split(table: NDArray[np.float32], found: Sequence[str] | None, split: Split) -> Targets:
    """The labels of a split, which has them in its own order."""
    if found is not None and tuple(found) != split.labels:
        unknown = sorted({*found}.symmetric_difference(split.labels))
        reason = f"{unknown[0]!r} is in only one of them" if unknown else "their order differs"
        raise LabelError(f"the labels of y are not those of the split: {reason}: pass sp.split(rules, labels=[…])")
    partial = np.flatnonzero(np.isnan(table).any(1))
    if len(partial):
        raise LabelError(
            f"y has NaN in {len(partial)} rows, the first is row {partial[0]}: a split learns from rows whose labels "
            "are all observed, only one circuit from others"
        )
    return Targets(split.labels, [np.array([0, 1]) for _ in split.labels], split, True)


def constraint_of(source: Any) -> Formula | Circuit:
    """What an estimator takes as its constraint, as a formula or a circuit; None is no rules."""
    if source is None:
        return TRUE
    if isinstance(source, Split) and source.is_exact:
        return source.circuits[0]
    if isinstance(source, Sequence) and not isinstance(source, str):
        if all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in source):
            return hierarchy([tuple(pair) for pair in source])
        raise TypeError(f"a list as a constraint must contain (child, parent) pairs, not {source!r:.60}")
    return as_constraint(source)


def _broken_text(
    circuit: Circuit | Split, y: NDArray[np.float32], wrong: NDArray[np.bool_], index: list[Any] | None
) -> str:
    """Says which rows violate the constraint, and how the first few of them do.

    Args:
        y: 0, 1 and NaN [rows, labels].
        wrong: which rows violate the constraint [rows]; at least one.
    """
    rows = np.flatnonzero(wrong)
    found = {each.row: each for each in reversed(violations(circuit, y[rows[:_NAMED]]))}
    shown = [f"row {rows[i] if index is None else index[rows[i]]}: {each.reason}" for i, each in sorted(found.items())]
    more = ["…"] if len(rows) > _NAMED else []
    return f"{len(rows)} of {len(y)} rows of y violate the constraint: {'; '.join([*shown, *more])}"


def _with_shape(y: Any) -> Any:
    return y if hasattr(y, "shape") else np.asarray(y)


def _is_one_class(y: Any, has_labels: bool) -> bool:
    """Whether y has one class per row; a single column is a table of labels if there are labels."""
    return len(y.shape) == 1 or (len(y.shape) == 2 and y.shape[1] == 1 and not has_labels)


def _column(y: Any, warn: bool) -> NDArray[Any]:
    column: NDArray[Any] = column_or_1d(y, warn=warn)
    if column.dtype.kind == "f":
        assert_all_finite(column, input_name="y")
    check_classification_targets(column)
    return column
