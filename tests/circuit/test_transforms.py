"""Smoothing keeps all models; conditioning keeps those that agree."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from circuit_cases import Referee, diagram, random_models

from semprola.circuit import Circuit, Vtree
from semprola.circuit.transforms import smooth
from semprola.errors import LabelError, UnsatisfiableError


@pytest.mark.parametrize("suppress", [False, True])
def test_smoothing(suppress: bool) -> None:
    rng = random.Random(0)
    for _ in range(40):
        variables = rng.randint(1, 6)
        models = random_models(rng, variables, rng.choice((0.1, 0.5, 1.0)))
        circuit = diagram(models, variables, given=rng.randint(0, variables - 1), suppress=suppress)
        smoothed = circuit.smooth()
        assert smoothed.is_smooth
        assert not smoothed.zero_suppressed.any()
        assert Referee(smoothed).rows() == models
        assert smoothed.model_count() == len(models)
        some = np.array([rng.random() < 0.5 for _ in range(variables)])
        assert Referee(smooth(circuit, some)).rows() == models


@pytest.mark.parametrize("suppress", [False, True])
def test_conditioning(suppress: bool) -> None:
    rng = random.Random(1)
    for _ in range(150):
        variables = rng.randint(1, 6)
        models = random_models(rng, variables)
        outputs = variables - rng.randint(0, variables - 1)
        circuit = diagram(models, variables, given=variables - outputs, suppress=suppress)
        values = {v: rng.randint(0, 1) for v in rng.sample(range(variables), rng.randint(0, variables))}
        kept = [v for v in range(variables) if v < outputs or v not in values]
        wanted = {tuple(m[v] for v in kept) for m in models if all(m[v] == x for v, x in values.items())}
        named = {circuit.variables[v]: x for v, x in values.items()}
        if not wanted:
            with pytest.raises(UnsatisfiableError, match=r"no model has \{"):
                circuit.condition(named)
            continue
        conditioned = circuit.condition(named)
        assert conditioned.labels == circuit.labels
        assert conditioned.given == tuple(name for name in circuit.given if name not in named)
        assert Referee(conditioned).rows() == wanted
        assert conditioned.model_count() == len(wanted)
        assert conditioned.is_decomposable
        assert conditioned.is_deterministic


def test_conditioning_keeps_the_vtree_of_what_is_left() -> None:
    rng = random.Random(2)
    for _ in range(20):
        plain = diagram(random_models(rng, 5), 5, given=2)
        circuit = Circuit(
            plain.labels,
            plain.given,
            plain.kind,
            plain.literal,
            plain.child_start,
            plain.children,
            vtree=Vtree.right_linear(range(5)),
        )
        conditioned = circuit.condition({"v3": next(iter(Referee(circuit).rows()))[3]})
        assert conditioned.vtree is not None
        assert conditioned.vtree.num_variables == 4
        assert conditioned.is_structured


def test_bad_conditions() -> None:
    circuit = diagram(set(product((0, 1), repeat=2)), 2)
    with pytest.raises(LabelError, match="'x' is not a label or given variable"):
        circuit.condition({"x": 1})
    for value in (2, "1", None, 0.5):
        with pytest.raises(ValueError, match="'v0' must be 0 or 1"):
            circuit.condition({"v0": value})
    assert circuit.condition({"v0": True}).model_count() == 2
    assert circuit.condition({}).model_count() == 4
