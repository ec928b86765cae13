"""Rules in every form that users have, and sources that hold none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import semprola as sp
from semprola.compiler.sources import as_constraint
from semprola.errors import FormatError, ParseError, SemprolaError, UnsatisfiableError


@pytest.mark.parametrize("content", ["", " \n\n", "# cat -> animal\n", "\ufeff# a comment"])
def test_a_file_without_rules_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "rules.txt"
    path.write_text(content, encoding="utf-8")
    for source in (path, str(path)):
        with pytest.raises(SemprolaError, match=r"rules\.txt: (contains only comments, no rule|the file is empty)"):
            as_constraint(source)


@pytest.mark.parametrize("text", ["", "  ", "# cat -> animal", "\n# a\n# b\n"])
def test_a_text_without_rules_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match=r"there is no rule in .*: write one, such as cat -> animal"):
        as_constraint(text)


@pytest.mark.parametrize("name", ["no.txt", "sub/no.formula", "a.cnf", "a.cnf.gz", "a.WCNF", "a.sp", "a.csv", "a.obo"])
def test_a_missing_file_is_no_label(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError, match=f'{re.escape(name)}: no such file; a label of this name is written "'):
        as_constraint(name)


def test_a_folder_is_no_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rulesdir").mkdir()
    for source in ("rulesdir", Path("rulesdir")):
        with pytest.raises(FormatError, match=r"rulesdir: this is a folder"):
            as_constraint(source)
    assert as_constraint("(rulesdir)").labels == ("rulesdir",)
    assert as_constraint("other").labels == ("other",)


@pytest.mark.parametrize("name", ["k.cnf", "k.dimacs", "k.wcnf"])
def test_every_name_of_a_file_of_clauses(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("p cnf 2 1\n1 2 0\n")
    assert sp.compile(str(path)).model_count() == 3


def test_a_label_may_look_like_a_file_within_a_formula() -> None:
    assert sp.parse("a.txt -> b.txt").labels == as_constraint("a.txt -> b.txt").labels


def _of_estimator(source: Any) -> Any:
    pytest.importorskip("sklearn")
    from semprola.sklearn.targets import constraint_of

    return constraint_of(source)


TAKERS: dict[str, Callable[[Any], tuple[str, ...]]] = {
    "compile": lambda source: sp.compile(source).labels,
    "SPL": lambda source: sp.SPL(4, source).circuit.labels,
    "ProductSPL": lambda source: sp.ProductSPL(4, source).circuit.labels,
    "ConstraintLayer": lambda source: sp.ConstraintLayer(source).circuit.labels,
    "constrain": lambda source: sp.constrain(torch.zeros(3), source).labels,
    "SemanticLoss": lambda source: sp.losses.SemanticLoss(source).circuit.labels,
    "DL2": lambda source: sp.losses.DL2(source).constraint.labels,
    "MultiplexNet": lambda source: sp.baselines.MultiplexNet(4, source).labels,
    "CCN": lambda source: sp.baselines.CCN(4, source).labels,
    "estimator": lambda source: _of_estimator(source).labels,
}


@pytest.mark.parametrize("taker", TAKERS)
def test_a_path_is_read_wherever_rules_are_expected(taker: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.txt"
    path.write_text("# animals\ncats: cat -> animal\ndog -> animal\n")
    labels = TAKERS[taker]
    assert set(labels(path)) == set(labels(str(path))) == {"cat", "dog", "animal"}
    with pytest.raises(FormatError, match=r"^norules\.txt: no such file; a label of this name is written "):
        labels("norules.txt")
    with pytest.raises(FormatError, match=r"norules\.txt: no such file$"):
        labels(tmp_path / "norules.txt")


def test_read_returns_what_parse_returns(tmp_path: Path) -> None:
    text = "cats: cat -> animal  # why\n\ndog ->\n  animal\n"
    path = tmp_path / "animals.rules"
    path.write_text(text)
    assert sp.rules.read(path) == sp.parse(text) == sp.parse("(cat -> animal) & (dog -> animal)")
    assert sp.rules.model_count(path) == sp.rules.model_count(str(path)) == 5


def test_messages_name_the_file_and_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("zoo.txt").write_text("# animals\ncats: kitten -> feline\nkitten\n~feline\n")
    with pytest.raises(UnsatisfiableError, match=r"kitten -> feline \[zoo\.txt:2 cats\]; kitten \[zoo\.txt:3\]"):
        sp.compile("zoo.txt")
    (first,) = sp.violations("zoo.txt", torch.tensor([[0, 0]]))
    assert str(first) == "row 0: kitten [zoo.txt:3] (kitten=0)"
    assert "zoo" not in str(sp.violations(sp.parse(Path("zoo.txt").read_text()), torch.tensor([[0, 0]]))[0])
    more = sp.violations(sp.rules.read("zoo.txt") & sp.parse("dog"), torch.tensor([[1, 1, 0]]))
    assert [violation.rule for violation in more] == ["~feline [zoo.txt:4]", "dog"]
    Path("bad.txt").write_text("a -> b\nc ->\n")
    with pytest.raises(ParseError, match=r"bad\.txt: at 2:5: expected a formula") as caught:
        sp.SPL(4, "bad.txt")
    assert caught.value.line == 2


def test_a_circuit_file_is_a_constraint(tmp_path: Path) -> None:
    sp.compile("cat -> animal").save(tmp_path / "k.sp")
    assert sp.SPL(4, tmp_path / "k.sp").circuit.model_count() == 3
    with pytest.raises(TypeError, match=r"DL2 .* needs a formula, not a compiled circuit"):
        sp.losses.DL2(tmp_path / "k.sp")


@pytest.mark.parametrize("text", ["v1.2", "ana.mon", "ana.mon -> ben.tue", "GO:1.2", "~a.txt", "(rules.txt)", '"a/b"'])
def test_formulas_are_no_files(text: str) -> None:
    assert sp.compile(text).labels == sp.parse(text).labels


def test_a_rule_that_is_written_twice_keeps_both_places(tmp_path: Path) -> None:
    path = tmp_path / "rules.txt"
    path.write_text("one: a -> b\nb -> c\ntwo: a -> b\n")
    rules = sp.rules.read(path)
    for source in (path, rules, sp.compile(path)):
        (twice,) = sp.rules.review(source).redundant
        assert str(twice) == f"a -> b [{path}:3 two]  says the same as a -> b [{path}:1 one]"
    assert str(sp.rules.review(sp.parse("d") & rules).rules[1]) == f"a -> b [{path}:1 one]"
