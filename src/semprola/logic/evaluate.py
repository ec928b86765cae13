"""Evaluation of a formula on data: plain NumPy over its nodes, independent of any circuit.

This is the referee against which circuits are tested, so it stays simple.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola._names import columns_by_name, is_named, named_rows
from semprola.errors import LabelError, SemprolaError
from semprola.logic.formula import Formula, Kind
from semprola.logic.leaf import Leaf
from semprola.logic.messages import brief
from semprola.logic.rules import stated

Column = NDArray[np.bool_]

# Evaluation holds one byte per node and row; taking the rows in blocks keeps this below 64 MiB.
_BLOCK_BYTES = 1 << 26


def evaluate(formula: Formula, rows: Any, labels: Sequence[str] | None = None) -> Any:
    """Return whether an assignment, or each row of an array, satisfies the formula; see ``Formula.evaluate``."""
    own = formula.labels  # the rules of variables mention the same labels, but in another order
    formula = stated(formula)
    if isinstance(rows, Mapping):
        if labels is not None:
            raise TypeError("labels= names the columns of an array; a mapping carries its own names")
        return _evaluate_mapping(formula, rows)
    if is_named(rows):
        # a data frame or a series: entries are found by name, and those that the formula does not mention are left out
        if labels is not None:
            _column_names(formula, labels)
        found = columns_by_name(rows, "rows")
        labels = _column_names(formula, [name for name in formula.labels if name in found])
        rows = named_rows({name: found[name] for name in labels}, labels, "rows")
    names = own if labels is None else _column_names(formula, labels)
    ones = _checked_bits(rows, names, labels is None)
    is_tensor = _is_tensor(ones)
    bits: Column = ones.detach().cpu().numpy() if is_tensor else ones
    table = bits.reshape(-1, len(names)) if len(names) else np.empty((_product(bits.shape[:-1]), 0), dtype=bool)
    truth = _evaluate_table(formula, table, names).reshape(bits.shape[:-1])
    if is_tensor:
        return ones.new_tensor(truth)
    return truth if truth.ndim else bool(truth)


def evaluate_columns(
    formula: Formula, columns: Mapping[str, Column], rows: int, known: Mapping[Formula, Column] | None = None
) -> Column:
    """Evaluate on columns of truth values.

    Args:
        columns: the value of every label of the formula in each row, ``[rows]``.
        known: values of parts that are not looked into ``[rows]``.

    Returns:
        One bool per row, ``[rows]``.
    """
    return _evaluate_nodes(formula.nodes(), columns, rows, known)


def _evaluate_nodes(
    nodes: list[Formula], columns: Mapping[str, Column], rows: int, known: Mapping[Formula, Column] | None = None
) -> Column:
    truth = dict(known or {})
    for node in nodes:
        if node in truth:
            continue
        kind, args = node._kind, [truth[arg] for arg in node._args]
        if kind is Kind.ATOM:
            truth[node] = columns[node.name]
        elif kind is Kind.TRUE or kind is Kind.FALSE:
            truth[node] = np.full(rows, kind is Kind.TRUE)
        elif kind is Kind.NOT:
            truth[node] = ~args[0]
        elif kind is Kind.IMPLIES:
            truth[node] = ~args[0] | args[1]
        elif kind is Kind.IFF:
            truth[node] = args[0] == args[1]
        elif kind is Kind.CARDINALITY:
            truth[node] = _count_within(args, node.bounds, rows)
        elif isinstance(node, Leaf):
            truth[node] = _evaluate_leaf(node, columns, rows)
        else:
            truth[node] = _fold(kind, args)
    return truth[nodes[-1]]


def _fold(kind: Kind, args: list[Column]) -> Column:
    operation = {Kind.AND: np.logical_and, Kind.OR: np.logical_or, Kind.XOR: np.logical_xor}[kind]
    result: Column = args[0].copy()
    for arg in args[1:]:
        operation(result, arg, out=result)
    return result


def _count_within(args: list[Column], bounds: tuple[int, int], rows: int) -> Column:
    total = np.zeros(rows, dtype=np.int64)
    for arg in args:
        total += arg
    within: Column = (bounds[0] <= total) & (total <= bounds[1])
    return within


def _evaluate_leaf(leaf: Leaf, columns: Mapping[str, Column], rows: int) -> Column:
    truth: Column = np.asarray(leaf.evaluate_columns(columns, rows))
    if truth.shape != (rows,) or truth.dtype != np.bool_:
        raise SemprolaError(
            f"{type(leaf).__name__}.evaluate_columns must return bools of shape ({rows},), "
            f"got {truth.dtype} of shape {truth.shape}"
        )
    return truth


def _evaluate_table(formula: Formula, table: Column, names: tuple[str, ...]) -> Column:
    wanted = set(formula.labels)
    positions = [(name, index) for index, name in enumerate(names) if name in wanted]
    nodes = formula.nodes()
    block = max(1, _BLOCK_BYTES // len(nodes))
    truth = np.empty(len(table), dtype=bool)
    for start in range(0, len(table), block):
        part = table[start : start + block]
        columns = {name: part[:, index] for name, index in positions}
        truth[start : start + block] = _evaluate_nodes(nodes, columns, len(part))
    return truth


def _evaluate_mapping(formula: Formula, assignment: Mapping[str, Any]) -> bool:
    missing = [name for name in formula.labels if name not in assignment]
    if missing:
        more = f" (and for {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise LabelError(f"no value for label {missing[0]!r}{more}; the formula mentions it, so give it 0 or 1")
    columns = {name: np.array([_bit(name, assignment[name])]) for name in formula.labels}
    return bool(evaluate_columns(formula, columns, 1)[0])


def _bit(name: str, value: Any) -> bool:
    try:
        if bool(value == 0) or bool(value == 1):
            return bool(value == 1)
    except (TypeError, ValueError, RuntimeError):  # arrays and tensors of several elements
        pass
    raise ValueError(f"label {name!r}: expected 0 or 1, got {brief(value)}")


def _column_names(formula: Formula, labels: Sequence[str] | None) -> tuple[str, ...]:
    if labels is None:
        return formula.labels
    if isinstance(labels, str):
        raise LabelError(f"labels must be a list of names, got the string {brief(labels)}")
    names = tuple(labels)
    position: dict[str, int] = {}
    for index, name in enumerate(names):
        if not isinstance(name, str):
            raise LabelError(f"label {index} must be a string, got {brief(name)}")
        if name in position:
            raise LabelError(f"label {name!r} names two columns, {position[name]} and {index}")
        position[name] = index
    for name in formula.labels:
        if name not in position:
            raise LabelError(f"no column for label {name!r}, which the formula mentions; add it to labels=")
    return names


def _checked_bits(rows: Any, names: tuple[str, ...], own: bool) -> Any:
    """Return ``rows == 1`` as a bool array or tensor ``[..., labels]`` after checking shape and values."""
    if not _is_tensor(rows):
        try:
            rows = np.asarray(rows)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError("rows must be an array, a tensor or a list of rows of equal length") from error
    width = rows.shape[-1] if rows.ndim else None
    if width is None:
        raise LabelError(f"expected rows of {len(names)} values or a mapping from names to values, got a single value")
    if width != len(names):
        whose = "the formula has" if own else "labels= names"
        hint = "; name the columns with labels=" if own else ""
        raise LabelError(f"the rows have {width} columns, but {whose} {len(names)}{hint}")
    ones = rows == 1
    valid = ones | (rows == 0)
    if not bool(valid.all()):
        _refuse_first_bad(rows, valid, names)
    return ones


def _refuse_first_bad(rows: Any, valid: Any, names: tuple[str, ...]) -> None:
    mask = valid.detach().cpu().numpy() if _is_tensor(valid) else valid
    place = tuple(int(index) for index in np.argwhere(~mask)[0])
    value = rows[place].item() if hasattr(rows[place], "item") else rows[place]
    where = f"row {', '.join(map(str, place[:-1]))}, " if len(place) > 1 else ""
    raise ValueError(f"{where}label {names[place[-1]]!r}: expected 0 or 1, got {brief(value)}")


def _is_tensor(value: Any) -> bool:
    # torch is not imported here; tensors are recognised by their methods.
    return all(hasattr(value, method) for method in ("detach", "cpu", "numpy", "new_tensor"))


def _product(shape: tuple[int, ...]) -> int:
    result = 1
    for extent in shape:
        result *= extent
    return result
