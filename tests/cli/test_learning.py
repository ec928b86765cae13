"""`semprola train` and `semprola predict`: from a table and rules to predictions that obey them."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semprola as sp

typer = pytest.importorskip("typer")
testing = pytest.importorskip("typer.testing")
pytest.importorskip("sklearn")
pytest.importorskip("safetensors")

LABELS = ["cat", "dog", "animal"]
RULES = "# animals\ncat -> animal\ndog -> animal\n~(cat & dog)\n"
STATES = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1]])
QUICK = ["--epochs", "20", "--hidden", "8", "--lr", "0.03"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from semprola.cli import app

    monkeypatch.chdir(tmp_path)
    Path("rules.txt").write_text(RULES)
    application = app.build(typer)
    return lambda *words: testing.CliRunner().invoke(application, list(words))


def table(count: int, seed: int = 0) -> dict[str, list[Any]]:
    """Two numbers and a text that tell, with noise, which of the four states a row has."""
    rng = np.random.default_rng(seed)
    state = rng.integers(4, size=count)
    columns: dict[str, list[Any]] = {
        "weight": (rng.normal(size=count) + 4 * (state == 2)).round(3).tolist(),
        "noise": (rng.normal(size=count) + 4 * (state == 3)).round(3).tolist(),
        "place": np.where(state == 0, "shelf", np.where(rng.random(count) < 0.5, "house", "garden")).tolist(),
    }
    return columns | {name: STATES[state, i].tolist() for i, name in enumerate(LABELS)}


def write_csv(path: str, columns: dict[str, list[Any]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def train(run: Any, data: str, *words: str) -> Any:
    return run(
        "train", data, "--labels", ",".join(LABELS), "--rules", "rules.txt", "--out", "model", "--force", *QUICK, *words
    )


def obeys(rows: list[dict[str, str]]) -> bool:
    return all(int(r["animal"]) >= int(r["cat"]) + int(r["dog"]) for r in rows)


def test_the_ten_minute_path(run: Any) -> None:
    write_csv("animals.csv", table(300))
    answer = train(run, "animals.csv", "--json")
    assert answer.exit_code == 0, answer.output
    figures = json.loads(answer.stdout)
    assert (figures["rows"], figures["held-out rows"], figures["inputs"], figures["labels"]) == (240, 60, 5, 3)
    assert figures["exact match"] > 75
    assert {"calibration error of labels", "area under precision-recall", "epochs"} <= figures.keys()
    assert not Path("model.checkpoint").exists()
    new = table(100, 1)
    write_csv("new.csv", {name: new[name] for name in ("place", "noise", "weight")})  # in another order
    answer = run("predict", "model", "new.csv", "--out", "out.csv")
    assert answer.exit_code == 0, answer.output
    rows = list(csv.DictReader(io.StringIO(Path("out.csv").read_text())))
    assert len(rows) == 100
    assert obeys(rows)
    right = [all(int(row[name]) == new[name][i] for name in LABELS) for i, row in enumerate(rows)]
    assert np.mean(right) > 0.75
    assert all(0 <= float(row[f"p({name})"]) <= 1 for row in rows for name in LABELS)
    assert run("predict", "model", "new.csv").stdout == Path("out.csv").read_text()


def test_a_model_is_not_replaced_by_accident_and_the_last_line_says_what_to_do_next(run: Any) -> None:
    write_csv("animals.csv", table(40))
    words = ["train", "animals.csv", "--labels", ",".join(LABELS), "--rules", "rules.txt", "--epochs", "1"]
    answer = run(*words, "--out", "model")
    assert answer.stderr == "training on 32 rows with 5 inputs and 3 labels; 8 more rows are held out\n"
    assert "trained on 32 rows in 1 epoch; model written to model\non 8 held-out rows, in percent:\n" in answer.stdout
    assert "next: semprola predict model NEW.csv --out predictions.csv\n" in answer.stdout
    before = Path("model/weights.safetensors").read_bytes()
    answer = run(*words, "--out", "model", "--seed", "1")
    assert answer.exit_code == 2
    found = "error: model: there is a model already: choose another --out, or replace it with --force\n"
    assert answer.stderr == found
    assert run(*words, "--out", "model", "--seed", "1", "--force").exit_code == 0
    assert Path("model/weights.safetensors").read_bytes() != before
    assert "this is a file" in run(*words, "--out", "rules.txt").stderr


def test_the_same_numbers_from_every_format(run: Any) -> None:
    columns = table(80)
    columns["place"] = [{"shelf": 0.0, "house": 1.0, "garden": 2.0}[word] for word in columns["place"]]
    write_csv("a.csv", columns)
    header = "@RELATION r\n" + "".join(f"@attribute '{name}' NUMERIC\n" for name in columns)
    body = "\n".join(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))
    Path("a.arff").write_text(f"% a comment\n{header}\n@DATA\n{body}\n")
    np.savez("a.npz", **{name: np.array(values) for name, values in columns.items()})
    names = ["a.csv", "a.arff", "a.npz"]
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(arrow.table(columns), "a.parquet")
    figures = [json.loads(train(run, name, "--json", "--epochs", "2").stdout) for name in [*names, "a.parquet"]]
    assert all(found == figures[0] for found in figures)
    predicted = {run("predict", "model", name).stdout for name in [*names, "a.parquet"]}
    assert len(predicted) == 1


def test_sparse_rows_are_those_of_the_dense_table(run: Any) -> None:
    head = "@relation r\n@attribute a numeric\n@attribute 'b c' {red, 'dark blue'}\n" + "".join(
        f"@attribute {name} {{0, 1}}\n" for name in LABELS
    )
    dense = ["1.5,red,0,0,0", "0,'dark blue',1,0,1", "0,red,0,0,0", "-2,red,0,1,1"]
    sparse = ["{0 1.5}", "{1 'dark blue', 2 1, 4 1}", "{}", "{0 -2, 3 1, 4 1}"]
    for name, rows in {"dense": dense, "sparse": sparse}.items():
        Path(f"{name}.arff").write_text(head + "@data\n" + "\n".join(rows * 10) + "\n")
        answer = train(run, f"{name}.arff", "--json", "--epochs", "2")
        assert answer.exit_code == 0, answer.output
    assert run("predict", "model", "sparse.arff").stdout == run("predict", "model", "dense.arff").stdout
    for row, message in {
        "{0 1.5": "does not end in }",
        "{0}": "entries such as '3 1.5', not '0'",
        "{x 1}": "entries such as '3 1.5', not 'x 1'",
        "{² 1}": "entries such as '3 1.5', not '² 1'",
        "1" * 131_073: "a value has more than 131072 characters",
        "{9 1}": "there are 5 attributes, counted from 0",
        "{0 1, 0 2}": "attribute 0 occurs twice",
    }.items():
        Path("bad.arff").write_text(f"{head}@data\n{row}\n")
        said = train(run, "bad.arff").stderr
        assert f"bad.arff:{head.count(chr(10)) + 2}: " in said
        assert message in said


def test_an_attribute_without_values(run: Any) -> None:
    Path("bad.arff").write_text("@relation r\n@attribute x {}\n@data\n1\n")
    assert "bad.arff:2: a nominal attribute lists its values" in train(run, "bad.arff").stderr


@pytest.mark.parametrize("huge", [["--hidden", "9" * 30], ["--hidden", "9999999999"], ["--components", "9" * 30]])
def test_networks_that_no_memory_holds(run: Any, huge: list[str]) -> None:
    columns = table(20)
    write_csv("rows.csv", columns)
    found = train(run, "rows.csv", *huge)
    assert found.exit_code == 2
    assert "too many weights" in found.stderr


def test_a_rule_about_an_input_is_a_label_with_evidence(run: Any) -> None:
    columns = table(120)
    columns["indoors"] = [int(place == "house") for place in columns["place"]]
    rows = zip(columns["indoors"], columns["cat"], strict=True)
    columns["cat"] = [cat if indoors else 0 for indoors, cat in rows]
    write_csv("rooms.csv", columns)
    words = ["--labels", "indoors,cat,animal", "--rules", "cat -> indoors", "--ignore", "dog", "--out", "model", *QUICK]
    assert "pass --evidence indoors" in run("train", "rooms.csv", *["--labels", "cat,animal", *words[2:]]).stderr
    assert run("train", "rooms.csv", *words).exit_code == 0
    outside = {**columns, "indoors": [0] * 120}
    write_csv("outside.csv", outside)
    rows = list(csv.DictReader(io.StringIO(run("predict", "model", "outside.csv", "--evidence", "indoors").stdout)))
    assert [row["cat"] for row in rows] == ["0"] * 120


def test_labels_that_are_not_observed(run: Any) -> None:
    columns = table(200)
    for row in range(0, 200, 3):
        columns["dog"][row] = ""
    columns["cat"][1] = "?"
    write_csv("some.csv", columns)
    answer = train(run, "some.csv", "--json")
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["labels right"] > 75


def test_figures_without_an_observed_label_are_not_known(run: Any) -> None:
    Path("na.csv").write_text("x,y\n1,1\n2,\n3,0\n4,\n5,\n6,1\n7,\n8,\n9,\n10,\n")
    words = ["train", "na.csv", "--labels", "y", "--epochs", "1", "--out", "m", "--force"]
    answer = run(*words, "--json")
    assert answer.exit_code == 0, answer.output
    figures = json.loads(answer.stdout, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert figures["held-out rows"] == 2
    scores = ["exact match", "labels right", "area under precision-recall", "calibration error of labels"]
    assert [figures[name] for name in [*scores, "calibration error of predictions"]] == [None] * 5
    assert "NaN" not in Path("m/model.json").read_text()
    text = run(*words).stdout
    assert text.count("not known") == 5, text


def test_held_out_rows_without_an_observed_label_do_not_count(run: Any) -> None:
    from semprola.cli.training import _figures

    class Ones:
        split_ = None
        predict = staticmethod(lambda X: np.ones((len(X), 1), np.int64))
        predict_proba = staticmethod(lambda X: np.ones((len(X), 1)))
        top_k = staticmethod(lambda X, k: (np.ones((len(X), 1, 1)), np.ones((len(X), 1))))

    figures = _figures(Ones(), np.zeros((4, 1)), np.array([[1], [0], [np.nan], [np.nan]], np.float32))  # type: ignore[arg-type]
    assert (figures["held-out rows"], figures["exact match"], figures["labels right"]) == (4, 50.0, 50.0)
    assert figures["calibration error of predictions"] == 50.0


def test_evidence_and_explanations(run: Any) -> None:
    write_csv("animals.csv", table(300))
    assert train(run, "animals.csv").exit_code == 0
    new = {**table(20, 2), "dog": [1, ""] * 10}
    write_csv("new.csv", new)
    rows = list(csv.DictReader(io.StringIO(run("predict", "model", "new.csv", "--evidence", "dog").stdout)))
    assert all((row["dog"], row["cat"], row["animal"]) == ("1", "0", "1") for row in rows[::2])
    assert all(float(row["p(dog)"]) == 1 for row in rows[::2])
    assert obeys(rows)
    told = run("predict", "model", "new.csv", "--explain").stdout
    assert told.startswith("line 2: ")
    lines = [
        json.loads(line)
        for line in run("predict", "model", "new.csv", "--explain", "--json", "--evidence", "dog").stdout.splitlines()
    ]
    assert [line["line"] for line in lines] == list(range(2, 22))
    assert all([next(iter(entry)) for entry in line["if"]] == ["cat", "animal"] for line in lines[::2])
    flip = lines[0]["if"][1]  # a dog that is not an animal
    assert flip["animal"] == 0
    assert flip["breaks"] == ["dog -> animal"]
    assert flip["best"] is None
    model = sp.load("model")
    assert sum(entry["probability"] > 0 for line in lines for entry in line["if"]) > 10
    assert model.labels_ == tuple(LABELS)


def test_explanations_are_what_the_distribution_says(run: Any) -> None:
    write_csv("animals.csv", table(200))
    train(run, "animals.csv")
    write_csv("new.csv", table(5, 3))
    lines = [json.loads(line) for line in run("predict", "model", "new.csv", "--explain", "--json").stdout.splitlines()]
    from semprola.cli.inputs import Features
    from semprola.cli.tables import read_table
    from semprola.saving.folders import read_metadata

    features = Features.from_json(read_metadata("model")[0]["table"]["features"])
    p = sp.load("model").distribution(features.table(read_table(Path("new.csv"))))
    support: list[list[int]] = STATES.tolist()
    chances = np.exp(np.stack([p.log_prob(p.mean.new_tensor(state).expand(5, 3)).numpy() for state in support]))
    for row, line in enumerate(lines):
        best = support[int(chances[:, row].argmax())]
        assert line["labels"] == [name for name, one in zip(LABELS, best, strict=True) if one]
        for j, entry in enumerate(line["if"]):
            allowed = [i for i, state in enumerate(support) if state[j] == 1 - best[j]]
            assert entry["probability"] == pytest.approx(chances[allowed, row].sum())
            top = support[max(allowed, key=lambda i: chances[i, row])]
            assert entry["best"] == [name for name, one in zip(LABELS, top, strict=True) if one]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--labels", "cat,bird"], "animals.csv:1: there is no column 'bird'; the file has weight, noise, place, cat"),
        (
            ["--labels", "cat,dog"],
            "the rules mention 'animal', a column that is not in --labels: add it there, and if you",
        ),
        (["--rules", "cat -> bird"], "the constraint mentions 'bird', which is not listed: add it to --labels"),
        (["--layer", "product-spl", "--units", "2"], "--units is for --layer spl: use --components instead"),
        (["--lr", "-1"], "error: --lr must not be negative"),
        (["--decode", "best"], "'best' is not one of 'mode', 'hamming'"),
        (["--max-nodes", "1"], "more than --max-nodes 1: split the constraint: --split, or raise --max-nodes"),
        (["--labels", ","], "--labels names no column"),
        (["--ignore", "colour"], "there is no column 'colour'"),
        (["--ignore", "wieght"], "there is no column 'wieght': did you mean 'weight'?"),
        (["--ignore", "weight,noise,place"], "there is no column left to predict from"),
        (["--held-out", "1"], "--held-out must be from 0 to below 1"),
        (["--hidden", "big"], "--hidden takes widths such as 64"),
        (["--layer", "triple"], "'triple' is not one of 'product-spl', 'spl'"),
        (["--rules", "cat -> -> dog"], "expected"),
        (["--rules", "cat & ~cat"], "no model"),
        (["--rules", ""], "there is no rule in ''"),
        (["--rules", "empty.txt"], "empty.txt: the file is empty"),
        (["--rules", "comments.txt"], "comments.txt: contains only comments, no rule"),
        (["--rules", "norules.txt"], "norules.txt: no such file"),
        (["--rules", "rulesdir"], "rulesdir: this is a folder"),
        (["--device", "nodev"], "device 'nodev' cannot be used"),
        (["--device", ""], "device '' cannot be used"),
        (["--seed", "-1"], "--seed"),
        (["--seed", "4294967296"], "--seed"),
    ],
)
def test_bad_options(run: Any, words: list[str], message: str) -> None:
    write_csv("animals.csv", table(30))
    Path("empty.txt").write_text("")
    Path("comments.txt").write_text("# cat -> animal\n")
    Path("rulesdir").mkdir()
    answer = train(run, "animals.csv", *words)
    assert answer.exit_code == 2, answer.output
    assert message in answer.stderr
    assert "Traceback" not in answer.output


def test_bad_tables(run: Any) -> None:
    def said(change: Any) -> str:
        columns = table(30)
        change(columns)
        write_csv("bad.csv", columns)
        answer = train(run, "bad.csv")
        assert answer.exit_code == 2
        assert len(answer.stderr.splitlines()) == 1, answer.stderr
        return str(answer.stderr)

    message = said(lambda columns: columns["cat"].__setitem__(3, "maybe"))
    assert "bad.csv:5: label 'cat' must be 0, 1 or empty (not observed), not 'maybe'" in message
    message = said(lambda columns: columns["weight"].__setitem__(3, ""))
    assert "bad.csv:5: column 'weight' is empty, expected a number" in message
    message = said(lambda columns: columns.update(cat=[1] * 30, dog=[1] * 30, animal=[0] * 30))
    assert (
        "30 of 30 rows break the rules: bad.csv:2: cat -> animal [rules.txt:2] (cat=1, animal=0); bad.csv:3" in message
    )
    assert "(--skip-inconsistent leaves them out)" in message
    Path("short.csv").write_text("a,cat,dog,animal\n1,0,0\n")
    assert "short.csv:2: has 3 values, but line 1 names 4 columns" in train(run, "short.csv").stderr
    Path("none.csv").write_text("a,cat,dog,animal\n")
    assert "none.csv: the table has no rows" in train(run, "none.csv").stderr
    Path("a.xlsx").write_text("x")
    assert "a.xlsx: unknown kind of table" in train(run, "a.xlsx").stderr
    for name in ("bad.arff", "bad.parquet", "bad.npz"):
        Path(name).write_bytes(b"nonsense")
        assert train(run, name).stderr.startswith(f"error: {name}"), name
        answer = train(run, "missing-" + name)
        assert answer.exit_code == 2
        assert answer.stderr.startswith(f"error: missing-{name}: no such file: did you mean "), answer.stderr
    Path("text.npz").write_text("a,cat\n1,0\n")
    assert train(run, "text.npz").stderr == "error: text.npz: not an npz archive; it looks like text, such as CSV\n"


def test_rows_that_break_the_rules_can_be_left_out(run: Any) -> None:
    columns = table(100)
    columns["cat"][4], columns["dog"][4] = 1, 1
    columns["cat"][7], columns["animal"][7], columns["dog"][7] = 1, 0, ""
    write_csv("some.csv", columns)
    assert "some.csv:9: cat -> animal [rules.txt:2] (cat=1, animal=0)" in train(run, "some.csv").stderr
    answer = train(run, "some.csv", "--skip-inconsistent", "--held-out", "0")
    assert answer.exit_code == 0, answer.output
    assert "left out: 2 of 100 rows break the rules: some.csv:6: " in answer.stderr
    assert "trained on 98 rows" in answer.stdout
    write_csv("new.csv", {**table(3, 1), "cat": [1, 0, 1], "dog": [1, 0, 0]})
    answer = run("predict", "model", "new.csv", "--evidence", "cat,dog")
    assert answer.exit_code == 2
    assert (
        "1 of 3 rows have evidence that breaks the rules: new.csv:2: cat=1 and dog=1 cannot hold together (--skip"
        in answer.stderr
    )
    answer = run("predict", "model", "new.csv", "--evidence", "cat,dog", "--skip-inconsistent")
    assert len(answer.stdout.splitlines()) == 3
    assert "'bird', which is not a label" in run("predict", "model", "new.csv", "--evidence", "bird").stderr
    assert "no model here" in run("predict", "elsewhere", "new.csv").stderr
    sp.save(sp.SPL(3, "a | b"), "other")
    assert "not a model made by `semprola train`" in run("predict", "other", "new.csv").stderr


def test_rows_that_a_model_cannot_read(run: Any) -> None:
    write_csv("animals.csv", table(60))
    assert train(run, "animals.csv", "--epochs", "1").exit_code == 0

    def said(**changes: Any) -> str:
        columns = {name: values for name, values in (table(4, 1) | changes).items() if values is not None}
        write_csv("new.csv", columns)
        answer = run("predict", "model", "new.csv", "--out", "out.csv")
        assert answer.exit_code == 2
        assert len(answer.stderr.splitlines()) == 1, answer.stderr
        assert not Path("out.csv").exists()
        return str(answer.stderr)

    assert "new.csv:1: there is no column 'weight'; the file has noise, place, cat" in said(weight=None)
    assert "new.csv:3: column 'weight' is empty, expected a number" in said(weight=[1, "", 2, 3])
    assert "new.csv:4: column 'noise' is 'loud', expected a number" in said(noise=[1, 2, "loud", 3])
    assert "new.csv:2: column 'noise' is 'inf', expected a number" in said(noise=["inf", 2, 3, 3])
    np.savez("new.npz", weight=np.zeros(3), noise=np.zeros(2))
    assert "different numbers of rows: [2, 3]" in run("predict", "model", "new.npz").stderr
    # a place that did not occur in training is still a valid input
    write_csv("new.csv", {**table(4, 1), "place": ["moon"] * 4})
    assert obeys(list(csv.DictReader(io.StringIO(run("predict", "model", "new.csv").stdout))))


def test_rows_of_parquet_files_are_named(run: Any) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = table(30)
    columns["cat"][3], columns["dog"][3] = 1, 1
    columns["cat"][5] = None
    parquet.write_table(arrow.table(columns), "a.parquet")
    assert (
        "1 of 30 rows break the rules: a.parquet, row 3: ~(cat & dog) [rules.txt:4] (cat=1, dog=1)"
        in train(run, "a.parquet").stderr
    )
    assert train(run, "a.parquet", "--skip-inconsistent", "--epochs", "1").exit_code == 0
    parquet.write_table(arrow.table({**columns, "weight": [None, *columns["weight"][1:]]}), "b.parquet")
    assert "b.parquet, row 0: column 'weight' is empty" in run("predict", "model", "b.parquet").stderr


@pytest.mark.extensive
@pytest.mark.skipif(os.name != "posix", reason="sends the signal of Ctrl-C")
def test_an_interrupted_call_goes_on_to_the_same_model(run: Any) -> None:
    write_csv("animals.csv", table(400))
    words = ["animals.csv", "--labels", ",".join(LABELS), "--rules", "rules.txt", "--epochs", "12", "--patience", "12"]
    command = [sys.executable, "-m", "semprola", "train", *words, "--hidden", "32", "--batch-size", "8"]
    process = subprocess.Popen([*command, "--out", "two"], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while not Path("two.checkpoint").exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted: training can continue from two.checkpoint with --resume" in said
    assert "Traceback" not in said
    assert not Path("two").exists()
    subprocess.run([*command, "--out", "two", "--resume"], check=True, capture_output=True)
    subprocess.run([*command, "--out", "one"], check=True, capture_output=True)
    assert Path("one/weights.safetensors").read_bytes() == Path("two/weights.safetensors").read_bytes()
