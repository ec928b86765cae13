"""Training rows as minibatches whose order depends only on the seed and the step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor


class Batch(NamedTuple):
    """Rows: inputs x [rows, ...], labels y [rows, labels], the constraint's inputs, and one weight per row."""

    x: Tensor
    y: Tensor
    given: Tensor | None = None
    weight: Tensor | None = None

    def take(self, index: Any) -> Batch:
        """Some of the rows."""
        return Batch(*(None if part is None else part[index] for part in self))  # type: ignore[arg-type]

    def to(self, device: torch.device) -> Batch:
        """The same rows on a device."""
        return Batch(*(None if part is None else part.to(device) for part in self))  # type: ignore[arg-type]


class Source(Protocol):
    """Where batches come from."""

    def batches_per_epoch(self) -> int:
        """Number of steps per epoch."""

    def from_step(self, step: int) -> Iterator[Batch]:
        """The batches of this step and all later ones, endlessly."""


def as_batch(rows: Any, name: str = "rows") -> Batch:
    """The batch of a tuple (x, y), (x, y, given) or (x, y, given, weight) of tensors or arrays, checked.

    Args:
        rows: the tuple.
        name: what errors call it.

    Raises:
        ValueError: if it is something else, the parts have different numbers of rows, or a weight is negative, NaN or
            infinite.
    """
    if not isinstance(rows, tuple | list) or not 2 <= len(rows) <= 4:
        raise ValueError(f"{name} must be a tuple (x, y), (x, y, given) or (x, y, given, weight)")
    parts = [None if part is None else torch.as_tensor(part) for part in rows]
    if parts[0] is None or parts[1] is None:
        raise ValueError(f"{name} must have inputs x and labels y")
    batch = Batch(*parts)  # type: ignore[arg-type]
    sizes = {name: len(part) for name, part in batch._asdict().items() if part is not None}
    if len(set(sizes.values())) > 1:
        raise ValueError("different numbers of rows: " + ", ".join(f"{name} has {n}" for name, n in sizes.items()))
    if batch.y.dim() != 2:
        raise ValueError(f"y must have shape [rows, labels], not {list(batch.y.shape)}")
    if batch.weight is not None:
        _check_weights(batch.weight, name)
    return batch


def as_source(rows: Any, batch_size: int | None, seed: int) -> Source:
    """Minibatches from a tuple of tensors, or from a DataLoader (or any iterable with a length) of such tuples."""
    source: Source
    if isinstance(rows, tuple | list):
        batch = as_batch(rows)
        if len(batch.x) == 0:
            raise ValueError("there are no training rows")
        source = _Tensors(batch, batch_size, seed)
    elif isinstance(rows, Iterable) and isinstance(rows, Sized) and not isinstance(rows, Tensor):
        if len(rows) == 0:
            raise ValueError("the data loader has no batches")
        source = _Loader(rows, seed)
    else:
        raise ValueError("training rows must be a tuple of tensors or a DataLoader with a length")
    return source


def mixed(seed: int, number: int) -> int:
    """A seed made from two numbers."""
    return (seed * 1_000_003 + number * 7_919 + 12_345) % (1 << 63)


def _check_weights(weight: Tensor, name: str) -> None:
    """Refuse weights that would turn a likelihood into something else."""
    if weight.dim() != 1:
        raise ValueError(f"weights of {name} must have shape [rows], not {list(weight.shape)}")
    wrong = ~((weight >= 0) & (weight < float("inf")))  # NaN compares as false
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ValueError(f"weights of {name} must be finite and not negative, but row {row} has {float(weight[row])}")


class _Tensors:
    """Consecutive parts of a permutation; a new permutation is drawn for every epoch."""

    def __init__(self, rows: Batch, size: int | None, seed: int) -> None:
        self._rows, self._seed = rows, seed
        self._size = len(rows.x) if size is None else min(size, len(rows.x))

    def batches_per_epoch(self) -> int:
        return -(-len(self._rows.x) // self._size)

    def from_step(self, step: int) -> Iterator[Batch]:
        parts = self.batches_per_epoch()
        epoch, part = divmod(step, parts)
        while True:
            if parts == 1:
                yield self._rows
                continue
            generator = torch.Generator().manual_seed(mixed(self._seed, -1 - epoch))
            order = torch.randperm(len(self._rows.x), generator=generator)
            for i in range(part, parts):
                yield self._rows.take(order[i * self._size : (i + 1) * self._size])
            epoch, part = epoch + 1, 0


class _Loader:
    """The batches of a data loader; a resumed run skips those already used."""

    def __init__(self, loader: Any, seed: int) -> None:
        self._loader, self._seed = loader, seed

    def batches_per_epoch(self) -> int:
        return len(self._loader)

    def from_step(self, step: int) -> Iterator[Batch]:
        epoch, part = divmod(step, self.batches_per_epoch())
        while True:
            sampler: Any = getattr(self._loader, "sampler", None)
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)
            torch.default_generator.manual_seed(mixed(self._seed, -1 - epoch))  # a shuffling loader draws from it
            count = 0
            for rows in self._loader:
                count += 1
                if count > part:
                    yield as_batch(rows)
            if count == 0:
                raise ValueError("the data loader has no batches")
            epoch, part = epoch + 1, 0
