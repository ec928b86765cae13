"""The progress of a training run: a bar in a terminal (with rich), plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from semprola.training.settings import Look

_SECONDS_BETWEEN_LINES = 15.0


class ProgressBar:
    """Shows the step, the loss, the exact match on validation rows, the throughput and the time left.

    Use it as a context manager.

    Args:
        title: the name of the run.
        steps: largest number of steps.
        quiet: show nothing.
    """

    def __init__(self, title: str = "", steps: int = 0, *, quiet: bool = False) -> None:
        self.title, self.steps, self.quiet = title, steps, quiet
        self._bar: Any = None
        self._task: Any = None
        self._last = time.monotonic()
        self._first: tuple[float, int] | None = None

    def __enter__(self) -> ProgressBar:
        """Open the bar, if there is a terminal and rich is installed."""
        if not self.quiet and sys.stderr.isatty():
            self._bar = _rich_bar()
            if self._bar is not None:
                self._bar.start()
                self._task = self._bar.add_task(self.title, total=self.steps, seen="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.stop()

    def show(self, look: Look) -> None:
        """Show the state after an evaluation."""
        if self.quiet:
            return
        history = look.history
        seen = f"loss {look.loss:6.2f}"
        if history.valid_exact:
            seen += f"  valid {history.valid_exact[-1]:4.1f}"
        seen += f"  {look.rows_per_second:,.0f} rows/s"
        now = time.monotonic()
        began, first = self._first = self._first or (now, look.step)  # a run that goes on does not start at step 0
        if self._bar is not None:
            self._bar.update(self._task, completed=look.step, total=look.steps, seen=seen)
        elif now - self._last > _SECONDS_BETWEEN_LINES:
            self._last = now
            if look.step > first:
                seen += f"  {duration((now - began) / (look.step - first) * (look.steps - look.step))} left"
            print(f"  {self.title}: step {look.step}/{look.steps}  {seen}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    Example:
        >>> duration(42.1), duration(150), duration(9000)
        ('42 s', '2 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _rich_bar() -> Any:
    """A transient bar that fits 80 columns, or None without rich."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
    except ImportError:
        return None
    columns = (
        TextColumn("{task.description:<20.20}"),
        BarColumn(bar_width=14),
        TextColumn("{task.fields[seen]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    return Bar(*columns, console=Console(stderr=True), transient=True)
