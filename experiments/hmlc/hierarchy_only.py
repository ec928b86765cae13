"""SPL with the hierarchy alone, beside HMCNN and the paper: no further rules, every seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.hmlc import published
from experiments.hmlc.collecting import EXACT, EXACT_MODE_HAMMING, Campaign, Figures, rank_sum, spread
from experiments.hmlc.sets import TWELVE
from experiments.hmlc.tables import Table

SEEDS = 10
"""How many runs each set and method gets."""
VARIANT = "hierarchy"
COLUMNS = {"train_only": "train rows", "retrained": "train and validation rows"}
METHODS = {"hmcnn": "HMCNN", "spl": "SPL", "product-spl": "SPL, two circuits"}

Values = dict[str, list[float]]
"""For each set, a figure by seed."""


def by_set(campaign: Campaign, figure: Figures = EXACT) -> dict[str, dict[str, Values]]:
    """A figure of HMCNN and of the layers with the hierarchy alone: by column of `COLUMNS`, method, set and seed."""
    return {
        column: {
            method: {name: figure.of(_runs(campaign, name, method), column) for name in TWELVE} for method in METHODS
        }
        for column in COLUMNS
    }


def complete(campaign: Campaign) -> list[str]:
    """The sets on which all have ten seeds in both columns."""
    found = by_set(campaign)
    return [n for n in TWELVE if all(len(sets[n]) >= SEEDS for methods in found.values() for sets in methods.values())]


def table(campaign: Campaign, figure: Figures, paper: dict[str, dict[str, published.Spread]], digits: int) -> Table:
    """One row per set: published, then ours in both columns; a dash where the runs are not done."""
    found = by_set(campaign, figure)
    head = ["", "paper: HMCNN", "paper: SPL"]
    head += [f"{title}: {name}" for title in COLUMNS.values() for name in METHODS.values()]
    rows = []
    for name in TWELVE:
        theirs = [f"{mean:.2f} ± {sd:.2f}" for mean, sd in (paper["HMCNN"][name], paper["SPL"][name])]
        ours = [spread(found[column][method][name], digits) for column in COLUMNS for method in METHODS]
        rows.append((name, *theirs, *ours))
    return head, rows


def sentences(campaign: Campaign) -> list[str]:
    """On how many sets the layers are ahead, in words: one sentence per column and layer."""
    names, found = complete(campaign), by_set(campaign)
    modes = by_set(campaign, EXACT_MODE_HAMMING)
    items = []
    for column, title in COLUMNS.items() if names else ():
        for method in ("spl", "product-spl"):
            ours, hmcnn = found[column][method], found[column]["hmcnn"]
            verdicts = [compared(ours[name], hmcnn[name]) for name in names]
            paper = sum(round(_mean(ours[name]), 2) >= published.EXACT["SPL"][name][0] for name in names)
            hamming = sum(round(_mean(modes[column][method][n]), 2) >= published.HAMMING["SPL"][n][0] for n in names)
            beside = [compared(modes[column][method][n], modes[column]["hmcnn"][n]) for n in names]
            items.append(
                f"**Hierarchies**, hierarchy only, {title}, {METHODS[method]}: in exact match ahead of our HMCNN on "
                f"{verdicts.count('ahead of')} of {len(names)} sets and behind on {verdicts.count('behind')} (p < "
                f"0.05, {SEEDS} seeds), at least the paper's SPL on {paper}. The mode's Hamming score is at least that "
                f"of the paper's SPL on {hamming}, above that of our HMCNN on {beside.count('ahead of')} and below it "
                f"on {beside.count('behind')} (p < 0.05)."
            )
    return items


def without_rules(campaign: Campaign) -> str:
    """How much of SPL's lead over HMCNN in exact match is left without the further rules; "" if no set has the runs."""
    names = complete(campaign)
    if not names:
        return ""
    found = by_set(campaign)
    parts = []
    for name in names:
        changes = []
        for column, title in COLUMNS.items():
            hmcnn, plain = found[column]["hmcnn"][name], found[column]["spl"][name]
            before = _mean(EXACT.of(campaign.of(name, "spl"), column)) - _mean(hmcnn)
            p = rank_sum(plain, hmcnn)
            changes.append(f"from {before:.1f} to {_mean(plain) - _mean(hmcnn):.1f} points ({title}; p = {p:.2g})")
        parts.append(f"on {name} {' and '.join(changes)}")
    left = len(TWELVE) - len(names)
    missing = f" {left} of 12 sets are not run without these rules." if left else ""
    return (
        f"**Without the further rules**, SPL's lead over our HMCNN in exact match changes: {'; '.join(parts)}. "
        f"The p-values are of the leads without these rules.{missing}"
    )


def compared(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Whether one is ahead of the other, by the rank-sum test over seeds.

    Example:
        >>> compared([5.0, 6.0, 7.0, 8.0, 9.0], [1.0, 2.0, 3.0, 4.0, 4.5])
        'ahead of'
        >>> compared([5.0], [1.0])
        'not told apart by these seeds from'
    """
    p = rank_sum(ours, theirs)
    if p is None or p >= 0.05:
        return "not told apart by these seeds from"
    return "ahead of" if sum(ours) / len(ours) > sum(theirs) / len(theirs) else "behind"


def _runs(campaign: Campaign, name: str, method: str) -> list[dict[str, Any]]:
    return campaign.of(name, method) if method == "hmcnn" else campaign.variant(name, method, VARIANT)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
