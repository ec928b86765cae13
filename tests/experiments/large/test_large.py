"""Constraints that do not compile: the same rules for circuits and for the solver, small here."""

import gzip
import random

import pytest
import torch

import semprola as sp
from experiments.large import app, cases, pictures, wall
from experiments.large.cases import Case, Count, chosen, clauses, from_dimacs, queens, roster, sudoku, tour
from experiments.large.report import page, table
from experiments.large.solver import Solver
from experiments.mnist_add.images import Images
from experiments.provenance import write_json
from semprola.errors import SemprolaError


def _obeys(case, state):
    truth = [None, *state]
    return all(
        rule.low <= sum(truth[i] == 1 if i > 0 else truth[-i] == 0 for i in rule.literals) <= rule.high
        for rule in case.rules
    )


@pytest.mark.parametrize("case", [queens(5), roster(2, 6, 2), clauses(9, 25)], ids=lambda case: case.title)
def test_formulas_say_what_the_counts_say(case):
    rules = case.rules if case.size > 9 else (*case.rules, Count((1, 2, -3, 4), 1, 2))
    case = Case(case.title, case.size, rules, 300)
    circuit = sp.compile(case.formula(), labels=case.labels)
    rows = torch.randint(2, (2000, case.size), generator=torch.Generator().manual_seed(0))
    if circuit.model_count():
        rows[:50] = sp.ConstraintLayer(circuit)(torch.zeros(case.size)).sample((50,))
    found = circuit.satisfied(rows)
    assert [bool(each) for each in found] == [_obeys(case, row.tolist()) for row in rows]


def test_queens_have_ten_boards():
    assert sp.rules.model_count(queens(5).formula()) == 10


def test_tours_are_round_trips_through_all_cities():
    case = tour(6)
    circuit = sp.compile(case.formula(), labels=case.labels)
    assert circuit.model_count() == 60  # 5! / 2
    pytest.importorskip("ortools")
    best = Solver(case).solve([0.0] * 15, 10.0).state
    assert bool(circuit.satisfied(torch.tensor(best)))


def test_files_and_names(tmp_path):
    (tmp_path / "a.cnf").write_text("c x\np cnf 3 2\n1 -2 0\n2 3\n0\n")
    (tmp_path / "b.cnf.gz").write_bytes(gzip.compress((tmp_path / "a.cnf").read_bytes()))
    assert from_dimacs(tmp_path / "b.cnf.gz").rules == from_dimacs(tmp_path / "a.cnf").rules
    case = from_dimacs(tmp_path / "a.cnf")
    assert (case.size, case.rules) == (3, (Count((1, -2), 1, 2), Count((2, 3), 1, 2)))
    assert list(chosen("queens", [tmp_path / "a.cnf"])) == ["queens", "a"]
    with pytest.raises(SemprolaError, match="unknown case 'quens'"):
        chosen("quens", [])


def test_both_find_the_best_board(tmp_path, monkeypatch):
    pytest.importorskip("ortools")
    monkeypatch.setattr(cases, "CASES", {"queens": lambda: Case("8 queens", 64, queens(8).rules, 100)})
    out = tmp_path / "large.json"
    assert app.main(["--rows", "4", "--seconds", "20", "--out", str(out)]) == 0
    runs = app.read_json(out)["runs"]
    for each in runs:
        assert each["circuits"] > 1
        assert each["pool"]["proven"] == each["solver"]["proven"] == each["pool"]["obey"] == 1
        assert each["pool"]["right"] == each["solver"]["right"]  # the best state is one
    text = page({"runs": runs})
    assert "| 8 queens | clear | 100 | " in text
    assert "Every state that a split answered obeys every rule" in text


def test_sudokus_from_pictures(monkeypatch, tmp_path):
    boards = pictures.draw_boards(3, random.Random(0))
    case = sudoku()
    for board in boards:
        assert _obeys(case, torch.nn.functional.one_hot(board, 9).flatten().tolist())
    images = Images(torch.arange(10.0)[:, None, None, None].expand(10, 1, 28, 28), torch.arange(10))
    monkeypatch.setattr(pictures, "NOISE", 0.0)
    assert torch.equal(pictures.draw_pictures(boards, images, 0)[:, :, 0, 0, 0], boards.float() + 1)
    entry = {
        "boards": 5, "seed": 0, "cells": 0.9, "independent": 0.0, "repaired": 0.5, "rules_added": 0.8, "trained": 0.9,
        "obey": True, "answered": 1.0, "proven": 1.0,
        "provenance": {"command": "python -m experiments large --data mnist"},
    }  # fmt: skip
    run = {
        "case": "a", "title": "a", "labels": 3, "rules": 2, "circuits": 2, "edges": 9, "left_out": 0,
        "seconds_to_split": 0.1, "limit": 1.0, "strength": "clear", "rows": 4,
        "pool": {"median": 0.1, "worst": 0.2, "proven": 1.0, "found": 1.0, "obey": 1.0, "right": 0.5, "gap": 1.0},
        "solver": {"median": 0.2, "worst": 0.2, "proven": 1.0, "found": 1.0, "obey": 1.0, "right": 0.5},
        "both": {"median": 0.1, "worst": 0.2, "proven": 1.0, "found": 1.0, "obey": 1.0, "right": 0.5},
        "provenance": {"command": "python -m experiments large"},
    }  # fmt: skip
    content = {"runs": [run], "pictures": [entry]}
    text = page(content)
    assert "on 1 of 1:\n\n- a (clear)\n" in text
    assert "| 5 | 90.0 | 0.0 | 50.0 | 80.0 | 90.0 | yes |" in text
    write_json(tmp_path / "large.json", content)
    monkeypatch.setattr(app, "PAGE", tmp_path / "page.md")
    assert app.main(["--report", "--out", str(tmp_path / "large.json")]) == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8").startswith(text)
    assert table(content).count("\n") == 0


def test_the_wall(tmp_path, monkeypatch):
    monkeypatch.setattr(wall, "SECONDS", 30)
    case = roster(4, 7)
    found = wall._attempt(case.formula(), "roster of 4", case.size, "sdd")
    assert found["nodes"] > 1000
    monkeypatch.setattr(wall, "SECONDS", 0.01)
    given_up = wall._attempt(case.formula(), "roster of 4", case.size, "automata")
    assert given_up["ran_out"] == "time"
    text = wall.section([found, given_up])
    assert f"| roster of 4 | 84 | sdd | {found['nodes']:,} nodes in " in text
    assert "| automata | gave up: time" in text
    monkeypatch.setattr(wall, "attempts", lambda known: iter([*known, found]))
    assert app.main(["--wall", "--out", str(tmp_path / "large.json")]) == 0
    assert app.read_json(tmp_path / "large.json")["wall"][0]["nodes"] == found["nodes"]
