"""Sequences of tags: random rules, compared with all sequences of a length."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import sequence_oracle
import torch
from torch import Tensor

import semprola as sp

from .shrinking import fewer, simpler_text

TAGS = ("B", "I", "O")
INF = float("inf")


@dataclass(frozen=True)
class SequenceCase:
    """Plain data, as `Case`.

    Args:
        rules: Python texts; all of them must hold.
        more: a further rule to ask about.
        lengths: of the sequences of a batch; None for a single sequence without a batch.
    """

    seed: int
    rules: tuple[str, ...]
    more: str = "'.*'"
    transitions: bool = True
    lengths: tuple[int, ...] | None = None
    positions: int = 2
    dtype: str = "float64"
    engine: str = "torch"

    def simpler(self) -> Iterator[SequenceCase]:
        for rules in fewer(self.rules):
            yield replace(self, rules=tuple(rules))
        for name, plain in {"more": "'.*'", "transitions": False, "lengths": None, "dtype": "float64"}.items():
            if getattr(self, name) != plain:
                yield replace(self, **{name: plain})
        for lengths in fewer(self.lengths or ()):
            if lengths:
                yield replace(self, lengths=tuple(lengths))
        if self.positions > 1:
            yield replace(self, positions=self.positions - 1, lengths=None)
        for i, rule in enumerate(self.rules):
            for text in simpler_text(rule):
                yield replace(self, rules=(*self.rules[:i], text, *self.rules[i + 1 :]))


def draw_sequences(rng: random.Random) -> SequenceCase:
    """A random case; its rules may leave nothing."""
    positions = rng.randint(1, 4)
    lengths = tuple(rng.randint(1, positions) for _ in range(rng.randint(1, 3))) if rng.random() < 0.7 else None
    return SequenceCase(
        seed=rng.randrange(10**6),
        rules=tuple(_rule(rng) for _ in range(rng.choice([0, 1, 1, 2]))),
        more=_rule(rng),
        transitions=rng.random() < 0.7,
        lengths=lengths,
        positions=positions,
        dtype=rng.choice(["float64", "float32"]),
        engine=rng.choice(["torch", "auto"]),
    )


def _rule(rng: random.Random) -> str:
    some = rng.sample(TAGS, rng.randint(1, 2))
    count = f"sp.{rng.choice(['at_most', 'at_least', 'exactly'])}({rng.randint(0, 2)}, {some})"
    neighbour = rng.choice(["prev", "next", "tag"])
    a, b, c = (rng.choice(TAGS) for _ in range(3))
    edge = rng.choice(["first", "last"])
    return rng.choice(
        [
            repr(_pattern(rng, 2)),
            repr(_pattern(rng, 2)),
            repr(f"!(.* {a} .* {b} .*)"),
            count,
            f"({count} | sp.at_least(1, ['{a}']))",
            f"~{count}",
            f"sp.Bool('{a}') >> (sp.Bool('{neighbour}={b}') | sp.Bool('{edge}'))",
            f"~(sp.Bool('prev={a}') & sp.Bool('{b}') & sp.Bool('next={c}'))",
            f"sp.Bool('{edge}') >> ~sp.Bool('{a}')",
            "sp.constraints.bio(['B', 'I', 'O'])",
        ]
    )


def _pattern(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return rng.choice([*TAGS, "."])
    a, b = _pattern(rng, depth - 1), _pattern(rng, depth - 1)
    chance = rng.random()
    if chance < 0.3:
        return f"({a})" + rng.choice(["*", "+", "?"])
    if chance < 0.4:
        return f"!({a} {b})"
    return f"({a} {rng.choice(['', '', '|', '&'])} {b})"


# what rules mean ------------------------------------------------------------------------------------------------------


def obeys(rule: str, y: tuple[str, ...]) -> bool:
    """Whether a sequence obeys a rule, by the definition."""
    made = eval(rule, {"sp": sp})
    if isinstance(made, str):
        return (0, len(y)) in _spans(tuple(re.findall(r"[A-Z.]|[()|&!*+?]", made)), y)
    names = set(made.labels)
    if names <= set(TAGS) and ("sp.at" in rule or "sp.exactly" in rule):
        ones = {tag: y.count(tag) for tag in TAGS}
        return bool(eval(rule, {"sp": _Counts(ones)}))
    return all(made.evaluate(_at(y, t, names)) for t in range(len(y)))


def _at(y: tuple[str, ...], t: int, names: set[str]) -> dict[str, int]:
    here = {f"tag={y[t]}", y[t], *(["first"] if t == 0 else []), *(["last"] if t == len(y) - 1 else [])}
    here |= {f"prev={y[t - 1]}"} if t else set()
    here |= {f"next={y[t + 1]}"} if t + 1 < len(y) else set()
    return {name: int(name in here) for name in names}


class _Counts:
    """Stands for `semprola` in a rule that counts."""

    def __init__(self, ones: dict[str, int]) -> None:
        self.ones = ones

    def at_most(self, k: int, tags: list[str]) -> Any:
        return _Fact(sum(self.ones[tag] for tag in tags) <= k)

    def at_least(self, k: int, tags: list[str]) -> Any:
        return _Fact(sum(self.ones[tag] for tag in tags) >= k)

    def exactly(self, k: int, tags: list[str]) -> Any:
        return _Fact(sum(self.ones[tag] for tag in tags) == k)


class _Fact(int):
    def __invert__(self) -> Any:
        return _Fact(not self)

    def __or__(self, other: Any) -> Any:
        return _Fact(bool(self) or bool(other))


def _spans(tokens: tuple[str, ...], y: tuple[str, ...]) -> set[tuple[int, int]]:
    """All (start, end) that a pattern matches; "!" is before "*", that before what follows, then "&", then "|"."""
    every = {(i, j) for i in range(len(y) + 1) for j in range(i, len(y) + 1)}
    nothing = {(i, i) for i in range(len(y) + 1)}
    place = 0

    def either() -> set[tuple[int, int]]:
        nonlocal place
        found = both()
        while place < len(tokens) and tokens[place] == "|":
            place += 1
            found = found | both()
        return found

    def both() -> set[tuple[int, int]]:
        nonlocal place
        found = follow()
        while place < len(tokens) and tokens[place] == "&":
            place += 1
            found = found & follow()
        return found

    def follow() -> set[tuple[int, int]]:
        found = nothing
        while place < len(tokens) and tokens[place] not in "|&)":
            found = _then(found, repeated())
        return found

    def repeated() -> set[tuple[int, int]]:
        nonlocal place
        found = one()
        while place < len(tokens) and tokens[place] in "*+?":
            sign, place = tokens[place], place + 1
            more = found
            if sign != "?":
                for _ in y:
                    more = more | _then(more, found)
            found = more if sign == "+" else more | nothing
        return found

    def one() -> set[tuple[int, int]]:
        nonlocal place
        token, place = tokens[place], place + 1
        if token == "!":
            return every - one()
        if token == "(":
            found = either()
            place += 1
            return found
        return {(t, t + 1) for t in range(len(y)) if token in (".", y[t])}

    return either()


def _then(a: set[tuple[int, int]], b: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(i, k) for i, j in a for start, k in b if start == j}


# a case brought to life -----------------------------------------------------------------------------------------------


class SequenceWorld:
    """The layer, its distribution p, and for each row the list of all sequences that obey.

    Raises:
        UnsatisfiableError: no sequence of one of the lengths obeys.
    """

    def __init__(self, case: SequenceCase) -> None:
        self.source, self.dtype = case, getattr(torch, case.dtype)
        self.generator = torch.Generator().manual_seed(case.seed)
        self.rows = case.lengths or (case.positions,)
        self.tolerance = 1e-8 if case.dtype == "float64" else 1e-4
        self.layer = sp.SequenceSPL(TAGS, [eval(rule, {"sp": sp}) for rule in case.rules], case.transitions)
        self.layer.to(self.dtype)
        for weight in self.layer.parameters():
            weight.data.normal_(generator=self.generator)
        shape = () if case.lengths is None else (len(case.lengths),)
        self.batch = shape
        self.logits = torch.randn(*shape, case.positions, len(TAGS), dtype=self.dtype, generator=self.generator)
        self.p = self.at(self.logits)
        flat = self.logits.reshape(-1, case.positions, len(TAGS))
        self.listed = [
            sequence_oracle.listed(self.layer, row[:length]) for row, length in zip(flat, self.rows, strict=True)
        ]

    def at(self, logits: Tensor) -> Any:
        return self.layer(logits, lengths=None if self.source.lengths is None else list(self.source.lengths))

    def close(self, actual: Tensor, expected: Any) -> None:
        wanted = torch.stack(expected) if isinstance(expected, list) else expected
        actual = actual.detach().double().reshape(wanted.shape)
        torch.testing.assert_close(actual, wanted.detach().double(), atol=self.tolerance, rtol=self.tolerance)

    def each(self, of: Callable[[Any], Tensor]) -> list[Tensor]:
        return [of(row) for row in self.listed]

    def padded(self, y: Tensor) -> Tensor:
        return torch.cat([y, torch.full((self.source.positions - len(y),), -1)])

    def stacked(self, rows: list[Tensor]) -> Tensor:
        return torch.stack([self.padded(y) for y in rows]).reshape(*self.batch, self.source.positions)


def possible(case: SequenceCase, length: int) -> set[tuple[int, ...]]:
    """All sequences of a length that obey, by the definition."""
    return {
        y
        for y in itertools.product(range(len(TAGS)), repeat=length)
        if all(obeys(rule, tuple(TAGS[i] for i in y)) for rule in case.rules)
    }


def program(case: SequenceCase, world: SequenceWorld | None) -> list[str]:
    """The case as lines of plain Python, up to the distribution p."""
    lines = [
        "import torch",
        "import semprola as sp",
        f"sp.engine.set_engine({case.engine!r})",
        f"torch.manual_seed({case.seed})",
    ]
    lines.append(
        f"layer = sp.SequenceSPL({list(TAGS)}, [{', '.join(case.rules)}], {case.transitions}).to(torch.{case.dtype})"
    )
    lines += ["for weight in layer.parameters():", "    weight.data.normal_()"]
    shape = () if case.lengths is None else (len(case.lengths),)
    logits = world.logits.tolist() if world is not None else f"zeros({(*shape, case.positions, len(TAGS))})"
    lines.append(f"logits = torch.tensor({logits}, dtype=torch.{case.dtype})")
    lines.append(f"p = layer(logits, lengths={None if case.lengths is None else list(case.lengths)})")
    return lines
