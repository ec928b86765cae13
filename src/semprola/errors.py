"""Everything that semprola raises on purpose: one line each, saying what is wrong and where."""

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
    """A circuit, data or results file is not what it should be."""


class LabelError(SemprolaError, ValueError):
    """A label is missing, unknown, repeated or of the wrong kind."""


class UnsatisfiableError(SemprolaError, ValueError):
    """The constraint has no model, or the given inputs or evidence leave none.

    Attributes:
        rules: rules of the constraint that contradict each other, as formulas; empty if they are not known.
    """

    def __init__(self, message: str, *, rules: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.rules = rules


class ViolationError(SemprolaError, ValueError):
    """Label vectors violate the constraint; the message names the first rows and the rule each breaks."""


class CompilationBudgetError(SemprolaError, RuntimeError):
    """A compilation ran out of its time, node or memory budget.

    Attributes:
        resource: what ran out: "time", "nodes" or "memory"; None if no single one did.
        limit: how much of it there was (seconds, nodes or bytes), None if only the machine set a limit.
        spent: how much of it was used, as far as that is known.
        phase: what the compilation was doing.
        nodes: how many nodes it had by then.
        tried: the back ends that had been started.
        decisions: how many steps a search had taken; 0 if there was none.
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
    """The query has no exact answer in time linear in this circuit; the message names what to use instead."""


class PropertyError(SemprolaError, ValueError):
    """The circuit lacks a structural property that an operation needs."""
