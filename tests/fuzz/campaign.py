"""Draws cases, runs their checks, and reports each kind of failure once, made smaller."""

from __future__ import annotations

import collections
import inspect
import linecache
import random
import re
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import test_against_oracle

import semprola as sp

from . import cases, constraint_checks, query_checks, refusals, sequence_checks, sequences, split_checks

_SECONDS = 120
"""A case that takes longer hangs."""
_REFUSALS = 12
"""Number of bad values that a case is tried with."""

Step = tuple[str, Callable[[], None]]


class Hangs(Exception):
    """A check took too long."""


@dataclass(frozen=True)
class Failure:
    """One check of one case that failed."""

    number: int
    case: Any
    check: str
    error: BaseException

    @property
    def kind(self) -> tuple[str, str]:
        """What has to stay the same while the case is made smaller."""
        return self.check, type(self.error).__name__


@dataclass
class Tally:
    """What a campaign did, for each engine."""

    cases: collections.Counter[str] = field(default_factory=collections.Counter)
    checks: collections.Counter[str] = field(default_factory=collections.Counter)
    constraints: set[Any] = field(default_factory=set)
    failures: dict[tuple[str, str], Failure] = field(default_factory=dict)
    seen: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter)


def case_of(seed: int, number: int) -> Any:
    """The case of this number; a function of both."""
    rng = random.Random(f"{seed}/{number}")
    return sequences.draw_sequences(rng) if rng.random() < 0.15 else cases.draw_case(rng)


def run(
    case: Any, only: str | None = None, tally: Tally | None = None, share: float = 1.0
) -> Iterator[tuple[str, Any]]:
    """Names and errors of the checks that fail.

    Args:
        case: what to check.
        only: run just the check of this name, and whatever must come before it.
        tally: where to count checks.
        share: how many of the rarer checks to run; which ones depends on the seed of the case.
    """
    rng = random.Random(case.seed)
    before = sp.engine.get_engine()
    sp.engine.set_engine(case.engine)
    try:
        for name, step in _steps(case):
            rare = name.split(" ")[0] in ("constraint:", "query:", "refuses:")
            skipped = rare and rng.random() > (share if name[0] != "r" else share * _REFUSALS / len(refusals.BAD))
            must = name in ("compile", "build")
            if not must and (skipped if only is None else name != only):
                continue
            if tally is not None:
                tally.checks[case.engine] += 1
            try:
                with _time_limit(name):
                    step()
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a panic of another language is no Exception
                yield name, error
                if not rare or name.startswith("c"):
                    return  # whatever comes after it would fail as well
    finally:
        sp.engine.set_engine(before)


def _steps(case: Any) -> Iterator[Step]:
    """All checks by name. Whether the constraint has a model must agree with its definition."""
    if isinstance(case, sequences.SequenceCase):
        yield from _sequence_steps(case)
        return
    made: dict[str, Any] = {}
    yield "compile", lambda: _compile(case, made)
    if "circuit" not in made:
        return
    c = made["compiled"]
    checks = (*constraint_checks.CHECKS, *split_checks.CHECKS)
    yield from ((f"constraint: {_name(f)}", lambda f=f: f(c)) for f in checks)
    if not c.columns:
        return
    yield "build", lambda: made.update(world=cases.FuzzWorld(case, c))
    if (w := made.get("world")) is None:
        return
    yield from ((_name(f), lambda f=f: f(w)) for f in test_against_oracle.CHECKS)
    yield from ((f"query: {_name(f)}", lambda f=f: f(w)) for f in query_checks.CHECKS)
    bad = refusals.BAD + (refusals.WITH_INPUTS if w.x is not None else ())
    yield from ((f"refuses: {text}", lambda text=text: refusals.refused(w, text)) for text in bad)


def _compile(case: Any, made: dict[str, Any]) -> None:
    compiled = made["compiled"] = cases.Compiled(case)
    try:
        made["circuit"] = compiled.circuit
    except sp.UnsatisfiableError as error:
        assert not compiled.meant.table.any(), f"refused although it has models: {error}"
        assert "\n" not in str(error)
        assert sp.rules.model_count(compiled.formula) == 0
        return
    assert compiled.meant.table.any(), "compiled although it has no model"


def _sequence_steps(case: sequences.SequenceCase) -> Iterator[Step]:
    made: dict[str, Any] = {}

    def build() -> None:
        try:
            made["world"] = sequences.SequenceWorld(case)
        except sp.UnsatisfiableError as error:
            lengths = case.lengths or (case.positions,)
            assert any(not sequences.possible(case, length) for length in lengths), f"refused: {error}"
            assert "\n" not in str(error)

    yield "build", build
    if (w := made.get("world")) is not None:
        yield from ((f"sequences: {_name(f)}", lambda f=f: f(w)) for f in sequence_checks.CHECKS)


def still_fails(case: Any, kind: tuple[str, str]) -> bool:
    """Whether a case fails in this way; one that cannot even be made fails in another."""
    try:
        return any((name, type(error).__name__) == kind for name, error in run(case, only=kind[0]))
    except Exception:
        return False


def program(failure: Failure) -> str:
    """Plain Python that shows the failure, and what failed."""
    case, world = failure.case, None
    before = sp.engine.get_engine()
    sp.engine.set_engine(case.engine)
    try:
        if isinstance(case, sequences.SequenceCase):
            world = None if failure.check == "build" else sequences.SequenceWorld(case)
            lines = sequences.program(case, world)
        else:
            if failure.check not in ("compile", "build") and not failure.check.startswith("constraint"):
                world = cases.FuzzWorld(case, cases.Compiled(case))
            lines = cases.program(case, world)
    except Exception:
        lines = [repr(case)]
    finally:
        sp.engine.set_engine(before)
    line = _failing_line(failure.error)
    if failure.check.startswith("refuses: "):
        lines.append(f"print({failure.check[9:]})  # must be an error")
    elif world is not None and (shown := _shown(failure, world)):
        lines.append(f"print({shown})")
    elif failure.check.startswith("constraint"):
        lines.append("print(circuit.labels, circuit.model_count(), circuit.enumerate())")
    error = "".join(traceback.format_exception_only(type(failure.error), failure.error)).strip()
    lines += [f"# {failure.check}: {line}", *(f"#   {part}" for part in error.split("\n")[:8])]
    return "\n".join(lines)


def _shown(failure: Failure, world: Any) -> str:
    """An answer that the failing check looks at."""
    checks = (*test_against_oracle.CHECKS, *query_checks.CHECKS, *sequence_checks.CHECKS)
    check = next(f for f in checks if _name(f) == failure.check.split(": ")[-1])
    for name in re.findall(r"w\.p\.(\w+)", inspect.getsource(check)):
        if isinstance(getattr(type(world.p), name, None), property):
            return f"p.{name}"
        if name in ("entropy", "to_dict", "enumerate_support"):
            return f"p.{name}()"
    return "p.enumerate_support(), p.log_prob(p.enumerate_support()).exp()"


def _failing_line(error: BaseException) -> str:
    """The innermost line of a check."""
    frames = [f for f, _ in traceback.walk_tb(error.__traceback__) if "/tests/" in f.f_code.co_filename]
    traces = {id(f): n for f, n in traceback.walk_tb(error.__traceback__)}
    for frame in reversed(frames):
        if frame.f_code.co_name not in ("close", "run", "_time_limit"):
            return linecache.getline(frame.f_code.co_filename, traces[id(frame)]).strip()
    return ""


@contextmanager
def _time_limit(name: str) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise Hangs(f"{name} takes more than {_SECONDS} seconds")

    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


def _name(check: Callable[..., Any]) -> str:
    return check.__name__.removeprefix("_")


def campaign(seed: int, numbers: Iterator[int], until: float, share: float, report: Callable[[Failure], None]) -> Tally:
    """Run cases until the numbers or the time (of `time.monotonic`) end; report each new kind of failure."""
    tally = Tally()
    for number in numbers:
        if time.monotonic() > until:
            break
        case = case_of(seed, number)
        tally.cases[case.engine] += 1
        tally.constraints.add(getattr(case, "constraint", None) or case.rules)
        for name, error in run(case, tally=tally, share=share):
            failure = Failure(number, case, name, error)
            tally.seen[failure.kind] += 1
            if failure.kind not in tally.failures:
                tally.failures[failure.kind] = failure
                report(failure)
    return tally
