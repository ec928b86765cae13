"""`compile`: the one way from a constraint to a circuit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from semprola.circuit import Circuit
from semprola.compiler import cache as store
from semprola.compiler.backends.topdown.backend import are_defined, circuit_of, compile_clauses, compile_without
from semprola.compiler.backends.topdown.definitions import defined_variables
from semprola.compiler.budget import Budget, Progress
from semprola.compiler.contradiction import explained, refuted_early
from semprola.compiler.digest import formula_digest
from semprola.compiler.join import join_circuits
from semprola.compiler.parts import conjuncts_of, split
from semprola.compiler.portfolio import checked_backend, compile_components, prefers_clauses
from semprola.compiler.sources import Source, as_constraint
from semprola.compiler.truth_table import is_small, table_circuit
from semprola.errors import CompilationBudgetError, LabelError, UnsatisfiableError
from semprola.logic import Cnf, Formula, Leaf
from semprola.logic.rewrite import simplify
from semprola.logic.rules import PlacedFormula, stated_in_place
from semprola.logic.syntax import checked_names

_MOST_LITERALS = 200_000
"""Longer clause lists are not searched for definitions after the budget has run out."""


def compile(
    constraint: Source,
    labels: Iterable[str] | None = None,
    given: Iterable[str] = (),
    backend: str = "auto",
    timeout: float | None = None,
    max_nodes: int | None = None,
    memory: int | str | None = None,
    cache: bool = True,
    progress: bool | Callable[[Progress], None] | None = None,
) -> Circuit:
    """Compile a constraint to a circuit that you can count, enumerate and put at the end of a network.

    Args:
        constraint: a formula, its text, a family of ``semprola.constraints``, the path of a file (see
            :func:`semprola.rules.read`), or a circuit (which is not compiled again but only gets new labels).
        labels: names of the output variables, in the column order of y; by default all variables of the constraint
            that are not given, in order of first appearance. Labels that the constraint does not mention are free. For
            a CNF, you may leave out variables that the others define (as conjunctions or disjunctions), which can make
            the circuit exponentially smaller.
        given: names of the input variables x; by default those that the families in the constraint, or the circuit,
            declare as inputs.
        backend: "auto" (small rules by their truth table, families directly, the rest by the best of the next three),
            "automata" (follows all rules together along one variable order), "topdown" (our own compiler of clauses;
            its circuits have no vtree), "sdd" (PySDD), or the path of your own compiler, such as
            "d4:/usr/local/bin/d4", whose results are checked.
        timeout: the most seconds that it may take.
        max_nodes: the most nodes that the circuit, and the compiler at any time, may have.
        memory: the most bytes that the compiler may use, or a text such as "2GB".
        cache: whether to return a circuit compiled earlier for the same arguments by this process or, if that took
            long, by another, and to keep this one.
        progress: True shows a line on the terminal after a second; a function is called with a :class:`Progress`
            several times per second. By default, a compilation that takes more than a few seconds says so on standard
            error; False keeps it silent.

    Returns:
        The circuit; ``circuit.info`` says which back end made it, why, and in how many seconds.

    Raises:
        LabelError: a variable is in neither labels nor given, in both, or listed twice.
        UnsatisfiableError: the constraint has no model; the error names rules that contradict each other and lists
            them in ``rules``.
        CompilationBudgetError: time, nodes or memory ran out; its attributes say which, and how far the compiler got.

    Example:
        >>> circuit = compile("(cat -> animal) & (dog -> animal)")
        >>> circuit.labels
        ('cat', 'animal', 'dog')
        >>> circuit.model_count()
        5
    """
    budget = Budget(timeout, max_nodes, memory, progress)
    constraint = as_constraint(constraint)
    if backend != "auto":
        backend = checked_backend(backend)
        budget.is_chosen = backend != "auto"
    names = _resolve(constraint, labels, given)
    if isinstance(constraint, Formula):
        constraint = stated_in_place(constraint)
    key = (constraint, *names, backend)
    circuit = store.memory.find(key) if cache else None
    try:
        if circuit is None:
            if isinstance(constraint, Formula) and backend == "auto" and is_small(constraint):
                circuit = table_circuit(constraint, *names, budget)
            else:
                circuit = (_through_disk if cache else _compile)(constraint, *names, backend, budget)
            source = constraint.source if isinstance(constraint, Circuit) else constraint
            circuit = circuit.with_source(None if _unlisted(constraint, *names) else source)
            if cache:
                store.memory.keep(key, circuit)
        elif isinstance(circuit.source, PlacedFormula) or isinstance(constraint, PlacedFormula):
            circuit = circuit.with_source(constraint)  # an equal formula may come from another file
        budget.check_result(circuit.num_nodes)
    except UnsatisfiableError as error:
        if isinstance(constraint, Circuit) or error.rules:
            raise
        raise explained(constraint, budget) from None
    except CompilationBudgetError as error:
        if isinstance(constraint, Formula):
            error.args = (_with_split(str(error), constraint, names[1]),)
        raise
    finally:
        budget.close()
    return circuit


def _with_split(text: str, constraint: Formula, given: tuple[str, ...]) -> str:
    """The message of a budget that ran out, with the advice to split if that is possible."""
    from semprola.compiler.splitting.pieces import can_split

    if given or not can_split(constraint):
        return text
    advice = "split the constraint: sp.split(rules)"
    return text.replace(": raise ", f": {advice}, or raise ", 1) if ": raise " in text else f"{text}; or {advice}"


def _through_disk(
    constraint: Formula | Circuit, labels: tuple[str, ...], given: tuple[str, ...], backend: str, budget: Budget
) -> Circuit:
    """The circuit from disk; otherwise one process at a time compiles it, and stores it there if it took long."""
    digest = formula_digest(constraint) if isinstance(constraint, Formula) else None
    if digest is None or not isinstance(constraint, Formula):
        return _compile(constraint, labels, given, backend, budget)
    entry = store.Entry(digest, labels, given, backend)
    circuit = entry.load()
    if circuit is not None:
        return circuit
    with entry.lock(lambda: budget.check("waiting for another process")):
        circuit = entry.load()
        if circuit is None:
            began = budget.seconds
            circuit = _compile(constraint, labels, given, backend, budget)
            if budget.seconds - began > store.WORTH_SECONDS:
                entry.keep(circuit)
    return circuit


def _compile(
    constraint: Formula | Circuit, labels: tuple[str, ...], given: tuple[str, ...], backend: str, budget: Budget
) -> Circuit:
    if isinstance(constraint, Circuit):
        return join_circuits([constraint], {}, labels, given, constraint.info)
    hidden = _unlisted(constraint, labels, given)
    made = _without(constraint, hidden, backend, budget) if hidden else _parts(constraint, backend, budget, given)
    parts, facts, used, reason = made
    budget.watch("joining the parts", sum(part.num_nodes for part in parts))
    circuit = join_circuits(parts, facts, labels, given)
    about = parts[0].info if len(parts) == 1 else {}
    details = {name: about[name] for name in ("family", "diagram_nodes") if name in about}
    return circuit.with_info(
        {**details, "backend": used, "reason": reason, "seconds": budget.seconds, "nodes": circuit.num_nodes}
    )


def _without(
    constraint: Formula, hidden: list[str], backend: str, budget: Budget
) -> tuple[list[Circuit], dict[str, bool], str, str]:
    """The circuit of a CNF without some variables, which others define."""
    if not isinstance(constraint, Cnf) or backend not in ("auto", "topdown"):
        raise LabelError(f"backend {backend!r} cannot leave out {hidden[0]!r}: list it, or use backend='topdown'")
    budget.tried.append("topdown")
    made = compile_without(constraint, map(int, hidden), budget)
    return [made], {}, "topdown", f"topdown: without {len(hidden):,} variables that others define"


def _parts(
    constraint: Formula, backend: str, budget: Budget, given: tuple[str, ...]
) -> tuple[list[Circuit], dict[str, bool], str, str]:
    """Circuits and facts whose conjunction is the constraint, the back end that made them, and why it was chosen."""
    if isinstance(constraint, Cnf) and backend in ("auto", "topdown"):
        budget.check("choosing a back end")
        reason = prefers_clauses(constraint, budget) if backend == "auto" else "chosen by the caller"
        if reason is not None:
            budget.tried.append("topdown")
            try:
                made = compile_clauses(constraint.num_vars, (constraint.offsets, constraint.literals), budget)
            except CompilationBudgetError as error:
                error.args = (f"{error}{_about_definitions(constraint)}",)
                raise
            return [circuit_of(made, constraint.labels)], {}, "topdown", reason
    refuted = refuted_early(constraint, budget)
    if refuted is not None:
        raise refuted
    budget.check("simplifying")
    check = functools.partial(budget.check, "simplifying")
    simple = simplify(constraint, check)
    work = split(conjuncts_of(simple, check), budget, direct=backend == "auto")
    parts = list(work.circuits)
    if not work.components:
        return parts, work.facts, "direct", "a direct construction" if parts else "literals only"
    general = compile_components(work.components, backend, budget, given)
    reason = general.reason
    if parts:
        reason += f"; {len(parts)} independent parts have a direct construction"
    return [*parts, *general.circuits], work.facts, general.backend, reason


def _about_definitions(cnf: Cnf) -> str:
    """Advice for clauses whose circuit over all variables is too large."""
    if len(cnf.literals) > _MOST_LITERALS:
        return ""
    count = len(defined_variables(cnf.clauses, range(cnf.num_vars, 0, -1)))
    if not count:
        return ""
    return f"; {count:,} of its {cnf.num_vars:,} variables are defined by the others: leave them out of labels="


# labels and given variables -----------------------------------------------------------------------------------------


def _resolve(
    constraint: Formula | Circuit, labels: Iterable[str] | None, given: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels and given variables, checked against each other and against the constraint."""
    inputs = checked_names(given, "given")
    mentioned = constraint.variables if isinstance(constraint, Circuit) else constraint.labels
    columns = None if labels is None else checked_names(labels, "labels")
    if not inputs:
        outputs = set(columns or ())
        inputs = tuple(name for name in _own_inputs(constraint) if name not in outputs)
    if columns is None:
        hidden = set(inputs)
        columns = tuple(name for name in mentioned if name not in hidden)
    both = set(columns) & set(inputs)
    if both:
        raise LabelError(f"{min(both)!r} is both a label and given: list it in labels= or in given=, not in both")
    listed = {*columns, *inputs}
    missing = [name for name in mentioned if name not in listed]
    if missing and not (isinstance(constraint, Cnf) and are_defined(constraint, map(int, missing))):
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        hint = "; .restrict(labels) keeps what it implies for the others" if hasattr(constraint, "restrict") else ""
        raise LabelError(
            f"the constraint mentions {missing[0]!r}{more}, which is not listed: add it to labels= (an output) or "
            f"given= (an input){hint}"
        )
    return columns, inputs


def _unlisted(constraint: Formula | Circuit, labels: tuple[str, ...], given: tuple[str, ...]) -> list[str]:
    """The variables of a CNF that are left out because others define them."""
    if not isinstance(constraint, Cnf):
        return []
    listed = {*labels, *given}
    return [name for name in constraint.labels if name not in listed]


def _own_inputs(constraint: Formula | Circuit) -> Iterable[str]:
    """The default inputs of a circuit, or of the families in a formula."""
    if isinstance(constraint, Circuit):
        return constraint.given
    return dict.fromkeys(name for node in constraint.nodes() if isinstance(node, Leaf) for name in node.given)
