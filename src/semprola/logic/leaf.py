"""Constraints that are not built from connectives: the base class of families."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from semprola.logic.formula import Formula, Kind, Labels

_Self = TypeVar("_Self", bound="Leaf")


@dataclass(frozen=True)
class Reader:
    """A constraint as a state machine that reads its labels one by one.

    Attributes:
        start: the state before the first label; states are hashable, and equal ones behave the same.
        step: ``step(state, position, value)`` is the state after the label at this position has taken the value 0 or
            1, or None if no model is left.
        accept: whether the state after the last label means that the labels read are a model.
    """

    start: Any
    step: Callable[[Any, int, int], Any]
    accept: Callable[[Any], bool]


class Leaf(Formula, ABC):
    """A formula of kind CUSTOM: opaque to logic, but combined with ``& | ~ ^ >>`` like any other.

    A subclass keeps what it needs in its own attributes, set once in ``__init__`` and never changed, among them
    ``names``, the names of its labels in its own order. It implements the abstract methods below. Two leaves of the
    same class with equal ``key()`` are the same formula.

    Example:
        >>> class Even(Leaf):
        ...     "An even number of the labels is true."
        ...     def __init__(self, *names):
        ...         self.names = names
        ...     def evaluate_columns(self, columns, rows):
        ...         return sum((columns[name].astype(int) for name in self.names), np.zeros(rows, int)) % 2 == 0
        ...     def to_circuit(self):
        ...         raise NotImplementedError
        ...     def describe(self):
        ...         return f"even({', '.join(self.names)})"
        ...     def key(self):
        ...         return self.names
        >>> from semprola.logic import Bool
        >>> constraint = Even("a", "b") & ~Bool("c")
        >>> constraint
        even(a, b) & ~c
        >>> constraint.evaluate({"a": 1, "b": 1, "c": 0})
        True
    """

    __slots__ = ()

    def __new__(cls: type[_Self], *args: object, **kwargs: object) -> _Self:
        """Make an empty leaf; subclasses need not call ``super().__init__``."""
        leaf = object.__new__(cls)
        leaf._kind = Kind.CUSTOM
        leaf._args = ()
        leaf._name = ""
        leaf._bounds = (0, 0)
        leaf._group = ()
        leaf._labels = None
        return leaf

    names: tuple[str, ...]
    """The names of the variables in the family's own order."""

    @property
    def labels(self) -> Labels:
        """The names of the variables in the family's own order."""
        if self._labels is None:
            self._labels = Labels(self.names)
        return self._labels

    @property
    def given(self) -> tuple[str, ...]:
        """The ``labels`` that are inputs x by default: variables of the constraint without a probability."""
        return ()

    @property
    def whole(self) -> tuple[tuple[str, ...], ...]:
        """Groups of ``labels`` of which exactly one is on in every model of a constraint that contains the leaf.

        They are the values of variables; the leaf itself must imply this, too.
        """
        return ()

    @abstractmethod
    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        """Return which rows satisfy the constraint, without using any circuit.

        Args:
            columns: the value of each label in every row, ``[rows]``; there may be other columns, too.
            rows: the number of rows.

        Returns:
            One bool per row, ``[rows]``.
        """

    @abstractmethod
    def to_circuit(self) -> object:
        """Return a ``semprola.circuit.Circuit`` over ``labels`` whose models are those of the constraint."""

    def circuit_within(self, budget: Any) -> object:
        """Return what ``to_circuit`` does, within a ``semprola.compiler.budget.Budget``.

        A leaf whose construction can take long overrides this and calls ``budget.check`` from time to time.
        """
        return self.to_circuit()

    def as_rules(self) -> tuple[Formula, ...] | None:
        """Return formulas whose conjunction is the constraint, if that helps to compile it together with others.

        Every back end understands formulas; a family that offers none is a black box to some of them.
        """
        return None

    def as_parts(self) -> tuple[Formula, ...] | None:
        """Return formulas whose conjunction is the constraint, each likely to compile where the whole does not.

        `semprola.split` makes circuits of them; without any, it groups the formulas of ``as_rules``.
        """
        return None

    def as_clauses(self) -> tuple[tuple[int, ...], ...] | None:
        """Return equivalent clauses, if there are few.

        A literal is the position of a label in ``labels``, counted from 1; it is negative for a negated label.
        """
        return None

    def reader(self, order: Sequence[str]) -> Reader | None:
        """Return a state machine that reads the labels in this order, if there is a small one.

        Args:
            order: the ``labels`` in any order.
        """
        return None

    @abstractmethod
    def describe(self) -> str:
        """Return a short text such as ``hierarchy(5 labels)``: how the leaf is printed, alone and inside formulas."""

    @abstractmethod
    def key(self) -> Hashable:
        """Return what distinguishes this leaf from others of its class; cheap to hash, such as a stored digest."""

    def __eq__(self, other: object) -> bool:
        """Compare by class and key."""
        if self is other:
            return True
        return isinstance(other, Leaf) and type(self) is type(other) and self.key() == other.key()

    def __hash__(self) -> int:
        """Hash by class and key."""
        return hash((type(self), self.key()))

    # A leaf has no operands, so pickling its attributes in the ordinary way does not recurse.
    __reduce__: Any = object.__reduce__
