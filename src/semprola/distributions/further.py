"""Queries beyond the core, each implemented in its own file: names, projections, formulas, rescoring, F1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from torch import Tensor
from torch.distributions import Distribution

from semprola.distributions import expected, formulas, names, projection, ranking
from semprola.logic import Formula


class FurtherQueries(Distribution):
    """Queries that are answered by means of the core queries."""

    def log_score(self, y: Any) -> Tensor:
        """The same as `log_prob(y)`; for the pool of a split, its lower bound. See :func:`semprola.split`."""
        value: Tensor = cast(Any, self).log_prob(y)
        return value

    def log_prob_bounds(self, y: Any) -> tuple[Tensor, Tensor]:
        """`log_prob(y)` twice, because it is exact; for the pool of a split, a certified lower and upper bound."""
        value: Tensor = cast(Any, self).log_prob(y)
        return value, value.detach()

    def to_dict(self, what: str = "mode", k: int = 5) -> dict[str, Any]:
        """A result by name: for each label, a number or nested lists of the batch shape.

        An ``Integer`` or ``Categorical`` is one entry: its value or, for "marginals", a dict from its values to their
        probabilities.

        Args:
            what: "mode", "marginals", or "top_k" for the k most probable states (lists of shape [*batch, k], and their
                log-probabilities under "log_prob").
            k: number of states for "top_k".

        Example:
            >>> import torch, semprola as sp
            >>> sp.constrain(torch.tensor([[2.0, -1.0], [-3.0, 0.5]]), "cat -> animal").to_dict()
            {'cat': [1, 0], 'animal': [1, 1]}
        """
        return names.to_dict(cast(Any, self), what, k)

    def to_frame(self, what: str = "mode", k: int = 5) -> Any:
        """A result as a pandas data frame: one row per element of the batch, one column per label.

        An ``Integer`` or ``Categorical`` is one column of values; for "marginals", there is a column for each value.

        Args:
            what: "mode", "marginals", or "top_k"; "top_k" gives one row per element and rank, and a column
                "log_prob".
            k: number of states for "top_k".

        Raises:
            SemprolaError: if pandas is not installed (the extra ``pandas``).
        """
        return names.to_frame(cast(Any, self), what, k)

    def project(self, y: Any) -> Tensor:
        """The nearest states of the support: those that differ from y in the fewest labels.

        Of several equally near states it is the most probable; for a mixture with a large support, the best of each
        component's favourites. Rows that satisfy the constraint are unchanged.

        Args:
            y: 0/1 [*sample, *batch, labels], or by name.

        Returns:
            [*sample, *batch, labels]

        Example:
            >>> import torch, semprola as sp
            >>> p = sp.constrain(torch.tensor([2.0, -1.0]), "cat -> animal")
            >>> p.project(torch.tensor([1.0, 0.0]))
            tensor([1., 1.])
        """
        return projection.project(cast(Any, self), y)

    def rescore(self, states: Any, log_prior: Any, weight: float = 1.0) -> tuple[Tensor, Tensor]:
        """Candidate states sorted by log p(y) + weight · log_prior(y), best first.

        Args:
            states: the candidates, 0/1 [n, labels] or [*batch, n, labels], such as the label sets of training rows.
            log_prior: added to their log-probabilities [n] or [*batch, n], such as log-frequencies.
            weight: the weight of `log_prior`.

        Returns:
            states [*batch, n, labels] and scores [*batch, n], -inf for candidates that violate the constraint.

        Example:
            >>> import torch, semprola as sp
            >>> p = sp.constrain(torch.tensor([0.2, 0.0, 0.0]), sp.one_hot(["a", "b", "c"]))
            >>> p.rescore(torch.eye(3), torch.tensor([0.1, 0.7, 0.2]).log())[0][0]
            tensor([0., 1., 0.])
        """
        return ranking.rescore(cast(Any, self), states, log_prior, weight)

    def log_prob_of(self, formula: Formula | str | Mapping[str, Any]) -> Tensor:
        """Log-probability that another formula holds, or of observed values [*batch]; differentiable.

        Args:
            formula: a formula, its text, or a family, over the labels and inputs of the constraint; or values of
                variables and labels, as in ``{"sum": 17}``: one for all rows, or a tensor with one per row [*batch].

        Returns:
            [*batch]; -inf where the formula cannot hold.

        Raises:
            LabelError: if the formula mentions a variable that the constraint does not have.
            IntractableError: if the formula splits into too many cases for this kind of distribution.

        Example:
            >>> import torch, semprola as sp
            >>> p = sp.constrain(torch.zeros(3), sp.one_hot(["a", "b", "c"]))
            >>> round(p.log_prob_of("a | b").exp().item(), 4)
            0.6667
        """
        return formulas.log_prob_of(cast(Any, self), formula)

    def expected_f1(self, y: Any) -> Tensor:
        """The expected F1 of predicting y, exactly; the F1 of two empty label sets is 1.

        Args:
            y: 0/1 [*sample, *batch, labels], or by name; it need not satisfy the constraint.

        Returns:
            [*sample, *batch]

        Example:
            >>> import torch, semprola as sp
            >>> p = sp.constrain(torch.zeros(2), sp.at_least(1, ["a", "b"]))  # 01, 10, 11: one in three each
            >>> round(p.expected_f1(torch.ones(2)).item(), 4)  # (2/3 + 2/3 + 1) / 3
            0.7778
        """
        return expected.expected_f1(cast(Any, self), y)

    def expected_jaccard(self, y: Any) -> Tensor:
        """The expected Jaccard index (intersection over union) of predicting y, exactly; it is 1 for two empty sets.

        Args:
            y: 0/1 [*sample, *batch, labels], or by name; it need not satisfy the constraint.

        Returns:
            [*sample, *batch]
        """
        return expected.expected_jaccard(cast(Any, self), y)

    def decode_with_bound(self, utility: str) -> tuple[Tensor, Tensor, Tensor]:
        """The best y found for a set utility, its expected utility, and an upper bound for any y in the constraint.

        Where the last two agree, the state is proven to be optimal. This is always so for independent labels and for
        supports small enough to list, and often for others.

        Args:
            utility: "f1" or "jaccard".

        Returns:
            states [*batch, labels], expected utilities [*batch], upper bounds [*batch].
        """
        return expected.decode_with_bound(cast(Any, self), utility)
