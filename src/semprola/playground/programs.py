"""What is on the page, as a Python program that can be pasted and run."""

from __future__ import annotations

import json
from collections.abc import Sequence

from semprola.playground.problems import ITEMS, Problem

_GRID = """\
size = {size}
names = [["abcdef"[column] + str(row + 1) for column in range(size)] for row in range(size)]
graph = nx.Graph()
for row in range(size):
    graph.add_edges_from(zip(names[row], names[row][1:]))
    if row + 1 < size:
        graph.add_edges_from(zip(names[row], names[row + 1]))
labels = {{(a, b): f"{{a}}:{{b}}" for a, b in graph.edges}}
structure = sp.constraints.simple_paths(graph, source=names[0][0], target=names[-1][-1], labels=labels)"""
_RANKING = """\
items = {items}
ranks = range(1, len(items) + 1)
structure = sp.constraints.ranking(items, labels=[f"{{item}}.{{rank}}" for item in items for rank in ranks])"""
_SUDOKU = """\
def place(row, column, digit):
    return sp.Bool(f"r{row + 1}c{column + 1}.{digit + 1}")


four = range(4)
structure = sp.And(
    sp.one_hot(group)
    for i in four
    for j in four
    for group in (
        [place(i, j, digit) for digit in four],
        [place(i, column, j) for column in four],
        [place(row, i, j) for row in four],
        [place(i // 2 * 2 + k // 2, i % 2 * 2 + k % 2, j) for k in four],
    )
)"""


def program(
    problem: Problem,
    labels: Sequence[str],
    beliefs: Sequence[float],
    evidence: Sequence[int | None],
    *,
    split: bool = False,
) -> str:
    """A program that makes the same constraint and asks for the same predictions."""
    named = []
    lines = ["import torch", "import semprola as sp", ""]
    if problem.structure != "none":
        lines += [_structure(problem), ""]
        named.append("structure")
    if problem.text.strip():
        lines.append(f"rules = sp.parse({_block(problem.text)})")
        named.append("rules")
    if problem.structure == "grid":
        lines.insert(0, "import networkx as nx")
    lines += ["beliefs = {"]
    lines += [f"    {_quoted(label)}: {belief:g}," for label, belief in zip(labels, beliefs, strict=True)]
    lines += [
        "}",
        f"circuit{'s' * split} = sp.{'split' if split else 'compile'}({' & '.join(named)}, labels=list(beliefs))",
        f"p = sp.constrain(torch.tensor(list(beliefs.values())).logit(), circuit{'s' * split})",
    ]
    known = [f"{_quoted(name)}: {v}" for name, v in zip(labels, evidence, strict=True) if v is not None]
    if known:
        lines.append(f"p = p.condition({{{', '.join(known)}}})")
    lines.append("print(p.to_dict())  # the most probable state")
    lines.append(
        "print(p.mode_is_exact)  # whether it is proven" if split else "print(p.mean)  # the probability of each label"
    )
    return "\n".join(lines)


def _structure(problem: Problem) -> str:
    if problem.structure == "grid":
        return _GRID.format(size=problem.size)
    if problem.structure == "ranking":
        return _RANKING.format(items=json.dumps(ITEMS[: problem.size]))
    return _SUDOKU


def _block(text: str) -> str:
    """Several lines as Python text; readable unless they hold what such a text cannot."""
    plain = "\\" not in text and "'''" not in text
    return f"'''\n{text.strip()}\n'''" if plain else repr(text)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
