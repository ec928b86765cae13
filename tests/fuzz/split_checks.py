"""What is checked of a constraint that is split: the circuits state it, and the answers of their pool are right."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from scipy.stats import chi2
from torch import Tensor

import semprola as sp
from semprola.compiler.contradiction import written_rules
from semprola.compiler.splitting import Split
from semprola.distributions import PoolDistribution, SPLDistribution
from semprola.distributions.pool import Limits
from semprola.distributions.pool.pooling import independent as independent_labels
from semprola.engine import CircuitPlans
from semprola.errors import IntractableError
from semprola.logic.rules import stated_in_place

from .cases import Compiled

_LIMITS = Limits(rounds=20, nodes=2000, seconds=60)
_SAMPLES, _DRAWS = 200, 20_000
"""Samples of a row, and the most draws that they may take."""
_LEAST_EXPECTED = 5.0
"""States that are expected less often than this are counted as one."""
_RARE = 1e-10
"""No test is expected to fail by chance with so small a probability."""
_STEP = 1e-4


@dataclass(frozen=True)
class Findings:
    """What the checks of one pool saw.

    Attributes:
        circuits: of the split.
        left_out: rules that no circuit has.
        proven: for each row, whether the mode was proven.
        p_values: of the χ² tests of rows whose samples were drawn within the limit.
        hopeless: whether sampling was refused.
        errors: of estimated gradients, in standard errors.
    """

    circuits: int
    left_out: int
    proven: tuple[bool, ...]
    p_values: tuple[float, ...]
    hopeless: bool
    errors: tuple[float, ...]


def random_split(rules: Sequence[sp.Formula], labels: Sequence[str], rng: random.Random) -> Split:
    """Every rule in one or two of a few circuits, or left out; or what `sp.split` makes of them."""
    if rng.random() < 0.5:
        return sp.split(sp.And(rules), labels=labels, max_nodes=rng.choice([1, 3, 10, 30]))
    groups: list[list[sp.Formula]] = [[] for _ in range(rng.randint(1, 5))]
    left_out = []
    for rule in rules:
        if rng.random() < 0.15:
            left_out.append(rule)
            continue
        for number in rng.choices(range(len(groups)), k=rng.randint(1, 2)):
            groups[number].append(rule)
    circuits = tuple(sp.compile(sp.And(group), labels=labels, cache=False) for group in groups)
    return Split(circuits, tuple(left_out), source=sp.And(rules))


@dataclass(frozen=True)
class Setting:
    """The parameters of a pool.

    Attributes:
        split: the circuits.
        logits: of each member [rows, 1, *]: log-odds of independent labels, or the weights of a circuit's edges.
        weights: of the circuits.
        independent: which of the two.
    """

    split: Split
    logits: tuple[Tensor, ...]
    weights: Tensor
    independent: bool

    def pool(self, logits: Sequence[Tensor] | None = None) -> PoolDistribution:
        """The pool, or that of other logits."""
        logits = self.logits if logits is None else logits
        if self.independent:
            return independent_labels(self.split, logits, limits=_LIMITS, weights=self.weights)
        members = [SPLDistribution(circuit, own) for circuit, own in zip(self.split.circuits, logits, strict=True)]
        return PoolDistribution(self.split, members, self.weights, _LIMITS)


def random_setting(split: Split, rng: random.Random, rows: int = 2) -> Setting:
    """Independent labels, or weights on the edges of every circuit; the weights of the circuits are drawn, too."""
    scale, plain = rng.choice([0.0, 0.3, 3.0]), rng.random() < 0.5
    widths = [len(split.labels) if plain else CircuitPlans(circuit).layer.num_logits for circuit in split.circuits]
    logits = tuple(scale * torch.randn(rows, 1, width, dtype=torch.float64) for width in widths)
    return Setting(split, logits, torch.rand(len(logits), dtype=torch.float64) + 0.1, plain)


def check_pool(setting: Setting, inside: Tensor, seed: int) -> Findings:
    """All answers of a pool beside enumeration.

    Args:
        setting: the pool.
        inside: whether each state satisfies the constraint, in the order of `torch.cartesian_prod`.
        seed: of samples and directions.
    """
    p = setting.pool()
    states = _all_states(len(p.labels))
    assert torch.equal(p.split.satisfied(states), inside)
    at = states[:, None].expand(-1, *p.batch_shape, -1)
    score = torch.as_tensor(
        sum(w * member.log_prob(at) for w, member in zip(p.weights, p.members, strict=True))
    ).masked_fill(~inside[:, None], float("-inf"))
    log_z = score.logsumexp(0)
    log_prob = score - log_z
    _bounds(p, at, score, log_prob)
    proven = _modes(p, score, inside)
    offset = sum(w * member.log_partition for w, member in zip(p.weights, p.members, strict=True))
    low, high = p.log_partition_bounds
    assert bool((low <= offset + log_z + 1e-8).all())
    assert bool((offset + log_z <= high + 1e-8).all())
    generator = torch.Generator().manual_seed(seed)
    try:
        drawn = p.draw((_SAMPLES,), generator=generator, most=_DRAWS).states
    except IntractableError as error:
        assert "rate" in str(error)
        rate = _acceptance(setting, states, inside) if setting.independent else log_z
        assert bool((rate.exp() < 4 * _SAMPLES / _DRAWS).any()), "sampling was refused, though it is easy"
        return Findings(len(p.members), len(p.split.rules_left_out), proven, (), True, ())
    p_values = tuple(_chi_square(drawn[:, row], log_prob[:, row].exp()) for row in range(drawn.shape[1]))
    assert min(p_values) > _RARE, f"samples do not fit: p = {min(p_values):.1g}"
    errors = _gradients(setting, at, inside, log_prob, generator)
    return Findings(len(p.members), len(p.split.rules_left_out), proven, p_values, False, errors)


def _all_states(labels: int) -> Tensor:
    """All rows of 0 and 1 [2^labels, labels], the last label fastest."""
    return torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * labels).reshape(-1, labels)


def _bounds(p: PoolDistribution, at: Tensor, score: Tensor, log_prob: Tensor) -> None:
    lower, upper = p.log_prob_bounds(at)
    assert torch.equal(lower > float("-inf"), score > float("-inf"))
    assert torch.allclose(lower, score)
    assert bool((lower <= log_prob + 1e-8).all())
    assert bool((log_prob <= upper + 1e-8).all())


def _modes(p: PoolDistribution, score: Tensor, inside: Tensor) -> tuple[bool, ...]:
    """Modes of so few states are proven, and are the best; the k best are those of the list of all."""
    mode = p.mode
    assert bool(p.split.satisfied(mode).all())
    best, proven = score.max(0).values, p.mode_is_exact
    assert torch.allclose(p.log_score(mode)[proven], best[proven])
    k = min(3, int(inside.sum()))
    found, scores = p.top_k(k)
    assert bool(p.split.satisfied(found).all())
    assert torch.allclose(scores.T, score.sort(0, descending=True).values[:k])
    assert bool(proven.all())
    return tuple(proven.tolist())


def _acceptance(setting: Setting, states: Tensor, inside: Tensor) -> Tensor:
    """For independent labels: the share of draws from the best circuit, by the pooled log-odds, that obey all rules."""
    shares = setting.weights / setting.weights.sum()
    odds = sum(w * own[:, 0] for w, own in zip(shares, setting.logits, strict=True))
    weight = torch.as_tensor(odds) @ states.T
    alone = [
        weight.masked_fill(~torch.as_tensor(circuit.satisfied(states)), float("-inf")).logsumexp(1)
        for circuit in setting.split.circuits
    ]
    return weight.masked_fill(~inside, float("-inf")).logsumexp(1) - torch.stack(alone).min(0).values


def _chi_square(drawn: Tensor, probability: Tensor) -> float:
    """The p-value of samples [samples, labels] of one row, given the probability of each state."""
    digits = 2.0 ** torch.arange(drawn.shape[1] - 1, -1, -1, dtype=torch.float64)
    seen = torch.bincount((drawn.double() @ digits).long(), minlength=len(probability)).double()
    assert bool((seen[probability == 0] == 0).all())
    expected = len(drawn) * probability
    rare = expected < _LEAST_EXPECTED
    seen = torch.cat([seen[~rare], seen[rare].sum()[None]])
    expected = torch.cat([expected[~rare], expected[rare].sum()[None]])
    if expected[-1] < _LEAST_EXPECTED:  # too few for a cell of their own
        seen, expected = _last_joined(seen), _last_joined(expected)
    if len(seen) < 2:
        return 1.0
    return float(chi2.sf(float(((seen - expected).square() / expected).sum()), len(seen) - 1))


def _last_joined(cells: Tensor) -> Tensor:
    return cells if len(cells) == 1 else torch.cat([cells[:-2], cells[-2:].sum()[None]])


def _gradients(
    setting: Setting, at: Tensor, inside: Tensor, log_prob: Tensor, generator: torch.Generator
) -> tuple[float, ...]:
    """Errors of the estimated gradient of log p(y) along a random direction, in standard errors.

    The derivative of the score of every state is a difference of two scores, computed without autograd.
    """
    way = [torch.randn(part.shape, generator=generator, dtype=part.dtype) for part in setting.logits]

    def moved(step: float) -> PoolDistribution:
        return setting.pool([part + step * each for part, each in zip(setting.logits, way, strict=True)])

    alive = at[inside]
    slope = (moved(_STEP).log_score(alive) - moved(-_STEP).log_score(alive)) / (2 * _STEP)
    share = log_prob[inside].exp()
    mean = (share * slope).sum(0)
    spread = ((share * (slope - mean).square()).sum(0) / _SAMPLES).sqrt()
    y, exact = alive[-1], slope[-1] - mean
    leaves = [part.clone().requires_grad_() for part in setting.logits]
    bound = torch.autograd.grad(setting.pool(leaves).log_score(y).sum(), leaves)
    assert torch.allclose(_along(bound, way), slope[-1], atol=1e-5), "the bound's gradient is wrong"
    estimate = torch.autograd.grad(setting.pool(leaves).log_prob_gradient(y, _SAMPLES, generator).sum(), leaves)
    off = _along(estimate, way) - exact
    # Bernstein's inequality: a rare state with a large slope may move the mean far
    rarity = math.log(2 / _RARE)
    width = (slope - mean).masked_fill(share == 0, 0.0).abs().max(0).values
    most = spread * (2 * rarity) ** 0.5 + 2 * width * rarity / (3 * _SAMPLES)
    assert bool((off.abs() <= most + 1e-4).all()), "the estimated gradient is biased"
    return tuple((off / spread)[spread > 1e-6].tolist())


def _along(gradient: Sequence[Tensor], way: Sequence[Tensor]) -> Tensor:
    return torch.as_tensor(sum((g * v).flatten(1).sum(1) for g, v in zip(gradient, way, strict=True)))


def _pool(c: Compiled) -> None:
    if c.given or not c.columns:
        return
    rng = random.Random(c.source.seed)
    torch.manual_seed(c.source.seed)
    split = random_split(written_rules(stated_in_place(c.formula)), c.columns, rng)
    check_pool(random_setting(split, rng), torch.as_tensor(c.meant.table), c.source.seed)


CHECKS = (_pool,)
