"""First-order rules over finite domains, written out as ordinary formulas."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

from semprola.errors import LabelError
from semprola.logic.connectives import And, Bool, Or
from semprola.logic.formula import Formula, Kind, as_formula
from semprola.logic.messages import brief

MOST_INSTANCES = 2_000_000
"""A rule with more instances than this is refused: no compiler could handle it."""

_OPEN = re.compile(r"\?(\w+)")


class Variable:
    """A variable of a rule, to be bound to the items of a domain by :func:`forall` or :func:`exists`.

    Example:
        >>> X, Y = Variable("X"), Variable("Y")
        >>> Predicate("friends")(X, Y)
        "friends(?X,?Y)"
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not re.fullmatch(r"\w+", name):
            raise LabelError(f"a variable of a rule needs a name of letters, digits and underscores, not {brief(name)}")
        self.name = name

    def __repr__(self) -> str:
        return f"?{self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variable) and self.name == other.name

    def __hash__(self) -> int:
        return hash(("variable", self.name))


class Predicate:
    """A predicate: applied to items, it returns the atom ``"name(item,item)"``.

    Args:
        name: what the atoms are called.
        arity: how many items it takes; by default any number.

    Example:
        >>> smokes = Predicate("smokes")
        >>> smokes("ann") | ~smokes("bob")
        "smokes(ann)" | ~"smokes(bob)"
    """

    def __init__(self, name: str, arity: int | None = None) -> None:
        if not isinstance(name, str) or not name or "?" in name:
            raise LabelError(f"a predicate needs a non-empty name without '?', not {brief(name)}")
        self.name, self.arity = name, arity

    def __call__(self, *items: Any) -> Formula:
        """Return the atom for these items."""
        if self.arity is not None and len(items) != self.arity:
            raise LabelError(f"predicate {self.name!r} takes {self.arity} items, got {len(items)}")
        return Bool(f"{self.name}({','.join(_text(item) for item in items)})")

    def __repr__(self) -> str:
        return f"Predicate({self.name!r})"


def forall(*args: Any, where: Callable[..., bool] | None = None) -> Formula:
    """Return the conjunction of a rule over all items of finite domains.

    Args:
        args: one or more domains (iterables) and a function that takes an item of each and returns a formula; or a
            mapping from each :class:`Variable` to its domain, and a formula over atoms of predicates.
        where: called with one item of each domain; returns whether this combination counts. By default all count.

    Raises:
        LabelError: the domains do not fit the rule, or a variable has no domain.

    Example:
        >>> smokes, friends = Predicate("smokes"), Predicate("friends")
        >>> people = ["ann", "bob"]
        >>> forall(people, people, lambda x, y: (smokes(x) & friends(x, y)) >> smokes(y), where=lambda x, y: x < y)
        "smokes(ann)" & "friends(ann,bob)" -> "smokes(bob)"
        >>> X, Y = Variable("X"), Variable("Y")
        >>> len(forall({X: people, Y: people}, (smokes(X) & friends(X, Y)) >> smokes(Y)).args)
        4
    """
    return And(_instances("forall", args, where))


def exists(*args: Any, where: Callable[..., bool] | None = None) -> Formula:
    """Return the disjunction of a rule over all items of finite domains; arguments as for :func:`forall`.

    Example:
        >>> exists(range(3), lambda i: Bool(f"x{i}"))
        x0 | x1 | x2
    """
    return Or(_instances("exists", args, where))


def _instances(caller: str, args: tuple[Any, ...], where: Callable[..., bool] | None) -> list[Formula]:
    if len(args) < 2:
        raise LabelError(f"{caller}: give at least one domain and a rule, such as {caller}(items, lambda item: …)")
    *domains, rule = args
    if isinstance(rule, Formula):
        return _bound(caller, domains, rule, where)
    if not callable(rule):
        raise LabelError(f"{caller}: the rule must be a function of the items or a formula, not {brief(rule)}")
    expected = _positional(rule)
    if expected is not None and expected != len(domains):
        raise LabelError(f"{caller}: the rule takes {expected} items, but the number of domains is {len(domains)}")
    made = []
    for items in _combinations(caller, domains, where):
        formula = as_formula(rule(*items))
        if formula is None:
            raise LabelError(f"{caller}: the rule must return a formula, but does not for {brief(items)}")
        made.append(formula)
    return made


def _bound(caller: str, domains: list[Any], rule: Formula, where: Callable[..., bool] | None) -> list[Formula]:
    if len(domains) != 1 or not isinstance(domains[0], Mapping):
        raise LabelError(f"{caller}: with a formula as the rule, give a mapping from its variables to their domains")
    names = [key.name if isinstance(key, Variable) else str(key) for key in domains[0]]
    open_atoms = [name for name in rule.labels if "?" in name]
    for atom in open_atoms:
        for name in _OPEN.findall(atom):
            if name not in names:
                raise LabelError(f"{caller}: variable {name!r} of {brief(atom)} has no domain")
    made = []
    for items in _combinations(caller, list(domains[0].values()), where):
        value = dict(zip(names, items, strict=True))
        made.append(rule.substitute({atom: Bool(_grounded(atom, value)) for atom in open_atoms}))
    return made


def _grounded(atom: str, value: Mapping[str, Any]) -> str:
    return _OPEN.sub(lambda match: _text(value[match[1]]), atom)


def _combinations(caller: str, domains: list[Any], where: Callable[..., bool] | None) -> Iterable[tuple[Any, ...]]:
    listed = []
    total = 1
    for domain in domains:
        if isinstance(domain, str | Formula) or not isinstance(domain, Iterable):
            raise LabelError(f"{caller}: a domain must be a list of items, not {brief(domain)}")
        listed.append(list(domain))
        total *= len(listed[-1])
    if total > MOST_INSTANCES:
        raise LabelError(
            f"{caller}: {total:,} instances are too many: quantify over fewer variables, or use where= in a loop"
        )
    return (items for items in product(*listed) if where is None or where(*items))


def _positional(rule: Callable[..., Any]) -> int | None:
    """How many items a function takes; None if that can vary."""
    try:
        parameters = inspect.signature(rule).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL or p.default is not p.empty for p in parameters):
        return None
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _text(item: Any) -> str:
    if isinstance(item, Variable):
        return repr(item)
    if isinstance(item, Formula):
        if item.kind is Kind.ATOM:
            return item.name
        raise LabelError(f"a predicate is applied to items, not to the formula {brief(item)}")
    text = ",".join(map(_text, item)) if isinstance(item, tuple) else str(item)
    if "?" in text and not any(isinstance(part, Variable) for part in (item if isinstance(item, tuple) else ())):
        raise LabelError(f"the text of an item must not contain '?': {brief(text)}")
    return text
