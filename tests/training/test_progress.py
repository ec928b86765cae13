"""What a training run shows while it works."""

from __future__ import annotations

import io

import pytest

from semprola.training import progress
from semprola.training.progress import ProgressBar
from semprola.training.settings import History, Look


def test_lines_say_how_long_it_will_take(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = 1000.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with ProgressBar("paths", 100) as shown:
        for step, seconds in ((20, 30.0), (30, 20.0), (35, 5.0), (50, 20.0)):  # a run that goes on from step 20
            now += seconds
            shown.show(Look(step, 100, 1.0, 8.0, None, History()))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("rows/s")[1].strip() for line in lines] == ["", "2 min left", "75 s left"]
    assert all(len(line) < 80 for line in lines)


def test_the_bar_fits_80_columns() -> None:
    rich = pytest.importorskip("rich.progress")
    console = pytest.importorskip("rich.console").Console(file=io.StringIO(), width=80, force_terminal=True)
    bar = rich.Progress(*progress._rich_bar().columns, console=console)
    seen = "loss  16.63  valid 13.7  15,258 rows/s"
    bar.update(bar.add_task("semantic-loss, resnet18, seed 0", total=790, seen=seen), completed=200)
    console.print(bar.get_renderable())
    (line,) = console.file.getvalue().splitlines()
    assert seen in line
    assert "━" in line
    assert "-:--:--" in line  # the time left, not known yet


def test_epochs_are_counted_where_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ProgressBar("training", 120, per_epoch=10)
    shown._last = 0.0
    shown.show(Look(25, 120, 1.0, 8.0, None, History(valid_exact=[50.0])))
    assert capsys.readouterr().err.startswith("  training: epoch  3/12  loss   1.00  valid 50.0 %")


def test_a_quiet_run_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar("paths", 100, quiet=True) as shown:
        shown.show(Look(20, 100, 1.0, 8.0, None, History()))
    assert capsys.readouterr().err == ""
