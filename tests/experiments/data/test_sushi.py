"""Rankings: both dialects of PrefLib, the task made from them, the generator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.data import generate_rankings, load_sushi, read_preflib
from semprola.constraints import permutation
from semprola.errors import FormatError

_NAMES = "".join(f"{i},item {i}\n" for i in range(1, 11))
_OLDER = f"10\n{_NAMES}3,3,2\n2,10,9,8,7,6,5,4,3,2,1\n1,1,2,3,4,5,6,7,8,9,10\n"
_NEWER = "# FILE NAME: x.soc\n# NUMBER ALTERNATIVES: 10\n2: 10,9,8,7,6,5,4,3,2,1\n1: 1,2,3,4,5,6,7,8,9,10\n"


@pytest.mark.parametrize("text", [_OLDER, _NEWER], ids=["older", "newer"])
def test_both_dialects_say_the_same(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.soc"
    path.write_text(text)
    rankings, counts = read_preflib(path)
    assert rankings.tolist() == [list(range(10, 0, -1)), list(range(1, 11))]
    assert counts.tolist() == [2, 1]
    assert len(load_sushi(path)) == 2
    several = load_sushi(path, multiplicity=True)
    assert several.groups.tolist() == [0, 0, 1]
    assert np.array_equal(several.x[0], several.x[1])


def test_ranks_of_the_task(tmp_path: Path) -> None:
    """Items 4, 6, 9, 10 are asked for: in the order 10, 9, …, 1 item 4 comes last of them, item 10 first."""
    path = tmp_path / "x.soc"
    path.write_text(_OLDER)
    data = load_sushi(path)
    assert data.y[0].reshape(4, 4).argmax(1).tolist() == [3, 2, 1, 0]
    assert data.y[1].reshape(4, 4).argmax(1).tolist() == [0, 1, 2, 3]
    assert data.x[0].reshape(6, 6).argmax(1).tolist() == [5, 4, 3, 2, 1, 0]


def test_the_published_file(shared_data: Path) -> None:
    path = shared_data / "sushi" / "sushi.soc"
    once, people = load_sushi(path), load_sushi(path, multiplicity=True)
    assert (len(once), len(people)) == (4926, 5000)
    constraint = permutation(4)
    assert np.asarray(constraint.evaluate(people.y.astype(bool), labels=list(constraint.labels))).all()


def test_generated_rankings() -> None:
    data, again = generate_rankings(200, seed=4), generate_rankings(200, seed=4)
    assert np.array_equal(data.y, again.y)
    for part, size in ((data.x, 6), (data.y, 4)):
        matrix = part.reshape(-1, size, size)
        assert (matrix.sum(1) == 1).all()
        assert (matrix.sum(2) == 1).all()
    with pytest.raises(ValueError, match="rows and tastes must be at least 1"):
        generate_rankings(0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("# TITLE: nothing\n", "the file has no rankings"),
        ("ten\n", ":1: expected a whole number from 1, found 'ten'"),
        ("10\n1,a\n", "10 items are announced, and the file has 2 lines"),
        (_OLDER.replace("3,3,2", "3,3"), ":12: expected three totals"),
        (_OLDER.replace("3,3,2", "3,3,5"), "5 rankings are announced, 2 follow"),
        (_OLDER.replace("3,3,2", "9,9,2"), "9 people are announced, the rankings are of 3"),
        (_OLDER.replace("1,1,2,3,4", "1,1,2,3,3"), ":14: not a strict order of all items"),
        (_NEWER.replace("2: 10,9", "2: 10,x"), ":3: expected a whole number from 1, found 'x'"),
        (_NEWER.replace("2: 10,9", "2: {10,9}"), ":3: expected a whole number from 1, found"),
        (_NEWER.replace("2: ", "-2: "), ":3: expected a whole number from 1, found '-2'"),
        ("# x\n1: 1,2\n1: 1,2,3\n", ":3: not a strict order of all items"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.soc"
    path.write_text(text)
    with pytest.raises(FormatError, match=message) as raised:
        read_preflib(path)
    assert "\n" not in str(raised.value)


def test_other_numbers_of_items(tmp_path: Path) -> None:
    path = tmp_path / "x.soc"
    path.write_text("# x\n1: 1,2\n")
    with pytest.raises(FormatError, match="rankings of 2 items, expected 10"):
        load_sushi(path)
