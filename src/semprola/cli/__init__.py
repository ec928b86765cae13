"""The command line: one module per group of commands, collected in `app`."""

from semprola.cli.app import main

__all__ = ["main"]
