"""One run: a method on a set with a seed, its epochs chosen on validation rows, scored on test rows twice."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from experiments.hmlc.data import Phase, RawSet, phase
from experiments.hmlc.measuring import LAMBDAS, LabelSets, look, measure
from experiments.hmlc.models import Model, circuit_for, plain_rule, rule_for
from experiments.hmlc.settings import FIGURES, Settings
from experiments.hmlc.training import Choice, Course, choose_epochs, train
from experiments.provenance import provenance
from semprola.nn import SPL

VERSION = 1
"""Of the protocol: results of another version are not mixed with these."""


def run(
    raw: RawSet, settings: Settings, seed: int, *, command: str | None = None, marginals: Path | None = None
) -> dict[str, Any]:
    """Choose epochs on validation rows, measure on test rows; train again on train and valid rows, measure again.

    Args:
        raw: the set.
        settings: the method and all that is chosen about it.
        seed: of parameters, order of rows, dropout; and of the validation rows, where they have to be drawn.
        command: the command line to record.
        marginals: a file for the marginals of the test rows after the second training, from which ensembles are made.

    Returns:
        A result that JSON can hold.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _Run(raw, settings, seed).result(command, marginals)
    finally:
        torch.set_num_threads(threads)


def choose_only(raw: RawSet, settings: Settings, seed: int) -> dict[str, float]:
    """The best figures on validation rows; no test row is read."""
    made = _Run(raw, settings, seed)
    rows = phase(raw, seed, impute=settings.impute)
    course = made.course(made.model(rows), rows)
    return {name: round(choice.value, 6) for name, choice in course.choices.items()}


class _Run:
    def __init__(self, raw: RawSet, settings: Settings, seed: int) -> None:
        self.raw, self.settings, self.seed = raw, settings, seed
        parts = raw.parts(seed)
        known = np.concatenate([parts["train"], parts["valid"]])
        self.plain = plain_rule(raw.graph)
        # which options hold is a setting, so validation rows may have a say in it; test rows may not
        self.rule = rule_for(settings, raw.graph, torch.tensor(raw.y[known], dtype=torch.float32))
        began = time.perf_counter()
        self.circuit = circuit_for(settings, self.rule)
        self.compile_seconds = time.perf_counter() - began
        self.scored = torch.tensor(raw.scored)

    def result(self, command: str | None, marginals: Path | None) -> dict[str, Any]:
        first, course, train_only, weight = self._choose()
        final, seconds = self._retrain(course, weight, marginals)
        return {
            "version": VERSION,
            "set": self.raw.name,
            "method": self.settings.method,
            "seed": self.seed,
            "rows": [len(first.train), len(first.valid), len(first.test)],
            "rule": self.rule.describe(),
            "circuit": None if self.circuit is None else [self.circuit.num_nodes, self.circuit.num_edges],
            "settings": asdict(self.settings),
            "epochs": {name: choice.epoch for name, choice in course.choices.items()},
            "valid": {name: round(choice.value, 6) for name, choice in course.choices.items()},
            "looks": len(course.epochs),
            "known_weight": weight,
            "train_only": train_only,
            "retrained": final,
            "seconds": {
                "compile": round(self.compile_seconds, 3),
                "epoch": round(course.seconds_per_epoch, 4),
                "choose": round(course.seconds, 2),
                "retrain": round(seconds, 2),
            },
            "provenance": provenance(command),
        }

    def _choose(self) -> tuple[Phase, Course, dict[str, Any], float | None]:
        """The first training, its chosen epochs and their figures on test rows; and λ of known label sets."""
        rows = phase(self.raw, self.seed, impute=self.settings.impute)
        model = self.model(rows)
        if not self.settings.choose:
            return rows, Course(choices={name: Choice(self.settings.epochs) for name in FIGURES}), {}, None
        course = self.course(model, rows)
        figures = {}
        for name, choice in course.choices.items():
            figures[name] = self._measure(choice.restore(model), rows)
        weight = None
        if self.settings.method == "spl" and self.settings.units == 1:
            course.choices["exact"].restore(model)
            sets = self._label_sets(rows.train.y)
            scores = sets.scores(model, rows.valid.x)
            weight = max(LAMBDAS, key=lambda value: sets.exact(scores, rows.valid.y, value))
            figures["exact"]["known"] = sets.exact(sets.scores(model, rows.test.x), rows.test.y, weight)
        return rows, course, figures, weight

    def _retrain(self, course: Course, weight: float | None, marginals: Path | None) -> tuple[dict[str, Any], float]:
        """The second training, on train and valid rows, measured on test rows at each chosen epoch."""
        rows = phase(self.raw, self.seed, joined=True, impute=self.settings.impute)
        model = self.model(rows)
        wanted: dict[int, list[str]] = {}
        for name, choice in course.choices.items():
            wanted.setdefault(choice.epoch, []).append(name)
        figures: dict[str, Any] = {}
        kept: dict[str, Tensor] = {}
        began = time.perf_counter()

        def watch(epoch: int, current: Model) -> bool:
            if epoch in wanted:
                found = self._measure(current, rows)
                for name in wanted[epoch]:
                    figures[name] = dict(found)
                    if marginals is not None:
                        with torch.no_grad():
                            kept[name] = current(rows.test.x).mean
                if "exact" in wanted[epoch] and weight is not None:
                    sets = self._label_sets(rows.train.y)
                    figures["exact"]["known"] = sets.exact(sets.scores(current, rows.test.x), rows.test.y, weight)
            return False

        train(model, rows.train, self.settings, self.seed, max(wanted), watch)
        seconds = time.perf_counter() - began
        if marginals is not None:
            marginals.parent.mkdir(parents=True, exist_ok=True)
            arrays: dict[str, Any] = {name: kept[name].to(torch.float16).numpy() for name in kept}
            np.savez_compressed(marginals, **arrays)
        return {name: figures[name] for name in FIGURES}, seconds

    def course(self, model: Model, rows: Phase) -> Course:
        """Train, and choose an epoch by each figure."""
        return choose_epochs(
            model, rows.train, self.settings, self.seed, FIGURES, lambda m: look(m, rows.valid, self.scored)
        )

    def model(self, rows: Phase) -> Model:
        """A model at its start."""
        torch.manual_seed(self.seed)
        return Model(self.settings, rows.train.x.shape[1], self.rule, self.circuit, rows.train.y)

    def _measure(self, model: Model, rows: Phase) -> dict[str, Any]:
        return _rounded(measure(model, rows.test, self.rule, self.plain, self.scored))

    def _label_sets(self, y: Tensor) -> LabelSets:
        base: Any = SPL(1, self.circuit or self.rule)
        base.start_at(y)
        return LabelSets(y, lambda states: base(torch.zeros(1)).log_prob(states).detach())


def _rounded(figures: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _rounded(value) if isinstance(value, dict) else round(value, 5) if isinstance(value, float) else value
        for key, value in figures.items()
    }
