"""Rules in every form that users have, and sources that hold none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import semprola as sp
from semprola.errors import FormatError, ParseError
from semprola.training.rules import compile_rules, read_rules


@pytest.mark.parametrize("content", ["", " \n\n", "# cat -> animal\n", "\ufeff# a comment"])
def test_a_file_without_rules_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "rules.txt"
    path.write_text(content, encoding="utf-8")
    for source in (path, str(path)):
        with pytest.raises(ParseError, match=r"rules\.txt: there is no rule in it"):
            read_rules(source)
    assert read_rules(None) == []


@pytest.mark.parametrize("text", ["", "  ", "# cat -> animal", "\n# a\n# b\n"])
def test_a_text_without_rules_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match=r"there is no rule in .*: write one, such as cat -> animal"):
        read_rules(text)


@pytest.mark.parametrize("name", ["norules.txt", "sub/norules.formula", "a.cnf", "a.cnf.gz", "a.WCNF", "a.sp"])
def test_a_missing_file_is_no_label(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError, match=f"{re.escape(name)}: there is no such file"):
        read_rules(name)


def test_a_folder_is_no_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rulesdir").mkdir()
    for source in ("rulesdir", Path("rulesdir")):
        with pytest.raises(FormatError, match=r"rulesdir: this is a folder.*write \(rulesdir\)"):
            read_rules(source)
    assert [str(rule) for rule in read_rules("(rulesdir)")] == ["rulesdir"]
    assert [str(rule) for rule in read_rules("other")] == ["other"]


@pytest.mark.parametrize("name", ["k.cnf", "k.dimacs", "k.wcnf"])
def test_every_name_of_a_file_of_clauses(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("p cnf 2 1\n1 2 0\n")
    assert compile_rules(read_rules(str(path))).model_count() == 3


def test_a_label_may_look_like_a_file_within_a_formula() -> None:
    assert sp.parse("a.txt -> b.txt").labels() == read_rules("a.txt -> b.txt")[0].labels()
