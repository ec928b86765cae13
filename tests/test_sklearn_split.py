"""`SPLClassifier`, `semprola train` and `semprola predict` over a split: every prediction obeys every rule."""

from __future__ import annotations

import csv
import io
import itertools
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import semprola as sp
from semprola.compiler.splitting import Split
from semprola.distributions import PoolDistribution
from semprola.errors import CompilationBudgetError, IntractableError, LabelError, SemprolaError

typer = pytest.importorskip("typer")
testing = pytest.importorskip("typer.testing")
sklearn = pytest.importorskip("sklearn")
pytest.importorskip("safetensors")

NAMES = [f"s{i}" for i in range(16)]  # the squares of a 4 × 4 board, with one piece per row and column
ROWS, COLUMNS = (
    [sp.exactly(1, [sp.Bool(NAMES[i + j]) for j in part]) for i in first]
    for first, part in ((range(0, 16, 4), range(4)), (range(4), range(0, 16, 4)))
)
RULES = sp.And(*ROWS, *COLUMNS)
ORDERS = np.array(list(itertools.permutations(range(4))))


def incomplete() -> Split:
    """Rows only; the columns are left out."""
    return Split((sp.compile(sp.And(ROWS), labels=NAMES),), tuple(COLUMNS), {COLUMNS[0]: "rules.txt:5"})


def data(count: int, noise: float = 0.3, seed: int = 0) -> tuple[Any, Any]:
    """Noisy permutations, and the permutations."""
    rng = np.random.default_rng(seed)
    y = np.eye(4)[ORDERS[rng.integers(24, size=count)]].reshape(count, 16)
    return y + noise * rng.normal(size=y.shape), y.astype(int)


def model(constraint: Any, **options: Any) -> Any:
    from semprola.sklearn import SPLClassifier

    quick = {"hidden": (), "epochs": 6, "lr": 0.1, "random_state": 0, "validation_fraction": 0.0}
    return SPLClassifier(constraint, **quick | options)


@pytest.mark.parametrize("left_out", [False, True])
def test_an_estimator_over_a_split(left_out: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    S = incomplete() if left_out else sp.split(RULES, max_nodes=30)
    assert not S.is_exact
    X, y = data(120)
    with caplog.at_level(logging.INFO, "semprola"):
        fitted = sklearn.base.clone(model(S)).fit(X, y)
        found = fitted.predict(X)
    assert [record.levelname for record in caplog.records] == ["WARNING" if left_out else "INFO"]
    assert "pooled" in caplog.text
    assert ("rules.txt:5" in caplog.text) == left_out
    assert bool(S.satisfied(found).all())
    assert fitted.score(X, y) > 0.9
    assert isinstance(fitted.distribution(X[:2]), PoolDistribution)
    assert fitted.split_ is S
    loose = np.random.default_rng(1).normal(size=(50, 16))  # no row is near a state
    assert bool(S.satisfied(fitted.predict(loose)).all())
    states, least = fitted.top_k(X[:3], 2)
    assert states.shape == (3, 2, 16)
    assert bool((least.sum(1) <= 1).all())
    again = sp.load(sp.save(fitted, tmp_path / "model"))
    assert (again.predict(X) == found).all()
    assert again.split_.left_out == S.left_out
    assert (again.fit(X, y).predict(X) == found).all()
    assert (fitted.partial_fit(X, y).predict(X) == y).mean() > 0.9


def test_what_an_estimator_over_a_split_refuses() -> None:
    S, (X, y) = incomplete(), data(30)
    with pytest.raises(ValueError, match="decode='mode'"):
        model(S, decode="f1").fit(X, y)
    with pytest.raises(ValueError, match="label_weight"):
        model(S, label_weight=1.0).fit(X, y)
    with pytest.raises(LabelError, match="order differs"):
        model(S, labels=NAMES[::-1]).fit(X, y)
    hidden = y.astype(float)
    hidden[3, 2] = np.nan
    with pytest.raises(LabelError, match=r"NaN in 1 rows, the first is row 3"):
        model(S).fit(X, hidden)
    wrong = y.copy()
    wrong[7] = np.eye(4)[[0, 0, 1, 2]].flatten()  # rows hold, a rule that is left out does not
    wrong[9] = 1  # no row holds
    with pytest.raises(SemprolaError, match=r"2 of 30 rows .* row 7: .*rules\.txt:5.* row 9: "):
        model(S).fit(X, wrong)
    with pytest.raises(CompilationBudgetError, match=r"sp\.split\(rules\)"):
        model(RULES, max_nodes=20).fit(X, y)
    fitted = model(S, epochs=1).fit(X, y)
    with pytest.raises(IntractableError, match="mean_estimate"):
        fitted.predict_proba(X)


def test_rows_without_a_state_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(40)
    fitted = model(incomplete(), epochs=1).fit(X, y)
    mode = PoolDistribution.try_mode

    def without_some(self: PoolDistribution) -> torch.Tensor:
        states = mode(self)
        states[-1] = torch.nan
        return states

    monkeypatch.setattr("semprola.sklearn.estimator._CHUNK", 15)
    monkeypatch.setattr(PoolDistribution, "try_mode", without_some)
    with pytest.raises(IntractableError, match=r"3 of 40 rows: 14, 29, 39: try"):
        fitted.predict(X)


def test_violations_of_a_split() -> None:
    S = incomplete()
    rows = np.stack([np.eye(4)[list(order)].flatten() for order in ([0, 1, 2, 3], [0, 0, 2, 3])])
    rows = np.concatenate([rows, np.ones((1, 16))])
    layer = sp.ConstraintLayer(S)
    for constraint in (S, layer, layer(torch.zeros(16))):
        found = sp.violations(constraint, rows)
        assert sorted({each.row for each in found}) == [1, 2]
        assert sum(each.row == 1 for each in found) == 2  # two columns
        assert any("rules.txt:5" in each.rule for each in found)


def test_train_and_predict_over_a_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from semprola.cli import app

    monkeypatch.chdir(tmp_path)
    application = app.build(typer)
    Path("rules.txt").write_text("\n".join(map(str, [*ROWS, *COLUMNS])))

    def run(*words: str) -> Any:
        return testing.CliRunner().invoke(application, list(words))

    X, y = data(120)
    for name, inputs in (("train.csv", X), ("loose.csv", np.random.default_rng(1).normal(size=(20, 16)))):
        with open(name, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*(f"x{i}" for i in range(16)), *NAMES])
            writer.writerows([*x, *one] for x, one in zip(inputs.round(3), y[: len(inputs)], strict=True))
    words = ["train", "train.csv", "--labels", ",".join(NAMES), "--rules", "rules.txt", "--out", "model"]
    quick = ["--epochs", "4", "--hidden", "none", "--lr", "0.1"]
    assert "--max-nodes" in run("train", "--help").output.replace("\n", "")
    assert "20 nodes" in run(*words, *quick, "--max-nodes", "20").output
    result = run(*words, *quick, "--split", "--max-nodes", "30")
    assert result.exit_code == 0, result.output
    assert "note: answers are pooled from" in result.stderr
    assert "calibration error of labels       not known" in result.stdout
    told = run("predict", "model", "loose.csv")
    assert told.exit_code == 0, told.output
    table = list(csv.DictReader(io.StringIO(told.stdout)))
    states = np.array([[int(row[name]) for name in NAMES] for row in table])
    assert bool(sp.compile(RULES, labels=NAMES).satisfied(states).all())
    assert all(0 < float(row["probability at least"]) <= 1 and row["proven"] == "1" for row in table)
    first = json.loads(run("predict", "model", "loose.csv", "--json", "--evidence", NAMES[0]).stdout.splitlines()[0])
    assert len(first["labels"]) == 4
    assert (NAMES[0] in first["labels"]) == bool(y[0, 0])
    assert "leave it out" in run("predict", "model", "loose.csv", "--explain").output
    both = {name: [1 if name in NAMES[:2] else 0] for name in NAMES}
    with open("wrong.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x{i}" for i in range(16)), *both])
        writer.writerow([0.0] * 16 + [values[0] for values in both.values()])
    refused = run("predict", "model", "wrong.csv", "--evidence", ",".join(NAMES[:2]))
    assert refused.exit_code != 0
    assert "wrong.csv:2" in refused.output.replace("\n", "")
