"""`semprola cache`."""

from __future__ import annotations

from typing import Annotated

import typer

from semprola._words import count
from semprola.cli.output import emit


def cache_command(
    clear: Annotated[bool, typer.Option("--clear", help="remove all circuits")] = False,
    size: Annotated[
        bool, typer.Option("--size", help="show the number and size of its circuits (the default)")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Show how large the cache of compiled circuits is, or empty it.

    Example: semprola cache --clear
    """
    from semprola.compiler import cache

    if clear:
        removed = cache.clear()
        if as_json:
            emit({"folder": str(removed.folder), "removed": removed.entries, "bytes": removed.bytes}, True)
        else:
            print(f"removed {count(removed.entries, 'circuit')} ({_megabytes(removed.bytes)}) from {removed.folder}")
        return
    found = cache.usage()
    if as_json:
        emit({"folder": str(found.folder), "circuits": found.entries, "bytes": found.bytes}, True)
    else:
        print(f"{count(found.entries, 'circuit')} ({_megabytes(found.bytes)}) in {found.folder}")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
