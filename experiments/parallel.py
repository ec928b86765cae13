"""Calls of one function: in this process, in several at a time, or on a cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from semprola.errors import SemprolaError


def finished(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], processes: int, *, ray: bool = False
) -> Iterator[Any]:
    """Number and result of each call, as soon as it has finished.

    When this process is interrupted or killed, its workers end too.

    Args:
        function: what to call; of a module, if there are several processes.
        calls: its arguments.
        processes: how many calls at a time.
        ray: let Ray do the calls, as many at a time as it has cores: on the cluster that ``RAY_ADDRESS`` names, or on
            this machine. Every machine needs this checkout in the same place, and the same packages.

    Raises:
        SemprolaError: Ray is not installed.
    """
    if ray:
        yield from _on_cluster(function, calls)
        return
    if processes == 1:
        for number, call in enumerate(calls):
            yield number, function(*call)
        return
    # a fresh interpreter for each worker: forking one that has used torch's threads may hang
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_start_worker) as pool:
        with _deaf_to_interrupts():
            waiting = {pool.submit(function, *call): number for number, call in enumerate(calls)}
        try:
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()  # what they have finished is on disk
            raise


def _on_cluster(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    try:
        import ray
    except ImportError:
        raise SemprolaError("a cluster needs Ray: pip install 'semprola[tune]'") from None
    if not calls:
        return
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    remote = ray.remote(num_cpus=1)(function)
    waiting = {remote.remote(*call): number for number, call in enumerate(calls)}
    try:
        while waiting:
            done, _ = ray.wait(list(waiting))
            for reference in done:
                yield waiting.pop(reference), ray.get(reference)
    finally:
        for reference in waiting:
            ray.cancel(reference)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started in this block ignore Ctrl-C from the beginning; this process handles it and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _start_worker() -> None:
    """Workers share the cores, so each uses one thread; and they end with the process that started them."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # a killed parent cannot tell its workers to stop
