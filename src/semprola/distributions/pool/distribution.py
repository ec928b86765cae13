"""The distribution of a layer over a split: one distribution per circuit, pooled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from semprola.circuit import Circuit
from semprola.compiler.splitting import Split
from semprola.distributions import names
from semprola.distributions.arguments import check_evidence, check_labels, flat_rows, rows_named
from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.names import as_rows
from semprola.distributions.pool.finisher import finisher_of
from semprola.distributions.pool.oracles import Oracles
from semprola.distributions.pool.propagation import propagation_of
from semprola.distributions.pool.rejection import Drawn, draw
from semprola.distributions.pool.search import Found, Limits, Search
from semprola.distributions.pool.support import Obeys
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import IntractableError, UnsatisfiableError

_MOST_KEPT = 4096
"""The most states of a row that are remembered for upper bounds."""


class PoolDistribution(Distribution):
    """p(y) = Π_j p_j(y)^w_j / Z over the label vectors that satisfy all rules, for weights w_j that sum to one.

    Each p_j is a distribution over one circuit of a split. By Hölder's inequality Z ≤ 1, so the score
    Σ_j w_j log p_j(y) is a lower bound of log p(y), exact to differentiate and cheap: train by it. The mode is found by
    dual decomposition and branch and bound, and proven; samples are exact. What would need Z itself is refused by name.

    Args:
        split: the circuits, and the rules that they leave out.
        members: one distribution per circuit, all with the same batch shape.
        weights: the weights w_j [circuits], positive; they are normalised to sum to one. Equal by default.
        limits: what the search for a mode may use.
        validate_args: check the arguments of queries.

    Example:
        >>> import torch, semprola as sp
        >>> S = sp.split(sp.constraints.permutation(4), max_nodes=30)
        >>> p = sp.constrain(torch.eye(4).flatten(), S)
        >>> p.mode.reshape(4, 4).argmax(-1), bool(p.mode_is_exact)
        (tensor([0, 1, 2, 3]), True)
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    has_enumerate_support = False

    def __init__(
        self,
        split: Split,
        members: Sequence[ConstrainedDistribution],
        weights: Tensor | None = None,
        limits: Limits | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.split, self.members, self.limits = split, tuple(members), limits or Limits()
        if len(self.members) != len(split.circuits):
            raise ValueError(f"a pool of {len(split.circuits)} circuits needs as many distributions")
        given = torch.ones(len(self.members)) if weights is None else torch.as_tensor(weights)
        if given.shape != (len(self.members),) or not bool((given.detach() > 0).all()):
            raise ValueError(f"weights must be {len(self.members)} numbers above 0, one for each circuit")
        self.weights = given / given.sum()
        self._found: list[dict[bytes, Tensor]] = []
        self._searched: Found | None = None
        super().__init__(self.members[0].batch_shape, self.members[0].event_shape, validate_args=False)
        self._validate_args = __debug__ if validate_args is None else validate_args

    # shape and description ------------------------------------------------------------------------------------------

    @property
    def circuit(self) -> Circuit:
        """The first circuit; `split` has all of them."""
        return self.split.circuits[0]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of y."""
        return self.split.labels

    @property
    def support(self) -> Obeys:
        """A torch constraint: ``p.support.check(y)`` says whether y satisfies all rules (and the evidence)."""
        return Obeys(self)

    def __repr__(self) -> str:
        return (
            f"PoolDistribution(batch_shape={tuple(self.batch_shape)}, event_shape={tuple(self.event_shape)}, "
            f"circuits={len(self.members)})"
        )

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same distribution with its batch expanded to a larger shape, as in torch.distributions."""
        return self._with([member.expand(batch_shape) for member in self.members])

    def within(
        self,
        *,
        rounds: int | None = None,
        nodes: int | None = None,
        seconds: float | None = None,
        solver: str | None = None,
    ) -> Any:
        """The same distribution with another budget for the search for modes.

        Args:
            rounds: rounds of dual decomposition per row before it branches.
            nodes: nodes of branch and bound per row.
            seconds: seconds per row of the batch, on average.
            solver: "cp-sat": after a share of the time, OR-Tools' CP-SAT goes on with the rows that are not settled
                (extra `solver`; for independent labels, and for the mode only).

        Raises:
            SemprolaError: OR-Tools is not installed, or the split does not know its rules.
        """
        if solver is not None:
            finisher_of(self.split)
        given = {"rounds": rounds, "nodes": nodes, "seconds": seconds, "solver": solver}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        return self._with(self.members, replace(self.limits, **changes))

    # probabilities --------------------------------------------------------------------------------------------------

    def log_score(self, value: Any) -> Tensor:
        """Σ_j w_j log p_j(y), which is log p(y) + log Z ≤ log p(y); -inf where y breaks a rule; differentiable.

        Args:
            value: 0/1 [*sample, *batch, labels], or by name.
        """
        value = self._rows(value)
        total = sum(weight * member.log_prob(value) for weight, member in zip(self.weights, self.members, strict=True))
        if self.split.rules_left_out:
            with torch.no_grad():
                broken = ~self.support.check(value)
            total = torch.as_tensor(total).masked_fill(broken, NEGATIVE_INFINITY)
        return torch.as_tensor(total)

    def log_prob_bounds(self, value: Any) -> tuple[Tensor, Tensor]:
        """Certified bounds of log p(y) [*sample, *batch]; the lower one is differentiable.

        Both are -inf where y breaks a rule. The upper bound uses the states that this distribution has found so far, by
        `mode`, `top_k` or `sample`.

        Args:
            value: 0/1 [*sample, *batch, labels], or by name.
        """
        lower = self.log_score(value)
        with torch.no_grad():
            known = self._log_known()
            # y itself is a state, and may be one that is not known
            least = torch.maximum(lower, torch.as_tensor(known).expand_as(lower))
            upper = torch.where(lower == NEGATIVE_INFINITY, lower, (lower - least).clamp(max=0.0))
        return lower, upper

    def log_prob(self, value: Any) -> Tensor:
        """-inf if every y breaks a rule.

        Raises:
            IntractableError: for other y; `log_prob_bounds` has certified bounds.
        """
        score = self.log_score(value)
        if bool((score == NEGATIVE_INFINITY).all()):
            return score.detach()
        _refuse("log_prob", "log_prob_bounds(y) has certified bounds, and log_score(y) the lower one to train by")

    @property
    def log_partition_bounds(self) -> tuple[Tensor, Tensor]:
        """Bounds of log Σ_y Π_j f_j(y)^w_j over K [*batch], where f_j = p_j · Z_j is what each circuit sums.

        For independent labels, the sum is the probability that they satisfy all rules. The upper bound is Hölder's,
        the lower one is the sum over the states found; the mode is searched for if none is known.
        """
        with torch.no_grad():
            if not any(self._found):
                self._search(1, refuse=False)
            upper = sum(w * member.log_partition for w, member in zip(self.weights, self.members, strict=True))
            return torch.as_tensor(upper) + self._log_known(), torch.as_tensor(upper)

    def log_prob_gradient(self, value: Any, samples: int = 10, generator: torch.Generator | None = None) -> Tensor:
        """A number with an unbiased gradient of log p(y) [*batch]; it is not log p(y) itself.

        The gradient of log Z is the expected gradient of the score under p, estimated from exact samples.

        Args:
            value: 0/1 [*batch, labels], or by name.
            samples: how many samples per row.
            generator: source of randomness.
        """
        drawn = self.sample(torch.Size([samples]), generator=generator)
        return self.log_score(value) - self.log_score(drawn).mean(0)

    # states ---------------------------------------------------------------------------------------------------------

    @property
    def mode(self) -> Tensor:
        """The most probable y found [*batch, labels]; it satisfies all rules. See `mode_is_exact` and `within`.

        Raises:
            IntractableError: no state that satisfies all rules was found within the budget; names the rows.
            UnsatisfiableError: there is none; names the rows.
        """
        return self._shaped(self._search(1).states[:, 0])

    def try_mode(self) -> Tensor:
        """The same as `mode`, with NaN in the rows for which no state was found [*batch, labels]."""
        found = self._search(1, refuse=False)
        return self._shaped(torch.where(found.scores[0] == NEGATIVE_INFINITY, torch.nan, found.states[:, 0]))

    @property
    def mode_is_exact(self) -> Tensor:
        """Whether `mode` is proven to be the most probable y, bool [*batch]."""
        return self._search(1).is_exact.reshape(self.batch_shape).clone()

    def top_k(self, k: int) -> tuple[Tensor, Tensor]:
        """The k most probable states, best first [*batch, k, labels], and their scores Σ_j w_j log p_j [*batch, k].

        Rows past the end of the support repeat the best state and have score -inf.

        Raises:
            IntractableError: they could not be proven to be the best within the budget; names the rows.
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise ValueError(f"k must be a positive whole number, not {k!r}")
        found = self._search(k)
        if not bool(found.is_exact.all()):
            _refuse(f"top_k({k})", f"a larger budget may do{rows_named(~found.is_exact, self.batch_shape)}: p.within()")
        missing = found.scores == NEGATIVE_INFINITY
        states = torch.where(missing, found.states[:, :1], found.states)
        scores = found.scores.T.reshape(*self.batch_shape, k)
        return states.permute(2, 1, 0).reshape(*self.batch_shape, k, len(self.labels)).to(self._like), scores.to(
            self._like
        )

    def decode(self, utility: Any = "mode") -> Tensor:
        """The y that maximises a utility over all states that satisfy the rules [*batch, labels].

        Args:
            utility: "mode", or the gain if a label is 1, as a tensor [*batch, labels] or by name.

        Raises:
            IntractableError: for utilities that need marginals, or if no proven optimum was found within the budget.
        """
        utility = as_rows(utility, self.labels, "utilities", self._like, missing=0.0)
        if isinstance(utility, str):
            if utility == "mode":
                return self.mode
            _refuse(f"decode({utility!r})", "it needs marginals: decode('mode'), or utilities by label")
        gains, shape = flat_rows(utility, len(self.labels), self.batch_shape, self._like)
        if shape != self.batch_shape or not bool(torch.isfinite(gains).all()):
            raise ValueError(f"utilities must be finite numbers of shape {(*self.batch_shape, len(self.labels))}")
        from semprola.distributions.pool.pooling import independent

        plain = independent(self.split, gains[:, 0].T, self._evidence, self.limits)
        found = plain._search(1)
        self._refuse_rows(found, "decode")
        if not bool(found.is_exact.all()):
            _refuse("decode", f"a larger budget may do{rows_named(~found.is_exact, self.batch_shape)}: p.within()")
        return self._shaped(found.states[:, 0])

    def sample(self, sample_shape: Any = torch.Size(), generator: torch.Generator | None = None) -> Tensor:  # noqa: B008
        """Exact samples [*sample_shape, *batch, labels]; all of them satisfy all rules. See :meth:`draw`."""
        return self.draw(sample_shape, generator=generator).states

    def draw(
        self,
        sample_shape: Any = torch.Size(),  # noqa: B008
        generator: torch.Generator | None = None,
        most: int = 100_000,
    ) -> Drawn:
        """Exact samples by rejection, and how many draws they took.

        A draw from the mixture Σ_j w_j p_j is accepted with probability Π_j p_j^w_j / Σ_j w_j p_j ≤ 1, so the rate is
        Z. For independent labels, a draw from the best circuit is accepted if it satisfies all rules.

        Args:
            sample_shape: the shape of independent samples per element of the batch.
            generator: source of randomness; by default torch's own.
            most: the most draws per row.

        Raises:
            IntractableError: the draws were used up; names the rows and the rate.
        """
        drawn = draw(self, torch.Size(sample_shape), generator, most)
        self._keep(drawn.states.reshape(-1, *self.batch_shape, len(self.labels)))
        return drawn

    def mean_estimate(self, n: int = 1000, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Marginals P(Y_j = 1) estimated from n exact samples, and their standard errors [*batch, labels].

        Raises:
            IntractableError: sampling is hopeless; see :meth:`draw`.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 2:
            raise ValueError(f"n must be a whole number of at least 2, not {n!r}")
        mean = self.sample(torch.Size([n]), generator=generator).mean(0)
        return mean, (mean * (1 - mean) / (n - 1)).sqrt()

    def condition(self, evidence: Any) -> Any:
        """The distribution given evidence: 0, 1, or NaN where not observed [*batch, labels], or by name.

        Raises:
            UnsatisfiableError: a circuit has no state with this evidence; names the rows.
        """
        evidence = as_rows(evidence, self.labels, "evidence", self._like, missing=float("nan"))
        if self._validate_args:
            check_evidence(evidence)
        return self._with([member.condition(evidence) for member in self.members])

    # by name, and what is refused -----------------------------------------------------------------------------------

    def to_dict(self, what: str = "mode", k: int = 5) -> dict[str, Any]:
        """A result by name: "mode" or "top_k"; see :meth:`semprola.SPLDistribution.to_dict`."""
        return names.to_dict(self, what, k)  # type: ignore[arg-type]

    def to_frame(self, what: str = "mode", k: int = 5) -> Any:
        """A result as a pandas data frame: "mode" or "top_k"."""
        return names.to_frame(self, what, k)  # type: ignore[arg-type]

    @property
    def mean(self) -> Tensor:
        """Refused: see `mean_estimate`."""
        _refuse("mean", "mean_estimate(n) has it from exact samples, with standard errors")

    @property
    def variance(self) -> Tensor:
        """Refused: see `mean_estimate`."""
        _refuse("variance", "mean_estimate(n) has the mean from exact samples, with standard errors")

    @property
    def log_partition(self) -> Tensor:
        """Refused: see `log_partition_bounds`."""
        _refuse("log_partition", "log_partition_bounds has certified bounds")

    def log_marginal(self, evidence: Any) -> Tensor:
        """Refused."""
        _refuse("log_marginal", "condition(evidence) is exact, and samples estimate the probability")

    def log_prob_of(self, formula: Any) -> Tensor:
        """Refused."""
        _refuse("log_prob_of", "the share of exact samples that satisfy the formula estimates it: p.sample((n,))")

    def entropy(self) -> Tensor:
        """Refused."""
        _refuse("entropy", "the mean of -log_prob_bounds over exact samples bounds it: p.sample((n,))")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Refused."""
        _refuse("enumerate_support", "top_k(k) lists the best k states")

    # inside ---------------------------------------------------------------------------------------------------------

    @property
    def _like(self) -> Tensor:
        return self.members[0].evaluator.log_mixing

    @property
    def _evidence(self) -> Tensor | None:
        """Observed labels [labels, batch], NaN where there are none; None without evidence."""
        domain = self.members[0].evaluator.domain
        return domain.observed if domain.has_evidence else None

    def _with(self, members: Sequence[ConstrainedDistribution], limits: Limits | None = None) -> Any:
        return PoolDistribution(self.split, members, self.weights, limits or self.limits, self._validate_args)

    def _rows(self, value: Any) -> Tensor:
        if not isinstance(value, Tensor):  # members may know this very tensor
            value = as_rows(value, self.labels, "y", self._like)
        if self._validate_args and not torch.compiler.is_compiling():
            check_labels(value)
        return torch.as_tensor(value)

    def _search(self, k: int, *, refuse: bool = True) -> Found:
        """The k best states, searched for once."""
        if self._searched is None or self._searched.states.shape[1] < k:
            oracles = self._oracles
            fixed = self._evidence
            if fixed is None:
                fixed = torch.full((len(self.labels), oracles.batch), float("nan"), device=self._like.device)
            finisher = None if self.limits.solver is None else finisher_of(self.split)
            found = Search(oracles, propagation_of(self.split), self.limits, k, fixed, finisher).run()
            self._searched = found
            for i in range(found.states.shape[1]):
                self._keep(self._shaped(found.states[:, i])[None], found.scores[i] > NEGATIVE_INFINITY)
        found = self._searched
        if refuse:
            self._refuse_rows(found, "mode")
        if k < found.states.shape[1]:
            return Found(
                found.states[:, :k], found.scores[:k], torch.maximum(found.bound, found.scores[k - 1]), found.empty
            )
        return found

    def _refuse_rows(self, found: Found, query: str) -> None:
        missing = found.scores[0] == NEGATIVE_INFINITY
        if bool((missing & found.empty).any()):
            where = rows_named(missing & found.empty, self.batch_shape)
            raise UnsatisfiableError(f"no state satisfies all rules and the evidence{where}")
        if bool(missing.any()):
            _refuse(
                query,
                f"no state that satisfies all rules was found{rows_named(missing, self.batch_shape)} with "
                f"{self.limits}: try p.within(seconds=, nodes=), or split with larger circuits",
            )

    def _keep(self, states: Tensor, known: Tensor | None = None) -> None:
        """Remember states [n, *batch, labels] that satisfy all rules, where they are known [batch]."""
        rows = states.detach().reshape(len(states), -1, len(self.labels)).transpose(0, 1) > 0.5
        self._found = self._found or [{} for _ in rows]
        for i, (row, found) in enumerate(zip(rows.cpu(), self._found, strict=True)):
            if known is None or bool(known[i]):
                found.update((state.numpy().tobytes(), state) for state in row[:_MOST_KEPT] if len(found) < _MOST_KEPT)

    def _log_known(self) -> Tensor:
        """log Σ exp(score) over the distinct states found [*batch]; -inf without any."""
        result = torch.full((self.batch_shape.numel(),), NEGATIVE_INFINITY, dtype=torch.float64)
        oracles = self._oracles
        for row, found in enumerate(self._found):
            if found:
                states = torch.stack(list(found.values()), dim=1).double()
                scores = oracles.select(torch.tensor([row])).scores(states[:, :, None])
                result[row] = scores.logsumexp(0)[0]
        return result.reshape(self.batch_shape).clamp(max=0.0).to(self._like)

    @cached_property
    def _oracles(self) -> Oracles:
        evaluators = [member.evaluator for member in self.members]
        plans = propagation_of(self.split).plans
        return Oracles.of(evaluators, self.weights, torch.from_numpy(self.split.mentions), plans)

    def _shaped(self, y: Tensor) -> Tensor:
        return y.T.reshape(*self.batch_shape, len(self.labels)).to(self._like)


def _refuse(query: str, instead: str) -> NoReturn:
    raise IntractableError(f"{query} has no exact answer for a pool of circuits: {instead}")
