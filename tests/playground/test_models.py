"""Trained models and rows of data in the playground."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import semprola as sp
from semprola.errors import FormatError
from semprola.playground.folders import find_models
from semprola.playground.limits import Limits
from semprola.playground.problems import RequestError
from semprola.playground.workshop import Workshop

pytest.importorskip("safetensors")
RULES = "cat -> animal\ndog -> animal\n~(cat & dog)"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and a model that `semprola train` has made of it."""
    pytest.importorskip("sklearn")
    from semprola.cli.training import TrainRequest, train_model

    folder = tmp_path_factory.mktemp("trained")
    rng = np.random.default_rng(0)
    with open(folder / "animals.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["weight", "sound", "cat", "dog", "animal"])
        for _ in range(120):
            kind = rng.integers(3)
            sound = ("meow", "woof", "quiet")[kind]
            writer.writerow([f"{rng.normal(4 + 8 * kind):.2f}", sound, int(kind == 0), int(kind == 1), int(kind < 2)])
    train_model(
        TrainRequest(
            folder / "animals.csv",
            ("cat", "dog", "animal"),
            folder / "models" / "animals",
            RULES,
            quiet=True,
            options={"epochs": 30, "layer": "spl"},
        )
    )
    return folder


@pytest.fixture
def workshop(trained: Path) -> Workshop:
    return Workshop(Limits(), trained / "models", trained / "animals.csv")


SOURCE = {"model": "animals"}


def test_model_is_described(workshop: Workshop) -> None:
    described = workshop.describe({"source": SOURCE})
    assert described["labels"] == ["cat", "dog", "animal"]
    assert described["rules"] == ["cat -> animal", "dog -> animal", "~(cat & dog)"]
    assert described["columns"] == [
        {"name": "weight", "categories": None},
        {"name": "sound", "categories": ["meow", "quiet", "woof"]},
    ]


def test_answers_are_those_of_the_model(workshop: Workshop, trained: Path) -> None:
    row = {"weight": "4.1", "sound": "meow"}
    answer = workshop.answer({"source": SOURCE, "row": row, "evidence": "---"})
    model = sp.load(trained / "models" / "animals")
    p = model.distribution([[4.1, 1.0, 0.0, 0.0]])
    assert answer["marginals"] == pytest.approx(p.mean[0].tolist(), abs=1e-5)
    assert answer["mode"]["state"] == p.mode[0].int().tolist() == [1, 0, 1]
    assert answer["beliefs"] == pytest.approx(answer["marginals"])
    fixed = workshop.answer({"source": SOURCE, "row": row, "evidence": "-1-"})
    assert fixed["mode"]["state"] == [0, 1, 1]


def test_rows_of_the_table(workshop: Workshop, trained: Path) -> None:
    with open(trained / "animals.csv", encoding="utf-8") as file:
        line = list(csv.reader(file))[3]
    found = workshop.row({"source": SOURCE, "number": 3})
    assert found["values"] == {"weight": line[0], "sound": line[1]}
    assert found["truth"] == [int(word) for word in line[2:]]
    assert found["rows"] == 120
    for wrong in (0, 121, "1", None, True):
        with pytest.raises(RequestError, match="from 1 to 120"):
            workshop.row({"source": SOURCE, "number": wrong})


@pytest.mark.parametrize("row", [None, [], {"weight": 4}, {"weight": "1" * 500}])
def test_wrong_rows_are_refused(workshop: Workshop, row: Any) -> None:
    with pytest.raises(RequestError):
        workshop.answer({"source": SOURCE, "row": row, "evidence": "---"})


def test_missing_values_are_named(workshop: Workshop) -> None:
    with pytest.raises(FormatError, match="'weight' is empty"):
        workshop.answer({"source": SOURCE, "row": {"sound": "meow"}, "evidence": "---"})


@pytest.mark.parametrize("name", ["../animals", "/etc", "", ".", "animals/..", None, 7])
def test_only_listed_models_are_opened(workshop: Workshop, name: Any) -> None:
    with pytest.raises(RequestError, match="no such model"):
        workshop.describe({"source": {"model": name}})


def test_a_folder_is_a_model_or_holds_models(trained: Path, tmp_path: Path) -> None:
    assert find_models(trained / "models") == {"animals": trained / "models" / "animals"}
    assert find_models(trained / "models" / "animals") == {"animals": trained / "models" / "animals"}
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(FormatError, match="no model here"):
            find_models(folder)


def test_a_network_of_torch_modules(tmp_path: Path) -> None:
    """A mixture without rules as text: the contradiction is named by values, the inputs by number."""
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), sp.ProductSPL(8, "a -> b", mixtures=2))
    sp.save(net, tmp_path / "net")
    workshop = Workshop(Limits(), tmp_path)
    described = workshop.describe({"source": {"model": "net"}})
    assert [column["name"] for column in described["columns"]] == ["1", "2", "3"]
    row = {"1": "0.5", "2": "-1", "3": "2"}
    answer = workshop.answer({"source": {"model": "net"}, "row": row, "evidence": "10"})
    assert answer["impossible"] == [0, 1]
    assert answer["independent"]["broken"][0]["rule"] == "a=1 and b=0 cannot hold together"
    free = workshop.answer({"source": {"model": "net"}, "row": row, "evidence": "--"})
    with torch.no_grad():
        expected = sp.load(tmp_path / "net")(torch.tensor([0.5, -1.0, 2.0]))
    assert free["marginals"] == pytest.approx(expected.mean.tolist(), abs=1e-5)


def test_a_network_with_beliefs_of_its_own(tmp_path: Path) -> None:
    """Logits and rules: the prediction alone is that of the logits, and the rules change it."""
    net = torch.nn.Sequential(torch.nn.Linear(1, 2), sp.ConstraintLayer("a -> b"))
    with torch.no_grad():
        net[0].weight.zero_()
        net[0].bias.copy_(torch.tensor([2.0, -1.0]))
    sp.save(net, tmp_path)
    source = {"model": tmp_path.name}
    answer = Workshop(Limits(), tmp_path).answer({"source": source, "row": {"1": "0"}, "evidence": "--"})
    p, q = 1 / (1 + np.exp(-2.0)), 1 / (1 + np.exp(1.0))
    assert answer["beliefs"] == pytest.approx([p, q], abs=1e-5)
    assert answer["independent"]["state"] == [1, 0]
    assert answer["chance"] == pytest.approx(1 - p * (1 - q), abs=1e-5)
    assert answer["mode"]["state"] == [1, 1]


def test_models_that_cannot_be_shown_say_why(tmp_path: Path) -> None:
    sp.save(torch.nn.Sequential(torch.nn.Linear(2, 2)), tmp_path / "plain")
    with pytest.raises(FormatError, match="no layer with a constraint"):
        Workshop(Limits(), tmp_path).describe({"source": {"model": "plain"}})


@pytest.mark.parametrize("kind", ["ConstraintLayer", "ProductSPL", "SPL"])
def test_models_over_a_split(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(0)
    S = sp.split(sp.constraints.permutation(4), max_nodes=30)
    layer = sp.ConstraintLayer(S) if kind == "ConstraintLayer" else getattr(sp, kind)(16, S)
    net = torch.nn.Sequential(torch.nn.Linear(2, 16), layer)
    sp.save(net, tmp_path)
    workshop, source = Workshop(Limits(), tmp_path), {"model": tmp_path.name}
    described = workshop.describe({"source": source})
    assert described["pooled"].startswith("answers are pooled from ")
    answer = workshop.answer({"source": source, "row": {"1": "0.5", "2": "-1"}, "evidence": "-1" + "-" * 14})
    with torch.no_grad():
        p = net(torch.tensor([0.5, -1.0])).condition(torch.tensor([math.nan, 1.0] + [math.nan] * 14))
    assert answer["mode"]["state"] == p.mode.int().tolist()
    assert answer["mode"]["exact"]
    assert ("most_chance" in answer) == (kind != "SPL")
    assert len(answer["beliefs"]) == 16
