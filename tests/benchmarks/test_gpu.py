"""The benchmark for a GPU, without one: its checks and rows on CPU, and all of it with interpreted kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

import semprola as sp
from benchmarks import gpu
from benchmarks.calls import OurCalls
from benchmarks.peers import uniform_likelihood
from semprola.cli.app import reporting_errors
from semprola.engine.backends.triton_layout import interpreted

TINY = sp.compile(sp.constraints.permutation(3))
CPU = torch.device("cpu")


def run(*options: str) -> Any:
    application = typer.Typer()
    application.command()(reporting_errors(gpu.measure))
    return CliRunner().invoke(application, list(options))


@pytest.mark.skipif(interpreted() or torch.cuda.is_available(), reason="there is something to measure")
def test_without_a_gpu_it_says_so() -> None:
    made = run()
    assert made.exit_code == 2
    assert made.output.startswith("error: there is no GPU that torch can use")
    assert len(made.output.strip().splitlines()) == 1


def test_every_candidate_has_times_or_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.gpu._OURS", ("torch", "no such engine"))
    monkeypatch.setattr("benchmarks.klay_calls.MODES", ("eager",))
    rows = gpu.measure_circuit("tiny", TINY, 4, CPU, 1, 0.01, 0.01)
    found = {(row["task"], row["engine"]): row for row in rows}
    for task in ("log Z + gradient", "log_prob + gradient", "step", "mode"):
        assert found[task, "semprola torch"]["ms"] > 0
        assert found[task, "semprola torch"]["largest difference"] < 1e-4
        assert "no such engine" in found[task, "semprola no such engine"]["unable"]
    assert all("ms" in row or row["unable"] for row in rows)
    text = gpu.table({"rows": rows})
    assert "| tiny |" in text
    assert "pyjuice" in text


def test_wrong_numbers_are_not_timed() -> None:
    """A candidate is compared with the CPU before anything is measured."""
    ours = OurCalls(TINY, 4)
    expected = tuple(part.detach() for part in ours.call("step")())
    off = tuple(part + 0.01 for part in expected)
    assert gpu._difference(expected, expected) == 0.0
    with pytest.raises(gpu.Unable, match="not those of the CPU"):
        gpu._difference(off, expected)


def test_the_likelihood_of_equal_weights() -> None:
    """Against enumeration: a hierarchy's sums have two edges each."""
    circuit = sp.compile(sp.constraints.hierarchy([("b", "a"), ("c", "a")]))
    states = torch.tensor([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 1, 0]], dtype=torch.float32)
    expected = np.log([1 / 2, 1 / 8, 1 / 8, 1 / 8, 1 / 8])
    order = [circuit.labels.index(name) for name in "abc"]
    found = uniform_likelihood(circuit, states[:, np.argsort(order)])
    np.testing.assert_allclose(found[:5], expected, rtol=1e-6)
    assert found[5] == -torch.inf


@pytest.mark.skipif(not interpreted(), reason="needs TRITON_INTERPRET=1: see `make test-triton`")
def test_a_whole_run_with_interpreted_kernels(tmp_path: Path) -> None:
    few = ("--circuits", "tiny", "--batch", "3", "--rounds", "1", "--seconds", "0.01", "--compiling", "0.01")
    made = run(*few, "--out", str(tmp_path))
    assert made.exit_code == 0, made.output
    result = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))
    assert result["conditions"]["interpreted"]
    ours = [row for row in result["rows"] if row["engine"] == "semprola triton"]
    assert [row["task"] for row in ours] == ["log Z + gradient", "log_prob + gradient", "step", "mode"]
    assert all(row["ms"] > 0 and row["largest difference"] < 1e-4 for row in ours)
