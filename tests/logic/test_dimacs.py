"""DIMACS: dialects, errors with line numbers, round trips, mutated files."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import pickle
import random
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import semprola as sp
from semprola.errors import FormatError, PropertyError
from semprola.logic import Bool, Cnf, from_dimacs, parse, to_dimacs, write_dimacs

TEXT = """c an example
c p show 1 3 0
p cnf 4 3
1 -2 0
c p weight 1 0.25 0
c p weight -1 3/4 0
2
 3 0 -4
0
c p weight 2 1e-3 0
"""


def test_everything_is_read() -> None:
    cnf = from_dimacs(TEXT)
    assert cnf.num_vars == 4
    assert cnf.clauses == [[1, -2], [2, 3], [-4]]
    assert cnf.literals.tolist() == [1, -2, 2, 3, -4]
    assert cnf.offsets.tolist() == [0, 2, 4, 5]
    assert dict(cnf.weights) == {1: Fraction(1, 4), -1: Fraction(3, 4), 2: Fraction(1, 1000)}
    assert cnf.show == (1, 3)
    assert cnf.labels == ("1", "2", "3", "4")
    assert repr(cnf) == "cnf(4 variables, 3 clauses)"


def test_unused_variables_are_labels_and_combine() -> None:
    cnf = from_dimacs("p cnf 5 1\n3 0\n")
    assert cnf.labels == ("1", "2", "3", "4", "5")
    assert (Bool("4") & ~Bool("x") & cnf).labels == ("4", "x", "1", "2", "3", "5")
    assert (~cnf).evaluate({"1": 0, "2": 0, "3": 0, "4": 0, "5": 0}) is True


@pytest.mark.parametrize(
    ("text", "rows", "truth"),
    [
        ("p cnf 0 0\n", [[], []], [True, True]),
        ("p cnf 2 0", [[0, 1]], [True]),
        ("p cnf 1 1\n0\n", [[0], [1]], [False, False]),
        ("p cnf 1 2\n1 0 -1 0\n", [[0], [1]], [False, False]),
        ("p cnf 2 1\n1 -1 0\n", [[0, 0], [1, 1]], [True, True]),
        ("p cnf 2 1\r\n1 2 0\r\n%\r\n0\r\n\r\n", [[0, 0], [0, 1]], [False, True]),
        ("c comments only first\ncno space\n\n\np cnf 1 1\n1 0", [[0], [1]], [False, True]),
    ],
)
def test_small_and_odd_files(text: str, rows: list[list[int]], truth: list[bool]) -> None:
    assert from_dimacs(text).evaluate(np.array(rows)).tolist() == truth


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "<text>:1: no 'p cnf VARIABLES CLAUSES' line"),
        ("c only\nc comments\n", "<text>:2: no 'p cnf VARIABLES CLAUSES' line"),
        ("p cnf 2\n", "<text>:1: expected 'p cnf VARIABLES CLAUSES', got 'p cnf 2'"),
        ("p cnf 2 x\n", "<text>:1: expected 'p cnf VARIABLES CLAUSES', got 'p cnf 2 x'"),
        ("p cnf -2 1\n", "<text>:1: expected 'p cnf VARIABLES CLAUSES', got 'p cnf -2 1'"),
        ("p dnf 2 1\n1 0\n", "<text>:1: expected 'p cnf VARIABLES CLAUSES', got 'p dnf 2 1'"),
        ("p cnf 1 1\np cnf 1 1\n", "<text>:2: a second 'p' line; a file has only one"),
        ("p cnf 99999999999 1\n", "<text>:1: 99,999,999,999 variables declared; at most 10,000,000 are supported"),
        ("1 2 0\np cnf 2 1\n", "<text>:1: expected 'p cnf VARIABLES CLAUSES' before the first clause, got '1'"),
        ("p cnf 2 1\n1 a 0\n", "<text>:2: expected an integer, got 'a'"),
        ("p cnf 2 1\n1 1_0 0\n", "<text>:2: expected integers, got '1 1_0 0'"),
        ("p cnf 2 1\n١ 0\n", "<text>:2: expected integers, got '١ 0'"),
        ("p cnf 2 1\n1 -3 0\n", "<text>:2: literal -3 is out of range; the header declares 2 variables"),
        (
            "p cnf 2 1\n1 2 0\n1 0\n",
            "<text>:3: more clauses than the 1 that the header declares; strict=False allows it",
        ),
        (
            "p cnf 2 3\n1 2 0\n\n1 0\n\n",
            "<text>:4: the header declares 3 clauses, but there are 2; strict=False allows it",
        ),
        ("p cnf 2 2\n1 2 0\n1\n2\n", "<text>:3: the clause that begins here does not end with 0"),
        ("p cnf 2 0\nc p weight 3 1 0\n", "<text>:2: literal 3 is out of range; the header declares 2 variables"),
        ("c p show 7 0\np cnf 2 0\n", "<text>:1: literal 7 is out of range; the header declares 2 variables"),
        ("p cnf 2 0\nc p show 1 2\n", "<text>:2: a 'c p show' line must end in 0"),
        ("p cnf 2 0\nc p show 1 -2 0\n", "<text>:2: expected a variable, got '-2'"),
        ("p cnf 2 0\nc p weight 0 1 0\n", "<text>:2: expected a literal, got '0'"),
        ("p cnf 2 0\nc p weight 1 0.5\n", "<text>:2: expected 'c p weight LITERAL WEIGHT 0', got 'c p weight 1 0.5'"),
        (
            "p cnf 2 0\nc p weight 1 1/2+1i 0\n",
            "<text>:2: weight '1/2+1i' is not a rational number such as 0.25, 1e-3 or 1/3",
        ),
        (
            "p cnf 2 0\nc p weight 1 1/0 0\n",
            "<text>:2: weight '1/0' is not a rational number such as 0.25, 1e-3 or 1/3",
        ),
        (
            "p cnf 2 0\nc p weight 1 1e999999999 0\n",
            "<text>:2: weight '1e999999999' is not a rational number such as 0.25, 1e-3 or 1/3",
        ),
        (
            "p cnf 2 0\nc p weight 1 0.5 0\nc p weight 1 0.6 0\n",
            "<text>:3: literal 1 has a second, different weight; the first is on line 2",
        ),
    ],
)
def test_errors_name_the_line(text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        from_dimacs(text)
    assert str(caught.value) == message


def test_a_wrong_number_of_clauses_can_be_allowed() -> None:
    assert from_dimacs("p cnf 2 1\n1 2 0\n1 0\n", strict=False).clauses == [[1, 2], [1]]
    assert from_dimacs("p cnf 2 3\n1 2 0\n", strict=False).num_clauses == 1


def test_a_literal_of_thousands_of_digits() -> None:
    with pytest.raises(FormatError, match=r"^<text>:2: "):
        from_dimacs(f"p cnf 2 1\n{'9' * 10_000} 0\n")


@pytest.mark.parametrize(
    ("suffix", "compress"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)]
)
def test_files(tmp_path: Path, suffix: str, compress) -> None:
    path = tmp_path / f"example.cnf{suffix}"
    path.write_bytes(compress(TEXT.encode()))
    assert from_dimacs(path) == from_dimacs(str(path)) == from_dimacs(TEXT)
    path.write_bytes(compress(b"p cnf 1 1\n2 0\n"))
    with pytest.raises(FormatError, match=rf"example\.cnf{suffix}:2: literal 2 is out of range"):
        from_dimacs(path)
    write_dimacs(from_dimacs(TEXT), path)
    assert from_dimacs(path) == from_dimacs(TEXT)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
@pytest.mark.parametrize("damage", [b"", b"not compressed", "cut"])
def test_damaged_archives(tmp_path: Path, suffix: str, damage) -> None:
    compress = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}[suffix]
    path = tmp_path / f"damaged.cnf{suffix}"
    path.write_bytes(compress(TEXT.encode() * 50)[:60] if damage == "cut" else damage)
    with pytest.raises(FormatError, match=r"damaged\.cnf"):
        from_dimacs(path)


@pytest.mark.parametrize("name", ["absent.cnf", "x" * 5000, "a\0b", "."])
def test_unreadable_paths(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match=r"cannot be read \(.*\); give a DIMACS file") as caught:
        from_dimacs(f"{tmp_path}/{name}")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_wrong_types() -> None:
    with pytest.raises(TypeError, match=r"^from_dimacs: expected a path or a text, got 3$"):
        from_dimacs(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^to_dimacs: expected a Cnf, got a & b; Cnf\(n, clauses\) makes one$"):
        to_dimacs(parse("a & b"))  # type: ignore[arg-type]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.cnf"
    write_dimacs(Cnf(1, [[1]]), path)
    with pytest.raises(TypeError):
        write_dimacs(Bool("a"), path)  # type: ignore[arg-type]
    assert from_dimacs(path).clauses == [[1]]
    with pytest.raises(FileNotFoundError):
        write_dimacs(Cnf(1, [[1]]), tmp_path / "no" / "such.cnf")


def test_text_round_trip() -> None:
    cnf = from_dimacs(TEXT)
    assert from_dimacs(to_dimacs(cnf)) == cnf
    assert pickle.loads(pickle.dumps(cnf)) == cnf
    assert pickle.loads(pickle.dumps(cnf & Bool("1"))) is (cnf & Bool("1"))


def test_cnf_is_immutable_and_told_apart_by_content() -> None:
    cnf = Cnf(2, [[1, -2]])
    with pytest.raises(ValueError, match="read-only"):
        cnf.literals[0] = 2
    with pytest.raises(TypeError):
        cnf.weights[1] = Fraction(1)  # type: ignore[index]
    assert cnf == Cnf(2, [(1, -2)])
    others = [
        Cnf(3, [[1, -2]]),
        Cnf(2, [[1], [-2]]),
        Cnf(2, [[1, -2]], weights={1: Fraction(1, 2)}),
        Cnf(2, [[1, -2]], show=[1]),
    ]
    assert len({cnf, *others}) == 5
    with pytest.raises(PropertyError, match=r"compile it with semprola\.compile"):
        cnf.to_circuit()


@pytest.mark.parametrize("bad", [0, 3, -3, "1", 1.0, True])
def test_cnf_checks_its_literals(bad) -> None:
    with pytest.raises(FormatError, match=r"^clause 1: expected a literal from 1 to 2 or its negative, got "):
        Cnf(2, [[1], [2, bad]])
    with pytest.raises(FormatError, match=r"^weights: expected a literal"):
        Cnf(2, [], weights={bad: Fraction(1)})


def test_cnf_checks_the_number_of_variables() -> None:
    for bad in (-1, 10**8, "3", True):
        with pytest.raises(FormatError, match=r"^the number of variables must be from 0 to 10,000,000, got "):
            Cnf(bad, [])  # type: ignore[arg-type]


def test_mutated_text_gives_a_formula_or_a_format_error() -> None:
    generator = random.Random(11)
    pieces = [
        "0",
        "-",
        " ",
        "\n",
        "p cnf 2 1\n",
        "c ",
        "c p weight 1 0.5 0\n",
        "c p show 2 0\n",
        "%",
        "9" * 30,
        "é",
        "\x00",
        "w",
    ]
    messages = []
    for _ in range(600):
        text = TEXT
        for _ in range(generator.randint(1, 3)):
            at = generator.randrange(len(text) + 1)
            text = text[:at] + generator.choice(["", "", *pieces]) + text[at + generator.choice([0, 0, 1, 2, 5]) :]
        try:
            cnf = from_dimacs(text + "\n")
        except FormatError as error:
            messages.append(str(error))
        else:
            assert from_dimacs(to_dimacs(cnf)) == cnf
    assert all(re.match(r"<text>:[0-9]+: .*\Z", message) for message in messages)
    assert 50 < len(messages) < 550


def test_published_files(shared_data: Path) -> None:
    oracles = shared_data / "oracles"
    files = sorted([*oracles.glob("uf20/*.cnf"), *oracles.glob("mc2022/*.cnf.gz"), *oracles.glob("ganak_tests/*.cnf")])
    assert files
    refused = []
    for path in files:
        try:
            cnf = from_dimacs(path, strict=False)
        except FormatError as error:
            refused.append(str(error))
        else:
            assert len(cnf.labels) == cnf.num_vars
    # Complex and polynomial weights are not rational numbers; the message has to say so.
    assert all("is not a rational number" in message for message in refused)
    assert len(refused) < 10


def test_published_counts_by_enumeration(shared_data: Path) -> None:
    folder = shared_data / "oracles"
    counts = json.loads((folder / "uf20_counts.json").read_text())
    rows = ((np.arange(2**20)[:, None] >> np.arange(20)) & 1).astype(bool)
    name, path = next((name, folder / "uf20" / name) for name in counts if (folder / "uf20" / name).exists())
    assert int(from_dimacs(path).evaluate(rows).sum()) == int(counts[name])


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.cnf"
    path.write_bytes(b"\xef\xbb\xbfp cnf 2 1\n1 2 0\n")
    assert sp.compile(sp.from_dimacs(path)).model_count() == 3
