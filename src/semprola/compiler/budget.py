"""What a compilation may use, and how it tells what it is doing."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from semprola.circuit.sdd_bridge import Limits
from semprola.errors import CompilationBudgetError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_QUIET_SECONDS = 1.0
_REPORT_SECONDS = 0.1
_WEIGH_SECONDS = 0.02


@dataclass(frozen=True)
class Progress:
    """How far a compilation is: what it does, how many nodes it holds, for how long it has run."""

    phase: str
    nodes: int
    seconds: float


class Budget:
    """Time, nodes and memory for one compilation; the clock starts when it is made.

    Args:
        timeout: seconds, or None.
        max_nodes: nodes of the result, and nodes that a back end may hold at any one time; or None.
        memory: bytes, a text such as "2GB" or "512 MiB", or None.
        progress: None, True (a line on a terminal after a second) or a function of a :class:`Progress`.

    Raises:
        ValueError: one of them is not of this kind.

    Example:
        >>> Budget(memory="2GB").memory
        2000000000
    """

    def __init__(
        self,
        timeout: float | None = None,
        max_nodes: int | None = None,
        memory: int | str | None = None,
        progress: bool | Callable[[Progress], None] | None = None,
    ) -> None:
        self.timeout = _positive(timeout, "timeout", "a number of seconds")
        self.max_nodes = _whole(max_nodes, "max_nodes", "a whole number of nodes")
        self.memory = _bytes(memory)
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise ValueError(f"progress must be None, True or a function, not {progress!r}")
        self._listener = progress
        self._line = False
        self._phase, self._reported = "", 0.0
        self._weighed = 0.0
        self._size = _resident()
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the compilation began."""
        return time.monotonic() - self._started

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time is up; None without a limit."""
        return None if self.timeout is None else max(0.0, self.timeout - self.seconds)

    def limits(self, most: int | None = None) -> Limits:
        """What is left, in the form that the PySDD bridge takes; `most` bounds the nodes further."""
        bounds = [bound for bound in (self.max_nodes, most) if bound is not None]
        return Limits(self.seconds_left, min(bounds, default=None), self.memory)

    def check(self, phase: str, nodes: int = 0) -> None:
        """Report progress and stop if the time or the memory is up.

        Raises:
            CompilationBudgetError: so.
        """
        self.watch(phase, nodes)
        if self.timeout is not None and self.seconds > self.timeout:
            raise self.error("time")

    def watch(self, phase: str, nodes: int) -> None:
        """Report progress and stop if this process has grown by more than the memory allowed, where that is known.

        Raises:
            CompilationBudgetError: so.
        """
        self.report(phase, nodes)
        if self.memory is None or self._size is None or self.seconds - self._weighed < _WEIGH_SECONDS:
            return
        self._weighed = self.seconds
        if (_resident() or 0) - self._size > self.memory:
            raise self.error("memory")

    def check_result(self, nodes: int) -> None:
        """Stop if a finished circuit has too many nodes."""
        if self.max_nodes is not None and nodes > self.max_nodes:
            raise CompilationBudgetError(
                f"the compiled circuit has {nodes:,} nodes, more than max_nodes={self.max_nodes:,}: raise max_nodes=, "
                "or use a family of semprola.constraints"
            )
        self.check("checking the result", nodes)

    def report(self, phase: str, nodes: int) -> None:
        """Tell whoever listens, a new phase at once, else a few times a second."""
        if phase == self._phase and self.seconds - self._reported < _REPORT_SECONDS:
            return
        self._phase, self._reported = phase, self.seconds
        if callable(self._listener):
            self._listener(Progress(phase, nodes, self.seconds))
        elif self._listener is True and self.seconds > _QUIET_SECONDS and sys.stderr.isatty():
            self._line = True
            sys.stderr.write(f"\r\x1b[K{phase}: {nodes:,} nodes, {self.seconds:.1f} s")
            sys.stderr.flush()

    def close(self) -> None:
        """Clear the progress line."""
        if self._line:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._line = False

    def error(self, which: str) -> CompilationBudgetError:
        """The error that says which budget ran out ("time", "nodes" or "memory") and what to try."""
        if which == "time":
            spent, raise_it = f"its time budget of {self.timeout:g} s", "timeout="
        elif which == "nodes":
            spent, raise_it = f"its budget of {self.max_nodes or 0:,} nodes", "max_nodes="
        elif self.memory is not None:
            spent, raise_it = f"its memory budget of {self.memory:,} bytes", "memory="
        else:
            spent, raise_it = "memory", "the machine's memory"
        return CompilationBudgetError(
            f"the compilation ran out of {spent} after {self.seconds:.1f} s: raise {raise_it}, "
            "use a family of semprola.constraints, or split the constraint"
        )


def _resident() -> int | None:
    """Bytes of memory that this process holds, where the system says so."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError, IndexError):
        return None


def _positive(value: Any, name: str, what: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ValueError(f"{name} must be {what} above 0, not {value!r}")
    return None if value == float("inf") else float(value)


def _whole(value: Any, name: str, what: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < 1:
        raise ValueError(f"{name} must be {what} above 0, not {value!r}")
    return int(value)


def _bytes(value: Any) -> int | None:
    if not isinstance(value, str):
        return _whole(value, "memory", "a whole number of bytes, or a text such as '2GB',")
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]I?|)B?\s*", value.upper())
    amount = int(float(match[1]) * _UNITS[match[2]]) if match else 0
    if amount < 1:
        raise ValueError(f"memory must be a number of bytes or a text such as '2GB' or '512 MiB', not {value!r}")
    return amount
