"""Two processes under torchrun train as one process does on the same batches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.provenance import read_json

SCRIPT = """
import sys
import torch
from experiments.warcraft import app
app.PARTS.update({"train": 24, "val": 6, "test": 6})
torch.set_num_threads(1)
app.main(sys.argv[1:])
"""


def test_two_processes_reach_the_result_of_one(tmp_path: Path) -> None:
    script = tmp_path / "campaign.py"
    script.write_text(SCRIPT, encoding="utf-8")
    words = ["--net", "grid", "--methods", "product-spl", "--no-views", "--epochs", "2", "--longest", "22"]
    words += ["--cache", str(tmp_path / "maps"), "--precision", "float32"]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    found = {}
    for name, start in (("one", []), ("two", torchrun)):
        out = tmp_path / name
        places = ["--out", str(out), "--checkpoints", str(out / "checkpoints")]
        paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        subprocess.run([sys.executable, *start, str(script), *words, *places], check=True, env=environment, timeout=300)
        (path,) = out.glob("*-seed0.json")
        found[name] = read_json(path)
    assert found["two"]["history"]["loss"] == pytest.approx(found["one"]["history"]["loss"], rel=1e-4)
    assert found["two"]["test"] == found["one"]["test"]
