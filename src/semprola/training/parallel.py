"""Data-parallel training: each process takes a part of every batch, and gradients are those of the whole batch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from semprola.training.data import Batch


class Team:
    """The processes that train together: those of torchrun, or this one alone."""

    def __init__(self) -> None:
        self.size = dist.get_world_size() if _started() else 1
        self.rank = dist.get_rank() if _started() else 0

    @property
    def leads(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module with gradients averaged over the processes."""
        if self.size == 1:
            return module
        return nn.parallel.DistributedDataParallel(module)

    def share(self, batch: Batch, whole: bool) -> tuple[Batch, float]:
        """This process's rows of a batch, and a factor for its loss.

        With these factors, the average of the processes' losses is the mean loss over all rows.

        Args:
            batch: the rows of all processes, or only of this one if a sampler has divided them.
            whole: whether the batch has the rows of all processes.
        """
        if self.size == 1:
            return batch, 1.0
        mine = batch.take(slice(self.rank, None, self.size)) if whole else batch
        if len(mine.x) == 0:  # every process must take part in the exchange of gradients
            mine = batch.take(slice(0, 1))._replace(weight=torch.zeros(1))
        size = float(len(mine.x)) if mine.weight is None else float(mine.weight.sum())
        total = torch.tensor(size, dtype=torch.float64)
        dist.all_reduce(total)
        return mine, self.size * size / max(float(total), 1e-30)

    def total(self, value: float) -> float:
        """The mean of a number over the processes."""
        if self.size == 1:
            return value
        total = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(total)
        return float(total) / self.size

    def agree(self, flag: bool) -> bool:
        """The flag of the first process."""
        if self.size == 1:
            return flag
        told: Tensor = torch.tensor(int(flag))
        dist.broadcast(told, 0)
        return bool(told)


@contextmanager
def started() -> Iterator[Any]:
    """Join the processes that torchrun has started, unless the program has done so itself."""
    if _started() or int(os.environ.get("WORLD_SIZE", "1")) == 1 or not dist.is_available():
        yield Team()
        return
    dist.init_process_group("nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo")
    try:
        yield Team()
    finally:
        dist.destroy_process_group()


def _started() -> bool:
    return dist.is_available() and dist.is_initialized()
