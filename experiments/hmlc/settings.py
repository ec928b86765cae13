"""What is chosen before a run: the method, the network, the layer, the training."""

from __future__ import annotations

from dataclasses import dataclass, replace

from experiments.hmlc.sets import find_set
from semprola.errors import SemprolaError

METHODS = ("spl", "fil", "hmcnn", "semantic-loss", "product-spl", "spl-known", "hmcnn-published")

TITLES = {
    "spl": "SPL",
    "spl-known": "SPL + known label sets",
    "product-spl": "SPL, two circuits",
    "fil": "FIL",
    "semantic-loss": "FIL + semantic loss",
    "hmcnn": "HMCNN, batch 128",
    "hmcnn-published": "HMCNN, as published",
}

CONSTRAINED = ("spl", "spl-known", "product-spl")
"""Methods whose support is the constraint with its options."""

CIRCUITS = ("tree", "sdd")
FIGURES = ("exact", "hamming", "auprc")
"""The figures by which an epoch is chosen on validation rows, one model for each."""


@dataclass(frozen=True)
class Settings:
    """Everything that a run depends on beside the data and the seed.

    Args:
        method: one of `METHODS`.
        width: of the two hidden layers; the published one, but for 1,000 in place of 2,000 on diatoms.
        features: width of a linear layer between the network and the last layer, 128 in the paper; None for none.
        dropout: share of hidden units that are left out in training.
        components: m of the paper.
        units: k of the paper.
        mixing: of units, "cross" or "elementwise".
        gate: widths of the gate's hidden layers.
        circuit: "tree" (built directly) or "sdd" (compiled from clauses, the kind that the paper uses).
        options: add to the hierarchy what all training rows obey (see `constraints.suggest`), for methods whose support
            is the constraint.
        further_rules: the same for the semantic loss.
        start: begin at the frequencies of the training labels.
        semantic_weight: of the semantic loss.
        marginal_weight: of the cross-entropy of exact marginals, added to the likelihood of methods that have one.
        lr: learning rate of Adam.
        weight_decay: its L2 penalty.
        batch: rows of a step.
        average: decay of the moving average of the parameters, which is what is evaluated; 0 for none.
        epochs: the most there are; the number there is, if `choose` is off.
        every: epochs between two looks at the validation rows.
        patience: looks without a better figure before training ends.
        choose: choose the epoch on validation rows. Off for what is published with a number of epochs.
        chosen: the epochs that were chosen before, on validation rows, one per figure of `FIGURES`, 0 for a figure that
            other settings are better for; None to choose them in every run.
        known_weight: the λ of known label sets that was chosen before; None to choose it in every run.
        impute: "train" or "file", see `experiments.hmlc.data.phase`.
    """

    method: str = "spl"
    width: int = 500
    features: int | None = None
    dropout: float = 0.7
    components: int = 4
    units: int = 1
    mixing: str = "elementwise"
    gate: tuple[int, ...] = ()
    circuit: str = "tree"
    options: bool = True
    further_rules: bool = False
    start: bool = True
    semantic_weight: float = 0.1
    marginal_weight: float = 0.0
    lr: float = 2e-3
    weight_decay: float = 1e-5
    batch: int = 128
    average: float = 0.99
    epochs: int = 120
    every: int = 2
    patience: int = 10
    choose: bool = True
    chosen: tuple[int, ...] | None = None
    known_weight: float | None = None
    impute: str = "train"


_PATHS = ("diatoms", "imclef07a", "imclef07d")
"""Sets whose rows are, or nearly are, single paths: they need less dropout, and components do not help."""


def default_settings(method: str, name: str) -> Settings:
    """The settings of a method on a set, where nothing else is asked for.

    Raises:
        SemprolaError: there is no such method or set.

    Example:
        >>> default_settings("spl", "enron").components, default_settings("fil", "enron").components
        (4, 1)
    """
    if method not in METHODS:
        raise SemprolaError(f"no method {method!r}: choose from {', '.join(METHODS)}")
    entry = find_set(name)
    made = Settings(method=method, width=entry.width)
    if name in _PATHS:
        made = replace(made, width=1000, dropout=0.5)
    if method not in ("spl", "product-spl") or name in _PATHS:
        made = replace(made, components=1)
    if entry.is_go and method in ("product-spl", "semantic-loss"):
        # a circuit of millions of edges: an epoch takes half a minute
        made = replace(made, components=1, epochs=40, every=4, patience=3)
    if method == "hmcnn-published":
        made = replace(made, width=entry.width, dropout=0.7, average=0.0, start=False, choose=False)
        made = replace(made, batch=4, lr=entry.published_lr, epochs=entry.published_epochs)
    return made
