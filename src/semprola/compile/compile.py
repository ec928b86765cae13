"""`compile`: the one way from a constraint to a circuit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from semprola.circuit import Circuit
from semprola.compile.budget import Budget, Progress
from semprola.compile.join import join_circuits
from semprola.compile.sdd import compile_sdd, leaf_circuit
from semprola.errors import LabelError, UnsatisfiableError
from semprola.logic import Cnf, Formula, Kind, Leaf, parse

Backend = Callable[[Sequence[Sequence[Formula]], Budget], Circuit]

_BACKENDS: dict[str, Backend] = {"sdd": compile_sdd}
"""A back end takes groups of conjuncts that share no variable and gives a circuit over their variables."""
_REMEMBERED_CIRCUITS, _REMEMBERED_NODES = 128, 5_000_000


def compile(
    constraint: Formula | str | Circuit,
    labels: Iterable[str] | None = None,
    given: Iterable[str] = (),
    backend: str = "auto",
    timeout: float | None = None,
    max_nodes: int | None = None,
    memory: int | str | None = None,
    cache: bool = True,
    progress: bool | Callable[[Progress], None] | None = None,
) -> Circuit:
    """Compile a constraint to a circuit that can be counted, enumerated and put at the end of a network.

    Args:
        constraint: a formula, its text, a family of ``semprola.constraints``, or a circuit (which is not compiled
            again, only put under other labels).
        labels: names of the output variables, in the column order of y; by default all variables of the constraint
            that are not given, in order of first appearance. Labels that it does not mention are free.
        given: names of the input variables x; by default those that the families in the constraint, or the circuit,
            declare as inputs.
        backend: "auto" or the name of a back end ("sdd": PySDD in a process of its own).
        timeout: seconds that it may take.
        max_nodes: nodes that the circuit, and the compiler at any one time, may have.
        memory: bytes that the compiler may use, or a text such as "2GB".
        cache: whether a circuit compiled before for the same arguments may be returned.
        progress: True for a line on the terminal when it takes more than a second, or a function that is given a
            :class:`Progress` several times a second.

    Returns:
        The circuit; ``circuit.info`` says which back end made it, why, and in how many seconds.

    Raises:
        LabelError: a variable is in neither labels nor given, in both, or listed twice.
        UnsatisfiableError: the constraint has no model.
        CompilationBudgetError: time, nodes or memory ran out.

    Example:
        >>> circuit = compile("(cat -> animal) & (dog -> animal)")
        >>> circuit.labels
        ('cat', 'animal', 'dog')
        >>> circuit.model_count()
        5
    """
    budget = Budget(timeout, max_nodes, memory, progress)
    if isinstance(constraint, str):
        constraint = parse(constraint)
    if not isinstance(constraint, Formula | Circuit):
        raise TypeError(f"a constraint is a formula, its text or a circuit, not {type(constraint).__name__}")
    if backend != "auto" and backend not in _BACKENDS:
        known = ", ".join(repr(name) for name in ("auto", *_BACKENDS))
        raise ValueError(f"unknown backend {backend!r}: choose one of {known}")
    names = _resolve(constraint, labels, given)
    key = (constraint, *names, backend)
    circuit = _memory.find(key) if cache else None
    try:
        if circuit is None:
            circuit = _compile(constraint, *names, backend, budget)
            if cache:
                _memory.keep(key, circuit)
        budget.check_result(circuit.num_nodes)
    finally:
        budget.close()
    return circuit


def _compile(
    constraint: Formula | Circuit, labels: tuple[str, ...], given: tuple[str, ...], backend: str, budget: Budget
) -> Circuit:
    if isinstance(constraint, Circuit):
        return join_circuits([constraint], {}, labels, given, constraint.info)
    budget.check("simplifying")
    work = _split(_conjuncts(constraint.simplify()), budget)
    parts = list(work.circuits)
    used, reason = "direct", "a family with its own construction" if parts else "literals only"
    if work.components:
        used = "sdd" if backend == "auto" else backend
        reason = "the only general back end" if backend == "auto" else "chosen by the caller"
        parts.append(_BACKENDS[used](work.components, budget))
        if len(parts) > 1:
            reason += f"; {len(parts) - 1} independent parts are families with their own construction"
    circuit = join_circuits(parts, work.facts, labels, given)
    info = {"backend": used, "reason": reason, "seconds": budget.seconds, "nodes": circuit.num_nodes}
    circuit.info = info
    return circuit


# what is a column and what is an input ------------------------------------------------------------------------------


def _resolve(
    constraint: Formula | Circuit, labels: Iterable[str] | None, given: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels and given variables, checked against each other and against the constraint."""
    inputs = _names(given, "given")
    mentioned = constraint.variables if isinstance(constraint, Circuit) else constraint.labels()
    columns = None if labels is None else _names(labels, "labels")
    if not inputs:
        outputs = set(columns or ())
        inputs = tuple(name for name in _own_inputs(constraint) if name not in outputs)
    if columns is None:
        hidden = set(inputs)
        columns = tuple(name for name in mentioned if name not in hidden)
    both = set(columns) & set(inputs)
    if both:
        raise LabelError(f"{min(both)!r} is both a label and given: list it in one of labels= and given=")
    listed = {*columns, *inputs}
    missing = [name for name in mentioned if name not in listed]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise LabelError(
            f"the constraint speaks of {missing[0]!r}{more}, which is not listed: add it to labels= (an output) or "
            "given= (an input)"
        )
    return columns, inputs


def _own_inputs(constraint: Formula | Circuit) -> Iterable[str]:
    """What a circuit, or the families in a formula, take for inputs unless the caller says otherwise."""
    if isinstance(constraint, Circuit):
        return constraint.given
    return dict.fromkeys(name for node in constraint.nodes() if isinstance(node, Leaf) for name in node.given)


def _names(names: Iterable[Any], what: str) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise LabelError(f"{what} must be a list of names, not {names!r}")
    listed = tuple(names)
    seen: set[str] = set()
    for name in listed:
        if not isinstance(name, str):
            raise LabelError(f"{what} must be strings, not {type(name).__name__}: {name!r}")
        if name in seen:
            raise LabelError(f"{what} lists {name!r} twice")
        seen.add(name)
    return listed


# what can be compiled apart -----------------------------------------------------------------------------------------


@dataclass
class _Work:
    """A conjunction taken apart: nothing in one field shares a variable with anything else."""

    facts: dict[str, bool] = field(default_factory=dict)
    circuits: list[Circuit] = field(default_factory=list)
    components: list[list[Formula]] = field(default_factory=list)


def _conjuncts(formula: Formula) -> list[Formula]:
    """Formulas whose conjunction is the formula: conjunctions, negated disjunctions and clause lists taken apart."""
    found: dict[Formula, None] = {}
    seen: set[tuple[Formula, bool]] = set()
    stack = [(formula, True)]
    while stack:
        item = stack.pop()
        if item in seen:
            continue
        seen.add(item)
        node, positive = item
        if node.kind is Kind.NOT:
            stack.append((node.args[0], not positive))
        elif node.kind is (Kind.AND if positive else Kind.OR):
            stack.extend((arg, positive) for arg in reversed(node.args))
        elif node.kind is Kind.IMPLIES and not positive:
            stack.extend([(node.args[1], False), (node.args[0], True)])
        elif isinstance(node, Cnf) and positive:
            stack.append((node.to_formula(), True))
        elif node.kind is (Kind.TRUE if positive else Kind.FALSE):
            continue
        elif node.kind is (Kind.FALSE if positive else Kind.TRUE):
            raise UnsatisfiableError("the constraint has no model")
        else:
            found[node if positive else ~node] = None
    return list(found)


def _split(conjuncts: Sequence[Formula], budget: Budget) -> _Work:
    """Group conjuncts that share variables, and settle the groups that need no compiler."""
    above: dict[str, str] = {}

    def top(name: str) -> str:
        root = name
        while above.setdefault(root, root) != root:
            root = above[root]
        while above[name] != root:
            above[name], name = root, above[name]
        return root

    for conjunct in conjuncts:
        names = conjunct.labels()
        first = top(names[0])
        for name in names[1:]:
            above[top(name)] = first
    groups: dict[str, list[Formula]] = {}
    for conjunct in conjuncts:
        groups.setdefault(top(conjunct.labels()[0]), []).append(conjunct)
    work = _Work()
    for group in groups.values():
        only = group[0]
        if len(group) == 1 and only.kind is Kind.ATOM:
            work.facts[only.name] = True
        elif len(group) == 1 and only.kind is Kind.NOT and only.args[0].kind is Kind.ATOM:
            work.facts[only.args[0].name] = False
        elif len(group) == 1 and isinstance(only, Leaf):
            budget.check(f"building {only.describe()}")
            circuit = leaf_circuit(only)
            if circuit is None:
                raise UnsatisfiableError(f"the constraint has no model: {only.describe()} cannot hold")
            work.circuits.append(circuit)
        else:
            work.components.append(group)
    return work


# what was compiled before -------------------------------------------------------------------------------------------


class _Memory:
    """The circuits of this process, the longest unused forgotten first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._circuits: OrderedDict[Any, Circuit] = OrderedDict()
        self._nodes = 0

    def find(self, key: Any) -> Circuit | None:
        with self._lock:
            circuit = self._circuits.get(key)
            if circuit is not None:
                self._circuits.move_to_end(key)
            return circuit

    def keep(self, key: Any, circuit: Circuit) -> None:
        with self._lock:
            replaced = self._circuits.pop(key, None)
            self._circuits[key] = circuit
            self._nodes += circuit.num_nodes - (replaced.num_nodes if replaced is not None else 0)
            while len(self._circuits) > _REMEMBERED_CIRCUITS or (
                self._nodes > _REMEMBERED_NODES and len(self._circuits) > 1
            ):
                self._nodes -= self._circuits.popitem(last=False)[1].num_nodes


_memory = _Memory()
