"""How far single circuits get: rosters with more and more nurses, and larger and larger parts of an ontology."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import networkx as nx

import semprola as sp
from experiments.large.cases import phenotypes, roster
from experiments.provenance import provenance
from semprola.constraints.hierarchy.family import Hierarchy
from semprola.errors import CompilationBudgetError

SECONDS, MEMORY = 60, "3GB"
_BACKENDS = ("automata", "topdown", "sdd")
_NURSES, _DAYS = 7, 7
_PARTS = (500, 1000, 2000, 4000, 8000)
"""Labels of the parts of the ontology that are tried; then the whole."""

TEXT = """
## The wall

Two constraints were tried longest as one circuit, each within {seconds} s of the clock, {memory} and, for automata, 8
million nodes per attempt:

| constraint | labels | compiler | result |
|---|---:|---|---|
{rows}

*The roster.* A diagram that takes the labels in an order keeps apart what the rest of the rules can tell apart. Day by
day, a nurse has 8 states after day 4 (1 to 4 shifts so far, on night shift or not), so 7 nurses have 8^7 = 2.1 million,
at each of the 21 labels of a day. Nurse by nurse, the shifts that are staffed so far are a subset of 21: 2^21 = 2.1
million again. Orders between these two keep some of both. Without the bounds on the workload the same roster has
[93,424 nodes](compile.md), and a circuit per nurse for the workload is small: that is the split.

*The ontology.* Terms with several parents tie branches to each other; a circuit must keep the values of all such
parents that are open at a time. The part of the first n terms, from the root on, grows with n as the table shows. The
most probable state needs no circuit, though: it is a minimum cut (`sp.constraints.hierarchy_mode`), and the split's
circuits are forests that share the terms.
"""


def attempts(known: Sequence[dict[str, Any]] = ()) -> Iterator[dict[str, Any]]:
    """Each attempt: nodes and seconds, or what ran out.

    A compiler that gave up on a roster is not tried on larger ones, except for the whole.

    Args:
        known: earlier attempts, which are not repeated.
    """
    found = {(each["title"], each["backend"]): each for each in known}
    alive = list(_BACKENDS)
    for nurses in range(4, _NURSES + 1):  # three cannot staff all shifts
        case = roster(nurses, _DAYS)
        title = f"roster, {nurses} nurses, {_DAYS} days"
        for backend in _BACKENDS if nurses == _NURSES else tuple(alive):
            made = found.get((title, backend)) or _attempt(case.formula(), title, case.size, backend)
            if "ran_out" in made and backend in alive:
                alive.remove(backend)
            yield made
    for count in (*_PARTS, 0):
        family, size = _ontology(count)
        title = "Human Phenotype Ontology" + (f", the first {size:,} terms" if count else "")
        yield found.get((title, "auto")) or _attempt(family, title, size, "auto")


def section(runs: list[dict[str, Any]]) -> str:
    """For the page."""
    rows = "\n".join(f"| {each['title']} | {each['labels']:,} | {each['backend']} | {_result(each)} |" for each in runs)
    return TEXT.format(seconds=SECONDS, memory=MEMORY.replace("GB", " GB"), rows=rows)


def _result(run: dict[str, Any]) -> str:
    if "nodes" in run:
        return f"{run['nodes']:,} nodes in {run['seconds']:.1f} s"
    return f"gave up: {run['ran_out']}, with {run['built']:,} nodes"


def _attempt(formula: sp.Formula, title: str, labels: int, backend: str) -> dict[str, Any]:
    began = time.perf_counter()
    result: dict[str, Any] = {"title": title, "labels": labels, "backend": backend, "seed": 0}
    try:
        made = sp.compile(formula, backend=backend, timeout=SECONDS, memory=MEMORY, cache=False, progress=False)
        result["nodes"] = made.num_nodes
    except CompilationBudgetError as error:
        result |= {"ran_out": str(error.resource), "built": error.nodes}
    return result | {"seconds": round(time.perf_counter() - began, 2), "provenance": provenance()}


def _ontology(count: int) -> tuple[sp.Formula, int]:
    """The hierarchy of the terms nearest to the root, in order of distance; all terms if `count` is 0."""
    family = phenotypes().family
    assert isinstance(family, Hierarchy)
    graph = nx.DiGraph((parent, child) for child, parent in family.edges)
    roots = [name for name, parents in graph.in_degree if not parents]
    ordered = [name for layer in nx.bfs_layers(graph, roots) for name in layer]
    kept = set(ordered[: count or None])
    pairs = [(child, parent) for child, parent in family.edges if child in kept and parent in kept]
    return sp.constraints.hierarchy(pairs), len(kept)
