"""Every method on one toy task, refusals, resuming, and the report."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import semprola as sp
from semprola.comparison import METHODS, build_method, folds
from semprola.comparison.report import found_out, page, write_report
from semprola.errors import PropertyError, SemprolaError, ViolationError

RULES = "(cat -> animal) & (dog -> animal) & (puppy -> dog)"
LABELS = ["cat", "dog", "puppy", "animal"]


def data(rows: int = 240) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(rows, 3))
    cat, dog = x[:, 0] > 0.4, x[:, 1] > 0.3
    return x, np.stack([cat, dog, dog & (x[:, 2] > 0), cat | dog | (x[:, 2] > 1)], 1)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[sp.comparison.Comparison, Path, list[str]]:
    lines: list[str] = []
    out = tmp_path_factory.mktemp("compare")
    x, y = data()
    result = sp.comparison.compare_methods(
        x, y, RULES, labels=LABELS, hidden=(16,), folds=2, epochs=12, lr=0.02, out=out, say=lines.append
    )
    return result, out, lines


def test_every_method_learns_and_the_right_ones_are_consistent(
    compared: tuple[sp.comparison.Comparison, Path, list[str]],
) -> None:
    result, _, _ = compared
    assert [row["method"] for row in result.rows] == list(METHODS)
    for row in result.rows:
        assert result.mean(row["method"], "exact") > 45, row["title"]
    for method in ("spl", "product-spl", "ccn", "hmcnn", "multiplexnet"):
        assert result.mean(method, "consistent") == 100.0
    defined = {method for method in METHODS if result.mean(method, "nll") == result.mean(method, "nll")}
    assert defined == set(METHODS) - {"ebm", "hmcnn", "ccn"}
    text = str(result)
    assert all(len(line) <= 80 for line in text.splitlines())


def test_weights_of_added_losses_are_chosen_in_every_fold(
    compared: tuple[sp.comparison.Comparison, Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    result, _, _ = compared
    for row in result.rows:
        weights = [fold.get("penalty") for fold in row["folds"]]
        penalised = row["method"] in ("dl2", "semantic-loss", "nesy-entropy")
        assert all(weight in (0.001, 0.01, 0.1, 1.0) if penalised else weight is None for weight in weights)
    asked: list[float | None] = []
    real = folds.build_method

    def build(*arguments: object, penalty: float | None = None, **options: object) -> object:
        asked.append(penalty)
        return real(*arguments, penalty=penalty, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(folds, "build_method", build)
    x, y = data(40)
    sp.comparison.compare_methods(
        x, y, RULES, labels=LABELS, methods=["fil", "dl2"], folds=2, epochs=1, penalties=(0.5, 2.0)
    )
    assert list(dict.fromkeys(asked)) == [None, 0.5, 2.0]
    with pytest.raises(ValueError, match="penalties must be positive weights"):
        sp.comparison.compare_methods(x, y, RULES, labels=LABELS, penalties=(0.1, 0.0))


def test_a_second_call_runs_nothing_again(
    compared: tuple[sp.comparison.Comparison, Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    result, out, _ = compared
    monkeypatch.setattr("semprola.comparison.folds.fit", None)
    x, y = data()
    again = sp.comparison.compare_methods(
        x, y, RULES, labels=LABELS, hidden=(16,), folds=2, epochs=12, lr=0.02, out=out
    )
    assert again == result
    with pytest.raises(TypeError):  # other data are another comparison
        sp.comparison.compare_methods(
            x + 1, y, RULES, labels=LABELS, hidden=(16,), folds=2, epochs=12, lr=0.02, out=out
        )


def test_the_report_has_everything(compared: tuple[sp.comparison.Comparison, Path, list[str]], tmp_path: Path) -> None:
    result, _, _ = compared
    write_report(result, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert all(title in text for title in METHODS.values())
    assert "http" not in text  # nothing is loaded from elsewhere
    assert text.count("<svg") == 7  # a plot per metric
    assert "Weights of added losses, chosen on validation rows in each fold: FIL + DL2: " in text
    assert json.loads((tmp_path / "report.json").read_text())["about"]["rows"] == 240


def test_the_report_says_what_was_found(compared: tuple[sp.comparison.Comparison, Path, list[str]]) -> None:
    result, _, _ = compared
    text = page(result, "semprola compare pets.csv")
    first = text[text.index("<h1>") : text.index("<table>")]
    assert re.search(r"<strong>[\w ()+-]+ has the most rows right: \d+\.\d %, against \d+\.\d % of ", first)
    header = text[text.index("<thead>") : text.index("</thead>")]
    assert "exact match ↑" in header
    assert "NLL ↓" in header
    body = text[text.index("<tbody>") : text.index("</tbody>")]
    best = max(result.mean(row["method"], "exact") for row in result.rows)
    assert f"<td><b>{best:.1f} ±" in body
    folded = text[text.index("<details>") : text.index("</details>")]
    assert all(
        part in folded for part in ("semprola compare pets.csv", "&quot;epochs&quot;: 12", date.today().isoformat())
    )
    percent = text[text.index("exact match (%)") :]
    assert percent[: percent.index("</svg>")].count(">100</text>") == 1


def test_predictions_that_break_the_rules_are_shown() -> None:
    x = np.random.default_rng(0).normal(size=(80, 2)).astype(np.float32)
    y = np.stack([x[:, 0] > 0, x[:, 0] <= 0, x[:, 1] > 0], 1)  # at the border, the first network says both or neither
    rules = "exactly(1, a, b) & (c | ~c)"
    result = sp.comparison.compare_methods(
        x, y, rules, labels=["a", "b", "c"], methods=["fil", "spl"], folds=2, epochs=1, seed=3
    )
    assert result.mean("fil", "consistent") < 100
    cases = [case for fold in result.rows[0]["folds"] for case in fold["broken"]]
    assert all(("a" in case["predicted"]) == ("b" in case["predicted"]) for case in cases)
    assert all(fold["broken"] == [] for fold in result.rows[1]["folds"])
    text = page(result)
    assert "SPL never does." in text
    shown = text[text.index("Predictions that break the rules") :]
    assert 1 <= shown[: shown.index("</tbody>")].count("<tr><td>") <= 2
    assert "Of independent labels (FIL), for example" in shown


@pytest.mark.parametrize(
    ("exact", "said"),
    [
        (
            {"fil": [70, 60], "spl": [60, 50]},
            "FIL has the most rows right: 65.0 %, against 55.0 % of SPL (ahead in 2 of 2 folds)",
        ),
        ({"spl": [70, 60]}, "SPL has the most rows right: 65.0 %. All predictions obey the rules."),
        ({}, "No method can handle these rules."),
    ],
)
def test_what_was_found_where_something_is_missing(exact: dict[str, list[float]], said: str) -> None:
    rows: list[dict[str, Any]] = [
        {"method": name, "title": name.upper(), "folds": [{"exact": e, "consistent": 100.0} for e in values]}
        for name, values in exact.items()
    ]
    rows.append({"method": "ccn", "title": "CCN", "refused": "no"})
    assert found_out(sp.comparison.Comparison(rows, {})).startswith(said)


def test_a_method_that_cannot_take_the_rules_says_why() -> None:
    x, _ = data(40)
    y = np.eye(3)[np.arange(40) % 3]
    result = sp.comparison.compare_methods(
        x, y, sp.one_hot(["a", "b", "c"]), methods=["hmcnn", "ccn", "spl"], folds=2, epochs=1
    )
    assert "HMCNN takes hierarchies only" in result.rows[0]["refused"]
    assert "CCN takes rules of the form" in result.rows[1]["refused"]
    assert result.mean("spl", "consistent") == 100.0
    assert "rules of the form" in page(result)
    assert "cannot handle these rules" in str(result)


def test_bad_input() -> None:
    x, y = data(20)
    with pytest.raises(SemprolaError, match="no method 'svm': choose from fil"):
        sp.comparison.compare_methods(x, y, RULES, labels=LABELS, methods=["svm"])
    with pytest.raises(ValueError, match=r"y \[rows, 4\], got \[20, 3\] and \[20, 3\]"):
        sp.comparison.compare_methods(x, y[:, :3], RULES, labels=LABELS)
    with pytest.raises(ValueError, match="x has infinities or NaN"):
        sp.comparison.compare_methods(x * np.inf, y, RULES, labels=LABELS)
    with pytest.raises(ValueError, match="y must contain only 0 and 1"):
        sp.comparison.compare_methods(x, y + 0.5, RULES, labels=LABELS)
    with pytest.raises(ValueError, match="folds must be from 2"):
        sp.comparison.compare_methods(x, y, RULES, labels=LABELS, folds=1)
    wrong = y.copy()
    wrong[3] = [1, 0, 0, 0]
    with pytest.raises(ViolationError, match=r"1 of 20 rows break the rules \(row 3: .*cat -> animal.*pass skip"):
        sp.comparison.compare_methods(x, wrong, RULES, labels=LABELS)
    kept = sp.comparison.compare_methods(
        x, wrong, RULES, labels=LABELS, methods=["fil"], folds=2, epochs=1, skip_inconsistent=True
    )
    assert kept.about["rows"] == 19


def test_hmcnn_wants_a_hierarchy_over_all_labels() -> None:
    rules = sp.parse("a & b -> c")
    with pytest.raises(PropertyError, match="HMCNN takes hierarchies only"):
        build_method("hmcnn", torch.nn.Identity(), 2, rules, sp.compile(rules))
    rules = sp.parse("a -> b")
    with pytest.raises(sp.LabelError, match="'c' is in none of its rules"):
        build_method("hmcnn", torch.nn.Identity(), 2, rules, sp.compile(rules, labels=["a", "b", "c"]))


def test_an_area_without_a_positive_label_is_not_known(tmp_path: Path) -> None:
    x, _ = data(20)
    result = sp.comparison.compare_methods(x, np.zeros((20, 2)), "cat -> animal", methods=["fil"], folds=2, epochs=1)
    assert [fold["auprc"] for fold in result.rows[0]["folds"]] == [None, None]
    write_report(result, tmp_path / "report.html")
    assert "NaN" not in (tmp_path / "report.json").read_text()
