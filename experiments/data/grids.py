"""Shortest paths in subgraphs of the 4 × 4 grid: the published file, and a generator of the same kind of data."""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from experiments.data.dataset import Dataset
from experiments.data.files import PublishedFile
from semprola.errors import FormatError

GRIDS = PublishedFile(
    "grid4/test.data",
    "https://raw.githubusercontent.com/UCLA-StarAI/Semantic-Loss/82326051acc3f634358f32011977b62f794680fa"
    "/complex_constraints/test.data",
    "d973484deb511634db6058c03661ebb9d23f52cf8d383c3554bd73f53372b360",
)

_SIDE = 4
_SMALLEST_COMPONENT = 5


def grid_graph(side: int = _SIDE) -> Any:
    """The grid whose nodes are numbered row by row; ``edges`` fixes the order of the columns of all data here.

    Example:
        >>> graph = grid_graph()
        >>> len(graph), len(graph.edges), list(graph.edges)[:3]
        (16, 24, [(0, 1), (0, 4), (1, 2)])
    """
    graph = nx.Graph()
    graph.add_nodes_from(range(side * side))
    for node in graph:
        if node % side < side - 1:
            graph.add_edge(node, node + 1)
        if node < side * (side - 1):
            graph.add_edge(node, node + side)
    return graph


def generate_grids(graphs: int = 50, seed: int = 0, pairs: float = 1 / 3) -> Dataset:
    """Shortest paths in random subgraphs of the 4 × 4 grid.

    A third of the grid's edges is dropped for each subgraph. Components of fewer than 5 nodes are left out. End points
    are drawn from the pairs of nodes within a component. If there are several shortest paths, the label is the one
    whose sequence of nodes, starting at the end point with the smaller number, is lexicographically first.

    Args:
        graphs: the number of subgraphs.
        seed: seed of the data.
        pairs: the share of each component's pairs of nodes that become rows.

    Returns:
        x: 16 indicators of the two end points, then 24 of the present edges [rows, 40]; y: the edges of the path
        [rows, 24]; groups: the subgraph.

    Raises:
        ValueError: if the arguments are invalid.

    Example:
        >>> data = generate_grids(graphs=3, seed=1)
        >>> data.x.shape[1], data.y.shape[1], len(np.unique(data.groups))
        (40, 24, 3)
    """
    if graphs < 1 or not 0 < pairs <= 1:
        raise ValueError(f"generate_grids: graphs must be at least 1 and pairs in (0, 1], not {graphs!r} and {pairs!r}")
    random = np.random.default_rng(seed)
    whole = grid_graph()
    edges = list(whole.edges)
    column = _edge_columns(edges)
    x, y, groups = [], [], []
    for number in range(graphs):
        chosen: list[tuple[int, int]] = []
        while not chosen:  # a subgraph may have no large component
            dropped = set(random.choice(len(edges), len(edges) // 3, replace=False).tolist())
            graph = nx.Graph([edge for i, edge in enumerate(edges) if i not in dropped])
            for component in nx.connected_components(graph):
                if len(component) >= _SMALLEST_COMPONENT:
                    nodes = sorted(component)
                    every = [(u, v) for i, u in enumerate(nodes) for v in nodes[i + 1 :]]
                    rows = random.choice(len(every), max(1, round(len(every) * pairs)), replace=False)
                    chosen += [every[i] for i in sorted(rows)]
        present = np.array([i not in dropped for i in range(len(edges))])
        for u, v in chosen:
            walk = min(nx.all_shortest_paths(graph, u, v))
            x.append(_inputs(u, v, present))
            y.append(_path([column[step] for step in pairwise(walk)], len(edges)))
            groups.append(number)
    return Dataset(f"generated grids (seed {seed})", np.stack(x), np.stack(y), np.array(groups, np.int64))


def turned_grids(dataset: Dataset) -> Dataset:
    """New rows from the seven rotations and reflections of the square.

    A shortest path stays one when the grid is rotated or reflected. If there are several, the label depends on the
    numbers of nodes, so only rows with a single shortest path are used.

    Args:
        dataset: a result of :func:`generate_grids` or :func:`load_grids`.

    Returns:
        The new rows, in the groups of the rows that they come from.

    Example:
        >>> data = generate_grids(graphs=3, seed=1)
        >>> len(data), len(turned_grids(data)) / 7
        (105, 80.0)
    """
    edges = list(grid_graph().edges)
    column = _edge_columns(edges)
    single = np.array([_has_one_shortest_path(row, edges) for row in dataset.x], bool)
    x, y = [], []
    for turn in _turns():
        lines = np.array([column[turn[u], turn[v]] for u, v in edges], np.int64)
        x.append(_moved(dataset.x[single], np.concatenate([turn, len(turn) + lines])))
        y.append(_moved(dataset.y[single], lines))
    groups = np.tile(dataset.groups[single], len(x))
    return Dataset(f"{dataset.name}, turned", np.concatenate(x), np.concatenate(y), groups)


def load_grids(path: str | Path) -> Dataset:
    """Read the published file, which has one ``removed edges , source-target , path [, path …]`` per line.

    It numbers the edges along rows first, row by row, and then those along columns, column by column. The first path of
    a line is the label, as in the published experiments.

    Args:
        path: the file.

    Returns:
        As :func:`generate_grids`.

    Raises:
        FormatError: if a line does not have this form; the message gives its number.
    """
    whole = grid_graph()
    edges = list(whole.edges)
    columns = _published_columns(_edge_columns(edges))
    graphs: dict[tuple[int, ...], int] = {}
    x, y, groups = [], [], []
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: cannot be read as text ({error})") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        fields = line.strip().split(",")
        if len(fields) < 3:
            raise FormatError(f"{where}: expected removed edges, source-target and a path, separated by commas")
        removed = _numbers(fields[0], len(edges), "edge", where)
        ends = _numbers(fields[1], len(whole), "node", where)
        steps = _numbers(fields[2], len(edges), "edge", where)
        if len(ends) != 2:
            raise FormatError(f"{where}: expected two different nodes, found {fields[1]!r}")
        present = np.ones(len(edges), bool)
        present[columns[removed]] = False
        label = _path(columns[steps], len(edges))
        if not _joins(label, edges, present, ends):
            raise FormatError(f"{where}: {fields[2]!r} is not a path from {ends[0]} to {ends[1]} in the subgraph")
        x.append(_inputs(ends[0], ends[1], present))
        y.append(label)
        groups.append(graphs.setdefault(tuple(sorted(removed)), len(graphs)))
    if not x:
        raise FormatError(f"{path}: the file has no rows")
    return Dataset("published grids", np.stack(x), np.stack(y), np.array(groups, np.int64))


def _turns() -> list[NDArray[np.int64]]:
    """Where each node goes, for all symmetries of the square except the identity."""
    nodes = np.arange(_SIDE * _SIDE, dtype=np.int64).reshape(_SIDE, _SIDE)
    turned = [np.rot90(side, quarter) for side in (nodes, nodes.T) for quarter in range(4)]
    return [square.flatten() for square in turned[1:]]


def _moved(rows: NDArray[np.float32], places: NDArray[np.int64]) -> NDArray[np.float32]:
    """Rows with column i at `places[i]`."""
    moved = np.empty_like(rows)
    moved[:, places] = rows
    return moved


def _has_one_shortest_path(row: NDArray[np.float32], edges: list[tuple[int, int]]) -> bool:
    graph = nx.Graph([edge for edge, present in zip(edges, row[_SIDE * _SIDE :], strict=True) if present])
    paths = nx.all_shortest_paths(graph, *np.flatnonzero(row[: _SIDE * _SIDE]).tolist())
    return len(list(islice(paths, 2))) == 1


def _edge_columns(edges: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    column = {edge: i for i, edge in enumerate(edges)}
    return column | {(v, u): i for (u, v), i in column.items()}


def _published_columns(column: dict[tuple[int, int], int]) -> NDArray[np.int64]:
    """Our column of each edge number of the published file."""
    along = [(_SIDE * r + c, _SIDE * r + c + 1) for r in range(_SIDE) for c in range(_SIDE - 1)]
    down = [(_SIDE * r + c, _SIDE * (r + 1) + c) for c in range(_SIDE) for r in range(_SIDE - 1)]
    return np.array([column[edge] for edge in along + down], np.int64)


def _inputs(u: int, v: int, present: NDArray[np.bool_]) -> NDArray[np.float32]:
    ends = np.zeros(_SIDE * _SIDE, np.float32)
    ends[[u, v]] = 1
    return np.concatenate([ends, present.astype(np.float32)])


def _path(columns: Any, size: int) -> NDArray[np.float32]:
    label = np.zeros(size, np.float32)
    label[columns] = 1
    return label


def _joins(label: NDArray[np.float32], edges: list[Any], present: NDArray[np.bool_], ends: list[int]) -> bool:
    used = np.flatnonzero(label)
    graph = nx.Graph([edges[i] for i in used])
    inner = [degree for node, degree in graph.degree() if node not in ends]
    return bool(
        present[used].all()
        and all(node in graph and graph.degree(node) == 1 for node in ends)
        and all(degree == 2 for degree in inner)
        and nx.is_connected(graph)
    )


def _numbers(field: str, size: int, what: str, where: str) -> list[int]:
    """Numbers joined by hyphens, all different and in range; an empty field has none."""
    if not field:
        return []
    values = []
    for part in field.split("-"):
        if not part.isascii() or not part.isdigit() or len(part) > 4 or int(part) >= size:
            raise FormatError(f"{where}: {part!r} is not the number of one of {size} {what}s")
        values.append(int(part))
    if len(set(values)) != len(values):
        raise FormatError(f"{where}: {field!r} has a number twice")
    return values
