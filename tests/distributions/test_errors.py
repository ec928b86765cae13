"""Every error that a distribution raises: one line, what is wrong, what to try."""

import pytest
import torch
from torch.distributions import kl_divergence

import semprola as sp
from semprola.circuit import CircuitBuilder
from semprola.engine import CompatiblePlans

PETS = "(cat -> animal) & (dog -> animal)"
CIRCUIT = sp.compile(PETS)
WIDE = sp.compile(sp.at_least(1, [f"y{i}" for i in range(40)]))


def single():
    return sp.SPL(4, CIRCUIT)(torch.zeros(2, 4))


def mixture():
    return sp.SPL(4, WIDE, replicas=2)(torch.zeros(2, 4))


def spl(*arguments, **options):
    return sp.distributions.SPLDistribution(CIRCUIT, *arguments, **options)


def product(*arguments, **options):
    return sp.distributions.ProductDistribution(CIRCUIT, *arguments, **options)


WEIGHTS = sp.SPL(4, CIRCUIT).plans.layer.num_logits
COMPATIBLE = CompatiblePlans(CIRCUIT, 2, "vtree")
NAN = float("nan")

CASES = {
    "not a tensor": (
        lambda: single().log_prob([1, 1, 0]),
        TypeError,
        "expected a tensor of shape [*batch, 3], not list: use torch.as_tensor",
    ),
    "width": (
        lambda: single().log_prob(torch.zeros(2, 4)),
        ValueError,
        "expected rows of 3 labels, got a tensor of shape (2, 4)",
    ),
    "batch": (
        lambda: single().log_prob(torch.zeros(3, 3)),
        ValueError,
        "a tensor of shape (3, 3) does not fit batch (2,) of 3 labels",
    ),
    "values": (lambda: single().log_prob(torch.full((2, 3), 0.5)), ValueError, "y must contain only 0 and 1"),
    "labels not observed": (
        lambda: single().log_prob(torch.tensor([1, NAN, 0])),
        ValueError,
        "y must contain only 0 and 1, but has NaN: log_marginal takes NaN where nothing is observed",
    ),
    **{
        f"{value} to {name}": (
            lambda query=query, value=value: query(torch.full((3,), value)),
            ValueError,
            "y must contain only 0 and 1"
            + (", but has NaN: log_marginal takes NaN where nothing is observed" if value != value else ""),
        )
        for value in (2.0, 0.5, NAN)
        for name, query in {
            "expected_f1": lambda y: single().expected_f1(y),
            "expected_jaccard": lambda y: single().expected_jaccard(y),
            "project": lambda y: single().project(y),
            "log_prob of the nearest": lambda y: single().log_prob(y, on_violation="project"),
            "log_prob or an error": lambda y: single().log_prob(y, on_violation="raise"),
            "log_prob or nothing": lambda y: single().log_prob(y, on_violation="ignore"),
        }.items()
    },
    "evidence values": (
        lambda: single().log_marginal(torch.full((2, 3), 2.0)),
        ValueError,
        "evidence must contain only 0, 1, and NaN where nothing is observed",
    ),
    "evidence batch": (
        lambda: single().condition(torch.zeros(5, 2, 3)),
        ValueError,
        "evidence of shape (5, 2, 3) does not fit batch (2,)",
    ),
    "impossible evidence": (
        lambda: single().condition(torch.tensor([[NAN, NAN, NAN], [1, 0, NAN]])),
        sp.UnsatisfiableError,
        "the evidence has probability zero in row 1",
    ),
    "contradicting evidence": (
        lambda: single().condition(torch.tensor([NAN, 1, NAN])).condition(torch.tensor([NAN, 0, NAN])),
        sp.UnsatisfiableError,
        "the evidence has probability zero in rows 0, 1",
    ),
    "complex labels": (
        lambda: single().log_prob(torch.zeros(2, 3, dtype=torch.complex64)),
        TypeError,
        "a tensor of 3 labels must contain real numbers, not torch.complex64",
    ),
    "evidence in a list": (
        lambda: single().condition([1, 1, 0]),
        TypeError,
        "evidence must be a tensor, a dict or a data frame, not list",
    ),
    "complex evidence": (
        lambda: single().condition(torch.zeros(2, 3, dtype=torch.complex64)),
        TypeError,
        "evidence must contain real numbers, not torch.complex64",
    ),
    "negative sample shape": (
        lambda: single().sample((2, -1)),
        ValueError,
        "sample_shape must contain sizes of 0 or more, not (2, -1)",
    ),
    "no samples for an estimate": (
        lambda: single().entropy_estimate(0),
        ValueError,
        "samples must be a positive whole number, not 0",
    ),
    "k": (lambda: single().top_k(0), ValueError, "k must be a positive whole number, not 0"),
    "decoder": (
        lambda: single().decode("best"),
        ValueError,
        "decode takes 'mode', 'hamming', 'f1', 'jaccard', 'greedy' or utilities by label, not 'best'",
    ),
    "utilities": (
        lambda: single().decode(torch.full((2, 3), torch.inf)),
        ValueError,
        "utilities must be finite numbers",
    ),
    "utilities batch": (
        lambda: single().decode(torch.zeros(5, 2, 3)),
        ValueError,
        "utilities of shape (5, 2, 3) do not fit batch (2,)",
    ),
    "greedy of a product": (
        lambda: sp.ProductSPL(4, CIRCUIT)(torch.zeros(4)).decode("greedy"),
        ValueError,
        "decode('greedy') is the published decoder of single-circuit layers; use 'mode'",
    ),
    "entropy of a large mixture": (
        lambda: mixture().entropy(),
        sp.errors.IntractableError,
        "entropy is not tractable for a mixture with a large support: use entropy_bounds() or "
        "entropy_estimate(samples)",
    ),
    "divergence of large mixtures": (
        lambda: kl_divergence(mixture(), mixture()),
        sp.errors.IntractableError,
        "kl_divergence is not tractable for a mixture with a large support: use the mean of p.log_prob(y) - "
        "q.log_prob(y) over samples y of p",
    ),
    "divergence of different circuits": (
        lambda: kl_divergence(single(), mixture()),
        ValueError,
        "kl_divergence needs two distributions over the same circuit",
    ),
    "divergence of different batches": (
        lambda: kl_divergence(single(), sp.SPL(4, CIRCUIT)(torch.zeros(3, 4))),
        ValueError,
        "kl_divergence needs batches that broadcast, not (2,) and (3,): use the same number of rows, or one row",
    ),
    "mixture of different batches": (
        lambda: sp.distributions.mixture([single(), single(), sp.SPL(4, CIRCUIT)(torch.zeros(3, 4))]),
        ValueError,
        "a mixture needs batches that broadcast, not (2,) and (3,): use the same number of rows, or one row",
    ),
    "candidates by name": (
        lambda: single().rescore({"cat": [1]}, torch.zeros(1)),
        TypeError,
        "states must be numbers [*batch, n, 3], not dict",
    ),
    "candidates of different widths": (
        lambda: single().rescore([[1, 0, 0], [1]], torch.zeros(2)),
        TypeError,
        "states must be numbers [*batch, n, 3], not list",
    ),
    "priors by name": (
        lambda: single().rescore(torch.eye(3), {"cat": 1}),
        TypeError,
        "log_prior must be numbers [*batch, n], not dict",
    ),
    **{
        f"a prior of {value}": (
            lambda value=value: single().rescore(torch.eye(3), torch.tensor([0.0, value, 0.0])),
            ValueError,
            "log_prior must contain finite numbers, or -inf to leave a candidate out, but has NaN or inf",
        )
        for value in (NAN, torch.inf)
    },
    **{
        f"a weight of {weight}": (
            lambda weight=weight: single().rescore(torch.eye(3), torch.zeros(3), weight),
            ValueError,
            f"weight must be a finite number, not {weight}",
        )
        for weight in (NAN, torch.inf)
    },
    "a weight that is no number": (
        lambda: single().rescore(torch.eye(3), torch.zeros(3), "1"),
        TypeError,
        "weight must be a finite number, not str",
    ),
    "large support": (
        lambda: mixture().enumerate_support(),
        sp.errors.IntractableError,
        "the circuit has about 10^12 models: pass limit= to list some of them",
    ),
    "different supports": (
        lambda: single().condition(torch.tensor([[1.0, 1, NAN], [0, NAN, NAN]])).enumerate_support(),
        ValueError,
        "the rows of the batch have different supports: enumerate them one by one",
    ),
    "spl logits": (
        lambda: spl(torch.zeros(2, 1, 99)),
        ValueError,
        f"logits must be [*batch, components, {WEIGHTS}], not (2, 1, 99)",
    ),
    "whole-number logits": (
        lambda: spl(torch.zeros(2, 1, WEIGHTS, dtype=torch.int64)),
        TypeError,
        "logits must be floating point, not torch.int64",
    ),
    "mixing shape": (
        lambda: product(torch.zeros(2, 3, 3), torch.zeros(2, 2)),
        ValueError,
        "mixing logits must be (2, 3), not (2, 2)",
    ),
    "product logits": (
        lambda: product(torch.zeros(2, 4)),
        ValueError,
        "logits must be [*batch, components, 3], not (2, 4)",
    ),
    "compatible logits": (
        lambda: sp.distributions.CompatibleDistribution(COMPATIBLE, torch.zeros(2, 1, 3)),
        ValueError,
        f"logits must be [*batch, components, {COMPATIBLE.num_parameters}], not (2, 1, 3)",
    ),
    "hmm without an order": (
        lambda: CompatiblePlans(_balanced(), 2, "hmm"),
        sp.errors.PropertyError,
        "q='hmm' needs a circuit over a linear variable order: compile it with backend='automata', or use q='vtree'",
    ),
    "vtree without one": (
        lambda: CompatiblePlans(_unstructured(), 2, "vtree"),
        sp.errors.PropertyError,
        "q='vtree' needs a circuit that respects a vtree: compile it with backend='sdd'",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_line(name):
    call, kind, message = CASES[name]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message


def test_arguments_are_not_checked_when_told_so():
    p = sp.distributions.SPLDistribution(CIRCUIT, torch.zeros(2, 1, WEIGHTS), validate_args=False)
    assert p.log_prob(torch.full((2, 3), 0.5)).shape == (2,)


def _balanced():
    from semprola.circuit import Vtree

    b = CircuitBuilder(["a", "b", "c", "d"])
    return b.build(b.true(), vtree=Vtree.balanced(range(4)))


def _unstructured():
    b = CircuitBuilder(["a", "b"])
    return b.build(b.literal(0, True))
