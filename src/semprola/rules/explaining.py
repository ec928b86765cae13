"""Why a combination of labels is impossible, what follows from it, and the nearest one that is possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from semprola._names import columns_by_name
from semprola._notebook import code, heading, shown, table, text
from semprola.compiler.budget import Budget
from semprola.errors import CompilationBudgetError, LabelError, UnsatisfiableError
from semprola.logic.messages import brief
from semprola.rules.listing import Rule, RuleList, listed
from semprola.rules.questions import Questions


@dataclass(frozen=True)
class Consequence:
    """A label that has only one value, given the observed ones.

    Attributes:
        label: the label.
        value: its value.
        by: rules through which it follows, each of which is needed for that.
        given: the observed values that are needed.
    """

    label: str
    value: int
    by: tuple[Rule, ...]
    given: dict[str, int]

    def __str__(self) -> str:
        known = f"{_shown(self.given)} and " if self.given else ""
        return f"{self.label} = {self.value}  from {known}{'; '.join(map(str, self.by))}"


@dataclass(frozen=True)
class Explanation:
    """What rules say about some observed values.

    Attributes:
        values: the observed values.
        is_possible: whether the rules allow them.
        because: if not, rules that forbid them together, each of which is needed for that.
        conflict: the observed values that are needed for that.
        changes: if they are not possible, the fewest of them that must change, and their new values.
        nearest: a label vector that the rules allow, with the fewest observed values changed.
        follows: the labels that have only one value given the observed ones (after the changes, if there are any).
        is_complete: whether all such labels are listed; time may have run out.
    """

    values: dict[str, int]
    is_possible: bool
    because: tuple[Rule, ...]
    conflict: dict[str, int]
    changes: dict[str, int]
    nearest: dict[str, int]
    follows: tuple[Consequence, ...]
    is_complete: bool

    @shown
    def _repr_html_(self) -> str | None:
        title, *lines = str(self).split("\n")
        verdict = [heading(text(line)) for line in lines if not line.startswith("  ")]
        rows = [
            [text(each.label), str(each.value), text(_shown(each.given)), code("; ".join(map(str, each.by)))]
            for each in self.follows
        ]
        found = heading("what follows") + table(["label", "value", "from", "and the rules"], rows) if rows else ""
        return f"<b>{text(title)}</b>{''.join(verdict)}{found}"

    def __str__(self) -> str:
        lines = [f"{_shown(self.values)}: {'possible' if self.is_possible else 'impossible'}"]
        if not self.is_possible:
            lines.append(f"because of {_shown(self.conflict)} and {'; '.join(map(str, self.because))}")
            lines.append(f"nearest possible combination: change {_shown(self.changes)}")
        lines += [f"  {each}" for each in self.follows]
        if not self.is_complete:
            lines.append("  more may follow; time ran out")
        return "\n".join(lines)


def explain(rules: Any, partial: Mapping[str, Any], *, timeout: float | None = 60.0) -> Explanation:
    """Say why a combination of labels is possible or not, and what follows from it.

    Args:
        rules: rules in any form, see :func:`semprola.rules.review`.
        partial: values of some labels, 0 or 1; NaN and None are not observed. Values of an `Integer` or a `Categorical`
            are given by their labels, such as ``{"n=3": 1}``.
        timeout: seconds.

    Raises:
        LabelError: a label is unknown.
        ValueError: a value is not 0 or 1.
        UnsatisfiableError: the rules have no model at all: see :func:`semprola.rules.review`.
        CompilationBudgetError: time ran out before it was known whether the combination is possible.

    Example:
        >>> import semprola as sp
        >>> print(sp.rules.explain("cat -> pet\\npet -> animal\\nanimal -> ~plant", {"cat": 1, "animal": 0}))
        cat=1, animal=0: impossible
        because of cat=1, animal=0 and cat -> pet; pet -> animal
        nearest possible combination: change cat=0
          pet = 0  from animal=0 and pet -> animal
    """
    known = listed(rules)
    budget = Budget(timeout, progress=False)
    values = _checked(partial, known)
    asked = Questions(known, budget)
    literals = asked.literals(values)
    because: tuple[Rule, ...] = ()
    conflict: dict[str, int] = {}
    is_possible = asked.has_model(asked.everything, literals)
    if not is_possible:
        if not asked.has_model(asked.everything):
            raise UnsatisfiableError("the rules have no model at all: sp.rules.review names the contradictions")
        because, conflict = _because(asked, literals)
    found = asked.fewest_changes(asked.everything, values)
    if found is None:
        raise UnsatisfiableError("the rules have no model at all: sp.rules.review names the contradictions")
    changes, nearest = found
    follows, is_complete = _follows(asked, {**values, **changes}, nearest)
    return Explanation(values, is_possible, because, conflict, changes, nearest, tuple(follows), is_complete)


def _because(asked: Questions, literals: list[int]) -> tuple[tuple[Rule, ...], dict[str, int]]:
    """Rules and values that cannot hold together, each of which is needed."""
    rules, values = asked.conflict(asked.everything, literals)
    return tuple(asked.listed.rules[rule] for rule in rules), values


def _follows(asked: Questions, values: dict[str, int], nearest: dict[str, int]) -> tuple[list[Consequence], bool]:
    literals = asked.literals(values)
    candidates = [name for name in asked.labels if name not in values]
    expected = dict(nearest)
    found: list[Consequence] = []
    try:
        asked.solver.prefer([-v for v in asked.literals(nearest)])
        open_names = dict.fromkeys(candidates)
        for name in candidates:
            if name not in open_names:
                continue
            value = expected[name]
            other = [*literals, *asked.literals({name: 1 - value})]
            if asked.has_model(asked.everything, other):
                model = dict(zip(asked.labels, asked.model().astype(int).tolist(), strict=True))
                open_names = {each: None for each in open_names if model[each] == expected[each]}
            else:
                rules, needed = asked.conflict(asked.everything, other)
                needed.pop(name, None)
                found.append(Consequence(name, value, tuple(asked.listed.rules[rule] for rule in rules), needed))
    except CompilationBudgetError:
        return found, False
    return found, True


def _checked(partial: Mapping[str, Any], known: RuleList) -> dict[str, int]:
    if not isinstance(partial, Mapping):
        raise TypeError(f"the combination must be a mapping from labels to 0 or 1, not {brief(partial)}")
    values = {}
    for name, value in columns_by_name(dict(partial), "the combination").items():
        if value is None or value != value:
            continue
        if name not in set(known.labels):
            raise LabelError(f"{brief(name)} is not a label of the rules")
        if value not in (0, 1):
            raise ValueError(f"label {name!r} must be 0 or 1, not {brief(value)}")
        values[name] = int(value)
    return values


def _shown(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "nothing observed"
