"""Limits in processor time, for a machine that others use, too."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from unittest import mock

_LOOK_SECONDS = 0.005


@contextmanager
def stopped_after(seconds: float, stop: Callable[[], Any]) -> Iterator[None]:
    """Call `stop` once this process has used so many seconds of processor time, and again until it has stopped."""
    done, until = threading.Event(), time.process_time() + seconds

    def watch() -> None:
        while not done.wait(_LOOK_SECONDS):
            if time.process_time() > until:
                stop()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def on_processor_time() -> Iterator[None]:
    """The search for modes measures its limits in processor time, and so does the solver that it calls."""
    search, finisher = (import_module(f"semprola.distributions.pool.{name}") for name in ("search", "finisher"))
    finish = finisher.Finisher.finish

    def timed(self: Any, odds: Any, fixed: Any, known: Any, seconds: float) -> Any:
        kinds = finisher.cp_sat()
        made: list[Any] = []
        with (
            mock.patch.object(kinds, "CpSolver", side_effect=_recorded(kinds.CpSolver, made)),
            stopped_after(seconds, lambda: [solver.StopSearch() for solver in made]),
        ):
            return finish(self, odds, fixed, known, 3600.0)

    with mock.patch.object(time, "monotonic", time.process_time), mock.patch.object(search.Finisher, "finish", timed):
        yield


def _recorded(kind: Any, made: list[Any]) -> Callable[[], Any]:
    def make() -> Any:
        made.append(kind())
        return made[-1]

    return make
