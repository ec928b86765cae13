"""Figures of the paper, to print next to ours: exact match, Hamming score, consistency, in percent."""

from __future__ import annotations

SIMPLE_PATH = {
    "fil": (5.6, 85.9, 7.0),
    "semantic-loss": (28.5, 83.1, 75.2),
    "nesy-entropy": (30.1, 83.0, 91.6),
    "spl": (37.6, 88.5, 100.0),
}

PREFERENCE = {
    "fil": (1.0, 75.8, 2.7),
    "semantic-loss": (15.0, 72.4, 69.8),
    "nesy-entropy": (18.2, 71.5, 96.0),
    "spl": (20.8, 72.4, 100.0),
}

PUBLISHED = {"simple-path": SIMPLE_PATH, "preference": PREFERENCE}

_LIKE = {"paper": ("spl",), "ends": ("fil", "semantic-loss", "nesy-entropy")}
"""Simple paths: which published figures belong to a setting; see `experiments.simple_path`."""


def comparable(experiment: str, setting: str) -> dict[str, tuple[float, float, float]]:
    """The published figures that belong to a task; of other tasks, none.

    Example:
        >>> sorted(comparable("simple-path", "ends")), sorted(comparable("simple-path", "paper"))
        (['fil', 'nesy-entropy', 'semantic-loss'], ['spl'])
    """
    if experiment != "simple-path":
        return dict(PUBLISHED.get(experiment, {})) if setting == "paper" else {}
    return {method: SIMPLE_PATH[method] for method in _LIKE.get(setting, ())}
