"""What a constraint says, rule by rule: operands of conjunctions, rules of variables, places in files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from semprola.errors import PropertyError
from semprola.logic.cnf import Cnf
from semprola.logic.connectives import And, Bool, one_hot
from semprola.logic.formula import Formula, Kind, Operand, as_formula, intern_node
from semprola.logic.leaf import Leaf
from semprola.logic.messages import brief


def conjuncts(formula: Formula) -> Iterator[Formula]:
    """The operands of a conjunction in order, including those of nested conjunctions and the clauses of files."""
    stack = [formula]
    while stack:
        node = stack.pop()
        if node.kind is Kind.AND:
            stack.extend(reversed(node.args))
        elif isinstance(node, Cnf):
            yield from node.clause_formulas()
        else:
            yield node


def literal_of(formula: Formula) -> tuple[str, bool] | None:
    """The name and the sign of an atom or a negated atom; None for any other formula."""
    if formula.kind is Kind.ATOM:
        return formula.name, True
    if formula.kind is Kind.NOT and formula.args[0].kind is Kind.ATOM:
        return formula.args[0].name, False
    return None


def literals_of(parts: Iterable[Formula]) -> dict[str, bool] | None:
    """The names and signs of formulas that are literals of distinct labels; None if they are not."""
    found: dict[str, bool] = {}
    for part in parts:
        literal = literal_of(part)
        if literal is None or literal[0] in found:
            return None
        found[literal[0]] = literal[1]
    return found


def stated(formula: Formula, families: bool = True) -> Formula:
    """The formula and the rule of each of its variables with several values, "exactly one value", over plain atoms.

    This is what a whole constraint says. Comparisons such as ``n >= 1`` do not contain the rule, because their
    negation would then have another meaning.
    """
    nodes = formula.nodes()
    groups = groups_of(nodes if families else (node for node in nodes if not isinstance(node, Leaf)))
    plain = without_groups(formula, groups) if groups else formula
    known = {plain, *(plain.args if plain.kind is Kind.AND else ())}
    return And(plain, *(rule for rule in map(one_hot, groups) if rule not in known))


def variables_of(formula: Formula) -> list[tuple[str, ...]]:
    """The variables with several values, as the labels of their values, also those inside families."""
    return groups_of(formula.nodes())


def has_variables(formula: Formula) -> bool:
    """Whether there are any; see :func:`variables_of`."""
    return bool(variables_of(formula))


def unstated(formula: Formula) -> Formula:
    """The formula over plain atoms, without the rules of its variables."""
    return without_groups(formula, groups_of(formula.nodes()))


def groups_of(nodes: Iterable[Formula]) -> list[tuple[str, ...]]:
    """The variables that nodes speak of; see :func:`variables_of`."""
    found = (node.whole if isinstance(node, Leaf) else (node._group,) for node in nodes)
    return list(dict.fromkeys(group for groups in found for group in groups if group))


def without_groups(formula: Formula, groups: Iterable[tuple[str, ...]]) -> Formula:
    """The formula in which the labels of these variables are plain atoms."""
    return replaced(formula.nodes(), {name: Bool(name) for group in groups for name in group}, leaves=False)


def replaced(nodes: list[Formula], values: Mapping[str, Formula], leaves: bool = True) -> Formula:
    """The last of the nodes with atoms replaced; leaves that mention these atoms are refused, or else kept."""
    done: dict[Formula, Formula] = {}
    for node in nodes:
        if node.kind is Kind.ATOM:
            done[node] = values.get(node.name, node)
        elif isinstance(node, Leaf):
            done[node] = _untouched(node, values) if leaves else node
        else:
            args = tuple([done[arg] for arg in node.args])
            done[node] = node if args == node.args else intern_node(node.kind, args, bounds=node._bounds)
    return done[nodes[-1]]


def _untouched(leaf: Leaf, values: Mapping[str, Formula]) -> Formula:
    if values:
        for name in leaf.labels:
            if name in values:
                raise PropertyError(
                    f"cannot substitute label {name!r} inside {brief(leaf)}, which is not built from atoms; "
                    "conjoin the condition with & or condition the compiled circuit instead"
                )
    return leaf


class PlacedFormula(Formula):
    """A formula with the places of its rules. It equals the same formula without them."""

    __slots__ = ("places", "plain")

    plain: Formula
    places: Mapping[Formula, str]

    def __and__(self, other: Operand) -> Formula:
        """The conjunction; it keeps the places."""
        operand = as_formula(other)
        return NotImplemented if operand is None else joined([self, operand])

    def __rand__(self, other: Operand) -> Formula:
        """The conjunction with a formula on the left; it keeps the places."""
        operand = as_formula(other)
        return NotImplemented if operand is None else joined([operand, self])

    def __eq__(self, other: object) -> bool:
        return self.plain == (other.plain if isinstance(other, PlacedFormula) else other)

    def __hash__(self) -> int:
        return hash(self.plain)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle without the places."""
        return self.plain.__reduce__()


class Place(str):
    """Where a rule was read, the words in which it was written there, and where it was read again."""

    text = ""
    again: tuple[str, ...] = ()


def placed(rule: Formula, place: str, text: str = "") -> Formula:
    """A rule that knows where it was read.

    Example:
        >>> from semprola.logic import parse
        >>> rule = placed(parse("cat -> animal"), "rules.txt:3")
        >>> located(rule, places_of(rule))
        'cat -> animal [rules.txt:3]'
    """
    whole = Place(place)
    whole.text = text
    return _with_places(rule, {**dict.fromkeys(conjuncts(rule), place), rule: whole})


def joined(rules: Sequence[Formula]) -> Formula:
    """The conjunction of rules, which keeps their places."""
    places: dict[Formula, str] = {}
    for rule in rules:
        for part, place in places_of(rule).items():
            places[part] = _read_again(places[part], place) if part in places else place
    return _with_places(And([plain(rule) for rule in rules]), places)


def _read_again(first: str, place: str) -> Place:
    found = Place(first)
    found.text, found.again = getattr(first, "text", ""), (*getattr(first, "again", ()), place)
    return found


def plain(rule: Formula) -> Formula:
    """The formula without places."""
    if not isinstance(rule, PlacedFormula):
        return rule
    return rule.plain.args[0] if _is_wrapped(rule.plain) else rule.plain


def stated_in_place(formula: Formula) -> Formula:
    """The formula with the rules of its variables, see :func:`semprola.logic.rewrite.stated`; it keeps the places."""
    made = stated(plain(formula))
    if made is plain(formula):
        return formula
    return _with_places(made, {unstated(rule): place for rule, place in places_of(formula).items()})


def places_of(formula: Formula) -> Mapping[Formula, str]:
    """The places of the rules of a formula, as far as it was read from a file."""
    return formula.places if isinstance(formula, PlacedFormula) else {}


def located(rule: Formula, places: Mapping[Formula, str], text: str | None = None) -> str:
    """The text of a rule, and the place where it was read."""
    text = str(rule) if text is None else text
    return f"{text} [{places[rule]}]" if places.get(rule) else text


def _with_places(formula: Formula, places: Mapping[Formula, str]) -> Formula:
    if not places or formula.kind in (Kind.TRUE, Kind.FALSE):
        return formula
    node = object.__new__(PlacedFormula)
    shape = formula
    if formula.kind is Kind.CUSTOM:  # a family is more than its kind and operands, so it becomes the only operand
        shape = intern_node(Kind.AND, (formula,))
        places = {**places, shape: places[formula]} if formula in places else places
    node._kind, node._args, node._name = shape._kind, shape._args, shape._name
    node._bounds, node._group, node._labels = shape._bounds, shape._group, None
    node.plain, node.places = shape, places
    return node


def _is_wrapped(formula: Formula) -> bool:
    return formula.kind is Kind.AND and len(formula.args) == 1
