"""The formula itself: an immutable, structurally shared node, its operators and its traversals.

Formulas are hash-consed: building the same thing twice gives the same object, so equality is identity and costs
nothing. No method recurses, so a chain of 10^5 connectives works as well as one conjunction of 10^5 operands.
"""

from __future__ import annotations

import enum
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast, overload
from weakref import WeakValueDictionary

import numpy as np

from semprola._notebook import shown


class Kind(enum.IntEnum):
    """What a node of a formula is."""

    TRUE = 0
    FALSE = 1
    ATOM = 2
    NOT = 3
    AND = 4
    OR = 5
    XOR = 6
    IMPLIES = 7
    IFF = 8
    CARDINALITY = 9
    CUSTOM = 10


ASSOCIATIVE = frozenset({Kind.AND, Kind.OR, Kind.XOR})
_WIDEST = 1024
# Bounds of counts are smaller: no list is that long, and there is no limit to how long their text could be. As the
# upper bound of a count, it says that there is none.
MAX_BOUND = 10**18


class Labels(tuple[str, ...]):
    """The names of the labels of a formula. Calling them, as in version 0.1, warns and returns them."""

    def __call__(self) -> Labels:
        """The old form of `formula.labels`, which goes with the next release."""
        warnings.warn("labels is a property now: leave out the parentheses", DeprecationWarning, stacklevel=2)
        return self


class Formula:
    """A propositional formula; made by ``Bool``, ``parse``, the operators ``~ & | ^ >>`` and their named forms.

    The structure is kept as written: nothing is simplified until ``simplify`` is called. ``==`` is structural
    equality, not logical equivalence: formulas with the same text are equal, however they were built.

    Example:
        >>> from semprola.logic import Bools
        >>> cat, dog, animal = Bools("cat dog animal")
        >>> rule = (cat >> animal) & (dog >> animal)
        >>> rule
        (cat -> animal) & (dog -> animal)
        >>> rule.labels
        ('cat', 'animal', 'dog')
        >>> rule.evaluate({"cat": 1, "dog": 0, "animal": 0})
        False
    """

    __slots__ = ("__weakref__", "_args", "_bounds", "_group", "_kind", "_labels", "_name")

    # Lets `np.True_ & formula` reach `__rand__` instead of making an array of objects.
    __array_ufunc__ = None

    _kind: Kind
    _args: tuple[Formula, ...]
    _name: str
    _bounds: tuple[int, int]
    _group: tuple[str, ...]
    _labels: Labels | None

    def __new__(cls, *args: object, **kwargs: object) -> Formula:
        """Refuse direct construction: nodes are shared, so they come from the constructors."""
        raise TypeError(
            "a Formula is made by Bool, Bools, parse, And, Or, Not, Xor, Implies, Iff or exactly, not directly"
        )

    @property
    def kind(self) -> Kind:
        """What this node is."""
        return self._kind

    @property
    def args(self) -> tuple[Formula, ...]:
        """The direct operands, in the order written."""
        return self._args

    @property
    def name(self) -> str:
        """The label of an atom."""
        if self._kind is not Kind.ATOM:
            raise AttributeError(f"only an atom has a name; this formula is of kind {self._kind.name}")
        return self._name

    @property
    def bounds(self) -> tuple[int, int]:
        """``(lo, hi)`` of a cardinality node: lo <= number of true operands <= hi."""
        if self._kind is not Kind.CARDINALITY:
            raise AttributeError(f"only a cardinality formula has bounds; this one is of kind {self._kind.name}")
        lo, hi = self._bounds
        return lo, (len(self._args) if hi == MAX_BOUND else hi)

    @property
    def is_at_least(self) -> bool:
        """Whether this is a cardinality node without an upper bound."""
        return self._kind is Kind.CARDINALITY and self._bounds[1] == MAX_BOUND

    @property
    def group(self) -> tuple[str, ...]:
        """The labels of which exactly one is on, for an atom that is a value of a variable; otherwise empty."""
        return self._group

    @property
    def size(self) -> int:
        """The number of distinct nodes."""
        return len(self.nodes())

    def nodes(self) -> list[Formula]:
        """Return the distinct nodes, every node after its operands, the formula itself last."""
        order: list[Formula] = []
        seen: set[Formula] = set()
        begun: list[Formula] = []
        # None means that all operands of the node begun last have been visited.
        pending: list[Formula | None] = [self]
        while pending:
            node = pending.pop()
            if node is None:
                order.append(begun.pop())
            elif node not in seen:
                seen.add(node)
                if node._args:
                    begun.append(node)
                    pending.append(None)
                    pending.extend(node._args[::-1])
                else:
                    order.append(node)
        return order

    @property
    def labels(self) -> Labels:
        """The names of the variables in order of first appearance, reading from left to right.

        A value of an ``Integer`` or ``Categorical`` brings the labels of all values of its variable.
        """
        if self._labels is None:
            self._labels = Labels(_labels_in_order(self))
        return self._labels

    @overload
    def evaluate(self, rows: Mapping[str, Any], labels: None = None) -> bool: ...
    @overload
    def evaluate(self, rows: Any, labels: Sequence[str] | None = None) -> Any: ...
    def evaluate(self, rows: Any, labels: Sequence[str] | None = None) -> Any:
        """Return whether an assignment, or each row of an array, satisfies the formula.

        Args:
            rows: a mapping from names to 0/1 or a data frame (names that the formula does not mention are ignored), or
                an array, tensor or nested list of 0/1 of shape ``[..., labels]``.
            labels: the names of the columns; by default the formula's own ``labels``.

        Returns:
            A bool for a mapping or a single row; otherwise a bool array of shape ``[...]``, or for a tensor a bool
            tensor on the same device.

        Raises:
            LabelError: a label has no value, or the number of columns is wrong.
            ValueError: a value is neither 0 nor 1.

        Example:
            >>> from semprola.logic import parse
            >>> parse("a -> b").evaluate([[0, 0], [1, 0], [1, 1]])
            array([ True, False,  True])
        """
        from semprola.logic.evaluate import evaluate

        return evaluate(self, rows, labels)

    def substitute(self, replacements: Mapping[str, Operand | int]) -> Formula:
        """Replace atoms by formulas or by truth values, all at once.

        Args:
            replacements: what replaces each name; names that the formula does not mention are ignored.

        Returns:
            The new formula, not simplified; it shares untouched parts with this one. If labels of an ``Integer`` or
            ``Categorical`` are replaced, its own rule is part of the result.

        Raises:
            PropertyError: a name belongs to a part that was not built from atoms (such as a DIMACS file).

        Example:
            >>> from semprola.logic import parse
            >>> parse("a & (a -> b)").substitute({"a": parse("b | c"), "b": True})
            (b | c) & (b | c -> true)
        """
        from semprola.logic.rewrite import substitute

        return substitute(self, replacements)

    def simplify(self) -> Formula:
        """Return an equivalent formula without constants, repeated operands, double negations and needless nesting.

        A variable that turns out not to matter disappears from ``labels``.

        Example:
            >>> from semprola.logic import parse
            >>> parse("(a & (b & true)) & ~~a | c & ~c").simplify()
            a & b
        """
        from semprola.logic.rewrite import simplify

        return simplify(self)

    def to_nnf(self) -> Formula:
        """Return an equivalent formula of & and | over atoms, cardinalities, custom leaves and their negations.

        Cardinality nodes stay (a negated one becomes one or two of them); only atoms and custom leaves are negated.
        The result has at most a few times as many distinct nodes.

        Example:
            >>> from semprola.logic import parse
            >>> parse("~(a -> b & c)").to_nnf()
            a & (~b | ~c)
        """
        from semprola.logic.rewrite import to_nnf

        return to_nnf(self)

    def to_sympy(self) -> Any:
        """Return the formula as a SymPy expression of the same structure; atoms become symbols of the same names.

        Raises:
            SemprolaError: SymPy is not installed (the extra ``sympy``).
            PropertyError: a part is a family, which SymPy cannot express.

        Example:
            >>> from semprola.logic import parse
            >>> parse("a & b -> c").to_sympy()
            Implies(a & b, c)
        """
        from semprola.logic.sympy_bridge import to_sympy

        return to_sympy(self)

    def __invert__(self) -> Formula:
        """Return the negation."""
        return intern_node(Kind.NOT, (self,))

    def __and__(self, other: Operand) -> Formula:
        """Return the conjunction."""
        return _binary(Kind.AND, self, other)

    def __rand__(self, other: Operand) -> Formula:
        """Return the conjunction."""
        return _binary(Kind.AND, other, self)

    def __or__(self, other: Operand) -> Formula:
        """Return the disjunction."""
        return _binary(Kind.OR, self, other)

    def __ror__(self, other: Operand) -> Formula:
        """Return the disjunction."""
        return _binary(Kind.OR, other, self)

    def __xor__(self, other: Operand) -> Formula:
        """Return the exclusive or."""
        return _binary(Kind.XOR, self, other)

    def __rxor__(self, other: Operand) -> Formula:
        """Return the exclusive or."""
        return _binary(Kind.XOR, other, self)

    def __rshift__(self, other: Operand) -> Formula:
        """Return the implication from this formula to the other."""
        return _binary(Kind.IMPLIES, self, other)

    def __rrshift__(self, other: Operand) -> Formula:
        """Return the implication from the other to this formula."""
        return _binary(Kind.IMPLIES, other, self)

    def __bool__(self) -> bool:
        """Refuse: ``and``, ``or``, ``not`` and ``if`` would silently drop part of a constraint."""
        raise TypeError(
            "a formula has no truth value of its own: combine with & | ~ instead of and/or/not, or evaluate it"
        )

    @shown
    def _repr_html_(self) -> str | None:
        from semprola.logic import printing

        return printing.html(self)

    def __repr__(self) -> str:
        """Return the formula as text that ``parse`` reads back, abbreviated when long."""
        from semprola.logic.printing import abbreviated_text

        return abbreviated_text(self)

    def __str__(self) -> str:
        """Return the formula as text that ``parse`` reads back, in full (up to a million tokens).

        The rules of its ``Integer`` and ``Categorical`` variables are spelled out at the end.
        """
        from semprola.logic.printing import full_text
        from semprola.logic.rules import stated

        return full_text(stated(self, families=False))

    def __copy__(self) -> Formula:
        """Return the formula itself: it never changes."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Formula:
        """Return the formula itself: it never changes."""
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle as a flat list of nodes, since pickling nested tuples would recurse."""
        nodes = self.nodes()
        position = {node: index for index, node in enumerate(nodes)}
        records: list[Any] = [
            node
            if node._kind is Kind.CUSTOM
            else (int(node._kind), [position[arg] for arg in node._args], node._name, node._bounds, node._group)
            for node in nodes
        ]
        return _from_records, (records,)


# What the operators accept: a formula or a truth value.
Operand: TypeAlias = Formula | bool | np.bool_


def intern_node(
    kind: Kind,
    args: tuple[Formula, ...] = (),
    name: str = "",
    bounds: tuple[int, int] = (0, 0),
    group: tuple[str, ...] = (),
) -> Formula:
    """Return the one node of this kind with these operands; create it if there is none yet.

    Args:
        kind: what the node is; the caller makes sure that the number of operands is right.
        group: for an atom that is a value of a variable, the labels of all its values.

    Returns:
        The shared node.
    """
    if kind in ASSOCIATIVE:
        args = _grouped(kind, args)
    key = (kind, args, name, bounds, group)
    with _lock:
        node = _interned.get(key)
        if node is None:
            node = object.__new__(Formula)
            node._kind = kind
            node._args = args
            node._name = name
            node._bounds = bounds
            node._group = group
            node._labels = None
            _interned[key] = node
        return node


def _grouped(kind: Kind, args: tuple[Formula, ...]) -> tuple[Formula, ...]:
    """The operands of an associative node, grouped in the same way however it was built.

    ``And(And(a, b), c)`` and ``And(a, b, c)`` are the same node. An operand on the left is merged as long as there are
    at most `_WIDEST` operands; more are grouped from the left. A chain of n connectives thus takes time linear in n.
    """
    first = args[0]
    if first._kind is kind and len(first._args) < _WIDEST:
        args = first._args + args[1:]
    if len(args) <= _WIDEST:
        return args
    group = intern_node(kind, args[:_WIDEST])
    place = _WIDEST
    while len(args) - place > _WIDEST - 1:
        group = intern_node(kind, (group, *args[place : place + _WIDEST - 1]))
        place += _WIDEST - 1
    return (group, *args[place:])


def as_formula(value: object) -> Formula | None:
    """Return a formula or truth value as a formula, and None for anything else."""
    if isinstance(value, Formula):
        return value
    if isinstance(value, bool | np.bool_):
        return TRUE if value else FALSE
    return None


_Key: TypeAlias = tuple[Kind, tuple[Formula, ...], str, tuple[int, int], tuple[str, ...]]
_interned: WeakValueDictionary[_Key, Formula] = WeakValueDictionary()
# Re-entrant, because a garbage collection inside the locked region may run a finaliser that builds a formula.
_lock = threading.RLock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    # The thread that held the lock does not exist in a forked child, which would wait for it forever.
    os.register_at_fork(after_in_child=_renew_lock)

TRUE = intern_node(Kind.TRUE)
FALSE = intern_node(Kind.FALSE)


def _binary(kind: Kind, left: object, right: object) -> Formula:
    first, second = as_formula(left), as_formula(right)
    if first is None or second is None:
        return cast(Formula, NotImplemented)
    return intern_node(kind, (first, second))


def _labels_in_order(formula: Formula) -> tuple[str, ...]:
    names: dict[str, None] = {}
    seen: set[Formula] = set()
    pending = [formula]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if node._kind is Kind.ATOM:
            names.update(dict.fromkeys(node._group or (node._name,)))
        elif node._kind is Kind.CUSTOM:
            names.update(dict.fromkeys(node.labels))
        else:
            pending.extend(reversed(node._args))
    return tuple(names)


def _from_records(records: list[Any]) -> Formula:
    nodes: list[Formula] = []
    for record in records:
        if isinstance(record, Formula):
            nodes.append(record)
        else:
            kind, args, name, bounds, group = record
            nodes.append(
                intern_node(Kind(kind), tuple([nodes[arg] for arg in args]), name, tuple(bounds), tuple(group))
            )
    return nodes[-1]
