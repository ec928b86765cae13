"""What `split` returns: circuits that a constraint implies and that together state it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from semprola._notebook import code, heading, more, shown, table, text
from semprola.circuit import LITERAL, Circuit
from semprola.errors import LabelError
from semprola.logic import And, Formula
from semprola.logic.rules import located

_NAMED = 3
"""The most rules that a notice names."""
_LISTED = 20


@dataclass(frozen=True, eq=False)
class Split:
    """Circuits over the same labels, each implied by a constraint; with the rules left out, they state it.

    Attributes:
        circuits: the circuits; each has all labels as columns.
        rules_left_out: rules that no circuit could take, as formulas. Layers still obey them: they search for states
            that satisfy all rules.
        places: the file and line of rules that were read from a file.
        info: how the split was made: seconds, pieces, blocks.
        source: the constraint that it states, if it is known; solvers of others need it.

    Example:
        >>> import semprola as sp
        >>> K = sp.constraints.permutation(4)
        >>> S = sp.split(K, max_nodes=30)
        >>> len(S.circuits) > 1, S.left_out, S.is_exact
        (True, (), False)
        >>> int(S.satisfied(sp.compile(K).enumerate()).sum())
        24
    """

    circuits: tuple[Circuit, ...]
    rules_left_out: tuple[Formula, ...] = ()
    places: Mapping[Formula, str] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    source: Formula | None = None

    def __post_init__(self) -> None:
        if not self.circuits:
            raise ValueError("a split has at least one circuit")
        first = self.circuits[0].labels
        for circuit in self.circuits:
            if circuit.labels != first or circuit.given:
                raise LabelError("the circuits of a split have the same labels in the same order, and no inputs")
        unknown = [name for rule in self.rules_left_out for name in rule.labels if name not in set(first)]
        if unknown:
            raise LabelError(f"a rule that is left out mentions {unknown[0]!r}, which is not a label of the circuits")

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of y."""
        return self.circuits[0].labels

    @property
    def is_exact(self) -> bool:
        """Whether one circuit states the whole constraint, so that all answers are as for any circuit."""
        return len(self.circuits) == 1 and not self.rules_left_out

    @property
    def left_out(self) -> tuple[str, ...]:
        """The rules that no circuit could take, in the words of the constraint, with file and line if known."""
        return tuple(located(rule, self.places) for rule in self.rules_left_out)

    @property
    def notice(self) -> str:
        """One line about what a layer over this split does: its answers are pooled, and which rules are left out."""
        count = len(self.circuits)
        text = f"answers are pooled from {count} circuit{'s' * (count != 1)}, with certified bounds of probabilities"
        if not self.rules_left_out:
            return text
        shown = "; ".join([*self.left_out[:_NAMED], *(["…"] if len(self.left_out) > _NAMED else [])])
        return f"{text}; no circuit has {len(self.left_out)} of the rules, which only the search obeys: {shown}"

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the circuits and of the rules that are left out."""
        parts = [*(circuit.digest for circuit in self.circuits), *map(str, self.rules_left_out)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def num_nodes(self) -> int:
        """Nodes of all circuits together."""
        return sum(circuit.num_nodes for circuit in self.circuits)

    @property
    def num_edges(self) -> int:
        """Edges of all circuits together."""
        return sum(circuit.num_edges for circuit in self.circuits)

    def satisfied(self, y: Any) -> Any:
        """Whether rows satisfy the constraint: every circuit, and every rule that is left out.

        Args:
            y: 0/1 of shape [*batch, labels], or by name.

        Returns:
            bools [*batch], as an array or tensor like y.
        """
        result = self.circuits[0].satisfied(y)
        for circuit in self.circuits[1:]:
            result = result & circuit.satisfied(y)
        if self.rules_left_out:
            result = result & And(self.rules_left_out).evaluate(y, labels=self._columns(y))
        return result

    @cached_property
    def mentions(self) -> npt.NDArray[np.bool_]:
        """Whether a circuit says anything about a label [circuits, labels]."""
        rows = np.zeros((len(self.circuits), len(self.labels)), bool)
        for row, circuit in zip(rows, self.circuits, strict=True):
            row[np.abs(circuit.literal[circuit.kind == LITERAL]) - 1] = True
            row |= circuit.zero_suppressed
        return rows

    def __deepcopy__(self, memo: dict[int, Any]) -> Split:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it was made with, not what is kept with it."""
        return Split, (self.circuits, self.rules_left_out, dict(self.places), dict(self.info), self.source)

    @shown
    def _repr_html_(self) -> str | None:
        rows = [
            [str(number), f"{mentioned.sum():,}", f"{circuit.num_nodes:,}", f"{circuit.num_edges:,}"]
            for number, (circuit, mentioned) in enumerate(zip(self.circuits, self.mentions, strict=True))
        ]
        header = ["circuit", "labels with a rule", "nodes", "edges"]
        cells = table(header, rows[:_LISTED], numbers=range(4)) + more(len(rows) - _LISTED, "circuits")
        rules = "".join(f"<div>{code(rule)}</div>" for rule in self.left_out[:_LISTED])
        return heading(text(self.notice, 200)) + cells + (heading("rules that no circuit has") + rules if rules else "")

    def __repr__(self) -> str:
        said = "exact" if self.is_exact else "all rules" if not self.rules_left_out else "incomplete"
        out = f", {len(self.rules_left_out)} rules left out" if self.rules_left_out else ""
        circuits = f"{len(self.circuits)} circuit{'s' * (len(self.circuits) != 1)}"
        return f"Split({circuits}, {len(self.labels)} labels, {self.num_edges:,} edges, {said}{out})"

    def _columns(self, y: Any) -> Sequence[str] | None:
        return None if isinstance(y, Mapping) or hasattr(y, "columns") else self.labels
