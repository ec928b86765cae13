"""Turns what the page sends into a constraint: rules as text, a structure such as paths on a grid, or both."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from semprola.constraints import ranking, simple_paths, table
from semprola.errors import LabelError, SemprolaError
from semprola.logic import And, Formula
from semprola.logic.parser import parse_lines
from semprola.logic.rules import conjuncts
from semprola.playground.limits import Limits

SIZES = {"none": (0, 0), "grid": (2, 6), "ranking": (2, 7), "sudoku": (4, 4)}
"""Smallest and largest size of every structure."""

ITEMS = ("cake", "soup", "fish", "rice", "tart", "stew", "plum")
_LETTERS = "abcdef"


class RequestError(SemprolaError, ValueError):
    """The page sent an invalid request."""


@dataclass(frozen=True)
class Problem:
    """What the user has typed and chosen.

    Attributes:
        structure: "none", "grid" (simple paths from corner to corner), "ranking" or "sudoku".
        size: nodes per side of the grid, items of the ranking, digits of the sudoku; 0 for none.
        text: more rules, one per line.
    """

    structure: str
    size: int
    text: str

    @classmethod
    def read(cls, content: Any, limits: Limits) -> Problem:
        """Check what the page sent."""
        if not isinstance(content, dict):
            raise RequestError("a problem must be an object with structure, size and text")
        structure, size, text = content.get("structure"), content.get("size"), content.get("text")
        if not isinstance(structure, str) or structure not in SIZES:
            raise RequestError(f"unknown structure: choose from {', '.join(SIZES)}")
        low, high = SIZES[structure]
        if isinstance(size, bool) or not isinstance(size, int) or not low <= size <= high:
            raise RequestError(f"the size of {structure} must be a whole number from {low} to {high}")
        if not isinstance(text, str):
            raise RequestError("the rules must be text")
        if len(text) > limits.text:
            raise RequestError(f"the rules have {len(text):,} characters; at most {limits.text:,} are allowed")
        return cls(structure, size, text)


@dataclass(frozen=True)
class Constraint:
    """The constraint of a problem.

    Attributes:
        formula: everything that must hold.
        rules: the individual rules: the formula of each, and its text on the page.
        view: how the page draws the labels, besides listing them; see :func:`view_of`.
    """

    formula: Formula
    rules: tuple[tuple[Formula, str], ...]
    view: dict[str, Any]


def read_problem(problem: Problem, limits: Limits) -> Constraint:
    """The constraint of a problem."""
    rules = [(rule, str(rule)) for line in parse_lines(problem.text) for rule in conjuncts(line.formula)]
    family = _family(problem)
    if family is not None:
        rules = [(family, _TITLES[problem.structure].format(size=problem.size, last=_last(problem.size))), *rules]
    formula = And([rule for rule, _ in rules]) if len(rules) != 1 else rules[0][0]
    names = formula.labels
    if not names:
        raise LabelError("the rules mention no label: type one, such as cat -> animal")
    if len(names) > limits.labels:
        raise LabelError(f"the rules mention {len(names):,} labels; the playground takes at most {limits.labels:,}")
    return Constraint(formula, tuple(rules), view_of(problem, names))


def view_of(problem: Problem, labels: Sequence[str]) -> dict[str, Any]:
    """How the page draws the labels.

    ``kind`` is "grid", "board", "table" (also of any labels that are named ``row.column``) or "list".
    """
    index = {name: number for number, name in enumerate(labels)}
    if problem.structure == "grid":
        edges = [[index[name], *start, *end] for name, start, end in _grid_edges(problem.size)]
        return {"kind": "grid", "size": problem.size, "edges": edges}
    if problem.structure == "sudoku":
        side = range(1, problem.size + 1)
        cells = [[[index[f"r{r}c{c}.{digit}"] for digit in side] for c in side] for r in side]
        return {"kind": "board", "box": 2, "cells": cells}
    return table_view(labels)


def table_view(labels: Sequence[str]) -> dict[str, Any]:
    """A table, if all labels are named ``row.column`` and fill at least half of its cells; otherwise a list.

    Example:
        >>> table_view(["ana.mon", "ana.tue", "ben.mon", "ben.tue"])["rows"]
        ['ana', 'ben']
    """
    parts = [name.rpartition(".") for name in labels]
    rows = list(dict.fromkeys(row for row, _, _ in parts))
    columns = list(dict.fromkeys(column for _, _, column in parts))
    if not all(row and column for row, _, column in parts) or min(len(rows), len(columns)) < 2:
        return {"kind": "list"}
    if 2 * len(labels) < len(rows) * len(columns):
        return {"kind": "list"}
    cells: list[list[int | None]] = [[None] * len(columns) for _ in rows]
    for number, (row, _, column) in enumerate(parts):
        cells[rows.index(row)][columns.index(column)] = number
    return {"kind": "table", "rows": rows, "columns": columns, "cells": cells}


_TITLES = {
    "grid": "the edges form one path from a1 to {last}",
    "ranking": "every item has one rank, and every rank has one item",
    "sudoku": "every row, column and box has every digit once",
}


def _family(problem: Problem) -> Formula | None:
    if problem.structure == "grid":
        graph = nx.Graph()
        names = {}
        for name, start, end in _grid_edges(problem.size):
            one, other = _node(*start), _node(*end)
            graph.add_edge(one, other)
            names[one, other] = name
        return simple_paths(graph, source="a1", target=_last(problem.size), labels=names)
    if problem.structure == "ranking":
        items = ITEMS[: problem.size]
        ranks = range(1, problem.size + 1)
        return ranking(items, labels=[f"{item}.{rank}" for item in items for rank in ranks])
    if problem.structure == "sudoku":
        side = range(1, problem.size + 1)
        return table(_boards(), labels=[f"r{r}c{c}.{digit}" for r in side for c in side for digit in side])
    return None


def _boards() -> NDArray[np.uint8]:
    """All sudokus of 4 × 4 cells [boards, 64], with one column for each cell and digit."""
    rows = list(itertools.permutations(range(4)))
    halves = [pair for pair in itertools.product(rows, rows) if len({*pair[0][:2], *pair[1][:2]}) == 4]
    halves = [pair for pair in halves if len({*pair[0][2:], *pair[1][2:]}) == 4]
    grids = [(*top, *bottom) for top in halves for bottom in halves]
    boards = [grid for grid in grids if all(len(set(column)) == 4 for column in zip(*grid, strict=True))]
    digits: NDArray[np.uint8] = np.eye(4, dtype=np.uint8)[np.array(boards)]
    return digits.reshape(len(boards), 64)


def _grid_edges(size: int) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """The edges of a grid: label, and row and column of both ends."""
    for row in range(size):
        for column in range(size):
            for end in ((row, column + 1), (row + 1, column)):
                if max(end) < size:
                    yield f"{_node(row, column)}:{_node(*end)}", (row, column), end


def _node(row: int, column: int) -> str:
    return f"{_LETTERS[column]}{row + 1}"


def _last(size: int) -> str:
    return _node(size - 1, size - 1) if 0 < size <= len(_LETTERS) else ""
