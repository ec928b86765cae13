"""Limits and progress reports of a compilation: one budget for the compiler, families and child processes."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from semprola.errors import CompilationBudgetError

Resource = Literal["time", "nodes", "memory"]

MOST_NODES = 8_000_000
"""The default limit on the nodes that a family's construction makes before reduction: about two gigabytes."""

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_QUIET_SECONDS, _PATIENT_SECONDS, _LINE_SECONDS = 1.0, 4.0, 30.0
"""Seconds before a compilation reports that it takes long (progress=True, progress=None), and between two lines."""
_LONGEST_NAME = 80
"""Characters of a constraint's text in progress and errors: a sum of a hundred variables would fill the screen."""
_REPORT_SECONDS = 0.1
_WEIGH_SECONDS = 0.02
_BYTES_PER_NODE = 8
"""The least that a construction holds per node; what it really holds is measured where the system allows it."""


@dataclass(frozen=True)
class Progress:
    """How far a compilation has got.

    Attributes:
        phase: what it is doing.
        nodes: how many nodes it holds.
        seconds: how long it has been running.
        details: further numbers that a back end reports, such as the decisions of a search.
    """

    phase: str
    nodes: int
    seconds: float
    details: Mapping[str, int] = field(default_factory=dict)


class Budget:
    """Time, nodes and memory for one compilation; the clock starts when it is made.

    Args:
        timeout: seconds, or None.
        max_nodes: the most nodes that the result, and the compiler at any time, may have; or None.
        memory: bytes, a text such as "2GB" or "512 MiB", or None.
        progress: True shows a line on a terminal after a second. None does so after a few seconds, and without a
            terminal prints a line from time to time. False is silent. A function is called with a :class:`Progress`.

    Attributes:
        max_decisions: steps that a search may take, or None; running out of them counts as running out of nodes.
        what: what is being compiled, for error messages.
        tried: the back ends that have been started, for error messages.
        is_chosen: whether the caller chose the back end, and "auto" may do better.

    Raises:
        ValueError: an argument has the wrong form.

    Example:
        >>> Budget(memory="2GB").memory
        2000000000
        >>> Budget(max_nodes=10).part("the rule", "shorten it").check("label 'a'", 11)
        Traceback (most recent call last):
        semprola.errors.CompilationBudgetError: the rule ran out of its budget of 10 nodes; the widest part is label \
'a': raise max_nodes=, or shorten it
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
        self.max_decisions: int | None = None
        self.what = "the compilation"
        self.tried: list[str] = []
        self.is_chosen = False
        self._advice = ""
        self._is_part = False
        self._by_memory = False
        self._reporter = _Reporter(progress)
        self._scale = _Scale()
        self._started = time.monotonic()
        self._phase, self._nodes = "", 0

    @property
    def seconds(self) -> float:
        """Seconds since the compilation began."""
        return time.monotonic() - self._started

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time is up; None if there is no limit."""
        return None if self.timeout is None else max(0.0, self.timeout - self.seconds)

    def part(self, what: str, advice: str = "", most: int | None = MOST_NODES) -> Budget:
        """The budget for one construction within a compilation: it shares clock and limits but has its own errors.

        Args:
            what: the constraint that is being built, for error messages.
            advice: what to try when the budget runs out.
            most: the most nodes it may have, unless the budget allows fewer.
        """
        made = copy.copy(self)
        shown = what if len(what) <= _LONGEST_NAME else f"{what[:_LONGEST_NAME]}…"
        made.what, made._advice, made._is_part = shown, advice, True
        by_memory = None if self.memory is None else max(1, self.memory // _BYTES_PER_NODE)
        bounds = [bound for bound in (self.max_nodes, by_memory, most) if bound is not None]
        made.max_nodes = min(bounds, default=None)
        made._by_memory = made.max_nodes is not None and made.max_nodes == by_memory != self.max_nodes
        return made

    def limited(self, most: int, decisions: int | None = None) -> Budget:
        """The same budget with at most this many nodes and search steps, for an attempt that may fail."""
        made = copy.copy(self)
        made.max_decisions = decisions
        made.max_nodes = most if self.max_nodes is None else min(most, self.max_nodes)
        return made

    def within(self, seconds: float) -> Budget:
        """The same budget with at most this many seconds from now, for a step that can be skipped."""
        made = copy.copy(self)
        until = self.seconds + seconds
        made.timeout = until if self.timeout is None else min(until, self.timeout)
        return made

    def check(self, phase: str, nodes: int = 0, decisions: int = 0) -> None:
        """Report progress, and stop if anything is used up.

        Args:
            phase: what is being done ("compiling with PySDD"), or for a part how far it has got ("label 'x'").
            nodes: how many nodes there are so far.
            decisions: how many steps a search has taken.

        Raises:
            CompilationBudgetError: time, nodes or memory ran out.
        """
        self.watch(phase, nodes)
        if self.max_nodes is not None and nodes > self.max_nodes:
            raise self.error("memory" if self._by_memory else "nodes", nodes, decisions)

    def checker(self, phase: str, nodes: int = 0) -> Callable[[], None]:
        """`check` with these arguments, for a step that takes a function to call from time to time."""
        return lambda: self.check(phase, nodes)

    def watch(self, phase: str, nodes: int = 0, details: Mapping[str, int] | None = None) -> None:
        """Like `check`, but without a limit on nodes: here they include garbage, and the back end has to count them."""
        self._phase, self._nodes = phase, nodes
        shown = f"building {self.what} ({phase})" if self._is_part else phase
        self._reporter.report(shown, nodes, self.seconds, details or {})
        if self.memory is not None and self._scale.growth(self.seconds) > self.memory:
            raise self.error("memory")
        if self.timeout is not None and self.seconds > self.timeout:
            raise self.error("time")

    def check_result(self, nodes: int) -> None:
        """Stop if a finished circuit has too many nodes."""
        if self.max_nodes is not None and nodes > self.max_nodes:
            raise CompilationBudgetError(
                f"the compiled circuit has {nodes:,} nodes, more than max_nodes={self.max_nodes:,}: raise max_nodes=",
                resource="nodes",
                limit=self.max_nodes,
                spent=nodes,
                phase="checking the result",
                nodes=nodes,
                tried=tuple(self.tried),
            )
        self.check("checking the result", nodes)

    def close(self) -> None:
        """Clear the progress line."""
        self._reporter.close()

    def error(self, resource: Resource, nodes: int | None = None, decisions: int = 0) -> CompilationBudgetError:
        """The error that says what ran out, how far the compilation got, and what to try.

        Args:
            resource: what ran out.
            nodes: how many nodes there were; by default the number last reported.
            decisions: how many steps a search had taken.
        """
        count = self._nodes if nodes is None else nodes
        seconds = self.seconds
        limit: float | None = {"time": self.timeout, "nodes": self.max_nodes, "memory": self.memory}[resource]
        spent = {"time": seconds, "nodes": count}.get(resource)
        if limit is None:
            budget, option = "memory", "the machine's memory"
        elif resource == "time":
            budget, option = f"its time budget of {limit:g} s", "timeout="
        elif resource == "nodes":
            budget, option = f"its budget of {limit:,} nodes", "max_nodes="
        else:
            budget, option = f"its memory budget of {limit:,} bytes", "memory="
        return CompilationBudgetError(
            f"{self.what} ran out of {budget}{self._how_far(resource, count, seconds)}: raise {option}{self._or_try()}",
            resource=resource,
            limit=limit,
            spent=spent,
            phase=self._phase,
            nodes=count,
            tried=tuple(self.tried),
            decisions=decisions,
        )

    def _how_far(self, resource: Resource, nodes: int, seconds: float) -> str:
        if self._is_part:
            made = f" after {nodes:,} nodes" if resource == "time" else ""
            return f"{made}; the widest part is {self._phase}"
        made = f" with {nodes:,} nodes" if nodes and resource != "nodes" else ""
        return f" after {seconds:.1f} s{made}, while {self._phase or 'beginning'}"

    def _or_try(self) -> str:
        if self._advice:
            return f", or {self._advice}"
        if self._is_part:
            return ""
        tried = f" (tried: {', '.join(dict.fromkeys(self.tried))})" if self.tried else ""
        return f", or try backend='auto'{tried}" if self.is_chosen else tried


class _Reporter:
    """Reports a new phase at once, and progress within a phase a few times per second.

    Unless it is silent, it says on standard error that a compilation takes long. On a terminal it keeps one line up to
    date; elsewhere it prints a line from time to time.
    """

    def __init__(self, listener: bool | Callable[[Progress], None] | None) -> None:
        self._listener = listener
        self._shown = False
        self._phase, self._reported = "", 0.0
        self._next = _QUIET_SECONDS if listener else _PATIENT_SECONDS

    def report(self, phase: str, nodes: int, seconds: float, details: Mapping[str, int]) -> None:
        if phase == self._phase and seconds - self._reported < _REPORT_SECONDS:
            return
        self._phase, self._reported = phase, seconds
        if callable(self._listener):
            self._listener(Progress(phase, nodes, seconds, details))
        elif self._listener is not False and seconds >= self._next and sys.stderr is not None:
            self._tell(f"{phase}: {nodes:,} nodes, {seconds:.1f} s", seconds)

    def _tell(self, text: str, seconds: float) -> None:
        with contextlib.suppress(OSError, ValueError):  # standard error may be closed
            if sys.stderr.isatty():
                self._shown = True
                sys.stderr.write(f"\r\x1b[K{text}")
            elif self._listener is None:
                self._next = seconds + _LINE_SECONDS
                sys.stderr.write(f"semprola: still compiling a constraint ({text})\n")
            sys.stderr.flush()

    def close(self) -> None:
        if self._shown:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            self._shown = False


class _Scale:
    """How much this process has grown, if the system can tell; not measured too often."""

    def __init__(self) -> None:
        self._size = _resident()
        self._weighed, self._growth = 0.0, 0

    def growth(self, now: float) -> int:
        if self._size is not None and now - self._weighed >= _WEIGH_SECONDS:
            self._weighed = now
            self._growth = (_resident() or 0) - self._size
        return self._growth


def _resident() -> int | None:
    """Bytes of memory that this process holds; None if the system cannot tell."""
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
