"""`semprola cache`."""

from __future__ import annotations

from typing import Annotated

import typer

from semprola.cli.output import emit
from semprola.compiler import cache


def cache_command(
    clear: Annotated[bool, typer.Option("--clear", help="remove every circuit")] = False,
    size: Annotated[
        bool, typer.Option("--size", help="say how many circuits there are and how large (the default)")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Say what the cache of compiled circuits holds, or empty it.

    Example: semprola cache --clear
    """
    if clear:
        removed = cache.clear()
        emit({"folder": str(removed.folder), "removed": removed.entries, "bytes": removed.bytes}, as_json)
        return
    found = cache.usage()
    emit({"folder": str(found.folder), "circuits": found.entries, "bytes": found.bytes}, as_json)
