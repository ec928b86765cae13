"""What the experiment aimed for, counted on the sets that have runs; as a table, and in sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiments.hmlc import hierarchy_only, published
from experiments.hmlc.collecting import (
    AUPRC,
    CONSISTENT,
    EITHER,
    EXACT,
    HAMMING,
    KNOWN,
    Campaign,
    Figures,
    rank_sum,
)
from experiments.hmlc.sets import TWELVE
from experiments.hmlc.tables import markdown

SEEDS = 10
"""How many runs each set and method gets."""

_RULES = "with further rules for SPL, which HMCNN has not"
_ONE_FIGURE = "Each figure has its own settings and number of epochs, for every method."

Reached = dict[str, bool]
"""Whether a set reaches an aim, for the sets with runs."""


class Aims:
    """The aims on all sets.

    Args:
        campaign: the runs.
        column: "retrained" (on train and validation rows) or "train_only".
    """

    def __init__(self, campaign: Campaign, column: str = "retrained") -> None:
        self._campaign, self._column = campaign, column

    def above_paper(self, method: str, figure: Figures = EXACT) -> Reached:
        """Exact match at least that of the paper's SPL."""
        return self._beside_paper(method, figure, published.EXACT["SPL"])

    def above_hmcnn(self, method: str) -> Reached:
        """Exact match above that of our HMCNN."""
        return self._beside_hmcnn(method, EXACT, lambda ours, theirs: ours > theirs)

    def significant(self, method: str) -> Reached:
        """Exact match above that of our HMCNN, p < 0.05; only sets with enough seeds for a test."""
        differs = self._differs(method, EXACT)
        return {name: above and differs[name] for name, above in self.above_hmcnn(method).items() if name in differs}

    def hamming(self, method: str, slack: float = 0.0) -> Reached:
        """Hamming score of the decoder inside the rules at least that of our HMCNN, less the slack."""
        return self._beside_hmcnn(
            method, HAMMING, lambda ours, theirs: round(ours, 3) >= round(round(theirs, 3) - slack, 3)
        )

    def hamming_level(self, method: str) -> Reached:
        """Hamming score of the decoder not significantly below that of our HMCNN; only sets with enough seeds."""
        differs = self._differs(method, HAMMING)
        return {name: above or not differs[name] for name, above in self.hamming(method).items() if name in differs}

    def hamming_of_paper(self, method: str) -> Reached:
        """Hamming score of the decoder at least that of the paper's HMCNN."""
        return self._beside_paper(method, HAMMING, published.HAMMING["HMCNN"])

    def area(self, method: str) -> Reached:
        """AU(PRC) of single models at least that of C-HMCNN as published."""
        ours = {name: self._mean(name, method, AUPRC) for name in TWELVE}
        paper = published.AUPRC["C-HMCNN"]
        return {name: round(value, 3) >= paper[name] for name, value in ours.items() if value is not None}

    def area_beside_hmcnn(self, method: str) -> Reached:
        """AU(PRC) at least that of our HMCNN."""
        return self._beside_hmcnn(method, AUPRC, lambda ours, theirs: round(ours, 3) >= round(theirs, 3))

    def consistent(self, method: str) -> Reached:
        """All predictions obey the hierarchy, by its formula."""
        found = {name: CONSISTENT.of(self._campaign.of(name, method), self._column) for name in TWELVE}
        return {name: min(values) == 100 for name, values in found.items() if values}

    def table(self) -> str:
        """How many sets reach each aim; AU(PRC) only if retrained, as the published figures are."""
        methods = {"spl": "SPL", EITHER: "SPL, one or two circuits", "spl-known": "SPL + known sets"}

        def row(aim: str, least: str, reached: Callable[[str], Reached]) -> Sequence[str]:
            return aim, least, *(_count(reached(method)) for method in methods)

        best_known = _count(self.above_paper("spl", KNOWN))
        rows = [
            row("exact match of the mode ≥ the paper's SPL", "11", self.above_paper),
            row("… significantly above our HMCNN (p < 0.05)", "10", self.significant),
            ("exact match of the best seen set ≥ the paper's SPL", "12", best_known, "–", "–"),
            row("Hamming score of the decoder inside the rules ≥ our HMCNN", "11", self.hamming),
            row("… at most 0.02 below our HMCNN", "12", lambda method: self.hamming(method, 0.02)),
            row("… not significantly below our HMCNN (p ≥ 0.05)", "–", self.hamming_level),
            row("… ≥ the paper's HMCNN", "–", self.hamming_of_paper),
            row("all test predictions consistent", "12", self.consistent),
        ]
        if self._column == "retrained":
            rows[-1:-1] = [
                row("AU(PRC) ≥ C-HMCNN as published", "8", self.area),
                row("… ≥ our HMCNN", "–", self.area_beside_hmcnn),
            ]
            return markdown((("retrained; counted over the sets with runs", "aim, of 12", *methods.values()), rows))
        rows = [(first, *rest) for first, _, *rest in rows]  # the aims are for models that were retrained
        return markdown((("train rows only; counted over the sets with runs", *methods.values()), rows))

    def two_circuits(self) -> str:
        """Where the column of one or two circuits has two."""
        chosen = {}
        for figure, title in (("exact", "exact match"), ("hamming", "Hamming score"), ("auprc", "AU(PRC)")):
            names = [name for name in TWELVE if self._campaign.preferred(name, figure) != "spl"]
            if names:
                chosen[title] = _listed(names)
        where = "; ".join(f"{title} on {names}" for title, names in chosen.items()) or "nowhere"
        return (
            "*One or two circuits*: SPL with one circuit, or with a factorised q times the constraint; whichever is "
            f"better on validation rows, set by set and figure by figure. Two are better for: {where}."
        )

    def findings(self) -> str:
        """The main results: one item of a list per figure."""
        if not self.above_hmcnn("spl"):
            return "No set has runs of both SPL and HMCNN yet."
        items = [
            self._exact_sentence(),
            hierarchy_only.without_rules(self._campaign),
            self._twice("**Hamming score** of SPL's decoder inside its own rules", Aims._hamming_counts),
            self._twice("**AU(PRC)** of SPL's exact marginals", Aims._area_counts),
        ]
        return "\n".join(f"- {item}" for item in items if item) + f"\n\n{_ONE_FIGURE}"

    def _exact_sentence(self) -> str:
        """How often whole label sets are right: on train rows alone if there are such runs, and retrained."""
        alone = Aims(self._campaign, "train_only")
        joined = f"on train and validation rows, as C-HMCNN does it, {self._exact_counts()}."
        if not alone.above_hmcnn("spl"):
            return f"**Exact match**, {_RULES}: trained {joined}"
        first = f"trained on train rows alone, as early stopping in the paper's text suggests, {alone._exact_counts()}."
        return f"**Exact match**, {_RULES}: {first} Trained again {joined}"

    def _exact_counts(self) -> str:
        paper, above, sure = self.above_paper("spl"), self.above_hmcnn("spl"), self.significant("spl")
        so_far = self._so_far(list(above))
        return (
            f"SPL's mode is at least as good as the paper's SPL on {_count(paper)} sets and better than our HMCNN on "
            f"{_count(above)}, significantly so on {_count(sure)}{f' ({so_far})' if so_far else ''}"
        )

    def _twice(self, title: str, counts: Callable[[Aims], str]) -> str:
        """What is counted over the models that were retrained; and on train rows alone, if there are such runs."""
        retrained, alone = counts(self), counts(Aims(self._campaign, "train_only"))
        if not retrained:
            return ""
        return f"{title}, retrained: {retrained}." + (f" On train rows alone: {alone}." if alone else "")

    def _hamming_counts(self) -> str:
        at_least, level = self.hamming("spl"), self.hamming_level("spl")
        if not at_least or not level:
            return ""
        lower = sum(not reached for reached in level.values())
        return (
            f"at least that of our HMCNN on {_count(at_least)} sets, significantly lower on {lower} of {len(level)}; "
            f"at least that of the paper's HMCNN on {_count(self.hamming_of_paper('spl'))}"
        )

    def _area_counts(self) -> str:
        ours, paper = self.area_beside_hmcnn("spl"), self.area("spl")
        if not ours:
            return ""
        return (
            f"at least that of our HMCNN on {_count(ours)} sets, and at least the published figure of C-HMCNN on "
            f"{_count(paper)} (our HMCNN: {_count(self.area('hmcnn'))})"
        )

    def _so_far(self, names: Sequence[str]) -> str:
        """How many of the ten seeds are done, if not all are."""
        runs = [EXACT.of(self._campaign.of(name, which), self._column) for name in names for which in ("spl", "hmcnn")]
        least, most = min(map(len, runs)), max(map(len, runs))
        if least >= SEEDS:
            return ""
        return f"{least if least == most else f'{least} to {most}'} of {SEEDS} seeds per set so far"

    def _beside_paper(self, method: str, figure: Figures, paper: Mapping[str, published.Spread]) -> Reached:
        ours = {name: self._mean(name, method, figure) for name in TWELVE}
        return {name: round(value, 2) >= paper[name][0] for name, value in ours.items() if value is not None}

    def _beside_hmcnn(self, method: str, figure: Figures, test: Any) -> Reached:
        reached = {}
        for name in TWELVE:
            ours, theirs = (self._mean(name, which, figure) for which in (method, "hmcnn"))
            if ours is not None and theirs is not None:
                reached[name] = bool(test(ours, theirs))
        return reached

    def _differs(self, method: str, figure: Figures) -> dict[str, bool]:
        """Whether a figure differs from HMCNN's, p < 0.05; only sets with enough seeds for a test."""
        found = {}
        for name in TWELVE:
            ours, theirs = (
                figure.of(self._campaign.of(name, which, figure.chosen_by), self._column) for which in (method, "hmcnn")
            )
            p = rank_sum(ours, theirs)
            if p is not None:
                found[name] = p < 0.05
        return found

    def _mean(self, name: str, method: str, figure: Figures) -> float | None:
        values = figure.of(self._campaign.of(name, method, figure.chosen_by), self._column)
        return sum(values) / len(values) if values else None


def _count(reached: Reached) -> str:
    return f"{sum(reached.values())} of {len(reached)}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
