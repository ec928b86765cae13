"""The trained models that the page may open: only those in the folder named on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from semprola.circuit import Circuit
from semprola.cli.inputs import Features
from semprola.cli.tables import Table, read_table
from semprola.compiler.splitting import Split
from semprola.errors import FormatError, ParseError
from semprola.logic import And, Formula
from semprola.logic.parser import parse_lines
from semprola.playground.problems import RequestError
from semprola.saving import load
from semprola.saving.folders import read_metadata

_MOST_FEATURES = 512
_LONGEST_VALUE = 200


@dataclass(frozen=True)
class TrainedModel:
    """A model, and the form of its input rows.

    Attributes:
        network: the network.
        rules: its constraint, a circuit or several; knows the rules that it was compiled from, if the model does.
        texts: these rules; empty if unknown.
        features: how to read a row: columns with names and categories.
    """

    network: nn.Module
    rules: Circuit | Split
    texts: tuple[Formula, ...]
    features: Features

    @classmethod
    def load(cls, folder: Path) -> TrainedModel:
        """Read a model folder."""
        model = load(folder)
        table = read_metadata(folder)[0].get("table")
        network = model if isinstance(model, nn.Module) else model.network_
        rules = _constraint(network, folder)
        written = table["rules"] if isinstance(table, dict) else getattr(model, "constraint", None)
        texts = _rules(written, rules.labels)
        if texts:
            source = texts[0] if len(texts) == 1 else And(list(texts))
            rules = rules.with_source(source) if isinstance(rules, Circuit) else replace(rules, source=source)
        if isinstance(table, dict):
            features = Features.from_json(table["features"])
        else:
            width = _width(network, folder)
            names = getattr(model, "feature_names_in_", None)
            features = Features(tuple((str(name), None) for name in (range(1, width + 1) if names is None else names)))
        return cls(network, rules, texts, features)

    def distribution(self, row: Mapping[str, str]) -> Any:
        """The distribution over y for one row, given as text by column."""
        columns = {name: np.array([row.get(name, "")], dtype=object) for name, _ in self.features.columns}
        inputs = self.features.table(Table(Path("the row"), columns, [1], "row"))
        weight = next(self.network.parameters(), None)
        x = torch.from_numpy(inputs).to(torch.float64 if weight is None else weight.dtype)
        with torch.no_grad():
            return self.network(x[0])

    def columns(self) -> list[dict[str, Any]]:
        """The columns of a row for the page: their names and, for text, their categories."""
        return [
            {"name": name, "categories": None if found is None else list(found)}
            for name, found in self.features.columns
        ]


def read_row(content: Any) -> dict[str, str]:
    """Check a row that the page sent."""
    if not isinstance(content, dict) or len(content) > _MOST_FEATURES:
        raise RequestError(f"a row must be an object with at most {_MOST_FEATURES} columns")
    if not all(isinstance(value, str) and len(value) <= _LONGEST_VALUE for value in content.values()):
        raise RequestError(f"the values of a row must be texts of at most {_LONGEST_VALUE} characters")
    return dict(content)


class DataTable:
    """The rows of the table named on the command line."""

    def __init__(self, path: Path) -> None:
        self.table = read_table(path)

    def row(self, number: Any, model: TrainedModel) -> dict[str, Any]:
        """One row, counted from 1: the text of its columns, and the true labels if the table has them."""
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(self.table):
            raise RequestError(f"rows are numbered from 1 to {len(self.table):,}")
        names = [name for name, _ in model.features.columns]
        self.table.require(names)
        values = {name: _shown(self.table.columns[name], number - 1) for name in names}
        truth = [self._truth(name, number - 1) for name in model.rules.labels]
        return {"values": values, "truth": truth, "rows": len(self.table)}

    def _truth(self, label: str, row: int) -> int | None:
        if label not in self.table.columns:
            return None
        value = float(self.table.binary(label)[row])
        return None if np.isnan(value) else int(value)


def _shown(column: NDArray[Any], row: int) -> str:
    value = column[row]
    return value if isinstance(value, str) else f"{float(value):.10g}"


def _constraint(network: nn.Module, folder: Path) -> Circuit | Split:
    splits = [getattr(module, "split", None) for module in network.modules()]
    if found := [each for each in splits if isinstance(each, Split) and not each.is_exact]:
        return found[-1]
    known = [getattr(module, "circuit", None) for module in network.modules()]
    circuits = [circuit for circuit in known if isinstance(circuit, Circuit)]
    if not circuits:
        raise FormatError(f"{folder}: the model has no layer with a constraint")
    circuit = circuits[-1]
    if circuit.given:
        raise FormatError(f"{folder}: its rules depend on inputs ({circuit.given[0]}, …), which the page cannot show")
    return circuit


def _width(network: nn.Module, folder: Path) -> int:
    for module in network.modules():
        for attribute in ("features", "in_features"):
            width = getattr(module, attribute, None)
            if isinstance(width, int) and 0 < width <= _MOST_FEATURES:
                return width
    raise FormatError(f"{folder}: the page needs inputs that are rows of at most {_MOST_FEATURES} numbers")


def _rules(texts: Any, labels: Sequence[str]) -> tuple[Formula, ...]:
    """The rules that a model was saved with, if their text defines them completely."""
    lines = texts.split("\n") if isinstance(texts, str) else texts
    if not isinstance(lines, list):
        return ()
    try:
        rules = tuple(rule.formula for line in lines for rule in parse_lines(str(line)))
    except ParseError:  # the text of a family
        return ()
    return rules if all(set(rule.labels) <= set(labels) for rule in rules) else ()
