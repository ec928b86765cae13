"""A new q that reuses existing components is one class, and every query works."""

import copy
import pickle

import oracle
import pytest
import torch
import zoo
from oracle import Table

import semprola as sp
from semprola.distributions.independent import IndependentLabels
from semprola.engine import CircuitPlans
from semprola.nn import Q

CASES = [case for case in zoo.CASES if not case.large]


class Shared(Q):
    """All labels have the same log-odds: q knows how many of them to expect, and nothing else."""

    def __init__(self, circuit, units):
        if units is not None:
            raise ValueError("a shared q has no units")
        self.plans, self.num_parameters = CircuitPlans(circuit), 1

    def components(self, domain, parameters, count):
        return IndependentLabels(domain, parameters.expand(domain.circuit.num_labels, -1), count)

    def independent(self, odds):
        return odds.mean().reshape(1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_query_of_a_new_q(case):
    torch.manual_seed(0)
    layer = sp.ProductSPL(3, case.circuit, components=2, q=Shared).double()
    torch.nn.init.normal_(layer.gate.output.weight, std=2.0)
    x = None
    if case.given:
        live = oracle.inputs(case)
        x = live[torch.randint(len(live), (4,))]
    z = torch.randn(4, 3, dtype=torch.float64)
    p = layer(z) if x is None else layer(z, given=x)
    outputs = layer.gate(z)
    odds = outputs[:, :2, None].expand(-1, -1, len(case.columns))
    table = Table.of_mixture(torch.log_softmax(outputs[:, 2:], -1), odds, oracle.allowed(case, x))
    torch.testing.assert_close(oracle.log_probs_of_all(p), table.log_probs)
    torch.testing.assert_close(p.mean, table.mean)
    torch.testing.assert_close(p.entropy(), table.entropy)
    torch.testing.assert_close(p.log_partition, table.log_partition, atol=1e-9, rtol=1e-9)
    assert (table.is_mode(p.mode, 1e-9) | ~p.mode_is_exact).all()


def test_it_is_a_layer_like_any():
    layer = sp.ProductSPL(4, sp.at_least(1, list("abc")), q=Shared, gate=(5,))
    z = torch.randn(6, 4)
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(again(z).mean, layer(z).mean)
    assert "q=Shared" in repr(layer)
    layer(z).log_prob(layer(z).mode).sum().backward()
    y = torch.tensor([[1.0, 1, 0]] * 3 + [[0, 1.0, 0]])
    assert layer.start_at(y)(z[0]).mean.isfinite().all()


@pytest.mark.parametrize("q", ["x", 3, CircuitPlans, None])
def test_what_is_no_q(q):
    with pytest.raises(ValueError, match=r"^q must be 'factorized', 'hmm', 'vtree' or a subclass of Q, not "):
        sp.ProductSPL(4, "a | b", q=q)
