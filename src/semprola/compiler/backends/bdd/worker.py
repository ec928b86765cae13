"""Binary decision diagrams in the worker process: oxidd runs the same programs as PySDD.

Like the PySDD worker, which loads this file, it does not import semprola.
"""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Callable
from typing import Any

LITERAL, AND, OR, NOT, ITE, CONSTANT = range(6)
_PROGRESS_SECONDS = 0.2
_MOST_NODES = 1 << 27
_BYTES_PER_NODE = 48
_SMALL_CACHE, _LARGE_CACHE, _LONG = 1 << 16, 1 << 20, 2000
"""Entries of the operation cache, and the steps from which a program gets the large one (0.2 seconds to set up)."""


def answer(
    header: dict[str, Any],
    arrays: dict[str, array[int]],
    free_after: dict[int, list[int]],
    report: Callable[[int], None],
) -> tuple[dict[str, Any], dict[str, array[int]]]:
    """Run a program; return the diagrams of its roots, or which budget ran out.

    Args:
        header: "engine" is "bdd" or "zdd"; "path" is where oxidd is installed; "max_nodes" and "memory" are limits.
        arrays: the program, and "position", the level of each variable.
        free_after: for each step, the values that no later step needs.
        report: called several times per second with the number of nodes.
    """
    if header["path"] not in sys.path:
        sys.path.append(header["path"])
    import oxidd.bdd
    import oxidd.zbdd

    most, memory = header.get("max_nodes"), header.get("memory")
    # garbage stays until it is collected, so the capacity exceeds the number of nodes that may be alive
    capacity = min(_MOST_NODES, (memory or 1 << 40) // _BYTES_PER_NODE, 4 * (most or _MOST_NODES) + 100_000)
    make = oxidd.zbdd.ZBDDManager if header["engine"] == "zdd" else oxidd.bdd.BDDManager
    cached = _LARGE_CACHE if len(arrays["op"]) > _LONG else _SMALL_CACHE
    manager = make(max(1024, capacity), min(cached, max(1024, capacity)), 1)
    manager.add_vars(len(arrays["position"]))
    try:
        roots = _run(manager, most, arrays, free_after, report)
    except MemoryError:  # oxidd's own error is a MemoryError
        return {"exceeded": "nodes" if most is not None else "memory"}, {}
    if roots is None:
        return {"exceeded": "nodes"}, {}
    return {}, _flatten(manager, roots)


def _run(
    manager: Any,
    most: int | None,
    arrays: dict[str, array[int]],
    free_after: dict[int, list[int]],
    report: Callable[[int], None],
) -> list[Any] | None:
    op, a, b, c, position = (arrays[name] for name in ("op", "a", "b", "c", "position"))
    values: list[Any] = [None] * len(op)
    reported = time.monotonic()
    for i, kind in enumerate(op):
        if kind == LITERAL:
            level = position[abs(a[i]) - 1]
            values[i] = manager.var(level) if a[i] > 0 else manager.not_var(level)
        elif kind == AND:
            values[i] = values[a[i]] & values[b[i]]
        elif kind == OR:
            values[i] = values[a[i]] | values[b[i]]
        elif kind == ITE:
            values[i] = values[a[i]].ite(values[b[i]], values[c[i]])
        elif kind == NOT:
            values[i] = ~values[a[i]]
        else:
            values[i] = manager.true() if a[i] else manager.false()
        for last in free_after.get(i, ()):
            values[last] = None
        if most is not None and manager.num_inner_nodes() > most:
            manager.gc()
            if manager.num_inner_nodes() > most:
                return None
        if (now := time.monotonic()) - reported > _PROGRESS_SECONDS:
            reported = now
            report(manager.num_inner_nodes())
    return [values[root] for root in arrays["roots"]]


def _flatten(manager: Any, roots: list[Any]) -> dict[str, array[int]]:
    """The nodes below the roots, children first: level, low and high; 0 is false, 1 is true, node k is k + 2."""
    false, true = (manager.empty(), manager.base()) if hasattr(manager, "base") else (manager.false(), manager.true())
    number: dict[Any, int] = {false: 0, true: 1}
    level, low, high = array("i"), array("i"), array("i")
    stack = list(reversed(roots))
    while stack:
        node = stack[-1]
        if node in number:
            stack.pop()
            continue
        yes, no = node.cofactors()
        missing = [child for child in (no, yes) if child not in number]
        if missing:
            stack.extend(missing)
            continue
        number[node] = len(level) + 2
        level.append(node.node_level())
        low.append(number[no])
        high.append(number[yes])
        stack.pop()
    return {"level": level, "low": low, "high": high, "roots": array("i", [number[root] for root in roots])}
