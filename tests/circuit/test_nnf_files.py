"""NNF files in both dialects: reading, writing, and malformed files."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from circuit_cases import Referee, damaged, diagram, random_models

from semprola.circuit import Circuit, CircuitBuilder, properties
from semprola.circuit.nnf_files import read_nnf, write_nnf
from semprola.errors import FormatError, LabelError, UnsatisfiableError

# 1 xor 2, with 3 free
C2D = "c made by hand\nnnf 7 6 3\nL 1\nL -1\nL 2\nL -2\nA 2 0 3\nA 2 1 2\nO 1 2 4 5\n"
# 1 xor 2, and (3 or 4)
D4 = "a 1 0\no 2 0\no 3 0\nt 4 0\nf 5 0\n1 2 0\n1 3 0\n2 4 1 -2 0\n2 4 -1 2 0\n2 5 1 2 0\n3 4 3 0\n3 4 -3 4 0\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "a.nnf"
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


def test_c2d(tmp_path: Path) -> None:
    circuit = read_nnf(written(tmp_path, C2D))
    assert circuit.labels == ("1", "2", "3")
    assert Referee(circuit).rows() == {(1, 0, 0), (1, 0, 1), (0, 1, 0), (0, 1, 1)}
    assert circuit.model_count() == 4


def test_d4(tmp_path: Path) -> None:
    circuit = read_nnf(written(tmp_path, D4), labels=["a", "b"], given=["c", "d"])
    assert (circuit.labels, circuit.given) == (("a", "b"), ("c", "d"))
    wanted = {(a, 1 - a, c, d) for a in (0, 1) for c in (0, 1) for d in (0, 1) if c or d}
    assert Referee(circuit).rows() == wanted
    assert read_nnf(written(tmp_path, D4), labels="abcdef").model_count() == 4 * len(wanted)


def test_d4_root_need_not_be_1(tmp_path: Path) -> None:
    text = D4.replace("a 1 0", "a 9 0").replace("1 2 0\n1 3 0", "9 2 0\n9 3 0")
    assert read_nnf(written(tmp_path, text)).model_count() == 6


@pytest.mark.parametrize("dialect", ["c2d", "d4"])
@pytest.mark.parametrize("suppress", [False, True])
def test_round_trip(tmp_path: Path, dialect: str, suppress: bool) -> None:
    rng = random.Random(0)
    for trial in range(40):
        variables = rng.randint(1, 6)
        models = random_models(rng, variables, rng.choice((0.1, 0.5, 0.9)))
        circuit = diagram(models, variables, given=trial % 2 and variables // 3, suppress=suppress)
        circuit.write_nnf(tmp_path / "a.nnf", dialect)
        again = read_nnf(tmp_path / "a.nnf", labels=circuit.labels, given=circuit.given)
        assert Referee(again).rows() == models
        assert again.model_count() == len(models)
        assert again.given == circuit.given


@pytest.mark.parametrize("dialect", ["c2d", "d4"])
def test_round_trip_of_constants_literals_and_nested_products(tmp_path: Path, dialect: str) -> None:
    b = CircuitBuilder(list("abcdef"))
    xor = [b.decision(i, b.literal(i + 1, True), b.literal(i + 1, False)) for i in (0, 2, 4)]
    shared = b.product([xor[1], xor[2]])
    roots = [
        b.true(),
        b.literal(3, False),
        b.product([b.literal(0, True), b.literal(1, False)]),
        b.product(xor),
        b.sum([b.product([b.literal(0, True), shared]), b.product([b.literal(0, False), b.literal(1, True), shared])]),
        b.sum([b.product([b.literal(0, True), b.literal(1, True)]), b.literal(0, False)]),
    ]
    for root in roots:
        circuit = b.build(root)
        write_nnf(circuit, tmp_path / "a.nnf", dialect)
        assert Referee(read_nnf(tmp_path / "a.nnf", labels=circuit.labels)).rows() == Referee(circuit).rows()


def test_decision_variables_are_written(tmp_path: Path) -> None:
    circuit = read_nnf(written(tmp_path, C2D))
    circuit.write_nnf(tmp_path / "b.nnf")
    assert re.search(r"^O [12] 2 \d \d$", (tmp_path / "b.nnf").read_text(), re.M)


def test_unknown_dialect(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dialect must be 'c2d' or 'd4', not 'd5'"):
        write_nnf(read_nnf(written(tmp_path, C2D)), tmp_path / "b.nnf", "d5")
    assert not (tmp_path / "b.nnf").exists()


@pytest.mark.parametrize("text", ["nnf 1 0 2\nO 0 0\n", "f 1 0\n", "nnf 3 2 1\nL 1\nO 0 0\nA 2 0 1\n", "o 1 0\n"])
def test_false(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnsatisfiableError, match=r"a\.nnf: the circuit is false"):
        read_nnf(written(tmp_path, text))


def test_true(tmp_path: Path) -> None:
    assert read_nnf(written(tmp_path, "nnf 1 0 2\nA 0\n")).model_count() == 4
    assert read_nnf(written(tmp_path, "t 1 0\n"), labels=["a"]).model_count() == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.nnf:1: the file is empty"),
        ("c only\n", "a.nnf:1: the file is empty"),
        ("p cnf 3 2\n", "a.nnf:1: starts with 'p'"),
        (C2D.replace("nnf 7 6 3", "nnf 7 6"), "a.nnf:2: the first line must be"),
        (C2D.replace("nnf 7", "nnf 8"), "a.nnf:9: the first line announces 8 nodes, but the file has 7"),
        (C2D.replace("nnf 7 6 3", "nnf 999999999999 6 3"), "number of nodes must be between"),
        (C2D.replace("nnf 7 6 3", "nnf 7 6 999999999"), "number of variables must be between 0 and 1000000"),
        (C2D.replace("L -2", "L -4"), "a.nnf:6: literal must be between -3 and 3, not -4"),
        (C2D.replace("L -2", "L 0"), "a literal cannot be 0"),
        (C2D.replace("L -2", "L two"), "literal must be a whole number, not 'two'"),
        (C2D.replace("L -2", "X -2"), "a node is 'L literal'"),
        (C2D.replace("A 2 0 3", "A 2 0 4"), "a.nnf:7: child must be between 0 and 3, not 4"),
        (C2D.replace("A 2 0 3", "A 3 0 3"), "3 children announced, but 2 follow"),
        (C2D.replace("A 2 0 3", "A"), "a node is"),
        (C2D.replace("O 1 2 4 5", "O 9 2 4 5"), "decision variable must be between 0 and 3"),
        ("nnf 1 0 1\nA 1 0\n", "the first node cannot have children"),
        (C2D.replace("A 2 0 3", "A 2 0 1"), "a.nnf: not decomposable"),
        (C2D.replace("A 2 1 2", "A 1 2").replace("A 2 0 3", "A 1 0"), "a.nnf: not deterministic"),
        (D4.replace("t 4 0", "t 4"), "a.nnf:4: a line is"),
        (D4.replace("t 4 0", "x 4 0"), "a.nnf:4: a node is"),
        (D4.replace("t 4 0", "t 3 0"), "node 3 is declared twice"),
        (D4.replace("t 4 0\n", ""), "a.nnf:7: node 4 is not declared"),
        (D4.replace("1 3 0", "4 3 0"), "a.nnf:7: an edge leaves node 4, which is a constant"),
        (D4.replace("2 5 1 2 0", "2 1 0"), "no root"),
        (D4.replace("2 5 1 2 0", "2 3 0\n3 2 0"), "lies below itself"),
        (D4.replace("2 5 1 2 0", "2 5 1 0 2 0"), "a literal cannot be 0"),
        (D4.replace("2 5 1 2 0", "2 5 1000001 0"), "literal must be between"),
        (D4.replace("3 4 -3 4 0", "3 4 -3 2 0"), "not decomposable"),
        (D4.replace("3 4 -3 4 0", "3 4 4 0"), "not deterministic"),
    ],
)
def test_broken_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=re.escape(message)) as caught:
        read_nnf(written(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_names_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(LabelError, match=r"a\.nnf has 3 variables, but 2 names"):
        read_nnf(written(tmp_path, C2D), labels=["a", "b"])
    with pytest.raises(FormatError, match="literal must be between -2 and 2"):
        read_nnf(written(tmp_path, D4), labels=["a", "b"])


@pytest.mark.parametrize("text", ["nnf 10 6 3\nL 1\n", "t 1 0\nt 2 0\n1 2 0\n"])
def test_reading_costs_no_more_than_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError):
        read_nnf(written(tmp_path, text))


def test_deep_files(tmp_path: Path) -> None:
    """A chain of 20,000 nodes: nothing recurses."""
    depth = 20_000
    d4 = [*(f"o {i} 0" for i in range(1, depth + 1)), f"t {depth + 1} 0"]
    d4 += [f"{i} {i + 1} 0" for i in range(1, depth)]
    assert read_nnf(written(tmp_path, "\n".join([*d4, f"{depth} {depth + 1} -1 0"]))).model_count() == 1


def test_wide_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 4,096 rows below one sum are distinguished without comparing all pairs."""
    rows = [" ".join(str(v + 1 if i >> v & 1 else -v - 1) for v in range(12)) for i in range(4096)]
    text = "\n".join(["o 1 0", "t 2 0", *(f"1 2 {row} 0" for row in rows)])
    compare, compared = properties._conflict, []
    monkeypatch.setattr(properties, "_conflict", lambda a, b: compared.append(a) or compare(a, b))
    assert read_nnf(written(tmp_path, text)).model_count() == 4096
    assert 0 < len(compared) < 4096 * 12


@pytest.mark.parametrize("dialect", ["c2d", "d4"])
def test_damaged_files(tmp_path: Path, dialect: str) -> None:
    rng = random.Random(5)
    bases = [C2D if dialect == "c2d" else D4]
    for _ in range(3):
        write_nnf(diagram(random_models(rng, 5), 5), tmp_path / "b.nnf", dialect)
        bases.append((tmp_path / "b.nnf").read_text())
    accepted = 0
    messages: list[str] = []
    for trial in range(500):
        try:
            circuit = read_nnf(written(tmp_path, damaged(rng, bases[trial % len(bases)])))
        except (FormatError, UnsatisfiableError) as error:
            messages.append(str(error))
        else:
            accepted += 1
            if circuit.num_variables <= 10:
                assert_sound(circuit)
    assert accepted < 300
    assert not any("\n" in message for message in messages)


def assert_sound(circuit: Circuit) -> None:
    referee = Referee(circuit)
    assert referee.decomposable
    assert referee.deterministic
    assert circuit.model_count() == len(referee.rows())
