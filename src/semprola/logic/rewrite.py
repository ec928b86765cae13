"""Rewriting a formula node by node: substitution, negation normal form, simplification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from semprola.logic.connectives import And, Or, Xor, at_least, count, one_hot
from semprola.logic.formula import ASSOCIATIVE, FALSE, MAX_BOUND, TRUE, Formula, Kind, Operand, as_formula, intern_node
from semprola.logic.messages import brief
from semprola.logic.rules import groups_of, replaced, without_groups


def substitute(formula: Formula, replacements: Mapping[str, Operand | int]) -> Formula:
    """Replace atoms by formulas or truth values, all at once; see ``Formula.substitute``."""
    if not isinstance(replacements, Mapping):
        raise TypeError(f"substitute: expected a mapping from names to formulas, got {brief(replacements)}")
    values = {_checked_name(name): _replacement(name, value) for name, value in replacements.items()}
    nodes = formula.nodes()
    touched = [group for group in groups_of(nodes) if any(name in values for name in group)]
    if touched:
        formula = And(without_groups(formula, touched), *map(one_hot, touched))
        nodes = formula.nodes()
    return replaced(nodes, values)


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


# A round can uncover work for the next (a collapsed disjunction leaves a nested conjunction). Two or three rounds
# settle ordinary formulas; the cap keeps contrived ones linear.
_MAX_ROUNDS = 8
_CHECK_EVERY = 4096


def simplify(formula: Formula, check: Callable[[], None] | None = None) -> Formula:
    """Return a simpler, equivalent formula; see ``Formula.simplify``."""
    for _ in range(_MAX_ROUNDS):
        simpler = _simplify_once(formula, check)
        if simpler is formula:
            break
        formula = simpler
    return formula


def _simplify_once(formula: Formula, check: Callable[[], None] | None) -> Formula:
    nodes = formula.nodes()
    absorbed = _absorbed(nodes)
    done: dict[Formula, Formula] = {}
    for place, node in enumerate(nodes):
        if check is not None and place % _CHECK_EVERY == 0:
            check()
        if node not in absorbed:
            done[node] = _fold(node, [done[operand] for operand in _operands(node, absorbed)])
    return done[formula]


def _absorbed(nodes: list[Formula]) -> set[Formula]:
    """Return the nodes to merge into their only parent; flattening shared ones could square the size, so they stay."""
    uses = Counter(arg for node in nodes for arg in node.args)
    return {
        arg
        for node in nodes
        if node.kind in ASSOCIATIVE
        for arg in node.args
        if arg.kind is node.kind and uses[arg] == 1
    }


def _operands(node: Formula, absorbed: set[Formula]) -> Iterable[Formula]:
    if node.kind not in ASSOCIATIVE:
        return node.args
    flat: list[Formula] = []
    pending = list(reversed(node.args))
    while pending:
        arg = pending.pop()
        if arg in absorbed:
            pending.extend(reversed(arg.args))
        else:
            flat.append(arg)
    return flat


def _fold(node: Formula, args: list[Formula]) -> Formula:
    kind = node.kind
    if kind is Kind.NOT:
        return _negation(args[0])
    if kind is Kind.AND:
        return _fold_lattice(args, unit=TRUE, zero=FALSE)
    if kind is Kind.OR:
        return _fold_lattice(args, unit=FALSE, zero=TRUE)
    if kind is Kind.XOR:
        return _fold_xor(args, negated=False)
    if kind is Kind.IMPLIES:
        return _fold_implies(*args)
    if kind is Kind.IFF:
        return _fold_iff(*args)
    if kind is Kind.CARDINALITY:
        return _fold_count(args, *node.bounds)
    return node


def _negation(formula: Formula) -> Formula:
    if formula is TRUE:
        return FALSE
    if formula is FALSE:
        return TRUE
    return formula.args[0] if formula.kind is Kind.NOT else ~formula


def _fold_lattice(args: Iterable[Formula], unit: Formula, zero: Formula) -> Formula:
    kept: dict[Formula, None] = {}
    denied: set[Formula] = set()
    for arg in args:
        if arg is unit:
            continue
        if arg is zero or arg in denied or (arg.kind is Kind.NOT and arg.args[0] in kept):
            return zero
        kept[arg] = None
        if arg.kind is Kind.NOT:
            denied.add(arg.args[0])
    kind = Kind.AND if unit is TRUE else Kind.OR
    # in a & b & ~(a & b), the operands of what is denied are among the others
    if any(whole.kind is kind and all(part in kept for part in whole.args) for whole in denied):
        return zero
    return And(kept) if unit is TRUE else Or(kept)


def _fold_xor(args: Iterable[Formula], negated: bool) -> Formula:
    kept: dict[Formula, None] = {}
    for arg in args:
        if arg is TRUE or arg.kind is Kind.NOT:
            negated = not negated
        operand = arg.args[0] if arg.kind is Kind.NOT else arg
        if operand is TRUE or operand is FALSE:
            continue
        if operand in kept:
            del kept[operand]
        else:
            kept[operand] = None
    parity = Xor(kept)
    return _negation(parity) if negated else parity


def _fold_implies(premise: Formula, conclusion: Formula) -> Formula:
    if premise is FALSE or conclusion is TRUE or premise == conclusion:
        return TRUE
    if premise is TRUE or _are_opposite(premise, conclusion):
        return conclusion
    if conclusion is FALSE:
        return _negation(premise)
    return premise >> conclusion


def _fold_iff(left: Formula, right: Formula) -> Formula:
    if left == right:
        return TRUE
    if _are_opposite(left, right):
        return FALSE
    for constant, other in ((left, right), (right, left)):
        if constant is TRUE:
            return other
        if constant is FALSE:
            return _negation(other)
    return intern_node(Kind.IFF, (left, right))


def _are_opposite(left: Formula, right: Formula) -> bool:
    # Both are simplified, so `not not x` and the negation of a constant do not occur.
    if left is TRUE or left is FALSE:
        return right is (FALSE if left is TRUE else TRUE)
    return (left.kind is Kind.NOT and left.args[0] == right) or (right.kind is Kind.NOT and right.args[0] == left)


def _fold_count(args: list[Formula], lo: int, hi: int) -> Formula:
    open_args, certain = _drop_settled(args)
    lo, hi = max(lo - certain, 0), min(hi - certain, len(open_args))
    if lo > hi:
        return FALSE
    if lo == 0 and hi == len(open_args):
        return TRUE
    if lo == len(open_args):
        return _fold_lattice(open_args, unit=TRUE, zero=FALSE)
    if hi == 0:
        return _fold_lattice([_negation(arg) for arg in open_args], unit=TRUE, zero=FALSE)
    if lo == 1 and hi == len(open_args):
        return _fold_lattice(open_args, unit=FALSE, zero=TRUE)
    if lo == 0 and hi == len(open_args) - 1:
        return _fold_lattice([_negation(arg) for arg in open_args], unit=FALSE, zero=TRUE)
    return at_least(lo, open_args) if hi == len(open_args) else count(lo, hi, open_args)


def _drop_settled(args: list[Formula]) -> tuple[list[Formula], int]:
    """Remove constants and pairs x, ~x; return what remains and how many of the removed are true."""
    certain = 0
    positions: dict[Formula, list[int]] = {}
    kept: list[Formula | None] = []
    for arg in args:
        if arg is TRUE:
            certain += 1
        if arg is TRUE or arg is FALSE:
            continue
        opposite = positions.get(_negation(arg))
        if opposite:
            kept[opposite.pop()] = None
            certain += 1
        else:
            positions.setdefault(arg, []).append(len(kept))
            kept.append(arg)
    return [arg for arg in kept if arg is not None], certain
