"""What a worker process does for a request: compile, describe, answer, draw a random model, read a row."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from semprola.circuit import Circuit
from semprola.circuit.circuit import PRODUCT, SUM
from semprola.circuit.fold import heights
from semprola.compiler import Progress, compile
from semprola.compiler.splitting import Split, split
from semprola.compiler.splitting.pieces import can_split
from semprola.distributions import PoolDistribution
from semprola.errors import CompilationBudgetError, IntractableError
from semprola.nn import constrain
from semprola.playground.answers import (
    chance_of_rules,
    network_beliefs,
    on_their_own,
    read_beliefs,
    read_evidence,
    with_rules,
)
from semprola.playground.folders import find_models
from semprola.playground.limits import Limits
from semprola.playground.models import DataTable, TrainedModel, read_row
from semprola.playground.pictures import Flow, picture, pictures
from semprola.playground.pooled import mixed_means, most_chance, pooled_answer, pooled_beliefs, valid_state
from semprola.playground.problems import Problem, RequestError, read_problem, table_view
from semprola.playground.programs import program
from semprola.playground.reviews import learn_from, review_text

_MOST_RULES = 100
_ONE_CIRCUIT, _SPLIT = 0.5, 0.3
"""Shares of a request's time: to compile everything as one circuit, and to split it if that fails."""
_NODES_EACH = 5000


@dataclass(frozen=True)
class Subject:
    """What a tab works on: a compiled problem or a trained model.

    Attributes:
        rules: the constraint: a circuit, or several if it does not compile as one.
        shown: for each rule as `violations` names it, its text on the page.
        view: how the page draws the labels.
        flow: the flow of probability through the circuit; None for several.
        model: the trained model, if there is one.
    """

    rules: Circuit | Split
    shown: dict[str, str]
    view: dict[str, Any]
    flow: Flow | None
    model: TrainedModel | None = None


class Workshop:
    """Everything that the page can ask for, within limits.

    Args:
        progress: called regularly during compilations; an exception that it raises ends the compilation.
    """

    def __init__(
        self,
        limits: Limits,
        folder: Path | None = None,
        data: Path | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.limits = limits
        self._models = find_models(folder)
        self._data_path = data
        self._table: DataTable | None = None
        self._progress = progress
        self._subjects: OrderedDict[str, Subject] = OrderedDict()

    def describe(self, request: dict[str, Any]) -> dict[str, Any]:
        """The labels, rules and circuit of a source."""
        subject = self._subject(request.get("source"))
        rules = subject.rules
        circuits = rules.circuits if isinstance(rules, Split) else (rules,)
        models = min(circuit.model_count() for circuit in circuits)
        described = {
            "labels": list(rules.labels),
            "rules": list(subject.shown.values())[:_MOST_RULES],
            "hidden_rules": max(0, len(subject.shown) - _MOST_RULES),
            "view": subject.view,
            "nodes": rules.num_nodes,
            "edges": rules.num_edges,
            "sums": sum(int((circuit.kind == SUM).sum()) for circuit in circuits),
            "products": sum(int((circuit.kind == PRODUCT).sum()) for circuit in circuits),
            "depth": max(int(heights(circuit.child_start, circuit.children).max()) for circuit in circuits),
            "models": str(models),
            "backend": str(rules.info.get("backend", "")),
            "seconds": round(float(rules.info.get("seconds", 0.0)), 4),
            "picture": pictures(rules) if isinstance(rules, Split) else picture(rules),
            "pooled": rules.notice if isinstance(rules, Split) else None,
            "columns": None if subject.model is None else subject.model.columns(),
        }
        return described | self._valid(rules)

    def sample(self, request: dict[str, Any]) -> dict[str, Any]:
        """A random model of the constraint; whether all are equally likely is said, too."""
        return self._valid(self._subject(request.get("source")).rules)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Predictions for beliefs (or a row of data, for a trained model) and evidence."""
        subject = self._subject(request.get("source"))
        count = len(subject.rules.labels)
        evidence = read_evidence(request.get("evidence"), count)
        if subject.model is None:
            own: list[float] | None = read_beliefs(request.get("beliefs"), count)
            p = constrain(torch.tensor(own, dtype=torch.float64).logit(), subject.rules)
        else:
            p = subject.model.distribution(read_row(request.get("row")))
            own = pooled_beliefs(p) if isinstance(p, PoolDistribution) else network_beliefs(p)
        if isinstance(subject.rules, Split):
            return self._pooled(subject, subject.rules, p, own, evidence)
        beliefs = p.mean.clamp(0, 1).tolist() if own is None else own
        found = with_rules(p, evidence) | {
            "beliefs": [round(belief, 6) for belief in beliefs],
            "independent": self._independent(subject, beliefs, evidence),
        }
        if own is None or "impossible" in found:
            return found
        weights = np.array([[1 - belief, belief] for belief in beliefs])
        for label, value in enumerate(evidence):
            if value is not None:
                weights[label] = [1 - value, value]
        chance = chance_of_rules(p, beliefs, evidence)
        flows = None if subject.flow is None else subject.flow.through_edges(weights)
        return found | {"chance": chance, "flows": flows}

    def python(self, request: dict[str, Any]) -> dict[str, Any]:
        """A program that does what the page shows."""
        source = request.get("source")
        if not isinstance(source, dict) or "problem" not in source:
            raise RequestError("only rules can be copied as Python: load a model with semprola.load")
        rules = self._subject(source).rules
        problem = Problem.read(source["problem"], self.limits)
        beliefs = read_beliefs(request.get("beliefs"), len(rules.labels))
        evidence = read_evidence(request.get("evidence"), len(rules.labels))
        return {"python": program(problem, rules.labels, beliefs, evidence, split=isinstance(rules, Split))}

    def row(self, request: dict[str, Any]) -> dict[str, Any]:
        """A row of the table, for the inputs of a model."""
        subject = self._subject(request.get("source"))
        if subject.model is None or self._data_path is None:
            raise RequestError("there is no table: start the playground with --model FOLDER --data TABLE")
        if self._table is None:
            self._table = DataTable(self._data_path)
        return self._table.row(request.get("number"), subject.model)

    def review(self, request: dict[str, Any]) -> dict[str, Any]:
        """What is wrong with the rules that were typed, alone or beside rows."""
        return review_text(self._text(request), request.get("rows"), self.limits.seconds)

    def learn(self, request: dict[str, Any]) -> dict[str, Any]:
        """Rules that hold in the rows."""
        return learn_from(self._text(request), request.get("rows"), self.limits.seconds)

    # inside ---------------------------------------------------------------------------------------------------------

    def _text(self, request: dict[str, Any]) -> str:
        source = request.get("source")
        if not isinstance(source, dict) or "problem" not in source:
            raise RequestError("only rules that are typed can be reviewed")
        return Problem.read(source["problem"], self.limits).text

    def _subject(self, source: Any) -> Subject:
        if not isinstance(source, dict) or len(source) != 1:
            raise RequestError("the source must be a problem or a model")
        key = json.dumps(source, sort_keys=True)
        subject = self._subjects.get(key)
        if subject is None:
            subject = self._load(source["model"]) if "model" in source else self._compile(source.get("problem"))
            self._subjects[key] = subject
            while len(self._subjects) > self.limits.subjects:
                self._subjects.popitem(last=False)
        self._subjects.move_to_end(key)
        return subject

    def _compile(self, content: Any) -> Subject:
        """One circuit, or several if it takes more than its share of the time, nodes or memory."""
        constraint = read_problem(Problem.read(content, self.limits), self.limits)
        shown = {str(rule): shown for rule, shown in constraint.rules}
        progress = self._progress if self._progress is not None else False
        budget: dict[str, Any] = {"memory": self.limits.memory, "progress": progress}
        try:
            seconds = _ONE_CIRCUIT * self.limits.seconds
            circuit = compile(constraint.formula, timeout=seconds, max_nodes=self.limits.nodes, cache=False, **budget)
        except CompilationBudgetError:
            if not can_split(constraint.formula):
                raise
            most = min(self.limits.nodes, _NODES_EACH)
            made = split(constraint.formula, timeout=_SPLIT * self.limits.seconds, max_nodes=most, **budget)
            if not made.is_exact:
                return Subject(made, shown, constraint.view, None)
            circuit = made.circuits[0]
        return Subject(circuit, shown, constraint.view, Flow(circuit))

    def _load(self, name: Any) -> Subject:
        if not isinstance(name, str) or name not in self._models:
            raise RequestError("no such model in the folder that the playground was started with")
        model = TrainedModel.load(self._models[name])
        rules = model.rules
        if len(rules.labels) > self.limits.labels or rules.num_nodes > self.limits.nodes:
            raise RequestError(f"{name}: the model is too large for the page: {rules}")
        shown = {str(rule): str(rule) for rule in model.texts}
        flow = Flow(rules) if isinstance(rules, Circuit) else None
        return Subject(rules, shown, table_view(rules.labels), flow, model)

    def _pooled(
        self, subject: Subject, rules: Split, p: Any, own: list[float] | None, evidence: list[int | None]
    ) -> dict[str, Any]:
        """The answer for rules that are split."""
        beliefs = mixed_means(p) if own is None else own
        found = pooled_answer(p, evidence, self.limits.seconds) | {
            "beliefs": [round(belief, 6) for belief in beliefs],
            "independent": self._independent(subject, beliefs, evidence),
        }
        if own is None or "impossible" in found:
            return found
        return found | {"most_chance": most_chance(rules, beliefs, evidence), "flows": None}

    def _independent(self, subject: Subject, beliefs: list[float], evidence: list[int | None]) -> dict[str, Any]:
        found = on_their_own(subject.rules, beliefs, evidence)
        for broken in found["broken"]:
            broken["rule"] = subject.shown.get(broken["rule"], broken["rule"])
        return found

    def _valid(self, rules: Circuit | Split) -> dict[str, Any]:
        """A random model, and whether all are equally likely; None if none was found."""
        if isinstance(rules, Circuit):
            drawn = constrain(torch.zeros(rules.num_labels, dtype=torch.float64), rules).sample()
            return {"sample": drawn.int().tolist(), "uniform": True}
        try:
            state, uniform = valid_state(rules, self.limits.seconds)
        except IntractableError:
            return {"sample": None, "uniform": False}
        return {"sample": state, "uniform": uniform}
