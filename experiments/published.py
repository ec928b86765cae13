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
