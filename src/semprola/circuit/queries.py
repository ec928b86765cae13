"""Queries that need no probabilities: counting models, checking rows, listing models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from semprola._names import binary_rows
from semprola.circuit.fold import Level, bits, fold, fold_arrays, levels, scope_blocks
from semprola.errors import IntractableError, LabelError, UnsatisfiableError

if TYPE_CHECKING:
    from semprola.circuit.circuit import Circuit

_MOST_BYTES = 2**31


def model_count(circuit: Circuit, given: Mapping[str, Any] | None = None) -> int:
    """The exact number of models over all variables, or over the labels for given inputs (0 if there are none)."""
    if given is not None:
        try:
            return model_count(_at(circuit, given))
        except UnsatisfiableError:
            return 0
    free = bits(~circuit.zero_suppressed)
    mentioned_free = np.zeros(circuit.num_nodes, np.int64)
    if np.any(free):
        for first, block in scope_blocks(circuit):
            inside = block & free[first : first + block.shape[1]]
            mentioned_free += np.bitwise_count(inside).sum(axis=1, dtype=np.int64)
    size = mentioned_free.tolist()
    suppressed = circuit.zero_suppressed.tolist()

    def literal(signed: int) -> tuple[int, int]:
        return 1, int(not suppressed[abs(signed) - 1])

    def product(node: int, parts: list[tuple[int, int]]) -> tuple[int, int]:
        return math.prod(count for count, _ in parts), size[node]

    def either(node: int, parts: list[tuple[int, int]]) -> tuple[int, int]:
        # each variable that only other branches mention doubles the models of this branch
        return sum(count << (size[node] - mentioned) for count, mentioned in parts), size[node]

    count, mentioned = fold(circuit, literal, product, either)
    return count << (int((~circuit.zero_suppressed).sum()) - mentioned)


def satisfied(circuit: Circuit, y: Any, given: Any = None) -> Any:
    """Whether each row of y, together with its row of given values, is a model."""
    rows = binary_rows(y, circuit.labels, "y") == 1
    batch = rows.shape[:-1]
    rows = rows.reshape(math.prod(batch), len(circuit.labels))
    if circuit.given or given is not None:
        rows = np.concatenate([rows, _given_rows(circuit, given, batch)], axis=1)
    step = max(64, 2**26 // max(1, circuit.num_nodes) // 64 * 64)
    check = _satisfied_suppressed if np.any(circuit.zero_suppressed) else _satisfied_packed
    listed = list(levels(circuit))
    parts = [check(circuit, rows[i : i + step], listed) for i in range(0, len(rows), step)]
    result = (np.concatenate(parts) if parts else np.zeros(0, bool)).reshape(batch)
    if hasattr(y, "detach"):
        # a tensor can make tensors of its own kind on its own device: there is no need to know its library
        return y.detach().new_tensor(result.astype(np.uint8).tolist()) != 0
    return bool(result) if result.ndim == 0 else result


def enumerate_models(
    circuit: Circuit, limit: int | None = None, given: Mapping[str, Any] | None = None
) -> npt.NDArray[np.uint8]:
    """Models as rows of 0/1; see :meth:`Circuit.enumerate`."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 0):
        raise ValueError(f"limit must be a whole number of models, not {limit!r}")
    if given is not None:
        try:
            return enumerate_models(_at(circuit, given), limit)
        except UnsatisfiableError:
            return np.zeros((0, circuit.num_labels), np.uint8)
    width = circuit.num_variables
    if limit is None or int(limit) * max(1, width) > _MOST_BYTES:
        count = model_count(circuit)
        wanted = count if limit is None else min(count, int(limit))
        if wanted * max(1, width) > _MOST_BYTES:
            less = "pass limit= to list some of them" if limit is None else "pass a smaller limit="
            raise IntractableError(f"the circuit has {_approximately(count)} models: {less}")
        limit = wanted
    if limit == 0:
        return np.zeros((0, width), np.uint8)
    from semprola.circuit.transforms import smooth

    return _listed_models(smooth(circuit, np.ones(width, bool)), int(limit))


def _listed_models(circuit: Circuit, limit: int) -> npt.NDArray[np.uint8]:
    """Models of a smooth circuit, bottom-up: a product joins its children's models, a sum concatenates them."""

    def literal(signed: int) -> npt.NDArray[np.uint8]:
        row = np.zeros((1, circuit.num_variables), np.uint8)
        row[0, abs(signed) - 1] = signed > 0
        return row

    def product(_: int, parts: list[npt.NDArray[np.uint8]]) -> npt.NDArray[np.uint8]:
        # variables are disjoint and absent ones are 0, so joining two rows is an element-wise or
        rows = np.zeros((1, circuit.num_variables), np.uint8)
        for part in parts:
            rows = rows[: -(-limit // len(part))]
            rows = (rows[:, None, :] | part[None, :, :]).reshape(-1, rows.shape[1])[:limit]
        return rows

    return fold(circuit, literal, product, lambda _, parts: np.concatenate(parts)[:limit])


def _satisfied_packed(circuit: Circuit, rows: npt.NDArray[np.bool_], listed: Sequence[Level]) -> npt.NDArray[np.bool_]:
    """Evaluate 64 rows at a time in the bits of one word."""
    count = len(rows)
    words = -(-count // 64)
    columns = np.zeros((circuit.num_variables, words * 64), dtype=bool)
    columns[:, :count] = rows.T
    packed = np.packbits(columns, axis=1, bitorder="little").view(np.uint64)
    value = np.full((circuit.num_nodes, words), ~np.uint64(0), dtype=np.uint64)
    leaves = np.flatnonzero(circuit.literal)
    literal = circuit.literal[leaves]
    flip = np.where(literal < 0, ~np.uint64(0), np.uint64(0))
    value[leaves] = packed[np.abs(literal) - 1] ^ flip[:, None]
    fold_arrays(circuit, value, np.bitwise_and, np.bitwise_or, listed=listed)
    unpacked = np.unpackbits(value[circuit.root].view(np.uint8), bitorder="little")
    return unpacked[:count].astype(bool)


def _satisfied_suppressed(
    circuit: Circuit, rows: npt.NDArray[np.bool_], listed: Sequence[Level]
) -> npt.NDArray[np.bool_]:
    """With zero-suppressed variables, some branch must agree with the row and mention every such variable that is 1."""
    impossible = -(2**30)
    value = np.zeros((circuit.num_nodes, len(rows)), dtype=np.int32)
    leaves = np.flatnonzero(circuit.literal)
    literal = circuit.literal[leaves]
    variable = np.abs(literal) - 1
    agrees = rows.T[variable] == (literal > 0)[:, None]
    mentions = ((literal > 0) & circuit.zero_suppressed[variable]).astype(np.int32)
    value[leaves] = np.where(agrees, mentions[:, None], impossible)
    fold_arrays(circuit, value, np.add, np.maximum, least=impossible, listed=listed)
    return np.asarray(value[circuit.root] == rows[:, circuit.zero_suppressed].sum(axis=1))


def _given_rows(circuit: Circuit, given: Any, batch: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    if given is None:
        shown = ", ".join(map(repr, circuit.given[:4])) + (", …" if len(circuit.given) > 4 else "")
        raise LabelError(f"the constraint depends on inputs {shown}: pass given=")
    rows = binary_rows(given, circuit.given, "given") == 1
    try:
        rows = np.broadcast_to(rows, (*batch, len(circuit.given)))
    except ValueError:
        raise ValueError(f"given has rows of shape {rows.shape[:-1]}, y of shape {batch}") from None
    return rows.reshape(math.prod(batch), len(circuit.given))


def _at(circuit: Circuit, given: Mapping[str, Any]) -> Circuit:
    """The circuit over the labels, once all its given variables have values."""
    for name in circuit.given:
        if name not in given:
            raise LabelError(f"no value for the given variable {name!r}")
    for name in given:
        if name not in circuit.given:
            raise LabelError(f"{name!r} is not a given variable of the circuit")
    return circuit.condition(given) if given else circuit


def _approximately(count: int) -> str:
    return str(count) if count < 10**9 else f"about 10^{int(count.bit_length() * 0.30103)}"
