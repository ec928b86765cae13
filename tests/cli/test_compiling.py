"""`semprola compile | count | check | draw | cache`: results, exit status, errors in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semprola as sp

typer = pytest.importorskip("typer")
testing = pytest.importorskip("typer.testing")

CNF = "c p weight 1 0.25 0\nc p weight -1 0.75 0\nc p weight 3 2/3 0\nc p show 1 2 0\np cnf 3 2\n1 2 0\n-2 3 0\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from semprola.cli import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEMPROLA_CACHE", str(tmp_path / "cache"))
    application = app.build(typer)

    def invoke(*words: str) -> Any:
        return testing.CliRunner().invoke(application, list(words))

    return invoke


def test_every_command_has_help_with_an_example(run: Any) -> None:
    from semprola.cli import app

    for name in app.COMMANDS:
        answer = run(name, "--help")
        assert answer.exit_code == 0
        assert "Example:" in answer.output, name


@pytest.mark.parametrize("name", ["a.sp", "a.nnf", "a.d4", "a.sdd", "a.dot"])
def test_compile_writes_what_count_reads(run: Any, name: str) -> None:
    answer = run("compile", "(cat -> animal) & (dog -> animal)", "--out", name, "--json")
    assert answer.exit_code == 0, answer.output
    result = json.loads(answer.stdout)
    assert result["labels"] == 3
    assert result["backend"] == "sdd"
    assert Path(name).is_file()
    if not name.endswith((".dot", ".d4")):
        assert json.loads(run("count", name, "--json").stdout)["models"] == 5


def test_labels_and_given(run: Any) -> None:
    answer = run("compile", "a -> b & c", "--labels", "c,b", "--given", "a", "--backend", "topdown", "-o", "a.sp")
    assert answer.exit_code == 0, answer.output
    circuit = sp.Circuit.load("a.sp")
    assert (circuit.labels, circuit.given) == (("c", "b"), ("a",))
    assert "chosen by the caller" in answer.output


def test_count(run: Any) -> None:
    Path("a.cnf").write_text(CNF)
    assert run("count", "a.cnf").output.split()[:2] == ["models", "4"]
    assert json.loads(run("count", "a.cnf", "--projected", "--json").stdout)["models"] == 3
    # models 1-3: {1}, {1,3}, {1,2,3}, {2,3}; the weights of 3 are 1/3 and 2/3
    weighted = json.loads(run("count", "a.cnf", "--weighted", "--json").stdout)
    assert weighted["weight"] == "11/12"
    assert weighted["about"] == pytest.approx(11 / 12)
    assert json.loads(run("count", "a & ~a", "--json").stdout) == {"models": 0}
    Path("a.txt").write_text("exactly(150, " + ", ".join(f"x{i}" for i in range(300)) + ")")
    assert len(str(json.loads(run("count", "a.txt", "--json").stdout)["models"])) == 89


def test_check(run: Any) -> None:
    Path("rows.csv").write_text("dog,cat,animal\n0,1,1\n1,0,0\n0,0,0\n")
    answer = run("check", "(cat -> animal) & (dog -> animal)", "rows.csv", "--json")
    assert answer.exit_code == 1
    result = json.loads(answer.stdout)
    assert (result["rows"], result["broken"], result["first broken"]) == (3, 1, [2])
    np.save("rows.npy", np.array([[1, 1, 0]]))
    assert run("check", "(cat -> animal) & (dog -> animal)", "rows.npy").exit_code == 0
    assert run("check", "a & ~a").exit_code == 1
    assert run("check", "a | b").exit_code == 0


def test_draw(run: Any) -> None:
    assert run("draw", "a -> b", "a.svg").exit_code == 0
    assert Path("a.svg").read_text().lstrip().startswith("<")


def test_cache(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from semprola.compiler import cache

    monkeypatch.setattr(cache, "WORTH_SECONDS", 0.0)
    assert json.loads(run("cache", "--size", "--json").stdout)["circuits"] == 0
    sp.compile(sp.constraints.permutation(6))
    assert json.loads(run("cache", "--json").stdout)["circuits"] == 1
    assert json.loads(run("cache", "--clear", "--json").stdout)["removed"] == 1
    assert json.loads(run("cache", "--json").stdout)["circuits"] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["count", "missing.cnf"], "missing.cnf: there is no such file"),
        (["count", "a &"], "expected a formula"),
        (["count", "a | b", "--weighted"], "need a DIMACS file"),
        (["compile", "a", "--out", "a.xyz"], "unknown format"),
        (["compile", "a", "--backend", "d9"], "unknown backend 'd9'"),
        (["compile", "a", "--memory", "lots"], "memory must be"),
        (["compile", "a", "--timeout", "-1"], "timeout must be"),
        (["draw", "a", "a.pdf"], "an .svg, .png or .dot file"),
        (["check", "a | b", "bad.csv"], "bad.csv:2: column 'b' must be 0 or 1, not 'x'"),
        (["check", "a | b", "short.csv"], "there is no column 'b'"),
        (["check", "a | b", "nothing.csv"], "No such file"),
        (["count", "bad.csv"], "unknown kind of file"),
    ],
)
def test_bad_input(run: Any, words: list[str], message: str) -> None:
    Path("bad.csv").write_text("a,b\n1,x\n")
    Path("short.csv").write_text("a\n1\n")
    answer = run(*words)
    assert answer.exit_code == 2
    assert message in answer.stderr
    assert "Traceback" not in answer.output
