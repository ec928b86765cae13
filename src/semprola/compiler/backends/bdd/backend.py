"""The BDD and ZBDD back ends: the same program as for PySDD, run by oxidd over a variable order."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from semprola.circuit import Circuit, CircuitBuilder, Vtree
from semprola.circuit.builder import FALSE
from semprola.compiler.backends.program import request_arrays
from semprola.compiler.backends.sdd.process import request
from semprola.compiler.backends.translation import translated
from semprola.compiler.budget import Budget
from semprola.errors import SemprolaError, UnsatisfiableError
from semprola.logic import Formula

_CHECK_EVERY = 16384


def compile_bdd(components: Sequence[Sequence[Formula]], budget: Budget) -> Circuit:
    """A reduced ordered binary decision diagram; arguments, result and errors are those of `compile_topdown`.

    Raises:
        SemprolaError: oxidd is not installed.
    """
    return _compile(components, budget, zero_suppressed=False)


def compile_zdd(components: Sequence[Sequence[Formula]], budget: Budget) -> Circuit:
    """Like :func:`compile_bdd`, but zero-suppressed: small if few labels are on in each model."""
    return _compile(components, budget, zero_suppressed=True)


def _compile(components: Sequence[Sequence[Formula]], budget: Budget, zero_suppressed: bool) -> Circuit:
    kind = "zdd" if zero_suppressed else "bdd"
    found = importlib.util.find_spec("oxidd")
    if found is None or not found.submodule_search_locations:
        raise SemprolaError(f"backend {kind!r} needs oxidd: pip install 'semprola[bdd]'")
    program, roots, vtree, names = translated(components, budget, linear=True)
    where = str(Path(next(iter(found.submodule_search_locations))).parent)
    arrays = {**request_arrays(program, roots, vtree), "position": vtree.position}
    answer = request("oxidd", {"engine": kind, "path": where}, arrays, budget, f"compiling with oxidd ({kind})")
    return _circuit(answer, names, vtree, zero_suppressed, budget)


def _circuit(
    answer: dict[str, npt.NDArray[np.int32]],
    names: tuple[str, ...],
    vtree: Vtree,
    zero_suppressed: bool,
    budget: Budget,
) -> Circuit:
    """The diagrams of the answer's roots, which share no variable, as one circuit; node 0 is false, node 1 is true."""
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
            budget.watch("writing the circuit", len(builder))
    root = builder.product([image[root] for root in answer["roots"].tolist()])
    if root == FALSE:
        raise UnsatisfiableError("the constraint has no model")
    return builder.build(
        root,
        zero_suppressed=[zero_suppressed] * len(names),
        vtree=vtree,
        check=lambda: budget.watch("writing the circuit", len(builder)),
    )
