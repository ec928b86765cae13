"""The arrays of a circuit: checked when made, never changed after."""

from __future__ import annotations

import copy
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from circuit_cases import Referee, diagram, names, random_models

import semprola as sp
from semprola.circuit import LITERAL, PRODUCT, SUM, Circuit, Vtree
from semprola.circuit.fold import bits, heights, levels, members, scopes, spans
from semprola.errors import FormatError, LabelError


def arrays(**changes: Any) -> dict[str, Any]:
    """a, or not a and b."""
    whole: dict[str, Any] = {
        "labels": ["a", "b"],
        "given": [],
        "kind": [LITERAL, LITERAL, LITERAL, PRODUCT, SUM],
        "literal": [1, -1, 2, 0, 0],
        "child_start": [0, 0, 0, 0, 2, 4],
        "children": [1, 2, 0, 3],
    }
    return whole | changes


def test_what_it_is() -> None:
    circuit = Circuit(**arrays())
    assert (circuit.num_labels, circuit.num_variables, circuit.num_nodes, circuit.num_edges) == (2, 2, 5, 4)
    assert circuit.root == 4
    assert circuit.children_of(3).tolist() == [1, 2]
    assert circuit.variables == ("a", "b")
    assert repr(circuit) == "Circuit(2 labels, 5 nodes, 4 edges)"
    assert repr(Circuit(**arrays(labels=["a"], given=["b"]))) == "Circuit(1 labels, 1 given, 5 nodes, 4 edges)"
    assert Referee(circuit).rows() == {(1, 0), (1, 1), (0, 1)}
    assert circuit.model_count() == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": [], "literal": [], "child_start": [0], "children": []}, "arrays disagree"),
        ({"literal": [1, -1, 2, 0]}, "arrays disagree"),
        ({"child_start": [0, 0, 0, 0, 2]}, "arrays disagree"),
        ({"child_start": [0, 0, 0, 0, 2, 5]}, "offsets"),
        ({"child_start": [1, 0, 0, 0, 2, 4]}, "offsets"),
        ({"child_start": [0, 0, 0, 3, 2, 4]}, "offsets"),
        ({"kind": [0, 0, 0, 1, 3]}, "unknown node kind"),
        ({"kind": [0, 0, 0, 1, -1]}, "unknown node kind"),
        ({"children": [1, 3, 0, 3]}, "comes before one of its children"),
        ({"children": [1, -1, 0, 3]}, "comes before one of its children"),
        ({"children": [1, 1, 0, 3]}, "node 2 is not below the root"),
        ({"literal": [1, -1, 3, 0, 0]}, "node 2 is not a valid"),
        ({"literal": [1, -1, 0, 0, 0]}, "node 2 is not a valid"),
        ({"literal": [1, -1, -(2**31), 0, 0]}, "node 2 is not a valid"),
        ({"literal": [1, -1, 2, 1, 0]}, "node 3 is not a valid"),
        ({"kind": [0, 0, SUM, 1, 2], "literal": [1, -1, 0, 0, 0]}, "node 2 is not a valid"),
        ({"zero_suppressed": [True]}, "zero_suppressed"),
        ({"labels": ["a"], "given": ["b"], "zero_suppressed": [False, True]}, "zero_suppressed"),
        ({"vtree": Vtree.right_linear([0, 1, 2])}, "vtree has 3 variables, the circuit 2"),
    ],
)
def test_bad_arrays(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        Circuit(**arrays(**changes))


@pytest.mark.parametrize(("labels", "given"), [(["a", "a"], []), (["a"], ["a"]), (["a", 1], [])])
def test_bad_names(labels: list[Any], given: list[str]) -> None:
    with pytest.raises(LabelError):
        Circuit(**arrays(labels=labels, given=given))


def test_immutable() -> None:
    kind = np.array(arrays()["kind"], np.int8)
    circuit = Circuit(**arrays(kind=kind))
    kind[0] = SUM
    assert circuit.kind[0] == LITERAL
    with pytest.raises(ValueError, match="read-only"):
        circuit.kind[0] = SUM


def test_identity() -> None:
    one, same = Circuit(**arrays()), Circuit(**arrays(info={"seconds": 1}))
    assert one == same
    assert hash(one) == hash(same)
    for changes in (
        {"labels": ["a", "c"]},
        {"labels": ["a"], "given": ["b"]},
        {"literal": [1, -1, -2, 0, 0]},
        {"zero_suppressed": [True, False]},
        {"vtree": Vtree.right_linear([0, 1])},
    ):
        assert Circuit(**arrays(**changes)) != one
    assert one != "circuit"


def test_copies_and_pickles() -> None:
    circuit = Circuit(**arrays(vtree=Vtree.balanced([1, 0]), info={"backend": "hand"}))
    assert copy.copy(circuit) is circuit
    assert copy.deepcopy(circuit) is circuit
    assert circuit.is_deterministic
    again = pickle.loads(pickle.dumps(circuit))
    assert again == circuit
    assert again.info == circuit.info
    assert again.vtree == circuit.vtree


def test_levels_and_scopes() -> None:
    rng = random.Random(0)
    for _ in range(20):
        circuit = diagram(random_models(rng, 6), 6)
        height = heights(circuit.child_start, circuit.children)
        for node in range(circuit.num_nodes):
            below = circuit.children_of(node)
            assert height[node] == (1 + height[below].max() if len(below) else 0)
        seen: set[int] = set(np.flatnonzero(np.diff(circuit.child_start) == 0).tolist())
        for level in levels(circuit):
            assert set(level.children.tolist()) <= seen
            seen |= set(level.nodes.tolist())
        assert len(seen) == circuit.num_nodes
        row, variable = members(scopes(circuit))
        found: list[set[int]] = [set() for _ in range(circuit.num_nodes)]
        for r, v in zip(row.tolist(), variable.tolist(), strict=True):
            found[r].add(v)
        assert found == Referee(circuit).scope


def test_bit_sets_of_many_variables() -> None:
    flags = np.random.default_rng(0).random(200) < 0.5
    assert members(bits(flags)[None, :])[1].tolist() == np.flatnonzero(flags).tolist()
    assert spans(np.array([0, 2, 2, 5]), np.array([2, 1, 0])).tolist() == [2, 3, 4, 0, 1]
    wide = Circuit(names(130), [], [0, 0, 1], [1, -130, 0], [0, 0, 0, 2], [0, 1])
    assert members(scopes(wide))[1].tolist() == [0, 129, 0, 129]
    assert wide.model_count() == 2**128


def test_nothing_of_a_circuit_can_be_changed() -> None:
    circuit = sp.compile("a | b")
    with pytest.raises(AttributeError, match="cannot be changed"):
        circuit.labels = ("c",)  # type: ignore[misc]
    with pytest.raises(AttributeError, match="cannot be changed"):
        circuit.info = {}
    with pytest.raises(TypeError):
        circuit.info["backend"] = "other"  # type: ignore[index]
    with pytest.raises(ValueError, match="read-only"):
        circuit.kind[0] = 0
    told = circuit.with_info({"why": "because"})
    assert told == circuit
    assert dict(told.info) == {"why": "because"}
    assert "why" not in circuit.info
    assert dict(pickle.loads(pickle.dumps(told)).info) == {"why": "because"}


def test_a_loaded_circuit_can_be_written_as_an_sdd(tmp_path: Path) -> None:
    sp.compile("a | b").save(tmp_path / "k.sp")
    paths = [str(tmp_path / f"k.{kind}") for kind in ("sp", "sdd", "vtree")]
    script = "import sys, semprola as sp; sp.Circuit.load(sys.argv[1]).write_sdd(*sys.argv[2:])"
    subprocess.run([sys.executable, "-c", script, *paths], check=True)
    assert sp.read_sdd(tmp_path / "k.sdd", tmp_path / "k.vtree").model_count() == 3
