"""Formulas from SymPy expressions and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from semprola.errors import FormatError, PropertyError, SemprolaError
from semprola.logic.cnf import Cnf
from semprola.logic.connectives import And, Bool, Iff, Implies, Not, Or, Xor
from semprola.logic.formula import FALSE, TRUE, Formula, Kind
from semprola.logic.messages import brief
from semprola.logic.rules import stated


def from_sympy(expression: Any) -> Formula:
    """Return a SymPy Boolean expression as a formula; its symbols become atoms of the same names.

    Args:
        expression: built from symbols, true, false, And, Or, Not, Xor, Implies, Equivalent, ITE, Nand, Nor.

    Raises:
        SemprolaError: SymPy is not installed.
        FormatError: the expression contains something else, such as an inequality.

    Example:
        >>> import sympy
        >>> a, b = sympy.symbols("a b")
        >>> from_sympy(~a | (a >> b))
        ~a | (a -> b)
    """
    sympy = _library()
    if isinstance(expression, bool):
        return TRUE if expression else FALSE
    made: Formula = _converted(
        expression,
        lambda node: () if getattr(node, "is_Symbol", False) else tuple(getattr(node, "args", ())),
        lambda node, parts: _formula(sympy, node, parts),
    )
    return made


def to_sympy(formula: Formula) -> Any:
    """Return a formula as a SymPy expression; see ``Formula.to_sympy``."""
    sympy = _library()
    try:
        return _converted(
            stated(formula),
            lambda node: (node.to_formula(),) if isinstance(node, Cnf) else node.args,
            lambda node, parts: _expression(sympy, node, parts),
        )
    except RecursionError:
        raise SemprolaError("the formula is nested too deeply for SymPy, which recurses") from None


def _converted(root: Any, parts_of: Callable[[Any], Sequence[Any]], convert: Callable[[Any, list[Any]], Any]) -> Any:
    """The root of a graph, converted from the leaves up without recursion."""
    done: dict[Any, Any] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        parts = parts_of(node)
        missing = [part for part in parts if part not in done]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if node not in done:
            done[node] = convert(node, [done[part] for part in parts])
    return done[root]


def _formula(sympy: Any, node: Any, parts: list[Formula]) -> Formula:
    logic = sympy.logic.boolalg
    if getattr(node, "is_Symbol", False):
        return Bool(str(node.name))
    if node is sympy.true or node is sympy.false:
        return TRUE if node is sympy.true else FALSE
    if isinstance(node, logic.ITE):
        test, yes, no = parts
        return (test & yes) | (~test & no)
    if isinstance(node, logic.Equivalent):
        return And([Iff(left, right) for left, right in pairwise(parts)]) if parts else TRUE
    plain: dict[Any, Callable[..., Formula]] = {
        logic.And: And,
        logic.Or: Or,
        logic.Xor: Xor,
        logic.Not: Not,
        logic.Implies: Implies,
    }
    for kind, make in plain.items():
        if isinstance(node, kind):
            return make(*parts)
    raise FormatError(
        f"from_sympy: {brief(str(node))} is neither a Boolean connective nor a symbol; use And, Or, Not, Xor, Implies, "
        "Equivalent and ITE over symbols"
    )


def _expression(sympy: Any, node: Formula, parts: list[Any]) -> Any:
    kind = node.kind
    if kind is Kind.ATOM:
        return sympy.Symbol(node.name)
    if kind in (Kind.TRUE, Kind.FALSE):
        return sympy.true if kind is Kind.TRUE else sympy.false
    if isinstance(node, Cnf):
        return parts[0]
    if kind is Kind.CUSTOM:
        raise PropertyError(f"to_sympy: {brief(node)} is not built from connectives, so SymPy cannot express it")
    if kind is Kind.CARDINALITY:
        return _count(sympy, parts, *node.bounds)
    # by default SymPy sorts and simplifies what it builds, which soon takes too long: keep the structure instead
    makers = {
        Kind.NOT: sympy.Not,
        Kind.AND: sympy.And,
        Kind.OR: sympy.Or,
        Kind.XOR: sympy.Xor,
        Kind.IMPLIES: sympy.Implies,
        Kind.IFF: sympy.Equivalent,
    }
    return makers[kind](*parts, evaluate=False)


def _count(sympy: Any, parts: list[Any], lo: int, hi: int) -> Any:
    """Write "lo to hi of the parts hold" as nested ITEs, one per part and number of true parts before it."""
    states = [sympy.true if lo <= k <= hi else sympy.false for k in range(len(parts) + 1)]
    for part in reversed(parts):
        states = [
            same if same == more else sympy.ITE(part, more, same, evaluate=False) for same, more in pairwise(states)
        ]
    return states[0]


def _library() -> Any:
    try:
        import sympy
    except ImportError:
        raise SemprolaError("SymPy is not installed: pip install 'semprola[sympy]'") from None
    return sympy
