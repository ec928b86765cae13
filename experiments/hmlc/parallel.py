"""Calls of one function, in this process or in several at a time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from typing import Any

import torch


def finished(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], processes: int) -> Iterator[Any]:
    """Number and result of each call, as soon as it has finished.

    Args:
        function: what to call; of a module, if there are several processes.
        calls: its arguments.
        processes: how many calls at a time.
    """
    if processes == 1:
        for number, call in enumerate(calls):
            yield number, function(*call)
        return
    # a fresh interpreter for each worker: forking one that has used torch's threads may hang
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        waiting = {pool.submit(function, *call): number for number, call in enumerate(calls)}
        try:
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
