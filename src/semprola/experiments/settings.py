"""Networks, search grids and best known settings of each experiment."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from semprola.errors import SemprolaError
from semprola.experiments.methods import METHODS, ModelSettings
from semprola.experiments.trainer import TrainSettings

Candidate = tuple[ModelSettings, TrainSettings]

EXPERIMENTS = ("simple-path", "preference")
NETS = ("paper", "wide")
GRIDS = ("small", "published")

_PAPER_RATES = (1e-3, 5e-3, 1e-4, 5e-4)
_PAPER_SIZES = (2, 4, 8)
_PAPER_GATE = (128, 128)
_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)
_ENTROPY_WEIGHTS = (0.1, 1.0)


def starting_point(experiment: str, net: str) -> Candidate:
    """The network of an experiment and how it is trained, before anything is searched.

    "paper" is the network of the released code, trained with all rows at once; "wide" is a perceptron with ReLU units,
    trained with batches.

    Raises:
        SemprolaError: there is no such experiment or network.

    Example:
        >>> starting_point("simple-path", "paper")[0].hidden
        (50, 50, 50, 50, 50, 50)
    """
    if experiment not in EXPERIMENTS:
        raise SemprolaError(f"no experiment {experiment!r}: choose from {', '.join(EXPERIMENTS)}")
    if net not in NETS:
        raise SemprolaError(f"no network {net!r}: choose from {', '.join(NETS)}")
    if net == "paper":
        hidden = (50,) * 6 if experiment == "simple-path" else (25, 25, 25, 50)
        return ModelSettings(hidden=hidden), TrainSettings(steps=2000, evaluate_every=20)
    if experiment == "simple-path":
        model = ModelSettings(hidden=(256, 256), activation="relu")
        return model, TrainSettings(steps=2400, lr=1e-3, batch_size=64, evaluate_every=40, patience=15)
    model = ModelSettings(hidden=(64,), activation="relu")
    return model, TrainSettings(steps=2000, lr=1e-3, batch_size=256, evaluate_every=20, patience=20)


def candidates(experiment: str, net: str, method: str, grid: str = "small") -> list[Candidate]:
    """What a search tries for a method.

    Args:
        experiment: which one.
        net: "paper" or "wide".
        method: which one.
        grid: "published": the learning rates and, for SPL, the m and k of the paper; "small": the same learning rates,
            k = 1 (as the released code behaves) and fewer m. Weights of the losses are the same in both; the paper does
            not state its own.

    Raises:
        SemprolaError: there is no such name.
    """
    if method not in METHODS:
        raise SemprolaError(f"no method {method!r}: choose from {', '.join(METHODS)}")
    if grid not in GRIDS:
        raise SemprolaError(f"no grid {grid!r}: choose from {', '.join(GRIDS)}")
    model, training = starting_point(experiment, net)
    if net == "paper" and method in ("spl", "product-spl"):
        model = replace(model, gate=_PAPER_GATE)
    trainings = [replace(training, lr=rate) for rate in _PAPER_RATES]
    if method == "semantic-loss":
        models = [replace(model, semantic_weight=weight) for weight in _WEIGHTS]
    elif method == "nesy-entropy":
        pairs = itertools.product(_WEIGHTS, _ENTROPY_WEIGHTS)
        models = [replace(model, semantic_weight=weight, entropy_weight=entropy) for weight, entropy in pairs]
    elif method == "spl" and grid == "published":
        models = [replace(model, replicas=m, units=k) for m, k in itertools.product(_PAPER_SIZES, _PAPER_SIZES)]
    elif method in ("spl", "product-spl"):
        sizes = _PAPER_SIZES if grid == "published" else (1, 4)
        models = [replace(model, replicas=m) for m in sizes]
    else:
        models = [model]
    return list(itertools.product(models, trainings))


def best_known(experiment: str, setting: str, net: str, method: str) -> Candidate:
    """What ``--quick`` uses: settings tried by hand with one to four seeds, not the outcome of a search.

    Tried: weights of the semantic loss, dropout, weight decay, m = 1 and 4, k = 1 and 2, learning rates; about 20
    variants for simple paths and 30 for preferences. They were compared on validation rows, but the figures of the
    test rows were in view, and for preferences the variants differ by less than the noise: for a clean choice run the
    search.
    """
    model, training = starting_point(experiment, net)
    if net == "paper" and method in ("spl", "product-spl"):
        model = replace(model, gate=_PAPER_GATE)
    changes_model, changes_training = _BEST.get((experiment, setting, net, method), ({}, {}))
    return replace(model, **changes_model), replace(training, **changes_training)


_LONG: dict[str, Any] = {"steps": 6000, "patience": 30}
"""Independent labels learn slowly: with fewer steps they would still be improving at the end."""

_BEST: dict[tuple[str, str, str, str], tuple[dict[str, Any], dict[str, Any]]] = {
    ("simple-path", "paper", "wide", "fil"): ({}, _LONG),
    ("simple-path", "paper", "wide", "semantic-loss"): ({"semantic_weight": 1.0}, _LONG),
    ("simple-path", "paper", "wide", "nesy-entropy"): ({"semantic_weight": 1.0, "entropy_weight": 0.1}, _LONG),
    ("simple-path", "paper", "wide", "spl"): ({}, {}),
    ("simple-path", "paper", "wide", "product-spl"): ({"dropout": 0.2}, {}),
    ("simple-path", "given", "wide", "fil"): ({}, _LONG),
    ("simple-path", "given", "wide", "semantic-loss"): ({"semantic_weight": 3.0}, _LONG),
    ("simple-path", "given", "wide", "nesy-entropy"): ({"semantic_weight": 3.0, "entropy_weight": 0.1}, _LONG),
    ("simple-path", "given", "wide", "spl"): ({"dropout": 0.2}, {}),
    ("simple-path", "given", "wide", "product-spl"): ({"dropout": 0.2}, {}),
    ("preference", "paper", "paper", "fil"): ({}, {"lr": 5e-3}),
    ("preference", "paper", "paper", "semantic-loss"): ({"semantic_weight": 1.0}, {"lr": 5e-3, "steps": 1000}),
    ("preference", "paper", "paper", "nesy-entropy"): (
        {"semantic_weight": 1.0, "entropy_weight": 0.1},
        {"lr": 5e-3, "steps": 1000},
    ),
    ("preference", "paper", "paper", "spl"): ({"units": 2, "gate": ()}, {"lr": 5e-3, "steps": 600}),
    ("preference", "paper", "paper", "product-spl"): ({"gate": ()}, {"lr": 5e-3, "steps": 600}),
}
