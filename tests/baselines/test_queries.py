"""Every query of the layers' distributions: a baseline answers it, or says why it cannot."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch

import semprola as sp
from semprola.comparison import build_method
from semprola.errors import IntractableError, LabelError

RULES = "(cat -> animal) & (dog -> animal)"
QUERIES = {
    "log_prob",
    "mode",
    "mode_is_exact",
    "decode",
    "mean",
    "log_marginal",
    "condition",
    "sample",
    "entropy",
    "top_k",
    "enumerate_support",
    "support",
    "log_partition",
    "variance",
    "expected_f1",
    "project",
}
ANSWERED = {
    "ccn": {"mode", "mean", "decode"},
    "hmcnn": {"mode", "mean", "decode"},
    "ebm": {"mode", "mean", "decode", "sample"},
    "multiplexnet": {"mode", "mean", "decode", "sample", "log_prob", "log_marginal", "condition"},
    "fil": QUERIES,
}


def scores(method: str) -> Any:
    rules = sp.parse(RULES)
    return build_method(method, torch.nn.Identity(), 4, rules, sp.compile(rules))(torch.zeros(2, 4))


@pytest.mark.parametrize("method", ANSWERED)
def test_every_query_is_answered_or_refused_with_a_reason(method: str) -> None:
    p = scores(method)
    for query in QUERIES & ANSWERED[method]:
        getattr(p, query)
    for query in QUERIES - ANSWERED[method]:
        with pytest.raises(IntractableError, match=f"has no {query}: .*use sp.SPL instead"):
            getattr(p, query)
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = p.colour


@pytest.mark.parametrize("method", ["ebm", "multiplexnet"])
def test_scores_can_be_copied_and_pickled(method: str) -> None:
    with torch.no_grad():
        p = scores(method)
    for other in (copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert torch.equal(other.mean, p.mean)


@pytest.mark.parametrize("layer", [sp.baselines.FIL, sp.baselines.EBM])
@pytest.mark.parametrize("labels", ["cat", ["cat", "cat"], ["cat", 3], [""]])
def test_labels_are_distinct_names(layer: Any, labels: Any) -> None:
    with pytest.raises(LabelError, match=r"^labels: "):
        layer(4, labels)


def test_answers_name_their_labels() -> None:
    z = torch.zeros(2, 3)
    pets = sp.constraints.hierarchy([("cat", "animal"), ("dog", "animal")])
    names = ("cat", "animal", "dog")
    B = sp.baselines
    for layer in (B.HMCNN(3, pets), B.CCN(3, "cat -> animal", labels=names), B.EBM(3, names), B.FIL(3, names)):
        assert layer(z).labels == layer.labels == names
    assert B.MultiplexNet(3, "cat | dog")(z).labels == ("cat", "dog")
