"""Calls in several processes: every result once, and no worker that outlives its parent."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.hmlc.run import smoothed
from experiments.parallel import finished
from semprola.errors import SemprolaError

ROOT = Path(__file__).resolve().parents[2]
WAITING = """
import time
from experiments.parallel import finished
from tests_parallel_calls import announce
if __name__ == "__main__":
    list(finished(announce, [(60,), (60,)], 2))
"""
CALLS = """
import os, time
def announce(seconds):
    print(os.getpid(), flush=True)
    time.sleep(seconds)
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_every_call_is_answered_once(processes: int) -> None:
    found = dict(finished(divmod, [(7, 2), (9, 4), (8, 3)], processes))
    assert found == {0: (3, 1), 1: (2, 1), 2: (2, 2)}


def test_an_error_ends_the_rest() -> None:
    with pytest.raises(ZeroDivisionError):
        list(finished(divmod, [(1, 0), (1, 1)], 2))


@pytest.mark.skipif(sys.platform == "win32", reason="processes are told apart by signals")
def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITING)
    (tmp_path / "tests_parallel_calls.py").write_text(CALLS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, str(tmp_path / "waiting.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as it:
        assert it.stdout is not None
        workers = [int(it.stdout.readline()) for _ in range(2)]
        it.send_signal(signal.SIGKILL)
    for _ in range(300):
        if not any(map(_runs, workers)):
            return
        time.sleep(0.1)
    pytest.fail("a worker outlived its parent")


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")  # a process that nobody has waited for yet has ended all the same
    return not state.is_file() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SemprolaError, match=r"semprola\[tune\]"):
        next(finished(pow, [(2, 3)], 1, ray=True))


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray (extra `tune`)")
def test_a_local_ray_does_the_calls() -> None:
    calls = [([0.0, 3.0, 3.0],), ([1.0],)]
    assert dict(finished(smoothed, calls, 1, ray=True)) == {0: [1.5, 2.0, 3.0], 1: [1.0]}
    assert list(finished(smoothed, [], 1, ray=True)) == []
