"""One run: a method on a set with a seed, its epochs chosen on validation rows, scored on test rows twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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

VERSION = 2
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


def choose_only(raw: RawSet, settings: Settings, seed: int) -> dict[str, dict[str, float]]:
    """The best figures on validation rows and their epochs; no test row is read.

    A figure's curve over epochs is smoothed before its top is sought: the mean of each look and its two neighbours.
    """
    made = _Run(raw, settings, seed)
    rows = phase(raw, seed, impute=settings.impute)
    course = made.course(made.model(rows), rows)
    best = {}
    for name in FIGURES:
        curve = smoothed([figures[name] for figures in course.figures])
        top = int(np.argmax(curve))
        best[name] = {"value": round(curve[top], 6), "epoch": course.epochs[top]}
    return best


def smoothed(values: Sequence[float]) -> list[float]:
    """The mean of each value and its neighbours.

    Example:
        >>> smoothed([0.0, 3.0, 3.0])
        [1.5, 2.0, 3.0]
    """
    return [float(np.mean(values[max(0, i - 1) : i + 2])) for i in range(len(values))]


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
        if not self.settings.choose:
            return rows, Course(choices={name: Choice(self.settings.epochs) for name in FIGURES}), {}, None
        if self.settings.chosen is not None:
            epochs = dict(zip(FIGURES, self.settings.chosen, strict=True))
            return self._follow(rows, {name: epoch for name, epoch in epochs.items() if epoch})
        model = self.model(rows)
        course = self.course(model, rows)
        figures = {name: self._measure(choice.restore(model), rows) for name, choice in course.choices.items()}
        weight = self._add_known(figures, course.choices["exact"].restore(model), rows, None)
        return rows, course, figures, weight

    def _follow(self, rows: Phase, epochs: dict[str, int]) -> tuple[Phase, Course, dict[str, Any], float | None]:
        """The first training with epochs that were chosen before."""
        course = Course(choices={name: Choice(epoch) for name, epoch in epochs.items()})
        began = time.perf_counter()
        weight: float | None = None

        def visit(names: list[str], current: Model, figures: dict[str, Any]) -> None:
            nonlocal weight
            seen = look(current, rows.valid, self.scored)
            for name in names:
                course.choices[name].value = seen[name]
            if "exact" in names:
                weight = self._add_known(figures, current, rows, None)

        figures, course.seconds_per_epoch = self._measured(rows, epochs, visit)
        course.seconds = time.perf_counter() - began
        return rows, course, figures, weight

    def _retrain(self, course: Course, weight: float | None, marginals: Path | None) -> tuple[dict[str, Any], float]:
        """The second training, on train and valid rows, measured on test rows at each chosen epoch."""
        rows = phase(self.raw, self.seed, joined=True, impute=self.settings.impute)
        kept: dict[str, Any] = {}
        began = time.perf_counter()

        def visit(names: list[str], current: Model, figures: dict[str, Any]) -> None:
            if marginals is not None:
                with torch.no_grad():
                    mean = current(rows.test.x).mean
                kept.update({name: mean.to(torch.float16).numpy() for name in names})
            if "exact" in names and weight is not None:
                self._add_known(figures, current, rows, weight)

        figures, _ = self._measured(rows, {name: choice.epoch for name, choice in course.choices.items()}, visit)
        seconds = time.perf_counter() - began
        if marginals is not None:
            marginals.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(marginals, **kept)
        return figures, seconds

    def _measured(
        self, rows: Phase, epochs: dict[str, int], visit: Callable[[list[str], Model, dict[str, Any]], None]
    ) -> tuple[dict[str, Any], float]:
        """Train, and measure on test rows after the epoch of each figure; `visit` may add to what was measured.

        Returns:
            What was measured, per figure, and seconds per epoch.
        """
        wanted: dict[int, list[str]] = {}
        for name, epoch in epochs.items():
            wanted.setdefault(epoch, []).append(name)
        figures: dict[str, Any] = {}

        def watch(epoch: int, current: Model) -> bool:
            if epoch in wanted:
                found = self._measure(current, rows)
                figures.update({name: dict(found) for name in wanted[epoch]})
                visit(wanted[epoch], current, figures)
            return False

        seconds = train(self.model(rows), rows.train, self.settings, self.seed, max(wanted), watch)
        return {name: figures[name] for name in epochs}, seconds

    def _add_known(self, figures: dict[str, Any], model: Model, rows: Phase, weight: float | None) -> float | None:
        """Add the exact match of prediction by known label sets, where the method has a likelihood to rescore.

        Returns:
            λ: the one that was given, or else the best one on validation rows.
        """
        if self.settings.method != "spl" or self.settings.units != 1:
            return None
        sets = self._label_sets(rows.train.y)
        if weight is None:
            scores = sets.scores(model, rows.valid.x)
            weight = max(LAMBDAS, key=lambda value: sets.exact(scores, rows.valid.y, value))
        figures["exact"]["known"] = sets.exact(sets.scores(model, rows.test.x), rows.test.y, weight)
        return weight

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
