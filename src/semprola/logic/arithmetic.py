"""Arithmetic inside the text of a formula: comparisons such as ``2*n + m <= 7``, and ``variable n: 0..9``.

The variables are declared by the caller, or in lines of their own. This file knows only that they can be computed with
and compared, and the functions that they bring along.
"""

from __future__ import annotations

import importlib
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from semprola.errors import LabelError
from semprola.logic.connectives import And
from semprola.logic.formula import Formula
from semprola.logic.messages import brief

SYMBOLS = r"<->|<=>|->|=>|<=|>=|==|!=|&&|\|\||//|[!~&|^(),<>+*%-]"
"""Operators in a text with numbers, longer ones first."""
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
_SUMS: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub}
_PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {"*": operator.mul, "//": operator.floordiv, "%": operator.mod}
_FUNCTIONS = ("abs", "min", "max", "element")
_DEEPEST = 100


class Token(Protocol):
    """A piece of the text."""

    @property
    def type(self) -> str: ...
    @property
    def text(self) -> str: ...


class Fail(Protocol):
    """Raises the error that a token is wrong, and says which was found unless `found` is false."""

    def __call__(self, message: str, token: Any, *, found: bool = True) -> NoReturn: ...


def declared(variables: Iterable[Any]) -> dict[str, Any]:
    """Variables by name."""
    found: dict[str, Any] = {}
    for variable in variables:
        name = getattr(variable, "name", None)
        if not isinstance(name, str) or not hasattr(variable, "values"):
            raise LabelError(f"parse: variables= must list integers and categoricals, not {brief(variable)}")
        if name in found:
            raise LabelError(f"parse: variables= lists {name!r} twice")
        found[name] = variable
    return found


class Comparisons:
    """Reads comparisons from a list of tokens."""

    def __init__(self, tokens: Sequence[Token], variables: Mapping[str, Any], fail: Fail) -> None:
        self.tokens, self.variables, self.fail = tokens, variables, fail
        self.index = 0
        self.depth = 0
        self._functions: Mapping[str, Callable[..., Any]] = next(iter(variables.values())).functions

    def begins(self, index: int) -> bool:
        """Whether the formula that begins at this token is a comparison of numbers."""
        token, after = self.tokens[index], self.tokens[min(index + 1, len(self.tokens) - 1)]
        if self._is(token, "("):
            end = self._closing(index)
            return end is not None and self._is(self.tokens[end + 1], *_COMPARE, *_SUMS, *_PRODUCTS, "in")
        if token.type in ("name", "quoted") and token.text in self.variables:
            return True
        if token.type == "name" and (token.text in _FUNCTIONS or token.text == "all_different"):
            return self._is(after, "(")
        is_number = token.type == "name" and token.text.isdigit()
        return self._is(token, "-") or (is_number and self._is(after, *_COMPARE, *_SUMS, *_PRODUCTS))

    def read(self, index: int) -> tuple[Formula, int]:
        """The comparison that begins at a token, and the token after it."""
        self.index = index
        first = self.tokens[index]
        if first.text == "all_different" and first.type == "name":
            self.index += 1
            return self._checked(first, self._functions["all_different"], self._arguments()), self.index
        left, parts = self._sum(), []
        while True:
            token = self._next()
            if self._is(token, "in"):
                parts.append(self._checked(token, left.isin, self._values(left)))
                break
            if not self._is(token, *_COMPARE):
                break
            right = self._value_of(left) if self._is_category(left) else self._sum()
            parts.append(self._checked(token, _COMPARE[token.text], left, right))
            left = right
        if not parts:
            self.fail("expected a comparison, such as n >= 1", token)
        if not self._is(token, "in"):
            self.index -= token.type != "end"
        return And(parts), self.index

    # expressions -----------------------------------------------------------------------------------------------------

    def _sum(self) -> Any:
        total = self._product()
        while self._is(token := self.tokens[self.index], *_SUMS):
            self.index += 1
            right = self._product()
            total = self._checked(token, _SUMS[token.text], total, right)
        return total

    def _product(self) -> Any:
        value = self._factor()
        while self._is(token := self.tokens[self.index], *_PRODUCTS):
            self.index += 1
            right = self._factor()
            value = self._checked(token, _PRODUCTS[token.text], value, right)
        return value

    def _factor(self) -> Any:
        token = self._next()
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"numbers in more than {_DEEPEST} parentheses", token)
        value = self._read_factor(token)
        self.depth -= 1
        return value

    def _read_factor(self, token: Token) -> Any:
        if self._is(token, "-"):
            return self._checked(token, operator.neg, self._factor())
        if self._is(token, "("):
            value = self._sum()
            self._expect(")")
            return value
        if token.type in ("name", "quoted") and token.text in self.variables:
            return self.variables[token.text]
        if token.type == "name" and token.text.isdigit() and len(token.text) < 1000:
            return int(token.text)
        if token.type == "name" and token.text in _FUNCTIONS and self._is(self.tokens[self.index], "("):
            return self._checked(token, self._functions[token.text], self._arguments())
        self.fail("expected a number or one of the declared variables", token)

    def _arguments(self) -> list[Any]:
        self._expect("(")
        values = [self._sum()]
        while self._is(self.tokens[self.index], ","):
            self.index += 1
            values.append(self._sum())
        self._expect(")")
        return values

    def _values(self, left: Any) -> list[Any]:
        """The values in parentheses after "in"."""
        self._expect("(")
        values = [self._value_of(left)]
        while self._is(self.tokens[self.index], ","):
            self.index += 1
            values.append(self._value_of(left))
        self._expect(")")
        return values

    def _value_of(self, left: Any) -> Any:
        """A constant that the left side is compared with, or another variable."""
        if not self._is_category(left):
            return self._sum()
        token = self._next()
        if token.type in ("name", "quoted"):
            known = {str(value): value for value in left.values}
            return known.get(token.text, self.variables.get(token.text, token.text))
        self.fail(f"expected a value of variable {left.name!r}", token)

    def _is_category(self, value: Any) -> bool:
        return hasattr(value, "values") and not all(isinstance(each, int) for each in value.values)

    # tokens ----------------------------------------------------------------------------------------------------------

    def _checked(self, token: Token, function: Callable[..., Any], *args: Any) -> Any:
        """The value of a function; its errors point to the token."""
        try:
            made = function(*args)
        except LabelError as error:
            reason = str(error)
        except TypeError:
            reason = f"{token.text!r} cannot be applied to these values"
        else:
            return made
        self.fail(reason, token, found=False)

    def _next(self) -> Token:
        token = self.tokens[self.index]
        self.index += token.type != "end"
        return token

    def _expect(self, symbol: str) -> None:
        token = self._next()
        if not self._is(token, symbol):
            self.fail(f"expected {symbol!r}", token)

    def _is(self, token: Token, *symbols: str) -> bool:
        return (token.type == "symbol" or (token.type == "name" and token.text == "in")) and token.text in symbols

    def _closing(self, index: int) -> int | None:
        """The token that closes the parenthesis at this one."""
        depth = 0
        for place in range(index, len(self.tokens) - 1):
            depth += self._is(self.tokens[place], "(") - self._is(self.tokens[place], ")")
            if not depth:
                return place
        return None


MAKERS: dict[str, Callable[..., Any]] = {}
"""Make an integer from its name and bounds, and a categorical from its name and values; `constraints` fills this in."""

EXAMPLE = "variable n: 0..9"
_NAME = r"\"[^\"\n]+\"|'[^'\n]+'|[^\s,:\"'#()&|!~<>=]+"
_DECLARATION = re.compile(
    rf"^[ \t]*variables?[ \t]+(?P<names>(?:{_NAME})(?:[ \t]*,[ \t]*(?:{_NAME}))*)[ \t]*:"
    r"(?P<values>[^\n#]*)(?:#[^\n]*)?$",
    re.MULTILINE,
)
_RANGE = re.compile(r"\s*(-?\d{1,18})\s*\.\.\s*(-?\d{1,18})\s*")


def read_declarations(text: str, error: Callable[[str, int, str], Exception]) -> tuple[str, list[Any]]:
    """The text without its declarations, whose places become blank, and the variables that they declare.

    A declaration is a line of its own: ``variable n, m: 0..9`` or ``variable colour: red, green, blue``.

    Args:
        error: makes the error that something is wrong at a position of the text.

    Example:
        >>> read_declarations("variable n: 0..2\\nn > 0 -> x", Exception)
        ('                \\nn > 0 -> x', [Integer('n', 0, 2)])
    """
    variables: list[Any] = []
    for found in _DECLARATION.finditer(text):
        names = [(name.group().strip("\"'"), name.start()) for name in re.finditer(_NAME, found["names"])]
        for name, place in names:
            at = found.start("names") + place
            if name in {variable.name for variable in variables}:
                raise error(text, at, f"variable {name!r} is declared twice")
            try:
                made = _made(name, found["values"])
            except ValueError as reason:
                raise error(text, at, str(reason)) from None
            if made is None:
                why = f"expected a range or values, as in {EXAMPLE} or variable colour: red, green"
                raise error(text, found.start("values"), why)
            variables.append(made)
    return _DECLARATION.sub(lambda match: " " * len(match.group()), text), variables


def _made(name: str, values: str) -> Any:
    """The variable; None if its values cannot be read."""
    if not MAKERS:
        importlib.import_module("semprola.constraints.variables")  # for those who use only this package
    bounds = _RANGE.fullmatch(values)
    if bounds:
        return MAKERS["integer"](name, int(bounds[1]), int(bounds[2]))
    listed = [value.strip().strip("\"'") for value in values.split(",")]
    if not all(listed) or (len(listed) == 1 and ".." in listed[0]):
        return None
    whole = [int(value) if re.fullmatch(r"-?\d{1,18}", value) else value for value in listed]
    return MAKERS["categorical"](name, whole)
