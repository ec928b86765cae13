"""Why a combination of labels is impossible, what follows from it, and the nearest one that is possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from semprola._names import columns_by_name, is_absent
from semprola._notebook import code, heading, shown, table, text
from semprola.compiler.budget import Budget
from semprola.errors import CompilationBudgetError, LabelError, UnsatisfiableError
from semprola.logic.messages import brief
from semprola.rules.listing import Rule, RuleList, listed
from semprola.rules.questions import Questions
from semprola.rules.variables import Variables, quoted, told


@dataclass(frozen=True)
class Consequence:
    """A label that has only one value, given the observed ones.

    Attributes:
        label: the label, or a variable with several values.
        value: its value.
        by: rules through which it follows, each of which is needed for that.
        given: the observed values that are needed.
    """

    label: str
    value: Any
    by: tuple[Rule, ...]
    given: dict[str, Any]

    def __str__(self) -> str:
        return f"{quoted(self.label)} = {self.value}  from {_reasons(self.given, self.by)}"


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

    values: dict[str, Any]
    is_possible: bool
    because: tuple[Rule, ...]
    conflict: dict[str, Any]
    changes: dict[str, Any]
    nearest: dict[str, Any]
    follows: tuple[Consequence, ...]
    is_complete: bool

    @shown
    def _repr_html_(self) -> str | None:
        title, *lines = str(self).split("\n")
        verdict = [heading(text(line)) for line in lines if not line.startswith("  ")]
        rows = [
            [text(each.label), str(each.value), text(told(each.given)), code("; ".join(map(str, each.by)))]
            for each in self.follows
        ]
        found = heading("what follows") + table(["label", "value", "from", "and the rules"], rows) if rows else ""
        return f"<b>{text(title)}</b>{''.join(verdict)}{found}"

    def __str__(self) -> str:
        lines = [f"{told(self.values) or 'nothing observed'}: {'possible' if self.is_possible else 'impossible'}"]
        if not self.is_possible:
            lines.append(f"because of {_reasons(self.conflict, self.because)}")
            lines.append(f"nearest possible combination: change {told(self.changes)}")
        lines += [f"  {each}" for each in self.follows]
        if not self.is_complete:
            lines.append("  more may follow; time ran out")
        return "\n".join(lines)


def explain(rules: Any, partial: Mapping[str, Any], *, timeout: float | None = 60.0) -> Explanation:
    """Say why a combination of labels is possible or not, and what follows from it.

    Args:
        rules: rules in any form, see :func:`semprola.rules.review`.
        partial: values of some labels, 0 or 1, and of variables with several values, such as ``{"n": 3}``; NaN and None
            are not observed.
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
    variables = Variables(known.variables)
    values = _checked(partial, known, variables)
    asked = Questions(known, Budget(timeout, progress=False))
    observed = variables.without_others(values)
    found = asked.fewest_changes(asked.everything, observed)
    if found is None:
        raise UnsatisfiableError("the rules have no model at all: sp.rules.review names the contradictions")
    changes, nearest = found
    because, conflict = asked.conflict(asked.everything, asked.literals(observed)) if changes else ([], {})
    after = {**values, **{label: nearest[label] for name in changes for label in variables.together(name)}}
    follows, is_complete = _follows(asked, after, nearest, variables)
    return Explanation(
        variables.whole(values),
        not changes,
        asked.named(because),
        variables.whole(conflict),
        variables.changed(changes, nearest),
        variables.whole(nearest),
        tuple(follows),
        is_complete,
    )


def _follows(
    asked: Questions, values: dict[str, int], nearest: dict[str, int], variables: Variables
) -> tuple[list[Consequence], bool]:
    literals = asked.literals(variables.without_others(values))
    known = {variables.home.get(label) for label, on in values.items() if on} - {None}
    open_names = [name for name in asked.labels if name not in values and variables.home.get(name) not in known]
    found: dict[str, Consequence] = {}
    is_complete = True
    try:
        asked.solver.prefer(-v for v in asked.literals(nearest))
        while open_names:
            name, *open_names = open_names
            other = [*literals, *asked.literals({name: 1 - nearest[name]})]
            if asked.has_model(asked.everything, other):
                model = dict(zip(asked.labels, asked.model().astype(int).tolist(), strict=True))
                open_names = [each for each in open_names if model[each] == nearest[each]]
            else:
                rules, needed = asked.conflict(asked.everything, other)
                needed.pop(name, None)
                found[name] = Consequence(name, nearest[name], asked.named(rules), variables.whole(needed))
    except CompilationBudgetError:
        is_complete = False
    return _merged(found, variables), is_complete


def _merged(found: Mapping[str, Consequence], variables: Variables) -> list[Consequence]:
    """Consequences about labels, with the value of a variable in place of what it is not."""
    chosen = {variables.home[label] for label, each in found.items() if each.value and label in variables.home}
    merged = []
    for label, each in found.items():
        home = variables.home.get(label)
        if home not in chosen:
            merged.append(each)
        elif each.value:
            merged.append(replace(each, label=str(home), value=variables.value(label)))
    return merged


def _checked(partial: Any, known: RuleList, variables: Variables) -> dict[str, int]:
    """Values of labels."""
    if not isinstance(partial, Mapping):
        raise TypeError(f"the combination must be a mapping from labels to 0 or 1, not {brief(partial)}")

    def fail(message: str, row: int) -> None:
        raise LabelError(f"the combination: {message}")

    values, labels = {}, set(known.labels)
    for name, value in columns_by_name(variables.spelled(partial, fail), "the combination").items():
        if is_absent(value):
            continue
        if name not in labels:
            raise LabelError(f"{brief(name)} is not a label of the rules")
        if value not in (0, 1):
            raise ValueError(f"label {name!r} must be 0 or 1, not {brief(value)}")
        values[name] = int(value)
    return values


def _reasons(values: Mapping[str, Any], rules: Sequence[Rule]) -> str:
    """Observed values and rules; no rule is needed where the values of one variable contradict each other."""
    return " and ".join(filter(None, [told(values), "; ".join(map(str, rules)) or "one value per variable"]))
