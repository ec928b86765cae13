"""The errors that semprola raises. Each message is one line that says what is wrong and where."""

from __future__ import annotations


class SemprolaError(Exception):
    """Base class of all errors raised by semprola."""


class ParseError(SemprolaError, ValueError):
    """A formula or a formula file could not be read.

    Attributes:
        line, column: where in the text, counted from 1; None if that is not known.
    """

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line, self.column = line, column


class FormatError(SemprolaError, ValueError):
    """A circuit, data or results file is malformed."""


class LabelError(SemprolaError, ValueError):
    """A label is missing, unknown, repeated or of the wrong kind."""


class UnsatisfiableError(SemprolaError, ValueError):
    """The constraint has no model, or the given inputs or evidence leave none.

    Attributes:
        rules: rules of the constraint that contradict each other, as formulas; empty if unknown.
    """

    def __init__(self, message: str, *, rules: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.rules = rules


class ViolationError(SemprolaError, ValueError):
    """Label vectors violate the constraint; the message names the first such rows and the rule that each breaks."""


class CompilationBudgetError(SemprolaError, RuntimeError):
    """A compilation ran out of its time, node or memory budget.

    Attributes:
        resource: what ran out: "time", "nodes" or "memory" ("terms" for a disjunctive normal form); None if it was not
            a single one.
        limit: the budget for it (seconds, nodes, bytes or terms); None if only the machine set a limit.
        spent: how much of it was used; None if unknown.
        phase: what the compilation was doing.
        nodes: how many nodes it had built by then.
        tried: the back ends that had been started.
        decisions: how many decisions a search had made; 0 if there was no search.
    """

    def __init__(
        self,
        message: str,
        *,
        resource: str | None = None,
        limit: float | None = None,
        spent: float | None = None,
        phase: str = "",
        nodes: int = 0,
        tried: tuple[str, ...] = (),
        decisions: int = 0,
    ) -> None:
        super().__init__(message)
        self.resource, self.limit, self.spent = resource, limit, spent
        self.phase, self.nodes, self.tried, self.decisions = phase, nodes, tried, decisions


class IntractableError(SemprolaError, RuntimeError):
    """The query has no exact answer in time linear in the circuit's size; the message says what to use instead."""


class PropertyError(SemprolaError, ValueError):
    """The circuit lacks a structural property that an operation needs."""
