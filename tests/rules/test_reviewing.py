"""Reviews of rules and rows, compared with truth tables."""

from __future__ import annotations

import itertools
import json
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rule_cases import SOLVERS, Case, cases, use_solver

import semprola as sp
from semprola.errors import LabelError, ParseError


def random_rows(case: Case, chance: random.Random) -> Any:
    """Rows with empty cells, and some that obey."""
    width = len(case.labels)
    rows = [[chance.choice([0.0, 1.0, 1.0, math.nan]) for _ in range(width)] for _ in range(6)]
    rows += [[*map(float, chance.choice(case.states))] for _ in range(3)]
    return np.array(rows, np.float32)


def completions(case: Case, row: Any) -> Any:
    return ((case.states == row) | np.isnan(row)).all(1)


@SOLVERS
def test_rows(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_solver(solver, monkeypatch)
    chance = random.Random(1)
    for case in cases(30 if solver == "python-sat" else 3, seed=4):
        rows = random_rows(case, chance)
        frame = pd.DataFrame(rows, columns=list(case.labels), index=[f"r{i}" for i in range(len(rows))])
        found = sp.rules.review("\n".join(case.rules), frame)
        assert found.data is not None
        every = range(len(case.rules))
        wrong = [[not (completions(case, row) & allowed).any() for allowed in case.allowed] for row in rows]
        left = [rule for rule in every if found.rules[rule] not in found.left_out]
        joint = [not (completions(case, row) & case.holds(left)).any() for row in rows]
        impossible = np.array(joint) | np.array(wrong).any(1)
        assert [row.row for row in found.data.broken] == [f"r{i}" for i in np.flatnonzero(impossible)]
        for row in found.data.broken:
            at = int(row.row[1:])
            own = [rule for rule in every if wrong[at][rule]]
            numbers = [found.rules.index(rule) for rule in row.rules]
            assert numbers == own or not own
            assert own or not (completions(case, rows[at]) & case.holds(numbers)).any()
            models = case.states[case.holds(left)]
            distance = ((models != rows[at]) & ~np.isnan(rows[at])).sum(1).min()
            assert row.changes is not None
            assert len(row.changes) == distance
            changed = rows[at].copy()
            changed[[case.labels.index(name) for name in row.changes]] = [*row.changes.values()]
            assert (completions(case, changed) & case.holds(left)).any()
        counts = np.array(wrong)
        assert [use.broken_by for use in found.data.uses] == counts.sum(0).tolist()
        assert [use.only_by_it for use in found.data.uses] == counts[counts.sum(1) == 1].sum(0).tolist()
        fewest = min(
            size
            for size in range(len(every) + 1)
            for gone in itertools.combinations(every, size)
            if all((completions(case, row) & case.holds(r for r in every if r not in gone)).any() for row in rows)
        )
        assert found.data.to_drop is not None
        assert len(found.data.to_drop) == fewest


MESSY = """
cats: cat -> animal
dog -> animal   # a comment
puppies: puppy -> dog
puppy -> animal
"no hybrids": ~(cat & dog)
not_cat <-> ~cat
~(cat & dog)
horse & ~horse -> cat
unicorn -> horse
~unicorn
Horse -> animal
"""


def test_the_report_names_rules_in_the_words_of_the_user(tmp_path: Any) -> None:
    path = tmp_path / "rules.txt"
    path.write_text(MESSY)
    found = sp.rules.review(str(path))
    assert found.ok
    assert found.models == sp.rules.model_count(path)
    assert [str(each).replace(f"{path}", "rules.txt") for each in found.redundant] == [
        "puppy -> animal [rules.txt:5]  follows from dog -> animal [rules.txt:3]; puppy -> dog [rules.txt:4 puppies]",
        "~(cat & dog) [rules.txt:8]  says the same as ~(cat & dog) [rules.txt:6 no hybrids]",
        "horse & ~horse -> cat [rules.txt:9]  holds whatever the labels are",
        "unicorn -> horse [rules.txt:10]  its premise is impossible because of ~unicorn [rules.txt:11]",
    ]
    assert found.forced == {"unicorn": 0}
    assert found.equal == (("cat", "~not_cat"),)
    assert found.similar_labels == (("horse", "Horse"),)
    assert str(found) in found.text(None)
    assert "rules.txt:6 no hybrids" in found.html()
    assert found._repr_html_() in found.html()
    assert json.loads(found.to_json())["redundant"][1] == {"rule": 6, "why": "same", "by": [4]}


def test_contradictions_are_named_and_the_rest_is_reviewed() -> None:
    rows = {"a": [1, 1], "b": [1, 1], "c": [0, 1]}
    found = sp.rules.review("a\na -> b\n~b\nc -> a\n", rows)
    assert not found.ok
    assert [[str(rule) for rule in each] for each in found.contradictions] == [["a", "a -> b", "~b"]]
    assert found.all_contradictions
    assert [*map(str, found.left_out)] == ["~b"]  # any of the three would do, but rows break this one
    assert found.data is not None
    assert found.data.cells_to_change == 0
    assert [str(rule) for rule in found.data.to_drop or ()] == ["~b"]
    assert found.forced == {"a": 1, "b": 1}


def test_of_several_ways_to_repair_facts_go_before_rules() -> None:
    found = sp.rules.review("stamped -> scanned\nstamped & ~scanned\nlate -> stamped")
    assert [*map(str, found.left_out)] == ["stamped & ~scanned"]
    broken = sp.rules.review("a\n~a", {"a": [1, 0, 0]})
    assert broken.data is not None
    assert [*map(str, broken.left_out)] == ["a"]
    assert "nearest row that obeys: this one, without the rules to remove" in str(broken)


def test_variables_bring_their_rule() -> None:
    n = sp.Integer("n", 0, 2)
    found = sp.rules.review([n >= 0, n >= 1, n != 0], {"n=0": [0, 1], "n=1": [1, 1], "n=2": [0, 0]})
    assert [each.why for each in found.redundant] == ["always true", "same"]
    assert found.data is not None
    assert [[str(rule) for rule in row.rules][-1] for row in found.data.broken] == ['exactly(1, "n=0", "n=1", "n=2")']
    assert found.data.to_drop is None


def test_what_follows_for_a_variable_is_told_once() -> None:
    found = sp.rules.review("variable s: day, night\nvariable n: 0..3\ns == night\nn <= 1")
    assert found.forced == {"s": "night", "n=2": 0, "n=3": 0}
    assert "  s = night\n" in str(found)
    assert '  "n=2" = 0\n' in str(found)


def test_empty_cells_of_a_variable_are_filled_in_with_one_value() -> None:
    """A rule that no value of an unknown variable can save is broken by the row, and counted."""
    found = sp.rules.review(
        "variable n: 0..3\nvariable m: 0..2\nn + m <= 1\nm <= 2 -> n <= 1", {"n": [3, 0], "m": [np.nan, np.nan]}
    ).data
    assert found is not None
    assert [[str(rule) for rule in row.rules] for row in found.broken] == [["n + m <= 1", "m <= 2 -> n <= 1"]]
    assert [use.broken_by for use in found.uses] == [1, 1]


def test_very_many_models_are_told_in_a_few_digits() -> None:
    found = replace(sp.rules.review("a | b"), models=7**5200)
    assert str(found) == "1 rule over 2 labels, about 3.23e+4394 label vectors obey them all"
    assert json.loads(found.to_json())["models"] == "about 3.23e+4394"


def test_the_likelihood_without_a_rule() -> None:
    """Without `a -> b`, the single circuit of the other rules is two independent labels."""
    rows = np.array([[0, 0]] * 50 + [[1, 1]] * 50, np.float32)
    found = sp.rules.review(["a -> b", "b -> a"], rows)
    assert found.data is not None
    kept, without = 2 * -math.log(2) / 2, [use.log_likelihood for use in found.data.uses]
    assert without == pytest.approx([without[0], without[0]])
    layer = sp.SPL(1, sp.compile("b -> a", labels=["a", "b"])).start_at(rows)
    import torch

    expected = float(layer(torch.zeros(1)).log_prob(torch.from_numpy(rows)).detach().mean())
    assert without[0] == pytest.approx(expected - kept, abs=0.02)


def test_too_little_time_is_said() -> None:
    rules = [f"exactly({i % 5 + 2}, {', '.join(f'x{(i * 7 + j * j) % 60}' for j in range(12))})" for i in range(40)]
    found = sp.rules.review([sp.parse(rule) for rule in rules if "x" in rule], timeout=0.2)
    assert found.not_known
    assert "not known, for want of time" in str(found)


def test_rules_from_a_data_frame() -> None:
    frame = pd.DataFrame({"rule": ["a -> b", None, "b -> c"], "name": ["one", "", None]}, index=[10, 11, 12])
    assert sp.rules.read(frame) == sp.parse("(a -> b) & (b -> c)")
    found = sp.rules.review(frame, [[1, 0, 0]])
    assert [str(rule) for rule in found.rules] == ["a -> b [row 10 one]", "b -> c [row 12]"]
    with pytest.raises(ParseError, match=r"row 1: at 1:5: "):
        sp.rules.read(pd.DataFrame({"only": ["a -> b", "a -> "]}))
    with pytest.raises(ParseError, match="needs a column 'rule', not only x, y"):
        sp.rules.read(pd.DataFrame({"x": ["a"], "y": ["b"]}))


def test_data_that_does_not_fit() -> None:
    with pytest.raises(LabelError, match="no column 'b'"):
        sp.rules.review("a -> b", {"a": [1]})
    with pytest.raises(LabelError, match=r"expected \[\*batch, 2\]"):
        sp.rules.review("a -> b", [[1, 0, 1]])
    with pytest.raises(ValueError, match=r"row 1, label 'b' is 2"):
        sp.rules.review("a -> b", [[1, 0], [1, 2]])
    for data in ({"a": ["1", ""], "b": ["0", "1"]}, pd.DataFrame({"a": [1, ""], "b": [0, "1"]})):
        found = sp.rules.review("a -> b", data).data
        assert found is not None
        assert [row.row for row in found.broken] == [0]
    with pytest.raises(LabelError, match="values of 'a' are not numbers: 'yes'"):
        sp.rules.review("a -> b", {"a": ["yes"], "b": ["no"]})
    with pytest.raises(LabelError, match="differ in length"):
        sp.rules.review("a -> b", {"a": [1], "b": [0, 1]})
    with pytest.raises(LabelError, match="data must be numbers of shape"):
        sp.rules.review("a -> b", [{"a": 1, "b": 0}])
    with pytest.raises(TypeError, match="semprola check"):
        sp.rules.review("a -> b", "rows.csv")


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ({"z": 2}, LabelError, "weights: 'z' is not a label"),
        ({"a": 0}, ValueError, "'a' must cost a whole number of at least 1, not 0"),
        ({"a": 1.5}, ValueError, "not 1.5"),
        ([1, 2], TypeError, "must be a mapping"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weights: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sp.rules.review("a -> b", {"a": [1], "b": [0]}, weights=weights)
    with pytest.raises(ValueError, match="most must be at least 1"):
        sp.rules.review("a -> b", most=0)


def test_the_weight_of_a_variable_holds_for_all_its_values() -> None:
    rules = "variable n: 0..3\nn <= 1 | a"
    for weights, change in (({"n": 3}, {"a": 1}), ({"a": 3}, {"n": 0})):
        found = sp.rules.review(rules, {"n": [2], "a": [0]}, weights=weights).data
        assert found is not None
        assert list(found.broken[0].changes or ()) == list(change)
