"""Distributions over sequences of tags: chains with learnt transitions that obey rules, with exact queries."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints, register_kl

from semprola._notebook import shown
from semprola.distributions.arguments import common_batch, rows_named
from semprola.distributions.numeric import remembered
from semprola.distributions.violations import Violation
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import UnsatisfiableError
from semprola.sequences import chains
from semprola.sequences import results as results
from semprola.sequences.arguments import allowed_tags, check_tags, flat_positions, tag_rows
from semprola.sequences.chains import Chain, Posterior, Sums, Trellis
from semprola.sequences.chains.passes import is_watched
from semprola.sequences.rules import tag_machine


class SequenceDistribution(Distribution):
    """A distribution over sequences of tags, as returned by :class:`semprola.SequenceSPL`.

    log p(y) = Σ_t logits[t, y_t] + start[y_0] + Σ_t transitions[y_t-1, y_t] + end[y_last] - log Z if y obeys the rules,
    -inf if it does not. Tags are whole numbers. Sequences of a batch may have different lengths. After the end of a
    sequence, arguments are ignored, returned sequences are -1, and returned probabilities are 0.

    Args:
        trellis: the scores, over a flat batch.
        batch_shape: the shape of the batch before it was flattened.
        tags: names of the tags.
        shift: what was subtracted from the scores of each sequence, to be added to log Z [batch].
        validate_args: check the arguments of queries, as torch.distributions does.
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    has_enumerate_support = True

    def __init__(
        self,
        trellis: Trellis,
        batch_shape: Sequence[int],
        tags: Sequence[str],
        shift: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        self.trellis, self.tags, self._shift = trellis, tuple(tags), shift
        super().__init__(torch.Size(batch_shape), torch.Size([trellis.positions]), validate_args=False)
        # not torch's default, which torch.compile turns off for the whole process, so that bad tags would go unnoticed
        self._validate_args = __debug__ if validate_args is None else validate_args

    # shape and description ------------------------------------------------------------------------------------------

    @property
    def chain(self) -> Chain:
        """The nodes of the rules' automaton."""
        return self.trellis.chain

    @property
    def mask(self) -> Tensor:
        """Whether a position is within its sequence [*batch, positions]."""
        active = self.trellis.active
        if active is None:
            shape = (*self.batch_shape, self.trellis.positions)
            return torch.ones(shape, dtype=torch.bool, device=self.trellis.emissions.device)
        return active.T.reshape(*self.batch_shape, self.trellis.positions)

    @property
    def lengths(self) -> Tensor:
        """The lengths of the sequences [*batch]."""
        return self.mask.sum(-1)

    @property
    def support(self) -> results.ObeysRules:
        """A torch constraint: ``p.support.check(y)`` says whether y obeys the rules (and the evidence)."""
        return results.ObeysRules(self)

    @shown
    def _repr_html_(self) -> str | None:
        return results.html(self)

    def __repr__(self) -> str:
        return (
            f"SequenceDistribution(batch_shape={tuple(self.batch_shape)}, event_shape={tuple(self.event_shape)}, "
            f"tags={len(self.tags)})"
        )

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same distribution with its batch expanded to a larger shape, as in torch.distributions."""
        shape = torch.Size(batch_shape)
        index = torch.arange(self.trellis.batch, device=self._shift.device).reshape(self.batch_shape)
        chosen = index.expand(shape).reshape(-1)
        return self._over(self.trellis.select(chosen), shape, self._shift[chosen])

    # probabilities --------------------------------------------------------------------------------------------------

    def log_prob(self, value: Any, on_violation: str | None = None) -> Tensor:
        """Log-probability of sequences; exactly -inf where one breaks the rules.

        Args:
            value: tags [*sample, *batch, positions].
            on_violation: what to do with sequences that break the rules, instead of returning -inf. "raise": raise an
                error that names the first rows and tags. "ignore": return 0, so that the sequence adds nothing to a
                sum and has no gradient.

        Returns:
            [*sample, *batch]

        Raises:
            ViolationError: if on_violation is "raise" and a sequence breaks the rules.
        """
        if on_violation not in (None, "raise", "ignore"):
            raise ValueError(f"on_violation must be 'raise' or 'ignore', not {on_violation!r}")
        y, shape = self.checked(value)
        log_probs = chains.log_likelihood(self.trellis, y, self._sums)
        if on_violation is not None:
            impossible = log_probs == NEGATIVE_INFINITY
            if on_violation == "raise" and bool(impossible.any()):
                raise results.violation(self, y, impossible, shape)
            log_probs = log_probs.masked_fill(impossible, 0.0)
        return log_probs.reshape(shape)

    @property
    def log_partition(self) -> Tensor:
        """log Z [*batch]: the log of the sum over all sequences that obey the rules."""
        return (self._log_z + self._shift).reshape(self.batch_shape)

    @property
    def mean(self) -> Tensor:
        """Marginals of the tags [*batch, positions, tags], that is, the mean of one-hot tags; differentiable."""
        return self._rows(self.posterior.marginals).clone()

    @property
    def marginals(self) -> Tensor:
        """Probabilities of the tags at each position [*batch, positions, tags]; another name for `mean`."""
        return self.mean

    @property
    def variance(self) -> Tensor:
        """Variances of the one-hot tags [*batch, positions, tags]."""
        mean = self.mean
        return mean * (1 - mean)

    def log_marginal(self, evidence: Any) -> Tensor:
        """Log-probability of partly labelled sequences; use it as a loss if labels are missing or ambiguous.

        Args:
            evidence: tags, -1 or NaN where not observed [*sample, *batch, positions]; or bool [*sample, *batch,
                positions, tags], true for each tag that is possible; or a dict from positions to a tag or a list of
                possible tags.

        Returns:
            [*sample, *batch]; 0 if nothing is observed, -inf if the evidence is impossible.

        Example:
            >>> import torch, semprola as sp
            >>> p = sp.SequenceSPL(["B", "I", "O"], "(B I* | O)*")(torch.zeros(3, 3))
            >>> round(p.log_marginal({1: "I"}).exp().item(), 4)  # BIO BIB BII of 13 sequences
            0.2308
        """
        allowed, shape = allowed_tags(evidence, self.tags, *self._sizes, self.trellis.active, self._shift)
        log_z = chains.log_partition(self._repeated(allowed.shape[2]).within(allowed.flatten(2)))
        impossible = log_z == NEGATIVE_INFINITY
        base = self._log_z.expand(allowed.shape[2], -1).reshape(-1)
        return torch.where(impossible, NEGATIVE_INFINITY, log_z - base).reshape(shape)

    def log_prob_of(self, rules: Any) -> Tensor:
        """Log-probability that a sequence obeys further rules, exact and differentiable.

        Args:
            rules: in any form that :class:`semprola.SequenceSPL` takes: a formula, a pattern, a list of these, …

        Returns:
            [*batch]; -inf if no sequence of the distribution obeys them.

        Example:
            >>> import torch, semprola as sp
            >>> p = sp.SequenceSPL(["B", "I", "O"], "(B I* | O)*")(torch.zeros(2, 3))
            >>> round(p.log_prob_of(sp.at_least(1, ["B"])).exp().item(), 4)  # BB BI BO OB of 5 sequences
            0.8
        """
        nothing = self._log_z.new_full((), NEGATIVE_INFINITY).expand(self.batch_shape).clone()
        try:
            machine = tag_machine(rules, self.tags)
        except UnsatisfiableError:
            return nothing
        both = self.trellis.obeying(machine.table, machine.accepting)
        if both.chain.num_nodes == 0:
            return nothing
        log_z = chains.log_partition(both)
        impossible = log_z == NEGATIVE_INFINITY
        found = torch.where(impossible, NEGATIVE_INFINITY, log_z - self._log_z)
        return found.clamp(max=0.0).reshape(self.batch_shape)

    def violations(self, value: Any) -> list[Violation]:
        """The sequences that break the rules or the evidence, each with the first tag at fault.

        Args:
            value: tags [*sample, *batch, positions].

        Example:
            >>> import torch, semprola as sp
            >>> p = sp.SequenceSPL(["B", "I", "O"], "(B I* | O)*")(torch.zeros(2, 3, 3))
            >>> print(*p.violations(torch.tensor([[0, 1, 2], [0, 2, 1]])))
            row 1: 'I' at position 2, after 'O'
        """
        y, shape = self.checked(value)
        impossible = ~self.support.check(value)
        return results.violations(self, y, impossible.reshape(y.shape[1:]), shape)

    def condition(self, evidence: Any) -> SequenceDistribution:
        """The distribution given evidence, such as ``p.condition({0: "O"})``; see :meth:`log_marginal`.

        Raises:
            UnsatisfiableError: if the evidence has probability zero; the message names the rows.
        """
        allowed, shape = allowed_tags(evidence, self.tags, *self._sizes, self.trellis.active, self._shift)
        if shape != self.batch_shape:
            raise ValueError(f"evidence for rows {tuple(shape)} does not fit batch {tuple(self.batch_shape)}")
        new = self._over(self.trellis.within(allowed.flatten(2)), self.batch_shape, self._shift)
        impossible = new._log_z == NEGATIVE_INFINITY
        if bool(impossible.any()):
            raise UnsatisfiableError(f"the evidence has probability zero{rows_named(impossible, self.batch_shape)}")
        return new

    def entropy(self) -> Tensor:
        """Entropy in nats [*batch], exact and differentiable."""
        found = self.posterior
        return -results.expected_log(found, found.log_first, found.log_steps).reshape(self.batch_shape)

    # sequences ------------------------------------------------------------------------------------------------------

    @property
    def mode(self) -> Tensor:
        """The most probable sequence [*batch, positions], -1 after its end."""
        return self._sequences(self._best).clone()

    @property
    def mode_is_exact(self) -> Tensor:
        """Whether `mode` is proven to be the most probable sequence, bool [*batch]: always."""
        return torch.ones(self.batch_shape, dtype=torch.bool, device=self._shift.device)

    def decode(self, utility: Any = "mode") -> Tensor:
        """The sequence that maximises an expected utility, among those that obey the rules [*batch, positions].

        Args:
            utility: "mode"; "hamming" (largest expected number of right tags); or the gain of each tag at each position
                [*batch, positions, tags].
        """
        if isinstance(utility, str):
            if utility == "mode":
                return self.mode
            if utility != "hamming":
                raise ValueError(f"decode takes 'mode', 'hamming' or gains, not {utility!r}")
            with torch.no_grad():
                return self._sequences(self._most(self.posterior.marginals))
        count, positions = len(self.tags), self.trellis.positions
        gains, shape = flat_positions(
            utility, 2, (positions, count), self.batch_shape, f"gains [*batch, {positions}, {count}]"
        )
        if shape != self.batch_shape:
            raise ValueError(f"gains of shape {tuple(utility.shape)} do not fit batch {tuple(self.batch_shape)}")
        if not bool(torch.isfinite(gains).all()):
            raise ValueError("gains must be finite numbers")
        with torch.no_grad():
            return self._sequences(self._most(gains.flatten(2).to(self._shift)))

    def sample(self, sample_shape: Any = torch.Size(), generator: torch.Generator | None = None) -> Tensor:  # noqa: B008
        """Exact samples [*sample_shape, *batch, positions]; all of them obey the rules. -1 after the end.

        Args:
            sample_shape: the shape of independent samples per element of the batch.
            generator: source of randomness; by default torch's own, so that torch.manual_seed makes samples
                reproducible.
        """
        shape = torch.Size(sample_shape)
        if any(size < 0 for size in shape):
            raise ValueError(f"sample_shape must contain sizes of 0 or more, not {tuple(shape)}")
        with torch.no_grad():
            y = chains.draw(self.trellis, shape.numel(), generator)
        return y.permute(1, 2, 0).reshape(*shape, *self.batch_shape, self.trellis.positions)

    def top_k(self, k: int) -> tuple[Tensor, Tensor]:
        """The k most probable sequences, best first [*batch, k, positions], and their log-probabilities [*batch, k].

        If fewer than k sequences obey the rules, the rest repeat the mode and have log-probability -inf.
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise ValueError(f"k must be a positive whole number, not {k!r}")
        with torch.no_grad():
            y, weights = chains.ranked(self.trellis, k)
            log_probs = weights - self._log_z
        return (
            y.permute(2, 1, 0).reshape(*self.batch_shape, k, self.trellis.positions),
            log_probs.T.reshape(*self.batch_shape, k),
        )

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All sequences of the support [sequences, *batch, positions].

        Raises:
            IntractableError: if there are too many to list.
            ValueError: if the rows of the batch have different lengths or evidence.
        """
        found = results.all_sequences(self)
        found = found.reshape(len(found), *[1] * len(self.batch_shape), self.trellis.positions)
        return found.expand(-1, *self.batch_shape, -1) if expand else found

    def to_dict(self, what: str = "mode", k: int = 5) -> dict[str, Any]:
        """A result by name, as nested lists of the batch shape, with each sequence cut to its length.

        Args:
            what: "mode" gives the names of the tags under "tags"; "marginals" gives the probabilities of each tag under
                its name; "top_k" gives the k best sequences under "tags" and their "log_prob".
            k: number of sequences for "top_k".

        Example:
            >>> import torch, semprola as sp
            >>> logits = torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [1.0, 0.0, 0.0]])
            >>> sp.SequenceSPL(["B", "I", "O"], "(B I* | O)*")(logits, lengths=2).to_dict()
            {'tags': ['B', 'O']}
        """
        return results.to_dict(self, what, k)

    # for authors of queries -----------------------------------------------------------------------------------------

    def checked(self, value: Any) -> tuple[Tensor, torch.Size]:
        """Tags [positions, samples, batch] from [*sample, *batch, positions], with 0 after the ends; and the shape."""
        y, shape = tag_rows(value, len(self.tags), *self._sizes)
        y = y.to(self._shift.device)
        active = self.trellis.active
        within = y if active is None else torch.where(active[:, None], y, 0)
        if self._validate_args:
            check_tags(within, len(self.tags), active, shape, least=0)
        return within, shape

    @remembered
    def posterior(self) -> Posterior:
        """Probabilities of nodes and steps, over the flat batch."""
        return chains.posterior(self.trellis)

    @remembered
    def _log_z(self) -> Tensor:
        return chains.log_partition(self.trellis, self._sums)

    @property
    def _sums(self) -> Sums | None:
        """The sums, computed once; None while a compiler or transform is watching, which must see every operation."""
        if is_watched():
            return None
        found: Sums | None = self.__dict__.get("_known_sums")
        if found is None:
            found = self.__dict__["_known_sums"] = chains.sums(self.trellis)
        return found

    @remembered
    def _best(self) -> Tensor:
        with torch.no_grad():
            return chains.best(self.trellis)[0]

    @property
    def _sizes(self) -> tuple[int, torch.Size]:
        return self.trellis.positions, self.batch_shape

    def _most(self, gains: Tensor) -> Tensor:
        """The sequence of the support with the largest sum of gains [positions, tags, batch]."""
        trellis = self.trellis
        gains = gains.masked_fill(trellis.emissions == NEGATIVE_INFINITY, NEGATIVE_INFINITY)
        steps = torch.where(trellis.scores == NEGATIVE_INFINITY, trellis.scores, 0.0)
        ends = torch.where(trellis.final == NEGATIVE_INFINITY, trellis.final, 0.0)
        return chains.best(replace(trellis, emissions=gains, scores=steps, final=ends))[0]

    def _repeated(self, samples: int) -> Trellis:
        rows = torch.arange(self.trellis.batch, device=self._shift.device)
        return self.trellis if samples == 1 else self.trellis.select(rows.repeat(samples))

    def _over(self, trellis: Trellis, batch_shape: torch.Size, shift: Tensor) -> SequenceDistribution:
        new = copy.copy(self)
        kind = SequenceDistribution
        for answer in (kind.posterior, kind._log_z, kind._best):
            answer.forget(new)
        new.__dict__.pop("_known_sums", None)
        new.trellis, new._batch_shape, new._shift = trellis, batch_shape, shift
        return new

    def _rows(self, values: Tensor) -> Tensor:
        """[*batch, positions, tags] from [positions, tags, batch]."""
        return values.permute(2, 0, 1).reshape(*self.batch_shape, *values.shape[:2])

    def _sequences(self, y: Tensor) -> Tensor:
        """[*batch, positions] from [positions, batch]."""
        return y.T.reshape(*self.batch_shape, self.trellis.positions)


def kl_divergence(p: SequenceDistribution, q: SequenceDistribution) -> Tensor:
    """KL(p || q) [*batch], exact; +inf where q excludes what p allows."""
    same = p.tags == q.tags and p.event_shape == q.event_shape and results.same_chain(p.chain, q.chain)
    if not same:
        raise ValueError("kl_divergence needs two distributions over the same tags, rules and positions")
    shape = common_batch([p.batch_shape, q.batch_shape], "kl_divergence")
    p, q = p.expand(shape), q.expand(shape)
    if not torch.equal(p.mask, q.mask):
        raise ValueError("kl_divergence needs sequences of the same lengths")
    return results.divergence(p.posterior, q.posterior).reshape(shape)


register_kl(SequenceDistribution, SequenceDistribution)(kl_divergence)
