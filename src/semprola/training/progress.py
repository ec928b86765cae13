"""The progress of a training run: a bar in a terminal (with rich), plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from semprola.training.settings import Look

_SECONDS_BETWEEN_LINES = 15.0
_SECONDS_BEFORE_A_LINE = 2.0


class ProgressBar:
    """Shows the step or epoch, the loss, the exact match on validation rows, the throughput and the time left.

    Use it as a context manager.

    Args:
        title: the name of the run.
        steps: largest number of steps.
        quiet: show nothing.
        per_epoch: steps per epoch, to count epochs instead of steps.
    """

    def __init__(self, title: str = "", steps: int = 0, *, quiet: bool = False, per_epoch: int | None = None) -> None:
        self.title, self.steps, self.quiet, self.per_epoch = title, steps, quiet, per_epoch
        self._bar: Any = None
        self._task: Any = None
        self._last = time.monotonic() + _SECONDS_BEFORE_A_LINE - _SECONDS_BETWEEN_LINES
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
        at, seen = self._place(look), f"loss {look.loss:6.2f}"
        if look.history.valid_exact:
            seen += f"  valid {look.history.valid_exact[-1]:4.1f} %"
        now = time.monotonic()
        began, first = self._first = self._first or (now, look.step)  # a run that goes on does not start at step 0
        if self._bar is not None:
            seen = f"{at}  {seen}" if self.per_epoch else f"{seen}  {look.rows_per_second:,.0f} rows/s"
            self._bar.update(self._task, completed=look.step, total=look.steps, seen=seen)
        elif now - self._last > _SECONDS_BETWEEN_LINES:
            self._last = now
            seen += f"  {look.rows_per_second:,.0f} rows/s"
            if look.step > first:
                seen += f"  {duration((now - began) / (look.step - first) * (look.steps - look.step))} left"
            print(f"  {self.title}: {at}  {seen}", file=sys.stderr, flush=True)

    def _place(self, look: Look) -> str:
        if self.per_epoch is None:
            return f"step {look.step}/{look.steps}"
        epochs = -(-look.steps // self.per_epoch)
        return f"epoch {-(-look.step // self.per_epoch):>{len(str(epochs))}}/{epochs}"


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
        TextColumn("{task.description:.20}"),
        BarColumn(bar_width=14),
        TextColumn("{task.fields[seen]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    return Bar(*columns, console=Console(stderr=True), transient=True)
