"""Constructors: atoms, connectives and counting constraints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from semprola.errors import LabelError
from semprola.logic.formula import FALSE, MAX_BOUND, TRUE, Formula, Kind, Operand, as_formula, intern_node
from semprola.logic.messages import brief

# What a counting constraint counts; a string is the name of an atom.
Counted: TypeAlias = Operand | str


def Bool(name: str) -> Formula:
    """Return the atom with this name; the same name is the same variable everywhere.

    Args:
        name: any non-empty text, such as ``"cat"`` or ``"01/01/03"``.

    Raises:
        LabelError: the name is empty or not a string.

    Example:
        >>> Bool("cat") is Bool("cat")
        True
    """
    if not isinstance(name, str):
        raise LabelError(f"a label must be a string, got {brief(name)}")
    if not name:
        raise LabelError("a label needs at least one character, got an empty string")
    return intern_node(Kind.ATOM, name=str(name))


def Bools(names: str | Iterable[str]) -> tuple[Formula, ...]:
    """Return several atoms at once.

    Args:
        names: one string of names separated by spaces or commas, or an iterable of names, used as they are.

    Example:
        >>> Bools("cat dog")
        (cat, dog)
        >>> Bools(["01/01", "01/02"])
        ("01/01", "01/02")
    """
    parts: Iterable[str] = [part for part in re.split(r"[\s,]+", names) if part] if isinstance(names, str) else names
    return tuple([Bool(name) for name in parts])


def And(*args: Operand | Iterable[Operand]) -> Formula:
    """Return the conjunction of all arguments, or of the items of one iterable; ``true`` if there are none.

    Example:
        >>> And(Bool(f"x{i}") for i in range(3))
        x0 & x1 & x2
    """
    return _nary(Kind.AND, "And", args, TRUE)


def Or(*args: Operand | Iterable[Operand]) -> Formula:
    """Return the disjunction of all arguments, or of the items of one iterable; ``false`` if there are none.

    Example:
        >>> Or(Bool("a"), Bool("b"))
        a | b
    """
    return _nary(Kind.OR, "Or", args, FALSE)


def Xor(*args: Operand | Iterable[Operand]) -> Formula:
    """Return the parity of all arguments, or of the items of one iterable: true if an odd number of them are true.

    Example:
        >>> Xor(*Bools("a b c")).evaluate({"a": 1, "b": 1, "c": 1})
        True
    """
    return _nary(Kind.XOR, "Xor", args, FALSE)


def Not(arg: Operand) -> Formula:
    """Return the negation.

    Example:
        >>> Not(Bool("a"))
        ~a
    """
    return intern_node(Kind.NOT, (_operand("Not", arg),))


def Implies(premise: Operand, conclusion: Operand) -> Formula:
    """Return "if premise then conclusion".

    Example:
        >>> Implies(Bool("cat"), Bool("animal"))
        cat -> animal
    """
    return intern_node(Kind.IMPLIES, (_operand("Implies", premise), _operand("Implies", conclusion)))


def Iff(left: Operand, right: Operand) -> Formula:
    """Return "left exactly when right".

    Example:
        >>> Iff(Bool("a"), ~Bool("b"))
        a <-> ~b
    """
    return intern_node(Kind.IFF, (_operand("Iff", left), _operand("Iff", right)))


def exactly(k: int, xs: Iterable[Counted]) -> Formula:
    """Return "exactly k of these are true", as one node.

    Args:
        k: how many; a k above the number of items is legal but unsatisfiable.
        xs: formulas, or names of atoms; an item that is listed twice counts twice.

    Raises:
        ValueError: k is not an integer of at least 0.

    Example:
        >>> exactly(2, ["a", "b", "c"])
        exactly(2, a, b, c)
    """
    bound = _bound("exactly", k)
    return intern_node(Kind.CARDINALITY, _counted("exactly", xs), bounds=(bound, bound))


def at_most(k: int, xs: Iterable[Counted]) -> Formula:
    """Return "at most k of these are true"; arguments as for ``exactly``.

    Example:
        >>> at_most(1, Bools("a b c")).evaluate({"a": 0, "b": 1, "c": 0})
        True
    """
    return intern_node(Kind.CARDINALITY, _counted("at_most", xs), bounds=(0, _bound("at_most", k)))


def at_least(k: int, xs: Iterable[Counted]) -> Formula:
    """Return "at least k of these are true"; arguments as for ``exactly``.

    Example:
        >>> at_least(2, Bools("a b c")).evaluate({"a": 0, "b": 1, "c": 0})
        False
    """
    return intern_node(Kind.CARDINALITY, _counted("at_least", xs), bounds=(_bound("at_least", k), MAX_BOUND))


def count(lo: int, hi: int, xs: Iterable[Counted]) -> Formula:
    """Return "at least lo and at most hi of these are true"; arguments as for ``exactly``.

    Raises:
        ValueError: a bound is not an integer of at least 0, or lo is greater than hi.

    Example:
        >>> count(1, 2, ["a", "b", "c"])
        count(1, 2, a, b, c)
    """
    low, high = _bound("count", lo), _bound("count", hi)
    if low > high:
        raise ValueError(f"count: the lower bound {low} is greater than the upper bound {high}")
    return intern_node(Kind.CARDINALITY, _counted("count", xs), bounds=(low, high))


def one_hot(xs: Iterable[Counted]) -> Formula:
    """Return "exactly one of these is true".

    Example:
        >>> one_hot(["red", "green", "blue"])
        exactly(1, red, green, blue)
    """
    return intern_node(Kind.CARDINALITY, _counted("one_hot", xs), bounds=(1, 1))


def _nary(kind: Kind, caller: str, args: tuple[Operand | Iterable[Operand], ...], empty: Formula) -> Formula:
    items: Iterable[object] = args
    if len(args) == 1 and as_formula(args[0]) is None:
        if isinstance(args[0], str) or not isinstance(args[0], Iterable):
            raise TypeError(_not_a_formula(caller, args[0]))
        items = args[0]
    operands = tuple([_operand(caller, item) for item in items])
    if len(operands) < 2:
        return operands[0] if operands else empty
    return intern_node(kind, operands)


def _operand(caller: str, value: object) -> Formula:
    formula = as_formula(value)
    if formula is None:
        raise TypeError(_not_a_formula(caller, value))
    return formula


def _counted(caller: str, xs: Iterable[Counted]) -> tuple[Formula, ...]:
    if isinstance(xs, str | Formula) or not isinstance(xs, Iterable):
        raise TypeError(f"{caller}: expected a list of formulas or names, got {brief(xs)}")
    return tuple([Bool(x) if isinstance(x, str) else _operand(caller, x) for x in xs])


def _bound(caller: str, k: object) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k < MAX_BOUND:
        raise ValueError(f"{caller}: the number must be an integer of at least 0 and below 10^18, got {brief(k)}")
    return int(k)


def _not_a_formula(caller: str, value: object) -> str:
    hint = f"; write Bool({brief(value)}) for a variable" if isinstance(value, str) else ""
    return f"{caller}: expected a formula or a bool, got {brief(value)}{hint}"
