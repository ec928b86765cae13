"""The interface of a back end. Back ends know nothing about autograd; `engine.ops` takes care of derivatives."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from semprola.engine.backends.torch_gates import gate_gradients, gate_values
from semprola.engine.backends.torch_independent import slopes_of_log_z, with_states
from semprola.engine.literals import Literals
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.engine.plan import Plan
from semprola.engine.softmax import log_softmax, softmax_slopes


class Backend:
    """Evaluates plans on tensors.

    A plan has W weights, which are made from `plan.num_logits` logits. Unless stated otherwise, `weights` are
    log-weights [W, columns], or None for weights of one, and `leaves` are log-values of the literals
    [2 variables, columns]. All results are new tensors of the same type on the same device.
    """

    name: str
    """Its name for :func:`semprola.engine.set_engine`."""
    remedy: str = ""
    """What to do where it is missing."""
    few_rows: float = 0.01
    """If states use at most this share of the logits, `gate` is faster than `likelihood` on all of them."""

    def is_present(self) -> bool:
        """Whether it can be used at all, that is, whether what it depends on is installed."""
        raise NotImplementedError

    def takes(self, tensors: Sequence[Tensor]) -> bool:
        """Whether it works on tensors of these types, devices and layouts."""
        raise NotImplementedError

    def evaluate(
        self, plan: Plan, weights: Tensor | None, leaves: Tensor, *, flows: bool
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Log-values [columns] and, on request, their derivatives.

        The derivative by a weight or leaf is its flow: the probability that it is part of the state. Impossible columns
        have value -inf and flow zero.

        Returns:
            values [columns], flows through weighted edges [W, columns] (None without weights) and flows into literals
            [2 variables, columns]; both flows are None unless requested.
        """
        raise NotImplementedError

    def tangent(
        self, plan: Plan, weights: Tensor | None, leaves: Tensor, d_weights: Tensor | None, d_leaves: Tensor
    ) -> tuple[Tensor | None, Tensor]:
        """Derivative of the flows of `evaluate` along a change of weights and leaves.

        Args:
            plan: the plan.
            weights: log-weights [W, columns] or None.
            leaves: log-values of the literals [2 variables, columns].
            d_weights: change of the weights [W, columns]; None without weights.
            d_leaves: change of the leaves [2 variables, columns].

        Returns:
            change of the flows through weighted edges [W, columns] (None without weights) and into literals
            [2 variables, columns].
        """
        raise NotImplementedError

    def maximize(self, plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor]:
        """Largest value of a single path [columns], and 0/1 for the literals on it [2 variables, columns]."""
        raise NotImplementedError

    def sample(
        self,
        plan: Plan,
        weights: Tensor | None,
        literals: Literals,
        column: Tensor,
        generator: Generator | None,
    ) -> Tensor:
        """Exact samples, 0/1 [variables, samples]; the same generator state gives the same samples.

        Args:
            plan: the plan.
            weights: log-weights [W, columns] or None.
            literals: scores; variables that a sampled branch leaves out are drawn from `default`.
            column: which column each sample is drawn from [samples].
            generator: source of randomness, or None for torch's own.
        """
        raise NotImplementedError

    def rank(self, plan: Plan, weights: Tensor | None, leaves: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k paths of largest value: states [variables, k, columns] and log-values [k, columns], -inf past the last.

        Variables that a path leaves out are zero.
        """
        raise NotImplementedError

    def likelihood(
        self,
        plan: Plan,
        logits: Tensor,
        rows: Tensor,
        codes: Tensor | None,
        labels: int,
        cotangent: Tensor | None = None,
        *,
        value: bool = True,
        gradient: bool = False,
    ) -> tuple[Tensor | None, Tensor | None]:
        """Log-likelihood of states under local softmaxes of a deterministic plan, and its gradient.

        Args:
            plan: the plan.
            logits: [`plan.num_logits`, components, batch]
            rows: 0/1 of every variable [variables, samples, batch]; with codes, only the given variables are read.
            codes: the states as encoded by `encode` [samples, batch, most]; None to read the rows.
            labels: number of labels; the variables after them are given, and softmaxes are taken only over edges that
                they leave possible.
            cotangent: of the likelihood [samples, components, batch]; None for ones.
            value: whether to return the values.
            gradient: whether to return the gradient by the logits.

        Returns:
            values [samples, components, batch], -inf outside the support, and the gradient by the logits; None for
            what was not requested.
        """
        raise NotImplementedError

    def support(self, plan: Plan, leaves: Tensor, edges: str | None) -> tuple[Tensor, Tensor]:
        """Which weighted edges (bools [W, columns]) and columns (bools [columns]) are possible.

        Args:
            plan: the plan.
            leaves: it only matters whether they are -inf.
            edges: "possible" for edges with a value above zero; "active" for edges that are part of the state, if the
                leaves describe a state and sums are deterministic; None for no edges.
        """
        raise NotImplementedError

    def encode(self, plan: Plan, rows: Tensor) -> Tensor:
        """The weights that each state uses, int32 [columns, most]: -1 past the last, -2 for impossible states.

        Args:
            plan: a plan whose sums are deterministic.
            rows: 0/1 of every variable [variables, columns].
        """
        raise NotImplementedError

    # with a default implementation, which a back end may replace by a faster one -------------------------------------

    def best_states(self, plan: Plan, weights: Tensor | None, leaves: Tensor, default: Tensor) -> tuple[Tensor, Tensor]:
        """Largest value of a single path [columns], and the state on it, 0/1 [variables, columns].

        Args:
            plan: the plan.
            weights: log-weights [W, columns] or None.
            leaves: log-values of the literals [2 variables, columns].
            default: the value of each variable where a branch leaves it out [variables, columns].
        """
        value, flows = self.maximize(plan, weights, leaves)
        zero, one = flows[0::2], flows[1::2]
        return value, torch.where(zero + one < 0.5, default, one)

    def marginal(self, plan: Plan, logits: Tensor, observed: Tensor, *, gradient: bool) -> tuple[Tensor, Tensor | None]:
        """Log-likelihood of partly observed states under local softmaxes, and its gradient.

        Args:
            plan: a plan that mentions every variable, and in which single edges have no weight.
            logits: [`plan.num_logits`, components, batch]
            observed: 0, 1, or NaN where nothing is observed [variables, batch].
            gradient: whether to return the gradient by the logits.

        Returns:
            values [components, batch], -inf where the observation is impossible, and the gradient or None.
        """
        _, components, batch = logits.shape
        weights = log_softmax(plan, logits.flatten(1))
        leaves = Literals.of_observed(plan, observed, logits.dtype).leaves.repeat(1, components)
        value, flows, _ = self.evaluate(plan, weights, leaves, flows=gradient)
        slopes = None
        if flows is not None:
            slopes = softmax_slopes(plan, logits.flatten(1), flows).unflatten(1, (components, batch))
        return value.view(components, batch), slopes

    def independent(
        self, plan: Plan, referee: Plan, odds: Tensor, states: Tensor | None, *, gradient: bool
    ) -> tuple[Tensor, Tensor | None]:
        """log Z of independent labels times a constraint, or the log-likelihood of states, and its gradient.

        Args:
            plan: the plan of the constraint.
            referee: the same with all literals spelled out; it tells which states are in the support.
            odds: log-odds of all variables, finite [variables, columns].
            states: 0/1 [variables, columns]; None for log Z.
            gradient: whether to return the gradient by the log-odds.

        Returns:
            values [columns], -inf for states outside the support, and the gradient [variables, columns], zero for
            these, or None.
        """
        literals = Literals.of_odds(plan, odds)
        value, _, flows = self.evaluate(plan, None, literals.leaves, flows=gradient)
        log_z = value + literals.constant
        slopes = None if flows is None else slopes_of_log_z(plan, odds, flows)
        if states is None:
            return log_z, slopes
        return with_states(lambda leaves: self.support(referee, leaves, None)[1], odds, states, log_z, slopes)

    def likeliest(self, plan: Plan, odds: Tensor) -> Tensor:
        """The most probable state of independent labels with finite log-odds, times a constraint.

        Args:
            plan: the plan of a deterministic constraint.
            odds: [variables, columns]

        Returns:
            0/1 [variables, columns]
        """
        literals = Literals.of(plan, F.logsigmoid(-odds), F.logsigmoid(odds), maximize=True)
        return self.best_states(plan, None, literals.leaves, literals.default)[1]

    def largest_norm(self, rows: Tensor) -> float:
        """The largest Euclidean norm of a row [rows, numbers]; infinite or NaN if a number is, or may be."""
        return float(torch.linalg.vector_norm(rows.detach(), dim=1).max()) if rows.numel() else 0.0

    def scale_possible(self, slopes: Tensor, factors: Tensor, values: Tensor | None) -> Tensor:
        """Multiply gradients [variables, columns] by factors [columns], but not where values [columns] are -inf.

        The tensor of gradients is one that `independent` returned, and may be overwritten.
        """
        return slopes * (factors if values is None else factors.masked_fill(values == NEGATIVE_INFINITY, 0.0))

    def gate(
        self, plan: Plan, matrix: Tensor, bias: Tensor, features: Tensor, codes: Tensor, components: int
    ) -> Tensor:
        """Log-likelihood of encoded states under logits that are a linear map of features; see `likelihood`.

        Args:
            plan: the plan.
            matrix: [`plan.num_logits` * components or more, features]; row r * components + c is logit r of component
                c, and further rows are ignored.
            bias: one number per row of the matrix.
            features: [batch, features]
            codes: the states as encoded by `encode` [batch, most].
            components: number of components.

        Returns:
            [components, batch]
        """
        return gate_values(plan, matrix, bias, features, codes, components)

    def gate_gradients(
        self,
        plan: Plan,
        matrix: Tensor,
        bias: Tensor,
        features: Tensor,
        codes: Tensor,
        components: int,
        cotangent: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of `gate` by matrix, bias and features, for a cotangent [components, batch]."""
        return gate_gradients(plan, matrix, bias, features, codes, components, cotangent)

    def prefers_rows(self, plan: Plan, codes: Tensor) -> bool:
        """Whether `likelihood` is faster with rows than with codes, if both are available."""
        return False

    def scale(self, numbers: Tensor, factors: Tensor) -> Tensor:
        """Multiply the columns of a contiguous tensor [rows, *columns] in place by factors [*columns]."""
        return numbers.mul_(factors)

    def is_binary(self, values: Tensor) -> bool:
        """Whether a tensor holds nothing but zeros and ones."""
        return bool(((values == 0) | (values == 1)).all())
