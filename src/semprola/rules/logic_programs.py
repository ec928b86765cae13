"""Logic programs: ProbLog text as a constraint, softmax heads and derived labels."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semprola.constraints.variables import Categorical
from semprola.errors import ParseError, SemprolaError, UnsatisfiableError
from semprola.logic import FALSE, TRUE, And, Bool, Formula, Iff, Or
from semprola.logic.messages import brief
from semprola.rules import grounding
from semprola.rules.reading import text_of

if TYPE_CHECKING:
    from torch import Tensor

    from semprola.distributions import ConstrainedDistribution

_REST = "none"


@dataclass(frozen=True)
class Head:
    """An independent choice of a program: a probabilistic fact, an annotated disjunction, or what a network says.

    Attributes:
        values: its values; a fact that is true or false has none, and is a plain label.
        probabilities: of the values, or that the fact is true; None if a network gives them.
        network: the name of the network.
        inputs: what the network reads.
    """

    values: tuple[str, ...]
    probabilities: tuple[float, ...] | None
    network: str = ""
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogicProgram:
    """A ground program; see :func:`from_problog`.

    Attributes:
        constraint: how the queries follow from the choices, and the evidence.
        heads: the choices by name, in the order of the program.
        derived: the labels of the queries, which the choices determine.
    """

    constraint: Formula
    heads: Mapping[str, Head]
    derived: tuple[str, ...]

    @property
    def neural(self) -> dict[str, Head]:
        """The choices whose logits networks give."""
        return {name: head for name, head in self.heads.items() if head.probabilities is None}

    def priors(self) -> dict[str, Tensor]:
        """The logits of all other choices, in double precision."""
        import torch

        found = {}
        for name, head in self.heads.items():
            if head.probabilities is not None and head.values:
                found[name] = torch.tensor(head.probabilities, dtype=torch.float64).log()
            elif head.probabilities is not None:
                found[name] = torch.logit(torch.tensor(head.probabilities[0], dtype=torch.float64))
        return found

    def constrain(self, logits: Mapping[str, Tensor] | None = None) -> ConstrainedDistribution:
        """The distribution of the program, given its evidence.

        Args:
            logits: of each choice in `neural`, [*batch, values], or [*batch] for one that is true or false.
        """
        from semprola.nn import constrain

        given = dict(logits or {})
        missing = next((name for name in self.neural if name not in given), None)
        if missing is not None:
            raise SemprolaError(f"from_problog: there are no logits for the neural predicate {missing!r}")
        kind = next((part.dtype for part in given.values()), None)
        priors = {name: part if kind is None else part.to(kind) for name, part in self.priors().items()}
        return constrain({**priors, **given}, self.constraint)


def from_problog(program: str | os.PathLike[str], timeout: float = 60.0) -> LogicProgram:
    """Read a ProbLog program: facts, annotated disjunctions, rules with recursion and negation, evidence and queries.

    The `problog` package (extra ``problog``) grounds the program and breaks its cycles. Neural predicates are written
    ``nn(name, [X], Y, [0, 1, 2]) :: digit(X, Y)``, or ``nn(name, [X]) :: p(X)`` for one that is true or false.

    Args:
        program: the text, or the path of a file, such as "rain.pl".
        timeout: the most seconds that grounding may take.

    Raises:
        SemprolaError: the package is not installed, or the program takes too long to ground or has no finite grounding.
        ParseError: the program has an error.
        FormatError: there is no such file.
        UnsatisfiableError: the evidence is impossible.

    Example:
        >>> import semprola as sp
        >>> rain = sp.rules.from_problog('''
        ... 0.2::rain.  0.6::sprinkler.
        ... wet :- rain.  wet :- sprinkler.
        ... evidence(wet).  query(rain).
        ... ''')
        >>> round(rain.constrain().log_prob_of({"rain": 1}).exp().item(), 4)
        0.2941
    """
    if importlib.util.find_spec("problog") is None:
        raise SemprolaError("from_problog needs problog: install the extra with pip install 'semprola[problog]'")
    if not isinstance(program, str | os.PathLike):
        raise TypeError(f"from_problog takes the text of a program or the path of a file, not {brief(program)}")
    text = text_of(program)
    command = [sys.executable, "-I", str(Path(grounding.__file__))]
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise SemprolaError(
            f"from_problog: grounding took more than {timeout:g} seconds; the program may have no finite grounding"
        ) from None
    if done.returncode:
        raise SemprolaError("from_problog: grounding failed; the program may have no finite grounding")
    return from_ground(json.loads(done.stdout))


def from_ground(data: Mapping[str, Any]) -> LogicProgram:
    """The program from what `grounding` writes."""
    if "error" in data:
        raise ParseError(f"from_problog: {data['error']}")
    queries = list(dict.fromkeys(name for name, _ in data["queries"]))
    heads, choices = _heads(data["groups"], set(queries))
    nodes = {int(number): node for number, node in data["nodes"].items()}
    known: dict[int, Formula] = {}

    def formula_of(root: int | None) -> Formula:
        if root is None:
            return FALSE
        stack = [abs(root)]
        while stack:
            number = stack[-1]
            if number in known or number == 0:
                stack.pop()
                continue
            kind, *rest = nodes[number]
            if kind in ("choice", "rest"):
                known[number] = choices[rest[0], rest[1] if kind == "choice" else _REST]
                continue
            waiting = [abs(child) for child in rest[0] if child and abs(child) not in known]
            if waiting:
                stack += waiting
                continue
            parts = [_signed(child, known) for child in rest[0]]
            known[number] = And(parts) if kind == "and" else Or(parts)
        return _signed(root, known)

    rules: list[Formula] = [Iff(Bool(name), formula_of(node)) for name, node in dict(data["queries"]).items()]
    for name, node in data["evidence"]:
        rule = formula_of(node)
        if rule is FALSE:
            raise UnsatisfiableError(f"from_problog: the evidence about {name} is impossible")
        rules.append(rule)
    rules += [_mention(name, head) for name, head in heads.items()]
    return LogicProgram(And(rules), heads, tuple(queries))


def _heads(
    groups: Mapping[str, Mapping[str, Any]], taken: set[str]
) -> tuple[dict[str, Head], dict[tuple[str, str], Formula]]:
    """The choices by name, and the formula of each of their values."""
    heads: dict[str, Head] = {}
    choices: dict[tuple[str, str], Formula] = {}
    for key, group in groups.items():
        values, given = list(group["values"]), group["probabilities"]
        network = (group["network"], tuple(group["inputs"]))
        name = _unused(group["name"].replace("=", "≐"), {*heads, *taken})
        if given is None:
            if values == ["true"]:
                heads[name], choices[key, "true"] = Head((), None, *network), Bool(name)
                continue
            heads[name] = Head(tuple(values), None, *network)
        else:
            chances = [float(chance) for chance in given]
            rest = max(0.0, 1.0 - math.fsum(chances))
            certain = {value: chance for value, chance in zip(values, chances, strict=True) if chance in (0.0, 1.0)}
            choices |= {(key, value): TRUE if chance else FALSE for value, chance in certain.items()}
            open_values = [(v, c) for v, c in zip(values, chances, strict=True) if v not in certain]
            choices[key, _REST] = FALSE if rest < 1e-12 else TRUE
            if not open_values:
                continue
            if len(open_values) == 1 and rest >= 1e-12:
                ((value, chance),) = open_values
                heads[name], choices[key, value] = Head((), (chance,)), Bool(name)
                choices[key, _REST] = ~Bool(name)
                continue
            if rest >= 1e-12:
                open_values.append((_REST, rest))
            values = [value for value, _ in open_values]
            heads[name] = Head(tuple(values), tuple(chance for _, chance in open_values))
        variable = Categorical(name, values)
        choices |= {(key, value): variable.isin([value]) for value in values}
    return heads, choices


def _mention(name: str, head: Head) -> Formula:
    """A rule that always holds, so that the constraint has the labels of a choice that no query needs."""
    return Categorical(name, head.values).rule if head.values else Bool(name) | ~Bool(name)


def _signed(child: int | None, known: Mapping[int, Formula]) -> Formula:
    if child is None:
        return FALSE
    if child == 0:
        return TRUE
    return known[child] if child > 0 else ~known[-child]


def _unused(name: str, taken: set[str]) -> str:
    """A name for a choice that no query or other choice has."""
    made, number = name, 1
    while made in taken:
        number += 1
        made = f"{name} (choice{f' {number - 1}' if number > 2 else ''})"
    return made
