"""`semprola cache`."""

from __future__ import annotations

from typing import Annotated

import typer

from semprola.cli.output import emit


def cache_command(
    clear: Annotated[bool, typer.Option("--clear", help="remove all circuits")] = False,
    size: Annotated[
        bool, typer.Option("--size", help="show the number and size of its circuits (the default)")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Show the size of the cache of compiled circuits, or empty it.

    Example: semprola cache --clear
    """
    from semprola.compiler import cache

    if clear:
        removed = cache.clear()
        emit({"folder": str(removed.folder), "removed": removed.entries, "bytes": removed.bytes}, as_json)
        return
    found = cache.usage()
    emit({"folder": str(found.folder), "circuits": found.entries, "bytes": found.bytes}, as_json)
