"""The ARFF reader on small files, and on the published ones where they are."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from experiments.hmlc.arff import hierarchy_graph, read_arff
from experiments.hmlc.data import load_raw, statistics
from experiments.hmlc.sets import FUN, SETS, TWELVE, find_set
from semprola.errors import FormatError, SemprolaError

HEAD = """% a comment
@RELATION 'pets 0'

@ATTRIBUTE size numeric
@attribute size REAL
@ATTRIBUTE 'has tail' {no,yes, 'per haps'}
@ATTRIBUTE class   hierarchical a,a/cat,a/dog,b/fish/carp

@DATA
"""


def write(folder: Path, rows: str, head: str = HEAD, name: str = "pets.arff") -> Path:
    path = folder / name
    path.write_text(head + rows)
    return path


def test_dense(tmp_path: Path) -> None:
    read = read_arff(write(tmp_path, "1.5,2,yes,a/cat@b/fish/carp % a, comment\n\n?,-3e1,?,a\n0,0,'per haps',b\n"))
    assert read.names == ("size", "size", "has tail")
    assert read.categories == (None, None, ("no", "yes", "per haps"))
    assert np.array_equal(read.values, [[1.5, 2, 1], [np.nan, -30, np.nan], [0, 0, 2]], equal_nan=True)
    assert list(read.graph) == ["a", "b", "a/cat", "a/dog", "b/fish", "b/fish/carp"]
    assert read.y.astype(int).tolist() == [[1, 1, 1, 0, 1, 1], [1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]]


def test_sparse(tmp_path: Path) -> None:
    read = read_arff(write(tmp_path, "{0 1.5, 2 yes, 3 a/cat}\n{1 ?,3 b@a/dog}\n"))
    assert np.array_equal(read.values, [[1.5, 0, 1], [0, np.nan, 0]], equal_nan=True)
    assert read.y.sum(1).tolist() == [2, 3]


def test_the_class_may_come_first(tmp_path: Path) -> None:
    head = "@relation r\n@attribute class hierarchical a,a/b\n@attribute x numeric\n@data\n"
    read = read_arff(write(tmp_path, "a/b,7\n", head))
    assert read.values.tolist() == [[7.0]]
    assert read.y.tolist() == [[True, True]]


def test_packed(tmp_path: Path) -> None:
    path = tmp_path / "pets.arff.xz"
    path.write_bytes(lzma.compress((HEAD + "1,2,no,a\n").encode()))
    assert len(read_arff(path)) == 1


def test_edges_of_a_dag(tmp_path: Path) -> None:
    head = "@relation r\n@attribute x numeric\n@attribute class hierarchical root/A,root/B,A/C,B/C,C/D\n@data\n"
    read = read_arff(write(tmp_path, "1,D\n2,B\n3,root\n", head))
    assert list(read.graph) == ["A", "B", "C", "D"]
    assert read.y.astype(int).tolist() == [[1, 1, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,2,no,a\n1,2,no,zebra\n", r"pets.arff:11: label 'zebra' is not in the class attribute"),
        ("1,2,no,a\n1,2,a\n", r"pets.arff:11: "),
        ("1,2,maybe,a\n", r"pets.arff:10: "),
        ("1,x,no,a\n", r"pets.arff:10: "),
        ("1,2,no,?\n", r"pets.arff:10: the row has no labels"),
        ("", "no rows after @data"),
    ],
    ids=["unknown-label", "short-row", "unknown-category", "not-a-number", "no-labels", "empty"],
)
def test_damaged_rows_are_named(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_arff(write(tmp_path, rows))


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("@relation r\n@attribute x numeric\n@data\n", "no attribute of type hierarchical"),
        ("@relation r\n@attribute x string\n@attribute class hierarchical a\n@data\n", "'x' is of type STRING"),
        (
            "@relation r\n@attribute c hierarchical a\n@attribute d hierarchical b\n@data\n",
            ":3: a second hierarchical attribute",
        ),
        ("@relation r\n@attribute x numeric\n@attribute c hierarchical a//b\n@data\n", ":3: .* an empty part"),
        (
            "@relation r\n@attribute x numeric\n@attribute c hierarchical root/a,a/b,b/a\n@data\n",
            ":3: the hierarchy has a cycle",
        ),
    ],
    ids=["no-class", "string", "two-classes", "empty-part", "cycle"],
)
def test_damaged_heads(tmp_path: Path, head: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_arff(write(tmp_path, "1,a\n", head))


def test_not_a_text(tmp_path: Path) -> None:
    path = tmp_path / "x.arff.xz"
    path.write_bytes(b"no xz")
    with pytest.raises(FormatError, match="cannot be read"):
        read_arff(path)
    with pytest.raises(FormatError, match="cannot be read"):
        read_arff(tmp_path / "absent.arff")


def test_the_form_can_be_said() -> None:
    assert sorted(hierarchy_graph(["root/a", "root/b"], "paths").edges) == [("root/a", "root"), ("root/b", "root")]
    with pytest.raises(FormatError, match="not an edge"):
        hierarchy_graph(["root/a/b"], "edges")
    with pytest.raises(ValueError, match="form"):
        read_arff("x", "trees")


def test_the_sets_by_name() -> None:
    assert len(TWELVE) == 12
    assert len(FUN) == 8
    assert all(len(SETS[name].files) == (3 if name in FUN else 2) for name in TWELVE)
    with pytest.raises(SemprolaError, match="choose from cellcycle"):
        find_set("cells")


@pytest.mark.parametrize("name", ["cellcycle", "spo", "diatoms", "enron", "imclef07d"])
def test_published_facts(shared_data: Path, name: str) -> None:
    known = json.loads((shared_data / "hmc" / "STATS.json").read_text())[name]
    found = statistics(load_raw(name, str(shared_data), False))
    assert found == {key: known[key] for key in found}


def test_gene_ontology(shared_data: Path) -> None:
    raw = load_raw("cellcycle-go", str(shared_data), False)
    facts = statistics(raw)
    assert facts["labels"] == 4126 - 1  # without the label `root`
    assert facts["edges"] == 5827 - 3
    assert facts["roots"] == 3
    assert int((~raw.scored).sum()) == 3


def test_absent_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(SemprolaError, match="set SEMPROLA_DATA or --data"):
        load_raw("cellcycle", str(tmp_path), False)
