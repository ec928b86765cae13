"""How far a training run is: a bar in a terminal (with rich), plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

_SECONDS_BETWEEN_LINES = 15.0


class Progress:
    """Shows the step, the loss and the exact match on validation rows; use it as a context manager.

    Args:
        title: what is running.
        steps: how many steps there will be at most.
        quiet: show nothing.
    """

    def __init__(self, title: str = "", steps: int = 0, *, quiet: bool = False) -> None:
        self.title, self.steps, self.quiet = title, steps, quiet
        self._bar: Any = None
        self._task: Any = None
        self._last = time.monotonic()

    def __enter__(self) -> Progress:
        """Open the bar, where there is a terminal and rich is installed."""
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

    def update(self, step: int, loss: float, valid_exact: float, best_exact: float) -> None:
        """Show the state after a look at the validation rows."""
        if self.quiet:
            return
        seen = f"loss {loss:7.3f}  valid {valid_exact:5.1f}  best {best_exact:5.1f}"
        if self._bar is not None:
            self._bar.update(self._task, completed=step, seen=seen)
        elif time.monotonic() - self._last > _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            print(f"  {self.title}: step {step}/{self.steps}  {seen}", file=sys.stderr, flush=True)


def _rich_bar() -> Any:
    """A transient bar that fits 80 columns, or None without rich."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
    except ImportError:
        return None
    columns = (
        TextColumn("{task.description:<20}"),
        BarColumn(bar_width=14),
        TextColumn("{task.fields[seen]}"),
        TimeElapsedColumn(),
    )
    return Bar(*columns, console=Console(stderr=True), transient=True)
