"""What can be asked of a constraint without probabilities: count, membership, models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from semprola.circuit.levels import bits, levels, scopes
from semprola.errors import IntractableError, LabelError

if TYPE_CHECKING:
    from semprola.circuit.circuit import Circuit

_PRODUCT, _SUM = 1, 2
_MOST_BYTES = 2**31


def model_count(circuit: Circuit, given: Mapping[str, Any] | None = None) -> int:
    """Number of models over all variables, or over the labels for given inputs; exact."""
    if given is not None:
        return model_count(_at(circuit, given))
    return node_counts(circuit)[0]


def node_counts(circuit: Circuit) -> tuple[int, list[int]]:
    """The number of models, and that of every node over the variables that it mentions."""
    free = bits(~circuit.zero_suppressed)
    size = np.bitwise_count(scopes(circuit) & free).sum(axis=1, dtype=np.int64).tolist()
    start, children, kind = circuit.child_start.tolist(), circuit.children.tolist(), circuit.kind.tolist()
    count: list[int] = []
    for node in range(circuit.num_nodes):
        below = children[start[node] : start[node + 1]]
        total = 1
        if kind[node] == _PRODUCT:
            for child in below:
                total *= count[child]
        elif kind[node] == _SUM:
            total = sum(count[child] << (size[node] - size[child]) for child in below)
        count.append(total)
    missing = int((~circuit.zero_suppressed).sum()) - size[-1]
    return count[-1] << missing, count


def satisfied(circuit: Circuit, y: Any, given: Any = None) -> Any:
    """Whether each row of y (with its row of given values) is a model."""
    rows, wrap = _rows(y, circuit.labels, "y")
    batch = rows.shape[:-1]
    rows = rows.reshape(math.prod(batch), len(circuit.labels))
    if circuit.given or given is not None:
        rows = np.concatenate([rows, _given_rows(circuit, given, batch)], axis=1)
    step = max(64, 2**26 // max(1, circuit.num_nodes) // 64 * 64)
    check = _satisfied_suppressed if np.any(circuit.zero_suppressed) else _satisfied_packed
    parts = [check(circuit, rows[i : i + step]) for i in range(0, len(rows), step)]
    result = np.concatenate(parts) if parts else np.zeros(0, bool)
    return wrap(result.reshape(batch))


def enumerate_models(
    circuit: Circuit, limit: int | None = None, given: Mapping[str, Any] | None = None
) -> npt.NDArray[np.uint8]:
    """Models as rows of 0/1; see :meth:`Circuit.enumerate`."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ValueError(f"limit must be a whole number of models, not {limit!r}")
    if given is not None:
        return enumerate_models(_at(circuit, given), limit)
    width = circuit.num_variables
    if limit is None:
        count = model_count(circuit)
        if count * max(1, width) > _MOST_BYTES:
            raise IntractableError(f"the circuit has {_approximately(count)} models: pass limit= to list some of them")
        limit = count
    if limit == 0:
        return np.zeros((0, width), np.uint8)
    from semprola.circuit.transforms import smooth

    return _Models(smooth(circuit, np.ones(width, bool)), limit).all()


class _Models:
    """Models of every node, bottom-up: a product joins its children's, a sum lists them one after the other."""

    def __init__(self, circuit: Circuit, limit: int) -> None:
        self.circuit, self.limit = circuit, limit

    def all(self) -> npt.NDArray[np.uint8]:
        circuit = self.circuit
        start, children = circuit.child_start.tolist(), circuit.children.tolist()
        kind, literal = circuit.kind.tolist(), circuit.literal.tolist()
        uses = np.bincount(circuit.children, minlength=circuit.num_nodes).tolist()
        models: dict[int, npt.NDArray[np.uint8]] = {}
        for node in range(circuit.num_nodes):
            if literal[node]:
                row = np.zeros((1, circuit.num_variables), np.uint8)
                row[0, abs(literal[node]) - 1] = literal[node] > 0
                models[node] = row
                continue
            below = children[start[node] : start[node + 1]]
            parts = [models[child] for child in below]
            models[node] = self._join(parts) if kind[node] == _PRODUCT else np.concatenate(parts)[: self.limit]
            for child in below:
                uses[child] -= 1
                if not uses[child]:
                    models.pop(child, None)
        return models[circuit.root]

    def _join(self, parts: list[npt.NDArray[np.uint8]]) -> npt.NDArray[np.uint8]:
        # variables are disjoint and absent ones are 0, so joining two rows is an element-wise or
        rows = np.zeros((1, self.circuit.num_variables), np.uint8)
        for part in parts:
            rows = rows[: -(-self.limit // len(part))]
            rows = (rows[:, None, :] | part[None, :, :]).reshape(-1, rows.shape[1])[: self.limit]
        return rows


def _satisfied_packed(circuit: Circuit, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """64 rows at a time in the bits of one word."""
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
    for level in levels(circuit):
        for kind, reduce in ((_PRODUCT, np.bitwise_and), (_SUM, np.bitwise_or)):
            nodes, result = _reduce(circuit, level, kind, value, reduce)
            value[nodes] = result
    unpacked = np.unpackbits(value[circuit.root].view(np.uint8), bitorder="little")
    return unpacked[:count].astype(bool)


def _satisfied_suppressed(circuit: Circuit, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """With zero-suppressed variables: some branch agrees with the row and mentions every such variable that is 1."""
    impossible = -(2**30)
    value = np.zeros((circuit.num_nodes, len(rows)), dtype=np.int32)
    leaves = np.flatnonzero(circuit.literal)
    literal = circuit.literal[leaves]
    variable = np.abs(literal) - 1
    agrees = rows.T[variable] == (literal > 0)[:, None]
    mentions = ((literal > 0) & circuit.zero_suppressed[variable]).astype(np.int32)
    value[leaves] = np.where(agrees, mentions[:, None], impossible)
    for level in levels(circuit):
        for kind, reduce in ((_PRODUCT, np.add), (_SUM, np.maximum)):
            nodes, result = _reduce(circuit, level, kind, value, reduce)
            value[nodes] = np.maximum(result, impossible)
    return np.asarray(value[circuit.root] == rows[:, circuit.zero_suppressed].sum(axis=1))


def _reduce(
    circuit: Circuit, level: Any, kind: int, value: npt.NDArray[Any], reduce: np.ufunc
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    chosen = circuit.kind[level.nodes] == kind
    if not np.any(chosen):
        return level.nodes[:0], value[:0]
    counts = np.diff(np.append(level.starts, len(level.children)))
    children = level.children[np.repeat(chosen, counts)]
    starts = np.concatenate([[0], np.cumsum(counts[chosen])[:-1]])
    return level.nodes[chosen], reduce.reduceat(value[children], starts, axis=0)


def _rows(values: Any, names: tuple[str, ...], what: str) -> tuple[npt.NDArray[np.bool_], Any]:
    """0/1 rows as bools, and how to hand back a result of the caller's kind."""

    def wrap(result: npt.NDArray[np.bool_]) -> Any:
        if hasattr(values, "detach"):
            import torch

            return torch.from_numpy(np.array(result)).to(values.device)
        return bool(result) if result.ndim == 0 else result

    array = np.asarray(_plain(values) if hasattr(values, "detach") else values)
    if array.ndim == 0 or array.shape[-1] != len(names):
        width = "a scalar" if array.ndim == 0 else f"{array.shape[-1]} columns"
        raise LabelError(f"{what} has {width}, the circuit has {len(names)} columns: {_listed(names)}")
    if not np.all((array == 0) | (array == 1)):
        raise ValueError(f"{what} must hold 0 and 1 only")
    return array.astype(bool), wrap


def _plain(tensor: Any) -> Any:
    """A tensor that numpy can read: it knows no bfloat16."""
    tensor = tensor.detach().cpu()
    return tensor.float() if tensor.is_floating_point() else tensor


def _given_rows(circuit: Circuit, given: Any, batch: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    if given is None:
        raise LabelError(f"the constraint speaks of inputs {_listed(circuit.given)}: pass given=")
    rows, _ = _rows(given, circuit.given, "given")
    try:
        rows = np.broadcast_to(rows, (*batch, len(circuit.given)))
    except ValueError:
        raise ValueError(f"given has rows of shape {rows.shape[:-1]}, y of shape {batch}") from None
    return rows.reshape(math.prod(batch), len(circuit.given))


def _at(circuit: Circuit, given: Mapping[str, Any]) -> Circuit:
    """The circuit over the labels for values of all its given variables."""
    for name in circuit.given:
        if name not in given:
            raise LabelError(f"no value for the given variable {name!r}")
    for name in given:
        if name not in circuit.given:
            raise LabelError(f"{name!r} is not a given variable of the circuit")
    return circuit.condition(given) if given else circuit


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(repr(name) for name in names[:4])
    return shown + (", …" if len(names) > 4 else "")


def _approximately(count: int) -> str:
    return str(count) if count < 10**9 else f"about 10^{int(count.bit_length() * 0.30103)}"
