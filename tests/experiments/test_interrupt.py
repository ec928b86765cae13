"""Ctrl-C of an experiment: it stops at once, says what was kept, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("typer")


@pytest.mark.skipif(os.name != "posix", reason="sends the signal of Ctrl-C")
def test_ctrl_c(tmp_path: Path) -> None:
    words = ["simple-path", "--known", "--methods", "spl", "--seeds", "2", "--jobs", "2", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments", *words], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        end = time.monotonic() + 120
        while not list(tmp_path.rglob("*.pt")) and time.monotonic() < end and process.poll() is None:
            time.sleep(0.05)
        sent = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the process and its children
        assert process.stderr is not None
        said = []
        while not said or (said[-1] and "interrupted: " not in said[-1]):
            said.append(process.stderr.readline())
        waited = time.monotonic() - sent
        _, rest = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
    assert "interrupted: finished runs and checkpoints are in " in said[-1]
    assert waited < 3  # a second, and slack for a busy machine; that torch is taken down comes after
    assert process.returncode == 130
    assert "Traceback" not in "".join(said) + rest
    assert list(tmp_path.rglob("*.pt"))
    for _ in range(40):  # an orphan that ends is reaped by init, sooner or later
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("a child process is still there")
