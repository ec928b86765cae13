"""The command line. Needs typer and rich (extra `cli`)."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

from semprola.errors import SemprolaError

COMMANDS = {
    "compile": "semprola.cli.compiling:compile_command",
    "count": "semprola.cli.compiling:count_command",
    "check": "semprola.cli.compiling:check_command",
    "draw": "semprola.cli.compiling:draw_command",
    "cache": "semprola.cli.caching:cache_command",
}
"""Every command, in the order of the help, and the function (or typer application) that does it."""


def main() -> None:
    """Entry point: exit status 0, 1 if a problem was found, 2 for bad input."""
    try:
        import typer
    except ImportError:
        print("the command line needs typer and rich: pip install 'semprola[cli]'", file=sys.stderr)
        raise SystemExit(2) from None
    build(typer)()


def build(typer: Any) -> Any:
    """The typer application."""
    application = typer.Typer(
        name="semprola",
        help="Neural networks whose predictions obey logical constraints.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for name, place in COMMANDS.items():
        module, _, attribute = place.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if isinstance(command, typer.Typer):
            application.add_typer(command, name=name)
        else:
            application.command(name)(reporting_errors(command))
    return application


def reporting_errors(command: Callable[..., None]) -> Callable[..., None]:
    """The command with what is wrong with its input said in one line."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except (SemprolaError, ValueError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            raise SystemExit(2) from None
        except KeyboardInterrupt:
            raise SystemExit(130) from None

    return run
