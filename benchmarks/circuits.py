"""Circuits that stand for kinds of rules and are made here, so that a clone can measure them: no data set is needed."""

from __future__ import annotations

import random

import networkx as nx

import semprola as sp
from semprola.logic import Formula


def tree(labels: int, seed: int = 0, deepest: int = 5) -> list[tuple[str, str]]:
    """(child, parent) pairs of a random tree of classes, as wide and as flat as the hierarchies of gene functions."""
    draw = random.Random(seed)
    depth = [0]
    edges = []
    for child in range(1, labels):
        near = [c for c in range(max(0, child - 80), child) if depth[c] < deepest] or [0]
        parent = draw.choice(near)
        depth.append(depth[parent] + 1)
        edges.append((f"c{child}", f"c{parent}"))
    return edges


def hierarchy(labels: int) -> sp.Circuit:
    """A tree of classes, compiled by its own construction."""
    return sp.compile(sp.constraints.hierarchy(tree(labels)))


def hierarchy_sdd(labels: int) -> sp.Circuit:
    """The same rules as implications, compiled by PySDD."""
    rules = [sp.Implies(sp.Bool(child), sp.Bool(parent)) for child, parent in tree(labels)]
    return sp.compile(sp.And(*rules), labels=[f"c{i}" for i in range(labels)], backend="sdd")


def clauses_sdd(labels: int, count: int, seed: int = 0) -> sp.Circuit:
    """Random clauses of three literals, compiled by PySDD: rules without any structure."""
    draw = random.Random(seed)
    names = [f"y{i}" for i in range(labels)]
    clauses: list[Formula] = []
    for _ in range(count):
        literals = [sp.Bool(name) if draw.random() < 0.5 else ~sp.Bool(name) for name in draw.sample(names, 3)]
        clauses.append(sp.Or(*literals))
    return sp.compile(sp.And(*clauses), labels=names, backend="sdd")


def grid_paths(side: int, longest: int | None = None) -> sp.Circuit:
    """Simple paths from corner to corner of a grid."""
    corner = (side - 1, side - 1)
    graph = nx.grid_2d_graph(side, side)
    return sp.compile(sp.constraints.simple_paths(graph, source=(0, 0), target=corner, max_length=longest))
