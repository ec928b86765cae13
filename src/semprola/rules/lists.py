"""Constraints in all the forms that users have: formulas, texts, pairs of a hierarchy, circuits and files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from semprola.circuit import Circuit
from semprola.compiler import compile
from semprola.compiler.sources import rules_of
from semprola.constraints import hierarchy
from semprola.errors import FormatError
from semprola.logic import Formula
from semprola.logic.places import joined


def read_rules(source: Any) -> list[Formula | Circuit]:
    """The rules of a constraint as a list, as far as they can be separated.

    Args:
        source: a formula or a family; text with one rule per line, or one formula on several lines; (child, parent)
            pairs of a hierarchy; a compiled circuit; the path of a file, see :func:`semprola.rules.read`; or None for
            no rules.

    Raises:
        ParseError: if the text is not a formula, or has no rule; the message names the file and the line.
        FormatError: if there is no such file, it is a folder, or its contents do not match its name.
        TypeError: if the source is something else.

    Example:
        >>> [str(rule) for rule in read_rules("cat -> animal  # a comment\\ndog -> animal")]
        ['cat -> animal', 'dog -> animal']
    """
    if source is None:
        return []
    if isinstance(source, Sequence) and not isinstance(source, str):
        if all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in source):
            return [hierarchy([tuple(pair) for pair in source])]
        raise TypeError(f"a list as a constraint must contain (child, parent) pairs, not {source!r:.60}")
    return rules_of(source)


def compile_rules(rules: Sequence[Formula | Circuit], labels: Sequence[str] | None = None, **limits: Any) -> Circuit:
    """One circuit for all rules.

    Args:
        rules: what must hold, from :func:`read_rules`.
        labels: the column order of y; by default the order in which the rules mention them.
        **limits: as for :func:`semprola.compile`.

    Raises:
        LabelError: if the rules mention a label that is not listed.
        FormatError: if a circuit is combined with other rules.
    """
    if len(rules) == 1:
        return compile(rules[0], labels=labels, **limits)
    if any(isinstance(rule, Circuit) for rule in rules):
        raise FormatError("a compiled circuit cannot be combined with other rules: pass formulas instead")
    whole = joined([rule for rule in rules if isinstance(rule, Formula)])
    return compile(whole, labels=labels, **limits)
