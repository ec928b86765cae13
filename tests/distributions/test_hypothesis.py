"""Generated formulas: compiled, wrapped in a layer, and compared with enumeration."""

from __future__ import annotations

from typing import Any

import oracle
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import INF, Table
from zoo import Case

import semprola as sp

ATOMS = "abcdef"
FEATURES = 3
TOLERANCE = 1e-10

# more than 200 satisfiable ones in a run of this file; more where the profile asks for more
enough = settings(max_examples=max(150, settings().max_examples))


def _connect(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """One connective over some of these parts."""
    several = st.lists(parts, min_size=2, max_size=4)
    count = st.integers(0, 4)
    return st.one_of(
        st.builds(sp.And, several),
        st.builds(sp.Or, several),
        st.builds(sp.Xor, several),
        st.builds(sp.Implies, parts, parts),
        st.builds(sp.Iff, parts, parts),
        st.builds(sp.exactly, count, several),
        st.builds(sp.at_most, count, several),
        st.builds(sp.at_least, count, several),
        st.builds(sp.one_hot, several),
        st.builds(sp.Not, st.builds(sp.Or, several)),
    )


# Three layers, so that most examples have several labels; left to itself the generator prefers constants and atoms.
atoms = st.sampled_from([sp.Bool(name) for name in ATOMS])
leaves = st.one_of(atoms, atoms.map(sp.Not))
inner = st.one_of(leaves, _connect(leaves))
trivial = st.sampled_from([sp.logic.TRUE, sp.logic.FALSE, sp.And(), sp.Or(), sp.Xor(), sp.Bool("a"), ~sp.Bool("a")])
formulas = st.one_of(_connect(inner), _connect(st.one_of(inner, _connect(inner))), _connect(st.one_of(leaves, trivial)))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A formula with its labels in any order, perhaps free ones, perhaps inputs."""
    formula = draw(formulas)
    mentioned = set(formula.labels)
    inputs = draw(st.sets(st.sampled_from(sorted(mentioned)), max_size=2)) if len(mentioned) > 1 else set()
    inputs = inputs if inputs != mentioned else set()
    free = draw(st.sets(st.sampled_from(["u", "v"]), max_size=2, min_size=0 if mentioned - inputs else 1))
    labels = draw(st.permutations(sorted((mentioned - inputs) | free)))
    return Case(str(formula), lambda: formula, tuple(labels), tuple(sorted(inputs)))


def compiled(case: Case) -> Any:
    """The circuit, or None, having checked that it is None exactly when the formula has no model."""
    every = oracle.all_states(len(case.columns) + len(case.given))
    satisfiable = bool(case.make().evaluate(every, labels=[*case.columns, *case.given]).any())
    try:
        circuit = sp.compile(case.make(), labels=list(case.columns), given=list(case.given))
    except sp.UnsatisfiableError:
        assert not satisfiable
        return None
    assert satisfiable
    return circuit


@enough
@given(cases())
def test_count_and_membership(case: Case) -> None:
    circuit = compiled(case)
    if circuit is None:
        return
    assert circuit.labels == case.columns
    assert circuit.given == case.given
    every = oracle.all_states(len(case.columns) + len(case.given))
    true = case.make().evaluate(every, labels=[*case.columns, *case.given])
    assert circuit.model_count() == int(true.sum())
    y, x = every[:, : len(case.columns)], every[:, len(case.columns) :]
    assert torch.equal(torch.as_tensor(circuit.satisfied(y, given=x if case.given else None)), true)
    assert circuit.is_decomposable
    assert circuit.is_deterministic
    models = torch.as_tensor(circuit.enumerate())
    assert sorted(oracle.state_index(models).tolist()) == true.nonzero().squeeze(-1).tolist()


@enough
@given(cases(), st.sampled_from(["spl", "spl-22", "product", "product-2", "hmm", "vtree"]), st.integers(0, 10**6))
def test_layers(case: Case, kind: str, seed: int) -> None:
    circuit = compiled(case)
    if circuit is None:
        return
    layer = _layer(kind, circuit).double()
    generator = torch.Generator().manual_seed(seed)
    for weight in layer.parameters():
        weight.data.normal_(0, 1, generator=generator)
    z = torch.randn(2, FEATURES, dtype=torch.float64, generator=generator)
    x, allowed = None, oracle.allowed(case)[None].expand(2, -1) if not case.given else None
    if case.given:
        live = oracle.inputs(case)
        x = live[torch.randint(len(live), (2,), generator=generator)]
        allowed = oracle.allowed(case, x)
    assert allowed is not None
    _agrees(layer(z) if x is None else layer(z, given=x), allowed, exact=kind in ("spl", "product"))


def _agrees(p: Any, allowed: torch.Tensor, exact: bool) -> None:
    raw = oracle.log_probs_of_all(p)
    assert torch.equal(raw > -INF, allowed)
    table = Table(raw)
    _close(table.log_partition, torch.zeros(2))
    _close(p.mean, table.mean)
    mode = p.mode
    assert p.support.check(mode).all()
    assert (table.log_prob(mode) > -INF).all()
    proven = p.mode_is_exact
    assert proven.all() or not exact
    assert (~proven | table.is_mode(mode, TOLERANCE * (1 + table.max_log_prob.abs().max().item()))).all()
    evidence = mode.clone()
    evidence[..., ::2] = torch.nan
    _close(p.log_marginal(evidence), table.log_marginal(evidence))
    _close(oracle.log_probs_of_all(p.condition(evidence)), table.condition(evidence).log_probs)
    assert (table.log_prob(p.sample((8,))) > -INF).all()


def _layer(kind: str, circuit: Any) -> Any:
    if kind == "spl":
        return sp.SPL(FEATURES, circuit)
    if kind == "spl-22":
        return sp.SPL(FEATURES, circuit, replicas=2, units=2)
    if kind == "product":
        return sp.ProductSPL(FEATURES, circuit)
    if kind == "product-2":
        return sp.ProductSPL(FEATURES, circuit, mixtures=2)
    return sp.ProductSPL(FEATURES, circuit, q=kind, units=2)


def _close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual.detach().double(), expected.detach().double(), atol=TOLERANCE, rtol=TOLERANCE)
