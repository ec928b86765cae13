"""Ctrl-C stops every back end and family within a second, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends itself the signal of Ctrl-C")

SCRIPT = """
import importlib.util, os, random, signal, sys, threading, time
import networkx as nx
import semprola as sp

rng = random.Random(0)
C = sp.constraints
clauses = [sp.Or([sp.Bool(f"v{v}") ^ (rng.random() < 0.5) for v in rng.sample(range(150), 3)]) for _ in range(450)]
hard = sp.And(clauses)
grid = nx.grid_2d_graph(14, 14)
work = [
    ("topdown", hard),
    ("sdd", hard),
    ("auto", C.simple_paths(grid, source=(0, 0), target=(13, 13))),
    ("auto", C.permutation(22)),
    ("auto", C.linear({f"x{i}": rng.randint(1, 10**9) for i in range(80)}, "<=", 2 * 10**10)),
    ("auto", C.spanning_trees(grid)),
]
sent = [0.0]


def interrupt():
    sent[0] = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)


for backend, constraint in work:
    threading.Timer(0.6, interrupt).start()
    try:
        sp.compile(constraint, backend=backend)
        print("finished", backend)
    except KeyboardInterrupt:
        print("stopped", round(time.monotonic() - sent[0], 2))
"""


@pytest.mark.extensive
def test_ctrl_c(tmp_path: Path) -> None:
    environment = {**os.environ, "SEMPROLA_CACHE": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) >= 6
    assert all(word == "stopped" and float(seconds) < 1 for word, seconds in lines), done.stdout
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []
    assert list((tmp_path / "tmp").iterdir()) == []
