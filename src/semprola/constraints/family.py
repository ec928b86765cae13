"""The base class of all families: formulas that know how to build their own circuit."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import SupportsIndex

import numpy as np

from semprola.circuit import Circuit
from semprola.compiler.budget import Budget, Progress
from semprola.errors import CompilationBudgetError, LabelError
from semprola.logic import Leaf
from semprola.logic.messages import brief
from semprola.logic.syntax import checked_names

MOST_LABELS = 1_000_000
"""A family with more labels than this is refused before their names are made."""


class Family(Leaf):
    """A constraint with a direct construction; ``& | ~`` combine it with any formula.

    A subclass sets its attributes in ``__init__`` and implements `_build` and the methods of `Leaf` that define its
    meaning: ``labels``, ``evaluate_columns`` (by the definition, without the circuit), ``describe`` and ``key``.
    """

    advice = ""
    """What to try when the construction runs out of its budget; part of the error."""

    def to_circuit(
        self,
        *,
        max_nodes: int | None = None,
        timeout: float | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Circuit:
        """Build the circuit; its labels are the ``labels`` that are not given.

        Args:
            max_nodes: the most nodes to make, before reduction.
            timeout: the most seconds to take.
            progress: called from time to time with a `Progress`.

        Raises:
            UnsatisfiableError: the constraint has no model.
            CompilationBudgetError: a limit was exceeded; the message names the widest part.
        """
        return self.circuit_within(Budget(timeout, max_nodes, progress=progress))

    def circuit_within(self, budget: Budget) -> Circuit:
        """Like `to_circuit`, but within the rest of the budget of a whole compilation."""
        began = budget.seconds
        circuit = self._build(budget.part(self.describe(), self.advice))
        return circuit.with_info(
            {
                **circuit.info,
                "backend": "direct",
                "family": self.describe(),
                "seconds": budget.seconds - began,
                "reason": "the family has a direct construction",
                "nodes": circuit.num_nodes,
            }
        )

    @abstractmethod
    def _build(self, budget: Budget) -> Circuit:
        """Build the circuit within a budget."""


def label_names(labels: Iterable[str], what: str) -> tuple[str, ...]:
    """Check the names of labels: non-empty strings without repetitions.

    Args:
        labels: the names; a single string is refused, since it is most likely a mistake.
    """
    names = checked_names(labels, what)
    if not names:
        raise LabelError(f"{what}: there must be at least one label")
    return names


def renamed(
    default: Callable[[], Sequence[str]], count: int, labels: Iterable[str] | Mapping[str, str] | None, what: str
) -> tuple[str, ...]:
    """The names of a family's labels: its own, or those that the user wants instead.

    Args:
        default: makes the family's own names; called only after checking that there are not too many.
        labels: all names in the family's own order, or a dict from some of its own names to new ones.
    """
    if count > MOST_LABELS:
        raise CompilationBudgetError(f"{what} would have {count:,} labels: at most {MOST_LABELS:,} are possible")
    if labels is None:
        return label_names(default(), what)
    if isinstance(labels, Mapping):
        own = dict.fromkeys(default())
        unknown = next((name for name in labels if name not in own), None)
        if unknown is not None:
            raise LabelError(f"{what}: labels= renames {brief(unknown)}, which is not one of its labels")
        return label_names([labels.get(name, name) for name in own], what)
    names = label_names(labels, what)
    if len(names) != count:
        raise LabelError(f"{what}: labels= has {len(names)} names for {count} labels")
    return names


def whole_number(value: object, name: str, what: str, least: int = 0) -> int:
    """Check an integer argument."""
    number = as_whole(value)
    if number is None or number < least:
        raise ValueError(f"{what}: {name} must be a whole number of at least {least}, not {brief(value)}")
    return number


def as_whole(value: object) -> int | None:
    """A Python or numpy integer as an int; None for anything else, including True and False."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None  # an array of several numbers
