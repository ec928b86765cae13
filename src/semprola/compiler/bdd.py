"""The BDD and ZBDD back ends: the same program as for PySDD, run by oxidd over a variable order."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from semprola.circuit import Circuit, CircuitBuilder, Vtree
from semprola.circuit.builder import FALSE
from semprola.circuit.sdd_bridge import request_arrays
from semprola.circuit.sdd_process import ExceededError, request
from semprola.compiler.budget import Budget
from semprola.compiler.sdd import translated
from semprola.errors import SemprolaError, UnsatisfiableError
from semprola.logic import Formula

_CHECK_EVERY = 16384


def compile_bdd(components: Sequence[Sequence[Formula]], budget: Budget) -> Circuit:
    """A circuit that is a reduced ordered binary decision diagram.

    Args:
        components: groups of conjuncts; no two groups share a variable.
        budget: what may be used.

    Returns:
        A circuit whose labels are the variables of the conjuncts, structured by a variable order.

    Raises:
        SemprolaError: oxidd is not installed.
        UnsatisfiableError: there is no model.
        CompilationBudgetError: the budget ran out.
    """
    return _compile(components, budget, zero_suppressed=False)


def compile_zdd(components: Sequence[Sequence[Formula]], budget: Budget) -> Circuit:
    """As :func:`compile_bdd`, with a zero-suppressed diagram: small where few labels are on in a model."""
    return _compile(components, budget, zero_suppressed=True)


def _compile(components: Sequence[Sequence[Formula]], budget: Budget, zero_suppressed: bool) -> Circuit:
    kind = "zdd" if zero_suppressed else "bdd"
    found = importlib.util.find_spec("oxidd")
    if found is None or not found.submodule_search_locations:
        raise SemprolaError(f"backend {kind!r} needs oxidd: pip install 'semprola[bdd]'")
    program, roots, vtree, names = translated(components, budget, linear=True)
    header = {
        "engine": kind,
        "max_nodes": budget.max_nodes,
        "path": str(Path(next(iter(found.submodule_search_locations))).parent),
    }
    try:
        answer = request(
            header,
            {**request_arrays(program, roots, vtree), "position": vtree.position},
            budget.seconds_left,
            budget.memory,
            lambda nodes, _: budget.check(f"compiling with oxidd ({kind})", nodes),
        )
    except ExceededError as exceeded:
        raise budget.error(exceeded.which) from None
    return _circuit(answer, names, vtree, zero_suppressed, budget)


def _circuit(
    answer: dict[str, npt.NDArray[np.int32]],
    names: tuple[str, ...],
    vtree: Vtree,
    zero_suppressed: bool,
    budget: Budget,
) -> Circuit:
    """The diagrams of the answer's roots, which share no variable, as one circuit; node 0 is false, node 1 true."""
    builder = CircuitBuilder(names)
    image = [FALSE, builder.true()]
    rows = zip(*(answer[column].tolist() for column in ("level", "low", "high")), strict=True)
    order = vtree.order.tolist()
    for i, (level, low, high) in enumerate(rows):
        v = order[level]
        if zero_suppressed:
            branches = [image[low], builder.product([builder.literal(v, True), image[high]])]
            image.append(builder.sum(branches))
        else:
            image.append(builder.decision(v, image[low], image[high]))
        if i % _CHECK_EVERY == 0:
            budget.check("writing the circuit", len(builder))
    root = builder.product([image[root] for root in answer["roots"].tolist()])
    if root == FALSE:
        raise UnsatisfiableError("the constraint has no model")
    return builder.build(
        root,
        zero_suppressed=[zero_suppressed] * len(names),
        vtree=vtree,
        check=lambda: budget.check("writing the circuit", len(builder)),
    )
