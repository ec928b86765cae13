"""`semprola compile | count | check | draw | cache`: results, exit status, errors in one line."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
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
    words = ["compile", "(cat -> animal) & (dog -> animal)", "--out", name, "--backend", "sdd", "--json"]
    answer = run(*words)
    assert answer.exit_code == 0, answer.output
    result = json.loads(answer.stdout)
    assert result["labels"] == 3
    assert result["backend"] == "sdd"
    assert Path(name).is_file()
    if not name.endswith((".dot", ".d4")):
        assert json.loads(run("count", name, "--json").stdout)["models"] == 5


def test_labels_and_given(run: Any) -> None:
    answer = run("compile", "a -> b & c", "--labels", "c,b", "--given", "a", "--backend", "topdown", "-o", "a.sp", "-v")
    assert answer.exit_code == 0, answer.output
    circuit = sp.Circuit.load("a.sp")
    assert (circuit.labels, circuit.given) == (("c", "b"), ("a",))
    assert "chosen by the caller" in answer.output


def test_count(run: Any) -> None:
    Path("a.cnf").write_text(CNF)
    assert run("count", "a.cnf").output == "4 models\n"
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
    assert (result["rows"], result["broken"]) == (3, 1)
    (row,) = result["broken rows"]
    assert (row["row"], row["place"], row["rules"]) == (3, "rows.csv:3", [1])
    assert row["values"] == {"dog": 1, "animal": 0}
    assert row["changes"] in ({"dog": 0}, {"animal": 1})
    answer = run("check", "(cat -> animal) & (dog -> animal)", "rows.csv")
    assert "rows.csv:3: dog -> animal (dog=1, animal=0); nearest row that obeys: " in answer.stdout
    assert run("check", "cat -> animal", "rows.csv", "--html", "report.html").exit_code == 0
    assert "1 rule over 2 labels" in Path("report.html").read_text()
    np.save("rows.npy", np.array([[1, 1, 0]]))
    assert run("check", "(cat -> animal) & (dog -> animal)", "rows.npy").exit_code == 0
    assert run("check", "a & ~a").exit_code == 1
    assert run("check", "a | b").exit_code == 0


@pytest.mark.parametrize("kind", ["csv", "arff", "npz", "npy"])
def test_check_takes_empty_cells_as_train_does(run: Any, kind: str) -> None:
    rules = "(cat -> pet) & (pet -> animal)"
    rows = [["1", "", ""], ["1", "?", "0"], ["NaN", "1", "1"], ["1", "0", ""]]
    text = "\n".join(",".join(row) for row in rows)
    Path("rows.csv").write_text(f"cat,pet,animal\n\n{text}\n")
    head = "".join(f"@attribute {name} numeric\n" for name in ("cat", "pet", "animal"))
    Path("rows.arff").write_text(f"@relation r\n{head}@data\n{text.replace(',,', ',?,')}\n")
    table = np.array([[float(word) if word in ("0", "1") else np.nan for word in row] for row in rows])
    np.save("rows.npy", table)
    np.savez("rows.npz", cat=table[:, 0], pet=table[:, 1], animal=table[:, 2])
    answer = run("check", rules, f"rows.{kind}", "--json")
    assert answer.exit_code == 1, answer.output
    result = json.loads(answer.stdout)
    # a text file counts lines from 1, a file of numbers is indexed from 0 as in Python
    places = {"csv": [4, 6], "arff": [7, 9]}.get(kind, [1, 3])
    assert (result["rows"], result["broken"]) == (4, 2)
    names = [f"rows.{kind}:{place}" if kind in ("csv", "arff") else f"rows.{kind}, row {place}" for place in places]
    assert [(row["row"], row["place"]) for row in result["broken rows"]] == [*zip(places, names, strict=True)]
    assert [row["rules"] for row in result["broken rows"]] == [[0, 1], [0]]
    assert [row["values"] for row in result["broken rows"]] == [{"cat": 1, "animal": 0}, {"cat": 1, "pet": 0}]


def test_check_needs_every_input(run: Any) -> None:
    run("compile", "a <-> x", "--given", "x", "--out", "a.sp")
    Path("rows.csv").write_text("x,a\n1,\n,1\n")
    answer = run("check", "a.sp", "rows.csv")
    assert answer.exit_code == 2
    assert answer.stderr == "error: rows.csv:3: input 'x' is empty, but inputs must be known\n"
    Path("rows.csv").write_text("x,a\n1,\n1,0\n")
    answer = run("check", "a.sp", "rows.csv", "--json")
    assert json.loads(answer.stdout)["why"] == ["rows.csv:3: a=0 and x=1 cannot hold together"]


def test_draw(run: Any) -> None:
    assert run("draw", "a -> b", "a.svg").exit_code == 0
    assert Path("a.svg").read_text().lstrip().startswith("<")


def test_what_a_person_reads(run: Any) -> None:
    lines = run("compile", "(cat -> animal) & (dog -> animal)", "-o", "a.sp").stdout.splitlines()
    assert lines[:2] == ["5 models over 3 labels", "a circuit of 9 nodes and 10 edges"]
    assert lines[-1] == "written to a.sp"
    Path("large.txt").write_text("exactly(150, " + ", ".join(f"x{i}" for i in range(300)) + ")")
    exact, about = run("count", "large.txt").stdout.splitlines()
    assert exact == f"{math.comb(300, 150)} models"
    assert about == f"about {Decimal(math.comb(300, 150)):.2e} models"
    Path("rows.csv").write_text("cat,animal,dog\n" + "1,0,0\n0,1,0\n" * 6)
    answer = run("check", "a.sp", "rows.csv")
    assert answer.exit_code == 1
    assert "broken         6\n  rows.csv:2: cat=1 and animal=0 cannot hold together\n" in answer.stdout
    assert answer.stdout.endswith("  … and 1 more\n")


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
        (["count", "missing.cnf"], "missing.cnf: no such file"),
        (["count", "a &"], "expected a formula"),
        (["count", "a | b", "--weighted"], "need a DIMACS file"),
        (["compile", "a", "--out", "a.xyz"], "unknown format"),
        (["compile", "a", "--backend", "d9"], "unknown backend 'd9'"),
        (["compile", "a", "--memory", "lots"], "--memory must be"),
        (["compile", "a", "--timeout", "-1"], "--timeout must be"),
        (["compile", "a -> b", "--labels", "b"], "add it to --labels (an output) or --given (an input)"),
        (["compile", "n + 1", "--max-nodes", "1"], "for numbers, write a line such as variable n: 0..9"),
        (["compile", "a", "--out", "nowhere/a.sp"], "nowhere: no such folder"),
        (["draw", "a", "a.pdf"], "an .svg, .png or .dot file"),
        (["check", "a | b", "bad.csv"], "bad.csv:2: label 'b' must be 0, 1 or empty (not observed), not 'x'"),
        (["check", "a | b", "short.csv"], "short.csv:1: there is no column 'b'; the file has a"),
        (["check", "a | b", "lnog.csv"], "lnog.csv: no such file: did you mean 'long.csv'?"),
        (["count", "bad.csv"], "unknown kind of file"),
        (["check", "a | b", "long.csv"], "long.csv:3: has 3 values, but line 1 names 2 columns"),
        (["check", "a", "few.csv"], "few.csv:2: has 1 values, but line 1 names 2 columns"),
        (["count", "rulesdir"], "rulesdir: this is a folder, not a file with rules"),
        (["check", "."], ".: this is a folder"),
        (["count", ""], "there is no rule in ''"),
    ],
)
def test_bad_input(run: Any, words: list[str], message: str) -> None:
    Path("bad.csv").write_text("a,b\n1,x\n")
    Path("short.csv").write_text("a\n1\n")
    Path("long.csv").write_text("a,b\n1,1\n1,1,1\n")
    Path("few.csv").write_text("a,b\n1\n")
    Path("rulesdir").mkdir()
    answer = run(*words)
    assert answer.exit_code == 2
    assert message in answer.stderr
    assert "Traceback" not in answer.output
    assert "Errno" not in answer.output
    assert not re.search(r"[a-z_]+=[^0-9]", answer.output), "an argument of Python, not an option"


def test_the_reason_for_a_back_end_is_shown_on_request(run: Any) -> None:
    assert "reason" not in run("compile", "a | b").output
    reason = sp.compile(sp.parse("a | b")).info["reason"]
    assert f"reason: {reason}" in run("compile", "a | b", "-v").output


def test_weights_of_any_size(run: Any) -> None:
    """The sum is 10^-6000 + ..., too small for a float and too long for Python's default of 4,300 digits."""
    lines = [f"c p weight {v} 1/{10**60} 0\nc p weight -{v} 0 0" for v in range(1, 101)]
    Path("tiny.cnf").write_text("\n".join(["p cnf 100 1", *lines, "1 2 0", ""]))
    answer = run("count", "tiny.cnf", "--weighted", "--json")
    assert answer.exit_code == 0, answer.output
    result = json.loads(answer.stdout)
    assert result["about"] == "1e-6000"
    assert result["log10"] == pytest.approx(-6000)
    assert result["weight"] == f"1/1{'0' * 6000}"


def test_weights_of_large_circuits(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """These are not exact, but still neither zero nor infinite."""
    from semprola.cli import weights

    monkeypatch.setattr(weights, "_MOST_EXACT_EDGES", 0)
    lines = [f"c p weight {v} 1/{10**60} 0\nc p weight -{v} 0 0" for v in range(1, 101)]
    Path("tiny.cnf").write_text("\n".join(["p cnf 100 1", *lines, "1 2 0", ""]))
    result = json.loads(run("count", "tiny.cnf", "--weighted", "--json").stdout)
    assert "weight" not in result
    assert result["log10"] == pytest.approx(-6000)
    assert str(result["about"]).lower().endswith("e-6000")


def test_a_byte_order_mark_and_blank_lines(run: Any) -> None:
    Path("mark.csv").write_bytes(b"\xef\xbb\xbfa,b\r\n1,0\r\n\r\n0,1\r\n")
    result = json.loads(run("check", "a | b", "mark.csv", "--json").stdout)
    assert (result["rows"], result["broken"]) == (2, 0)
    Path("mark.txt").write_bytes(b"\xef\xbb\xbfa | b")
    assert run("count", "mark.txt").output == "3 models\n"


_STRUCTURED = np.zeros(3, dtype=[("a", "i4"), ("b", "f8")])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("twice.csv", b"a,b,a\n1,0,0\n", "twice.csv:1: column 'a' occurs twice (columns 1 and 3)"),
        ("semicolon.csv", b"a;b\n1;0\n", "semicolon.csv:1: the columns seem to be separated by ';'"),
        ("tabs.csv", b"a\tb\n1\t0\n", "tabs.csv:1: the columns seem to be separated by tabs"),
        ("empty.csv", b"", "empty.csv: the file is empty"),
        ("blank.csv", b" \n\n", "blank.csv: the file is empty"),
        ("packed.csv", b"\x1f\x8b\x08\x00abc", "packed.csv: not UTF-8 text (byte 0x8b at 1); it looks like a gzip"),
        ("wide.csv", "a,b\n1,0\n".encode("utf-16"), "it looks like UTF-16 text: save it as UTF-8"),
        ("latin.csv", "a,b,größe\n1,0,1\n".encode("latin-1"), "it looks like Latin-1 or Windows text"),
        ("nul.csv", b"a,b\n1,\x000\n", "nul.csv: not text (byte 0x00 at 6)"),
        ("huge.csv", b'a,b\n1,"' + b"0" * 200_000, "huge.csv:2: not CSV: a field has more than 131072 characters"),
        ("empty.npy", b"", "empty.npy: the file is empty"),
        ("damaged.npy", b"\x93NUMPY\x01\x00\x05\x00{abc}", "damaged.npy: not a NumPy array"),
        ("text.npy", b"a,b\n1,0\n", "text.npy: not a NumPy array; it looks like text, such as CSV"),
    ],
)
def test_files_that_are_something_else(run: Any, name: str, content: bytes, message: str) -> None:
    Path(name).write_bytes(content)
    answer = run("check", "a | b", name)
    assert answer.exit_code == 2
    assert message in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_a_file_has_one_rule_per_line_for_every_command(run: Any) -> None:
    Path("rules.txt").write_text("cat -> animal  # a comment\n\ndog -> animal\n!(cat & dog)\n")
    assert json.loads(run("count", "rules.txt", "--json").stdout)["models"] == 4
    assert json.loads(run("compile", "rules.txt", "--json").stdout)["labels"] == 3
    Path("rows.csv").write_text("cat,dog,animal\n1,0,1\n1,1,1\n")
    assert json.loads(run("check", "rules.txt", "rows.csv", "--json").stdout)["broken"] == 1
    assert run("draw", "rules.txt", "rules.dot").exit_code == 0
    Path("several.txt").write_text("(cat -> animal) &\n(dog -> animal)\n")
    assert json.loads(run("count", "several.txt", "--json").stdout)["models"] == 5
    Path("comments.txt").write_text("# cat -> animal\n")
    assert "comments.txt: contains only comments, no rule" in run("count", "comments.txt").stderr
    Path("third.txt").write_text("a -> b\nb -> c\nc -> (\n")
    assert run("count", "third.txt").stderr.startswith("error: third.txt: at 3:")


def test_formula_files_that_are_something_else(run: Any) -> None:
    Path("empty.txt").write_text("")
    assert "empty.txt: the file is empty" in run("count", "empty.txt").stderr
    Path("picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert "picture.txt: not UTF-8 text (byte 0x89 at 0); it looks like a PNG" in run("count", "picture.txt").stderr
    Path("wrong.txt").write_text("a | | b")
    assert run("count", "wrong.txt").stderr.startswith("error: wrong.txt: ")
    for name in ("empty.cnf", "picture.cnf", "packed.cnf.gz", "empty.nnf", "picture.nnf", "empty.sp", "picture.sp"):
        Path(name).write_bytes(b"" if name.startswith("empty") else b"\x89PNG\r\n\x1a\n\0\0")
        answer = run("count", name)
        assert answer.exit_code == 2, name
        assert answer.stderr.startswith(f"error: {name}"), answer.stderr
        assert len(answer.stderr.splitlines()) == 1, answer.stderr


def test_arrays_that_are_something_else(run: Any) -> None:
    def said(array: np.ndarray[Any, Any]) -> str:
        np.save("a.npy", array)
        answer = run("check", "a | b", "a.npy")
        assert answer.exit_code == 2
        assert len(answer.stderr.splitlines()) == 1
        return str(answer.stderr)

    assert "a.npy: holds [('a', '<i4'), ('b', '<f8')], expected numbers" in said(_STRUCTURED)
    assert "a.npy: holds complex128, expected numbers" in said(np.zeros((2, 2), complex))
    assert "a.npy: holds <U1, expected numbers" in said(np.array([["0", "1"]]))
    assert "a.npy: has shape [2, 3], expected [rows, 2]" in said(np.zeros((2, 3)))
    assert "a.npy, row 1: label 'a' must be 0, 1 or empty (not observed), not '0.5'" in said(
        np.array([[0, 1], [0.5, 1]])
    )
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 2), }"
    for text in (header, header.replace(b"1000000000000", b"-1"), header.replace(b"<f8", b"<q99"), b"[" * 70 + b"\n"):
        Path("a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
        answer = run("check", "a | b", "a.npy")
        assert answer.exit_code == 2, text
        assert answer.stderr.startswith("error: a.npy: not a NumPy array: "), answer.stderr
