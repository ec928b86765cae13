"""The command line: one module for each group of commands, gathered in `app`."""

from semprola.cli.app import main

__all__ = ["main"]
