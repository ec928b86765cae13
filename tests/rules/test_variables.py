"""Rules about numbers and categories in files, and tables whose columns have their values."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

import semprola as sp
from semprola.errors import LabelError, ParseError

RULES = """\
variable crew: 0..3
variable shift: day, night
small: crew < 2 -> ~roof
night: shift == night -> crew + 1 >= 3 & ~paint
"""


def obeys(crew: int, shift: str, roof: int, paint: int) -> bool:
    return not (crew < 2 and roof) and not (shift == "night" and (crew < 2 or paint))


ROWS = [*itertools.product(range(4), ("day", "night"), (0, 1), (0, 1))]
NAMES = ("crew", "shift", "roof", "paint")
TABLE = {name: [row[i] for row in ROWS] for i, name in enumerate(NAMES)}


def test_a_review_of_whole_columns(tmp_path: Path) -> None:
    """Rows, nearest rows and uses against brute force over values; a change of a variable is one change."""
    path = tmp_path / "rules.txt"
    path.write_text(RULES)
    pd = pytest.importorskip("pandas")
    for table in (TABLE, pd.DataFrame(TABLE, index=range(32))):
        found = sp.rules.review(path, table).data
        assert [row.row for row in found.broken] == [i for i, row in enumerate(ROWS) if not obeys(*row)]
        for row in found.broken:
            old = ROWS[row.row]
            assert row.values.items() <= dict(zip(NAMES, old, strict=True)).items()
            new = {**dict(zip(NAMES, old, strict=True)), **row.changes}
            assert obeys(**new)
            least = min(sum(a != b for a, b in zip(old, each, strict=True)) for each in ROWS if obeys(*each))
            assert len(row.changes) == least
        assert [use.rule.text for use in found.uses] == [line.partition(": ")[2] for line in RULES.splitlines()[2:]]
    labels = sp.rules.read(path).labels
    by_label = {f"crew={i}": [row[0] == i for row in ROWS] for i in range(4)} | {
        "shift=day": [row[1] == "day" for row in ROWS],
        "shift=night": [row[1] == "night" for row in ROWS],
        "roof": TABLE["roof"],
        "paint": TABLE["paint"],
    }
    assert {*by_label} == {*labels}
    again = sp.rules.review(path, by_label).data
    assert [row.row for row in again.broken] == [row.row for row in found.broken]


@pytest.mark.parametrize(
    "partial", [dict(zip(NAMES[:k], row[:k], strict=True)) for k in (1, 2, 4) for row in ROWS[::5]]
)
def test_explanations(partial: dict[str, object]) -> None:
    """What follows and the nearest combination against brute force over values."""
    found = sp.rules.explain(RULES, partial)
    possible = [
        each
        for each in (dict(zip(NAMES, row, strict=True)) for row in ROWS if obeys(*row))
        if all(each[name] == value for name, value in partial.items())
    ]
    assert found.is_possible == bool(possible)
    assert obeys(**found.nearest)
    if found.is_possible:
        sure = {n: v for n, v in possible[0].items() if n not in partial and all(e[n] == v for e in possible)}
        assert {each.label: each.value for each in found.follows if each.label in NAMES} == sure
    else:
        assert found.conflict.items() <= partial.items()
        assert not any(
            obeys(*row) and found.conflict.items() <= dict(zip(NAMES, row, strict=True)).items() for row in ROWS
        )


def test_data_frames_and_listed_variables(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"rule": RULES.splitlines()[2:] + RULES.splitlines()[:2]})
    path = tmp_path / "rules.txt"
    path.write_text("\n".join(RULES.splitlines()[2:]))
    variables = [sp.Integer("crew", 0, 3), sp.constraints.Categorical("shift", ["day", "night"])]
    for rules in (sp.rules.read(frame), sp.rules.read(path, variables=variables), frame):
        assert sp.rules.compare(rules, RULES).relation == "equal"
    with pytest.raises(ParseError, match="row 1: at 1:12: expected a range"):
        sp.rules.read(pd.DataFrame({"rule": ["a", "variable n: 0.."]}))
    with pytest.raises(ParseError, match="for numbers, write a line"):
        sp.rules.read(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"crew": [7]}, "data: row 0, variable 'crew' has no value 7"),
        ({"shift": ["noon"]}, "data: row 0, variable 'shift' has no value 'noon'"),
        ({"crew": ["x"]}, "data: row 0, variable 'crew' has no value 'x'"),
    ],
)
def test_bad_values(change: dict[str, list[object]], message: str) -> None:
    table = {"crew": [1], "shift": ["day"], "roof": [1], "paint": [0]}
    with pytest.raises(LabelError, match=message):
        sp.rules.review(RULES, {**table, **change})
    (name, (value,)) = next(iter(change.items()))
    with pytest.raises(LabelError, match=message.replace("data: row 0,", "the combination:")):
        sp.rules.explain(RULES, {name: value})


def test_check_reads_columns_of_variables(tmp_path: Path) -> None:
    typer, testing = pytest.importorskip("typer"), pytest.importorskip("typer.testing")
    from semprola.cli import app

    rules, rows = tmp_path / "rules.txt", tmp_path / "rows.csv"
    rules.write_text(RULES)
    rows.write_text("crew,shift,roof,paint\n1,day,1,0\n3,night,0,0\n,night,0,1\n")
    application = app.build(typer)
    answer = testing.CliRunner().invoke(application, ["check", str(rules), str(rows), "--json"])
    found = json.loads(answer.stdout)
    assert answer.exit_code == 1
    assert [row["row"] for row in found["broken rows"]] == [2, 4]
    assert found["broken rows"][0]["changes"] in ({"crew": 2}, {"crew": 3}, {"roof": 0})
    rows.write_text("crew,shift,roof,paint\n1,noon,1,0\n")
    answer = testing.CliRunner().invoke(application, ["check", str(rules), str(rows)])
    assert answer.exit_code == 2
    assert "rows.csv:2: variable 'shift' has no value 'noon'" in answer.output + str(answer.exception)
