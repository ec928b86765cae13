"""Records of measurements: a run that did less than an earlier one does not replace it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from benchmarks.cases import cases
from semprola._files import write_atomically


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
        some = ", ".join(" of ".join(key) for key in lost[:3])
        typer.echo(
            f"{path} is kept: it has {len(lost)} measurements that this run lacks, such as {some}. "
            f"The new ones are in {target}",
            err=True,
        )
    return not lost


def measured(result: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Engine, task and circuit of every measurement."""
    return {(row["engine"], row["task"], row["circuit"]) for row in result["rows"] if "cpu_ms" in row}


def _lost(path: Path, result: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What the file has measured and the result has not, of circuits that there still are."""
    if not path.is_file():
        return []
    known = {case.name for case in cases()}
    old = {key for key in measured(json.loads(path.read_text(encoding="utf-8"))) if key[2] in known}
    return sorted(old - measured(result))
