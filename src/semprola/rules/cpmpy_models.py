"""CPMpy models as rules: Boolean and bounded integer variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from semprola.constraints.numbers import all_different, maximum, minimum
from semprola.constraints.variables import Categorical, Integer
from semprola.errors import FormatError, SemprolaError
from semprola.logic import FALSE, TRUE, And, Bool, Formula, Iff, Implies, Not, Or, Xor
from semprola.logic.messages import brief
from semprola.logic.rules import joined, placed
from semprola.rules.conditional_sums import Sum, compared
from semprola.rules.cpmpy_cases import all_cases

_CONNECTIVES: dict[str, Callable[..., Formula]] = {"and": And, "or": Or, "not": Not, "->": Implies}
_COMPARISONS = ("==", "!=", "<=", "<", ">=", ">")
_MOST_VALUES = 10_000


def from_cpmpy(model: Any) -> Formula:
    """The solutions of a CPMpy model as a formula (extra `cpmpy`).

    A Boolean variable is the label of its name. An integer variable is an `Integer`: exactly one of its labels, such as
    "x=3", is 1. Connectives, sums, comparisons, ``abs``, ``min``, ``max``, ``count`` and all_different become rules
    that compile well. Any other constraint, such as a product of variables, is tried on all values of its variables,
    if these have few combinations; what CPMpy says of each one counts.

    Args:
        model: a ``cpmpy.Model`` without an objective, a constraint, or a list of constraints.

    Returns:
        The formula. Messages about its rules name the place in ``model.constraints``, such as "constraints[2]".

    Raises:
        SemprolaError: CPMpy is not installed.
        FormatError: an objective, a variable with too many values, or a constraint that is not propositional; the
            message names it.
        TypeError: this is not a model.

    Example:
        >>> import cpmpy as cp
        >>> x, y, late = cp.intvar(0, 4, name="x"), cp.intvar(0, 4, name="y"), cp.boolvar(name="late")
        >>> rules = from_cpmpy(cp.Model(x + 2 * y <= 8, (x > 2).implies(late), cp.AllDifferent([x, y])))
        >>> rules.labels[:5], rules.labels[-1]
        (('x=0', 'x=1', 'x=2', 'x=3', 'x=4'), 'late')
        >>> import semprola as sp
        >>> sp.rules.model_count(rules)
        26
    """
    cpmpy = _library()
    if isinstance(model, cpmpy.Model):
        if model.has_objective():
            raise FormatError("from_cpmpy: an objective is not a rule: pass cpmpy.Model(model.constraints)")
        constraints = list(model.constraints)
    else:
        constraints = list(model) if isinstance(model, list | tuple) else [model]
    wrong = [each for each in constraints if not _is_constraint(cpmpy, each)]
    if wrong or not constraints:
        raise TypeError(f"from_cpmpy takes a cpmpy.Model with constraints, not {brief(wrong[0] if wrong else model)}")
    reader = _Reader(cpmpy)
    rules = []
    for number, constraint in enumerate(constraints):
        reader.place = place = f"constraints[{number}]"
        rules.append(placed(reader.rule(constraint), place, str(constraint)))
    silent = [variable for name, variable in reader.variables.items() if name not in reader.mentioned(rules)]
    return joined([*rules, *map(_mention, silent)])


class _Reader:
    """Translates expressions; `place` is what messages call the current constraint."""

    def __init__(self, cpmpy: Any) -> None:
        self.cpmpy = cpmpy
        self.place = ""
        self.variables: dict[str, Formula | Integer] = {}
        self._original: dict[str, Any] = {}

    def rule(self, constraint: Any) -> Formula:
        """A constraint, or a list of them."""
        for variable in self.inside(constraint):
            self.variable(variable)  # in order of appearance
        return self.formula(constraint)

    def inside(self, expr: Any) -> list[Any]:
        """The variables of an expression, each once; a negated one is not another variable."""
        found = self.cpmpy.transformations.get_variables.get_variables(expr)
        return list({v.name: v for v in (getattr(each, "_bv", each) for each in found)}.values())

    def mentioned(self, rules: Sequence[Formula]) -> set[str]:
        """The variables that rules mention."""
        labels = {label for rule in rules for label in rule.labels}
        return {name for name, v in self.variables.items() if labels & {*(v.labels)}}

    def formula(self, expr: Any) -> Formula:
        """An expression that is true or false."""
        if _is_list(expr):
            return And([self.formula(each) for each in expr])
        name = getattr(expr, "name", "boolval")
        if name == "boolval":
            return TRUE if expr else FALSE
        if self._is_variable(expr):
            negated = getattr(expr, "_bv", None)
            known = self.variable(expr if negated is None else negated)
            assert isinstance(known, Formula)
            return known if negated is None else ~known
        if name in _CONNECTIVES:
            return _CONNECTIVES[name](*map(self.formula, expr.args))
        if name in _COMPARISONS:
            return self._comparison(expr)
        if name == "xor":
            return Xor(*map(self.formula, expr.args))
        if name == "alldifferent" and all(self._is_variable(arg) and not arg.is_bool() for arg in expr.args):
            integers = [known for arg in expr.args if isinstance(known := self.variable(arg), Integer)]
            if len({known.name for known in integers}) == len(expr.args):
                return all_different(integers)
        parts = self._spelled(expr)
        return self._cases(expr) if parts is None else And([self.formula(part) for part in parts])

    def number(self, expr: Any) -> Sum | None:
        """An expression that is a number; None if it is not a sum of what this module knows."""
        if not hasattr(expr, "is_bool"):
            return Sum(rest=self._whole(expr))
        if expr.is_bool():
            return Sum(((self.formula(expr), 1),))
        if self._is_variable(expr):
            known = self.variable(expr)
            assert isinstance(known, Integer)
            return Sum(rest=known + 0)
        name = expr.name
        if name == "wsum":
            weights, args = expr.args
            return self._summed([(self._whole(w), arg) for w, arg in zip(weights, args, strict=True)])
        if name in ("sum", "sub", "-"):
            signs = {"sub": [1, -1], "-": [-1]}.get(name, [1] * len(expr.args))
            return self._summed(list(zip(signs, expr.args, strict=True)))
        if name == "mul":
            one, other = (self.number(arg) for arg in expr.args)
            return None if one is None or other is None else one.times(other)
        if name in ("abs", "min", "max", "div", "mod"):
            return self._function(name, expr.args)
        if name == "count":
            values, value = expr.args
            return self._summed([(1, each == value) for each in values])
        return None

    def variable(self, variable: Any) -> Formula | Integer:
        """A variable of the model, by its name."""
        name = str(variable.name)
        known = self._original.setdefault(name, variable)
        if known is not variable:
            raise FormatError(f"from_cpmpy: two variables have the name {name!r}: give each its own")
        if name not in self.variables:
            self.variables[name] = Bool(name) if variable.is_bool() else _integer(name, *variable.get_bounds())
        return self.variables[name]

    def _comparison(self, expr: Any) -> Formula:
        left, right = expr.args
        if expr.name in ("==", "!=") and all(_is_boolean(each) for each in (left, right)):
            same = Iff(self.formula(left), self.formula(right))
            return same if expr.name == "==" else ~same
        one, other = self.number(left), self.number(right)
        if one is None or other is None:
            return self._cases(expr)
        found = compared(one.plus(other.scaled(-1)), expr.name)
        return self._cases(expr) if found is None else found

    def _summed(self, parts: Sequence[tuple[int, Any]]) -> Sum | None:
        total: Sum | None = Sum()
        for factor, expr in parts:
            number = self.number(expr)
            total = None if total is None or number is None else total.plus(number.scaled(factor))
        return total

    def _function(self, name: str, args: Sequence[Any]) -> Sum | None:
        numbers = [self.number(arg) for arg in args]
        plain = [number.rest for number in numbers if number is not None and not number.parts]
        if len(plain) < len(numbers):
            return None
        if name == "abs":
            return Sum(rest=maximum(plain[0], -1 * plain[0]))
        if name == "min":
            return Sum(rest=minimum(plain))
        if name == "max":
            return Sum(rest=maximum(plain))
        left, divisor = plain[0], plain[1]  # CPMpy rounds towards zero; for numbers from 0 on, that is rounding down
        low = args[0].get_bounds()[0] if hasattr(args[0], "get_bounds") else int(args[0])
        if not isinstance(divisor, int) or divisor < 1 or low < 0:
            return None
        return Sum(rest=left // divisor if name == "div" else left % divisor)

    def _spelled(self, expr: Any) -> list[Any] | None:
        """A global constraint as simpler ones over the same variables; None if there is no such way."""
        if not hasattr(expr, "decompose"):
            return None
        parts, defining = expr.decompose()
        same = {v.name for v in self.inside(list(parts))} <= {v.name for v in self.inside(expr)}
        return list(parts) if same and not defining else None

    def _cases(self, expr: Any) -> Formula:
        return all_cases(expr, [(v, self.variable(v)) for v in self.inside(expr)], f"from_cpmpy: {self.place}")

    def _whole(self, value: Any) -> int:
        if isinstance(value, float) or int(value) != value:
            raise FormatError(f"from_cpmpy: {self.place}: {value} is not a whole number")
        return int(value)

    def _is_variable(self, expr: Any) -> bool:
        return isinstance(expr, self.cpmpy.expressions.variables._NumVarImpl)


def _library() -> Any:
    try:
        import cpmpy
        import cpmpy.transformations.get_variables
    except ImportError:
        raise SemprolaError("from_cpmpy needs CPMpy: pip install 'semprola[cpmpy]'") from None
    return cpmpy


def _integer(name: str, low: int, high: int) -> Integer:
    if high - low >= _MOST_VALUES:
        raise FormatError(
            f"from_cpmpy: variable {name!r} has {high - low + 1:,} values, one label each: give it narrower bounds"
        )
    return Integer(name, low, high)


def _mention(variable: Formula | Integer) -> Formula:
    """A rule that always holds, so that the labels of a variable are not lost."""
    return variable.isin(variable.values) if isinstance(variable, Categorical) else variable | ~variable


def _is_boolean(expr: Any) -> bool:
    return expr.is_bool() if hasattr(expr, "is_bool") else isinstance(expr, bool)


def _is_constraint(cpmpy: Any, each: Any) -> bool:
    if _is_list(each):
        return all(_is_constraint(cpmpy, part) for part in each)
    return isinstance(each, bool) or (isinstance(each, cpmpy.expressions.core.Expression) and each.is_bool())


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or (hasattr(value, "ndim") and value.ndim > 0)
