"""Lists of rules: from a text with one rule per line, and from a conjunction."""

from __future__ import annotations

from collections.abc import Iterator

from semprola.errors import ParseError
from semprola.logic.cnf import Cnf
from semprola.logic.formula import Formula, Kind
from semprola.logic.parser import parse


def parse_rules(text: str, place: str = "") -> list[Formula]:
    """The rules of a text: one per line, or one formula over several lines.

    Args:
        text: the rules; ``#`` starts a comment.
        place: where the text comes from; error messages begin with it.

    Raises:
        ParseError: the text is neither; the message points to the farthest position that could be parsed.

    Example:
        >>> [str(rule) for rule in parse_rules("cat -> animal  # a comment\\ndog -> animal")]
        ['cat -> animal', 'dog -> animal']
    """
    rules = []
    for number, line in enumerate(text.split("\n")):
        if not line.split("#")[0].strip():
            continue
        try:
            rules.append(parse(line))
        except ParseError:
            alone = _error_of("\n" * number + line)  # this line at its position in the text
            break
    else:
        return rules
    try:
        return [parse(text)]
    except ParseError as whole:
        farthest = max((alone or whole), whole, key=lambda error: (error.line or 0, error.column or 0))
        raise ParseError(f"{place}{farthest}", line=farthest.line, column=farthest.column) from None


def conjuncts(formula: Formula) -> Iterator[Formula]:
    """The operands of a conjunction in order, including those of nested conjunctions and the clauses of files.

    Example:
        >>> [str(part) for part in conjuncts(parse("a & (b & (c | d))"))]
        ['a', 'b', 'c | d']
    """
    stack = [formula]
    while stack:
        node = stack.pop()
        if node.kind is Kind.AND:
            stack.extend(reversed(node.args))
        elif isinstance(node, Cnf):
            yield from node.clause_formulas()
        else:
            yield node


def literal_of(formula: Formula) -> tuple[str, bool] | None:
    """The name and the sign of an atom or a negated atom; None for any other formula.

    Example:
        >>> literal_of(parse("!a"))
        ('a', False)
    """
    if formula.kind is Kind.ATOM:
        return formula.name, True
    if formula.kind is Kind.NOT and formula.args[0].kind is Kind.ATOM:
        return formula.args[0].name, False
    return None


def _error_of(text: str) -> ParseError | None:
    try:
        parse(text)
    except ParseError as error:
        return error
    return None
