"""What the source text of a constraint means, worked out without formulas, compilers or circuits.

The same text that makes a formula is run with another `sp`, in which ``sp.Bool("a")`` is a column of truth values.
Families are asked for their definition, ``evaluate_columns``.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import Any

import networkx as nx
import numpy as np
import oracle
import torch
import zoo
from torch import Tensor

import semprola as sp

_TOKEN = re.compile(r"""\s*(<->|->|'[^']*'|[()!&|^,]|\w+)""")
_PYTHON = {"<->": "==", "->": ">>", "!": "~"}
_COUNTS = ("exactly", "at_most", "at_least")


class Truth:
    """One truth value for each row."""

    def __init__(self, rows: Any) -> None:
        self.rows = np.asarray(rows, bool)

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.rows & other.rows)

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.rows | other.rows)

    def __xor__(self, other: Truth) -> Truth:
        return Truth(self.rows ^ other.rows)

    def __rshift__(self, other: Truth) -> Truth:
        return Truth(~self.rows | other.rows)

    def __eq__(self, other: object) -> Any:
        return Truth(self.rows == other.rows) if isinstance(other, Truth) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return ~(self == other)

    def __invert__(self) -> Truth:
        return Truth(~self.rows)


class Number:
    """The value of a variable, or of an expression, in each row."""

    def __init__(self, values: Any, name: str = "") -> None:
        self.values, self.name = np.asarray(values), name

    def _computed(self, other: Any, of: Callable[[Any, Any], Any]) -> Number:
        return Number(of(self.values, other.values if isinstance(other, Number) else other))

    def _compared(self, other: Any, of: Callable[[Any, Any], Any]) -> Truth:
        return Truth(of(self.values, other.values if isinstance(other, Number) else other))

    def __add__(self, other: Any) -> Number:
        return self._computed(other, operator.add)

    def __sub__(self, other: Any) -> Number:
        return self._computed(other, operator.sub)

    def __mul__(self, other: Any) -> Number:
        return self._computed(other, operator.mul)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Number:
        return Number(other - self.values)

    def __floordiv__(self, other: Any) -> Number:
        return self._computed(other, operator.floordiv)

    def __mod__(self, other: Any) -> Number:
        return self._computed(other, operator.mod)

    def __neg__(self) -> Number:
        return Number(-self.values)

    def __abs__(self) -> Number:
        return Number(abs(self.values))

    def __eq__(self, other: object) -> Any:
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, operator.ne)

    def __lt__(self, other: Any) -> Truth:
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> Truth:
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> Truth:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> Truth:
        return self._compared(other, operator.ge)

    def isin(self, values: Iterable[Any]) -> Truth:
        return reduce(Truth.__or__, [self == v for v in values], Truth(np.zeros(self.values.shape)))


class Meaning:
    """Stands for the module `semprola`: each constructor returns truth values of the rows of a table."""

    def __init__(self, columns: dict[str, Any], rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.TRUE, self.FALSE = Truth(np.ones(rows)), Truth(np.zeros(rows))
        self.rules: list[Truth] = []
        """Variables have exactly one value, whether or not anything says so."""
        self.constraints, self.logic = _Families(self), self

    def Bool(self, name: str) -> Truth:
        return Truth(self.columns[name])

    def And(self, *parts: Any) -> Truth:
        return reduce(Truth.__and__, self._all(parts), self.TRUE)

    def Or(self, *parts: Any) -> Truth:
        return reduce(Truth.__or__, self._all(parts), self.FALSE)

    def Xor(self, *parts: Any) -> Truth:
        return reduce(Truth.__xor__, self._all(parts), self.FALSE)

    def Not(self, part: Truth) -> Truth:
        return ~part

    def Implies(self, a: Truth, b: Truth) -> Truth:
        return a >> b

    def Iff(self, a: Truth, b: Truth) -> Truth:
        return Truth(a.rows == b.rows)

    def exactly(self, k: int, items: Any) -> Truth:
        return Truth(self._count(items) == k)

    def at_most(self, k: int, items: Any) -> Truth:
        return Truth(self._count(items) <= k)

    def at_least(self, k: int, items: Any) -> Truth:
        return Truth(self._count(items) >= k)

    def one_hot(self, items: Any) -> Truth:
        return self.exactly(1, items)

    def Categorical(self, name: str, values: Sequence[Any]) -> Number:
        columns = [self.columns.get(f"{name}={value}") for value in values]
        if any(column is None for column in columns):  # simplified away: then its rule is gone as well
            return Number(np.full(self.rows, values[0]), name)
        self.rules.append(Truth(sum(column.astype(int) for column in columns) == 1))
        return Number(np.asarray(values)[np.argmax(columns, axis=0)], name)

    def Integer(self, name: str, low: int, high: int) -> Number:
        return self.Categorical(name, range(low, high + 1))

    def parse(self, text: str, variables: Sequence[Number] = ()) -> Truth:
        """Text in which everything is in parentheses and counts are written as calls; or a comparison of numbers."""
        if variables:
            return eval(text, {variable.name: variable for variable in variables})
        lines = [_python(line) for line in text.split("\n")]
        scope = {"name": lambda name: {"true": self.TRUE, "false": self.FALSE}.get(name) or self.Bool(name)}
        counts = {f"_{name}": partial(self._counted, name) for name in _COUNTS}
        return self.And([eval(line, {**scope, **counts}) for line in lines])

    def from_dimacs(self, text: str) -> Truth:
        numbers = [list(map(int, line.split()))[:-1] for line in text.split("\n")[1:]]
        signed = [[self.Bool(str(n)) if n > 0 else ~self.Bool(str(-n)) for n in clause] for clause in numbers]
        return self.And([self.Or(clause) for clause in signed])

    def family(self, made: Any) -> Truth:
        return Truth(made.evaluate_columns(self.columns, self.rows))

    def _counted(self, name: str, k: int, *items: Truth) -> Any:
        return getattr(self, name)(k, items)

    def _all(self, parts: tuple[Any, ...]) -> list[Truth]:
        listed = list(parts[0]) if len(parts) == 1 and not isinstance(parts[0], Truth) else parts
        return [self.Bool(part) if isinstance(part, str) else part for part in listed]

    def _count(self, items: Any) -> Any:
        return sum((part.rows.astype(int) for part in self._all((list(items),))), np.zeros(self.rows, int))


class _Families:
    """Stands for `semprola.constraints`; what is not a family is spelled out."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning, self.Categorical = meaning, meaning.Categorical

    def __getattr__(self, name: str) -> Any:
        made = getattr(sp.constraints, name)
        return lambda *args, **options: self._meaning.family(made(*args, **options))

    def table(self, rows: Any, labels: Any = None, variables: Sequence[Number] = ()) -> Truth:
        if labels is not None:
            return self._meaning.family(sp.constraints.table(rows, labels=labels))
        each = [[v == x for v, x in zip(variables, row, strict=True)] for row in rows]
        return self._meaning.Or([self._meaning.And(parts) for parts in each])

    def cardinality(self, labels: Sequence[str], at_least: int = 0, at_most: Any = None, exactly: Any = None) -> Truth:
        low, high = (at_least, at_most) if exactly is None else (exactly, exactly)
        upper = self._meaning.TRUE if high is None else self._meaning.at_most(high, labels)
        return self._meaning.at_least(low, labels) & upper

    def one_hot(self, *groups: Sequence[str]) -> Truth:
        return self._meaning.And([self._meaning.exactly(1, group) for group in groups])

    def all_different(self, variables: Sequence[Number]) -> Truth:
        return self._meaning.And([a != b for a, b in itertools.combinations(variables, 2)])

    def minimum(self, *values: Any) -> Number:
        return reduce(lambda a, b: a._computed(b, np.minimum), values)

    def maximum(self, *values: Any) -> Number:
        return reduce(lambda a, b: a._computed(b, np.maximum), values)

    def element(self, items: Sequence[int], place: Number) -> Number:
        return Number(np.asarray(items)[np.clip(place.values, 0, len(items) - 1)])

    def number(self, digits: Sequence[Number], base: int = 10) -> Number:
        return reduce(lambda high, low: high * base + low, digits)


class Meant:
    """A constraint by its source: what the oracle asks in place of a formula.

    Args:
        source: Python text that makes the constraint.
        names: its variables, and any others.
    """

    def __init__(self, source: str, names: Sequence[str]) -> None:
        self.names = tuple(names)
        states = oracle.all_states(len(names)).numpy().astype(bool)
        columns = {name: states[:, i] for i, name in enumerate(names)}
        meaning = Meaning(columns, len(states))
        known = _Zoo(meaning)
        truth = eval(source, {"sp": meaning, **TOOLS, "zoo": known})
        self.table = torch.from_numpy(reduce(Truth.__and__, meaning.rules, truth).rows.copy())

    def evaluate(self, rows: Any, labels: Sequence[str]) -> Tensor:
        """Truth values [*] of rows [*, labels]."""
        place = [list(labels).index(name) for name in self.names]
        return self.table[oracle.state_index(torch.as_tensor(rows)[..., place])]


class _Zoo:
    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning

    def case(self, name: str) -> Any:
        formula = zoo.case(name).formula
        labels = list(self._meaning.columns)
        rows = np.stack([self._meaning.columns[label] for label in labels], 1)
        return type("Case", (), {"formula": Truth(formula.evaluate(rows, labels=labels))})


class _Machine:
    """A finite automaton in plain data."""

    def __init__(self, transitions: Any, initial_state: Any, final_states: Any) -> None:
        self.transitions, self.initial_state, self.final_states = transitions, initial_state, final_states


TOOLS: dict[str, Any] = {"nx": nx, "torch": torch, "Machine": _Machine, "zoo": zoo}
"""What the source of a constraint may use besides `sp`."""


def _python(text: str) -> str:
    """``(a -> !b)`` as a Python expression over ``name(...)``."""
    text = text.split("#")[0]
    made = []
    for token in _TOKEN.findall(text):
        if token in _COUNTS:
            made.append(f"_{token}")
        elif token.isdigit() and made and made[-1] == "(" and len(made) > 1 and made[-2][0] == "_":
            made.append(token)
        elif token[0] == "'" or token[0].isalnum() or token[0] == "_":
            made.append(f"name({token.strip(chr(39))!r})")
        else:
            made.append(_PYTHON.get(token, token))
    return " ".join(made)
