"""Rewriting a formula node by node: substitution, the rules of variables, negation normal form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from semprola.errors import PropertyError
from semprola.logic.connectives import And, Bool, Or, one_hot
from semprola.logic.formula import FALSE, MAX_BOUND, TRUE, Formula, Kind, Operand, as_formula, intern_node
from semprola.logic.leaf import Leaf
from semprola.logic.messages import brief


def substitute(formula: Formula, replacements: Mapping[str, Operand | int]) -> Formula:
    """Replace atoms by formulas or truth values, all at once; see ``Formula.substitute``."""
    if not isinstance(replacements, Mapping):
        raise TypeError(f"substitute: expected a mapping from names to formulas, got {brief(replacements)}")
    values = {_checked_name(name): _replacement(name, value) for name, value in replacements.items()}
    nodes = formula.nodes()
    touched = [group for group in _groups(nodes) if any(name in values for name in group)]
    if touched:
        formula = And(_without_groups(formula, touched), *map(one_hot, touched))
        nodes = formula.nodes()
    return _replaced(nodes, values)


def stated(formula: Formula, families: bool = True) -> Formula:
    """The formula and the rule of each of its variables with several values, "exactly one value", over plain atoms.

    This is what a whole constraint says. Comparisons such as ``n >= 1`` do not contain the rule, because their
    negation would then have another meaning.

    Args:
        formula: the formula.
        families: whether to add the rules of variables inside families, too.
    """
    nodes = formula.nodes()
    groups = _groups(nodes if families else (node for node in nodes if not isinstance(node, Leaf)))
    plain = _without_groups(formula, groups) if groups else formula
    known = {plain, *(plain.args if plain.kind is Kind.AND else ())}
    return And(plain, *(rule for rule in map(one_hot, groups) if rule not in known))


def variables_of(formula: Formula) -> list[tuple[str, ...]]:
    """The variables with several values, as the labels of their values, also those inside families."""
    return _groups(formula.nodes())


def has_variables(formula: Formula) -> bool:
    """Whether there are any; see :func:`variables_of`."""
    return bool(variables_of(formula))


def unstated(formula: Formula) -> Formula:
    """The formula over plain atoms, without the rules of its variables."""
    return _without_groups(formula, _groups(formula.nodes()))


def _groups(nodes: Iterable[Formula]) -> list[tuple[str, ...]]:
    found = (node.whole if isinstance(node, Leaf) else (node.group,) for node in nodes)
    return list(dict.fromkeys(group for groups in found for group in groups if group))


def _without_groups(formula: Formula, groups: Iterable[tuple[str, ...]]) -> Formula:
    return _replaced(formula.nodes(), {name: Bool(name) for group in groups for name in group}, leaves=False)


def _replaced(nodes: list[Formula], values: Mapping[str, Formula], leaves: bool = True) -> Formula:
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


def to_nnf(formula: Formula) -> Formula:
    """Push negations down to the leaves; see ``Formula.to_nnf``."""
    # Each node and its negation: xor and iff need both, and making both at once keeps the size linear.
    done: dict[Formula, tuple[Formula, Formula]] = {}
    for node in formula.nodes():
        pairs = [done[arg] for arg in node.args]
        done[node] = _nnf_pair(node, pairs)
    return done[formula][0]


_Pair = tuple[Formula, Formula]


def _nnf_pair(node: Formula, pairs: list[_Pair]) -> _Pair:
    kind = node.kind
    if kind is Kind.TRUE:
        return TRUE, FALSE
    if kind is Kind.FALSE:
        return FALSE, TRUE
    if kind is Kind.NOT:
        return pairs[0][1], pairs[0][0]
    if kind is Kind.AND:
        return And([yes for yes, _ in pairs]), Or([no for _, no in pairs])
    if kind is Kind.OR:
        return Or([yes for yes, _ in pairs]), And([no for _, no in pairs])
    if kind is Kind.IMPLIES:
        return pairs[0][1] | pairs[1][0], pairs[0][0] & pairs[1][1]
    if kind is Kind.XOR:
        return reduce(_xor_pair, pairs)
    if kind is Kind.IFF:
        differ, agree = _xor_pair(*pairs)
        return agree, differ
    if kind is Kind.CARDINALITY:
        return _count_pair(tuple([yes for yes, _ in pairs]), node._bounds)
    return node, ~node


def _xor_pair(left: _Pair, right: _Pair) -> _Pair:
    differ = (left[0] & right[1]) | (left[1] & right[0])
    agree = (left[0] & right[0]) | (left[1] & right[1])
    return differ, agree


def _count_pair(args: tuple[Formula, ...], bounds: tuple[int, int]) -> _Pair:
    lo, hi = bounds
    outside = []
    if lo > 0:
        outside.append(intern_node(Kind.CARDINALITY, args, bounds=(0, lo - 1)))
    if hi < len(args):
        outside.append(intern_node(Kind.CARDINALITY, args, bounds=(hi + 1, MAX_BOUND)))
    return intern_node(Kind.CARDINALITY, args, bounds=bounds), Or(outside)


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"substitute: the keys must be names of labels, got {brief(name)}")
    return name


def _replacement(name: str, value: object) -> Formula:
    formula = as_formula(value)
    if formula is not None:
        return formula
    if isinstance(value, int) and value in (0, 1):
        return TRUE if value else FALSE
    raise TypeError(f"substitute: label {name!r} needs a formula, a bool, 0 or 1, got {brief(value)}")


def _untouched(leaf: Leaf, values: Mapping[str, Formula]) -> Formula:
    if values:
        for name in leaf.labels:
            if name in values:
                raise PropertyError(
                    f"cannot substitute label {name!r} inside {brief(leaf)}, which is not built from atoms; "
                    "conjoin the condition with & or condition the compiled circuit instead"
                )
    return leaf
