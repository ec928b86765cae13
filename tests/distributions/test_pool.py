"""Pools of circuits against enumeration: small random constraints, split at random, in both engines and types."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

import semprola as sp
from semprola.compiler.splitting import Split
from semprola.distributions import PoolDistribution, SPLDistribution
from semprola.distributions.pool import Limits, independent, propagation
from semprola.engine import CircuitPlans
from semprola.errors import CompilationBudgetError, IntractableError, SemprolaError, UnsatisfiableError

CASES = 16
LIMITS = Limits(rounds=20, nodes=500, seconds=60)


class World:
    """A random constraint over a few labels, split at random, and everything about its pool by enumeration."""

    def __init__(self, seed: int, dtype: torch.dtype = torch.float64, batch: tuple[int, ...] = (3,)) -> None:
        self.rng = np.random.default_rng(seed)
        torch.manual_seed(seed)
        self.labels = [f"v{i}" for i in range(int(self.rng.integers(2, 7)))]
        self.states = torch.tensor(list(itertools.product((0.0, 1.0), repeat=len(self.labels))), dtype=dtype)
        while True:
            self.rules = [self._rule() for _ in range(int(self.rng.integers(1, 6)))]
            self.inside = torch.from_numpy(sp.And(self.rules).evaluate(self.states.numpy(), labels=self.labels))
            if bool(self.inside.any()):
                break
        self.split = self._split()
        scale = float(self.rng.choice([0.0, 1.0, 5.0]))
        weights = torch.rand(len(self.split.circuits), dtype=dtype) + 0.1
        if seed % 2:
            logits = [scale * torch.randn(*batch, 1, len(self.labels), dtype=dtype) for _ in self.split.circuits]
            self.p = independent(self.split, logits, limits=LIMITS, weights=weights)
        else:
            members = [self._spl(circuit, scale, batch, dtype) for circuit in self.split.circuits]
            self.p = PoolDistribution(self.split, members, weights, LIMITS)
        at = self.states.reshape(-1, *[1] * len(batch), len(self.labels)).expand(-1, *batch, -1)
        parts = [w * m.log_prob(at) for w, m in zip(self.p.weights, self.p.members, strict=True)]
        self.score = sum(parts).masked_fill(~self.inside.reshape(-1, *[1] * len(batch)), float("-inf"))
        self.log_z = self.score.logsumexp(0)
        self.log_prob = self.score - self.log_z
        self.at = at

    def _rule(self) -> sp.Formula:
        names = self.rng.choice(self.labels, size=min(len(self.labels), int(self.rng.integers(2, 5))), replace=False)
        atoms = [sp.Bool(str(name)) if self.rng.random() < 0.6 else ~sp.Bool(str(name)) for name in names]
        kind = self.rng.integers(5)
        if kind == 0:
            return sp.Or(atoms)
        if kind == 1:
            return sp.at_most(1, atoms)
        if kind == 2:
            return sp.exactly(1, atoms)
        return sp.Xor(*atoms) if kind == 3 else atoms[0] >> sp.Or(atoms[1:])

    def _split(self) -> Split:
        count = int(self.rng.integers(1, 5))
        groups: list[list[sp.Formula]] = [[] for _ in range(count)]
        left_out = []
        for rule in self.rules:
            if self.rng.random() < 0.15:
                left_out.append(rule)
                continue
            for number in self.rng.choice(count, size=int(self.rng.integers(1, 3)), replace=True):
                groups[number].append(rule)
        return Split(tuple(sp.compile(sp.And(group), labels=self.labels) for group in groups), tuple(left_out))

    def _spl(self, circuit: sp.Circuit, scale: float, batch: tuple[int, ...], dtype: torch.dtype) -> SPLDistribution:
        width = CircuitPlans(circuit).layer.num_logits
        return SPLDistribution(circuit, scale * torch.randn(*batch, 1, width, dtype=dtype))


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_random_splits(engine: str) -> None:
    with sp.engine.using(engine):
        for seed in range(CASES):
            check(World(seed, *SETTINGS[seed % len(SETTINGS)]), everything=seed % 8 < 2)


SETTINGS: list[tuple[torch.dtype, tuple[int, ...]]] = [
    (torch.float64, (3,)),
    (torch.float32, ()),
    (torch.float64, (1,)),
    (torch.float32, (2, 3)),
]


def check(world: World, *, everything: bool) -> None:
    """Bounds hold, proven modes are the best states, and every answer satisfies the rules."""
    p, tolerance = world.p, 1e-8 if world.score.dtype == torch.float64 else 1e-3
    lower, upper = p.log_prob_bounds(world.at)
    assert torch.equal(lower == float("-inf"), world.score == float("-inf"))
    alive = torch.isfinite(world.score)
    assert torch.allclose(lower[alive], world.score[alive], atol=tolerance)
    assert bool((lower[alive] <= world.log_prob[alive] + tolerance).all())
    assert bool((world.log_prob[alive] <= upper[alive] + tolerance).all())
    mode = p.mode
    assert bool(p.support.check(mode).all())
    assert bool(p.mode_is_exact.all())
    best = world.score.max(0).values
    assert torch.allclose(p.log_score(mode), best, atol=tolerance)
    low, high = p.log_partition_bounds
    offset = sum(w * m.log_partition for w, m in zip(p.weights, p.members, strict=True))
    assert bool((low <= offset + world.log_z + tolerance).all() and (offset + world.log_z <= high + tolerance).all())
    k = 64 if everything else 3
    states, scores = p.top_k(k)
    ranked = world.score.sort(0, descending=True).values[:k]
    assert torch.allclose(scores.movedim(-1, 0)[: len(ranked)], ranked, atol=tolerance)
    assert bool(p.support.check(states.movedim(-2, 0)).all())
    if everything:  # all states are known by now, so the upper bound is the value
        _, upper = p.log_prob_bounds(world.at)
        assert torch.allclose(upper[alive], world.log_prob[alive], atol=tolerance)


@pytest.mark.parametrize("seed", range(4))
def test_samples_are_exact(seed: int) -> None:
    world = World(seed, batch=(2,))
    drawn = world.p.draw((2000,), generator=torch.Generator().manual_seed(seed), most=10**6)
    assert bool((drawn.draws >= 2000).all())
    weights = 2.0 ** torch.arange(len(world.labels) - 1, -1, -1, dtype=torch.float64)
    for row in range(2):
        seen = torch.bincount((drawn.states[:, row] @ weights).long(), minlength=len(world.states)).double()
        expected = 2000 * world.log_prob[:, row].exp()
        assert bool((seen[expected == 0] == 0).all())
        common = expected > 5
        chi = ((seen - expected)[common].square() / expected[common]).sum()
        assert float(chi) < float(common.sum()) + 5 * (2 * float(common.sum())) ** 0.5
    mean, error = world.p.mean_estimate(2000, torch.Generator().manual_seed(seed))
    exact = (world.log_prob.exp()[..., None] * world.at).sum(0)
    assert bool(((mean - exact).abs() <= 5 * error + 5e-3).all())


@pytest.mark.parametrize("seed", [1, 3])
def test_gradients(seed: int) -> None:
    world = World(seed, batch=())
    logits = [member.logits.clone().requires_grad_() for member in world.p.members]  # type: ignore[attr-defined]
    shares = torch.zeros(len(logits), dtype=torch.float64, requires_grad=True)

    def pool() -> PoolDistribution:
        return independent(world.split, logits, weights=torch.softmax(shares, 0))

    y = world.states[world.inside][-1]
    assert torch.autograd.gradcheck(
        lambda *parts: independent(world.split, parts[:-1], weights=torch.softmax(parts[-1], 0)).log_prob_bounds(y)[0],
        (*logits, shares),
    )
    score = pool().log_score(world.states[world.inside])
    exact = torch.autograd.grad(pool().log_score(y) - score.logsumexp(0), [*logits, shares])
    estimate = pool().log_prob_gradient(y, samples=4000, generator=torch.Generator().manual_seed(0))
    for a, b in zip(exact, torch.autograd.grad(estimate, [*logits, shares]), strict=True):
        assert torch.allclose(a, b, atol=0.1)


def test_evidence_and_utilities() -> None:
    for seed in range(6):
        world = World(seed, batch=(2,))
        seen = world.at[world.inside][0, :, 0]
        name = world.labels[0]
        p = world.p.condition({name: seen})
        allowed = world.inside[:, None] & (world.at[..., 0] == seen)
        scores = world.score.masked_fill(~allowed, float("-inf"))
        own = p.log_score(world.at)
        assert torch.allclose((own - own.logsumexp(0)).exp(), torch.softmax(scores, 0))
        assert torch.allclose(p.log_score(p.mode), own.max(0).values)
        assert bool((p.sample((3,), generator=torch.Generator().manual_seed(0))[..., 0] == seen).all())
        gains = torch.randn(2, len(world.labels), dtype=torch.float64)
        total = (world.at * gains).sum(-1).masked_fill(~world.inside[:, None], float("-inf"))
        assert torch.allclose((world.p.decode(gains) * gains).sum(-1), total.max(0).values)


def test_what_is_refused_names_what_to_use() -> None:
    S = sp.split(sp.constraints.permutation(4), max_nodes=30)
    p = sp.constrain(torch.zeros(2, 16), S)
    y = torch.eye(4).flatten()
    asked: list[tuple[Any, str]] = [
        (lambda: p.log_prob(y), "log_prob_bounds"),
        (lambda: p.mean, "mean_estimate"),
        (lambda: p.variance, "mean_estimate"),
        (lambda: p.log_partition, "log_partition_bounds"),
        (lambda: p.entropy(), "sample"),
        (lambda: p.log_marginal(y), "condition"),
        (lambda: p.log_prob_of("y[0,0]"), "sample"),
        (lambda: p.enumerate_support(), "top_k"),
        (lambda: p.decode("hamming"), "decode"),
    ]
    for ask, instead in asked:
        with pytest.raises(IntractableError, match=instead):
            ask()
    assert bool((p.log_prob(torch.ones(2, 16)) == float("-inf")).all())
    with pytest.raises(IntractableError, match="rate"):
        p.draw((1000,), most=100)
    assert p.within(seconds=5).limits == Limits(seconds=5)


def test_rows_without_a_state_are_named() -> None:
    rules = [sp.exactly(1, [sp.Bool(f"c{i}={k}") for k in range(4)]) for i in range(5)]
    rules += [sp.at_most(1, [sp.Bool(f"c{i}={k}") for i in range(5)]) for k in range(4)]  # five pigeons, four holes
    S = Split(tuple(sp.compile(sp.And(part), labels=sp.And(rules).labels) for part in (rules[:5], rules[5:])))
    p = sp.constrain(torch.randn(2, 20), S)
    with pytest.raises(IntractableError, match=r"rows 0, 1 .*within"):
        _ = p.within(rounds=1, nodes=1, seconds=0.001).mode
    with pytest.raises(UnsatisfiableError, match="rows 0, 1"):
        _ = p.mode


def test_a_layer_of_an_exact_split_is_an_ordinary_layer() -> None:
    S = sp.split("(cat -> animal) & (dog -> animal)")
    assert S.is_exact
    layer = sp.ConstraintLayer(S)
    assert type(layer(torch.zeros(3))).__name__ == "ProductDistribution"
    p = sp.constrain(torch.zeros(3), S)
    assert type(p).__name__ == "ProductDistribution"
    lower, upper = p.log_prob_bounds(torch.zeros(3))  # training code need not know whether a split is exact
    assert lower == upper == p.log_prob(torch.zeros(3)) == p.log_score(torch.zeros(3))


def test_everything_left_out() -> None:
    K = sp.exactly(2, [sp.Bool(name) for name in "abcd"])
    S = Split((sp.compile(sp.And([]), labels=list("abcd")),), (K,))
    p = sp.constrain(torch.tensor([3.0, 1.0, -1.0, 2.0]), S)
    assert p.mode.tolist() == [1, 0, 0, 1]
    assert bool(p.mode_is_exact)
    assert bool((p.sample((50,)).sum(-1) == 2).all())


def test_budgets_of_split() -> None:
    with pytest.raises(CompilationBudgetError):
        sp.compile(sp.constraints.permutation(6), max_nodes=20)


def test_a_solver_finishes() -> None:
    pytest.importorskip("ortools")
    for seed in range(1, 12, 2):  # pools of independent labels
        world = World(seed)
        split = Split(world.split.circuits, world.split.rules_left_out, source=sp.And(world.rules))
        p = independent(split, [m.logits for m in world.p.members], weights=world.p.weights)  # type: ignore[attr-defined]
        p = p.within(rounds=0, nodes=0, seconds=20, solver="cp-sat")
        assert bool(p.mode_is_exact.all())
        assert torch.allclose(p.log_score(p.mode), world.score.max(0).values)
        name = world.labels[-1]
        seen = world.at[world.inside][0, :, -1]
        q = p.condition({name: seen})
        own = q.log_score(world.at)
        assert torch.allclose(q.log_score(q.mode), own.max(0).values)
    with pytest.raises(SemprolaError, match=r"sp\.split"):
        world.p.within(solver="cp-sat")
    with pytest.raises(ValueError, match="cp-sat"):
        Limits(solver="gurobi")


def test_rules_left_out_that_take_too_long_to_write_as_clauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are checked only, and the answers are the same."""
    monkeypatch.setattr(propagation, "_SECONDS", 1e-9)
    for seed in range(8):
        check(World(seed), everything=False)


def test_states_are_checked_by_clauses_as_by_formulas() -> None:
    for seed in range(40):
        world = World(seed)
        inside = propagation.propagation_of(world.split).satisfied(world.states.T.double())
        assert torch.equal(inside, world.inside)


def test_numbers_of_rules_left_out_have_one_value() -> None:
    n, m = sp.Integer("n", 1, 3), sp.Integer("m", 0, 2)
    rules = [n != m, (n == 1) | (n == 2), n == 1, sp.parse("a | b")]
    K = sp.And(rules)
    S = Split((sp.compile(sp.And([]), labels=K.labels),), tuple(rules))
    states = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * len(K.labels))
    inside = torch.from_numpy(K.evaluate(states.numpy()))
    assert torch.equal(propagation.propagation_of(S).satisfied(states.T.double()), inside)
    assert torch.equal(sp.constrain(torch.zeros(len(K.labels)), S).log_score(states) > float("-inf"), inside)
