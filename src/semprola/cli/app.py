"""The command line. Needs typer and rich (extra `cli`).

Importing this module and the modules of the commands must stay cheap, because `--help` imports all of them. The heavy
parts (numpy, the compiler, torch) are imported inside the functions.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

from semprola._version import __version__
from semprola.cli.messages import in_words
from semprola.cli.output import kept, painted
from semprola.errors import SemprolaError

COMMANDS = {
    "compile": "semprola.cli.compiling:compile_command",
    "count": "semprola.cli.compiling:count_command",
    "check": "semprola.cli.compiling:check_command",
    "draw": "semprola.cli.compiling:draw_command",
    "train": "semprola.cli.learning:train_command",
    "predict": "semprola.cli.learning:predict_command",
    "compare": "semprola.cli.comparing:compare_command",
    "playground": "semprola.cli.playground:playground_command",
    "cache": "semprola.cli.caching:cache_command",
}
"""Every command, in the order of the help, and the function (or typer application) that runs it."""

_INTERRUPTED = 130
"""The status that shells report for a program ended by Ctrl-C."""
_UNREAD = 141
"""The status that shells report for a program whose reader has gone, as in ``semprola predict … | head``."""


def main() -> None:
    """Entry point: exit status 0, 1 if a problem was found, 2 for bad input, 130 after Ctrl-C."""
    try:
        import typer
    except ImportError:
        print("the command line needs typer and rich: pip install 'semprola[cli]'", file=sys.stderr)
        raise SystemExit(2) from None
    try:
        build(typer)()
    except KeyboardInterrupt:
        _stop()


def build(typer: Any) -> Any:
    """The typer application."""
    from semprola.cli.help import Command, Group

    application = typer.Typer(
        name="semprola",
        cls=Group,
        help="Neural networks whose predictions obey logical constraints.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"semprola {__version__}")
            raise typer.Exit

    option = typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    application.callback()(_with_version(option))
    for name, place in COMMANDS.items():
        module, _, attribute = place.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if isinstance(command, typer.Typer):
            application.add_typer(command, name=name)
        else:
            application.command(name, cls=Command)(reporting_errors(command))
    return application


def _with_version(option: Any) -> Callable[..., None]:
    """A function whose only argument is the option; typer is imported late, so its annotation is set by hand."""

    def options(version: bool = False) -> None:
        pass

    options.__annotations__["version"] = Annotated[bool, option]
    return options


def reporting_errors(command: Callable[..., None]) -> Callable[..., None]:
    """The command, but errors in its input are reported in one line, and Ctrl-C says what was kept.

    A reader that has gone, as in ``| head``, ends it without a word.
    """

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        if hasattr(sys, "set_int_max_str_digits"):
            sys.set_int_max_str_digits(0)  # counts and weights may have any number of digits
        try:
            command(*args, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            with contextlib.suppress(OSError, ValueError):  # what is still buffered goes nowhere
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(_UNREAD) from None
        except (SemprolaError, ValueError, OSError) as error:
            print(painted("error:", "red", sys.stderr), in_words(error, options), file=sys.stderr)
            raise SystemExit(2) from None
        except KeyboardInterrupt:
            _stop()

    return run


def _stop() -> None:
    print(f"\ninterrupted: {kept()}", file=sys.stderr)
    raise SystemExit(_INTERRUPTED) from None


if __name__ == "__main__":
    main()
