"""The kinds of constraints that systems are tested with."""

from __future__ import annotations

import networkx as nx
import torch

import semprola as sp

ANIMALS = "(cat -> animal) & (dog -> animal)"
_LETTERS = "abcdef"


def constraint_kinds() -> dict[str, sp.Formula]:
    """One constraint of each kind that users write."""
    return {
        "cat/dog/animal": sp.parse(ANIMALS),
        "hierarchy": sp.constraints.hierarchy([("b", "a"), ("c", "a"), ("d", "b"), ("e", "b")]),
        "one-hot": sp.one_hot(list(_LETTERS)),
        "permutation": sp.constraints.permutation(4),
        "path": sp.constraints.simple_paths(nx.grid_2d_graph(3, 3), source=(0, 0), target=(2, 2)),
        "arithmetic": sp.constraints.linear({"a": 3, "b": 2, "c": 2, "d": 1}, "<=", 4),
        "random CNF": random_cnf(),
        "CNF, 2^40 terms": sp.And(*[sp.Bool(f"a{i}") | sp.Bool(f"b{i}") for i in range(40)]),
    }


def random_cnf(clauses: int = 12, seed: int = 0) -> sp.Formula:
    """Clauses of three of six labels, with random signs."""
    random = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(clauses):
        picked = torch.randperm(len(_LETTERS), generator=random)[:3].tolist()
        signs = torch.randint(2, (3,), generator=random).tolist()
        atoms = [sp.Bool(_LETTERS[place]) for place in picked]
        made.append(sp.Or(*[atom if on else ~atom for atom, on in zip(atoms, signs, strict=True)]))
    return sp.And(*made)
