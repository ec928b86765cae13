"""`semprola compare` on a small table, and on bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

typer = pytest.importorskip("typer")
from semprola.cli import app  # noqa: E402


def invoke(*words: str) -> Any:
    from typer import testing

    return testing.CliRunner().invoke(app.build(typer), ["compare", *words])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    x = np.random.default_rng(0).normal(size=(60, 2))
    lines = ["size,colour,cat,animal"]
    lines += [f"{a:.3f},{'red' if b > 0 else 'blue'},{int(a > 0.5)},{int(a > 0)}" for a, b in x]
    (tmp_path / "pets.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "rules.txt").write_text("cat -> animal\n")
    return tmp_path / "pets.csv"


def test_a_table_a_report_and_json(table: Path, tmp_path: Path) -> None:
    words = [str(table), "--labels", "cat,animal", "--rules", str(tmp_path / "rules.txt"), "--methods", "fil,hmcnn,spl"]
    words += ["--folds", "2", "--epochs", "2", "--hidden", "8", "--out", str(tmp_path / "out")]
    answer = invoke(*words)
    assert answer.exit_code == 0, answer.output
    assert "\nSPL " in answer.output
    assert "report.html" in answer.output
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!doctype html>")
    content = json.loads(invoke(*words, "--json").stdout)
    assert [row["method"] for row in content["rows"]] == ["fil", "hmcnn", "spl"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--labels", "cat,fish"], "there is no column 'fish'"),
        (["--rules", "cat -> (animal"], "is never closed"),
        (["--methods", "svm"], "no method 'svm'"),
        (["--hidden", "wide"], "--hidden takes widths"),
        (["--rules", "animal -> cat"], "rows break the rules: "),
        (["--rules", "animal -> cat"], "animal -> cat (animal=1, cat=0); "),
        (["--rules", "animal -> cat"], "(--skip-inconsistent leaves them out)"),
        (["--rules", ""], "there is no rule in ''"),
        (["--rules", "norules.txt"], "norules.txt: no such file"),
        (["--labels", ""], "--labels names no column"),
        (["--ignore", "zzz"], "there is no column 'zzz'"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_bad_input_is_one_line(table: Path, tmp_path: Path, change: list[str], message: str) -> None:
    words = {"--labels": "cat,animal", "--rules": "cat -> animal", "--out": str(tmp_path / "out")}
    words |= dict([change])  # type: ignore[list-item]
    answer = invoke(str(table), *[word for pair in words.items() for word in pair])
    assert answer.exit_code == 2
    assert message in answer.output


def test_rows_that_break_the_rules_are_named_by_line(table: Path, tmp_path: Path) -> None:
    lines = table.read_text().splitlines()
    lines.insert(3, "0.1,red,1,0")
    table.write_text("\n".join(lines) + "\n")
    words = [str(table), "--labels", "cat,animal", "--rules", str(tmp_path / "rules.txt"), "--methods", "fil"]
    words += ["--folds", "2", "--epochs", "1", "--hidden", "8", "--out", str(tmp_path / "out")]
    found = f"1 of 61 rows break the rules: {table}:4: cat -> animal [{tmp_path / 'rules.txt'}:1] (cat=1, animal=0)"
    assert invoke(*words).stderr == f"error: {found} (--skip-inconsistent leaves them out)\n"
    answer = invoke(*words, "--skip-inconsistent")
    assert answer.exit_code == 0, answer.output
    assert f"left out: {found}" in answer.stderr
    assert json.loads(invoke(*words, "--skip-inconsistent", "--json").stdout)["about"]["rows"] == 60
