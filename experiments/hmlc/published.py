"""Published figures, to print beside ours."""

from __future__ import annotations

from experiments.hmlc.sets import TWELVE

Spread = tuple[float, float]
"""Mean and standard deviation over ten runs."""


def _by_set(*values: Spread) -> dict[str, Spread]:
    return dict(zip(TWELVE, values, strict=True))


EXACT = {
    "HMCNN": _by_set(
        (3.05, 0.11), (1.39, 0.47), (5.40, 0.15), (4.20, 0.21), (3.48, 0.96), (3.11, 0.08), (5.24, 0.27), (1.97, 0.06),
        (48.21, 0.57), (5.97, 0.56), (79.75, 0.38), (76.47, 0.35),
    ),
    "SPL": _by_set(
        (3.79, 0.18), (2.28, 0.23), (6.18, 0.33), (5.54, 0.36), (4.65, 0.30), (3.95, 0.28), (7.98, 0.28), (1.92, 0.11),
        (58.71, 0.68), (8.18, 0.68), (86.08, 0.45), (81.06, 0.68),
    ),
}  # fmt: skip
"""Exact match in percent, Table 4 of the paper."""

HAMMING = {
    "HMCNN": _by_set(
        (98.26, 0.00), (98.32, 0.32), (98.09, 0.01), (98.29, 0.01), (98.37, 0.31), (98.27, 0.00), (98.31, 0.01),
        (98.23, 0.00), (99.75, 0.00), (94.10, 0.04), (99.40, 0.01), (98.06, 0.02),
    ),
    "SPL": _by_set(
        (97.84, 0.06), (97.70, 0.07), (97.30, 0.04), (97.87, 0.02), (97.59, 0.05), (97.94, 0.07), (97.66, 0.03),
        (98.17, 0.03), (99.64, 0.01), (93.19, 0.13), (99.35, 0.03), (98.07, 0.08),
    ),
}  # fmt: skip
"""Hamming score in percent, Table 4 of the paper."""

AUPRC = {
    name: dict(zip(TWELVE, values, strict=True))
    for name, values in {
        "Clus-Ens": (0.227, 0.187, 0.286, 0.271, 0.267, 0.231, 0.284, 0.211, 0.501, 0.696, 0.803, 0.881),
        "HMCN-F": (0.252, 0.193, 0.298, 0.301, 0.284, 0.254, 0.291, 0.211, 0.530, 0.724, 0.950, 0.920),
        "C-HMCNN": (0.255, 0.195, 0.306, 0.302, 0.286, 0.258, 0.292, 0.215, 0.758, 0.756, 0.956, 0.927),
    }.items()
}
"""AU(PRC) of models trained on train and valid rows, as published by Giunchiglia & Lukasiewicz (2020)."""
