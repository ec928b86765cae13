"""Regular expressions over tags, with intersection and negation, as automata: Brzozowski's derivatives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from semprola.sequences.machines import TagMachine


@dataclass(frozen=True, eq=False)
class Term:
    """An expression. Equal ones are the same object, made by :class:`Terms`.

    Attributes:
        kind: "tags" (one position with one of some tags), "then", "or", "and", "not" or "repeat".
        tags: the numbers of the tags.
        parts: the operands.
        times: the least and the most repetitions; None if there is no limit.
        empty: whether it matches the empty sequence.
    """

    kind: str
    tags: frozenset[int]
    parts: tuple[Term, ...]
    times: tuple[int, int | None]
    empty: bool


class Terms:
    """Makes expressions over a number of tags, and their automata.

    Example:
        >>> terms = Terms(2)
        >>> a, any_tag = terms.one([0]), terms.one([0, 1])
        >>> no_a = terms.negation(terms.then([terms.repeat(any_tag), a, terms.repeat(any_tag)]))
        >>> terms.machine(no_a).accepts([1, 1]), terms.machine(no_a).accepts([1, 0])
        (True, False)
    """

    def __init__(self, num_tags: int) -> None:
        self.num_tags = num_tags
        self._made: dict[tuple[object, ...], Term] = {}
        self._after: dict[tuple[Term, int], Term] = {}
        self.nothing = self._make("or", empty=False)
        self.blank = self._make("then", empty=True)

    def one(self, tags: Iterable[int]) -> Term:
        """One position with one of these tags."""
        chosen = frozenset(tags)
        return self._make("tags", tags=chosen, empty=False) if chosen else self.nothing

    def then(self, parts: Iterable[Term]) -> Term:
        """One part after the other."""
        flat = [piece for part in parts for piece in (part.parts if part.kind == "then" else (part,))]
        if self.nothing in flat:
            return self.nothing
        if len(flat) == 1:
            return flat[0]
        return self._make("then", tuple(flat), empty=all(part.empty for part in flat))

    def either(self, parts: Iterable[Term]) -> Term:
        """What at least one part matches."""
        flat = self._flat("or", parts)
        single = [part for part in flat if part.kind == "tags"]
        if len(single) > 1:
            flat = [part for part in flat if part.kind != "tags"]
            flat += [self.one(tag for part in single for tag in part.tags)]
        if len(flat) == 1:
            return flat[0]
        return self._make("or", tuple(flat), empty=any(part.empty for part in flat))

    def both(self, parts: Iterable[Term]) -> Term:
        """What all parts match."""
        flat = self._flat("and", parts)
        if self.nothing in flat:
            return self.nothing
        if len(flat) == 1:
            return flat[0]
        return self._make("and", tuple(flat), empty=all(part.empty for part in flat))

    def negation(self, part: Term) -> Term:
        """Every sequence that the part does not match."""
        return part.parts[0] if part.kind == "not" else self._make("not", (part,), empty=not part.empty)

    def repeat(self, part: Term, least: int = 0, most: int | None = None) -> Term:
        """The part, repeated."""
        if most == 0 or part is self.blank:
            return self.blank
        if part is self.nothing:
            return self.nothing if least else self.blank
        if part.empty:
            least = 0  # the part may match nothing, which is no repetition
        if (least, most) == (1, 1):
            return part
        return self._make("repeat", (part,), times=(least, most), empty=least == 0)

    def machine(self, term: Term) -> TagMachine:
        """The automaton of an expression: a state is what must match the rest of the sequence."""

        def step(state: Term, tag: int) -> Term | None:
            after = self.after(state, tag)
            return None if after is self.nothing else after

        return TagMachine.explored(term, step, lambda state: state.empty, self.num_tags)

    def after(self, term: Term, tag: int) -> Term:
        """The derivative: what matches the rest of the sequences that begin with the tag."""
        known = self._after.get((term, tag))
        if known is None:
            known = self._after[term, tag] = self._derivative(term, tag)
        return known

    def _derivative(self, term: Term, tag: int) -> Term:
        if term.kind == "tags":
            return self.blank if tag in term.tags else self.nothing
        if term.kind == "or":
            return self.either(self.after(part, tag) for part in term.parts)
        if term.kind == "and":
            return self.both(self.after(part, tag) for part in term.parts)
        if term.kind == "not":
            return self.negation(self.after(term.parts[0], tag))
        if term.kind == "repeat":
            least, most = term.times
            rest = self.repeat(term.parts[0], max(least - 1, 0), None if most is None else most - 1)
            return self.then([self.after(term.parts[0], tag), rest])
        ways = []
        for i, part in enumerate(term.parts):
            ways.append(self.then([self.after(part, tag), *term.parts[i + 1 :]]))
            if not part.empty:
                break
        return self.either(ways)

    def _flat(self, kind: str, parts: Iterable[Term]) -> list[Term]:
        """Distinct operands in a fixed order: otherwise there might be no end of derivatives."""
        found = {piece for part in parts for piece in (part.parts if part.kind == kind else (part,))}
        return sorted(found, key=id)

    def _make(
        self,
        kind: str,
        parts: tuple[Term, ...] = (),
        tags: frozenset[int] = frozenset(),
        times: tuple[int, int | None] = (1, 1),
        *,
        empty: bool,
    ) -> Term:
        key = (kind, tags, parts, times)
        if key not in self._made:
            self._made[key] = Term(kind, tags, parts, times, empty)
        return self._made[key]
