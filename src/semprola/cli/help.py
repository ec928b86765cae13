"""The help texts: in colour where the terminal has it, with examples that can be pasted whole."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup

from semprola.cli.output import painted

_EXAMPLE = "Example: "


def _context(base: Any) -> Any:
    """The class of contexts whose help is written by the formatter below; typer keeps its base classes to itself."""
    plain = base.context_class
    return type("Context", (plain,), {"formatter_class": type("Formatter", (_Written, plain.formatter_class), {})})


class _Written:
    """What differs from the formatter that typer brings along."""

    width: int
    current_indent: int

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        args = re.sub(r"[{}]", "", args)
        super().write_usage(prog, args, prefix)  # type: ignore[misc]

    def write_heading(self, heading: str) -> None:
        self.write(f"{'':>{self.current_indent}}{painted(f'{heading}:', 'bold', sys.stdout)}\n")  # type: ignore[attr-defined]

    def write_text(self, text: str) -> None:
        words, found, command = text.partition(_EXAMPLE)
        if words.strip() or not found:
            super().write_text(words.rstrip())  # type: ignore[misc]
        if found:
            gap = "\n" if words.strip() else ""
            self.write(gap + f"{'':>{self.current_indent}}Example:\n\n" + self._pasteable(command))  # type: ignore[attr-defined]

    def write_dl(self, rows: Sequence[tuple[str, str]], *args: Any, **options: Any) -> None:
        plain = [(re.sub(r" range\b", "", first, flags=re.IGNORECASE), _without_range(text)) for first, text in rows]
        super().write_dl(plain, *args, **options)  # type: ignore[misc]

    def _pasteable(self, command: str) -> str:
        """A command over several lines, if it is long, that a shell joins again."""
        indent = " " * (self.current_indent + 2)
        parts = re.findall(r'(?:"[^"]*"|\S)+', " ".join(command.split()))
        whole = [part.replace(" ", "\0") for part in parts]
        lines = textwrap.wrap(
            " ".join(whole),
            self.width - 4,
            initial_indent=indent,
            subsequent_indent=indent + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        return " \\\n".join(lines).replace("\0", " ") + "\n"


def _without_range(text: str) -> str:
    """The help of an option without the bounds of its numbers, which errors tell."""
    return re.sub(r"(?:; |\[)[-\d.]*(?:<=?)?x(?:[<>]=?[-\d.]+)?\]", lambda found: "]" * (found[0][0] == ";"), text)


class Group(TyperGroup):
    """All commands."""

    context_class = _context(TyperGroup)


class Command(TyperCommand):
    """One command."""

    context_class = _context(TyperCommand)
