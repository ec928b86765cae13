"""SDD and vtree files: written by PySDD, published with the paper, and malformed."""

from __future__ import annotations

import json
import random
import re
from itertools import product
from pathlib import Path

import pytest
from circuit_cases import Referee, damaged
from pysdd.sdd import SddManager
from pysdd.sdd import Vtree as SddVtree

import semprola as sp
from semprola.circuit import Circuit, Vtree
from semprola.circuit.sdd_files import read_sdd, read_vtree, vtree_text, write_vtree
from semprola.errors import FormatError, LabelError, UnsatisfiableError

VTREE = "c a comment\nvtree 7\nL 0 1\nL 2 2\nI 1 0 2\nL 4 4\nL 6 3\nI 5 4 6\nI 3 1 5\n"
# (1 and 2 and 4) or (not (1 and 2) and 3)
SDD = (
    "c a comment\nsdd 11\nL 0 0 1\nL 1 0 -1\nL 2 2 2\nL 3 2 -2\nF 4\nT 5\nL 6 4 4\nL 7 6 3\n"
    "D 8 1 2 0 2 1 4\nD 9 1 2 0 3 1 5\nD 10 3 2 8 6 9 7\n"
)


def written(folder: Path, sdd: str = SDD, vtree: str = VTREE) -> tuple[Path, Path]:
    (folder / "a.sdd").write_text(sdd)
    (folder / "a.vtree").write_text(vtree)
    return folder / "a.sdd", folder / "a.vtree"


def random_clauses(rng: random.Random, variables: int, clauses: int) -> list[list[int]]:
    pick = [rng.sample(range(1, variables + 1), min(3, variables)) for _ in range(clauses)]
    return [[v if rng.random() < 0.5 else -v for v in clause] for clause in pick]


def compiled(folder: Path, rng: random.Random, variables: int, clauses: list[list[int]]) -> tuple[Path, Path]:
    """The files that PySDD writes for a CNF on a random vtree."""
    order = rng.sample(range(1, variables + 1), variables)
    kind = rng.choice(("right", "left", "balanced", "vertical"))
    tree = SddVtree(var_count=variables, var_order=order, vtree_type=kind)
    manager = SddManager.from_vtree(tree)
    node = manager.true()
    for clause in clauses:
        node &= manager.literal(clause[0]) | manager.literal(clause[1]) | manager.literal(clause[-1])
    node.save(str(folder / "p.sdd").encode())
    tree.save(str(folder / "p.vtree").encode())
    return folder / "p.sdd", folder / "p.vtree"


def test_small_file(tmp_path: Path) -> None:
    circuit = read_sdd(*written(tmp_path), labels=["a", "b", "c", "d"])
    wanted = {row for row in product((0, 1), repeat=4) if (row[3] if row[0] and row[1] else row[2])}
    assert circuit.labels == ("a", "b", "c", "d")
    assert Referee(circuit).rows() == wanted
    assert circuit.model_count() == len(wanted)
    assert circuit.is_structured
    assert circuit.vtree is not None
    assert circuit.vtree.order.tolist() == [0, 1, 3, 2]


def test_given_by_number_and_by_name(tmp_path: Path) -> None:
    by_number = read_sdd(*written(tmp_path), given=["2"])
    assert (by_number.labels, by_number.given) == (("1", "3", "4"), ("2",))
    assert by_number.is_structured
    assert by_number.satisfied([1, 0, 1], given=[1])
    assert not by_number.satisfied([1, 0, 1], given=[0])
    by_name = read_sdd(*written(tmp_path), labels=["a", "b"], given=["c", "d"])
    assert (by_name.labels, by_name.given) == (("a", "b"), ("c", "d"))
    assert by_name.model_count() == 8


@pytest.mark.parametrize(
    ("labels", "given"), [(["a"], []), (["a"] * 4, []), (None, ["5"]), (None, ["1", "1"]), (None, ["x"])]
)
def test_names_that_do_not_fit(tmp_path: Path, labels: list[str] | None, given: list[str]) -> None:
    with pytest.raises(LabelError):
        read_sdd(*written(tmp_path), labels=labels, given=given)


@pytest.mark.parametrize("line", ["T 0", "F 0"])
def test_constants(tmp_path: Path, line: str) -> None:
    files = written(tmp_path, f"sdd 1\n{line}\n")
    if line[0] == "T":
        assert read_sdd(*files).model_count() == 16
    else:
        with pytest.raises(UnsatisfiableError, match="no model"):
            read_sdd(*files)


def test_what_pysdd_writes(tmp_path: Path) -> None:
    rng = random.Random(0)
    for _ in range(60):
        variables = rng.randint(2, 7)
        clauses = random_clauses(rng, variables, rng.randint(0, 2 * variables))
        rows = product((0, 1), repeat=variables)
        wanted = {row for row in rows if all(any(row[abs(x) - 1] == (x > 0) for x in c) for c in clauses)}
        files = compiled(tmp_path, rng, variables, clauses)
        if not wanted:
            with pytest.raises(UnsatisfiableError):
                read_sdd(*files)
            continue
        circuit = read_sdd(*files)
        assert Referee(circuit).rows() == wanted
        assert circuit.model_count() == len(wanted)
        assert circuit.is_structured


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sdd 11", "sdd 12", "a.sdd:13: 'sdd 12' announces 12 nodes, but the file has 11"),
        ("sdd 11", "sdd 999999999999", "a.sdd:2: number of nodes must be between"),
        ("sdd 11", "bdd 11", "a.sdd:2: the file must start with 'sdd number-of-nodes'"),
        ("L 2 2 2", "L 2 9 2", "a.sdd:5: vtree node 9 is not defined"),
        ("L 2 2 2", "L 2 0 2", "a.sdd:5: literal 2 does not belong to vtree node 0"),
        ("L 2 2 2", "L 2 2 0", "literal 0 does not belong"),
        ("L 2 2 2", "L 2 2 77", "literal must be between -4 and 4"),
        ("L 2 2 2", "L 1 2 2", "id 1 is used twice"),
        ("L 2 2 2", "L 2 2", "'L' line has 3 words, not 4"),
        ("L 2 2 2", "X 2 2 2", "a node line starts with F or T or L or D, not 'X'"),
        ("D 8 1 2 0 2 1 4", "D 8 1 2 0 10 1 4", "sub 10 is not defined before this line"),
        ("D 8 1 2 0 2 1 4", "D 8 1 2 8 2 1 4", "prime 8 is not defined before this line"),
        ("D 8 1 2 0 2 1 4", "D 8 1 2 2 0 3 4", "prime 2 does not lie in the left branch"),
        ("D 8 1 2 0 2 1 4", "D 8 1 2 0 1 1 4", "sub 1 does not lie in the right branch"),
        ("D 8 1 2 0 2 1 4", "D 8 0 2 0 2 1 4", "vtree node 0 is a leaf"),
        ("D 8 1 2 0 2 1 4", "D 8 1 3 0 2 1 4", "3 elements need 6 ids, not 4"),
        ("D 8 1 2 0 2 1 4", "D 8 1 1 0 2", "overlap or leave a gap"),
        ("D 8 1 2 0 2 1 4", "D 8 1 2 0 2 0 4", "overlap or leave a gap"),
        ("D 10 3 2 8 6 9 7", "D 10 3 2 8 6 5 7", "overlap or leave a gap"),
        ("D 10 3 2 8 6 9 7", "D 10 3", "a decision is"),
        ("D 10 3 2 8 6 9 7", "D 10 3 two 8 6 9 7", "number of elements must be a whole number, not 'two'"),
    ],
)
def test_broken_sdd(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SDD
    with pytest.raises(FormatError, match=re.escape(message)) as caught:
        read_sdd(*written(tmp_path, SDD.replace(old, new)))
    assert re.match(rf"{re.escape(str(tmp_path))}/a\.sdd:\d+: [^\n]*$", str(caught.value))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("vtree 7", "vtree 9", "announces 9 nodes, but the file has 7"),
        ("vtree 7", "vtree 99999999999", "number of nodes must be between"),
        ("vtree 7", "", "must start with 'vtree number-of-nodes'"),
        ("L 6 3", "L 6 4", "variable 4 already has a leaf"),
        ("L 6 3", "L 6 5", "variable must be between 1 and 4"),
        ("L 6 3", "L 4 3", "id 4 is used twice"),
        ("I 5 4 6", "I 5 4 4", "vtree node 4 already has a parent"),
        ("I 5 4 6", "I 5 4 3", "vtree node 3 is not defined before this line"),
        ("I 5 4 6", "I 5 4", "'I' line has 3 words, not 4"),
        ("vtree 7\nL 0 1\nL 2 2\nI 1 0 2\n", "vtree 6\nL 0 1\nL 2 2\n", "variable must be between 1 and 3"),
        ("I 3 1 5\n", "", "announces 7"),
        ("vtree 7", "vtree 6\nI 3 1 5\n", "not defined"),
    ],
)
def test_broken_vtree(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in VTREE
    with pytest.raises(FormatError, match=re.escape(message)):
        read_sdd(*written(tmp_path, SDD, VTREE.replace(old, new, 1)))


def test_empty_files(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"a\.sdd:1: the file must start"):
        read_sdd(*written(tmp_path, ""))
    with pytest.raises(FormatError, match=r"a\.vtree:1: the file must start"):
        read_sdd(*written(tmp_path, SDD, ""))


def test_vtree_round_trip(tmp_path: Path) -> None:
    rng = random.Random(3)
    for count in range(1, 20):
        order = rng.sample(range(count), count)
        for tree in (
            Vtree.right_linear(order),
            Vtree.balanced(order),
            Vtree.from_forest([i - 1 for i in range(count)]),
        ):
            write_vtree(tree, tmp_path / "t.vtree")
            assert read_vtree(tmp_path / "t.vtree") == tree
            loaded = SddVtree.from_file(str(tmp_path / "t.vtree").encode())
            assert loaded.var_count() == count
    assert vtree_text(Vtree.right_linear([0])) == "vtree 1\nL 0 1\n"


def test_deep_chain(tmp_path: Path) -> None:
    """A conjunction of 3,000 variables on a right-linear vtree: depth is no obstacle."""
    count = 3000
    lines = [f"L {v} {2 * v} {v + 1}" for v in range(count)] + [f"L {count + v} {2 * v} -{v + 1}" for v in range(count)]
    lines.append(f"F {2 * count}")
    below = count - 1
    for v in range(count - 2, -1, -1):
        number = 2 * count + 1 + (count - 2 - v)
        lines.append(f"D {number} {2 * v + 1} 2 {v} {below} {count + v} {2 * count}")
        below = number
    sdd = "\n".join([f"sdd {len(lines)}", *lines])
    circuit = read_sdd(*written(tmp_path, sdd, vtree_text(Vtree.right_linear(range(count)))))
    assert circuit.model_count() == 1


def test_damaged_files(tmp_path: Path) -> None:
    rng = random.Random(4)
    bases = [(SDD, VTREE)]
    for _ in range(3):
        files = compiled(tmp_path, rng, 6, random_clauses(rng, 6, 5))
        bases.append((files[0].read_text(), files[1].read_text()))
    accepted = 0
    messages: list[str] = []
    for trial in range(600):
        sdd, vtree = bases[trial % len(bases)]
        if trial % 2:
            sdd = damaged(rng, sdd)
        else:
            vtree = damaged(rng, vtree)
        (tmp_path / "a.sdd").write_text(sdd, encoding="utf-8", errors="replace")
        (tmp_path / "a.vtree").write_text(vtree, encoding="utf-8", errors="replace")
        try:
            circuit = read_sdd(tmp_path / "a.sdd", tmp_path / "a.vtree")
        except (FormatError, UnsatisfiableError) as error:
            messages.append(str(error))
        else:
            accepted += 1
            assert_sound(circuit)
    assert accepted < 300
    assert not any("\n" in message for message in messages)


def assert_sound(circuit: Circuit) -> None:
    referee = Referee(circuit)
    assert referee.decomposable
    assert referee.deterministic
    assert circuit.model_count() == len(referee.rows())


def test_grid_of_the_paper(shared_data: Path) -> None:
    folder = shared_data / "grid4"
    circuit = read_sdd(folder / "4-grid-all-pairs-sd.sdd", folder / "4-grid-out.vtree.sd")
    assert circuit.num_labels == 40
    assert circuit.model_count() == 14_248
    assert circuit.is_structured


@pytest.mark.parametrize(
    "name", ["cellcycle_FUN", "diatoms_others", "eisen_FUN", "enron_others", "imclef07a_others", "imclef07d_others"]
)
def test_hierarchies_of_the_paper(shared_data: Path, name: str) -> None:
    folder = shared_data / "oracles" / "circuits"
    statistics = json.loads((shared_data / "hmc" / "STATS.json").read_text())
    circuit = read_sdd(folder / f"{name}.sdd", folder / f"{name}.vtree")
    # the authors add a root above all labels: the one extra model is the empty one
    assert circuit.model_count() == int(statistics[name.split("_")[0]]["hier_model_count"]) + 1


def test_both_parts_in_one_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="need a file each"):
        sp.compile("a | b").write_sdd(tmp_path / "same", tmp_path / "same")
