"""What a construction may use: nodes and seconds, checked while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable

from semprola.errors import CompilationBudgetError

MOST_NODES = 8_000_000
"""Nodes before reduction that a construction makes unless told otherwise: about two gigabytes."""


class Budget:
    """Limits of one construction; made when it starts, asked as it goes.

    Args:
        what: the constraint, as errors name it.
        max_nodes: most nodes (before reduction); None is `MOST_NODES`.
        timeout: most seconds; None is no limit.
        advice: what to try when the budget runs out.
        progress: called now and then with the number of nodes so far and the seconds spent.

    Raises:
        ValueError: a limit is not a positive number.
    """

    def __init__(
        self,
        what: str,
        max_nodes: int | None = None,
        timeout: float | None = None,
        advice: str = "",
        progress: Callable[[int, float], None] | None = None,
    ) -> None:
        if max_nodes is not None and (isinstance(max_nodes, bool) or not isinstance(max_nodes, int) or max_nodes < 1):
            raise ValueError(f"max_nodes must be a whole number of at least 1, not {max_nodes!r}")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be a number of seconds above 0, not {timeout!r}")
        self.what = what
        self.max_nodes = MOST_NODES if max_nodes is None else max_nodes
        self.timeout = timeout
        self.advice = f", or {advice}" if advice else ""
        self._progress = progress
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the construction began."""
        return time.monotonic() - self._started

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time is up; None without a limit."""
        return None if self.timeout is None else max(0.0, self.timeout - self.seconds)

    def checker(self, nodes: int, where: str) -> Callable[[], None]:
        """`check` with these arguments, for a step that is told what to call now and then."""
        return lambda: self.check(nodes, where)

    def check(self, nodes: int, where: str) -> None:
        """Refuse to go on when there are too many nodes or too many seconds have passed.

        Args:
            nodes: how many there are by now.
            where: the part of the constraint that is being worked on.

        Raises:
            CompilationBudgetError: a limit is passed.
        """
        seconds = self.seconds
        if self._progress is not None:
            self._progress(nodes, seconds)
        if nodes > self.max_nodes:
            raise CompilationBudgetError(
                f"{self.what} ran out of its budget of {self.max_nodes:,} nodes; the widest part is {where}: "
                f"raise max_nodes={self.advice}"
            )
        if self.timeout is not None and seconds > self.timeout:
            raise CompilationBudgetError(
                f"{self.what} ran out of its time budget of {self.timeout:.3g} s after {nodes:,} nodes; the widest "
                f"part is {where}: raise timeout={self.advice}"
            )
