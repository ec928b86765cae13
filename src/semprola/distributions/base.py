"""The distribution that a layer returns: normalised, exactly zero outside the constraint, exactly queryable."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from semprola._notebook import shown
from semprola.circuit import Circuit
from semprola.distributions import decoding, formulas, information, names, projection
from semprola.distributions.arguments import check_evidence, check_labels, flat_rows, rows_named
from semprola.distributions.domain import Satisfies
from semprola.distributions.evaluator import Evaluator
from semprola.distributions.names import as_rows
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import UnsatisfiableError
from semprola.logic import Formula


class ConstrainedDistribution(Distribution):
    """A mixture over label vectors y in {0, 1}^L whose support is exactly the models of a constraint.

    p(y) = Σ_c π_c f_c(y) / Z. The evaluator knows the components f_c; a subclass only says how to make the evaluator
    from its arguments. Every query is written once in terms of the evaluator, in the
    files that are imported here; the methods check arguments and reshape results.

    Args:
        evaluator: the mixture, over a flat batch.
        batch_shape: the shape of the batch before it was flattened.
        validate_args: check the arguments of queries, as torch.distributions does.
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    has_enumerate_support = True

    def __init__(self, evaluator: Evaluator, batch_shape: Sequence[int], validate_args: bool | None = None) -> None:
        self.evaluator = evaluator
        labels = evaluator.domain.circuit.num_labels
        super().__init__(torch.Size(batch_shape), torch.Size([labels]), validate_args=False)
        # not torch's default, which torch.compile turns off for the whole process, so that a bad y would go unnoticed
        self._validate_args = __debug__ if validate_args is None else validate_args

    # shape and description ------------------------------------------------------------------------------------------

    @property
    def circuit(self) -> Circuit:
        """The compiled constraint."""
        return self.evaluator.domain.circuit

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of y."""
        return self.circuit.labels

    @property
    def log_mixing(self) -> Tensor:
        """Normalised log-weights of the mixture components [*batch, components]."""
        # here and below, a copy: what is changed in place must not change the distribution
        return self.evaluator.log_mixing.T.reshape(*self.batch_shape, self.evaluator.count).clone()

    @property
    def support(self) -> Satisfies:
        """A torch constraint: ``p.support.check(y)`` says whether y satisfies the constraint (and the evidence)."""
        return Satisfies(self)

    @shown
    def _repr_html_(self) -> str | None:
        from semprola.distributions import showing

        return showing.html(self)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(batch_shape={tuple(self.batch_shape)}, event_shape={tuple(self.event_shape)}, "
            f"components={self.evaluator.count})"
        )

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same distribution with its batch expanded to a larger shape, as in torch.distributions."""
        shape = torch.Size(batch_shape)
        device = self.evaluator.log_mixing.device
        index = torch.arange(self.evaluator.batch, device=device).reshape(self.batch_shape)
        return self.over(self.evaluator.select(index.expand(shape).reshape(-1)), shape)

    # probabilities --------------------------------------------------------------------------------------------------

    def log_prob(self, value: Any, on_violation: str | None = None) -> Tensor:
        """Log-probability of label vectors; exactly -inf where one violates the constraint.

        Args:
            value: 0/1 of shape [*sample, *batch, labels], or a dict or data frame with one column per label.
            on_violation: what to do with rows that violate the constraint, instead of returning -inf. "raise": raise an
                error that names the first such rows and the rule that each breaks. "ignore": return 0, so that the row
                adds nothing to a sum and has no gradient; a mean still divides by all rows. "project": return the
                log-probability of the nearest state of the support, see :meth:`project`.

        Returns:
            [*sample, *batch]

        Raises:
            ViolationError: if on_violation is "raise" and a row violates the constraint.
            LabelError: if a column is unknown or missing.
        """
        if on_violation is not None:
            return projection.log_prob(self, value, on_violation)
        value = as_rows(value, self.labels, "y", self.evaluator.log_mixing)
        y, shape = self._flat(value)
        if self._validate_args and not torch.compiler.is_compiling():
            check_labels(value)
        return self.evaluator.log_probs(y).reshape(shape)

    @property
    def log_partition(self) -> Tensor:
        """log Z [*batch]: 0 for a single normalised circuit, the log-probability of the constraint for a product."""
        value = self.evaluator.log_partition
        return (value if value.shape == self.batch_shape else value.reshape(self.batch_shape)).clone()

    @property
    def mean(self) -> Tensor:
        """Marginals P(Y_j = 1) of shape [*batch, labels]; differentiable."""
        return self._shaped(self.evaluator.marginals())

    @property
    def variance(self) -> Tensor:
        """Variances of the labels [*batch, labels]."""
        mean = self.mean
        return mean * (1 - mean)

    def log_marginal(self, evidence: Any) -> Tensor:
        """Log-probability of a partial assignment.

        Args:
            evidence: 0, 1, or NaN where not observed, of shape [*sample, *batch, labels]; or a dict or data frame
                whose columns are the observed labels.

        Returns:
            [*sample, *batch]; 0 if nothing is observed, -inf if the evidence is impossible.
        """
        evidence = as_rows(evidence, self.labels, "evidence", self.evaluator.log_mixing, missing=float("nan"))
        rows, shape = self._flat(evidence)
        if self._validate_args:
            check_evidence(evidence)
        return self.evaluator.log_marginals(rows).reshape(shape)

    def condition(self, evidence: Any) -> Any:
        """The distribution given evidence.

        Args:
            evidence: 0, 1, or NaN where not observed, of shape [*batch, labels] (or broadcastable to it); or a dict or
                data frame whose columns are the observed labels or variables, as in ``p.condition({"even": 1})``; or a
                formula or its text, which has the same variables.

        Raises:
            UnsatisfiableError: if the evidence has probability zero; the message names the rows.
            LabelError: if a name is not a label.
            IntractableError: if the formula splits into too many cases for this kind of distribution.
        """
        if isinstance(evidence, Formula | str):
            return formulas.condition(self, evidence)
        evidence = as_rows(evidence, self.labels, "evidence", self.evaluator.log_mixing, missing=float("nan"))
        if self._validate_args:
            check_evidence(evidence)
        rows, shape = self._flat(evidence)
        if shape != self.batch_shape:
            raise ValueError(f"evidence of shape {tuple(evidence.shape)} does not fit batch {tuple(self.batch_shape)}")
        domain, conflict = self.evaluator.domain.observe(rows[:, 0].clone())
        observed = self.evaluator.within(domain)
        impossible = conflict | (observed.log_partition == NEGATIVE_INFINITY)
        if impossible.any():
            raise UnsatisfiableError(f"the evidence has probability zero{rows_named(impossible, self.batch_shape)}")
        return self.over(observed)

    def entropy(self) -> Tensor:
        """Entropy in nats [*batch]: exact for deterministic circuits and for supports small enough to list.

        Raises:
            IntractableError: for a mixture with a large support; use `entropy_bounds` or `entropy_estimate` instead.
        """
        return information.entropy(self.evaluator).reshape(self.batch_shape)

    def entropy_bounds(self) -> tuple[Tensor, Tensor]:
        """A lower and an upper bound on the entropy [*batch], cheap for any mixture."""
        lower, upper = information.entropy_bounds(self.evaluator)
        return lower.reshape(self.batch_shape), upper.reshape(self.batch_shape)

    def entropy_estimate(self, samples: int = 1000, generator: torch.Generator | None = None) -> Tensor:
        """A Monte-Carlo estimate of the entropy [*batch].

        Args:
            samples: number of samples; at least one.
            generator: source of randomness; see :meth:`sample`.
        """
        if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
            raise ValueError(f"samples must be a positive whole number, not {samples!r}")
        with torch.no_grad():
            drawn = self.sample(torch.Size([samples]), generator=generator)
            return -self.log_prob(drawn).mean(0)

    # states ---------------------------------------------------------------------------------------------------------

    @property
    def mode(self) -> Tensor:
        """The most probable y [*batch, labels]; exact where `mode_is_exact` is true, else the best candidate found."""
        return self._shaped(self.evaluator.best[0]).clone()

    @property
    def mode_is_exact(self) -> Tensor:
        """Whether `mode` is proven to be the most probable y, bool [*batch]."""
        return self.evaluator.best[1].reshape(self.batch_shape).clone()

    def decode(self, utility: Any = "mode") -> Tensor:
        """The y in the constraint that maximises an expected utility.

        Args:
            utility: "mode"; "hamming" (smallest expected number of wrong labels); "f1" or "jaccard" (largest expected
                F1 or Jaccard index of the labels, see :meth:`decode_with_bound`); "greedy" (the published decoder, for
                comparison only: it may miss the mode); or the gain if a label is 1, as a tensor [*batch, labels] or by
                name (labels that are left out gain nothing).

        Returns:
            [*batch, labels]
        """
        utility = as_rows(utility, self.labels, "utilities", self.evaluator.log_mixing, missing=0.0)
        if not isinstance(utility, Tensor):
            return self._shaped(decoding.decode(self.evaluator, utility))
        gains, shape = self._flat(utility)
        if shape != self.batch_shape:
            raise ValueError(f"utilities of shape {tuple(utility.shape)} do not fit batch {tuple(self.batch_shape)}")
        if not bool(torch.isfinite(gains).all()):
            raise ValueError("utilities must be finite numbers")
        return self._shaped(decoding.decode(self.evaluator, gains[:, 0]))

    def sample(self, sample_shape: Any = torch.Size(), generator: torch.Generator | None = None) -> Tensor:  # noqa: B008
        """Exact samples [*sample_shape, *batch, labels]; all of them satisfy the constraint.

        Args:
            sample_shape: the shape of independent samples per element of the batch.
            generator: source of randomness; by default torch's own, so that torch.manual_seed makes samples
                reproducible. The same seed gives different samples with another engine.
        """
        shape = torch.Size(sample_shape)
        if any(size < 0 for size in shape):
            raise ValueError(f"sample_shape must contain sizes of 0 or more, not {tuple(shape)}")
        with torch.no_grad():
            y = self.evaluator.sample(shape.numel(), generator)
        return y.permute(1, 2, 0).reshape(*shape, *self.batch_shape, self.circuit.num_labels)

    def top_k(self, k: int) -> tuple[Tensor, Tensor]:
        """The k most probable states, best first: states [*batch, k, labels] and log-probabilities [*batch, k].

        Exact for deterministic circuits and for supports small enough to list. For other mixtures, they are the best
        of each component's k best states. Rows past the end of the support repeat the best state and have
        log-probability -inf.
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise ValueError(f"k must be a positive whole number, not {k!r}")
        with torch.no_grad():
            states, log_probs = decoding.top_k(self.evaluator, k)
        return (
            states.permute(2, 1, 0).reshape(*self.batch_shape, k, self.circuit.num_labels),
            log_probs.T.reshape(*self.batch_shape, k),
        )

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All states of the support [states, *batch, labels].

        Raises:
            IntractableError: if there are too many to list.
            ValueError: if the rows of the batch have different supports (given inputs or evidence differ).
        """
        domain = self.evaluator.domain
        states = domain.all_states()
        if domain.observed is not None:
            allowed = self.support.check(states.reshape(-1, *[1] * len(self.batch_shape), states.shape[1]))
            allowed = allowed.reshape(len(states), domain.batch)
            if bool((allowed != allowed[:, :1]).any()):
                raise ValueError("the rows of the batch have different supports: enumerate them one by one")
            # all rows are alike; if there are none, every state of the constraint is listed
            states = states[allowed.all(1)]
        states = states.reshape(-1, *[1] * len(self.batch_shape), states.shape[1])
        return states.expand(-1, *self.batch_shape, -1) if expand else states

    # names, other states, formulas, expected scores -----------------------------------------------------------------

    def log_score(self, y: Any) -> Tensor:
        """The same as `log_prob(y)`; for the pool of a split, its lower bound. See :func:`semprola.split`."""
        return self.log_prob(y)

    def log_prob_bounds(self, y: Any) -> tuple[Tensor, Tensor]:
        """`log_prob(y)` twice, because it is exact; for the pool of a split, a certified lower and upper bound."""
        value = self.log_prob(y)
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
        return names.to_dict(self, what, k)

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
        return names.to_frame(self, what, k)

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
        return projection.project(self, y)

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
        return decoding.rescore(self, states, log_prior, weight)

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
        return formulas.log_prob_of(self, formula)

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
        return decoding.expected_f1(self, y)

    def expected_jaccard(self, y: Any) -> Tensor:
        """The expected Jaccard index (intersection over union) of predicting y, exactly; it is 1 for two empty sets.

        Args:
            y: 0/1 [*sample, *batch, labels], or by name; it need not satisfy the constraint.

        Returns:
            [*sample, *batch]
        """
        return decoding.expected_jaccard(self, y)

    def decode_with_bound(self, utility: str) -> tuple[Tensor, Tensor, Tensor]:
        """The best y found for a set utility, its expected utility, and an upper bound for any y in the constraint.

        Where the last two agree, the state is proven to be optimal. This is always so for independent labels and for
        supports small enough to list, and often for others.

        Args:
            utility: "f1" or "jaccard".

        Returns:
            states [*batch, labels], expected utilities [*batch], upper bounds [*batch].
        """
        return decoding.decode_with_bound(self, utility)

    # for authors of queries -----------------------------------------------------------------------------------------

    def over(self, evaluator: Evaluator, batch_shape: Sequence[int] | None = None) -> Any:
        """A distribution of the same kind with another evaluator; for authors of queries."""
        new = copy.copy(self)
        new.evaluator = evaluator
        new._batch_shape = self.batch_shape if batch_shape is None else torch.Size(batch_shape)
        return new

    def _flat(self, value: Any) -> tuple[Tensor, torch.Size]:
        """[labels, samples, batch] from [*sample, *batch, labels], and the shape [*sample, *batch]."""
        return flat_rows(value, len(self.labels), self.batch_shape, self.evaluator.log_mixing)

    def _shaped(self, y: Tensor) -> Tensor:
        """[*batch, labels] from [labels, batch]."""
        return y.T.reshape(*self.batch_shape, self.circuit.num_labels)
