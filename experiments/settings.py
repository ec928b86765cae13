"""Networks, search grids and best known settings of each experiment."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from typing import Any

from experiments.methods import METHODS, ModelSettings
from experiments.trainer import TrainSettings
from semprola.errors import SemprolaError

Candidate = tuple[ModelSettings, TrainSettings]

EXPERIMENTS = ("simple-path", "preference")
NETS = {
    "paper": "network of the paper",
    "scaled": "network of the paper with a scaled start",
    "wide": "wide network",
    "text": "network of the paper's text",
    "released": "network of the released code",
}
"""Names of the networks, and their descriptions in titles; the last two are for preferences."""
GRIDS = ("small", "public", "weights", "sizes", "released", "published")

Options = dict[str, tuple[Any, ...]]
"""Values to try for names of `ModelSettings` and `TrainSettings`; all combinations are tried."""

_RATES = (1e-3, 5e-3, 1e-4, 5e-4)
_SIZES = (2, 4, 8)
_PAPER_GATE = (128, 128)


def starting_point(experiment: str, net: str) -> Candidate:
    """The network of an experiment and its training settings, before any search.

    "paper" is trained with all rows at once: for simple paths, the six sigmoid layers of 50 of the released code; for
    preferences, sigmoid layers of 25, 25, 25 and 50, which is neither "text" (three sigmoid layers of 50) nor
    "released" (three sigmoid layers of 25 and a linear layer of 50). "scaled" is "paper" with initial weights that let
    signals through, see `experiments.methods.perceptron`. "wide" is a perceptron with ReLU units, trained with batches.

    Raises:
        SemprolaError: if the experiment or the network is unknown.

    Example:
        >>> starting_point("simple-path", "paper")[0].hidden
        (50, 50, 50, 50, 50, 50)
    """
    if experiment not in EXPERIMENTS:
        raise SemprolaError(f"no experiment {experiment!r}: choose from {', '.join(EXPERIMENTS)}")
    if net not in NETS:
        raise SemprolaError(f"no network {net!r}: choose from {', '.join(NETS)}")
    if net in _OF_PREFERENCES:
        if experiment != "preference":
            raise SemprolaError(f"the network {net!r} is for preferences: choose paper, scaled or wide")
        return replace(_OF_PREFERENCES[net], start="torch"), starting_point(experiment, "paper")[1]
    if net == "scaled":
        model, training = starting_point(experiment, "paper")
        if experiment == "simple-path":
            training = replace(training, steps=6000, patience=30)
        return replace(model, start="scaled"), training
    if net == "paper":
        if experiment == "simple-path":
            return ModelSettings(hidden=(50,) * 6), TrainSettings(steps=20_000, lr=5e-3, evaluate_every=50)
        training = TrainSettings(steps=2000, lr=5e-3, evaluate_every=10, patience=40)
        return ModelSettings(hidden=(25, 25, 25, 50)), training
    if experiment == "simple-path":
        model = ModelSettings(hidden=(256, 256), activation="relu")
        return model, TrainSettings(steps=6000, lr=1e-3, batch_size=64, evaluate_every=40, patience=30)
    model = ModelSettings(hidden=(64,), activation="relu")
    return model, TrainSettings(steps=2000, lr=1e-3, batch_size=256, evaluate_every=10, patience=40)


def default_net(experiment: str) -> str:
    """The default network: the paper's, for simple paths with a scaled start."""
    return "scaled" if experiment == "simple-path" else "paper"


def candidates(experiment: str, net: str, method: str, grid: str = "small") -> list[Candidate]:
    """The candidates that a search tries for a method.

    Args:
        experiment: the experiment.
        net: "paper", "scaled" or "wide".
        method: the method.
        grid: "small" for what takes an hour or two on two cores. "public" for one candidate: the weights of the losses
            in the public code, a learning rate of 1e-3 and, for the layers, a gate of two layers as in the released
            scripts and m = 1. "weights" for the same with weights of the losses, and gates, to choose from. "sizes" for
            m and k of SPL with a gate of two layers in at most 2,000 steps (the text's number), as far as a training
            takes less than an hour. "published" for the paper's learning rates and, for SPL, its m and k; the paper
            does not give the weights of the losses, so they are varied over two decades. "released" for the same
            rates and m in 2,000 steps with k = 1, since k has no effect in the released code, and with a linear gate,
            which is ours: the released gate has two layers, and its script 20,000 steps.

    Raises:
        SemprolaError: if the name is unknown.

    Example:
        >>> [(model.dropout, training.lr) for model, training in candidates("simple-path", "wide", "fil")]
        [(0.0, 0.001), (0.0, 0.0005), (0.2, 0.001), (0.2, 0.0005)]
    """
    if method not in METHODS:
        raise SemprolaError(f"no method {method!r}: choose from {', '.join(METHODS)}")
    if grid not in GRIDS:
        raise SemprolaError(f"no grid {grid!r}: choose from {', '.join(GRIDS)}")
    start = _start(experiment, net, method)
    if grid == "sizes":
        if method != "spl":
            raise SemprolaError("the grid of sizes is for one circuit: --methods spl")
        return [_changed(start, _BRIEF | {"replicas": m, "units": k}) for m, k in _FEASIBLE]
    if grid in ("public", "weights"):
        weights = _PUBLIC[experiment] if method in ("semantic-loss", "nesy-entropy") else {}
        start = _changed(start, {"lr": 1e-3} | weights)
    small = _SMALL[experiment, "paper" if net in _OF_PREFERENCES else net]
    grids = {"small": small, "weights": _WEIGHTS, "released": _RELEASED, "published": _PUBLISHED}
    options = {} if grid == "public" else grids[grid][method]
    combinations = itertools.product(*options.values())
    return [_changed(start, dict(zip(options, values, strict=True))) for values in combinations]


def best_known(experiment: str, setting: str, net: str, method: str) -> Candidate:
    """What ``--known`` uses: the choices of searches over the small grid, on validation rows of the published split.

    For preferences, both layers were chosen by likelihood, averaged over three seeds; everything else was chosen by
    exact match with seed 0. Where no search was made, these are the settings of `starting_point`.
    """
    return _changed(_start(experiment, net, method), _BEST.get((experiment, setting, net, method), {}))


def _start(experiment: str, net: str, method: str) -> Candidate:
    model, training = starting_point(experiment, net)
    if net != "wide" and method in ("spl", "product-spl"):
        model = replace(model, gate=_PAPER_GATE)
    return model, training


def _changed(start: Candidate, changes: dict[str, Any]) -> Candidate:
    """A candidate with some settings of the model or of the training changed."""
    names = {field.name for field in fields(ModelSettings)}
    model = {name: value for name, value in changes.items() if name in names}
    training = {name: value for name, value in changes.items() if name not in names}
    return replace(start[0], **model), replace(start[1], **training)


_OF_PREFERENCES = {
    "text": ModelSettings(hidden=(50, 50, 50)),
    "released": ModelSettings(hidden=(25, 25, 25), features=50),
}

_PUBLIC: dict[str, dict[str, Any]] = {
    "simple-path": {"semantic_weight": 24 * 0.5, "entropy_weight": 24 * 0.1},
    "preference": {"semantic_weight": 16 * 0.25, "entropy_weight": 16 * 0.01},
}
"""The weights in the public code, where they belong to a cross-entropy averaged over labels; ours is a sum."""

_BRIEF: dict[str, Any] = {"lr": 1e-3, "steps": 2000, "evaluate_every": 20, "patience": 25}
_FEASIBLE = ((1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (2, 2), (4, 2), (1, 4), (2, 4))
"""m and k. A step takes about 0.02 s for the first of them and 2 s for the last; 15 s for m = 2, k = 8."""

_WEIGHTS: dict[str, Options] = {
    "fil": {"lr": (1e-3, 5e-3)},
    "semantic-loss": {"semantic_weight": (3.0, 6.0, 12.0, 24.0, 48.0)},
    "nesy-entropy": {"semantic_weight": (6.0, 12.0, 24.0), "entropy_weight": (2.4, 12.0)},
    "spl": {"gate": ((), _PAPER_GATE), "lr": (1e-3, 5e-3)},
    "product-spl": {"gate": ((), _PAPER_GATE), "lr": (1e-3, 5e-3)},
}

_PUBLISHED: dict[str, Options] = {
    "fil": {"lr": _RATES},
    "semantic-loss": {"semantic_weight": (0.1, 0.3, 1.0, 3.0, 10.0), "lr": _RATES},
    "nesy-entropy": {"semantic_weight": (0.1, 0.3, 1.0, 3.0, 10.0), "entropy_weight": (0.1, 1.0), "lr": _RATES},
    "spl": {"replicas": _SIZES, "units": _SIZES, "lr": _RATES},
    "product-spl": {"replicas": _SIZES, "lr": _RATES},
}

_RELEASED: dict[str, Options] = {
    method: {name: values for name, values in options.items() if name != "units"}
    | {"gate": ((),), "steps": (2000,), "patience": (None,)}
    for method, options in _PUBLISHED.items()
}

_SMALL: dict[tuple[str, str], dict[str, Options]] = {
    ("simple-path", "paper"): {
        "fil": {"lr": (1e-3, 5e-3)},
        "semantic-loss": {"semantic_weight": (1.0, 10.0), "penalty_from": (0, 5000)},
        "nesy-entropy": {"semantic_weight": (1.0, 10.0), "penalty_from": (5000,), "steps": (8000,)},
        "spl": {"gate": ((),), "lr": (1e-3, 5e-3)},
        "product-spl": {"gate": ((),)},
    },
    ("simple-path", "scaled"): {
        "fil": {"dropout": (0.0, 0.1)},
        "semantic-loss": {"semantic_weight": (1.0, 10.0), "penalty_from": (1000, 3000), "dropout": (0.1,)},
        "nesy-entropy": {"semantic_weight": (1.0, 10.0), "penalty_from": (2000,), "dropout": (0.1,), "steps": (4000,)},
        "spl": {"gate": ((),), "replicas": (1, 2), "lr": (1e-3, 5e-3), "dropout": (0.1,)},
        "product-spl": {"gate": ((),), "replicas": (1, 2), "lr": (1e-3, 5e-3), "dropout": (0.1,)},
    },
    ("simple-path", "wide"): {
        "fil": {"dropout": (0.0, 0.2), "lr": (1e-3, 5e-4)},
        "semantic-loss": {"semantic_weight": (1.0, 3.0, 10.0), "penalty_from": (0, 2000), "dropout": (0.2,)},
        "nesy-entropy": {"semantic_weight": (1.0, 10.0), "penalty_from": (2000,), "dropout": (0.2,), "steps": (4000,)},
        "spl": {"dropout": (0.2, 0.4)},
        "product-spl": {"dropout": (0.2, 0.4)},
    },
    ("preference", "paper"): {
        "fil": {"lr": (1e-3, 5e-3)},
        "semantic-loss": {"semantic_weight": (0.1, 0.3, 1.0), "penalty_from": (0, 300)},
        "nesy-entropy": {"semantic_weight": (0.1, 0.3, 1.0), "penalty_from": (0, 300)},
        "spl": {"gate": ((),), "replicas": (1, 4), "units": (1, 2), "weight_decay": (0.0, 1.0)},
        "product-spl": {"gate": ((),), "replicas": (1, 4), "weight_decay": (0.0, 1.0)},
    },
    ("preference", "scaled"): {
        "fil": {"lr": (1e-3, 5e-3)},
        "semantic-loss": {"semantic_weight": (0.1, 0.3, 1.0), "penalty_from": (0, 100)},
        "nesy-entropy": {"semantic_weight": (0.1, 0.3, 1.0), "penalty_from": (0, 100)},
        "spl": {"gate": ((),), "replicas": (1, 4), "units": (1, 2), "lr": (1e-3, 5e-3)},
        "product-spl": {"gate": ((),), "replicas": (1, 4), "lr": (1e-3, 5e-3)},
    },
    ("preference", "wide"): {
        "fil": {"dropout": (0.2, 0.5)},
        "semantic-loss": {"semantic_weight": (0.01, 0.03, 0.1, 0.3, 1.0), "dropout": (0.2, 0.5)},
        "nesy-entropy": {"semantic_weight": (0.03, 0.1, 0.3), "entropy_weight": (0.1, 1.0), "dropout": (0.2, 0.5)},
        "spl": {"hidden": ((64,), (256,)), "dropout": (0.2, 0.5), "replicas": (1, 4), "units": (1, 2)},
        "product-spl": {"hidden": ((64,), (256,)), "dropout": (0.2, 0.5), "replicas": (1, 4)},
    },
}

_WIDE_ENTROPY = {"semantic_weight": 10.0, "penalty_from": 2000, "dropout": 0.2, "steps": 4000}

_BEST: dict[tuple[str, str, str, str], dict[str, Any]] = {
    ("simple-path", "paper", "wide", "fil"): {"dropout": 0.2},
    ("simple-path", "paper", "wide", "semantic-loss"): {"semantic_weight": 1.0, "dropout": 0.2},
    ("simple-path", "paper", "wide", "nesy-entropy"): _WIDE_ENTROPY,
    ("simple-path", "paper", "wide", "spl"): {"dropout": 0.2},
    ("simple-path", "paper", "wide", "product-spl"): {"dropout": 0.2},
    ("simple-path", "given", "wide", "fil"): {"dropout": 0.2},
    ("simple-path", "given", "wide", "semantic-loss"): {"semantic_weight": 3.0, "dropout": 0.2},
    ("simple-path", "given", "wide", "nesy-entropy"): _WIDE_ENTROPY,
    ("simple-path", "given", "wide", "spl"): {"dropout": 0.4},
    ("simple-path", "given", "wide", "product-spl"): {"dropout": 0.2},
    ("simple-path", "paper", "paper", "semantic-loss"): {"semantic_weight": 10.0, "penalty_from": 5000},
    ("simple-path", "paper", "paper", "nesy-entropy"): {"semantic_weight": 10.0, "penalty_from": 5000, "steps": 8000},
    ("simple-path", "paper", "paper", "spl"): {"gate": ()},
    ("simple-path", "paper", "paper", "product-spl"): {"gate": ()},
    **{
        ("simple-path", setting, "scaled", method): changes | {"dropout": 0.1}
        for setting, weight, layers in (("paper", 1.0, {"gate": ()}), ("given", 10.0, {"gate": (), "lr": 1e-3}))
        for method, changes in (
            ("fil", {}),
            ("semantic-loss", {"semantic_weight": weight, "penalty_from": 1000}),
            ("nesy-entropy", {"semantic_weight": weight, "penalty_from": 2000, "steps": 4000}),
            ("spl", layers),
            ("product-spl", layers),
        )
    },
    **{
        ("preference", setting, "paper", method): changes
        for setting in ("paper", "given")
        for method, changes in (
            ("semantic-loss", {"semantic_weight": 1.0, "penalty_from": 300}),
            ("nesy-entropy", {"semantic_weight": 1.0, "penalty_from": 300}),
            ("spl", {"gate": (), "replicas": 4, "units": 2, "weight_decay": 1.0, "choose": "likelihood"}),
            ("product-spl", {"gate": (), "replicas": 4, "choose": "likelihood"}),
        )
    },
    **{
        ("preference", setting, "scaled", method): changes
        for setting in ("paper", "given")
        for method, changes in (
            ("semantic-loss", {"semantic_weight": 1.0, "penalty_from": 100}),
            ("nesy-entropy", {"semantic_weight": 0.3}),
            ("spl", {"gate": (), "replicas": 4, "units": 2, "choose": "likelihood"}),
            ("product-spl", {"gate": (), "replicas": 4, "choose": "likelihood"}),
        )
    },
}
