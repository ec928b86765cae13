"""`semprola playground`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from semprola.cli.output import keep


def playground_command(
    port: Annotated[int, typer.Option(help="the port on this machine; 0 for any free port", min=0, max=65535)] = 8700,
    model: Annotated[Path | None, typer.Option(help="a trained model, or a folder of models, to open")] = None,
    data: Annotated[Path | None, typer.Option(help="a table with rows for the model")] = None,
    timeout: Annotated[float, typer.Option(help="limit on each compilation, in seconds", min=0.1, max=600)] = 10.0,
    no_open: Annotated[bool, typer.Option("--no-open", help="do not open the page in a browser")] = False,
) -> None:
    """Try rules in the browser, also on the predictions of a model.

    The page shows the circuit of the rules, the states that obey them, and what they do to a network's beliefs.

    The page is served to this machine only. Ctrl-C stops it and leaves nothing behind.

    Example: semprola playground --model model --data animals.csv
    """
    from semprola.playground.limits import Limits
    from semprola.playground.server import serve

    keep("the playground has stopped")
    serve(port, folder=model, data=data, open_page=not no_open, limits=Limits(seconds=timeout), say=_say)


def _say(text: str) -> None:
    typer.echo(text)
