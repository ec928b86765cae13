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
from experiments.hmlc.measuring import LabelSets, look, marginals_of, measure
from experiments.hmlc.models import Model, circuit_for, plain_rule, rule_for
from experiments.hmlc.settings import FIGURES, Settings
from experiments.hmlc.training import Choice, Course, choose_epochs, train
from experiments.provenance import provenance
from semprola.nn import SPL

VERSION = 2
"""Of the protocol: results of another version are not mixed with these."""


COLUMNS = ("train_only", "retrained")
"""The two trainings of a run: on train rows, and again on train and valid rows."""


def run(
    raw: RawSet,
    settings: Settings,
    seed: int,
    *,
    columns: Sequence[str] = COLUMNS,
    command: str | None = None,
    marginals: Path | None = None,
) -> dict[str, Any]:
    """Choose epochs on validation rows, measure on test rows; train again on train and valid rows, measure again.

    Args:
        raw: the set.
        settings: the method and all that is chosen about it.
        seed: of parameters, order of rows, dropout; and of the validation rows, where they have to be drawn.
        columns: which trainings, of `COLUMNS`. Epochs that were not chosen before need the first one.
        command: the command line to record.
        marginals: a file for the marginals of the test rows after the second training, from which ensembles are made.

    Returns:
        A result that JSON can hold.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _Run(raw, settings, seed).result(columns, command, marginals)
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


def choose_weight(raw: RawSet, settings: Settings, seed: int, epoch: int) -> float | None:
    """λ of known label sets, the best on validation rows after an epoch; None if the method rescores none."""
    made = _Run(raw, settings, seed)
    return made.known_weight(epoch) if made.has_known_sets else None


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
        self.plain = plain_rule(raw.graph)
        # further rules are learnt from training rows alone; with validation rows too, they are the same on all sets
        self.rule = rule_for(settings, raw.graph, torch.tensor(raw.y[parts["train"]], dtype=torch.float32))
        began = time.perf_counter()
        self.circuit = circuit_for(settings, self.rule)
        self.compile_seconds = time.perf_counter() - began
        self.scored = torch.tensor(raw.scored)

    def result(self, columns: Sequence[str], command: str | None, marginals: Path | None) -> dict[str, Any]:
        sizes = {part: len(rows) for part, rows in self.raw.parts(self.seed).items()}
        result: dict[str, Any] = {
            "version": VERSION,
            "set": self.raw.name,
            "method": self.settings.method,
            "seed": self.seed,
            "rows": [sizes[part] for part in ("train", "valid", "test")],
            "rule": self.rule.describe(),
            "circuit": None if self.circuit is None else [self.circuit.num_nodes, self.circuit.num_edges],
            "settings": asdict(self.settings),
        }
        seconds = {"compile": round(self.compile_seconds, 3)}
        epochs, weight = self._known_epochs(), self.settings.known_weight
        train_only: dict[str, Any] = {}
        final: dict[str, Any] = {}
        valid: dict[str, float] = {}
        if epochs is None or ("train_only" in columns and self.settings.choose):
            course, train_only, found = self._choose(epochs)
            epochs = {name: choice.epoch for name, choice in course.choices.items()}
            valid = {name: round(choice.value, 6) for name, choice in course.choices.items()}
            weight = found if weight is None else weight
            seconds |= {"epoch": round(course.seconds_per_epoch, 4), "choose": round(course.seconds, 2)}
        if "retrained" in columns:
            began = time.perf_counter()
            final, per_epoch = self._retrain(epochs, weight, marginals)
            seconds["retrain"] = round(time.perf_counter() - began, 2)
            seconds.setdefault("epoch", round(per_epoch, 4))
        return result | {
            "epochs": epochs,
            "valid": valid,
            "known_weight": weight,
            "train_only": train_only,
            "retrained": final,
            "seconds": seconds,
            "provenance": provenance(command),
        }

    def _known_epochs(self) -> dict[str, int] | None:
        """The epoch of each figure, if it was chosen before or is published; None to choose now."""
        if not self.settings.choose:
            return dict.fromkeys(FIGURES, self.settings.epochs)
        if self.settings.chosen is None:
            return None
        return {name: epoch for name, epoch in zip(FIGURES, self.settings.chosen, strict=True) if epoch}

    def _choose(self, epochs: dict[str, int] | None) -> tuple[Course, dict[str, Any], float | None]:
        """The first training: epochs and their figures on test rows; and λ of known label sets."""
        rows = phase(self.raw, self.seed, impute=self.settings.impute)
        if epochs is not None:
            return self._follow(rows, epochs)
        model = self.model(rows)
        course = self.course(model, rows)
        figures = {name: self._measure(choice.restore(model), rows) for name, choice in course.choices.items()}
        weight = self._add_known(figures, course.choices["exact"].restore(model), rows, None)
        return course, figures, weight

    def _follow(self, rows: Phase, epochs: dict[str, int]) -> tuple[Course, dict[str, Any], float | None]:
        """The first training with epochs that were chosen before."""
        course = Course(choices={name: Choice(epoch) for name, epoch in epochs.items()})
        began = time.perf_counter()
        weight = self.settings.known_weight

        def visit(names: list[str], current: Model, figures: dict[str, Any]) -> None:
            nonlocal weight
            seen = look(current, rows.valid, self.scored)
            for name in names:
                course.choices[name].value = seen[name]
            if "exact" in names:
                weight = self._add_known(figures, current, rows, weight)

        figures, course.seconds_per_epoch = self._measured(rows, epochs, visit)
        course.seconds = time.perf_counter() - began
        return course, figures, weight

    def _retrain(
        self, epochs: dict[str, int], weight: float | None, marginals: Path | None
    ) -> tuple[dict[str, Any], float]:
        """The second training, on train and valid rows, measured on test rows at each chosen epoch."""
        rows = phase(self.raw, self.seed, joined=True, impute=self.settings.impute)
        kept: dict[str, Any] = {}

        def visit(names: list[str], current: Model, figures: dict[str, Any]) -> None:
            if marginals is not None and "auprc" in names:
                with torch.no_grad():
                    kept["auprc"] = marginals_of(current, rows.test).to(torch.float16).numpy()
            if "exact" in names and weight is not None:
                self._add_known(figures, current, rows, weight)

        figures, per_epoch = self._measured(rows, epochs, visit)
        if marginals is not None and kept:
            marginals.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(marginals, **kept)
        return figures, per_epoch

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
        if not self.has_known_sets:
            return None
        sets = self._label_sets(rows.train.y)
        weight = sets.best_weight(model, rows.valid) if weight is None else weight
        figures["exact"]["known"] = sets.exact(sets.scores(model, rows.test.x), rows.test.y, weight)
        return weight

    def known_weight(self, epoch: int) -> float:
        """Train on train rows up to an epoch, and choose λ on validation rows."""
        rows = phase(self.raw, self.seed, impute=self.settings.impute)
        found = 0.0

        def watch(at: int, current: Model) -> bool:
            nonlocal found
            if at == epoch:
                found = self._label_sets(rows.train.y).best_weight(current, rows.valid)
            return at == epoch

        train(self.model(rows), rows.train, self.settings, self.seed, epoch, watch)
        return found

    @property
    def has_known_sets(self) -> bool:
        """Whether known label sets can be rescored by the method."""
        return self.settings.method == "spl" and self.settings.units == 1

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
