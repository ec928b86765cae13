"""Reads a hierarchy from pairs, dicts, data frames or graphs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from semprola.constraints.family import label_names
from semprola.errors import LabelError
from semprola.logic.messages import brief

Direction = Literal["child-parent", "parent-child"]
Labels = Iterable[str] | Mapping[Any, str]
Pairs = tuple[tuple[int, int], ...]

_MANY = 20
"""A graph with at least this many labels and far more roots than leaves is most likely upside down."""


def read_hierarchy(
    source: Any, direction: Direction | None = None, labels: Labels | None = None
) -> tuple[tuple[str, ...], Pairs]:
    """Read names and (child, parent) pairs of their numbers from one of several forms.

    Args:
        direction: the direction of edges. None means "child-parent", with a warning if that looks wrong.

    Returns:
        The labels in column order, and the distinct pairs.

    Example:
        >>> read_hierarchy({"cat": "animal", "dog": "animal"})
        (('cat', 'animal', 'dog'), ((0, 1), (2, 1)))
    """
    if direction not in (None, "child-parent", "parent-child"):
        raise ValueError(f"hierarchy: edges must be 'child-parent' or 'parent-child', not {brief(direction)}")
    nodes, edges, certain = _nodes_and_edges(source, direction)
    names, number = _names(nodes, labels)
    turned = direction == "parent-child" and not certain
    found = tuple(sorted({(number[b], number[a]) if turned else (number[a], number[b]) for a, b in edges}))
    _refuse_cycle(names, found)
    if direction is None and not certain:
        _notice_inversion(names, found, least=2 if _is_list(source) else 1)
    return names, found


def neighbours(count: int, pairs: Pairs) -> tuple[list[list[int]], list[list[int]]]:
    """The parents and the children of each label."""
    parents: list[list[int]] = [[] for _ in range(count)]
    children: list[list[int]] = [[] for _ in range(count)]
    for child, parent in pairs:
        parents[child].append(parent)
        children[parent].append(child)
    return parents, children


# forms ---------------------------------------------------------------------------------------------------------------


def _nodes_and_edges(source: Any, direction: Direction | None) -> tuple[list[Any], list[tuple[Any, Any]], bool]:
    """All nodes in order of appearance, the edges, and whether these are certainly (child, parent) pairs."""
    certain = False
    if hasattr(source, "nodes") and hasattr(source, "is_directed"):
        if not source.is_directed():
            raise LabelError("hierarchy: the graph must be directed: nx.DiGraph with edges from child to parent")
        return list(source.nodes), [(edge[0], edge[1]) for edge in source.edges()], certain
    if isinstance(source, str | bytes):
        raise LabelError(f"hierarchy: edges must be (child, parent) pairs, not the string {brief(source)}")
    if isinstance(source, Mapping):
        entries: Iterable[tuple[Any, Any]] = _of_mapping(source)
    elif hasattr(source, "columns") and hasattr(source, "to_numpy"):
        certain, entries = _of_frame(source)
    elif isinstance(source, Iterable):
        entries = _of_pairs(source)
    else:
        raise LabelError(f"hierarchy: expected pairs, a dict, a data frame or a graph, not {brief(source)}")
    nodes: dict[Any, None] = {}
    edges: list[tuple[Any, Any]] = []
    for first, second in entries:
        present = [node for node in (first, second) if not _missing(node)]
        for node in present:
            _check_hashable(node)
            nodes[node] = None
        if len(present) == 2:
            edges.append((first, second))
    return list(nodes), edges, certain


def _of_mapping(source: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for key, value in source.items():
        several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
        others = list(value) if several else [value]
        yield key, None
        for other in others:
            yield key, other


def _of_frame(source: Any) -> tuple[bool, Iterator[tuple[Any, Any]]]:
    names = [str(name).lower() for name in source.columns]
    certain = names.count("child") == names.count("parent") == 1
    if not certain and len(names) != 2:
        raise LabelError(
            f"hierarchy: the frame has columns {brief(list(source.columns))}; it needs 'child' and 'parent', or two"
        )
    first, second = (names.index("child"), names.index("parent")) if certain else (0, 1)
    rows = source.to_numpy().tolist()
    return certain, ((row[first], row[second]) for row in rows)


def _of_pairs(source: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for edge in source:
        if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
            raise LabelError(f"hierarchy: an edge must be a (child, parent) pair, not {brief(edge)}")
        first, second = edge
        for name in (first, second):
            if _missing(name):
                raise LabelError(f"hierarchy: a label must be a non-empty string, not {brief(name)}")
        yield first, second


def _is_list(source: Any) -> bool:
    return not isinstance(source, Mapping) and not hasattr(source, "nodes") and not hasattr(source, "columns")


def _missing(node: Any) -> bool:
    """Whether an entry of a dict or data frame is None or NaN, which means "no parent"."""
    return node is None or (isinstance(node, float) and node != node)


def _check_hashable(node: Any) -> None:
    try:
        hash(node)
    except TypeError:
        raise LabelError(f"hierarchy: a label must be a non-empty string, not {brief(node)}") from None


# names ---------------------------------------------------------------------------------------------------------------


def _names(nodes: Sequence[Any], labels: Labels | None) -> tuple[tuple[str, ...], dict[Any, int]]:
    """The labels in column order, and the column of each node."""
    if isinstance(labels, Mapping):
        keys: list[Any] = list(labels)
        names = label_names(labels.values(), "hierarchy")
    elif labels is not None:
        names = label_names(labels, "hierarchy")
        keys = list(names)
    elif not nodes:
        raise LabelError("hierarchy: there must be at least one label")
    else:
        for node in nodes:
            if not isinstance(node, str) or not node:
                hint = "" if isinstance(node, str) else "; labels={node: name} gives other nodes a name"
                raise LabelError(f"hierarchy: a label must be a non-empty string, not {brief(node)}{hint}")
        keys, names = list(nodes), tuple(nodes)
    number = {key: place for place, key in enumerate(keys)}
    unlisted = [node for node in nodes if node not in number]
    if unlisted:
        more = f" (and {len(unlisted) - 1} more)" if len(unlisted) > 1 else ""
        raise LabelError(f"hierarchy: {brief(unlisted[0])}{more} is in the edges but not in labels=")
    return names, number


# checks --------------------------------------------------------------------------------------------------------------


def _notice_inversion(names: tuple[str, ...], pairs: Pairs, least: int) -> None:
    """Warn if the edges make sense only the other way round.

    Args:
        least: how many extra parents make it obvious that a forest is upside down.
    """
    parents, children = neighbours(len(names), pairs)
    further = sum(len(above) - 1 for above in parents if above)
    forest_if_turned = further >= least and all(len(below) <= 1 for below in children)
    roots, leaves = (sum(not near for near in kind) for kind in (parents, children))
    if forest_if_turned or (len(names) >= _MANY and roots >= 4 * leaves):
        most = max(range(len(names)), key=lambda v: len(parents[v]))
        warnings.warn(
            f"hierarchy: the edges look inverted: {names[most]!r} would have {len(parents[most])} parents, and "
            f"{roots} of {len(names)} labels none. If edges lead from parent to child, pass edges='parent-child'; "
            "if they are right, pass edges='child-parent'",
            stacklevel=4,
        )


def _refuse_cycle(names: tuple[str, ...], pairs: Pairs) -> None:
    """Remove labels whose parents are all removed; the rest lies on or below a cycle."""
    parents, children = neighbours(len(names), pairs)
    left = [len(above) for above in parents]
    ready = [v for v, count in enumerate(left) if not count]
    while ready:
        for child in children[ready.pop()]:
            left[child] -= 1
            if not left[child]:
                ready.append(child)
    stuck = next((v for v, count in enumerate(left) if count), None)
    if stuck is None:
        return
    place: dict[int, int] = {}
    walk: list[int] = []
    while stuck not in place:
        place[stuck] = len(walk)
        walk.append(stuck)
        stuck = next(parent for parent in parents[stuck] if left[parent])
    cycle = [names[v] for v in walk[place[stuck] :]]
    shown = cycle if len(cycle) <= 12 else [*cycle[:10], "…", cycle[-1]]
    raise LabelError(f"hierarchy: the edges have a cycle: {' -> '.join([*shown, cycle[0]])}")
