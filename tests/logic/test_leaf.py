"""Leaves defined outside the package combine like any formula."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from semprola.errors import SemprolaError
from semprola.logic import Bool, Formula, Kind, Leaf


class Majority(Leaf):
    def __init__(self, *names: str) -> None:
        self.names = names

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        return np.sum([columns[name] for name in self.names], axis=0) * 2 > len(self.names)

    def to_circuit(self) -> object:
        return ("a circuit over", self.names)

    def describe(self) -> str:
        return f"majority({', '.join(self.names)})"

    def key(self) -> tuple[str, ...]:
        return self.names


class Careless(Majority):
    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        return np.zeros((rows, 2))  # type: ignore[return-value]


leaf = Majority("a", "b", "c")


def test_it_is_a_formula() -> None:
    assert isinstance(leaf, Formula)
    assert leaf.kind is Kind.CUSTOM
    assert leaf.args == ()
    assert leaf.nodes() == [leaf]
    assert leaf.to_circuit() == ("a circuit over", ("a", "b", "c"))


def test_equal_keys_are_the_same_formula() -> None:
    twin = Majority("a", "b", "c")
    assert twin is not leaf
    assert twin == leaf
    assert hash(twin) == hash(leaf)
    assert leaf != Majority("a", "b", "d")
    assert leaf != Careless("a", "b", "c")
    assert leaf != "majority"
    assert (leaf & Bool("d")) is (twin & Bool("d"))
    assert (leaf | twin).size == 2


def test_operators_labels_text_and_evaluation() -> None:
    formula = (Bool("d") >> leaf) & ~(True & leaf) ^ False
    assert formula.labels == ("d", "a", "b", "c")
    assert str(leaf | ~leaf & Bool("d")) == "majority(a, b, c) | ~majority(a, b, c) & d"
    assert leaf.evaluate([[1, 1, 0], [1, 0, 0]]).tolist() == [True, False]
    assert (Bool("d") & ~leaf).evaluate({"a": 0, "b": 1, "c": 0, "d": 1}) is True


def test_pickle_and_copy() -> None:
    formula = ~leaf & Bool("d")
    assert pickle.loads(pickle.dumps(leaf)) == leaf
    assert pickle.loads(pickle.dumps(formula)) is formula
    assert copy.deepcopy(leaf) is leaf


def test_every_method_is_required() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Leaf()  # type: ignore[abstract]


def test_a_wrong_answer_is_refused() -> None:
    with pytest.raises(
        SemprolaError, match=r"^Careless.evaluate_columns must return bools of shape \(1,\), got float64"
    ):
        Careless("a").evaluate({"a": 1})
