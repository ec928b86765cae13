"""Records of measurements: a run that did less than an earlier one does not replace it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from benchmarks.cases import cases
from semprola._files import write_atomically

Kind = tuple[str, ...]
"""What a measurement is of."""
_TELL_APART = ["circuit", "task", "engine", "layer", "labels", "q", "units", "mixtures", "batch", "threads", "wanted"]


def keep(path: Path, result: dict[str, Any]) -> bool:
    """Write the result, or, if the file has measurements that this run lacks, write beside it and say so.

    Returns:
        whether the result was written to the file itself.
    """
    lost = _lost(path, result)
    target = path.with_name(f"{path.stem}.partial.json") if lost else path
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, f"{json.dumps(result, indent=1)}\n".encode())
    if lost:
        some = ", ".join(" · ".join(key) for key in lost[:3])
        typer.echo(
            f"{path} is kept: it has {len(lost)} measurements that this run lacks, such as {some}. "
            f"The new ones are in {target}",
            err=True,
        )
    return not lost


def measured(result: dict[str, Any]) -> set[Kind]:
    """What every measurement is of: the part of the result, and there the circuit, task, engine, batch, threads."""
    found: set[Kind] = set()
    for part, rows in result.items():
        if not isinstance(rows, list):
            found |= {(part,)} if part not in ("conditions", "provenance", "assumed") else set()
            continue
        for row in rows:
            if "unable" not in row and "skipped" not in row:
                found.add((part, *(f"{key} {row[key]}" for key in _TELL_APART if key in row)))
    return found


def _lost(path: Path, result: dict[str, Any]) -> list[Kind]:
    """What the file has measured and the result has not, of circuits that there still are."""
    if not path.is_file():
        return []
    known = {f"circuit {case.name}" for case in cases()}
    lost = measured(json.loads(path.read_text(encoding="utf-8"))) - measured(result)
    return sorted(kind for kind in lost if kind[0] not in ("rows", "networks") or kind[1] in known)
